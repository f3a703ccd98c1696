"""What an ad-hoc table may have beside its plain columns: one column per model, and a sidecar file with more about its questions."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING, Any

from tracker.batch import Refusal
from tracker.errors import InputError
from tracker.readers.base import resolved
from tracker.readers.lines import listed
from tracker.readers.tabular import Chunk, Truncated, chunks, kind_of, never_read
from tracker.readers.values import column_names, is_missing, text
from tracker.rules import AROUND, field_of, fill, reach

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from tracker.rules import Cell
    from tracker.table_rules import Layout, Sidecar, TableRule

Match = tuple[str, tuple[tuple[str, str], ...]]


# ---- files -----------------------------------------------------------------------------------


def head_of(path: Path) -> bytes:
    """The first bytes of a file that a rule names; InputError for what is never read."""
    from tracker.readers import native

    head = native.head_of(path)
    if not head:
        message = "empty file"
        raise InputError(message, where=str(path), hint="delete it or run its writer again")
    never = never_read(path, head)
    if never is not None:
        raise InputError(never[0], where=str(path), hint=never[1])
    return head


def pieces_of(path: Path, layout: Layout) -> Iterator[Chunk | Refusal | Truncated]:
    """The rows of a file as a rule says that it is written."""
    kind = layout.format or kind_of(path, head_of(path)) or "jsonl"
    if layout.sheet is not None and kind != "xlsx":
        message = f"no workbook, so it has no sheet {layout.sheet!r}"
        raise InputError(message, where=str(path), hint="leave sheet out of the rule of the study file")
    return chunks(path, kind, sheet=layout.sheet, rows=layout.rows, keys=layout.keys)


def require(rows: Sequence[Mapping[str, Any]], wanted: Mapping[str, Cell], path: Path, key: str, place: str) -> None:
    """Refuse a file whose rows lack every column of a field; the error names the nearest column."""
    for field, cell in wanted.items():
        if cell.value is not None:
            continue
        lacking = [name for name in cell.columns if not _has(rows, name)]
        if lacking if field == "question_id" else len(lacking) == len(cell.columns):
            raise no_column(lacking, field, rows, path, f"{key}.{field}", place)


def no_column(lacking: Sequence[str], field: str, rows: Sequence[Mapping[str, Any]], path: Path, key: str, place: str) -> InputError:
    """That a file has no such column; names the nearest one and the key to correct."""
    names = _names(rows)
    close = difflib.get_close_matches(lacking[0], names, n=1, cutoff=0.5)
    nearest = f"did you mean {close[0]!r}? " if close else ""
    message = f"no column {' or '.join(lacking)} (for {field}); {nearest}its columns are {listed(names)}"
    return InputError(message, where=str(path), hint=f"correct {key} of {place}")


def _names(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Columns of the first rows; those of an object in a row by their dotted names."""
    some = [dict(row) for row in rows[:100]]
    names: dict[str, None] = {}
    for name in column_names(some):
        inner = [row[name] for row in some if isinstance(row.get(name), dict)] if name != AROUND else []
        names |= dict.fromkeys(f"{name}.{one}" for one in column_names(inner)) if inner else {name: None}
    around = [dict(one) for row in some[:1] for one in row.get(AROUND) or ()]
    names |= dict.fromkeys(
        f"$.{name}" for name in column_names(around) if all(not isinstance(one.get(name), dict | list) for one in around)
    )
    return [name for name in names if name != AROUND]


def _has(rows: Sequence[Mapping[str, Any]], name: str) -> bool:
    return any(name in row or reach(row, name) is not None for row in rows)


# ---- one column per model --------------------------------------------------------------------


class ModelColumns:
    """Finds the columns of models in rows, by expressions over their names."""

    def __init__(self, rule: TableRule) -> None:
        self.patterns = {field: re.compile(pattern) for field, pattern in rule.models.items()}
        self._mapped = {name for cell in rule.columns.values() for name in cell.columns}
        self._known: dict[str, list[Match]] = {}
        self.seen: dict[tuple[tuple[str, str], ...], list[str]] = {}
        self.told: set[tuple[tuple[str, str], ...]] = set()

    def of(self, row: Mapping[str, Any]) -> list[tuple[dict[str, str], dict[str, Any], dict[str, str]]]:
        """(fields of the run, cells, column of each cell) of each model that has a value in a row, in the order of columns."""
        found: dict[tuple[tuple[str, str], ...], tuple[dict[str, Any], dict[str, str]]] = {}
        for name, value in _columns(row, self._matches):
            for field, run in self._matches(name):
                if run not in self.seen:
                    self.seen[run] = []
                if name not in self.seen[run]:
                    self.seen[run].append(name)
                cells, names = found.setdefault(run, ({}, {}))
                cells[field], names[field] = value, name
        kept = [(run, *one) for run, one in found.items() if not all(is_blank(field, value) for field, value in one[0].items())]
        self.told.update(run for run, _, _ in kept)
        return [(dict(run), {field: cells.get(field) for field in self.patterns}, names) for run, cells, names in kept]

    def has(self, field: str, rows: Sequence[Mapping[str, Any]]) -> bool:
        """Whether some row has a column of a model for a field."""
        found = (name for row in rows for name, _ in _columns(row, self._matches))
        return any(one == field for name in found for one, _ in self._matches(name))

    def owns(self, name: str, value: Any) -> bool:
        """Whether a column of the table is one of a model, or holds such columns."""
        return bool(self._matches(name)) or (isinstance(value, dict) and any(True for _ in _columns({name: value}, self._matches)))

    def silent(self) -> list[str]:
        """Columns of models without a single value."""
        return [name for run, names in self.seen.items() if run not in self.told for name in names]

    def _matches(self, name: str) -> list[Match]:
        if name not in self._known:
            self._known[name] = []
            for field, pattern in self.patterns.items():
                met = None if name in self._mapped or name == AROUND else pattern.fullmatch(name)
                if met:
                    groups = met.groupdict()
                    run = tuple((field_of(group), groups[group].strip()) for group in sorted(groups) if (groups[group] or "").strip())
                    self._known[name].append((field, run))
        return self._known[name]


def is_blank(field: str, value: Any) -> bool:
    """Whether nothing was written in a model's cell: that model did not answer. NaN is a value of a score alone."""
    if isinstance(value, str):
        return not value.strip()
    return is_missing(value) and not (value is not None and (field == "score" or field.startswith("scores.")))


def _columns(row: Mapping[str, Any], matches: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The columns of a row that are a model's; those inside objects by their dotted names."""
    for name, value in row.items():
        if prefix or name != AROUND:
            whole = f"{prefix}{name}"
            if matches(whole):
                yield whole, value
            elif isinstance(value, dict):
                yield from _columns(value, matches, f"{whole}.")


# ---- the sidecar -----------------------------------------------------------------------------


def sidecar_path(rule: TableRule, path: Path, groups: Mapping[str, str]) -> Path | None:
    """Where the sidecar of a table is: relative to the table."""
    return None if rule.sidecar is None else resolved(path.parent / str(fill(rule.sidecar.file, groups)))


class SidecarRows:
    """What a sidecar says of each question; held in memory."""

    def __init__(self, rule: Sidecar, path: Path, table: Path, place: str) -> None:
        self.rule, self.path, self.table, self.place = rule, path, table, place
        self._rows: dict[str, dict[str, Any]] = {}
        self._asked: list[str] = []
        self.met = False

    def load(self) -> Iterator[Refusal]:
        """Read it; what cannot be read of it is refused row by row, InputError when nothing can."""
        if not self.path.is_file():
            message = f"its sidecar {self.path} is not there"
            raise InputError(message, where=str(self.table), hint=f"add it, or correct sidecar.file of {self.place}")
        first = True
        for piece in pieces_of(self.path, self.rule):
            if isinstance(piece, Refusal):
                yield piece
            elif isinstance(piece, Chunk):
                rows = piece.dicts()
                if first:
                    self._require(rows)
                    first = False
                yield from self._take(piece, rows)
        if not self._rows:
            message = f"its sidecar {self.path} holds no usable row"
            raise InputError(message, where=str(self.table), hint=f"correct the file, or sidecar of {self.place}")

    def of(self, key: str) -> dict[str, Any] | None:
        """Cells of a question; None where the sidecar does not name it."""
        found = self._rows.get(key.strip())
        self.met = self.met or found is not None
        if not self.met and len(self._asked) < 1:
            self._asked.append(key)
        return found

    def strangers(self) -> InputError:
        """That the table and its sidecar share no question."""
        message = f"none of its questions (such as {self._asked[0]!r}) is in its sidecar {self.path} (which has {next(iter(self._rows))!r} and so on)"
        return InputError(message, where=str(self.table), hint=f"correct sidecar.key or sidecar.on of {self.place}")

    def _require(self, rows: Sequence[Mapping[str, Any]]) -> None:
        for name in self.rule.key:
            if not _has(rows, name):
                raise no_column([name], "key", rows, self.path, "sidecar.key", self.place)
        require(rows, self.rule.columns, self.path, "sidecar.columns", self.place)

    def _take(self, piece: Chunk, rows: Sequence[Mapping[str, Any]]) -> Iterator[Refusal]:
        for at, row in enumerate(rows):
            key, missing = joined(row, self.rule.key)
            reason = ""
            if missing:
                reason = f"column {', '.join(missing)}: expected a value for key, found None"
            else:
                cells = {field: cell.of(row) for field, cell in self.rule.columns.items()}
                if self._rows.setdefault(key.strip(), cells) != cells:
                    reason = f"a second row of {key} that says something else (the first one counts)"
            if reason:
                place = "" if piece.unit == "line" else f"{piece.unit} {piece.lines[at]}: "
                yield Refusal(file=str(self.path), line=piece.lines[at], reason=place + reason, text=piece.text(at))


def joined(row: Mapping[str, Any], columns: Sequence[str]) -> tuple[str, list[str]]:
    """The key that some columns make, and which of them hold nothing."""
    parts = [row[name] if name in row else reach(row, name) for name in columns]
    missing = [name for name, part in zip(columns, parts, strict=True) if is_missing(part)]
    return "/".join([text(part) or "" for part in parts]), missing
