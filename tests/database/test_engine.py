"""Open, read one snapshot, write one at a time; on both engines."""

from __future__ import annotations

import json
import sqlite3
import threading
from typing import TYPE_CHECKING

import pytest
import sqlalchemy as sa

from tracker.config import place, sqlite_path
from tracker.database import Database, engine, open_database
from tracker.database.engine import dump_json
from tracker.database.peek import known_revisions, peek, rows
from tracker.errors import DatabaseError
from tracker.schema import Family, LabelSource, Store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    opened = open_database(database_url)
    yield opened
    opened.close()


def add_family(database: Database, name: str, *, changed: bool = True) -> None:
    with database.write() as transaction:
        transaction.connection.execute(sa.insert(Family).values(name=name))
        if changed:
            transaction.changed()


def version(database: Database) -> int:
    with database.read() as connection:
        return database.store(connection).data_version


def families(connection: sa.Connection) -> list[str]:
    return list(connection.execute(sa.select(Family.name).order_by(Family.name)).scalars())


def test_the_first_opening_creates_and_the_next_finds_the_same_database(database: Database) -> None:
    found = peek(database.url)
    again = open_database(database.url)
    assert peek(again.url) == found
    assert found is not None
    assert (found.data_version, found.revision in known_revisions()) == (0, True)
    assert again.writable
    again.close()


def test_only_what_the_lake_copies_raises_the_data_version(database: Database) -> None:
    add_family(database, "one")
    add_family(database, "two", changed=False)
    assert version(database) == 1

    def fail() -> None:
        with database.write() as transaction:
            transaction.connection.execute(sa.insert(Family).values(name="three"))
            transaction.changed()
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert version(database) == 1
    with database.read() as connection:
        assert families(connection) == ["one", "two"]


def test_a_reader_sees_one_snapshot_whatever_is_written_meanwhile(database: Database) -> None:
    add_family(database, "before")
    with database.read() as connection:
        assert families(connection) == ["before"]
        add_family(database, "meanwhile")
        assert families(connection) == ["before"]
        assert database.store(connection).data_version == 1
    with database.read() as connection:
        assert families(connection) == ["before", "meanwhile"]


def test_a_reader_cannot_write(database_url: str) -> None:
    database = open_database(database_url)
    if database.dialect == "postgresql":
        with pytest.raises(DatabaseError, match="read-only"), database.read() as connection:
            connection.execute(sa.insert(Family).values(name="no"))
    database.close()


def test_a_second_writer_waits_for_the_first(database: Database) -> None:
    """And then reads what the first one wrote: nothing of its own was decided before the lock."""
    entered, seen = threading.Event(), []

    def second() -> None:
        entered.set()
        with database.write() as transaction:
            seen.append(families(transaction.connection))

    thread = threading.Thread(target=second)
    with database.write() as transaction:
        thread.start()
        entered.wait(10)
        transaction.connection.execute(sa.insert(Family).values(name="first"))
        assert seen == []
    thread.join(10)
    assert seen == [["first"]]


def test_foreign_keys_and_ids_that_never_come_back(database: Database) -> None:
    with pytest.raises(DatabaseError, match=r"(?i)foreign key"), database.write() as transaction:
        transaction.connection.execute(
            sa.text(
                "INSERT INTO "
                + ("" if database.dialect == "sqlite" else "trackr.")
                + "run_sources (run_id, uri, digest, seen_at) VALUES (99, 'u', 'd', '2026-01-01')"
            )
        )
    add_family(database, "one")
    with database.write() as transaction:
        transaction.connection.execute(sa.delete(Family))
    add_family(database, "two")
    with database.read() as connection:
        assert connection.execute(sa.select(Family.id)).scalar_one() == 2


def test_a_violated_constraint_is_one_line_and_rolls_back(database: Database) -> None:
    add_family(database, "one")
    with pytest.raises(DatabaseError) as caught:
        add_family(database, "one")
    assert "\n" not in str(caught.value)
    assert caught.value.where == place(database.url)
    with database.read() as connection:
        assert families(connection) == ["one"]


def test_peek_needs_no_orm_and_sees_nothing_where_nothing_is(database_url: str) -> None:
    assert peek(database_url) is None
    database = open_database(database_url)
    with database.write() as transaction:
        transaction.connection.execute(sa.insert(LabelSource).values(scheme="s", source="x", priority=0))
    assert rows(database_url, "SELECT scheme, source, priority FROM {0}label_sources") == [("s", "x", 0)]
    database.close()


def test_opening_without_creating_says_how_to_create(database_url: str) -> None:
    with pytest.raises(DatabaseError, match="trackr ingest PATH creates one"):
        open_database(database_url, create_missing=False)


def test_an_empty_file_becomes_a_database(tmp_path: Path) -> None:
    (tmp_path / "trackr.db").touch()
    database = open_database(f"sqlite:///{tmp_path / 'trackr.db'}")
    assert version(database) == 0
    database.close()


def test_two_processes_may_make_the_same_database_at_once(database_url: str) -> None:
    failures: list[BaseException] = []

    def make() -> None:
        try:
            open_database(database_url).close()
        except BaseException as err:  # noqa: BLE001 - shown below
            failures.append(err)

    threads = [threading.Thread(target=make) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    database = open_database(database_url)
    with database.read() as connection:
        assert connection.execute(sa.select(sa.func.count()).select_from(Store)).scalar_one() == 1
    database.close()


# ---- SQLite ----------------------------------------------------------------------------------


def pragma(database: Database, name: str) -> object:
    with database.read() as connection:
        return connection.exec_driver_sql(f"PRAGMA {name}").scalar()


@pytest.mark.parametrize(("kind", "journal"), [("ext4", "wal"), ("nfs4", "delete"), ("lustre", "delete")])
def test_the_journal_suits_the_file_system(sqlite_url: str, monkeypatch: pytest.MonkeyPatch, kind: str, journal: str) -> None:
    """On network file systems the write-ahead log is not safe between machines."""
    monkeypatch.setattr(engine, "file_system", lambda _: kind)
    database = open_database(sqlite_url)
    assert (pragma(database, "journal_mode"), pragma(database, "foreign_keys")) == (journal, 1)
    add_family(database, "one")
    with database.read() as connection:
        assert families(connection) == ["one"]
    database.close()


def test_a_writer_waits_for_a_foreign_lock_and_says_who_is_to_blame(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    open_database(sqlite_url).close()
    monkeypatch.setattr(engine, "BUSY_SECONDS", 0.05)
    database = open_database(sqlite_url)
    path = sqlite_path(sqlite_url)
    assert path is not None
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(DatabaseError, match="another process is writing"):
        add_family(database, "one")
    other.execute("COMMIT")
    other.close()
    add_family(database, "one")
    database.close()


def test_names_of_folders_need_no_quoting(tmp_path: Path) -> None:
    folder = tmp_path / "a b%20c?d#e&f=g"
    database = open_database(f"sqlite:///{folder / 'trackr.db'}")
    add_family(database, "one")
    database.close()
    assert (folder / "trackr.db").exists()
    found = peek(f"sqlite:///{folder / 'trackr.db'}")
    assert found is not None
    assert found.data_version == 1


# ---- PostgreSQL ------------------------------------------------------------------------------


def test_another_tools_tables_in_the_same_database_are_left_alone(postgres_url: str) -> None:
    """MLflow keeps its own alembic_version in `public`."""
    import psycopg

    with psycopg.connect(postgres_url.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute("CREATE TABLE alembic_version (version_num text)")
        connection.execute("INSERT INTO alembic_version VALUES ('mlflow')")
        connection.execute("CREATE TABLE runs (run_uuid text)")
    database = open_database(postgres_url)
    add_family(database, "one")
    database.close()
    with psycopg.connect(postgres_url.replace("+psycopg", "")) as connection:
        assert connection.execute("SELECT version_num FROM alembic_version").fetchall() == [("mlflow",)]
        names = {name for (name,) in connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()}
    assert names == {"alembic_version", "runs"}


def test_a_role_that_may_only_read_still_reads(postgres_url: str) -> None:
    import psycopg

    database = open_database(postgres_url)
    add_family(database, "one")
    database.close()
    with psycopg.connect(postgres_url.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS looker")
        connection.execute("CREATE ROLE looker LOGIN")
        connection.execute("GRANT USAGE ON SCHEMA trackr TO looker")
        connection.execute("GRANT SELECT ON ALL TABLES IN SCHEMA trackr TO looker")
    reading = open_database(postgres_url.replace("postgres@", "looker@"))
    assert not reading.writable
    with reading.read() as connection:
        assert families(connection) == ["one"]
    with pytest.raises(DatabaseError, match="the database is read-only for you"):
        add_family(reading, "two")
    reading.close()
    with psycopg.connect(postgres_url.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute("DROP OWNED BY looker")
        connection.execute("DROP ROLE looker")


def test_json_that_no_database_can_hold_is_written_as_the_nearest_that_it_can() -> None:
    odd = {
        "whole": 2**64,
        "small": -(2**63) - 1,
        "huge": 10**400,
        "lone": "a\ud800b",
        "pair": "\U0001f600",
        "list": [2**70],
        "fits": 2**64 - 1,
    }
    back = json.loads(dump_json(odd))
    assert back == {
        "whole": 2.0**64, "small": -(2.0**63), "huge": "1" + "0" * 400, "lone": "a\ufffdb", "pair": "\U0001f600", "list": [2.0**70], "fits": 2**64 - 1,
    }  # fmt: skip
