"""Rows in bulk come back as they went in, the same on both engines."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tracker.database import Database, bulk, open_database
from tracker.errors import DatabaseError
from tracker.schema import Benchmark, Configuration, Ingest, MetricPoint, Model, Question, Record, Run, Series

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    opened = open_database(database_url)
    with opened.write() as transaction:
        add = transaction.connection.execute
        add(sa.insert(Series).values(id=1, name="s", origin="found"))
        add(sa.insert(Model).values(id=1, name="m", series_id=1, origin="found"))
        add(sa.insert(Benchmark).values(id=1, name="b", origin="found"))
        add(sa.insert(Configuration).values(id=1, model_id=1, fingerprint="f"))
        told = {
            "kind": "evaluation",
            "configuration_id": 1,
            "benchmark_id": 1,
            "model_name": "m",
            "source_format": "x",
            "source_uri": "u",
            "digest": "d",
        }
        told |= {"status": "finished", "current": False, "version": 1, "n_records": 0, "settings": {}, "tags": {}}
        add(sa.insert(Run), [{"id": number, "external_id": str(number), **told} for number in range(1, 4)])
        add(sa.insert(Question), [{"id": number, "benchmark_id": 1, "key": str(number), "hash_repeats": False} for number in range(1, 41)])
    yield opened
    opened.close()


def records(rows: list[dict[str, Any]]) -> pa.Table:
    base = {"run_id": 1, "repetition": 0, "attempt": 0, "final": True, "status": "scored"}
    whole = [{**base, "question_id": number + 1, **row} for number, row in enumerate(rows)]
    return pa.Table.from_pylist(whole, schema=bulk.arrow_schema("records"))


def round_trip(database: Database, table: pa.Table, name: str = "records") -> pa.Table:
    with database.write() as transaction:
        transaction.connection.execute(sa.delete(bulk.table(name)))
        assert bulk.insert(transaction.connection, name, table) == table.num_rows
    with database.read() as connection:
        return bulk.read_table(connection, name)


TEXT = st.none() | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
NUMBER = st.none() | st.floats(allow_nan=False, allow_infinity=False)
WHOLE = st.none() | st.integers(-(2**63), 2**63 - 1)
ROW = st.fixed_dictionaries(
    {
        "correct": st.none() | st.booleans(),
        "score": NUMBER,
        "p_gold": st.none() | st.floats(0, 1),
        "prediction": TEXT,
        "response": TEXT,
        "visual_tokens": WHOLE,
        "vision_flops": NUMBER,
        "special": st.sampled_from([None, "nan", "inf", "-inf"]),
    }
)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(ROW, min_size=1, max_size=12))
def test_records_come_back_as_they_went_in(database: Database, rows: list[dict[str, Any]]) -> None:
    table = records(rows)
    found = round_trip(database, table)
    assert found.schema == bulk.arrow_schema("records")
    assert found.to_pylist() == table.to_pylist()


@pytest.mark.parametrize("value", [0.1, 1e-300, 5e-324, 1.7976931348623157e308, 2**53 + 1.0, 1 / 3])
def test_floats_keep_every_bit(database: Database, value: float) -> None:
    (found,) = round_trip(database, records([{"score": value}])).column("score").to_pylist()
    assert found == value


def test_no_rows_are_no_fault(database: Database) -> None:
    assert round_trip(database, records([])).num_rows == 0


def test_a_column_that_is_the_same_throughout_comes_back_whole(database: Database) -> None:
    table = records([{"response": "same", "score": 0.5, "visual_tokens": 7}] * 40)
    assert round_trip(database, table).to_pylist() == table.to_pylist()


def test_pieces_are_bounded_and_ordered_by_run_and_key(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "CHUNK_ROWS", 7)
    rows = [
        {"run_id": run, "question_id": question, "attempt": attempt} for run in (3, 1, 2) for question in (2, 1) for attempt in range(4)
    ]
    table = records(rows)
    round_trip(database, table)
    with database.read() as connection:
        pieces = list(bulk.read_runs(connection, "records", [3, 1]))
    assert all(piece.num_rows <= 7 for piece in pieces)
    found = [(row["run_id"], row["question_id"], row["attempt"]) for piece in pieces for row in piece.to_pylist()]
    assert found == [(run, question, attempt) for run in (1, 3) for question in (1, 2) for attempt in range(4)]


def test_times_are_utc_whatever_zone_they_came_in(database: Database) -> None:
    at = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=timezone(timedelta(hours=5, minutes=30)))
    points = pa.Table.from_pylist(
        [{"run_id": 1, "metric": "loss", "step": 1, "seq": 0, "value": 0.5, "logged_at": at}], schema=bulk.arrow_schema("metric_points")
    )
    assert round_trip(database, points, "metric_points").column("logged_at").to_pylist() == [at.astimezone(UTC)]
    with database.write() as transaction:
        transaction.connection.execute(sa.insert(Ingest).values(started_at=at, paths=["x"], version="1"))
    with database.read() as connection:
        assert bulk.read_table(connection, "ingests").column("started_at").to_pylist() == [at.astimezone(UTC)]
        assert connection.execute(sa.select(Ingest.started_at)).scalar_one() == at
        assert connection.execute(sa.select(MetricPoint.logged_at)).scalar_one() == at


def test_json_is_the_same_text_on_both_engines(database: Database) -> None:
    value = {"b": [1, 2.5, None, True], "a": {"ü": "x"}, "Z": 1e300}
    with database.write() as transaction:
        transaction.connection.execute(sa.update(Run).where(Run.id == 1).values(settings=value))
    with database.read() as connection:
        assert connection.execute(sa.select(Run.settings).where(Run.id == 1)).scalar_one() == value
        texts = bulk.read_table(connection, "runs").column("settings").to_pylist()
    assert texts == ['{"Z":1e+300,"a":{"ü":"x"},"b":[1,2.5,null,true]}', "{}", "{}"]


@pytest.mark.parametrize("bad", [{"p_gold": 1.5}, {"status": "odd"}, {"special": "odd"}, {"repetition": -1}, {"question_id": 99}])
def test_what_breaks_a_constraint_is_refused_in_one_line(database: Database, bad: dict[str, Any]) -> None:
    """Also by the bulk paths, which the ORM does not see."""
    with pytest.raises(DatabaseError) as caught, database.write() as transaction:
        bulk.insert(transaction.connection, "records", records([bad]))
    assert "\n" not in str(caught.value)
    with database.read() as connection:
        assert connection.execute(sa.select(sa.func.count()).select_from(Record)).scalar_one() == 0
