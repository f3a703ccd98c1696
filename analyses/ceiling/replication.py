"""Whether persistent error replicates on the other half of the configurations of every compute quartile (C.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from analyses.ceiling.matched import MEASURES
from analyses.ceiling.persistence import criteria_of, supported
from analyses.grouping import mean_by, position_by, slope_by
from analyses.result import Column, Table

if TYPE_CHECKING:
    import numpy.typing as npt

    from analyses.ceiling.matched import Matched
    from analyses.ceiling.observations import Observations
    from analyses.ceiling.persistence import Margins

DIRECTIONS = ("first", "second")
COMPARED = [0, 2, 3]
"""Quartiles that Eq. 18 compares."""


def replication_table(matched: Matched, observations: Observations, margins: Margins) -> Table:
    """Rule J on one half, held against J and H on the other, in both directions.

    The configurations of a trajectory in a quartile, ordered by hash, are dealt in turn into two halves; quartiles are those of all configurations.
    """
    rows: list[dict[str, Any]] = []
    size = len(matched.keep)
    inside = matched.keep[observations.trajectory]
    trajectory, x = observations.trajectory[inside], np.log2(observations.compute[inside])
    place = trajectory * 4 + matched.quartile[inside] - 1
    half = position_by(place, observations.hash[inside]) % 2
    for measure in MEASURES:
        if not supported(matched, measure):
            rows += [{"measure": measure, "selected_on": direction} for direction in DIRECTIONS]
            continue
        values = matched.measures[measure][inside]
        levels = [mean_by(place[half == h], values[half == h], 4 * size).reshape(size, 4) for h in (0, 1)]
        slopes = [slope_by(trajectory[half == h], x[half == h], values[half == h], size) for h in (0, 1)]
        both = np.asarray(
            ~np.isnan(np.hstack([*(level[:, COMPARED] for level in levels), *(slope[:, None] for slope in slopes)])).any(axis=1)
        )
        met = [criteria_of(level, slope, margins.low(measure), margins) for level, slope in zip(levels, slopes, strict=True)]
        for h, direction in enumerate(DIRECTIONS):
            rows.append({"measure": measure, "selected_on": direction} | _held(both, np.asarray(met[h]["J"] & both), met[1 - h]))
    columns = _columns()
    return Table.of(
        "Replication: candidates of rule J on one half of every quartile's configurations, judged on the other half",
        columns,
        {column.name: [row.get(column.name) for row in rows] for column in columns},
    )


def _held(both: npt.NDArray[np.bool_], candidates: npt.NDArray[np.bool_], other: dict[str, npt.NDArray[np.bool_]]) -> dict[str, Any]:
    number, whole = int(candidates.sum()), int(both.sum())
    again, low = int((candidates & other["J"]).sum()), int((candidates & other["H"]).sum())
    return {
        "trajectories": whole,
        "candidates": number,
        "share": number / whole if whole else None,
        "replicated": again,
        "replication": again / number if number else None,
        "still_low": low,
        "low_share": low / number if number else None,
    }


def _columns() -> list[Column]:
    return [
        Column("measure", "a accuracy, p probability of the correct option, * above chance"),
        Column("selected_on", "half that selects the candidates"),
        Column("trajectories", "matched trajectories with quartiles 1, 3 and 4 and a slope on both halves", "count"),
        Column("candidates", "trajectories that rule J selects on this half", "count"),
        Column("share", "their share", "share"),
        Column("replicated", "candidates that rule J selects on the other half too", "count"),
        Column("replication", "their share of the candidates", "share"),
        Column("still_low", "candidates with low performance at high compute (H) on the other half", "count"),
        Column("low_share", "their share of the candidates", "share"),
    ]
