"""The native table: JSONL, CSV or Parquet with the columns model, benchmark, question_id and correct or score.

docs/native-table.md lists every column. A file may hold any number of runs in any order.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from tracker.batch import Batch, Refusal, Source
from tracker.errors import InputError
from tracker.readers.assemble import SYNONYMS, Assembler
from tracker.readers.lines import foreign, listed
from tracker.readers.tabular import PARQUET_MAGIC, Chunk, Truncated, chunks, csv_header, kind_of, parquet_schema, without_gc

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from tracker.readers.base import Folder
    from tracker.study import Study

GROUPS = (("model",), ("benchmark",), ("question_id",), ("correct", "score"))
"""What a native table must have: one column of each group."""
_HEAD_LINES = 20
_NAMES = re.compile(rb'"(model|benchmark|question_id|correct|score)"\s*:')
_SUFFIXES = {".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet", ".pq", ".txt", ""}


@dataclass(frozen=True, slots=True)
class NativeReader:
    """The native table."""

    name: str = "native"
    version: int = 2

    def find(self, folder: Folder, study: Study) -> Sequence[Source]:
        """Tables that have the native columns, or nearly."""
        return [source for name in sorted(folder.names) if (source := self._source(folder, name, study))]

    def read(self, source: Source, study: Study) -> Iterator[Batch | Refusal]:
        """Batches per chunk and run."""
        path = source.files[0]
        head = head_of(path)
        problem = None if head.startswith(PARQUET_MAGIC) else foreign(head, path)
        if problem:
            raise InputError(problem, where=str(path))
        kind = kind_of(path, head)
        kind = "jsonl" if kind == "json" else kind
        given = study.fields(path)
        fixed: dict[str, Any] = {name: value for name, value in given.items() if name in {"model", "benchmark"}}
        if kind is None:
            message = "not a table any more"
            raise InputError(message, where=str(path), hint="the file changed while it was read: ingest it again")
        assembler = Assembler(str(path), fixed=fixed)
        yield from read_pieces(path, chunks(path, kind), assembler, lambda chunk: _require(path, chunk.columns, fixed))

    def _source(self, folder: Folder, name: str, study: Study) -> Source | None:
        path = folder.path / name
        if path.suffix.lower() not in _SUFFIXES:
            return None
        head = folder.head(name)
        columns = head_columns(path, head) if head else None
        if columns is None:
            return None
        given = study.fields(path)
        has = [any(one in columns for one in group) for group in GROUPS]
        met = [has[0] or "model" in given, has[1] or "benchmark" in given, has[2], has[3]]
        nearly = (has[0] and has[2]) or (sum(met) > 2 and sum(has) > 1)
        return Source(reader=self.name, uri=str(path.resolve()), files=(path,)) if all(met) or nearly else None


def read_pieces(
    path: Path,
    pieces: Iterator[Chunk | Refusal | Truncated],
    assembler: Assembler,
    require: Callable[[Chunk], None] | None = None,
) -> Iterator[Batch | Refusal]:
    """Every piece of a table through an assembler; InputError when no row of it can be used.

    `require` looks at the first chunk.
    """
    cut_off: int | None = None
    refused: Refusal | None = None
    while (items := _next(pieces, assembler, require)) is not None:
        for one in items:
            if isinstance(one, Truncated):
                cut_off = one.line
                continue
            refused = refused or (one if isinstance(one, Refusal) else None)
            yield one
    if not assembler.records:
        place = "" if refused is None or refused.line is None else f"line {refused.line}: "
        reason = f"no usable row; {place}{refused.reason}" if refused else "no rows"
        raise InputError(reason, where=str(path), hint="run its writer again, or leave the file out")
    if cut_off is not None:
        yield from assembler.finish(f"the file is cut off in line {cut_off}")


def _next(
    pieces: Iterator[Chunk | Refusal | Truncated],
    assembler: Assembler,
    require: Callable[[Chunk], None] | None,
) -> list[Batch | Refusal | Truncated] | None:
    """What the next piece gives. Its rows live and die while the collector rests: it would walk them for nothing."""
    with without_gc():
        piece = next(pieces, None)
        if piece is None:
            return None
        if not isinstance(piece, Chunk):
            return [piece]
        if require is not None and not assembler.chunks:
            require(piece)
        return [*assembler.add(piece)]


def _require(path: Path, columns: dict[str, Any], fixed: dict[str, Any]) -> None:
    present = {*columns, *fixed, *(SYNONYMS.get(name, name) for name in columns)}
    missing = [" or ".join(group) for group in GROUPS if not any(name in present for name in group)]
    if missing:
        message = f"nearly a native table: it lacks {', '.join(missing)}; its columns are {listed(columns)}"
        raise InputError(
            message, where=str(path), hint="add the column, or describe the file in a [[table]] or [[path]] rule of study.toml"
        )


def head_columns(path: Path, head: bytes) -> set[str] | None:
    """Column names as far as the first bytes of a file tell; None where it is no table."""
    if not head.startswith(PARQUET_MAGIC) and foreign(head, path):
        head = head.decode(
            "utf-16" if head[:2] in {b"\xff\xfe", b"\xfe\xff"} else "utf-16-le" if head[1:2] == b"\0" else "utf-16-be", "replace"
        ).encode()
    kind = kind_of(path, head)
    if kind == "parquet":
        return _parquet_columns(path)
    if kind in {"csv", "tsv"}:
        first = next((line for line in head.removeprefix(b"\xef\xbb\xbf").split(b"\n") if line.strip()), b"")
        return set(csv_header(first.decode("utf-8", "replace"), "\t" if kind == "tsv" else None)[0])
    if kind == "jsonl" or (kind == "json" and head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{"):
        return _json_columns(head)
    return None


def _json_columns(head: bytes) -> set[str] | None:
    columns: set[str] = set()
    lines = head.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    for line in lines[:_HEAD_LINES]:
        try:
            row = orjson.loads(line)
        except ValueError:
            columns.update(name.decode() for name in _NAMES.findall(line) if line.startswith(b"{"))
            continue
        if isinstance(row, dict):
            columns.update(row)
    return columns or None


def _parquet_columns(path: Path) -> set[str]:
    try:
        return set(parquet_schema(path).names)
    except InputError:
        return {"model", "question_id"}  # claimed, so that reading says what is wrong with it


def head_of(path: Path) -> bytes:
    """The first bytes of a file."""
    from tracker.readers.base import read_head

    try:
        return read_head(path)
    except OSError as err:
        message = f"cannot be read: {err.strerror or err}"
        raise InputError(message, where=str(path)) from err


READER = NativeReader()
