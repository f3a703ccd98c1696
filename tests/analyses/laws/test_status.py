"""What a fit says of itself: status, floor, reference; and what `fit` refuses, by name and place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from analyses.laws import (
    BoundedLaw,
    CESLaw,
    CoupledLaw,
    MomentAxis,
    MultiplicativeLaw,
    PNormLaw,
    SeparableLaw,
    ThreeAxisLaw,
)
from analyses.laws.determined import levels_of

if TYPE_CHECKING:
    import numpy.typing as npt

N = np.repeat([0.5, 1.0, 4.0, 8.0], 3)
R = np.tile([200.0, 1000.0, 3000.0], 4)
Y = 0.1 + 0.2 * N**-0.5 + 0.1 * (R / 1000) ** -0.7
LAWS = (SeparableLaw, BoundedLaw, MultiplicativeLaw, CoupledLaw, CESLaw, PNormLaw)


@pytest.mark.parametrize("law", LAWS)
def test_fewer_cells_than_parameters_are_fitted_and_said_to_determine_nothing(law: Any) -> None:
    fit = law().fit(N[:2], R[:2], Y[:2])
    assert fit.status == f"not determined: 2 cells, {law.k} parameters"
    assert not fit.determined
    assert f"status: {fit.status}" in fit.summary()
    assert law().fit(N, R, Y).determined


def test_three_axes_have_seven_parameters_and_levels_of_their_own() -> None:
    pixels = np.tile([1e5, 4e5], 6)
    fit = ThreeAxisLaw().fit(N, R, pixels, Y)
    assert "2 levels of P: e_inf, G_p and gamma are one of many solutions" in fit.status
    assert "gamma at" not in fit.status
    assert ThreeAxisLaw().fit(N[:6], R[:6], pixels[:6], Y[:6]).status == "not determined: 6 cells, 7 parameters"
    assert repr(fit).startswith("<ThreeAxisFit three-axis: n 12, k 7")


@pytest.mark.parametrize(
    ("cells", "error", "status"),
    [
        (N < 9, Y, "fitted"),
        (N <= 1, Y, "2 levels of N: e_inf, A_n and alpha are one of many solutions"),
        (R == 200, Y, "not determined: 4 cells, 5 parameters"),
        (N < 9, np.full(12, 0.3), "not determined: the error is constant"),
        ((N <= 1) & (R >= 1000), Y, "not determined: 4 cells, 5 parameters"),
        (N < 9, Y - 0.2 * N**-0.5, "A_n = 0: alpha is not determined"),
        (N < 9, Y + 1, "12 of 12 errors are outside 0 to 1"),
    ],
)
def test_the_status_names_what_the_cells_leave_open(cells: npt.NDArray[np.bool_], error: npt.NDArray[np.float64], status: str) -> None:
    fit = SeparableLaw(floor="free").fit(N[cells], R[cells], error[cells])
    assert fit.status == status
    weighted = SeparableLaw(floor="free").fit(np.where(cells, N, np.nan), R, error, cells.astype(float))
    assert weighted.status == status


def test_two_levels_on_both_axes_determine_nothing() -> None:
    n, r = np.tile([1.0, 4.0], 6), np.repeat([200.0, 900.0], 6)
    assert SeparableLaw().fit(n, r, np.linspace(0.1, 0.4, 12)).status == "not determined: 2 levels of N and 2 levels of R"


def test_axes_that_move_together_are_named() -> None:
    n = np.array([0.5, 1.0, 2.0, 4.0, 8.0, 16.0])
    assert SeparableLaw().fit(n, 300 * n, 0.1 + 0.3 * n**-0.5).status.endswith("N and R move together: their terms are not told apart")
    assert "N and R move together" in CESLaw().fit(n, 300 * n, 0.1 + 0.3 * n**-0.5).status


def test_exponents_at_bounds_are_part_of_the_status() -> None:
    fit = SeparableLaw(alpha=(0.05, 0.3), floor="free").fit(N, R, Y)
    assert fit.status == "alpha at upper bound"
    assert fit.at_bound == {"alpha": "upper"}


def test_other_laws_say_along_which_axis_they_are_open() -> None:
    two = N <= 1
    assert CESLaw().fit(N[two], R[two], Y[two]).status.startswith("2 levels of N: the parameters along N are one of many solutions")


def test_the_summary_names_floor_and_reference() -> None:
    text = SeparableLaw(floor="grid", reference=(6.6, 1130.0)).fit(N, R, Y).summary()
    assert "floor: grid (55 values)" in text
    assert "reference: N 6.6, R 1130" in text
    assert "floor: continuous (0.001 to 0.999)" in SeparableLaw().fit(N, R, Y).summary()
    assert "floor: free (any value)" in SeparableLaw(floor="free").fit(N, R, Y).summary()
    assert "floor: continuous (-6.907 to inf)" in BoundedLaw().fit(N, R, Y).summary()
    assert "floor" not in PNormLaw().fit(N, R, Y).summary()


def test_a_fit_and_its_solutions_are_short_to_look_at() -> None:
    fit = SeparableLaw().fit(N[:2], R[:2], Y[:2])
    assert repr(fit).startswith("<Fit separable: n 2, k 5, SSE ")
    assert repr(fit).endswith("; not determined: 2 cells, 5 parameters>")
    assert repr(fit.solution) == "<Solutions separable: 1 fit of e, a, alpha, b, beta>"
    assert repr(SeparableLaw().fit_many(N, R, np.stack([Y, Y]))) == "<Solutions separable: 2 fits of e, a, alpha, b, beta>"


def spoiled(values: npt.NDArray[np.float64], place: int, value: float) -> npt.NDArray[np.float64]:
    copy = values.copy()
    copy[place] = value
    return copy


@pytest.mark.parametrize("law", [SeparableLaw, CESLaw])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((N[:5], R[:4], Y[:5]), "N has 5 values, R 4, error 5"),
        ((N, R, Y, np.ones(3)), "N has 12 values, R 12, error 12, weights 3"),
        ((N, spoiled(R, 3, np.nan), Y), r"R\[3\] is nan: expected a positive number"),
        ((spoiled(N, 2, 0.0), R, Y), r"N\[2\] is 0: expected a positive number"),
        ((N, np.where(R == 1000, -1.0, R), Y), r"R\[1\] is -1 \(3 more like it\)"),
        ((N, R, spoiled(Y, 11, np.inf)), r"error\[11\] is inf: expected a finite number"),
        ((N, R, Y, spoiled(Y, 4, -1.0)), r"weights\[4\] is -1: expected a finite number that is not negative"),
        ((N, R, Y, np.zeros(12)), "no cell has a weight"),
        (([], [], []), "there are no cells"),
        ((np.stack([N, N]), R, Y), r"N has shape \(2, 12\): expected one value per cell"),
        ((N, R, 0.5), r"error has shape \(\)"),
    ],
)
def test_what_cannot_be_used_is_refused_by_name_and_place(law: Any, arguments: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        law().fit(*arguments)


def test_a_cell_without_weight_may_hold_anything() -> None:
    weights = spoiled(np.ones(12), 3, 0.0)
    fit = SeparableLaw().fit(spoiled(N, 3, -1.0), spoiled(R, 3, np.nan), spoiled(Y, 3, np.nan), weights)
    kept = np.arange(12) != 3
    assert fit.parameters == pytest.approx(SeparableLaw().fit(N[kept], R[kept], Y[kept]).parameters, rel=1e-5)


def test_errors_of_zero_have_no_logit() -> None:
    with pytest.raises(ValueError, match=r"1 errors, such as 0, have no logit"):
        BoundedLaw().fit(N, R, spoiled(Y, 0, 0.0))


def test_a_moment_axis_counts_as_its_means() -> None:
    axis = MomentAxis.of(np.repeat(np.arange(12), 2), np.repeat(R, 2) * np.tile([0.8, 1.2], 12), np.ones(24))
    assert SeparableLaw().fit(N, axis, Y).axes["R"] == pytest.approx(R)
    with pytest.raises(ValueError, match="N has 5 values, R 12"):
        SeparableLaw().fit(N[:5], axis, Y[:5])


def test_levels_that_differ_by_less_than_a_lost_answer_are_one() -> None:
    assert levels_of(np.array([100.0, 100.09, 50.0, 200.0])) == 3
    assert levels_of(np.array([])) == 0
