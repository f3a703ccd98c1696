"""What the hold-outs must warn of: groups that cannot be fitted without a level, and intervals that mislead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from analyses.folds import told
from analyses.notes import Note, merged
from analyses.result import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import numpy.typing as npt

    from analyses.cells import CellStudy
    from analyses.folds import Design
    from analyses.holdout.work import Job
    from analyses.result import Table

AXES = ("N", "input size", "R")
"""Axes that folds need two levels of, in the order that they are given to `obstacles`."""
UNFIT = "folds leave too few cells, one level of an axis or a constant error: not fitted"
"""What many groups have in common."""
NAMED = 4
"""Rows that a warning names."""


def without_input_size(study: CellStudy, keep: npt.NDArray[np.bool_], designs: Iterable[Design]) -> Iterator[str]:
    """Groups with cells that no fold leaves out by input size."""
    if set(designs) == {"backbone"}:
        return
    for group in range(len(study.groups)):
        members = study.groups.members(group)
        lacking = int((keep[members] & np.isnan(study.cells.input_size[members])).sum())
        if lacking:
            yield (
                f"{study.groups.name(group)}: {lacking:,} of {counted(len(members), 'cell')} "
                f"{'has' if lacking == 1 else 'have'} no input size: no fold leaves {'it' if lacking == 1 else 'them'} out by it"
            )


def unfit(study: CellStudy, group: npt.NDArray[np.int64], jobs: Sequence[Job]) -> list[str]:
    """Groups some of whose folds leave too little, and what is lacking."""
    notes = []
    numbers = np.unique(group[group >= 0]).tolist()
    for number in numbers:
        found, need = {}, {}
        for job in jobs:
            scored = job.folds.scored_by[group == number]
            name = f"{job.folds.scope} {job.folds.design} fold"
            found[name], need[name] = job.obstacles[np.unique(scored[scored >= 0]), number], job.need
        about = told(found, AXES, need)
        if about:
            notes.append(Note(study.groups.name(number) or "all cells", about, UNFIT))
    return merged(notes, len(numbers))


def off_intervals(tables: Mapping[str, Table]) -> Iterator[str]:
    """Rows whose interval does not contain the value as observed."""
    for name, value in (("rmse", "rmse"), ("differences", "difference")):
        table = tables[name]
        if f"{value}_low" not in table.names:
            continue
        off = [row for row in table.rows() if _outside(row[value], row[f"{value}_low"], row[f"{value}_high"])]
        if off:
            named = "; ".join(" ".join(row[key] for key in ("design", "exponents", "level", "law")) for row in off[:NAMED])
            more = f"; and {len(off) - NAMED:,} more" if len(off) > NAMED else ""
            yield (
                f"{name}: the interval of {counted(len(off), 'row')} does not contain the observed {value} ({named}{more}): "
                "resampled cells carry the noise of the observed ones and as much again"
            )


def _outside(value: Any, low: Any, high: Any) -> bool:
    return None not in (value, low, high) and not low <= value <= high
