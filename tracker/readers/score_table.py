"""Score tables without questions: recognised by their columns, or described by the `[[scores]]` rules of a study file.

docs/format-score-tables.md lists the columns. One run, without records, for each model, benchmark and configuration.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tracker.batch import Batch, Refusal, Source
from tracker.errors import InputError
from tracker.readers import runs
from tracker.readers.base import resolved
from tracker.readers.lines import listed
from tracker.readers.score_rows import NOTHING_WRITTEN, ScoreRows
from tracker.readers.table_parts import head_of, no_column, pieces_of, require
from tracker.readers.tabular import ZIP_MAGIC, Truncated
from tracker.readers.values import column_names
from tracker.rules import AROUND, field_of, reach
from tracker.study import coerce
from tracker.table_rules import Layout

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from tracker.readers.base import Folder
    from tracker.study import Study
    from tracker.table_rules import ScoresRule

    Scores = list[tuple[int, str, dict[str, Any]]]

READER_NAME = "score_table"
SYNONYMS = {"external_id": "run_id", "status": "run_status"}
_NAMES = ("benchmark", "metric", "value")
_SUFFIXES = {".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet", ".pq", ".txt", "", ".xlsx", ".xlsm"}
_KEY_OF_JSON = re.compile(rb'"(model|backbone|benchmark|metric|value|question_id)"\s*:')


@dataclass(frozen=True, slots=True)
class ScoreTableReader:
    """Reads score tables without questions."""

    name: str = READER_NAME
    version: int = 1

    def find(self, folder: Folder, study: Study) -> Sequence[Source]:
        """Files that a rule names, and tables that have the columns model, benchmark, metric and value and no question_id."""
        paths = [folder.path / name for name in sorted(folder.names)]
        found = [path for path in paths if study.scores_rule(path) is not None or self._is_native(folder, path, study)]
        return [Source(reader=self.name, uri=str(resolved(path)), files=(path,)) for path in found]

    def read(self, source: Source, study: Study) -> Iterator[Batch | Refusal]:
        """Batches per chunk and run."""
        path = source.files[0]
        rule = study.scores_rule(path)
        yield from _Native(path, study).read() if rule is None else _Ruled(path, study, rule).read()

    def _is_native(self, folder: Folder, path: Path, study: Study) -> bool:
        if path.suffix.lower() not in _SUFFIXES:
            return False
        names = _names(path, folder.head(path.name))
        if not set(_NAMES) <= names or "question_id" in names:
            return False
        return bool({"model", "backbone"} & names) or "model" in study.fields(path)


class _ScoreTable:
    """One file."""

    layout: Layout
    divisor: Mapping[str, float]

    def __init__(self, path: Path, given: Mapping[str, Any]) -> None:
        self.path = path
        self.kind = given.get("kind")
        if self.kind not in {None, "evaluation", "training"}:
            message = f"kind: expected evaluation or training, found {self.kind!r}"
            raise InputError(message, where=str(path))
        self.fixed = {name: value for name, value in given.items() if name in (*runs.KEYS, *runs.FACTS, "status")}
        self.fixed |= {"run_id": given["external_id"]} if "external_id" in given else {}
        self.free = {name: value for name, value in given.items() if name.startswith(("tags.", "settings."))}
        self.rows = ScoreRows(str(path), self.fixed)

    def read(self) -> Iterator[Batch | Refusal]:
        """Its batches and refusals; InputError when it has no score that can be used."""
        head_of(self.path)
        cells_of: Callable[[Mapping[str, Any]], list[tuple[str, dict[str, Any]]]] | None = None
        refused: Refusal | None = None
        cut_off: int | None = None
        for piece in pieces_of(self.path, self.layout):
            if isinstance(piece, Refusal):
                refused = refused or piece
                yield piece
                continue
            if isinstance(piece, Truncated):
                cut_off = piece.line
                continue
            rows = piece.dicts()
            if cells_of is None:
                cells_of = self.prepare(rows)
            told = [(at, column, cells | self.free) for at, row in enumerate(rows) if _is_filled(row) for column, cells in cells_of(row)]
            for item in self.rows.add(piece, told, self.divisor):
                refused = refused or (item if isinstance(item, Refusal) else None)
                yield self._of_kind(item)
        if not self.rows.scores:
            reason = f"no usable score; {refused.reason}" if refused else "no score in it"
            raise InputError(reason, where=str(self.path), hint="correct the file, or leave it out")
        if cut_off is not None:
            for batch in self.rows.finish(f"the file is cut off in line {cut_off}"):
                yield self._of_kind(batch)

    def prepare(self, rows: Sequence[Mapping[str, Any]]) -> Callable[[Mapping[str, Any]], list[tuple[str, dict[str, Any]]]]:
        """What turns a row into (column of the value, cells by field), once the first rows are known; InputError if they do not fit."""
        raise NotImplementedError

    def _of_kind(self, item: Batch | Refusal) -> Batch | Refusal:
        if self.kind is None or isinstance(item, Refusal):
            return item
        return replace(item, run=item.run.model_copy(update={"kind": self.kind}))


class _Native(_ScoreTable):
    """A table whose columns carry trackr's own names."""

    layout = Layout()
    divisor: Mapping[str, float] = {}

    def __init__(self, path: Path, study: Study) -> None:
        super().__init__(path, study.fields(path))

    def prepare(self, rows: Sequence[Mapping[str, Any]]) -> Callable[[Mapping[str, Any]], list[tuple[str, dict[str, Any]]]]:
        """Names as they are; `backbone` is the model where there is no model."""
        names = column_names([dict(row) for row in rows])
        called = {name: SYNONYMS.get(name, name) for name in names if SYNONYMS.get(name, name) == name or SYNONYMS[name] not in names}
        if "backbone" in names and "model" not in names and "model" not in self.fixed:
            called["backbone"] = "model"
        if not set(_NAMES) <= set(names):
            message = f"no score table: it lacks {', '.join(sorted(set(_NAMES) - set(names)))}; its columns are {listed(names)}"
            raise InputError(message, where=str(self.path), hint="describe the file in a [[scores]] rule of study.toml")
        return lambda row: [("value", {called.get(name, name): value for name, value in row.items()})]


class _Ruled(_ScoreTable):
    """A table that a `[[scores]]` rule describes."""

    def __init__(self, path: Path, study: Study, rule: ScoresRule) -> None:
        of_path = study.fields(path)
        super().__init__(path, coerce(rule.captures(study.path_text(path)) or {}, f"{path}: [[scores]] of {study.file}") | of_path)
        self.rule, self.place, self.layout, self.divisor = rule, study.place(rule), rule, rule.scale
        self.of_path = of_path
        self.expression = None if rule.wide is None or rule.wide[1].pattern is None else re.compile(rule.wide[1].pattern)
        self.spread = None if rule.stderr is None else re.compile(rule.stderr)
        self.used = {AROUND, *(name for cell in rule.columns.values() for name in cell.columns)}

    def prepare(self, rows: Sequence[Mapping[str, Any]]) -> Callable[[Mapping[str, Any]], list[tuple[str, dict[str, Any]]]]:
        """Columns by the rule."""
        require(rows, self.rule.columns, self.path, "columns", self.place)
        wide = self._wide_columns(rows)
        given = {*self.rule.columns, *(name for one in wide.values() for name in one), *self.fixed}
        for name in ("model", "benchmark"):
            if name not in given:
                message = f"nothing says which {name} this is"
                raise InputError(message, where=str(self.path), hint=f"map it in columns, or add a constant to {self.place}: {name} = ...")
        told = {name for one in wide.values() for name in one if name in self.of_path}
        if told:
            message = f"a [[path]] rule gives {', '.join(sorted(told))} to the whole file, and its columns tell scores apart by it"
            raise InputError(message, where=str(self.path), hint="let the [[path]] rule pass this file by")
        spreads = {_groups(self.spread, name): name for row in rows for name in row if self.spread and self.spread.fullmatch(name)}
        aside = {*self.used, *wide, *spreads.values()}

        def cells_of(row: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
            cells = {SYNONYMS.get(name, name): cell.of(row) for name, cell in self.rule.columns.items()}
            if self.rule.metric is not None and cells.get("metric") is None:
                cells["metric"] = self.rule.metric
            cells |= {f"settings.{name}": value for name, value in row.items() if name not in aside}
            if not wide:
                column = self.rule.columns["value"].columns
                return [(column[0] if column else "value", cells)]
            found = []
            for name, fields in wide.items():
                one = cells | fields | {"value": reach(row, name)}
                if self.spread is not None:
                    one["stderr"] = row.get(spreads.get(tuple(sorted(fields.items())), ""))
                found.append((name, one))
            return found

        return cells_of

    def _wide_columns(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, str]]:
        """Columns that hold one score each, and what their names say."""
        if self.rule.wide is None:
            return {}
        field, wide = self.rule.wide
        key = f"{field}s"
        for name in wide.names:
            if not any(name in row or reach(row, name) is not None for row in rows):
                raise no_column([name], name, rows, self.path, f"{key}.{name}", self.place)
        if self.expression is None:
            return {name: {field: value} for name, value in wide.names.items()}
        names = [name for name in column_names([dict(row) for row in rows]) if name not in self.used]
        spread = {name for name in names if self.spread is not None and self.spread.fullmatch(name)}
        found = {name: dict(_groups(self.expression, name)) for name in names if name not in spread and self.expression.fullmatch(name)}
        if not found:
            message = f"no column whose name is {self.expression.pattern} (for {key}); its columns are {listed(names)}"
            raise InputError(message, where=str(self.path), hint=f"correct {key} of {self.place}")
        return found


def _groups(expression: re.Pattern[str] | None, name: str) -> tuple[tuple[str, str], ...]:
    """What the name of a column says, sorted; groups that take no part are left out."""
    met = None if expression is None else expression.fullmatch(name)
    groups = {} if met is None else met.groupdict()
    return tuple(sorted((field_of(group), value.strip()) for group, value in groups.items() if (value or "").strip()))


def _is_filled(row: Mapping[str, Any]) -> bool:
    """Whether a row says anything: the rules that people draw between rows do not."""
    return any(
        not (value is None or (isinstance(value, str) and value.strip().lower() in NOTHING_WRITTEN))
        for name, value in row.items()
        if name != AROUND
    )


def _names(path: Path, head: bytes) -> set[str]:
    """Column names of a table, as far as its first bytes tell; empty where it is none."""
    if head.startswith(ZIP_MAGIC):
        from tracker.readers import xlsx

        return set(xlsx.columns(path) or ()) if xlsx.is_xlsx(head) else set()
    from tracker.readers.native import head_columns

    if head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"[":
        return {name.decode() for name in _KEY_OF_JSON.findall(head)}
    return (head_columns(path, head) or set()) if head else set()


READER = ScoreTableReader()
