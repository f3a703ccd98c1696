"""The cohort of the ceiling analysis as columns: one observation is a question answered by a configuration."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from analyses.cohort import origin, select, statement
from analyses.grouping import Factor, factorise, floats, mean_by

if TYPE_CHECKING:
    import numpy.typing as npt

    from analyses.parameters import AnalysisParameters
    from tracker.lake import Session

KEYS = ("benchmark", "question_key", "series")
LABELS = ("series", "family", "suite", "benchmark", "task", "domain", "skill", "category")


@dataclass(frozen=True, slots=True, kw_only=True)
class Questions:
    """The questions of the cohort by (benchmark, key)."""

    ids: npt.NDArray[np.int64]
    benchmark: npt.NDArray[np.object_]
    key: npt.NDArray[np.object_]
    n_options: npt.NDArray[np.float64]
    """Number of options; NaN where it is not known, negative where the records do not agree on it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Configurations:
    """The configurations of the cohort by (series, model, fingerprint)."""

    ids: npt.NDArray[np.int64]
    series: npt.NDArray[np.object_]
    model: npt.NDArray[np.object_]
    fingerprint: npt.NDArray[np.object_]
    parameters: npt.NDArray[np.float64]
    native: npt.NDArray[np.bool_]
    input_size: npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trajectories:
    """The trajectories of the cohort by (benchmark, key, series), as the view of that name has them."""

    question: npt.NDArray[np.int64]
    series: npt.NDArray[np.int64]
    accuracy: npt.NDArray[np.float64]
    p_gold: npt.NDArray[np.float64]
    labels: dict[str, Factor]
    """What a trajectory can be grouped by."""

    def __len__(self) -> int:
        """Number of trajectories."""
        return len(self.question)


@dataclass(frozen=True, slots=True, kw_only=True)
class Observations:
    """One row per trajectory and configuration, repetitions averaged, in natural order."""

    trajectory: npt.NDArray[np.int64]
    question: npt.NDArray[np.int64]
    configuration: npt.NDArray[np.int64]
    accuracy: npt.NDArray[np.float64]
    p_gold: npt.NDArray[np.float64]
    complete: npt.NDArray[np.bool_]
    """Whether every repetition has a probability."""
    tokens: npt.NDArray[np.float64]
    compute: npt.NDArray[np.float64]
    """u = N x R (parameters x visual tokens); NaN where either is not known."""
    hash: npt.NDArray[np.uint64]

    def __len__(self) -> int:
        """Number of observations."""
        return len(self.trajectory)

    def take(self, rows: npt.NDArray[np.bool_]) -> Observations:
        """Some of the rows."""
        return Observations(**{name: getattr(self, name)[rows] for name in self.__slots__})


@dataclass(frozen=True, slots=True, kw_only=True)
class Data:
    """Everything the analysis computes from."""

    questions: Questions
    configurations: Configurations
    trajectories: Trajectories
    observations: Observations
    rows: int
    digest: str


def load(
    session: Session, parameters: AnalysisParameters, *, records: Literal["scored", "both"], tokens: Literal["question", "mean"]
) -> Data:
    """Read the materialised table `cohort` and its trajectories."""
    connection = session.connection
    configurations = _configurations(select(connection, statement("ceiling_configurations"), where="cohort"))
    questions = _questions(session)
    keys = {"questions": questions.ids, "configurations": configurations.ids, "seed": parameters.seed}
    rows = select(connection, statement("ceiling_rows"), keys, where="cohort")
    conditions = _conditions(parameters, records)
    trajectories = _trajectories(session, parameters, questions, configurations, conditions)
    mean_tokens = _mean_tokens(session, questions, configurations) if tokens == "mean" else None
    observations = _observations(rows, configurations, trajectories, mean_tokens)
    if not _agree(trajectories, observations):  # stored before the last change of the data, by someone who may only read
        trajectories = _trajectories(session, parameters, questions, configurations, conditions or ["true"])
        observations = _observations(rows, configurations, trajectories, mean_tokens)
    return Data(
        questions=questions,
        configurations=configurations,
        trajectories=trajectories,
        observations=observations,
        rows=len(rows["question"]),
        digest=_digest(rows, questions, configurations),
    )


def _configurations(columns: dict[str, Any]) -> Configurations:
    return Configurations(
        ids=np.asarray(columns["configuration_id"]),
        series=np.asarray(columns["series"]),
        model=np.asarray(columns["model"]),
        fingerprint=np.asarray(columns["fingerprint"]),
        parameters=floats(columns["parameters"]),
        native=np.asarray(columns["native"]),
        input_size=floats(columns["input_size"]),
    )


def _questions(session: Session) -> Questions:
    columns = select(session.connection, statement("ceiling_questions"), where="cohort")
    ids = np.asarray(columns["question_id"])
    counted = select(session.connection, statement("ceiling_options"), where="records")
    stated = floats(columns["n_options"])
    at = places(np.asarray(counted["question_id"]), ids)
    fewest, most = np.full(len(ids), np.nan), np.full(len(ids), np.nan)
    fewest[at[at >= 0]] = floats(counted["fewest"])[at >= 0]
    most[at[at >= 0]] = floats(counted["most"])[at >= 0]
    n_options = np.where(np.isnan(stated), fewest, stated)
    differ = ~np.isnan(fewest) & ((fewest != most) | (n_options != fewest))
    return Questions(
        ids=ids,
        benchmark=np.asarray(columns["benchmark"]),
        key=np.asarray(columns["question_key"]),
        n_options=np.where(differ, -1.0, n_options),
    )


def _conditions(parameters: AnalysisParameters, records: Literal["scored", "both"]) -> list[str]:
    """What narrows `answers` to the cohort; nothing where the stored trajectories are the answer."""
    conditions = [f"(\n{parameters.where}\n)"] if parameters.where else []
    if records == "both":
        conditions.append("p_gold is not null")
    if parameters.cohort:
        conditions.append("(run_id, question_id, repetition, attempt) in (select (run_id, question_id, repetition, attempt) from cohort)")
    return conditions


def _trajectories(
    session: Session, parameters: AnalysisParameters, questions: Questions, configurations: Configurations, conditions: list[str]
) -> Trajectories:
    """The stored trajectories, or those of the narrowed answers by the same SQL."""
    source = f"({session.trajectories_sql(' and '.join(conditions))})" if conditions else "trajectories"
    text = f"select question_id, {', '.join(LABELS)}, accuracy::double as accuracy, p_gold::double as p_gold\nfrom {source}\norder by {', '.join(KEYS)}"
    columns = select(session.connection, text, where=origin(parameters))
    question = places(np.asarray(columns["question_id"]), questions.ids)
    series = places(columns["series"].astype(str), series_names(configurations))
    known = (question >= 0) & (series >= 0)
    return Trajectories(
        question=question[known],
        series=series[known],
        accuracy=floats(columns["accuracy"])[known],
        p_gold=floats(columns["p_gold"])[known],
        labels={label: factorise(columns[label][known]) for label in LABELS},
    )


def _agree(trajectories: Trajectories, observations: Observations) -> bool:
    """Whether trajectories and observations speak of the same answers."""
    accuracy = mean_by(
        observations.trajectory[observations.trajectory >= 0], observations.accuracy[observations.trajectory >= 0], len(trajectories)
    )
    return bool((observations.trajectory >= 0).all() and np.allclose(accuracy, trajectories.accuracy, rtol=0, atol=1e-9))


def series_names(configurations: Configurations) -> npt.NDArray[np.str_]:
    """The series of the cohort in alphabetical order."""
    return np.unique(configurations.series.astype(str))


def places(needles: npt.NDArray[Any], values: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Where each needle stands among distinct values; -1 where it does not."""
    if not len(values):
        return np.full(len(needles), -1, dtype=np.int64)
    order = np.argsort(values)
    found = np.minimum(np.searchsorted(values[order], needles), len(values) - 1)
    return np.where(values[order][found] == needles, order[found], -1).astype(np.int64)


def _mean_tokens(session: Session, questions: Questions, configurations: Configurations) -> npt.NDArray[np.float64]:
    """Mean visual tokens by configuration and question (that is, by the question's benchmark)."""
    columns = select(session.connection, statement("ceiling_tokens"), where="cells")
    names = np.unique(questions.benchmark.astype(str))
    row, column = places(np.asarray(columns["configuration_id"]), configurations.ids), places(columns["benchmark"].astype(str), names)
    known = (row >= 0) & (column >= 0)
    means = np.full((len(configurations.ids), len(names)), np.nan)
    means[row[known], column[known]] = floats(columns["visual_tokens"])[known]
    return means[:, places(questions.benchmark.astype(str), names)]


def _observations(
    rows: dict[str, Any],
    configurations: Configurations,
    trajectories: Trajectories,
    mean_tokens: npt.NDArray[np.float64] | None,
) -> Observations:
    """Average the repetitions of each question and configuration and find its trajectory."""
    question, configuration = np.asarray(rows["question"]), np.asarray(rows["configuration"])
    first = (
        np.r_[True, (question[1:] != question[:-1]) | (configuration[1:] != configuration[:-1])]
        if len(question)
        else np.zeros(0, dtype=bool)
    )
    group, size = np.cumsum(first) - 1, int(first.sum())
    p_gold = floats(rows["p_gold"])
    valid = (p_gold >= 0) & (p_gold <= 1)
    question, configuration = question[first], configuration[first]
    tokens = mean_by(group, floats(rows["visual_tokens"]), size) if mean_tokens is None else mean_tokens[configuration, question]
    compute = configurations.parameters[configuration] * tokens
    return Observations(
        trajectory=_trajectory_of(question, configuration, configurations, trajectories),
        question=question,
        configuration=configuration,
        accuracy=mean_by(group, floats(rows["credit"]), size),
        p_gold=mean_by(group, np.where(valid, p_gold, np.nan), size),
        complete=np.bincount(group[~valid], minlength=size) == 0,
        tokens=tokens,
        compute=np.where(compute > 0, compute, np.nan),
        hash=np.asarray(rows["hash"])[first],
    )


def _trajectory_of(
    question: npt.NDArray[np.int64], configuration: npt.NDArray[np.int64], configurations: Configurations, trajectories: Trajectories
) -> npt.NDArray[np.int64]:
    """The row of the trajectory that an observation belongs to; -1 where there is none."""
    names = series_names(configurations)
    series = places(configurations.series.astype(str), names)
    return places(question * len(names) + series[configuration], trajectories.question * len(names) + trajectories.series)


def _digest(rows: dict[str, Any], questions: Questions, configurations: Configurations) -> str:
    """SHA-256 over the natural keys and the values of the cohort's rows, in natural order: equal data, equal digest."""
    digest = hashlib.sha256()
    for names in (questions.benchmark, questions.key, configurations.series, configurations.model, configurations.fingerprint):
        digest.update("\x1f".join(map(str, names.tolist())).encode() + b"\x1e")
    digest.update(configurations.parameters.astype("<f8").tobytes())
    for name in ("question", "configuration"):
        digest.update(np.asarray(rows[name]).astype("<i8").tobytes())
    for name in ("credit", "p_gold", "visual_tokens"):
        digest.update(floats(rows[name]).astype("<f8").tobytes())
    return digest.hexdigest()
