"""The global search against slow searches, and what must hold of every fit."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
from scipy.optimize import differential_evolution, least_squares

from analyses.laws import CONTINUOUS, FREE, GRID, BoundedLaw, Floor, SeparableLaw, Solutions
from analyses.laws.floor import GRID_VALUES
from tests.analyses.laws.engine_cases import BOX, HIGH, LOW, cells, inner, many, searched

FLOORS = ("grid", "continuous", "free")
PAPER_FITS = int(os.environ.get("TRACKR_PAPER_FITS", "6"))
"""Fits by the paper's procedure: each takes a fifth of a second."""


def objective(floor: str, n: Any, r: Any, y: Any, w: Any = None, **options: Any) -> float:
    return float(SeparableLaw(floor=floor, **options).fit_many(n, r, y, w).objective[0])


def same(one: Solutions, other: Solutions) -> bool:
    return all(np.array_equal(values, other.parameters[name]) for name, values in one.parameters.items())


@pytest.mark.parametrize(("floor", "count"), [(CONTINUOUS, 12), (FREE, 8), (GRID, 2)], ids=lambda value: getattr(value, "kind", None))
@pytest.mark.parametrize("span", [1.06, 1.5, 40.0])
def test_no_dense_search_finds_a_lower_sum_of_squares(floor: Floor, count: int, span: float) -> None:
    for one in many(count, 3, span):
        found = SeparableLaw(floor=floor).fit_many(one.n, one.r, one.y).objective[0]
        assert found <= searched(one, floor, 40 if floor is not GRID else 20, 3 if floor is not GRID else 2) * (1 + 1e-7)


def test_differential_evolution_does_not_find_a_lower_one_either() -> None:
    for one in many(8, 5):

        def value(x: Any, one: Any = one) -> float:
            return inner((one.n / one.n.min()) ** -np.exp(x[0]), (one.r / one.r.min()) ** -np.exp(x[1]), one.y, CONTINUOUS)

        other = differential_evolution(value, [(LOW, HIGH)] * 2, seed=1, tol=1e-10, popsize=12, maxiter=60)
        assert objective("continuous", one.n, one.r, one.y) <= other.fun * (1 + 1e-7)


def test_least_squares_in_all_five_parameters_does_not_find_a_lower_one_either() -> None:
    rng = np.random.default_rng(6)
    for one in many(60, 7):
        low, high = [0.001, 0, LOW, 0, LOW], [0.999, 50, HIGH, 50, HIGH]

        def residual(x: Any, one: Any = one) -> Any:
            u, v = (one.n / one.n.min()) ** -np.exp(x[2]), (one.r / one.r.min()) ** -np.exp(x[4])
            return one.y - x[0] - x[1] * u - x[3] * v

        starts = [[0.1, 0.2, rng.uniform(LOW, HIGH), 0.2, rng.uniform(LOW, HIGH)] for _ in range(3)]
        other = min(2 * least_squares(residual, start, bounds=(low, high)).cost for start in starts)
        assert objective("continuous", one.n, one.r, one.y) <= other * (1 + 1e-7)


@pytest.mark.parametrize("floor", ["grid", "continuous"])
def test_the_papers_own_procedure_is_never_below(floor: str) -> None:
    for one in many(PAPER_FITS, 8):
        paper = objective(floor, one.n, one.r, one.y, optimizer="paper")
        assert objective(floor, one.n, one.r, one.y) <= paper * (1 + 1e-9) + 1e-12


def test_floors_on_the_grid_never_fit_better_than_continuous_ones_nor_these_than_free_ones() -> None:
    for one in many(50, 9):
        grid, continuous, free = (objective(floor, one.n, one.r, one.y) for floor in FLOORS)
        assert grid >= continuous * (1 - 1e-9)
        assert continuous >= free * (1 - 1e-9)
        assert SeparableLaw(floor="grid").fit_many(one.n, one.r, one.y).parameters["e"][0] in GRID_VALUES


def test_the_best_floor_of_the_grid_is_the_best_of_55_fits_with_the_floor_held() -> None:
    for one in many(15, 10):
        held = [objective(Floor("continuous", e, e), one.n, one.r, one.y) for e in GRID_VALUES]  # type: ignore[arg-type]
        assert objective("grid", one.n, one.r, one.y) == pytest.approx(min(held), rel=1e-8)


@pytest.mark.parametrize("span", [2.0, 10.0, 88.0])
def test_planted_parameters_come_back_from_cells_without_noise(span: float) -> None:
    rng = np.random.default_rng(11)
    for _ in range(60):
        one = cells(rng, span)
        e, a, b = rng.uniform(0.05, 0.5), *rng.uniform(0.05, 0.4, 2)
        alpha, beta = np.exp(rng.uniform(np.log(0.1), np.log(3), 2))
        b /= (one.r**-beta).mean()
        fit = SeparableLaw().fit_many(one.n, one.r, e + a * one.n**-alpha + b * one.r**-beta)
        found = [fit.parameters[name][0] for name in ("e", "a", "alpha", "b", "beta")]
        assert found == pytest.approx([e, a, alpha, b, beta], rel=1e-6)


def test_other_units_of_size_and_tokens_change_the_amplitudes_only() -> None:
    for one in many(40, 12):
        for floor in FLOORS:
            law = SeparableLaw(floor=floor)
            plain, other = law.fit_many(one.n, one.r, one.y), law.fit_many(one.n * 1e9, one.r / 37, one.y)
            assert other.objective == pytest.approx(plain.objective, rel=1e-9)
            assert other.predict(one.n * 1e9, one.r / 37) == pytest.approx(plain.predict(one.n, one.r), abs=1e-6)
    fits = [SeparableLaw().fit(one.n * scale, one.r, one.y) for scale in (1, 1e9)]
    assert fits[0].parameters["A_n"] == pytest.approx(fits[1].parameters["A_n"], rel=1e-6)


def test_the_order_of_cells_does_not_matter() -> None:
    rng = np.random.default_rng(13)
    for one in many(40, 14):
        order = rng.permutation(len(one.y))
        plain, other = SeparableLaw().fit_many(one.n, one.r, one.y), SeparableLaw().fit_many(one.n[order], one.r[order], one.y[order])
        assert other.objective == pytest.approx(plain.objective, rel=1e-9)


def test_a_weight_of_two_is_a_cell_twice_and_a_weight_of_zero_is_no_cell() -> None:
    rng = np.random.default_rng(15)
    for one in many(40, 16):
        weights = rng.integers(0, 3, one.y.shape)
        for floor in FLOORS:
            weighted = objective(floor, one.n, one.r, one.y, weights)
            repeated = objective(floor, *(np.repeat(values, weights) for values in (one.n, one.r, one.y)))
            assert weighted == pytest.approx(repeated, rel=1e-8, abs=1e-15)


def test_cells_without_weight_may_hold_anything() -> None:
    one = next(many(1, 17))
    plain = SeparableLaw().fit_many(one.n, one.r, one.y)
    n, r, y = (np.append(values, filler) for values, filler in ((one.n, 1.0), (one.r, np.nan), (one.y, np.inf)))
    other = SeparableLaw().fit_many(n, r, y, np.append(np.ones_like(one.y), 0.0))
    assert other.objective == pytest.approx(plain.objective, rel=1e-12)
    assert other.parameters["alpha"] == pytest.approx(plain.parameters["alpha"], rel=1e-6)


@pytest.mark.parametrize("floor", FLOORS)
def test_a_fit_has_the_same_digits_in_any_company(floor: str) -> None:
    rng = np.random.default_rng(18)
    one = next(many(1, 19))
    count = 600
    y = one.y + rng.normal(0, 0.03, (count, len(one.y)))
    r = one.r * np.exp(rng.normal(0, 0.02, y.shape))
    w = (rng.random(y.shape) < 0.8) * 1.0
    law = SeparableLaw(floor=floor)
    some = np.array([0, 1, 255, 511, 512, 599])
    for tokens, weights in ((one.r, None), (r, None), (one.r, w), (r, w)):
        together = law.fit_many(one.n, tokens, y, weights)
        part = law.fit_many(one.n, tokens if tokens.ndim == 1 else tokens[some], y[some], None if weights is None else weights[some])
        assert same(together.take(some), part)
        alone = [
            law.fit_many(one.n, tokens if tokens.ndim == 1 else tokens[i], y[i], None if weights is None else weights[i]) for i in some
        ]
        assert all(same(together.take(slice(i, i + 1)), fit) for i, fit in zip(some, alone, strict=True))


def test_axes_that_are_repeated_for_every_fit_give_the_same_digits_as_shared_ones() -> None:
    one = next(many(1, 20))
    y = one.y + np.random.default_rng(21).normal(0, 0.03, (20, len(one.y)))
    shared = SeparableLaw().fit_many(one.n, one.r, y)
    repeated = SeparableLaw().fit_many(np.tile(one.n, (20, 1)), np.tile(one.r, (20, 1)), y, np.ones_like(y))
    assert same(shared, repeated)


@pytest.mark.parametrize("box", [(0.05, 3.0), (0.05, 10.0), (0.4, 0.5), (1.0, 1.0)])
def test_exponents_stay_in_any_box(box: tuple[float, float]) -> None:
    for one in many(20, 22):
        fit = SeparableLaw(alpha=BOX, beta=box).fit_many(one.n, one.r, one.y)
        assert box[0] <= fit.parameters["beta"][0] <= box[1]
        assert fit.objective[0] >= objective("continuous", one.n, one.r, one.y) * (1 - 1e-9)


def test_the_bounded_law_is_the_separable_one_on_the_logit() -> None:
    for one in many(30, 23):
        y = np.clip(one.y, 0.02, 0.98)
        logit = np.log(y / (1 - y))
        bounded = BoundedLaw().fit_many(one.n, one.r, y)
        assert bounded.parameters["e"][0] >= np.log(0.001 / 0.999) - 1e-12
        assert bounded.objective[0] == pytest.approx(objective(Floor("continuous", np.log(0.001 / 0.999), np.inf), one.n, one.r, logit))  # type: ignore[arg-type]
        predicted = bounded.predict(one.n, one.r)[0]
        assert ((predicted > 0) & (predicted < 1)).all()
        assert bounded.objective[0] == pytest.approx(((logit - np.log(predicted / (1 - predicted))) ** 2).sum(), rel=1e-6)
