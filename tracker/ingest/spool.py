"""Rows of many runs in the order in which a source tells them, given back run by run in bounded memory."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

HELD_ROWS = 100_000
"""Rows that stay in memory; more go to disk."""

PIECE_ROWS = 20_000
"""Rows of one piece that is written or given back."""

SORT_MEMORY = "256MB"
"""What DuckDB may use to sort a spool; the rest of the sort happens on disk."""

PLACE = (pa.field("run", pa.int32(), nullable=False), pa.field("position", pa.int64(), nullable=False))


class Spool:
    """Tables of one schema, each of one run; `position` counts the rows of a run in the order they came."""

    def __init__(self, folder: Path, schema: pa.Schema) -> None:
        self.schema = pa.schema([*PLACE, *schema])
        self._columns = schema
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
        start = self._positions.get(run, 0)
        self._interleaved |= run < self._last
        self._last = run
        self._positions[run] = start + rows
        place = [pa.repeat(pa.scalar(run, pa.int32()), rows), pa.array(range(start, start + rows), pa.int64())]
        self._pieces.append(pa.Table.from_arrays([*place, *table.cast(self._columns).columns], schema=self.schema))
        self._held += rows
        if self._held >= HELD_ROWS:
            self._write()

    def runs(self) -> Iterator[tuple[int, pa.Table]]:
        """The rows of each run, runs in the order of their numbers."""
        if self._sink is None:
            table = pa.concat_tables(self._pieces) if self._pieces else self.schema.empty_table()
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
            yield from connection.execute("SELECT * FROM spool ORDER BY run, position").to_arrow_reader(PIECE_ROWS)
            connection.close()


class Finished:
    """A file of pieces of whole runs, one run after the other; it exists once a row was written."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.path: Path | None = None
        self._writer: Any = None

    def write(self, table: pa.Table) -> None:
        """Write the rows of one run."""
        if not table.num_rows:
            return
        if self._writer is None:
            self.path = temporary(self._folder)
            self._writer = pa.ipc.new_file(str(self.path), table.schema)
        self._writer.write_table(table.combine_chunks(), max_chunksize=PIECE_ROWS)

    def close(self) -> Path | None:
        """End the file."""
        if self._writer is not None:
            self._writer.close()
        return self.path

    def discard(self) -> None:
        """Remove the file."""
        self.close()
        if self.path is not None:
            self.path.unlink(missing_ok=True)


def pieces(path: Path | None) -> Iterator[tuple[int, pa.Table]]:
    """(run, rows) of a finished file, in pieces of bounded size."""
    if path is None:
        return
    with pa.memory_map(str(path)) as mapped, pa.ipc.open_file(mapped) as stream:
        for index in range(stream.num_record_batches):
            batch = stream.get_batch(index)
            if batch.num_rows:
                yield batch.column("run")[0].as_py(), pa.table(batch)


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
