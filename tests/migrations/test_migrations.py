"""The migrations, on both engines: one head, there and back, equal to the models, one upgrade at a time."""

from __future__ import annotations

import multiprocessing
import re
import subprocess
import sys
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy.exc import IntegrityError

from tests.migrations import ddl
from tracker.config import sqlite_path
from tracker.database import create, migrate, open_database
from tracker.errors import DatabaseError
from tracker.schema import SCHEMA, Base

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def engine(database_url: str) -> Iterator[sa.Engine]:
    """An engine on a database that is still empty."""
    engine = create(database_url)
    yield engine
    engine.dispose()


@pytest.fixture
def sqlite_engine(sqlite_url: str) -> Iterator[sa.Engine]:
    engine = create(sqlite_url)
    yield engine
    engine.dispose()


@pytest.fixture
def postgres_engine(postgres_url: str) -> Iterator[sa.Engine]:
    engine = create(postgres_url)
    yield engine
    engine.dispose()


def schema_of(engine: sa.Engine) -> str | None:
    return None if engine.dialect.name == "sqlite" else SCHEMA


def table_names(engine: sa.Engine) -> set[str]:
    return set(sa.inspect(engine).get_table_names(schema=schema_of(engine))) - set(migrate.VERSION_TABLE.values())


def columns_of(engine: sa.Engine, table: str) -> list[str]:
    return [column["name"] for column in sa.inspect(engine).get_columns(table, schema=schema_of(engine))]


def scripts() -> ScriptDirectory:
    return ScriptDirectory(str(files("migrations")))


def test_there_is_one_head() -> None:
    assert scripts().get_heads() == [migrate.head()]


def test_file_names_say_what_alembic_reads() -> None:
    """`current` and `head` go by the names, so that opening a database does not import Alembic."""
    assert migrate.revisions() == [script.revision for script in scripts().walk_revisions()][::-1]
    script = "import sys, tracker.database, tracker.database.migrate as m; m.head(); print('alembic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout == "False\n"


def test_an_empty_database_has_no_revision(engine: sa.Engine) -> None:
    assert migrate.current(engine) is None
    assert migrate.check(engine) == ["there are no trackr tables"]


def test_upgrade_makes_every_table(engine: sa.Engine) -> None:
    migrate.upgrade(engine)
    assert migrate.current(engine) == migrate.head()
    assert table_names(engine) == {table.name for table in Base.metadata.tables.values()}


def test_an_upgraded_database_is_left_alone(engine: sa.Engine) -> None:
    migrate.upgrade(engine)
    before = ddl.dump(engine)
    migrate.upgrade(engine)
    assert ddl.dump(engine) == before


def test_each_revision_goes_up_down_and_up_again(engine: sa.Engine) -> None:
    migrate.upgrade(engine)
    there = ddl.dump(engine)
    for script in scripts().walk_revisions():
        migrate.downgrade(engine, str(script.down_revision or "base"))
        assert migrate.current(engine) == script.down_revision
        migrate.upgrade(engine)
        assert ddl.dump(engine) == there
    migrate.downgrade(engine, "base")
    assert table_names(engine) == set()


def test_check_finds_nothing_after_upgrade(engine: sa.Engine) -> None:
    migrate.upgrade(engine)
    assert migrate.check(engine) == []


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ("ALTER TABLE {runs} ADD COLUMN colour TEXT", "colour"),
        ("DROP INDEX {index}", "ix_records_question_id"),
        ("ALTER TABLE {runs} RENAME COLUMN tags TO labels", "tags"),
        ("DROP TABLE {fits}", "fits"),
    ],
)
def test_check_names_what_differs(engine: sa.Engine, change: str, found: str) -> None:
    migrate.upgrade(engine)
    prefix = "" if engine.dialect.name == "sqlite" else "trackr."
    with engine.begin() as connection:
        connection.exec_driver_sql(change.format(runs=f"{prefix}runs", fits=f"{prefix}fits", index=f"{prefix}ix_records_question_id"))
    assert any(found in line for line in migrate.check(engine))


def test_check_sees_a_lost_check_constraint(postgres_engine: sa.Engine) -> None:
    migrate.upgrade(postgres_engine)
    with postgres_engine.begin() as connection:
        connection.exec_driver_sql("ALTER TABLE trackr.runs DROP CONSTRAINT ck_runs_kind_known")
    assert any("ck_runs_kind_known" in line for line in migrate.check(postgres_engine))


def parts(text: str) -> list[str]:
    """Columns and constraints of a DDL dump, whatever the order in which tables list their constraints."""
    lines = (line.strip().rstrip(",;") for line in text.splitlines())
    return sorted(line for line in lines if line not in {"", ")"} and "alembic_version" not in line and "version_num" not in line)


def test_migrated_schema_is_what_the_models_say(engine: sa.Engine, request: pytest.FixtureRequest) -> None:
    """Not by comparison of names but of the engine's own DDL: types, checks, comments, cascades, row ids."""
    migrate.upgrade(engine)
    migrated = ddl.dump(engine)
    if engine.dialect.name == "sqlite":
        other = create(f"sqlite:///{engine.url.database}.models")
    else:
        server = request.getfixturevalue("postgres_server")
        other = create(server.create())
        with other.begin() as connection:
            connection.execute(sa.schema.CreateSchema(SCHEMA))
    migrate.tables(other.dialect.name).create_all(other)
    from_models = ddl.dump(other)
    other.dispose()
    assert parts(migrated) == parts(from_models)


def test_ddl_is_the_committed_one(engine: sa.Engine) -> None:
    """Whoever changes the schema sees the change in review. Write it anew with `make ddl`."""
    migrate.upgrade(engine)
    assert ddl.dump(engine) == ddl.golden(engine.dialect.name).read_text(encoding="utf-8")


def test_comments_reach_postgresql(postgres_engine: sa.Engine) -> None:
    migrate.upgrade(postgres_engine)
    inspector = sa.inspect(postgres_engine)
    for table in Base.metadata.tables.values():
        assert inspector.get_table_comment(table.name, schema=SCHEMA)["text"] == table.comment
        stored = {column["name"]: column["comment"] for column in inspector.get_columns(table.name, schema=SCHEMA)}
        assert stored == {column.name: column.comment for column in table.columns}


def test_records_have_no_row_id_and_other_ids_are_never_reused(sqlite_engine: sa.Engine) -> None:
    migrate.upgrade(sqlite_engine)
    with sqlite_engine.connect() as connection:
        query = "SELECT name, sql FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
        made = {
            name: sql
            for name, sql in connection.exec_driver_sql(query).all()
            if name in Base.metadata.tables or f"trackr.{name}" in Base.metadata.tables
        }
    without = {name for name, sql in made.items() if "WITHOUT ROWID" in sql}
    assert without == {"records", "record_scores", "trajectories", "metric_points"}
    assert {name for name, sql in made.items() if "AUTOINCREMENT" in sql} == set(made) - without


def set_revision(engine: sa.Engine, revision: str) -> None:
    table = migrate.VERSION_TABLE[engine.dialect.name]
    prefix = "" if engine.dialect.name == "sqlite" else "trackr."
    with engine.begin() as connection:
        connection.exec_driver_sql(f"UPDATE {prefix}{table} SET version_num = '{revision}'")


def test_a_database_of_a_newer_version_is_refused_in_one_line(engine: sa.Engine) -> None:
    migrate.upgrade(engine)
    set_revision(engine, "9999")
    before = ddl.dump(engine)
    for action in (migrate.current, migrate.upgrade, migrate.check):
        with pytest.raises(DatabaseError, match=r"made by a newer trackr.*9999") as caught:
            action(engine)
        assert caught.value.hint
        assert "pip install --upgrade trackr" in caught.value.hint
        assert caught.value.where
        assert "\n" not in str(caught.value)
    assert ddl.dump(engine) == before


def test_a_newer_database_is_refused_when_opened(database_url: str) -> None:
    open_database(database_url).close()
    engine = create(database_url)
    set_revision(engine, "9999")
    engine.dispose()
    with pytest.raises(DatabaseError, match="newer trackr"):
        open_database(database_url)


def test_a_failed_upgrade_leaves_nothing_behind(engine: sa.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    real = command.upgrade

    def upgrade_then_fail(*arguments: Any) -> None:
        real(*arguments)
        message = "power cut"
        raise OSError(message)

    monkeypatch.setattr(command, "upgrade", upgrade_then_fail)
    with pytest.raises(OSError, match="power cut"):
        migrate.upgrade(engine)
    assert migrate.current(engine) is None
    assert table_names(engine) == set()
    monkeypatch.setattr(command, "upgrade", real)
    migrate.upgrade(engine)
    assert migrate.check(engine) == []


def upgrade_in_a_process(url: str, start: multiprocessing.synchronize.Barrier, results: multiprocessing.Queue[str]) -> None:
    engine = create(url)
    start.wait(60)
    try:
        migrate.upgrade(engine)
        results.put("done")
    except Exception as err:  # noqa: BLE001 - whatever it is, the test must hear of it
        results.put(repr(err))
    engine.dispose()


def test_processes_that_upgrade_at_once_make_one_upgrade(database_url: str) -> None:
    context = multiprocessing.get_context("spawn")
    start, results = context.Barrier(3), context.Queue()
    processes = [context.Process(target=upgrade_in_a_process, args=(database_url, start, results)) for _ in range(3)]
    for process in processes:
        process.start()
    outcomes = [results.get(timeout=120) for _ in processes]
    for process in processes:
        process.join(60)
    assert outcomes == ["done"] * 3
    engine = create(database_url)
    assert migrate.check(engine) == []
    with engine.connect() as connection:
        prefix = "" if engine.dialect.name == "sqlite" else "trackr."
        versions = (
            connection.exec_driver_sql(f"SELECT version_num FROM {prefix}{migrate.VERSION_TABLE[engine.dialect.name]}").scalars().all()
        )
    engine.dispose()
    assert versions == [migrate.head()]


def test_another_tool_keeps_its_tables_and_its_alembic_version(engine: sa.Engine) -> None:
    """MLflow in the same database: on PostgreSQL even with a `runs` table of its own."""
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)")
        connection.exec_driver_sql("INSERT INTO alembic_version VALUES ('451aebb31d03')")
        connection.exec_driver_sql("CREATE TABLE experiments (experiment_id INTEGER)")
        if engine.dialect.name == "postgresql":
            connection.exec_driver_sql("CREATE TABLE runs (run_uuid VARCHAR(32))")
    assert migrate.current(engine) is None
    migrate.upgrade(engine)
    assert migrate.check(engine) == []
    with engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar() == "451aebb31d03"
    migrate.downgrade(engine, "base")
    kept = set(sa.inspect(engine).get_table_names())
    assert {"alembic_version", "experiments"} <= kept
    assert engine.dialect.name == "sqlite" or "runs" in kept


def test_a_sqlite_file_with_a_table_of_the_same_name_is_refused_untouched(sqlite_engine: sa.Engine) -> None:
    with sqlite_engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE runs (run_uuid VARCHAR(32))")
    with pytest.raises(DatabaseError, match="another tool's tables are here already: runs") as caught:
        migrate.upgrade(sqlite_engine)
    assert caught.value.hint == "give trackr a database of its own with --db"
    assert sa.inspect(sqlite_engine).get_table_names() == ["runs"]
    assert columns_of(sqlite_engine, "runs") == ["run_uuid"]


def test_a_user_without_create_right_can_upgrade_a_schema_that_was_made_for_them(postgres_engine: sa.Engine) -> None:
    """CREATE SCHEMA IF NOT EXISTS needs the right even where the schema exists; it must not be asked for."""
    role = f"member_{re.sub('[^a-z0-9]', '', str(postgres_engine.url.database))}"
    with postgres_engine.begin() as connection:
        connection.exec_driver_sql(f"CREATE ROLE {role} LOGIN")
        connection.exec_driver_sql(f"CREATE SCHEMA trackr AUTHORIZATION {role}")
    member = create(postgres_engine.url.set(username=role).render_as_string(hide_password=False))
    migrate.upgrade(member)
    assert migrate.check(member) == []
    member.dispose()
    with postgres_engine.begin() as connection:
        connection.exec_driver_sql(f"DROP OWNED BY {role}")
        connection.exec_driver_sql(f"DROP ROLE {role}")


def test_foreign_keys_hold_again_after_an_upgrade(sqlite_engine: sa.Engine) -> None:
    """They are off while tables may be rebuilt; the pooled connection must not stay that way."""
    migrate.upgrade(sqlite_engine)
    with sqlite_engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA foreign_keys").scalar() == 1


def test_rebuilding_a_table_keeps_what_refers_to_it(engine: sa.Engine) -> None:
    """SQLite alters a table by making it anew; dropping the old one must not delete the rows that hang on it."""
    migrate.upgrade(engine)
    prefix = "" if engine.dialect.name == "sqlite" else "trackr."
    with engine.begin() as connection:
        for statement in (
            "INSERT INTO {0}series (id, name, origin) VALUES (1, 'InternVL3', 'found')",
            "INSERT INTO {0}models (id, name, series_id, origin) VALUES (7, 'InternVL3-8B', 1, 'found')",
            "INSERT INTO {0}model_aliases (alias, model_id, origin) VALUES ('OpenGVLab/InternVL3-8B', 7, 'found')",
        ):
            connection.exec_driver_sql(statement.format(prefix))
    with migrate._migrating(engine) as connection:
        operations = Operations(MigrationContext.configure(connection))
        with operations.batch_alter_table("models") as batch:
            batch.create_check_constraint("ck_models_name_not_empty", "name <> ''")
    with engine.begin() as connection:
        assert connection.exec_driver_sql(f"SELECT model_id FROM {prefix}model_aliases").scalars().all() == [7]
        with pytest.raises(IntegrityError):
            connection.exec_driver_sql(f"UPDATE {prefix}models SET name = ''")


def test_an_upgrade_that_would_break_a_reference_is_undone(sqlite_engine: sa.Engine) -> None:
    migrate.upgrade(sqlite_engine)
    with (
        pytest.raises(DatabaseError, match="break a reference from model_aliases to models"),
        migrate._migrating(sqlite_engine) as connection,
    ):
        connection.exec_driver_sql("INSERT INTO model_aliases (alias, model_id, origin) VALUES ('nobody', 99, 'found')")
    with sqlite_engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM model_aliases").scalar() == 0


def test_a_folder_with_a_percent_sign_is_no_obstacle(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("100%s of it")
    engine = create(f"sqlite:///{folder / 'trackr.db'}")
    migrate.upgrade(engine)
    assert sqlite_path(str(engine.url)) is not None
    assert migrate.check(engine) == []
    engine.dispose()
