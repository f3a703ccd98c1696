"""Read one source into whole runs. This is the part of ingest that costs time, so it runs in worker processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracker.batch import Refusal
from tracker.errors import InputError, TrackrError
from tracker.ingest.collect import Collector
from tracker.ingest.digest import Digest, digest, stamps
from tracker.ingest.reading import Reading
from tracker.readers import reader as reader_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from tracker.batch import Batch, Source
    from tracker.study import Study


def read_source(source: Source, study: Study, known_digest: Digest | None, folder: Path) -> Reading:
    """Read a source wholly; a source that cannot be used becomes a reading without runs and a refusal."""
    try:
        before = stamps(source)
        one = reader_of(source.reader)
        found = known_digest or digest(source, one, study.effective(source))
    except InputError as err:
        return _refused(source, "unreadable", [_refusal(source, err)])
    size = sum(stamp.size for stamp in before)
    collector = Collector(source, study, folder, may_hold_nul=found.may_hold_nul)
    try:
        for item in one.read(source, study):
            collector.take(item)
        reading = collector.finish(found.value, size)
    except InputError as err:
        collector.discard()
        return _refused(source, found.value, [*collector.refusals, _refusal(source, err)], size)
    except OSError as err:
        collector.discard()
        message = f"cannot be read: {err.strerror or err}"
        failed = InputError(message, where=str(err.filename or source.uri), hint="check the disk and run the command again")
        return _refused(source, f"unreadable-{found.value}", [_refusal(source, failed)], size)
    except BaseException:
        collector.discard()
        raise
    if stamps(source) != before:
        reading.discard()
        changed = InputError("changed while it was read", where=source.uri, hint="run the command again when its writer is done")
        return _refused(source, f"changing-{found.value}", [_refusal(source, changed)], size)
    return reading


def collect(items: Iterable[Batch | Refusal], source: Source, study: Study, folder: Path, value: str) -> Reading:
    """A reading of batches that come from elsewhere than a file."""
    collector = Collector(source, study, folder)
    for item in items:
        collector.take(item)
    return collector.finish(value, 0)


def _refused(source: Source, value: str, refusals: list[Refusal], size: int = 0) -> Reading:
    return Reading(source=source, digest=value, runs=[], refusals=refusals, bytes=size)


def _refusal(source: Source, err: TrackrError) -> Refusal:
    remedy = f" ({err.hint})" if err.hint else ""
    return Refusal(file=err.where or source.uri, reason=f"{err.message}{remedy}")
