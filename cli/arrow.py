"""Rows as Parquet or Arrow files, batch by batch."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Iterator

GROUP_ROWS = 32_768
"""Rows of a Parquet row group; bounds memory."""

GROUP_BYTES = 16 * 1024 * 1024


def write_batches(reader: pa.RecordBatchReader, kind: str, stream: IO[bytes], limit: int | None = None) -> bool:
    """Write batches to a stream; says whether the limit cut rows off."""
    batches = _Limited(reader, limit)
    if kind == "parquet":
        with pq.ParquetWriter(stream, reader.schema, compression="zstd", compression_level=1) as writer:
            for table in _groups(batches, reader.schema):
                writer.write_table(table, row_group_size=GROUP_ROWS)
    else:
        with pa.ipc.new_file(stream, reader.schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
    return batches.cut


class _Limited:
    """The first so many rows of a reader."""

    def __init__(self, reader: pa.RecordBatchReader, limit: int | None) -> None:
        self._reader, self._limit = reader, limit
        self.cut = False

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        left = self._limit
        for batch in self._reader:
            if left is None:
                yield batch
                continue
            if batch.num_rows > left:
                self.cut = True
            if left and batch.num_rows:
                yield batch.slice(0, left)
            left = max(0, left - batch.num_rows)
            if self.cut:
                return


def _groups(batches: Any, schema: pa.Schema) -> Iterator[pa.Table]:
    """Small batches gathered to row groups."""
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        held.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= GROUP_ROWS or size >= GROUP_BYTES:
            yield pa.Table.from_batches(held, schema)
            held, rows, size = [], 0, 0
    if held:
        yield pa.Table.from_batches(held, schema)
