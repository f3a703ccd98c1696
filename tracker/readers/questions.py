"""Questions as the rows of a table tell them, and what must hold between a question and its answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from tracker.batch import LABELS, QUESTIONS
from tracker.readers import columns as check
from tracker.readers.columns import Checked, Problem
from tracker.readers.values import content_hash

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracker.readers.rows import Rows

QUESTION_COLUMNS: dict[str, Callable[[Any], Checked]] = {
    "content_hash": check.texts,
    "image_key": check.texts,
    "pair_key": check.texts,
    "text": check.texts,
    "options": check.option_lists,
    "gold": check.texts,
    "n_options": lambda column: check.wholes(column, least=1),
    "task": check.texts,
    "category": check.texts,
    "subcategory": check.texts,
    "image_width": lambda column: check.wholes(column, least=1),
    "image_height": lambda column: check.wholes(column, least=1),
}
LABEL_COLUMNS = ("domain", "skill")
_LETTERS = pa.array(list("ABCDEFGHIJKLMNOPQRSTUVWXYZ"))


_REMEMBERED = 100_000
_LETTER_COLUMNS = ("gold", "logit_prediction", "prediction")


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What the rows of a chunk tell of their questions, row by row; null where they tell nothing."""

    table: pa.Table | None
    labels: pa.Table | None

    def ordered(self, order: np.ndarray[Any, np.dtype[np.int64]]) -> Told:
        """The same in another order of rows."""
        taken = pa.array(order)
        return Told(
            table=None if self.table is None else self.table.take(taken),
            labels=None if self.labels is None else self.labels.take(taken),
        )

    def questions(self, start: int, stop: int) -> pa.Table | None:
        """The questions of some rows."""
        return None if self.table is None else self.table.slice(start, stop - start)

    def label_table(self, start: int, stop: int, source: str) -> pa.Table | None:
        """The labels of some rows."""
        if self.labels is None:
            return None
        rows = self.labels.slice(start, stop - start)
        parts = []
        for scheme in rows.column_names[1:]:
            some = rows.select(["key", scheme]).filter(pc.is_valid(rows[scheme]))
            constants = [pa.repeat(one, some.num_rows) for one in (scheme, source)]
            parts.append(pa.table([some["key"], constants[0], some[scheme], constants[1]], schema=LABELS))
        labels = pa.concat_tables(parts)
        return labels if labels.num_rows else None


class QuestionReader:
    """Reads the question columns of chunks; it remembers content hashes, since runs ask the same questions."""

    def __init__(self) -> None:
        self._hashes: dict[tuple[str, str | None, str | None], str] = {}

    def read(self, rows: Rows, record: dict[str, pa.Array]) -> Told:
        """What this chunk tells; rows with a bad value are refused, option letters outside the options too."""
        arrays: dict[str, Any] = {one.name: pa.nulls(len(rows), one.type) for one in QUESTIONS}
        named = [name for name in QUESTION_COLUMNS if name in rows.columns]
        for name in named:
            checked = QUESTION_COLUMNS[name](rows.columns[name])
            rows.reject(name, checked)
            arrays[name] = checked.array
        if "options" in named:
            arrays["n_options"] = pc.coalesce(arrays["n_options"], _lengths(arrays["options"]))
        if "text" in named:
            arrays["content_hash"] = pc.coalesce(arrays["content_hash"], self._content_hashes(arrays))
        _check_letters(rows, record, arrays)
        arrays["key"] = record["question_key"]
        labels = {name: check.texts(rows.columns[name]).array for name in LABEL_COLUMNS if name in rows.columns}
        return Told(
            table=pa.table([arrays[name] for name in QUESTIONS.names], names=QUESTIONS.names) if named else None,
            labels=pa.table({"key": arrays["key"], **{name: _filled(told) for name, told in labels.items()}}) if labels else None,
        )

    def _content_hashes(self, arrays: dict[str, pa.Array]) -> pa.Array:
        hashes: list[str | None] = []
        for told in zip(*(arrays[name].to_pylist() for name in ("text", "options", "image_key")), strict=True):
            known = self._hashes.get(told)
            if known is None and told[0]:
                known = content_hash(told[0], orjson.loads(told[1]) if told[1] else None, told[2])
                if len(self._hashes) >= _REMEMBERED:
                    self._hashes.clear()
                self._hashes[told] = known
            hashes.append(known)
        return pa.array(hashes, pa.string())


def _check_letters(rows: Rows, record: dict[str, pa.Array], arrays: dict[str, pa.Array]) -> None:
    """An option letter outside the options: none is right there, and no confidence can be highest.

    A wrong answer with such a letter is a wrong answer: it stays, without the letter, and is reported.
    """
    for name in _LETTER_COLUMNS:
        told = arrays[name] if name == "gold" else record[name]
        outside = pc.fill_null(pc.greater_equal(pc.index_in(told, value_set=_LETTERS), arrays["n_options"]), fill_value=False)
        dropped = np.zeros(len(rows), bool)
        for row in pc.indices_nonzero(outside).to_pylist():
            letter, options = told[row].as_py(), arrays["options"][row].as_py()
            if options and letter in orjson.loads(options):
                continue
            dropped[row] = True
            problem = f"column {name}: {_outside(arrays['n_options'][row].as_py(), letter)}"
            if name == "prediction" and not record["correct"][row].as_py():
                rows.notes[row] = f"{problem} (the record is kept without it)"
            else:
                rows.refused.setdefault(row, f"{problem} (correct the line)")
        if dropped.any() and name == "prediction":
            record[name] = pc.if_else(pa.array(dropped), pa.scalar(None, pa.string()), told)


def _outside(count: int, letter: str) -> Problem:
    return Problem(expected=f"an option from A to {chr(64 + min(count, 26))}", found=letter)


def _lengths(options: pa.Array) -> pa.Array:
    counts: dict[str, int] = {}
    told = options.to_pylist()
    return pa.array(
        [None if one is None else counts.get(one) or counts.setdefault(one, len(orjson.loads(one))) for one in told], pa.int64()
    )


def _filled(labels: pa.Array) -> pa.Array:
    return pc.if_else(pc.equal(labels, ""), pa.scalar(None, pa.string()), labels)
