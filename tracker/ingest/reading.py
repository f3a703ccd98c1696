"""Read one source into whole runs, ready to load: numbered attempts, statuses, final flags, cleaned values.

This is the part of ingest that costs time, so it runs in worker processes. Records go through a spool file
(Arrow IPC), so that memory is bounded by a chunk and not by the size of a file.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tracker.batch import LABELS, METRIC_POINTS, QUESTIONS, RECORD_SCORES, RECORDS, AggregateScore, Batch, Refusal, RunHeader
from tracker.errors import InputError, TrackrError
from tracker.ingest.digest import Digest, digest, stamps
from tracker.ingest.shape import clean_text, finish_records, with_attempts
from tracker.readers import reader as reader_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tracker.batch import Source
    from tracker.study import Study

SPOOLED = pa.schema([pa.field("run", pa.int32()), pa.field("position", pa.int64()), *RECORDS])
TEXT_LIMIT = 500


@dataclass(slots=True, kw_only=True)
class ReadRun:
    """One run as it was read, without its records (they are in the spool)."""

    header: RunHeader
    n_records: int = 0
    questions: pa.Table = field(default_factory=QUESTIONS.empty_table)
    facts_digest: str = ""
    labels: pa.Table = field(default_factory=LABELS.empty_table)
    labels_digest: str = ""
    scores: list[AggregateScore] = field(default_factory=list)
    metric_points: pa.Table = field(default_factory=METRIC_POINTS.empty_table)
    nul_characters: int = 0


@dataclass(slots=True, kw_only=True)
class Reading:
    """Everything that was read from one source."""

    source: Source
    digest: str
    runs: list[ReadRun]
    refusals: list[Refusal]
    spool: Path | None
    bytes: int

    def records(self) -> Iterator[tuple[int, pa.Table]]:
        """(position of the run in `runs`, a piece of its finished records), runs one after the other."""
        if self.spool is None:
            return
        with pa.memory_map(str(self.spool)) as mapped, pa.ipc.open_file(mapped) as stream:
            for index in range(stream.num_record_batches):
                batch = stream.get_batch(index)
                if batch.num_rows:
                    yield batch.column("run")[0].as_py(), pa.table(batch)

    def record_scores(self) -> pa.Table:
        """Further scores with the run's position and the record's question, repetition and attempt."""
        path = self.spool and self.spool.with_suffix(".scores")
        if path is None or not path.exists():
            return pa.table({})
        with pa.memory_map(str(path)) as mapped, pa.ipc.open_file(mapped) as stream:
            return stream.read_all()

    def discard(self) -> None:
        """Remove the spool."""
        if self.spool is not None:
            self.spool.unlink(missing_ok=True)
            self.spool.with_suffix(".scores").unlink(missing_ok=True)


def read_source(source: Source, study: Study, known_digest: Digest | None, folder: Path) -> Reading:
    """Read a source wholly; a source that cannot be used becomes a reading without runs and a refusal."""
    try:
        before = stamps(source)
    except InputError as err:
        return _refused(source, "unreadable", err)
    size = sum(stamp.size for stamp in before)
    one = reader_of(source.reader)
    try:
        found = known_digest or digest(source, one, study.effective(source))
    except InputError as err:
        return _refused(source, "unreadable", err)
    value = found.value
    collector = _Collector(source, study, folder, may_hold_nul=found.may_hold_nul)
    try:
        for item in one.read(source, study):
            collector.take(item)
        reading = collector.finish(value, size)
    except InputError as err:
        collector.discard()
        return Reading(source=source, digest=value, runs=[], refusals=[*collector.refusals, _refusal(source, err)], spool=None, bytes=size)
    except OSError as err:
        collector.discard()
        message = f"cannot be read: {err.strerror}" if err.strerror else f"cannot be read: {err}"
        return _refused(source, value, InputError(message, where=str(err.filename or source.uri), hint="check the disk and run the command again"))
    if stamps(source) != before:
        reading.discard()
        changed = InputError("changed while it was read", where=source.uri, hint="run the command again when its writer is done")
        return _refused(source, f"changing-{value}", changed)
    return reading


def collect(items: Iterable[Batch | Refusal], source: Source, study: Study, folder: Path, value: str) -> Reading:
    """A reading of batches that come from elsewhere than a file."""
    collector = _Collector(source, study, folder)
    for item in items:
        collector.take(item)
    return collector.finish(value, 0)


def _refused(source: Source, value: str, err: InputError) -> Reading:
    return Reading(source=source, digest=value, runs=[], refusals=[_refusal(source, err)], spool=None, bytes=0)


def _refusal(source: Source, err: TrackrError) -> Refusal:
    remedy = f" ({err.hint})" if err.hint else ""
    return Refusal(file=err.where or source.uri, reason=f"{err.message}{remedy}")


class _Collector:
    """Takes what a reader yields and spools it."""

    def __init__(self, source: Source, study: Study, folder: Path, *, may_hold_nul: bool = True) -> None:
        self.source, self.study, self.may_hold_nul = source, study, may_hold_nul
        self.refusals: list[Refusal] = []
        self.runs: list[ReadRun] = []
        self.questions: list[list[pa.Table]] = []
        self.unnamed: list[list[pa.Table]] = []
        self.labels: list[list[pa.Table]] = []
        self.points: list[list[pa.Table]] = []
        self.scores: list[pa.Table] = []
        self._ordinals: dict[tuple[Any, ...], int] = {}
        self._interleaved = False
        self._last = -1
        self._positions: list[int] = []
        handle, name = tempfile.mkstemp(suffix=".arrow", dir=folder)
        os.close(handle)
        self.path = Path(name)
        self._sink: Any = None
        self._pieces: list[pa.Table] = []
        self._held = 0

    def take(self, item: Batch | Refusal) -> None:
        """One batch or refusal, in file order."""
        if isinstance(item, Refusal):
            self.refusals.append(item)
            return
        header = self.study.apply(item.run, self.source)
        identity = (header.model, header.benchmark, header.kind, header.configuration, header.external_id)
        ordinal = self._ordinals.setdefault(identity, len(self._ordinals))
        if ordinal == len(self.runs):
            self._open_run(header)
        elif ordinal != self._last:
            self._interleaved = True
        self._last = ordinal
        run = self.runs[ordinal]
        run.header = header
        run.scores += item.scores
        for kept, piece in ((self.questions, item.questions), (self.labels, item.labels), (self.points, item.metric_points)):
            if piece is not None and piece.num_rows:
                kept[ordinal].append(piece)
        unnamed = _unnamed_questions(item)
        if unnamed.num_rows:
            self.unnamed[ordinal].append(unnamed)
        self._keep(ordinal, item)

    def _open_run(self, header: RunHeader) -> None:
        self.runs.append(ReadRun(header=header))
        self.questions.append([])
        self.unnamed.append([])
        self.labels.append([])
        self.points.append([])
        self._positions.append(0)

    def _keep(self, ordinal: int, item: Batch) -> None:
        rows = item.records.num_rows
        start = self._positions[ordinal]
        self._positions[ordinal] += rows
        if item.record_scores is not None and item.record_scores.num_rows:
            extra = item.record_scores.cast(RECORD_SCORES)
            moved = pc.add(extra.column("row"), start)
            ordinals = pa.array([ordinal] * extra.num_rows, pa.int32())
            self.scores.append(extra.set_column(0, "row", moved).add_column(0, "run", ordinals))
        if not rows:
            return
        self.runs[ordinal].n_records += rows
        table = item.records.cast(RECORDS)
        table = table.add_column(0, "run", pa.repeat(pa.scalar(ordinal, pa.int32()), rows))
        table = table.add_column(1, "position", pa.array(range(start, start + rows), pa.int64()))
        self._pieces.append(table)
        self._held += rows
        if self._held >= 100_000:
            self._flush()

    def _flush(self) -> None:
        if self._sink is None:
            self._sink = pa.ipc.new_file(str(self.path), SPOOLED)
        for piece in self._pieces:
            self._sink.write_table(piece)
        self._pieces, self._held = [], 0

    def discard(self) -> None:
        """Remove what was spooled."""
        if self._sink is not None:
            self._sink.close()
        self.path.unlink(missing_ok=True)

    def finish(self, value: str, size: int) -> Reading:
        """Finish every run: attempts, statuses, final flags, questions, completeness."""
        finished = self.path.with_suffix(".finished")
        with pa.OSFile(str(finished), "wb") as target, _LazyWriter(target) as out:
            keys: list[pa.Array] = []
            for ordinal, whole in self._whole_runs():
                numbered = with_attempts(whole)
                records, nul = finish_records(numbered, may_hold_nul=self.may_hold_nul)
                self.runs[ordinal].nul_characters += nul
                out.write(records)
                if self.scores:
                    keys.append(records.select(["run", "position", "question_key", "repetition", "attempt"]))
        self.discard()
        spool = self.path if out.rows else None
        if spool is None:
            finished.unlink(missing_ok=True)
        else:
            finished.rename(self.path)
        if keys and spool is not None:
            _write_scores(spool.with_suffix(".scores"), self.scores, keys)
        for ordinal, run in enumerate(self.runs):
            self._finish_run(ordinal, run)
        return Reading(source=self.source, digest=value, runs=self.runs, refusals=self.refusals, spool=spool, bytes=size)

    def _finish_run(self, ordinal: int, run: ReadRun) -> None:
        run.questions = _distinct_questions(self.questions[ordinal] + self.unnamed[ordinal], may_hold_nul=self.may_hold_nul)
        run.facts_digest = _table_digest(run.questions)
        labels = self.labels[ordinal]
        run.labels = _first_per_key(pa.concat_tables([piece.cast(LABELS) for piece in labels]), ["key", "scheme", "source"]) if labels else run.labels
        run.labels_digest = _table_digest(run.labels)
        points = self.points[ordinal]
        run.metric_points = pa.concat_tables([piece.cast(METRIC_POINTS) for piece in points]) if points else run.metric_points
        run.header = _completeness(run, self.study)

    def _whole_runs(self) -> Iterator[tuple[int, pa.Table]]:
        """The records of each run, one run after the other."""
        if self._sink is None:
            yield from _split(pa.concat_tables(self._pieces) if self._pieces else SPOOLED.empty_table(), sort=self._interleaved)
            return
        self._flush()
        self._sink.close()
        self._sink = None
        if self._interleaved:
            yield from _sorted_runs(self.path)
        else:
            yield from _runs_in_order(self.path)


class _LazyWriter:
    """Writes pieces of at most 20,000 rows, each of one run."""

    def __init__(self, target: Any) -> None:
        self._target, self._writer, self.rows = target, None, 0

    def __enter__(self) -> _LazyWriter:
        return self

    def __exit__(self, *_: object) -> None:
        if self._writer is not None:
            self._writer.close()

    def write(self, table: pa.Table) -> None:
        if self._writer is None:
            self._writer = pa.ipc.new_file(self._target, table.schema)
        self._writer.write_table(table.combine_chunks(), max_chunksize=20_000)
        self.rows += table.num_rows


def _split(table: pa.Table, *, sort: bool) -> Iterator[tuple[int, pa.Table]]:
    """Runs of a table in memory."""
    if table.num_rows == 0:
        return
    if sort:
        table = table.sort_by([("run", "ascending"), ("position", "ascending")])
    ordinals = table.column("run").combine_chunks()
    encoded = pc.run_end_encode(ordinals)
    start = 0
    for end, ordinal in zip(encoded.run_ends.to_pylist(), encoded.values.to_pylist(), strict=True):
        yield ordinal, table.slice(start, end - start)
        start = end


def _runs_in_order(path: Path) -> Iterator[tuple[int, pa.Table]]:
    """Runs of a spool whose runs do not interleave."""
    held: list[pa.Table] = []
    with pa.memory_map(str(path)) as mapped, pa.ipc.open_file(mapped) as stream:
        for index in range(stream.num_record_batches):
            piece = pa.table(stream.get_batch(index))
            if held and held[-1].column("run")[-1].as_py() != piece.column("run")[0].as_py():
                yield held[0].column("run")[0].as_py(), pa.concat_tables(held)
                held = []
            held.append(piece)
        if held:
            yield held[0].column("run")[0].as_py(), pa.concat_tables(held)


def _sorted_runs(path: Path) -> Iterator[tuple[int, pa.Table]]:
    """Runs of a spool whose runs interleave: sorted on disk by DuckDB, in bounded memory."""
    import duckdb

    with tempfile.TemporaryDirectory(dir=path.parent) as scratch, pa.memory_map(str(path)) as mapped, pa.ipc.open_file(mapped) as stream:
        connection = duckdb.connect(config={"memory_limit": "256MB", "threads": "1", "temp_directory": scratch})
        batches = (stream.get_batch(index) for index in range(stream.num_record_batches))
        spool = pa.RecordBatchReader.from_batches(SPOOLED, batches)
        connection.register("spool", spool)
        ordered = connection.execute("SELECT * FROM spool ORDER BY run, position").to_arrow_reader(20_000)
        held: list[pa.Table] = []
        for batch in ordered:
            for ordinal, piece in _split(pa.table(batch).cast(SPOOLED), sort=False):
                if held and held[-1].column("run")[0].as_py() != ordinal:
                    yield held[0].column("run")[0].as_py(), pa.concat_tables(held)
                    held = []
                held.append(piece)
        if held:
            yield held[0].column("run")[0].as_py(), pa.concat_tables(held)
        connection.close()


def _unnamed_questions(item: Batch) -> pa.Table:
    """Questions that records answer and of which the batch says nothing: their keys alone."""
    keys = item.records.column("question_key").unique()
    if item.questions is not None:
        keys = keys.filter(pc.invert(pc.is_in(keys, value_set=item.questions.column("key").combine_chunks())))
    return pa.table([keys if field.name == "key" else pa.nulls(len(keys), field.type) for field in QUESTIONS], schema=QUESTIONS)


def _distinct_questions(pieces: list[pa.Table], *, may_hold_nul: bool) -> pa.Table:
    """One row per key in the order of keys, the first that names it; keys of one run that share a content hash are marked."""
    table = pa.concat_tables([piece.cast(QUESTIONS) for piece in pieces]) if pieces else QUESTIONS.empty_table()
    if may_hold_nul:
        table = pa.table([clean_text(column)[0] if pa.types.is_string(column.type) else column for column in table.columns], schema=QUESTIONS)
    keys = table.column("key").combine_chunks().dictionary_encode()
    first = np.unique(keys.indices.to_numpy(), return_index=True)[1]
    order = pc.sort_indices(keys.dictionary)
    table = table.take(pa.array(first).take(order)).combine_chunks()
    hashes = table.column("content_hash").combine_chunks().dictionary_encode()
    codes = pc.fill_null(hashes.indices, -1).to_numpy()
    repeats = np.bincount(codes[codes >= 0], minlength=len(hashes.dictionary) + 1) > 1
    return table.append_column("hash_repeats", pa.array(np.where(codes >= 0, repeats[codes], np.False_)))


def _first_per_key(table: pa.Table, keys: list[str]) -> pa.Table:
    if table.num_rows < 2:
        return table
    numbered = table.select(keys).append_column("__row", pa.array(range(table.num_rows), pa.int64()))
    first = numbered.group_by(keys, use_threads=False).aggregate([("__row", "min")]).column("__row_min")
    return table if len(first) == table.num_rows else table.take(first.take(pc.sort_indices(first)))


def _table_digest(table: pa.Table) -> str:
    whole = hashlib.sha256()
    for batch in table.combine_chunks().to_batches():
        whole.update(batch.serialize())
    return whole.hexdigest()


def _completeness(run: ReadRun, study: Study) -> RunHeader:
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


def _write_scores(path: Path, scores: list[pa.Table], keys: list[pa.Table]) -> None:
    """Join the further scores with the question, repetition and attempt of their record."""
    rows = pa.concat_tables(scores).join(pa.concat_tables(keys), keys=["run", "row"], right_keys=["run", "position"], join_type="inner", use_threads=False)
    rows = _first_per_key(rows, ["run", "question_key", "repetition", "attempt", "scorer"])
    with pa.ipc.new_file(str(path), rows.schema) as writer:
        writer.write_table(rows)
