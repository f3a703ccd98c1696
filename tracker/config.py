"""Where the database and the lake are: option > environment > trackr.toml > default. Imports nothing heavy."""

from __future__ import annotations

import hashlib
import os
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tracker.errors import UsageError

DEFAULT_DB = Path(".trackr/trackr.db")
PROJECT_FILE = "trackr.toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """Where the store is, and which rule said so."""

    url: str
    lake: Path
    url_origin: str
    lake_origin: str

    @property
    def sqlite_path(self) -> Path | None:
        """The database file, for SQLite."""
        return sqlite_path(self.url)


def locate(db: str | None = None, lake: str | Path | None = None) -> Location:
    """Resolve database URL and lake folder."""
    project, project_path = _project()
    url, url_origin = _first(
        (db, "--db"),
        (os.environ.get("TRACKR_DB"), "TRACKR_DB"),
        (project.get("db"), str(project_path)),
        default=(str(DEFAULT_DB), "default"),
    )
    base = project_path.parent if project_path and url_origin == str(project_path) else Path.cwd()
    url = normalise_url(url, base)
    folder, lake_origin = _first(
        (str(lake) if lake else None, "--lake"),
        (os.environ.get("TRACKR_LAKE"), "TRACKR_LAKE"),
        (project.get("lake"), str(project_path)),
        default=(str(default_lake(url)), "default"),
    )
    base = project_path.parent if project_path and lake_origin == str(project_path) else Path.cwd()
    lake_folder = (base / Path(folder).expanduser()).resolve()
    _require_text(url, "database", url_origin)
    _require_text(str(lake_folder), "lake", lake_origin)
    return Location(url=url, lake=lake_folder, url_origin=url_origin, lake_origin=lake_origin)


def _require_text(place: str, what: str, origin: str) -> None:
    """Neither SQLite nor DuckDB can open a path that is no text."""
    try:
        place.encode()
    except UnicodeEncodeError as err:
        message = f"the path of the {what} holds bytes that are not UTF-8 (from: {origin})"
        shown = place.encode(errors="backslashreplace").decode()
        raise UsageError(message, where=shown, hint="name a place with --db and --lake, or rename the folder") from err


def normalise_url(text: str, base: Path | None = None) -> str:
    """A SQLAlchemy URL; a plain path means a SQLite file, and PostgreSQL means psycopg."""
    if "://" not in text:
        return f"sqlite:///{(base or Path.cwd()) / Path(text).expanduser()}"
    scheme, rest = text.split("://", 1)
    if scheme in {"postgres", "postgresql"}:
        return f"postgresql+psycopg://{rest}"
    if scheme.startswith("sqlite") and rest.startswith("/") and not rest.startswith("//"):
        return f"sqlite:///{(base or Path.cwd()) / rest[1:]}" if rest[1:] else text
    if scheme.startswith("sqlite") and not rest.strip("/"):
        message = "a SQLite URL without a file"
        raise UsageError(message, hint="use a path, or sqlite:///PATH")
    if scheme.split("+", maxsplit=1)[0] not in {"sqlite", "postgresql"}:
        message = f"database URL with scheme {scheme!r}"
        raise UsageError(message, hint="use a path, sqlite:///PATH or postgresql://USER@HOST/NAME")
    return text


def sqlite_path(url: str) -> Path | None:
    """The file of a SQLite URL, else None."""
    if not url.startswith("sqlite"):
        return None
    path = url.split("://", 1)[1][1:]
    return Path(path) if path else None


def default_lake(url: str) -> Path:
    """Beside a SQLite file, `lake/` for trackr.db and `NAME.lake/` for others, so that databases of one folder keep apart.

    For other databases a folder in the user's cache, named by the URL without its password.
    """
    path = sqlite_path(url)
    if path is not None:
        return path.parent / ("lake" if path.name == DEFAULT_DB.name else f"{path.stem}.lake")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "trackr" / hashlib.sha256(mask(url).encode()).hexdigest()[:16]


def place(url: str) -> str:
    """A database as messages name it: the path of a SQLite file, else the URL without its password."""
    path = sqlite_path(url)
    return mask(url) if path is None else str(path)


def mask(url: str) -> str:
    """The URL with its password hidden."""
    if "@" not in url or "://" not in url:
        return url
    scheme, rest = url.split("://", 1)
    login, host = rest.rsplit("@", 1)
    return f"{scheme}://{login.split(':', 1)[0]}{':***' if ':' in login else ''}@{host}"


def _first(*options: tuple[Any, str], default: tuple[str, str]) -> tuple[str, str]:
    for value, origin in options:
        if value:
            return str(value), origin
    return default


def _project() -> tuple[dict[str, Any], Path | None]:
    """The nearest trackr.toml from here upward."""
    for folder in (Path.cwd(), *Path.cwd().parents):
        path = folder / PROJECT_FILE
        if path.is_file():
            try:
                project = tomllib.loads(path.read_text(encoding="utf-8-sig"))
            except (tomllib.TOMLDecodeError, UnicodeDecodeError) as err:
                message = f"not valid TOML: {err}"
                raise UsageError(message, where=str(path)) from err
            except OSError as err:
                message = f"cannot be read: {err.strerror}"
                raise UsageError(message, where=str(path), hint="check its permissions") from err
            for name in ("db", "lake"):
                if not isinstance(project.get(name, ""), str):
                    message = f"{name}: expected text, found {project[name]!r}"
                    raise UsageError(message, where=str(path), hint=f'{name} = "PATH"')
            return project, path
    return {}, None
