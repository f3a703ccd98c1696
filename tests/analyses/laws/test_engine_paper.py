"""The paper's own procedure."""

from __future__ import annotations

import numpy as np
import pytest

from analyses.laws import GRID, SeparableLaw
from analyses.laws.engine_problem import Problem
from analyses.laws.floor import GRID_VALUES
from analyses.laws.paper import STARTS, _objective
from tests.analyses.laws.engine_cases import BOX, inner, many


def test_it_starts_from_sixteen_pairs_of_exponents() -> None:
    assert len(STARTS) == 16
    assert {alpha for alpha, _ in STARTS} == {0.1, 0.3, 0.6, 1.0}
    assert {beta for _, beta in STARTS} == {0.05, 0.15, 0.3, 0.6}


def test_its_floor_is_the_best_of_the_55_and_its_amplitudes_are_exact() -> None:
    rng = np.random.default_rng(1)
    for one in many(20, 2):
        problem = Problem.of(one.n, one.r, one.y, None)
        x = np.log(rng.uniform(0.05, 3, 2))
        value, e = _objective(problem, 0, x, GRID)
        u, v = (one.n / one.n.min()) ** -np.exp(x[0]), (one.r / one.r.min()) ** -np.exp(x[1])
        assert value == pytest.approx(inner(u, v, one.y, GRID), rel=1e-8)
        assert e in GRID_VALUES


def test_its_answers_are_feasible_even_where_the_penalty_lets_it_leave_the_box() -> None:
    for one in many(3, 3, 1.07):
        for floor in ("grid", "continuous", "free"):
            fit = SeparableLaw(floor=floor, optimizer="paper").fit_many(one.n, one.r, one.y)
            assert BOX[0] <= fit.parameters["alpha"][0] <= BOX[1]
            assert BOX[0] <= fit.parameters["beta"][0] <= BOX[1]
            assert fit.objective[0] == pytest.approx(((one.y - fit.predict(one.n, one.r)[0]) ** 2).sum(), rel=1e-9)
            if floor == "grid":
                assert fit.parameters["e"][0] in GRID_VALUES


def test_on_easy_cells_it_finds_the_optimum() -> None:
    rng = np.random.default_rng(4)
    n, r = (axis.ravel() for axis in np.meshgrid([0.1, 0.3, 1.0, 5.0], [0.1, 0.4, 1.0, 2.0, 6.0]))
    y = 0.2 + 0.1 * n**-0.4 + 0.1 * r**-0.3 + rng.normal(0, 0.002, n.shape)
    for floor in ("continuous", "free"):
        paper, own = (SeparableLaw(floor=floor, optimizer=name).fit_many(n, r, y) for name in ("paper", "global"))
        assert paper.objective == pytest.approx(own.objective, rel=1e-6)


def test_a_fit_without_weight_has_no_parameters() -> None:
    fit = SeparableLaw(optimizer="paper").fit_many(np.ones(4), np.ones(4), np.zeros(4), np.zeros(4))
    assert np.isnan(fit.parameters["alpha"]).all()
