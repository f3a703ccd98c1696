"""Which groups a bootstrap refits, what their clusters are, and what it must warn of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from analyses.clusters import precision_weights
from analyses.few_clusters import cluster_warnings, variance_warnings
from analyses.law.fits import CONSTANT, SAME_LEVEL
from analyses.notes import Note, merged
from analyses.resampling import Layout
from analyses.result import counted

if TYPE_CHECKING:
    import numpy.typing as npt

    from analyses.cells import CellStudy
    from analyses.clusters import ClusterSums

__all__ = ["Ready", "cluster_warnings", "ready"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """The groups that are refitted, their weights, and what the data cannot support."""

    layout: Layout
    weights: dict[str, npt.NDArray[np.float64]]
    """Weights of cells by the name of the weighting."""
    unfit: list[str]
    """Groups without refits, and why."""
    warnings: list[str]


def ready(study: CellStudy, sums: ClusterSums, keep: npt.NDArray[np.bool_], needed: int, weightings: tuple[str, ...]) -> Ready:
    """Groups with at least `needed` cells, two levels on both axes and an error that varies; a warning for each of the others."""
    unfit: list[Note] = []
    warnings: list[str] = []
    fine = []
    for group in range(len(study.groups)):
        cells = np.flatnonzero((study.groups.code == group) & keep)
        problem = _problem(study, cells, needed)
        name = study.groups.name(group) or "all cells"
        if problem:
            unfit.append(Note(name, f"no refits: {problem}", "no refits: fewer cells than parameters" if len(cells) < needed else ""))
            continue
        fine.append(group)
        warnings += [
            f"{name}: 2 levels of {axis}: many solutions fit equally well, intervals of e_inf, {parameters} are those of the solutions found"
            for axis, values, parameters in (("N", study.cells.parameters, "A_n and alpha"), ("R", study.cells.tokens, "B_r and beta"))
            if _levels(values[cells]) == 2
        ]
    layout = Layout.of(study.groups, keep, fine)
    used = np.zeros(len(study.cells), dtype=bool)
    used[layout.cell[layout.inside]] = True
    weights = {name: np.ones(len(study.cells)) for name in weightings}
    if "precision" in weights:
        variance = sums.variance(study.cells.error)
        weights["precision"] = precision_weights(variance, used)
        warnings += variance_warnings(variance, used)
    lines = merged(unfit, len(study.groups))
    return Ready(layout=layout, weights=weights, unfit=lines, warnings=[*warnings, *cluster_warnings(study, sums, used)])


def _problem(study: CellStudy, cells: npt.NDArray[np.int64], needed: int) -> str:
    if len(cells) < needed:
        return f"{counted(len(cells), 'cell')}, {needed} parameters" if len(cells) else "no cell with all that the law needs"
    for axis, values in (("N", study.cells.parameters), ("R", study.cells.tokens)):
        if _levels(values[cells]) < 2:
            return f"one level of {axis}"
    return "the error is constant" if np.ptp(study.cells.error[cells]) < CONSTANT else ""


def _levels(values: npt.NDArray[np.float64]) -> int:
    """Distinct values, those that are nearly equal as one."""
    ordered = np.sort(values)
    return int((ordered[1:] > ordered[:-1] * (1 + SAME_LEVEL)).sum()) + 1
