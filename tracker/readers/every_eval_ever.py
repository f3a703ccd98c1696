"""Every Eval Ever documents: `<uuid>.json` and, beside it, `<uuid>_samples.jsonl` (schemas 0.2.0 to 0.3.0).

One run is one benchmark of one document. Facts and rules: docs/format-every-eval-ever.md.
"""

from __future__ import annotations

import re
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import orjson

from tracker.batch import Batch, Refusal, Source, empty_records
from tracker.errors import InputError
from tracker.readers.base import Folder, is_file
from tracker.readers.every_eval_ever_document import NO_DOCUMENT, read_document
from tracker.readers.every_eval_ever_samples import Samples
from tracker.readers.lines import LFS_POINTER
from tracker.readers.single import CUT_OFF, chunk_of, run_batches

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path
    from typing import Any

    from tracker.batch import RunHeader
    from tracker.readers.every_eval_ever_document import Document
    from tracker.readers.every_eval_ever_samples import Run
    from tracker.study import Study

SAMPLES = "_samples.jsonl"
CHUNK_ROWS = 2_000
CHUNK_BYTES = 16 << 20
_UUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_NAME = re.compile(rf"{_UUID}(?:\.json|{SAMPLES})$")
_OWN_ID = re.compile(rb'"evaluation_id"\s*:\s*("(?:[^"\\]|\\.)*")')
_ID = re.compile(rb'"evaluation_id"\s*:\s*"')
_DOCUMENT = re.compile(rb'"(?:retrieved_timestamp|source_metadata|model_info|evaluation_results)"\s*:\s*["{\[]')
_ROW = re.compile(rb'"sample_id"\s*:')
_VERDICT = re.compile(rb'"(?:evaluation_name|answer_attribution|interaction_type)"\s*:')
_FILE_PATH = re.compile(rb'"file_path"\s*:\s*"([^"]+\.jsonl)"')
_BLANK = b"\xef\xbb\xbf \t\r\n"
_TAIL = 4096


@dataclass(frozen=True, slots=True)
class EveryEvalEverReader:
    """Reads aggregate documents with their samples, and either alone."""

    name: str = "every_eval_ever"
    version: int = 1

    def find(self, folder: Folder, study: Study) -> Sequence[Source]:  # noqa: ARG002 - part of what a reader is
        """Documents with the samples file beside them; samples files without a document stand alone."""
        root = folder.path.resolve()
        documents = {name: _samples_of(folder, name) for name in folder.names if _is_document(folder, name)}
        taken = {samples for samples in documents.values() if samples}
        for name in folder.names:
            if name not in taken and _is_samples(folder, name):
                partner = f"{name.removesuffix(SAMPLES)}.json"
                beside = name.endswith(SAMPLES) and partner not in folder.names and _document_on_disk(root / partner)
                documents[partner if beside else name] = name if beside else None
        owners = _owners(folder, documents)
        return [
            Source(
                reader=self.name,
                uri=str(root / name),
                files=tuple(root / one for one in (name, samples) if one is not None),
                mapping=_others(name, owners.get(samples or "", {})),
            )
            for name, samples in sorted(documents.items())
        ]

    def read(self, source: Source, study: Study) -> Iterator[Batch | Refusal]:  # noqa: ARG002 - part of what a reader is
        """One run per benchmark of the document and of its samples."""
        paths = list(source.files)
        document, samples = NO_DOCUMENT, None
        if paths and not paths[0].name.endswith(".jsonl"):
            first = paths.pop(0)
            try:
                document = read_document(first)
            except InputError as err:
                if not paths:
                    raise
                yield Refusal(file=str(first), reason=_said(err, first))
        if paths:
            samples = paths[0]
        place = source.uri
        for where, problem in document.problems:
            yield Refusal(file=place, reason=f"{where}: {problem} (correct it; the other results are kept)")
        if samples is None:
            yield from _aggregates(document, place)
        else:
            yield from _with_samples(document, samples, place, frozenset(source.mapping.get("others", ())))


READER = EveryEvalEverReader()


def _is_document(folder: Folder, name: str) -> bool:
    """An aggregate document by its first bytes; whatever else has its name (a pointer, say) is refused when it is read."""
    if not name.endswith(".json"):
        return False
    head = folder.head(name)
    sampled = f"{name.removesuffix('.json')}{SAMPLES}" in folder.names
    if _NAME.match(name) and (sampled or head.startswith(LFS_POINTER) or not head.strip(_BLANK)):
        return True
    return head.lstrip(_BLANK).startswith(b"{") and _ID.search(head) is not None and _DOCUMENT.search(head) is not None and not _row(head)


def _is_samples(folder: Folder, name: str) -> bool:
    if not name.endswith(".jsonl"):
        return False
    head = folder.head(name)
    if _NAME.match(name) and (head.startswith(LFS_POINTER) or not head.strip(_BLANK)):
        return True
    return head.lstrip(_BLANK).startswith(b"{") and _ID.search(head) is not None and _row(head)


def _row(head: bytes) -> bool:
    return _ROW.search(head) is not None and _VERDICT.search(head) is not None


def _document_on_disk(path: Path) -> bool:
    """Whether the document of a samples file that was named alone lies beside it."""
    return is_file(path) and _is_document(Folder(path.parent, [path.name]), path.name)


def _samples_of(folder: Folder, name: str) -> str | None:
    """The samples file of a document: of the same name, else of the name that the document says, if it is here."""
    head = folder.head(name)
    found = _FILE_PATH.search(head) or _FILE_PATH.search(_tail(folder.path / name))
    said = found[1].decode("utf-8", "replace").replace("\\/", "/").rpartition("/")[2] if found else None
    for one in (f"{name.removesuffix('.json')}{SAMPLES}", said):
        if one and (one in folder.names or is_file(folder.path / one)):
            return one
    return None


def _owners(folder: Folder, documents: Mapping[str, str | None]) -> dict[str, dict[str, str]]:
    """For samples files that several documents name: the evaluation that each of these documents is about."""
    found: dict[str, dict[str, str]] = {}
    several = {samples for samples, count in Counter(documents.values()).items() if samples is not None and count > 1}
    for name, samples in documents.items():
        match = _OWN_ID.search(folder.head(name)) if samples in several else None
        if match and samples:
            with suppress(ValueError):
                found.setdefault(samples, {})[name] = orjson.loads(match[1])
    return found


def _others(name: str, owners: Mapping[str, str]) -> dict[str, list[str]]:
    """Evaluations of other documents whose rows are in the same samples file: these documents read them."""
    others = {one for owner, one in owners.items() if owner != name} - {owners.get(name, "")}
    return {"others": sorted(others)} if others else {}


def _tail(path: Path) -> bytes:
    """The end of a file, where the samples are named."""
    try:
        with path.open("rb") as stream:
            stream.seek(0, 2)
            stream.seek(max(stream.tell() - _TAIL, 0))
            return stream.read()
    except OSError:
        return b""


def _aggregates(document: Document, place: str) -> Iterator[Batch | Refusal]:
    """A run without records for each benchmark."""
    if not document.results:
        message = "no result that can be used"
        raise InputError(message, where=place, hint="run its writer again")
    reason = f"its samples file {document.samples_path} is not beside it" if document.samples_path else None
    for benchmark in document.benchmarks:
        yield _without_records(document, benchmark, place, reason)


def _without_records(document: Document, benchmark: str, place: str, reason: str | None) -> Batch:
    if document.model is None:
        message = "the document names no model (model_info.id)"
        raise InputError(message, where=place, hint="add it")
    header = document.header(model=document.model, benchmark=benchmark, external_id=document.evaluation_id)
    scores = tuple(result.score() for result in document.of_benchmark(benchmark))
    return Batch(run=_partial(header, reason).model_copy(update={"n_expected": None}), records=empty_records(), scores=scores)


def _with_samples(document: Document, path: Path, place: str, others: frozenset[str]) -> Iterator[Batch | Refusal]:
    """Runs with records; benchmarks of the document without rows are runs without."""
    samples = Samples(path, document, others)
    damage: str | None = None
    headers: dict[Run, RunHeader] = {}
    read: Counter[Run] = Counter()
    try:
        samples.look_through()
        for run in samples.primary:
            mine = samples.document_of(run.evaluation_id)
            headers[run] = mine.header(model=run.model, benchmark=run.benchmark, external_id=run.evaluation_id)
        yield from _records(samples, headers, read)
    except InputError as err:
        damage = _said(err, path)
        yield Refusal(file=str(path), reason=damage)
    if damage is None and samples.cut_off is not None:
        damage = f"{CUT_OFF} in line {samples.cut_off}"
    damage = damage or (None if headers else samples.first_problem or "its samples file holds no row") or _missing(document, samples)
    if not any(read.values()) and not document.results:
        message = f"no usable row{f': {damage}' if damage else ''}"
        raise InputError(message, where=str(path), hint="run its writer again, or leave the file out")
    for run, header in headers.items():
        if reason := damage or _fewer(header, read[run], samples.document_of(run.evaluation_id)):
            yield Batch(run=_partial(header, reason), records=empty_records())
    sampled = {run.benchmark for run in headers if samples.document_of(run.evaluation_id) is document}
    for benchmark in document.benchmarks:
        if benchmark not in sampled:
            yield _without_records(document, benchmark, place, damage)


def _records(samples: Samples, headers: dict[Run, RunHeader], read: Counter[Run]) -> Iterator[Batch | Refusal]:
    """Batches of bounded size, counted in `read`; rows of several runs may alternate in the file."""
    held: dict[Run, tuple[list[dict[str, Any]], list[int]]] = {}
    size = 0
    begun: set[Run] = set()

    def flush(run: Run) -> Iterator[Batch | Refusal]:
        rows, lines = held.pop(run)
        document = samples.document_of(run.evaluation_id)
        scores = () if run in begun else tuple(result.score() for result in document.of_benchmark(run.benchmark))
        begun.add(run)
        for part in run_batches(str(samples.path), headers[run], [chunk_of(rows, lines, unit="line")], scores=scores):
            read[run] += part.records.num_rows if isinstance(part, Batch) else 0
            yield part

    for record in samples.records():
        if isinstance(record, Refusal):
            yield record
            continue
        rows, lines = held.setdefault(record.run, ([], []))
        rows.append(record.row)
        lines.append(record.line)
        size += record.size
        if len(rows) >= CHUNK_ROWS or size >= CHUNK_BYTES:
            for run in list(held) if size >= CHUNK_BYTES else [record.run]:
                yield from flush(run)
            size = 0 if size >= CHUNK_BYTES else size
    for run in list(held):
        yield from flush(run)


def _missing(document: Document, samples: Samples) -> str | None:
    """Fewer rows than the document declares."""
    total = document.total_rows
    return f"{samples.rows:,} of {total:,} rows" if total is not None and samples.rows < total else None


def _fewer(header: RunHeader, records: int, document: Document) -> str | None:
    """Fewer records than questions; trackr's own export leaves out those without a score, and says itself what was partial."""
    if document.own or header.n_expected is None or records >= header.n_expected:
        return None
    return f"{records:,} of {header.n_expected:,} questions"


def _partial(header: RunHeader, reason: str | None) -> RunHeader:
    if reason is None or header.status != "finished":
        return header
    return header.model_copy(update={"status": "partial", "status_reason": reason})


def _said(err: InputError, path: Path) -> str:
    """An error's text for a refusal of the file."""
    return str(err).removeprefix(f"{path}: ")
