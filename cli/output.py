"""Rows as text: table, csv, json, ndjson, markdown. Streams, so that memory does not grow with the result.

Null stays apart from empty text in every format: `null` in tables, nothing against "" in CSV, null in JSON.
NaN and infinity are null in JSON, which has neither. Tables and markdown round floats to 6 significant digits and
show control characters of model-written text escaped; the other formats keep everything.
"""

from __future__ import annotations

import csv
import io
import math
import re
import sys
import unicodedata
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import lru_cache
from itertools import chain, islice
from typing import IO, TYPE_CHECKING, Any
from uuid import UUID

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    Row = Sequence[Any]

TEXT_FORMATS = ("table", "csv", "json", "ndjson", "markdown")

TERMINAL_ROWS = 100
"""Rows of a table on a terminal when no number was asked for."""

TERMINAL_WIDTH = 60
"""Characters of a cell on a terminal."""

SIZING_ROWS = 1000
"""Rows that decide the column widths; a table may be larger than memory."""

UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters, line and paragraph separators, marks that reorder text, lone surrogates."""


def write_rows(
    columns: Sequence[str],
    rows: Iterable[Row],
    *,
    as_json: bool = False,
    format: str = "table",  # noqa: A002 - the option's own name
    stream: IO[bytes] | None = None,
    max_rows: int | None = None,
    max_width: int | None = None,
) -> int:
    """Write rows in a format (`as_json` means json) to a binary stream (default: stdout); returns how many were written."""
    target = stream or sys.stdout.buffer
    names = unique(columns)
    counted = _Counted(islice(rows, max_rows) if max_rows is not None else rows)
    kind = "json" if as_json else format
    pieces = _table(names, counted, max_width) if kind == "table" else _WRITERS[kind](names, counted)
    for block in _blocks(pieces):
        target.write(block.encode("utf-8", "replace"))
    target.flush()
    return counted.n


def unique(columns: Sequence[str]) -> list[str]:
    """Column names with repeated ones numbered, as DuckDB does: a, a_1."""
    taken: set[str] = set()
    names = []
    for column in columns:
        name, number = column, 0
        while name in taken:
            number += 1
            name = f"{column}_{number}"
        taken.add(name)
        names.append(name)
    return names


def sanitise(text: str) -> str:
    """Text without terminal escapes, line breaks and other control characters: they are shown, not obeyed."""
    return UNSAFE.sub(_escaped, text)


def json_text(value: Any, *, indent: bool = False) -> str:
    """JSON of any value: keys in the order given, NaN and infinity as null, full precision."""
    import orjson

    options = orjson.OPT_NON_STR_KEYS | orjson.OPT_UTC_Z | (orjson.OPT_INDENT_2 if indent else 0)
    try:
        return orjson.dumps(value, default=_plain, option=options).decode()
    except (TypeError, ValueError):  # integers beyond 64 bits, lone surrogates
        import json

        return json.dumps(_tree(value), ensure_ascii=True, indent=2 if indent else None, separators=None if indent else (",", ":"))


class _Counted:
    """Counts what passes."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._rows, self.n = rows, 0

    def __iter__(self) -> Iterator[Row]:
        for row in self._rows:
            self.n += 1
            yield row


def _blocks(pieces: Iterable[str], size: int = 1 << 16) -> Iterator[str]:
    """Pieces joined to blocks that are worth a system call."""
    held: list[str] = []
    length = 0
    for piece in pieces:
        held.append(piece)
        length += len(piece)
        if length >= size:
            yield "".join(held)
            held, length = [], 0
    if held:
        yield "".join(held)


# ---- table and markdown ----------------------------------------------------------------------


def _table(columns: list[str], rows: Iterable[Row], max_width: int | None) -> Iterator[str]:
    iterator = iter(rows)
    first = list(islice(iterator, SIZING_ROWS))
    right = [_is_number_column(first, index) for index in range(len(columns))]
    head = [cell(name, max_width) for name in columns]
    sample = [[cell(value, max_width) for value in row] for row in first]
    widths = [max(_width(text) for text in column) for column in zip(head, *sample, strict=True)]
    yield _line(head, widths, right)
    yield "  ".join("─" * width for width in widths) + "\n"
    for row in sample:
        yield _line(row, widths, right)
    for values in iterator:
        yield _line([cell(value, max_width) for value in values], widths, right)


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    padded = [
        " " * (width - _width(text)) + text if to_right else text + " " * (width - _width(text))
        for text, width, to_right in zip(cells, widths, right, strict=True)
    ]
    return "  ".join(padded).rstrip() + "\n"


def _markdown(columns: list[str], rows: Iterable[Row]) -> Iterator[str]:
    iterator = iter(rows)
    first = list(islice(iterator, SIZING_ROWS))
    marks = ["---:" if _is_number_column(first, index) else "---" for index in range(len(columns))]
    yield "| " + " | ".join(_markdown_cell(name) for name in columns) + " |\n"
    yield "| " + " | ".join(marks) + " |\n"
    for row in chain(first, iterator):
        yield "| " + " | ".join(_markdown_cell(value) for value in row) + " |\n"


def _markdown_cell(value: Any) -> str:
    return cell(value).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")


def cell(value: Any, max_width: int | None = None) -> str:
    """A value as a table shows it."""
    if isinstance(value, str):
        text = sanitise(value)
    elif value is None:
        text = "null"
    elif isinstance(value, bool):
        text = "true" if value else "false"
    elif isinstance(value, (float, Decimal)):
        text = f"{value:.6g}"
    elif isinstance(value, int):
        text = str(value)
    else:
        text = sanitise(_text(value))
    return text if max_width is None or len(text) <= max_width else text[: max_width - 1] + "…"


def _is_number_column(rows: Sequence[Row], index: int) -> bool:
    given = [row[index] for row in rows if row[index] is not None]
    return bool(given) and all(isinstance(value, (int, float, Decimal)) and not isinstance(value, bool) for value in given)


@lru_cache(maxsize=4096)
def _width(text: str) -> int:
    """Columns that a text takes on a terminal."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)


def _escaped(match: re.Match[str]) -> str:
    char = match.group()
    named = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
    return named.get(char) or (f"\\x{ord(char):02x}" if ord(char) < 256 else f"\\u{ord(char):04x}")


# ---- csv -------------------------------------------------------------------------------------


def _csv(columns: list[str], rows: Iterable[Row]) -> Iterator[str]:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(columns)
    iterator = iter(rows)
    while block := list(islice(iterator, 1000)):
        converters = [_csv_converter(block, index) for index in range(len(columns))]
        changed = [index for index, convert in enumerate(converters) if convert]
        for row in block:
            values = list(row)
            for index in changed:
                values[index] = _csv_value(values[index])
            if "" in values or values == [None]:
                buffer.write(",".join(_csv_field(value) for value in values) + "\n")
            else:
                writer.writerow(values)
        yield buffer.getvalue()
        buffer.seek(0)
        buffer.truncate()
    yield buffer.getvalue()


def _csv_converter(block: Sequence[Row], index: int) -> bool:
    """Whether a column holds values that the csv module does not write the way other tools read them."""
    return any(not isinstance(value, (str, int, float, type(None))) or isinstance(value, bool) for value in (row[index] for row in block))


def _csv_value(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if value is None or isinstance(value, (str, int, float)) else _text(value)


def _csv_field(value: Any) -> str:
    """A field of a row that holds an empty text: it is quoted, so that it stays apart from null."""
    if value is None:
        return ""
    text = str(value)
    if text == "" or any(char in text for char in ',"\n\r'):
        return '"' + text.replace('"', '""') + '"'
    return text


# ---- json ------------------------------------------------------------------------------------


def _json(columns: list[str], rows: Iterable[Row]) -> Iterator[str]:
    separator = "[\n"
    for row in rows:
        yield separator + json_text(dict(zip(columns, row, strict=True)))
        separator = ",\n"
    yield "[]\n" if separator == "[\n" else "\n]\n"


def _ndjson(columns: list[str], rows: Iterable[Row]) -> Iterator[str]:
    for row in rows:
        yield json_text(dict(zip(columns, row, strict=True))) + "\n"


def _plain(value: Any) -> Any:
    """Values that orjson does not know."""
    if isinstance(value, Decimal):
        number = float(value)
        return number if math.isfinite(number) else None
    if isinstance(value, (set, frozenset)):
        return list(value)
    return _text(value)


def _tree(value: Any) -> Any:
    """A value that the standard library writes as valid JSON."""
    if isinstance(value, dict):
        return {key if isinstance(key, str) else _text(key): _tree(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_tree(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, (str, int)):
        return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
    return _tree(_plain(value))


def _text(value: Any) -> str:
    """A value that is neither text nor number."""
    if isinstance(value, (datetime, time)):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value).hex()
    if isinstance(value, (UUID, timedelta, Decimal, bool, int, float)):
        return str(value)
    return json_text(value) if isinstance(value, (dict, list, tuple)) else str(value)


_WRITERS: dict[str, Callable[[list[str], Iterable[Row]], Iterator[str]]] = {
    "csv": _csv,
    "json": _json,
    "ndjson": _ndjson,
    "markdown": _markdown,
}
