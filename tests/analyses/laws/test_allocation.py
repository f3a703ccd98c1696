"""The closed form of the exchange against its own conditions, a dense search and finite differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyses.laws.allocation import DEGENERATE, allocate, degenerate, elasticities
from tests.analyses.known import known

AMPLITUDE = st.floats(-12, 12).map(lambda x: 10.0**x)
EXPONENT = st.floats(0.05, 10)
COST_EXPONENT = st.floats(0.2, 2)
KAPPA = st.floats(6, 12).map(lambda x: 10.0**x)
BUDGET = st.floats(10, 18).map(lambda x: 10.0**x)


def log_pair(a: float, alpha: float, b: float, beta: float, kappa: float, p: float, q: float, budget: float) -> tuple[float, float]:
    found = allocate(a, alpha, b, beta, kappa, p, q, budget)
    return float(np.log(found.N)), float(np.log(found.R))


@given(AMPLITUDE, EXPONENT, AMPLITUDE, EXPONENT, KAPPA, COST_EXPONENT, COST_EXPONENT, BUDGET)
def test_the_optimum_spends_the_budget_and_balances_the_returns(
    a: float, alpha: float, b: float, beta: float, kappa: float, p: float, q: float, budget: float
) -> None:
    found = allocate(a, alpha, b, beta, kappa, p, q, budget)
    if not (1e-30 < found.N < 1e30 and 1e-30 < found.R < 1e30):
        return
    assert kappa * found.N**p * found.R**q == pytest.approx(budget, rel=1e-12)
    left, right = alpha * a / p * found.N**-alpha, beta * b / q * found.R**-beta
    if min(left, right) > 1e-290:
        assert left == pytest.approx(right, rel=1e-12)


@given(AMPLITUDE, EXPONENT, AMPLITUDE, EXPONENT, KAPPA, COST_EXPONENT, COST_EXPONENT, BUDGET)
def test_no_point_of_a_dense_search_along_the_budget_line_is_better(
    a: float, alpha: float, b: float, beta: float, kappa: float, p: float, q: float, budget: float
) -> None:
    x, y = log_pair(a, alpha, b, beta, kappa, p, q, budget)
    if not (abs(x) < 60 and abs(y) < 60):
        return
    line = np.concatenate([x + np.linspace(-8, 8, 4001), x + np.linspace(-0.01, 0.01, 401)])
    with np.errstate(over="ignore"):
        error = a * np.exp(-alpha * line) + b * np.exp(-beta * (np.log(budget / kappa) - p * line) / q)
        best = a * np.exp(-alpha * x) + b * np.exp(-beta * y)
    assert best <= error.min() * (1 + 1e-11)


@given(EXPONENT, EXPONENT, COST_EXPONENT, COST_EXPONENT)
def test_elasticities_are_the_finite_difference_and_spend_every_unit_of_budget(alpha: float, beta: float, p: float, q: float) -> None:
    rates = elasticities(alpha, beta, p, q)
    assert p * rates.N + q * rates.R == pytest.approx(1, abs=1e-14)
    low, high = (log_pair(2.0, alpha, 3.0, beta, 1e9, p, q, budget) for budget in (1e12, 1.21e12))
    step = np.log(1.21)
    assert (high[0] - low[0]) / step == pytest.approx(float(rates.N), rel=1e-9, abs=1e-9)
    assert (high[1] - low[1]) / step == pytest.approx(float(rates.R), rel=1e-9, abs=1e-9)


@given(AMPLITUDE, EXPONENT, AMPLITUDE, EXPONENT, COST_EXPONENT, COST_EXPONENT, st.floats(1e-3, 1e9))
def test_the_unit_of_parameters_cancels(a: float, alpha: float, b: float, beta: float, p: float, q: float, scale: float) -> None:
    x, y = log_pair(a, alpha, b, beta, 1e9, p, q, 1e13)
    if not (abs(x) < 200 and abs(y) < 200):
        return
    if not 1e-290 < a * scale**alpha < 1e290:
        return
    there = log_pair(a * scale**alpha, alpha, b, beta, 1e9 / scale**p, p, q, 1e13)
    assert there[0] - np.log(scale) == pytest.approx(x, abs=1e-10)
    assert there[1] == pytest.approx(y, abs=1e-10)


def test_arguments_broadcast() -> None:
    found = allocate(np.ones((3, 1)), 0.5, np.ones((3, 1)), [[0.1], [0.5], [2.0]], 1e10, 1, 0.77, np.array([1e12, 1e13]))
    assert found.N.shape == found.R.shape == (3, 2)
    one = allocate(1, 0.5, 1, 2, 1e10, 1, 0.77, 1e13)
    assert found.N[2, 1] == one.N
    assert found.R[2, 1] == one.R


@pytest.mark.parametrize("place", range(8))
@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf])
def test_whatever_is_not_positive_and_finite_gives_nothing(place: int, value: float) -> None:
    arguments: list[Any] = [1.0, 0.5, 1.0, 0.5, 1e10, 1.0, 0.77, 1e13]
    arguments[place] = np.array([value, arguments[place]])
    found = allocate(*arguments)
    assert np.isnan(found.N[0])
    assert np.isnan(found.R[0])
    assert np.isfinite([found.N[1], found.R[1]]).all()
    if place in {1, 3, 5, 6}:
        rates = elasticities(*(arguments[at] for at in (1, 3, 5, 6)))
        assert np.isnan([rates.N[0], rates.R[0]]).all()


def test_amplitudes_below_the_threshold_are_degenerate() -> None:
    assert degenerate([0, DEGENERATE / 2, DEGENERATE, 1, np.nan], 1.0).tolist() == [True, True, False, False, True]
    assert degenerate(1.0, [0, DEGENERATE, np.nan]).tolist() == [True, False, True]


def test_the_papers_twenty_groups_have_the_known_elasticities() -> None:
    rows = {(series, suite): row for series, suite, *row in known("t7_rows")[0].inputs}
    answers = known("vpe_elasticities")[0].inputs
    assert len(answers) == 20
    faster = {}
    for series, suite, e_n, e_r in answers:
        _, _, alpha, _, beta, *_ = rows[series, suite]
        rates = elasticities(alpha, beta, 1.00, 0.77)
        assert (round(float(rates.N), 4), round(float(rates.R), 4)) == pytest.approx((e_n, e_r), abs=1.01e-4)
        faster[series, suite] = "N" if rates.N > rates.R else "R"
    assert [faster[key] for key in faster if key[0].startswith("IVL")] == ["N"] * 12
    assert [key for key in faster if key[0].startswith("Q") and faster[key] == "N"] == [("Q2.5", "TREE")]
