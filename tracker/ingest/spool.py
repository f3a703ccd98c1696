"""Rows of many runs in the order in which a source tells them, given back run by run in bounded memory."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

HELD_ROWS = 100_000
"""Rows that stay in memory; more go to disk."""

PIECE_ROWS = 20_000
"""Rows of one piece that is written or given back."""

HELD_BYTES = 2 << 20
"""Bytes of finished rows that stay in memory; more go to disk."""

SORT_MEMORY = "256MB"
"""What DuckDB may use to sort a spool; the rest of the sort happens on disk."""

PLACE = (pa.field("run", pa.int32(), nullable=False), pa.field("position", pa.int64(), nullable=False))


class Spool:
    """Tables of one schema, each of one run; `position` counts the rows of a run in the order they came."""

    def __init__(self, folder: Path, schema: pa.Schema) -> None:
        self._columns = schema
        self.schema: pa.Schema | None = None
        self._folder = folder
        self._path: Path | None = None
        self._sink: Any = None
        self._pieces: list[pa.Table] = []
        self._held = 0
        self._positions: dict[int, int] = {}
        self._last = -1
        self._interleaved = False

    def add(self, run: int, table: pa.Table) -> None:
        """Take the next rows of a run."""
        rows = table.num_rows
        if not rows:
            return
        if self.schema is None:
            self.schema = pa.schema([*PLACE, *self._columns])
        start = self._positions.get(run, 0)
        self._interleaved |= run < self._last
        self._last = run
        self._positions[run] = start + rows
        place = [pa.array(np.full(rows, run, np.int32)), pa.array(np.arange(start, start + rows))]
        columns = table.columns if table.schema.equals(self._columns) else table.cast(self._columns).columns
        self._pieces.append(pa.Table.from_arrays([*place, *columns], schema=self.schema))
        self._held += rows
        if self._held >= HELD_ROWS:
            self._write()

    def runs(self) -> Iterator[tuple[int, pa.Table]]:
        """The rows of each run, runs in the order of their numbers."""
        if self._sink is None:
            if not self._pieces:
                return
            table = pa.concat_tables(self._pieces)
            if self._interleaved:
                table = table.sort_by([("run", "ascending"), ("position", "ascending")])
            yield from joined(split(table))
            return
        self._write()
        self._sink.close()
        with pa.memory_map(str(self._path)) as mapped, pa.ipc.open_file(mapped) as stream:
            batches = (stream.get_batch(index) for index in range(stream.num_record_batches))
            pieces = self._sorted(batches) if self._interleaved else batches
            yield from joined(part for piece in pieces for part in split(pa.table(piece).cast(self.schema)))

    def discard(self) -> None:
        """Remove what lies on disk."""
        if self._sink is not None:
            self._sink.close()
        if self._path is not None:
            self._path.unlink(missing_ok=True)

    def _write(self) -> None:
        if self._sink is None:
            self._path = temporary(self._folder)
            self._sink = pa.ipc.new_file(str(self._path), self.schema)
        for piece in self._pieces:
            self._sink.write_table(piece)
        self._pieces, self._held = [], 0

    def _sorted(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Sorted on disk by DuckDB."""
        import duckdb

        with tempfile.TemporaryDirectory(dir=self._folder) as scratch:
            connection = duckdb.connect(config={"memory_limit": SORT_MEMORY, "threads": "1", "temp_directory": scratch})
            connection.register("spool", pa.RecordBatchReader.from_batches(self.schema, batches))
            ordered: pa.RecordBatchReader = connection.execute("SELECT * FROM spool ORDER BY run, position").to_arrow_reader(PIECE_ROWS)
            yield from ordered
            connection.close()


@dataclass(frozen=True, slots=True)
class Rows:
    """Finished rows of whole runs, one run after the other: in memory as Arrow IPC, or in a file when they are many."""

    path: Path | None = None
    content: bytes = b""

    def pieces(self) -> Iterator[tuple[int, pa.Table]]:
        """(run, rows), in pieces of bounded size."""
        if self.path is None:
            if self.content:
                with pa.ipc.open_stream(self.content) as stream:
                    yield from (part for batch in stream for part in split(pa.table(batch)))
            return
        with pa.memory_map(str(self.path)) as mapped, pa.ipc.open_stream(mapped) as stream:
            yield from (part for batch in stream for part in split(pa.table(batch)))

    def discard(self) -> None:
        """Remove the file, if there is one."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)


class Finished:
    """Takes finished rows, run by run; they stay in memory as long as they are few."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held: list[pa.Table] = []
        self._bytes = 0
        self._path: Path | None = None
        self._writer: Any = None

    def write(self, table: pa.Table) -> None:
        """Take the rows of one run."""
        if not table.num_rows:
            return
        self._held.append(table)
        self._bytes += table.nbytes
        if self._bytes > HELD_BYTES:
            self._spill()

    def close(self) -> Rows:
        """What was taken."""
        if self._path is not None:
            self._spill()
            self._writer.close()
            return Rows(path=self._path)
        if not self._held:
            return Rows()
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, self._held[0].schema) as writer:
            writer.write_table(pa.concat_tables(self._held).combine_chunks(), max_chunksize=PIECE_ROWS)
        return Rows(content=sink.getvalue().to_pybytes())

    def discard(self) -> None:
        """Remove what was taken."""
        self._held = []
        if self._path is not None:
            self._writer.close()
            self._path.unlink(missing_ok=True)

    def _spill(self) -> None:
        if self._path is None:
            self._path = temporary(self._folder)
            self._writer = pa.ipc.new_stream(str(self._path), self._held[0].schema)
        for table in self._held:
            self._writer.write_table(table.combine_chunks(), max_chunksize=PIECE_ROWS)
        self._held, self._bytes = [], 0


def temporary(folder: Path) -> Path:
    """A new file in the folder."""
    handle, name = tempfile.mkstemp(suffix=".arrow", dir=folder)
    os.close(handle)
    return Path(name)


def split(table: pa.Table) -> Iterator[tuple[int, pa.Table]]:
    """A table whose runs stand one after the other, cut between them."""
    if not table.num_rows:
        return
    runs = table.column("run")
    if runs[0] == runs[-1]:
        yield runs[0].as_py(), table
        return
    encoded = pc.run_end_encode(runs.combine_chunks())
    start = 0
    for end, run in zip(encoded.run_ends.to_pylist(), encoded.values.to_pylist(), strict=True):
        yield run, table.slice(start, end - start)
        start = end


def joined(parts: Iterable[tuple[int, pa.Table]]) -> Iterator[tuple[int, pa.Table]]:
    """Neighbouring parts of one run put together."""
    held: list[pa.Table] = []
    last = -1
    for run, part in parts:
        if held and run != last:
            yield last, pa.concat_tables(held)
            held = []
        held.append(part)
        last = run
    if held:
        yield last, pa.concat_tables(held)
