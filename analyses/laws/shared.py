"""Global search for the shapes of sums of decaying columns, shared over the groups of a problem or its own in each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from analyses.laws.coarse import lowest, surface
from analyses.laws.floor import CONTINUOUS, GRID_VALUES
from analyses.laws.polish import polish, refined, solve
from analyses.laws.powers import columns_of, grid, physical

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from analyses.laws.floor import Floor
    from analyses.laws.powers import Array, Data, Terms

BUDGET = 400_000
"""Grid points times groups that are solved at once, so that arrays stay in the cache."""
NEIGHBOURS = (-2, -1, 0, 1)
"""Floors of the grid that are tried around a continuous one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Best shapes (P, S) with the amplitudes (P, G, K), floors (P, G) and objectives (P, G) that belong to them."""

    shapes: Array
    amplitudes: Array
    floor: Array
    objective: Array


def search(terms: Terms, data: Data, bounds: Array, floor: Floor, *, points: int, starts: int, seeds: Array | None = None) -> Found:
    """Grid of `points` values a shape, its `starts` lowest minima and `seeds` (P, any, S) polished, the best one kept.

    Exact in amplitudes and floors; bounds (S, 2).
    """
    values = [grid((float(low), float(high)), points) for low, high in bounds]
    size = int(np.prod([len(axis) for axis in values])) * data.y.shape[1]
    chunk = max(1, BUDGET // size)
    parts = []
    for start in range(0, len(data), chunk):
        rows = np.arange(start, min(start + chunk, len(data)))
        parts.append(_search(terms, data.take(rows), values, bounds, floor, starts, None if seeds is None else seeds[rows]))
    return Found(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in Found.__slots__})


def _search(terms: Terms, data: Data, values: Sequence[Array], bounds: Array, floor: Floor, starts: int, seeds: Array | None) -> Found:
    smooth = CONTINUOUS if floor.kind == "grid" else floor
    problem, shapes = _grid_minima(terms, data, values, smooth, starts)
    if seeds is not None:
        problem = np.concatenate([problem, np.repeat(np.arange(len(data)), seeds.shape[1])])
        shapes = np.concatenate([shapes, seeds.reshape(-1, seeds.shape[2])])
    ends, value = polish(terms, data.take(problem), shapes, bounds, smooth)
    if floor.kind == "grid":
        if data.y.shape[1] == 1:
            problem, ends, value = _floors(terms, data, problem, ends, value, bounds)
        else:
            ends, value = polish(terms, data.take(problem), ends, bounds, floor)
    best = _first(problem, value)
    return settle(terms, data, ends[best], floor)


def _grid_minima(terms: Terms, data: Data, values: Sequence[Array], floor: Floor, starts: int) -> tuple[npt.NDArray[np.int64], Array]:
    objective = surface(terms, data, values, floor)
    scale = (data.w * (data.y - data.mean[..., None]) ** 2).sum(axis=(-1, -2))
    problem, place = lowest(objective, scale, starts)
    index = np.unravel_index(place, objective.shape[1:])
    return problem, np.stack([axis[i] for axis, i in zip(values, index, strict=True)], axis=-1)


def _floors(
    terms: Terms, data: Data, problem: npt.NDArray[np.int64], shapes: Array, value: Array, bounds: Array
) -> tuple[npt.NDArray[np.int64], Array, Array]:
    """Of one group: the best of the floors around those of each start, shapes polished for each of them."""
    part = data.take(problem)
    e = solve(columns_of(terms, shapes[:, None, :, None] * part.x), part, CONTINUOUS).floor
    near = np.searchsorted(GRID_VALUES, e[:, 0])[:, None] + np.array(NEIGHBOURS)
    near = np.clip(near, 0, len(GRID_VALUES) - 1)
    rows = np.repeat(np.arange(len(problem)), near.shape[1])
    fixed = np.array(GRID_VALUES)[near.reshape(-1, 1)]
    ends, value = polish(terms, part.take(rows), shapes[rows], bounds, CONTINUOUS, fixed=fixed)
    return problem[rows], ends, value


def _first(problem: npt.NDArray[np.int64], value: Array) -> npt.NDArray[np.int64]:
    """Row of the lowest value of each problem, the first of equals."""
    order = np.lexsort((np.arange(len(value)), value, problem))
    return order[np.unique(problem[order], return_index=True)[1]]


def settle(terms: Terms, data: Data, shapes: Array, floor: Floor) -> Found:
    """Amplitudes, floors and objectives for shapes (P, S)."""
    phi = columns_of(terms, shapes[:, None, :, None] * data.x)
    inner = refined(phi, data, solve(phi, data, floor))
    return Found(
        shapes=shapes,
        amplitudes=physical(terms, inner.amplitudes, shapes, data.shift),
        floor=inner.floor,
        objective=(data.w * inner.residual**2).sum(axis=-1),
    )


def polished(terms: Terms, data: Data, found: Found, seeds: Array, bounds: Array, floor: Floor) -> Found:
    """The lower of what was found and of where `seeds` (P, any, S) descend to, problem by problem."""
    problem = np.repeat(np.arange(len(data)), seeds.shape[1])
    ends, value = polish(terms, data.take(problem), seeds.reshape(-1, seeds.shape[2]), bounds, floor)
    other = settle(terms, data, ends[_first(problem, value)], floor)
    better = other.objective.sum(axis=1) < found.objective.sum(axis=1)

    def lower(name: str) -> Array:
        ours, theirs = getattr(found, name), getattr(other, name)
        return np.asarray(np.where(better.reshape(-1, *([1] * (ours.ndim - 1))), theirs, ours))

    return Found(**{name: lower(name) for name in Found.__slots__})
