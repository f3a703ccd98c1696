"""Metric points of the runs of one source: in memory while they are few, on disk when they are many."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from tracker.batch import METRIC_POINTS
from tracker.ingest.reading import NO_POINTS
from tracker.ingest.spool import HELD_ROWS, Finished, Rows, Spool

if TYPE_CHECKING:
    from pathlib import Path


class Points:
    """Takes the points of runs in any order."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held: dict[int, list[pa.Table]] = {}
        self._rows = 0
        self._spool: Spool | None = None

    def add(self, run: int, points: pa.Table) -> None:
        """Take the next points of a run."""
        if self._spool is not None:
            self._spool.add(run, points)
            return
        self._held.setdefault(run, []).append(points)
        self._rows += points.num_rows
        if self._rows > HELD_ROWS:
            self._spool = Spool(self._folder, METRIC_POINTS)
            for ordinal, tables in self._held.items():
                for table in tables:
                    self._spool.add(ordinal, table)
            self._held = {}

    def held(self, run: int) -> pa.Table:
        """The points of a run, as long as those of all runs are few."""
        tables = self._held.get(run)
        if not tables:
            return NO_POINTS
        return tables[0] if len(tables) == 1 else numbered(pa.concat_tables(tables))  # within a batch its reader has numbered them

    def close(self) -> Rows:
        """The points of all runs, where they are many."""
        if self._spool is None:
            return Rows()
        finished = Finished(self._folder)
        for run, whole in self._spool.runs():
            points = numbered(whole.select(METRIC_POINTS.names))
            finished.write(points.add_column(0, "run", pa.array(np.full(points.num_rows, run, np.int32))))
        self._spool.discard()
        return finished.close()

    def discard(self) -> None:
        """Remove what lies on disk."""
        if self._spool is not None:
            self._spool.discard()


def numbered(points: pa.Table) -> pa.Table:
    """Points of one run with a `seq` of their own each: as the reader numbered them, else by their order."""
    if points.num_rows < 2:
        return points
    metric = points.column("metric").combine_chunks().dictionary_encode().indices.to_numpy()
    step, seq = points.column("step").to_numpy(), points.column("seq").to_numpy()
    order = np.lexsort((seq, step, metric))
    same = (np.diff(metric[order]) == 0) & (np.diff(step[order]) == 0)
    if not (same & (np.diff(seq[order]) == 0)).any():
        return points
    starts = np.flatnonzero(np.concatenate(([True], ~same)))
    lengths = np.diff(np.append(starts, len(order)))
    fresh = np.empty(len(order), np.int32)
    fresh[order] = np.arange(len(order)) - np.repeat(starts, lengths)
    return points.set_column(points.schema.get_field_index("seq"), METRIC_POINTS.field("seq"), pa.array(fresh))
