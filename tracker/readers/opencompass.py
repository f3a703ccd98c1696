"""OpenCompass work directories: predictions/, results/, summary/ and configs/ of one start.

One source is one model on one data set. Facts and decisions: docs/format-opencompass.md.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tracker.batch import AggregateScore, Batch, Refusal, RunHeader, Source, empty_records
from tracker.errors import InputError
from tracker.readers import opencompass_config as config
from tracker.readers import opencompass_files as files
from tracker.readers.base import place_of
from tracker.readers.opencompass_layout import Work, summary_rows, work_of
from tracker.readers.opencompass_rows import Details, Table
from tracker.readers.single import chunk_of, run_batches
from tracker.readers.values import number

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from tracker.readers.base import Folder
    from tracker.readers.tabular import Chunk
    from tracker.study import Study

FRAMEWORK = "OpenCompass"
KINDS = ("predictions", "results")
CHUNK = 1_000
UNFINISHED = "no result file: the evaluation did not finish"
_STAMP = re.compile(r"\d{8}_\d{6}")


@dataclass(frozen=True, slots=True)
class OpenCompassReader:
    """Reads OpenCompass work directories, and single folders and files of one."""

    name: str = "opencompass"
    version: int = 1

    def find(self, folder: Folder, study: Study) -> Sequence[Source]:  # noqa: ARG002 - part of what a reader is
        """One source per model and data set, and one for a summary that lists more."""
        if any(kind in folder.folders for kind in KINDS):
            work = work_of(folder.path.resolve())
            return tuple(_sources(work)) if work else ()
        kind = _kind_above(folder.path)
        if kind is None or not any(name.endswith((".json", ".jsonl")) for name in folder.names):
            return ()
        work = work_of(kind.parent, model=folder.path.relative_to(kind).as_posix())
        if work is None:
            return ()
        here = {folder.path / name for name in folder.names}
        work.tasks = [task for task in work.tasks if any(path in here for _, path in task.roles())]
        work.summary, work.claims = None, []
        return tuple(_sources(work))

    def read(self, source: Source, study: Study) -> Iterator[Batch | Refusal]:  # noqa: ARG002 - part of what a reader is
        """One run; for a summary, a run without records per model and data set that it alone knows."""
        return _summary(source) if source.mapping.get("layout") == "summary" else _task(source)


READER = OpenCompassReader()


def _kind_above(path: Path) -> Path | None:
    """The folder predictions/ or results/ of a work directory that a model's folder lies in."""
    return next((one for one in list(path.parents)[:3] if one.name in KINDS), None)


def _sources(work: Work) -> Iterator[Source]:
    known = {(task.model, task.dataset) for task in work.tasks}
    summary = _summary_source(work, known)
    claims = work.claims if summary or work.summary is None else [*work.claims, work.summary]
    for task in work.tasks:
        roles = task.roles() + [("config", path) for path in work.configs]
        mapping = {"model": task.model, "dataset": task.dataset, "roles": [role for role, _ in roles]}
        paths = tuple(path for _, path in roles)
        yield Source(reader=READER.name, uri=str(paths[0]), files=paths, mapping=mapping, claims=(*task.claims, *claims))
        claims = []
    if summary is not None:
        yield summary


def _summary_source(work: Work, known: set[tuple[str, str]]) -> Source | None:
    """The summary, where it lists more than was evaluated here."""
    if work.summary is None or all((model, dataset) in known for dataset, model, *_ in summary_rows(work.summary)):
        return None
    mapping = {"layout": "summary", "known": sorted(map(list, known))}
    paths = (work.summary, *work.configs)
    return Source(reader=READER.name, uri=str(work.summary), files=paths, mapping=mapping, claims=() if work.tasks else tuple(work.claims))


def _task(source: Source) -> Iterator[Batch | Refusal]:
    model, dataset = str(source.mapping["model"]), str(source.mapping["dataset"])
    roles = list(zip(source.mapping["roles"], source.files, strict=True))
    main = place_of(source)
    predicted = files.predictions([one for one in roles if one[0] in {"prediction", "shard", "leftover"}])
    refusals = predicted.refusals
    results = [
        (role.removeprefix("judge ") if role.startswith("judge ") else None, path, files.result(path, refusals))
        for role, path in roles
        if role == "result" or role.startswith("judge ")
    ]
    rows = predicted.rows
    details: list[Details] = []
    scores: list[AggregateScore] = []
    for judge, path, document in results:
        found, problem = files.details_of(document or {}, 0 if predicted.damage else len(rows), judge)
        stated = files.scores(document or {}, len(rows) if rows and not predicted.damage else len(found.entries) if found else 0, judge)
        scores += stated
        if found is not None:
            details.append(found)
        if problem or (document and judge and not stated and found is None):
            reason = problem or "a judge's answers without scores: they are not read"
            refusals.append(Refusal(file=str(path), reason=reason))
    if not rows and details:
        rows = files.rows_of(details[0])
    yield from refusals
    if not rows and not scores:
        message = "holds no predictions and no scores that can be used"
        raise InputError(message, where=str(main), hint="run OpenCompass again, or delete the file")
    table = Table(rows, details)
    stated_accuracy = next((number(document["accuracy"]).value for _, _, document in results if document and "accuracy" in document), None)
    if table.kind in {"ppl", "ll"} and not details and not predicted.damage and not table.agrees(stated_accuracy):
        table.by_equality = False
        differs = f"accuracy is {stated_accuracy}, but {table.accuracy():.4f} % of predictions are equal to gold: the records stay unscored"
        yield Refusal(file=str(main), reason=f"{differs} (evaluate again with --dump-eval-details)")
    unfinished = _unfinished(roles, predicted, [document for _, _, document in results])
    configs = [path for role, path in roles if role == "config"]
    for path in config.damaged(configs):
        reason = (
            "a configuration that cannot be understood: what it says of the model and the data set is missing (copy it again, or delete it)"
        )
        yield Refusal(file=str(path), reason=reason)
    header = _header(model, dataset, configs, table, main, unfinished)
    yield from run_batches(str(main), header, _chunks(table), scores=scores)


def _chunks(table: Table) -> Iterator[Chunk]:
    for start in range(0, len(table.rows), CHUNK):
        some = table.rows[start : start + CHUNK]
        yield chunk_of([table.native(index, row) for index, row in some], [index for index, _ in some], "prediction")


def _unfinished(
    roles: Sequence[tuple[str, Path]], predicted: files.Predictions, documents: Sequence[Mapping[str, Any] | None]
) -> str | None:
    """Why a run is partial."""
    leftover = next((path.name for role, path in roles if role == "leftover"), None)
    if leftover is not None:
        return f"inference was cut off ({leftover})"
    if predicted.damage is not None:
        return predicted.damage
    if not documents:
        return UNFINISHED
    failed = next((found for one in documents if one and (found := files.failure(one))), None)
    if failed is not None:
        return f"the evaluation failed: {failed}"
    return "the result file is damaged" if all(one is None for one in documents) else None


def _header(model: str, dataset: str, configs: Sequence[Path], table: Table, main: Path, reason: str | None) -> RunHeader:
    mine, its = config.entries(configs, model, dataset)
    generates = table.kind == "gen"
    told = {"model_abbr": model, "inference": table.kind, "option_scores": table.scores_are, "stamp": _stamp(main)}
    return RunHeader(
        model=config.model_name(model, mine),
        benchmark=dataset,
        configuration=config.configuration(mine, its, generates=generates, shots=table.shots),
        framework=FRAMEWORK,
        status="partial" if reason else "finished",
        status_reason=reason,
        settings={name: value for name, value in told.items() if value is not None} | config.settings(mine, its),
    )


def _stamp(main: Path) -> str | None:
    """The start's stamp, which is local time of some machine: kept, but no time."""
    return next((one.name for one in main.parents if _STAMP.fullmatch(one.name)), None)


def _summary(source: Source) -> Iterator[Batch | Refusal]:
    main = place_of(source)
    known = {(model, dataset) for model, dataset in source.mapping["known"]}
    runs: dict[tuple[str, str], tuple[str, list[AggregateScore]]] = {}
    for dataset, model, metric, mode, value in summary_rows(main):
        stated = number(value)
        if stated == (None, None):
            yield Refusal(file=str(main), reason=f"{dataset}, {metric}: expected a number, found {value[:80]!r} (write the summary again)")
        elif (model, dataset) not in known and model and dataset:
            one = AggregateScore(metric=metric or "score", value=stated.value, special=stated.special)
            runs.setdefault((model, dataset), (mode, []))[1].append(one)
    if not runs and not known:
        message = "holds no scores that can be used"
        raise InputError(message, where=str(main), hint="write the summary again, or delete the file")
    for (model, dataset), (mode, scores) in runs.items():
        header = _header(model, dataset, source.files[1:], Table([], kind=mode), main, None)
        yield Batch(run=header, records=empty_records(), scores=tuple(scores))
