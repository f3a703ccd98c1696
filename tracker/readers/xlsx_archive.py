"""Inside an Excel workbook (.xlsx): an archive of XML parts. Where a sheet is, what its header says, and whether reading it is safe.

Nothing here trusts what the archive says of its own sizes: a small file may unpack to any size, one stray cell may make a
sheet as large as a table of billions, and one long text may be used by a million cells.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any
from xml.etree.ElementTree import Element, ParseError, XMLPullParser, fromstring

from tracker.errors import InputError
from tracker.readers.lines import LFS_POINTER

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MAGIC = b"PK\x03\x04"
OLD_MAGIC = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
UNPACKED_BYTES = 1 << 30
UNPACKED_OTHERS = 64 << 20
CELLS = 30_000_000
"""A sheet is held as a rectangle of cells; a single stray cell far away makes it large."""
HEADER_BYTES = 1 << 20
STRINGS_BYTES = 8 << 20
FEWER = "split it, or save it as CSV or Parquet"
UNREADABLE = (InputError, OSError, zipfile.BadZipFile, zlib.error, ParseError, ValueError, LookupError, RecursionError, NotImplementedError)
"""What a damaged archive may raise."""
_BLOCK = 1 << 18
_MEMBERS = 10_000
_HELD_BLOCKS = 128
_INFLATES = 1_032
"""Deflate makes at most this many bytes out of one."""
_ROW = re.compile(rb"<(?:\w+:)?row\s(?:[^>]*?\s)?r=[\"'](\d{1,8})")
_FAR = re.compile(rb"r=[\"']([A-Z]{2,3})\d")
"""A cell beyond column Z."""
_ITEM = re.compile(rb"</(?:\w+:)?si>")
_SHARED = re.compile(rb"\st=[\"']s[\"'][^>]*>\s*<(?:\w+:)?v>(\d{1,9})<")
_ESCAPE = re.compile(r"_x([0-9A-Fa-f]{4})_")


@dataclass(frozen=True, slots=True)
class Member:
    """A part of the archive that holds what is read."""

    info: zipfile.ZipInfo
    path: Path

    def blocks(self, limit: int) -> Iterator[bytes]:
        """Its bytes; InputError beyond `limit`. The archive's own word for the size is not believed."""
        done = 0
        if self.info.file_size > limit:
            raise self._too_large(limit)
        with self.path.open("rb") as stream:
            stream.seek(self.info.header_offset)
            head = stream.read(30)
            if not head.startswith(MAGIC):
                raise zipfile.BadZipFile
            stream.seek(int.from_bytes(head[26:28], "little") + int.from_bytes(head[28:30], "little"), 1)
            left = self.info.compress_size
            unpack = zlib.decompressobj(-15) if self.info.compress_type == zipfile.ZIP_DEFLATED else None
            while left > 0 and (raw := stream.read(min(left, _BLOCK))):
                left -= len(raw)
                while raw:
                    block = raw if unpack is None else unpack.decompress(raw, _BLOCK)
                    raw = b"" if unpack is None else unpack.unconsumed_tail
                    done += len(block)
                    if done > limit:
                        raise self._too_large(limit)
                    yield block

    def _too_large(self, limit: int) -> InputError:
        message = f"a workbook whose {self.info.filename} unpacks to more than {limit >> 20} MB"
        return InputError(message, where=str(self.path), hint=FEWER)


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a workbook that hold a sheet."""

    sheet: Member
    strings: Member | None
    names: list[str]
    position: int


def find_parts(path: Path, sheet: str | None) -> Parts:
    """Where in the archive a sheet is; InputError where there is no such sheet, BadZipFile where it is no archive."""
    with path.open("rb") as stream:
        if not stream.read(4).startswith(MAGIC):
            raise InputError(foreign_file(path), where=str(path), hint=remedy(path))
    with zipfile.ZipFile(path) as archive:
        infos = archive.infolist()
    if len(infos) > _MEMBERS or any(one.flag_bits & 1 for one in infos):
        message = "an archive that is encrypted or has too many members"
        raise InputError(message, where=str(path), hint="save it as an .xlsx without password")
    members = {one.filename.lstrip("/").lower(): Member(one, path) for one in infos}
    for name, member in members.items():
        if name.endswith((".xml", ".rels")) and not name.startswith("xl/worksheets/sheet") and name != "xl/sharedstrings.xml":
            _not_large(member)
    book = members.get("xl/workbook.xml")
    if book is None:
        message = "an archive without a workbook in it"
        raise InputError(message, where=str(path), hint="it is no .xlsx file, whatever its name")
    names, targets = _sheets(book, members.get("xl/_rels/workbook.xml.rels"))
    if not names:
        message = "a workbook without sheets"
        raise InputError(message, where=str(path), hint="run its writer again")
    if sheet is not None and sheet not in names:
        message = f"no sheet {sheet!r}; it has {', '.join(names)}"
        raise InputError(message, where=str(path))
    position = 0 if sheet is None else names.index(sheet)
    found = members.get(targets[position])
    if found is None:
        message = f"a workbook without its sheet {names[position]!r}"
        raise InputError(message, where=str(path), hint="run its writer again")
    return Parts(found, members.get("xl/sharedstrings.xml"), names, position)


def _not_large(member: Member) -> None:
    """The small members are read whole, so they must be small."""
    if max(member.info.file_size, 0) > UNPACKED_OTHERS or (
        member.info.compress_type == zipfile.ZIP_DEFLATED and member.info.compress_size * _INFLATES > UNPACKED_BYTES
    ):
        message = f"a workbook whose {member.info.filename} unpacks to more than {UNPACKED_OTHERS >> 20} MB"
        raise InputError(message, where=str(member.path), hint=FEWER)


def _sheets(book: Member, relations: Member | None) -> tuple[list[str], list[str]]:
    """Names of the sheets in order, and the members that hold them."""
    by_id: dict[str, str] = {}
    if relations is not None:
        for one in _tree(relations):
            target = one.get("Target") or ""
            inside = target.lstrip("/") if target.startswith("/") else str(PurePosixPath("xl") / target)
            by_id[one.get("Id") or ""] = inside.lower()
    names, targets = [], []
    for one in _tree(book).iter():
        if _local(one.tag) == "sheet":
            names.append(one.get("name") or "")
            key = next((value for name, value in one.attrib.items() if name.endswith("}id")), "")
            targets.append(by_id.get(key, f"xl/worksheets/sheet{len(names)}.xml"))
    return names, targets


def _tree(member: Member) -> Element:
    return fromstring(b"".join(member.blocks(UNPACKED_OTHERS)))  # noqa: S314 - its size is limited, and expat limits what entities become


def examine(path: Path, parts: Parts) -> None:
    """Refuse what would take too much memory: counted on the bytes as they are unpacked, never kept."""
    cells, last_row, far = 0, 0, {b"Z"}
    for block in _whole(parts.sheet.blocks(UNPACKED_BYTES), b"row>"):
        cells += block.count(b"<c ") + block.count(b":c ")
        last_row = max(last_row, max(map(int, _ROW.findall(block)), default=0))
        far.update(_FAR.findall(block))
    last_column = max(map(_number, far))
    if last_row * last_column > max(CELLS, 2 * cells) or cells > CELLS:
        message = f"a sheet of {last_row} rows and up to {last_column} columns, with {cells} cells that are filled"
        raise InputError(message, where=str(path), hint=FEWER)
    if parts.strings is None:
        return
    lengths, start, place = [], 0, 0
    for block in _whole(parts.strings.blocks(UNPACKED_BYTES), b"si>"):
        for end in _ITEM.finditer(block):
            lengths.append(place + end.end() - start)
            start = place + end.end()
        place += len(block)
    if cells * max(lengths, default=0) > UNPACKED_BYTES:
        pointed = (int(one) for block in _whole(parts.sheet.blocks(UNPACKED_BYTES), b"row>") for one in _SHARED.findall(block))
        if sum(lengths[one] for one in pointed if one < len(lengths)) > UNPACKED_BYTES:
            message = f"a sheet whose texts are more than {UNPACKED_BYTES >> 20} MB"
            raise InputError(message, where=str(path), hint=FEWER)


def _whole(blocks: Iterator[bytes], mark: bytes) -> Iterator[bytes]:
    """The same bytes in pieces that end behind a mark (the end of a tag), so that no row or text is cut in two."""
    held: list[bytes] = []
    for block in blocks:
        at = block.rfind(mark)
        if at < 0 and len(held) < _HELD_BLOCKS:
            held.append(block)
            continue
        at += len(mark)
        yield b"".join([*held, block[:at]])
        held = [block[at:]]
    yield b"".join(held)


def _number(column: bytes) -> int:
    """A column's letters as a number (A is 1)."""
    found = 0
    for letter in column[:4]:
        found = found * 26 + letter - 64
    return found


def header(parts: Parts) -> list[str]:
    """Names in the first row that has any, from the beginning of the sheet alone; raises one of UNREADABLE."""
    cells = _first_cells(parts.sheet.blocks(UNPACKED_BYTES))
    last = max((int(value) for kind, value in cells if kind == "s"), default=-1)
    strings = _first_strings(parts.strings, last) if last >= 0 else []
    return [_unescaped(strings[int(value)] if kind == "s" else value).strip() for kind, value in cells]


def _first_cells(blocks: Iterator[bytes]) -> list[tuple[str, str]]:
    """(type, text) of the cells of the first row that has any."""
    for row in _elements(blocks, "row", HEADER_BYTES):
        cells = _row_cells(row)
        if cells:
            return cells
    return []


def _elements(blocks: Iterator[bytes], name: str, limit: int) -> Iterator[Element]:
    """Elements of a name, one after the other, as far as `limit` bytes reach."""
    parser: Any = XMLPullParser(["end"])
    size = 0
    for block in blocks:
        parser.feed(block)
        for _, element in parser.read_events():
            if _local(element.tag) == name:
                yield element
                element.clear()
        size += len(block)
        if size > limit:
            return


def _row_cells(row: Element) -> list[tuple[str, str]]:
    """(type, text) of a row's cells from its first to its last that is not empty; gaps are empty text."""
    cells: dict[int, tuple[str, str]] = {}
    place = 0
    for one in row:
        given = (one.get("r") or "").rstrip("0123456789")
        place = _number(given.encode()) if given else place + 1
        told = "".join(_texts(one))
        if told:
            cells[place] = (one.get("t") or "n", told)
    if not cells or max(cells) > HEADER_BYTES:
        return []
    return [cells.get(at, ("n", "")) for at in range(min(cells), max(cells) + 1)]


def _first_strings(member: Member | None, last: int) -> list[str]:
    """The shared strings up to a position."""
    found: list[str] = []
    for item in () if member is None else _elements(member.blocks(UNPACKED_BYTES), "si", STRINGS_BYTES):
        found.append("".join(_texts(item)))
        if len(found) > last:
            break
    return found


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)), text)


def _texts(element: Element) -> Iterator[str]:
    for one in element.iter():
        if _local(one.tag) in {"t", "v"} and one.text:
            yield one.text


def _local(tag: Any) -> str:
    return str(tag).rpartition("}")[2]


def foreign_file(path: Path) -> str:
    """What a file is that is no archive."""
    try:
        with path.open("rb") as stream:
            head = stream.read(1 << 16)
    except OSError as err:
        return f"cannot be read: {err.strerror or err}"
    if not head.strip(b"\0 \r\n\t"):
        return "empty file"
    if head.startswith(LFS_POINTER):
        return "a Git LFS pointer instead of the file (fetch it with: git lfs pull)"
    if head.startswith(OLD_MAGIC):
        locked = "EncryptedPackage".encode("utf-16-le") in head or "EncryptionInfo".encode("utf-16-le") in head
        return "a workbook that is protected by a password" if locked else "a workbook of the old format (.xls)"
    return "a workbook that is cut off or damaged" if head.startswith(MAGIC) else "no workbook, whatever its name"


def remedy(path: Path) -> str | None:
    """What to do about such a file."""
    found = foreign_file(path)
    if "LFS" in found:
        return None
    if "password" in found:
        return "save it without one"
    return "save it as .xlsx or CSV" if ".xls)" in found else "delete it or run its writer again"
