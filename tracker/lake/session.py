"""A session: DuckDB in memory with one view per table of the lake, the star views and the macros."""

from __future__ import annotations

import glob
import os
import re
import signal
import tempfile
import threading
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import duckdb

from tracker.errors import LakeError, QueryError
from tracker.lake.docs import CELL_ROWS, STAR_VIEWS, TRAJECTORY_ROWS, macro_docs, sql, view_docs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from types import TracebackType

    from tracker.lake.folder import Lake
    from tracker.lake.manifest import Manifest, Segment, TableDoc, TableFile

PORTABLE = frozenset({"cells", "run_totals"})
"""SQL files that run on any engine, over tables of the same names."""


class Session:
    """An open lake at one data version."""

    def __init__(self, lake: Lake, connection: duckdb.DuckDBPyConnection, manifest: Manifest) -> None:
        self.lake, self.connection, self.manifest = lake, connection, manifest

    def __enter__(self) -> Self:
        """Use it in a `with`."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Close it."""
        self.close()

    @property
    def uuid(self) -> str:
        """Identity of the database that the lake copies."""
        return self.manifest.uuid

    @property
    def data_version(self) -> int:
        """Version of the data that this session shows."""
        return self.manifest.data_version

    def close(self) -> None:
        """Let DuckDB go."""
        self.connection.close()

    def sql(self, text: str, params: Mapping[str, Any] | Sequence[Any] | None = None) -> Any:
        """A DuckDB relation (`.df()`, `.fetchall()`, ...) for one SELECT; None for a statement without a result."""
        self.ensure_files()
        try:
            return self.connection.sql(text, params=params or None)
        except duckdb.Error as err:
            raise query_error(err) from err

    def execute(self, text: str, params: Mapping[str, Any] | None = None) -> duckdb.DuckDBPyConnection:
        """Run every statement of a text and give the cursor of the last one; `rows` reads from it."""
        try:
            with interruptible(self.connection):
                *earlier, last = self._statements(text, params)
                for statement, named in earlier:
                    self.connection.execute(statement, named or None).complete()
                return self.connection.execute(last[0], last[1] or None)
        except duckdb.Error as err:
            raise query_error(err) from err

    def rows(self, cursor: duckdb.DuckDBPyConnection, size: int = 2000) -> Iterator[tuple[Any, ...]]:
        """Rows of an executed statement as they come; memory stays bounded."""
        finished = False
        try:
            while block := self._fetch(cursor, size):
                yield from block
            finished = True
        except duckdb.Error as err:
            finished = True
            raise query_error(err) from err
        finally:
            if not finished:
                cursor.abort()  # the connection is free for the next statement

    def batches(self, text: str, params: Mapping[str, Any] | None = None, size: int = 16_384) -> Any:
        """Like `execute`, but the last result as a pyarrow.RecordBatchReader."""
        try:
            *earlier, last = self._statements(text, params)
            for statement, named in earlier:
                with interruptible(self.connection):
                    self.connection.execute(statement, named or None).complete()
            relation: Any = self.connection.sql(last[0].query, params=last[1] or None)
            if relation is None:
                message = "the last statement gives no rows"
                raise QueryError(message, hint="end with a SELECT")
            return relation.to_arrow_reader(size)
        except duckdb.Error as err:
            raise query_error(err) from err
        except RuntimeError as err:  # what DuckDB makes of an interrupt here
            raise KeyboardInterrupt from err

    def _fetch(self, cursor: duckdb.DuckDBPyConnection, size: int) -> list[tuple[Any, ...]]:
        with interruptible(self.connection):
            try:
                return cursor.fetchmany(size)
            except OverflowError as err:  # a time span beyond Python's
                message = "a value is beyond what can be shown"
                raise QueryError(message, hint="cast intervals to text: CAST(x AS VARCHAR)") from err

    def _statements(self, text: str, params: Mapping[str, Any] | None) -> list[tuple[duckdb.Statement, dict[str, Any]]]:
        """The statements of a text, each with the values that it asks for."""
        self.ensure_files()
        given = dict(params or {})
        try:
            text.encode()
        except UnicodeEncodeError as err:
            message = "the SQL holds bytes that are not UTF-8"
            raise QueryError(message, where=f"character {err.start + 1}") from err
        statements = self.connection.extract_statements(text)
        _require(statements, given)
        return [(statement, {name: given[name] for name in statement.named_parameters}) for statement in statements]

    def trajectories_sql(self, where: str | None = None) -> str:
        """SQL that recomputes the columns of `trajectories` from the answers that satisfy a condition."""
        return trajectories_sql(where)

    def ensure_files(self) -> None:
        """Open the present manifest if another process has replaced this one and its files are gone."""
        if all(self.lake.path(file).exists() for file in self.manifest.files()):
            return
        manifest = self.lake.manifest()
        if manifest is None:
            message = "the lake is gone"
            raise LakeError(message, where=str(self.lake.folder), hint="trackr lake sync makes it again")
        _define(self.connection, self.lake, manifest)
        self.manifest = manifest


def connect(lake: Lake) -> Session:
    """Open the lake as it is; LakeError where there is none."""
    manifest = lake.manifest()
    if manifest is None:
        message = "there is no lake yet"
        raise LakeError(message, where=str(lake.folder), hint="trackr lake sync makes it from the database")
    for _ in range(3):
        if all(lake.path(file).exists() for file in manifest.files()):
            break
        manifest = lake.manifest() or manifest
    connection = engine()
    _define(connection, lake, manifest)
    return Session(lake, connection, manifest)


def engine(memory_limit: str | None = None) -> duckdb.DuckDBPyConnection:
    """DuckDB in memory with the settings of trackr: times in UTC, spills outside the working folder, no Python objects by name."""
    scratch = Path(tempfile.gettempdir()) / f"trackr-{os.getuid()}-{os.getpid()}"
    connection = duckdb.connect(":memory:", config={"python_enable_replacements": "false", "temp_directory": str(scratch)})
    connection.execute("SET TimeZone = 'UTC'")
    if memory_limit:
        connection.execute(f"SET memory_limit = '{memory_limit}'")
    return connection


@contextmanager
def interruptible(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Let Ctrl-C stop a statement at once: DuckDB's `execute` and `fetchmany` do not look for signals while they work."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    previous = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    watcher = threading.Thread(target=_interrupt_on_signal, args=(connection, reader), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(previous)
        os.close(writer)
        watcher.join()
        os.close(reader)


def _interrupt_on_signal(connection: duckdb.DuckDBPyConnection, reader: int) -> None:
    while number := os.read(reader, 1):
        if number[0] == signal.SIGINT:
            with suppress(duckdb.Error):  # it may be closed by now
                connection.interrupt()


def portable_sql(name: str) -> str:
    """SQL text of a view that runs unchanged on the SQLite or PostgreSQL tables of the same names."""
    if name not in PORTABLE:
        message = f"{name} is not portable"
        raise ValueError(message)
    return f"WITH run_totals AS (\n{sql('run_totals')})\n{sql('cells')}" if name == "cells" else sql(name)


def trajectories_sql(where: str | None = None) -> str:
    """The fold that the stored trajectories are made with, over the answers that satisfy a condition."""
    condition = f"\n        AND ({where}\n        )" if where and where.strip() else ""
    return f"WITH answers AS (SELECT * FROM main.answers WHERE counts{condition}),\nfolded AS (\n{sql('fold')})\nSELECT * FROM folded"


def define_tables(connection: duckdb.DuckDBPyConnection, docs: Mapping[str, TableDoc], files: Mapping[str, Iterable[str]]) -> None:
    """One view per table over its files; a table without files is empty."""
    statements = []
    for name, doc in docs.items():
        paths = ", ".join(_quoted(glob.escape(path)) for path in files.get(name, ()))  # a folder may be called run*
        columns = ", ".join(_identifier(column.name) for column in doc.columns)
        empty = ", ".join(f"CAST(NULL AS {column.type}) AS {_identifier(column.name)}" for column in doc.columns)
        body = f"SELECT {columns} FROM read_parquet([{paths}])" if paths else f"SELECT {empty} WHERE false"
        statements.append(f"CREATE OR REPLACE VIEW {session_name(name)} AS {body}")
    connection.execute(";\n".join(statements))


def define_views(connection: duckdb.DuckDBPyConnection) -> None:
    """The star views and the macros, over the tables."""
    facts = [f"CREATE OR REPLACE VIEW facts.{name} AS {sql(name)}" for name in ("run_facts", "question_facts")]
    stars = [f"CREATE OR REPLACE VIEW {name} AS {_star_sql(name)}" for name in STAR_VIEWS]
    connection.execute(";\n".join(["CREATE SCHEMA IF NOT EXISTS facts", *facts, *stars, sql("macros")]))


def _star_sql(name: str) -> str:
    """SQL of a star view; the rows of `cells` were computed by sync, with the SQL in cells.sql."""
    if name != "cells":
        return sql(name)
    return f"SELECT {', '.join(column.name for column in view_docs()[name].columns)} FROM {CELL_ROWS}"


def session_name(table: str) -> str:
    """Name of a table in a session."""
    return TRAJECTORY_ROWS if table == "trajectories" else table


def query_error(err: duckdb.Error) -> QueryError:
    """One clear line: what, where in the SQL, and the nearest known name."""
    if isinstance(err, duckdb.InterruptException):
        raise KeyboardInterrupt from err
    text = str(err)
    first, _, rest = text.partition("\n")
    kind, _, message = first.partition(": ")
    message = message if message and kind.endswith(("Error", "Exception")) else first
    hint = re.search(r"^(Did you mean .*|Candidate (?:bindings|functions).*)$", rest, re.MULTILINE)
    return QueryError(message.strip(), where=_place(rest), hint=_one_line(hint.group(1)) if hint else None)


def _place(rest: str) -> str | None:
    """`line 1, column 15` from DuckDB's excerpt with a caret."""
    found = re.search(r"^(LINE (\d+): )(.*)\n( *)\^", rest, re.MULTILINE)
    if not found:
        return None
    prefix, number, excerpt, indent = found.groups()
    column = len(indent) - len(prefix)
    # A long line is shown as "... part ...": its columns are not those of the statement.
    return f"line {number}" if excerpt.startswith("...") else f"line {number}, column {column + 1}"


def _one_line(text: str) -> str:
    text = re.sub(r"^Did you mean", "did you mean", text)
    return re.sub(r"^Candidate bindings: ", "did you mean ", text)


def _require(statements: list[duckdb.Statement], given: Mapping[str, Any]) -> None:
    wanted = set().union(*(statement.named_parameters for statement in statements)) if statements else set()
    if not statements:
        message = "there is no SQL to run"
        raise QueryError(message)
    if missing := sorted(wanted - given.keys()):
        message = f"no value for ${missing[0]}"
        raise QueryError(message, hint=f"--param {missing[0]}=VALUE")
    if unused := sorted(given.keys() - wanted):
        message = f"the SQL has no parameter ${unused[0]}"
        raise QueryError(
            message, hint=f"it has {', '.join('$' + name for name in sorted(wanted))}" if wanted else "write $NAME where the value belongs"
        )


def _define(connection: duckdb.DuckDBPyConnection, lake: Lake, manifest: Manifest) -> None:
    """Views, macros and comments of one manifest."""
    try:
        connection.execute("BEGIN")
        define_tables(connection, manifest.docs, manifest_files(lake, manifest))
        define_views(connection)
        _comment(connection, manifest.docs)
        connection.execute("COMMIT")
    except duckdb.Error as err:
        message = f"the lake does not open: {str(err).splitlines()[0]}"
        raise LakeError(message, where=str(lake.folder), hint="trackr lake rebuild makes it again from the database") from err


def manifest_files(lake: Lake, manifest: Manifest) -> dict[str, list[str]]:
    """Table -> paths of its files."""
    return table_files(lake, manifest.segments, manifest.tables)


def table_files(lake: Lake, segments: Mapping[str, tuple[Segment, ...]], tables: Mapping[str, TableFile]) -> dict[str, list[str]]:
    """Table -> paths of its files."""
    files = {name: [str(lake.path(segment.file)) for segment in listed] for name, listed in segments.items()}
    return files | {name: [str(lake.path(table.file))] for name, table in tables.items()}


def _comment(connection: duckdb.DuckDBPyConnection, docs: Mapping[str, TableDoc]) -> None:
    """Carry the documentation into DuckDB's own catalog."""
    statements = []
    for name, doc in ({session_name(name): doc for name, doc in docs.items()} | dict(view_docs())).items():
        statements.append(f"COMMENT ON VIEW {name} IS {_quoted(doc.comment)}")
        statements += [f"COMMENT ON COLUMN {name}.{_identifier(column.name)} IS {_quoted(column.comment)}" for column in doc.columns]
    statements += [f"COMMENT ON MACRO {name} IS {_quoted(doc.comment)}" for name, doc in macro_docs().items()]
    connection.execute(";\n".join(statements))


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _identifier(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'
