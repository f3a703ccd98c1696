"""lighteval output folders: `details/<model>/<stamp>/details_<task>_<stamp>.parquet` and `results/<model>/results_<stamp>.json`.

One run is one details file with the results file of its stamp; tasks without details are runs without records. Facts: docs/format-lighteval.md.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tracker.batch import Batch, Refusal, RunHeader, Source, empty_records
from tracker.errors import InputError
from tracker.readers.base import is_special, place_of, resolved
from tracker.readers.lighteval_results import NO_RESULTS, STAMP, Results, is_results, names_model, read_results, results_tasks, task_of
from tracker.readers.lighteval_rows import Details
from tracker.readers.lines import LFS_POINTER
from tracker.readers.single import run_batches
from tracker.readers.tabular import PARQUET_MAGIC
from tracker.readers.values import text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tracker.readers.base import Folder
    from tracker.study import Study

DETAILS = re.compile(rf"details_(?P<task>.+)_(?P<stamp>{STAMP})\.parquet$", re.DOTALL)
RESULTS = re.compile(rf"results_(?P<stamp>{STAMP})\.json$")
TAIL_BYTES = 1 << 18
_MARKS = (b"model_response", b"gold_index"), (b"full_prompt", b"gold_index")


@dataclass(frozen=True, slots=True)
class LightevalReader:
    """Reads what lighteval writes, details and results."""

    name: str = "lighteval"
    version: int = 1

    def find(self, folder: Folder, study: Study) -> Sequence[Source]:  # noqa: ARG002 - part of what a reader is
        """Details files with the results file of their stamp, wherever of the two the folder is; results of tasks without details."""
        root = folder.path.resolve()
        details = [root / name for name in folder.names if name.endswith(".parquet") and _is_details(folder, name)]
        results = [
            root / name
            for name in folder.names
            if RESULTS.match(name) and (is_results(folder.head(name)) or _is_nothing(folder.head(name)))
        ]
        found: dict[str, Source] = {}
        for path in details:
            paired = results_of(path)
            for source in self._sources([path], paired):
                found.setdefault(source.uri, source)
            if paired is not None and paired not in results:
                results.append(paired)
        for path in results:
            for source in self._sources(_beside(details_of(path), details), path):
                found.setdefault(source.uri, source)
            rest = self._rest(path, _beside(details_of(path), details))
            if rest is not None:
                found.setdefault(rest.uri, rest)
        return list(found.values())

    def read(self, source: Source, study: Study) -> Iterator[Batch | Refusal]:  # noqa: ARG002 - part of what a reader is
        """One run for a details file; one run per task for a results file."""
        main = place_of(source)
        if main.suffix == ".parquet":
            yield from _read_details(main, source)
        else:
            yield from _read_results(main, source)

    def _sources(self, details: Sequence[Path], results: Path | None) -> Iterator[Source]:
        for path in details:
            match = DETAILS.match(path.name)
            files = (path, *([results] if results is not None else []))
            named = _named(path, results)
            yield Source(reader=self.name, uri=str(path), files=files, mapping={"task": match["task"] if match else None} | named)

    def _rest(self, path: Path, details: Sequence[Path]) -> Source | None:
        """A results file with tasks of which there are no details, or that cannot be read."""
        sampled = sorted({match["task"] for one in details if (match := DETAILS.match(one.name))})
        try:
            tasks = results_tasks(path)
        except InputError:
            tasks = None
        if tasks is None and details:
            return None
        if tasks is not None and not (set(tasks) - set(sampled)):
            return None
        return Source(reader=self.name, uri=str(path), files=(path,), mapping={"sampled": sampled} | _named(path, path))


READER = LightevalReader()


def _named(path: Path, results: Path | None) -> dict[str, Any]:
    """The folder's name where it names the model, because no results file does: another name is another run."""
    return {} if results is not None and names_model(results) else {"model": _model_folder(path)}


def results_of(details: Path) -> Path | None:
    """The results file of a details file: in the parallel folder, or (as on the Hub) beside the stamp's folder or the file."""
    match = DETAILS.match(details.name)
    if match is None:
        return None
    name = f"results_{match['stamp']}.json"
    places = [details.parent, details.parent.parent]
    base = _base(details, "details")
    if base is not None:
        relative = details.parent.relative_to(base / "details")
        inner = relative.parent if relative.name == match["stamp"] else relative
        places.append(base / "results" / inner)
        places += _folders(base / "results")
    return next((place / name for place in places if _is_file(place / name)), None)


def details_of(results: Path) -> list[Path]:
    """The details files of a results file, in order of name."""
    match = RESULTS.match(results.name)
    if match is None:
        return []
    stamp = match["stamp"]
    places = [results.parent, results.parent / stamp]
    base = _base(results, "results")
    if base is not None:
        places.append(base / "details" / results.parent.relative_to(base / "results") / stamp)
        places += [one / stamp for one in _folders(base / "details")]
    found: dict[Path, None] = {}
    for place in dict.fromkeys(places):
        try:
            listed = sorted(one for one in place.iterdir() if not is_special(one)) if place.is_dir() else []
        except OSError:
            continue
        found.update(dict.fromkeys(one for one in listed if (named := DETAILS.match(one.name)) and named["stamp"] == stamp))
    return list(found)


def _beside(known: Sequence[Path], offered: Sequence[Path]) -> list[Path]:
    """Details files, each once, also where a link leads to another of them."""
    found: dict[Path, Path] = {}
    for path in (*known, *offered):
        if path in known:
            found.setdefault(resolved(path), path)
    return list(found.values())


def _base(path: Path, name: str) -> Path | None:
    """The output folder, by the nearest folder of a name above a file."""
    return next((parent.parent for parent in path.parents if parent.name == name), None)


def _folders(top: Path) -> list[Path]:
    """Folders below one, two deep: a results path template or a model's organisation puts files there."""
    try:
        first = [one for one in sorted(top.iterdir()) if one.is_dir()] if top.is_dir() else []
        return [*first, *(inner for one in first for inner in sorted(one.iterdir()) if inner.is_dir())]
    except OSError:
        return []


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        return False


def _is_details(folder: Folder, name: str) -> bool:
    """By name where it is one that lighteval gives, else by the column names at the file's end."""
    head = folder.head(name)
    if DETAILS.match(name):
        return head.startswith(PARQUET_MAGIC) or _is_nothing(head)
    if not head.startswith(PARQUET_MAGIC):
        return False
    try:
        with (folder.path / name).open("rb") as stream:
            stream.seek(-min(TAIL_BYTES, stream.seek(0, 2)), 2)
            tail = stream.read()
    except OSError:
        return False
    return any(all(mark in tail for mark in marks) for marks in _MARKS)


def _is_nothing(head: bytes) -> bool:
    return not head.strip() or head.startswith(LFS_POINTER)


def _read_details(main: Path, source: Source) -> Iterator[Batch | Refusal]:
    results, refusals = _results(source)
    yield from refusals
    task, details = _opened(main, source, results)
    scores = results.scores(task)
    pieces = details.chunks()
    held = []
    try:
        for piece in pieces:
            held.append(piece)
            if not isinstance(piece, Refusal):
                break
    except InputError as err:
        if not scores:
            raise
        yield Refusal(file=str(main), reason=err.reason)
        details.damage = f"details file: {err.message}"
    if "|" not in task and details.asked_task:
        task = details.asked_task
        scores = results.scores(task) or scores
    header = _header(results, task, main, details)

    def rows() -> Iterator[Any]:
        yield from held
        held.clear()
        if details.damage is None or details.rows:
            yield from pieces

    last = header
    for part in run_batches(str(main), header, rows(), scores=scores):
        yield part
        last = part.run if isinstance(part, Batch) else last
    expected = results.expected(task)
    reason = details.damage or (f"{details.rows} of {expected} questions" if expected is not None and details.rows < expected else None)
    if not details.rows and not scores:
        message = "no usable row"
        raise InputError(message, where=str(main), hint="run lighteval again")
    if reason:
        yield Batch(run=last.model_copy(update={"status": "partial", "status_reason": reason}), records=empty_records())


def _opened(main: Path, source: Source, results: Results) -> tuple[str, Details]:
    match = DETAILS.match(main.name)
    task = text(source.mapping.get("task")) or (match["task"] if match else main.stem)
    return task, Details(path=main, task=task, other_scales=results.other_scales(task))


def _read_results(main: Path, source: Source) -> Iterator[Batch | Refusal]:
    results = read_results(main)
    sampled = set(source.mapping.get("sampled") or ())
    found = False
    for task in results.tasks:
        scores = results.scores(task)
        if task not in sampled and scores:
            found = True
            header = _header(results, task, main, None).model_copy(update={"n_expected": None})
            yield Batch(run=header, records=empty_records(), scores=scores)
    if not found:
        message = "no task with a score"
        raise InputError(message, where=str(main), hint="delete it or run lighteval again")


def _results(source: Source) -> tuple[Results, list[Refusal]]:
    """The results file of a details file; where it is damaged the details still go in."""
    path = next((one for one in source.files if one.suffix == ".json"), None)
    if path is None:
        return NO_RESULTS, []
    try:
        return read_results(path), []
    except InputError as err:
        return NO_RESULTS, [Refusal(file=str(path), reason=err.reason)]


def _header(results: Results, task: str, main: Path, details: Details | None) -> RunHeader:
    match = DETAILS.match(main.name) or RESULTS.match(main.name)
    stamp = match["stamp"] if match else None
    configuration = results.configuration(task, generates=details.generates if details is not None else None)
    if configuration.few_shot is None and details is not None and details.shots is not None and details.shots >= 0:
        configuration = configuration.model_copy(update={"few_shot": details.shots})
    sha = text(results.general.get("lighteval_sha"))
    return RunHeader(
        model=results.model() or _model_folder(main) or "unknown",
        benchmark=task_of(task).name,
        configuration=configuration,
        framework="lighteval",
        framework_version=sha if sha and sha != "?" else None,
        n_expected=results.expected(task),
        settings=results.settings(task, stamp),
    )


def _model_folder(main: Path) -> str | None:
    """The model by the folders between `details` (or `results`) and the stamp."""
    for name in ("details", "results"):
        base = _base(main, name)
        if base is not None:
            parts = [one for one in main.parent.relative_to(base / name).parts if not re.fullmatch(STAMP, one)]
            return "/".join(parts) or None
    return None
