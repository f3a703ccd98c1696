"""Rows of JSONL, CSV and Parquet files in chunks of bounded size, each row with its line.

A damaged line is a refusal and takes no neighbour with it.
"""

from __future__ import annotations

import csv
import gc
from collections import deque
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path  # noqa: TC003 - dataclass fields are read at run time
from typing import TYPE_CHECKING, Any, Literal

import orjson

from tracker.batch import Refusal
from tracker.errors import InputError
from tracker.readers.lines import foreign, json_document, json_lines, not_utf8, raw_lines, shorten
from tracker.readers.values import columns_of, json_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from tracker.readers.lines import Line

CHUNK_ROWS = 20_000
CHUNK_BYTES = 32 << 20
GATHERED_ROWS = 500
OUTCOME = frozenset({"correct", "score", "status"})
RECORD_LINES = 10_000
RECORD_CHARACTERS = 64 << 20
NOT_CLOSED = "a quote that is opened here is not closed where it should be (correct or delete the line)"
PARQUET_MAGIC = b"PAR1"
Kind = Literal["jsonl", "json", "csv", "tsv", "parquet"]


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
        cells = {name: one[row] if isinstance(one, list) else one[row].as_py() for name, one in self.columns.items()}
        return shorten(json_text({name: value for name, value in cells.items() if value is not None}))


@dataclass(frozen=True, slots=True)
class Truncated:
    """The file ends in the middle of a row."""

    line: int


def kind_of(path: Path, head: bytes) -> Kind | None:
    """How a table is written: by its first bytes, then by its name."""
    if head.startswith(PARQUET_MAGIC):
        return "parquet"
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    suffix = path.suffix.lower()
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


def chunks(path: Path, kind: Kind) -> Iterator[Chunk | Refusal | Truncated]:
    """The rows of a file in order."""
    if kind == "jsonl":
        return _jsonl(path)
    if kind == "json":
        return _json(path)
    if kind == "parquet":
        return _parquet(path)
    return _csv(path, "\t" if kind == "tsv" else None)


def csv_header(line: str, delimiter: str | None = None) -> tuple[list[str], str]:
    """Column names and the delimiter (the one that gives most columns); a lone carriage return ends the line."""
    line = line.partition("\r")[0]
    try:
        found = [(next(csv.reader([line], delimiter=mark), []), mark) for mark in ([delimiter] if delimiter else ",;\t")]
    except csv.Error:  # a name that is longer than any cell may be
        return [line], delimiter or ","
    names, mark = max(found, key=lambda one: len(one[0]))
    return [name.strip() for name in names], mark


def parquet_schema(path: Path) -> pa.Schema:
    """Schema of a Parquet file; InputError when it has no readable end."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.read_schema(path)
    except (pa.ArrowException, OSError) as err:
        message = f"Parquet file that cannot be read: {str(err).splitlines()[0]}"
        raise InputError(message, where=str(path), hint="it may be cut off: run its writer again") from err


class _Gathered:
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


def _gather(lines: Iterator[Line]) -> _Gathered:
    """The next rows of a file, and the bad lines met on the way."""
    gathered = _Gathered()
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


def _json(path: Path) -> Iterator[Chunk | Refusal | Truncated]:
    """A JSON list of objects, or an object whose values are objects (their names become the column `_key`)."""
    document = json_document(path)
    if isinstance(document, dict) and document and all(isinstance(one, dict) for one in document.values()):
        document = [{"_key": name, **one} for name, one in document.items()]
    if not isinstance(document, list):
        message = f"expected a JSON list of objects, found {type(document).__name__}"
        raise InputError(message, where=str(path))
    gathered = _Gathered("entry")
    for position, row in enumerate(document, 1):
        if not isinstance(row, dict):
            reason = f"entry {position}: expected a JSON object, found {type(row).__name__}"
            yield Refusal(file=str(path), line=position, reason=reason, text=shorten(json_text(row)))
            continue
        gathered.add(row, position)
        if gathered.full:
            yield gathered.done()
            gathered = _Gathered("entry")
    if gathered.chunk.lines:
        yield gathered.done()


def _parquet(path: Path) -> Iterator[Chunk | Refusal | Truncated]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    parquet_schema(path)
    done = 0
    with pq.ParquetFile(path) as file:
        for group in range(file.num_row_groups):
            start = done
            try:
                for batch in file.iter_batches(batch_size=CHUNK_ROWS, row_groups=[group]):
                    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
                    yield Chunk(columns=columns, lines=list(range(done + 1, done + 1 + batch.num_rows)), unit="row")
                    done += batch.num_rows
            except (pa.ArrowException, OSError) as err:
                reason = f"row group {group} cannot be read: {str(err).splitlines()[0]} (run its writer again)"
                yield Refusal(file=str(path), line=done + 1, reason=reason)
                yield Truncated(done + 1)
            done = start + file.metadata.row_group(group).num_rows


# ---- CSV -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _CsvLine:
    number: int
    raw: bytes
    ended: bool
    too_long: bool = False


class _CsvRecords:
    """Records of a CSV file. A record that goes wrong costs its first line only; the next line starts afresh."""

    def __init__(self, path: Path, delimiter: str | None) -> None:
        self.path = path
        self.names: list[str] = []
        self._stream = path.open("rb")
        self._source = raw_lines(self._stream)
        self._back: deque[_CsvLine] = deque()
        self._delimiter = delimiter
        self.cut_off: int | None = None
        csv.field_size_limit(RECORD_CHARACTERS)

    def __iter__(self) -> Iterator[tuple[int, list[str], bytes] | Refusal]:
        with self._stream:
            header = self._header()
            if header is None:
                return
            self.names, self._delimiter = header
            while (line := self._next()) is not None:
                if line.too_long:
                    yield self._refuse([line], "a line that is too long (write one row per line)")
                elif line.raw.strip():
                    yield self._record(line)

    def _header(self) -> tuple[list[str], str] | None:
        line = self._next()
        while line is not None and not line.raw.strip():
            line = self._next()
        if line is None:
            return None
        problem = foreign(line.raw, self.path)
        if problem:
            raise InputError(problem, where=str(self.path))
        if b"\r" in line.raw.rstrip(b"\r\n"):
            message = "its lines end with carriage returns alone"
            raise InputError(message, where=str(self.path), hint="convert it: tr '\\r' '\\n' < FILE > NEW")
        try:
            names, delimiter = csv_header(line.raw.decode(), self._delimiter)
        except UnicodeDecodeError as err:
            raise InputError(not_utf8(err, self.path, err.start + 1), where=f"{self.path}: line {line.number}") from err
        repeated = sorted({name for name in names if name and names.count(name) > 1})
        if repeated:
            message = f"the header names a column twice: {', '.join(repeated)}"
            raise InputError(message, where=f"{self.path}: line {line.number}", hint="rename one of them")
        return names, delimiter

    def _next(self) -> _CsvLine | None:
        if self._back:
            return self._back.popleft()
        for number, raw, ended in self._source:
            return _CsvLine(number, b"" if raw is None else raw, ended, raw is None)
        return None

    def _record(self, first: _CsvLine) -> tuple[int, list[str], bytes] | Refusal:
        used = [first]

        def text() -> Iterator[str]:
            yield first.raw.decode() + "\n"
            size = len(first.raw)
            while (line := self._next()) is not None:
                used.append(line)
                size += len(line.raw)
                if len(used) > RECORD_LINES or size > RECORD_CHARACTERS or line.too_long:
                    return
                yield line.raw.decode() + "\n"

        try:
            cells = next(csv.reader(text(), delimiter=self._delimiter or ",", strict=True))
        except UnicodeDecodeError as err:
            return self._refuse(used, not_utf8(err, self.path, err.start + 1) if len(used) == 1 else NOT_CLOSED)
        except (csv.Error, StopIteration) as err:
            self.cut_off = first.number if not used[-1].ended and len(used) == 1 else self.cut_off
            open_quote = len(used) > 1 or "end of data" in str(err)
            return self._refuse(used, NOT_CLOSED if open_quote else f"not valid CSV: {err} (correct or delete the line)")
        if len(cells) != len(self.names):
            last = not used[-1].ended and len(cells) < len(self.names)
            self.cut_off = first.number if last else self.cut_off
            reason = f"expected {len(self.names)} columns, found {len(cells)}"
            return self._refuse(
                used, reason + (" (the file is cut off: run its writer again)" if last else " (correct or delete the line)")
            )
        return first.number, cells, first.raw if len(used) == 1 else b"\n".join(line.raw for line in used)

    def _refuse(self, used: list[_CsvLine], reason: str) -> Refusal:
        self._back.extendleft(reversed(used[1:]))
        return Refusal(file=str(self.path), line=used[0].number, reason=reason, text=shorten(used[0].raw))


def _csv(path: Path, delimiter: str | None) -> Iterator[Chunk | Refusal | Truncated]:
    records = _CsvRecords(path, delimiter)
    cells: list[list[str]] = []
    lines: list[int] = []
    raw: list[bytes] = []
    size = 0
    for record in records:
        if isinstance(record, Refusal):
            yield record
            continue
        lines.append(record[0])
        cells.append(record[1])
        raw.append(record[2])
        size += len(record[2])
        if len(lines) >= CHUNK_ROWS or size >= CHUNK_BYTES:
            yield _from_cells(records.names, cells, lines, raw)
            cells, lines, raw, size = [], [], [], 0
    if lines:
        yield _from_cells(records.names, cells, lines, raw)
    if records.cut_off is not None:
        yield Truncated(records.cut_off)


def _from_cells(names: list[str], cells: list[list[str]], lines: list[int], raw: list[bytes]) -> Chunk:
    """Text columns; an empty cell is null."""
    columns: dict[str, list[Any] | pa.Array] = {
        name: [cell or None for cell in one] for name, one in zip(names, zip(*cells, strict=True), strict=True) if name
    }
    return Chunk(columns=columns, lines=lines, raw=raw)
