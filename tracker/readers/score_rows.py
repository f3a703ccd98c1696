"""Rows of score tables become runs without records: one for each model, benchmark and configuration."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tracker.batch import AggregateScore, Batch, Refusal, Settings, empty_records
from tracker.errors import InputError
from tracker.readers import runs
from tracker.readers.lines import listed, shorten
from tracker.readers.values import Number, is_missing, number, text, whole
from tracker.study import coerce

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tracker.readers.tabular import Chunk

OWN = ("metric", "value", "stderr", "n", "step", "tokens")
"""Fields of a score; every other field is one of its run."""
NOTHING_WRITTEN = frozenset({"", "-", "--", "–", "—", "na", "n/a", "none", "null", "n.a.", "tbd", "?"})
_PLUS_MINUS = re.compile(r"\s*(?:±|\+/-|\+-)\s*")
_THOUSANDS = re.compile(r"[-+]?\d{1,3}(?:,\d{3})+(?:\.\d+)?")


@dataclass(slots=True)
class _Run:
    """A run so far, and the scores that this chunk brings."""

    notes: runs.RunNotes
    scores: list[AggregateScore] = field(default_factory=list)


class ScoreRows:
    """Takes the scores of a file chunk by chunk. `fixed` gives fields of runs that the rows lack."""

    def __init__(self, file: str, fixed: Mapping[str, Any]) -> None:
        self.file = file
        self.fixed = dict(fixed)
        self.scores = 0
        self._runs: dict[tuple[Any, ...], _Run] = {}
        self._keys: dict[tuple[Any, ...], tuple[Any, ...]] = {}
        self._known: dict[tuple[Any, ...], tuple[float | None, str | None, int]] = {}

    def add(self, piece: Chunk, told: Sequence[tuple[int, str, dict[str, Any]]], divisor: Mapping[str, float]) -> Iterator[Batch | Refusal]:
        """Batches (one per run) and refusals of (row of the chunk, column of its value, cells by field)."""
        touched: dict[int, _Run] = {}
        last: tuple[int, str] | None = None
        for at, column, cells in told:
            line = piece.lines[at]
            try:
                run = self._score(line, column, cells, divisor)
            except ValueError as err:
                place = "" if piece.unit == "line" else f"{piece.unit} {line}: "
                if last != (at, str(err)):  # a row without a model is said once, not for each of its scores
                    yield Refusal(file=self.file, line=line, reason=f"{place}{err}", text=piece.text(at))
                last = (at, str(err))
                continue
            if run is not None:
                touched[id(run)] = run
        for run in touched.values():
            self.scores += len(run.scores)
            yield Batch(run=run.notes.header(self.fixed), records=empty_records(), scores=tuple(run.scores))
            run.scores = []

    def finish(self, reason: str) -> Iterator[Batch]:
        """Every run again, without scores, now known to be partial."""
        for run in self._runs.values():
            header = run.notes.header(self.fixed)
            yield Batch(run=header.model_copy(update={"status": "partial", "status_reason": reason}), records=empty_records())

    def _score(self, line: int, column: str, cells: Mapping[str, Any], divisor: Mapping[str, float]) -> _Run | None:
        """Take one score in; None where nothing is written. ValueError says what is wrong with it."""
        value, spread = score_of(cells.get("value"), column)
        if value is None:
            return None
        key, given = self._key(cells)
        metric = text(cells.get("metric"))
        if not (metric or "").strip():
            message = "expected a value for metric, found None"
            raise ValueError(message)
        by = divisor.get(key[1], divisor.get("*", 1.0))
        stderr = _spread(cells.get("stderr")) if not is_missing(cells.get("stderr")) else spread
        score = AggregateScore(
            metric=str(metric).strip(),
            value=None if value.value is None else value.value / by,
            special=value.special,
            stderr=None if stderr is None else stderr / by,
            n=_count("n", cells.get("n")),
            step=_count("step", cells.get("step")),
            tokens=_amount("tokens", cells.get("tokens")),
        )
        run = self._runs.get(key)
        facts = {name: cells[name] for name in runs.FACTS if not is_missing(cells.get(name))}
        for name, fact in facts.items():
            _check_fact(name, fact)
        if run is None:
            run = self._runs[key] = _Run(runs.RunNotes(key))
        if self._is_known(key, score, line):
            return None
        for name, fact in facts.items():
            run.notes.learn_fact(name, [fact])
        for name, one in given.items():
            run.notes.learn_constant(name, [one])
        run.scores.append(score)
        return run

    def _key(self, cells: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """What makes the run of a score, and what else is said of it."""
        raw = tuple(_hashable(cells.get(name)) for name in runs.KEYS)
        given = {name: value for name, value in cells.items() if name not in OWN and name not in runs.KEYS and name not in runs.FACTS}
        known = self._keys.get(raw)
        if known is not None:
            return known, given
        values = {name: self.fixed.get(name) if is_missing(cells.get(name)) else cells[name] for name in runs.KEYS}
        for name in ("model", "benchmark"):
            named = values[name] = (text(values[name]) or "").strip()
            if named.lower() in NOTHING_WRITTEN:
                message = f"expected a value for {name}, found {_quoted(cells.get(name))}"
                raise ValueError(message)
        settings = {name: values[name] for name in Settings.model_fields if values[name] is not None}
        try:
            typed = coerce(settings, "")
        except InputError as err:
            raise ValueError(shorten(err.message)) from err
        known = tuple(
            text(values[name]) if name == "run_id" else typed.get(name, values[name] if name in {"model", "benchmark"} else None)
            for name in runs.KEYS
        )
        self._keys[raw] = known
        return known, given

    def _is_known(self, key: tuple[Any, ...], score: AggregateScore, line: int) -> bool:
        """Whether the same score was met before; ValueError where it was another value."""
        mark = (key, score.metric, score.step, score.tokens)
        now = (score.value, score.special)
        first = self._known.get(mark)
        if first is None:
            self._known[mark] = (*now, line)
            return False
        if first[:2] == now:
            return True
        message = (
            f"a second {listed([score.metric])} of {listed(key[:1])} on {listed(key[1:2])}, {_shown(now)} instead of {_shown(first)} in line {first[2]}"
            " (give the column that tells the two apart a field, such as variant)"
        )
        raise ValueError(message)


def score_of(value: Any, column: str) -> tuple[Number | None, float | None]:
    """A score and its standard error as a table writes them; (None, None) where nothing is written. ValueError for anything else."""
    if isinstance(value, str):
        told = value.strip()
        if told.lower() in NOTHING_WRITTEN:
            return None, None
        parts = _PLUS_MINUS.split(told)
        if len(parts) <= 2:
            found = _parsed(parts[0])
            spread = _parsed(parts[1]).value if len(parts) == 2 else None
            if (found.value is not None or found.special is not None) and (len(parts) == 1 or spread is not None):
                return found, spread
    elif value is None:
        return None, None
    elif isinstance(value, int | float) and not isinstance(value, bool):
        return number(value), None
    message = f"column {column}: expected a number, found {_quoted(value)}"
    raise ValueError(message)


def _parsed(told: str) -> Number:
    told = told.strip().removesuffix("%").strip()
    return number(told.replace(",", "") if _THOUSANDS.fullmatch(told) else told)


def _spread(value: Any) -> float | None:
    found, _ = score_of(value, "stderr")
    return None if found is None or found.value is None or found.value < 0 else found.value


def _count(name: str, value: Any) -> int | None:
    if is_missing(value) or (isinstance(value, str) and value.strip().lower() in NOTHING_WRITTEN):
        return None
    found = whole(_parsed(value).value if isinstance(value, str) else value)
    if found is None or found < 0:
        message = f"column {name}: expected a whole number from 0, found {_quoted(value)}"
        raise ValueError(message)
    return found


def _amount(name: str, value: Any) -> float | None:
    found, _ = score_of(value, name)
    if found is None:
        return None
    if found.value is None or not math.isfinite(found.value) or found.value < 0:
        message = f"column {name}: expected a number from 0, found {_quoted(value)}"
        raise ValueError(message)
    return found.value


def _check_fact(name: str, value: Any) -> None:
    convert, expected = runs.FACTS[name]
    try:
        convert(value)
    except (ValueError, OverflowError, OSError) as err:
        message = f"column {name}: expected {expected}, found {_quoted(value)}"
        raise ValueError(message) from err


def _quoted(value: Any) -> str:
    shown = repr(text(value))
    return shown if len(shown) <= 80 else f"{shown[:77]}..."


def _hashable(value: Any) -> Any:
    return text(value) if isinstance(value, list | dict) else (type(value), value)


def _shown(value: Sequence[Any]) -> str:
    return str(value[1] or value[0])
