"""Look at a database's version without the ORM: what `trackr query` needs to learn that nothing changed."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from tracker.config import mask, sqlite_path
from tracker.errors import DatabaseError

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Peek:
    """Identity and versions of a database."""

    uuid: str
    data_version: int
    revision: str


def peek(url: str) -> Peek | None:
    """Identity and versions; None when the database does not exist or holds nothing of trackr yet."""
    path = sqlite_path(url)
    if path is None:
        return _peek_postgresql(url)
    return _peek_sqlite(path) if path.exists() else None


def connect_readonly(path: Path) -> sqlite3.Connection:
    """A read-only SQLite connection; a file in a read-only folder is read as it stands."""
    connection = sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True, timeout=60)
    try:
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    except sqlite3.OperationalError:
        connection.close()
        connection = sqlite3.connect(f"file:{quote(str(path))}?immutable=1", uri=True)
    return connection


def known_sources(url: str) -> dict[str, set[str]]:
    """Digests already stored for each address: of runs, of wholly refused sources, of label files."""
    statement = "SELECT uri, digest FROM {0}run_sources UNION SELECT uri, digest FROM {0}rejections UNION SELECT uri, digest FROM {0}imports"
    known: dict[str, set[str]] = {}
    for uri, digest in rows(url, statement):
        known.setdefault(uri, set()).add(digest)
    return known


def rows(url: str, statement: str) -> list[tuple[Any, ...]]:
    """Rows of a fixed statement; `{0}` in it stands for the schema."""
    path = sqlite_path(url)
    if path is not None:
        connection = connect_readonly(path)
        try:
            return connection.execute(statement.format("")).fetchall()
        finally:
            connection.close()
    with _psycopg(url).connect(_plain(url)) as connection:
        return connection.execute(statement.format("trackr.")).fetchall()


def _peek_sqlite(path: Path) -> Peek | None:
    try:
        connection = connect_readonly(path)
        try:
            row = connection.execute("SELECT uuid, data_version, (SELECT version_num FROM trackr_alembic_version) FROM store").fetchone()
        finally:
            connection.close()
    except sqlite3.OperationalError as err:
        if "no such table" in str(err):
            return None
        raise DatabaseError(str(err), where=str(path)) from err
    except sqlite3.DatabaseError as err:
        message = f"this file cannot be read as a SQLite database: {err}"
        raise DatabaseError(message, where=str(path), hint="choose another path with --db") from err
    return Peek(uuid=row[0], data_version=row[1], revision=row[2]) if row else None


def _peek_postgresql(url: str) -> Peek | None:
    psycopg = _psycopg(url)
    try:
        with psycopg.connect(_plain(url)) as connection:
            row = connection.execute("SELECT uuid, data_version, (SELECT version_num FROM trackr.alembic_version) FROM trackr.store").fetchone()
    except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName):
        return None
    except psycopg.Error as err:
        message = " ".join(str(err).split())
        raise DatabaseError(message, where=mask(url), hint="check the URL and that the server runs") from err
    return Peek(uuid=row[0], data_version=row[1], revision=row[2]) if row else None


def _psycopg(url: str) -> Any:
    try:
        import psycopg
    except ModuleNotFoundError as err:
        message = "the PostgreSQL driver is not installed (psycopg)"
        raise DatabaseError(message, where=mask(url), hint="pip install 'trackr[postgres]'") from err
    return psycopg


def _plain(url: str) -> str:
    """The URL as libpq takes it."""
    return url.replace("+psycopg", "", 1)
