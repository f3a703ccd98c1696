"""Look at a database's version without the ORM: what `trackr query` needs to learn that nothing changed."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from tracker.config import place, sqlite_path
from tracker.errors import DatabaseError
from tracker.version import version

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
    found = _peek_postgresql(url) if path is None else _peek_sqlite(path) if path.exists() else None
    if found is not None and found.revision not in known_revisions():
        message = f"made by a newer trackr: its schema {found.revision} is unknown to version {version()}"
        raise DatabaseError(message, where=place(url), hint="pip install --upgrade trackr, or use another database with --db")
    return found


def known_revisions() -> set[str]:
    """Revisions of this version of trackr, by the names of their files."""
    from importlib.resources import files

    return {one.name.split("_", 1)[0] for one in files("migrations").joinpath("versions").iterdir() if one.name[:1].isdigit()}


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
    statement = (
        "SELECT uri, digest FROM {0}run_sources UNION SELECT uri, digest FROM {0}rejections UNION SELECT uri, digest FROM {0}imports"
    )
    known: dict[str, set[str]] = {}
    for uri, digest in rows(url, statement):
        known.setdefault(uri, set()).add(digest)
    return known


def rows(url: str, statement: str) -> list[tuple[Any, ...]]:
    """Rows of a fixed statement; `{0}` in it stands for the schema."""
    path = sqlite_path(url)
    if path is not None:
        try:
            with closing(connect_readonly(path)) as connection:
                return connection.execute(statement.format("")).fetchall()
        except sqlite3.Error as err:
            raise _sqlite_error(path, err) from err
    psycopg = _psycopg(url)
    try:
        with psycopg.connect(_plain(url)) as connection:
            found: list[tuple[Any, ...]] = connection.execute(statement.format("trackr.")).fetchall()
            return found
    except psycopg.Error as err:
        raise _postgresql_error(url, err) from err


def _peek_sqlite(path: Path) -> Peek | None:
    try:
        with closing(connect_readonly(path)) as connection:
            row = connection.execute("SELECT uuid, data_version, (SELECT version_num FROM trackr_alembic_version) FROM store").fetchone()
    except sqlite3.Error as err:
        if "no such table" in str(err):
            return None
        raise _sqlite_error(path, err) from err
    return Peek(uuid=row[0], data_version=row[1], revision=row[2]) if row else None


def _peek_postgresql(url: str) -> Peek | None:
    psycopg = _psycopg(url)
    try:
        with psycopg.connect(_plain(url)) as connection:
            row = connection.execute(
                "SELECT uuid, data_version, (SELECT version_num FROM trackr.alembic_version) FROM trackr.store"
            ).fetchone()
    except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName):
        return None
    except psycopg.Error as err:
        raise _postgresql_error(url, err) from err
    return Peek(uuid=row[0], data_version=row[1], revision=row[2]) if row else None


def _sqlite_error(path: Path, err: sqlite3.Error) -> DatabaseError:
    damaged = isinstance(err, sqlite3.DatabaseError) and not isinstance(err, sqlite3.OperationalError)
    if path.is_dir():
        return DatabaseError("the database path is a folder", where=str(path), hint="name a file, such as FOLDER/trackr.db")
    hint = (
        "restore a copy, or choose another path with --db and ingest again"
        if damaged
        else "check its permissions, or choose another path with --db"
    )
    return DatabaseError(f"this file cannot be read as a SQLite database: {err}", where=str(path), hint=hint)


def _postgresql_error(url: str, err: Exception) -> DatabaseError:
    return DatabaseError(" ".join(str(err).split()), where=place(url), hint="check the URL and that the server runs")


def _psycopg(url: str) -> Any:
    try:
        import psycopg
    except ModuleNotFoundError as err:
        message = "the PostgreSQL driver is not installed (psycopg)"
        raise DatabaseError(message, where=place(url), hint="pip install 'psycopg[binary]'") from err
    return psycopg


def _plain(url: str) -> str:
    """The URL as libpq takes it."""
    return url.replace("+psycopg", "", 1)
