"""Carry out a planned ingest."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import sqlalchemy as sa

from tracker.batch import Source
from tracker.config import mask
from tracker.database.peek import peek, rows
from tracker.errors import InputError
from tracker.ingest.catalog import import_aliases
from tracker.ingest.labels import import_labels, read_labels
from tracker.ingest.load import Loader
from tracker.ingest.plan import printable
from tracker.ingest.read import refusal
from tracker.ingest.report import Rejected
from tracker.schema import Import

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracker.database import Database
    from tracker.ingest.load import Staged
    from tracker.ingest.prepare import Job
    from tracker.ingest.report import IngestReport
    from tracker.ingest.workers import Readings


def rehearse(job: Job, url: str, report: IngestReport, readings: Readings, *, progress: Callable[[str, int, int], None] | None) -> None:
    """Read everything and load nothing; the report says what would come in and what would be refused.

    Runs of a changed source are counted as updated without looking which of them are the same as before.
    """
    report.loaded = False
    places = rows(url, "SELECT uri, digest FROM {0}run_sources") if peek(url) is not None else []
    stored, digests = Counter(uri for uri, _ in places), {digest for _, digest in places}
    total = len(job.plan.reading)
    for done, reading in enumerate(readings, 1):
        report.rejected += [Rejected(file=one.file, line=one.line, reason=one.reason, text=one.text) for one in reading.refusals]
        held = stored.get(reading.source.uri, 0)
        if reading.digest in digests:
            report.duplicate += len(reading.runs)
        elif reading.runs:
            report.updated += min(held, len(reading.runs))
            report.new += max(len(reading.runs) - held, 0)
            report.removed += max(held - len(reading.runs), 0)
            digests.add(reading.digest)
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
    readings: Readings,
    *,
    staged: Staged | None,
    progress: Callable[[str, int, int], None] | None,
) -> None:
    """Aliases first, then runs, then labels."""
    if job.aliases is not None:
        import_aliases(database, dict(job.study.model_aliases), dict(job.study.benchmark_aliases))
        _remember(database, *job.aliases)
    loader = Loader(database, report, [mask(printable(path)) for path in job.paths], staged)
    total = len(job.plan.reading)
    for done, reading in enumerate(readings, 1):
        loader.add(reading)
        if progress is not None:
            progress("reading", done, total)
    loader.flush()
    for path, digest in job.label_files:
        try:
            labels = read_labels(path)
        except InputError as err:
            # Not under its digest: the next ingest tries again, and reports it again.
            loader.refuse(Source(reader="labels", uri=printable(path), files=(path,)), f"refused-{digest}", err)
            continue
        report.labels += import_labels(database, labels).added
        _remember(database, printable(path), digest)


def _remember(database: Database, uri: str, digest: str) -> None:
    with database.write() as transaction:
        connection = transaction.connection
        connection.execute(sa.delete(Import).where(Import.uri == uri))
        connection.execute(sa.insert(Import).values(uri=uri, digest=digest))
        transaction.changed()
