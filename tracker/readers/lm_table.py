"""Rows gathered as columns, and columns made into the tables of a batch; shared by both harness readers."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from tracker.batch import LABELS, QUESTIONS, RECORD_SCORES, RECORDS, Refusal
from tracker.readers import columns
from tracker.readers.values import content_hash, json_text, option_list

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from tracker.readers.columns import Checked
    from tracker.readers.values import Number

CHUNK_ROWS = 2_000
CHUNK_BYTES = 4 << 20
LABEL_SCHEMES = ("domain", "skill")
LABEL_SOURCE = "run"
"""Source of labels that stand in the sample rows themselves."""
KEY_NAMES = ("question_key", "question_id")
"""Names under which a row may state its question's key outright."""
_COUNT = partial(columns.wholes, most=2**31 - 1)
_SIZE = partial(columns.wholes, least=1)
_HASHES: dict[tuple[str | None, str | None], str] = {}
_HASHES_KEPT = 5_000


def as_json_lists(column: list[Any]) -> list[str | None] | None:
    """Lists of numbers as JSON text, all at once; None where some of them is anything else."""
    present = [one for one in column if one is not None] if None in column else column
    if set(map(type, present)) != {list}:
        return None
    written = orjson.dumps(present)
    if written.translate(None, _OF_NUMBERS) or b"[]" in written or written.count(b"[") != len(present) + 1:
        return None
    texts = iter(written[2:-2].decode().split("],["))
    return [None if one is None else f"[{next(texts)}]" for one in column]


_OF_NUMBERS = b"0123456789.,-+eE[]"
"""Every character of JSON lists of numbers; null, true, text and objects have others."""
_STATUSES = ("scored", "unscored", "failed")
CONVERTERS: Mapping[str, Callable[[list[Any]], Checked]] = {
    "repetition": _COUNT,
    "attempt": _COUNT,
    "status": partial(columns.words, known=_STATUSES),
    "correct": columns.truths,
    "score": columns.scores,
    "special": partial(columns.words, known=("nan", "inf", "-inf")),
    "score_rule": columns.texts,
    "prediction": columns.texts,
    "logit_prediction": columns.texts,
    "p_gold": partial(columns.finite, fraction=True),
    "option_scores": columns.number_lists,
    "visual_tokens": columns.wholes,
    "prompt_tokens": columns.wholes,
    "generated_tokens": columns.wholes,
    "tiles": columns.wholes,
    "effective_pixels": columns.wholes,
    "vision_flops": columns.finite,
    "latency_s": columns.finite,
    "response": columns.texts,
    "content_hash": columns.texts,
    "image_key": columns.texts,
    "pair_key": columns.texts,
    "text": columns.texts,
    "options": columns.option_lists,
    "gold": columns.texts,
    "n_options": _SIZE,
    "task": columns.texts,
    "category": columns.texts,
    "subcategory": columns.texts,
    "image_width": _SIZE,
    "image_height": _SIZE,
    **dict.fromkeys(LABEL_SCHEMES, columns.texts),
}
"""The native table's columns, which a sample row may carry under the same names, and how each is checked."""


_NONE = type(None)
_TEXT_TYPES, _INT_TYPES, _FLOAT_TYPES = {str, _NONE}, {int, _NONE}, {int, float, _NONE}
_TEXTS = frozenset(name for name, converter in CONVERTERS.items() if converter is columns.texts)
_COUNTED = ("visual_tokens", "prompt_tokens", "generated_tokens", "tiles", "effective_pixels")
_BOUNDS: Mapping[str, tuple[float, float]] = {
    **dict.fromkeys(_COUNTED, (0, 2**63 - 1)),
    **dict.fromkeys(("repetition", "attempt"), (0, 2**31 - 1)),
    **dict.fromkeys(("n_options", "image_width", "image_height"), (1, 2**63 - 1)),
    **dict.fromkeys(("latency_s", "vision_flops"), (-1.7976931348623157e308, 1.7976931348623157e308)),
    "p_gold": (0.0, 1.0),
}


@dataclass(slots=True)
class Chunk:
    """Columns of up to CHUNK_ROWS rows. `own` holds what the reader made itself, `given` what rows state under native names."""

    keys: list[Any] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    own: dict[str, list[Any]] = field(default_factory=dict)
    given: dict[str, list[Any]] = field(default_factory=dict)
    scorers: list[tuple[int, str, Number]] = field(default_factory=list)

    def add(self, keys: Sequence[Any], lines: Sequence[int], own: Mapping[str, Iterable[Any]], given: Mapping[str, Iterable[Any]]) -> None:
        """Append rows; columns that they lack stay null."""
        before = len(self.keys)
        self.keys.extend(keys)
        self.lines.extend(lines)
        for held, new in ((self.own, own), (self.given, given)):
            for name, column in new.items():
                values = held.setdefault(name, [])
                if len(values) < before:
                    values.extend([None] * (before - len(values)))
                values.extend(column)

    def column(self, name: str) -> list[Any]:
        """What rows state under a native name."""
        return _padded(self.given.get(name, []), len(self.keys))


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """A chunk as Arrow, and what of it was refused."""

    records: pa.Table
    questions: pa.Table
    labels: pa.Table | None
    record_scores: pa.Table | None
    refusals: list[Refusal]


def tables(chunk: Chunk, path: str, seen: set[Any], ready: Mapping[str, pa.Array] | None = None) -> Tables:
    """The chunk's tables; questions whose key is in `seen` were described before. `ready` columns fill what is null elsewhere."""
    refusals: list[Refusal] = []
    size = len(chunk.keys)
    key_array = columns.texts(chunk.keys).array
    fresh = _fresh(chunk.keys, seen)
    arrays = {name: _merged(name, chunk, path, refusals) for name in CONVERTERS if name in chunk.own or name in chunk.given}
    for name, column in (ready or {}).items():
        arrays[name] = pc.coalesce(arrays[name], column) if name in arrays else column
    _rescore(chunk, arrays)
    if "content_hash" not in chunk.given and ("text" in chunk.given or "options" in chunk.given):
        arrays["content_hash"] = _hashes(arrays.get("text"), arrays.get("options"), size)
    records = _table(RECORDS, {**arrays, "question_key": key_array}, size)
    questions = _table(QUESTIONS, {**arrays, "key": key_array}, size)
    return Tables(
        records=records,
        questions=questions if len(fresh) == size else questions.take(pa.array(fresh, pa.int64())),
        labels=_labels(arrays, key_array, fresh),
        record_scores=_record_scores(chunk.scorers),
        refusals=refusals,
    )


def _fresh(keys: list[Any], seen: set[Any]) -> Sequence[int]:
    """Places of keys that were not seen before, which from now on were."""
    distinct = set(keys)
    if len(distinct) == len(keys) and seen.isdisjoint(distinct):
        seen |= distinct
        return range(len(keys))
    fresh = []
    for place, key in enumerate(keys):
        if key not in seen:
            seen.add(key)
            fresh.append(place)
    return fresh


def hashed(text: str | None, options: str | None) -> str:
    """content_hash of a text and options (a JSON list), remembered: the same questions occur in hundreds of runs."""
    known = _HASHES.get((text, options))
    if known is None:
        if len(_HASHES) >= _HASHES_KEPT:
            _HASHES.clear()
        known = _HASHES[text, options] = content_hash(text, option_list(options))
    return known


def options_text(options: Sequence[str]) -> str:
    """Options as the JSON list that is stored."""
    return json_text(list(options))


def _merged(name: str, chunk: Chunk, path: str, refusals: list[Refusal]) -> pa.Array:
    """What rows state, else what the reader made."""
    size = len(chunk.keys)
    own = chunk.own.get(name)
    kind = _kind(name)
    made = pa.nulls(size, kind) if own is None else _made(_padded(own, size), kind)
    if name not in chunk.given:
        return made
    given = _padded(chunk.given[name], size)
    stated = _quickly(name, given, kind)
    if stated is None:
        checked = CONVERTERS[name](given)
        for row, problem in checked.problems.items():
            refusals.append(
                Refusal(file=path, line=chunk.lines[row], reason=f"{name}: {problem} (left empty; the rest of the row is kept)")
            )
        stated = checked.array.cast(kind)
    return stated if own is None else pc.coalesce(stated, made)


def _made(values: list[Any], kind: pa.DataType) -> pa.Array:
    """What the reader made; a whole number that is too large for its column is nothing."""
    try:
        return pa.array(values, kind)
    except (OverflowError, pa.ArrowInvalid):
        if not pa.types.is_integer(kind):
            raise
        most = 2 ** (kind.bit_width - 1)
        return pa.array([None if value is None or not -most <= value < most else value for value in values], kind)


def _quickly(name: str, values: list[Any], kind: pa.DataType) -> pa.Array | None:
    """A column whose values are all of its own type and within its bounds, as most are; None where they are looked at one by one."""
    bounds = _BOUNDS.get(name)
    kinds = set(map(type, values))
    if name == "status" and kinds <= _TEXT_TYPES:
        return pa.array(values, kind) if set(values) <= {None, *_STATUSES} else None
    if bounds is None:
        return pa.array(values, kind) if name in _TEXTS and kinds <= _TEXT_TYPES else None
    if not kinds <= (_FLOAT_TYPES if pa.types.is_floating(kind) else _INT_TYPES):
        return None
    try:
        array = pa.array(values, kind)
    except (pa.ArrowException, OverflowError):
        return None
    extremes = pc.min_max(array)
    low, high = extremes["min"].as_py(), extremes["max"].as_py()
    within = low is None or (
        bounds[0] <= low and high <= bounds[1] and not (pa.types.is_floating(kind) and pc.any(pc.is_nan(array)).as_py())
    )
    return array if within else None


def _rescore(chunk: Chunk, arrays: dict[str, pa.Array]) -> None:
    """A score stated under its native name brings its own special and rule."""
    if "score" not in chunk.given:
        return
    size = len(chunk.keys)
    special = columns.scores(chunk.column("score")).special
    if special is not None:
        arrays["special"] = pc.coalesce(special, arrays.get("special", pa.nulls(size, pa.string())))
        arrays["score"] = pc.if_else(pc.is_valid(special), pa.scalar(None, pa.float64()), arrays["score"])


def _hashes(text: pa.Array | None, options: pa.Array | None, size: int) -> pa.Array:
    texts = [None] * size if text is None else text.to_pylist()
    lists = [None] * size if options is None else options.to_pylist()
    made = [None if one is None else hashed(one, choices) for one, choices in zip(texts, lists, strict=True)]
    return pa.array(made, pa.string())


def _labels(arrays: Mapping[str, pa.Array], keys: pa.Array, fresh: Sequence[int]) -> pa.Table | None:
    pieces = []
    for scheme in LABEL_SCHEMES:
        if scheme not in arrays:
            continue
        rows = pa.table({"key": keys, "value": arrays[scheme]}).take(pa.array(fresh, pa.int64()))
        rows = rows.filter(pc.is_valid(rows["value"]))
        same = {"scheme": scheme, "source": LABEL_SOURCE}
        extra = {name: pa.array([value] * rows.num_rows, pa.string()) for name, value in same.items()}
        pieces.append(pa.table({"key": rows["key"], "value": rows["value"], **extra}).select(LABELS.names).cast(LABELS))
    return pa.concat_tables(pieces) if pieces else None


def _record_scores(scorers: list[tuple[int, str, Number]]) -> pa.Table | None:
    if not scorers:
        return None
    rows, names, numbers = zip(*scorers, strict=True)
    return pa.table(
        [rows, names, [one.value for one in numbers], [one.special for one in numbers]],
        schema=RECORD_SCORES,
    )


def _table(schema: pa.Schema, arrays: Mapping[str, pa.Array], size: int) -> pa.Table:
    picked = [arrays[one.name] if one.name in arrays else pa.nulls(size, one.type) for one in schema]
    return pa.table(picked, schema=schema)


def _kind(name: str) -> pa.DataType:
    for schema in (RECORDS, QUESTIONS):
        position = schema.get_field_index(name)
        if position >= 0:
            return schema.field(position).type
    return pa.string()


def _padded(values: list[Any], size: int) -> list[Any]:
    return values if len(values) == size else [*values, *([None] * (size - len(values)))]
