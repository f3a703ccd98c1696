"""Regimes of trajectories: easy, scaling bound, ceiling bound (section 3.2 of the paper)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from analyses.grouping import above, below
from analyses.intervals import clustered_wilson
from analyses.result import Column, Table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from analyses.grouping import Factor

REGIMES = ("easy", "scaling_bound", "ceiling_bound")
EASY, SCALING, CEILING = range(3)
SWEEP_EASY, SWEEP_CEILING = (0.85, 0.90, 0.95), (0.15, 0.20, 0.25)


def regime_of(accuracy: npt.NDArray[np.float64], *, cutoff: float, easy: float) -> npt.NDArray[np.int64]:
    """Position in REGIMES of each accuracy, compared after rounding to nine decimals; -1 where it is not known."""
    regimes = np.where(above(accuracy, easy), EASY, np.where(below(accuracy, cutoff), CEILING, SCALING))
    return np.where(np.isnan(accuracy), -1, regimes).astype(np.int64)


def shares_table(regimes: npt.NDArray[np.int64], cluster: npt.NDArray[np.int64], labels: Mapping[str, Factor], by: Sequence[str]) -> Table:
    """Shares of the regimes over all trajectories and by each label, with 95% intervals over the image clusters of the trajectories."""
    groups: list[tuple[str, str | None, npt.NDArray[np.bool_]]] = [("all", "all", np.ones(len(regimes), dtype=bool))]
    for name in by:
        groups += [(name, value, labels[name].codes == code) for code, value in enumerate(labels[name].labels)]
    hits = regimes[:, None] == np.arange(len(REGIMES))
    counts = np.array([hits[members].sum(axis=0) for _, _, members in groups])
    total = counts.sum(axis=1)
    ends = [clustered_wilson(hits[members], cluster[members]) for _, _, members in groups]
    lowest, highest = (np.array([end[side] for end in ends]) for side in (0, 1))
    data: dict[str, Sequence[object]] = {
        "by": [by for by, _, _ in groups],
        "value": [value for _, value, _ in groups],
        "trajectories": total.tolist(),
    }
    columns = [
        Column("by", "label that the trajectories are grouped by"),
        Column("value", "its value; empty where the trajectories have none"),
        Column("trajectories", "number of trajectories (question x series)", "count"),
    ]
    with np.errstate(invalid="ignore"):
        for code, name in enumerate(REGIMES):
            low, high = lowest[:, code].tolist(), highest[:, code].tolist()
            data |= {name: (counts[:, code] / total).tolist(), f"{name}_low": low, f"{name}_high": high}
            columns += [
                Column(name, f"share of trajectories that are {name}", "share"),
                Column(f"{name}_low", "low end of its 95% interval over image clusters", "share"),
                Column(f"{name}_high", "high end of its 95% interval over image clusters", "share"),
            ]
    return Table.of("Regimes: shares of trajectories by mean accuracy", columns, data)


def sweep_table(accuracy: npt.NDArray[np.float64]) -> Table:
    """Shares under each pair of cutoffs (Table 20)."""
    pairs = [(cutoff, easy) for cutoff in SWEEP_CEILING for easy in SWEEP_EASY]
    counts = np.array([np.bincount(regime_of(accuracy, cutoff=cutoff, easy=easy), minlength=len(REGIMES)) for cutoff, easy in pairs])
    total = max(len(accuracy), 1)
    shares = counts / total if len(accuracy) else np.full(counts.shape, np.nan)
    data: dict[str, Sequence[object]] = {"cutoff": [cutoff for cutoff, _ in pairs], "easy_cutoff": [easy for _, easy in pairs]}
    data |= {name: shares[:, code].tolist() for code, name in enumerate(REGIMES)}
    columns = [
        Column("cutoff", "ceiling_bound is an accuracy below this", "number"),
        Column("easy_cutoff", "easy is an accuracy above this", "number"),
        *(Column(name, f"share of trajectories that are {name}", "share") for name in REGIMES),
    ]
    return Table.of("Sweep: the same shares under other cutoffs", columns, data)
