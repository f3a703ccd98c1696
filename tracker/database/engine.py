"""Open a database, read one snapshot of it, write to it one writer at a time."""

from __future__ import annotations

import os
import sqlite3
import time
import uuid
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import orjson
import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.exc import DBAPIError

from tracker.config import place, sqlite_path
from tracker.errors import DatabaseError
from tracker.schema import SCHEMA, Store

if TYPE_CHECKING:
    from collections.abc import Iterator

BUSY_SECONDS = 600
"""How long a writer waits for another one before it gives up."""

WRITER_LOCK = 0x7472_6163_6B72
"""Advisory lock of PostgreSQL that a writing transaction holds."""

NETWORK_FILE_SYSTEMS = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "lustre", "gpfs", "beegfs", "ceph", "glusterfs", "fuse.sshfs", "9p", "afs"}
)
"""File systems on which SQLite's write-ahead log is not safe between machines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreState:
    """Who a database is and how far its data has moved."""

    uuid: str
    data_version: int
    catalog_digest: str | None


@dataclass(slots=True)
class Transaction:
    """One writing transaction; it holds the writer lock until it ends."""

    connection: sa.Connection
    data_changed: bool = field(default=False)

    def changed(self) -> None:
        """Say that data which the lake copies changes here: data_version rises at the end."""
        self.data_changed = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Database:
    """An open database."""

    engine: sa.Engine
    url: str
    writable: bool

    @property
    def dialect(self) -> str:
        """`sqlite` or `postgresql`."""
        return self.engine.dialect.name

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        """One consistent snapshot."""
        options: dict[str, Any] = {} if self.dialect == "sqlite" else {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
        with translated(self.url), self.engine.connect().execution_options(**options) as connection, connection.begin():
            yield connection

    @contextmanager
    def write(self) -> Iterator[Transaction]:
        """The one writing transaction of the moment; commits at the end, rolls back on an error."""
        if not self.writable:
            message = "the database is read-only for you"
            raise DatabaseError(
                message, where=place(self.url), hint="ask its owner for write access, or use --db with a database of your own"
            )
        with translated(self.url), self.engine.connect().execution_options(trackr_write=True) as connection, connection.begin():
            if self.dialect == "postgresql":
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(WRITER_LOCK)))
            transaction = Transaction(connection)
            yield transaction
            if transaction.data_changed:
                connection.execute(sa.update(Store).values(data_version=Store.data_version + 1))

    def store(self, connection: sa.Connection) -> StoreState:
        """Identity and data version, as this connection sees them."""
        row = connection.execute(sa.select(Store.uuid, Store.data_version, Store.catalog_digest)).one()
        return StoreState(uuid=row.uuid, data_version=row.data_version, catalog_digest=row.catalog_digest)

    def close(self) -> None:
        """Give every connection back."""
        self.engine.dispose()


def open_database(url: str, *, create_missing: bool = True) -> Database:
    """Open a database; the first time it is created through the migrations.

    Raises DatabaseError when it does not exist (and is not to be created), cannot be reached, cannot be
    written although it must be upgraded, or was made by a newer version.
    """
    path = sqlite_path(url)
    if path is not None:
        _prepare_file(path, create_missing=create_missing)
    engine = create(url)
    try:
        return _open(url, path, engine, create_missing=create_missing)
    except BaseException:
        engine.dispose()
        raise


def _open(url: str, path: Path | None, engine: sa.Engine, *, create_missing: bool) -> Database:
    from tracker.database import migrate

    with translated(url):
        revision = migrate.current(engine)
        if revision is None and not create_missing:
            message = "there is no trackr database here yet"
            raise DatabaseError(message, where=place(url), hint="trackr ingest PATH creates one")
        writable = _writable(engine, path, fresh=revision is None)
        if revision != migrate.head():
            if not writable:
                message = f"the database is at schema {revision} and must be upgraded, but is read-only for you"
                raise DatabaseError(message, where=place(url), hint="let its owner run trackr db upgrade")
            migrate.upgrade(engine)
        database = Database(engine=engine, url=url, writable=writable)
        if writable:
            _ensure_store(database)
    return database


def create(url: str) -> sa.Engine:
    """An engine with the settings that trackr relies on; opens nothing yet."""
    path = sqlite_path(url)
    common: dict[str, Any] = {"json_serializer": dump_json, "json_deserializer": orjson.loads}
    if path is None:
        try:
            return sa.create_engine(url, pool_pre_ping=True, connect_args={"options": "-c timezone=UTC"}, **common)
        except ModuleNotFoundError as err:
            message = f"the PostgreSQL driver is not installed ({err.name})"
            raise DatabaseError(message, where=place(url), hint="pip install 'psycopg[binary]'") from err
    return _sqlite_engine(path, common)


def dump_json(value: Any) -> str:
    """JSON with sorted keys: the same value is the same text on both engines."""
    options = orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS
    try:
        return orjson.dumps(value, option=options, default=str).decode()
    except TypeError:
        return orjson.dumps(_plain(value), option=options, default=str).decode()


def _plain(value: Any) -> Any:
    """A value without what JSON in a database cannot hold: whole numbers beyond 64 bits become floats, lone surrogates U+FFFD."""
    if isinstance(value, dict):
        return {_plain(name): _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return float(value) if abs(value) < 2**1023 else str(value)
    return value


def _sqlite_engine(path: Path, common: dict[str, Any]) -> sa.Engine:
    if not _may_write(path):
        # A log in WAL mode needs a writable folder; without one nobody can be writing, so the file is immutable.
        flag = "mode=ro" if os.access(path.parent, os.W_OK) else "immutable=1"
        name, value = flag.split("=")
        address = sa.URL.create("sqlite", database=f"file:{quote(str(path))}", query={name: value, "uri": "true"})
    else:
        address = sa.URL.create("sqlite", database=str(path))  # not parsed: a path may hold ? and %
    engine = sa.create_engine(
        address,
        connect_args={"timeout": BUSY_SECONDS, "check_same_thread": False},
        execution_options={"schema_translate_map": {SCHEMA: None}},
        **common,
    )
    wanted = "delete" if file_system(path) in NETWORK_FILE_SYSTEMS else "wal"

    @event.listens_for(engine, "connect")
    def _settings(connection: Any, _record: Any) -> None:
        connection.isolation_level = None  # transactions are begun below, by their own kind
        cursor = connection.cursor()
        cursor.execute("PRAGMA foreign_keys = ON")
        if _may_write(path):
            _set_journal_mode(cursor, wanted)
            cursor.execute("PRAGMA synchronous = NORMAL")
        cursor.execute("PRAGMA cache_size = -32768")
        cursor.execute("PRAGMA wal_autocheckpoint = 8000")  # 32 MB of log: bulk loads write most pages once
        cursor.close()

    @event.listens_for(engine, "begin")
    def _begin(connection: sa.Connection) -> None:
        write = connection.get_execution_options().get("trackr_write")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")

    return engine


def _set_journal_mode(cursor: Any, wanted: str) -> None:
    """Set the journal mode; unlike statements, this does not wait for a process that opens the same new file at the same moment."""
    for _ in range(500):
        try:
            if cursor.execute("PRAGMA journal_mode").fetchone()[0] != wanted:
                cursor.execute(f"PRAGMA journal_mode = {wanted}")
        except sqlite3.OperationalError as err:
            if "locked" not in str(err):
                raise
            time.sleep(0.02)
        else:
            return


def file_system(path: Path) -> str:
    """Type of the file system that holds a path, as Linux names it; empty when unknown."""
    try:
        mounts = [line.split() for line in Path("/proc/mounts").read_text(encoding="utf-8", errors="surrogateescape").splitlines()]
    except OSError:
        return ""
    resolved = path.resolve()
    best = max((m for m in mounts if resolved.is_relative_to(m[1].replace("\\040", " "))), key=lambda m: len(m[1]), default=None)
    return best[2] if best else ""


def _may_write(path: Path) -> bool:
    return os.access(path if path.exists() else path.parent, os.W_OK) and os.access(path.parent, os.W_OK)


def _prepare_file(path: Path, *, create_missing: bool) -> None:
    if path.exists():
        if path.is_dir():
            message = "the database path is a folder"
            raise DatabaseError(message, where=str(path), hint="name a file, such as FOLDER/trackr.db")
        try:
            with path.open("rb") as stream:
                head = stream.read(16)
        except OSError as err:
            message = f"the database cannot be read: {err.strerror}"
            raise DatabaseError(message, where=str(path), hint="check its permissions, or choose another path with --db") from err
        if head and not head.startswith(b"SQLite format 3\0"):
            message = "this file is not a SQLite database"
            raise DatabaseError(message, where=str(path), hint="choose another path with --db")
        return
    if not create_missing:
        message = "there is no database here yet"
        raise DatabaseError(message, where=str(path), hint="trackr ingest PATH creates one; or name yours with --db or TRACKR_DB")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as err:
        message = f"cannot make the folder of the database: {err.strerror}"
        raise DatabaseError(message, where=str(path.parent), hint="choose another path with --db") from err
    if not os.access(path.parent, os.W_OK):
        message = "cannot create a database in a read-only folder"
        raise DatabaseError(message, where=str(path.parent), hint="choose another path with --db")


def _writable(engine: sa.Engine, path: Path | None, *, fresh: bool) -> bool:
    if path is not None:
        return _may_write(path)
    if fresh:
        return True
    with engine.connect() as connection:
        if connection.exec_driver_sql("SHOW transaction_read_only").scalar() == "on":
            return False
        return bool(
            connection.exec_driver_sql(
                f"SELECT has_table_privilege('{SCHEMA}.records', 'INSERT') AND has_table_privilege('{SCHEMA}.store', 'UPDATE')"
            ).scalar()
        )


def _ensure_store(database: Database) -> None:
    """Give a new database its identity."""
    with database.read() as connection:
        if connection.execute(sa.select(Store.id)).first():
            return
    with database.write() as transaction:
        if not transaction.connection.execute(sa.select(Store.id)).first():
            values = {"id": 1, "uuid": str(uuid.uuid4()), "data_version": 0, "created_at": datetime.now(UTC)}
            transaction.connection.execute(sa.insert(Store).values(values))


@contextmanager
def translated(url: str) -> Iterator[None]:
    """Turn what a driver raises into one line that says what to do."""
    try:
        yield
    except (DBAPIError, sqlite3.Error) as err:
        raise driver_error(url, err) from err
    except Exception as err:
        if type(err).__module__.split(".", maxsplit=1)[0] == "psycopg":  # raised by COPY, which SQLAlchemy does not see
            raise driver_error(url, err) from err
        raise


def driver_error(url: str, err: Exception) -> DatabaseError:
    """One line for what a driver says."""
    text = " ".join(str(getattr(err, "orig", err)).split())
    return DatabaseError(_short(text), where=place(url), hint=_remedy(text))


def _short(text: str) -> str:
    return text if len(text) <= 300 else text[:297] + "..."


def _remedy(text: str) -> str | None:
    lowered = text.lower()
    remedies = {
        "locked": "another process is writing; run the command again when it is done",
        "disk is full": "free some space and run the command again; nothing was half written",
        "no space left": "free some space and run the command again; nothing was half written",
        "readonly": "the file or its folder is read-only; use --db with a database of your own",
        "read-only": "the database is read-only for you; use --db with a database of your own",
        "i/o error": "the disk is full, over quota or damaged; nothing was half written",
        "malformed": "the file is damaged; restore a copy, or ingest again into a new database with --db",
        "connection refused": "start the server, or check host and port",
        "password authentication": "check user and password in the URL",
        "not a database": "choose another path with --db",
        "could not translate host": "check host and port",
        "could not receive": "the server went away; run the command again",
        "does not exist": "check the name in the URL; createdb makes a new database",
        "unable to open": "check that the folder exists and may be written",
    }
    return next((remedy for sign, remedy in remedies.items() if sign in lowered), None)
