"""Accuracy by compute quartile for each domain and skill, by the ceiling analysis' own functions (Figure 4, right)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from analyses.ceiling.analysis import COLUMNS
from analyses.ceiling.matched import match
from analyses.ceiling.observations import load
from analyses.ceiling.persistence import quartiles_table
from analyses.opening import opened

if TYPE_CHECKING:
    from collections.abc import Callable

    from analyses.parameters import AnalysisParameters
    from analyses.result import Table
    from analyses.session import StarSession

LABELS = ("domain", "skill")


@dataclass(frozen=True, slots=True, kw_only=True)
class Quartiles:
    """The table and what draws it."""

    table: Table
    chart: Callable[[], Any]


def quartiles_of(
    session: StarSession, parameters: AnalysisParameters, warnings: list[str], *, records: Literal["scored", "both"], native: bool
) -> Quartiles:
    """Mean accuracy in each compute quartile over the matched cohort of `trackr analyze ceiling`; empty, with a warning, without one."""
    with opened(session, "taxonomy", parameters, cohort="ceiling", columns=COLUMNS):
        data = load(session, parameters, records=records, tokens="question")
    observations = data.observations
    if not native:
        observations = observations.take(~data.configurations.native[observations.configuration])
    matched = match(data, observations.take(~np.isnan(observations.compute)))
    if not matched.keep.any():
        reason, number = max(list(matched.reasons.items())[1:], key=lambda item: item[1])
        warnings.append(f"no trajectory is in the matched cohort ({number:,}: {reason}): quartiles is empty")

    def draw() -> Any:
        from analyses.ceiling import charts as ceiling_charts

        return ceiling_charts.quartiles(data, matched, np.zeros(len(data.trajectories), dtype=np.int64))

    return Quartiles(table=quartiles_table(matched, data.trajectories.labels), chart=draw)
