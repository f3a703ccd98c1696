"""Rows of tables (JSONL, JSON, CSV, TSV, Parquet, Excel) in chunks of bounded size, each row with its place.

A damaged line is a refusal and takes no neighbour with it.
"""

from __future__ import annotations

import csv
import gc
import re
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path  # noqa: TC003 - dataclass fields are read at run time
from typing import TYPE_CHECKING, Any, Literal

import orjson

from tracker.batch import Refusal
from tracker.errors import InputError
from tracker.readers.lines import json_lines, listed, shorten
from tracker.readers.values import columns_of, json_text
from tracker.rules import AROUND

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import BinaryIO

    import pyarrow as pa

    from tracker.readers.lines import Line

CHUNK_ROWS = 20_000
CHUNK_BYTES = 32 << 20
GATHERED_ROWS = 500
OUTCOME = frozenset({"correct", "score", "status"})
PARQUET_MAGIC = b"PAR1"
ZIP_MAGIC = b"PK\x03\x04"
OLD_EXCEL_MAGIC = b"\xd0\xcf\x11\xe0"
Kind = Literal["jsonl", "json", "csv", "tsv", "parquet", "xlsx"]
_EXCEPTION = re.compile(r"\b[A-Za-z]*(?:Exception|Error)\b:?\s*")
_PICKLES = frozenset({".pkl", ".pickle", ".pt", ".pth", ".joblib", ".dill"})
_ARRAYS = frozenset({".npy", ".npz"})
_PACKED = {b"\x1f\x8b": "gunzip", b"BZh": "bunzip2", b"\xfd7zXZ": "unxz", b"\x28\xb5\x2f\xfd": "unzstd"}


@dataclass(slots=True, kw_only=True)
class Chunk:
    """Some rows of a file as columns. `silent` are rows that do not even mention an outcome (null mentions it)."""

    columns: dict[str, list[Any] | pa.Array]
    lines: list[int]
    silent: list[int] = field(default_factory=list)
    raw: list[bytes] | None = None
    unit: str = "line"

    def dicts(self) -> list[dict[str, Any]]:
        """The rows as dictionaries."""
        names = list(self.columns)
        cells = [one if isinstance(one, list) else one.to_pylist() for one in self.columns.values()]
        return [dict(zip(names, row, strict=True)) for row in zip(*cells, strict=True)]

    def text(self, row: int) -> str:
        """A row as text, cut, for messages."""
        if self.raw is not None:
            return shorten(self.raw[row])
        told = {name: one for name, one in self.columns.items() if name != AROUND}
        cells = {name: one[row] if isinstance(one, list) else one[row].as_py() for name, one in told.items()}
        return shorten(json_text({name: value for name, value in cells.items() if value is not None}))


@dataclass(frozen=True, slots=True)
class Truncated:
    """The file ends in the middle of a row."""

    line: int


def kind_of(path: Path, head: bytes) -> Kind | None:
    """How a table is written: by its first bytes, then by its name."""
    if head.startswith(PARQUET_MAGIC):
        return "parquet"
    suffix = path.suffix.lower()
    if head.startswith((ZIP_MAGIC, OLD_EXCEL_MAGIC)) or suffix in {".xlsx", ".xlsm"}:
        return _kind_of_archive(suffix, head)
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if suffix == ".tsv":
        return "tsv"
    if suffix == ".csv":
        return "csv"
    if start[:1] == b"[" or (suffix == ".json" and start[:1] == b"{" and not _starts_with_a_row(start)):
        return "json"
    if start[:1] == b"{":
        return "jsonl"
    return {".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "json", ".parquet": "parquet"}.get(suffix)  # type: ignore[return-value]


def _starts_with_a_row(start: bytes) -> bool:
    """Whether the first line is a JSON value of its own and more lines follow."""
    first, _, rest = start.partition(b"\n")
    try:
        orjson.loads(first)
    except ValueError:
        return False
    return bool(rest.strip())


def _kind_of_archive(suffix: str, head: bytes) -> Kind | None:
    from tracker.readers.xlsx import is_xlsx

    return "xlsx" if suffix in {".xlsx", ".xlsm", ".xls"} or is_xlsx(head) else None


def never_read(path: Path, head: bytes) -> tuple[str, str] | None:
    """Why a file that a rule names is not read whatever is in it, and the remedy; None for any other."""
    suffix = path.suffix.lower()
    if suffix in _PICKLES or (head[:1] == b"\x80" and head[1:2] in {b"\x02", b"\x03", b"\x04", b"\x05"}):
        return (
            "a pickle is never loaded: loading it runs whatever code is in it",
            "write the table as CSV, JSONL or Parquet where it was made",
        )
    if suffix in _ARRAYS or head.startswith(b"\x93NUMPY"):
        return (
            "a NumPy file is no table, and its objects are pickles, which are never loaded",
            "write it as CSV, JSONL or Parquet with column names",
        )
    packed = next((tool for magic, tool in _PACKED.items() if head.startswith(magic)), None)
    return None if packed is None else ("a compressed file", f"unpack it first: {packed} {path.name}")


def chunks(
    path: Path, kind: Kind, *, sheet: str | None = None, rows: str | None = None, keys: Sequence[str] = ()
) -> Iterator[Chunk | Refusal | Truncated]:
    """The rows of a file in order.

    `sheet` is a sheet of a workbook (else the first). `rows` and `keys` say where inside a JSON document, or inside each
    row, the rows are; see `tracker.readers.documents`.
    """
    from tracker.readers import documents

    if kind == "json":
        return documents.document_chunks(path, rows, keys)
    found = _plain_chunks(path, kind, sheet)
    return documents.inner_chunks(path, found, rows, keys) if rows or keys else found


def _plain_chunks(path: Path, kind: Kind, sheet: str | None) -> Iterator[Chunk | Refusal | Truncated]:
    if kind == "jsonl":
        return _jsonl(path)
    if kind == "parquet":
        return _parquet(path)
    if kind == "xlsx":
        from tracker.readers import xlsx

        return xlsx.chunks(path, sheet)
    from tracker.readers.delimited import csv_chunks

    return csv_chunks(path, "\t" if kind == "tsv" else None)


def csv_header(line: str, delimiter: str | None = None) -> tuple[list[str], str]:
    """Column names and the delimiter (the one that gives most columns); a lone carriage return ends the line."""
    line = line.partition("\r")[0]
    try:
        found = [(next(csv.reader([line], delimiter=mark), []), mark) for mark in ([delimiter] if delimiter else ",;\t")]
    except csv.Error:  # a name that is longer than any cell may be
        return [line], delimiter or ","
    names, mark = max(found, key=lambda one: len(one[0]))
    return [name.strip() for name in names], mark


@contextmanager
def parquet_place(path: Path) -> Iterator[str | BinaryIO]:
    """What Arrow can open: the path, or the open file where its name is no UTF-8."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        with path.open("rb") as stream:
            yield stream
    else:
        yield str(path)


def parquet_schema(path: Path) -> pa.Schema:
    """Schema of a Parquet file; InputError when it has no readable end."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with parquet_place(path) as place:
            schema = pq.read_schema(place)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as err:
        message = f"Parquet file that cannot be read: {said_by(err)}"
        raise InputError(message, where=str(path), hint="it may be cut off: run its writer again") from err
    if len(set(schema.names)) < len(schema.names):
        message = f"the file names a column twice: {listed(dict.fromkeys(name for name in schema.names if schema.names.count(name) > 1))}"
        raise InputError(message, where=str(path), hint="rename one of them")
    return schema


class Gathered:
    """A chunk that grows row by row. Rows become columns early: many small dictionaries alive at once are slow."""

    def __init__(self, unit: str = "line") -> None:
        self.chunk = Chunk(columns={}, lines=[], raw=[] if unit == "line" else None, unit=unit)
        self.bad: list[Line] = []
        self._rows: list[dict[str, Any]] = []
        self._size = 0

    def add(self, row: dict[str, Any], line: int) -> None:
        """One more row that has no line of its own."""
        self._rows.append(row)
        self.chunk.lines.append(line)
        if len(self._rows) >= GATHERED_ROWS:
            self._turn()

    def extend(self, lines: list[Line]) -> None:
        """Some more lines; those that are no row are kept apart."""
        good = [line for line in lines if line.error is None and isinstance(line.value, dict)]
        if len(good) < len(lines):
            self.bad += [line for line in lines if line.error is not None or not isinstance(line.value, dict)]
        self._rows = [line.value for line in good]
        self.chunk.lines += [line.number for line in good]
        if self.chunk.raw is not None:
            self.chunk.raw += [line.raw for line in good]
        self._size += sum(len(line.raw) for line in lines)
        self._turn()

    @property
    def full(self) -> bool:
        """Whether the chunk is as large as a chunk may be."""
        return len(self.chunk.lines) + len(self.bad) >= CHUNK_ROWS or self._size >= CHUNK_BYTES

    def done(self) -> Chunk:
        """The chunk, which is let go: a waiting generator must not keep it alive."""
        self._turn()
        chunk, self.chunk = self.chunk, Chunk(columns={}, lines=[])
        return chunk

    def _turn(self) -> None:
        columns: dict[str, Any] = self.chunk.columns
        before, count = len(self.chunk.lines) - len(self._rows), len(self._rows)
        part = columns_of(self._rows)
        self.chunk.silent += [before + at for at, row in enumerate(self._rows) if row.get("correct") is None and OUTCOME.isdisjoint(row)]
        columns |= {name: [None] * before for name in part if name not in columns}
        for name, cells in columns.items():
            cells.extend(part.get(name) or [None] * count)
        self._rows = []


def _jsonl(path: Path) -> Iterator[Chunk | Refusal | Truncated]:
    lines = json_lines(path)
    while True:
        gathered = _gather(lines)
        for line in gathered.bad:
            reason = line.error or f"expected a JSON object, found {type(line.value).__name__} (write one object per line)"
            yield Refusal(file=str(path), line=line.number, reason=reason, text=line.text)
            if line.truncated:
                yield Truncated(line.number)
        if gathered.chunk.lines:
            yield gathered.done()
        elif not gathered.bad:
            return


def _gather(lines: Iterator[Line]) -> Gathered:
    """The next rows of a file, and the bad lines met on the way."""
    gathered = Gathered()
    while not gathered.full and (some := _some(lines)):
        gathered.extend(some)
    return gathered


def _some(lines: Iterator[Line]) -> list[Line]:
    """A few hundred lines, or fewer that are long."""
    some: list[Line] = []
    size = 0
    for line in lines:
        some.append(line)
        size += len(line.raw)
        if len(some) >= GATHERED_ROWS or size >= CHUNK_BYTES:
            break
    return some


@contextmanager
def without_gc() -> Iterator[None]:
    """For work that makes many thousand values and no cycles: the collector would walk them again and again."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _parquet(path: Path) -> Iterator[Chunk | Refusal | Truncated]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    parquet_schema(path)
    done = 0
    with parquet_place(path) as place, pq.ParquetFile(place) as file:
        for group in range(file.num_row_groups):
            start = done
            try:
                for batch in file.iter_batches(batch_size=CHUNK_ROWS, row_groups=[group]):
                    lines = list(range(done + 1, done + 1 + batch.num_rows))
                    for row in _undecodable(batch):
                        reason = f"row {lines[row]}: text that is not UTF-8 (run its writer again)"
                        yield Refusal(file=str(path), line=lines[row], reason=reason)
                        lines[row] = 0
                    kept = [row for row, line in enumerate(lines) if line]
                    whole = batch if len(kept) == len(lines) else batch.take(pa.array(kept, pa.int64()))
                    if kept:
                        columns = dict(zip(whole.schema.names, whole.columns, strict=True))
                        yield Chunk(columns=columns, lines=[lines[row] for row in kept], unit="row")
                    done += batch.num_rows
            except (pa.ArrowException, OSError, UnicodeDecodeError) as err:
                reason = f"row group {group} cannot be read: {said_by(err)} (run its writer again)"
                yield Refusal(file=str(path), line=done + 1, reason=reason)
                yield Truncated(done + 1)
            done = start + file.metadata.row_group(group).num_rows


def _undecodable(batch: pa.RecordBatch) -> list[int]:
    """Rows that hold bytes which their column's type forbids, such as text that is not UTF-8."""
    if _is_valid(batch):
        return []
    return [row for row in range(batch.num_rows) if not _is_valid(batch.slice(row, 1))]


def _is_valid(batch: pa.RecordBatch) -> bool:
    import pyarrow as pa

    try:
        batch.validate(full=True)
    except pa.ArrowException:
        return False
    return True


def said_by(err: BaseException) -> str:
    """What an exception of a library says, on one line and without the names of exceptions in it."""
    told = " ".join(_EXCEPTION.sub("", str(err)).split("\n", maxsplit=1)[0].split())
    return told or "damaged"
