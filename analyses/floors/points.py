"""The points of task-level fits: cells of the subsets that a suite's questions fall into (separable-law paper, 3.1, C.1)."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from analyses.answers import QUESTION_LABELS
from analyses.cells import group_cells
from analyses.grouping import mean_by
from tracker.errors import AnalysisError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from analyses.cells import Cells, CellStudy

Split = Literal["auto", "task", "category", "both"]
Weighting = Literal["paper", "category", "pooled"]
LABELS = ("task", "category")
SUBSET = "subset"
BY_CATEGORY = ("MME-RealWorld",)
"""Suites whose native fields are points of their own in the paper (C.1)."""
Key = tuple[str | None, ...]


def subset_study(study: CellStudy, by: Sequence[str], *, split: Split, weighting: Weighting) -> CellStudy:
    """The study with a cell per point of the task-level fits, grouped by `by`, subset and task.

    `study` has its cells split by task and category; they are merged again where a subset or a weighting is coarser.
    Raises AnalysisError where no question has a label to split by.
    """
    cells, warnings = study.cells, list(study.warnings)
    subset = subsets_of(cells, split if split != "auto" or "suite" in by or "benchmark" in by else "task")
    known = np.array([name is not None for name in subset], dtype=bool)
    if not known.any():
        message = "no question has a task or a category to split by"
        raise AnalysisError(message, hint="trackr schema questions says where they come from; --split category needs categories only")
    if not known.all():
        warnings.append(_left_out(study, known))
    fine = weighting == "category" if weighting != "paper" else np.isin(cells.text["suite"].astype(str), BY_CATEGORY)
    category = cells.text["category"].copy()
    category[~np.broadcast_to(fine, len(cells))] = None
    point = np.full(len(cells), -1, dtype=np.int64)
    place: dict[Key, int] = {}
    labels = [cells.text[name] for name in by if name in QUESTION_LABELS]
    columns = (cells.configuration, cells.text["benchmark"], subset, cells.text["task"], category, *labels)
    for cell, key in enumerate(zip(*(column.tolist() for column in columns), strict=True)):
        if known[cell]:
            point[cell] = place.setdefault(key, len(place))
    merged, cell_of = merge_cells(study, point, len(place))
    first = first_of(point, len(place))
    merged.text[SUBSET], merged.text["category"] = subset[first], category[first]
    return dataclasses.replace(study, cells=merged, cell_of=cell_of, groups=group_cells(merged, (*by, SUBSET, "task")), warnings=warnings)


def subsets_of(cells: Cells, split: Split) -> npt.NDArray[np.object_]:
    """The subset that each cell belongs to; None where it has no label to split by.

    auto: by task; a suite whose questions have one task (or none) by category. A subset of one category bears its name.
    """
    suite, task, category = (cells.text[name].tolist() for name in ("suite", "task", "category"))
    tasks: dict[Any, set[str]] = {}
    categories: dict[Any, set[str | None]] = {}
    for where, one, kind in zip(suite, task, category, strict=True):
        tasks.setdefault(where, set()).update({one} - {None})
        categories.setdefault((where, one), set()).add(kind)
    names: list[str | None] = []
    for where, one, kind in zip(suite, task, category, strict=True):
        if split == "both":
            names.append(" / ".join(label for label in (one, kind) if label is not None) or None)
        elif split == "category" or (split == "auto" and len(tasks[where]) <= 1):
            names.append(kind if kind is not None or split == "category" else one)
        else:
            only = categories[where, one]
            names.append(kind if split == "auto" and one is not None and kind is not None and len(only) == 1 else one)
    return np.array([*names, None], dtype=object)[:-1]


def merge_cells(study: CellStudy, point: npt.NDArray[np.int64], size: int) -> tuple[Cells, npt.NDArray[np.int64]]:
    """One cell per point, its means over all of its answers, and the point of each answer; `point` of each cell, -1 for none."""
    inside = study.cell_of >= 0
    cell_of = np.full(len(study.cell_of), -1, dtype=np.int64)
    cell_of[inside] = point[study.cell_of[inside]]
    used = cell_of >= 0
    means = {name: mean_by(cell_of[used], values[used], size) for name, values in study.answers.numbers.items()}
    merged = dataclasses.replace(
        study.cells.take(first_of(point, size)),
        n=np.bincount(cell_of[used], minlength=size),
        error=1.0 - means["credit"],
        tokens=means["visual_tokens"],
        prompt_tokens=means["prompt_tokens"],
        generated_tokens=means["generated_tokens"],
        effective_pixels=means["effective_pixels"],
        latency_s=means["latency_s"],
    )
    return merged, cell_of


def first_of(point: npt.NDArray[np.int64], size: int) -> npt.NDArray[np.int64]:
    """The first cell of each point."""
    first = np.zeros(size, dtype=np.int64)
    first[point[point >= 0][::-1]] = np.flatnonzero(point >= 0)[::-1]
    return first


def _left_out(study: CellStudy, known: npt.NDArray[np.bool_]) -> str:
    """What the questions without a label are."""
    inside = study.cell_of >= 0
    lost = np.unique(study.answers.question[inside][~known[study.cell_of[inside]]])
    benchmarks = sorted({str(study.answers.questions.text["benchmark"][question]) for question in lost.tolist()})
    return f"{len(lost):,} questions without a label to split by are left out ({', '.join(benchmarks)})"
