"""What laws refuse, what they leave out, and weights of any size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from analyses.laws import BoundedLaw, CESLaw, CoupledLaw, Floor, MultiplicativeLaw, PNormLaw, SeparableLaw, ThreeAxisLaw, aic, bic, r2
from analyses.laws.limits import unit_of
from analyses.laws.terms import all_in_units, in_units, scaled, term

LAWS = [SeparableLaw, BoundedLaw, MultiplicativeLaw, CoupledLaw, CESLaw, PNormLaw]
N = np.repeat([0.5, 1.0, 4.0, 9.0], 4)
R = np.tile([50.0, 200.0, 700.0, 2000.0], 4)
Y = 0.1 + 0.2 * N**-0.5 + 2.0 * R**-0.7 + 0.005 * np.sin(np.arange(16))
W = np.linspace(0.5, 2.0, 16)


def spoiled(values: Any, bad: float, place: int = 5) -> Any:
    return np.where(np.arange(16) == place, bad, values)


@pytest.mark.parametrize("law", LAWS)
def test_tables_instead_of_cells_are_refused(law: Any) -> None:
    with pytest.raises(ValueError, match=r"N has shape \(4, 4\): expected one value per cell"):
        law().fit(N.reshape(4, 4), R.reshape(4, 4), Y.reshape(4, 4))


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("bad", [-1.0, np.nan, np.inf])
def test_weights_that_are_none_are_refused_by_every_fit(law: Any, bad: float) -> None:
    with pytest.raises(ValueError, match=r"weights\[5\]"):
        law().fit(N, R, Y, spoiled(W, bad))
    for fit in (law().fit_many, law().fit_shared):
        with pytest.raises(ValueError, match="weights must be finite and not negative"):
            fit(N[None], R[None], Y[None], spoiled(W, bad)[None])


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([], [], []), "there are no cells"),
        ((N, R[:-1], Y), "N has 16 values, R 15, error 16"),
        ((N, None, Y), "R has shape"),
        ((N, R, Y, 2.0), "weights has shape"),
        ((N, R, Y, 0 * W), "no cell has a weight"),
        ((spoiled(N, 0.0), R, Y), r"N\[5\] is 0"),
        ((spoiled(N, -1.0), R, Y), r"N\[5\] is -1"),
        ((N, spoiled(R, 0.0), Y), r"R\[5\] is 0"),
        ((N, spoiled(R, np.inf), Y), r"R\[5\] is inf"),
        ((N, R, spoiled(Y, np.nan)), r"error\[5\] is nan"),
    ],
)
def test_what_cannot_be_fitted_is_named_with_its_place(law: Any, arguments: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        law().fit(*arguments)


@pytest.mark.parametrize("law", LAWS)
def test_many_fits_refuse_shapes_that_do_not_agree_and_no_cells(law: Any) -> None:
    with pytest.raises(ValueError, match=r"shapes do not agree.*r \("):
        law().fit_many(N, R[:-1], Y)
    with pytest.raises(ValueError, match="there are no cells"):
        law().fit_many([], [], [])


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("floor", ["grid", "continuous", "free"])
def test_no_groups_have_no_solutions(law: Any, floor: str) -> None:
    made = law() if law is PNormLaw else law(floor=floor)
    nothing = np.zeros((0, 16))
    assert len(made.fit_many(nothing, nothing, nothing)) == len(made.fit_shared(nothing, nothing, nothing)) == 0


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("bad", [np.nan, 0.0, -1.0, np.inf])
def test_a_cell_without_weight_may_hold_nothing_and_measures_are_those_without_it(law: Any, bad: float) -> None:
    w = spoiled(W, 0.0)
    whole = law().fit(spoiled(N, bad), spoiled(R, bad), spoiled(Y, np.nan), w)
    rest = np.delete(np.arange(16), 5)
    fit = law(reference=whole.reference).fit(N[rest], R[rest], Y[rest], W[rest])
    for measure in ("sse", "r2", "bic", "aic"):
        assert getattr(whole, measure) == pytest.approx(getattr(fit, measure), rel=1e-6)
    assert "SSE" in whole.summary()


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("size", [1e-300, 1e-12, 1e12, 1e300])
def test_the_size_of_weights_moves_the_objective_alone(law: Any, size: float) -> None:
    one, other = law().fit(N, R, Y, W), law().fit(N, R, Y, size * W)
    assert other.objective / size == pytest.approx(one.objective, rel=1e-6)
    assert other.predict(N, R) == pytest.approx(one.predict(N, R), abs=1e-6)
    assert (other.sse / size, other.r2) == pytest.approx((one.sse, one.r2), rel=1e-6)
    shared = law().fit_shared(*(np.stack([values, values]) for values in (N, R, Y, size * W)))
    assert shared.objective / size == pytest.approx([one.objective] * 2, rel=1e-4)


@pytest.mark.parametrize("law", LAWS)
def test_groups_that_share_shapes_keep_the_proportion_of_their_weights(law: Any) -> None:
    y = np.stack([Y, 0.9 - Y])
    n, r, w = (np.stack([values, values]) for values in (N, R, W))
    plain, heavy = law().fit_shared(n, r, y, w), law().fit_shared(n, r, y, w * [[1.0], [1e6]])
    alone = law().fit_many(n[1], r[1], y[1], w[1])
    assert heavy.objective[1] / 1e6 == pytest.approx(alone.objective[0], rel=1e-3)
    assert plain.objective[1] >= alone.objective[0] * (1 - 1e-6)


def test_units_of_weights_are_powers_of_four() -> None:
    units = unit_of(np.array([[1.0], [3.9], [4.0], [1e-300], [0.0], [1e300]]), (1,))
    assert (np.log2(units) % 2 == 0).all()
    assert units[4] == 1.0
    assert np.array([1.0, 3.9, 4.0, 1e-300, 1e300]) / units[[0, 1, 2, 3, 5]] == pytest.approx(1.0, abs=3.0)


def test_weights_of_one_have_the_digits_of_no_weights() -> None:
    for law in LAWS:
        one, other = law().fit_many(N, R, Y), law().fit_many(N, R, Y, np.full(16, 4.0))
        assert all(np.array_equal(values, other.parameters[name]) for name, values in one.parameters.items())
        assert other.objective.tolist() == (4 * one.objective).tolist()


def test_names_that_there_are_not_are_answered_with_those_that_there_are() -> None:
    with pytest.raises(ValueError, match="no optimizer 'nope': there are global, paper"):
        SeparableLaw(optimizer="nope")  # type: ignore[arg-type]
    for law in (SeparableLaw, MultiplicativeLaw, CoupledLaw, CESLaw, ThreeAxisLaw):
        with pytest.raises(ValueError, match="no floor 'nope': there are grid, continuous, free"):
            law(floor="nope")
    with pytest.raises(ValueError, match="no kind of floor 'nope'"):
        Floor("nope")  # type: ignore[arg-type]


@pytest.mark.parametrize("bounds", [(0.5, 0.1), (np.nan, 0.5), (0.1, np.nan)])
def test_bounds_of_a_floor_are_in_order(bounds: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="bounds of a floor"):
        Floor("continuous", *bounds)


@pytest.mark.parametrize("law", [SeparableLaw, BoundedLaw, MultiplicativeLaw, CoupledLaw, PNormLaw, ThreeAxisLaw])
@pytest.mark.parametrize("box", [(1e-300, 1e300), (0.05, np.inf), (0.05, 101.0), (1e-4, 1.0), (2.0, 1.0), (np.nan, 1.0)])
def test_exponents_stay_where_powers_are_floats(law: Any, box: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match=r"bounds of beta must be in order and within 0\.001 and 100"):
        law(beta=box)


@pytest.mark.parametrize("law", [*LAWS, ThreeAxisLaw])
@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, np.inf])
def test_references_are_positive_and_finite(law: Any, bad: float) -> None:
    with pytest.raises(ValueError, match="reference must be positive and finite"):
        law(reference=(1.0, bad, 1.0) if law is ThreeAxisLaw else (1.0, bad))


@pytest.mark.parametrize("law", [SeparableLaw, BoundedLaw, MultiplicativeLaw, CoupledLaw])
@pytest.mark.parametrize("reference", [(1e-6, 1e-3), (1.0, 300.0), (1e6, 1e9)])
def test_steep_laws_far_from_their_reference_are_fitted_without_a_warning(law: Any, reference: tuple[float, float]) -> None:
    fit = law(alpha=(1e-3, 100.0), beta=(60.0, 100.0), reference=reference).fit(N, R, Y)
    found = fit.parameters.values()
    assert np.isfinite(fit.objective)
    assert any(np.isnan(value) for value in found) or np.isfinite(fit.sse)
    assert fit.summary()


def test_a_term_is_the_product_also_where_the_power_is_no_float() -> None:
    assert term(0.3, np.array([2.0, 4.0]), 0.5) == pytest.approx(0.3 * np.array([2.0, 4.0]) ** -0.5)
    assert term(1e-250, np.array([1e-4]), 100.0) == pytest.approx([1e150])
    assert term(0.0, np.array([1e-4]), 100.0) == 0.0
    assert term(1e-300, 1e-3, 110.0) == pytest.approx(1e30)


def test_an_amplitude_in_units_of_the_axis_may_be_no_float() -> None:
    assert in_units(0.5, 4.0, 0.5) == 1.0
    assert in_units(0.5, 1e9, 100.0) == np.inf
    assert in_units(0.0, 1e9, 100.0) == 0.0
    assert all_in_units(np.array([0.5, 0.5, 0.5]), 1e9, np.array([0.5, 100.0, np.nan])) == pytest.approx(
        [0.5 * 1e9**0.5, np.nan, 0.5], nan_ok=True
    )
    assert scaled(np.array([0.0, 0.5, 0.5, 0.5]), np.array([1e4, 1e4, -1e4, 0.0])) == pytest.approx([0.0, np.nan, np.nan, 0.5], nan_ok=True)


def test_without_weight_there_is_no_measure() -> None:
    assert np.isnan(r2(Y, Y, np.zeros(16)))
    assert np.isnan(r2([], []))
    assert np.isnan(bic(0.0, 0, 5))
    assert np.isnan(aic(0.0, 0, 5))
    assert r2(spoiled(Y, np.nan), Y + 0.01, spoiled(W, 0.0)) == pytest.approx(r2(np.delete(Y, 5), np.delete(Y, 5) + 0.01, np.delete(W, 5)))
