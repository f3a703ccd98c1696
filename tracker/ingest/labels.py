"""Question labels: files in, files out."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from tracker.errors import InputError, SourceFormatError
from tracker.ingest.link import Linker
from tracker.ingest.questions import resolve_labels
from tracker.schema import Benchmark, LabelSource, Question, QuestionLabel

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tracker.database import Database

COLUMNS = ("benchmark", "question_key", "scheme", "value", "source")
REQUIRED = COLUMNS[:4]


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelReport:
    """What a label import changed."""

    read: int
    added: int
    changed: int
    waiting: int
    """Labels of questions that no run has asked yet; they attach when one does."""

    @property
    def anything(self) -> bool:
        """Whether the database changed."""
        return bool(self.added or self.changed)


def read_labels(path: Path) -> list[dict[str, str]]:
    """Rows of a CSV, TSV or JSONL label file; without a `source` column the file's name is the source."""
    rows = []
    for line, row in _rows(path):
        missing = [name for name in REQUIRED if row.get(name) in (None, "")]
        if missing:
            raise SourceFormatError(str(path), f"line {line}", f"a value for {', '.join(missing)}", "none", hint=f"columns are {', '.join(COLUMNS)}")
        values = {name: str(row[name]) for name in REQUIRED}
        values["source"] = str(row.get("source") or path.stem)
        rows.append(values)
    return rows


def import_labels(database: Database, rows: Sequence[dict[str, str]]) -> LabelReport:
    """Store labels; a label of the same question, scheme and source gets the new value."""
    latest = {(row["benchmark"], row["question_key"], row["scheme"], row["source"]): row["value"] for row in rows}
    with database.write() as transaction:
        connection = transaction.connection
        report = store_labels(connection, latest)
        if report.anything:
            transaction.changed()
        return LabelReport(read=len(rows), added=report.added, changed=report.changed, waiting=report.waiting)


def store_labels(connection: sa.Connection, latest: dict[tuple[str, str, str, str], str], *, keep_smaller: bool = False) -> LabelReport:
    """Insert or update labels by (benchmark, key, scheme, source); `keep_smaller` lets the value that sorts first win."""
    if not latest:
        return LabelReport(read=0, added=0, changed=0, waiting=0)
    table = QuestionLabel.__table__
    columns = (table.c.id, table.c.benchmark, table.c.question_key, table.c.scheme, table.c.source, table.c.value)
    benchmarks = sorted({label[0] for label in latest})
    stored = {tuple(row[1:5]): (row.id, row.value) for row in connection.execute(sa.select(*columns).where(table.c.benchmark.in_(benchmarks)))}
    added, changed = [], []
    for label, value in latest.items():
        known = stored.get(label)
        if known is None:
            added.append({**dict(zip(("benchmark", "question_key", "scheme", "source"), label, strict=True)), "value": value})
        elif known[1] != value and not (keep_smaller and known[1] < value):
            changed.append({"b_id": known[0], "b_value": value})
    if added:
        connection.execute(sa.insert(table), added)
    if changed:
        connection.execute(sa.update(table).where(table.c.id == sa.bindparam("b_id")).values(value=sa.bindparam("b_value")), changed)
    waiting = attach(connection, benchmarks) if added else 0
    return LabelReport(read=len(latest), added=len(added), changed=len(changed), waiting=waiting)


def attach(connection: sa.Connection, spellings: Iterable[str] | None = None) -> int:
    """Attach labels to the questions they name; returns how many still wait for their question."""
    table = QuestionLabel.__table__
    names = set(connection.execute(sa.select(table.c.benchmark).distinct()).scalars()) if spellings is None else set(spellings)
    if not names:
        return 0
    linker = Linker(connection)
    resolved = {name: linker.known_benchmark(name) for name in names}
    resolve_labels(connection, {name: row_id for name, row_id in resolved.items() if row_id is not None})
    waiting = sa.select(sa.func.count()).select_from(table).where(table.c.question_id.is_(None), table.c.benchmark.in_(sorted(names)))
    return int(connection.execute(waiting).scalar_one())


def attach_waiting(connection: sa.Connection, benchmark_ids: set[int]) -> None:
    """After new questions of some benchmarks: attach the labels that waited for them."""
    table = QuestionLabel.__table__
    waiting = set(connection.execute(sa.select(table.c.benchmark).where(table.c.question_id.is_(None)).distinct()).scalars())
    if waiting:
        linker = Linker(connection)
        attach(connection, [name for name in waiting if linker.known_benchmark(name) in benchmark_ids])


def prefer(database: Database, scheme: str, sources: Sequence[str]) -> None:
    """State the priority of label sources; the first is the one the views use."""
    with database.write() as transaction:
        connection = transaction.connection
        connection.execute(sa.delete(LabelSource).where(LabelSource.scheme == scheme))
        connection.execute(sa.insert(LabelSource), [{"scheme": scheme, "source": source, "priority": rank} for rank, source in enumerate(sources)])
        transaction.changed()


def export_labels(connection: sa.Connection) -> Iterator[dict[str, Any]]:
    """Every label, under its question's own benchmark and key where that is known."""
    name = sa.func.coalesce(Benchmark.name, QuestionLabel.benchmark)
    question_key = sa.func.coalesce(Question.key, QuestionLabel.question_key)
    query = (
        sa.select(name.label("benchmark"), question_key.label("question_key"), QuestionLabel.scheme, QuestionLabel.value, QuestionLabel.source)
        .outerjoin(Question, QuestionLabel.question_id == Question.id)
        .outerjoin(Benchmark, Question.benchmark_id == Benchmark.id)
        .order_by(name, question_key, QuestionLabel.scheme, QuestionLabel.source)
    )
    for row in connection.execute(query).mappings():
        yield dict(row)


def _rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            if path.suffix.lower() in {".jsonl", ".ndjson"}:
                yield from _json_rows(path, stream)
            else:
                reader = csv.DictReader(stream, dialect="excel-tab" if path.suffix.lower() == ".tsv" else "excel")
                absent = [name for name in REQUIRED if name not in (reader.fieldnames or ())]
                if absent:
                    raise SourceFormatError(str(path), "line 1", f"the columns {', '.join(COLUMNS)}", list(reader.fieldnames or ()), hint="source is optional")
                for row in reader:
                    yield reader.line_num, row
    except UnicodeDecodeError as err:
        message = f"not UTF-8 at byte {err.start}"
        raise InputError(message, where=str(path), hint="convert it with iconv -f latin1 -t utf-8") from err
    except OSError as err:
        message = f"cannot be read: {err.strerror}"
        raise InputError(message, where=str(path), hint="check the path") from err


def _json_rows(path: Path, stream: Iterable[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(stream, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as err:
            raise SourceFormatError(str(path), f"line {number}", "a JSON object", line.strip()[:80], hint="one object a line") from err
        if not isinstance(row, dict):
            raise SourceFormatError(str(path), f"line {number}", "a JSON object", row, hint="one object a line")
        yield number, row
