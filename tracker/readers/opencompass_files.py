"""The files of an OpenCompass task as values: predictions with their shards and leftovers, results with their details."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path  # noqa: TC003 - dataclass fields are read at run time
from typing import TYPE_CHECKING, Any

from tracker.batch import AggregateScore, Refusal
from tracker.errors import InputError
from tracker.readers.lines import json_document, json_lines, json_value, shorten
from tracker.readers.opencompass_rows import Details
from tracker.readers.values import json_text, number, text, whole

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_NO_SCORES = frozenset({"details", "type", "error", "bp", "sys_len", "ref_len", "total predictions"})
_LAST_WHOLE = re.compile(rb"\n(?:    |\t)\},?[ \t]*\r?\n")
REMEDY = "run OpenCompass again, or delete the file"


@dataclass(slots=True)
class Predictions:
    """Rows by position, and why some may be missing."""

    rows: list[tuple[int, Mapping[str, Any]]] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    damage: str | None = None


def predictions(paths: Sequence[tuple[str, Path]]) -> Predictions:
    """The rows of prediction files. Shards count from 0 each: they follow one another, and end where one is missing."""
    found = Predictions()
    start = 0
    for place, (role, path) in enumerate(paths):
        part = whole(path.stem.rpartition("_")[2]) if role == "shard" else place
        if part != place:
            found.damage = f"part {place} of the split task is missing"
            reason = f"part {place} is missing before it, so the position of its questions is unknown ({REMEDY})"
            found.refusals.append(Refusal(file=str(path), reason=reason))
            break
        before = found.damage
        rows = list(_lines(path, found) if path.suffix == ".jsonl" else _document(path, found))
        found.rows += [(start + index, row) for index, row in rows]
        if role == "shard" and found.damage != before and place + 1 < len(paths):
            reason = "a part before it is damaged, so the position of its questions is unknown"
            found.refusals += [Refusal(file=str(later), reason=f"{reason} ({REMEDY})") for _, later in paths[place + 1 :]]
            break
        start += len(rows)
    return found


def _document(path: Path, found: Predictions) -> Iterator[tuple[int, Mapping[str, Any]]]:
    try:
        document = json_document(path)
    except InputError as err:
        document = _whole_rows(path)
        kept = f"; the {len(document)} rows before are read" if document else ""
        found.refusals.append(Refusal(file=str(path), reason=f"{err.reason}{kept}"))
        found.damage = f"{path.name} is damaged"
    if not isinstance(document, dict):
        reason = f"expected an object of predictions by position, found {type(document).__name__} ({REMEDY})"
        found.refusals.append(Refusal(file=str(path), reason=reason))
        found.damage = f"{path.name} is damaged"
        return
    for name, row in document.items():
        index = whole(name)
        if index is None or index < 0 or not isinstance(row, dict):
            reason = f"prediction {name!r}: expected a position with an object ({REMEDY})"
            found.refusals.append(Refusal(file=str(path), reason=shorten(reason), text=shorten(json_text(row))))
            continue
        yield index, row


def _whole_rows(path: Path) -> dict[str, Any]:
    """The rows before the place where a file was cut off: the writer indents, so each ends on a line of its own."""
    try:
        raw = path.read_bytes()
        ends = [match.start() for match in _LAST_WHOLE.finditer(raw)]
        value = json_value(raw[: ends[-1]] + b"\n}\n}", str(path)) if ends else {}
    except (OSError, InputError):
        return {}
    return value if isinstance(value, dict) else {}


def _lines(path: Path, found: Predictions) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """A leftover of an inference: a line per answer."""
    try:
        for line in json_lines(path):
            row = line.value
            index = whole(row.get("idx")) if isinstance(row, dict) else None
            if index is None or index < 0:
                reason = line.error or "expected an object with idx (delete the line)"
                found.refusals.append(Refusal(file=str(path), line=line.number, reason=reason, text=line.text))
                continue
            yield index, {name: value for name, value in row.items() if name != "idx"}
    except InputError as err:
        found.refusals.append(Refusal(file=str(path), reason=err.reason))


def result(path: Path, refusals: list[Refusal]) -> Mapping[str, Any] | None:
    """A result file's object; None where it is damaged, which is refused."""
    try:
        document = json_document(path)
    except InputError as err:
        refusals.append(Refusal(file=str(path), reason=err.reason))
        return None
    if not isinstance(document, dict):
        reason = f"expected an object of metrics, found {type(document).__name__} ({REMEDY})"
        refusals.append(Refusal(file=str(path), reason=reason))
        return None
    return document


def details_of(document: Mapping[str, Any], asked: int, judge: str | None) -> tuple[Details | None, str | None]:
    """The details of a result that belong to so many predictions, or why they cannot be joined to them.

    They are a list in the order of predictions, or keyed by position, among them the key `type`.
    """
    details = document.get("details")
    if isinstance(details, list):
        entries: dict[int, Mapping[str, Any]] = {place: one for place, one in enumerate(details) if isinstance(one, dict)}
        size = len(details)
    elif isinstance(details, dict):
        entries = {
            index: one for name, one in details.items() if (index := whole(name)) is not None and index >= 0 and isinstance(one, dict)
        }
        size = max(entries, default=-1) + 1
    else:
        return None, None
    if not entries:
        return None, None
    repeated = asked // size if asked > size and asked % size == 0 and _all_lists(entries.values(), asked // size) else 1
    if asked and size * repeated != asked and (isinstance(details, list) or size > asked):
        return None, f"details of {size} rows for {asked} predictions: which is whose is unknown, so they are left out ({REMEDY})"
    return Details(entries, repeated, judge), None


def _all_lists(entries: Any, length: int) -> bool:
    return all(any(isinstance(value, list) and len(value) == length for value in entry.values()) for entry in entries)


def rows_of(details: Details) -> list[tuple[int, Mapping[str, Any]]]:
    """Predictions as far as details repeat them, where the prediction file itself is missing."""
    found: list[tuple[int, Mapping[str, Any]]] = []
    for index, entry in sorted(details.entries.items()):
        original = entry.get("origin_prediction")
        if isinstance(original, dict):
            options = {f"label: {name}": one for name, one in original.items() if isinstance(one, dict) and "PPL" in one}
            rest = {name: one for name, one in original.items() if f"label: {name}" not in options}
            row = {**rest, **options, "prediction": entry.get("predictions")}
        else:
            row = {"origin_prompt": entry.get("prompt"), "prediction": original}
        found.append((index, row))
    return found


def scores(document: Mapping[str, Any], rows: int, judge: str | None = None) -> list[AggregateScore]:
    """The metrics of a result as it states them (OpenCompass mostly states percent); parts of a metric are NAME.PART."""
    found: list[AggregateScore] = []
    for name, value in document.items():
        if name in _NO_SCORES:
            continue
        for part, one in value.items() if isinstance(value, dict) else [(None, value)]:
            if isinstance(one, bool) or not isinstance(one, int | float):
                continue
            stated = number(one)
            full = name if part is None else f"{name}.{part}"
            label = f"{full} (judged by {judge})" if judge else full
            found.append(AggregateScore(metric=label, value=stated.value, special=stated.special, n=rows or None))
    return found


def failure(document: Mapping[str, Any]) -> str | None:
    """Why an evaluation failed, where its result says so."""
    return shorten(text(document.get("error")) or "") or None
