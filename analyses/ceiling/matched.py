"""The matched cohort: questions that every series answered on a grid that can show a response to compute (C.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from analyses.grouping import distinct_by, mean_by, quartile_by, slope_by
from analyses.result import Column, Table

if TYPE_CHECKING:
    import numpy.typing as npt

    from analyses.ceiling.observations import Data, Observations

MEASURES = ("a", "p", "a*", "p*")
"""Accuracy and probability of the correct option, raw and normalised for chance (Eq. 17)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Matched:
    """Which trajectories are in the matched cohort, and how every trajectory responds to compute."""

    keep: npt.NDArray[np.bool_]
    reasons: dict[str, int]
    levels: dict[str, npt.NDArray[np.float64]]
    """measure -> trajectories x 4: mean over the configurations in each compute quartile."""
    slopes: dict[str, npt.NDArray[np.float64]]
    """measure -> slope on log2 of compute."""
    measures: dict[str, npt.NDArray[np.float64]]
    """measure -> its value in each observation with known compute."""
    quartile: npt.NDArray[np.int64]
    """Compute quartile of each of these observations within its trajectory."""
    probabilities: bool
    """Whether the data has probabilities at all."""
    options: bool
    """Whether the data has numbers of options at all."""

    def table(self) -> Table:
        """How many trajectories the cohort keeps and why others fall out."""
        columns = [
            Column("status", "kept, or the first condition that a trajectory fails"),
            Column("trajectories", "number of trajectories", "count"),
        ]
        return Table.of(
            "Cohort: which trajectories the gains and the persistence criteria use",
            columns,
            {"status": list(self.reasons), "trajectories": list(self.reasons.values())},
        )


def match(data: Data, observations: Observations) -> Matched:
    """Judge each trajectory by its observations with known compute."""
    size, rows = len(data.trajectories), observations.trajectory
    n_options = data.questions.n_options
    has_options, has_probabilities = bool((~np.isnan(n_options)).any()), bool((~np.isnan(observations.p_gold)).any())
    quartile = quartile_by(rows, observations.compute)
    measures = _measures(observations, n_options)
    options = n_options[data.trajectories.question]
    failures = {
        "no answer with known compute": np.bincount(rows, minlength=size) == 0,
        "question without known compute in some series": ~_in_every_series(data, rows),
        "fewer than two backbone sizes": distinct_by(rows, observations.configuration, data.configurations.parameters, size) < 2,
        "fewer than two input sizes": distinct_by(rows, observations.configuration, _input_size(data), size) < 2,
        "an empty compute quartile (1, 3 or 4)": ~_quartiles_filled(rows, quartile, size),
        "number of options not known or not constant": ~(options >= 2) if has_options else np.zeros(size, dtype=bool),
        "probability missing": np.bincount(rows[~observations.complete], minlength=size) > 0
        if has_probabilities
        else np.zeros(size, dtype=bool),
    }
    keep, reasons = _judge(data, failures)
    x = np.log2(observations.compute)
    return Matched(
        keep=keep,
        reasons=reasons,
        measures=measures,
        quartile=quartile,
        levels={name: levels_of(rows, quartile, values, size) for name, values in measures.items()},
        slopes={name: slope_by(rows, x, values, size) for name, values in measures.items()},
        probabilities=has_probabilities,
        options=has_options,
    )


def _judge(data: Data, failures: dict[str, npt.NDArray[np.bool_]]) -> tuple[npt.NDArray[np.bool_], dict[str, int]]:
    """Keep the questions whose trajectories pass in every series; count the others by the first condition that they fail."""
    size = len(data.trajectories)
    undecided = np.ones(size, dtype=bool)
    reasons: dict[str, int] = {}
    for reason, failed in failures.items():
        reasons[reason] = int((undecided & failed).sum())
        undecided &= ~failed
    lost = np.bincount(data.trajectories.question[~undecided], minlength=len(data.questions.ids)) > 0
    keep = undecided & ~lost[data.trajectories.question]
    reasons["another series of the question falls out"] = int((undecided & ~keep).sum())
    return keep, {"kept": int(keep.sum()), **reasons}


def _in_every_series(data: Data, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    answered = np.zeros(len(data.trajectories), dtype=bool)
    answered[rows] = True
    series = np.bincount(data.trajectories.question[answered], minlength=len(data.questions.ids))
    return np.asarray(series[data.trajectories.question] == len(np.unique(data.trajectories.series)))


def _input_size(data: Data) -> npt.NDArray[np.float64]:
    """Input size of a configuration; native size counts as one more size."""
    return np.where(data.configurations.native, -1.0, data.configurations.input_size)


def _quartiles_filled(rows: npt.NDArray[np.int64], quartile: npt.NDArray[np.int64], size: int) -> npt.NDArray[np.bool_]:
    filled = np.bincount(rows * 4 + quartile - 1, minlength=size * 4).reshape(size, 4) > 0
    return np.asarray(filled[:, 0] & filled[:, 2] & filled[:, 3])


def levels_of(
    rows: npt.NDArray[np.int64], quartile: npt.NDArray[np.int64], values: npt.NDArray[np.float64], size: int
) -> npt.NDArray[np.float64]:
    """Trajectories x 4: mean of the values in each compute quartile; NaN where it is empty."""
    return mean_by(rows * 4 + quartile - 1, values, size * 4).reshape(size, 4)


def _measures(observations: Observations, n_options: npt.NDArray[np.float64]) -> dict[str, npt.NDArray[np.float64]]:
    """The four measures; z* = (z - 1/K)/(1 - 1/K), negative values kept."""
    options = n_options[observations.question]
    chance = 1 / np.where(options >= 2, options, np.nan)
    raw = {"a": observations.accuracy, "p": observations.p_gold}
    return raw | {f"{name}*": (values - chance) / (1 - chance) for name, values in raw.items()}
