"""What a source is worth comparing by: its bytes, its reader and what decides how it is read."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from tracker.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tracker.batch import Source
    from tracker.readers.base import Reader

BLOCK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Stamp:
    """Size and time of a file, to notice that it changed while it was read."""

    path: Path
    size: int
    mtime_ns: int


def stamps(source: Source) -> tuple[Stamp, ...]:
    """The present stamps of a source's files; raises InputError for a file that cannot be looked at."""
    found = []
    for path in source.files:
        try:
            status = path.stat()
        except OSError as err:
            message = f"cannot be read: {err.strerror}"
            raise InputError(message, where=str(path), hint="check that it exists and that you may read it") from err
        found.append(Stamp(path, status.st_size, status.st_mtime_ns))
    return tuple(found)


def digest(source: Source, reader: Reader, effective: dict[str, Any]) -> str:
    """SHA-256 over the bytes of every file (or the content that stands for them), the reader, and the effective mapping."""
    whole = hashlib.sha256()
    meaning = {"reader": reader.name, "version": reader.version, "mapping": source.mapping, "study": effective}
    whole.update(orjson.dumps(meaning, option=orjson.OPT_SORT_KEYS, default=str))
    if source.content is not None:
        whole.update(b"\0content\0" + source.content.encode())
        return whole.hexdigest()
    for path in source.files:
        whole.update(b"\0file\0")
        for block in _blocks(path):
            whole.update(block)
    return whole.hexdigest()


def _blocks(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb", buffering=0) as stream:
            while block := stream.read(BLOCK_BYTES):
                yield block
    except OSError as err:
        message = f"cannot be read: {err.strerror}"
        raise InputError(message, where=str(path), hint="check that it exists and that you may read it") from err
