"""The cost law against second routes: planted values and statsmodels."""

from __future__ import annotations

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given
from hypothesis import strategies as st

from analyses.laws.cost import fit_cost


@given(st.floats(1e6, 1e12), st.floats(0.1, 2), st.floats(0.05, 2))
def test_an_exact_power_law_comes_back(kappa: float, p: float, q: float) -> None:
    n, r = (axis.ravel() for axis in np.meshgrid([0.5, 2, 7, 30], [80, 256, 1000, 4000]))
    law = fit_cost(n, r, kappa * n**p * r**q)
    assert (law.kappa, law.p, law.q) == pytest.approx((kappa, p, q), rel=1e-9)
    assert law.r2 == pytest.approx(1)
    assert law.n == 16
    assert law.why is None
    assert law.predict(7, 1000) == pytest.approx(kappa * 7**p * 1000**q)


def test_a_noisy_fit_is_that_of_statsmodels() -> None:
    rng = np.random.default_rng(3)
    n, r = rng.lognormal(2, 1, 60), rng.lognormal(6, 1, 60)
    cost = 1e10 * n * (r + 120) * rng.lognormal(0, 0.2, 60)
    law = fit_cost(n, r, cost)
    reference = sm.OLS(np.log(cost), sm.add_constant(np.stack([np.log(n), np.log(r)], axis=1))).fit()
    assert (np.log(law.kappa), law.p, law.q) == pytest.approx(tuple(reference.params), rel=1e-10)
    assert law.r2 == pytest.approx(reference.rsquared, rel=1e-12)


def test_the_unit_of_cost_moves_kappa_alone() -> None:
    rng = np.random.default_rng(5)
    n, r, cost = rng.lognormal(2, 1, 30), rng.lognormal(6, 1, 30), rng.lognormal(25, 1, 30)
    one, other = fit_cost(n, r, cost), fit_cost(n, r, cost * 1e-12)
    assert other.kappa == pytest.approx(one.kappa * 1e-12)
    assert (other.p, other.q, other.r2) == pytest.approx((one.p, one.q, one.r2))


def test_cells_without_a_number_are_left_out() -> None:
    n = np.array([1, 2, 4, 8, np.nan, 3, 0])
    r = np.array([100, 300, 200, 900, 100, np.nan, 50])
    cost = 1e9 * n * r
    law = fit_cost(n, r, cost)
    assert law.n == 4
    assert (law.p, law.q) == pytest.approx((1, 1))


@pytest.mark.parametrize(
    ("n", "r", "why"),
    [
        ([], [], "no cell"),
        ([1, 2], [3, 4], "fewer than three"),
        ([7, 7, 7, 7], [1, 2, 3, 4], "N has one level"),
        ([1, 2, 3, 4], [256] * 4, "R has one level"),
        ([1, 2, 3, 4], [256.0, 256.05, 256.02, 256.03], "R has one level"),
        ([7, 7.006, 7.003, 7], [1, 2, 3, 4], "N has one level"),
        ([1, 2, 4, 8], [10, 40, 160, 640], "move together"),
    ],
)
def test_cells_that_determine_nothing_give_no_number_and_say_why(n: list[float], r: list[float], why: str) -> None:
    law = fit_cost(n, r, np.asarray(n, dtype=float) * np.asarray(r, dtype=float))
    assert np.isnan([law.kappa, law.p, law.q, law.r2]).all()
    assert law.n == len(n)
    assert why in str(law.why)


def test_exponents_too_steep_for_a_number_are_none() -> None:
    law = fit_cost([1, 2, 4, 8], [2000, 2003, 2000, 2003], [1, 1e3, 1, 1e3])
    assert np.isnan([law.kappa, law.p, law.q, law.r2]).all()
    assert "leave no cost at N = 1 and R = 1" in str(law.why)


def test_a_prediction_beyond_floating_point_is_infinite_without_a_warning() -> None:
    law = fit_cost([1, 2, 4, 8], [10, 30, 20, 90], np.array([1, 2, 4, 8]) ** 8.0 * np.array([10, 30, 20, 90]) ** 20.0)
    assert law.predict(1e30, 1e30) == np.inf


def test_equal_costs_have_a_fit_and_no_r2() -> None:
    law = fit_cost([1, 2, 4, 8], [100, 300, 200, 900], [5e12] * 4)
    assert (law.p, law.q) == pytest.approx((0, 0), abs=1e-12)
    assert np.isnan(law.r2)
