"""The best floor of the 55-point grid.

A local minimum over exponents with its floor held can be improved by moving the floor towards that of a local minimum with a continuous
floor. So only the two grid values next to the continuous floor of a local minimum can be best, and each is followed with the floor held.
Where groups share exponents, the floors of all groups are chosen together by descent: the better neighbour of each group's continuous
floor at the present exponents, new exponents for these floors, and so on until nothing changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from analyses.laws.engine_polish import polish, profile
from analyses.laws.floor import GRID_VALUES

if TYPE_CHECKING:
    from analyses.laws.engine_problem import Problem
    from analyses.laws.floor import Floor

VALUES = np.array(GRID_VALUES)
ROUNDS = 30
"""Largest number of times that shared exponents are found anew."""


def on_grid(problem: Problem, fits: Any, fit: Any, rows: Any, x: Any, value: Any, floor: Floor, box: Any) -> tuple[Any, Any]:
    """Log exponents (fits, 2) and floors (fits, groups) from the local minima x (M, 2) with continuous floors.

    `fits` are consecutive; `fit` (M,), `rows` (M, groups) and `value` (M,) say what the minima belong to and what they reach, which is
    the least that their neighbourhood can reach on the grid.
    """
    groups = rows.shape[1]
    best, floors, answer = np.full(len(fits), np.inf), np.full((len(fits), groups), np.nan), np.zeros((len(fits), 2))
    below, above = _neighbours(problem, rows, x, floor)
    order = np.lexsort((value, fit))
    rank = np.empty(len(fit), dtype=np.int64)
    rank[order] = np.arange(len(fit)) - np.searchsorted(fit[order], fit[order])
    for turn in range(int(rank.max()) + 1):
        mine = np.flatnonzero((rank == turn) & (value < best[fit - fits[0]]))
        for held, reached, objective in _held(problem, rows[mine], x[mine], (below[mine], above[mine]), floor, box):
            at = fit[mine] - fits[0]
            lower = objective < best[at]
            at = at[lower]
            best[at], floors[at], answer[at] = objective[lower], held[lower], reached[lower]
    return answer, floors


def _neighbours(problem: Problem, rows: Any, x: Any, floor: Floor) -> tuple[Any, Any]:
    """Grid values on both sides of the continuous floors (twice the same where that is on the grid): (M, groups)."""
    bounds = (np.full(rows.size, bound) for bound in floor.bounds())
    e = profile(problem, rows.ravel(), np.repeat(x, rows.shape[1], axis=0), *bounds).inner.e.reshape(rows.shape)
    above = np.searchsorted(VALUES, e).clip(0, len(VALUES) - 1)
    return VALUES[np.where(VALUES[above] == e, above, (above - 1).clip(0))], VALUES[above]


def _held(problem: Problem, rows: Any, x: Any, sides: Any, floor: Floor, box: Any) -> Any:
    """Floors, log exponents and objective of what may be best."""
    if not len(rows):
        return
    if rows.shape[1] == 1:
        for held in sides:
            yield held, *polish(problem, rows, x, held, held, box)
        return
    held = _better(problem, rows, x, sides)
    for _ in range(ROUNDS):
        x, objective = polish(problem, rows, x, held, held, box)
        yield held, x, objective
        again = _better(problem, rows, x, _neighbours(problem, rows, x, floor))
        if (again == held).all():
            return
        held = again


def _better(problem: Problem, rows: Any, x: Any, sides: Any) -> Any:
    """The side on which each row's objective is lower."""
    flat, points = rows.ravel(), np.repeat(x, rows.shape[1], axis=0)
    below, above = (profile(problem, flat, points, side.ravel(), side.ravel()).value.reshape(rows.shape) for side in sides)
    return np.where(below <= above, *sides)
