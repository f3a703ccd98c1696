"""Ways to damage the bytes of a file, each decided by two whole numbers: the same numbers, the same damage.

`damaged(content, op, place, choice)` never raises: what an operation does not fit (a JSON operation on a picture)
falls back to a flipped byte.
"""

from __future__ import annotations

import io
import json
import random
import sqlite3
import tempfile
import zipfile
import zlib
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.robustness.units import PACKERS, archive

if TYPE_CHECKING:
    from collections.abc import Callable

ODD_VALUES: list[Any] = [
    None, True, 0, -1, 1.5, 1e308, 2**70, float("nan"), float("inf"), "", "x", "NaN", "ÿ\u2028\x00", "a" * 40_000, [], [None], [[1]], {}, {"a": {"b": [1]}}, {"": None},
]  # fmt: skip
GARBAGE = [
    b"\xff\xfe", b"\x00", b"\x00" * 64, b"\n", b"\r", b"\r\n\r\n", b"\xef\xbb\xbf", b"\xe2\x80\xa8", b"\xed\xa0\x80", b"\\ud800", b'"', b",", b"\t", b"{", b"]", b"NaN",
    b"-Infinity", b"\xe9", b"null", b"[1, 2]\n", b"\x80\x04\x95", b"PK\x03\x04", b"PAR1", b"version https://git-lfs.github.com/spec/v1\n", b"<html>\n", b"1e999", b"{}\n",
    b"9" * 400, b"[" * 3000, b"\xf0\x9f",
]  # fmt: skip


def damaged(content: bytes, op: str, place: int, choice: int) -> bytes:
    """The content with one damage."""
    for one in (op, "flip"):
        with suppress(_UnfitError, LookupError, ValueError, RuntimeError, OSError, zipfile.BadZipFile, zlib.error, sqlite3.Error):
            return OPS[one](content, place, choice)
    return content


class _UnfitError(Exception):
    """The operation has nothing to do here."""


# ---- bytes and lines -----------------------------------------------------------------------------


def _at(content: bytes, place: int) -> int:
    if not content:
        raise _UnfitError
    return place % len(content)


def _cut(content: bytes, place: int, choice: int) -> bytes:
    return content[: _at(content, place)]


def _flip(content: bytes, place: int, choice: int) -> bytes:
    at = _at(content, place)
    return content[:at] + bytes([content[at] ^ (choice % 255 + 1)]) + content[at + 1 :]


def _insert(content: bytes, place: int, choice: int) -> bytes:
    at = _at(content, place) if choice % 3 else 0
    return content[:at] + GARBAGE[choice % len(GARBAGE)] + content[at:]


def _hole(content: bytes, place: int, choice: int) -> bytes:
    at = _at(content, place)
    return content[:at] + content[at + choice % 200 + 1 :]


def _zeros(content: bytes, place: int, choice: int) -> bytes:
    at, size = _at(content, place), choice % 1024 + 1
    return content[:at] + b"\0" * min(size, len(content) - at) + content[at + size :]


def _lines(content: bytes, change: Callable[[list[bytes]], None]) -> bytes:
    lines = content.split(b"\n")
    if len(lines) < 2:
        raise _UnfitError
    change(lines)
    return b"\n".join(lines)


def _repeat_line(content: bytes, place: int, choice: int) -> bytes:
    return _lines(content, lambda lines: lines.insert(choice % len(lines), lines[place % len(lines)]))


def _drop_line(content: bytes, place: int, choice: int) -> bytes:
    return _lines(content, lambda lines: lines.__delitem__(place % len(lines)))


def _swap_lines(content: bytes, place: int, choice: int) -> bytes:
    def swap(lines: list[bytes]) -> None:
        one, other = place % len(lines), choice % len(lines)
        lines[one], lines[other] = lines[other], lines[one]

    return _lines(content, swap)


def _odd_line(content: bytes, place: int, choice: int) -> bytes:
    return _lines(content, lambda lines: lines.__setitem__(place % len(lines), GARBAGE[choice % len(GARBAGE)]))


def _encode(content: bytes, place: int, choice: int) -> bytes:
    """The whole file, or the lines behind a place, in another encoding."""
    name = ("utf-16", "utf-16-le", "utf-16-be", "latin-1", "cp1252", "utf-8-sig", "utf-32")[choice % 7]
    at = 0 if place % 2 else content.rfind(b"\n", 0, _at(content, place)) + 1
    return content[:at] + content[at:].decode().replace("?", "é?").encode(name, "replace")


# ---- values in JSON ------------------------------------------------------------------------------


def _with_json(content: bytes, change: Callable[[Any, random.Random], Any], place: int, choice: int) -> bytes:
    """A change to one line, or to the whole document, by a generator that the numbers decide."""
    source = random.Random(place * 1_000_003 + choice)
    try:
        return json.dumps(change(json.loads(content), source), ensure_ascii=False).encode("utf-8", "surrogatepass")
    except ValueError:
        lines = content.split(b"\n")
        at = place % max(len(lines) - 1, 1)
        lines[at] = json.dumps(change(json.loads(lines[at]), source)).encode()
        return b"\n".join(lines)


def _holders(value: Any) -> list[Any]:
    """Every list and object inside a value that has something in it."""
    found, waiting = [], [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, (dict, list)) and one:
            found.append(one)
            waiting += one.values() if isinstance(one, dict) else one
    if not found:
        raise _UnfitError
    return found


def _spot(value: Any, source: random.Random) -> tuple[Any, Any]:
    """A holder and a key or position in it; the outer ones come as often as the many inner ones."""
    holders = _holders(value)
    holder = holders[0] if source.random() < 0.4 else source.choice(holders)
    return holder, source.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))


def _drop_key(content: bytes, place: int, choice: int) -> bytes:
    def drop(value: Any, source: random.Random) -> Any:
        holder, key = _spot(value, source)
        del holder[key]
        return value

    return _with_json(content, drop, place, choice)


def _change_type(content: bytes, place: int, choice: int) -> bytes:
    def change(value: Any, source: random.Random) -> Any:
        holder, key = _spot(value, source)
        holder[key] = source.choice(ODD_VALUES)
        return value

    return _with_json(content, change, place, choice)


def _change_key_everywhere(content: bytes, place: int, choice: int) -> bytes:
    """One key gets another type, or is lost, wherever it stands."""

    def change(value: Any, source: random.Random) -> Any:
        holders = [one for one in _holders(value) if isinstance(one, dict)]
        name, odd = source.choice(list(source.choice(holders))), source.choice([*ODD_VALUES, ...])
        for one in holders:
            if name in one:
                if odd is ...:
                    del one[name]
                else:
                    one[name] = odd
        return value

    if not content.lstrip().startswith(b"{") or content.count(b"\n") < 2:
        return _with_json(content, change, place, choice)
    rows = [json.loads(line) for line in content.split(b"\n") if line.strip()]
    return b"".join(json.dumps(row).encode() + b"\n" for row in change(rows, random.Random(place * 1_000_003 + choice)))


def _repeat_value(content: bytes, place: int, choice: int) -> bytes:
    def repeat(value: Any, source: random.Random) -> Any:
        lists = [one for one in _holders(value) if isinstance(one, list)]
        if not lists:
            raise _UnfitError
        one = source.choice(lists)
        one.insert(source.randrange(len(one) + 1), source.choice(one))
        return value

    return _with_json(content, repeat, place, choice)


def _wrap(content: bytes, place: int, choice: int) -> bytes:
    """The value in a list or an object, or one of its own parts instead of it."""

    def wrap(value: Any, source: random.Random) -> Any:
        inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else [value]
        return source.choice([[value], {"data": value}, [value, value], *inner])

    return _with_json(content, wrap, place, choice)


def _duplicate_key(content: bytes, place: int, choice: int) -> bytes:
    """A key stands twice in an object, with different values."""
    at = content.find(b'{"', place % max(len(content), 1))
    at = content.find(b'{"') if at < 0 else at
    end = content.find(b'"', at + 2)
    if at < 0 or end < 0:
        raise _UnfitError
    odd = json.dumps(ODD_VALUES[choice % len(ODD_VALUES)]).encode()
    return content[: at + 1] + content[at + 1 : end + 1] + b": " + odd + b", " + content[at + 1 :]


# ---- inside binary files -------------------------------------------------------------------------


def _member(content: bytes, place: int, choice: int) -> bytes:
    """One member of an archive is damaged, and the archive is sound."""
    source = random.Random(place * 1_000_003 + choice)
    with closing(io.BytesIO(content)) as stream, zipfile.ZipFile(stream) as opened:
        method = opened.infolist()[0].compress_type
        if method == 93:
            import pyarrow as pa

            members = {}
            for one in opened.infolist():
                start = (
                    one.header_offset
                    + 30
                    + len(one.filename.encode())
                    + int.from_bytes(content[one.header_offset + 28 : one.header_offset + 30], "little")
                )
                packed = content[start : start + one.compress_size]
                members[one.filename] = pa.Codec("zstd").decompress(packed, one.file_size, asbytes=True)
        else:
            members = {name: opened.read(name) for name in opened.namelist()}
    name = source.choice(sorted(members))
    what = source.randrange(8)
    if what == 0:
        del members[name]
    elif what == 1:
        members[name.replace("sample", "simple") + "x"] = members.pop(name)
    else:
        members[name] = damaged(members[name], source.choice([*BYTES, *VALUES]), source.randrange(2**30), source.randrange(2**30))
    return archive(members, method if method in PACKERS else 0)


def _column(content: bytes, place: int, choice: int) -> bytes:
    """One column of a Parquet file is lost, or gets another name, type or values."""
    if not content.startswith(b"PAR1"):
        raise _UnfitError
    import pyarrow as pa
    import pyarrow.parquet as pq

    source = random.Random(place * 1_000_003 + choice)
    try:
        table = pq.read_table(io.BytesIO(content))
    except (pa.ArrowException, OSError) as err:
        raise _UnfitError from err
    at = source.randrange(max(table.num_columns, 1))
    name, count = table.column_names[at], table.num_rows
    kinds: list[pa.Array] = [
        pa.nulls(count), pa.nulls(count, pa.int64()), pa.array([1] * count), pa.array(["x"] * count), pa.array([b"\xff\x00"] * count), pa.array([1.5, float("nan")] * count)[:count],
        pa.array([[1, 2]] * count), pa.array([{"a": 1}] * count), pa.array([True] * count), pa.array(["x"] * count).dictionary_encode(), pa.array([10**15] * count, pa.timestamp("us")),
        pa.array([None, "NaN"] * count)[:count], pa.array([[{"a": None}]] * count), pa.array([b"12345678"] * count, pa.binary(8)), pa.array([[("k", 1)]] * count, pa.map_(pa.string(), pa.int64())),
        pa.array([2**64 - 1] * count, pa.uint64()), pa.array([1] * count, pa.duration("s")), pa.array([86_399] * count, pa.time32("s")), pa.array([1.5] * count).cast(pa.decimal128(38, 2)),
    ]  # fmt: skip
    what = source.randrange(len(kinds) + 5)
    if what < len(kinds):
        table = table.set_column(at, name, kinds[what])
    elif what == len(kinds):
        table = table.drop_columns([name])
    elif what == len(kinds) + 1:
        table = table.rename_columns([*table.column_names[:at], f"{name}\0\n", *table.column_names[at + 1 :]])
    elif what == len(kinds) + 2:
        table = table.append_column(name, table.column(name))
    elif what == len(kinds) + 3:
        table = table.slice(0, 0)
    else:
        table = table.append_column("more", kinds[source.randrange(len(kinds))])
    out = io.BytesIO()
    try:
        pq.write_table(table, out, compression=source.choice(["none", "snappy", "zstd"]), row_group_size=source.choice([1, 3, 1000]))
    except (pa.ArrowException, OSError) as err:
        raise _UnfitError from err
    return out.getvalue()


def _cell(content: bytes, place: int, choice: int) -> bytes:
    """One cell, column, row or table of a SQLite file."""
    if not content.startswith(b"SQLite"):
        raise _UnfitError
    source = random.Random(place * 1_000_003 + choice)
    values = [None, "", "x", -1, 2**63 - 1, 1e300, float("inf"), b"\xff\x00", "NaN", "a" * 20_000, "\0\n"]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.db"
        path.write_bytes(content)
        with closing(sqlite3.connect(path)) as connection, connection:
            tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
            table = source.choice(tables)
            columns = [row[1] for row in connection.execute(f'PRAGMA table_info("{table}")')]
            column = source.choice(columns)
            rowid = source.randrange(max(connection.execute(f'SELECT count(*) FROM "{table}"').fetchone()[0], 1)) + 1
            what = source.randrange(12)
            if what < 6:
                connection.execute(f'UPDATE "{table}" SET "{column}" = ? WHERE rowid = ?', (source.choice(values), rowid))
            elif what < 8:
                connection.execute(f'UPDATE "{table}" SET "{column}" = ?', (source.choice(values),))
            elif what == 8:
                connection.execute(f'UPDATE "{table}" SET "{column}" = CAST(X\'FF80\' AS TEXT) WHERE rowid = ?', (rowid,))
            elif what == 9:
                connection.execute(f'ALTER TABLE "{table}" RENAME COLUMN "{column}" TO "{column}_"')
            elif what == 10:
                connection.execute(f'DROP TABLE "{table}"')
            else:
                connection.execute(f'INSERT INTO "{table}" SELECT * FROM "{table}" WHERE rowid = ?', (rowid,))
        return path.read_bytes()


BYTES = ("cut", "flip", "insert", "hole", "zeros", "repeat line", "drop line", "swap lines", "odd line", "encode")
VALUES = ("drop key", "change type", "change key everywhere", "repeat value", "wrap", "duplicate key")
INSIDE = ("member", "column", "cell")
OPS: dict[str, Callable[[bytes, int, int], bytes]] = {
    "cut": _cut,
    "flip": _flip,
    "insert": _insert,
    "hole": _hole,
    "zeros": _zeros,
    "repeat line": _repeat_line,
    "drop line": _drop_line,
    "swap lines": _swap_lines,
    "odd line": _odd_line,
    "encode": _encode,
    "drop key": _drop_key,
    "change type": _change_type,
    "change key everywhere": _change_key_everywhere,
    "repeat value": _repeat_value,
    "wrap": _wrap,
    "duplicate key": _duplicate_key,
    "member": _member,
    "column": _column,
    "cell": _cell,
}


def fitting(content: bytes) -> tuple[str, ...]:
    """The operations that make sense for a file; those that reach inside it come as often as all others together."""
    if content.startswith(b"PK"):
        return (*BYTES[:5], *("member",) * 5)
    if content.startswith(b"PAR1"):
        return (*BYTES[:5], *("column",) * 5)
    if content.startswith(b"SQLite"):
        return (*BYTES[:5], *("cell",) * 5)
    return (*BYTES, *VALUES) if content.lstrip()[:1] in {b"{", b"["} else BYTES
