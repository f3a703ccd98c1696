"""The manifest: which files make the lake, and which state of which database they copy."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from tracker.errors import LakeError

if TYPE_CHECKING:
    from collections.abc import Mapping

FORMAT = 1
"""Number of the layout that this code reads and writes."""

GRACE_SECONDS = 600.0
"""How long a replaced file stays for readers that still hold an older manifest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """One Parquet file that holds whole runs of a table."""

    file: str
    rows: int
    bytes: int
    runs: dict[int, int]
    """run id -> run version of the rows in the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFile:
    """One Parquet file that holds a small table whole."""

    file: str
    rows: int
    bytes: int


class ColumnDoc(NamedTuple):
    """A column: DuckDB type, meaning and unit."""

    name: str
    type: str
    comment: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TableDoc:
    """A table: what a row is, and its columns."""

    comment: str
    columns: tuple[ColumnDoc, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The lake as it is: equal to the database `uuid` at `data_version`."""

    uuid: str
    data_version: int
    revision: str
    trackr: str
    synced_at: str
    runs: dict[int, int] = field(default_factory=dict)
    """run id -> run version that every segment table holds."""
    segments: dict[str, tuple[Segment, ...]] = field(default_factory=dict)
    tables: dict[str, TableFile] = field(default_factory=dict)
    docs: dict[str, TableDoc] = field(default_factory=dict)
    dirty: int = 0
    """Slices whose trajectories the database could not be told to renew."""
    retired: dict[str, float] = field(default_factory=dict)
    """Replaced file -> time (Unix seconds) when it was replaced."""
    grace_seconds: float = GRACE_SECONDS

    def files(self) -> list[str]:
        """Every current file, relative to the lake's folder."""
        return [s.file for table in self.segments.values() for s in table] + [t.file for t in self.tables.values()]

    def rows(self, table: str) -> int:
        """Rows of a table."""
        if table in self.tables:
            return self.tables[table].rows
        return sum(segment.rows for segment in self.segments.get(table, ()))

    @property
    def bytes(self) -> int:
        """Bytes of all current files."""
        return sum(s.bytes for table in self.segments.values() for s in table) + sum(t.bytes for t in self.tables.values())

    def retire(self, successor: Manifest, now: float) -> Manifest:
        """The successor, with what it no longer uses put on the list of files to be deleted."""
        current = set(successor.files())
        retired = dict.fromkeys((name for name in self.files() if name not in current), now) | self.retired
        return replace(successor, retired={name: at for name, at in retired.items() if name not in current})

    def to_json(self) -> str:
        """Text of the manifest."""
        told = {"format": FORMAT} | {one.name: getattr(self, one.name) for one in fields(self)}
        return orjson.dumps(told, default=list, option=orjson.OPT_NON_STR_KEYS).decode()  # `list`: columns are named tuples


def from_json(text: str, where: str) -> Manifest:
    """Read a manifest; LakeError when it is damaged or from another version."""
    remedy = "trackr lake rebuild makes a new one from the database"
    try:
        data: dict[str, Any] = orjson.loads(text)
        number = data.pop("format")
    except (ValueError, KeyError, AttributeError, TypeError) as err:
        message = "the manifest of the lake is damaged"
        raise LakeError(message, where=where, hint=remedy) from err
    if number != FORMAT:
        message = f"the lake has format {number}, this trackr reads format {FORMAT}"
        raise LakeError(
            message,
            where=where,
            hint=remedy if isinstance(number, int) and number < FORMAT else "use a newer trackr, or --lake with another folder",
        )
    try:
        return _parse(data)
    except (ValueError, KeyError, TypeError, AttributeError) as err:
        message = f"the manifest of the lake is damaged: {err}"
        raise LakeError(message, where=where, hint=remedy) from err


def _parse(data: dict[str, Any]) -> Manifest:
    segments = {name: tuple(Segment(**{**s, "runs": _runs(s["runs"])}) for s in listed) for name, listed in data.pop("segments").items()}
    tables = {name: TableFile(**entry) for name, entry in data.pop("tables").items()}
    docs = {
        name: TableDoc(comment=doc["comment"], columns=tuple(ColumnDoc(*column) for column in doc["columns"]))
        for name, doc in data.pop("docs").items()
    }
    return Manifest(**{**data, "runs": _runs(data["runs"])}, segments=segments, tables=tables, docs=docs)


def _runs(stored: Mapping[str, int]) -> dict[int, int]:
    return {int(run_id): version for run_id, version in stored.items()}
