"""HELM run folders: run_spec.json, scenario_state.json, stats.json, per_instance_stats.json and what lies beside them.

One folder is one source. It holds a run per split and perturbation. Facts and decisions: docs/format-helm.md.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from tracker.batch import Refusal, RunHeader, Source
from tracker.errors import InputError
from tracker.readers.base import HEAD_BYTES, place_of
from tracker.readers.helm_rows import Answer, Place, Rows, by_run, joined, judged, shown
from tracker.readers.helm_spec import Spec, main_split, perturbation_name, perturbed, scores_of
from tracker.readers.lines import LFS_POINTER, json_document
from tracker.readers.single import chunk_of, run_batches
from tracker.readers.tabular import without_gc
from tracker.readers.values import number, text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from tracker.batch import Batch
    from tracker.readers.base import Folder
    from tracker.readers.tabular import Chunk
    from tracker.study import Study

STATES, STATISTICS, TOTALS = "scenario_state.json", "per_instance_stats.json", "stats.json"
SPEC, SCENARIO, INSTANCES, PREDICTIONS = "run_spec.json", "scenario.json", "instances.json", "display_predictions.json"
MAIN = (STATES, STATISTICS, TOTALS)
OWN_NAMES = frozenset({STATES, STATISTICS})
"""Names that nothing else uses: such a file without readable content is refused with a reason, not skipped."""
BESIDE = ("display_requests.json", "input_instances.json")
CHUNK = 2_000
_MARKS = {
    STATES: re.compile(rb'"request_states"\s*:|"adapter_spec"\s*:'),
    STATISTICS: re.compile(rb'\A\s*\[\s*\{\s*"instance_id"\s*:|"train_trial_index"\s*:'),
    TOTALS: re.compile(rb'"name"\s*:\s*\{\s*"name"\s*:'),
    SPEC: re.compile(rb'"(?:scenario_spec|adapter_spec)"\s*:'),
}
_RUN_NAME = re.compile(rb'(?:\xef\xbb\xbf)?\s*\{\s*"name"\s*:\s*"\s*[^"\s]')


@dataclass(frozen=True, slots=True)
class HelmReader:
    """Reads HELM run folders, whole or any part of one."""

    name: str = "helm"
    version: int = 1

    def find(self, folder: Folder, study: Study) -> Sequence[Source]:  # noqa: ARG002 - part of what a reader is
        """One source, where a folder holds answers or statistics of a HELM run."""
        found = [name for name in MAIN if name in folder.names and _is_ours(name, folder.head(name))]
        if not found:
            return ()
        beside = [name for name in (SPEC, *MAIN, SCENARIO) if name in folder.names and name not in found]
        instead = [name for name in (INSTANCES, PREDICTIONS) if name in folder.names]
        root = folder.path.resolve()
        files = tuple(root / name for name in (*found, *beside, *instead))
        claims = tuple(root / name for name in BESIDE if name in folder.names)
        named = {} if SPEC in folder.names and _names_run(folder.head(SPEC)) else {"folder": root.name}  # it names the run
        return (Source(reader=self.name, uri=str(files[0]), files=files, mapping=named, claims=claims),)

    def read(self, source: Source, study: Study) -> Iterator[Batch | Refusal]:  # noqa: ARG002 - part of what a reader is
        """A run for each split and perturbation."""
        return _read(source)


READER = HelmReader()


def _is_ours(name: str, head: bytes) -> bool:
    if name in OWN_NAMES and (head.startswith(LFS_POINTER) or not head.strip()):
        return True
    return _MARKS[name].search(head) is not None or (name in OWN_NAMES and head.lstrip()[:1] in {b"{", b"["})


def _names_run(head: bytes) -> bool:
    """Whether run_spec.json names its run, so that the folder's name does not count; of a long one by its beginning, where HELM puts the name."""
    try:
        document = json.loads(head.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return len(head) >= HEAD_BYTES and _RUN_NAME.match(head) is not None
    return isinstance(document, dict) and bool((text(document.get("name")) or "").strip())


@dataclass(slots=True)
class _Files:
    """The files of a run folder, each read when it is wanted; a damaged one is refused and read as if it were missing."""

    paths: Mapping[str, Path]
    refusals: list[Refusal]

    def read(self, name: str, kind: type) -> Any:
        """A file's value, empty where the file is missing or damaged."""
        path = self.paths.get(name)
        if path is None:
            return kind()
        try:
            value = json_document(path)
        except InputError as err:
            self.refusals.append(Refusal(file=str(path), reason=err.reason))
            return kind()
        if not isinstance(value, kind):
            wanted = "a list" if kind is list else "an object"
            reason = f"expected {wanted}, found {type(value).__name__} (write the file again with helm-run)"
            self.refusals.append(Refusal(file=str(path), reason=reason))
            return kind()
        return value


def _read(source: Source) -> Iterator[Batch | Refusal]:
    paths = {path.name: path for path in source.files}
    files = _Files(paths, [])
    main = place_of(source)
    with without_gc():
        statistics, odd = judged(files.read(STATISTICS, list), str(paths.get(STATISTICS, main)))
        spec, states = _spec_and_states(files, main.parent.name)
        predictions = shown(files.read(PREDICTIONS, list))
        if not states and INSTANCES in paths:
            states = _states_of(files.read(INSTANCES, list), [*statistics, *predictions])
        answers, refused = joined(states, statistics, str(paths.get(STATES, paths.get(INSTANCES, main))))
        del states, statistics
    totals = files.read(TOTALS, list)
    yield from files.refusals
    yield from (*refused, *odd)
    if not answers and not totals:
        message = "holds no answers and no statistics that can be used"
        raise InputError(message, where=str(main), hint="write the run folder again with helm-run")
    model = spec.model
    if model is None:
        message = "names no model"
        raise InputError(message, where=str(main), hint=f"put {SPEC} beside it, or name the folder as HELM does: ...model=ORG_NAME")
    lost = [name for name in (STATES, STATISTICS) if any(one.file == str(paths.get(name)) for one in files.refusals)]
    damage = f"{' and '.join(lost)} cannot be used" if lost else None
    yield from _runs(spec, model, Rows(spec, answers, predictions), answers, totals, main, damage)


def _spec_and_states(files: _Files, folder: str) -> tuple[Spec, list[Any]]:
    document = files.read(SPEC, dict)
    state = files.read(STATES, dict)
    states = state.get("request_states")
    if state and not isinstance(states, list):
        files.refusals.append(
            Refusal(file=str(files.paths[STATES]), reason="expected a list of request_states (write the file again with helm-run)")
        )
    adapter = document.get("adapter_spec")
    if not isinstance(adapter, dict):
        adapter = state.get("adapter_spec")
    spec = Spec(document, files.read(SCENARIO, dict), adapter if isinstance(adapter, dict) else {}, folder)
    return spec, states if isinstance(states, list) else []


def _states_of(instances: Sequence[Any], places: Sequence[Place]) -> list[Any]:
    """Request states as far as instances tell them, for what was answered: where scenario_state.json itself is not there."""
    known: dict[tuple[str | None, str | None], Any] = {}
    for one in instances:
        if isinstance(one, dict):
            known.setdefault((text(one.get("id")), perturbation_name(one.get("perturbation"))), one)
    asked = (place for place in dict.fromkeys(places) if (place.instance, place.perturbation) in known)
    return [{"instance": known[place.instance, place.perturbation], "train_trial_index": place.trial} for place in asked]


def _runs(
    spec: Spec, model: str, made: Rows, answers: Sequence[Answer], totals: Sequence[Any], main: Path, damage: str | None
) -> Iterator[Batch | Refusal]:
    split = main_split([*(one.split or "" for one in answers if not one.place.perturbation), *_splits(totals)])
    groups = by_run(answers, split)
    for other in (split, *_splits(totals)):
        groups.setdefault((other, None), [])
    worst = perturbed(totals)
    for (part, perturbation), mine in groups.items():
        scores, count = scores_of(totals, part, perturbation, worst=worst)
        if not mine and not scores:
            continue
        header = _header(spec, model, mine, count, perturbation)
        benchmark = spec.benchmark if part == split else f"{spec.benchmark} ({part})"
        status = {"status": "partial", "status_reason": damage} if damage else {}
        yield from run_batches(str(main), header.model_copy(update={"benchmark": benchmark, **status}), _chunks(made, mine), scores=scores)


def _chunks(made: Rows, answers: Sequence[Answer]) -> Iterator[Chunk]:
    for start in range(0, len(answers), CHUNK):
        some = answers[start : start + CHUNK]
        yield chunk_of([made.row(one) for one in some], [one.position for one in some], "request state")


def _splits(totals: Sequence[Any]) -> list[str]:
    names = (one.get("name") for one in totals if isinstance(one, dict))
    found = (text(name.get("split")) for name in names if isinstance(name, dict))
    return list(dict.fromkeys(one for one in found if one))


def _header(spec: Spec, model: str, answers: Sequence[Answer], count: int | None, perturbation: str | None) -> RunHeader:
    started, ended = _times(answers)
    configuration = spec.configuration()
    if perturbation is not None:
        configuration = configuration.model_copy(update={"variant": f"perturbation={perturbation}"})
    trials = len({one.place.trial for one in answers}) or 1
    return RunHeader(
        model=model,
        configuration=configuration,
        framework="HELM",
        n_expected=count * trials if count else None,
        started_at=started,
        ended_at=ended,
        settings=spec.settings(),
    )


def _times(answers: Sequence[Answer]) -> tuple[datetime | None, datetime | None]:
    """First and last request. A cached answer has the time at which it was first given."""
    begun: list[float] = []
    done: list[float] = []
    for answer in answers:
        for state in answer.states:
            result = state.get("result")
            if isinstance(result, dict) and (at := number(result.get("request_datetime")).value) is not None and 0 < at < 32_503_680_000:
                begun.append(at)
                done.append(at + max(0.0, min(number(result.get("request_time")).value or 0.0, 1e7)))
    if not begun:
        return None, None
    first = datetime.fromtimestamp(min(begun), tz=UTC)
    return first, first + timedelta(seconds=max(done) - min(begun))
