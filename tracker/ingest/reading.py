"""What was read from one source: whole runs, ready to load.

Records stand in files (Arrow IPC) and not here, so that memory is bounded by a chunk and not by the size of a
source, and so that a worker process hands them over without copying.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from tracker.batch import LABELS, METRIC_POINTS, QUESTIONS, AggregateScore, Refusal, RunHeader, Source
from tracker.ingest.spool import Rows

NO_QUESTIONS, NO_LABELS, NO_POINTS = QUESTIONS.empty_table(), LABELS.empty_table(), METRIC_POINTS.empty_table()


@dataclass(slots=True, kw_only=True)
class ReadRun:
    """One run as it was read, without its records."""

    header: RunHeader
    n_records: int = 0
    n_repeated: int = 0
    """Records of questions that were answered before in the same repetition."""
    questions: pa.Table = field(default_factory=lambda: NO_QUESTIONS)
    facts_digest: str = ""
    labels: pa.Table = field(default_factory=lambda: NO_LABELS)
    labels_digest: str = ""
    scores: list[AggregateScore] = field(default_factory=list)
    metric_points: pa.Table = field(default_factory=lambda: NO_POINTS)
    """Its metric points, where those of all runs of the source are few."""
    nul_characters: int = 0


@dataclass(slots=True, kw_only=True)
class Reading:
    """Everything that was read from one source."""

    source: Source
    digest: str
    runs: list[ReadRun]
    refusals: list[Refusal]
    bytes: int
    records: Rows = field(default_factory=Rows)
    """Finished records, with the position of their run in `runs`."""
    record_scores: Rows = field(default_factory=Rows)
    """Further scores, likewise, with the question, repetition and attempt of their record."""
    metric_points: Rows = field(default_factory=Rows)
    """Metric points, likewise, where they are many."""

    @property
    def rows(self) -> int:
        """How many records and held metric points there are to write."""
        return sum(run.n_records + run.metric_points.num_rows for run in self.runs)

    def discard(self) -> None:
        """Remove the files."""
        self.records.discard()
        self.record_scores.discard()
        self.metric_points.discard()


@dataclass(slots=True, kw_only=True)
class Packed:
    """Readings on their way to another process: the small tables of many runs as one, since each slice would carry the whole along."""

    readings: list[Reading]
    points: pa.Table
    sizes: list[int]


def pack(readings: list[Reading]) -> Packed:
    """Readings without their metric points, and these in one piece."""
    tables = [run.metric_points for reading in readings for run in reading.runs]
    points = pa.concat_tables([NO_POINTS, *tables]).combine_chunks()
    for reading in readings:
        for run in reading.runs:
            run.metric_points = NO_POINTS
    return Packed(readings=readings, points=points, sizes=[table.num_rows for table in tables])


def unpack(packed: Packed) -> list[Reading]:
    """The readings as they were."""
    sizes, start = iter(packed.sizes), 0
    for reading in packed.readings:
        for run in reading.runs:
            size = next(sizes)
            run.metric_points = packed.points.slice(start, size) if size else NO_POINTS
            start += size
    return packed.readings
