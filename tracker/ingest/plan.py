"""What an ingest would read: walk the paths, let every reader find its sources, compare digests."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tracker.errors import InputError, UsageError
from tracker.ingest.digest import Digest, digest
from tracker.readers import all_readers
from tracker.readers.base import Folder

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from tracker.batch import Source
    from tracker.readers.base import Reader
    from tracker.study import Study

SKIPPED_FOLDERS = frozenset({"__pycache__", ".git", ".trackr", ".ipynb_checkpoints", "node_modules", ".venv"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A source to read; its digest is known already where its address was met before."""

    source: Source
    reader: Reader
    digest: Digest | None = None

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
    reading, unchanged = [], []
    for planned in found:
        value = digests.get(planned.source.uri)
        same = value is not None and value.value in known[planned.source.uri]
        (unchanged if same else reading).append(Planned(source=planned.source, reader=planned.reader, digest=value))
    return Plan(reading=tuple(reading), unchanged=tuple(unchanged), skipped=tuple(skipped))


def folders(paths: Iterable[Path]) -> Iterator[Folder]:
    """Every folder under the paths with its files, in sorted order; a file is a folder of one."""
    seen: set[Path] = set()
    for path in paths:
        resolved = path.expanduser().resolve()
        if resolved.is_dir():
            for folder in _walk(resolved):
                names = [name for name in folder.names if folder.path / name not in seen]
                seen.update(folder.path / name for name in names)
                yield Folder(folder.path, names)
        elif resolved.is_file():
            if resolved not in seen:
                seen.add(resolved)
                yield Folder(resolved.parent, [resolved.name])
        else:
            message = "no such file or folder"
            raise UsageError(message, where=str(path), hint="check the path")


def _walk(root: Path) -> Iterator[Folder]:
    for parent, subfolders, names in os.walk(root, followlinks=False):
        subfolders[:] = sorted(name for name in subfolders if name not in SKIPPED_FOLDERS)
        if names:
            yield Folder(Path(parent), sorted(names))


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
    return planned, [folder.path / name for name in offered.names]


def _printable(source: Source) -> Source:
    """A source whose address can be stored and shown, whatever bytes its file name holds."""
    uri = source.uri.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return source if uri == source.uri else replace(source, uri=uri)


def _digest_or_none(planned: Planned, study: Study) -> Digest | None:
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
