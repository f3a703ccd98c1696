"""Ad-hoc tables, as the `[[table]]` rules of a study file describe them.

A row becomes one row in native columns, or several: where its cells are lists of one entry per option cycle, or where
each model has a column of its own.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tracker.batch import Batch, Refusal, Source
from tracker.errors import InputError
from tracker.readers import runs
from tracker.readers.assemble import Assembler
from tracker.readers.base import resolved
from tracker.readers.lines import listed
from tracker.readers.table_parts import ModelColumns, SidecarRows, head_of, joined, pieces_of, require, sidecar_path
from tracker.readers.table_rows import BadRowError, NativeRows
from tracker.readers.tabular import Chunk, Truncated
from tracker.readers.values import column_names, columns_of, text
from tracker.rules import AROUND
from tracker.study import coerce

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from tracker.readers.base import Folder
    from tracker.study import Study
    from tracker.table_rules import TableRule

READER_NAME = "table"
_NO_MODELS: list[tuple[dict[str, str], dict[str, Any], dict[str, str]]] = [({}, {}, {})]
_DECIDING = ("question_id", "correct", "score", "prediction", "gold", "model", "benchmark")


@dataclass(frozen=True, slots=True)
class TableReader:
    """Ad-hoc tables."""

    name: str = READER_NAME
    version: int = 2

    def find(self, folder: Folder, study: Study) -> Sequence[Source]:
        """The files that a rule names; empty ones too, so that reading refuses them."""
        paths = [folder.path / name for name in sorted(folder.names)] if study.tables else []
        return [self._source(path, rule, study) for path in paths if (rule := study.table_rule(path)) is not None]

    def read(self, source: Source, study: Study) -> Iterator[Batch | Refusal]:
        """Batches per chunk and run."""
        path = source.files[0]
        rule = study.table_rule(path)
        if rule is None:
            message = "no [[table]] rule names this file"
            raise InputError(message, where=str(path), hint="ingest with the study file that does")
        yield from _Table(path, rule, study).read()

    def _source(self, path: Path, rule: TableRule, study: Study) -> Source:
        """A table, and the sidecar that belongs to it: read again when either changes."""
        uri, beside = str(resolved(path)), sidecar_path(rule, path, rule.groups(study.path_text(path)) or {})
        if beside is None:
            return Source(reader=self.name, uri=uri, files=(path,))
        if not _is_file(beside):
            return Source(reader=self.name, uri=uri, files=(path,), mapping={"sidecar": None})
        if study.table_rule(beside) is None and study.scores_rule(beside) is None:
            return Source(reader=self.name, uri=uri, files=(path, beside))
        return Source(reader=self.name, uri=uri, files=(path,), mapping={"sidecar": _digest(beside)})


class _Table:
    """One file under one rule."""

    def __init__(self, path: Path, rule: TableRule, study: Study) -> None:
        self.path, self.rule, self.place = path, rule, study.place(rule)
        seen = study.path_text(path)
        of_path = study.fields(path)
        given = coerce(rule.captures(seen) or {}, f"{path}: [[table]] of {study.file}") | of_path
        self.kind = given.get("kind")
        if self.kind not in {None, "evaluation", "training"}:
            message = f"kind: expected evaluation or training, found {self.kind!r}"
            raise InputError(message, where=f"{path}: {self.place}")
        self.fixed = {name: value for name, value in given.items() if name in (*runs.KEYS, *runs.FACTS, "status")}
        self.fixed |= {"run_id": given["external_id"]} if "external_id" in given else {}
        self.free = {name: value for name, value in given.items() if name.startswith(("tags.", "settings."))}
        self.cells = {field: cell for field, cell in rule.columns.items() if field != "question_id"}
        self.correct_from = "correct of the sidecar"
        if "correct" in rule.columns:
            self.correct_from = next(iter(rule.columns["correct"].columns), "constant")
        self.used = {AROUND, *(name for cell in rule.columns.values() for name in cell.columns)}
        self.rows = NativeRows(rule)
        self.models = ModelColumns(rule) if rule.models else None
        beside = sidecar_path(rule, path, rule.groups(seen) or {})
        self.sidecar = SidecarRows(rule.sidecar, beside, path, self.place) if rule.sidecar is not None and beside is not None else None
        self._told = self._told_by_models(of_path)

    def read(self) -> Iterator[Batch | Refusal]:
        """The file's batches and refusals."""
        from tracker.readers.native import read_pieces

        head_of(self.path)
        for name in ("model", "benchmark"):
            if name not in self.fixed and name not in self.rule.fields and name not in self._told:
                message = f"nothing says which {name} this is"
                raise InputError(
                    message, where=str(self.path), hint=f"capture it in files, or add a constant to {self.place}: {name} = ..."
                )
        assembler = Assembler(str(self.path), fixed=self.fixed, extra_scores=False, label_source=READER_NAME)
        for item in read_pieces(self.path, self._pieces(), assembler):
            if self.kind is not None and isinstance(item, Batch):
                yield replace(item, run=item.run.model_copy(update={"kind": self.kind}))
            else:
                yield item

    def _told_by_models(self, of_path: Mapping[str, Any]) -> frozenset[str]:
        """Fields of runs that the names of columns give. A `[[path]]` rule that gives one too would make the models one run."""
        told = frozenset(group for pattern in (self.models.patterns.values() if self.models else ()) for group in pattern.groupindex)
        for name in sorted(told & of_path.keys()):
            message = f"a [[path]] rule gives {name} to the whole file, and models of {self.place} tells its runs apart by it"
            raise InputError(message, where=str(self.path), hint="let the [[path]] rule pass this file by")
        return told

    # ---- rows -----------------------------------------------------------------------------

    def _pieces(self) -> Iterator[Chunk | Refusal | Truncated]:
        if self.sidecar is not None:
            yield from self.sidecar.load()
        first = True
        for piece in pieces_of(self.path, self.rule):
            if not isinstance(piece, Chunk):
                yield piece
                continue
            rows = piece.dicts()
            if first:
                self._require(rows)
                first = False
            yield from self._mapped(piece, rows)
        if self.sidecar is not None and not self.sidecar.met and not first:
            raise self.sidecar.strangers()
        for name in self.models.silent() if self.models else ():
            yield Refusal(
                file=str(self.path), reason=f"column {name}: no value in any row, so its model has no run (fill it, or delete it)"
            )

    def _require(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Refuse a file that lacks a column without which no row can be read."""
        wanted = {field: cell for field in _DECIDING if (cell := self.rule.columns.get(field)) is not None}
        require(rows, wanted, self.path, "columns", self.place)
        if self.models is None:
            return
        for field, pattern in self.models.patterns.items():
            if not self.models.has(field, rows):
                names = [name for name in column_names(list(map(dict, rows[:100]))) if name != AROUND]
                message = f"no column whose name is {pattern.pattern} (for {field} of each model); its columns are {listed(names)}"
                raise InputError(message, where=str(self.path), hint=f"correct models.{field} of {self.place}")

    def _mapped(self, piece: Chunk, rows: Sequence[Mapping[str, Any]]) -> Iterator[Chunk | Refusal]:
        mapped: list[dict[str, Any]] = []
        origin: list[int] = []
        for at, row in enumerate(rows):
            native, problems = self._native(row)
            for problem in problems:
                place = "" if piece.unit == "line" else f"{piece.unit} {piece.lines[at]}: "
                yield Refusal(file=str(self.path), line=piece.lines[at], reason=place + problem, text=piece.text(at))
            mapped.extend(native)
            origin.extend([at] * len(native))
        if mapped:
            yield Chunk(
                columns={**columns_of(mapped)},
                lines=[piece.lines[at] for at in origin],
                raw=[piece.raw[at] for at in origin] if piece.raw is not None else None,
                unit=piece.unit,
            )

    def _native(self, row: Mapping[str, Any]) -> tuple[list[dict[str, Any]], list[str]]:
        """The rows in native columns that a row becomes, and what is wrong with it."""
        problems: list[str] = []
        try:
            key = self._key(row)
        except BadRowError as err:
            return [], [str(err)]
        cells = {field: cell.of(row) for field, cell in self.cells.items()}
        if self.sidecar is not None:
            cells |= self._beside(self.sidecar, row, key, problems)
        of_models = _NO_MODELS if self.models is None else self.models.of(row)
        further = self._further(row)
        native: list[dict[str, Any]] = []
        for run, own, columns in of_models:
            try:
                for told, entry in self._unfold({**cells, **own} if own else cells):
                    record = self.rows.native(told, columns.get("correct", self.correct_from))
                    record["question_id"] = key if entry is None else f"{key}/{entry}"
                    record.update(run)
                    record.update(further)
                    native.append(record)
            except BadRowError as err:
                of_one = f"column {', '.join(columns.values())}: " if columns else ""
                problems.append(of_one + str(err))
        return native, problems

    def _further(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Columns without a rule: they may be constant in the run, and are kept in its settings then."""
        found = {f"settings.{name}": value for name, value in row.items() if name not in self.used}
        if self.models is not None:
            found = {name: value for name, value in found.items() if not self.models.owns(name.removeprefix("settings."), value)}
        return found | self.free

    @staticmethod
    def _beside(sidecar: SidecarRows, row: Mapping[str, Any], key: str, problems: list[str]) -> dict[str, Any]:
        """Cells that the sidecar has for a row; a question that it does not name keeps its record, and is reported."""
        missing: list[str] = []
        if sidecar.rule.on:
            key, missing = joined(row, sidecar.rule.on)
        found = None if missing else sidecar.of(key)
        if found is not None:
            return found
        what = f"column {', '.join(missing)}: expected a value" if missing else f"{key} is not in the sidecar {sidecar.path.name}"
        problems.append(f"{what} (the record is kept without {', '.join(sidecar.rule.columns)})")
        return dict.fromkeys(sidecar.rule.columns)

    def _unfold(self, cells: dict[str, Any]) -> list[tuple[dict[str, Any], int | None]]:
        """(cells by field, entry number): one, or one per entry of the cells that are lists."""
        if not self.rule.unfold:
            if "correct" not in cells and all(isinstance(cells.get(field), list) for field in ("prediction", "gold")):
                message = "prediction and gold are lists (add unfold = true to the [[table]] rule: one record per entry)"
                raise BadRowError(message)
            return [(cells, None)]
        if isinstance(self.rule.unfold, tuple):
            unfolded = [field for field in self.rule.unfold if isinstance(cells.get(field), list)]
        else:
            size = next(
                (len(cells[field]) for field in ("prediction", "correct", "score", "gold") if isinstance(cells.get(field), list)), None
            )
            unfolded = [field for field, cell in cells.items() if isinstance(cell, list) and len(cell) == size]
        lengths = {len(cells[field]) for field in unfolded}
        outcome = [field for field in ("prediction", "correct", "score", "gold") if isinstance(cells.get(field), list)]
        if len(lengths) != 1 or not set(outcome) <= set(unfolded):
            found = ", ".join(f"{field} {len(cell)}" for field, cell in cells.items() if isinstance(cell, list)) or "no lists"
            message = f"expected lists of one length to unfold, found {found}"
            raise BadRowError(message)
        return [
            ({field: cell[entry] if field in unfolded else cell for field, cell in cells.items()}, entry) for entry in range(lengths.pop())
        ]

    def _key(self, row: Mapping[str, Any]) -> str:
        cell = self.rule.columns["question_id"]
        if cell.value is not None:
            return text(cell.value) or ""
        key, missing = joined(row, cell.columns)
        if missing:
            message = f"column {', '.join(missing)}: expected a value for question_id, found None"
            raise BadRowError(message)
        return key


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def _digest(path: Path) -> str | None:
    """Digest of a sidecar that is a table of its own too, and therefore no file of the source."""
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError:
        return None


READER = TableReader()
