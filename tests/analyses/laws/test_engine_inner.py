"""The exact inner problem against scipy's nonnegative least squares."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyses.laws import CONTINUOUS, FREE, GRID, Floor, SeparableLaw
from analyses.laws.inner import Sums, solve, solve_at
from tests.analyses.laws.engine_cases import inner

FLOORS = [GRID, CONTINUOUS, FREE, Floor("continuous", -6.9, np.inf), Floor("continuous", 0.3, 0.3)]


def sums(u: Any, v: Any, y: Any, w: Any) -> Sums:
    total = w.sum()
    mu, mv, my = (w @ x / total for x in (u, v, y))
    u, v, y = u - mu, v - mv, y - my
    products = (np.array([(w * a * b).sum()]) for a, b in ((u, u), (v, v), (u, v), (u, y), (v, y), (y, y)))
    return Sums(total, mu, mv, my, *products)


numbers = st.integers(-16, 16).map(lambda value: value / 16)
"""Coarse enough that equal, constant and collinear columns are common."""


@given(st.lists(st.tuples(numbers, numbers, numbers, st.integers(0, 3)), min_size=4, max_size=12))
@settings(max_examples=300, deadline=None)
def test_the_optimum_is_that_of_nnls_for_any_columns_and_weights(rows: list[tuple[float, float, float, int]]) -> None:
    u, v, y, w = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    if w.sum() == 0:
        return
    for floor in FLOORS:
        if floor.kind == "grid":
            continue
        found = solve(sums(u, v, y, w), *floor.bounds())
        assert found.a[0] >= 0
        assert found.b[0] >= 0
        assert floor.low <= found.e[0] <= floor.high or floor.kind == "free"
        assert found.sse[0] == pytest.approx((w * (y - found.e - found.a * u - found.b * v) ** 2).sum(), abs=1e-9)
        assert found.sse[0] == pytest.approx(inner(u, v, y, floor, w), rel=1e-6, abs=1e-9)


def test_a_given_floor_is_solved_for_amplitudes_only() -> None:
    rng = np.random.default_rng(1)
    u, v, y, w = rng.random((4, 20))
    for e in (0.1, 0.5, 2.0):
        assert solve_at(sums(u, v, y, w), e).sse[0] == pytest.approx(inner(u, v, y, Floor("continuous", e, e), w), rel=1e-9)


@pytest.mark.parametrize("floor", FLOORS, ids=lambda floor: f"{floor.kind} {floor.low}")
def test_with_exponents_held_the_fit_is_the_inner_optimum(floor: Floor) -> None:
    rng = np.random.default_rng(2)
    for _ in range(60):
        n, r = np.exp(rng.normal(0, 1, (2, 24)))
        y, w = rng.normal(0.5, 0.3, 24), rng.random(24)
        alpha, beta = np.exp(rng.uniform(np.log(0.05), np.log(10), 2))
        fit = SeparableLaw(alpha=(alpha, alpha), beta=(beta, beta), floor=floor).fit_many(n, r, y, w)
        u, v = (n / n.min()) ** -alpha, (r / r.min()) ** -beta
        assert fit.objective[0] == pytest.approx(inner(u, v, y, floor, w), rel=1e-9, abs=1e-13)
        assert fit.objective[0] == pytest.approx((w * (y - fit.predict(n, r)[0]) ** 2).sum(), rel=1e-9)
