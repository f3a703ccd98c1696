"""lmms-eval result folders: `<stamp>_results.json` and `<stamp>_samples_<task>.jsonl`, and the layout up to 0.2.2.

One run is one samples file with the results file of its stamp. Facts and sources: docs/formats.md.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from tracker.batch import Batch, Refusal, RunHeader, Source, empty_records
from tracker.errors import InputError
from tracker.readers.base import place_of
from tracker.readers.lines import LFS_POINTER, json_document, shorten
from tracker.readers.lm_results import NO_RESULTS, Results, configuration, ended, is_lmms, parse_model_args, read_results, results_tasks
from tracker.readers.lm_rows import Block, row_blocks
from tracker.readers.lm_samples import Reading
from tracker.readers.values import text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tracker.readers.base import Folder
    from tracker.study import Study

SAMPLES = re.compile(r"(?P<stamp>.+)_samples_(?P<task>.+)\.jsonl$")
RESULTS = re.compile(r"(?P<stamp>\d{8}_\d{6}.*)_results\.json$")
STAMP = re.compile(r"\d{8}_\d{6}")
ZONE = timezone(timedelta(hours=8), "Asia/Singapore")
"""lmms-eval's own default of --timezone, whatever the machine's zone is; Singapore keeps no summer time."""
OLD_MARKS = (b'"logs"', b'"model_configs"')
_ROW = re.compile(rb'"(?:filtered_resps|resps|target)"\s*:')


@dataclass(frozen=True, slots=True)
class LmmsEvalReader:
    """Reads what lmms-eval writes with --log_samples, and aggregate scores where samples are missing."""

    name: str = "lmms_eval"
    version: int = 2

    def find(self, folder: Folder, study: Study) -> Sequence[Source]:  # noqa: ARG002 - part of what a reader is
        """Samples files with the results file of the same stamp; results of tasks without samples stand alone."""
        results = {match["stamp"]: name for name in folder.names if (match := RESULTS.match(name)) and _is_results(folder.head(name))}
        samples = [(match["stamp"], match["task"], name) for name in folder.names if (match := SAMPLES.match(name))]
        samples = [one for one in samples if one[0] in results or _is_samples(one[0], folder.head(one[2]))]
        return [*_modern(folder, results, samples), *_old(folder)]

    def read(self, source: Source, study: Study) -> Iterator[Batch | Refusal]:  # noqa: ARG002 - part of what a reader is
        """One run for a samples file; one run per task for a results file without samples."""
        main = place_of(source)
        if main.name.endswith(".jsonl"):
            yield from _read_samples(main, source)
        elif source.mapping.get("layout") == "logs":
            yield from _read_logs(main, source)
        else:
            yield from _read_aggregates(main, source)


READER = LmmsEvalReader()


def _modern(folder: Folder, results: dict[str, str], samples: list[tuple[str, str, str]]) -> Iterator[Source]:
    root = folder.path.resolve()
    for stamp, task, name in samples:
        files = [root / name, *([root / results[stamp]] if stamp in results else [])]
        named = {} if stamp in results else {"model": _folder_model(root)}
        yield Source(reader=READER.name, uri=str(files[0]), files=tuple(files), mapping={"task": task} | named)
    for stamp, name in results.items():
        sampled = {task for one, task, _ in samples if one == stamp}
        tasks = results_tasks(folder.head(name))
        if not tasks or set(tasks) - sampled:
            yield Source(reader=READER.name, uri=str(root / name), files=(root / name,), mapping={"sampled": sorted(sampled)})


def _old(folder: Folder) -> Iterator[Source]:
    """Up to 0.2.2: results.json beside one <task>.json per task, an object with args, model_configs, logs."""
    root = folder.path.resolve()
    logs = [name for name in folder.names if name.endswith(".json") and name != "results.json" and _is_logs(folder.head(name))]
    results = "results.json" if "results.json" in folder.names else None
    if results is not None and not (logs or is_lmms(folder.head(results))):
        return
    tasks = results_tasks(folder.head(results)) if results is not None else None
    paired = [root / results] if results is not None and tasks is not None else []
    for name in logs:
        task = name.removesuffix(".json")
        yield Source(reader=READER.name, uri=str(root / name), files=(root / name, *paired), mapping={"layout": "logs", "task": task})
    sampled = sorted(name.removesuffix(".json") for name in logs)
    if paired and (not tasks or set(tasks) - set(sampled)):
        yield Source(reader=READER.name, uri=str(paired[0]), files=tuple(paired), mapping={"sampled": sampled})


def _is_results(head: bytes) -> bool:
    return results_tasks(head) is not None or head.startswith(LFS_POINTER) or not head.strip()


def _is_samples(stamp: str, head: bytes) -> bool:
    """A samples file without its results file; a pointer or an empty file is known by its name and refused when read."""
    if head.startswith(LFS_POINTER) or not head.strip():
        return STAMP.fullmatch(stamp) is not None
    return head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{") and b'"doc_id"' in head and _ROW.search(head) is not None


def _is_logs(head: bytes) -> bool:
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    return start.startswith(b'{\n    "args"') or (start.startswith(b"{") and b'"args"' in start[:64] and OLD_MARKS[1] in head)


def _read_samples(main: Path, source: Source) -> Iterator[Batch | Refusal]:
    results, refusals = _results_of(source)
    yield from refusals
    match = SAMPLES.match(main.name)
    task, stamp = (match["task"], match["stamp"]) if match else (str(source.mapping.get("task")), "")
    header = _header(results, task, main, stamp)
    yield from _run(main, results, task, header, row_blocks(main))


def _read_logs(main: Path, source: Source) -> Iterator[Batch | Refusal]:
    results, refusals = _results_of(source)
    yield from refusals
    document = json_document(main)
    logs = document.get("logs") if isinstance(document, dict) else None
    if not isinstance(logs, list):
        message = "expected an object with a list of logs"
        raise InputError(message, where=str(main), hint="delete it or run lmms-eval again")
    task = str(source.mapping.get("task"))
    args, configs = document.get("args"), document.get("model_configs")
    args, configs = (args if isinstance(args, dict) else {}), (configs if isinstance(configs, dict) else {})
    filled = {**results.document, "config": results.document.get("config") or args}
    filled.setdefault("configs", {task: configs})
    filled.setdefault("n-shot", {task: configs.get("num_fewshot")})
    known = Results(filled, results.model_args or parse_model_args(args.get("model_args")))
    rows = [(place, row) for place, row in enumerate(logs, 1)]
    bad = [
        Refusal(file=str(main), line=None, reason=f"log {place}: expected an object", text=shorten(str(row)))
        for place, row in rows
        if not isinstance(row, dict)
    ]
    good = [(place, row) for place, row in rows if isinstance(row, dict)]
    blocks = iter([Block([row for _, row in good], [place for place, _ in good], bad)])
    yield from _run(main, known, task, _header(known, task, main, ""), blocks)


def _run(main: Path, results: Results, task: str, header: RunHeader, blocks: Iterator[Block]) -> Iterator[Batch | Refusal]:
    reading = Reading(path=str(main), task=task, results=results)
    scores = results.scores(task)
    held: Batch | None = None
    try:
        for part in reading.parts(blocks):
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
    reason = reading.reason(results.expected(task))
    final = header.model_copy(update={"status": "partial", "status_reason": reason}) if reason else header
    last = held or Batch(run=final, records=empty_records(), scores=scores)
    yield Batch(run=final, **{name: getattr(last, name) for name in ("records", "questions", "labels", "record_scores", "scores")})


def _read_aggregates(main: Path, source: Source) -> Iterator[Batch | Refusal]:
    results = read_results(main)
    sampled = set(source.mapping.get("sampled") or ())
    match = RESULTS.match(main.name)
    found = False
    for task in results.tasks:
        scores = results.scores(task)
        if task not in sampled and scores:
            header = _header(results, task, main, match["stamp"] if match else "").model_copy(update={"n_expected": None})
            yield Batch(run=header, records=empty_records(), scores=scores)
            found = True
    if not found and not sampled:
        message = "no score in it"
        raise InputError(message, where=str(main), hint="run the evaluation again, or delete it")


def _results_of(source: Source) -> tuple[Results, list[Refusal]]:
    """The results file of a samples file; where it is damaged the samples still go in."""
    others = [path for path in source.files if path != place_of(source)]
    if not others:
        return NO_RESULTS, []
    try:
        return read_results(others[0]), []
    except InputError as err:
        return NO_RESULTS, [Refusal(file=str(others[0]), reason=str(err).removeprefix(f"{others[0]}: "))]


def _header(results: Results, task: str, main: Path, stamp: str) -> RunHeader:
    document = results.document
    start = _moment(text(document.get("date")) or stamp, results)
    return RunHeader(
        model=results.model() or _folder_model(main.parent),
        benchmark=task,
        configuration=configuration(results, task),
        framework="lmms-eval",
        framework_version=text(document.get("lmms_eval_version")) or text(document.get("git_hash")),
        n_expected=results.expected(task),
        started_at=start,
        ended_at=ended(start, results.seconds()),
        settings=results.settings(task),
    )


def _folder_model(folder: Path) -> str:
    """The model where no results file names it."""
    return folder.name.replace("__", "/", 1)


def _moment(stamp: str, results: Results) -> datetime | None:
    """A stamp is local time in --timezone, by default Singapore's; 0.7 writes the option down."""
    match = STAMP.match(stamp)
    if not match:
        return None
    given = results.config.get("resolved_cli_args")
    zone = text(given.get("timezone")) if isinstance(given, dict) else None
    try:
        local = datetime.strptime(match[0], "%Y%m%d_%H%M%S").replace(tzinfo=ZoneInfo(zone) if zone else ZONE)
    except (ValueError, KeyError, OSError):
        return None
    return local.astimezone(UTC)
