"""Rows inside JSON documents, and inside the rows of other files.

Where they are is said by a path to the rows (`results.items`, `runs[].items`) and by names for the levels of keys above them
(`keys = ["model", "question_id"]` for `{model: {question: {...}}}`). Every row remembers the objects around it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tracker.batch import Refusal
from tracker.errors import InputError
from tracker.readers.lines import json_document, listed, shorten
from tracker.readers.tabular import CHUNK_ROWS, Chunk, Gathered, Truncated
from tracker.readers.values import columns_of, json_text
from tracker.rules import AROUND, dotted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

KEY, VALUE = "_key", "_value"
"""Columns of what an object holds that has no column names of its own."""
_LISTED = 6
_DEPTH = 6


class _NoRowsError(Exception):
    """A document, or a part of one, in which the rows are not where they should be; the message says what is there."""


@dataclass(frozen=True, slots=True)
class _Found:
    """A row and the objects around it (the nearest first), or what stands in the place of a row."""

    row: dict[str, Any] | None
    around: tuple[dict[str, Any], ...] = ()
    problem: str = ""
    value: Any = None


def document_chunks(path: Path, rows: str | None = None, keys: Sequence[str] = ()) -> Iterator[Chunk | Refusal | Truncated]:
    """The rows of a JSON document.

    Without `rows` and `keys` it is a list of objects, an object of objects (their names become the column `_key`), or a
    data frame as pandas writes it: columns and data, or one list or one object of numbered values for each column.
    """
    gathered = Gathered("entry")
    position = 0
    try:
        for position, found in enumerate(_rows(json_document(path), rows, tuple(keys)), 1):
            if found.row is None:
                yield _refused(path, position, f"entry {position}: {found.problem}", found.value)
                continue
            gathered.add(found.row | {AROUND: found.around} if found.around else found.row, position)
            if gathered.full:
                yield gathered.done()
                gathered = Gathered("entry")
    except _NoRowsError as err:
        raise InputError(str(err), where=str(path), hint=_hint(rows, keys)) from err
    if gathered.chunk.lines:
        yield gathered.done()


def inner_chunks(
    path: Path, pieces: Iterator[Chunk | Refusal | Truncated], rows: str | None, keys: Sequence[str]
) -> Iterator[Chunk | Refusal | Truncated]:
    """The rows inside the rows of a file; the outer row is around them."""
    for piece in pieces:
        if not isinstance(piece, Chunk):
            yield piece
            continue
        inside: list[dict[str, Any]] = []
        origin: list[int] = []
        for at, outer in enumerate(piece.dicts()):
            place = "" if piece.unit == "line" else f"{piece.unit} {piece.lines[at]}: "
            problems: list[str] = []
            try:
                for found in _rows(outer, rows, tuple(keys)):
                    if found.row is None:
                        problems.append(found.problem)
                        continue
                    inside.append(found.row | {AROUND: found.around})
                    origin.append(at)
            except _NoRowsError as err:
                problems.append(str(err))
            for problem in problems:
                yield Refusal(file=str(path), line=piece.lines[at], reason=place + problem, text=piece.text(at))
            if len(inside) >= CHUNK_ROWS:
                yield _chunk(piece, inside, origin)
                inside, origin = [], []
        if inside:
            yield _chunk(piece, inside, origin)


def _chunk(piece: Chunk, rows: list[dict[str, Any]], origin: list[int]) -> Chunk:
    return Chunk(
        columns={**columns_of(rows)},
        lines=[piece.lines[at] for at in origin],
        raw=None if piece.raw is None else [piece.raw[at] for at in origin],
        unit=piece.unit,
    )


def _rows(document: Any, rows: str | None, keys: tuple[str, ...]) -> Iterator[_Found]:
    """Every row of a document in order; a `[]` after the list of rows itself says nothing new."""
    rows = rows and rows.removesuffix("[]")
    top = isinstance(document, dict) and bool(rows)
    for found in _reach(document, rows or "", (document,) if top else ()):
        if found.problem:
            yield found
            continue
        try:
            yield from _keyed(found.value, keys, {}, found.around) if keys else _unkeyed(found.value, found.around)
        except _NoRowsError as err:
            if "[]" not in (rows or ""):
                raise
            yield _Found(None, problem=str(err), value=found.value)


def _reach(node: Any, path: str, around: tuple[dict[str, Any], ...]) -> Iterator[_Found]:
    """The parts of a document (each as `value`) that a path leads to, each with the objects around it."""
    name, mark, rest = path.partition("[]")
    name = name.strip(".")
    found = node
    if name:
        found = dotted(node, name)
        if found is None:
            shown = f"no {name} in it" if isinstance(node, dict) else f"expected an object with {name}, found {_kind(node)}"
            raise _NoRowsError(shown + _candidates(node))
        around = (*_between(node, name), *around)
    if not mark:
        yield _Found(None, around, value=found)
        return
    members = list(found.values()) if isinstance(found, dict) else found
    if not isinstance(members, list):
        message = f"{name}: expected a list, found {_kind(found)}"
        raise _NoRowsError(message)
    for one in members:
        try:
            yield from _reach(one, rest, (one, *around) if isinstance(one, dict) else around)
        except _NoRowsError as err:
            yield _Found(None, problem=str(err), value=one)


def _between(node: Any, name: str) -> list[dict[str, Any]]:
    """The objects on the way to a dotted name, the innermost first, without both ends."""
    held: list[dict[str, Any]] = []
    parts = name.split(".")
    for cut in range(1, len(parts)):
        inner = dotted(node, ".".join(parts[:cut]))
        if isinstance(inner, dict):
            held.insert(0, inner)
    return held


def _keyed(node: Any, keys: tuple[str, ...], cells: dict[str, Any], around: tuple[dict[str, Any], ...]) -> Iterator[_Found]:
    """The rows under levels of keys."""
    if not keys:
        frame = _split(node)
        if isinstance(node, dict) and frame is None:
            yield _Found(node | cells, around)
        elif frame is not None or (isinstance(node, list) and any(isinstance(one, dict) for one in node)):
            for one in _listed(frame if frame is not None else node, around):
                yield one if one.row is None else _Found(one.row | cells, around)
        else:
            yield _Found({**cells, VALUE: node}, around)
        return
    if not isinstance(node, dict):
        under = "".join(f", under {name} {value!r}" for name, value in cells.items())
        message = f"expected an object whose keys are {keys[0]}{under}, found {_kind(node)}"
        if not cells:
            raise _NoRowsError(message + _candidates(node))
        yield _Found(None, problem=message, value=node)
        return
    for name, inner in node.items():
        yield from _keyed(inner, keys[1:], {**cells, keys[0]: name}, around)


def _unkeyed(node: Any, around: tuple[dict[str, Any], ...]) -> Iterator[_Found]:
    """The rows of a list or table."""
    if isinstance(node, list):
        yield from _listed(node, around)
        return
    table = (_split(node) or _columnar(node) or _numbered(node)) if isinstance(node, dict) and node else None
    if table is not None:
        yield from _listed(table, around)
        return
    if isinstance(node, dict) and node and all(isinstance(one, dict) for one in node.values()):
        yield from (_Found({KEY: name, **one}, around) for name, one in node.items())
        return
    message = f"expected a JSON list of objects, found {type(node).__name__}{_candidates(node)}"
    raise _NoRowsError(message)


def _listed(node: list[Any], around: tuple[dict[str, Any], ...]) -> Iterator[_Found]:
    for one in node:
        if isinstance(one, dict):
            yield _Found(one, around)
        else:
            yield _Found(None, problem=f"expected a JSON object, found {type(one).__name__}", value=one)


def _split(node: Any) -> list[Any] | None:
    """Rows of a data frame written as {"columns": [...], "data": [[...], ...]}."""
    if not isinstance(node, dict) or not {"columns", "data"} <= node.keys() <= {"columns", "data", "index"}:
        return None
    names, data = node["columns"], node["data"]
    if not isinstance(names, list) or not isinstance(data, list) or not all(isinstance(one, list) for one in data):
        return None
    # A row of another length stays a list, and is refused as one.
    return [dict(zip(map(str, names), one, strict=True)) if len(one) == len(names) else one for one in data]


def _columnar(node: dict[str, Any]) -> list[Any] | None:
    """Rows of {"column": [...], ...}: lists of one length without objects in them."""
    lists = list(node.values())
    if not all(isinstance(one, list) for one in lists) or len({len(one) for one in lists}) != 1 or len(lists) < 2:
        return None
    if any(isinstance(cell, dict) for one in lists for cell in one):
        return None
    return [dict(zip(node, cells, strict=True)) for cells in zip(*lists, strict=True)]


def _numbered(node: dict[str, Any]) -> list[Any] | None:
    """Rows of {"column": {"0": ..., "1": ..., ...}, ...}."""
    columns = list(node.values())
    if not all(isinstance(one, dict) for one in columns) or not columns[0]:
        return None
    numbers = [str(at) for at in range(len(columns[0]))]
    if any(len(one) != len(numbers) or list(one) != numbers for one in columns):
        return None
    return [{name: one[number] for name, one in node.items()} for number in numbers]


def _candidates(document: Any) -> str:
    """Where in a document lists of objects are, for a message."""
    found = [place for place in _lists_of_objects(document, "", 0) if place][:_LISTED]
    return f"; lists of objects in it: {listed(found)}" if found else ""


def _lists_of_objects(node: Any, place: str, depth: int) -> Iterator[str]:
    if depth > _DEPTH:
        return
    if isinstance(node, list):
        first = next((one for one in node if isinstance(one, dict)), None)
        if first is not None:
            yield place
            yield from _lists_of_objects(first, f"{place}[]", depth + 1)
    elif isinstance(node, dict):
        for name, one in node.items():
            yield from _lists_of_objects(one, f"{place}.{name}" if place else name, depth + 1)


def _kind(value: object) -> str:
    return {dict: "an object", list: "a list", str: "text", type(None): "null"}.get(type(value), type(value).__name__)


def _refused(path: Path, line: int, reason: str, value: Any) -> Refusal:
    return Refusal(file=str(path), line=line, reason=reason, text=shorten(json_text(value)))


def _hint(rows: str | None, keys: Sequence[str]) -> str:
    told = " and ".join(name for name, value in (("rows", rows), ("keys", keys)) if value)
    return (
        f"correct {told} in the rule of the study file"
        if told
        else "say where the rows are: rows = ... (or keys = [...]) in the rule of the study file"
    )
