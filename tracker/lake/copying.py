"""Bring the segments and the small tables of the lake to one snapshot of the database."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import sqlalchemy as sa

from tracker.database import bulk
from tracker.lake.folder import sync_file, sync_folder
from tracker.lake.manifest import Segment, TableFile
from tracker.lake.segments import Piece, by_run, merge, open_parquet, read_segment, to_merge, write_pieces
from tracker.schema import Run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from tracker.lake.folder import Lake
    from tracker.lake.manifest import Manifest
    from tracker.lake.staging import StagedSegment


@dataclass(frozen=True, slots=True)
class RunState:
    """What the database says about a run."""

    version: int
    n_records: int


def run_states(connection: sa.Connection) -> dict[int, RunState]:
    """Version and size of every run."""
    rows = connection.execute(sa.select(Run.id, Run.version, Run.n_records))
    return {row.id: RunState(row.version, row.n_records) for row in rows}


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentCopy:
    """Copies one table run by run."""

    lake: Lake
    table: str
    connection: sa.Connection
    runs: Mapping[int, RunState]
    previous: Manifest | None
    staged: Sequence[StagedSegment]
    progress: Callable[[str, int, int], None] | None = None

    def run(self) -> SegmentChange:
        """Segments that hold exactly the runs of the snapshot; writes only what changed."""
        missing = self._missing()
        kept, rewritten = self._kept()
        adopted, taken, provided = self._from_staging(missing)
        streams = [*rewritten, *taken, self._from_database(sorted(missing - provided))]
        written = write_pieces(self.lake.folder, self.table, bulk.arrow_schema(self.table), merge(streams), self._versions)
        new_rows = sum(s.rows for s in (*adopted, *written))
        segments = self._merge_small([*kept, *adopted, *written])
        return SegmentChange(segments=tuple(sorted(segments, key=lambda s: min(s.runs))), rows_written=new_rows)

    @property
    def _versions(self) -> dict[int, int]:
        return {run_id: state.version for run_id, state in self.runs.items()}

    def _missing(self) -> set[int]:
        """Runs that the lake does not hold in the snapshot's version."""
        held = self.previous.runs if self.previous else {}
        return {run_id for run_id, state in self.runs.items() if held.get(run_id) != state.version}

    def _kept(self) -> tuple[list[Segment], list[Iterator[Piece]]]:
        """Segments that stay as they are, and the rows to keep of those that hold something outdated."""
        kept, rewritten = [], []
        for segment in self.previous.segments.get(self.table, ()) if self.previous else ():
            valid = [run_id for run_id, version in segment.runs.items() if run_id in self.runs and self.runs[run_id].version == version]
            if len(valid) == len(segment.runs):
                kept.append(segment)
            elif valid:
                rewritten.append(read_segment(self.lake.path(segment.file), valid))
        return kept, rewritten

    def _from_staging(self, missing: set[int]) -> tuple[list[Segment], list[Iterator[Piece]], set[int]]:
        """Staged files to adopt whole, rows to take of others, and the runs that both provide."""
        adopted: list[Segment] = []
        taken: list[Iterator[Piece]] = []
        provided: set[int] = set()
        for staged in self.staged:
            wanted = missing & staged.segment.runs.keys() - provided
            usable = {run_id for run_id in wanted if self._is_complete(staged, run_id)}
            if not usable:
                continue
            if len(usable) == len(staged.segment.runs):
                target = self.lake.path(staged.segment.file)
                target.parent.mkdir(parents=True, exist_ok=True)
                staged.path.replace(target)
                adopted.append(staged.segment)
            else:
                taken.append(read_segment(staged.path, usable))
            provided |= usable
        return adopted, taken, provided

    def _is_complete(self, staged: StagedSegment, run_id: int) -> bool:
        state = self.runs[run_id]
        whole = self.table != "records" or staged.run_rows.get(run_id) == state.n_records
        return whole and staged.segment.runs[run_id] == state.version

    def _from_database(self, run_ids: list[int]) -> Iterator[Piece]:
        total = sum(self.runs[run_id].n_records for run_id in run_ids)
        done = 0
        for rows in bulk.read_runs(self.connection, self.table, run_ids) if run_ids else ():
            yield from by_run(rows)
            done += rows.num_rows
            if self.progress and self.table == "records":
                self.progress("records copied to the lake", done, total)

    def _merge_small(self, segments: list[Segment]) -> list[Segment]:
        """Fold many small files into few, so that single-run ingests do not leave one file each."""
        published = {s.file for s in self.previous.segments.get(self.table, ())} if self.previous else set()
        while chosen := to_merge(segments):
            streams = [read_segment(self.lake.path(s.file), s.runs) for s in chosen]
            merged = write_pieces(self.lake.folder, self.table, bulk.arrow_schema(self.table), merge(streams), self._versions)
            segments = [s for s in segments if s not in chosen] + merged
            for segment in chosen:
                if segment.file not in published:
                    self.lake.path(segment.file).unlink()
        return segments


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentChange:
    """The segments of a table after copying."""

    segments: tuple[Segment, ...]
    rows_written: int


def write_table(lake: Lake, name: str, rows: pa.Table) -> TableFile:
    """Write a small table; one that did not change keeps its file, because the content names it."""
    sink = pa.BufferOutputStream()
    with open_parquet(sink, rows.schema) as writer:
        writer.write_table(rows)
    content = sink.getvalue()
    digest = hashlib.sha256(content).hexdigest()[:32]
    file = f"tables/{name}-{digest}.parquet"
    path = lake.path(file)
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(".tmp")
        temporary.write_bytes(content)
        temporary.replace(path)
    return TableFile(file=file, rows=rows.num_rows, bytes=content.size)


def make_durable(lake: Lake, files: Iterable[str]) -> None:
    """Force files to disk before a manifest names them."""
    folders: set[Path] = set()
    for file in files:
        path = lake.path(file)
        sync_file(path)
        folders.add(path.parent)
    for folder in folders:
        sync_folder(folder)
