"""The store as one object: what the command line, notebooks and the server call."""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
import time
from dataclasses import replace
from datetime import UTC
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from tracker.config import Location, locate, place
from tracker.errors import DatabaseError, LakeError, TrackrError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime
    from types import TracebackType

    from tracker.batch import RunHeader
    from tracker.catalog import Catalog
    from tracker.database import Database
    from tracker.ingest.catalog import CatalogReport
    from tracker.ingest.labels import LabelReport
    from tracker.ingest.prepare import Job
    from tracker.ingest.report import IngestReport
    from tracker.lake import Lake, Session, Staging, SyncReport
    from tracker.logging import RunLog
    from tracker.study import Study


SPOOL = "trackr-spool-"
"""Beginning of the names of temporary folders; the number of the process follows."""


def open(db: str | None = None, lake: str | Path | None = None) -> Tracker:  # noqa: A001 - `tracker.open` is the public name
    """The store at a database URL (default: TRACKR_DB, trackr.toml, ./.trackr/trackr.db); nothing is opened yet."""
    return Tracker(locate(db, lake))


class Tracker:
    """A store: its database, its lake, and a session over it. Use it as a context manager, or call `close`."""

    def __init__(self, location: Location) -> None:
        self.location = location
        self._database: Database | None = None
        self._session: Session | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, err: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Give files and connections back."""
        self._end_session()
        if self._database is not None:
            self._database.close()
            self._database = None

    # ---- the database ---------------------------------------------------------------------

    def database(self, *, create_missing: bool = True) -> Database:
        """The open database; created through the migrations when it does not exist."""
        if self._database is None:
            from tracker.database import open_database

            self._database = open_database(self.location.url, create_missing=create_missing)
        return self._database

    def _database_for_writing(self) -> Database:
        from tracker.catalog import load
        from tracker.ingest.catalog import ensure_shipped

        database = self.database()
        ensure_shipped(database, load())
        return database

    # ---- writing --------------------------------------------------------------------------

    def ingest(
        self,
        *paths: str | Path,
        study: str | Path | Study | None = None,
        strict: bool = False,
        dry_run: bool = False,
        workers: int | None = 0,
        since: datetime | None = None,
        experiments: Sequence[str] = (),
        progress: Callable[[str, int, int], None] | None = None,
    ) -> IngestReport:
        """Read run folders, files and addresses (an MLflow database or server); what is unchanged is left alone.

        `since` leaves out what last changed before that time (a time without zone is UTC); `experiments` are names of
        MLflow experiments, to which the ingest is then limited.
        `strict` reads everything first and loads only if nothing was rejected; `dry_run` loads nothing;
        `workers` is the number of reading processes (None: as many as there are cores, when that pays).
        """
        from tracker.database.peek import peek
        from tracker.ingest.prepare import prepare, summarise, unchanged_report
        from tracker.readers.base import Selection

        started = time.perf_counter()
        self._end_session()
        since = since if since is None or since.tzinfo else since.replace(tzinfo=UTC)
        selection = Selection(experiments=tuple(experiments), since=since)
        job = prepare(self.location.url, paths, study, selection)
        report = unchanged_report(self.location.url, job)
        report.dry_run = dry_run
        if dry_run or not job.idle:
            self._read_and_load(job, report, strict=strict, dry_run=dry_run, workers=workers, progress=progress)
        elif peek(self.location.url) is not None and not self.fresh():
            self._sync(None, progress)
        if report.loaded and peek(self.location.url) is not None:
            summarise(self.location.url, report)
        report.seconds = time.perf_counter() - started
        return report

    def _read_and_load(
        self,
        job: Job,
        report: IngestReport,
        *,
        strict: bool,
        dry_run: bool,
        workers: int | None,
        progress: Callable[[str, int, int], None] | None,
    ) -> None:
        from tracker.ingest.workers import Readings

        with spool_folder() as folder:
            if dry_run or strict:
                from tracker.ingest.run import rehearse

                rehearsal = replace(report, rejected=list(report.rejected))
                with Readings(job.plan.reading, job.study, Path(folder), workers=workers) as readings:
                    rehearse(job, self.location.url, rehearsal, readings, progress=progress)
                if dry_run or rehearsal.rejected:
                    for name in ("new", "updated", "duplicate", "removed", "partial", "records", "bytes", "rejected", "loaded"):
                        setattr(report, name, getattr(rehearsal, name))
                    return
            with self.lake.staging() as staging:
                with Readings(job.plan.reading, job.study, Path(folder), workers=workers) as readings:
                    from tracker.ingest.run import carry_out  # after the workers have begun: it loads the ORM

                    carry_out(job, self._database_for_writing(), report, readings, staged=staging, progress=progress)
                self._follow(staging, progress)

    def run(self, *, model: str, benchmark: str, run_id: str | None = None, **settings: Any) -> RunLog:
        """Log an evaluation from your own loop: `with t.run(model=..., benchmark=..., input_size=...) as run: run.log(...)`."""
        from tracker.logging import RunLog

        return RunLog(self, model=model, benchmark=benchmark, run_id=run_id, settings=settings)

    def load_batch(self, header: RunHeader, rows: list[dict[str, Any]]) -> IngestReport:
        """Store one run of logged answers."""
        from tracker.ingest.load import Loader
        from tracker.ingest.report import IngestReport
        from tracker.logging import reading_of

        self._end_session()
        report = IngestReport(sources=1)
        database = self._database_for_writing()
        with spool_folder() as folder, self.lake.staging() as staging:
            loader = Loader(database, report, [f"log:{header.external_id}"], staging)
            loader.add(reading_of(header, rows, Path(folder)))
            loader.flush()
            self._follow(staging)
        return report

    def delete_runs(self, run_ids: Sequence[int]) -> int:
        """Delete runs by id; returns how many records went with them."""
        from tracker.ingest.runs import delete_runs

        self._end_session()
        removed = delete_runs(self.database(create_missing=False), list(run_ids))
        self._follow()
        return removed

    def import_catalog(self, path: str | Path) -> CatalogReport:
        """Describe families, models and benchmarks from a TOML file, and link what was ingested before it."""
        from tracker.catalog import read
        from tracker.database.peek import peek
        from tracker.ingest.catalog import import_catalog, known_catalog

        self._end_session()
        if peek(self.location.url) is None:
            read(Path(path))  # a file that cannot be read makes no database
        database = self._database_for_writing()
        with database.read() as connection:
            known = known_catalog(connection)
        report = import_catalog(database, read(Path(path), known))
        if report.anything:
            self._follow()
        return report

    def export_catalog(self, *, found: bool = True) -> Catalog:
        """What the database knows of families, models and benchmarks, with or without names that were only found in files."""
        from tracker.ingest.export import ORIGINS, export_catalog

        database = self.database(create_missing=False)
        with database.read() as connection:
            return export_catalog(connection, ORIGINS if found else ORIGINS[:2])

    def import_labels(self, path: str | Path) -> LabelReport:
        """Label questions from a CSV, TSV or JSONL file."""
        from tracker.ingest.labels import import_labels, read_labels

        self._end_session()
        rows = read_labels(Path(path))
        report = import_labels(self._database_for_writing(), rows)
        if report.anything:
            self._follow()
        return report

    def prefer_labels(self, scheme: str, sources: Sequence[str]) -> None:
        """State which label sources of a scheme the views use first."""
        from tracker.ingest.labels import prefer

        self._end_session()
        prefer(self.database(create_missing=False), scheme, sources)
        self._follow()

    # ---- reading --------------------------------------------------------------------------

    @property
    def lake(self) -> Lake:
        """The columnar copy."""
        from tracker.lake import Lake

        return Lake(self.location.lake)

    def sync(self, progress: Callable[[str, int, int], None] | None = None) -> SyncReport:
        """Bring the lake up to the database; `progress` receives (what, done, total), a total of 0 where it is unknown."""
        return self._sync(None, progress)

    def _sync(self, staging: Staging | None, progress: Callable[[str, int, int], None] | None) -> SyncReport:
        from tracker.lake import sync

        talk = None if progress is None else lambda text: progress(text, 0, 0)
        return sync(self.database(create_missing=False), self.lake, staging, progress, talk)

    def _follow(self, staging: Staging | None = None, progress: Callable[[str, int, int], None] | None = None) -> None:
        """Sync after a change; where the lake cannot follow, say that the change itself is safe."""
        try:
            self._sync(staging, progress)
        except LakeError as err:
            message = f"the database has the change, the lake could not follow: {err.message}"
            raise LakeError(message, where=err.where, hint=err.hint) from err

    def fresh(self) -> bool:
        """Whether the lake holds what the database holds; raises DatabaseError where there is no database."""
        from tracker.database.peek import peek

        state = peek(self.location.url)
        if state is None:
            message = "there is no trackr database here yet"
            raise DatabaseError(
                message, where=place(self.location.url), hint="trackr ingest PATH creates one; or name yours with --db or TRACKR_DB"
            )
        return self.lake.is_fresh(state)

    def session(self, *, sync: bool = True) -> Session:
        """DuckDB over the lake, synchronised first when the database is newer and the lake may be written."""
        from tracker.lake import connect, freshen

        if sync and not self.fresh():
            self._end_session()
            freshen(self.location, talk=logging.getLogger("trackr").warning)
        if self._session is None:
            self._session = connect(self.lake)
        return self._session

    def sql(self, text: str, params: Mapping[str, Any] | Sequence[Any] | None = None) -> Any:
        """Run DuckDB SQL; the result has `.df()`, `.arrow()`, `.fetchall()`."""
        return self.session().sql(text, params)

    def _end_session(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session = None


def spool_folder() -> tempfile.TemporaryDirectory[str]:
    """A folder for what is read and not yet loaded; those that killed processes left behind are removed."""
    try:
        for stale in Path(tempfile.gettempdir()).glob(f"{SPOOL}*-*"):
            owner = stale.name.removeprefix(SPOOL).split("-")[0]
            if owner.isdigit() and not _alive(int(owner)):
                shutil.rmtree(stale, ignore_errors=True)
        return tempfile.TemporaryDirectory(prefix=f"{SPOOL}{os.getpid()}-")
    except OSError as err:
        message = f"cannot make a temporary folder: {err.strerror}"
        raise TrackrError(message, hint="set TMPDIR to a folder with free space") from err


def _alive(process: int) -> bool:
    """Whether a process of this machine still runs."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
