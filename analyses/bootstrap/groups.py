"""Which groups a bootstrap refits, what their clusters are, and what it must warn of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from analyses.clusters import precision_weights
from analyses.law.fits import CONSTANT, SAME_LEVEL
from analyses.resampling import Layout

if TYPE_CHECKING:
    import numpy.typing as npt

    from analyses.cells import CellStudy
    from analyses.clusters import ClusterSums

FEW = 20
"""Clusters below which percentile intervals are known to be too narrow (ours)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """The groups that are refitted, their weights, and what the data cannot support."""

    layout: Layout
    weights: dict[str, npt.NDArray[np.float64]]
    """Weights of cells by the name of the weighting."""
    warnings: list[str]


def ready(study: CellStudy, sums: ClusterSums, keep: npt.NDArray[np.bool_], needed: int, weightings: tuple[str, ...]) -> Ready:
    """Groups with at least `needed` cells, two levels on both axes and an error that varies; a warning for each of the others."""
    warnings: list[str] = []
    fine = []
    for group in range(len(study.groups)):
        cells = np.flatnonzero((study.groups.code == group) & keep)
        problem = _problem(study, cells, needed)
        name = study.groups.name(group) or "all cells"
        if problem:
            warnings.append(f"{name}: no refits: {problem}")
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
        unsure = int((used & ~(variance > 0)).sum())
        if unsure:
            warnings.append(
                f"{unsure:,} of {int(used.sum()):,} cells have no variance over clusters: their weight is that of the smallest positive variance"
                " (of the largest where a benchmark has one cluster)"
            )
    return Ready(layout=layout, weights=weights, warnings=[*warnings, *_cluster_warnings(study, sums, used)])


def clusters_of_groups(sums: ClusterSums, layout: Layout) -> list[int]:
    """Clusters that the cells of each group draw on."""
    counted = []
    for cells, inside in zip(layout.cell, layout.inside, strict=True):
        counted.append(len(np.unique(sums.records[cells[inside]].tocoo().coords[1])))
    return counted


def _problem(study: CellStudy, cells: npt.NDArray[np.int64], needed: int) -> str:
    if len(cells) < needed:
        return f"{len(cells)} cells, {needed} parameters" if len(cells) else "no cell with all that the law needs"
    for axis, values in (("N", study.cells.parameters), ("R", study.cells.tokens)):
        if _levels(values[cells]) < 2:
            return f"one level of {axis}"
    return "the error is constant" if np.ptp(study.cells.error[cells]) < CONSTANT else ""


def _levels(values: npt.NDArray[np.float64]) -> int:
    """Distinct values, those that are nearly equal as one."""
    ordered = np.sort(values)
    return int((ordered[1:] > ordered[:-1] * (1 + SAME_LEVEL)).sum()) + 1


def _cluster_warnings(study: CellStudy, sums: ClusterSums, used: npt.NDArray[np.bool_]) -> list[str]:
    questions, warnings = study.answers.questions, []
    benchmark = questions.text["benchmark"].astype(str)
    inside = sums.clusters.of_question >= 0
    for name in sorted(set(study.cells.text["benchmark"][used].tolist())):
        members = inside & (benchmark == name)
        clusters = len(np.unique(sums.clusters.of_question[members]))
        if all(key is None for key in questions.text["image_key"][members].tolist()):
            warnings.append(f"{name}: no question has an image_key: each question is a cluster of its own")
        if clusters < FEW:
            warnings.append(f"{name}: {clusters} {'cluster' if clusters == 1 else 'clusters'}: intervals from so few are too narrow")
    return warnings
