"""VLMEvalKit work directories: `outputs/<model>/<eval id>/<model>_<dataset>.xlsx` and what judging made of it.

One run is one model on one data set under one eval id (or in one folder, before there were eval ids): the file of
predictions with its judged files, totals and its part of status.json. Facts and sources: docs/format-vlmevalkit.md.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import orjson

from tracker.batch import Batch, Refusal, RunHeader, Source, empty_records
from tracker.errors import InputError
from tracker.readers.base import Folder, is_file, place_of, read_head, resolved
from tracker.readers.lines import foreign, json_document
from tracker.readers.secrets import masked
from tracker.readers.setting import settings_from
from tracker.readers.single import run_batches
from tracker.readers.values import text
from tracker.readers.vlmevalkit_names import EVAL_ID, STATUS, Group, Judged, columns, eval_folder, groups
from tracker.readers.vlmevalkit_rows import Reading, Verdicts, read_verdicts
from tracker.readers.vlmevalkit_scores import of_status, read_totals

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from tracker.study import Study

UNFINISHED = frozenset({"pending", "infer"})
"""States of a data set in status.json before all predictions are there."""
_STATUS_BYTES = 16 << 20
_OF_THE_COPY = frozenset({"updated_at", "source_run", "reuse_aux"})
"""Fields of a data set in status.json that only say where and when a copy was made."""
_OF_THE_RUN = ("commit", "pred_format", "eval_format")
"""Fields of status.json that are of the run wherever its files lie."""
_EXACT = frozenset({"exact_matching", "em"})


@dataclass(frozen=True, slots=True)
class VlmEvalKitReader:
    """Reads VLMEvalKit work directories."""

    name: str = "vlmevalkit"
    version: int = 1

    def find(self, folder: Folder, study: Study) -> Sequence[Source]:  # noqa: ARG002 - part of what a reader is
        """One source per model, data set and folder. Links to the newest files lead to the source of the file itself."""
        own, links = _without_links(folder)
        found = _sources(folder if own == folder.names else Folder(folder.path, own, folder.folders), {})
        for place in sorted({target.parent for target in links}):
            found += _sources(Folder(place, _names(place)), links)
        return found

    def read(self, source: Source, study: Study) -> Iterator[Batch | Refusal]:  # noqa: ARG002 - part of what a reader is
        """One run; several for a status.json whose data sets have no other files."""
        kind = source.mapping.get("kind")
        if kind == "pickle":
            message = f"nothing but pickles of {source.mapping['dataset']}, which are never loaded: an inference that did not end, or a table that could not be written"
            raise InputError(message, where=source.uri, hint="run VLMEvalKit again with --reuse and PRED_FORMAT=tsv, or delete them")
        if kind == "status":
            yield from _read_status_alone(source)
        else:
            yield from _Run(source).parts()


READER = VlmEvalKitReader()


def _without_links(folder: Folder) -> tuple[list[str], dict[Path, Path]]:
    """Names that are files here, and links by the file in an eval id's folder below to which they lead."""
    places = [one for one in folder.folders if EVAL_ID.match(one)]
    if not places:
        return folder.names, {}
    own, links, root = [], {}, folder.path.resolve()
    for name in folder.names:
        path = folder.path / name
        target = resolved(path) if path.is_symlink() else path
        if target is not path and target.parent.parent == root and target.parent.name in places and is_file(target):
            links[target] = path
        else:
            own.append(name)
    return own, links


def _names(place: Path) -> list[str]:
    """The files of a folder; none where it cannot be looked into."""
    try:
        return sorted(one.name for one in place.iterdir() if is_file(one))
    except OSError:
        return []


def _sources(folder: Folder, links: Mapping[Path, Path]) -> list[Source]:
    """The sources of a folder's files."""
    found = groups(folder, folder.names)
    root, status = folder.path.resolve(), folder.path / STATUS
    document = _document(folder) if STATUS in folder.names and (found or EVAL_ID.match(folder.path.name)) else None
    states = _datasets(document)
    sources = [_source(one, root, _compared(document, one.dataset), status if states else None, links) for one in found]
    alone = [name for name, entry in states.items() if name not in {one.dataset for one in found} and of_status(entry.get("metrics"))]
    if alone:
        mapping = {"kind": "status", "model": eval_folder(folder.path)[0], "datasets": alone}
        sources.append(Source(reader=READER.name, uri=str(root / STATUS), files=(root / STATUS,), mapping=mapping))
    return sources


def _source(group: Group, root: Path, told: str | None, status: Path | None, links: Mapping[Path, Path]) -> Source:
    files = tuple(root / one.name for one in group.files())
    mapping: dict[str, Any] = {"kind": "run", "model": group.model, "dataset": group.dataset}
    if group.predictions is None and not group.judged and not group.totals and not group.damaged:
        mapping["kind"] = "pickle"
    else:
        mapping["predictions"] = None if group.predictions is None else group.predictions.name
        mapping["judged"] = [[one.path.name, one.judge, one.vanilla] for one in group.judged]
        mapping["totals"] = [one.name for one in group.totals]
        mapping |= {"damaged": [one.name for one in group.damaged]} if group.damaged else {}
        mapping["status"] = told
    beside = [*group.files(), *group.pickles, *group.others, *([] if status is None else [status, status.with_name(f"{STATUS}.lock")])]
    claims = {one for path in beside for one in (path, root / path.name)}
    claims |= {link for target, link in links.items() if target.name in {path.name for path in beside} and target.parent == root}
    return Source(reader=READER.name, uri=str(files[0]), files=files, mapping=mapping, claims=tuple(sorted(claims - set(files))))


def _document(folder: Folder) -> Any:
    """What status.json holds; None where it is too large or cannot be read."""
    try:
        path = folder.path / STATUS
        return orjson.loads(path.read_bytes()) if path.stat().st_size <= _STATUS_BYTES else None
    except (OSError, ValueError):
        return None


def _compared(document: Any, dataset: str) -> str | None:
    """A hash of what status.json says of a data set's answers and scores; None where it says nothing.

    Place, time and command of a start are left out: files that `--reuse` copied unchanged are the same run.
    """
    entry = _datasets(document).get(dataset)
    if entry is None:
        return None
    told = {name: value for name, value in entry.items() if name not in _OF_THE_COPY}
    try:
        whole = orjson.dumps([told, *(document.get(name) for name in _OF_THE_RUN)], option=orjson.OPT_SORT_KEYS)
    except TypeError:  # nested too deeply
        return "unknown"
    return hashlib.sha256(whole).hexdigest()[:24]


def _datasets(document: Any) -> dict[str, Any]:
    told = document.get("datasets") if isinstance(document, dict) and "schema_version" in document else None
    return {str(name): entry for name, entry in told.items() if isinstance(entry, dict)} if isinstance(told, dict) else {}


class _Run:
    """One source on its way to batches."""

    def __init__(self, source: Source, document: dict[str, Any] | None = None) -> None:
        self.mapping = source.mapping
        self.main = place_of(source)
        self.by_name = {path.name: path for path in source.files}
        self.refusals: list[Refusal] = []
        self.document = self._status() if document is None else document
        self.entry: dict[str, Any] = _datasets(self.document).get(self.mapping["dataset"], {})
        self.scores, refusals = read_totals(self.by_name[name] for name in self.mapping["totals"])
        self.scores = self.scores or of_status(self.entry.get("metrics"))
        self.refusals += refusals
        self.damaged = [self.by_name[name] for name in self.mapping.get("damaged", ())]
        self.refusals += [Refusal(file=str(path), reason=_damage(path)) for path in self.damaged]

    def parts(self) -> Iterator[Batch | Refusal]:
        """Refusals and batches."""
        name = self.mapping["predictions"]
        path = None if name is None else self.by_name[name]
        verdicts = self._verdicts(path)
        yield from self.refusals
        own = path is None
        if path is None and verdicts:
            path = verdicts[0].file
        header = self.header(verdicts)
        if path is None:
            yield Batch(run=header, records=empty_records(), scores=self.scores)
            return
        reading = Reading(path=path, dataset=self.mapping["dataset"], verdicts=verdicts, own=own)
        given = False
        try:
            for part in run_batches(str(path), header, reading.chunks(), scores=self.scores):
                given = given or isinstance(part, Batch)
                yield part
        except InputError as err:
            if given or not self.scores:
                raise
            reason = err.reason
            yield Refusal(file=str(path), reason=reason)
            broken = header.model_copy(update={"status": "partial", "status_reason": f"predictions: {err.message}"})
            yield Batch(run=broken, records=empty_records(), scores=self.scores)

    def _verdicts(self, predictions: Path | None) -> list[Verdicts]:
        """Judged files, the one that decides first."""
        columns = None if predictions is None else _columns(predictions)
        found = []
        for name, judge, vanilla in self.mapping["judged"]:
            one, refusals = read_verdicts(Judged(self.by_name[name], judge, vanilla), self.mapping["dataset"], columns)
            if vanilla and one.rule is not None:
                one.rule = f"{one.rule}, each option order"
            self.refusals += refusals
            found.append((vanilla and predictions is not None, one))
        wanted = (text(self.entry.get("judge_model")) or "").lower()
        found.sort(key=lambda pair: _rank(pair[1], wanted, vanilla=pair[0]))
        if found and found[0][0]:  # verdicts on single option orders decide nothing
            first = found[0][1]
            found.insert(0, (False, Verdicts(first.file, None, first.label, {}, judge=first.judge)))
        return [one for _, one in found]

    def header(self, verdicts: Sequence[Verdicts]) -> RunHeader:
        """The run."""
        eval_id = next((one for one in (text(self.document.get("eval_id")), self.main.parent.name) if one and EVAL_ID.match(one)), None)
        match = EVAL_ID.match(eval_id) if eval_id else None
        commit = text(self.document.get("commit")) or (match["commit"] if match else None)
        created, status = text(self.document.get("created_at")), self._state(verdicts)
        first = verdicts[0] if verdicts else None
        kept = {
            "eval_id": eval_id,
            "judge": first.judge if first is not None else None,
            "judge_failed": first.failed if first is not None and first.failed else None,
            **{name: self.document.get(name) for name in ("argv", "mode", "reuse", "world_size", "pred_format", "eval_format")},
            **{
                name: self.entry.get(name)
                for name in ("judge_model", "source_run", "reuse_aux", "skip_reason", "error_message", "primary_metric")
            },
        }
        return RunHeader(
            model=self.mapping["model"],
            benchmark=self.mapping["dataset"],
            configuration=settings_from(few_shot=0),
            external_id=f"{eval_id} {created}" if eval_id and created and self.entry else None,
            framework="VLMEvalKit",
            framework_version=commit,
            status="finished" if status is None else "partial",
            status_reason=status,
            started_at=_moment(created),
            ended_at=_moment(text(self.entry.get("updated_at"))),
            settings={name: masked(value) for name, value in kept.items() if value not in (None, [], {})},
        )

    def _state(self, verdicts: Sequence[Verdicts]) -> str | None:
        """Why the run is partial, if it is."""
        problem = next((one.problem for one in verdicts[:1] if one.problem), None)
        if problem:
            return problem
        state, error = text(self.entry.get("status")), text(self.entry.get("error_message"))
        judged = any(one.rule is not None for one in verdicts)
        if self.entry.get("skip_reason"):
            return None
        if self.damaged and not judged:
            return f"{self.damaged[0].name} cannot be read"
        if state in UNFINISHED or (not judged and (error or state == "eval")):
            return f"{STATUS}: {error or state}"[:500]
        return None

    def _status(self) -> dict[str, Any]:
        path = self.main.parent / STATUS
        if not is_file(path):
            return {}
        try:
            document = json_document(path)
        except InputError as err:
            reason = err.reason
            self.refusals.append(Refusal(file=str(path), reason=f"{reason}; what it says of {self.mapping['dataset']} is missing"))
            return {}
        return document if _datasets(document) else {}


def _damage(path: Path) -> str:
    """Why nothing of a file can be read, with the remedy."""
    try:
        head = read_head(path)
    except OSError as err:
        return f"cannot be read: {err.strerror or err} (check its permissions)"
    if not head.strip(b"\xef\xbb\xbf \t\r\n\0"):
        return "empty file (run VLMEvalKit again, or delete it)"
    return foreign(head, path) or "no table any more (run VLMEvalKit again, or delete it)"


def _read_status_alone(source: Source) -> Iterator[Batch | Refusal]:
    """Runs of which nothing but their scores in status.json is left."""
    document = json_document(place_of(source))
    known = document if _datasets(document) else {}
    for dataset in source.mapping["datasets"]:
        mapping = _nothing(source.mapping["model"], dataset)
        one = _Run(Source(reader=source.reader, uri=source.uri, files=source.files, mapping=mapping), known)
        yield from one.refusals
        if one.entry:
            yield Batch(run=one.header(()), records=empty_records(), scores=one.scores)


def _nothing(model: str, dataset: str) -> dict[str, Any]:
    return {"model": model, "dataset": dataset, "predictions": None, "judged": [], "totals": []}


def _rank(one: Verdicts, wanted: str, *, vanilla: bool) -> tuple[bool, bool, bool, bool, str]:
    """A file that decides, the judge that status.json names, another judge, exact matching; then by name."""
    label = one.label.lower()
    return vanilla, one.rule is None and one.problem is None, label != wanted, label in _EXACT, one.file.name


def _columns(path: Path) -> frozenset[str]:
    """Names of the columns of predictions in small letters, none where they cannot be read."""
    return frozenset(name.lower() for name in columns(Folder(path.parent, [path.name]), path.name) or ())


def _moment(stamp: str | None) -> datetime | None:
    """A time with its zone; without one it is some machine's local time, which says nothing."""
    try:
        found = datetime.fromisoformat(stamp) if stamp else None
    except ValueError:
        return None
    return found.astimezone(UTC) if found is not None and found.tzinfo is not None else None
