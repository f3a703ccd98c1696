"""From a location to a session: look whether the database moved, sync if it did, open the lake."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracker.config import Location, mask
from tracker.errors import DatabaseError, LakeError
from tracker.lake.folder import Lake

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracker.lake.session import Session

    Progress = Callable[[str, int, int], None]


def open_session(
    location: Location, *, sync: bool = True, talk: Callable[[str], None] | None = None, progress: Progress | None = None
) -> Session:
    """A session over the lake, synced first when the database is newer; loads no ORM when nothing changed."""
    from tracker.lake.session import connect

    lake = freshen(location, talk=talk, progress=progress) if sync else Lake(location.lake)
    return connect(lake)


def freshen(location: Location, *, talk: Callable[[str], None] | None = None, progress: Progress | None = None) -> Lake:
    """Sync the lake if the database is newer; DatabaseError where there is no database."""
    from tracker.database.peek import peek

    lake = Lake(location.lake)
    seen = peek(location.url)
    if seen is None:
        message = "there is no trackr database here yet"
        raise DatabaseError(
            message, where=mask(location.url), hint=f"trackr ingest PATH creates it; this place comes from: {location.url_origin}"
        )
    if not lake.is_fresh(seen):
        _sync(location, lake, talk, progress)
    return lake


def _sync(location: Location, lake: Lake, talk: Callable[[str], None] | None, progress: Progress | None) -> None:
    from tracker.database import open_database
    from tracker.lake.syncing import sync

    manifest = lake.manifest()
    if manifest is not None and not lake.writable:
        if talk:
            talk(f"the lake is read-only for you and older than the database: answers are as of {manifest.synced_at}")
        return
    db = open_database(location.url, create_missing=False)
    try:
        report = sync(db, lake, talk=talk, progress=progress)
    except LakeError:
        if lake.writable:
            raise
        message = "there is no lake yet and its folder is read-only for you"
        raise LakeError(message, where=str(lake.folder), hint="name a folder of your own with --lake") from None
    finally:
        db.close()
    for warning in report.warnings:
        if talk:
            talk(warning)
