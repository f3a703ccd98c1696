"""Newton's method on the logarithms of shapes inside their bounds, many starts at once; amplitudes and floors are solved exactly inside.

The objective of shapes alone is the minimum over amplitudes and floors: its gradient is the partial one at the inner solution, its
Hessian the Schur complement of the full one on the amplitudes and floors that are inside their constraints. Where that Hessian is not
positive the absolute values of its eigenvalues are taken; a step that does not descend is shortened.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from analyses.laws.floor import GRID_VALUES
from analyses.laws.linear import CONSTANT, best_amplitudes, inverse
from analyses.laws.powers import columns_of

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from analyses.laws.floor import Floor
    from analyses.laws.powers import Array, Data, Terms

STEPS = 60
RADIUS = 1.0
"""Longest first step of a log shape."""
SMALLEST = 1e-10
"""Shorter steps end the search."""
FLAT = 1e-15
"""So does an expected descent below this part of the objective."""
GRID = np.array(GRID_VALUES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Inner:
    """Best amplitudes (Q, G, K) and floors (Q, G) for given columns, and whether a floor is free to move."""

    amplitudes: Array
    floor: Array
    free: npt.NDArray[np.bool_]
    residual: Array
    """y minus the law, (Q, G, C)."""
    objective: Array
    """(Q,)"""


def solve(phi: Array, data: Data, floor: Floor, fixed: Array | None = None) -> Inner:
    """Solve amplitudes and floor for columns phi (Q, G, K, C); `fixed` (Q, G) gives the floors instead."""
    if fixed is not None:
        amplitudes, e, free = _at(phi, data, fixed), fixed, np.zeros(fixed.shape, dtype=bool)
    else:
        mean = (phi @ data.w[..., None])[..., 0] / data.total[..., None]
        amplitudes = _amplitudes(phi - mean[..., None], data, data.y - data.mean[..., None], phi)
        e = data.mean - (amplitudes * mean).sum(axis=-1)
        free = np.ones(e.shape, dtype=bool)
        if floor.kind != "free":
            low, high = floor.bounds()
            inside = np.clip(e, low, high)
            if floor.kind == "grid":
                above = np.clip(np.searchsorted(GRID, inside), 1, len(GRID) - 1)
                choices = [(_at(phi, data, GRID[place]), GRID[place]) for place in (above - 1, above)]
                squares = [(data.w * _residual(phi, data, x, value) ** 2).sum(axis=-1) for x, value in choices]
                first = squares[0] <= squares[1]
                amplitudes = np.where(first[..., None], choices[0][0], choices[1][0])
                e, free = np.where(first, choices[0][1], choices[1][1]), np.zeros(e.shape, dtype=bool)
            elif (outside := inside != e).any():
                amplitudes[outside] = _at(phi, data, inside, outside)
                e, free = inside, ~outside
    residual = _residual(phi, data, amplitudes, e)
    return Inner(amplitudes=amplitudes, floor=e, free=free, residual=residual, objective=(data.w * residual * residual).sum(axis=(-1, -2)))


def _residual(phi: Array, data: Data, amplitudes: Array, e: Array) -> Array:
    return np.asarray(data.y - e[..., None] - (amplitudes[..., None, :] @ phi)[..., 0, :])


def _at(phi: Array, data: Data, e: Array, rows: npt.NDArray[np.bool_] | None = None) -> Array:
    """Amplitudes for given floors (of some groups)."""
    if rows is None:
        cols, target = phi * data.root[..., None, :], (data.y - e[..., None]) * data.root
    else:
        root = data.root[rows]
        cols, target = phi[rows] * root[:, None, :], (data.y[rows] - e[rows][:, None]) * root
    return best_amplitudes(cols @ np.swapaxes(cols, -1, -2), (cols @ target[..., None])[..., 0])


def _amplitudes(centred: Array, data: Data, target: Array, raw: Array) -> Array:
    cols = centred * data.root[..., None, :]
    gram = cols @ np.swapaxes(cols, -1, -2)
    k = gram.shape[-1]
    limit = CONSTANT * (raw * raw * data.w[..., None, :]).sum(axis=-1)
    dead = gram[..., range(k), range(k)] <= limit
    if dead.any():
        gram = np.where(dead[..., :, None] | dead[..., None, :], 0.0, gram)
    return best_amplitudes(gram, (cols @ (target * data.root)[..., None])[..., 0])


def refined(phi: Array, data: Data, inner: Inner) -> Inner:
    """The same supports with the rounding of correlations taken out: one step of least squares on the residuals."""
    shift = np.where(inner.free[..., None], (phi @ data.w[..., None])[..., 0] / data.total[..., None], 0.0)
    cols = (phi - shift[..., None]) * data.root[..., None, :]
    step = inverse(cols @ np.swapaxes(cols, -1, -2), inner.amplitudes > 0)
    delta = (step @ (cols @ (inner.residual * data.root)[..., None]))[..., 0]
    amplitudes = np.maximum(inner.amplitudes + delta, 0.0)
    e = np.where(inner.free, data.mean - (amplitudes * shift).sum(axis=-1), inner.floor)
    residual = _residual(phi, data, amplitudes, e)
    objective = (data.w * residual * residual).sum(axis=(-1, -2))
    better = objective < inner.objective
    return Inner(
        amplitudes=np.where(better[:, None, None], amplitudes, inner.amplitudes),
        floor=np.where(better[:, None], e, inner.floor),
        free=inner.free,
        residual=np.where(better[:, None, None], residual, inner.residual),
        objective=np.where(better, objective, inner.objective),
    )


def _derivatives(terms: Terms, data: Data, shapes: Array, floor: Floor, fixed: Array | None) -> tuple[Array, Array, Array]:
    """Objective (Q,), gradient (Q, S) and Hessian (Q, S, S) in log shapes."""
    z = shapes[:, None, :, None] * data.x
    phi = columns_of(terms, z)
    inner = solve(phi, data, floor, fixed)
    owner = list(terms.owner)
    slope = z * phi[..., owner, :]
    """Minus the derivative of each shape's column."""
    root = data.root[..., None, :]
    mean = np.where(inner.free[..., None], (phi @ data.w[..., None])[..., 0] / data.total[..., None], 0.0)
    drift = np.where(inner.free[..., None], (slope @ data.w[..., None])[..., 0] / data.total[..., None], 0.0)
    k, s = phi.shape[-2], slope.shape[-2]
    basis = np.concatenate([(phi - mean[..., None]) * root, (slope - drift[..., None]) * root], axis=-2)
    gram = basis @ np.swapaxes(basis, -1, -2)
    weighted = (data.w * inner.residual)[..., None]
    pull = (slope @ weighted)[..., 0]
    x = inner.amplitudes[..., owner]
    gradient = 2.0 * (x * pull).sum(axis=1)
    second = np.zeros((*x.shape, s))
    for a in range(s):
        for b in range(s):
            if owner[a] == owner[b]:
                second[..., a, b] = (z[..., a, :] * slope[..., b, :] * weighted[..., 0]).sum(axis=-1)
    second[..., range(s), range(s)] -= pull
    full = gram[..., k:, k:] * (x[..., :, None] * x[..., None, :]) - second * x[..., :, None]
    cross = -gram[..., k:, :k] * x[..., None]
    cross[..., range(s), owner] += pull
    schur = full - cross @ inverse(gram[..., :k, :k], inner.amplitudes > 0) @ np.swapaxes(cross, -1, -2)
    return inner.objective, gradient, 2.0 * schur.sum(axis=1)


def polish(terms: Terms, data: Data, shapes: Array, bounds: Array, floor: Floor, *, fixed: Array | None = None) -> tuple[Array, Array]:
    """Descend from shapes (Q, S), one start per problem of `data`; bounds (S, 2). Shapes and objectives where the descents end."""

    def evaluate(rows: npt.NDArray[np.int64], at: Array) -> tuple[Array, Array, Array]:
        return _derivatives(terms, data.take(rows), np.exp(at), floor, None if fixed is None else fixed[rows])

    return unlogged(*descend(evaluate, np.log(shapes), np.log(bounds)), bounds)


def unlogged(at: Array, value: Array, bounds: Array) -> tuple[Array, Array]:
    """Shapes from their logarithms, on a bound exactly where the logarithm is."""
    shapes = np.exp(at)
    for s, (low, high) in enumerate(bounds):
        shapes[at[:, s] <= np.log(low), s], shapes[at[:, s] >= np.log(high), s] = low, high
    return shapes, value


def descend(
    evaluate: Callable[[npt.NDArray[np.int64], Array], tuple[Array, Array, Array]], at: Array, bounds: Array
) -> tuple[Array, Array]:
    """Descend from points (Q, S) inside bounds (S, 2); where the descents end, and the objectives (Q,) there.

    `evaluate(rows, points)` gives objectives, gradients and Hessians of some of the Q problems at points of theirs.
    """
    low, high = bounds.T
    at = np.clip(at, low, high)
    running = np.arange(len(at))
    value, gradient, hessian = evaluate(running, at)
    radius = np.full(len(at), RADIUS)
    for _ in range(STEPS):
        step, expected = _step(at[running], gradient[running], hessian[running], radius[running], low, high)
        going = (np.abs(step).max(axis=1) > SMALLEST) & (expected > FLAT * value[running])
        running, step = running[going], step[going]
        if not len(running):
            break
        trial = np.clip(at[running] + step, low, high)
        v, g, h = evaluate(running, trial)
        better = v < value[running]
        rows = running[better]
        at[rows], value[rows], gradient[rows], hessian[rows] = trial[better], v[better], g[better], h[better]
        radius[rows] = np.minimum(radius[rows] * 2.0, 2.0)
        worse = running[~better]
        radius[worse] = 0.25 * np.minimum(np.abs(step[~better]).max(axis=1), radius[worse])
    return at, value


def by_differences(
    evaluate: Callable[[npt.NDArray[np.int64], Array], tuple[Array, Array]], rows: npt.NDArray[np.int64], at: Array, step: float
) -> tuple[Array, Array, Array]:
    """Objectives, gradients and Hessians from objectives and gradients: Hessians by central differences of `step`, all in one call."""
    count, s = at.shape
    moves = np.concatenate([np.zeros((1, s)), step * np.eye(s), -step * np.eye(s)])
    value, gradient = evaluate(np.tile(rows, len(moves)), (moves[:, None, :] + at).reshape(-1, s))
    around = gradient.reshape(len(moves), count, s)
    hessian = np.moveaxis(around[1 : s + 1] - around[s + 1 :], 0, 1) / (2.0 * step)
    return value[:count], around[0], 0.5 * (hessian + np.swapaxes(hessian, -1, -2))


def _step(at: Array, gradient: Array, hessian: Array, radius: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """A step inside the bounds, and the descent that the gradient promises for it."""
    held = ((at <= low) & (gradient >= 0)) | ((at >= high) & (gradient <= 0))
    for _ in range(2):
        free = ~held
        g = np.where(free, gradient, 0.0)
        h = hessian * (free[:, :, None] & free[:, None, :])
        s = range(h.shape[-1])
        h[:, s, s] += held
        values, vectors = np.linalg.eigh(h)
        curvature = np.maximum(np.abs(values), 1e-12 * np.abs(values).max(axis=1, keepdims=True) + np.finfo(float).tiny)
        turned = (np.swapaxes(vectors, -1, -2) @ g[..., None])[..., 0]
        step = -(vectors @ (turned / curvature)[..., None])[..., 0]
        step = np.where(free, step, 0.0)
        length = np.abs(step).max(axis=1)
        step *= np.minimum(1.0, radius / np.maximum(length, np.finfo(float).tiny))[:, None]
        stuck = ((at <= low) & (step < 0)) | ((at >= high) & (step > 0))
        if not (stuck & free).any():
            break
        held = held | stuck
    step = np.clip(at + step, low, high) - at
    return step, -(g * step).sum(axis=1) * 0.5
