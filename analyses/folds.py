"""Folds of a study's cells: what is withheld and what is scored when a backbone size, an input size or both are left out (B.5, B.6, E.3).

Levels are exact values: a backbone is a distinct N, so models of different series with the same N share it. Whether what remains has
two levels of an axis is another question, which values within 0.1% of each other do not answer (`obstacles`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from analyses.laws.determined import CONSTANT, SAME_LEVEL
from analyses.result import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy.typing as npt

Design = Literal["backbone", "input_size", "joint"]
Scope = Literal["shared", "group"]
"""Whether a fold leaves a level out of all groups (exponents shared by the groups) or out of one group (its own exponents)."""

DESIGNS: tuple[Design, ...] = ("backbone", "input_size", "joint")
SCOPES: tuple[Scope, ...] = ("shared", "group")
PLACES = 2**17
"""Folds times cells that are held at once."""
FITTED, FEW_CELLS, CONSTANT_ERROR, ONE_LEVEL = 0, 1, 2, 3
"""What keeps a fold from being fitted, of `obstacles`; one level of axis number i is ONE_LEVEL + i."""


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
    scored_by: npt.NDArray[np.int64]
    """By cell: the one fold that prediction error is measured in, -1 where there is none."""
    cell_group: npt.NDArray[np.int64]
    """By cell: its group; -1 where it takes no part."""
    cell_parameters: npt.NDArray[np.float64]
    cell_input_size: npt.NDArray[np.float64]

    def __len__(self) -> int:
        """Number of folds."""
        return len(self.group)

    def withholds(self, fold: npt.NDArray[Any], cell: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Whether the fit of a fold does not see a cell (a joint fold: the full row and column); numbers broadcast."""
        concerned = np.where(self.group[fold] < 0, self.cell_group[cell] >= 0, self.cell_group[cell] == self.group[fold])
        row, column = self.cell_parameters[cell] == self.parameters[fold], self.cell_input_size[cell] == self.input_size[fold]
        return np.asarray(concerned & (row | column))

    def scores(self, fold: npt.NDArray[Any], cell: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Whether a fold measures prediction error on a cell (a joint fold: where row and column cross); numbers broadcast."""
        return np.asarray(self.scored_by[cell] == fold)

    @property
    def withheld(self) -> npt.NDArray[np.bool_]:
        """All folds x all cells of `withholds`: large where folds are many."""
        return self.withholds(*np.ix_(np.arange(len(self)), np.arange(len(self.scored_by))))

    @property
    def scored(self) -> npt.NDArray[np.bool_]:
        """All folds x all cells of `scores`: large where folds are many."""
        return self.scores(*np.ix_(np.arange(len(self)), np.arange(len(self.scored_by))))

    def take(self, rows: npt.NDArray[Any]) -> Folds:
        """Some of the folds, given by number in ascending order or by a mask."""
        number = np.full(len(self) + 1, -1, dtype=np.int64)
        kept = np.arange(len(self))[rows]
        number[kept] = np.arange(len(kept))
        return replace(
            self,
            group=self.group[kept],
            parameters=self.parameters[kept],
            input_size=self.input_size[kept],
            scored_by=number[self.scored_by],
        )

    def blocks(self) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
        """All folds in blocks of one group, each with the cells that the group has: no more than PLACES, but one fold at least."""
        for number in np.unique(self.group).tolist():
            rows = np.flatnonzero(self.group == number)
            cells = np.flatnonzero(self.cell_group >= 0 if number < 0 else self.cell_group == number)
            for start, stop in chunks(len(rows), len(cells)):
                yield rows[start:stop], cells

    def withheld_cells(self) -> npt.NDArray[np.int64]:
        """How many cells each fold withholds."""
        count = np.zeros(len(self), dtype=np.int64)
        for rows, cells in self.blocks():
            count[rows] = self.withholds(rows[:, None], cells).sum(axis=1)
        return count


def chunks(rows: int, width: int) -> Iterator[tuple[int, int]]:
    """Starts and stops of the parts of so many rows of so many places each that are held at once."""
    size = max(PLACES // max(width, 1), 1)
    return ((start, min(start + size, rows)) for start in range(0, rows, size))


def make_folds(
    design: Design, scope: Scope, group: npt.NDArray[np.int64], parameters: npt.NDArray[np.float64], input_size: npt.NDArray[np.float64]
) -> Folds:
    """Folds over cells (one entry each in the three arrays), in the order of group, N, input size.

    A cell whose level is unknown (NaN) is in no fold of that axis; a cell of group -1 takes no part.
    """
    nothing = np.zeros(len(group))
    block = group if scope == "group" else nothing - 1
    keys = np.stack([block, parameters if design != "input_size" else nothing, input_size if design != "backbone" else nothing], axis=1)
    members = (group >= 0) & ~np.isnan(keys).any(axis=1)
    distinct, number = np.unique(keys[members], axis=0, return_inverse=True)
    found = np.asarray(distinct, dtype=np.float64)
    scored_by = np.full(len(group), -1, dtype=np.int64)
    scored_by[members] = number.ravel()
    unknown: npt.NDArray[np.float64] = np.full(len(found), np.nan)
    return Folds(
        design=design,
        scope=scope,
        group=found[:, 0].astype(np.int64),
        parameters=found[:, 1] if design != "input_size" else unknown,
        input_size=found[:, 2] if design != "backbone" else unknown,
        scored_by=scored_by,
        cell_group=group,
        cell_parameters=parameters,
        cell_input_size=input_size,
    )


def whole_groups(group: npt.NDArray[np.int64], parameters: npt.NDArray[np.float64], input_size: npt.NDArray[np.float64]) -> Folds:
    """One fold per group that withholds nothing and scores all of its cells."""
    numbers, place = np.unique(group[group >= 0], return_inverse=True)
    scored_by = np.full(len(group), -1, dtype=np.int64)
    scored_by[group >= 0] = place.ravel()
    unknown = np.full(len(numbers), np.nan)
    return Folds(
        design="joint",
        scope="group",
        group=numbers,
        parameters=unknown,
        input_size=unknown,
        scored_by=scored_by,
        cell_group=group,
        cell_parameters=parameters,
        cell_input_size=input_size,
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


def obstacles(
    folds: Folds,
    group: npt.NDArray[np.int64],
    axes: Sequence[npt.NDArray[np.float64]],
    *,
    need: int,
    error: npt.NDArray[np.float64] | None = None,
) -> npt.NDArray[np.int8]:
    """Folds x groups: what keeps a group from being fitted without the withheld cells; FITTED where nothing does.

    What remains needs `need` cells, an error that varies (if `error` is given) and two levels on each axis that the group has; values
    within SAME_LEVEL are one level, as in fits of all cells. A fold within one group does not concern the others: FEW_CELLS.
    """
    found = np.full((len(folds), group.max(initial=-1) + 1), FEW_CELLS, dtype=np.int8)
    for rows, cells in folds.blocks():
        for number in np.unique(group[cells]).tolist():
            members = cells[group[cells] == number]
            seen = ~folds.withholds(rows[:, None], members)
            what = np.full(len(rows), FITTED, dtype=np.int8)
            for place, values in reversed(list(enumerate(axes))):
                if not np.isnan(values[members]).all():
                    low, high = _range(values[members], seen)
                    what[~(high > low * (1 + SAME_LEVEL))] = ONE_LEVEL + place
            if error is not None:
                low, high = _range(error[members], seen)
                what[~(high - low >= CONSTANT)] = CONSTANT_ERROR
            what[seen.sum(axis=1) < need] = FEW_CELLS
            found[rows, number] = what
    return found


def _range(values: npt.NDArray[np.float64], seen: npt.NDArray[np.bool_]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Smallest and largest known value that each fold sees; infinities the wrong way round where there is none."""
    used = seen & ~np.isnan(values)
    return np.where(used, values, np.inf).min(axis=1, initial=np.inf), np.where(used, values, -np.inf).max(axis=1, initial=-np.inf)


def fitted_groups(
    folds: Folds,
    group: npt.NDArray[np.int64],
    axes: Sequence[npt.NDArray[np.float64]],
    *,
    need: int,
    error: npt.NDArray[np.float64] | None = None,
) -> npt.NDArray[np.bool_]:
    """Folds x groups: whether nothing keeps a fold's group from being fitted (`obstacles`)."""
    return np.asarray(obstacles(folds, group, axes, need=need, error=error) == FITTED)


def told(found: Mapping[str, npt.NDArray[np.int8]], axes: Sequence[str], need: Mapping[str, int]) -> str:
    """Which folds of a group cannot be fitted, and why; empty where all can.

    `found` are obstacles by what the folds are called, such as "joint fold"; `need` are the cells that those need.
    """
    lost = {name: int((some != FITTED).sum()) for name, some in found.items()}
    if not any(lost.values()):
        return ""
    if all(count == len(found[name]) for name, count in lost.items()):
        needs = {need[name] for name, count in lost.items() if count}
        return f"no fit: {described(np.concatenate(list(found.values())), axes, needs.pop() if len(needs) == 1 else None)}"
    return "not fitted: " + ", ".join(
        f"{count:,} of {counted(len(found[name]), name)} ({described(found[name], axes, need[name])})"
        for name, count in lost.items()
        if count
    )


def described(found: npt.NDArray[np.int8], axes: Sequence[str], need: int | None) -> str:
    """The obstacles of some folds in words, the commonest first; empty where there is none."""
    words = {FEW_CELLS: "too few cells" if need is None else f"fewer than {need} cells", CONSTANT_ERROR: "the error is constant"}
    words |= {ONE_LEVEL + place: f"one level of {axis}" for place, axis in enumerate(axes)}
    codes, counts = np.unique(found[found != FITTED], return_counts=True)
    return ", ".join(words[code] for code in codes[np.argsort(-counts, kind="stable")].tolist())
