"""Chunks of rows in native columns become batches: values checked, rows grouped by run, with what each row tells of its question.

Rows of many runs may be interleaved in a file of any size. What is kept beside the chunk is small: a header per
run.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tracker.batch import QUESTIONS, RECORDS, Batch, Refusal, Settings
from tracker.readers import columns as check
from tracker.readers import runs
from tracker.readers.columns import Checked, pick
from tracker.readers.questions import LABEL_COLUMNS, QUESTION_COLUMNS, QuestionReader
from tracker.readers.rows import Rows
from tracker.readers.scores import further_scores, is_score
from tracker.readers.values import is_missing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tracker.readers.tabular import Chunk

    Positions = np.ndarray[Any, np.dtype[np.int64]]

SYNONYMS = {"external_id": "run_id", "epoch": "repetition", "image": "image_key", "question": "text", "answer": "gold"}
"""Other names of native columns, used where the native name itself is absent."""
RECORD_COLUMNS: dict[str, Callable[[Any], Checked]] = {
    "correct": check.truths,
    "score_rule": check.texts,
    "prediction": check.texts,
    "logit_prediction": check.texts,
    "p_gold": lambda column: check.finite(column, fraction=True),
    "option_scores": check.number_lists,
    "visual_tokens": check.wholes,
    "prompt_tokens": check.wholes,
    "generated_tokens": check.wholes,
    "tiles": check.wholes,
    "effective_pixels": check.wholes,
    "vision_flops": check.finite,
    "latency_s": check.finite,
    "response": check.texts,
    "repetition": lambda column: check.wholes(column, most=2**31 - 1),
    "attempt": lambda column: check.wholes(column, most=2**31 - 1),
}
REQUIRED = frozenset({"model", "benchmark"})
RECORD_STATUS = ("scored", "unscored", "failed")
KNOWN_COLUMNS = frozenset(
    {
        "question_id",
        "score",
        "status",
        "scores",
        "settings",
        "tags",
        *runs.KEYS,
        *runs.FACTS,
        *RECORD_COLUMNS,
        *QUESTION_COLUMNS,
        *LABEL_COLUMNS,
        *SYNONYMS,
    }
)
"""Every column that has a meaning of its own."""


class Assembler:
    """Turns the chunks of one source into batches.

    `fixed` gives run columns that the file itself lacks. With `extra_scores` a further numeric column is a further
    score of its records; other columns without a meaning are kept as settings where they are constant in the run.
    Whatever is not kept is named in the run's settings under `columns_not_kept`.
    """

    def __init__(
        self, file: str, *, fixed: Mapping[str, Any] | None = None, extra_scores: bool = True, label_source: str = "native"
    ) -> None:
        self.file, self.fixed, self.extra_scores, self.label_source = file, dict(fixed or {}), extra_scores, label_source
        self._runs: dict[tuple[Any, ...], runs.RunNotes] = {}
        self._questions = QuestionReader()
        self.chunks = 0
        self.records = 0

    def add(self, chunk: Chunk) -> Iterator[Batch | Refusal]:
        """Refusals, then batches (one per run) of a chunk."""
        self.chunks += 1
        rows = Rows(chunk, _named(chunk.columns))
        keys = self._run_keys(rows)
        record = _records(rows)
        _require_outcome(rows, record)
        told = self._questions.read(rows, record)
        yield from rows.refusals(self.file)
        good = np.flatnonzero(rows.good())
        if not len(good):
            return
        order, groups = _groups(keys, good)
        table = pa.table([record[name] for name in RECORDS.names], names=RECORDS.names).take(pa.array(order)).cast(RECORDS)
        told = told.ordered(order)
        self.records += len(order)
        for start, stop in groups:
            members = order[start:stop].tolist()
            run = self._run(keys, members[0])
            scorers = self._learn(run, rows, members)
            questions = told.questions(start, stop)
            yield Batch(
                run=run.header(self.fixed),
                records=table.slice(start, stop - start),
                questions=None if questions is None else questions.cast(QUESTIONS),
                labels=told.label_table(start, stop, self.label_source),
                record_scores=further_scores(rows, scorers, members),
            )

    def finish(self, reason: str) -> Iterator[Batch]:
        """Every run again, without records, now known to be partial."""
        for run in self._runs.values():
            header = run.header(self.fixed)
            status = "failed" if header.status == "failed" else "partial"
            yield Batch(run=header.model_copy(update={"status": status, "status_reason": reason}), records=RECORDS.empty_table())

    def _run_keys(self, rows: Rows) -> dict[str, pa.Array]:
        keys: dict[str, pa.Array] = {}
        for name in runs.KEYS:
            fixed = self.fixed.get(name)
            column = rows.columns.get(name)
            if column is None and fixed is None and name not in REQUIRED:
                continue
            if column is None:
                column = [fixed] * len(rows)
            elif fixed is not None:
                column = [fixed if is_missing(value) else value for value in check.to_list(column)]
            checked = check.keys(column, name) if name in REQUIRED else _setting(name, column)
            rows.reject(name, checked)
            keys[name] = checked.array
        for name, convert in runs.FACTS.items():
            if name in rows.columns:
                rows.reject(name, check.each_once(rows.columns[name], *convert))
        return keys

    def _run(self, keys: Mapping[str, pa.Array], row: int) -> runs.RunNotes:
        key = tuple(keys[name][row].as_py() if name in keys else None for name in runs.KEYS)
        return self._runs.setdefault(key, runs.RunNotes(key))

    def _learn(self, run: runs.RunNotes, rows: Rows, members: list[int]) -> list[str]:
        """Take in what these rows say about their run; the columns that are further scores are left and named."""
        scorers: list[str] = []
        for name, column in rows.columns.items():
            if name in runs.FACTS:
                run.learn_fact(name, pick(column, members))
            elif name == "status":
                run.learn_status(pick(column, members))
            elif name in {"settings", "tags"}:
                run.learn_object(name, pick(column, members[-1:])[0])
            elif name in KNOWN_COLUMNS or name.startswith("scores."):
                continue
            elif self.extra_scores and is_score(name, pick(column, members)):
                scorers.append(name)
            else:
                run.learn_constant(name, pick(column, members))
        return scorers


def _named(columns: Mapping[str, Any]) -> dict[str, Any]:
    named = dict(columns)
    for other, name in SYNONYMS.items():
        if other in named and name not in named:
            named[name] = named.pop(other)
    return named


def _records(rows: Rows) -> dict[str, pa.Array]:
    """The columns of RECORDS; rows with a bad value are refused."""
    record: dict[str, pa.Array] = {}
    ids = check.keys(rows.columns.get("question_id", [None] * len(rows)), "question_id")
    rows.reject("question_id", ids)
    record["question_key"] = ids.array
    for name, convert in RECORD_COLUMNS.items():
        if name in rows.columns:
            checked = convert(rows.columns[name])
            rows.reject(name, checked)
            record[name] = checked.array
    if "score" in rows.columns:
        checked = check.scores(rows.columns["score"])
        rows.reject("score", checked)
        record["score"] = checked.array
        record["special"] = checked.special
    if "status" in rows.columns:
        checked = check.words(rows.columns["status"], (*RECORD_STATUS, *runs.STATUS[:2]))
        rows.reject("status", checked)
        said_of_run = pc.is_in(checked.array, value_set=pa.array(runs.STATUS[:2]))
        record["status"] = pc.if_else(said_of_run, pa.scalar(None, pa.string()), checked.array)
    nothing = {one.name: pa.nulls(len(rows), one.type) for one in RECORDS}
    return {one.name: nothing[one.name] if record.get(one.name) is None else record[one.name].cast(one.type) for one in RECORDS}


def _require_outcome(rows: Rows, record: Mapping[str, pa.Array]) -> None:
    """A row must at least mention correct, score or status."""
    for row in rows.chunk.silent:
        if all(record[name][row].as_py() is None for name in ("correct", "score", "special", "status")):
            rows.refused.setdefault(row, "expected correct or score, found neither (write null where there is none, or a status)")


def _groups(keys: Mapping[str, pa.Array], good: Positions) -> tuple[Positions, list[tuple[int, int]]]:
    """Good rows by run (runs by their first row, file order within), and where each run begins and ends."""
    codes = np.zeros(len(good), np.int64)
    taken = pa.array(good)
    for column in keys.values():
        encoded = column.take(taken).dictionary_encode()
        size = len(encoded.dictionary) + 1
        if size - 1 + (encoded.null_count > 0) > 1:
            code = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False).astype(np.int64) + 1
            codes = np.unique(codes * size + code, return_inverse=True)[1].astype(np.int64)
    _, first, codes = np.unique(codes, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    codes = rank[codes]
    order = np.argsort(codes, kind="stable")
    bounds = np.searchsorted(codes[order], np.arange(len(first) + 1)).tolist()
    return good[order], list(pairwise(bounds))


def _setting(name: str, column: Any) -> Checked:
    if name == "input_mode":
        return check.words(column, ("fixed", "native"))
    if name != "run_id" and "int" in str(Settings.model_fields[name].annotation):
        return check.wholes(column, least=0 if name == "few_shot" else 1)
    checked = check.texts(column)
    return Checked(array=pc.if_else(pc.equal(checked.array, ""), pa.scalar(None, pa.string()), checked.array))
