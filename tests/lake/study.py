"""A small random study written straight into a database, with every case that the views distinguish."""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import sqlalchemy as sa

from tracker.database import Database, bulk, open_database
from tracker.schema import Base, Run

if TYPE_CHECKING:
    from collections.abc import Iterable

Rows = list[dict[str, Any]]

QUESTIONS = 12
"""Questions per benchmark; the last one of the first benchmark is another key of the first one."""


def insert(connection: sa.Connection, table: str, rows: Rows) -> pa.Table:
    """Insert rows given as dictionaries; what they leave out is null."""
    arrow = pa.Table.from_pylist(rows, schema=bulk.arrow_schema(table))
    bulk.insert(connection, table, arrow)
    return arrow


def contents(db: Database, table: str) -> Rows:
    """All rows of a table."""
    with db.read() as connection:
        rows: Rows = bulk.read_table(connection, table).to_pylist()
    return rows


def new_database(url: str) -> Database:
    """A database with the study's catalog and questions, and no runs yet."""
    db = open_database(url)
    with db.write() as transaction:
        for table, rows in catalog().items():
            insert(transaction.connection, table, rows)
        transaction.changed()
    return db


def catalog() -> dict[str, Rows]:
    """Models with and without family, backbone and frontend; labels from sources of different priority."""
    return {
        "families": [{"id": 1, "name": "Alpha"}],
        "frontends": [
            {"id": 1, "name": "tiles", "kind": "tiling", "parameters": "{}"},
            {"id": 2, "name": "own", "kind": "native", "parameters": "{}"},
        ],
        "series": [
            {"id": 1, "family_id": 1, "frontend_id": 1, "name": "Alpha-1", "origin": "shipped"},
            {"id": 2, "family_id": 1, "frontend_id": 1, "name": "Alpha-2", "origin": "shipped"},
            {"id": 3, "name": "stranger", "origin": "found"},
        ],
        "backbones": [
            {"id": 1, "name": "text-1", "parameters": 751_632_384, "origin": "shipped"},
            {"id": 2, "name": "text-2", "parameters": 8_190_735_360, "origin": "shipped"},
        ],
        "models": [
            {"id": 1, "name": "Alpha-1-S", "series_id": 1, "backbone_id": 1, "origin": "shipped"},
            {"id": 2, "name": "Alpha-1-L", "series_id": 1, "backbone_id": 2, "frontend_id": 2, "origin": "shipped"},
            {"id": 3, "name": "Alpha-2-S", "series_id": 2, "backbone_id": 1, "origin": "shipped"},
            {"id": 4, "name": "stranger", "series_id": 3, "origin": "found"},
        ],
        "benchmarks": [
            {
                "id": 1,
                "name": "Sea",
                "suite": "Water",
                "tasks": '{"colour":"perception","a \\"b\\" / c.d":"reasoning"}',
                "origin": "shipped",
            },
            {"id": 2, "name": "Lake", "suite": "Water", "origin": "shipped"},
            {"id": 3, "name": "Hill", "origin": "found"},
        ],
        "questions": questions(),
        "label_sources": [{"id": 1, "scheme": "domain", "source": "expert", "priority": 1}],
        "question_labels": labels(),
        "configurations": [
            {
                "id": number,
                "model_id": (number - 1) % 4 + 1,
                "fingerprint": str(number),
                "input_mode": "fixed",
                "input_size": 224 * number,
                "variant": "odd" if number % 2 else None,
            }
            for number in range(1, 9)
        ],
    }


def questions() -> Rows:
    """Question ids are 100 * benchmark + number."""
    rows: Rows = []
    for benchmark in (1, 2, 3):
        for number in range(1, QUESTIONS + 1):
            row: dict[str, Any] = {
                "id": 100 * benchmark + number,
                "benchmark_id": benchmark,
                "key": f"q{number}",
                "hash_repeats": False,
                "n_options": 4,
                "gold": "A",
            }
            row |= {"category": ["colour", 'a "b" / c.d', None][number % 3], "task": "reading" if number % 5 == 0 else None}
            row |= {"image_key": f"i{number // 4}", "pair_key": None if number % 2 else f"p{number}"}
            rows.append(row)
    # One question under two keys: the canonical key lacks a pair_key, which the other one has; both have a gold answer.
    rows[0] |= {"pair_key": None, "gold": "C", "image_key": None}
    rows[QUESTIONS - 1] |= {"same_as_id": 101, "pair_key": "p-other", "gold": "D", "image_key": None, "category": "other"}
    return rows


def labels() -> Rows:
    """Domain from three sources, skill from one; one label waits for its question."""
    given = [
        (102, "q2", "domain", "aaa", "D1"),
        (102, "q2", "domain", "expert", "D2"),
        (102, "q2", "domain", "zzz", "D3"),
        (103, "q3", "domain", "zzz", "D4"),
        (103, "q3", "domain", "bbb", "D5"),
        (112, "q12", "skill", "model", "S1"),
        (104, "q4", "other", "model", "ignored"),
        (None, "unknown", "domain", "expert", "D9"),
    ]
    return [
        {"id": number, "benchmark": "Sea", "question_id": question, "question_key": key, "scheme": scheme, "source": source, "value": value}
        for number, (question, key, scheme, source, value) in enumerate(given, 1)
    ]


_RUN_IDS = itertools.count(1)
"""Ids are never used again, as in the database itself."""


@dataclass(frozen=True, slots=True)
class Written:
    """A run as it was committed."""

    run_id: int
    version: int
    records: pa.Table


def add_run(
    db: Database,
    seed: int,
    *,
    configuration: int | None = None,
    benchmark: int | None = None,
    current: bool = True,
    kind: str = "evaluation",
    run_id: int | None = None,
    version: int = 1,
) -> Written:
    """Commit a run as ingest would: records, one transaction, its slice marked dirty."""
    chance = random.Random(seed)
    configuration = configuration or chance.randint(1, 8)
    benchmark = benchmark or chance.randint(1, 3)
    with db.write() as transaction:
        connection = transaction.connection
        run_id = run_id or next(_RUN_IDS)
        rows = records(chance, run_id, benchmark) if kind == "evaluation" else []
        insert(
            connection, "runs", [_run(run_id, version, configuration, benchmark if rows else None, len(rows), current=current, kind=kind)]
        )
        written = insert(connection, "records", rows)
        insert(connection, "record_scores", [score for row in rows for score in _scores(chance, row)])
        if kind == "training":
            insert(connection, "metric_points", _points(chance, run_id))
        if current and rows:
            _mark_dirty(connection, configuration, benchmark)
        transaction.changed()
    return Written(run_id, version, written)


def replace_run(db: Database, run_id: int, seed: int) -> Written:
    """Replace the records of a run under the same id with a higher version."""
    run = next(row for row in contents(db, "runs") if row["id"] == run_id)
    _remove(db, run_id)
    return add_run(
        db,
        seed,
        configuration=run["configuration_id"],
        benchmark=run["benchmark_id"],
        current=run["current"],
        kind=run["kind"],
        run_id=run_id,
        version=run["version"] + 1,
    )


def delete_run(db: Database, run_id: int) -> None:
    """Delete a run with its records."""
    _remove(db, run_id)


def _remove(db: Database, run_id: int) -> None:
    with db.write() as transaction:
        run = transaction.connection.execute(sa.select(Run.configuration_id, Run.benchmark_id).where(Run.id == run_id)).one()
        for name in ("records", "record_scores", "metric_points"):
            source = Base.metadata.tables[f"trackr.{name}"]
            transaction.connection.execute(sa.delete(source).where(source.c.run_id == run_id))
        transaction.connection.execute(sa.delete(Run).where(Run.id == run_id))
        if run.benchmark_id is not None:
            _mark_dirty(transaction.connection, run.configuration_id, run.benchmark_id)
        transaction.changed()


def _mark_dirty(connection: sa.Connection, configuration: int, benchmark: int) -> None:
    model = catalog()["models"][(configuration - 1) % 4]
    marks = Base.metadata.tables["trackr.dirty_slices"]
    connection.execute(sa.insert(marks), [{"series_id": model["series_id"], "benchmark_id": benchmark}])


def _run(run_id: int, version: int, configuration: int, benchmark: int | None, n: int, *, current: bool, kind: str) -> dict[str, Any]:
    return {
        "id": run_id,
        "kind": kind,
        "configuration_id": configuration,
        "benchmark_id": benchmark,
        "model_name": "as spelled",
        "source_format": "native",
        "source_uri": f"/runs/{run_id}",
        "external_id": str(run_id),
        "digest": f"{run_id}-{version}",
        "status": "finished" if current else "partial",
        "current": current,
        "ended_at": datetime(2026, 1, 1, 12, 30, 0, 123456, tzinfo=UTC) if run_id % 2 else None,
        "version": version,
        "n_records": n,
        "system": "free" if kind == "training" else None,
        "settings": '{"seed":1}',
        "tags": "{}",
    }


def records(chance: random.Random, run_id: int, benchmark: int) -> Rows:
    """Records with repetitions, repeated attempts, failures, scores outside [0, 1], NaN, and every kind of null."""
    rows: Rows = []
    for number in range(1, QUESTIONS + 1):
        if chance.random() < 0.1:
            continue
        for repetition in range(chance.choice([1, 1, 2])):
            group = [_record(chance, run_id, 100 * benchmark + number, repetition, attempt) for attempt in range(chance.choice([1, 1, 3]))]
            scored = [row for row in group if row["status"] == "scored"]
            if scored:
                scored[-1]["final"] = True
            rows += group
    return rows


def _record(chance: random.Random, run_id: int, question: int, repetition: int, attempt: int) -> dict[str, Any]:
    row: dict[str, Any] = {"run_id": run_id, "question_id": question, "repetition": repetition, "attempt": attempt, "final": False}
    case = chance.choice(["right", "right", "wrong", "wrong", "score", "beyond", "nan", "failed"])
    outcomes: dict[str, dict[str, Any]] = {
        "right": {"correct": True, "score": 1.0, "status": "scored"},
        "wrong": {"correct": False, "score": 0.0, "status": "scored"},
        "score": {"score": chance.choice([0.0, 0.25, 1.0, chance.random()]), "status": "scored"},
        "beyond": {"score": 37.5, "status": "unscored"},
        "nan": {"special": "nan", "status": "unscored"},
        "failed": {"status": "failed"},
    }
    row |= outcomes[case]
    if chance.random() < 0.7:
        row |= {"p_gold": chance.random(), "visual_tokens": chance.randint(0, 2000), "latency_s": chance.random()}
    if chance.random() < 0.7:
        row |= {
            "prompt_tokens": chance.randint(1, 3000),
            "prediction": chance.choice(["A", "", "Ж", 'a "b"\nc']),
            "response": "x" * chance.randint(0, 50),
        }
    return row


def _scores(chance: random.Random, row: dict[str, Any]) -> Iterable[dict[str, Any]]:
    key = {name: row[name] for name in ("run_id", "question_id", "repetition", "attempt")}
    if chance.random() < 0.3:
        yield key | {"scorer": "loose", "score": chance.random()}
        yield key | {"scorer": "strict", "special": "inf"}


def _points(chance: random.Random, run_id: int) -> Rows:
    at = datetime(2026, 2, 1, tzinfo=UTC)
    return [
        {
            "run_id": run_id,
            "metric": metric,
            "step": step,
            "seq": 0,
            "tokens": step * 1e6,
            "value": None if step == 3 else chance.random(),
            "special": "nan" if step == 3 else None,
            "logged_at": at,
        }
        for metric in ("loss", "val_loss")
        for step in range(5)
    ]
