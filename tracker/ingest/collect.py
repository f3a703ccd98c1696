"""Collect what a reader yields into whole runs: numbered attempts, statuses, final flags, distinct questions."""

from __future__ import annotations

import hashlib
from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tracker.batch import LABELS, METRIC_POINTS, QUESTIONS, RECORD_SCORES, RECORDS, Batch, Refusal, RunHeader
from tracker.ingest.plan import printable
from tracker.ingest.points import Points
from tracker.ingest.reading import Reading, ReadRun
from tracker.ingest.shape import NUL, REPLACEMENT, clean_header, clean_table, finish_records, with_attempts
from tracker.ingest.spool import Finished, Spool

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tracker.batch import Source
    from tracker.study import Study


class Collector:
    """Takes batches and refusals in file order; `finish` gives the reading."""

    def __init__(self, source: Source, study: Study, folder: Path) -> None:
        self.source, self.study = source, study
        self.refusals: list[Refusal] = []
        self._runs: list[ReadRun] = []
        self._ordinals: dict[tuple[Any, ...], int] = {}
        self._positions: list[int] = []
        self._asked: list[bool] = []
        self._points = Points(folder)
        self._records = Spool(folder, RECORDS)
        self._questions = Spool(folder, QUESTIONS)
        self._unnamed = Spool(folder, QUESTIONS)
        self._labels = Spool(folder, LABELS)
        self._scores = Spool(folder, RECORD_SCORES)
        self._finished_records, self._finished_scores = Finished(folder), Finished(folder)

    def take(self, item: Batch | Refusal) -> None:
        """One batch or refusal, in file order."""
        if isinstance(item, Refusal):
            self.refusals.append(storable(item))
            return
        header, in_header = clean_header(self.study.apply(item.run, self.source))
        item, in_texts = _clean(item)
        identity = (header.model, header.benchmark, header.kind, header.configuration, header.external_id)
        ordinal = self._ordinals.setdefault(identity, len(self._ordinals))
        if ordinal == len(self._runs):
            self._runs.append(ReadRun(header=header))
            self._positions.append(0)
            self._asked.append(False)
        self._keep(ordinal, item)
        run = self._runs[ordinal]
        run.header = header
        run.scores += [score.model_copy(update={"metric": score.metric.replace(NUL, REPLACEMENT)}) for score in item.scores]
        run.n_records += item.records.num_rows
        run.nul_characters = max(run.nul_characters, in_header) + in_texts

    def finish(self, digest: str, size: int) -> Reading:
        """Finish every run."""
        scores = _Aligned(self._scores.runs())
        for ordinal, whole in self._records.runs():
            records = finish_records(with_attempts(whole))
            self._runs[ordinal].n_repeated = int(np.count_nonzero(records.column("attempt").to_numpy()))
            self._finished_records.write(records)
            self._finished_scores.write(_scores_of(records, scores.of(ordinal)))
        self._finish_questions()
        for ordinal, labels in self._labels.runs():
            self._runs[ordinal].labels = first_per_key(labels.drop_columns(["run", "position"]), ["key", "scheme", "source"])
        for ordinal, run in enumerate(self._runs):
            run.labels_digest = table_digest(run.labels) if run.labels.num_rows else ""
            run.metric_points = self._points.held(ordinal)
            run.header = completeness(run, self.study)
        self._discard_spools()
        return Reading(
            source=self.source,
            digest=digest,
            runs=self._runs,
            refusals=self.refusals,
            records=self._finished_records.close(),
            record_scores=self._finished_scores.close(),
            metric_points=self._points.close(),
            bytes=size,
        )

    def discard(self) -> None:
        """Remove everything on disk."""
        self._discard_spools()
        self._finished_records.discard()
        self._finished_scores.discard()
        self._points.discard()

    def _discard_spools(self) -> None:
        for spool in (self._records, self._questions, self._unnamed, self._labels, self._scores):
            spool.discard()

    def _keep(self, ordinal: int, item: Batch) -> None:
        start = self._positions[ordinal]
        self._positions[ordinal] += item.records.num_rows
        if item.records.num_rows:
            self._records.add(ordinal, item.records)
        if item.record_scores is not None and item.record_scores.num_rows:
            extra = item.record_scores
            self._scores.add(ordinal, extra.set_column(0, "row", pc.add(extra.column("row"), start)))
        if item.questions is not None:
            self._asked[ordinal] |= item.questions.num_rows > 0
            self._questions.add(ordinal, item.questions)
        if item.labels is not None:
            self._labels.add(ordinal, item.labels)
        if item.metric_points is not None and item.metric_points.num_rows:
            self._points.add(ordinal, item.metric_points.cast(METRIC_POINTS))
        if item.records.num_rows:
            self._unnamed.add(ordinal, _unnamed_questions(item))

    def _finish_questions(self) -> None:
        """Distinct questions of each run; runs that say the same share one table."""
        unnamed = _Aligned(self._unnamed.runs())
        shared: dict[str, pa.Table] = {}
        named = _Aligned(self._questions.runs())
        for ordinal, run in enumerate(self._runs):
            if not run.n_records and not self._asked[ordinal]:
                run.facts_digest = _NOTHING.digest
                run.questions = _NOTHING.questions
                continue
            told = [table.drop_columns(["run", "position"]) for table in (named.of(ordinal), unnamed.of(ordinal)) if table is not None]
            facts = _facts_of(pa.concat_tables(told) if told else QUESTIONS.empty_table())
            run.facts_digest = facts.digest
            run.questions = shared.setdefault(facts.digest, facts.questions)


RECENT_BYTES = 1 << 20
"""Larger tables are not kept to be compared with."""


class _Facts(NamedTuple):
    """What a run told of its questions, the distinct questions of that, and their digest."""

    told: pa.Table
    questions: pa.Table
    digest: str


_RECENT: deque[_Facts] = deque(maxlen=8)
"""What the last runs told: the next one mostly tells the same."""


def _facts_of(told: pa.Table) -> _Facts:
    for facts in _RECENT:
        if facts.told.num_rows == told.num_rows and facts.told.equals(told):
            return facts
    questions = distinct_questions(told)
    facts = _Facts(told, questions, table_digest(questions))
    if told.nbytes < RECENT_BYTES:
        _RECENT.appendleft(facts)
    return facts


class _Aligned:
    """Rows of runs that come in order, asked for in order."""

    def __init__(self, runs: Iterator[tuple[int, pa.Table]]) -> None:
        self._runs = runs
        self._next = next(runs, None)

    def of(self, ordinal: int) -> pa.Table | None:
        while self._next is not None and self._next[0] < ordinal:
            self._next = next(self._runs, None)
        return self._next[1] if self._next is not None and self._next[0] == ordinal else None


def _scores_of(records: pa.Table, scores: pa.Table | None) -> pa.Table:
    """The further scores of a run with the question, repetition and attempt of their record; one per scorer."""
    if scores is None:
        return pa.table({})
    rows = scores.column("row")
    inside = pc.less(rows, records.num_rows)
    scores = scores.filter(inside)
    owners = records.select(["question_key", "repetition", "attempt"]).take(scores.column("row"))
    columns = {"run": scores.column("run"), **{name: owners.column(name) for name in owners.schema.names}}
    table = pa.table({**columns, **{name: scores.column(name) for name in ("scorer", "score", "special")}})
    return first_per_key(table, ["question_key", "repetition", "attempt", "scorer"])


def storable(refusal: Refusal) -> Refusal:
    """A refusal whose texts any database can keep and any terminal can show."""
    text = None if refusal.text is None else printable(refusal.text.replace(NUL, REPLACEMENT))
    return replace(refusal, file=printable(refusal.file), reason=printable(refusal.reason.replace(NUL, REPLACEMENT)), text=text)


def _clean(item: Batch) -> tuple[Batch, int]:
    """A batch without NUL characters; also how many texts of its records had one."""
    records, replaced = clean_table(item.records)
    others = {name: getattr(item, name) for name in ("questions", "labels", "record_scores")}
    cleaned = {name: table and clean_table(table)[0] for name, table in others.items()}
    same = records is item.records and all(cleaned[name] is table for name, table in others.items())
    return (item if same else replace(item, records=records, **cleaned)), replaced


def _unnamed_questions(item: Batch) -> pa.Table:
    """Questions that records answer and of which the batch says nothing: their keys alone."""
    keys = item.records.column("question_key")
    if item.questions is not None and keys.equals(item.questions.column("key")):
        return QUESTIONS.empty_table()
    keys = keys.unique()
    if item.questions is not None:
        keys = keys.filter(pc.invert(pc.is_in(keys, value_set=item.questions.column("key").combine_chunks())))
    return pa.table([keys if field.name == "key" else pa.nulls(len(keys), field.type) for field in QUESTIONS], schema=QUESTIONS)


def distinct_questions(table: pa.Table) -> pa.Table:
    """One row per key in the order of keys, the first that names it; keys of one run that share a content hash are marked."""
    keys = table.column("key").combine_chunks().dictionary_encode()
    first = np.unique(keys.indices.to_numpy(), return_index=True)[1]
    order = pc.sort_indices(keys.dictionary)
    table = table.take(pa.array(first).take(order)).combine_chunks()
    hashes = table.column("content_hash").combine_chunks().dictionary_encode()
    codes = pc.fill_null(hashes.indices, -1).to_numpy()
    repeats = np.bincount(codes[codes >= 0], minlength=len(hashes.dictionary) + 1) > 1
    return table.append_column("hash_repeats", pa.array(np.where(codes >= 0, repeats[codes], np.False_)))


_NOTHING = _Facts(told=QUESTIONS.empty_table(), questions=distinct_questions(QUESTIONS.empty_table()), digest="")
"""What a run without questions tells."""


def first_per_key(table: pa.Table, keys: list[str]) -> pa.Table:
    """The first row of each key, in the order of rows."""
    if table.num_rows < 2:
        return table
    numbered = table.select(keys).append_column("__row", pa.array(range(table.num_rows), pa.int64()))
    first = numbered.group_by(keys, use_threads=False).aggregate([("__row", "min")]).column("__row_min")
    return table if len(first) == table.num_rows else table.take(first.take(pc.sort_indices(first)))


def table_digest(table: pa.Table) -> str:
    """Digest of a table's content."""
    whole = hashlib.sha256()
    for batch in table.combine_chunks().to_batches():
        whole.update(batch.serialize())
    return whole.hexdigest()


def completeness(run: ReadRun, study: Study) -> RunHeader:
    """A run with fewer records than declared, or fewer questions than the study file says, is partial."""
    header = run.header
    if header.status != "finished" or header.kind == "training" or not run.n_records:
        return header
    reasons = []
    if header.n_expected is not None and run.n_records < header.n_expected:
        reasons.append(f"{run.n_records} records of {header.n_expected} declared")
    expected = _expected_questions(header.benchmark, study)
    if expected is not None and run.questions.num_rows < expected:
        reasons.append(f"{run.questions.num_rows} questions of {expected} that the study file expects")
    return header.model_copy(update={"status": "partial", "status_reason": "; ".join(reasons)}) if reasons else header


def _expected_questions(benchmark: str | None, study: Study) -> int | None:
    if benchmark is None or not study.questions:
        return None
    from tracker.catalog import load

    def names(spelling: str) -> set[str]:
        spelling = study.benchmark_aliases.get(spelling, spelling)
        known = load().benchmark(spelling)
        return {spelling, known.name} if known else {spelling}

    wanted = {benchmark} | names(benchmark)
    return next((count for spelling, count in study.questions.items() if spelling in wanted or names(spelling) & wanted), None)
