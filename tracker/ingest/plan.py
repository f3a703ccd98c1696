"""What an ingest would read: walk the paths, let every reader find its sources, compare digests."""

from __future__ import annotations

import errno
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tracker.batch import Source
from tracker.errors import InputError, UsageError
from tracker.ingest.digest import digest
from tracker.readers import all_readers
from tracker.readers.base import Folder

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from tracker.batch import Batch, Refusal
    from tracker.readers.base import Reader
    from tracker.study import Study

UNREADABLE = "unreadable"
"""Stands in for the reader, and for the digest, of a file that cannot be read."""
SKIPPED_FOLDERS = frozenset({"__pycache__", ".git", ".trackr", ".ipynb_checkpoints", "node_modules", ".venv"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A source to read; its digest is known already where its address was met before."""

    source: Source
    reader: Reader
    digest: str | None = None

    @property
    def bytes(self) -> int:
        """Size of its files."""
        return sum(_size(path) for path in self.source.files)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is to be read, what is unchanged, what is no evaluation output."""

    reading: tuple[Planned, ...]
    unchanged: tuple[Planned, ...]
    skipped: tuple[Path, ...]


def make_plan(paths: Sequence[Path], study: Study, known: Mapping[str, set[str]]) -> Plan:
    """Plan an ingest; `known` maps addresses to the digests already stored for them."""
    found: list[Planned] = []
    skipped: list[Path] = []
    for folder in folders(paths):
        sources, rest = _find(folder, study)
        found += sources
        skipped += rest
    met = [planned for planned in found if planned.source.uri in known]
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        digests = dict(zip((p.source.uri for p in met), pool.map(lambda p: _digest_or_none(p, study), met), strict=True))
    reading: list[Planned] = []
    unchanged: list[Planned] = []
    for planned in found:
        value = digests.get(planned.source.uri)
        same = value is not None and value in known[planned.source.uri]
        (unchanged if same else reading).append(Planned(source=planned.source, reader=planned.reader, digest=value))
    return Plan(reading=tuple(reading), unchanged=tuple(unchanged), skipped=tuple(skipped))


def folders(paths: Iterable[Path]) -> Iterator[Folder]:
    """Every folder under the paths with its files, in sorted order; a file is a folder of one."""
    seen: set[Path] = set()
    for path in paths:
        resolved, kind = look(path)
        if kind == "folder":
            for folder in _walk(resolved):
                names = [name for name in folder.names if folder.path / name not in seen]
                seen.update(folder.path / name for name in names)
                yield Folder(folder.path, names)
        elif resolved not in seen:
            seen.add(resolved)
            yield Folder(resolved.parent, [resolved.name])


def look(path: Path) -> tuple[Path, str]:
    """Where a path leads, and whether that is a folder or a file; UsageError for anything else."""
    try:
        resolved = path.expanduser().resolve()
        mode = resolved.stat().st_mode
    except (OSError, RuntimeError, ValueError) as err:
        missing = isinstance(err, FileNotFoundError)
        message = "no such file or folder" if missing else f"cannot be opened: {getattr(err, 'strerror', None) or err}"
        raise UsageError(message, where=printable(path), hint="check the path") from err
    if stat.S_ISDIR(mode):
        return resolved, "folder"
    if not stat.S_ISREG(mode):
        message = "neither a file nor a folder"
        raise UsageError(message, where=printable(path), hint="name a file or a folder")
    return resolved, "file"


def _walk(root: Path) -> Iterator[Folder]:
    """Folders with the files in them; a folder that cannot be listed is the only name of its Folder.

    Pipes and devices, whose reading might never end, are left out.
    """
    closed: list[Path] = []
    for parent, subfolders, names in os.walk(root, followlinks=False, onerror=lambda err: closed.append(Path(err.filename))):
        subfolders[:] = sorted(name for name in subfolders if name not in SKIPPED_FOLDERS)
        plain = sorted(name for name in names if not _is_special(os.path.join(parent, name)))  # noqa: PTH118 - many files
        if plain:
            yield Folder(Path(parent), plain)
    for path in closed:
        yield Folder(path.parent, [path.name])


def _is_special(path: str) -> bool:
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116 - many files
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _find(folder: Folder, study: Study) -> tuple[list[Planned], list[Path]]:
    """Ask the readers in order; what one claims the next does not see."""
    offered = Folder(folder.path, list(folder.names))
    planned: list[Planned] = []
    for one in all_readers():
        sources = one.find(offered, study)
        planned += [Planned(source=_printable(source), reader=one) for source in sources]
        claimed = {path.name for source in sources for path in source.files if path.parent == folder.path}
        offered.names = [name for name in offered.names if name not in claimed]
        if not offered.names:
            break
    left = [folder.path / name for name in offered.names]
    closed = [path for path in left if not _readable(path)]
    planned += [Planned(source=Source(reader=UNREADABLE, uri=printable(path), files=(path,)), reader=_Unreadable()) for path in closed]
    return planned, [path for path in left if path not in closed]


def _readable(path: Path) -> bool:
    """Whether a file that no reader claimed can be looked into; one that leads nowhere is no file."""
    try:
        with path.open("rb") as stream:
            stream.read(1)
    except FileNotFoundError:
        return True
    except OSError as err:
        return err.errno == errno.ELOOP
    return True


class _Unreadable:
    """Stands for the reader of a file that could not be looked into."""

    name, version = UNREADABLE, 1

    def find(self, folder: Folder, study: Study) -> Sequence[Source]:
        """Nothing: the plan finds them."""
        del folder, study
        return ()

    def read(self, source: Source, study: Study) -> Iterator[Batch | Refusal]:
        """Nothing can be read."""
        del source, study
        return iter(())


def printable(text: Path | str) -> str:
    """Text that can be stored and shown, whatever bytes a file name holds."""
    return str(text).encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace").replace("\0", "\\x00")


def _printable(source: Source) -> Source:
    uri = printable(source.uri)
    return source if uri == source.uri else replace(source, uri=uri)


def _digest_or_none(planned: Planned, study: Study) -> str | None:
    """None for a file that cannot be read now: reading it will say why."""
    try:
        return digest(planned.source, planned.reader, study.effective(planned.source))
    except InputError:
        return None


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
