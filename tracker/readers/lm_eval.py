"""lm-evaluation-harness 0.4.x result folders (and the aggregate files of 0.3): `results_<stamp>.json` and `samples_<task>_<stamp>.jsonl`.

One run is one samples file with the results file of its stamp. Facts and sources: docs/formats.md.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from tracker.batch import Batch, Refusal, RunHeader, Source, empty_records
from tracker.errors import InputError
from tracker.readers.base import place_of
from tracker.readers.lines import LFS_POINTER
from tracker.readers.lm_answers import Reading
from tracker.readers.lm_results import NO_RESULTS, Results, configuration, ended, is_lmms, read_results, results_tasks, started
from tracker.readers.values import text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tracker.readers.base import Folder
    from tracker.study import Study

STAMP = r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d(?:\.\d{1,6})?"
"""`datetime.isoformat()` with - for :, without microseconds where they are 0; local time of whatever machine, so never read as a time."""
SAMPLES = re.compile(rf"samples_(?P<task>.+)_(?P<stamp>{STAMP})\.jsonl$")
RESULTS = re.compile(rf"(?:.*_)?(?P<stamp>{STAMP})\.json$")
ARRAY = re.compile(r"(?P<args>.+)\.jsonl$")
LMMS_RESULTS = re.compile(r"\d{8}_\d{6}.*_results\.json$")
_ROW = re.compile(rb'"(?:filtered_resps|resps|target)"\s*:')
_BLANK = b"\xef\xbb\xbf \t\r\n"


class _Samples(NamedTuple):
    name: str
    task: str
    results: str | None


@dataclass(frozen=True, slots=True)
class LmEvalReader:
    """Reads what lm-eval writes with --log_samples, and aggregate scores where samples are missing."""

    name: str = "lm_eval"
    version: int = 2

    def find(self, folder: Folder, study: Study) -> Sequence[Source]:  # noqa: ARG002 - part of what a reader is
        """Samples files with the results file they belong to; results of tasks without samples stand alone."""
        tasks = {name: tasks for name in folder.names if (tasks := _tasks(folder, name)) is not None}
        by_stamp = {match["stamp"]: name for name in tasks if (match := RESULTS.match(name))}
        found = [*_stamped(folder, by_stamp), *_arrays(folder, tasks)]
        root = folder.path.resolve()
        sources = []
        for one in found:
            files = (root / one.name, *([root / one.results] if one.results else []))
            named = {} if one.results else {"model": _model_of(root / one.name)}
            sources.append(Source(reader=self.name, uri=str(files[0]), files=files, mapping={"task": one.task} | named))
        for name, listed in tasks.items():
            sampled = sorted({one.task for one in found if one.results == name})
            if not listed or set(listed) - set(sampled):
                sources.append(Source(reader=self.name, uri=str(root / name), files=(root / name,), mapping={"sampled": sampled}))
        return sources

    def read(self, source: Source, study: Study) -> Iterator[Batch | Refusal]:  # noqa: ARG002 - part of what a reader is
        """One run for a samples file; one run per task or group for a results file without samples."""
        main = place_of(source)
        if "task" in source.mapping:
            yield from _read_samples(main, source, str(source.mapping["task"]))
        else:
            yield from _read_aggregates(main, set(source.mapping.get("sampled") or ()))


READER = LmEvalReader()


def _tasks(folder: Folder, name: str) -> list[str] | None:
    """Tasks of a results file; empty where its head does not tell; None for every other file."""
    if not name.endswith(".json") or LMMS_RESULTS.match(name):
        return None
    head = folder.head(name)
    if RESULTS.match(name) and name.startswith("results_") and (head.startswith(LFS_POINTER) or not head.strip(_BLANK)):
        return []
    found = results_tasks(head)
    return None if found is None or is_lmms(head) or _has_logs(folder) else found


def _has_logs(folder: Folder) -> bool:
    """lmms-eval up to 0.2.2 also wrote a results.json, beside objects with model_configs and logs."""
    return any(b'"model_configs"' in folder.head(name) for name in folder.names if name.endswith(".json"))


def _stamped(folder: Folder, by_stamp: dict[str, str]) -> Iterator[_Samples]:
    for name in folder.names:
        match = SAMPLES.match(name)
        if match and (match["stamp"] in by_stamp or _is_samples(folder.head(name))):
            yield _Samples(name, match["task"], by_stamp.get(match["stamp"]))


def _is_samples(head: bytes) -> bool:
    """A samples file without its results file; a pointer or an empty file is known by its name and refused when read."""
    if head.startswith(LFS_POINTER) or not head.strip(_BLANK):
        return True
    return head.lstrip(_BLANK).startswith(b"{") and b'"doc_id"' in head and _ROW.search(head) is not None


def _arrays(folder: Folder, tasks: dict[str, list[str]]) -> Iterator[_Samples]:
    """Samples of 0.4.0 to 0.4.2: `<model_args>_<task>.jsonl`, in truth a pretty-printed array, beside results.json or the given name."""
    for name in folder.names:
        if not name.endswith(".jsonl") or SAMPLES.match(name) or "_samples_" in name:
            continue
        head = folder.head(name)
        if not (head.lstrip(_BLANK).startswith(b"[") and b'"doc_id"' in head and _ROW.search(head)):
            continue
        stem = name.removesuffix(".jsonl")
        ends = [
            (task, file)
            for file, listed in tasks.items()
            for task in listed
            if stem.endswith(f"_{task}") and _same_args(folder, file, stem, task)
        ]
        task, results = max(ends, key=lambda one: len(one[0])) if ends else (_task_of(stem), None)
        yield _Samples(name, task, results)


def _same_args(folder: Folder, results: str, stem: str, task: str) -> bool:
    """Whether a results file is of the same model: results.json was overwritten by every run."""
    match = re.search(rb'"model_args"\s*:\s*"([^"]*)"', folder.head(results))
    return match is None or re.sub(r"[/=]", "__", match[1].decode("utf-8", "replace")) == stem.removesuffix(f"_{task}")


def _task_of(stem: str) -> str:
    """The task after the last argument's value, where no results file names it: the value itself holds no single underscore."""
    last = stem.rpartition("__")[2]
    return last.partition("_")[2] or last


def _read_samples(main: Path, source: Source, task: str) -> Iterator[Batch | Refusal]:
    results = NO_RESULTS
    for path in source.files[1:]:
        try:
            results = read_results(path)
        except InputError as err:
            yield Refusal(file=str(path), reason=str(err).removeprefix(f"{path}: "))
    task = _named(results, task)
    header = _header(results, task, main)
    scores = results.scores(task)
    reading = Reading(path=main, task=task, results=results)
    held: Batch | None = None
    try:
        for part in reading.parts():
            if isinstance(part, Refusal):
                yield part
                continue
            if held is not None:
                yield held
            held = Batch(run=header, scores=() if held is not None else scores, **part)
    except InputError as err:
        if not scores:
            raise
        yield Refusal(file=str(main), reason=err.reason)
        reading.damage = f"samples file: {err.message}"
    reason = reading.reason()
    final = header.model_copy(update={"status": "partial", "status_reason": reason}) if reason else header
    last = held or Batch(run=final, records=empty_records(), scores=scores)
    yield Batch(run=final, **{name: getattr(last, name) for name in ("records", "questions", "labels", "record_scores", "scores")})


def _read_aggregates(main: Path, sampled: set[str]) -> Iterator[Batch | Refusal]:
    results = read_results(main)
    named = {_named(results, task) for task in sampled}
    found = False
    for task in dict.fromkeys([*results.tasks, *(results.document.get("groups") or {})]):
        scores = results.scores(task)
        if task not in named and scores:
            header = _header(results, task, main).model_copy(update={"n_expected": None})
            yield Batch(run=header, records=empty_records(), scores=scores)
            found = True
    if not found and not sampled:
        message = "no score in it"
        raise InputError(message, where=str(main), hint="run the evaluation again, or delete it")


def _named(results: Results, task: str) -> str:
    """The task as the results file spells it; file names have other characters for some."""
    plain = re.sub(r"\W", "_", task)
    return task if task in results.tasks else next((one for one in results.tasks if re.sub(r"\W", "_", one) == plain), task)


def _header(results: Results, task: str, main: Path) -> RunHeader:
    document = results.document
    start = started(document.get("date"))
    return RunHeader(
        model=results.model() or _model_of(main),
        benchmark=task,
        configuration=configuration(results, task),
        framework="lm-evaluation-harness",
        framework_version=text(document.get("lm_eval_version")) or text(document.get("git_hash")),
        n_expected=results.expected(task),
        started_at=start,
        ended_at=ended(start, results.seconds()),
        settings=results.settings(task),
    )


def _model_of(main: Path) -> str:
    """The model where no results file names it: the folder's name, or the arguments in an old file name."""
    if SAMPLES.match(main.name) or not ARRAY.match(main.name):
        return main.parent.name.replace("__", "/", 1) or main.parent.name
    args = main.stem.removesuffix(f"_{_task_of(main.stem)}")
    named = re.search(r"(?:peft|delta|pretrained|model|path|engine)__([^,]+)", args)
    return (named[1] if named else args).replace("__", "/", 1)
