"""Questions as tables tell them: each once per file, and what must hold between a question and its answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from tracker.batch import LABELS, QUESTIONS
from tracker.readers import columns as check
from tracker.readers.columns import Checked, Problem, pick
from tracker.readers.values import content_hash

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

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


@dataclass(frozen=True, slots=True)
class _Options:
    """How many options a question has, and those that are a letter themselves."""

    count: int | None = None
    letters: frozenset[str] = frozenset()


_UNKNOWN = _Options()


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """Questions and labels that a chunk tells, each with the row that tells it."""

    rows: np.ndarray[Any, np.dtype[np.int64]]
    table: pa.Table | None = None
    labels: dict[str, list[str | None]] = field(default_factory=dict)
    keys: list[str] = field(default_factory=list)

    def of(self, position: np.ndarray[Any, np.dtype[np.int64]], start: int, stop: int) -> list[int]:
        """Which of them stand in rows `start` to `stop` of the sorted chunk."""
        places = position[self.rows]
        return np.flatnonzero((places >= start) & (places < stop)).tolist()

    def questions(self, chosen: list[int]) -> pa.Table | None:
        """The chosen questions."""
        return self.table.take(pa.array(chosen, pa.int64())) if self.table is not None and chosen else None

    def label_table(self, chosen: list[int], source: str) -> pa.Table | None:
        """The labels of the chosen questions."""
        labels = [
            {"key": self.keys[index], "scheme": scheme, "value": value, "source": source}
            for scheme, told in self.labels.items()
            for index in chosen
            if (value := told[index])
        ]
        return pa.Table.from_pylist(labels, schema=LABELS) if labels else None


class QuestionBook:
    """The questions of one source: a key is told by the first good row that asks it."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], _Options] = {}
        self._fewest = 27

    def read(self, rows: Rows) -> Told:
        """What this chunk tells of questions that were not told before; bad ones refuse their row."""
        named = [name for name in QUESTION_COLUMNS if name in rows.columns]
        labels = [name for name in LABEL_COLUMNS if name in rows.columns]
        if not named and not labels:
            return Told(rows=np.array([], np.int64))
        while True:
            fresh = self._fresh(rows)
            picked = {name: QUESTION_COLUMNS[name](pick(rows.columns[name], fresh)) for name in named}
            bad = _problems(picked)
            if not bad:
                break
            for position, reason in bad.items():
                rows.refused.setdefault(fresh[position], reason)
        keys = [rows.identities[row][1] for row in fresh]
        table = _table(keys, picked)
        for row, count, options in zip(fresh, table["n_options"].to_pylist(), table["options"].to_pylist(), strict=True):
            letters = frozenset(one for one in orjson.loads(options) if len(one) == 1) if options else frozenset()
            self._known[rows.identities[row]] = _Options(count, letters)
            self._fewest = min(self._fewest, count or 27)
        told = {name: check.texts(pick(rows.columns[name], fresh)).array.to_pylist() for name in labels}
        return Told(rows=np.array(fresh, np.int64), table=table if named and fresh else None, labels=told, keys=keys)

    def check_letters(self, rows: Rows, record: dict[str, pa.Array]) -> None:
        """An option letter outside the options: no confidence can be highest there and no such answer can be right.

        A wrong answer with such a letter is a wrong answer: it stays, without the letter, and is reported.
        """
        for name in ("logit_prediction", "prediction"):
            letters = pc.index_in(record[name], value_set=_LETTERS)
            late = pc.fill_null(pc.greater_equal(letters, self._fewest), fill_value=False)
            candidates = np.flatnonzero(rows.good() & late.to_numpy(zero_copy_only=False)).tolist()
            outside = np.zeros(len(rows), bool)
            for row, code in zip(candidates, letters.take(pa.array(candidates, pa.int64())).to_pylist(), strict=True):
                options = self._known.get(rows.identities[row], _UNKNOWN)
                if options.count is None or code < options.count or chr(65 + code) in options.letters:
                    continue
                outside[row] = True
                problem = f"column {name}: {_outside(options.count, chr(65 + code))}"
                if name == "logit_prediction" or record["correct"][row].as_py():
                    rows.refused.setdefault(row, f"{problem} (correct the line)")
                else:
                    rows.notes[row] = f"{problem} (the record is kept without it)"
            if outside.any():
                record[name] = pc.if_else(pa.array(outside), pa.scalar(None, pa.string()), record[name])

    def _fresh(self, rows: Rows) -> list[int]:
        fresh: dict[tuple[str, str], int] = {}
        for row in np.flatnonzero(rows.good()).tolist():
            key = rows.identities[row]
            if key not in self._known and key not in fresh:
                fresh[key] = row
        return list(fresh.values())


def _problems(picked: Mapping[str, Checked]) -> dict[int, str]:
    bad: dict[int, str] = {}
    for name, checked in picked.items():
        for position, problem in checked.problems.items():
            bad.setdefault(position, f"column {name}: {problem}")
    if "gold" not in picked:
        return bad
    options = picked["options"].array.to_pylist() if "options" in picked else None
    counts = picked["n_options"].array.to_pylist() if "n_options" in picked else None
    for position, gold in enumerate(picked["gold"].array.to_pylist()):
        listed = orjson.loads(options[position]) if options and options[position] else []
        count = (counts[position] if counts else None) or len(listed)
        if gold and count and len(gold) == 1 and "A" <= gold <= "Z" and ord(gold) - 65 >= count and gold not in listed:
            bad.setdefault(position, f"column gold: {_outside(count, gold)} (correct the line)")
    return bad


def _outside(count: int, letter: str) -> Problem:
    return Problem(expected=f"an option from A to {chr(64 + min(count, 26))}", found=letter)


def _table(keys: list[str], picked: Mapping[str, Checked]) -> pa.Table:
    arrays: dict[str, Any] = {one.name: pa.nulls(len(keys), one.type) for one in QUESTIONS}
    arrays["key"] = pa.array(keys, pa.string())
    arrays |= {name: checked.array for name, checked in picked.items()}
    listed: list[list[str] | None] = [None if one is None else orjson.loads(one) for one in arrays["options"].to_pylist()]
    arrays["n_options"] = pc.coalesce(arrays["n_options"], pa.array([None if one is None else len(one) for one in listed], pa.int64()))
    if "text" in picked:
        told = zip(arrays["text"].to_pylist(), listed, arrays["image_key"].to_pylist(), strict=True)
        hashes = [content_hash(words, options, image) if words else None for words, options, image in told]
        arrays["content_hash"] = pc.coalesce(arrays["content_hash"], pa.array(hashes, pa.string()))
    return pa.table([arrays[name] for name in QUESTIONS.names], schema=QUESTIONS)
