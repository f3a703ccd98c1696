"""Multiplicative, coupled, CES and p-norm laws against SciPy, dense searches, planted truth, and each other."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.optimize import least_squares, minimize, nnls

from analyses.laws import CESLaw, CoupledLaw, Floor, MultiplicativeLaw, PNormLaw, SeparableLaw, bic
from analyses.laws import pnorm as norm
from analyses.laws.ces import ces, log_mean, slopes
from analyses.laws.coupled import coupled
from analyses.laws.floor import GRID_VALUES
from analyses.laws.multiplicative import multiplicative
from analyses.laws.pnorm import pnorm
from analyses.laws.powers import SEPARABLE, data_of

LAWS = [CoupledLaw, MultiplicativeLaw, CESLaw, PNormLaw]
FLOORS = ("free", "continuous", "grid")
BOX = (0.05, 10.0)


def axes(groups: int, span: float = 30.0, seed: int = 0) -> tuple[Any, Any]:
    """Five sizes and six token counts in each group, 30 cells."""
    rng = np.random.default_rng(seed)
    n = np.tile(np.repeat(np.geomspace(0.1, 8, 5), 6), (groups, 1)) * rng.uniform(0.8, 1.2, (groups, 1))
    r = np.tile(np.geomspace(span**-0.5, span**0.5, 6), (groups, 5)) * rng.uniform(0.8, 1.2, (groups, 1))
    return n, r


def noisy(groups: int, *, span: float = 30.0, noise: float = 0.02, seed: int = 0) -> tuple[Any, Any, Any, Any]:
    """Cells near a separable law, with weights; the last cells of every second group are left out."""
    rng = np.random.default_rng([seed, 1])
    n, r = axes(groups, span, seed)
    e, a, b = (rng.uniform(low, high, (groups, 1)) for low, high in ((0.0, 0.4), (0.02, 0.3), (0.02, 0.3)))
    y = e + a * n ** -rng.uniform(0.1, 1.5, (groups, 1)) + b * r ** -rng.uniform(0.1, 1.5, (groups, 1))
    w = rng.uniform(0.5, 2.0, n.shape)
    w[::2, 24:] = 0.0
    return n, r, np.clip(y + noise * rng.normal(size=n.shape), 0.0, None), w


def predicted_by(law: Any, shapes: dict[str, float], coefficients: dict[str, Any], n: Any, r: Any) -> Any:
    return law.function(n, r, **shapes, **{name: values[:, None] for name, values in coefficients.items()})


PLANTED: dict[Any, tuple[dict[str, float], dict[str, Any]]] = {
    MultiplicativeLaw: ({"alpha": 0.4, "beta": 0.9}, {"e": [0.1, 0.3, 0.2], "a": [0.2, 0.05, 0.1]}),
    CoupledLaw: (
        {"alpha": 0.3, "beta": 1.4, "gamma": 0.7},
        {"e": [0.1, 0.3, 0.2], "a": [0.2, 0.05, 0.1], "b": [0.1, 0.2, 0.03], "c": [0.05, 0.1, 0.2]},
    ),
    CESLaw: ({"w": 0.3, "delta": -1.5}, {"e": [0.1, 0.3, 0.2], "a": [0.2, 0.05, 0.1]}),
    PNormLaw: ({"alpha": 0.4, "beta": 0.9, "p": 3.0}, {"a": [0.2, 0.3, 0.1], "b": [0.3, 0.2, 0.2], "c": [0.2, 0.1, 0.15]}),
}


def planted(law: Any) -> tuple[dict[str, float], dict[str, Any], Any, Any, Any]:
    shapes, coefficients = PLANTED[law]
    coefficients = {name: np.array(values) for name, values in coefficients.items()}
    n, r = axes(3)
    return shapes, coefficients, n, r, predicted_by(law, shapes, coefficients, n, r)


@pytest.mark.parametrize("law", LAWS)
def test_planted_parameters_come_back_from_cells_without_noise(law: Any) -> None:
    shapes, coefficients, n, r, y = planted(law)
    found = law().fit_shared(n, r, y)
    assert found.objective.max() < 1e-14
    for name, value in shapes.items():
        assert found.parameters[name] == pytest.approx(value, rel=1e-5)
    for name, values in coefficients.items():
        assert found.parameters[name] == pytest.approx(values, rel=1e-4, abs=1e-6)
    own = law().fit_many(n, r, y)
    assert own.objective.max() < 1e-12
    assert own.parameters[next(iter(shapes))] == pytest.approx(np.full(3, next(iter(shapes.values()))), rel=1e-2)


@pytest.mark.parametrize("planted_law", [*LAWS, SeparableLaw])
def test_bic_prefers_the_form_that_the_data_come_from(planted_law: Any) -> None:
    rng = np.random.default_rng(5)
    n, r = axes(8)
    if planted_law is SeparableLaw:
        shapes = {"alpha": 0.4, "beta": 0.8}
        coefficients = {name: rng.uniform(0.05, 0.3, 8) for name in ("e", "a", "b")}
        y = predicted_by(CoupledLaw, {**shapes, "gamma": 1.0}, coefficients | {"c": np.zeros(8)}, n, r)
    else:
        shapes, names = PLANTED[planted_law][0], PLANTED[planted_law][1]
        coefficients = {name: rng.uniform(0.1, 0.3, 8) for name in names}
        y = predicted_by(planted_law, shapes, coefficients, n, r)
    y = y + 0.002 * rng.normal(size=y.shape)
    scores = {}
    laws: list[Any] = [*LAWS, SeparableLaw]
    for law in laws:
        fit = (law(floor="free") if law is not PNormLaw else law()).fit_shared(n, r, y)
        scores[law] = float(bic(fit.objective.sum(), y.size, (law.k - len(fit.bounds)) * 8 + len(fit.bounds)))
    assert min(scores, key=lambda law: scores[law]) is planted_law


def separable_or_coupled_columns(n: Any, r: Any, shapes: tuple[float, ...]) -> Any:
    return [n ** -shapes[0], r ** -shapes[1], *((n * r) ** -gamma for gamma in shapes[2:])]


def inner_by_nnls(columns: Any, y: Any, w: Any, floor: str) -> Any:
    """Sum of squares of one group for given columns, by SciPy; the grid floor by trying all 55 values."""
    root = np.sqrt(w)
    if floor == "grid":
        return min(nnls(np.stack(columns, 1) * root[:, None], (y - e) * root)[1] ** 2 for e in GRID_VALUES)
    low = -50.0 if floor == "free" else 0.001
    design = np.stack([np.ones_like(y), *columns], axis=1) * root[:, None]
    return nnls(design, (y - low) * root)[1] ** 2


@pytest.mark.parametrize("floor", FLOORS)
@pytest.mark.parametrize("law", [CoupledLaw, MultiplicativeLaw])
def test_shared_objective_is_that_of_nnls_at_its_shapes_and_no_point_of_a_grid_is_lower(law: Any, floor: str) -> None:
    n, r, y, w = noisy(3)
    found = law(floor=floor).fit_shared(n, r, y, w)
    shapes = tuple(float(found.parameters[name][0]) for name in found.bounds)

    def brute(point: tuple[float, ...]) -> float:
        total = 0.0
        for group in range(3):
            some = w[group] > 0
            one = (n[group][some], r[group][some])
            columns = [one[0] ** -point[0] * one[1] ** -point[1]] if law is MultiplicativeLaw else separable_or_coupled_columns(*one, point)
            total += inner_by_nnls(columns, y[group][some], w[group][some], floor)
        return total

    assert found.objective.sum() == pytest.approx(brute(shapes), rel=1e-8)
    assert found.objective == pytest.approx((w * (found.predict(n, r) - y) ** 2).sum(axis=1), rel=1e-9)
    values = np.geomspace(0.05, 10, 3 if floor == "grid" else 6)
    nearby = product(*([shape * 0.97, shape, shape * 1.03] for shape in shapes)) if floor != "grid" else []
    points = [point for point in (*product(values, repeat=len(shapes)), *nearby) if min(point) >= 0.05 and max(point) <= 10]
    assert min(brute(point) for point in points) >= found.objective.sum() * (1 - 1e-9)


@pytest.mark.parametrize("floor", FLOORS)
def test_multiplicative_is_never_above_scipys_least_squares(floor: str) -> None:
    n, r, y, w = noisy(6, noise=0.03)
    found = MultiplicativeLaw(floor=floor).fit_many(n, r, y, w)
    rng = np.random.default_rng(0)
    for group in range(6):
        root = np.sqrt(w[group])

        def residual(x: Any, root: Any = root, group: int = group) -> Any:
            return root * (multiplicative(n[group], r[group], x[0], x[1], np.exp(x[2]), np.exp(x[3])) - y[group])

        low, high = np.log(BOX)
        bounds = ([-50 if floor == "free" else 0.001, 0, low, low], [50 if floor == "free" else 0.999, np.inf, high, high])
        starts = [[0.1, 0.2, *rng.uniform(low + 0.1, high - 0.1, 2)] for _ in range(12)]
        best = min(2 * least_squares(residual, start, bounds=bounds, xtol=1e-12, ftol=1e-12).cost for start in starts)
        if floor == "grid":
            assert found.parameters["e"][group] in GRID_VALUES
            assert found.objective[group] >= best * (1 - 1e-9)
        else:
            assert found.objective[group] <= best * (1 + 1e-7)
            assert found.objective[group] >= best * (1 - 1e-3)


@pytest.mark.parametrize("law", [CoupledLaw, MultiplicativeLaw])
def test_a_denser_first_grid_finds_nothing_lower(law: Any) -> None:
    cells = [noisy(20, noise=noise, span=span, seed=seed) for seed, (noise, span) in enumerate(product((0.01, 0.04), (1.07, 4.0, 60.0)))]
    n, r, y, w = (np.concatenate(parts) for parts in zip(*cells, strict=True))
    found = law().fit_many(n, r, y, w).objective
    dense = law()
    dense.points, dense.starts = 2 * law.points - 1, 20
    excess = found / dense.fit_many(n, r, y, w).objective - 1
    assert (excess <= 1e-6).mean() >= 0.99
    assert excess.max() <= 1e-4


@pytest.mark.parametrize("floor", FLOORS)
@pytest.mark.parametrize("span", [1.0, 1.07, 30.0])
def test_coupled_is_never_above_separable(floor: str, span: float) -> None:
    n, r, y, w = noisy(12, span=span, noise=0.03, seed=3)
    one, other = CoupledLaw(floor=floor), SeparableLaw(floor=floor)
    assert (one.fit_many(n, r, y, w).objective <= other.fit_many(n, r, y, w).objective * (1 + 1e-9)).all()
    assert one.fit_shared(n, r, y, w).objective.sum() <= other.fit_shared(n, r, y, w).objective.sum() * (1 + 1e-9)


def test_coupled_without_its_product_term_is_separable() -> None:
    """Cells whose error is lowered by a product, where a law can only add one, leave no room for it."""
    n, r = axes(4)
    y = 0.4 + 0.1 * n**-0.5 + 0.1 * r**-0.9 - 0.03 * (n * r).min() / (n * r)
    one, other = CoupledLaw(floor="free").fit_shared(n, r, y), SeparableLaw(floor="free").fit_shared(n, r, y)
    assert (one.parameters["c"] == 0).all()
    assert one.undetermined("gamma").all()
    assert one.objective == pytest.approx(other.objective, rel=1e-9)
    for name in ("e", "a", "alpha", "b", "beta"):
        assert one.parameters[name] == pytest.approx(other.parameters[name], rel=1e-5)
    assert coupled(n, r, 0.1, 0.2, 0.3, 0.4, 0.5, 0.0, 9.0) == pytest.approx(0.1 + 0.2 * n**-0.3 + 0.4 * r**-0.5)


@pytest.mark.parametrize("inner", ["exact", "paper"])
def test_pnorm_of_order_one_is_separable_with_a_floor_of_at_least_zero(inner: Any) -> None:
    n, r, y, w = noisy(6, noise=0.03, seed=2)
    box, floor = (0.05, 3.0), Floor("continuous", 0.0, np.inf)
    one, other = PNormLaw(p=(1.0, 1.0), inner=inner), SeparableLaw(alpha=box, beta=box, floor=floor)
    assert one.fit_shared(n, r, y, w).objective == pytest.approx(other.fit_shared(n, r, y, w).objective, rel=1e-5)
    some = slice(0, 2)
    own = one.fit_many(n[some], r[some], y[some], w[some])
    assert own.objective == pytest.approx(other.fit_many(n[some], r[some], y[some], w[some]).objective, rel=1e-6)


def test_exact_pnorm_is_never_above_the_papers_and_agrees_with_scipy() -> None:
    n, r, y, w = noisy(3, noise=0.05, seed=4)
    paper, exact = PNormLaw(inner="paper").fit_shared(n, r, y, w), PNormLaw().fit_shared(n, r, y, w)
    assert exact.objective.sum() <= paper.objective.sum()
    names = ("a", "b", "c")

    def residual(x: Any) -> Any:
        values = {name: x[3 + 3 * place : 6 + 3 * place, None] for place, name in enumerate(names)}
        return (np.sqrt(w) * (pnorm(n, r, alpha=np.exp(x[0]), beta=np.exp(x[1]), p=np.exp(x[2]), **values) - y)).ravel()

    bounds = (np.log([0.05, 0.05, 0.5]).tolist() + [1e-9] * 9, np.log([3, 3, 15]).tolist() + [np.inf] * 9)
    rng = np.random.default_rng(0)
    starts = [
        np.concatenate([rng.uniform(np.array(bounds[0][:3]) + 0.1, np.array(bounds[1][:3]) - 0.1), np.full(9, 0.2)]) for _ in range(8)
    ]
    best = min(2 * least_squares(residual, start, bounds=bounds, xtol=1e-12, ftol=1e-12).cost for start in starts)
    assert exact.objective.sum() <= best * (1 + 1e-6)
    assert exact.objective.sum() >= best * (1 - 1e-3)


def test_the_papers_pnorm_is_least_squares_on_powers_scored_on_errors() -> None:
    n, r, y, w = noisy(2, noise=0.05, seed=6)
    found = PNormLaw(inner="paper").fit_shared(n, r, y, w)
    alpha, beta, p = (float(found.parameters[name][0]) for name in ("alpha", "beta", "p"))

    def score(alpha: float, beta: float, p: float) -> float:
        total = 0.0
        for group in range(2):
            root = np.sqrt(w[group])
            design = np.stack([n[group] ** (-alpha * p), r[group] ** (-beta * p), np.ones_like(root)], axis=1)
            x, _ = nnls(design * root[:, None], y[group] ** p * root)
            total += float((w[group] * (y[group] - (design @ x) ** (1 / p)) ** 2).sum())
        return total

    assert found.objective.sum() == pytest.approx(score(alpha, beta, p), rel=1e-7)
    grid = product(np.geomspace(0.05, 3, 7), np.geomspace(0.05, 3, 7), np.geomspace(0.5, 15, 6))
    assert min(score(*point) for point in grid) >= found.objective.sum() * (1 - 1e-9)


@pytest.mark.parametrize("floor", ["free", "continuous"])
def test_ces_is_never_above_a_direct_scipy_search(floor: str) -> None:
    n, r, y, w = noisy(2, noise=0.03, seed=7)
    found = CESLaw(floor=floor).fit_shared(n, r, y, w)

    def score(x: Any) -> Any:
        share = 1 / (1 + np.exp(-x[0]))
        mean = (share * n ** x[1] + (1 - share) * r ** x[1]) ** (-1 / x[1]) if x[1] else n**-share * r ** (share - 1)
        return sum(inner_by_nnls([mean[group]], y[group], w[group], floor) for group in range(2))

    at = [float(np.log(found.parameters["w"][0] / (1 - found.parameters["w"][0]))), float(found.parameters["delta"][0])]
    assert found.objective.sum() == pytest.approx(score(at), rel=1e-6)
    starts = [(-4.0, -4.0), (0.0, 1.0), (3.0, -1.0), (-1.0, 3.0), (4.0, 3.0)]
    bounds = [(-13.8, 13.8), (-8.0, 4.0)]
    best = min(minimize(score, start, bounds=bounds, method="Nelder-Mead", options={"xatol": 1e-7, "fatol": 1e-12}).fun for start in starts)
    assert found.objective.sum() <= best * (1 + 1e-6)


def test_ces_has_its_limit_at_delta_zero_and_is_smooth_there() -> None:
    assert ces(3.0, 0.2, 0.1, 0.5, 0.3, 0.0) == pytest.approx(0.1 + 0.5 * 3.0**-0.3 * 0.2**-0.7)
    around = [float(ces(3.0, 0.2, 0.1, 0.5, 0.3, delta)) for delta in (-1e-4, -1e-7, 0.0, 1e-7, 1e-4)]
    assert np.ptp(around) < 1e-3
    assert np.all(np.diff(around) != 0)
    assert float(ces(3.0, 0.2, 0.0, 1.0, 0.3, -8.0)) == pytest.approx((0.3 * 3.0**-8 + 0.7 * 0.2**-8) ** (1 / 8))


@pytest.mark.parametrize("delta", [-7.9, -0.2, -0.05, -1e-3, -1e-6, 0.0, 1e-6, 0.05, 3.9])
def test_slopes_of_ces_are_those_of_differences(delta: float) -> None:
    a, b, at, step = np.log(3.0), np.log(0.2), 0.7, 1e-5

    def value(logit: float, delta: float) -> float:
        return float(log_mean(a, b, 1 / (1 + np.exp(-logit)), delta))

    by_weight, by_delta = slopes(np.array(a), np.array(b), 1 / (1 + np.exp(-at)), delta)
    assert float(by_weight) == pytest.approx((value(at + step, delta) - value(at - step, delta)) / (2 * step), rel=1e-6)
    assert float(by_delta) == pytest.approx((value(at, delta + step) - value(at, delta - step)) / (2 * step), rel=1e-6)


@pytest.mark.parametrize("law", LAWS)
def test_weight_zero_leaves_a_cell_out_whatever_stands_in_it(law: Any) -> None:
    n, r, y, w = noisy(2, seed=8)
    w[1, 10:] = 0.0
    w[0] = 1.0
    odd_n, odd_r, odd_y = n.copy(), r.copy(), y.copy()
    odd_n[1, 10:], odd_r[1, 10:], odd_y[1, 10:] = 1e6, 1e-6, np.nan
    one, other = law().fit_shared(n, r, y, w), law().fit_shared(odd_n, odd_r, odd_y, w)
    assert all((one.parameters[name] == other.parameters[name]).all() for name in one.parameters)
    alone, cut = law().fit_many(n[1], r[1], y[1], w[1]), law().fit_many(n[1, :10], r[1, :10], y[1, :10], w[1, :10])
    assert alone.objective == pytest.approx(cut.objective, rel=1e-9)


@pytest.mark.parametrize("law", LAWS)
def test_doubled_weights_double_the_objective_and_move_nothing(law: Any) -> None:
    n, r, y, w = noisy(2, seed=9)
    one, other = law().fit_shared(n, r, y, w), law().fit_shared(n, r, y, 2 * w)
    assert other.objective == pytest.approx(2 * one.objective, rel=1e-6)
    assert other.predict(n, r) == pytest.approx(one.predict(n, r), abs=1e-4)


@pytest.mark.parametrize("law", [CoupledLaw, MultiplicativeLaw])
@pytest.mark.parametrize("floor", FLOORS)
def test_many_fits_at_once_are_the_fits_one_by_one(law: Any, floor: str) -> None:
    n, r, y, w = noisy(9, seed=10)
    made = law(floor=floor)
    batch = made.fit_many(n, r, y, w)
    single = [made.fit_many(n[row], r[row], y[row], w[row]) for row in range(9)]
    for name, values in batch.parameters.items():
        assert values.tolist() == [float(one.parameters[name][0]) for one in single]
    stacked = made.fit_shared(*(values.reshape(3, 3, -1) for values in (n, r, y, w)))
    shared = [made.fit_shared(*(values[3 * place : 3 * place + 3] for values in (n, r, y, w))) for place in range(3)]
    for name, values in stacked.parameters.items():
        assert values.tolist() == np.concatenate([one.parameters[name] for one in shared]).tolist()
    assert stacked.shared == tuple(stacked.bounds)


@pytest.mark.parametrize("law", LAWS)
def test_shared_shapes_never_fit_better_than_own_shapes(law: Any) -> None:
    n, r, y, w = noisy(3, seed=11)
    own, shared = law().fit_many(n, r, y, w), law().fit_shared(n, r, y, w)
    assert (own.objective <= shared.objective * (1 + 1e-6)).all()
    assert law().fit_shared(n[:1], r[:1], y[:1], w[:1]).objective == pytest.approx(own.objective[:1], rel=1e-6)


@pytest.mark.parametrize("law", LAWS)
def test_groups_without_weight_have_no_parameters_and_change_nothing(law: Any) -> None:
    n, r, y, w = noisy(3, seed=12)
    w[1] = 0.0
    found = law().fit_shared(n, r, y, w)
    others = law().fit_shared(n[[0, 2]], r[[0, 2]], y[[0, 2]], w[[0, 2]])
    assert np.isnan(found.parameters["a"][1])
    assert found.objective[1] == 0
    assert found.objective.sum() == pytest.approx(others.objective.sum(), rel=1e-9)
    assert found.objective[[0, 2]] == pytest.approx(others.objective, rel=1e-6)
    alone = law().fit_many(n[1], r[1], y[1], w[1])
    assert all(np.isnan(values).all() for values in alone.parameters.values())
    nothing = np.zeros((0, 30))
    assert len(law().fit_many(nothing, nothing, nothing, nothing)) == len(law().fit_shared(nothing, nothing, nothing, nothing)) == 0


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("odd", ["constant", "one n", "one r", "one cell", "zeros"])
def test_degenerate_groups_are_fitted_without_a_warning(law: Any, odd: str) -> None:
    n, r, y, w = (values[:1].copy() for values in noisy(1, seed=13))
    w[:] = 1.0
    if odd == "constant":
        y[:] = 0.3
    elif odd == "one n":
        n[:] = 2.0
    elif odd == "one r":
        r[:] = 0.5
    elif odd == "one cell":
        w[:, 1:] = 0.0
    else:
        y[:] = 0.0
    found = law().fit_many(n, r, y, w)
    assert np.isfinite([values[0] for values in found.parameters.values()]).all()
    spread = float((w * (y - np.average(y, weights=w)) ** 2).sum())
    assert found.objective[0] <= spread + (30 * 0.00101**2 if odd == "zeros" else 1e-12)


@pytest.mark.parametrize("law", LAWS)
def test_unusable_cells_with_weight_are_refused(law: Any) -> None:
    n, r, y, w = noisy(1, seed=14)
    for broken in (0, 1, 2):
        cells = [n.copy(), r.copy(), y.copy()]
        cells[broken][0, 0] = np.nan if broken == 2 else 0.0
        with pytest.raises(ValueError, match="positive n"):
            law().fit_many(*cells, np.maximum(w, 0.1))
    with pytest.raises(ValueError, match="at least 0"):
        PNormLaw().fit_many(n, r, y - 1.0, w)


def test_ranges_that_are_none_are_refused() -> None:
    for make in (CoupledLaw, MultiplicativeLaw, PNormLaw):
        with pytest.raises(ValueError, match="alpha"):
            make(alpha=(2.0, 1.0))
    with pytest.raises(ValueError, match="bounds of w"):
        CESLaw(w=(0.0, 0.5))


def test_a_shape_at_a_negative_bound_is_recognised() -> None:
    n, r, y, w = noisy(2, noise=0.0, seed=15)
    found = CESLaw(delta=(-3.0, -2.0), floor="free").fit_shared(n, r, y, w)
    side = {-3.0: -1, -2.0: 1}.get(float(found.parameters["delta"][0]), 0)
    assert side != 0
    assert (found.at_bound("delta") == side).all()


@pytest.mark.parametrize("law", LAWS)
def test_a_fit_for_people_states_its_law_in_the_units_it_was_given(law: Any) -> None:
    shapes, coefficients, n, r, y = planted(law)
    fit = law(reference=(6.6, 1135.0)).fit(n[0] * 6.6, r[0] * 1135.0, y[0])
    assert fit.k == law.k
    assert fit.n == 30
    assert fit.predict(n[0] * 6.6, r[0] * 1135.0) == pytest.approx(y[0], abs=1e-5)
    assert fit.law in fit.summary()
    free = law().fit(n[0] * 6.6, r[0] * 1135.0, y[0])
    assert free.predict(20.0, 500.0) == pytest.approx(fit.predict(20.0, 500.0), abs=1e-4)
    if law in (CoupledLaw, MultiplicativeLaw):
        values = fit.parameters
        first = values["K" if law is MultiplicativeLaw else "A"]
        scale = 6.6 ** shapes["alpha"] * (1135.0 ** shapes["beta"] if law is MultiplicativeLaw else 1.0)
        assert first == pytest.approx(coefficients["a"][0] * scale, rel=1e-2)


@pytest.mark.parametrize("inner", ["paper", "exact"])
def test_many_cells_are_searched_by_some_of_them_and_fitted_to_all(inner: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    n, r, y, w = noisy(4, seed=16)
    w[1, 20:] = 0.0
    law = PNormLaw(inner=inner)
    whole = law.fit_shared(n, r, y, w)
    monkeypatch.setattr(norm, "MANY", 60)
    monkeypatch.setattr(norm, "ENOUGH", 15)
    some = law.fit_shared(n, r, y, w)
    assert some.objective.sum() == pytest.approx(whole.objective.sum(), rel=1e-4)
    assert some.predict(n, r) == pytest.approx(whole.predict(n, r), abs=2e-3)


def test_the_cells_that_stand_for_all_have_weight_and_are_the_same_every_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(norm, "MANY", 40)
    monkeypatch.setattr(norm, "ENOUGH", 12)
    n, r, y, w = noisy(3, seed=17)
    w[2, 8:] = 0.0
    data = data_of(SEPARABLE, *(values[None] for values in (n, r, y, w)))
    some, again = norm.thinned(data), norm.thinned(data)
    assert some is not None
    assert again is not None
    assert (some.w > 0).sum(axis=-1).tolist() == [[13, 13, 8]]
    assert some.x.tolist() == again.x.tolist()
    assert some.mean == pytest.approx((some.w * some.y).sum(axis=-1) / some.w.sum(axis=-1))
    kept = {(a, b, c) for a, b, c in zip(data.x[0, 0, 0], data.y[0, 0], data.w[0, 0], strict=True)}
    assert {(a, b, c) for a, b, c in zip(some.x[0, 0, 0], some.y[0, 0], some.w[0, 0], strict=True)} <= kept
