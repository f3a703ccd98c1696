"""JSON Lines and JSON documents as they occur in the wild: read tolerantly, said clearly.

What a line may not do is take its neighbours with it: every line is parsed alone, and a bad one becomes an error
text with column and remedy. NaN and Infinity literals are values; lone surrogates become U+FFFD.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from tracker.errors import InputError, SourceFormatError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import BinaryIO

BLOCK_BYTES = 1 << 20
LONGEST_LINE = 256 << 20
LARGEST_DOCUMENT = 1 << 30
"""A document becomes about five times its bytes in memory."""
SHOWN_CHARACTERS = 500
SHOWN_NAMES = 40
LFS_POINTER = b"version https://git-lfs"
_SURROGATE = re.compile("[\ud800-\udfff]")
_LINE_END = re.compile(r"\s*[\r\n\v\f]\s*")
_BEGUN = re.compile(r"t(?:ru?)?|f(?:a(?:ls?)?)?|n(?:ul?)?|Na?|-|-?I(?:n(?:f(?:i(?:n(?:it?)?)?)?)?)?|[.eE][-+]?\d*")
"""The beginning of a literal or the end of a number that was cut off."""
_UTF8_BOM = b"\xef\xbb\xbf"


class Line:
    """One line that is not blank: its value, or why it has none."""

    __slots__ = ("error", "number", "raw", "truncated", "value")

    def __init__(self, number: int, value: Any, error: str | None, raw: bytes, *, truncated: bool = False) -> None:
        self.number, self.value, self.error, self.raw, self.truncated = number, value, error, raw, truncated

    @property
    def text(self) -> str:
        """The line as text, cut, for messages."""
        return shorten(self.raw)

    def __repr__(self) -> str:
        """Number and error or text."""
        return f"Line({self.number}, {self.error or self.text!r})"


def json_lines(path: Path) -> Iterator[Line]:
    """The lines of a JSONL file, in order; memory is bounded by the longest line."""
    with _open(path) as stream:
        for number, raw, ended in raw_lines(stream):
            if raw is None:
                yield Line(number, None, f"a line of more than {LONGEST_LINE >> 20} MB (write one row per line)", b"")
                continue
            if number == 1:
                problem = foreign(raw, path)
                if problem:
                    yield Line(1, None, problem, raw)
                    return
            try:
                value = orjson.loads(raw)
            except ValueError:
                if not raw.strip():
                    continue
                yield parse(raw, number, path, last=not ended)
            else:
                yield Line(number, value, None, raw)


def json_document(path: Path) -> Any:
    """The value of a whole JSON file; SourceFormatError says where it is broken."""
    with _open(path) as stream:
        if (size := os.fstat(stream.fileno()).st_size) > LARGEST_DOCUMENT:
            message = f"a JSON document of {size >> 20:,} MB; more than {LARGEST_DOCUMENT >> 20:,} MB would take too much memory"
            raise InputError(message, where=str(path), hint="write it as JSON Lines, or in parts")
        try:
            raw = stream.read().removeprefix(_UTF8_BOM)
        except OSError as err:
            message = f"cannot be read: {err.strerror or err}"
            raise InputError(message, where=str(path), hint="check the disk, and run the command again") from err
    if not raw.strip():
        message = "empty file"
        raise InputError(message, where=str(path), hint="delete it or run its writer again")
    try:
        return orjson.loads(raw)
    except ValueError:
        pass
    problem = foreign(raw, path)
    if problem:
        raise InputError(problem, where=str(path))
    return json_value(raw, str(path))


def json_value(raw: bytes, where: str) -> Any:
    """The value of a JSON text, read tolerantly; SourceFormatError says where it is broken."""
    try:
        return orjson.loads(raw)
    except ValueError:
        pass
    try:
        return _tolerant(raw)
    except UnicodeDecodeError as err:
        line, column = raw.count(b"\n", 0, err.start) + 1, err.start - raw.rfind(b"\n", 0, err.start)
        raise InputError(not_utf8(err, Path(where), column), where=f"{where}: line {line}") from err
    except json.JSONDecodeError as err:
        place = f"line {err.lineno}, column {err.colno}"
        cut = err.pos >= len(err.doc.rstrip())
        expected, hint = ("more JSON", "the file is cut off: run its writer again") if cut else ("JSON", err.msg)
        raise SourceFormatError(where, place, expected, err.doc[err.pos : err.pos + 40] or "the end of the file", hint=hint) from err
    except RecursionError as err:
        message = "JSON nested too deeply"
        raise InputError(message, where=where, hint="flatten the value") from err


def parse(raw: bytes, number: int, path: Path, *, last: bool = False) -> Line:
    """One line by the tolerant parser; `last` means that no line end follows it."""
    try:
        return Line(number, _tolerant(raw), None, raw)
    except UnicodeDecodeError as err:
        return Line(number, None, not_utf8(err, path, err.start + 1), raw, truncated=last and err.reason == "unexpected end of data")
    except json.JSONDecodeError as err:
        if _is_cut_off(err):
            text = f"JSON that is cut off at column {len(err.doc) + 1} (run the writer again, or delete the line)"
            return Line(number, None, text, raw, truncated=last)
        return Line(number, None, f"not valid JSON at column {err.colno}: {err.msg} (correct or delete the line)", raw)
    except RecursionError:
        return Line(number, None, "JSON nested too deeply (flatten the value)", raw)


def _is_cut_off(err: json.JSONDecodeError) -> bool:
    """Whether what is wrong is only that the text ends too early: between values, or within one."""
    rest = err.doc[err.pos :].rstrip()
    return (
        not rest
        or err.msg.startswith("Unterminated string")
        or (err.msg.startswith("Invalid \\u") and len(rest) < 6)
        or bool(_BEGUN.fullmatch(rest))
    )


def foreign(raw: bytes, path: Path) -> str | None:
    """Why a file that starts like this cannot be read at all, if so."""
    if raw.startswith(LFS_POINTER):
        return "a Git LFS pointer instead of the file (fetch it with: git lfs pull)"
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")) or raw[1:2] == b"\0" or raw[:1] == b"\0":
        return f"UTF-16 text instead of UTF-8 (convert it with: iconv -f UTF-16 -t UTF-8 '{path.name}' > '{path.stem}.utf8{path.suffix}')"
    return None


def raw_lines(stream: BinaryIO) -> Iterator[tuple[int, bytes | None, bool]]:
    """(number, bytes without the line end, whether a line end followed); None for a line that is too long.

    A byte order mark is removed. Only LF (or CR LF) ends a line: U+2028 and U+0085 are text.
    """
    number, rest, skipping = 0, b"", False
    pieces: list[bytes] = []
    held = 0
    first = True
    while block := stream.read(BLOCK_BYTES):
        if first:
            block, first = block.removeprefix(_UTF8_BOM), False
        lines = block.split(b"\n")
        if len(lines) == 1:
            held += len(block)
            skipping = skipping or held > LONGEST_LINE
            pieces = [] if skipping else [*pieces, block]
            continue
        pieces.append(lines[0])
        rest, lines[0] = lines.pop(), b"".join(pieces)
        if skipping or len(lines[0]) > LONGEST_LINE:
            number += 1
            yield number, None, True
            del lines[0]
        for raw in lines:
            number += 1
            yield number, raw, True
        pieces, held, skipping = [rest], len(rest), False
    if skipping:
        yield number + 1, None, False
    elif pieces and (last := b"".join(pieces)):
        yield number + 1, last, False


def shorten(text: bytes | str) -> str:
    """Text for a message: valid, without NUL, cut."""
    if isinstance(text, bytes):
        text = text[: SHOWN_CHARACTERS * 4 + 4].decode("utf-8", "replace")
    text = text.replace("\0", "\N{REPLACEMENT CHARACTER}").strip()
    return text if len(text) <= SHOWN_CHARACTERS else text[: SHOWN_CHARACTERS - 3] + "..."


def clean(value: Any) -> Any:
    """The value with lone surrogates replaced, at any depth."""
    if isinstance(value, str):
        return _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", value)
    if isinstance(value, list):
        return [clean(one) for one in value]
    if isinstance(value, dict):
        return {clean(name): clean(one) for name, one in value.items()}
    return value


def listed(names: Iterable[object], shown: int = SHOWN_NAMES) -> str:
    """Names for a message: on one line, not too many, none too long."""
    told = [_LINE_END.sub(" ", shorten(str(name)))[: SHOWN_CHARACTERS // 5] for name in names]
    return ", ".join(told[:shown]) + (f" and {len(told) - shown} more" if len(told) > shown else "")


def _tolerant(raw: bytes) -> Any:
    return clean(json.loads(raw.decode(), parse_int=_number))


def _number(digits: str) -> int | float:
    """A whole number; beyond 64 bits a float, as orjson reads it."""
    value = int(digits) if len(digits) <= 20 else 2**64
    return value if -(2**63) <= value < 2**64 else float(digits)


def not_utf8(err: UnicodeDecodeError, path: Path, column: int) -> str:
    """What to say of a byte that is not UTF-8."""
    byte = err.object[err.start]
    return (
        f"byte 0x{byte:02x} at column {column} is not UTF-8 "
        f"(convert the file with: iconv -f LATIN1 -t UTF-8 '{path.name}' > '{path.stem}.utf8{path.suffix}')"
    )


def _open(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as err:
        message = f"cannot be read: {err.strerror or err}"
        raise InputError(message, where=str(path)) from err
