"""Finish the records of one run: number attempts, derive statuses, mark final attempts, clean values."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracker.batch import RunHeader

NUL = "\x00"
REPLACEMENT = "\ufffd"
ROUNDING = 1e-6

NAME_BYTES = 512
"""Longest name that identifies something: PostgreSQL cannot index more than 2,700 bytes, and an index holds up to four names."""
NAMES = frozenset({"question_key", "key", "scheme", "source", "scorer", "content_hash", "metric"})
"""Columns of such names."""


def with_attempts(records: pa.Table) -> pa.Table:
    """Give every record without an attempt the next free one of its question and repetition, in file order."""
    attempt, repetition = records.column("attempt"), records.column("repetition")
    if attempt.null_count == repetition.null_count == len(attempt) and _all_differ(records.column("question_key")):
        repetition = numbered = pa.array(np.zeros(len(attempt), np.int32))
    else:
        repetition = pc.fill_null(repetition, 0)
        codes, repeats = _codes(records.column("question_key")), repetition.to_numpy()
        if attempt.null_count == len(attempt):
            numbered = pa.array(_rank_within(codes, repeats), pa.int32())
        else:
            numbered = _fill_attempts(codes, repeats, attempt)
    at = records.schema.get_field_index
    records = records.set_column(at("repetition"), "repetition", repetition)
    return records.set_column(at("attempt"), "attempt", numbered)


def finish_records(records: pa.Table) -> pa.Table:
    """Statuses, final flags and clean numbers.

    Credit is correct as 0/1, else score where it lies in [0, 1] (DEFINITIONS, What counts).
    """
    records = _finite(records)
    status, scored = _status(records)
    records = records.set_column(records.schema.get_field_index("status"), "status", status)
    return records.append_column("final", pa.array(_final(records, scored)))


def short_name(name: str) -> str:
    """A name as it is stored: one that is too long (a prompt as an id, say) ends with its hash."""
    written = name.encode()
    if len(written) <= NAME_BYTES:
        return name
    return f"{written[: NAME_BYTES - 68].decode(errors='ignore')}... {hashlib.sha256(written).hexdigest()}"


def clean_table(table: pa.Table) -> tuple[pa.Table, int]:
    """A table whose texts hold no NUL character, which PostgreSQL cannot keep, and no name too long; also how many had a NUL."""
    replaced = 0
    if not table.num_rows:
        return table, 0
    for position, one in enumerate(table.schema):
        if pa.types.is_string(one.type) and _may_hold_nul(table.column(position)):
            column = table.column(position)
            replaced += int(pc.sum(pc.match_substring(column, NUL)).as_py() or 0)
            table = table.set_column(position, one, pc.replace_substring(column, NUL, REPLACEMENT))
        if one.name in NAMES and (pc.max(pc.binary_length(table.column(position))).as_py() or 0) > NAME_BYTES:
            names = [name and short_name(name) for name in table.column(position).to_pylist()]
            table = table.set_column(position, one, pa.chunked_array([pa.array(names, pa.string())]))
    return table, replaced


def _may_hold_nul(column: pa.ChunkedArray) -> bool:
    """Whether the bytes behind a column hold a zero; far quicker than a look at each text."""
    data = [buffer for chunk in column.chunks if (buffer := chunk.buffers()[2]) is not None]
    if sum(buffer.size for buffer in data) > 2 * column.nbytes:  # a slice of something larger
        return bool(pc.any(pc.match_substring(column, NUL)).as_py())
    return any(buffer.to_pybytes().find(b"\0") >= 0 for buffer in data)


def clean_header(header: RunHeader) -> tuple[RunHeader, int]:
    """A header without NUL characters and names too long; also how many texts had a NUL."""
    text = header.model_dump_json()
    count = text.count("\\u0000")
    if count:
        header = type(header).model_validate(clean_value(header.model_dump()))
    names = {name: getattr(header, name) for name in ("model", "benchmark", "external_id")}
    short = {name: short_name(one) for name, one in names.items() if one is not None and len(one) > NAME_BYTES // 4}
    return (header.model_copy(update=short) if short else header), count


def clean_value(value: Any) -> Any:
    """A JSON value without NUL characters."""
    if isinstance(value, str):
        return value.replace(NUL, REPLACEMENT)
    if isinstance(value, dict):
        return {clean_value(name): clean_value(one) for name, one in value.items()}
    return [clean_value(one) for one in value] if isinstance(value, list | tuple) else value


def _finite(records: pa.Table) -> pa.Table:
    """A score that is no finite number is null with its name in `special`; other such numbers are null."""
    at = records.schema.get_field_index
    score = records.column("score")
    if not _all_finite(score):
        names = pc.if_else(
            pc.is_nan(score), "nan", pc.if_else(pc.equal(score, np.inf), "inf", pc.if_else(pc.equal(score, -np.inf), "-inf", None))
        )
        records = records.set_column(at("special"), "special", pc.coalesce(records.column("special"), names.cast(pa.string())))
    for name in ("score", "p_gold", "vision_flops", "latency_s"):
        column = records.column(name)
        if not _all_finite(column):
            records = records.set_column(at(name), name, pc.if_else(pc.is_finite(column), column, None))
    p_gold = records.column("p_gold")
    if p_gold.null_count < len(p_gold):
        extremes = pc.min_max(p_gold)
        if extremes["min"].as_py() < 0.0 or extremes["max"].as_py() > 1.0:
            records = records.set_column(at("p_gold"), "p_gold", _fraction(p_gold))
    return records


def _all_finite(column: pa.ChunkedArray) -> bool:
    """Whether no value is NaN or infinite; looks at the numbers as they lie, those under nulls too."""
    for chunk in column.chunks:
        if chunk.null_count < len(chunk):
            values = np.frombuffer(chunk.buffers()[1], np.float64, count=len(chunk), offset=8 * chunk.offset)
            if not np.isfinite(values).all():
                return False
    return True


def _fraction(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Fractions: what rounding carried past 0 or 1 comes back, anything else outside is null."""
    near = pc.and_(pc.greater_equal(column, -ROUNDING), pc.less_equal(column, 1.0 + ROUNDING))
    return pc.if_else(near, pc.max_element_wise(pc.min_element_wise(column, 1.0), 0.0), None)


def _status(records: pa.Table) -> tuple[pa.ChunkedArray, NDArray[np.bool_]]:
    """A record is scored exactly when it has a credit; without one it is failed where the source says so, else unscored."""
    scored = pc.is_valid(records.column("correct"))
    score = records.column("score")
    if score.null_count < len(score):
        inside = pc.and_(pc.greater_equal(score, 0.0), pc.less_equal(score, 1.0))
        scored = pc.or_(scored, pc.fill_null(inside, fill_value=False))
    stated = records.column("status")
    other: Any = "unscored"
    if stated.null_count < len(stated):
        other = pc.if_else(pc.fill_null(pc.equal(stated, "failed"), fill_value=False), "failed", "unscored")
    return pc.if_else(scored, "scored", other), scored.to_numpy()


def _final(records: pa.Table, scored: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """True on the scored record with the highest attempt of its question and repetition."""
    attempt, repetition = records.column("attempt").to_numpy(), records.column("repetition").to_numpy()
    if not attempt.any() and not repetition.any():
        return scored  # every question stands here once
    codes = _codes(records.column("question_key"))
    rows = np.flatnonzero(scored)
    order = rows[np.lexsort((attempt[rows], repetition[rows], codes[rows]))]
    last = np.ones(len(order), dtype=bool)
    last[:-1] = (codes[order[1:]] != codes[order[:-1]]) | (repetition[order[1:]] != repetition[order[:-1]])
    final = np.zeros(records.num_rows, dtype=bool)
    final[order[last]] = True
    return final


def _all_differ(column: pa.ChunkedArray) -> bool:
    return len(column.unique()) == len(column)


def _codes(column: pa.ChunkedArray) -> NDArray[np.int32]:
    indices: NDArray[np.int32] = column.combine_chunks().dictionary_encode().indices.to_numpy()
    return indices


def _rank_within(codes: NDArray[np.int32], repetition: NDArray[np.int32]) -> NDArray[np.int64]:
    """How many earlier rows have the same question and repetition."""
    order = np.lexsort((np.arange(len(codes)), repetition, codes))
    new = np.ones(len(order), dtype=bool)
    new[1:] = (codes[order[1:]] != codes[order[:-1]]) | (repetition[order[1:]] != repetition[order[:-1]])
    starts = np.maximum.accumulate(np.where(new, np.arange(len(order)), 0))
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order)) - starts
    return rank


def _fill_attempts(codes: NDArray[np.int32], repetition: NDArray[np.int32], attempt: pa.ChunkedArray) -> pa.Array:
    """Keep stated attempts; a missing or already taken one becomes the next above all before it."""
    taken: dict[tuple[int, int], set[int]] = {}
    filled = []
    for code, repeat, value in zip(codes.tolist(), repetition.tolist(), attempt.to_pylist(), strict=True):
        used = taken.setdefault((code, repeat), set())
        chosen = value if value is not None and value not in used else max(used, default=-1) + 1
        used.add(chosen)
        filled.append(chosen)
    return pa.array(filled, pa.int32())
