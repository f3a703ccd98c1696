"""Odd data: what the engine refuses, and what it fits without a warning."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from analyses.laws import BoundedLaw, SeparableLaw

N = np.repeat([0.5, 1.0, 4.0], 3)
R = np.tile([0.2, 1.0, 3.0], 3)
Y = 0.1 + 0.2 * N**-0.5 + 0.1 * R**-0.7
FLOORS = ("grid", "continuous", "free")


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_are_refused_by_name(bad: float) -> None:
    spoiled = {name: np.where(np.arange(9) == 4, bad, values) for name, values in (("n", N), ("r", R), ("error", Y), ("weights", Y))}
    with pytest.raises(ValueError, match="n must be positive and finite"):
        SeparableLaw().fit_many(spoiled["n"], R, Y)
    with pytest.raises(ValueError, match="r must be positive and finite"):
        SeparableLaw().fit_many(N, spoiled["r"], Y)
    with pytest.raises(ValueError, match="error must be finite"):
        SeparableLaw().fit_many(N, R, spoiled["error"])
    with pytest.raises(ValueError, match="weights must be finite"):
        SeparableLaw().fit_many(N, R, Y, spoiled["weights"])


def test_a_size_of_zero_and_a_negative_weight_are_refused() -> None:
    with pytest.raises(ValueError, match="n must be positive"):
        SeparableLaw().fit_many(N * 0, R, Y)
    with pytest.raises(ValueError, match="weights must be finite and not negative"):
        SeparableLaw().fit_many(N, R, Y, -np.ones(9))


def test_an_error_of_zero_has_no_logit() -> None:
    with pytest.raises(ValueError, match="error must be finite"):
        BoundedLaw().fit_many(N, R, np.where(np.arange(9) == 2, 0.0, Y))


def test_shapes_that_do_not_agree_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"shapes do not agree.*r \(1, 8\)"):
        SeparableLaw().fit_many(N, R[:-1], Y)
    with pytest.raises(ValueError, match="shapes do not agree"):
        SeparableLaw().fit_many(N, R, np.tile(Y, (3, 1)), np.ones((2, 9)))


@pytest.mark.parametrize("box", [(0.0, 1.0), (2.0, 1.0), (0.1, np.inf), (np.nan, 1.0)])
def test_a_box_must_be_positive_finite_and_in_order(box: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="bounds of beta"):
        SeparableLaw(beta=box).fit_many(N, R, Y)


@pytest.mark.parametrize("floor", FLOORS)
def test_a_fit_without_weight_has_no_parameters_and_an_objective_of_zero(floor: str) -> None:
    weights = np.stack([np.zeros(9), np.ones(9)])
    fit = SeparableLaw(floor=floor).fit_many(N, R, Y, weights)
    assert all(np.isnan(values[0]) and np.isfinite(values[1]) for values in fit.parameters.values())
    assert fit.objective[0] == 0


@pytest.mark.parametrize("floor", FLOORS)
def test_no_fits_give_no_solutions(floor: str) -> None:
    assert len(SeparableLaw(floor=floor).fit_many(N, R, np.zeros((0, 9)))) == 0


@pytest.mark.parametrize("floor", FLOORS)
@pytest.mark.parametrize(
    ("n", "r", "y", "w"),
    [
        (N, R, np.full(9, 0.3), None),
        (N, R, np.full(9, 0.0), None),
        (np.ones(9), R, Y, None),
        (N, np.ones(9), Y, None),
        (np.ones(9), np.ones(9), Y, None),
        (N, R, 1 - Y, None),
        (N, R, Y + 3, None),
        (N, R, Y, (1, 0, 0, 0, 0, 0, 0, 0, 1)),
        (N, R, Y, (1, 0, 0, 0, 0, 0, 0, 0, 0)),
        (N * 1e200, R * 1e-200, Y, None),
        (N, R, Y * 1e-12, None),
        (N, N, Y, None),
    ],
    ids=[
        "constant",
        "zero",
        "one size",
        "one token count",
        "one of both",
        "rising",
        "above one",
        "two cells",
        "one cell",
        "units",
        "tiny",
        "same axis",
    ],
)
def test_degenerate_cells_are_fitted_without_a_warning(floor: str, n: Any, r: Any, y: Any, w: Any) -> None:
    fit = SeparableLaw(floor=floor).fit_many(n, r, y, w)
    assert all(np.isfinite(values).all() for values in fit.parameters.values())
    weights = np.ones(9) if w is None else np.asarray(w)
    if n[0] < 1e100:
        assert (weights * (y - fit.predict(n, r)[0]) ** 2).sum() == pytest.approx(fit.objective[0], rel=1e-6, abs=1e-14)
    mean = np.clip(np.average(y, weights=weights), 0.001, 0.999)
    assert fit.objective[0] <= (weights * (y - mean) ** 2).sum() + 4e-4 * 9


def test_an_exponent_without_amplitude_is_undetermined_and_in_the_middle_of_its_box() -> None:
    fit = SeparableLaw(alpha=(0.1, 4.0)).fit(N, R, 0.2 + 0.3 * R**-0.5 + 0.01 * np.log(N))
    assert fit.undetermined == ("alpha",)
    assert fit.parameters["A_n"] == 0
    assert fit.parameters["alpha"] == pytest.approx(np.sqrt(0.4))
    assert "alpha" not in fit.at_bound
    assert "undetermined" in fit.summary()
    assert fit.solution.undetermined("alpha").tolist() == [True]
    assert fit.solution.undetermined("beta").tolist() == [False]
    assert fit.solution.undetermined("e").tolist() == [False]


def test_a_held_exponent_is_exactly_what_it_is_held_at() -> None:
    fit = SeparableLaw(alpha=(0.3, 0.3), beta=(0.05, 0.07)).fit_many(N, R, Y)
    assert fit.parameters["alpha"][0] == 0.3
    assert fit.parameters["beta"][0] in {0.05, 0.07}


def test_axes_in_any_units_reach_the_same_objective() -> None:
    for floor in FLOORS:
        law = SeparableLaw(floor=floor)
        noisy = Y + np.random.default_rng(1).normal(0, 0.02, 9)
        assert law.fit_many(N * 1e200, R * 1e-200, noisy).objective == pytest.approx(law.fit_many(N, R, noisy).objective, rel=1e-9)
