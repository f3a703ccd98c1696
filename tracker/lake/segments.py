"""Segments: Parquet files that hold whole runs, sorted by run, bounded in size, never changed once written."""

from __future__ import annotations

import heapq
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tracker.lake.manifest import Segment

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from pathlib import Path

SEGMENT_ROWS = 1_000_000
SEGMENT_BYTES = 128 * 1024 * 1024
ROW_GROUP_ROWS = 65_536
ROW_GROUP_BYTES = 32 * 1024 * 1024
"""Uncompressed; bounds memory where responses are long."""

PLAIN_COLUMNS = frozenset({"response", "option_scores", "p_gold", "latency_s", "vision_flops", "value", "tokens", "flops"})
"""Columns whose values hardly repeat: a dictionary would only cost time."""

MERGE_WIDTH = 8
"""So many segments of one size class become one; 2,000 single-run ingests leave about 30 files."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows of one run (or the next of them)."""

    run_id: int
    rows: pa.Table


def by_run(rows: pa.Table) -> Iterator[Piece]:
    """Split a table whose rows of one run stand together."""
    if rows.num_rows == 0:
        return
    ends = pc.run_end_encode(rows.column("run_id").combine_chunks())
    start = 0
    for run_id, end in zip(ends.values.to_pylist(), ends.run_ends.to_pylist(), strict=True):
        yield Piece(run_id, rows.slice(start, end - start))
        start = end


def read_segment(path: Path, runs: Collection[int]) -> Iterator[Piece]:
    """Pieces of the chosen runs of a file, one row group in memory at a time."""
    wanted = frozenset(runs)
    with pq.ParquetFile(path) as source:
        for group in range(source.num_row_groups):
            yield from (piece for piece in by_run(source.read_row_group(group)) if piece.run_id in wanted)


def merge(streams: Iterable[Iterator[Piece]]) -> Iterator[Piece]:
    """Many streams that are sorted by run as one; memory is one row group per stream."""
    return heapq.merge(*streams, key=lambda piece: piece.run_id)


class SegmentWriter:
    """Writes pieces to as many files as the size bounds ask for; a run never spans two files."""

    def __init__(self, folder: Path, table: str, schema: pa.Schema) -> None:
        self._folder, self._table, self._schema = folder, table, schema
        self._writer: pq.ParquetWriter | None = None
        self._file = ""
        self._buffer: list[pa.Table] = []
        self._buffered_rows = self._buffered_bytes = 0
        self._rows = 0
        self._runs: dict[int, int] = {}
        self._last: int | None = None
        self.segments: list[Segment] = []
        self.run_rows: dict[tuple[str, int], int] = {}
        """(file, run id) -> rows."""

    def write(self, piece: Piece, version: int) -> None:
        """Add rows of a run; all rows of a run come one after another."""
        if piece.run_id != self._last or self._runs.get(piece.run_id) != version:
            if self._full or piece.run_id in self._runs:
                self._close_file()
            self._last = piece.run_id
        if not self._file:
            self._file = f"{uuid.uuid4().hex}.parquet"
        self._runs[piece.run_id] = version
        place = (self._file, piece.run_id)
        self.run_rows[place] = self.run_rows.get(place, 0) + piece.rows.num_rows
        self._hold(piece.rows)

    def _hold(self, rows: pa.Table) -> None:
        self._buffer.append(rows)
        self._rows += rows.num_rows
        self._buffered_rows += rows.num_rows
        self._buffered_bytes += rows.nbytes
        if self._buffered_rows >= ROW_GROUP_ROWS or self._buffered_bytes >= ROW_GROUP_BYTES:
            self._flush()

    def write_rows(self, rows: pa.Table, versions: Mapping[int, int]) -> None:
        """Add rows of any number of runs, those of a run together; many small runs are not taken apart."""
        encoded = pc.run_end_encode(rows.column("run_id").combine_chunks())
        runs, ends = encoded.values.to_pylist(), encoded.run_ends.to_pylist()
        if rows.num_rows > ROW_GROUP_ROWS or any(run in self._runs for run in runs):
            for piece in by_run(rows):
                self.write(piece, versions[piece.run_id])
            return
        if self._full:
            self._close_file()
        if not self._file:
            self._file = f"{uuid.uuid4().hex}.parquet"
        self._runs |= {run: versions[run] for run in runs}
        self.run_rows |= {(self._file, run): end - start for run, start, end in zip(runs, [0, *ends], ends, strict=False)}
        self._last = runs[-1]
        self._hold(rows)

    def close(self) -> list[Segment]:
        """Finish the last file; every segment that was written."""
        self._close_file()
        return self.segments

    @property
    def _full(self) -> bool:
        return self._rows >= SEGMENT_ROWS or (self._writer is not None and self._path.stat().st_size >= SEGMENT_BYTES)

    @property
    def _path(self) -> Path:
        return self._folder / self._file

    def _flush(self) -> None:
        if not self._buffer:
            return
        rows = pa.concat_tables(self._buffer)
        self._buffer, self._buffered_rows, self._buffered_bytes = [], 0, 0
        if self._writer is None:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._writer = open_parquet(self._path, self._schema)
        self._writer.write_table(rows, row_group_size=ROW_GROUP_ROWS)

    def _close_file(self) -> None:
        if not self._file:
            return
        self._flush()
        if self._writer is not None:
            self._writer.close()
        self.segments.append(Segment(file=f"{self._table}/{self._file}", rows=self._rows, bytes=self._path.stat().st_size, runs=self._runs))
        self._writer, self._file, self._rows, self._runs, self._last = None, "", 0, {}, None


def open_parquet(target: Any, schema: pa.Schema) -> pq.ParquetWriter:
    """A Parquet writer with the settings of the lake."""
    dictionary = [name for name in schema.names if name not in PLAIN_COLUMNS]
    return pq.ParquetWriter(target, schema, compression="zstd", compression_level=1, use_dictionary=dictionary)


def write_pieces(folder: Path, table: str, schema: pa.Schema, pieces: Iterable[Piece], versions: Mapping[int, int]) -> list[Segment]:
    """Write pieces as new segments of a table."""
    writer = SegmentWriter(folder / table, table, schema)
    for piece in pieces:
        writer.write(piece, versions[piece.run_id])
    return writer.close()


def to_merge(segments: Iterable[Segment]) -> list[Segment]:
    """Segments that should become one: the smallest size class that has MERGE_WIDTH members, or nothing."""
    classes: dict[int, list[Segment]] = {}
    for segment in segments:
        if segment.rows < SEGMENT_ROWS // 2 and segment.bytes < SEGMENT_BYTES // 2:
            classes.setdefault(_size_class(segment), []).append(segment)
    for size in sorted(classes):
        if len(classes[size]) >= MERGE_WIDTH:
            return classes[size]
    return []


def _size_class(segment: Segment) -> int:
    """Grows by one whenever the rows grow MERGE_WIDTH times."""
    size, rows = 0, segment.rows
    while rows >= MERGE_WIDTH:
        size, rows = size + 1, rows // MERGE_WIDTH
    return size


def conform(rows: pa.Table | pa.RecordBatch, schema: pa.Schema) -> pa.Table:
    """The columns of a table in their order and types; one that is missing is null throughout."""
    names = set(rows.schema.names)
    columns = [rows.column(field.name).cast(field.type) if field.name in names else pa.nulls(rows.num_rows, field.type) for field in schema]
    return pa.table(columns, schema=schema)
