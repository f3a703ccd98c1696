"""Batched nonnegative least squares against SciPy's, and the polish's derivatives against differences."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy.optimize import nnls

from analyses.laws.floor import CONTINUOUS, FREE, Floor
from analyses.laws.linear import best_amplitudes, best_gain, inverse
from analyses.laws.polish import _derivatives, solve
from analyses.laws.powers import COUPLED, MULTIPLICATIVE, SEPARABLE, columns_of, data_of


def problems(k: int, count: int = 300, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    columns = rng.normal(size=(count, k, 12)) + rng.uniform(0, 2, (count, 1, 1))
    return columns, rng.normal(size=(count, 12))


@pytest.mark.parametrize("k", [1, 2, 3])
def test_amplitudes_are_those_of_scipy_nnls(k: int) -> None:
    columns, target = problems(k)
    found = best_amplitudes(columns @ np.swapaxes(columns, -1, -2), (columns @ target[..., None])[..., 0])
    expected = np.array([nnls(one.T, y)[0] for one, y in zip(columns, target, strict=True)])
    assert found == pytest.approx(expected, abs=1e-9)
    assert len({tuple(row) for row in (found > 0).tolist()}) == 2**k


def test_a_column_of_zeros_and_a_repeated_column_do_no_harm() -> None:
    columns, target = problems(3, count=50)
    columns[:, 1] = columns[:, 0]
    columns[25:, 2] = 0.0
    found = best_amplitudes(columns @ np.swapaxes(columns, -1, -2), (columns @ target[..., None])[..., 0])
    for one, y, x in zip(columns, target, found, strict=True):
        assert ((y - x @ one) ** 2).sum() == pytest.approx(nnls(one.T, y)[1] ** 2, rel=1e-9)
    assert (found[25:, 2] == 0).all()


@pytest.mark.parametrize("k", [1, 2, 3])
def test_gain_is_the_drop_of_the_sum_of_squares(k: int) -> None:
    columns, target = problems(k)
    unit = columns / np.linalg.norm(columns, axis=-1, keepdims=True)
    pairs = {(i, j): (unit[:, i] * unit[:, j]).sum(axis=-1) for i, j in combinations(range(k), 2)}
    gain = best_gain(pairs, [(unit[:, i] * target).sum(axis=-1) for i in range(k)])
    expected = [(y**2).sum() - nnls(one.T, y)[1] ** 2 for one, y in zip(columns, target, strict=True)]
    assert gain == pytest.approx(np.array(expected), abs=1e-9)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_inverse_is_numpys_on_the_active_part(k: int) -> None:
    columns, _ = problems(k, count=8)
    gram = columns @ np.swapaxes(columns, -1, -2)
    for number in range(2**k):
        active = np.array([bool(number >> i & 1) for i in range(k)])
        expected = np.zeros_like(gram)
        if active.any():
            part = np.ix_(np.arange(8), np.flatnonzero(active), np.flatnonzero(active))
            expected[part] = np.linalg.inv(gram[part])
        assert inverse(gram, np.broadcast_to(active, (8, k))) == pytest.approx(expected, rel=1e-8, abs=1e-12)


def grid_cells(groups: int = 3, seed: int = 1) -> tuple[Any, Any, Any, Any]:
    rng = np.random.default_rng(seed)
    n = np.tile(np.repeat([0.2, 0.6, 1.5, 5.0], 5), (groups, 1))
    r = np.tile([0.1, 0.3, 0.8, 2.0, 4.0], (groups, 4)) * rng.uniform(0.8, 1.2, (groups, 1))
    y = 0.2 + 0.1 * n**-0.4 + 0.1 * r**-0.5 + 0.03 * (n * r) ** -0.2 + 0.02 * rng.normal(size=n.shape)
    return n, r, y, rng.uniform(0.3, 2.0, n.shape)


@pytest.mark.parametrize("floor", [FREE, CONTINUOUS, Floor("continuous", 0.15, 0.999)], ids=["free", "continuous", "raised"])
@pytest.mark.parametrize("terms", [SEPARABLE, MULTIPLICATIVE, COUPLED], ids=["separable", "multiplicative", "coupled"])
def test_gradient_and_hessian_are_those_of_differences(terms: Any, floor: Floor) -> None:
    data = data_of(terms, *(values[None] for values in grid_cells()))
    at = np.log(np.array([[0.5, 0.7, 0.3][: len(terms.axes)]]))
    step = 1e-5

    def value(log: Any) -> Any:
        return _derivatives(terms, data, np.exp(log), floor, None)

    _, gradient, hessian = value(at)
    assert abs(gradient).min() > 1e-6
    for s in range(at.shape[1]):
        move = np.zeros_like(at)
        move[0, s] = step
        ahead, behind = value(at + move), value(at - move)
        assert gradient[0, s] == pytest.approx((ahead[0] - behind[0])[0] / (2 * step), rel=1e-5, abs=1e-9)
        assert hessian[0, s] == pytest.approx((ahead[1] - behind[1])[0] / (2 * step), rel=1e-4, abs=1e-7)


@pytest.mark.parametrize("low", [-np.inf, 0.001, 0.25, 0.3])
def test_floor_and_amplitudes_of_given_columns_are_those_of_nnls(low: float) -> None:
    n, r, y, w = grid_cells()
    data = data_of(COUPLED, n[None], r[None], y[None], w[None])
    phi = columns_of(COUPLED, np.array([0.5, 0.7, 0.3])[None, None, :, None] * data.x)
    inner = solve(phi, data, FREE if np.isinf(low) else Floor("continuous", low))
    for group in range(3):
        root = np.sqrt(w[group])
        shift = -1e3 if np.isinf(low) else low
        design = np.vstack([np.ones_like(root), phi[0, group]]) * root
        x, norm = nnls(design.T, (y[group] - shift) * root)
        assert inner.floor[0, group] == pytest.approx(shift + x[0], abs=1e-6)
        assert inner.amplitudes[0, group] == pytest.approx(x[1:], abs=1e-6)
        assert (w[group] * inner.residual[0, group] ** 2).sum() == pytest.approx(norm**2, rel=1e-6)
