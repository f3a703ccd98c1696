"""Connections to MLflow's databases: SQLite files and PostgreSQL, read only, through one small set of calls."""

from __future__ import annotations

import atexit
import errno
import os
import shutil
import sqlite3
import tempfile
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

from tracker.errors import InputError
from tracker.readers.mlflow.model import Address

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MAGIC = b"SQLite format 3\0"
SIGNS = frozenset({"alembic_version", "latest_metrics"})
"""Tables that together tell an MLflow store."""
NEEDED = ("experiments", "runs", "metrics", "params", "tags", "latest_metrics")
READ = (
    *NEEDED, "alembic_version", "inputs", "input_tags", "datasets", "logged_models", "logged_model_metrics", "logged_model_params",
    "logged_model_tags", "trace_info", "trace_request_metadata", "trace_tags", "spans", "assessments", "entity_associations",
)  # fmt: skip
"""Every table that is read where it exists."""
FETCHED = 50_000
_WAL = 2
_BUSY_S = 30.0
RECOVER = "it may be cut off or damaged: copy it again, or save what is left with `sqlite3 FILE .recover | sqlite3 NEW`"
_HIDDEN = frozenset({"password", "user", "sslpassword", "passfile", "sslkey", "application_name", "connect_timeout"})


@dataclass(slots=True)
class Store:
    """An open store: rows of statements in which `{wanted}` stands for the runs asked for, and what tables it has."""

    address: Address
    connection: Any
    tables: dict[str, frozenset[str]]
    """Columns by table."""
    folder: Path | None = None
    """Where its file is."""

    @property
    def is_sqlite(self) -> bool:
        """Whether it is a SQLite file."""
        return self.folder is not None

    @property
    def by_n(self) -> str:
        """What asks for rows by run, where the engine does not give them so anyway."""
        return "" if self.is_sqlite else " ORDER BY w.n"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        """Close it."""
        self.connection.close()

    def has(self, table: str, *columns: str) -> bool:
        """Whether there is such a table with such columns."""
        return set(columns) <= self.tables.get(table, frozenset()) if table in self.tables else False

    def column(self, table: str, name: str, otherwise: str = "NULL", alias: str = "") -> str:
        """A column where the schema has it, else a constant in its place."""
        return f"{alias}{name}" if name in self.tables.get(table, frozenset()) else otherwise

    def rows(self, statement: str, wanted: Sequence[str] | None = None) -> Iterator[list[Any]]:
        """Lists of rows. `{wanted}` in the statement is a table w(n, id) of the ids asked for, n from 0 in their order.

        SQLite gives rows in the order of n; end a statement with `by_n` where that matters.
        """
        try:
            yield from self._sqlite(statement, wanted) if self.is_sqlite else self._postgres(statement, wanted)
        except (sqlite3.Error, UnicodeDecodeError) as err:  # an engine's message about damaged bytes may itself be no UTF-8
            raise _unreadable(self.address, err) from err
        except Exception as err:
            if not _is_psycopg(err):
                raise
            raise _unreadable(self.address, err) from err

    def all(self, statement: str, wanted: Sequence[str] | None = None) -> list[Any]:
        """All rows."""
        return [row if bytes not in map(type, row) else _texts(row) for some in self.rows(statement, wanted) for row in some]

    def _sqlite(self, statement: str, wanted: Sequence[str] | None) -> Iterator[list[Any]]:
        if wanted is not None:
            listed = ",".join(f"({n},?)" for n in range(len(wanted)))
            statement = f"WITH w(n, id) AS (VALUES {listed}) " + statement.replace("{wanted}", "w CROSS JOIN")
        given = 0
        try:
            for some in self._fetched(statement, wanted or ()):
                yield some
                given += len(some)
        except sqlite3.OperationalError as err:
            if "decode" not in str(err):
                raise
            self.connection.text_factory = _lenient  # text that is no UTF-8: what is left of it, for the rest of this connection
            rest = self._fetched(statement, wanted or ())
            for some in rest:
                if given < len(some):
                    yield some[given:]
                given = max(given - len(some), 0)

    def _fetched(self, statement: str, wanted: Sequence[str]) -> Iterator[list[Any]]:
        cursor = self.connection.execute(statement, wanted)
        while some := cursor.fetchmany(FETCHED):
            yield some

    def _postgres(self, statement: str, wanted: Sequence[str] | None) -> Iterator[list[Any]]:
        parameters: tuple[Any, ...] = ()
        statement = statement.replace("%", "%%")
        if wanted is not None:
            statement = "WITH w(n, id) AS MATERIALIZED (SELECT ord - 1, id FROM unnest(%s::text[]) WITH ORDINALITY AS t(id, ord)) " + (
                statement.replace("{wanted}", "w JOIN")
            )
            parameters = (list(wanted),)
        with self.connection.transaction(), self.connection.cursor(name="trackr", binary=True) as cursor:
            cursor.itersize = FETCHED
            cursor.execute(statement, parameters)
            while some := cursor.fetchmany(FETCHED):
                yield some


def is_store_head(head: bytes) -> bool:
    """Whether a file begins as a SQLite database does."""
    return head.startswith(MAGIC)


def serves(address: str) -> bool:
    """Whether an address names a database."""
    return address.split("://", 1)[0].split("+", 1)[0] in {"sqlite", "postgresql", "postgres"}


def address_of(text: str) -> Address:
    """The address of a database as it is stored: a SQLite file by its resolved path, a server without login and password."""
    scheme, rest = text.split("://", 1)
    if scheme.startswith("sqlite"):
        place = unquote(rest.partition("?")[0])
        return file_address(Path(place[1:]).expanduser())
    parts = urlsplit(f"postgresql://{rest}")
    options = [(name, value) for name, value in parse_qsl(parts.query) if name not in _HIDDEN]
    shown = urlunsplit(("postgresql", parts.netloc.rpartition("@")[2], parts.path, urlencode(options, safe="/"), ""))
    return Address(shown if shown.startswith("postgresql://") else shown.replace("postgresql:", "postgresql://", 1), f"postgresql://{rest}")


def file_address(path: Path) -> Address:
    """The address of a SQLite file."""
    resolved = str(path.resolve())
    return Address(f"sqlite:///{resolved}", resolved)


def open_store(address: Address) -> Store:
    """Open a store; InputError where that cannot be done or where it is no MLflow store."""
    store = _open_sqlite(address) if address.startswith("sqlite:") else _open_postgres(address)
    missing = [name for name in NEEDED if name not in store.tables]
    if missing:
        store.__exit__()
        message = f"not an MLflow store: it has no table {', '.join(missing)}"
        raise InputError(message, where=address, hint="name the database that MLflow's --backend-store-uri names")
    return store


# ---- SQLite ----------------------------------------------------------------------------------


def is_mlflow_file(path: Path) -> bool:
    """Whether a SQLite file holds MLflow's tables (or clearly held them before it was damaged). Never raises."""
    try:
        with _opened(path) as store:
            return store.tables.keys() >= SIGNS
    except (sqlite3.Error, OSError, ValueError):
        return _names_tables(path)


def _names_tables(path: Path) -> bool:
    """Whether the beginning of a damaged file still names the tables."""
    with suppress(OSError), path.open("rb") as stream:
        head = stream.read(1 << 20)
        return all(f"CREATE TABLE {name}".encode() in head or f'CREATE TABLE "{name}"'.encode() in head for name in SIGNS)
    return False


def _open_sqlite(address: Address) -> Store:
    path = Path(address.url)
    if not path.is_file():
        message = "no such file"
        raise InputError(
            message, where=str(path), hint="check the path; sqlite:///relative.db and sqlite:////absolute.db differ by a slash"
        )
    try:
        return _opened(path, address)
    except (sqlite3.Error, OSError, ValueError) as err:
        raise _unreadable(address, err) from err


def _opened(path: Path, address: Address | None = None) -> Store:
    """Open a file so that nothing is written beside it.

    A file in rollback mode is opened read-only. One in WAL mode would get `-wal` and `-shm` files: where there are
    none it is opened as one that does not change; where a writer is at work, as the writer's files allow; what a
    writer left behind is read from a copy.
    """
    path = path.resolve()
    with path.open("rb") as stream:
        head = stream.read(20)
    wal, shared = path.with_name(path.name + "-wal"), path.with_name(path.name + "-shm")
    place, mode = path, "mode=ro"
    if head[19:20] == bytes([_WAL]):
        if not wal.exists() or not wal.stat().st_size:
            mode = "mode=ro&immutable=1"
        elif not shared.exists():
            place = _COPIES.of(path, wal)
    connection = None
    try:
        connection = sqlite3.connect(
            f"file:{quote(str(place))}?{mode}", uri=True, timeout=_BUSY_S, isolation_level=None, check_same_thread=False
        )
        tables: dict[str, set[str]] = {}
        marks = ",".join("?" * len(READ))
        statement = f"SELECT m.name, c.name FROM sqlite_master m JOIN pragma_table_info(m.name) c WHERE m.name IN ({marks})"
        for table, column in connection.execute(statement, READ):
            tables.setdefault(str(table), set()).add(str(column))
    except (sqlite3.Error, ValueError):
        if connection is not None:
            connection.close()
        raise
    return Store(
        address=address or file_address(path),
        connection=connection,
        tables={name: frozenset(columns) for name, columns in tables.items()},
        folder=path.parent,
    )


class _Copies:
    """Copies of files whose writer left a log behind: one per file as long as neither changes, all removed when the process ends."""

    def __init__(self) -> None:
        self._made: dict[Path, tuple[list[int], Path]] = {}
        self._lock = threading.Lock()
        self._process = 0

    def of(self, path: Path, wal: Path) -> Path:
        """A copy of a file beside a copy of its log. Raises OSError, such as for a full disk; nothing is left then."""
        with self._lock:
            if self._process != os.getpid():  # copies of a process that made this one by fork are its own
                self._made, self._process = {}, os.getpid()
                atexit.register(self.clear)
            state = [number for one in (path, wal) for told in [one.stat()] for number in (told.st_mtime_ns, told.st_size, told.st_ino)]
            known, folder = self._made.get(path, ([], None))
            if folder is None or known != state or not (folder / path.name).exists():
                self._drop(path)
                folder = Path(tempfile.mkdtemp(prefix="trackr-mlflow-"))
                self._made[path] = state, folder
                try:
                    for one in (path, wal):
                        shutil.copyfile(one, folder / one.name)
                except OSError:
                    self._drop(path)
                    raise
            return folder / path.name

    def clear(self) -> None:
        """Remove all, in the process that made them."""
        if self._process == os.getpid():
            for path in list(self._made):
                self._drop(path)

    def _drop(self, path: Path) -> None:
        if path in self._made:
            shutil.rmtree(self._made.pop(path)[1], ignore_errors=True)


_COPIES = _Copies()


def _lenient(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def _texts(row: Sequence[Any]) -> tuple[Any, ...]:
    """A row whose bytes are text: SQLite keeps any kind of value in any column, and MLflow writes no bytes."""
    return tuple(_lenient(one) if isinstance(one, bytes) else one for one in row)


# ---- PostgreSQL ------------------------------------------------------------------------------


def _open_postgres(address: Address) -> Store:
    try:
        import psycopg
    except ImportError as err:
        message = "reading a PostgreSQL store needs psycopg, which is not installed"
        raise InputError(message, where=address, hint="pip install 'trackr[postgres]'") from err
    try:
        connection = psycopg.connect(address.url)
    except psycopg.ProgrammingError as err:  # its message may quote any part of the address
        message = "not a PostgreSQL address that can be understood"
        raise InputError(
            message, where=address, hint="postgresql://USER:PASSWORD@HOST:PORT/NAME; write @ / : % in a password as %40 %2F %3A %25"
        ) from err
    except psycopg.Error as err:
        raise _unreadable(address, err) from err
    try:
        connection.read_only = True
        with connection.transaction():
            told = connection.execute(
                "SELECT c.relname, a.attname FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid"
                " WHERE a.attnum > 0 AND NOT a.attisdropped AND c.relkind IN ('r', 'v', 'p', 'm') AND pg_table_is_visible(c.oid)"
            ).fetchall()
    except psycopg.Error as err:
        connection.close()
        raise _unreadable(address, err) from err
    tables: dict[str, set[str]] = {}
    for table, column in told:
        tables.setdefault(table, set()).add(column)
    return Store(address=address, connection=connection, tables={name: frozenset(columns) for name, columns in tables.items()})


def _is_psycopg(err: Exception) -> bool:
    return type(err).__module__.startswith("psycopg")


def _unreadable(address: Address, err: Exception) -> InputError:
    """Why a store cannot be read, without the password that an engine's message may repeat."""
    reason = (str(err).strip().splitlines() or [type(err).__name__])[0].replace(address.url, address)
    if address.startswith("sqlite:"):
        busy = "locked" in reason or "busy" in reason
        hint = "another process holds it: try again" if busy else RECOVER
        if isinstance(err, OSError):
            full = err.errno in {errno.ENOSPC, errno.EDQUOT}
            hint = (
                "it is copied to read what its writer left in -wal: let TMPDIR name a folder with space"
                if full
                else "check that you may read it"
            )
        return InputError(f"cannot be read as a SQLite database: {reason}", where=address, hint=hint)
    password = urlsplit(address.url).password
    for secret in filter(None, (password, unquote(password or ""))):
        reason = reason.replace(secret, "***")
    return InputError(f"cannot be read: {reason}", where=address, hint="check host, name, user and password (PGPASSWORD, ~/.pgpass)")
