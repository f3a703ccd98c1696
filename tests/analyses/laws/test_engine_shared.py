"""Exponents that groups share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from analyses.laws import BoundedLaw, SeparableLaw
from tests.analyses.laws.engine_cases import HIGH, LOW, many


def stacked(count: int, seed: int) -> tuple[Any, ...]:
    """Groups padded to the same number of cells: n, r, y, weights."""
    groups = list(many(count, seed, 6.0))
    width = max(len(one.y) for one in groups)
    pad = [(0, width - len(one.y)) for one in groups]
    arrays = [
        [np.pad(values, one, constant_values=1.0) for values, one in zip(column, pad, strict=True)]
        for column in zip(*((g.n, g.r, g.y) for g in groups), strict=True)
    ]
    weights = [np.pad(np.ones(len(one.y)), gap) for one, gap in zip(groups, pad, strict=True)]
    return (*(np.array(values) for values in arrays), np.array(weights))


def held(law: type[SeparableLaw], floor: str, n: Any, r: Any, y: Any, w: Any) -> Any:
    """Sum of the groups' objectives at log exponents."""

    def total(x: Any) -> float:
        alpha, beta = np.exp(x)
        return float(law(alpha=(alpha, alpha), beta=(beta, beta), floor=floor).fit_many(n, r, y, w).objective.sum())

    return total


@pytest.mark.parametrize("floor", ["continuous", "free"])
def test_no_other_search_of_shared_exponents_ends_lower(floor: str) -> None:
    rng = np.random.default_rng(1)
    for seed in range(2):
        n, r, y, w = stacked(6, seed)
        found = SeparableLaw(floor=floor).fit_shared(n, r, y, w)
        total = held(SeparableLaw, floor, n, r, y, w)
        assert len(set(found.parameters["alpha"])) == len(set(found.parameters["beta"])) == 1
        assert found.shared == ("alpha", "beta")
        x = np.log([found.parameters[name][0] for name in ("alpha", "beta")])
        assert found.objective.sum() == pytest.approx(total(x), rel=1e-9)
        for start in [x, *rng.uniform(LOW, HIGH, (3, 2))]:
            other = minimize(total, start, method="Nelder-Mead", bounds=[(LOW, HIGH)] * 2, options={"xatol": 1e-7, "fatol": 1e-12})
            assert found.objective.sum() <= other.fun * (1 + 1e-8)


def test_one_group_shares_with_nobody() -> None:
    for floor in ("grid", "continuous", "free"):
        for one in many(10, 2):
            law = SeparableLaw(floor=floor)
            own, shared = law.fit_many(one.n, one.r, one.y), law.fit_shared(one.n[None], one.r[None], one.y[None])
            assert shared.objective == pytest.approx(own.objective, rel=1e-9)
            assert shared.parameters["beta"] == pytest.approx(own.parameters["beta"], rel=1e-6)


def test_sharing_never_fits_better_than_own_exponents() -> None:
    n, r, y, w = stacked(8, 3)
    for law in (SeparableLaw(), SeparableLaw(floor="grid"), SeparableLaw(floor="free")):
        assert law.fit_shared(n, r, y, w).objective.sum() >= law.fit_many(n, r, y, w).objective.sum() * (1 - 1e-9)


def test_many_problems_at_once_have_the_digits_of_each_alone() -> None:
    n, r, y, w = stacked(5, 4)
    replicates = y + np.random.default_rng(5).normal(0, 0.02, (70, *y.shape))
    for law in (SeparableLaw(), SeparableLaw(floor="grid")):
        together = law.fit_shared(n, r, replicates, w)
        assert len(together) == 70 * 5
        for i in (0, 50, 51, 69):
            alone = law.fit_shared(n, r, replicates[i], w)
            part = together.take(slice(5 * i, 5 * i + 5))
            assert all(np.array_equal(values, part.parameters[name]) for name, values in alone.parameters.items())
            assert np.array_equal(alone.objective, part.objective)


def test_floors_on_the_grid_are_near_those_of_a_search_over_the_broken_surface() -> None:
    n, r, y, w = stacked(6, 6)
    found = SeparableLaw(floor="grid").fit_shared(n, r, y, w)
    continuous = SeparableLaw().fit_shared(n, r, y, w)
    total = held(SeparableLaw, "grid", n, r, y, w)
    x = np.log([found.parameters[name][0] for name in ("alpha", "beta")])
    assert found.objective.sum() == pytest.approx(total(x), rel=1e-9)
    assert continuous.objective.sum() * (1 - 1e-9) <= found.objective.sum() <= minimize(total, x, method="Nelder-Mead").fun * (1 + 1e-3)


def test_a_group_without_weight_takes_no_part() -> None:
    n, r, y, w = stacked(4, 7)
    w[2] = 0
    found = SeparableLaw().fit_shared(n, r, y, w)
    others = [0, 1, 3]
    without = SeparableLaw().fit_shared(n[others], r[others], y[others], w[others])
    assert found.objective[others] == pytest.approx(without.objective, rel=1e-9)
    assert np.isnan([found.parameters[name][2] for name in ("e", "a", "b")]).all()
    assert found.parameters["alpha"][2] == found.parameters["alpha"][0]
    assert found.objective[2] == 0
    nobody = SeparableLaw().fit_shared(n, r, y, w * 0)
    assert all(np.isnan(values).all() for values in nobody.parameters.values())


def test_the_bounded_law_shares_on_the_logit() -> None:
    n, r, y, w = stacked(5, 8)
    y = np.clip(y, 0.02, 0.98)
    found = BoundedLaw().fit_shared(n, r, y, w)
    total = held(BoundedLaw, "continuous", n, r, y, w)
    x = np.log([found.parameters[name][0] for name in ("alpha", "beta")])
    assert found.objective.sum() <= minimize(total, x, method="Nelder-Mead", bounds=[(LOW, HIGH)] * 2).fun * (1 + 1e-9)
