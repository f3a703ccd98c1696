"""Folds of a study's cells: what is withheld and what is scored when a backbone size, an input size or both are left out (B.5, B.6, E.3).

Levels are exact values: a backbone is a distinct N, so models of different series with the same N share it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

Design = Literal["backbone", "input_size", "joint"]
Scope = Literal["shared", "group"]
"""Whether a fold leaves a level out of all groups (exponents shared by the groups) or out of one group (its own exponents)."""

DESIGNS: tuple[Design, ...] = ("backbone", "input_size", "joint")
SCOPES: tuple[Scope, ...] = ("shared", "group")


@dataclass(frozen=True, slots=True, kw_only=True)
class Folds:
    """The folds of a design, by group, N and input size."""

    design: Design
    scope: Scope
    group: npt.NDArray[np.int64]
    """Group of each fold; -1 where it spans all groups."""
    parameters: npt.NDArray[np.float64]
    """The N that is left out, in the unit of the cells; NaN where the design leaves none out."""
    input_size: npt.NDArray[np.float64]
    """The input size that is left out, px; NaN where the design leaves none out."""
    withheld: npt.NDArray[np.bool_]
    """Folds x cells: cells that the fit does not see (a joint fold: the full row and column)."""
    scored: npt.NDArray[np.bool_]
    """Folds x cells: withheld cells that prediction error is measured on (a joint fold: where row and column cross).

    A cell is scored by at most one fold.
    """

    def __len__(self) -> int:
        """Number of folds."""
        return len(self.group)

    def take(self, rows: npt.NDArray[Any]) -> Folds:
        """Some of the folds."""
        return Folds(
            design=self.design,
            scope=self.scope,
            group=self.group[rows],
            parameters=self.parameters[rows],
            input_size=self.input_size[rows],
            withheld=self.withheld[rows],
            scored=self.scored[rows],
        )


def make_folds(
    design: Design, scope: Scope, group: npt.NDArray[np.int64], parameters: npt.NDArray[np.float64], input_size: npt.NDArray[np.float64]
) -> Folds:
    """Folds over cells (one entry each in the three arrays).

    A cell whose level is unknown (NaN) is in no fold of that axis; a cell of group -1 takes no part.
    """
    blocks = [(-1, group >= 0)] if scope == "shared" else [(number, group == number) for number in range(group.max(initial=-1) + 1)]
    found: list[tuple[int, float, float, npt.NDArray[np.bool_], npt.NDArray[np.bool_]]] = []
    for number, members in blocks:
        rows = [(level, members & (parameters == level)) for level in levels(parameters[members])]
        columns = [(level, members & (input_size == level)) for level in levels(input_size[members])]
        if design == "backbone":
            found += [(number, level, np.nan, row, row) for level, row in rows]
        elif design == "input_size":
            found += [(number, np.nan, level, column, column) for level, column in columns]
        else:
            found += [(number, n, size, row | column, row & column) for n, row in rows for size, column in columns if (row & column).any()]
    shape = (len(found), len(group))
    return Folds(
        design=design,
        scope=scope,
        group=np.array([fold[0] for fold in found], dtype=np.int64),
        parameters=np.array([fold[1] for fold in found], dtype=float),
        input_size=np.array([fold[2] for fold in found], dtype=float),
        withheld=np.array([fold[3] for fold in found], dtype=bool).reshape(shape),
        scored=np.array([fold[4] for fold in found], dtype=bool).reshape(shape),
    )


def levels(values: npt.NDArray[np.float64]) -> list[float]:
    """Distinct values in ascending order, without NaN."""
    distinct: list[float] = np.unique(values[~np.isnan(values)]).tolist()
    return distinct


def interior(
    design: Design, group: npt.NDArray[np.int64], parameters: npt.NDArray[np.float64], input_size: npt.NDArray[np.float64]
) -> npt.NDArray[np.bool_]:
    """Which cells lie strictly between the smallest and the largest level of their group (joint: on both axes)."""
    by_axis = {"backbone": (parameters,), "input_size": (input_size,), "joint": (parameters, input_size)}
    inside = group >= 0
    for values in by_axis[design]:
        for number in range(group.max(initial=-1) + 1):
            members = group == number
            known = levels(values[members])
            inside[members] &= (values[members] > known[0]) & (values[members] < known[-1]) if known else False
    return inside


def fitted_groups(
    folds: Folds, group: npt.NDArray[np.int64], axes: tuple[npt.NDArray[np.float64], ...], *, need: int
) -> npt.NDArray[np.bool_]:
    """Folds x groups: whether a fold leaves a group enough to be fitted, `need` cells and two levels on each axis that it has.

    Of a fold within one group, the other groups are False: it does not concern them.
    """
    ready = np.zeros((len(folds), group.max(initial=-1) + 1), dtype=bool)
    for number in range(ready.shape[1]):
        members = np.flatnonzero(group == number)
        known = [values[members] for values in axes if not np.isnan(values[members]).all()]
        for fold in np.flatnonzero((folds.group == number) | (folds.group == -1)):
            seen = ~folds.withheld[fold, members]
            ready[fold, number] = seen.sum() >= need and all(len(levels(values[seen])) > 1 for values in known)
    return ready
