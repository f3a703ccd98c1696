"""The archive of an Inspect `.eval` log: members found and unpacked without inspect_ai, also where the archive was cut off.

Members are stored, deflated or (since 0.3.206) Zstandard in one or more frames, which the standard library does not
unpack before Python 3.14.
"""

from __future__ import annotations

import mmap
import struct
import zipfile
import zlib
from typing import TYPE_CHECKING, NamedTuple, Self

from tracker.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pyarrow as pa

MAGIC = b"PK\x03\x04"
LARGEST_MEMBER = 512 << 20
"""Bytes of a member, unpacked, that are taken into memory."""
_OTHER = (b"PK\x01\x02", b"PK\x05\x06", b"PK\x06\x06")
_LOCAL = struct.Struct("<4sHHHHHIIIHH")
_STORED, _DEFLATE, _ZSTD = 0, 8, 93
_EXTRA = 64
"""Room for the extra field that a local header may have beyond what the directory says."""
_DESCRIBED = 0x08
_UTF8 = 0x800
_UNKNOWN_SIZE = 0xFFFFFFFF
FIRST_NAMES = ("_journal/", "samples/", "header.json", "summaries.json", "reductions.json")
"""How the names of members of a log begin."""


class Member(NamedTuple):
    """Where a member lies (`offset` of its local header) and how it is packed; sizes in bytes."""

    name: str
    offset: int
    method: int
    packed: int
    size: int
    crc: int


class MemberError(Exception):
    """A member that cannot be used: why, and what to do."""


def first_name(head: bytes) -> str | None:
    """The name of the first member of an archive, from the archive's first bytes; None where these are no archive's."""
    if not head.startswith(MAGIC) or len(head) < _LOCAL.size:
        return None
    length = _LOCAL.unpack_from(head)[9]
    return head[_LOCAL.size : _LOCAL.size + length].decode("utf-8", "replace")


class Archive:
    """A log's archive, open. `damage` says why its directory could not be used; `members` are then those found one by one.

    Of members with the same name the last one counts: a sample that was logged again replaces itself.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._stream = path.open("rb")
        except OSError as err:
            message = f"cannot be read: {err.strerror or err}"
            raise InputError(message, where=str(path)) from err
        self.damage: str | None = None
        self._codec: pa.Codec | None = None
        try:
            found = self._listed()
            if found is None:
                found = self._recovered()
        except BaseException:
            self._stream.close()
            raise
        self.members = {member.name: member for member in found}

    def __enter__(self) -> Self:
        """The archive itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        self._stream.close()

    def names(self, prefix: str) -> list[str]:
        """Names of the JSON members below a prefix, in the archive's order."""
        return [name for name in self.members if name.startswith(prefix) and name.endswith(".json")]

    def read(self, name: str) -> bytes:
        """A member, unpacked and checked; MemberError where that fails."""
        member = self.members[name]
        if max(member.size, member.packed) > LARGEST_MEMBER:
            text = (
                f"{member.size >> 20} MB unpacked, at most {LARGEST_MEMBER >> 20} MB are read "
                "(remove its events: read the log with inspect_ai, empty sample.events, write it again)"
            )
            raise MemberError(text)
        return self._checked(member, self._packed(member))

    def _packed(self, member: Member) -> bytes:
        room = _LOCAL.size + len(member.name.encode("utf-8", "surrogateescape")) + _EXTRA
        if member.offset < 0:
            text = "its place in the archive is damaged (run the evaluation or `inspect log recover` again)"
            raise MemberError(text)
        try:
            self._stream.seek(member.offset)
            raw = self._stream.read(room + member.packed)
            if len(raw) < _LOCAL.size or not raw.startswith(MAGIC):
                text = "its local header is damaged (run the evaluation or `inspect log recover` again)"
                raise MemberError(text)
            lengths = _LOCAL.unpack_from(raw)
            start = _LOCAL.size + lengths[9] + lengths[10]
            packed = raw[start : start + member.packed]
            if len(packed) < member.packed:
                self._stream.seek(member.offset + start)
                packed = self._stream.read(member.packed)
        except OSError as err:
            text = f"cannot be read: {err.strerror or err} (check the disk, and run the command again)"
            raise MemberError(text) from err
        return packed

    def _checked(self, member: Member, packed: bytes) -> bytes:
        try:
            data = self._unpacked(member, packed)
        except (zlib.error, OSError, ValueError, MemoryError) as err:
            text = f"its compressed bytes are damaged: {_short(err)} (copy the log again from where it was written)"
            raise MemberError(text) from err
        if len(data) != member.size or zlib.crc32(data) != member.crc:
            text = "its bytes do not match their checksum (copy the log again from where it was written)"
            raise MemberError(text)
        return data

    def _unpacked(self, member: Member, packed: bytes) -> bytes:
        if member.method == _STORED:
            return packed
        if member.method == _DEFLATE:
            return zlib.decompressobj(-zlib.MAX_WBITS).decompress(packed, member.size + 1)
        if member.method == _ZSTD:
            if self._codec is None:
                import pyarrow as pa

                self._codec = pa.Codec("zstd")
            return self._codec.decompress(packed, decompressed_size=member.size, asbytes=True) if member.size else b""
        text = f"compression method {member.method} is not known (write the log again: inspect log convert)"
        raise MemberError(text)

    def _listed(self) -> list[Member] | None:
        """The members by the directory; None without a usable one."""
        try:
            with zipfile.ZipFile(self._stream) as archive:
                return [
                    Member(one.filename, one.header_offset, one.compress_type, one.compress_size, one.file_size, one.CRC)
                    for one in archive.infolist()
                ]
        except (zipfile.BadZipFile, NotImplementedError, ValueError, OSError, EOFError, OverflowError, struct.error) as err:
            self.damage = _short(err)
            return None

    def _recovered(self) -> list[Member]:
        """The members by their own headers, as far as they are complete."""
        self._stream.seek(0, 2)
        if not self._stream.tell():
            return []
        with mmap.mmap(self._stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return list(_walk(data))


def _walk(data: mmap.mmap) -> Iterator[Member]:
    at = 0
    while 0 <= at <= len(data) - _LOCAL.size:
        if data[at : at + 4] in _OTHER:
            return
        member = _member(data, at) if data[at : at + 4] == MAGIC else None
        if member is None:
            at = data.find(MAGIC, at + 1)
            continue
        yield member[0]
        at = member[1]


def _member(data: mmap.mmap, at: int) -> tuple[Member, int] | None:
    """The member at a place and where the next begins; None where it is none of a log's, or not complete."""
    _, _, flags, method, _, _, crc, packed, size, name_length, extra_length = _LOCAL.unpack_from(data, at)
    begin = at + _LOCAL.size + name_length
    name = data[at + _LOCAL.size : begin].decode("utf-8" if flags & _UTF8 else "cp437", "replace")
    start = begin + extra_length
    if method not in {_STORED, _DEFLATE, _ZSTD} or not name.startswith(FIRST_NAMES):
        return None
    if _UNKNOWN_SIZE in {packed, size}:
        packed, size = _large(data[begin:start], packed, size)
    end = start + packed
    if flags & _DESCRIBED and not packed:
        described = _described(data, start)
        if described is None:
            return None
        crc, packed, size, end = described
    return (Member(name, at, method, packed, size, crc), end) if end <= len(data) else None


def _large(extra: bytes, packed: int, size: int) -> tuple[int, int]:
    """Sizes beyond 4 GB, from the extra field."""
    at = 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<HH", extra, at)
        if kind == 1:
            told = extra[at + 4 : at + 4 + length]
            numbers = [one for (one,) in struct.iter_unpack("<Q", told[: len(told) // 8 * 8])]
            size = numbers.pop(0) if size == _UNKNOWN_SIZE and numbers else size
            packed = numbers.pop(0) if packed == _UNKNOWN_SIZE and numbers else packed
        at += 4 + length
    return packed, size


def _described(data: mmap.mmap, start: int) -> tuple[int, int, int, int] | None:
    """Checksum, sizes and end of a member whose sizes follow it."""
    at = data.find(b"PK\x07\x08", start)
    while at != -1 and at + 16 <= len(data):
        for form in ("<III", "<IQQ"):
            if at + 4 + struct.calcsize(form) <= len(data):
                crc, packed, size = struct.unpack_from(form, data, at + 4)
                if packed == at - start:
                    return crc, packed, size, at + 4 + struct.calcsize(form)
        at = data.find(b"PK\x07\x08", at + 1)
    return None


def _short(err: BaseException) -> str:
    return (str(err).strip().splitlines() or [type(err).__name__])[0]
