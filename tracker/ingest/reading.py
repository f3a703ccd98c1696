"""What was read from one source: whole runs, ready to load.

Records stand in files (Arrow IPC) and not here, so that memory is bounded by a chunk and not by the size of a
source, and so that a worker process hands them over without copying.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path  # noqa: TC003 - dataclass fields are read at run time
from typing import TYPE_CHECKING

from tracker.batch import LABELS, METRIC_POINTS, QUESTIONS, AggregateScore, Refusal, RunHeader, Source
from tracker.ingest.spool import pieces

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa


@dataclass(slots=True, kw_only=True)
class ReadRun:
    """One run as it was read, without its records."""

    header: RunHeader
    n_records: int = 0
    questions: pa.Table = field(default_factory=QUESTIONS.empty_table)
    facts_digest: str = ""
    labels: pa.Table = field(default_factory=LABELS.empty_table)
    labels_digest: str = ""
    scores: list[AggregateScore] = field(default_factory=list)
    metric_points: pa.Table = field(default_factory=METRIC_POINTS.empty_table)
    nul_characters: int = 0


@dataclass(slots=True, kw_only=True)
class Reading:
    """Everything that was read from one source."""

    source: Source
    digest: str
    runs: list[ReadRun]
    refusals: list[Refusal]
    bytes: int
    records_path: Path | None = None
    scores_path: Path | None = None

    def records(self) -> Iterator[tuple[int, pa.Table]]:
        """(position of the run in `runs`, a piece of its finished records), runs one after the other."""
        yield from pieces(self.records_path)

    def record_scores(self) -> Iterator[tuple[int, pa.Table]]:
        """(position of the run, a piece of its further scores with the record's question, repetition and attempt)."""
        yield from pieces(self.scores_path)

    def discard(self) -> None:
        """Remove the files."""
        for path in (self.records_path, self.scores_path):
            if path is not None:
                path.unlink(missing_ok=True)
