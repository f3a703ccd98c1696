"""Question labels: files in, files out."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from tracker.database import bulk
from tracker.errors import InputError, SourceFormatError
from tracker.ingest.link import Linker
from tracker.ingest.shape import short_name
from tracker.schema import Benchmark, LabelSource, Question, QuestionLabel

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from tracker.database import Database

COLUMNS = ("benchmark", "question_key", "scheme", "value", "source")
REQUIRED = COLUMNS[:4]
NAMES = ("benchmark", "question_key", "scheme", "source")
OF_RUNS = "native"
"""Source of labels that runs themselves give."""
IN_LIMIT = 500

Label = tuple[str, str, str, str]
"""Benchmark as spelled, question key, scheme, source."""
Meaning = tuple[int | str, str, str, str]
"""The same with the benchmark's id, where it is known."""


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
            raise SourceFormatError(
                str(path), f"line {line}", f"a value for {', '.join(missing)}", "none", hint=f"columns are {', '.join(COLUMNS)}"
            )
        values = {name: str(row[name]) for name in REQUIRED} | {"source": str(row.get("source") or path.stem)}
        clean = {name: value.replace("\x00", "\ufffd") for name, value in values.items()}
        rows.append({name: value if name == "value" else short_name(value) for name, value in clean.items()})
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


def store_labels(connection: sa.Connection, latest: dict[Label, str], *, of_runs: bool = False) -> LabelReport:
    """Insert or update labels by question, scheme and source, whatever way the benchmark is spelled.

    A later statement of a label file replaces an earlier one. Of what runs say (`of_runs`) the value that sorts
    first is kept, so that the order of ingest does not matter.
    """
    if not latest:
        return LabelReport(read=0, added=0, changed=0, waiting=0)
    linker = Linker(connection)
    given = {_meaning(linker, label): (label, value) for label, value in latest.items()}
    table = bulk.table("question_labels")
    stored = _stored(connection, linker, {meaning[0] for meaning in given})
    added, stale, changed = [], [], 0
    for meaning, (label, value) in given.items():
        known = stored.get(meaning)
        row = {**dict(zip(NAMES, label, strict=True)), "value": value}
        if known is not None:
            if not ((value, label[0]) < (known.value, known.benchmark) if of_runs else value != known.value):
                continue
            changed += known.value != value
            stale.append(known.id)
        added.append(row)
    for start in range(0, len(stale), IN_LIMIT):
        connection.execute(sa.delete(table).where(table.c.id.in_(stale[start : start + IN_LIMIT])))
    if added:
        connection.execute(sa.insert(table), added)
    benchmarks = {meaning[0] for meaning in given}
    waiting = attach(connection, {one for one in benchmarks if isinstance(one, int)}, linker) + sum(
        isinstance(meaning[0], str) for meaning in given
    )
    return LabelReport(read=len(latest), added=len(added) - len(stale), changed=changed, waiting=waiting)


def attach(connection: sa.Connection, benchmark_ids: set[int] | None = None, linker: Linker | None = None) -> int:
    """Attach labels to the questions they name (of all benchmarks, or of some); returns how many of them still wait.

    Where a name that is understood now makes two labels of one source the same, the later stays (of what runs say,
    the value that sorts first).
    """
    linker = linker or Linker(connection)
    waiting = 0
    for benchmark_id, spellings in _spellings(connection, linker).items():
        if benchmark_ids is None or benchmark_id in benchmark_ids or benchmark_id is None:
            waiting += _attach(connection, benchmark_id, spellings)
    return waiting


def attach_waiting(connection: sa.Connection, benchmark_ids: set[int]) -> None:
    """After new questions of some benchmarks: attach the labels that waited for them."""
    table = bulk.table("question_labels")
    if connection.execute(sa.select(table.c.id).where(table.c.question_id.is_(None)).limit(1)).first():
        attach(connection, benchmark_ids)


def _attach(connection: sa.Connection, benchmark_id: int | None, spellings: list[str]) -> int:
    table = bulk.table("question_labels")
    mine = table.c.benchmark.in_(spellings)
    if benchmark_id is None:
        connection.execute(sa.update(table).where(mine, table.c.question_id.is_not(None)).values(question_id=None))
        return 0
    if len(spellings) > 1:
        _drop_repeated(connection, mine)
    wanted = sa.select(Question.id).where(Question.benchmark_id == benchmark_id, Question.key == table.c.question_key).scalar_subquery()
    differs = table.c.question_id.is_distinct_from(wanted)
    connection.execute(sa.update(table).where(mine, differs).values(question_id=wanted))
    return int(connection.execute(sa.select(sa.func.count()).select_from(table).where(mine, table.c.question_id.is_(None))).scalar_one())


def _drop_repeated(connection: sa.Connection, mine: Any) -> None:
    table = bulk.table("question_labels")
    columns = (table.c.id, table.c.benchmark, table.c.value, table.c.question_key, table.c.scheme, table.c.source)
    groups: dict[tuple[str, ...], list[Any]] = {}
    for row in connection.execute(sa.select(*columns).where(mine)):
        groups.setdefault((row.question_key, row.scheme, row.source), []).append(row)
    for (_, _, source), rows in groups.items():
        if len(rows) > 1:
            kept = min(rows, key=lambda row: (row.value, row.benchmark)) if source == OF_RUNS else max(rows, key=lambda row: row.id)
            connection.execute(sa.delete(table).where(table.c.id.in_([row.id for row in rows if row.id != kept.id])))


def _meaning(linker: Linker, label: Label) -> Meaning:
    """A label's benchmark where it is known, else its spelling; with key, scheme and source."""
    known = linker.known_benchmark(label[0])
    return (label[0] if known is None else known, *label[1:])


def _spellings(connection: sa.Connection, linker: Linker) -> dict[int | None, list[str]]:
    """Spellings that labels use, by the benchmark they mean."""
    found: dict[int | None, list[str]] = {}
    for spelling in connection.execute(sa.select(QuestionLabel.benchmark).distinct().order_by(QuestionLabel.benchmark)).scalars():
        found.setdefault(linker.known_benchmark(spelling), []).append(spelling)
    return found


def _stored(connection: sa.Connection, linker: Linker, benchmarks: set[int | str]) -> dict[Meaning, Any]:
    table = bulk.table("question_labels")
    names = [
        name
        for known, spellings in _spellings(connection, linker).items()
        for name in spellings
        if known in benchmarks or (known is None and name in benchmarks)
    ]
    columns = (table.c.id, table.c.benchmark, table.c.question_key, table.c.scheme, table.c.source, table.c.value)
    rows = connection.execute(sa.select(*columns).where(table.c.benchmark.in_(names))) if names else ()
    return {_meaning(linker, (row.benchmark, row.question_key, row.scheme, row.source)): row for row in rows}


def prefer(database: Database, scheme: str, sources: Sequence[str]) -> None:
    """State the priority of label sources; the first is the one the views use."""
    with database.write() as transaction:
        connection = transaction.connection
        connection.execute(sa.delete(LabelSource).where(LabelSource.scheme == scheme))
        connection.execute(
            sa.insert(LabelSource), [{"scheme": scheme, "source": source, "priority": rank} for rank, source in enumerate(sources)]
        )
        transaction.changed()


def export_labels(connection: sa.Connection) -> Iterator[dict[str, Any]]:
    """Every label, under its question's own benchmark and key where that is known."""
    name = sa.func.coalesce(Benchmark.name, QuestionLabel.benchmark)
    question_key = sa.func.coalesce(Question.key, QuestionLabel.question_key)
    query = (
        sa.select(
            name.label("benchmark"), question_key.label("question_key"), QuestionLabel.scheme, QuestionLabel.value, QuestionLabel.source
        )
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
                    raise SourceFormatError(
                        str(path), "line 1", f"the columns {', '.join(COLUMNS)}", list(reader.fieldnames or ()), hint="source is optional"
                    )
                for row in reader:
                    yield reader.line_num, row
    except UnicodeDecodeError as err:
        message = f"not UTF-8 at byte {err.start}"
        raise InputError(message, where=str(path), hint="convert it with iconv -f latin1 -t utf-8") from err
    except csv.Error as err:
        message = f"not valid CSV: {err}"
        raise InputError(message, where=str(path), hint="write it again with quoted cells and line feeds") from err
    except OSError as err:
        message = f"cannot be read: {err.strerror}"
        raise InputError(message, where=str(path), hint="check the path") from err


def _json_rows(path: Path, stream: Iterable[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(stream, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as err:
            raise SourceFormatError(str(path), f"line {number}", "a JSON object", line.strip()[:80], hint="one object a line") from err
        if not isinstance(row, dict):
            raise SourceFormatError(str(path), f"line {number}", "a JSON object", row, hint="one object a line")
        yield number, row
