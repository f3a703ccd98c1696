"""Global search for the exponents of the separable law, for many fits at once.

For given exponents the floor and the amplitudes are exact (`inner`). Over the box of log exponents the objective is first computed on a
coarse grid (`engine_surface`), every local minimum of the grid is then followed to convergence (`engine_polish`), and the lowest is taken.
Where an amplitude ends at 0 its exponent has no effect, and a better one may lie across that plateau: its whole range is looked at again.
Floors on the grid: `engine_floors`. Exponents that groups share minimise the sum of the groups' objectives, the rest is the same.

A fit's digits do not depend on the other fits in the call. An exponent whose amplitude is 0, or whose axis has one value only, is
returned as the geometric middle of its box. An amplitude that is no float on the given axes is NaN.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from analyses.laws import paper
from analyses.laws.engine_floors import GridFloors
from analyses.laws.engine_polish import polish, profile
from analyses.laws.engine_problem import Problem
from analyses.laws.engine_surface import Surface, grid_of
from analyses.laws.limits import checked
from analyses.laws.terms import scaled

if TYPE_CHECKING:
    import numpy.typing as npt

    from analyses.laws.axes import MomentAxis
    from analyses.laws.floor import Floor

    Values = npt.ArrayLike | MomentAxis
    Box = tuple[float, float]

NAMES = ("e", "a", "alpha", "b", "beta", "objective")
CHUNK = 512
"""Fits whose starts are polished together."""


def fit_many(
    n: Values, r: Values, y: npt.ArrayLike, w: npt.ArrayLike | None, *, alpha: Box, beta: Box, floor: Floor, optimizer: str = "global"
) -> dict[str, npt.NDArray[np.float64]]:
    """e, a, alpha, b, beta and objective of each fit, arrays (fits,).

    n, r, y and w have the shape (cells,) or (fits, cells); n and r may be a `MomentAxis`; a cell of weight 0 is left out, and a fit
    without any weight has NaN parameters and objective 0. ValueError that names the array for values that are not finite (n, r: not positive).
    """
    search = Search(Problem.of(n, r, y, w), alpha, beta, floor)
    x, e = paper.search(search.problem, search.box, floor) if optimizer == "paper" else search.run()
    return search.answer(x, e)


def fit_shared_many(
    n: Values, r: Values, y: npt.ArrayLike, w: npt.ArrayLike | None, *, alpha: Box, beta: Box, floor: Floor
) -> dict[str, npt.NDArray[np.float64]]:
    """e, a, alpha, b, beta and objective of each group, arrays (fits, groups), alpha and beta the same for all groups of a fit.

    y has the shape (fits, groups, cells), and n, r and w broadcast to it; a group without any weight takes no part and has NaN for e, a, b.
    ValueError as in `fit_many`.
    """
    target = np.asarray(y, dtype=float)
    fits, groups, cells = target.shape
    if not fits * groups:
        return {name: np.zeros((fits, groups)) for name in NAMES}
    flat = [None if one is None else np.broadcast_to(np.asarray(one, dtype=float), target.shape).reshape(-1, cells) for one in (n, r, w)]
    search = Search(Problem.of(flat[0], flat[1], target.reshape(-1, cells), flat[2], groups), alpha, beta, floor, groups)
    found = search.answer(*search.run())
    return {name: values.reshape(fits, groups) for name, values in found.items()}


class Search:
    """One call of the engine."""

    def __init__(self, problem: Problem, alpha: Box, beta: Box, floor: Floor, groups: int = 1) -> None:
        """`alpha` and `beta` are the box (low == high holds an exponent); each `groups` rows of the problem share their exponents."""
        checked(alpha=alpha, beta=beta)
        self.problem, self.floor, self.groups = problem, floor, groups
        self.grids = grid_of(alpha), grid_of(beta)
        self.box = np.log([alpha, beta]).T
        self.edges = np.array([alpha, beta]).T
        self.surface = Surface(problem, *self.grids, *floor.bounds())

    def run(self) -> tuple[Any, Any]:
        """Log exponents (fits, 2) and floors (fits, groups; NaN where the floor is not held)."""
        fits, size = len(self.problem) // self.groups, max(1, CHUNK // self.groups)
        if not fits:
            return np.zeros((0, 2)), np.zeros((0, self.groups))
        parts = [self._chunk(np.arange(at, min(at + size, fits))) for at in range(0, fits, size)]
        return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])

    def _chunk(self, fits: npt.NDArray[np.int64]) -> tuple[Any, Any]:
        fit, x = self.surface.starts(fits, self.groups)
        fit = fits[fit]
        x, value = self._follow(fit, x)
        fit, x, value = self._across(fits, fit, x, value)
        if self.floor.kind == "grid":
            return GridFloors(self.surface, self.floor, self.box, self.groups)(fits, fit, x, value)
        return x[lowest(fit - fits[0], value, len(fits))], np.full((len(fits), self.groups), np.nan)

    def _across(self, fits: Any, fit: Any, x: Any, value: Any) -> tuple[Any, Any, Any]:
        """Add what lies across the plateau of each fit whose best minimum has an amplitude of 0."""
        best = lowest(fit - fits[0], value, len(fits))
        inner = self._inner(fit[best], x[best])
        found = [(fit, x, value)]
        for axis, amplitude in enumerate((inner.a, inner.b)):
            flat = best[(amplitude.reshape(-1, self.groups) == 0).all(axis=1)]
            grid = np.log(self.grids[axis])
            if not len(flat) or len(grid) == 1:
                continue
            tried = np.repeat(x[flat], len(grid), axis=0)
            tried[:, axis] = np.tile(grid, len(flat))
            values = self._inner(np.repeat(fit[flat], len(grid)), tried).sse.reshape(-1, self.groups).sum(axis=1)
            place = values.reshape(-1, len(grid)).argmin(axis=1) + len(grid) * np.arange(len(flat))
            lower = values[place] < value[flat] * (1 - 1e-9)
            if lower.any():
                found.append((fit[flat[lower]], *self._follow(fit[flat[lower]], tried[place[lower]])))
        return tuple(np.concatenate(part) for part in zip(*found, strict=True))  # type: ignore[return-value]

    def _follow(self, fit: Any, x: Any) -> tuple[Any, Any]:
        rows = self._rows(fit)
        low, high = (np.full(rows.shape, bound) for bound in self.floor.bounds())
        return polish(self.problem, rows, x, low, high, self.box)

    def _rows(self, fit: Any) -> Any:
        """Rows of the problem that belong to fits: (fits, groups)."""
        return np.asarray(fit)[:, None] * self.groups + np.arange(self.groups)

    def _inner(self, fit: Any, x: Any) -> Any:
        low, high = (np.full(len(fit) * self.groups, bound) for bound in self.floor.bounds())
        return profile(self.problem, self._rows(fit).ravel(), np.repeat(x, self.groups, axis=0), low, high).inner

    def answer(self, x: Any, e: Any) -> dict[str, npt.NDArray[np.float64]]:
        """Parameters and objective (from the residuals) of each row, by its fit's log exponents and its floor if that is held."""
        rows, x, e = np.arange(len(self.problem)), np.repeat(x, self.groups, axis=0), np.ravel(e)
        size = max(1, CHUNK // self.groups) * self.groups
        parts = [self._answer(*(one[at : at + size] for one in (rows, x, e))) for at in range(0, max(len(rows), 1), size)]
        return {name: np.concatenate([part[name] for part in parts]) for name in NAMES}

    def _answer(self, rows: Any, x: Any, e: Any) -> dict[str, npt.NDArray[np.float64]]:
        problem = self.problem
        low, high = (np.where(np.isnan(e), bound, e) for bound in self.floor.bounds())
        inner = profile(problem, rows, x, low, high).inner
        alpha, beta = np.clip(np.exp(x), *self.edges).T
        u, v = problem.n.columns(rows, alpha)[0], problem.r.columns(rows, beta)[0]
        residual = problem.y[rows] + (problem.mean[rows] - inner.e)[:, None] - inner.a[:, None] * u - inner.b[:, None] * v
        with np.errstate(over="ignore"):
            objective = (residual**2 * problem.weights(rows)).sum(axis=1) * problem.unit[rows]
        empty = problem.total[rows] == 0
        middle = np.sqrt(self.edges[0] * self.edges[1])
        alpha = np.where(self._all((inner.a == 0) | problem.n.single[rows] | empty), middle[0], alpha)
        beta = np.where(self._all((inner.b == 0) | problem.r.single[rows] | empty), middle[1], beta)
        a, b = scaled(inner.a, alpha * problem.n.unit[rows]), scaled(inner.b, beta * problem.r.unit[rows])
        unfitted = {"e": empty, "a": empty, "b": empty, "alpha": self._all(empty), "beta": self._all(empty)}
        values = dict(zip(NAMES, (inner.e, a, alpha, b, beta, objective), strict=True))
        return {
            name: np.where(unfitted[name], np.nan, value) if name in unfitted else np.where(empty, 0.0, value)
            for name, value in values.items()
        }

    def _all(self, flags: Any) -> Any:
        """For each row whether it holds for all groups of its fit."""
        return np.repeat(flags.reshape(-1, self.groups).all(axis=1), self.groups)


def lowest(fit: Any, value: Any, fits: int) -> Any:
    """Place of the lowest value of each fit 0, 1, ... (the first of equal ones)."""
    order = np.lexsort((np.arange(len(fit)), value, fit))
    return order[np.searchsorted(fit[order], np.arange(fits))]
