"""Rows of sample files, a few hundred at a time: fast where a file is sound, line by line where it is not."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import orjson

from tracker.batch import Refusal
from tracker.errors import InputError
from tracker.readers.lines import LONGEST_LINE, foreign, parse, raw_lines, shorten

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path
    from typing import BinaryIO

BLOCK_ROWS = 256
"""Few enough that parsed rows stay in the processor's cache until they are columns."""
READ_BYTES = 1 << 18
_UTF8_BOM = b"\xef\xbb\xbf"
_TOO_LONG = b"a line of more than LONGEST_LINE"


@dataclass(slots=True)
class Block:
    """Rows that are objects, the line that each begins on, and what was refused between them."""

    rows: list[dict[str, Any]]
    lines: Sequence[int]
    refusals: list[Refusal] = field(default_factory=list)
    truncated: bool = False
    size: int = 0


@contextmanager
def paused_collector() -> Iterator[None]:
    """No cycle collection while many plain objects are made: parsed JSON has no cycles, and looking for them doubles the time."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()


def row_blocks(path: Path) -> Iterator[Block]:
    """The rows of a JSONL file or of a pretty-printed JSON array, in order; memory is bounded by a block or a row."""
    try:
        stream = path.open("rb")
    except OSError as err:
        message = f"cannot be read: {err.strerror or err}"
        raise InputError(message, where=str(path)) from err
    with stream:
        head = stream.read(256)
        stream.seek(0)
        if not head.strip(b"\xef\xbb\xbf \t\r\n") and not stream.read(READ_BYTES).strip(b"\xef\xbb\xbf \t\r\n"):
            message = "empty file"
            raise InputError(message, where=str(path), hint="delete it or run its writer again")
        problem = foreign(head, path)
        if problem:
            raise InputError(problem, where=str(path))
        stream.seek(0)
        if head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"["):
            yield from _element_blocks(path, stream)
        else:
            yield from _line_blocks(path, stream)


def _line_blocks(path: Path, stream: BinaryIO) -> Iterator[Block]:
    number, held = 1, 0
    pieces: list[bytes] = []
    while data := stream.read(READ_BYTES):
        if number == 1 and not pieces:
            data = data.removeprefix(_UTF8_BOM)
        head, end, rest = data.rpartition(b"\n")
        if not end:
            held += len(data)
            pieces = [*pieces, data] if held <= LONGEST_LINE else [_TOO_LONG]
            continue
        lines = b"".join([*pieces, head]).split(b"\n")
        if held > LONGEST_LINE:
            lines[0] = _TOO_LONG
        for first in range(0, len(lines), BLOCK_ROWS):
            yield _parsed(path, lines[first : first + BLOCK_ROWS], range(number + first, number + len(lines)), ended=True)
        number += len(lines)
        pieces, held = [rest], len(rest)
    if any(pieces):
        yield _parsed(path, [_TOO_LONG if held > LONGEST_LINE else b"".join(pieces)], range(number, number + 1), ended=False)


def _element_blocks(path: Path, stream: BinaryIO) -> Iterator[Block]:
    for number, raw, ended in _elements(stream):
        yield _parsed(path, [raw], range(number, number + 1), ended=ended)


def _parsed(path: Path, raws: list[bytes], lines: Sequence[int], *, ended: bool) -> Block:
    try:
        rows = list(map(orjson.loads, raws))
    except ValueError:
        return _tolerant(path, raws, lines, ended=ended)
    if set(map(type, rows)) == {dict}:
        return Block(rows, lines[: len(rows)], size=sum(map(len, raws)))
    return _tolerant(path, raws, lines, ended=ended)


def _tolerant(path: Path, raws: list[bytes], numbers: Sequence[int], *, ended: bool) -> Block:
    lines: list[int] = []
    block = Block([], lines, size=sum(map(len, raws)))
    for number, raw in zip(numbers, raws, strict=False):
        if raw is _TOO_LONG:
            reason = "a line of more than 256 MB (write one row per line)"
            block.refusals.append(Refusal(file=str(path), line=number, reason=reason))
            continue
        try:
            value: Any = orjson.loads(raw)
        except ValueError:
            if not raw.strip():
                continue
            line = parse(raw, number, path, last=not ended and raw is raws[-1])
            if line.error:
                block.refusals.append(Refusal(file=str(path), line=number, reason=line.error, text=line.text))
                block.truncated = block.truncated or line.truncated
                continue
            value = line.value
        if not isinstance(value, dict):
            reason = f"expected an object with the fields of one sample, found {type(value).__name__} (delete the line)"
            block.refusals.append(Refusal(file=str(path), line=number, reason=reason, text=shorten(raw)))
            continue
        block.rows.append(value)
        lines.append(number)
    return block


def _elements(stream: BinaryIO) -> Iterator[tuple[int, bytes, bool]]:
    """The elements of a pretty-printed array: each begins and ends on a line of its own at one depth of indentation.

    JSON text holds no raw line ends, so such a line is never inside a string. An array on one line is one element list.
    """
    held: list[bytes] = []
    begun, indent = 0, b""
    for number, line, _ in raw_lines(stream):
        raw = (line or b"").rstrip()
        if not held:
            body = raw.lstrip()
            if body in {b"[", b"]", b"", b","}:
                continue
            if body.startswith(b"["):
                yield from _flat(number, raw)
                continue
            begun, indent = number, raw[: len(raw) - len(body)]
            if body.rstrip(b",").endswith(b"}") and body.startswith(b"{"):
                yield number, body.rstrip(b","), True
                continue
        held.append(raw)
        if raw.rstrip(b",") == indent + b"}":
            yield begun, b"\n".join(held).rstrip(b","), True
            held = []
    if held:
        yield begun, b"\n".join(held), False


def _flat(number: int, raw: bytes) -> Iterator[tuple[int, bytes, bool]]:
    try:
        values = orjson.loads(raw)
    except ValueError:
        yield number, raw, False
        return
    for value in values:
        yield number, orjson.dumps(value), True
