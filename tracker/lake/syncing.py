"""Sync: bring the lake to one snapshot of the database, incrementally, and publish it atomically."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tracker.database import bulk
from tracker.database.peek import peek
from tracker.errors import LakeError
from tracker.lake import trajectories
from tracker.lake.copying import RunState, SegmentChange, SegmentCopy, make_durable, run_states, write_table
from tracker.lake.docs import PER_RUN, table_docs
from tracker.lake.manifest import Manifest
from tracker.lake.session import manifest_files, table_files
from tracker.lake.totals import derive
from tracker.schema import SEGMENT_TABLES, SMALL_TABLES
from tracker.version import version

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pyarrow as pa
    import sqlalchemy as sa

    from tracker.database import Database
    from tracker.lake.folder import Lake
    from tracker.lake.manifest import Segment, TableFile
    from tracker.lake.staging import StagedSegment, Staging

    Progress = Callable[[str, int, int], None]

ROUNDS = 4
"""Snapshots that one sync takes at most when other writers keep moving the data."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncReport:
    """What a sync did."""

    data_version: int
    rows_written: int = 0
    runs_added: int = 0
    runs_replaced: int = 0
    runs_removed: int = 0
    slices_recomputed: int = 0
    seconds: float = 0.0
    up_to_date: bool = False
    """True when there was nothing to do."""
    warnings: tuple[str, ...] = ()


def sync(
    db: Database,
    lake: Lake,
    staging: Staging | None = None,
    progress: Progress | None = None,
    talk: Callable[[str], None] | None = None,
) -> SyncReport:
    """Bring the lake to the database as it is now; one sync at a time per lake.

    `progress` is called with (what, done, total), `talk` with a line when it waits for another process.
    """
    return _locked(db, lake, staging, progress, talk, anew=False)


def rebuild(db: Database, lake: Lake, progress: Progress | None = None, talk: Callable[[str], None] | None = None) -> SyncReport:
    """Write the whole lake again from the database, whatever is there; readers of the old files are not disturbed."""
    return _locked(db, lake, None, progress, talk, anew=True)


def _locked(
    db: Database,
    lake: Lake,
    staging: Staging | None,
    progress: Progress | None,
    talk: Callable[[str], None] | None,
    *,
    anew: bool,
) -> SyncReport:
    started = time.perf_counter()
    staged = staging.finish() if staging else {}
    with lake.lock(talk):
        try:
            report = _rounds(db, lake, staged, progress, anew=anew)
        except OSError as err:
            message = f"the lake cannot be written: {err.strerror or err}"
            raise LakeError(
                message, where=str(err.filename or lake.folder), hint="free space or fix the permissions; the lake stays as it was"
            ) from err
    return replace(report, seconds=time.perf_counter() - started)


def _rounds(db: Database, lake: Lake, staged: Mapping[str, list[StagedSegment]], progress: Progress | None, *, anew: bool) -> SyncReport:
    """Repeat until no other writer came between the snapshot and its trajectories."""
    total: SyncReport | None = None
    for _ in range(ROUNDS):
        old, base = _previous(db, lake, anew=anew and total is None)
        outcome = _Round(db=db, lake=lake, old=old, base=base, staged=staged if total is None else {}, progress=progress).run()
        total = outcome.report if total is None else _sum(total, outcome.report)
        if outcome.settled:
            break
    assert total is not None  # noqa: S101 - ROUNDS is positive
    return total


def _sum(first: SyncReport, second: SyncReport) -> SyncReport:
    return replace(
        second,
        rows_written=first.rows_written + second.rows_written,
        runs_added=first.runs_added + second.runs_added,
        runs_replaced=first.runs_replaced + second.runs_replaced,
        runs_removed=first.runs_removed + second.runs_removed,
        slices_recomputed=first.slices_recomputed + second.slices_recomputed,
        up_to_date=first.up_to_date,
    )


def _previous(db: Database, lake: Lake, *, anew: bool) -> tuple[Manifest | None, Manifest | None]:
    """The manifest that is replaced, and the one whose files can be used again."""
    if anew:
        try:
            old = lake.manifest()
        except LakeError:
            old = None
        return lake.clean(old), None
    old = lake.clean(lake.manifest())
    if old is None:
        return None, None
    with db.read() as connection:
        uuid = db.store(connection).uuid
    if old.uuid != uuid:
        message = f"this lake copies another database ({old.uuid}, not {uuid})"
        raise LakeError(message, where=str(lake.folder), hint="name another folder with --lake, or let trackr lake rebuild replace it")
    return old, old if old.docs == table_docs() else None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Outcome:
    report: SyncReport
    settled: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Snapshot:
    manifest: Manifest
    dirty: trajectories.DirtySlices
    rows_written: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Round:
    """One snapshot: copy it, renew trajectories, publish."""

    db: Database
    lake: Lake
    old: Manifest | None
    base: Manifest | None
    staged: Mapping[str, list[StagedSegment]]
    progress: Progress | None

    def run(self) -> _Outcome:
        with self.db.read() as connection:
            if self._is_current(connection):
                return self._nothing_to_do()
            snapshot = self._copy(connection)
        if not snapshot.dirty or not self.db.writable:
            return self._publish(snapshot, snapshot.manifest, settled=True)
        manifest = snapshot.manifest
        rows = trajectories.recompute(snapshot.dirty, manifest.docs, manifest_files(self.lake, manifest))
        stored = trajectories.store(self.db, snapshot.dirty, rows)
        if stored.base_version != manifest.data_version:
            return self._publish(snapshot, manifest, slices=stored.slices, settled=False)
        manifest = replace(
            manifest,
            data_version=stored.base_version + (1 if stored.slices else 0),
            tables={**manifest.tables, "trajectories": write_table(self.lake, "trajectories", stored.table)},
            dirty=len(snapshot.dirty.ids) - stored.slices,
        )
        return self._publish(snapshot, manifest, slices=stored.slices, settled=not manifest.dirty)

    def _is_current(self, connection: sa.Connection) -> bool:
        base = self.base
        if base is None or base.trackr != version() or base.revision != self._revision():
            return False
        if base.data_version != self.db.store(connection).data_version:
            return False
        return not self.db.writable or not trajectories.dirty_slices(connection)

    def _nothing_to_do(self) -> _Outcome:
        assert self.base is not None  # noqa: S101 - a lake that is current exists
        if self.lake.manifest() != self.base:
            self.lake.publish(self.base)  # expired files were deleted
        report = SyncReport(data_version=self.base.data_version, up_to_date=True, warnings=_warnings(self.base))
        return _Outcome(report=report, settled=True)

    def _copy(self, connection: sa.Connection) -> _Snapshot:
        store = self.db.store(connection)
        runs = run_states(connection)
        dirty = trajectories.dirty_slices(connection)
        changes = {name: self._copy_segments(connection, name, runs) for name in SEGMENT_TABLES}
        tables = {name: write_table(self.lake, name, bulk.read_table(connection, name)) for name in SMALL_TABLES}
        segments = {name: change.segments for name, change in changes.items()}
        tables |= {name: write_table(self.lake, name, rows) for name, rows in self._derive(runs, segments, tables).items()}
        manifest = Manifest(
            uuid=store.uuid,
            data_version=store.data_version,
            revision=self._revision(),
            trackr=version(),
            synced_at=datetime.now(UTC).isoformat(timespec="seconds"),
            runs={run_id: state.version for run_id, state in runs.items()},
            segments=segments,
            tables=tables,
            docs=table_docs(),
            dirty=len(dirty.ids),
        )
        return _Snapshot(manifest=manifest, dirty=dirty, rows_written=sum(change.rows_written for change in changes.values()))

    def _copy_segments(self, connection: sa.Connection, name: str, runs: Mapping[int, RunState]) -> SegmentChange:
        copy = SegmentCopy(
            lake=self.lake,
            table=name,
            connection=connection,
            runs=runs,
            previous=self.base,
            staged=self.staged.get(name, ()),
            progress=self.progress,
        )
        return copy.run()

    def _derive(
        self, runs: Mapping[int, RunState], segments: Mapping[str, tuple[Segment, ...]], tables: Mapping[str, TableFile]
    ) -> dict[str, pa.Table]:
        held = self.base.runs if self.base else {}
        unchanged = [run_id for run_id, state in runs.items() if held.get(run_id) == state.version]
        changed = [run_id for run_id, state in runs.items() if held.get(run_id) != state.version]
        previous = {name: self.lake.path(self.base.tables[name].file) for name in PER_RUN} if self.base else {}
        return derive(previous, unchanged, changed, table_docs(), table_files(self.lake, segments, tables))

    def _publish(self, snapshot: _Snapshot, manifest: Manifest, *, slices: int = 0, settled: bool) -> _Outcome:
        known = {*self.old.files(), *self.old.retired} if self.old else set()
        for file in {*snapshot.manifest.files()} - {*manifest.files()} - known:
            self.lake.path(file).unlink()  # trajectories as they were in the snapshot
        make_durable(self.lake, (file for file in manifest.files() if file not in known))
        if self.old is not None:
            manifest = self.old.retire(replace(manifest, grace_seconds=self.old.grace_seconds), time.time())
        self.lake.publish(manifest)
        before = self.base.runs if self.base else {}
        report = SyncReport(
            data_version=manifest.data_version,
            rows_written=snapshot.rows_written,
            runs_added=sum(run_id not in before for run_id in manifest.runs),
            runs_replaced=sum(before.get(run_id, number) != number for run_id, number in manifest.runs.items()),
            runs_removed=sum(run_id not in manifest.runs for run_id in before),
            slices_recomputed=slices,
            warnings=_warnings(manifest),
        )
        return _Outcome(report=report, settled=settled)

    def _revision(self) -> str:
        seen = peek(self.db.url)
        return seen.revision if seen else ""


def _warnings(manifest: Manifest) -> tuple[str, ...]:
    if not manifest.dirty:
        return ()
    return (
        f"trajectories of {manifest.dirty} series x benchmark slices are older than their records; whoever may write the database renews them with trackr lake sync",
    )
