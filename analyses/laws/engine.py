"""Global search for the exponents of the separable law, for many fits at once.

For given exponents the floor and the amplitudes are exact (`inner`). Over the box of log exponents the objective is first computed on a
coarse grid (`engine_surface`), every local minimum of the grid is then followed to convergence (`engine_polish`), and the lowest is taken.
With a floor on the grid the same is done with a continuous floor first: as the profile over e falls towards a local minimum from both sides, only the
two floors next to the e of a local minimum can be best, so that each is followed with its floor held.

A fit's digits do not depend on the other fits in the call. An exponent whose amplitude is 0 has no effect; it is returned as the
geometric middle of its box.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from analyses.laws import paper
from analyses.laws.engine_polish import polish, profile
from analyses.laws.engine_problem import Problem
from analyses.laws.engine_surface import Surface, grid_of, minima
from analyses.laws.floor import GRID_VALUES

if TYPE_CHECKING:
    import numpy.typing as npt

    from analyses.laws.floor import Floor

NAMES = ("e", "a", "alpha", "b", "beta", "objective")
CHUNK = 256
"""Fits whose starts are polished together."""
SURFACES = 12
"""Surfaces that are computed together: their arrays stay in the cache."""


def fit_many(
    n: Any,
    r: Any,
    y: npt.ArrayLike,
    w: npt.ArrayLike | None,
    *,
    alpha: tuple[float, float],
    beta: tuple[float, float],
    floor: Floor,
    optimizer: str = "global",
) -> dict[str, npt.NDArray[np.float64]]:
    """e, a, alpha, b, beta and objective of each fit, arrays (fits,).

    n, r, y and w have the shape (cells,) or (fits, cells); n and r may be a `MomentAxis`; a cell of weight 0 is left out, and a fit
    without any weight has NaN parameters and objective 0. ValueError that names the array for values that are not finite (n, r: not positive).
    """
    problem = Problem.of(n, r, y, w)
    search = Search(problem, alpha, beta, floor)
    x, e = paper.search(problem, search.box, floor) if optimizer == "paper" else search.run()
    pieces = [np.arange(at, min(at + CHUNK, len(problem))) for at in range(0, len(problem), CHUNK)]
    answers = [search.answer(rows, x[rows], e[rows]) for rows in pieces]
    return {name: np.concatenate([answer[name] for answer in answers]) for name in NAMES}


class Search:
    """One call of the engine."""

    def __init__(self, problem: Problem, alpha: tuple[float, float], beta: tuple[float, float], floor: Floor) -> None:
        """`alpha` and `beta` are the box; low == high holds an exponent."""
        for name, (low, high) in (("alpha", alpha), ("beta", beta)):
            if not 0 < low <= high < np.inf:
                message = f"bounds of {name} must be positive, finite and in order, not {low}, {high}"
                raise ValueError(message)
        self.problem, self.floor = problem, floor
        self.grids = grid_of(alpha), grid_of(beta)
        self.box = np.log([alpha, beta]).T
        self.edges = np.array([alpha, beta]).T
        self.surface = Surface(problem, *self.grids, *floor.bounds())

    def run(self) -> tuple[Any, Any]:
        """Log exponents (F, 2) and floor (F,; NaN where the floor is not held) of each fit."""
        parts = [self._chunk(np.arange(at, min(at + CHUNK, len(self.problem)))) for at in range(0, len(self.problem), CHUNK)]
        return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])

    def _chunk(self, fits: npt.NDArray[np.int64]) -> tuple[Any, Any]:
        rows, x = self._starts(fits)
        low, high = (np.full(len(rows), bound) for bound in self.floor.bounds())
        x, value = polish(self.problem, rows, x, low, high, self.box)
        if self.floor.kind != "grid":
            return x[_lowest(rows - fits[0], value, len(fits))], np.full(len(fits), np.nan)
        return self._on_grid(fits, rows, x, value)

    def _starts(self, fits: npt.NDArray[np.int64]) -> tuple[Any, Any]:
        """Local minima of the coarse surfaces: fit and log exponents."""
        found = []
        for at in range(fits[0], fits[-1] + 1, SURFACES):
            rows, i, j = minima(self.surface(slice(at, min(at + SURFACES, fits[-1] + 1))))
            found.append((rows + at, i, j))
        rows, i, j = (np.concatenate(part) for part in zip(*found, strict=True))
        return rows, np.log(np.stack([self.grids[0][i], self.grids[1][j]], axis=1))

    def _on_grid(self, fits: Any, rows: Any, x: Any, value: Any) -> tuple[Any, Any]:
        """The best floor of the grid for each fit, from the local minima with a continuous floor."""
        values = np.array(GRID_VALUES)
        best, floors, answer = np.full(len(fits), np.inf), np.full(len(fits), np.nan), np.zeros((len(fits), 2))
        bounds = np.full(len(rows), self.floor.low), np.full(len(rows), self.floor.high)
        e = profile(self.problem, rows, x, *bounds).inner.e if len(rows) else np.zeros(0)
        order = np.lexsort((value, rows))
        rank = np.empty(len(rows), dtype=np.int64)
        rank[order] = np.arange(len(rows)) - np.searchsorted(rows[order], rows[order])
        for turn in range(int(rank.max()) + 1):
            mine = np.flatnonzero((rank == turn) & (value < best[rows - fits[0]]))
            above = np.searchsorted(values, e[mine]).clip(0, len(values) - 1)
            for place in (above, np.where(values[above] == e[mine], above, (above - 1).clip(0))):
                one = values[place]
                reached, objective = polish(self.problem, rows[mine], x[mine], one, one, self.box)
                at = rows[mine] - fits[0]
                lower = objective < best[at]
                at = at[lower]
                best[at], floors[at], answer[at] = objective[lower], one[lower], reached[lower]
        return answer, floors

    def answer(self, rows: npt.NDArray[np.int64], x: Any, e: Any) -> dict[str, npt.NDArray[np.float64]]:
        """Parameters and objective of some fits at their log exponents; the objective comes from the residuals."""
        problem = self.problem
        low, high = (np.where(np.isnan(e), bound, e) for bound in self.floor.bounds())
        inner = profile(problem, rows, x, low, high).inner
        alpha, beta = np.clip(np.exp(x), *self.edges).T
        u, v = problem.n.columns(rows, alpha)[0], problem.r.columns(rows, beta)[0]
        residual = problem.y[rows] + (problem.mean[rows] - inner.e)[:, None] - inner.a[:, None] * u - inner.b[:, None] * v
        objective = (residual**2 * problem.weights(rows)).sum(axis=1)
        middle = np.sqrt(self.edges[0] * self.edges[1])
        alpha = np.where((inner.a == 0) | problem.n.single[rows], middle[0], alpha)
        beta = np.where((inner.b == 0) | problem.r.single[rows], middle[1], beta)
        a, b = inner.a * np.exp(alpha * problem.n.unit[rows]), inner.b * np.exp(beta * problem.r.unit[rows])
        empty = problem.total[rows] == 0
        return {
            name: np.where(empty, 0.0 if name == "objective" else np.nan, value)
            for name, value in zip(NAMES, (inner.e, a, alpha, b, beta, objective), strict=True)
        }


def _lowest(rows: Any, value: Any, fits: int) -> Any:
    """Place of the lowest value of each fit (the first of equal ones)."""
    order = np.lexsort((np.arange(len(rows)), value, rows))
    return order[np.searchsorted(rows[order], np.arange(fits))]
