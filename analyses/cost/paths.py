"""Finite allocation paths: which cell of a group a growing budget picks, and how fast N and R grow along it (E.1). Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Array = npt.NDArray[np.float64]

BUDGETS = 101
"""Budgets of a path, evenly spaced in logarithms."""
PERCENTILES = (25.0, 50.0, 75.0, 90.0)
"""Percentiles (linear interpolation) of a group's cell costs that are its budgets (E.3)."""
TIE = 1e-9
Axis = Literal["N", "R", "tie"]


@dataclass(frozen=True, slots=True)
class Slopes:
    """Growth along a path: least squares slopes of log N and log R on the log budget."""

    N: float
    R: float

    @property
    def faster(self) -> Axis:
        """The axis that grows faster."""
        return faster(self.N, self.R)


def faster(n: float, r: float) -> Axis:
    """The larger of two growth rates; equal within 1e-9 is a tie."""
    return "tie" if abs(n - r) <= TIE else "N" if n > r else "R"


def supported(costs: Array) -> Array | None:
    """The budgets that every row of `costs` (cost measures x cells) supports, log-spaced; None where there is no such range.

    They run from the largest of the cheapest cells to the smallest of the dearest ones.
    """
    low, high = costs.min(axis=1).max(), costs.max(axis=1).min()
    if not 0 < low < high:
        return None
    budgets = np.geomspace(low, high, BUDGETS)
    budgets[0], budgets[-1] = low, high
    return budgets


def percentile_budgets(cost: Array) -> Array:
    """The four budgets of a group from the costs of its cells."""
    return np.asarray(np.percentile(cost, PERCENTILES), dtype=float)


def choose(cost: Array, error: Array, budgets: Array) -> npt.NDArray[np.int64]:
    """The cell of lowest error within each budget, -1 where none is; the first in cell order where several are lowest."""
    feasible = cost <= budgets[:, None]
    chosen = np.where(feasible, error, np.inf).argmin(axis=1)
    return np.where(feasible.any(axis=1), chosen, -1)


def walk(cost: Array, error: Array, n: Array, r: Array, budgets: Array) -> Slopes:
    """Growth along the cells that the budgets pick; every budget affords one."""
    chosen = choose(cost, error, budgets)
    x = np.log(budgets) - np.log(budgets).mean()
    return Slopes(*(float(x @ (y - y.mean()) / (x @ x)) for y in (np.log(n[chosen]), np.log(r[chosen]))))
