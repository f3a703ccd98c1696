"""What an ingest would read: walk the paths, let every reader find its sources, compare digests."""

from __future__ import annotations

import errno
import os
import stat
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from tracker.batch import Source
from tracker.config import mask
from tracker.errors import DatabaseError, InputError, UsageError
from tracker.ingest.digest import digest
from tracker.readers import all_readers
from tracker.readers.base import AddressReader, Folder, Selection

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from tracker.batch import Batch, Refusal
    from tracker.readers.base import Reader
    from tracker.study import Study

UNREADABLE = "unreadable"
"""Stands in for the reader, and for the digest, of a file that cannot be read."""
NO_FILE_BYTES = 8192
OWN_RULES = frozenset({"table", "score_table", "mlflow"})
"""Readers that apply the study file's table rules themselves: MLflow's to the tables among a run's artifacts."""
SKIPPED_FOLDERS = frozenset({"__pycache__", ".git", ".trackr", ".ipynb_checkpoints", "node_modules", ".venv"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A source to read; its digest is known already where its address was met before."""

    source: Source
    reader: Reader
    digest: str | None = None

    @property
    def bytes(self) -> int:
        """Size of its files; of what is no file, about what one costs to read."""
        return sum(_size(path) for path in self.source.files) if self.source.content is None else NO_FILE_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is to be read, what is unchanged, what is no evaluation output, and why how many sources are left out."""

    reading: tuple[Planned, ...]
    unchanged: tuple[Planned, ...]
    skipped: tuple[Path, ...]
    left_out: Mapping[str, int] = field(default_factory=dict)
    idle_rules: tuple[str, ...] = ()


def make_plan(paths: Sequence[Path | str], study: Study, known: Mapping[str, set[str]], selection: Selection | None = None) -> Plan:
    """Plan an ingest of folders, files and addresses; `known` maps addresses to the digests already stored for them."""
    selection = selection or Selection()
    found: list[Planned] = []
    skipped: list[Path] = []
    claimed: set[Path] = set()
    walked: list[Path | str] = []
    for address in (path for path in paths if is_address(path)):
        found += _behind(str(address), study, selection)
    for folder in folders([Path(path) for path in paths if not is_address(path)]):
        sources, rest = _find(folder, study, claimed)
        found += sources
        skipped += rest
        walked += [folder.path / name for name in folder.names]
    skipped = [path for path in skipped if path not in claimed]
    found = _distinct(found)
    idle = _idle_rules(paths, study, [*walked, *(text for one in found for text in (one.source.uri, one.source.address) if text)])
    _require_experiments(found, selection)
    found, left_out = _selected(found, selection)
    met = [planned for planned in found if planned.source.uri in known]
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        digests = dict(zip((p.source.uri for p in met), pool.map(lambda p: _digest_or_none(p, study), met), strict=True))
    reading: list[Planned] = []
    unchanged: list[Planned] = []
    for planned in found:
        value = digests.get(planned.source.uri)
        same = value is not None and value in known[planned.source.uri]
        (unchanged if same else reading).append(Planned(source=planned.source, reader=planned.reader, digest=value))
    return Plan(reading=tuple(reading), unchanged=tuple(unchanged), skipped=tuple(skipped), left_out=left_out, idle_rules=tuple(idle))


def _idle_rules(paths: Sequence[Path | str], study: Study, met: Sequence[Path | str]) -> list[str]:
    """Rules that meet nothing, where everything below the study file's folder was walked."""
    roots = [Path(path).expanduser().resolve() for path in paths if not is_address(path)]
    if study.root is None or not any(study.root.is_relative_to(root) for root in roots):
        return []
    return study.idle_rules(met)


def _require_experiments(found: Sequence[Planned], selection: Selection) -> None:
    """Raise UsageError for the name of an experiment that is nowhere."""
    names = sorted({planned.source.experiment for planned in found if planned.source.experiment is not None})
    for wanted in selection.experiments:
        if wanted not in names:
            message = f"no MLflow run here belongs to an experiment called {wanted!r}"
            raise UsageError(message, hint=f"there are {', '.join(names[:10])}" if names else "no run here belongs to any")


def _distinct(found: list[Planned]) -> list[Planned]:
    """Each source once, however many of the paths given lead to it."""
    once: dict[tuple[str, str], Planned] = {}
    for planned in found:
        once.setdefault((planned.source.reader, planned.source.uri), planned)
    return list(once.values())


def is_address(path: Path | str) -> bool:
    """Whether something to ingest is named by a URL."""
    return isinstance(path, str) and "://" in path


def _behind(address: str, study: Study, selection: Selection) -> list[Planned]:
    """The sources behind an address."""
    for one in all_readers():
        if isinstance(one, AddressReader) and one.serves(address):
            try:
                return [Planned(source=_printable(source), reader=one) for source in one.find_address(address, study, selection)]
            except InputError as err:  # it was named, so that nothing is rejected: the command cannot do what it was told
                raise DatabaseError(err.message, where=err.where, hint=err.hint) from err
    message = "no reader knows this kind of address"
    raise UsageError(
        message,
        where=mask(address),
        hint="an MLflow store is sqlite:///PATH, postgresql://USER@HOST/NAME or http(s)://HOST:PORT; files are named by their path",
    )


def _selected(found: list[Planned], selection: Selection) -> tuple[list[Planned], dict[str, int]]:
    """Sources that the selection asks for and that are not left out for a reason of their own; how many are, by reason."""
    kept: list[Planned] = []
    left_out: Counter[str] = Counter()
    for planned in found:
        reason = planned.source.left_out or _unwanted(planned.source, selection)
        if reason:
            left_out[reason] += 1
        else:
            kept.append(planned)
    return kept, dict(left_out)


def _unwanted(source: Source, selection: Selection) -> str | None:
    if selection.experiments and source.experiment not in selection.experiments:
        return "of another experiment (--experiment)"
    if selection.since is not None:
        time = source.time or _changed(source.files)
        if time is not None and time < selection.since:
            return "unchanged since the time given (--since)"
    return None


def _changed(paths: Sequence[Path]) -> datetime | None:
    """When the last of some files changed."""
    times: list[float] = []
    for path in paths:
        with suppress(OSError):
            times.append(path.stat().st_mtime)
    return datetime.fromtimestamp(max(times), tz=UTC) if times else None


def folders(paths: Iterable[Path]) -> Iterator[Folder]:
    """Every folder under the paths with its files, in sorted order; a file is a folder of one."""
    seen: set[Path] = set()
    for path in paths:
        resolved, kind = look(path)
        if kind == "folder":
            for folder in _walk(resolved):
                names = [name for name in folder.names if folder.path / name not in seen]
                seen.update(folder.path / name for name in names)
                yield Folder(folder.path, names, folder.folders)
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
        if plain or subfolders:
            yield Folder(Path(parent), plain, list(subfolders))
    for path in closed:
        yield Folder(path.parent, [path.name])


def _is_special(path: str) -> bool:
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116 - many files
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _find(folder: Folder, study: Study, claimed: set[Path]) -> tuple[list[Planned], list[Path]]:
    """Ask the readers in order; what one claims (here or in a folder that comes later) the next does not see."""
    offered = Folder(folder.path, [name for name in folder.names if folder.path / name not in claimed], folder.folders)
    planned: list[Planned] = []
    for one in all_readers():
        sources = _found(one, offered, study)
        planned += [Planned(source=_printable(source), reader=one) for source in sources]
        taken = {path for source in sources for path in (*source.files, *source.claims)}
        claimed |= taken
        offered.names = [name for name in offered.names if folder.path / name not in taken]
        if not offered.names and not offered.folders:
            break
    left = [folder.path / name for name in offered.names]
    closed = [path for path in left if not _readable(path)]
    planned += [Planned(source=Source(reader=UNREADABLE, uri=printable(path), files=(path,)), reader=_Unreadable()) for path in closed]
    return planned, [path for path in left if path not in closed]


def _found(one: Reader, offered: Folder, study: Study) -> list[Source]:
    """What a reader finds, without what a rule of the study file names: that the study's own rules read, wherever it lies."""
    try:
        sources = list(one.find(offered, study))
    except OSError:  # a folder below that cannot be looked into: walking it says so
        return []
    if one.name in OWN_RULES or not (study.table or study.scores):
        return sources
    return [source for source in sources if not any(_is_ruled(path, study) for path in (*source.files, *source.claims))]


def _is_ruled(path: Path, study: Study) -> bool:
    return study.table_rule(path) is not None or study.scores_rule(path) is not None


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
