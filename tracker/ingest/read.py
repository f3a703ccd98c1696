"""Read one source into whole runs. This is the part of ingest that costs time, so it runs in worker processes."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from tracker.batch import Refusal
from tracker.errors import InputError, TrackrError
from tracker.ingest.collect import Collector, storable
from tracker.ingest.digest import digest, stamps
from tracker.ingest.plan import UNREADABLE
from tracker.ingest.reading import Reading
from tracker.readers import reader as reader_of
from tracker.readers.base import BulkReader

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from tracker.batch import Batch, Source
    from tracker.study import Study


def read_sources(sources: Sequence[Source], study: Study, known_digests: Sequence[str | None], folder: Path) -> list[Reading]:
    """Read some sources; those of one group are read together."""
    if sources[0].group is not None and isinstance(one := reader_of(sources[0].reader), BulkReader):
        return _read_many(one, sources, study, known_digests, folder)
    return [read_source(source, study, known, folder) for source, known in zip(sources, known_digests, strict=True)]


def read_source(source: Source, study: Study, known_digest: str | None, folder: Path) -> Reading:
    """Read a source wholly; a source that cannot be used becomes a reading without runs and a refusal."""
    try:
        before = stamps(source)
        if source.reader == UNREADABLE:
            raise _unreadable(source)
        one = reader_of(source.reader)
        value = known_digest or digest(source, one, study.effective(source))
    except InputError as err:
        return refused(source, UNREADABLE, err)
    size = sum(stamp.size for stamp in before)
    reading = _gather(source, study, one.read(source, study), folder, value, size)
    if source.content is None and reading.runs and stamps(source) != before:
        reading.discard()
        changed = InputError("changed while it was read", where=source.uri, hint="run the command again when its writer is done")
        return refused(source, f"changing-{value}", changed, size=size)
    return reading


def _read_many(
    one: BulkReader, sources: Sequence[Source], study: Study, known_digests: Sequence[str | None], folder: Path
) -> list[Reading]:
    reader = reader_of(sources[0].reader)
    told: dict[str, str] = {}
    readings: list[Reading] = []
    for source, known in zip(sources, known_digests, strict=True):
        try:
            told[source.uri] = known or digest(source, reader, study.effective(source))
        except InputError as err:
            readings.append(refused(source, UNREADABLE, err))
    sources = [source for source in sources if source.uri in told]
    try:
        for source, items in one.read_many(sources, study):
            readings.append(_gather(source, study, items, folder, told.pop(source.uri), 0))
    except InputError as err:  # the store as a whole: what was not read yet cannot be read now
        readings += [refused(source, f"{UNREADABLE}-{told[source.uri]}", err) for source in sources if source.uri in told]
    return readings


def _gather(source: Source, study: Study, items: Iterator[Batch | Refusal], folder: Path, value: str, size: int) -> Reading:
    """What a reader gives of one source as a reading."""
    collector = Collector(source, study, folder)
    try:
        for item in items:
            with _spooling(folder):
                collector.take(item)
        with _spooling(folder):
            return collector.finish(value, size)
    except InputError as err:
        collector.discard()
        return refused(source, value, err, also=collector.refusals, size=size)
    except OSError as err:
        collector.discard()
        message = f"cannot be read: {err.strerror or err}"
        failed = InputError(message, where=str(err.filename or source.uri), hint="check the disk or the network, and run the command again")
        return refused(source, f"{UNREADABLE}-{value}", failed, size=size)
    except BaseException:
        collector.discard()
        raise


def collect(items: Iterable[Batch | Refusal], source: Source, study: Study, folder: Path, value: str) -> Reading:
    """A reading of batches that come from elsewhere than a file."""
    collector = Collector(source, study, folder)
    for item in items:
        collector.take(item)
    return collector.finish(value, 0)


def refused(source: Source, value: str, err: InputError, *, also: Sequence[Refusal] = (), size: int = 0) -> Reading:
    """A reading that holds nothing but why."""
    return Reading(source=source, digest=value, runs=[], refusals=[*also, refusal(source.uri, err)], bytes=size)


def refusal(uri: str, err: TrackrError) -> Refusal:
    """An error as the refusal of what lies at an address."""
    remedy = f" ({err.hint})" if err.hint else ""
    file, _, place = (err.where or uri).partition(": line ")
    line = int(place) if place.isdigit() else None
    where = f"line {place}: " if place and line is None else ""
    return storable(Refusal(file=file, line=line, reason=f"{where}{err.message}{remedy}"))


def _unreadable(source: Source) -> InputError:
    """Why a file could not be looked into."""
    hint = "check its permissions, and run the command again"
    try:
        with source.files[0].open("rb") as stream:
            stream.read(1)
    except OSError as err:
        return InputError(f"cannot be read: {err.strerror or err}", where=source.uri, hint=hint)
    return InputError("could not be read a moment ago", where=source.uri, hint=hint)


@contextmanager
def _spooling(folder: Path) -> Iterator[None]:
    """What goes wrong with temporary files is no fault of the source."""
    try:
        yield
    except OSError as err:
        message = f"cannot write temporary files: {err.strerror or err}"
        raise TrackrError(message, where=str(folder), hint="free some space there, or set TMPDIR to another folder") from err
