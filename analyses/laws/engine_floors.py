"""The best floor of the 55-point grid.

A local minimum over exponents with its floor held can be improved by moving the floor towards that of a local minimum with a continuous
floor. So only the two grid values next to the continuous floor of a local minimum can be best, and each is followed with the floor held.
With a floor held there may be a further minimum elsewhere: the coarse grid of exponents is looked at again.
Where groups share exponents, the floors of all groups are chosen together by descent: the better neighbour of each group's continuous
floor at the present exponents, new exponents for these floors, and so on until nothing changes. That may miss the optimum by some 1e-4
of the objective; what groups do not share is exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from analyses.laws.engine_polish import polish, profile
from analyses.laws.engine_surface import STEP
from analyses.laws.floor import GRID_VALUES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from analyses.laws.engine_surface import Surface
    from analyses.laws.floor import Floor

VALUES = np.array(GRID_VALUES)
ROUNDS = 30
"""Largest number of times that shared exponents are found anew."""
NEAR = 1.5 * STEP
"""Coarse minima as near as this to where a search ended already (log exponents) are not followed."""


@dataclass(slots=True)
class _Best:
    """The best of each fit so far: objective (fits,), floors (fits, groups) and log exponents (fits, 2)."""

    objective: Any
    floors: Any
    x: Any

    def improve(self, at: Any, floors: Any, x: Any, objective: Any) -> None:
        """Take what is lower; `at` may name a fit more than once."""
        order = np.lexsort((objective, at))
        first = order[np.unique(at[order], return_index=True)[1]]
        lower = first[objective[first] < self.objective[at[first]]]
        self.objective[at[lower]], self.floors[at[lower]], self.x[at[lower]] = objective[lower], floors[lower], x[lower]


@dataclass(frozen=True, slots=True)
class GridFloors:
    """The search for floors on the grid."""

    surface: Surface
    floor: Floor
    box: Any
    """Bounds of the log exponents, lower and upper."""
    groups: int

    def __call__(self, fits: Any, fit: Any, x: Any, value: Any) -> tuple[Any, Any]:
        """Log exponents (fits, 2) and floors (fits, groups) from the local minima x (M, 2) with continuous floors.

        `fits` are consecutive; `fit` (M,) and `value` (M,) say what the minima belong to and what they reach, which is the least that
        their neighbourhood can reach on the grid.
        """
        best = _Best(np.full(len(fits), np.inf), np.full((len(fits), self.groups), np.nan), np.zeros((len(fits), 2)))
        sides = self._neighbours(fit, x)
        order = np.lexsort((value, fit))
        rank = np.empty(len(fit), dtype=np.int64)
        rank[order] = np.arange(len(fit)) - np.searchsorted(fit[order], fit[order])
        for turn in range(int(rank.max()) + 1):
            mine = np.flatnonzero((rank == turn) & (value < best.objective[fit - fits[0]]))
            for which, floors, ends, objective in self._followed(fit[mine], x[mine], (sides[0][mine], sides[1][mine])):
                best.improve(fit[mine[which]] - fits[0], floors, ends, objective)
                if turn == 0 and self.groups == 1:
                    self._elsewhere(best, fits[0], fit[mine[which]], floors, ends)
        return best.x, best.floors

    def _neighbours(self, fit: Any, x: Any) -> tuple[Any, Any]:
        """Grid values on both sides of the continuous floors (twice the same where that is on the grid): (M, groups)."""
        e = self._inner(fit, x, *(np.full((len(fit), self.groups), bound) for bound in self.floor.bounds())).e.reshape(-1, self.groups)
        above = np.searchsorted(VALUES, e).clip(0, len(VALUES) - 1)
        return VALUES[np.where(VALUES[above] == e, above, (above - 1).clip(0))], VALUES[above]

    def _followed(self, fit: Any, x: Any, sides: Any) -> Iterator[tuple[Any, Any, Any, Any]]:
        """What may be best: which of the minima, their floors, log exponents and objective."""
        which = np.arange(len(fit))
        if self.groups == 1:
            yield which, sides[0], *self._polish(fit, x, sides[0])
            which = which[(sides[0] != sides[1])[:, 0]]
            yield which, sides[1][which], *self._polish(fit[which], x[which], sides[1][which])
            return
        floors = self._better(fit, x, sides)
        for _ in range(ROUNDS):
            x, objective = self._polish(fit, x, floors)
            yield which, floors, x, objective
            again = self._better(fit, x, self._neighbours(fit, x))
            changed = (again != floors).any(axis=1)
            which, fit, x, floors = which[changed], fit[changed], x[changed], again[changed]

    def _elsewhere(self, best: _Best, first: int, fit: Any, floors: Any, ends: Any) -> None:
        """Follow the other coarse minima of single groups with these floors held, where they are inside their bounds."""
        inside = np.flatnonzero(((floors > self.floor.low) & (floors < self.floor.high))[:, 0])
        if not len(inside):
            return
        place, x = self.surface.starts(fit[inside], 1, floors[inside])
        place = inside[place]
        far = (np.abs(x - ends[place]) > NEAR).any(axis=1)
        place, x = place[far], x[far]
        best.improve(fit[place] - first, floors[place], *self._polish(fit[place], x, floors[place]))

    def _better(self, fit: Any, x: Any, sides: Any) -> Any:
        """The side on which each group's objective is lower."""
        below, above = (self._inner(fit, x, side, side).sse.reshape(-1, self.groups) for side in sides)
        return np.where(below <= above, *sides)

    def _polish(self, fit: Any, x: Any, floors: Any) -> tuple[Any, Any]:
        return polish(self.surface.problem, self._rows(fit), x, floors, floors, self.box)

    def _inner(self, fit: Any, x: Any, low: Any, high: Any) -> Any:
        points = np.repeat(x, self.groups, axis=0)
        return profile(self.surface.problem, self._rows(fit).ravel(), points, low.ravel(), high.ravel()).inner

    def _rows(self, fit: Any) -> Any:
        """Rows of the problem that belong to fits."""
        return fit[:, None] * self.groups + np.arange(self.groups)
