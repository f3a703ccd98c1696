"""Where EvalScope puts what: which files of an output folder belong to which model and benchmark."""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from tracker.errors import InputError
from tracker.readers import yaml_document
from tracker.readers.base import is_special, read_head
from tracker.readers.keys import is_native
from tracker.readers.lines import LFS_POINTER, foreign

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

ROLES = ("predictions", "reviews", "reports")
ASIDE = ("configs", "logs", "reports")
"""Folders of a run whose other files (configuration, logs, pages) belong to it and hold no records."""
_ASIDE_KINDS = frozenset({".yaml", ".yml", ".log", ".html", ".txt", ".md"})
_ROW = re.compile(rb'"(?:model_output|sample_score)"\s*:\s*\{')
_OLD_ROW = re.compile(rb'"(?:answer_id|review_id)"\s*:')
"""Before 1.0; together with what the model said."""
_OLD_ANSWER = re.compile(rb'"choices"\s*:\s*\[|"model_spec"\s*:')
_REPORT = re.compile(rb'"metrics"\s*:\s*\[\s*[{\]]')
_REPORTED = re.compile(rb'"(?:dataset_name|model_name|total_num)"\s*:')
_OLD_REPORT = re.compile(rb'"category"\s*:\s*\[')
_OLD_REPORTED = re.compile(rb'"total_num"\s*:')
_SUBSET = re.compile(rb'"subset_name"\s*:\s*"([^"\\]*)"')
_DEEPEST = 4
_LOOKED_AT = 20
"""After so many files without one that is EvalScope's, a folder of this name is something else's."""


@dataclass(slots=True)
class Evaluation:
    """The files of one model on one benchmark."""

    root: Path
    model: str
    """Folder of the model below predictions, reviews and reports; empty where there is none."""
    benchmark: str
    predictions: dict[str, Path] = field(default_factory=dict)
    reviews: dict[str, Path] = field(default_factory=dict)
    """By subset."""
    report: Path | None = None
    configs: list[Path] = field(default_factory=list)

    @property
    def uri(self) -> str:
        """The report's path, be it written yet or not: the name that stays the same while a run goes on."""
        return str(self.root.joinpath("reports", *PurePosixPath(self.model).parts, f"{self.benchmark}.json"))

    @property
    def files(self) -> tuple[Path, ...]:
        """Every file whose bytes matter, each once."""
        found = [*([self.report] if self.report else []), *self.reviews.values(), *self.predictions.values(), *self.configs]
        return tuple(dict.fromkeys(found))


@dataclass(frozen=True, slots=True)
class _File:
    role: str
    model: str
    stem: str
    path: Path
    head: bytes


def root_of(path: Path) -> Path | None:
    """The output folder that a folder inside it belongs to, by the names above it."""
    for parent in (path, *list(path.parents)[: _DEEPEST + 1]):
        if parent.name in ROLES:
            return parent.parent
    return None


def evaluations(root: Path) -> list[Evaluation]:
    """Every evaluation in an output folder, in order of model and benchmark."""
    files = [one for role in ROLES for one in _files(root, role)]
    if not any(_is_own(one) for one in files):
        return []
    configs = _configs(root)
    listed = _listed(configs) if any(one.role != "reports" for one in files) else []
    found: dict[tuple[str, str], Evaluation] = {}
    own = [one for one in files if _is_own(one)]
    for one in files:
        if one.role == "reports" and _belongs(one, own):
            found[one.model, one.stem] = Evaluation(root, one.model, one.stem, report=one.path, configs=configs)
    for one in files:
        if one.role == "reports" or not _belongs(one, own):
            continue
        known = [*(stem for model, stem in found if model == one.model), *listed]
        benchmark, subset = split_name(one.stem, known, one.head)
        key = (one.model, benchmark)
        evaluation = found.setdefault(key, Evaluation(root, one.model, benchmark, configs=configs))
        part = evaluation.predictions if one.role == "predictions" else evaluation.reviews
        part.setdefault(subset, one.path)
    return [found[key] for key in sorted(found)]


def aside(root: Path) -> tuple[Path, ...]:
    """Files of a run that hold no records: its configuration, logs and pages."""
    found: list[Path] = []
    for name in ASIDE:
        for parent, _, names in _walk(root / name):
            found += [parent / one for one in names if Path(one).suffix.lower() in _ASIDE_KINDS]
    return tuple(found)


def split_name(stem: str, known: Iterable[str], head: bytes = b"") -> tuple[str, str]:
    """Benchmark and subset of a file name `<benchmark>_<subset>`, both of which may hold underscores.

    The longest known benchmark counts, else the subset that rows state (before 1.0), else only `default` is told from the rest.
    """
    fitting = [name for name in known if stem == name or stem.startswith(f"{name}_")]
    if fitting:
        benchmark = max(fitting, key=len)
        return benchmark, stem[len(benchmark) + 1 :] or "default"
    stated = _SUBSET.search(head)
    subset = stated[1].decode("utf-8", "replace") if stated else "default"
    if subset and stem.endswith(f"_{subset}") and len(stem) > len(subset) + 1:
        return stem.removesuffix(f"_{subset}"), subset
    return stem, "default"


def _files(root: Path, role: str) -> Iterator[_File]:
    suffix = ".json" if role == "reports" else ".jsonl"
    looked = own = 0
    for parent, folder, names in _walk(root / role):
        for name in names:
            if not name.endswith(suffix) or name.startswith("."):
                continue
            if looked >= _LOOKED_AT and not own:
                return
            try:
                path = parent / name
                head = read_head(path)
            except OSError:
                continue
            one = _File(role, folder, name.removesuffix(suffix), path, head)
            looked += 1
            own += _is_own(one) or _is_nothing(head)
            yield one


def _walk(top: Path) -> Iterator[tuple[Path, str, list[str]]]:
    """Folders below one, with their name relative to it and their files, in order; not too deep."""
    for parent, folders, names in os.walk(top, followlinks=False):
        relative = Path(parent).relative_to(top).as_posix()
        depth = 0 if relative == "." else relative.count("/") + 1
        folders[:] = sorted(name for name in folders if not name.startswith(".")) if depth < _DEEPEST else []
        here = Path(parent)
        yield here, "" if relative == "." else relative, sorted(name for name in names if not is_special(here / name))


def _is_own(one: _File) -> bool:
    start = one.head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not start.startswith(b"{"):
        return False
    if one.role == "reports":
        now = _REPORT.search(start) is not None and _REPORTED.search(start) is not None
        return now or (_OLD_REPORT.search(start) is not None and _OLD_REPORTED.search(start) is not None)
    if _is_native(start):
        return False
    return _ROW.search(start) is not None or (_OLD_ROW.search(start) is not None and _OLD_ANSWER.search(start) is not None)


def _is_native(start: bytes) -> bool:
    """Whether rows are those of a native table, by the first one."""
    try:
        row = json.loads(start.split(b"\n", 1)[0])
    except (ValueError, RecursionError):
        return False
    return isinstance(row, dict) and is_native(row)


def _belongs(one: _File, own: Sequence[_File]) -> bool:
    """Its own, or damaged beyond recognition beside what is: the report of known rows, the rows of a known report, the other half of rows."""
    if _is_own(one) or _is_nothing(one.head):
        return True
    if one.role != "reports" and _is_native(one.head):
        return False
    for other in own:
        if other.model != one.model or other.role == one.role:
            continue
        if "reports" not in {one.role, other.role} and one.stem == other.stem:
            return True
        if (one.role == "reports" and other.stem.startswith(f"{one.stem}_")) or (
            other.role == "reports" and one.stem.startswith(f"{other.stem}_")
        ):
            return True
    return False


def _is_nothing(head: bytes) -> bool:
    """Empty, or a pointer to what is not here: known by its place, and refused when read."""
    return not head.strip() or head.startswith(LFS_POINTER)


def _configs(root: Path) -> list[Path]:
    found: list[Path] = []
    for parent, _, names in _walk(root / "configs"):
        found += [parent / name for name in names if name.startswith("task_config") and name.endswith((".yaml", ".yml"))]
    return found


def _listed(configs: Sequence[Path]) -> list[str]:
    """Benchmarks that the task configurations name."""
    found: list[str] = []
    for path in configs:
        config: dict[str, object] = {}
        with suppress(InputError, OSError):  # reading the run says what is wrong with it
            config = read_config(path)
        datasets, arguments = config.get("datasets"), config.get("dataset_args")
        found += [one for one in datasets if isinstance(one, str)] if isinstance(datasets, list) else []
        found += list(arguments) if isinstance(arguments, dict) else []
    return found


def read_config(path: Path) -> dict[str, object]:
    """A task configuration. Raises InputError where it cannot be read."""
    raw = path.read_bytes()
    problem = foreign(raw, path)
    if problem is not None:
        raise InputError(problem, where=str(path))
    config = yaml_document.parse(raw.decode("utf-8", "replace"), path)
    return config if isinstance(config, dict) else {}
