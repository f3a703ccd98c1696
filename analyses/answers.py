"""The scored answers of a cohort as columns in natural order: what cells, clusters and paired comparisons are made of."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from analyses.cohort import select, statement
from analyses.grouping import floats
from analyses.identity import places

if TYPE_CHECKING:
    import numpy.typing as npt

    from analyses.session import StarSession

COLUMNS = (
    "run_id", "question_id", "repetition", "attempt", "counts", "credit", "p_gold", "visual_tokens", "prompt_tokens", "generated_tokens",
    "effective_pixels", "latency_s", "model", "series", "family", "parameters", "configuration_id", "input_mode", "input_size", "max_tiles",
    "variant", "source_quality", "vision_branches", "language_branches", "benchmark", "suite", "question_key", "image_key", "pair_key",
    "task", "category", "domain", "skill", "n_options",
)  # fmt: skip
"""Columns of the cohort that are read."""

NUMBERS = ("credit", "p_gold", "visual_tokens", "prompt_tokens", "generated_tokens", "effective_pixels", "latency_s")
RUN_TEXT = ("family", "series", "model", "suite", "benchmark", "fingerprint", "input_mode", "source_quality", "variant")
RUN_NUMBERS = (
    "parameters", "input_size", "max_tiles", "pixel_cap", "vision_branches", "language_branches", "max_new_tokens"
)  # fmt: skip
QUESTION_TEXT = ("benchmark", "suite", "question_key", "image_key", "pair_key", "task", "category", "domain", "skill")
QUESTION_LABELS = ("task", "category", "domain", "skill")
"""Labels that split the questions of a benchmark."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """The runs of a cohort: a configuration on a benchmark each, by (series, parameters, input size, model, fingerprint, benchmark)."""

    configuration: npt.NDArray[np.int64]
    """Which runs share a configuration, numbered in this order."""
    text: dict[str, npt.NDArray[np.object_]]
    """RUN_TEXT; None where unknown."""
    numbers: dict[str, npt.NDArray[np.float64]]
    """RUN_NUMBERS; parameters of the language model as a count, sizes in px; NaN where unknown."""

    def __len__(self) -> int:
        """Number of runs."""
        return len(self.configuration)


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedQuestions:
    """The questions of a cohort by (benchmark, key)."""

    text: dict[str, npt.NDArray[np.object_]]
    """QUESTION_TEXT; None where unknown."""
    n_options: npt.NDArray[np.float64]

    def __len__(self) -> int:
        """Number of questions."""
        return len(self.n_options)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """One row per scored answer, by run, question, repetition and attempt; no database id decides the order."""

    runs: Runs
    questions: AskedQuestions
    run: npt.NDArray[np.int64]
    question: npt.NDArray[np.int64]
    repetition: npt.NDArray[np.int64]
    attempt: npt.NDArray[np.int64]
    counts: npt.NDArray[np.bool_]
    """Whether the row is the last scored attempt of its repetition in a current run."""
    numbers: dict[str, npt.NDArray[np.float64]]
    """NUMBERS; NaN where missing."""
    digest: str
    """SHA-256 over natural keys and values: equal data, equal digest."""

    def __len__(self) -> int:
        """Number of answers."""
        return len(self.run)

    def take(self, rows: npt.NDArray[np.bool_]) -> Answers:
        """Some of the rows; runs, questions and digest stay."""
        return Answers(
            runs=self.runs,
            questions=self.questions,
            run=self.run[rows],
            question=self.question[rows],
            repetition=self.repetition[rows],
            attempt=self.attempt[rows],
            counts=self.counts[rows],
            numbers={name: values[rows] for name, values in self.numbers.items()},
            digest=self.digest,
        )


def load_answers(session: StarSession) -> Answers:
    """Read the materialised table `cohort` (columns: COLUMNS)."""
    run_ids, runs = _runs(select(session.connection, statement("answers_runs"), where="cohort"))
    question_ids, questions = _questions(select(session.connection, statement("answers_questions"), where="cohort"))
    rows = select(session.connection, statement("answers_rows"), where="cohort")
    run, question = places(np.ma.getdata(rows["run_id"]), run_ids), places(np.ma.getdata(rows["question_id"]), question_ids)
    repetition, attempt = (np.ma.getdata(rows[name]).astype(np.int64) for name in ("repetition", "attempt"))
    counts = np.ma.filled(rows["counts"], fill_value=False).astype(bool)
    numbers = {name: floats(rows[name]) for name in NUMBERS}
    order = _natural_order((run, question, repetition, attempt), (*numbers.values(), counts))
    numbers = {name: values[order] for name, values in numbers.items()}
    run, question, repetition, attempt, counts = run[order], question[order], repetition[order], attempt[order], counts[order]
    return Answers(
        runs=runs,
        questions=questions,
        run=run,
        question=question,
        repetition=repetition,
        attempt=attempt,
        counts=counts,
        numbers=numbers,
        digest=_digest(runs, questions, (run, question, repetition, attempt, counts), numbers),
    )


def _natural_order(keys: tuple[npt.NDArray[np.int64], ...], values: tuple[npt.NDArray[Any], ...]) -> npt.NDArray[np.int64]:
    """Rows by their keys; where keys repeat (two questions of a run that are the same) the values decide, never the order of the scan."""
    order = np.lexsort(keys[::-1])
    if not len(order) or np.logical_or.reduce([np.diff(key[order]) != 0 for key in keys]).all():
        return order
    return np.lexsort((*(np.nan_to_num(value.astype(float), nan=-np.inf) for value in values[::-1]), *keys[::-1]))


def _runs(columns: dict[str, Any]) -> tuple[npt.NDArray[np.int64], Runs]:
    text = {name: objects(columns[name]) for name in RUN_TEXT}
    numbers = {name: floats(columns[name]) for name in RUN_NUMBERS}
    keys = [_sortable(text[name]) for name in ("benchmark", "fingerprint", "model")]
    order = np.lexsort(
        (*keys, np.nan_to_num(numbers["input_size"], nan=-1), np.nan_to_num(numbers["parameters"], nan=-1), _sortable(text["series"]))
    )
    first: dict[int, int] = {}
    configuration = np.array(
        [first.setdefault(int(identity), len(first)) for identity in np.ma.getdata(columns["configuration_id"])[order]], dtype=np.int64
    )
    runs = Runs(
        configuration=configuration,
        text={name: values[order] for name, values in text.items()},
        numbers={name: values[order] for name, values in numbers.items()},
    )
    return np.ma.getdata(columns["run_id"])[order], runs


def _questions(columns: dict[str, Any]) -> tuple[npt.NDArray[np.int64], AskedQuestions]:
    text = {name: objects(columns[name]) for name in QUESTION_TEXT}
    order = np.lexsort((_sortable(text["question_key"]), _sortable(text["benchmark"])))
    questions = AskedQuestions(text={name: values[order] for name, values in text.items()}, n_options=floats(columns["n_options"])[order])
    return np.ma.getdata(columns["question_id"])[order], questions


def objects(column: Any) -> npt.NDArray[np.object_]:
    """A text column with None for null."""
    values = np.array(np.ma.getdata(column), dtype=object)
    values[np.array(np.ma.getmaskarray(column))] = None
    return values


def _sortable(values: npt.NDArray[np.object_]) -> npt.NDArray[np.str_]:
    return np.array(["" if value is None else str(value) for value in values.tolist()], dtype=str)


def _digest(
    runs: Runs, questions: AskedQuestions, places_: tuple[npt.NDArray[Any], ...], numbers: dict[str, npt.NDArray[np.float64]]
) -> str:
    digest = hashlib.sha256()
    for column in (*runs.text.values(), *questions.text.values()):
        digest.update("\x1f".join(map(str, column.tolist())).encode() + b"\x1e")
    for values in (*runs.numbers.values(), questions.n_options, *numbers.values()):
        digest.update(values.astype("<f8").tobytes())
    for codes in places_:
        digest.update(codes.astype("<i8").tobytes())
    return digest.hexdigest()
