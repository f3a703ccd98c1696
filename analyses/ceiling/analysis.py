"""The question-level analysis: which questions does scaling not move? (separable-law paper, 3.2, C.2 and the head of C.3)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import Field, model_validator

from analyses.ceiling.grid import grid_table
from analyses.ceiling.halves import halves_table
from analyses.ceiling.images import clusters_of
from analyses.ceiling.matched import match
from analyses.ceiling.observations import load, series_names
from analyses.ceiling.persistence import Margins, core_table, criteria, gains_table, groups_table, mean, persistence_table, quartiles_table
from analyses.ceiling.questions import questions_table
from analyses.ceiling.regimes import CEILING, REGIMES, regime_of, shares_table, sweep_table
from analyses.ceiling.replication import replication_table
from analyses.ceiling.sensitivity import sensitivity_table
from analyses.opening import nothing, opened
from analyses.parameters import AnalysisParameters
from analyses.result import Charts

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from analyses.ceiling.matched import Matched
    from analyses.ceiling.observations import Data, Observations
    from analyses.result import Result, Table
    from analyses.session import StarSession

NAME = "ceiling"
By = Literal["series", "family", "suite", "benchmark", "task", "domain", "skill", "category"]
SHOWN_MODELS = 5
COLUMNS = ("run_id", "question_id", "repetition", "attempt", "configuration_id", "credit", "p_gold", "visual_tokens", "n_options")
"""Columns of the cohort that are read; names are looked up by id."""


class Parameters(AnalysisParameters):
    """Options of the ceiling analysis."""

    cutoff: float = Field(default=0.2, ge=0, le=1, description="a trajectory with mean accuracy below this is ceiling_bound")
    easy: float = Field(default=0.9, ge=0, le=1, description="a trajectory with mean accuracy above this is easy")
    by: tuple[By, ...] = Field(default=("series", "suite", "task"), description="labels to group the regimes by")
    records: Literal["scored", "both"] = Field(
        default="scored", description="scored: every scored answer; both: those that have a probability as well"
    )
    tokens: Literal["question", "mean"] = Field(
        default="question", description="visual tokens in compute: the question's own, or the mean of its configuration"
    )
    include_native: bool = Field(default=False, description="let answers at native image size enter what depends on compute")
    tau: float = Field(default=0.2, ge=0, le=1, description="low performance, raw measures (Eq. 18)")
    tau_normalised: float = Field(default=0.1, ge=0, le=1, description="low performance, measures above chance (Eq. 18)")
    delta: float = Field(default=0.05, ge=0, le=1, description="largest change between compute quartiles that counts as small (Eq. 18)")
    eta: float = Field(default=0.01, ge=0, le=1, description="largest slope per doubling of compute that counts as small (Eq. 18)")

    question: tuple[str, ...] = Field(
        default=(), description="BENCHMARK/KEY of a question whose answers over models and input sizes are listed; repeatable"
    )

    @model_validator(mode="after")
    def _cutoffs_in_order(self) -> Parameters:
        if self.cutoff > self.easy:
            message = f"cutoff {self.cutoff:g} is above easy {self.easy:g}"
            raise ValueError(message)
        return self


def run(session: StarSession, parameters: Parameters) -> Result:
    """Sort trajectories into regimes and test how the ceiling responds to compute."""
    with opened(session, NAME, parameters, cohort=NAME, columns=COLUMNS) as one:
        data = load(session, parameters, records=parameters.records, tokens=parameters.tokens)
        cluster = clusters_of(session, data.questions)[data.trajectories.question]
        grid = grid_table(session, parameters.question, data.questions) if parameters.question and len(data.trajectories) else None
    if not len(data.trajectories):
        raise nothing(parameters)
    fixed = (
        data.observations
        if parameters.include_native
        else data.observations.take(~data.configurations.native[data.observations.configuration])
    )
    usable = fixed.take(~np.isnan(fixed.compute))
    regimes = regime_of(data.trajectories.accuracy, cutoff=parameters.cutoff, easy=parameters.easy)
    matched = match(data, usable)
    tables = _tables(data, fixed, usable, matched, regimes, cluster, parameters)
    if grid is not None:
        tables["grid"] = grid
    return one.result(
        rows=data.rows,
        digest=data.digest,
        headline=_headline(data, matched, regimes, tables),
        tables=tables,
        charts=_charts(data, matched, regimes, grid),
        warnings=_warnings(data, fixed, usable, matched, parameters),
    )


def _tables(
    data: Data,
    fixed: Observations,
    usable: Observations,
    matched: Matched,
    regimes: npt.NDArray[np.int64],
    cluster: npt.NDArray[np.int64],
    parameters: Parameters,
) -> dict[str, Table]:
    labels = data.trajectories.labels
    margins = Margins(tau=parameters.tau, tau_normalised=parameters.tau_normalised, delta=parameters.delta, eta=parameters.eta)
    met = criteria(matched, margins)
    series = series_names(data.configurations).tolist()
    return {
        "regimes": shares_table(regimes, cluster, labels, unique(parameters.by)),
        "sweep": sweep_table(data.trajectories.accuracy),
        "gains": gains_table(matched, regimes, cutoff=parameters.cutoff, delta=parameters.delta),
        "halves": halves_table(fixed, data.trajectories, series, cutoff=parameters.cutoff, easy=parameters.easy),
        "persistence": persistence_table(matched, met),
        "core": core_table(matched, met, regimes),
        "persistence_groups": groups_table(matched, met, regimes, labels, unique(("benchmark", "task", *parameters.by))),
        "replication": replication_table(matched, usable, margins),
        "sensitivity": sensitivity_table(matched, usable, margins, parameters.tokens),
        "quartiles": quartiles_table(matched, labels),
        "cohort": matched.table(),
        "questions": questions_table(data, regimes, series),
    }


def _headline(data: Data, matched: Matched, regimes: npt.NDArray[np.int64], tables: dict[str, Table]) -> dict[str, Any]:
    """The numbers of section 3.2; shares of an empty set are null."""
    trajectories = data.trajectories
    per_question = np.bincount(trajectories.question, minlength=len(data.questions.ids))
    bound = np.bincount(trajectories.question[regimes == CEILING], minlength=len(data.questions.ids))
    n_series = len(np.unique(trajectories.series))
    gains, core = tables["gains"].data, tables["core"].data
    kept = int(matched.keep.sum())
    joint = core["trajectories"][core["measure"].index("p*")]
    return {
        "trajectories": len(trajectories),
        "questions": int((per_question > 0).sum()),
        "series": n_series,
        **{name: mean(regimes == code) for code, name in enumerate(REGIMES)},
        "ceiling_in_every_series": mean(bound[per_question == n_series] == n_series),
        "matched_trajectories": kept,
        "high_compute_persistent": gains["persistent"][CEILING],
        "joint_persistent": joint / kept if kept and joint is not None else None,
    }


def _charts(data: Data, matched: Matched, regimes: npt.NDArray[np.int64], grid: Table | None) -> Charts:
    def draw(name: str) -> Any:
        from analyses.ceiling import charts as ceiling_charts

        return getattr(ceiling_charts, name)(data, matched, regimes)

    def answers(table: Table) -> Any:
        from analyses.ceiling import charts as ceiling_charts

        return ceiling_charts.answers(table)

    charts = {name: partial(draw, name) for name in ("probability", "gain", "quartiles", "shares")}
    return Charts(charts if grid is None else {"answers": partial(answers, grid), **charts})


def _warnings(data: Data, fixed: Observations, usable: Observations, matched: Matched, parameters: Parameters) -> list[str]:
    """What the data cannot support."""
    warnings = [
        f"no question has a {name}: rows by {name} are empty"
        for name in dict.fromkeys(parameters.by)
        if data.trajectories.labels[name].labels == [None]
    ]
    native = len(data.observations) - len(fixed)
    if native:
        warnings.append(
            f"{native:,} of {len(data.observations):,} observations are at native image size and left out of gains, halves and persistence (--include-native)"
        )
    warnings += _compute_warnings(data, fixed)
    if len(usable):
        warnings += _signal_warnings(data, usable, matched)
        if not matched.keep.any():
            reason, number = max(list(matched.reasons.items())[1:], key=lambda item: item[1])
            empty = f"no trajectory is in the matched cohort ({number:,}: {reason}): gains, persistence and quartiles are empty"
            several = len(np.unique(data.trajectories.series)) > 1
            remedy = """ (it needs questions that every series answered; --where "series in ('...')" leaves out series that did not)"""
            warnings.append(empty + (remedy if several else ""))
    return warnings


def _compute_warnings(data: Data, fixed: Observations) -> list[str]:
    warnings = []
    unknown = np.isnan(data.configurations.parameters)
    rows = unknown[fixed.configuration]
    if rows.any():
        models = sorted(set(data.configurations.model[unknown].tolist()))
        named = ", ".join(models[:SHOWN_MODELS]) + (f" and {len(models) - SHOWN_MODELS} more" if len(models) > SHOWN_MODELS else "")
        warnings.append(f"parameters unknown for {named}: {_of(rows)} have no compute (trackr catalog import FILE describes a model)")
    if np.isnan(fixed.tokens).any():
        warnings.append(f"visual_tokens missing: {_of(np.isnan(fixed.tokens))} have no compute")
    if warnings:
        warnings.append("observations without compute are left out of gains, persistence and the slopes of halves")
    return warnings


def _signal_warnings(data: Data, usable: Observations, matched: Matched) -> list[str]:
    warnings = []
    missing = np.isnan(usable.p_gold)
    if not matched.probabilities:
        warnings.append("p_gold missing in every answer: probabilities in gains, persistence and charts are empty")
    elif missing.any():
        warnings.append(f"p_gold missing: {_of(missing)} have no probability, and their questions are not in the matched cohort")
    options = data.questions.n_options
    if not matched.options:
        warnings.append("n_options missing for every question: measures above chance (a*, p*) are empty")
    elif np.isnan(options).any():
        warnings.append(f"n_options missing for {int(np.isnan(options).sum()):,} questions: they are not in the matched cohort")
    return warnings


def unique(names: Iterable[str]) -> list[str]:
    """Names in order, each once."""
    return list(dict.fromkeys(names))


def _of(rows: npt.NDArray[np.bool_]) -> str:
    return f"{int(rows.sum()):,} of {len(rows):,} observations"
