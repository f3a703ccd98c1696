"""What every reader is. A reader knows one format; it imports no database.

Adding a format: one module with a `READER`, its line in `readers/__init__.py`, its test and its docs line.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path  # noqa: TC003 - dataclass fields are read at run time
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tracker.batch import Batch, Refusal, Source
    from tracker.study import Study

HEAD_BYTES = 65_536
FIRST_LINE_BYTES = 8 << 20
"""How much of a first line is looked at: a row may begin with a long text, and tell its other columns behind it."""


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
    _heads: dict[str, bytes] = field(default_factory=dict)

    def head(self, name: str) -> bytes:
        """The first 64 KB of a file, or more (see `read_head`); empty when it cannot be read (reading it later says why)."""
        if name not in self._heads:
            try:
                self._heads[name] = read_head(self.path / name)
            except OSError:
                self._heads[name] = b""
        return self._heads[name]


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
