"""Inspect (inspect_ai) logs: `.eval` archives and `.json` documents. One log is one run; facts: docs/format-inspect-ai.md."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from tracker.batch import Batch, Refusal, Source, empty_records
from tracker.errors import InputError
from tracker.readers.base import place_of, resolved
from tracker.readers.inspect_log import Log
from tracker.readers.inspect_parse import parse, parse_sample
from tracker.readers.inspect_salvage import salvaged
from tracker.readers.inspect_samples import Reading, summaries
from tracker.readers.inspect_scores import OLD_NAME
from tracker.readers.inspect_zip import FIRST_NAMES, MAGIC, Archive, MemberError, first_name
from tracker.readers.lines import LFS_POINTER, foreign, json_document, shorten
from tracker.readers.single import chunk_of, run_batches
from tracker.readers.tabular import without_gc
from tracker.readers.values import as_mapping, text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tracker.batch import RunHeader
    from tracker.readers.base import Folder
    from tracker.readers.tabular import Chunk
    from tracker.study import Study

CHUNK_SAMPLES = 2_000
CHUNK_CHARACTERS = 16 << 20
LEARNT_SAMPLES = 100
LARGEST_DOCUMENT = 2 << 30
"""Bytes of a `.json` log that are taken into memory."""
ENOUGH_MARKS = 4
"""Of five marks, so that one damaged byte does not hide a log."""
_BLANK = b"\xef\xbb\xbf \t\r\n"
_FIRST_KEY = re.compile(rb'\A\{\s*"(?:version|status|eval|plan|error|invalidated)"\s*:')
_SPEC = re.compile(
    rb'"eval"\s*:\s*\{\s*"(?:eval_set_id|eval_id|run_id|created|task\w*|solver\w*|tags|dataset|sandbox|model\w*|config|revision|packages|metadata|scorers|metrics)"\s*:'
)
_STATUS = re.compile(rb'"status"\s*:\s*"(?:started|success|cancelled|error)"')
_OWN = re.compile(rb'"(?:task_id|run_id|created|dataset)"\s*:')
_PLAN = re.compile(rb'"plan"\s*:\s*\{')
_INDEX = re.compile(rb'\{\s*"[^"]*\.(?:eval|json)"\s*:')
_EMPTY_INDEX = re.compile(rb"\{\s*\}\s*\Z")
_EVAL_SET = re.compile(rb'\{\s*"eval_set_id"\s*:\s*"')
_EVAL_SET_ID = re.compile(rb"[\w.-]{1,128}\s*\Z")
SIDECARS = {
    "logs.json": (_INDEX, _EMPTY_INDEX),
    "listing.json": (_INDEX, _EMPTY_INDEX),
    "eval-set.json": (_EVAL_SET,),
    ".eval-set-id": (_EVAL_SET_ID,),
}
"""Indexes of logs: their names, and how their content begins."""
_MEMBER = re.compile(r"_journal/start\.json|header\.json|samples/.+_epoch_\d+\.json")
"""First members of a log whose name does not say that it is one."""
_MARKS = (_FIRST_KEY, _STATUS, _SPEC, _OWN, _PLAN)
_HEADER, _START = "header.json", "_journal/start.json"


@dataclass(frozen=True, slots=True)
class InspectReader:
    """Reads logs of inspect_ai of every version, without inspect_ai."""

    name: str = "inspect_ai"
    version: int = 1

    def find(self, folder: Folder, study: Study) -> Sequence[Source]:  # noqa: ARG002 - part of what a reader is
        """One source per log. Indexes of logs (`logs.json`, `listing.json`, `eval-set.json`) belong to the first."""
        root = folder.path.resolve()
        places = list(dict.fromkeys(resolved(root / name) for name in folder.names if is_log(name, folder.head(name))))
        sidecars = tuple(root / name for name in folder.names if root / name not in places and _is_sidecar(name, folder))
        return [
            Source(reader=self.name, uri=str(place), files=(place,), claims=sidecars if not at else ()) for at, place in enumerate(places)
        ]

    def read(self, source: Source, study: Study) -> Iterator[Batch | Refusal]:  # noqa: ARG002 - part of what a reader is
        """The run of a log."""
        path = place_of(source)
        try:
            with path.open("rb") as stream:
                head = stream.read(64)
        except OSError as err:
            message = f"cannot be read: {err.strerror or err}"
            raise InputError(message, where=str(path)) from err
        if not head:
            message = "empty file"
            raise InputError(message, where=str(path), hint="delete it or run the evaluation again")
        problem = foreign(head, path)
        if problem and head.startswith(LFS_POINTER):
            raise InputError(problem, where=str(path))
        if head.startswith(MAGIC) or path.suffix == ".eval":
            yield from _read_archive(path)
        else:
            yield from _read_document(path)


READER = InspectReader()


def is_log(name: str, head: bytes) -> bool:
    """Whether a file is a log, by its first bytes; a pointer or an empty file is known by its name and refused when read."""
    if head.startswith(MAGIC):
        first = first_name(head)
        return name.endswith(".eval") or (first is not None and _MEMBER.fullmatch(first) is not None)
    if name.endswith(".eval"):
        return not head.strip(_BLANK) or head.startswith(LFS_POINTER) or any(one.encode() in head[:512] for one in FIRST_NAMES)
    start = head.lstrip(_BLANK)
    if not start.startswith(b"{") or b'"eval"' not in start or _INDEX.match(start):
        return False
    return sum(mark.search(start) is not None for mark in _MARKS) >= ENOUGH_MARKS


def _is_sidecar(name: str, folder: Folder) -> bool:
    """Whether a file is an index of logs, by its name and its content."""
    forms = SIDECARS.get(name, ())
    return bool(forms) and any(form.match(folder.head(name).lstrip(_BLANK)) for form in forms)


@dataclass(slots=True)
class _Run:
    """A run on its way: its log, how its samples are read, and what was lost."""

    path: Path
    log: Log
    reading: Reading = field(init=False)
    lost: list[str] = field(default_factory=list)
    seen: int = 0
    scored: int = 0

    def __post_init__(self) -> None:
        spec, named = self.log.spec, self.log.order()
        self.reading = Reading(
            model=text(spec.get("model")) or "",
            benchmark=self.log.benchmark() or "",
            order=named,
            headline=self.log.headline(),
            old_name=named[0] if named else OLD_NAME,
        )

    def batches(self, samples: Iterator[tuple[int, Any] | Refusal]) -> Iterator[Batch | Refusal]:
        """The run in pieces; the last one knows how it ended."""
        header = self.log.header()
        if header.model != self.reading.model and header.model in as_mapping(self.log.stats.get("model_usage")):
            self.reading.model = header.model
        held: Batch | None = None
        for part in run_batches(str(self.path), header, self._chunks(samples), scores=self.log.aggregates()):
            if isinstance(part, Refusal):
                yield part
                continue
            if held is not None:
                yield held
            held = part
        if held is None:
            held = Batch(run=header, records=empty_records(), scores=self.log.aggregates())
        tables = {name: getattr(held, name) for name in ("records", "questions", "labels", "record_scores", "scores")}
        yield Batch(run=self._ended(held.run), **tables)

    def _chunks(self, samples: Iterator[tuple[int, Any] | Refusal]) -> Iterator[Chunk | Refusal]:
        told = samples if self.reading.profiles.by_name else self._learnt(samples)
        while True:
            with without_gc():
                rows, refusals = self._some(told)
            self.lost += [one.reason for one in refusals]
            yield from refusals
            if rows:
                yield chunk_of([row for _, row in rows], [place for place, _ in rows], "sample")
            elif not refusals:
                return

    def _some(self, samples: Iterator[tuple[int, Any] | Refusal]) -> tuple[list[tuple[int, dict[str, Any]]], list[Refusal]]:
        """The rows of the next samples with their places, and what was refused on the way; nothing at the end."""
        rows: list[tuple[int, dict[str, Any]]] = []
        refusals: list[Refusal] = []
        size = 0
        for one in samples:
            row = one if isinstance(one, Refusal) else self._row(*one)
            if isinstance(row, Refusal):
                refusals.append(row)
            else:
                rows.append(row)
                size += sum(len(value) for value in row[1].values() if isinstance(value, str))
            if len(rows) + len(refusals) >= CHUNK_SAMPLES or size >= CHUNK_CHARACTERS:
                break
        return rows, refusals

    def _learnt(self, samples: Iterator[tuple[int, Any] | Refusal]) -> Iterator[tuple[int, Any] | Refusal]:
        """The same samples; what their scores mean is learnt from the first ones, where no summaries tell it."""
        first = list(islice(samples, LEARNT_SAMPLES))
        self.reading.learn(one[1] for one in first if not isinstance(one, Refusal))
        yield from chain(first, samples)

    def _row(self, place: int, sample: Any) -> tuple[int, dict[str, Any]] | Refusal:
        row = "expected an object (run the evaluation again)" if not isinstance(sample, dict) else self.reading.row(sample)
        if isinstance(row, str):
            return Refusal(file=str(self.path), line=place, reason=f"sample {place}: {row}", text=shorten(str(sample)[:1000]))
        self.seen += 1
        self.scored += row["status"] is None
        return place, row

    def _ended(self, header: RunHeader) -> RunHeader:
        """The header, now that all samples have passed."""
        reading = self.reading
        told = {"samples": reading.counts, "primary_score": reading.primary, "score_values": reading.profiles.words()}
        changes: dict[str, Any] = {"settings": header.settings | {name: value for name, value in told.items() if value}}
        status, reason = header.status, header.status_reason
        if status == "failed" and self.scored:
            status = "partial"
        if self.lost and (status == "finished" or self.log.status == "started"):
            status, reason = "partial", self.lost[0] if len(self.lost) == 1 else f"{len(self.lost)} losses, first: {self.lost[0]}"
        elif reading.counts.get("invalidated") and status == "finished":
            status, reason = "partial", f"{reading.counts['invalidated']} samples were declared invalid"
        if not self.seen and not self.lost and header.status == "finished":
            changes["n_expected"] = None
        return header.model_copy(update={**changes, "status": status, "status_reason": shorten(reason) if reason else None})


def _read_archive(path: Path) -> Iterator[Batch | Refusal]:
    with Archive(path) as archive:
        refusals: list[Refusal] = []
        run = _Run(path, _archive_log(archive, refusals))
        if archive.damage is not None:
            found = len(archive.names("samples/"))
            reason = f"the archive has no directory, it is cut off or damaged: {found} samples were found one by one (copy it again, or run: inspect log recover)"
            refusals.append(Refusal(file=str(path), reason=reason))
        run.lost += [one.reason for one in refusals]
        yield from refusals
        run.reading.learn(summaries(_summaries(archive)))
        yield from run.batches(_members(archive))


def _archive_log(archive: Archive, refusals: list[Refusal]) -> Log:
    """The header; in a log that was not finished, what was written at its start."""
    reasons: list[str] = []
    for name in (_HEADER, _START):
        if name not in archive.members:
            continue
        try:
            document = parse(archive.read(name), f"{archive.path}: {name}")
        except (MemberError, InputError) as err:
            reasons.append(f"{name}: {_said(err, archive, name)}")
            continue
        if _is_header(document):
            refusals += [Refusal(file=str(archive.path), reason=reason) for reason in reasons]
            if name == _START:
                document = {**document, "status": "started"}
            return Log(document)
        reasons.append(f"{name}: expected an object with `eval.task` and `eval.model` (copy the log again)")
    message = "; ".join(reasons) or "no header.json and no _journal/start.json in the archive"
    raise InputError(message, where=str(archive.path), hint=None if reasons else "it is cut off or no Inspect log: copy it again")


def _is_header(document: Any) -> bool:
    spec = as_mapping(as_mapping(document).get("eval"))
    return bool(text(spec.get("task")) and text(spec.get("model")))


def _summaries(archive: Archive) -> Iterator[Any]:
    """Summaries of the samples, of which only the scores are used: their texts are shortened, their scores are not."""
    whole = ["summaries.json"] if "summaries.json" in archive.members else []
    for name in whole or archive.names("_journal/summaries/"):
        try:
            yield parse(archive.read(name), name)
        except (MemberError, InputError):
            continue


def _members(archive: Archive) -> Iterator[tuple[int, Any] | Refusal]:
    for place, name in enumerate(archive.names("samples/"), 1):
        try:
            sample = parse_sample(archive.read(name), f"{archive.path}: {name}")
        except (MemberError, InputError) as err:
            yield Refusal(file=str(archive.path), line=place, reason=f"{name}: {_said(err, archive, name)}")
            continue
        yield place, sample


def _said(err: Exception, archive: Archive, name: str) -> str:
    return str(err).removeprefix(f"{archive.path}: {name}").removeprefix(": ")


def _read_document(path: Path) -> Iterator[Batch | Refusal]:
    size = path.stat().st_size
    if size > LARGEST_DOCUMENT:
        message = f"a JSON log of {size >> 20} MB, at most {LARGEST_DOCUMENT >> 20} MB are read"
        raise InputError(message, where=str(path), hint="run: inspect log convert --to eval")
    damage: str | None = None
    try:
        document = json_document(path)
    except InputError as err:
        document, damage = salvaged(path, str(err).removeprefix(f"{path}: "))
        if document is None:
            raise
    if not _is_header(document):
        message = "expected an Inspect log: an object with `eval.task` and `eval.model`"
        raise InputError(message, where=str(path), hint="write it again: inspect log dump")
    samples = document.pop("samples", None)
    run = _Run(path, Log(document))
    if damage is not None:
        run.lost.append(damage)
        yield Refusal(file=str(path), reason=damage)
    listed = samples if isinstance(samples, list) else []
    if samples is not None and not isinstance(samples, list):
        reason = "samples: expected a list (write the log again: inspect log dump)"
        run.lost.append(reason)
        yield Refusal(file=str(path), reason=reason)
    run.reading.learn(listed)
    yield from run.batches((place, sample) for place, sample in enumerate(listed, 1))
