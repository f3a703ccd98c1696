"""How many image clusters the cells of groups draw on, and what too few of them do to intervals and weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from analyses.cells import CellStudy
    from analyses.clusters import ClusterSums
    from analyses.resampling import Layout

FEW = 20
"""Clusters below which percentile intervals are known to be too narrow (ours)."""


def clusters_of_groups(sums: ClusterSums, layout: Layout) -> list[int]:
    """Clusters that the cells of each group draw on."""
    return [len(np.unique(sums.records[cells[inside]].tocoo().coords[1])) for cells, inside in zip(layout.cell, layout.inside, strict=True)]


def varies(sums: ClusterSums, layout: Layout) -> npt.NDArray[np.bool_]:
    """Groups with a cell of at least two clusters: the cells of the others are the same in every resample."""
    several = np.diff(sums.records.indptr) > 1
    return np.asarray((several[layout.cell] & layout.inside).any(axis=1))


def cluster_warnings(study: CellStudy, sums: ClusterSums, used: npt.NDArray[np.bool_]) -> list[str]:
    """Benchmarks of the used cells whose questions have no images, or too few clusters for an interval."""
    questions, warnings = study.answers.questions, []
    benchmark = questions.text["benchmark"].astype(str)
    inside = sums.clusters.of_question >= 0
    for name in sorted(set(study.cells.text["benchmark"][used].tolist())):
        members = inside & (benchmark == name)
        clusters = len(np.unique(sums.clusters.of_question[members]))
        if all(key is None for key in questions.text["image_key"][members].tolist()):
            warnings.append(f"{name}: no question has an image_key: each question is a cluster of its own")
        if clusters == 1:
            warnings.append(f"{name}: 1 cluster: its cells are the same in every resample; groups of such cells alone have no interval")
        elif clusters < FEW:
            warnings.append(f"{name}: {clusters} clusters: intervals from so few are too narrow")
    return warnings


def variance_warnings(variance: npt.NDArray[np.float64], used: npt.NDArray[np.bool_]) -> list[str]:
    """What precision weights of the used cells rest on where their errors have no variance over clusters."""
    unsure, cells = int((used & ~(variance > 0)).sum()), int(used.sum())
    if not unsure:
        return []
    if unsure == cells:
        return ["no cell has a variance over clusters: precision weights are equal weights here"]
    stand_in = "the smallest positive variance (of the largest where a benchmark has one cluster)"
    return [f"{unsure:,} of {cells:,} cells have no variance over clusters: their weight is that of {stand_in}"]
