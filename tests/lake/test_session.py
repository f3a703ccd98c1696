"""A session: errors on one line, parameters, several statements, nothing that writes to the lake."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.lake.study import add_run
from tracker.config import Location
from tracker.errors import DatabaseError, LakeError, QueryError
from tracker.lake import Lake, connect, freshen, open_session
from tracker.lake.manifest import ColumnDoc, TableDoc
from tracker.lake.session import define_tables, engine

if TYPE_CHECKING:
    from pathlib import Path

    from tests.lake.conftest import Store
    from tracker.lake import Session


@pytest.fixture
def session(filled: Store) -> Session:
    return filled.session()


def location(store: Store) -> Location:
    return Location(url=store.db.url, lake=store.lake.folder, url_origin="--db", lake_origin="--lake")


@pytest.mark.parametrize(
    ("text", "where", "message", "hint"),
    [
        ("select * from answrs", "line 1, column 15", "Table with name answrs does not exist!", 'did you mean "answers"?'),
        ("select\n  credt from answers", "line 2, column 3", 'Referenced column "credt" not found in FROM clause!', '"credit"'),
        ("select 1 fro", None, None, None),
        ("selec 1", "line 1, column 1", 'syntax error at or near "selec"', None),
        ("select 'x'::int", "line 1, column 11", "Could not convert string 'x' to INT32", None),
        ("select $a", None, "no value for $a", "--param a=VALUE"),
        ("", None, "there is no SQL to run", None),
        ("select 1 where", "line 1, column 10", 'syntax error at or near "where"', None),
    ],
)
def test_error_is_one_line_with_its_place(session: Session, text: str, where: str | None, message: str | None, hint: str | None) -> None:
    if message is None:
        session.execute(text)
        return
    with pytest.raises(QueryError) as caught:
        list(session.rows(session.execute(text)))
    assert caught.value.message == message
    assert "\n" not in str(caught.value)
    assert (caught.value.where or "").startswith(where or "")
    assert (hint or "") in (caught.value.hint or "")


def test_relation_fails_with_the_same_error(session: Session) -> None:
    with pytest.raises(QueryError, match="answrs"):
        session.sql("select * from answrs")


def test_place_in_a_long_line_is_not_guessed(session: Session) -> None:
    with pytest.raises(QueryError) as caught:
        session.execute(f"select {', '.join(str(n) for n in range(200))}, nothing from answers")
    assert caught.value.where == "line 1"


def test_several_statements_run_in_order_and_the_last_one_answers(session: Session) -> None:
    cursor = session.execute("create temp table t as select $a as a; insert into t values (2); select sum(a) from t", {"a": 1})
    assert list(session.rows(cursor)) == [(3,)]
    assert session.batches("select 1; select 7 as x").read_all().to_pylist() == [{"x": 7}]


def test_result_that_is_not_read_to_its_end_leaves_the_session_usable(session: Session) -> None:
    rows = session.rows(session.execute("select * from range(100000)"))
    assert next(rows) == (0,)
    rows.close()  # type: ignore[attr-defined]
    assert session.sql("select 1").fetchall() == [(1,)]


def test_parameter_that_the_sql_lacks_is_an_error(session: Session) -> None:
    with pytest.raises(QueryError, match=r"no parameter \$b") as caught:
        session.execute("select $a", {"a": 1, "b": 2})
    assert caught.value.hint == "it has $a"


def test_parameters_are_values_never_sql(session: Session) -> None:
    text = "'; drop view answers; --"
    assert list(session.rows(session.execute("select $x", {"x": text}))) == [(text,)]


def test_views_cannot_be_written(session: Session) -> None:
    for text in ("insert into records select * from records", "delete from records", "update runs set current = true"):
        with pytest.raises(QueryError):
            session.execute(text)


def test_python_variables_are_no_tables(session: Session) -> None:
    rows = [1]
    with pytest.raises(QueryError, match="rows"):
        session.execute("select * from rows")
    assert rows == [1]


def test_times_are_utc_whatever_the_machine_says(session: Session) -> None:
    assert session.sql("select started_at::varchar, ended_at::varchar from runs where ended_at is not null limit 1").fetchall() == [
        (None, "2026-01-01 12:30:00.123456+00")
    ]


def test_no_lake_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(LakeError, match="no lake yet") as caught:
        connect(Lake(tmp_path / "none"))
    assert "trackr lake sync" in str(caught.value.hint)


def test_damaged_file_of_the_lake_is_an_error_with_a_remedy(filled: Store) -> None:
    manifest = filled.lake.manifest()
    assert manifest is not None
    filled.lake.path(manifest.tables["runs"].file).write_bytes(b"not parquet")
    with pytest.raises(LakeError, match="does not open") as caught:
        filled.session()
    assert "rebuild" in str(caught.value.hint)


def test_lake_that_is_deleted_under_a_session_is_an_error_with_a_remedy(filled: Store) -> None:
    import shutil

    session = filled.session()
    shutil.rmtree(filled.lake.folder)
    with pytest.raises(LakeError, match="gone"):
        session.sql("select 1")


def test_open_session_syncs_first_unless_told_not_to(filled: Store) -> None:
    before = filled.session().data_version
    add_run(filled.db, 70)
    with open_session(location(filled), sync=False) as stale:
        assert stale.data_version == before
    with open_session(location(filled)) as fresh:
        assert fresh.data_version > before


def test_database_that_does_not_exist_is_said_with_its_place(tmp_path: Path) -> None:
    place = Location(url=f"sqlite:///{tmp_path}/none.db", lake=tmp_path / "lake", url_origin="TRACKR_DB", lake_origin="default")
    with pytest.raises(DatabaseError, match="no trackr database") as caught:
        freshen(place)
    assert "trackr ingest" in str(caught.value.hint)
    assert "TRACKR_DB" in str(caught.value.hint)
    assert str(tmp_path) in str(caught.value)


def test_outdated_lake_that_cannot_be_written_still_answers_and_says_so(filled: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    add_run(filled.db, 70)
    monkeypatch.setattr(Lake, "writable", False)
    said: list[str] = []
    freshen(location(filled), talk=said.append)
    assert "read-only for you" in said[0]


def test_warning_of_a_read_only_database_is_passed_on(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    add_run(store.db, 1)
    monkeypatch.setattr("tracker.database.open_database", lambda *_, **__: replace(store.db, writable=False))
    said: list[str] = []
    freshen(location(store), talk=said.append)
    assert "trajectories" in said[0]


def test_interrupt_stops_a_query(session: Session) -> None:
    import threading

    timer = threading.Timer(0.3, session.connection.interrupt)
    timer.start()
    with pytest.raises((KeyboardInterrupt, QueryError)):
        list(session.rows(session.execute("select count(*) from range(10000000000) a, range(1000) b")))
    timer.join()


def test_session_opens_without_arrow_or_the_orm() -> None:
    import subprocess
    import sys

    from tests.conftest import ROOT

    script = "import sys, tracker.lake.session, tracker.lake.freshness; print([m for m in ('sqlalchemy', 'pyarrow', 'pandas', 'pydantic', 'numpy') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_duckdb_is_in_memory_only(session: Session) -> None:
    assert session.connection.execute("select path from duckdb_databases() where database_name = 'memory'").fetchall() == [(None,)]
    assert isinstance(session.connection, duckdb.DuckDBPyConnection)


def test_a_lake_in_a_folder_with_the_name_of_a_pattern_reads_its_own_files_only(tmp_path: Path) -> None:
    for folder in ("**", "run[1]*"):
        (tmp_path / folder).mkdir()
        for name in (folder, "run1"):
            (tmp_path / name).mkdir(exist_ok=True)
            pq.write_table(pa.table({"id": [1]}), tmp_path / name / "t.parquet")
        connection = engine()
        docs = {"families": TableDoc(comment="", columns=(ColumnDoc(name="id", type="BIGINT", comment=""),))}
        define_tables(connection, docs, {"families": [str(tmp_path / folder / "t.parquet")]})
        assert connection.execute("select count(*) from families").fetchall() == [(1,)]
