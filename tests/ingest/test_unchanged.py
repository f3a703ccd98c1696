"""An ingest that changes nothing writes nothing (DEFINITIONS, Exit codes)."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from tests.ingest.tables import run_rows, write_rows
from tracker.config import sqlite_path

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import PostgresServer
    from tracker.api import Tracker


def messy_folder(root: Path) -> Path:
    """Good files, a bad line, a wholly bad file, something that is no output, labels and aliases."""
    write_rows(root / "a.jsonl", run_rows(n=3, domain="D1"))
    (root / "b.jsonl").write_text((root / "a.jsonl").read_text().replace("lab/Alpha", "lab/Beta") + "{broken\n")
    (root / "bad.jsonl").write_text('{"model": "m", "question_id": \n')
    (root / "notes.md").write_text("not evaluation output")
    (root / "labels.csv").write_text("benchmark,question_key,scheme,value\nBench,q0,skill,S1\n")
    (root / "study.toml").write_text('labels = ["labels.csv"]\n[model_aliases]\n"lab/Beta" = "Beta"\n')
    return root


def state(store: Tracker) -> tuple[Any, ...]:
    with store.database().read() as connection:
        found = store.database().store(connection)
    lake = {path.name: path.stat().st_mtime_ns for path in store.location.lake.rglob("*") if path.is_file() and path.name != "sync.lock"}
    return found, lake


def file_state(store: Tracker) -> tuple[bytes, str]:
    """The change counter of a SQLite file, and all its bytes with those of its log."""
    path = sqlite_path(store.location.url)
    assert path is not None
    content = path.read_bytes()
    log = path.with_name(path.name + "-wal")
    return content[24:28], hashlib.sha256(content + (log.read_bytes() if log.exists() else b"")).hexdigest()


def test_an_unchanged_folder_changes_not_one_byte_of_the_sqlite_file(store: Tracker, tmp_path: Path) -> None:
    folder = messy_folder(tmp_path / "in")
    first = store.ingest(folder)
    store.close()
    before = file_state(store)
    again = store.ingest(folder)
    store.close()
    assert file_state(store) == before
    assert (again.new, again.updated, again.unchanged, again.ingest_id) == (0, 0, 2, None)
    assert [(one.file, one.line) for one in again.rejected] == [(one.file, one.line) for one in first.rejected]
    assert (first.exit_code, again.exit_code) == (3, 3)
    assert again.skipped == first.skipped


def test_an_unchanged_folder_writes_nothing_on_either_engine(each_store: Tracker, tmp_path: Path) -> None:
    folder = messy_folder(tmp_path / "in")
    each_store.ingest(folder)
    before = state(each_store)
    for _ in range(2):
        each_store.ingest(folder)
    assert state(each_store) == before
    assert each_store.sql("select count(*) from rejections").fetchall() == [(3,)]
    assert each_store.sql("select count(*) from ingests").fetchall() == [(1,)]


def test_postgresql_sees_no_tuple_written(postgres_server: PostgresServer, postgres_url: str, tmp_path: Path) -> None:
    import psycopg

    from tests.ingest.tables import open_store

    def written() -> tuple[int, ...]:
        with psycopg.connect(postgres_url.replace("+psycopg", "")) as connection:
            connection.execute("SELECT pg_stat_clear_snapshot()")
            query = "SELECT sum(n_tup_ins), sum(n_tup_upd), sum(n_tup_del) FROM pg_stat_user_tables WHERE schemaname = 'trackr'"
            row = connection.execute(query).fetchone()
            assert row is not None
            return tuple(map(int, row))

    folder = messy_folder(tmp_path / "in")
    with open_store(postgres_url, tmp_path) as store:
        store.ingest(folder)
    before = written()
    with open_store(postgres_url, tmp_path) as store:
        store.ingest(folder)
    assert written() == before
    assert before[0] > 0


def test_touching_a_file_is_no_change_and_a_new_file_beside_it_is_read_alone(store: Tracker, tmp_path: Path) -> None:
    path = write_rows(tmp_path / "in" / "a.jsonl", run_rows())
    store.ingest(tmp_path / "in")
    path.touch()
    write_rows(tmp_path / "in" / "b.jsonl", run_rows("lab/Beta"))
    report = store.ingest(tmp_path / "in")
    assert (report.new, report.updated, report.unchanged) == (1, 0, 1)
    assert store.sql("select max(version) from runs").fetchall() == [(1,)]


def test_a_changed_bad_file_is_stored_once_more_and_only_once(store: Tracker, tmp_path: Path) -> None:
    path = write_rows(tmp_path / "a.jsonl", run_rows())
    for content in ("{broken\n", "{broken\n", "{broken\n{also\n"):
        path.write_text("".join(f"{row}\n" for row in path.read_text().splitlines() if row.endswith("}")) + content)
        store.ingest(path)
    assert store.sql("select count(*) from rejections").fetchall() == [(3,)]
    assert store.sql("select count(*), max(version) from runs").fetchall() == [(1, 2)]


def test_a_file_that_turns_bad_keeps_what_was_valid(each_store: Tracker, tmp_path: Path) -> None:
    path = write_rows(tmp_path / "a.jsonl", run_rows())
    each_store.ingest(path)
    path.write_text("")
    report = each_store.ingest(path)
    assert report.removed == 0
    path.write_text('{"model": "m", "benchmark": "b", "question_id": "q", "correct"')
    assert each_store.ingest(path).exit_code == 3
    assert each_store.sql("select n_records from runs").fetchall() == [(4,)]
