"""Which files of an OpenCompass work directory belong together: predictions, their shards and leftovers, results, summary, configs.

Read in opencompass/tasks/openicl_{infer,eval}.py, partitioners/size.py and summarizers/default.py of opencompass 0.5.4.
"""

from __future__ import annotations

import csv
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tracker.readers.base import is_special

if TYPE_CHECKING:
    from collections.abc import Iterator

HEAD = 4_096
DEEPEST = 3
"""How many folders a model's name may make, by slashes in it."""
CONFIGS = 8
SUMMARY_BYTES = 8 << 20
JUDGED = "judged-by--"
SUMMARY_HEADER = ("dataset", "version", "metric", "mode")
_PREDICTIONS = re.compile(
    rb'\A(?:\xef\xbb\xbf)?\s*\{\s*"\d+"\s*:\s*\{\s*"(?:origin_prompt|in-context examples|testing input|label: [^"]*|prediction|gold|prompt)"'
)
_TMP_LINE = re.compile(rb'\A(?:\xef\xbb\xbf)?\s*\{\s*"idx"\s*:')
_DETAILS = re.compile(rb'"details"\s*:\s*(?:\{\s*"(?:type|\d+)"\s*:|\[\s*\{\s*"(?:pred|example_abbr|origin_prompt)")')
_METRIC = re.compile(rb'"[^"]+"\s*:\s*-?\d')
_LAST_METRIC = re.compile(rb'[}\]]\s*,(?:\s*"[^"]+"\s*:\s*[^{}\[\]]*?,)??\s*"[^"]+"\s*:\s*-?\d[^{}\[\]]*\}\s*\Z')
"""A number after details, at the end of a file."""
_CONFIG = re.compile(rb"(?s)\bdatasets\s*=\s*\[.*\b(?:abbr|reader_cfg|infer_cfg|eval_cfg)\s*=")
_SHARD = re.compile(r"(?P<base>.+)_(?P<part>\d+)")
_LEFTOVER = re.compile(r"tmp_(?P<dataset>.+)\.jsonl?")


@dataclass(slots=True)
class Task:
    """One model on one data set."""

    model: str
    dataset: str
    predictions: list[Path] = field(default_factory=list)
    shards: list[Path] = field(default_factory=list)
    leftovers: list[Path] = field(default_factory=list)
    """Of an inference that was cut off: used only where there are no predictions."""
    results: list[Path] = field(default_factory=list)
    judged: dict[str, Path] = field(default_factory=dict)
    """Results by the name of the judge that they come from."""
    claims: list[Path] = field(default_factory=list)

    def roles(self) -> list[tuple[str, Path]]:
        """The files that are read, the main one first."""
        found = [("prediction", path) for path in self.predictions] or [("shard", path) for path in self.shards]
        found = found or [("leftover", path) for path in self.leftovers[:1]]
        found += [("result", path) for path in self.results]
        return found + [(f"judge {judge}", path) for judge, path in sorted(self.judged.items())]


@dataclass(slots=True)
class Work:
    """A work directory."""

    root: Path
    tasks: list[Task]
    configs: list[Path]
    summary: Path | None
    claims: list[Path]


def work_of(root: Path, model: str | None = None) -> Work | None:
    """The work directory at a folder that holds predictions/ or results/; None where these are of something else.

    With the name of a model's folder only that model's files are looked at: a tree of many models that is asked about
    folder by folder is not walked as a whole each time.
    """
    predictions, results = _of_model(root / "predictions", model), _of_model(root / "results", model)
    summaries = sorted(_files(root / "summary", ".csv"))
    tables = [path for path in summaries if _is_summary(path)]
    ours = any(is_predictions(path) for _, path in predictions)
    configs = sorted(_files(root / "configs", ".py"), reverse=True)[:CONFIGS]
    if not ours and not (results and (tables or any(_is_config(path) for path in configs))):
        results = [(name, path) for name, path in results if _has_details(path)]
        if not results:
            return None
    listed = {name for path in tables[-1:] for name, *_ in summary_rows(path)}
    others = [path for path in _files(root / "summary", ".txt", ".md", ".csv") if path not in tables[-1:]]
    return Work(
        root,
        list(_tasks(predictions, results, listed)),
        configs,
        tables[-1] if tables else None,
        others,
    )


def is_predictions(path: Path) -> bool:
    """Whether a file holds predictions by index, or what is left of writing them."""
    head = _head(path)
    return _PREDICTIONS.search(head) is not None or _TMP_LINE.search(head) is not None


def summary_rows(path: Path) -> Iterator[tuple[str, str, str, str, str]]:
    """(data set, model, metric, mode, value) of a summary table; cells without a value are left out."""
    try:
        with path.open("rb") as stream:
            lines = stream.read(SUMMARY_BYTES).decode("utf-8-sig", "replace").replace("\0", "").splitlines()
        rows = list(csv.reader(lines))
    except (OSError, csv.Error):
        return
    if not rows or tuple(rows[0][: len(SUMMARY_HEADER)]) != SUMMARY_HEADER:
        return
    models = rows[0][len(SUMMARY_HEADER) :]
    for row in rows[1:]:
        for model, value in zip(models, row[len(SUMMARY_HEADER) :], strict=False):
            if value.strip() not in {"", "-"}:
                yield row[0], model, row[2], row[3], value


Tasks = dict[tuple[str, str], Task]


def _tasks(predictions: list[tuple[str, Path]], results: list[tuple[str, Path]], listed: set[str]) -> Iterator[Task]:
    tasks: Tasks = {}
    evaluated: dict[str, set[str]] = {}
    for model, path in results:
        evaluated.setdefault(model, set()).add(path.stem)
    predicted: dict[str, dict[str, Path]] = {}
    for model, path in predictions:
        if path.suffix == ".json" and not path.name.startswith("tmp_"):
            predicted.setdefault(model, {})[path.stem] = path
    for model, names in predicted.items():
        bases = _shards(set(names), evaluated.get(model, set()), listed)
        for name, path in names.items():
            task = _task(tasks, model, bases.get(name, name))
            (task.predictions if name not in bases else task.shards).append(path)
    _add_leftovers(tasks, predictions)
    _add_results(tasks, results)
    for task in tasks.values():
        task.shards.sort(key=lambda path: int(path.stem.rpartition("_")[2]))
        used = {path for _, path in task.roles()}
        task.claims += [path for path in (*task.shards, *task.leftovers) if path not in used]
        if used:
            yield task


def _task(tasks: Tasks, model: str, dataset: str) -> Task:
    return tasks.setdefault((model, dataset), Task(model, dataset))


def _add_leftovers(tasks: Tasks, predictions: list[tuple[str, Path]]) -> None:
    for model, path in predictions:
        match = _LEFTOVER.fullmatch(path.name.removesuffix(".bak"))
        if match is None:
            continue
        dataset = match["dataset"]
        shard = _SHARD.fullmatch(dataset)
        if (model, dataset) not in tasks and shard and (model, shard["base"]) in tasks:
            dataset = shard["base"]
        task = _task(tasks, model, dataset)
        (task.claims if path.name.endswith(".bak") else task.leftovers).append(path)


def _add_results(tasks: Tasks, results: list[tuple[str, Path]]) -> None:
    for folder, path in results:
        if path.suffix != ".json" or path.name.startswith("tmp_"):
            continue
        model, judge = judge_of(folder)
        task = _task(tasks, model, path.stem)
        if judge is None:
            task.results.append(path)
        else:
            task.judged.setdefault(judge, path)


def _shards(names: set[str], evaluated: set[str], listed: set[str]) -> dict[str, str]:
    """Parts of split tasks and the data set they are of.

    A name that ends in a number is a part unless it has results of its own, or the summary lists it and not the whole.
    """
    found: dict[str, str] = {}
    for name in names:
        match = _SHARD.fullmatch(name)
        if match is None or name in evaluated:
            continue
        base = match["base"]
        first = f"{base}_0"
        whole = base in names or base in evaluated or base in listed
        if whole or (first in names and first not in evaluated and first not in listed):
            found[name] = base
    return found


def judge_of(model: str) -> tuple[str, str | None]:
    """A results folder's model, and the judge that its results come from."""
    head, mark, judge = model.partition(JUDGED)
    return (head.rstrip("_/") or model, judge) if mark and judge else (model, None)


def _of_model(root: Path, model: str | None) -> list[tuple[str, Path]]:
    """Files below predictions/ or results/ with the name of their folder: all, or those of a model and of its judges."""
    if model is None:
        return _tree(root, root)
    if any(part.startswith(".") for part in Path(model).parts):
        return []
    model = judge_of(model)[0]
    own = root / model
    try:
        judges = sorted(one for one in own.parent.iterdir() if one.name.startswith(f"{own.name}_") and JUDGED in one.name)
    except OSError:
        judges = []
    return [one for place in (own, *judges) for one in _tree(root, place) if judge_of(one[0])[0] == model]


def _tree(root: Path, place: Path) -> list[tuple[str, Path]]:
    """Files below a place in predictions/ or results/ with the name of the model: their folder's path."""
    found: list[tuple[str, Path]] = []
    for parent, folders, names in os.walk(place):
        below = Path(parent).relative_to(root)
        folders[:] = sorted(name for name in folders if not name.startswith(".")) if len(below.parts) < DEEPEST else []
        if below.parts:
            paths = [Path(parent) / name for name in sorted(names) if name.endswith((".json", ".jsonl", ".bak"))]
            found += [(below.as_posix(), path) for path in paths if not is_special(path)]
    return found


def _files(folder: Path, *suffixes: str) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.suffix in suffixes and path.is_file())
    except OSError:
        return []


def _is_summary(path: Path) -> bool:
    return _head(path).removeprefix(b"\xef\xbb\xbf").startswith(",".join(SUMMARY_HEADER).encode())


def _has_details(path: Path) -> bool:
    head = _head(path)
    match = _DETAILS.search(head) if head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{") else None
    return match is not None and (_METRIC.search(head, 0, match.start()) is not None or _LAST_METRIC.search(_tail(path)) is not None)


def _is_config(path: Path) -> bool:
    return _CONFIG.search(_head(path)) is not None


def _tail(path: Path) -> bytes:
    try:
        with path.open("rb") as stream:
            stream.seek(max(stream.seek(0, os.SEEK_END) - HEAD, 0))
            return stream.read()
    except OSError:
        return b""


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as stream:
            return stream.read(HEAD)
    except OSError:
        return b""
