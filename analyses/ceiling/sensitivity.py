"""How much of the matched cohort rule J selects under other margins, other token counts and a stricter notion of no change (C.3)."""

from __future__ import annotations

import dataclasses
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from analyses.ceiling.matched import levels_of
from analyses.ceiling.persistence import criteria_of, supported
from analyses.grouping import DECIMALS, quartile_by, slope_by
from analyses.result import Column, Table

if TYPE_CHECKING:
    import numpy.typing as npt

    from analyses.ceiling.matched import Matched
    from analyses.ceiling.observations import Observations
    from analyses.ceiling.persistence import Margins

TAU, TAU_NORMALISED = (0.15, 0.20, 0.25), (0.05, 0.10, 0.15)
DELTA, ETA = (0.025, 0.05, 0.10), (0.005, 0.01, 0.02)
MEASURES = ("p", "p*")
"""Measures that the paper sweeps."""
COMPARED = [0, 2, 3]
"""Quartiles that Eq. 18 compares."""


def sensitivity_table(matched: Matched, observations: Observations, margins: Margins, tokens: str) -> Table:
    """Shares that rule J selects: as asked, with the other token count, with all four quartiles within delta, and under a sweep of margins."""
    rows: list[dict[str, Any]] = []
    shared = _Other(matched, observations)
    other = "mean tokens" if tokens == "question" else "the question's own tokens"
    for measure in MEASURES:
        known = supported(matched, measure)
        levels, slopes = matched.levels[measure][matched.keep], matched.slopes[measure][matched.keep]
        chosen = criteria_of(levels, slopes, margins.low(measure), margins)["J"]
        rows.append(_row("J", measure, margins, chosen if known else None))
        rows.append(_row(f"J, {other}", measure, margins, shared.chosen(measure, margins) if known else None))
        rows.append(_row("J, four quartiles within delta", measure, margins, chosen & _level(levels, margins.delta) if known else None))
    for measure in MEASURES:
        if supported(matched, measure):
            levels, slopes = matched.levels[measure][matched.keep], matched.slopes[measure][matched.keep]
            rows += _sweep(measure, levels, slopes, margins)
    columns = [
        Column("rule", "rule J of Eq. 18, or a variant of it; sweep: J under other margins"),
        Column("measure", "p probability of the correct option, * above chance"),
        Column("tau", "low performance", "number"),
        Column("delta", "largest change that counts as small", "number"),
        Column("eta", "largest slope per doubling that counts as small", "number"),
        Column("trajectories", "matched trajectories that the rule can judge", "count"),
        Column("candidates", "trajectories that it selects", "count"),
        Column("share", "their share", "share"),
    ]
    return Table.of(
        "Sensitivity: what rule J selects under other margins and token counts",
        columns,
        {column.name: [row[column.name] for row in rows] for column in columns},
        shown=6,
    )


def _row(rule: str, measure: str, margins: Margins, chosen: npt.NDArray[np.bool_] | None) -> dict[str, Any]:
    found = {"rule": rule, "measure": measure, "tau": margins.low(measure), "delta": margins.delta, "eta": margins.eta}
    if chosen is None:
        return found | {"trajectories": None, "candidates": None, "share": None}
    number = int(chosen.sum())
    return found | {"trajectories": len(chosen), "candidates": number, "share": number / len(chosen) if len(chosen) else None}


def _level(levels: npt.NDArray[np.float64], delta: float) -> npt.NDArray[np.bool_]:
    """Whether the largest and the smallest of the quartile means (of those that are filled) are at most delta apart."""
    with np.errstate(invalid="ignore"):
        highest = np.where(np.isnan(levels), -np.inf, levels).max(axis=1)
        lowest = np.where(np.isnan(levels), np.inf, levels).min(axis=1)
        return np.asarray(np.round(highest - lowest, DECIMALS) <= delta)


class _Other:
    """Rule J with compute from the other token count, for the matched trajectories whose quartiles that count fills."""

    def __init__(self, matched: Matched, observations: Observations) -> None:
        self.matched = matched
        self.inside = matched.keep[observations.trajectory] & ~np.isnan(observations.other_compute)
        self.trajectory = observations.trajectory[self.inside]
        compute = observations.other_compute[self.inside]
        self.x, self.quartile = np.log2(compute), quartile_by(self.trajectory, compute)

    def chosen(self, measure: str, margins: Margins) -> npt.NDArray[np.bool_]:
        """Whether each trajectory is selected."""
        values, size = self.matched.measures[measure][self.inside], len(self.matched.keep)
        levels = levels_of(self.trajectory, self.quartile, values, size)[self.matched.keep]
        slopes = slope_by(self.trajectory, self.x, values, size)[self.matched.keep]
        judged = ~np.isnan(levels[:, COMPARED]).any(axis=1)
        return criteria_of(levels[judged], slopes[judged], margins.low(measure), margins)["J"]


def _sweep(measure: str, levels: npt.NDArray[np.float64], slopes: npt.NDArray[np.float64], margins: Margins) -> list[dict[str, Any]]:
    """Every combination of margins, the user's own among them."""
    normalised = measure.endswith("*")
    taus = sorted({*(TAU_NORMALISED if normalised else TAU), margins.low(measure)})
    rows = []
    for tau, delta, eta in product(taus, sorted({*DELTA, margins.delta}), sorted({*ETA, margins.eta})):
        varied = dataclasses.replace(margins, delta=delta, eta=eta, **{"tau_normalised" if normalised else "tau": tau})
        rows.append(_row("sweep", measure, varied, criteria_of(levels, slopes, tau, varied)["J"]))
    return rows
