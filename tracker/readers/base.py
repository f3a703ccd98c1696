"""What every reader is. A reader knows one format; it imports no database.

Adding a format: one module with a `READER`, its line in `readers/__init__.py`, its test and its docs line.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from tracker.batch import Batch, Refusal, Source
    from tracker.study import Study

HEAD_BYTES = 65_536
FIRST_LINE_BYTES = 8 << 20
"""How much of a first line is looked at: a row may begin with a long text, and tell its other columns behind it."""


def is_special(path: Path | str) -> bool:
    """Whether something is a pipe, a socket or a device, whose opening or reading might never end: readers that list folders pass it by."""
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116 - many files
    except (OSError, ValueError):
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def is_file(path: Path) -> bool:
    """Whether something is a file; what cannot be looked at is none (`Path.is_file` raises for a forbidden folder or a name that is too long)."""
    return os.path.isfile(path)  # noqa: PTH113


def resolved(path: Path) -> Path:
    """Where a path leads; a link that leads in a circle stays what it is (`Path.resolve` raises for it before Python 3.13)."""
    return Path(os.path.realpath(path))


def place_of(source: Source) -> Path:
    r"""The path that a source's address names. An address can be shown (`\xff`), a path may hold any bytes."""
    if "\\x" not in source.uri:
        return Path(source.uri)
    for path in source.files:
        for one in (path, *path.parents):
            shown = str(one).encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
            if shown == source.uri:
                return one
            if source.uri.startswith(f"{shown.rstrip('/')}/"):
                return one / source.uri[len(shown.rstrip("/")) + 1 :]
    return Path(source.uri)


def read_head(path: Path) -> bytes:
    """The first 64 KB of a file, and the rest of its first line where that is a longer object."""
    with path.open("rb") as stream:
        head = stream.read(HEAD_BYTES)
        if len(head) == HEAD_BYTES and b"\n" not in head and head.removeprefix(b"\xef\xbb\xbf").startswith(b"{"):
            head += stream.readline(FIRST_LINE_BYTES)
    return head


@dataclass(slots=True)
class Folder:
    """The files of one folder that no earlier reader has claimed, with their first bytes on demand."""

    path: Path
    names: list[str]
    folders: list[str] = field(default_factory=list)
    """Names of its subfolders, which are walked after it: a reader may look into them, and claim files there."""
    _heads: dict[str, bytes] = field(default_factory=dict)

    def head(self, name: str) -> bytes:
        """The first 64 KB of a file, or more (see `read_head`); empty when it cannot be read (reading it later says why)."""
        if name not in self._heads:
            try:
                self._heads[name] = read_head(self.path / name)
            except OSError:
                self._heads[name] = b""
        return self._heads[name]


@dataclass(frozen=True, slots=True)
class Selection:
    """What of an address or store is wanted."""

    experiments: tuple[str, ...] = ()
    """Names of experiments; empty means all."""
    since: datetime | None = None
    """Only what changed at or after this time."""


class Reader(Protocol):
    """One source format."""

    @property
    def name(self) -> str:
        """Name of the format, stored as `runs.source_format`."""
        ...

    @property
    def version(self) -> int:
        """Raised whenever the same bytes would be read differently; part of the digest."""
        ...

    def find(self, folder: Folder, study: Study) -> Sequence[Source]:
        """The sources of this format in a folder, recognised by content; cheap. Files named in them are claimed."""
        ...

    def read(self, source: Source, study: Study) -> Iterator[Batch | Refusal]:
        """Batches of bounded size and refusals, in file order.

        Raises InputError when nothing of the source can be used; whatever was yielded before is then dropped.
        """
        ...


@runtime_checkable
class BulkReader(Protocol):
    """A reader that reads many sources faster together than one by one: those of one `Source.group`."""

    def read_many(self, sources: Sequence[Source], study: Study) -> Iterator[tuple[Source, Iterator[Batch | Refusal]]]:
        """What `read` gives, for each source, in order. A source's iterator is used up before the next is asked for.

        The inner iterator raises InputError when nothing of that one source can be used.
        """
        ...


@runtime_checkable
class AddressReader(Protocol):
    """A reader of what is no folder: a database or a server, named by a URL."""

    def serves(self, address: str) -> bool:
        """Whether an address is one of its own."""
        ...

    def find_address(self, address: str, study: Study, selection: Selection) -> Sequence[Source]:
        """The sources behind an address. Raises InputError when it cannot be opened; the message holds no password."""
        ...
