"""Where a run's artifacts are, and which of them are evaluation tables."""

from __future__ import annotations

import hashlib
import os
import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import orjson

from tracker.errors import InputError
from tracker.readers.base import is_special
from tracker.readers.mlflow.model import Artifact

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tracker.study import Study

TABLE_SUFFIXES = (".json", ".parquet", ".csv", ".tsv")
MOST_FILES = 2_000
"""Files of one run that are looked at."""
HASHED = 64 << 20
"""Bytes of a table by which it is compared."""
_DRIVE = re.compile(r"^/?[A-Za-z]:[\\/]")


class Places:
    """Where the artifacts of the runs of one store are. Folders of experiments are looked for once."""

    def __init__(self, store_folder: Path | None) -> None:
        self.store_folder = store_folder
        self._parents: dict[str, tuple[str, ...]] = {}

    def tables(self, uri: str | None, logged: str | None) -> list[Artifact]:
        """The tables among a run's artifacts; one that cannot be reached from here says so when it is loaded."""
        folder = self.folder(uri or "")
        if folder is not None:
            return tables_in(folder, logged)
        if not logged:
            return []
        told = uri or ""
        return [
            Artifact(path=path, load=partial(_out_of_reach, path, told), uri=f"{told}/{path}", is_table=True)
            for path in logged_tables(logged)
        ]

    def folder(self, uri: str) -> Path | None:
        """The folder of a run's artifacts, if it is here."""
        parts = uri.rsplit("/", 2)
        if len(parts) < 3:
            return local_folder(uri, self.store_folder)
        parents = self._parents.get(parts[0])
        if parents is None:
            parents = tuple(place for place in candidates(parts[0], self.store_folder, 2) if os.path.isdir(place))  # noqa: PTH112 - many runs
            self._parents[parts[0]] = parents
        for parent in parents:
            place = f"{parent}/{unquote(parts[1])}/{unquote(parts[2])}"
            if os.path.isdir(place):  # noqa: PTH112
                return Path(place)
        return None


def tables_in(folder: Path, logged: str | None) -> list[Artifact]:
    """Tables in a folder of artifacts: those that were logged as such, then those whose beginning says so."""
    named = logged_tables(logged)
    found = [_artifact(folder, path, is_table=True) for path in named if not is_special(folder / path)]
    seen = set(named)
    looked = (path for path in _files(folder) if path not in seen and path.endswith(TABLE_SUFFIXES))
    return found + [_artifact(folder, path, is_table=False) for path in looked if looks_like_table(folder / path)]


def rules_of(tables: Iterable[Artifact], study: Study) -> dict[str, Any]:
    """What a study's `[[table]]` rules say of tables that are files here, by path among the artifacts, as JSON values: it decides how they are read."""
    told: dict[str, Any] = {}
    for one in tables if study.table else ():
        if one.file is not None and (rule := study.table_rule(one.file)) is not None:
            captures = rule.captures(study.path_text(one.file)) or {}
            told[one.path] = {"rule": rule.model_dump(mode="json", exclude_defaults=True), "captures": captures}
    return told


def state_of(table: Artifact) -> tuple[str, int, str] | None:
    """What a table that is a file here is worth comparing by, wherever it lies: path among the artifacts, size, hash; None for others.

    Of a large one the beginning and the end are hashed.
    """
    if table.file is None:
        return None
    try:
        with table.file.open("rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            whole = hashlib.sha256(stream.read(HASHED // 2))
            stream.seek(max(stream.tell(), size - HASHED // 2))
            whole.update(stream.read(HASHED // 2))
            return table.path, size, whole.hexdigest()
    except OSError:
        return None


def logged_tables(logged: str | None) -> list[str]:
    """Paths that the run's tag mlflow.loggedArtifacts calls tables."""
    if not logged:
        return []
    try:
        told = orjson.loads(logged)
    except ValueError:
        return []
    entries = [one for one in told if isinstance(one, dict)] if isinstance(told, list) else []
    paths = [str(one["path"]) for one in entries if one.get("type") == "table" and isinstance(one.get("path"), str)]
    return [path for path in dict.fromkeys(paths) if ".." not in path.split("/") and not path.startswith("/")]


def looks_like_table(path: Path) -> bool:
    """Whether a file holds a table with questions and what came of them. Never raises."""
    from tracker.readers.mlflow.tables import is_credible, names_in

    try:
        return is_credible(names_in(path))
    except (OSError, InputError, ValueError):
        return False


def local_folder(uri: str, store_folder: Path | None) -> Path | None:
    """The folder of a run's artifacts: where its address says, else at the same place below the store's own folder."""
    return next((Path(place) for place in candidates(uri, store_folder, 4) if os.path.isdir(place)), None)  # noqa: PTH112 - many runs


def candidates(uri: str, store_folder: Path | None, depth: int) -> list[str]:
    """Places where what an address names may be; `depth` is how many of its last names belong together (mlruns/0/RUN/artifacts: 4)."""
    parts = urlsplit(uri) if "://" in uri or uri.startswith(("file:", "mlflow-artifacts:")) else None
    if parts is not None and parts.scheme not in {"file", "mlflow-artifacts"}:
        return []
    proxied = parts is not None and parts.scheme == "mlflow-artifacts"
    place = unquote(parts.path) if parts is not None else uri
    found = [] if proxied or not place or _DRIVE.match(place) else [place]
    if store_folder is not None:
        names = [name for name in place.replace("\\", "/").split("/") if name]
        tops = ("mlartifacts", "mlruns") if proxied else ("",)
        counts = (depth - 1,) if proxied else (depth, depth - 1)
        found += [os.path.join(top, *names[-count:]) for top in tops for count in counts if 0 < count <= len(names)]  # noqa: PTH118
        found = [os.path.join(store_folder, one) for one in found]  # noqa: PTH118
    return [one for one in found if os.path.isabs(one)]  # noqa: PTH117


def _files(folder: Path) -> Iterator[str]:
    """Files below a folder, relative, in sorted order, a limited number."""
    seen = 0
    for parent, folders, names in os.walk(folder):
        folders.sort()
        inside = os.path.relpath(parent, folder).replace(os.sep, "/")
        for name in sorted(names):
            seen += 1
            if seen > MOST_FILES:
                return
            if not is_special(os.path.join(parent, name)):  # noqa: PTH118 - many files
                yield name if inside == "." else f"{inside}/{name}"


def _artifact(folder: Path, path: str, *, is_table: bool) -> Artifact:
    file = folder / path
    return Artifact(path=path, load=partial(_bytes_of, file), uri=str(file), file=file if file.is_file() else None, is_table=is_table)


def _bytes_of(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as err:
        message = f"artifact that cannot be read: {err.strerror}"
        raise InputError(message, where=str(path), hint="copy the run's artifacts too") from err


def _out_of_reach(path: str, uri: str) -> Any:
    message = f"the table {path} is among artifacts that are not reachable from here"
    raise InputError(
        message,
        where=uri,
        hint="copy the artifacts beside the database as mlruns/EXPERIMENT/RUN/artifacts, or ingest through the tracking server",
    )
