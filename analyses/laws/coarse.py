"""Objective of a sum of columns on a grid of shapes, amplitudes and floors solved exactly at every point; and its lowest minima."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from analyses.laws.linear import CONSTANT, best_gain
from analyses.laws.powers import mesh

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from analyses.laws.floor import Floor
    from analyses.laws.powers import Array, Data, Terms

TIE = 1e-13
"""Points of a plane differ by this much (relative to the total sum of squares), so that it has one lowest point."""


def surface(terms: Terms, data: Data, values: Sequence[Array], floor: Floor) -> Array:
    """Weighted sum of squared errors, summed over groups, at each point of a grid of shapes: (P, *grid). A grid floor counts as continuous.

    `values` are those of each shape, (points,); of a column's only shape also (P, points), different in each problem.
    """
    columns = [_columns(terms, data, values, j) for j in range(len(terms.columns))]
    low, high = floor.bounds()
    total = _gaps(data, columns, None, low)
    if np.isfinite(low):
        total = np.minimum(total, _gaps(data, columns, low))
    if np.isfinite(high) and (data.mean > high).any():
        above = (data.mean > high).reshape(*data.mean.shape, *([1] * len(columns)))
        total = np.where(above, _gaps(data, columns, high), total)
    return np.asarray(total.sum(axis=1).reshape(len(data), *(axis.shape[-1] for axis in values)))


def _columns(terms: Terms, data: Data, values: Sequence[Array], j: int) -> Array:
    """Column j at all its shapes, (P, G, points, C)."""
    members = terms.columns[j]
    shapes = [values[members[0]]] if len(members) == 1 else mesh([values[s] for s in members]).T
    z = sum(np.atleast_2d(points)[:, None, :, None] * data.x[..., s, None, :] for points, s in zip(shapes, members, strict=True))
    return np.asarray(np.exp(-z))


def _gaps(data: Data, columns: Sequence[Array], floor: float | None, low: float = -np.inf) -> Array:
    """Sum of squares of each group at each point: (P, G, *points of the columns); with a fixed floor, or a free one of at least `low`."""
    k = len(columns)
    target = data.y - (data.mean[..., None] if floor is None else floor)
    root, room = data.root[..., None, :], None
    unit, c, means = [], [], []
    for j, column in enumerate(columns):
        place = [1] * k
        mean = (column * data.w[..., None, :]).sum(axis=-1) / data.total[..., None]
        weighted = root * (column - mean[..., None] if floor is None else column)
        square = (weighted * weighted).sum(axis=-1)
        limit = CONSTANT * (column * column * data.w[..., None, :]).sum(axis=-1)
        scale = np.divide(1.0, np.sqrt(square), out=np.zeros_like(square), where=square > limit)
        unit.append(weighted * scale[..., None])
        place[j] = column.shape[2]
        product = (unit[-1] @ (data.root * target)[..., None])[..., 0]
        c.append(product.reshape(*product.shape[:2], *place))
        means.append((mean * scale).reshape(*mean.shape[:2], *place))
    pairs = {}
    for i, j in combinations(range(k), 2):
        place = [1] * k
        place[i], place[j] = columns[i].shape[2], columns[j].shape[2]
        product = unit[i] @ np.swapaxes(unit[j], -1, -2)
        pairs[i, j] = product.reshape(*product.shape[:2], *place)
    full = (*data.mean.shape, *([1] * k))
    if floor is None and np.isfinite(low):
        room = (data.mean - low).reshape(full)
    square = (data.w * target * target).sum(axis=-1).reshape(full)
    return np.asarray(square - best_gain(pairs, c, means if room is not None else None, room))


def lowest(objective: Array, scale: Array, count: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The `count` lowest local minima of each problem's grid: number of the problem and flat index of the point, best first per problem.

    `scale` (P,) is the size of differences that matter (the total sum of squares).
    """
    flat = objective.reshape(len(objective), -1)
    tilt = TIE * np.arange(flat.shape[1])
    values = (flat + tilt * np.maximum(scale, np.finfo(float).tiny)[:, None]).reshape(objective.shape)
    around = values
    for axis in range(1, objective.ndim):
        around = np.minimum(around, _window(values, axis))
    candidates = np.where(values <= around, values, np.inf).reshape(flat.shape)
    count = min(count, flat.shape[1])
    places = np.argpartition(candidates, count - 1, axis=1)[:, :count]
    found = np.take_along_axis(candidates, places, axis=1)
    order = np.lexsort((places, found), axis=1)
    places, found = np.take_along_axis(places, order, axis=1), np.take_along_axis(found, order, axis=1)
    problem, rank = np.nonzero(np.isfinite(found))
    return problem, places[problem, rank]


def _window(values: Array, axis: int) -> Array:
    """Minimum over each point and its two neighbours along an axis."""
    result = values.copy()
    ahead = [slice(None)] * values.ndim
    behind = [slice(None)] * values.ndim
    ahead[axis], behind[axis] = slice(1, None), slice(None, -1)
    np.minimum(result[tuple(behind)], values[tuple(ahead)], out=result[tuple(behind)])
    np.minimum(result[tuple(ahead)], values[tuple(behind)], out=result[tuple(ahead)])
    return result
