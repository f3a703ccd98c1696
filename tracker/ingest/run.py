"""Carry out a planned ingest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

from tracker.batch import Source
from tracker.errors import InputError
from tracker.ingest.catalog import import_aliases
from tracker.ingest.labels import import_labels, read_labels
from tracker.ingest.load import Loader
from tracker.ingest.plan import printable
from tracker.ingest.read import refusal
from tracker.ingest.report import Rejected
from tracker.ingest.workers import read_all
from tracker.schema import Import

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tracker.database import Database
    from tracker.ingest.load import Staged
    from tracker.ingest.prepare import Job
    from tracker.ingest.report import IngestReport


def rehearse(job: Job, report: IngestReport, spool: Path, *, workers: int | None, progress: Callable[[str, int, int], None] | None) -> None:
    """Read everything and load nothing; the report says what would come in and what would be refused."""
    report.loaded = False
    total = len(job.plan.reading)
    for done, reading in enumerate(read_all(job.plan.reading, job.study, spool, workers=workers), 1):
        report.rejected += [Rejected(file=one.file, line=one.line, reason=one.reason, text=one.text) for one in reading.refusals]
        report.new += len(reading.runs)
        report.partial += sum(run.header.status != "finished" for run in reading.runs)
        report.records += sum(run.n_records for run in reading.runs)
        report.bytes += reading.bytes
        reading.discard()
        if progress is not None:
            progress("checking", done, total)
    for path, _ in job.label_files:
        try:
            read_labels(path)
        except InputError as err:
            report.rejected += [Rejected(file=one.file, line=one.line, reason=one.reason) for one in [refusal(printable(path), err)]]


def carry_out(
    job: Job,
    database: Database,
    report: IngestReport,
    spool: Path,
    *,
    staged: Staged | None,
    workers: int | None,
    progress: Callable[[str, int, int], None] | None,
) -> None:
    """Aliases first, then runs, then labels."""
    if job.aliases is not None:
        import_aliases(database, dict(job.study.model_aliases), dict(job.study.benchmark_aliases))
        _remember(database, *job.aliases)
    loader = Loader(database, report, [printable(path) for path in job.paths], staged)
    total = len(job.plan.reading)
    for done, reading in enumerate(read_all(job.plan.reading, job.study, spool, workers=workers), 1):
        loader.add(reading)
        if progress is not None:
            progress("reading", done, total)
    loader.flush()
    for path, digest in job.label_files:
        try:
            rows = read_labels(path)
        except InputError as err:
            # Not under its digest: the next ingest tries again, and reports it again.
            loader.refuse(Source(reader="labels", uri=printable(path), files=(path,)), f"refused-{digest}", err)
            continue
        report.labels += import_labels(database, rows).added
        _remember(database, printable(path), digest)


def _remember(database: Database, uri: str, digest: str) -> None:
    with database.write() as transaction:
        connection = transaction.connection
        connection.execute(sa.delete(Import).where(Import.uri == uri))
        connection.execute(sa.insert(Import).values(uri=uri, digest=digest))
        transaction.changed()
