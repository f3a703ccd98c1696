"""CSV and TSV files as they occur: a damaged record costs its first line only."""

from __future__ import annotations

import csv
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tracker.batch import Refusal
from tracker.errors import InputError
from tracker.readers.lines import foreign, listed, not_utf8, raw_lines, shorten
from tracker.readers.tabular import CHUNK_BYTES, CHUNK_ROWS, Chunk, Truncated, csv_header

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pyarrow as pa

RECORD_LINES = 10_000
RECORD_CHARACTERS = 64 << 20
NOT_CLOSED = "a quote that is opened here is not closed where it should be (correct or delete the line)"


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
            message = f"the header names a column twice: {listed(repeated)}"
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


def csv_chunks(path: Path, delimiter: str | None) -> Iterator[Chunk | Refusal | Truncated]:
    """The rows of a file in chunks; without a delimiter the one that gives most columns is taken."""
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
