"""Load readings: whole runs, in as few transactions as is kind to other writers."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import sqlalchemy as sa

from tracker.database import bulk
from tracker.ingest import runs as run_rows
from tracker.ingest.identity import IDENTITY, leave_copies, recency, settle_places, spelled_identity, stored_runs
from tracker.ingest.labels import attach_waiting, store_labels
from tracker.ingest.link import Linker, prune
from tracker.ingest.questions import Questions, forget, solo_questions
from tracker.ingest.read import refused
from tracker.ingest.report import IngestReport, Rejected
from tracker.ingest.shape import clean_table
from tracker.schema import Ingest, MetricPoint, Record, RecordScore, Rejection, Run, RunSource, Score
from tracker.version import version

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tracker.batch import Source
    from tracker.database import Database, Transaction
    from tracker.errors import InputError
    from tracker.ingest.reading import Reading, ReadRun

GROUP_RECORDS = 25_000
GROUP_SOURCES = 500
TEXT_LIMIT = 500
IN_LIMIT = 500


class Staged(Protocol):
    """Takes the rows of whole runs that a transaction writes, so that the lake need not read them back."""

    def add(self, table_name: str, rows: pa.Table, versions: dict[int, int], *, more: bool = False) -> None:
        """Rows with database ids."""
        ...

    def discard(self) -> None:
        """Forget everything; the transaction failed."""
        ...


@dataclass(slots=True)
class _Row:
    """A run on its way into the database."""

    reading: Reading
    ordinal: int
    read: ReadRun
    values: dict[str, Any]
    benchmark_id: int | None
    model_id: int
    run_id: int | None = None
    version: int = 1
    supersedes: bool = False
    question_ids: pa.Array | None = None
    """Ids of the questions in `read.questions`, row by row."""


class Loader:
    """Loads readings into one database; its caches live as long as nobody else writes."""

    def __init__(self, database: Database, report: IngestReport, paths: Sequence[str], staged: Staged | None = None) -> None:
        self.database, self.report, self.paths, self.staged = database, report, list(paths), staged
        self._expected: int | None = None
        self._linker: Linker | None = None
        self._questions: Questions | None = None
        self._labels_seen: set[str] = set()
        self._group: list[Reading] = []
        self._group_records = 0
        self._disputed: set[int] = set()
        self._later: list[Reading] = []

    def add(self, reading: Reading) -> None:
        """Take one reading; loads the group when it is large enough."""
        self._group.append(reading)
        self._group_records += reading.rows
        if self._group_records >= GROUP_RECORDS or len(self._group) >= GROUP_SOURCES:
            self.flush()

    def flush(self) -> None:
        """Load what is waiting in one transaction."""
        group, self._group, self._group_records = self._group, [], 0
        if not group:
            return
        try:
            with self.database.write() as transaction:
                self._load(transaction, group)
            # The next transaction may trust the caches if its data_version is the one this one left behind.
            self._expected = None if self._expected is None else self._expected + transaction.data_changed
        except BaseException:
            self._expected = None
            if self.staged is not None:
                self.staged.discard()
            raise
        finally:
            for reading in group:
                reading.discard()

    def refuse(self, source: Source, value: str, err: InputError) -> None:
        """Store that something was refused which holds no runs."""
        with self.database.write() as transaction:
            self._store_rejections(transaction, [refused(source, value, err)])
        self._expected = None

    # ---- one transaction ------------------------------------------------------------------

    def _load(self, transaction: Transaction, group: list[Reading]) -> None:
        connection = transaction.connection
        self._trust_caches(connection)
        fresh = self._known_apart(transaction, group)
        usable = [reading for reading in fresh if reading.runs]  # one that cannot be used now takes nothing away
        if not usable:
            self._join(connection)
            return
        transaction.changed()
        noted = _noted(connection, usable)
        for reading in noted:
            leave_copies(connection, reading.source.uri)
        rows = [row for reading in usable for row in self._rows(connection, reading)]
        rows, older = self._match(connection, rows)
        self._clear(connection, rows)
        if rows:
            self._write_runs(connection, rows)
            self._write_contents(connection, rows)
        self._write_places(transaction, rows, older)
        if rows:
            self._settle(connection, rows)
        # At the end: what nothing refers to is removed with them, and the new runs refer to what they need by now.
        for reading in noted:
            self._leave(connection, reading)
        self._join(connection)

    def _trust_caches(self, connection: sa.Connection) -> None:
        present = self.database.store(connection).data_version
        if self._expected != present or self._linker is None or self._questions is None:
            self._linker, self._questions = Linker(connection), Questions(connection)
            self._labels_seen.clear()
        self._linker.connection = self._questions.connection = connection
        self._expected = present

    def _known_apart(self, transaction: Transaction, group: list[Reading]) -> list[Reading]:
        """Readings to load; the rest was stored meanwhile, or is a copy of a run stored from elsewhere."""
        places = _places(transaction.connection, group)
        self._store_rejections(transaction, group)
        fresh: dict[str, Reading] = {}
        refused: list[Reading] = []
        self._later = []
        for reading in group:
            known = places.get(reading.digest, [])
            self.report.bytes += reading.bytes
            if any(uri == reading.source.uri for _, uri in known):
                self.report.unchanged += len(reading.runs)
            elif not reading.runs:
                refused.append(reading)
            elif known:
                self._note_place(transaction, reading, sorted({run_id for run_id, _ in known}))
            elif reading.digest in fresh:
                self._later.append(reading)  # a copy of one that gets its run ids below
            else:
                fresh[reading.digest] = reading
        return [*fresh.values(), *refused]

    def _note_place(self, transaction: Transaction, reading: Reading, run_ids: list[int]) -> None:
        """The same bytes, read the same way, in another place: the same run."""
        connection = transaction.connection
        self._leave(connection, reading)
        self._add_places(connection, [self._place(run_id, reading) for run_id in run_ids])
        settle_places(connection, run_ids)
        transaction.changed()
        self.report.duplicate += len(run_ids)

    def _add_places(self, connection: sa.Connection, places: list[dict[str, Any]]) -> None:
        """Note places, each in the stead of an earlier note of it."""
        table = bulk.table("run_sources")
        stale = sa.delete(table).where(table.c.run_id == sa.bindparam("b_run"), table.c.uri == sa.bindparam("b_uri"))
        connection.execute(stale, [{"b_run": place["run_id"], "b_uri": place["uri"]} for place in places])
        connection.execute(sa.insert(table), places)

    def _place(self, run_id: int, reading: Reading) -> dict[str, Any]:
        return {"run_id": run_id, "uri": reading.source.uri, "digest": reading.digest, "seen_at": datetime.now(UTC)}

    def _store_rejections(self, transaction: Transaction, group: list[Reading]) -> None:
        connection = transaction.connection
        refused = [reading for reading in group if reading.refusals]
        self.report.rejected += [
            Rejected(file=one.file, line=one.line, reason=one.reason, text=_cut(one.text))
            for reading in refused
            for one in reading.refusals
        ]
        uris = [reading.source.uri for reading in refused]
        stored = set(connection.execute(sa.select(Rejection.uri, Rejection.digest).where(Rejection.uri.in_(uris))).all()) if uris else set()
        rows = [
            {
                "ingest_id": self._ingest(connection),
                "uri": reading.source.uri,
                "digest": reading.digest,
                "file": one.file,
                "line": one.line,
                "reason": one.reason,
                "text": _cut(one.text),
            }
            for reading in refused
            if (reading.source.uri, reading.digest) not in stored
            for one in reading.refusals
        ]
        if rows:
            connection.execute(sa.insert(Rejection), rows)
            transaction.changed()

    def _ingest(self, connection: sa.Connection) -> int:
        """The row of this ingest, made when the first thing is written."""
        if self.report.ingest_id is None:
            values = {"started_at": datetime.now(UTC), "paths": self.paths, "version": version(), "host": socket.gethostname()}
            self.report.ingest_id = connection.execute(sa.insert(Ingest).values(values).returning(Ingest.id)).scalar_one()
        return self.report.ingest_id

    def _rows(self, connection: sa.Connection, reading: Reading) -> list[_Row]:
        """Run rows of a reading, with names resolved and identities that differ."""
        assert self._linker is not None  # noqa: S101
        rows: list[_Row] = []
        taken: set[tuple[Any, ...]] = set()
        spelled = sorted(enumerate(reading.runs), key=lambda one: (one[1].header.model, one[1].header.benchmark or ""))
        for ordinal, read in spelled:
            header = read.header
            model_id = self._linker.model(header.model)
            benchmark_id = self._linker.benchmark(header.benchmark) if header.benchmark is not None else None
            configuration_id = self._linker.configuration(model_id, header.configuration.model_dump())
            external_id = header.external_id or reading.source.uri
            if (external_id, benchmark_id, configuration_id) in taken:
                external_id = spelled_identity(external_id, header.model, header.benchmark)
            taken.add((external_id, benchmark_id, configuration_id))
            values = {
                "kind": header.kind,
                "configuration_id": configuration_id,
                "benchmark_id": benchmark_id,
                "model_name": header.model,
                "benchmark_name": header.benchmark,
                "ingest_id": self._ingest(connection),
                "source_format": reading.source.reader,
                "framework": header.framework,
                "framework_version": header.framework_version,
                "source_uri": reading.source.uri,
                "external_id": external_id,
                "digest": reading.digest,
                "status": header.status,
                "status_reason": header.status_reason,
                "started_at": _utc(header.started_at),
                "ended_at": _utc(header.ended_at),
                "n_records": read.n_records,
                "n_expected": header.n_expected,
                "system": header.system,
                "settings": header.settings,
                "tags": header.tags,
            }
            rows.append(_Row(reading=reading, ordinal=ordinal, read=read, values=values, benchmark_id=benchmark_id, model_id=model_id))
        return sorted(rows, key=lambda row: row.ordinal)

    def _match(self, connection: sa.Connection, rows: list[_Row]) -> tuple[list[_Row], list[tuple[_Row, _Row | int]]]:
        """Find stored runs of the same identity: they keep their id and get the next version.

        Where places hold the same run (by its own id) in different versions, the latest is the one to keep: by status,
        times, number of records, digest. Returns the rows to write, and the others with the row or run they yield to.
        """
        stored = stored_runs(connection, sorted({row.values["external_id"] for row in rows}), {row.reading.source.uri for row in rows})
        contests: dict[tuple[Any, ...], list[_Row]] = {}
        for row in rows:
            contests.setdefault(tuple(row.values[name] for name in IDENTITY), []).append(row)
        winners: list[_Row] = []
        older: list[tuple[_Row, _Row | int]] = []
        for identity, entrants in contests.items():
            best = max(entrants, key=lambda row: recency(row.values))
            known = stored.get(identity)
            if known is not None and known.lives_elsewhere and known.recency > recency(best.values):
                older += [(row, known.run_id) for row in entrants]
                continue
            older += [(row, best) for row in entrants if row is not best]
            if known is not None:
                best.run_id, best.version, best.supersedes = known.run_id, known.version + 1, known.recency <= recency(best.values)
            winners.append(best)
        self.report.outdated += len(older)
        return [row for row in rows if any(row is one for one in winners)] if older else rows, older

    def _clear(self, connection: sa.Connection, rows: list[_Row]) -> None:
        """Clear what replaced runs held."""
        assert self._questions is not None  # noqa: S101
        replaced = [row.run_id for row in rows if row.run_id is not None]
        if replaced:
            run_rows.mark_dirty(connection, run_rows.slices_of(connection, replaced))
            solo = solo_questions(connection, replaced)
            if solo:
                forget(connection, solo)
                self._renew(connection, {row.benchmark_id for row in rows if row.benchmark_id is not None})
            for table in (Record, RecordScore, MetricPoint, Score):
                connection.execute(sa.delete(table).where(table.run_id.in_(replaced)))
            # Other versions of the run stay noted where this one is later; else they are read again next time.
            for row in rows:
                if row.run_id is not None and not row.supersedes:
                    connection.execute(sa.delete(RunSource).where(RunSource.run_id == row.run_id, RunSource.digest != row.reading.digest))

    def _leave(self, connection: sa.Connection, reading: Reading) -> None:
        """The source no longer holds the runs that were noted there with another digest."""
        here = (RunSource.uri == reading.source.uri, RunSource.digest != reading.digest)
        held = list(connection.execute(sa.select(RunSource.run_id).where(*here)).scalars())
        if not held:
            return
        connection.execute(sa.delete(RunSource).where(*here))
        gone = settle_places(connection, held)
        if gone:
            run_rows.remove_runs(connection, gone)
            self.report.removed += len(gone)
            self._pruned(connection)

    def _pruned(self, connection: sa.Connection) -> None:
        self._renew(connection, prune(connection))

    def _renew(self, connection: sa.Connection, rehashed: set[int]) -> None:
        """Caches that know what was removed; `rehashed` are benchmarks whose keys must be joined anew."""
        if self._questions is not None:
            self._questions.write_changes()
            rehashed |= self._questions.rehashed
        self._linker, self._questions = Linker(connection), Questions(connection)
        self._questions.rehashed |= rehashed
        self._labels_seen.clear()

    def _write_runs(self, connection: sa.Connection, rows: list[_Row]) -> None:
        new = [row for row in rows if row.run_id is None]
        if new:
            for row, run_id in zip(new, bulk.new_ids(connection, "runs", len(new)), strict=True):
                row.run_id = run_id
            connection.execute(sa.insert(Run), [{**row.values, "id": row.run_id, "current": False, "version": 1} for row in new])
        changed = [row for row in rows if row.version > 1]
        for row in changed:
            connection.execute(sa.update(Run).where(Run.id == row.run_id).values(version=row.version, **row.values))
        self.report.new += len(new)
        self.report.updated += len(changed)
        self.report.partial += sum(row.values["status"] != "finished" for row in rows)
        self.report.records += sum(row.read.n_records for row in rows)
        self.report.repeated += sum(row.read.n_repeated for row in rows)
        self.report.nul_characters += sum(row.read.nul_characters for row in rows)

    def _write_contents(self, connection: sa.Connection, rows: list[_Row]) -> None:
        """Questions first, then the records that refer to them."""
        assert self._questions is not None  # noqa: S101
        for row in rows:
            if row.benchmark_id is not None:
                self._questions.tell(row.benchmark_id, row.read.questions, row.read.facts_digest)
        self._questions.settle()
        for row in rows:
            if row.benchmark_id is not None:
                row.question_ids = self._questions.ids_of(row.benchmark_id, row.read.questions.column("key"))
        by_reading: dict[int, dict[int, _Row]] = {}
        for row in rows:
            by_reading.setdefault(id(row.reading), {})[row.ordinal] = row
        self._disputed |= self._questions.disputed
        self.report.disputed = len(self._disputed)
        self._insert("records", (piece for of in by_reading.values() for piece in _records(of)))
        self._insert("record_scores", (piece for of in by_reading.values() for piece in _record_scores(of)))
        self._insert("metric_points", (piece for of in by_reading.values() for piece in _metric_points(of)))
        self._write_scores(connection, rows)

    def _insert(self, table_name: str, pieces: Iterable[tuple[_Row, pa.Table]]) -> None:
        """Insert pieces, a few thousand rows at a time, and hand them to the lake's staging."""
        assert self._questions is not None  # noqa: S101
        held: list[pa.Table] = []
        versions: dict[int, int] = {}
        for row, piece in pieces:
            held.append(piece)
            versions[row.run_id or 0] = row.version
            if sum(one.num_rows for one in held) >= GROUP_RECORDS:
                self._insert_held(table_name, held, versions, more=True)
                held = []
        if held or versions:
            self._insert_held(table_name, held, versions, more=False)

    def _insert_held(self, table_name: str, held: list[pa.Table], versions: dict[int, int], *, more: bool) -> None:
        assert self._questions is not None  # noqa: S101
        rows = pa.concat_tables(held) if held else bulk.arrow_schema(table_name).empty_table()
        if table_name == "metric_points":  # here and not run by run: runs may have few points each
            rows, _ = clean_table(rows)
        bulk.insert(self._questions.connection, table_name, rows)
        if self.staged is not None:
            self.staged.add(table_name, rows, dict(versions), more=more)

    def _write_scores(self, connection: sa.Connection, rows: list[_Row]) -> None:
        assert self._linker is not None  # noqa: S101
        scores = [
            {
                **score.model_dump(exclude={"benchmark"}),
                "run_id": row.run_id,
                "model_id": row.model_id,
                "backbone_id": self._linker.backbone(row.values["model_name"]),
                "benchmark_id": self._linker.benchmark(score.benchmark) if score.benchmark is not None else row.benchmark_id,
            }
            for row in rows
            for score in row.read.scores
        ]
        if scores:
            connection.execute(sa.insert(Score), scores)

    def _write_places(self, transaction: Transaction, rows: list[_Row], older: list[tuple[_Row, _Row | int]]) -> None:
        connection = transaction.connection
        places = [self._place(row.run_id or 0, row.reading) for row in rows]
        places += [self._place(run if isinstance(run, int) else run.run_id or 0, row.reading) for row, run in older]
        self._add_places(connection, places)
        settle_places(connection, sorted({place["run_id"] for place in places}))
        known = _places(connection, self._later)
        for reading in self._later:
            self._note_place(transaction, reading, sorted({run_id for run_id, _ in known[reading.digest]}))
        self._later = []

    def _settle(self, connection: sa.Connection, rows: list[_Row]) -> None:
        """Labels, current runs and dirty slices."""
        assert self._linker is not None  # noqa: S101
        self._write_labels(connection, rows)
        pairs = {(row.values["configuration_id"], row.benchmark_id) for row in rows if row.benchmark_id is not None}
        run_rows.refresh_current(connection, pairs)
        run_rows.mark_dirty(
            connection, {(self._linker.series_of[row.model_id], row.benchmark_id) for row in rows if row.benchmark_id is not None}
        )
        if any(row.version > 1 for row in rows):
            self._pruned(connection)

    def _join(self, connection: sa.Connection) -> None:
        """Join keys of the questions that came, changed or went, and attach the labels that waited for them."""
        assert self._questions is not None  # noqa: S101
        touched = set(self._questions.rehashed)
        joined = self._questions.join_keys()
        if touched:
            attach_waiting(connection, touched)
        if joined:
            run_rows.mark_dirty(connection, {slice_ for slice_ in run_rows.all_slices(connection) if slice_[1] in joined})

    def _write_labels(self, connection: sa.Connection, rows: list[_Row]) -> None:
        latest: dict[tuple[str, str, str, str], str] = {}
        for row in rows:
            mark = f"{row.values['benchmark_name']}:{row.read.labels_digest}"
            if not row.read.labels.num_rows or mark in self._labels_seen:
                continue
            self._labels_seen.add(mark)
            for label in row.read.labels.to_pylist():
                key = (row.values["benchmark_name"], label["key"], label["scheme"], label["source"])
                latest[key] = min(label["value"], latest.get(key, label["value"]))
        self.report.labels += store_labels(connection, latest, of_runs=True).added


def _records(of: dict[int, _Row]) -> Iterable[tuple[_Row, pa.Table]]:
    reading = next(iter(of.values())).reading
    for ordinal, piece in reading.records.pieces():
        row = of.get(ordinal)
        if row is None:  # another place holds this run in a later version
            continue
        columns = {"run_id": pa.array(np.full(piece.num_rows, row.run_id, np.int64)), "question_id": _question_ids(row, piece)}
        kept = [name for name in piece.schema.names if name not in {"run", "position", "question_key"}]
        yield row, pa.table({**columns, **{name: piece.column(name) for name in kept}})


def _record_scores(of: dict[int, _Row]) -> Iterable[tuple[_Row, pa.Table]]:
    reading = next(iter(of.values())).reading
    for ordinal, piece in reading.record_scores.pieces():
        row = of.get(ordinal)
        if row is None:  # another place holds this run in a later version
            continue
        scores = piece.select(["repetition", "attempt", "scorer", "score", "special"])
        yield row, _with_run(row, scores.add_column(0, "question_id", _question_ids(row, piece)))


def _metric_points(of: dict[int, _Row]) -> Iterable[tuple[_Row, pa.Table]]:
    for row in of.values():
        if row.read.metric_points.num_rows:
            yield row, _with_run(row, row.read.metric_points)
    for ordinal, piece in next(iter(of.values())).reading.metric_points.pieces():
        if ordinal in of:
            yield of[ordinal], _with_run(of[ordinal], piece.drop_columns(["run"]))


def _question_ids(row: _Row, piece: pa.Table) -> pa.ChunkedArray:
    """Ids of the questions that records answer."""
    assert row.question_ids is not None  # noqa: S101
    return row.question_ids.take(pc.index_in(piece.column("question_key"), value_set=row.read.questions.column("key").combine_chunks()))


def _with_run(row: _Row, table: pa.Table) -> pa.Table:
    return table.add_column(0, "run_id", pa.repeat(pa.scalar(row.run_id, pa.int64()), table.num_rows))


def _noted(connection: sa.Connection, readings: list[Reading]) -> list[Reading]:
    """Readings of sources that were met before."""
    uris = [reading.source.uri for reading in readings]
    known: set[str] = set()
    for start in range(0, len(uris), IN_LIMIT):
        known.update(connection.execute(sa.select(RunSource.uri).where(RunSource.uri.in_(uris[start : start + IN_LIMIT]))).scalars())
    return [reading for reading in readings if reading.source.uri in known]


def _places(connection: sa.Connection, group: list[Reading]) -> dict[str, list[tuple[int, str]]]:
    """Where runs of these digests were found.

    A digest whose run is stored in another version that one of these sources held until now is left out: that
    version is gone, and this one takes its place.
    """
    digests = sorted({reading.digest for reading in group})
    held = {(reading.digest, reading.source.uri) for reading in group}
    query = sa.select(RunSource.digest, RunSource.run_id, RunSource.uri, Run.digest.label("stored"), Run.source_uri).join(
        Run, RunSource.run_id == Run.id
    )
    places: dict[str, list[tuple[int, str]]] = {}
    gone: set[str] = set()
    for start in range(0, len(digests), IN_LIMIT):
        for row in connection.execute(query.where(RunSource.digest.in_(digests[start : start + IN_LIMIT]))):
            places.setdefault(row.digest, []).append((row.run_id, row.uri))
            if row.stored != row.digest and (row.digest, row.source_uri) in held:
                gone.add(row.digest)
    return {value: found for value, found in places.items() if value not in gone}


def _cut(text: str | None) -> str | None:
    if text is None:
        return None
    text = text.replace("\x00", "\ufffd")
    return text if len(text) <= TEXT_LIMIT else text[: TEXT_LIMIT - 3] + "..."


def _utc(moment: datetime | None) -> datetime | None:
    """A time without a zone is UTC; a reader that knows better says so."""
    return moment.replace(tzinfo=UTC) if moment is not None and moment.tzinfo is None else moment
