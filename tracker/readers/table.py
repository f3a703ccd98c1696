"""Ad-hoc tables, as the `[[table]]` rules of a study file describe them.

A row becomes one row in native columns (or several, where its cells are lists of one entry per option cycle).
Losses are mean negative log-likelihoods: the lowest is the best option.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tracker.batch import Batch, Refusal, Source
from tracker.errors import InputError
from tracker.readers import runs
from tracker.readers.assemble import Assembler
from tracker.readers.tabular import Chunk, Truncated, chunks, kind_of
from tracker.readers.values import best, column_names, columns_of, is_missing, json_text, number, option_list, p_gold, softmax, text, whole
from tracker.rules import dotted
from tracker.study import coerce

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from tracker.readers.base import Folder
    from tracker.study import Study
    from tracker.table_rules import TableRule

READER_NAME = "table"
_LETTER = re.compile(r"^\(?([A-Z])\)?[.:]?$")
_DERIVED = ("losses", "log_likelihoods", "probabilities", "question_id", "options", "gold", "prediction")


@dataclass(frozen=True, slots=True)
class TableReader:
    """Ad-hoc tables."""

    name: str = READER_NAME
    version: int = 1

    def find(self, folder: Folder, study: Study) -> Sequence[Source]:
        """The files that a rule names; empty ones too, so that reading refuses them."""
        paths = [folder.path / name for name in sorted(folder.names)] if study.tables else []
        return [Source(reader=self.name, uri=str(path.resolve()), files=(path,)) for path in paths if study.table_rule(path) is not None]

    def read(self, source: Source, study: Study) -> Iterator[Batch | Refusal]:
        """Batches per chunk and run."""
        path = source.files[0]
        rule = study.table_rule(path)
        if rule is None:
            message = "no [[table]] rule names this file"
            raise InputError(message, where=str(path), hint="ingest with the study file that does")
        given = coerce(rule.captures(study.path_text(path)) or {}, f"{path}: [[table]] of {study.file}") | study.fields(path)
        yield from _Table(path, rule, given).read()


class _Table:
    """One file under one rule."""

    def __init__(self, path: Path, rule: TableRule, given: dict[str, Any]) -> None:
        self.path, self.rule = path, rule
        self.fixed = {name: value for name, value in given.items() if name in (*runs.KEYS, *runs.FACTS, "status")}
        self.fixed |= {"run_id": given["external_id"]} if "external_id" in given else {}
        self.free = {name: value for name, value in given.items() if name.startswith(("tags.", "settings."))}
        self.used = {name for cell in rule.columns.values() for name in cell.columns}

    def read(self) -> Iterator[Batch | Refusal]:
        """The file's batches and refusals."""
        head = _head(self.path)
        if not head:
            message = "empty file"
            raise InputError(message, where=str(self.path), hint="delete it or run its writer again")
        for name in ("model", "benchmark"):
            if name not in self.fixed and name not in self.rule.columns:
                message = f"nothing says which {name} this is"
                raise InputError(
                    message, where=str(self.path), hint=f"capture it in files, or add a constant to the [[table]] rule: {name} = ..."
                )
        from tracker.readers.native import read_pieces

        assembler = Assembler(str(self.path), fixed=self.fixed, extra_scores=False, label_source=READER_NAME)
        yield from read_pieces(self.path, self._pieces(self.rule.format or kind_of(self.path, head) or "jsonl"), assembler)

    def _pieces(self, kind: Any) -> Iterator[Chunk | Refusal | Truncated]:
        first = True
        for piece in chunks(self.path, kind):
            if not isinstance(piece, Chunk):
                yield piece
                continue
            rows = piece.dicts()
            if first:
                self._require(rows)
                first = False
            yield from self._mapped(piece, rows)

    def _require(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Refuse a file that lacks a column without which no row can be read."""
        for field in ("question_id", "correct", "score", "prediction", "gold", "model", "benchmark"):
            cell = self.rule.columns.get(field)
            if cell is None or cell.value is not None:
                continue
            wanted = cell.columns if field != "question_id" else [name for name in cell.columns if not _has(rows, name)]
            if not any(_has(rows, name) for name in wanted) and wanted:
                message = (
                    f"no column {' or '.join(wanted)} (for {field}); its columns are {', '.join(column_names(list(map(dict, rows[:100]))))}"
                )
                raise InputError(message, where=str(self.path), hint="correct the [[table]] rule of the study file")

    def _mapped(self, piece: Chunk, rows: Sequence[Mapping[str, Any]]) -> Iterator[Chunk | Refusal]:
        mapped: list[dict[str, Any]] = []
        origin: list[int] = []
        for position, row in enumerate(rows):
            try:
                native = [self._native(*one) for one in self._unfold(row)]
            except _BadRowError as err:
                place = "" if piece.unit == "line" else f"{piece.unit} {piece.lines[position]}: "
                yield Refusal(file=str(self.path), line=piece.lines[position], reason=f"{place}{err}", text=piece.text(position))
                continue
            mapped.extend(native)
            origin.extend([position] * len(native))
        if mapped:
            yield Chunk(
                columns={**columns_of(mapped)},
                lines=[piece.lines[position] for position in origin],
                raw=[piece.raw[position] for position in origin] if piece.raw is not None else None,
                unit=piece.unit,
            )

    def _unfold(self, row: Mapping[str, Any]) -> list[tuple[Mapping[str, Any], dict[str, Any], int | None]]:
        """(row, cells by field, entry number): one per row, or one per entry of its list cells."""
        cells = {field: cell.of(row) for field, cell in self.rule.columns.items() if field != "question_id"}
        if not self.rule.unfold:
            if "correct" not in cells and all(isinstance(cells.get(field), list) for field in ("prediction", "gold")):
                message = "prediction and gold are lists (add unfold = true to the [[table]] rule: one record per entry)"
                raise _BadRowError(message)
            return [(row, cells, None)]
        if isinstance(self.rule.unfold, tuple):
            listed = [field for field in self.rule.unfold if isinstance(cells.get(field), list)]
        else:
            size = next(
                (len(cells[field]) for field in ("prediction", "correct", "score", "gold") if isinstance(cells.get(field), list)), None
            )
            listed = [field for field, cell in cells.items() if isinstance(cell, list) and len(cell) == size]
        lengths = {len(cells[field]) for field in listed}
        outcome = [field for field in ("prediction", "correct", "score", "gold") if isinstance(cells.get(field), list)]
        if len(lengths) != 1 or not set(outcome) <= set(listed):
            found = ", ".join(f"{field} {len(cell)}" for field, cell in cells.items() if isinstance(cell, list)) or "no lists"
            message = f"expected lists of one length to unfold, found {found}"
            raise _BadRowError(message)
        return [
            (row, {field: cell[entry] if field in listed else cell for field, cell in cells.items()}, entry)
            for entry in range(lengths.pop())
        ]

    def _native(self, row: Mapping[str, Any], cells: dict[str, Any], entry: int | None) -> dict[str, Any]:
        """One row in native columns."""
        native = {name: value for name, value in cells.items() if name not in _DERIVED}
        native["question_id"] = self._key(row, entry)
        options = _options(cells)
        scores = _log_likelihoods(cells)
        count = len(options) if options else len(scores) if scores else None
        if options and scores and len(options) != len(scores):
            message = f"expected one value per option ({len(options)}), found {len(scores)}"
            raise _BadRowError(message)
        if count is not None:
            native.setdefault("n_options", count)
        gold, prediction = cells.get("gold"), cells.get("prediction")
        native |= {"options": options, "gold": text(gold), "prediction": text(prediction)}
        if scores is not None and count is not None:
            native |= self._confidence(scores, gold, prediction, options, count, cells)
        if "correct" not in self.rule.columns and {"prediction", "gold"} <= self.rule.columns.keys():
            native |= {"correct": self._is_correct(prediction, gold, options, count), "score_rule": "prediction == gold"}
        elif "correct" in self.rule.columns:
            native["score_rule"] = (
                f"column {self.rule.columns['correct'].columns[0] if self.rule.columns['correct'].columns else 'constant'}"
            )
        native |= {f"settings.{name}": value for name, value in row.items() if name not in self.used}
        return native | self.free

    def _key(self, row: Mapping[str, Any], entry: int | None) -> str | None:
        cell = self.rule.columns["question_id"]
        parts = [cell.value] if cell.value is not None else [dotted(row, name) for name in cell.columns]
        if any(is_missing(part) for part in parts):
            missing = [name for name, part in zip(cell.columns, parts, strict=False) if is_missing(part)]
            message = f"column {', '.join(missing)}: expected a value for question_id, found None"
            raise _BadRowError(message)
        return "/".join([text(part) or "" for part in parts] + ([] if entry is None else [str(entry)]))

    def _confidence(
        self, scores: list[float | None], gold: Any, prediction: Any, options: list[str] | None, count: int, cells: Mapping[str, Any]
    ) -> dict[str, Any]:
        position = self._position(gold, options, count)
        likeliest = best(scores)
        found: dict[str, Any] = {}
        if "option_scores" not in cells:
            found["option_scores"] = json_text([one if one is not None and math.isfinite(one) else None for one in scores])
        if "p_gold" not in cells:
            found["p_gold"] = p_gold(scores, position)
        if "logit_prediction" not in cells and likeliest is not None and softmax(scores) is not None:
            found["logit_prediction"] = self._named(likeliest, gold if gold is not None else prediction, options)
        return found

    def _position(self, answer: Any, options: list[str] | None, count: int) -> int | None:
        """Which option an answer means."""
        way = self._way(answer, options)
        if way == "index":
            found = whole(answer)
            position = None if found is None else found - self.rule.first_index
        elif way == "letter":
            met = _LETTER.match(str(answer).strip())
            position = ord(met[1]) - 65 if met else None
        else:
            position = options.index(str(answer)) if options and str(answer) in options else None
        return position if position is not None and 0 <= position < count else None

    def _way(self, answer: Any, options: list[str] | None) -> str:
        """How answers are written: as the rule says, else a number is an index, an option's own text is text."""
        if self.rule.answers:
            return self.rule.answers
        if isinstance(answer, int | float) and not isinstance(answer, bool):
            return "index"
        written = str(answer).strip()
        if options and written in options:
            return "text"
        return "letter" if _LETTER.match(written) else "index" if whole(written) is not None else "text"

    def _named(self, position: int, like: Any, options: list[str] | None) -> str:
        """An option, written as answers are written."""
        way = "letter" if like is None and not self.rule.answers else self._way(like, options)
        if way == "index":
            return str(position + self.rule.first_index)
        return (
            chr(65 + position) if way == "letter" and position < 26 else options[position] if options and way == "text" else str(position)
        )

    def _is_correct(self, prediction: Any, gold: Any, options: list[str] | None, count: int | None) -> bool | None:
        if prediction is None or gold is None or (isinstance(prediction, float) and math.isnan(prediction)):
            return None
        if (text(prediction) or "").strip() == (text(gold) or "").strip():
            return True
        if count is None or self._way(prediction, options) == self._way(gold, options):
            return False
        chosen = self._position(prediction, options, count)
        return chosen is not None and chosen == self._position(gold, options, count)


class _BadRowError(Exception):
    """A row that cannot be read; the message is the reason of its refusal."""


def _options(cells: Mapping[str, Any]) -> list[str] | None:
    told = cells.get("options")
    if is_missing(told):
        return None
    options = option_list(told)
    if options is None:
        message = f"options: expected a list of options (or 'A. ...' lines), found {str(told)[:60]!r}"
        raise _BadRowError(message)
    return options


def _log_likelihoods(cells: Mapping[str, Any]) -> list[float | None] | None:
    """Log-likelihoods of the options in nats, from whatever the table has."""
    for field in ("log_likelihoods", "losses", "probabilities"):
        told = cells.get(field)
        if is_missing(told):
            continue
        if isinstance(told, str):
            told = _json_list(field, told)
        told = list(told.values()) if isinstance(told, dict) else told
        if not isinstance(told, list):
            message = f"{field}: expected a list of numbers, one per option, found {str(told)[:60]!r}"
            raise _BadRowError(message)
        return [_log_likelihood(field, one) for one in told] or None
    return None


def _json_list(field: str, told: str) -> Any:
    import json

    try:
        return json.loads(told)
    except (ValueError, RecursionError) as err:
        message = f"{field}: expected a list of numbers, one per option, found {told[:60]!r}"
        raise _BadRowError(message) from err


def _log_likelihood(field: str, told: Any) -> float | None:
    found = number(told)
    if found.special == "nan" or told is None:
        return None
    if found.value is None and found.special is None:
        message = f"{field}: expected a number for each option, found {told!r}"
        raise _BadRowError(message)
    value = found.value if found.value is not None else math.inf if found.special == "inf" else -math.inf
    if field == "losses":
        return -value
    if field == "log_likelihoods":
        return value
    if value < 0 or not math.isfinite(value):
        message = f"{field}: expected probabilities from 0, found {told!r}"
        raise _BadRowError(message)
    return math.log(value) if value > 0 else -math.inf


def _has(rows: Sequence[Mapping[str, Any]], name: str) -> bool:
    return any(name in row or dotted(row, name) is not None for row in rows)


def _head(path: Path) -> bytes:
    from tracker.readers.native import head_of

    return head_of(path)


READER = TableReader()
