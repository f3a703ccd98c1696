"""Staging: rows that ingest has just committed go to Parquet while ingest goes on, so that sync need not read them back."""

from __future__ import annotations

import fcntl
import os
import queue
import shutil
import threading
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import pyarrow.compute as pc

from tracker.lake.folder import STAGING
from tracker.lake.segments import SegmentWriter, conform

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from types import TracebackType

    import pyarrow as pa

    from tracker.lake.folder import Lake
    from tracker.lake.manifest import Segment

QUEUED_TABLES = 2
"""Tables that may wait for the writing thread; more would be memory without speed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedSegment:
    """A finished file of staged rows."""

    path: Path
    segment: Segment
    run_rows: dict[int, int]


@dataclass(frozen=True, slots=True)
class _Task:
    table: str
    rows: pa.Table
    versions: dict[int, int]


class Staging:
    """Files being written by one ingest. It is a shortcut only: whatever fails here, sync reads from the database."""

    def __init__(self, lake: Lake) -> None:
        self.folder = lake.folder / STAGING / uuid.uuid4().hex
        self.error: str | None = None
        """Why staging stopped, if it did."""
        self._writers: dict[str, SegmentWriter] = {}
        self._tasks: queue.Queue[_Task | None] = queue.Queue(maxsize=QUEUED_TABLES)
        self._thread: threading.Thread | None = None
        self._handle: int | None = None
        self._finished: dict[str, list[StagedSegment]] | None = None

    def __enter__(self) -> Self:
        """Use it in a `with`: what sync did not take is removed at the end."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Remove what is left."""
        self.discard()

    def add(self, table_name: str, rows: pa.Table, versions: Mapping[int, int], *, more: bool = False) -> None:
        """Take committed rows of whole runs, with database ids and the columns of the table.

        `more` says that further rows of the last run follow in the next call. A run that is added again under another
        version supersedes the earlier one.
        """
        del more  # the files are closed by run, and sync checks the number of rows of each run
        if self.error is not None or self._finished is not None or rows.num_rows == 0:
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="lake-staging", daemon=True)
            self._thread.start()
        self._tasks.put(_Task(table_name, rows, dict(versions)))

    def finish(self) -> dict[str, list[StagedSegment]]:
        """Close every file; table -> what was staged. Nothing when anything went wrong."""
        if self._finished is None:
            self._stop()
            self._finished = {} if self.error else self._close()
        return {} if self.error else self._finished

    def discard(self) -> None:
        """Remove the staged files that sync did not take."""
        self._stop()
        self._finished = {}
        shutil.rmtree(self.folder, ignore_errors=True)
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def _stop(self) -> None:
        if self._thread is not None:
            self._tasks.put(None)
            self._thread.join()
            self._thread = None

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            if self.error is None:
                self._guard(self._write, task)

    def _close(self) -> dict[str, list[StagedSegment]]:
        staged: dict[str, list[StagedSegment]] = {}
        self._guard(self._close_writers, staged)
        return staged

    def _close_writers(self, staged: dict[str, list[StagedSegment]]) -> None:
        for table, writer in self._writers.items():
            staged[table] = [
                StagedSegment(
                    path=self.folder / table / segment.file.split("/")[1],
                    segment=segment,
                    run_rows={run: rows for (file, run), rows in writer.run_rows.items() if segment.file.endswith(file)},
                )
                for segment in writer.close()
            ]
        self._writers = {}

    def _guard(self, work: Any, argument: Any) -> None:
        """A full disk must not stop an ingest whose rows are safe in the database."""
        try:
            work(argument)
        except Exception as err:  # noqa: BLE001 - see above; the reason is kept
            self.error = f"{type(err).__name__}: {err}"

    def _write(self, task: _Task) -> None:
        from tracker.database.bulk import arrow_schema

        self._claim()
        schema = arrow_schema(task.table)
        writer = self._writers.get(task.table)
        if writer is None:
            writer = self._writers[task.table] = SegmentWriter(self.folder / task.table, task.table, schema)
        writer.write_rows(_sorted(conform(task.rows, schema)), task.versions)

    def _claim(self) -> None:
        """Hold a lock on the folder: without one, sync takes it for the remains of a dead process."""
        if self._handle is None:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._handle = os.open(self.folder, os.O_RDONLY)
            fcntl.flock(self._handle, fcntl.LOCK_EX)


def _sorted(rows: pa.Table) -> pa.Table:
    """Rows with those of one run together; ingest hands them over that way almost always."""
    runs = rows.column("run_id").combine_chunks()
    if len(runs) < 2 or pc.all(pc.less_equal(runs[:-1], runs[1:])).as_py():
        return rows
    return rows.take(pc.array_sort_indices(runs))
