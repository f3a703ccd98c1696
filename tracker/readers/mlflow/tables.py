"""Evaluation tables among a run's artifacts: their columns become native columns, by the study's rule or by the names that people use."""

from __future__ import annotations

import re
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracker.batch import Refusal
from tracker.errors import InputError
from tracker.readers.keys import ID_FIELDS, question_key
from tracker.readers.lines import json_document
from tracker.readers.mlflow import grading
from tracker.readers.mlflow.texts import ASKED, EXPECTED, answered, asked
from tracker.readers.single import chunk_of
from tracker.readers.tabular import PARQUET_MAGIC, Chunk, chunks, csv_header, parquet_schema
from tracker.readers.values import content_hash, is_missing, number, option_list, text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from tracker.readers.mlflow.model import Artifact
    from tracker.readers.tabular import Truncated
    from tracker.table_rules import TableRule

    Piece = Chunk | Refusal | Truncated

SYNONYMS: dict[str, tuple[str, ...]] = {
    "text": ASKED[:-1],
    "prediction": ("prediction", "predictions", "pred", "parsed_answer", "predicted_answer", "model_prediction", "predicted"),
    "response": (
        "response", "responses", "outputs", "output", "model_output", "model_answer", "model_response", "completion", "generated_text", "generation",
    ),
    "gold": (*EXPECTED[:-2], "labels", "correct_answer", "answer", "expected"),
    "options": ("options", "choices"),
    "category": ("category", "subject"),
    "subcategory": ("subcategory", "sub_category"),
    "task": ("task", "task_name"),
    "image_key": ("image_key", "image_path", "image_id", "image"),
    "repetition": ("repetition", "epoch"),
    "p_gold": ("p_gold",),
    "prompt_tokens": ("prompt_tokens", "input_tokens"),
    "generated_tokens": ("generated_tokens", "output_tokens", "completion_tokens", "token_count"),
    "latency_s": ("latency_s", "latency", "latency_seconds"),
}  # fmt: skip
"""Column names by native column, in order; letters count in any case."""
SCORE_NAMES = ("score",)
"""Names that are the credit of an answer where none says right or wrong, if all values lie in [0, 1]."""
NO_SCORES = frozenset({"seed", "temperature", "top_p", "top_k", "latency_ms", "row", "row_id", "step", "timestamp", "n_options"})
HEAD_BYTES = 65_536
_SPLIT = re.compile(rb'\s*\{\s*"columns"\s*:\s*(\[(?:\s*"(?:[^"\\]|\\.)*"\s*,?)*\s*\])')


def names_in(path: Path) -> list[str]:
    """Column names of a table file, from its first bytes; empty where it is none. May raise OSError and InputError."""
    import orjson

    with path.open("rb") as stream:
        head = stream.read(HEAD_BYTES)
    if head.startswith(PARQUET_MAGIC):
        return list(parquet_schema(path).names)
    if path.suffix.lower() == ".json":
        met = _SPLIT.match(head.removeprefix(b"\xef\xbb\xbf"))
        return [str(one) for one in orjson.loads(met[1])] if met else []
    if path.suffix.lower() in {".csv", ".tsv"}:
        line = head.removeprefix(b"\xef\xbb\xbf").partition(b"\n")[0].decode("utf-8", "replace")
        names: list[str] = csv_header(line.rstrip("\r"), "\t" if path.suffix.lower() == ".tsv" else None)[0]
        return names
    return []


def is_credible(names: Iterable[str]) -> bool:
    """Whether columns of these names are questions and what came of them (and no native table, which has its own reader)."""
    known = {str(name).strip().lower() for name in names}
    if {"model", "benchmark", "question_id"} <= known:
        return False
    question = any(name in known for name in (*SYNONYMS["text"], *ID_FIELDS))
    asks = any(name in known for name in SYNONYMS["text"]) or any(name in known for name in ("question_id", "qid", "sample_id", "doc_id"))
    outcome = any(grading.rank(name) is not None or name in SCORE_NAMES for name in known)
    answers = any(name in known for field in ("prediction", "response") for name in SYNONYMS[field])
    return (asks and (outcome or answers)) or (question and outcome and answers)


@contextmanager
def as_file(artifact: Artifact) -> Iterator[Path]:
    """A table as a file here: its own, or a temporary one."""
    if artifact.file is not None:
        yield artifact.file
        return
    raw = artifact.load()
    with tempfile.TemporaryDirectory(prefix="trackr-mlflow-") as folder:
        path = Path(folder) / Path(artifact.path).name
        path.write_bytes(raw)
        yield path


def pieces(path: Path, shown: str) -> Iterator[Piece]:
    """The rows of a table file as they are; `shown` is its name in messages."""
    with path.open("rb") as stream:
        head = stream.read(len(PARQUET_MAGIC))
    if head == PARQUET_MAGIC:
        yield from chunks(path, "parquet")
    elif path.suffix.lower() in {".csv", ".tsv"}:
        yield from chunks(path, "tsv" if path.suffix.lower() == ".tsv" else "csv")
    elif path.suffix.lower() in {".jsonl", ".ndjson"}:
        yield from chunks(path, "jsonl")
    else:
        yield from _json_pieces(json_document(path), shown)


def _json_pieces(document: Any, shown: str) -> Iterator[Piece]:
    """The split form of pandas (what log_table writes), rows, or columns."""
    if isinstance(document, dict) and isinstance(document.get("columns"), list) and isinstance(document.get("data"), list):
        names = [text(name) or "" for name in document["columns"]]
        rows: list[dict[str, Any]] = []
        lines: list[int] = []
        for position, cells in enumerate(document["data"], 1):
            if isinstance(cells, list) and len(cells) == len(names):
                rows.append(dict(zip(names, cells, strict=True)))
                lines.append(position)
            else:
                found = f"{len(cells)} values" if isinstance(cells, list) else type(cells).__name__
                yield Refusal(
                    file=shown,
                    line=position,
                    reason=f"row {position}: expected a list of {len(names)} values, found {found} (log the table again)",
                )
    else:
        document = document.get("data", document) if isinstance(document, dict) and "schema" in document else document
        rows = _rows_of(document, shown)
        lines = list(range(1, len(rows) + 1))
    if rows:
        columns = {name: [row.get(name) for row in rows] for name in dict.fromkeys(name for row in rows for name in row)}
        yield Chunk(columns=columns, lines=lines, unit="row")


def _rows_of(document: Any, shown: str) -> list[dict[str, Any]]:
    if isinstance(document, list) and all(isinstance(row, dict) for row in document):
        return document
    if isinstance(document, dict) and document:
        columns = [list(one.values()) if isinstance(one, dict) else one for one in document.values()]
        if all(isinstance(one, list) for one in columns) and len({len(one) for one in columns}) == 1:
            return [dict(zip(document, cells, strict=True)) for cells in zip(*columns, strict=True)]
    message = f"expected a table (columns and data), found {type(document).__name__}"
    raise InputError(message, where=shown, hint="log it with mlflow.log_table")


class TableColumns:
    """How the columns of one table are read. Decided by its first rows, so that every row is judged alike."""

    def __init__(self, chunk: Chunk, benchmark: str) -> None:
        self.benchmark = benchmark
        cells = {name: one if isinstance(one, list) else one.to_pylist() for name, one in chunk.columns.items()}
        lowered = {name.strip().lower(): name for name in reversed(cells)}
        self.fields: dict[str, str] = {}
        taken: set[str] = set()
        for field, names in SYNONYMS.items():
            found = next((lowered[name] for name in names if name in lowered and lowered[name] not in taken), None)
            if found is not None:
                self.fields[field] = found
                taken.add(found)
        self.ids = [name for name in cells if name.strip().lower() in ID_FIELDS]
        ranked = sorted((place, name) for name in cells if name not in taken and (place := grading.rank(name)) is not None)
        named = [name for _, name in ranked] + [name for name in cells if name not in taken and name.strip().lower() in SCORE_NAMES]
        kinds = {name: kind for name in cells if name not in taken and (kind := grading.kind_of(name, cells[name])) is not None}
        self.primary = next((name for wanted in ("truth", "share") for name in named if kinds.get(name) == wanted), None)
        self.kind = kinds.get(self.primary) if self.primary is not None else None
        self.scores = {
            name: kind
            for name, kind in kinds.items()
            if name != self.primary and name not in self.ids and name.strip().lower() not in NO_SCORES and not name.lower().endswith("_id")
        }
        self.milliseconds = next((name for name in cells if name.strip().lower() == "latency_ms"), None)

    def native(self, chunk: Chunk, shown: str) -> Iterator[Refusal | Chunk]:
        """Rows in native columns, after refusals of single values; `shown` is the table's name."""
        rows = chunk.dicts()
        yield from self._odd(rows, chunk, shown)
        yield Chunk(columns=self._columns(rows), lines=chunk.lines, raw=chunk.raw, unit=chunk.unit)

    def _odd(self, rows: Sequence[Mapping[str, Any]], chunk: Chunk, shown: str) -> Iterator[Refusal]:
        """Scores that are neither right or wrong nor numbers: only rows after those that told the kinds can hold them."""
        names = [name for name in (self.primary, *self.scores) if name is not None]
        for row, line in zip(rows, chunk.lines, strict=True):
            for name in names:
                if grading.is_odd(value := row.get(name)):
                    reason = f"{chunk.unit} {line}: {name} is {text(value)!r:.60}: expected right or wrong, or a number (the record goes in without it)"
                    yield Refusal(file=shown, line=line, reason=reason)

    def _columns(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
        columns: dict[str, list[Any]] = {field: [self._cell(field, row.get(name)) for row in rows] for field, name in self.fields.items()}
        columns["question_id"] = [self._key(row, position, columns) for position, row in enumerate(rows)]
        if self.primary is not None:
            graded = [grading.score(row.get(self.primary), self.kind) for row in rows]
            columns["score"] = [one.value for one in graded]
            columns["score_rule"] = [self.primary] * len(rows)
            if self.kind == "truth":
                columns["correct"] = [one.correct for one in graded]
        else:
            columns["correct"] = [None] * len(rows)
        for name, kind in self.scores.items():
            columns[f"scores.{name}"] = [grading.score(row.get(name), kind).value for row in rows]
        if self.milliseconds is not None and "latency_s" not in columns:
            columns["latency_s"] = [None if (ms := number(row.get(self.milliseconds)).value) is None else ms / 1000 for row in rows]
        used = {*self.fields.values(), *self.ids, *self.scores, self.primary, self.milliseconds}
        for name in dict.fromkeys(name for row in rows for name in row):
            if name not in used:
                columns[f"settings.{name}"] = [row.get(name) for row in rows]
        return columns

    def _cell(self, field: str, value: Any) -> Any:
        if is_missing(value):
            return None
        if field == "text":
            return asked(value)
        if field in {"response", "prediction", "gold"}:
            return answered(value)
        if field == "options":
            return option_list(value)
        return value

    def _key(self, row: Mapping[str, Any], position: int, columns: Mapping[str, list[Any]]) -> str | None:
        told, options = columns.get("text"), columns.get("options")
        asks = told[position] if told else None
        hashed = content_hash(asks, options[position] if options else None) if asks else None
        return question_key("mlflow", self.benchmark, {name.strip().lower(): row.get(name) for name in self.ids}, hashed)


def by_rule(rule: TableRule, chunk: Chunk, shown: str) -> Iterator[Piece]:
    """Rows in native columns as a `[[table]]` rule maps them (its columns, answers and first_index)."""
    from tracker.readers.table_rows import BadRowError, NativeRows

    made, rows, lines = NativeRows(rule), [], []
    used = {name for cell in rule.columns.values() for name in cell.columns}
    correct = rule.columns.get("correct")
    correct_from = correct.columns[0] if correct is not None and correct.columns else "constant"
    for position, row in enumerate(chunk.dicts()):
        cells = {name: cell.of(row) for name, cell in rule.columns.items() if name != "question_id"}
        try:
            native = made.native(cells, correct_from) | {"question_id": _rule_key(rule, row)}
        except BadRowError as err:
            yield Refusal(file=shown, line=chunk.lines[position], reason=f"row {chunk.lines[position]}: {err}", text=chunk.text(position))
            continue
        rows.append(native | {f"settings.{name}": value for name, value in row.items() if name not in used})
        lines.append(chunk.lines[position])
    if rows:
        yield chunk_of(rows, lines)


def _rule_key(rule: TableRule, row: Mapping[str, Any]) -> str | None:
    from tracker.rules import reach

    cell = rule.columns["question_id"]
    told = [cell.value] if cell.value is not None else [reach(row, name) for name in cell.columns]
    return None if any(is_missing(one) for one in told) else "/".join(text(one) or "" for one in told)
