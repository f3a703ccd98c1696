"""Held-out halves: whether regimes that half of the configurations define show on the other half (Table 21)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from analyses.ceiling.persistence import mean
from analyses.ceiling.regimes import REGIMES, regime_of
from analyses.grouping import mean_by, position_by, slope_by
from analyses.result import Column, Table

if TYPE_CHECKING:
    import numpy.typing as npt

    from analyses.ceiling.observations import Observations, Trajectories

DIRECTIONS = ("first", "second")


def halves_of(observations: Observations) -> npt.NDArray[np.int64]:
    """Half 0 or 1 of each observation: its trajectory's configurations, ordered by hash, are dealt out in turn.

    The hash is `analyses.identity.pair_hash` of the seed and the natural keys of question and configuration.
    """
    return position_by(observations.trajectory, observations.hash) % 2


def halves_table(observations: Observations, trajectories: Trajectories, series: list[str], *, cutoff: float, easy: float) -> Table:
    """Accuracy and slope on one half by the regime that the other half defines, per series: both directions and their mean."""
    size = len(trajectories)
    half = halves_of(observations)
    parts = [observations.take(half == number) for number in (0, 1)]
    accuracy = [mean_by(part.trajectory, part.accuracy, size) for part in parts]
    slope = [slope_by(part.trajectory, np.log2(part.compute), part.accuracy, size) for part in parts]
    regimes = [regime_of(values, cutoff=cutoff, easy=easy) for values in accuracy]
    rows: list[dict[str, Any]] = []
    for code, name in enumerate(series):
        for regime, regime_name in enumerate(REGIMES):
            row: dict[str, Any] = {"series": name, "regime": regime_name}
            for defining, direction in enumerate(DIRECTIONS):
                members = (trajectories.series == code) & (regimes[defining] == regime) & ~np.isnan(accuracy[1 - defining])
                row |= {f"trajectories_{direction}": int(members.sum())}
                row |= {
                    f"accuracy_{direction}": mean(accuracy[1 - defining][members]),
                    f"slope_{direction}": mean(slope[1 - defining][members]),
                }
            row |= {what: _mean_of_directions([row[f"{what}_{direction}"] for direction in DIRECTIONS]) for what in ("accuracy", "slope")}
            rows.append(row)
    columns = _columns()
    return Table.of(
        "Halves: held-out accuracy and slope per doubling of N x R, by the regime on the other half of the configurations",
        columns,
        {column.name: [row[column.name] for row in rows] for column in columns},
    )


def _mean_of_directions(values: list[float]) -> float:
    return float(np.mean(values))


def _columns() -> list[Column]:
    columns = [
        Column("series", "model series"),
        Column("regime", "regime on the half that defines it"),
        Column("accuracy", "mean accuracy on the other half, mean of both directions", "share"),
        Column("slope", "mean slope of credit on log2(N x R) on the other half, mean of both directions", "slope"),
    ]
    for direction in DIRECTIONS:
        columns += [
            Column(f"trajectories_{direction}", f"trajectories whose regime the {direction} half defines", "count"),
            Column(f"accuracy_{direction}", "their mean accuracy on the other half", "share"),
            Column(f"slope_{direction}", "their mean slope on the other half", "slope"),
        ]
    return columns
