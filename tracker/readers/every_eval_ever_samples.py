"""Rows of a samples file of Every Eval Ever in native columns.

The format has one row per metric and sample: rows of one sample become one record, whose other metrics are further scores.
A first pass over the file learns which metrics there are and how they are scaled; where a benchmark has several, a
second one gathers their scores (numbers and ids, no texts); the last one makes the records.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from tracker.batch import Refusal
from tracker.readers import helm_spec, keys
from tracker.readers.every_eval_ever_document import HELM, INSPECT, LM_EVAL, NO_DOCUMENT, UNNAMED, metric_of, split_name
from tracker.readers.every_eval_ever_rows import FURTHER, METRICS, NO_SCORE, answered, asked, failure, own_columns, restored, score_of
from tracker.readers.lines import json_lines
from tracker.readers.lm_rules import has_other_scale
from tracker.readers.values import NOTHING, as_mapping, number, text, truth, whole

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tracker.readers.every_eval_ever_document import Document, Result


class Run(NamedTuple):
    """What tells the runs of a samples file apart."""

    evaluation_id: str | None
    model: str
    benchmark: str


class Place(NamedTuple):
    """Where a row belongs: its run, its metric (null where it stands for no result) and its sample."""

    run: Run
    metric: str | None
    sample: tuple[str, int]
    result: Result | None


class Record(NamedTuple):
    """A row in native columns, with its line, its run and its size (bytes)."""

    line: int
    run: Run
    row: dict[str, Any]
    size: int


@dataclass(slots=True)
class Seen:
    """What the rows of one metric of one run hold."""

    rows: int = 0
    least: float = float("inf")
    largest: float = float("-inf")
    graded: bool = False
    """Whether a score was neither 0 nor 1."""
    result: Result | None = None

    def learn(self, score: float | None) -> None:
        """One more row."""
        self.rows += 1
        if score is not None:
            self.graded = self.graded or score not in {0.0, 1.0}
            self.least, self.largest = min(self.least, score), max(self.largest, score)

    def is_share(self, metric: str) -> bool:
        """Whether scores of this metric are shares of right answers."""
        observed = (self.least, self.largest) if self.least <= self.largest else None
        if self.result is not None:
            return self.result.is_share(observed)
        return not has_other_scale(metric) and (observed is None or (observed[0] >= 0 and observed[1] <= 1))

    @property
    def says_right(self) -> bool:
        """Whether a score of 0 or 1 says right or wrong, and is no share that happens to be whole (F1, say)."""
        return not self.graded or self.result is None or self.result.says_right


@dataclass(slots=True)
class _Sample:
    """One answer of a run of several metrics: the line that becomes its record, and its scores by metric."""

    line: int
    scores: dict[str | None, float | None] = field(default_factory=dict)


@dataclass(slots=True)
class Samples:
    """A samples file that was looked through: its runs and their metrics.

    `primary` is the first metric, in the document's order and then the file's, whose scores are shares of right answers.
    """

    path: Path
    document: Document
    others: frozenset[str] = frozenset()
    """Evaluations whose rows another document's source reads."""
    metrics: dict[Run, dict[str | None, Seen]] = field(default_factory=dict)
    primary: dict[Run, str | None] = field(default_factory=dict)
    rows: int = 0
    first_epoch: int = 1
    cut_off: int | None = None
    """Line in which the file ends too early; known when `records` has ended."""
    first_problem: str | None = None
    _records: dict[Run, dict[int, dict[str, float]]] = field(default_factory=dict)
    """Runs of several metrics: line of the row that becomes a record -> scores of the sample's other rows."""

    def records(self) -> Iterator[Record | Refusal]:
        """Every record and every line that is none, in file order."""
        for line in json_lines(self.path):
            row = restored(line.value)
            problem = line.error or self.problem(row)
            if problem is not None:
                self.cut_off = line.number if line.truncated else self.cut_off
                self.first_problem = self.first_problem or problem
                yield Refusal(file=str(self.path), line=line.number, reason=problem, text=line.text)
                continue
            if self._is_of_another(row):
                continue
            place = self._place(row)
            gathered = self._records.get(place.run)
            others = {} if gathered is None else gathered.get(line.number)
            if others is not None:
                yield Record(line.number, place.run, self._native(row, place, others), len(line.raw))

    def look_through(self) -> None:
        """The first pass, and the second where it is needed."""
        for line in json_lines(self.path):
            row = restored(line.value)
            if line.error is not None or self.problem(row) is not None:
                continue
            self.rows += 1
            if self._is_of_another(row):
                continue
            if whole(as_mapping(row.get("metadata")).get("epoch")) == 0:
                self.first_epoch = 0
            place = self._place(row)
            seen = self.metrics.setdefault(place.run, {}).setdefault(place.metric, Seen(result=place.result))
            seen.learn(score_of(row).value)
        for run, metrics in self.metrics.items():
            stated = [result.label for result in self.document_of(run.evaluation_id).of_benchmark(run.benchmark)]
            order = dict.fromkeys([*stated, *(name for name in metrics if name is not None)])
            self.primary[run] = next((name for name in order if name in metrics and metrics[name].is_share(name)), None)
        if several := {run for run, metrics in self.metrics.items() if len(metrics) > 1}:
            self._gather(several)

    def problem(self, row: Any) -> str | None:
        """Why a line is no row of this format."""
        if not isinstance(row, dict):
            return "expected an object (one sample a line), found something else (correct or delete the line)"
        for name in ("evaluation_name", "sample_id"):
            if not (text(row.get(name)) or "").strip():
                return f"expected a value for {name}, found none (correct or delete the line)"
        if self.document.model is None and not (text(row.get("model_id")) or "").strip():
            return "expected a value for model_id, found none (correct or delete the line)"
        evaluation = row.get("evaluation")
        if not isinstance(evaluation, dict):
            return None if row.get("error") else "expected evaluation with score and is_correct, found none (correct or delete the line)"
        score, said = evaluation.get("score"), evaluation.get("is_correct")
        if score is not None and not isinstance(score, bool) and number(score) == NOTHING:
            return f"expected a number as evaluation.score, found {score!r:.80} (correct or delete the line)"
        if said is not None and truth(said) is None:
            return f"expected true or false as evaluation.is_correct, found {said!r:.80} (correct or delete the line)"
        return None

    def _is_of_another(self, row: dict[str, Any]) -> bool:
        return bool(self.others) and text(row.get("evaluation_id")) in self.others

    def _place(self, row: dict[str, Any]) -> Place:
        name, result_id = text(row["evaluation_name"]) or "", text(row.get("evaluation_result_id")) or None
        evaluation_id, model = text(row.get("evaluation_id")) or None, text(row.get("model_id")) or None
        document = self.document_of(evaluation_id)
        result = document.result(result_id, name)
        metadata = as_mapping(row.get("metadata"))
        if result is not None:
            benchmark, metric = result.benchmark, result.label
        else:
            benchmark, filtered = (name, None) if document.own else split_name(name, result_id)
            metric = metric_of(result_id, filtered)
            if not document.own and result_id is None and (stated := text(metadata.get("filter"))) and name.endswith(f"/{stated}"):
                benchmark = name[: -len(stated) - 1]
        counts = None if (result_id is None and METRICS in metadata) or failure(row, document) is not None else metric
        run = Run(evaluation_id or document.evaluation_id, document.model or model or "", benchmark)
        return Place(run, counts, (text(row["sample_id"]) or "", self._repetition(document, metadata)), result)

    def document_of(self, evaluation_id: str | None) -> Document:
        """The document, where it is about this evaluation."""
        mine = evaluation_id is None or self.document.evaluation_id in {None, evaluation_id}
        return self.document if mine else NO_DOCUMENT

    def _repetition(self, document: Document, metadata: Any) -> int:
        """Repetitions count from 0, epochs from 1 (unless the file has an epoch 0)."""
        if document.own:
            return whole(metadata.get("repetition")) or 0
        epoch = whole(metadata.get("epoch"))
        return max(epoch - self.first_epoch, 0) if epoch is not None else 0

    def _gather(self, several: set[Run]) -> None:
        """Which line of a sample becomes its record (that of the primary metric, else its first), and the scores of its others."""
        held: dict[Run, dict[tuple[str, int], list[_Sample]]] = {run: {} for run in several}
        later: dict[tuple[Run, tuple[str, int], str | None], int] = {}
        for line in json_lines(self.path):
            row = restored(line.value)
            if line.error is not None or self.problem(row) is not None:
                continue
            place = self._place(row)
            if place.run not in several:
                continue
            times = held[place.run].setdefault(place.sample, [])
            nth = later.get((place.run, place.sample, place.metric), 0)
            if nth < len(times) and place.metric in times[nth].scores:
                nth += 1
            if nth:
                later[place.run, place.sample, place.metric] = nth + 1
            if nth == len(times):
                times.append(_Sample(line.number))
            if place.metric is not None and place.metric == self.primary[place.run]:
                times[nth].line = line.number
            times[nth].scores[place.metric] = score_of(row).value
        for run, samples in held.items():
            ruling = self.primary[run]
            self._records[run] = {
                one.line: {name: score for name, score in one.scores.items() if name is not None and name != ruling and score is not None}
                for times in samples.values()
                for one in times
            }

    def _native(self, row: dict[str, Any], place: Place, others: dict[str, float]) -> dict[str, Any]:
        """A row in native columns."""
        document = self.document_of(place.run.evaluation_id)
        native = {
            "question_id": _key(document, place),
            "repetition": place.sample[1],
            **self._judged(row, place, document),
            **asked(row, document),
            **answered(row, document),
        }
        for name, score in (*as_mapping(row.get(FURTHER)).items(), *others.items()):
            native[f"scores.{name}"] = score
        if place.metric is not None and place.metric != self.primary[place.run]:
            native[f"scores.{place.metric}"] = score_of(row).value
        if document.own:
            native |= own_columns(as_mapping(row.get("metadata")))
        return native

    def _judged(self, row: dict[str, Any], place: Place, document: Document) -> dict[str, Any]:
        """correct, score, status of a row; only the primary metric judges."""
        if failure(row, document) is not None:
            return {"correct": None, "score": None, "status": "failed", "score_rule": None}
        if place.metric is None or place.metric != self.primary[place.run]:
            return {"correct": None, "score": None, "status": None, "score_rule": None}
        score, said = score_of(row), truth(as_mapping(row.get("evaluation")).get("is_correct"))
        value: float | None = score.value
        agrees = value in {0.0, 1.0} and said == (value == 1.0)
        correct = said if agrees and self.metrics[place.run][place.metric].says_right else None
        if value is None and score.special is None:
            correct = said
        rule = place.metric if place.result is not None or place.metric != UNNAMED else "evaluation.score"
        if document.own:
            metadata = as_mapping(row.get("metadata"))
            correct = None if metadata.get("correct") == NO_SCORE else said
            value = None if metadata.get("score") == NO_SCORE else number(metadata.get("score", value)).value
        return {"correct": correct, "score": value if score.special is None else score.special, "status": None, "score_rule": rule}


def _key(document: Document, place: Place) -> str:
    """The sample's id; a bare number, which may be a position, gets the prefix of the framework that counted."""
    sample = place.sample[0]
    library = (document.library or "").lower()
    if document.own or library in LM_EVAL or keys.own_ids(place.run.benchmark):
        return sample
    if library == HELM:
        return helm_spec.key_of(sample)
    return keys.keyed("inspect" if library in INSPECT else "eee", sample)
