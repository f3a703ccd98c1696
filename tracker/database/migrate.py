"""Bring a database to the schema of this version, through the revisions in the package `migrations`.

One revision serves both engines: it names no schema, and on PostgreSQL the search path of the migrating
transaction leads to `trackr`. Everything runs in one transaction under the writer lock, so two processes
that upgrade at once make one upgrade, and a failed one leaves nothing behind.

Every command that opens a database asks for its revision, few change it: Alembic is imported for that only.
"""

from __future__ import annotations

from contextlib import contextmanager
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from tracker.database.engine import WRITER_LOCK
from tracker.errors import DatabaseError
from tracker.schema import SCHEMA, Base, UtcDateTime
from tracker.version import version

if TYPE_CHECKING:
    from collections.abc import Iterator

    from alembic.config import Config

VERSION_TABLE = {"sqlite": "trackr_alembic_version", "postgresql": "alembic_version"}
"""A SQLite file may hold another tool's `alembic_version`; on PostgreSQL ours is in a schema of its own."""

PLUGINS = ["alembic.autogenerate.*", "alembic.ext.checkconstraint_byname"]
"""What is compared: all that Alembic compares, and CHECK constraints by their names."""


def revisions() -> list[str]:
    """The revisions that this version knows, oldest first: files are named by them."""
    found = (entry.name.partition("_")[0] for entry in files("migrations").joinpath("versions").iterdir() if entry.name.endswith(".py"))
    return sorted(revision for revision in found if revision.isdigit())


def head() -> str:
    """The revision of this version of trackr."""
    return revisions()[-1]


def current(engine: sa.Engine) -> str | None:
    """The revision of a database; None when trackr has not been there. Raises DatabaseError when it is a newer trackr's."""
    with engine.connect() as connection:
        return _current(connection)


def upgrade(engine: sa.Engine) -> None:
    """Create the tables, or bring them up to date; nothing happens when they are."""
    from alembic import command

    with _migrating(engine) as connection:
        if _current(connection) is None:
            _refuse_foreign_tables(connection)
        command.upgrade(config(connection), "head")


def downgrade(engine: sa.Engine, revision: str) -> None:
    """Go back to an earlier revision (`base`: no tables); what the later ones stored is lost."""
    from alembic import command

    with _migrating(engine) as connection:
        _current(connection)
        command.downgrade(config(connection), revision)


def check(engine: sa.Engine) -> list[str]:
    """Differences between the tables of this version and those of the database, one line each; empty when equal."""
    from alembic.autogenerate import compare_metadata
    from alembic.runtime.migration import MigrationContext

    with engine.connect() as connection:
        if _current(connection) is None:
            return ["there are no trackr tables"]
        context = MigrationContext.configure(connection, opts=_options(connection.dialect.name, own_tables_only=True))
        return [_line(difference) for difference in compare_metadata(context, tables(connection.dialect.name))]


def tables(dialect: str) -> sa.MetaData:
    """The tables as an engine sees them: SQLite knows no schema."""
    if dialect != "sqlite":
        return Base.metadata
    plain = sa.MetaData(naming_convention=Base.metadata.naming_convention)
    none: Any = None  # SQLAlchemy's annotations know no copy without a schema, its documentation does
    blank: Any = sa.schema.BLANK_SCHEMA
    for table in Base.metadata.sorted_tables:
        table.to_metadata(plain, schema=none, referred_schema_fn=lambda *_: blank)
    return plain


def config(connection: sa.Connection) -> Config:
    """Alembic's configuration for a connection; there is no ini file."""
    from alembic.config import Config

    made = Config()
    made.set_main_option("script_location", str(files("migrations")).replace("%", "%%"))
    made.set_main_option("path_separator", "os")
    made.set_main_option("file_template", "%%(rev)s_%%(slug)s")
    made.attributes["connection"] = connection
    made.attributes["options"] = _options(connection.dialect.name)
    return made


def _options(dialect: str, *, own_tables_only: bool = False) -> dict[str, Any]:
    """What env.py, `current` and `check` tell Alembic alike."""
    names = set(tables(dialect).tables)

    def ours(name: str | None, kind: str, _parents: Any) -> bool:
        if kind == "schema" and dialect != "sqlite":
            return name == SCHEMA
        if kind == "table" and own_tables_only and dialect == "sqlite":
            return name in names
        return True

    options: dict[str, Any] = {
        "target_metadata": tables(dialect),
        "version_table": VERSION_TABLE[dialect],
        "autogenerate_plugins": PLUGINS,
        "include_name": ours,
        "render_as_batch": dialect == "sqlite",
        "render_item": _render,
    }
    if dialect != "sqlite":
        options |= {"version_table_schema": SCHEMA, "include_schemas": True}
    return options


def _render(kind: str, item: Any, _context: Any) -> str | bool:
    """Types of ours are written as what they are in the database: a revision must outlive the code."""
    if kind == "type" and isinstance(item, UtcDateTime):
        return "sa.DateTime(timezone=True)"
    if kind == "type" and isinstance(item, sa.BigInteger):
        return "BIG"
    return False


def _current(connection: sa.Connection) -> str | None:
    dialect = connection.dialect.name
    schema = None if dialect == "sqlite" else SCHEMA
    if not sa.inspect(connection).has_table(VERSION_TABLE[dialect], schema=schema):
        return None
    table = sa.table(VERSION_TABLE[dialect], sa.column("version_num"), schema=schema)
    revision: str | None = connection.execute(sa.select(table.c.version_num)).scalar()
    if revision is not None and revision not in revisions():
        message = f"made by a newer trackr: its schema {revision} is unknown to version {version()}, which knows {head()}"
        raise DatabaseError(message, where=_place(connection), hint="pip install --upgrade trackr, or use another database with --db")
    return revision


@contextmanager
def _migrating(engine: sa.Engine) -> Iterator[sa.Connection]:
    """One transaction under the writer lock of the engine."""
    sqlite = engine.dialect.name == "sqlite"
    with engine.connect().execution_options(trackr_write=True) as connection:
        if sqlite:
            _foreign_keys(connection, on=False)
        try:
            with connection.begin():
                if not sqlite:
                    _enter_schema(connection)
                yield connection
                if sqlite:
                    _verify_foreign_keys(connection)
        finally:
            if sqlite:
                _foreign_keys(connection, on=True)


def _enter_schema(connection: sa.Connection) -> None:
    connection.execute(sa.select(sa.func.pg_advisory_xact_lock(WRITER_LOCK)))
    if not sa.inspect(connection).has_schema(SCHEMA):
        connection.execute(sa.schema.CreateSchema(SCHEMA))
    connection.exec_driver_sql(f"SET LOCAL search_path TO {SCHEMA}")


def _foreign_keys(connection: sa.Connection, *, on: bool) -> None:
    """SQLite heeds this only outside a transaction; a table that is rebuilt must not take its children along."""
    driver: Any = connection.connection.driver_connection
    driver.execute(f"PRAGMA foreign_keys = {'ON' if on else 'OFF'}")


def _verify_foreign_keys(connection: sa.Connection) -> None:
    broken = connection.exec_driver_sql("PRAGMA foreign_key_check").first()
    if broken:
        message = f"the upgrade would break a reference from {broken[0]} to {broken[2]}; nothing was changed"
        raise DatabaseError(message, where=_place(connection), hint="please report this with the output of trackr info")


def _refuse_foreign_tables(connection: sa.Connection) -> None:
    """A database of another tool is welcome as long as no table of ours would meet one of the same name."""
    dialect = connection.dialect.name
    present = sa.inspect(connection).get_table_names(schema=None if dialect == "sqlite" else SCHEMA)
    taken = sorted(set(present) & {table.name for table in tables(dialect).tables.values()})
    if taken:
        message = f"another tool's tables are here already: {', '.join(taken)}"
        raise DatabaseError(message, where=_place(connection), hint="give trackr a database of its own with --db")


def _place(connection: sa.Connection) -> str:
    url = connection.engine.url
    return url.database or str(url) if connection.dialect.name == "sqlite" else url.render_as_string(hide_password=True)


def _line(difference: Any) -> str:
    """One difference, as Alembic names it, in a line."""
    if isinstance(difference, list):
        return "; ".join(_line(part) for part in difference)
    action, *things = difference
    return f"{action}: {', '.join(_thing(thing) for thing in things if not isinstance(thing, dict) and thing is not None)}"


def _thing(thing: Any) -> str:
    if isinstance(thing, sa.Column):
        return f"column {thing.name} ({thing.type})"
    if isinstance(thing, (sa.Table, sa.Index, sa.Constraint)):
        return f"{type(thing).__name__} {thing.name}"
    return str(thing)
