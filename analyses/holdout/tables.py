"""Tables of the hold-outs, as Tables 11 and 14 of the separable-law paper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from analyses.holdout.fits import LEVELS, accuracy
from analyses.result import Column, Table

if TYPE_CHECKING:
    import numpy.typing as npt

    from analyses.cells import CellStudy
    from analyses.holdout.fits import Accuracy, LawName
    from analyses.holdout.work import Job

REFERENCE = "separable"
POINTS = 100.0
INTERVAL = (2.5, 97.5)
DESIGN = Column(
    "design", "what a fold leaves out: a backbone size, an input size, or joint: a row and a column, of which the crossing is scored"
)
EXPONENTS = Column("exponents", "shared: of all groups, folds leave a level out of all of them; group: each group by itself")
LEVEL = Column("level", "interior: strictly between the smallest and largest level of the group; endpoint: the others; all")


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What the folds gave."""

    laws: tuple[LawName, ...]
    jobs: list[Job]
    error: npt.NDArray[np.float64]
    """Of each cell, as observed."""
    predicted: npt.NDArray[np.float64]
    """Jobs x laws x cells; NaN where no fold predicts the cell."""
    resampled: npt.NDArray[np.float64] | None
    """RMSE of replicates x jobs x laws x LEVELS."""
    varied: npt.NDArray[np.bool_] | None = None
    """By cell, where there are replicates: whether it has answers of more than one cluster, so that resamples differ."""

    def interval(self, draws: npt.NDArray[np.float64], job: int, level: str) -> tuple[float, float]:
        """95% percentile interval of draws that are known; NaN where none is, and where no cell of the level varies over resamples."""
        known = draws[np.isfinite(draws)]
        cells = self.jobs[job].predicted & members_of(self.jobs[job], level)
        varies = self.varied is not None and bool((cells & self.varied).any())
        low, high = np.percentile(known, INTERVAL) if varies and len(known) else (np.nan, np.nan)
        return float(low), float(high)

    def accuracy(self, job: int) -> Accuracy:
        """Of the laws (in place of replicates) on the cells as observed."""
        return accuracy(np.broadcast_to(self.error, self.predicted[job].shape), self.predicted[job], self.jobs[job].inside)


def members_of(job: Job, level: str) -> npt.NDArray[np.bool_]:
    """Cells of a level."""
    return {"all": np.ones_like(job.inside), "interior": job.inside, "endpoint": ~job.inside}[level]


def rmse_table(study: CellStudy, found: Found) -> Table:
    """RMSE of each law, design and level."""
    del study
    rows: list[dict[str, Any]] = []
    for j, job in enumerate(found.jobs):
        measured = found.accuracy(j)
        for level, name in enumerate(LEVELS):
            members = members_of(job, name)
            for place, law in enumerate(found.laws):
                row = {
                    "design": job.folds.design,
                    "exponents": job.folds.scope,
                    "level": name,
                    "law": law,
                    "folds": job.fitted(members),
                    "cells": measured.cells[place, level],
                    "rmse": measured.rmse[place, level],
                    "predictions_outside": measured.outside[place, level],
                }
                if found.resampled is not None:
                    row["rmse_low"], row["rmse_high"] = found.interval(found.resampled[:, j, place, level], j, name)
                rows.append(row)
    columns = [
        DESIGN,
        EXPONENTS,
        LEVEL,
        Column("law", "law that was refitted without the withheld cells"),
        Column("folds", "folds that score a cell of the level and can be fitted", "count"),
        Column("cells", "held-out cells that are predicted", "count"),
        Column(
            "rmse",
            "root mean square of observed minus predicted error (0..1); predictions of interior cells as they are, others clipped to [0, 1]",
            "number",
        ),
        *_interval_columns(found, "rmse", "rmse"),
        Column("predictions_outside", "predictions outside [0, 1] before clipping", "count"),
    ]
    return _table("RMSE of held-out cells", columns, rows)


def differences_of(found: Found) -> list[dict[str, Any]]:
    """Each other law minus the separable one, in percentage points."""
    if REFERENCE not in found.laws:
        return []
    base = found.laws.index(REFERENCE)
    rows: list[dict[str, Any]] = []
    for j, job in enumerate(found.jobs):
        measured = found.accuracy(j).rmse
        for level, name in enumerate(LEVELS):
            for place, law in enumerate(found.laws):
                if place == base:
                    continue
                row = {
                    "design": job.folds.design,
                    "exponents": job.folds.scope,
                    "level": name,
                    "law": law,
                    REFERENCE: measured[base, level],
                    "rmse": measured[place, level],
                    "difference": POINTS * (measured[place, level] - measured[base, level]),
                }
                if found.resampled is not None:
                    draws = POINTS * (found.resampled[:, j, place, level] - found.resampled[:, j, base, level])
                    row["difference_low"], row["difference_high"] = found.interval(draws, j, name)
                rows.append(row)
    return rows


def differences_table(found: Found) -> Table:
    """RMSE of the other laws minus the separable law's."""
    columns = [
        DESIGN,
        EXPONENTS,
        LEVEL,
        Column("law", "law that is compared with the separable one"),
        Column(REFERENCE, "RMSE of the separable law (0..1)", "number"),
        Column("rmse", "RMSE of the law (0..1)", "number"),
        Column("difference", "RMSE of the law minus the separable law's, percentage points; positive favours the separable law", "number"),
        *_interval_columns(found, "difference", "difference, percentage points"),
    ]
    return _table("RMSE of other laws minus the separable law's", columns, differences_of(found))


def folds_table(study: CellStudy, found: Found) -> Table:
    """RMSE of each fold."""
    rows: list[dict[str, Any]] = []
    for j, job in enumerate(found.jobs):
        withheld = job.folds.withheld_cells()
        cells_of = _by_fold(np.where(job.predicted & np.isfinite(found.predicted[j, 0]), job.folds.scored_by, -1), len(job.folds))
        for fold, cells in enumerate(cells_of):
            row = {
                "design": job.folds.design,
                "exponents": job.folds.scope,
                "group": study.groups.name(int(job.folds.group[fold])) if job.folds.group[fold] >= 0 else "all",
                "parameters": job.folds.parameters[fold],
                "input_size": job.folds.input_size[fold],
                "withheld": int(withheld[fold]),
                "cells": len(cells),
                "interior": int(job.inside[cells].sum()),
            }
            for place, law in enumerate(found.laws):
                squares = (found.error[cells] - np.clip(found.predicted[j, place, cells], 0.0, 1.0)) ** 2
                row[f"rmse_{law}"] = float(np.sqrt(squares.mean())) if len(squares) else None
            rows.append(row)
    columns = [
        DESIGN,
        EXPONENTS,
        Column("group", "group that the level is left out of; all: every group"),
        Column("parameters", "backbone size that is left out, billions of parameters", "number"),
        Column("input_size", "input size that is left out, px", "number"),
        Column("withheld", "cells that the fit does not see", "count"),
        Column("cells", "withheld cells that are predicted and scored", "count"),
        Column("interior", "those of them that are interior", "count"),
        *(Column(f"rmse_{law}", f"RMSE of the {law} law on them, predictions clipped to [0, 1]", "number") for law in found.laws),
    ]
    return _table("Folds", columns, rows, shown=12)


def _by_fold(number: npt.NDArray[np.int64], folds: int) -> list[npt.NDArray[np.int64]]:
    """The cells of each fold, from the fold of each cell (-1: none)."""
    order = np.argsort(number, kind="stable")
    return np.split(order, np.searchsorted(number[order], np.arange(folds)))[1:]


def _interval_columns(found: Found, name: str, what: str) -> list[Column]:
    if found.resampled is None:
        return []
    return [
        Column(f"{name}_{end}", f"{end} end of the 95% percentile interval of the {what} over image-cluster resamples", "number")
        for end in ("low", "high")
    ]


def _table(title: str, columns: list[Column], rows: list[dict[str, Any]], shown: int = 40) -> Table:
    return Table.of(title, columns, {column.name: [row[column.name] for row in rows] for column in columns}, shown=shown)
