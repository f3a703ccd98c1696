"""The objective over a coarse grid of exponents, and the local minima to start from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from analyses.laws.inner import CONSTANT, Sums, solve, solve_at

if TYPE_CHECKING:
    import numpy.typing as npt

    from analyses.laws.axes import Axis
    from analyses.laws.engine_problem import Problem

STEP = 0.18
"""Largest distance of grid points in log exponent."""
TOGETHER = 12
"""Surfaces that are computed together: their arrays stay in the cache."""
MINIMA = 6
"""Local minima of one surface that are followed up."""


def grid_of(box: tuple[float, float]) -> npt.NDArray[np.float64]:
    """Exponents of the coarse grid, both bounds included."""
    low, high = np.log(box)
    return np.exp(np.linspace(low, high, int(np.ceil((high - low) / STEP)) + 1)).clip(*box)


class Surface:
    """Objective at each point of a grid of exponents."""

    def __init__(self, problem: Problem, alpha: npt.NDArray[np.float64], beta: npt.NDArray[np.float64], low: float, high: float) -> None:
        """`alpha` and `beta` are the grid, `low` and `high` the bounds of the floor."""
        self.problem, self.alpha, self.beta, self.low, self.high = problem, alpha, beta, low, high
        self._kept: dict[str, Any] = {}

    def starts(self, fits: npt.NDArray[np.int64], groups: int, floors: Any = None) -> tuple[Any, Any]:
        """Local minima of fits, each the sum of its `groups` rows, maybe with `floors` (fits, groups) held: place in `fits` and log exponents."""
        found, size = [], max(1, TOGETHER // groups)
        for at in range(0, len(fits), size):
            rows = (fits[at : at + size, None] * groups + np.arange(groups)).ravel()
            values = self(rows, None if floors is None else floors[at : at + size].ravel())
            fit, i, j = minima(values if groups == 1 else values.reshape(-1, groups, *values.shape[1:]).sum(axis=1))
            found.append((fit + at, i, j))
        fit, i, j = (np.concatenate(part) for part in zip(*found, strict=True))
        return fit, np.log(np.stack([self.alpha[i], self.beta[j]], axis=1))

    def __call__(self, rows: npt.NDArray[np.int64], floors: Any = None) -> npt.NDArray[np.float64]:
        """Objective of some rows, maybe with floors held: (rows, alpha, beta)."""
        problem = self.problem
        u, uw, mu, uu = self._side("n", problem.n, self.alpha, rows)
        v, _, mv, vv = self._side("r", problem.r, self.beta, rows)
        y = problem.y[rows, :, None]
        wy = problem.weights(rows)[:, :, None] * y
        sums = Sums(
            problem.total[rows, None, None],
            mu[:, :, None],
            mv[:, None, :],
            problem.mean[rows, None, None],
            uu[:, :, None],
            vv[:, None, :],
            self._cross(uw, v),
            u @ wy,
            np.swapaxes(v @ wy, 1, 2),
            problem.yy[rows, None, None],
        )
        inner = solve(sums, self.low, self.high) if floors is None else solve_at(sums, floors[:, None, None])
        return np.asarray(inner.sse)

    def _side(self, name: str, axis: Axis, exponents: npt.NDArray[np.float64], rows: npt.NDArray[np.int64]) -> Any:
        """Columns of one axis, centred and weighted, their means and sums of squares."""
        shared = axis.shared and len(self.problem.w) == 1
        if shared and name in self._kept:
            return self._kept[name]
        columns, w = axis.grid(rows, exponents), self.problem.weights(rows)
        total = self.problem.total[:1] if shared else self.problem.total[rows]
        mean = (columns @ w[:, :, None])[:, :, 0] / np.where(total > 0, total, 1.0)[:, None]
        columns = columns - mean[:, :, None]
        weighted = columns * w[:, None, :]
        squares = np.einsum("fgc,fgc->fg", columns, weighted)
        squares = np.where(squares > CONSTANT * total[:, None] * mean**2, squares, 0.0)
        made = columns, weighted, mean, squares
        if shared:
            self._kept[name] = made
        return made

    def _cross(self, u: npt.NDArray[np.float64], v: npt.NDArray[np.float64]) -> Any:
        if len(u) > 1 or len(v) > 1:
            return u @ np.swapaxes(v, 1, 2)
        if "cross" not in self._kept:
            self._kept["cross"] = u @ np.swapaxes(v, 1, 2)
        return self._kept["cross"]


def minima(surface: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Fit, alpha and beta places of the lowest local minima of surfaces (fits, alpha, beta), at most `MINIMA` of each fit.

    A point is a minimum if none of its eight neighbours is lower; of equal neighbours the first is it.
    """
    lowest = np.ones(surface.shape, dtype=bool)
    ahead, behind, whole = slice(1, None), slice(None, -1), slice(None)
    for later, earlier in (
        ((ahead, whole), (behind, whole)),
        ((whole, ahead), (whole, behind)),
        ((ahead, ahead), (behind, behind)),
        ((ahead, behind), (behind, ahead)),
    ):
        falls = surface[:, *later] < surface[:, *earlier]
        lowest[:, *later] &= falls
        lowest[:, *earlier] &= ~falls
    fit, i, j = np.nonzero(lowest)
    order = np.lexsort((surface[fit, i, j], fit))
    fit, i, j = fit[order], i[order], j[order]
    rank = np.arange(len(fit)) - np.searchsorted(fit, fit)
    keep = rank < MINIMA
    return fit[keep], i[keep], j[keep]
