"""The cohort of the ceiling analysis as columns: one observation is a question answered by a configuration."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from analyses.cohort import origin, select, statement
from analyses.grouping import Factor, factorise, floats, mean_by
from analyses.identity import digest_of, pair_hash, places, starts
from tracker.errors import AnalysisError

if TYPE_CHECKING:
    import numpy.typing as npt

    from analyses.parameters import AnalysisParameters
    from analyses.session import StarSession

IDS = ("question_id", "configuration_id", "repetition", "attempt")
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
    other_compute: npt.NDArray[np.float64]
    """The same with the other of a question's own tokens and the mean of its configuration."""
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
    session: StarSession, parameters: AnalysisParameters, *, records: Literal["scored", "both"], tokens: Literal["question", "mean"]
) -> Data:
    """Read the materialised table `cohort` and its trajectories."""
    rows = {name: np.ma.getdata(column) if name in IDS else floats(column) for name, column in _select(session, "ceiling_rows").items()}
    configurations = _configurations(_select(session, "ceiling_configurations"))
    conditions = _conditions(parameters, records)
    for condition in (conditions, conditions or ["true"]):  # stored trajectories are older than the data where nobody could write them
        questions, trajectories = _trajectories(session, parameters, configurations, condition)
        place = _natural_order(rows, questions, configurations)
        ordered = {name: column[place.order] for name, column in rows.items()}
        mean_tokens = _mean_tokens(session, questions, configurations)
        observations = _observations(
            ordered, place, parameters.seed, questions, configurations, trajectories, mean_tokens, by_mean=tokens == "mean"
        )
        if _agree(trajectories, observations):
            return Data(
                questions=_with_options(session, questions, place.question, ordered["n_options"]),
                configurations=configurations,
                trajectories=trajectories,
                observations=observations,
                rows=len(place.order),
                digest=digest_of(ordered, place.question, place.configuration, questions, configurations),
            )
    message = "the trajectories do not match the answers"
    raise AnalysisError(message, hint="trackr lake rebuild makes the lake again")


def _select(session: StarSession, name: str) -> dict[str, Any]:
    return select(session.connection, statement(name), where=name)


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


class _Place(NamedTuple):
    """The natural order of rows, and the positions of their question and configuration in that order."""

    order: npt.NDArray[np.int64]
    question: npt.NDArray[np.int64]
    configuration: npt.NDArray[np.int64]


def _natural_order(rows: dict[str, Any], questions: Questions, configurations: Configurations) -> _Place:
    """Order rows by question, configuration, repetition and attempt; no database id decides."""
    question, configuration = places(rows["question_id"], questions.ids), places(rows["configuration_id"], configurations.ids)
    key = question * len(configurations.ids) + configuration
    for name in ("repetition", "attempt"):
        key = key * (int(rows[name].max(initial=0)) + 1) + rows[name]
    order = np.argsort(key, kind="stable")
    return _Place(order, question[order], configuration[order])


def _with_options(
    session: StarSession, questions: Questions, question: npt.NDArray[np.int64], stated: npt.NDArray[np.float64]
) -> Questions:
    """Numbers of options: as stated, else as many as there are option scores; negative where these disagree."""
    n_options = np.full(len(questions.ids), np.nan)
    n_options[question] = stated
    counted = _select(session, "ceiling_options")
    at = places(np.asarray(counted["question_id"]), questions.ids)
    fewest, most = np.full(len(questions.ids), np.nan), np.full(len(questions.ids), np.nan)
    fewest[at[at >= 0]] = floats(counted["fewest"])[at >= 0]
    most[at[at >= 0]] = floats(counted["most"])[at >= 0]
    n_options = np.where(np.isnan(n_options), fewest, n_options)
    differ = ~np.isnan(fewest) & ((fewest != most) | (n_options != fewest))
    return dataclasses.replace(questions, n_options=np.where(differ, -1.0, n_options))


def _conditions(parameters: AnalysisParameters, records: Literal["scored", "both"]) -> list[str]:
    """What narrows `answers` to the cohort; nothing where the stored trajectories are the answer."""
    conditions = [f"(\n{parameters.where}\n)"] if parameters.where else []
    if records == "both":
        conditions.append("p_gold is not null")
    if parameters.cohort:
        conditions.append("(run_id, question_id, repetition, attempt) in (select (run_id, question_id, repetition, attempt) from cohort)")
    return conditions


def _trajectories(
    session: StarSession, parameters: AnalysisParameters, configurations: Configurations, conditions: list[str]
) -> tuple[Questions, Trajectories]:
    """The stored trajectories, or those of the narrowed answers by the same SQL, and their questions."""
    source = f"({session.trajectories_sql(' and '.join(conditions))})" if conditions else "trajectories"
    text = f"select question_id, question_key, {', '.join(LABELS)}, accuracy::double as accuracy, p_gold::double as p_gold\nfrom {source}\norder by {', '.join(KEYS)}"
    columns = select(session.connection, text, where=origin(parameters))
    ids = np.asarray(columns["question_id"])
    first = starts(ids)
    questions = Questions(
        ids=ids[first],
        benchmark=np.asarray(columns["benchmark"])[first],
        key=np.asarray(columns["question_key"])[first],
        n_options=np.full(int(first.sum()), np.nan),
    )
    trajectories = Trajectories(
        question=np.cumsum(first) - 1,
        series=places(columns["series"].astype(str), series_names(configurations)),
        accuracy=floats(columns["accuracy"]),
        p_gold=floats(columns["p_gold"]),
        labels={label: factorise(columns[label]) for label in LABELS},
    )
    return questions, trajectories


def _agree(trajectories: Trajectories, observations: Observations) -> bool:
    """Whether trajectories and observations speak of the same answers."""
    accuracy = mean_by(
        observations.trajectory[observations.trajectory >= 0], observations.accuracy[observations.trajectory >= 0], len(trajectories)
    )
    return bool((observations.trajectory >= 0).all() and np.allclose(accuracy, trajectories.accuracy, rtol=0, atol=1e-9))


def series_names(configurations: Configurations) -> npt.NDArray[np.str_]:
    """The series of the cohort in alphabetical order."""
    return np.unique(configurations.series.astype(str))


def _mean_tokens(session: StarSession, questions: Questions, configurations: Configurations) -> npt.NDArray[np.float64]:
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
    place: _Place,
    seed: int,
    questions: Questions,
    configurations: Configurations,
    trajectories: Trajectories,
    mean_tokens: npt.NDArray[np.float64],
    *,
    by_mean: bool,
) -> Observations:
    """Average the repetitions of each question and configuration and find its trajectory."""
    first = starts(place.question, place.configuration)
    group, size = np.cumsum(first) - 1, int(first.sum())
    valid = (rows["p_gold"] >= 0) & (rows["p_gold"] <= 1)
    question, configuration = place.question[first], place.configuration[first]
    own, mean = mean_by(group, rows["visual_tokens"], size), mean_tokens[configuration, question]
    tokens, other = (mean, own) if by_mean else (own, mean)
    n = configurations.parameters[configuration]
    return Observations(
        trajectory=_trajectory_of(question, configuration, configurations, trajectories),
        question=question,
        configuration=configuration,
        accuracy=mean_by(group, rows["credit"], size),
        p_gold=mean_by(group, np.where(valid, rows["p_gold"], np.nan), size),
        complete=np.bincount(group[~valid], minlength=size) == 0,
        tokens=tokens,
        compute=np.where(n * tokens > 0, n * tokens, np.nan),
        other_compute=np.where(n * other > 0, n * other, np.nan),
        hash=pair_hash(seed, questions, configurations, question, configuration),
    )


def _trajectory_of(
    question: npt.NDArray[np.int64], configuration: npt.NDArray[np.int64], configurations: Configurations, trajectories: Trajectories
) -> npt.NDArray[np.int64]:
    """The row of the trajectory that an observation belongs to; -1 where there is none."""
    names = series_names(configurations)
    series = places(configurations.series.astype(str), names)
    return places(question * len(names) + series[configuration], trajectories.question * len(names) + trajectories.series)
