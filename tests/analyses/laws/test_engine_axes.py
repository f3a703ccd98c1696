"""Resources that differ between the questions of a cell, and the law in three resources."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize, nnls

from analyses.laws import SeparableLaw
from analyses.laws.axes import MeanPowerAxis, MomentAxis, PowerAxis
from analyses.laws.three import ThreeAxisLaw
from tests.analyses.laws.engine_cases import HIGH, LOW, many


def records(rng: np.random.Generator, means: Any) -> list[Any]:
    """Token counts of the questions of each cell."""
    return [np.maximum(1, np.round(mean * np.exp(rng.normal(0, 0.6, int(rng.integers(5, 40)))))) for mean in means]


def axis_of(questions: list[Any]) -> MomentAxis:
    rows = [(cell, value, 1) for cell, values in enumerate(questions) for value in values]
    return MomentAxis.of(*(np.array(column) for column in zip(*rows, strict=True)))


def test_the_power_of_a_moment_axis_is_the_mean_over_questions() -> None:
    rng = np.random.default_rng(1)
    questions = records(rng, rng.uniform(50, 5000, 30))
    axis = axis_of(questions)
    for beta in (0.05, 1.0, 7.3):
        assert axis**-beta == pytest.approx([(values**-beta).mean() for values in questions], rel=1e-12)
    assert axis.mean == pytest.approx([values.mean() for values in questions])
    assert (axis / 100.0) ** -0.5 == pytest.approx(axis**-0.5 * 10, rel=1e-12)
    assert axis.shape == (30,)
    assert (axis ** np.array([[-0.5], [-2.0]])).shape == (2, 30)


def test_counts_stand_for_repeated_rows_in_any_order() -> None:
    rng = np.random.default_rng(2)
    questions = records(rng, [100.0, 400.0])
    cells = np.concatenate([np.full(len(values), cell) for cell, values in enumerate(questions)])
    order = rng.permutation(len(cells))
    shuffled = MomentAxis.of(cells[order], np.concatenate(questions)[order], np.ones(len(cells)))
    assert np.array_equal(shuffled.values, axis_of(questions).values)
    assert np.array_equal(shuffled.counts, axis_of(questions).counts)


def test_a_fit_with_moments_is_the_least_over_a_brute_force_search() -> None:
    rng = np.random.default_rng(3)
    for one in many(4, 4, 10.0):
        questions = records(rng, one.r * 1000)
        fit = SeparableLaw().fit(one.n, axis_of(questions), one.y)

        def total(x: Any, one: Any = one, questions: Any = questions) -> float:
            v = np.array([(values ** -np.exp(x[1])).mean() for values in questions])
            design = np.stack([np.ones_like(one.y), (one.n / one.n.min()) ** -np.exp(x[0]), v / v.max()], axis=1)
            return float(nnls(design, one.y - 0.001)[1] ** 2)

        starts = [np.log([fit.parameters["alpha"], fit.parameters["beta"]]), *rng.uniform(LOW, HIGH, (6, 2))]
        others = [
            minimize(total, x, method="Nelder-Mead", bounds=[(LOW, HIGH)] * 2, options={"xatol": 1e-8, "fatol": 1e-13}) for x in starts
        ]
        assert fit.objective <= min(other.fun for other in others) * (1 + 1e-8)
        assert fit.objective == pytest.approx(fit.sse, rel=1e-9)
        by_hand = np.array([(values ** -fit.parameters["beta"]).mean() for values in questions])
        expected = fit.parameters["e_inf"] + fit.parameters["A"] * one.n ** -fit.parameters["alpha"] + fit.parameters["B"] * by_hand
        assert fit.predict(one.n, axis_of(questions)) == pytest.approx(expected, rel=1e-9)
        assert fit.to_frame()["R"].to_numpy() == pytest.approx([values.mean() for values in questions])
        assert fit.reference[1] == pytest.approx(np.exp(np.mean([np.log(values.mean()) for values in questions])))


def test_cells_of_one_value_each_are_the_plain_axis() -> None:
    for one in many(10, 5):
        axis = MomentAxis.of(np.arange(len(one.r)), one.r, np.full(len(one.r), 3))
        for floor in ("grid", "continuous", "free"):
            plain, moment = (SeparableLaw(floor=floor).fit_many(one.n, r, one.y) for r in (one.r, axis))
            assert moment.objective == pytest.approx(plain.objective, rel=1e-10)
            assert moment.predict(one.n, axis) == pytest.approx(plain.predict(one.n, one.r), abs=1e-7)


def test_counts_may_differ_between_fits() -> None:
    rng = np.random.default_rng(6)
    one = next(many(1, 7, 10.0))
    questions = records(rng, one.r * 1000)
    cells = np.concatenate([np.full(len(values), cell) for cell, values in enumerate(questions)])
    values = np.concatenate(questions)
    counts = rng.integers(1, 4, (5, len(values)))
    together = SeparableLaw().fit_many(one.n, MomentAxis.of(cells, values, counts), one.y)
    assert len(together) == 5
    for i, row in enumerate(counts):
        axis = MomentAxis.of(cells, values, row)
        alone = SeparableLaw().fit_many(one.n, axis, one.y)
        assert np.array_equal(together.parameters["beta"][i], alone.parameters["beta"][0])
        assert together.take(slice(i, i + 1)).predict(one.n, axis) == pytest.approx(alone.predict(one.n, axis))


def test_derivatives_of_columns_are_finite_differences() -> None:
    rng = np.random.default_rng(8)
    x = rng.uniform(1, 50, (4, 9))
    questions = records(rng, rng.uniform(50, 5000, 9))
    rows = np.arange(4)
    for axis in (PowerAxis(x, np.ones((1, 9)), 4), MeanPowerAxis(axis_of(questions), 4)):
        exponents, step = np.array([0.05, 0.4, 2.0, 9.0]), 1e-5
        _, slope, curvature = axis.columns(rows, exponents)
        before, at, after = (axis.columns(rows, exponents * np.exp(shift))[0] for shift in (-step, 0.0, step))
        assert slope == pytest.approx((after - before) / (2 * step), rel=1e-6, abs=1e-9)
        assert curvature == pytest.approx((after - 2 * at + before) / step**2, rel=1e-3, abs=1e-4)


@pytest.mark.parametrize(
    ("cells", "values", "counts", "message"),
    [
        ([0, 2], [5.0, 6.0], [1, 1], "every cell"),
        ([0, 1], [5.0, 6.0], [1, 0], "every cell"),
        ([], [], [], "every cell"),
        ([0, 1], [5.0, 0.0], [1, 1], "positive"),
        ([0, 1], [5.0, np.nan], [1, 1], "positive"),
        ([0, 1], [5.0, 6.0], [1, -1], "counts"),
        ([0, 1], [5.0, 6.0], [1, np.inf], "counts"),
    ],
)
def test_an_axis_without_records_or_with_bad_values_is_refused(cells: Any, values: Any, counts: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MomentAxis.of(cells, values, counts)


def test_three_resources_are_searched_as_well_as_by_many_starts() -> None:
    rng = np.random.default_rng(9)
    for one in many(5, 10, 8.0):
        p = one.r * np.exp(rng.normal(0, 0.5, one.r.shape))
        fit = ThreeAxisLaw().fit(one.n, one.r, p, one.y)
        logs = [np.log(axis / axis.min()) for axis in (one.n, one.r, p)]

        def total(x: Any, y: Any = one.y, logs: Any = logs) -> float:
            columns = [np.exp(-np.exp(power) * log) for power, log in zip(x, logs, strict=True)]
            return float(nnls(np.stack([np.ones_like(y), *columns], axis=1), y - 0.001)[1] ** 2)

        for start in rng.uniform(LOW, HIGH, (6, 3)):
            other = minimize(total, start, method="Nelder-Mead", bounds=[(LOW, HIGH)] * 3, options={"xatol": 1e-8, "fatol": 1e-13})
            assert fit.objective <= other.fun * (1 + 1e-8)
        assert fit.sse == pytest.approx(fit.objective, rel=1e-9)
        assert fit.k == 7


def test_three_planted_exponents_come_back_and_a_missing_one_is_undetermined() -> None:
    rng = np.random.default_rng(11)
    n, r, p = (axis.ravel() for axis in np.meshgrid([0.5, 2.0, 8.0, 72.0], np.geomspace(40, 4000, 5), np.geomspace(1e4, 1e6, 4)))
    p = p * np.exp(rng.normal(0, 0.05, p.shape))
    y = 0.1 + 0.2 * n**-0.4 + 2.0 * r**-0.7 + 5.0 * p**-0.5
    fit = ThreeAxisLaw().fit(n, r, p, y)
    assert [fit.parameters[name] for name in ("e_inf", "A", "alpha", "B", "beta", "G", "gamma")] == pytest.approx(
        [0.1, 0.2, 0.4, 2.0, 0.7, 5.0, 0.5], rel=1e-5
    )
    assert fit.predict(n, r, p) == pytest.approx(y)
    assert list(fit.to_frame().columns) == ["N", "R", "P", "error", "weight", "predicted", "residual"]
    other = ThreeAxisLaw().fit(n, r, p, 0.1 + 0.2 * n**-0.4 + 2.0 * r**-0.7 + 0.001 * np.log(p / p.min()))
    assert other.undetermined == ("gamma",)
    assert other.parameters["gamma"] == pytest.approx(np.sqrt(0.5))
