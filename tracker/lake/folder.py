"""The lake's folder: where its files are, who may change it, how a new manifest takes the place of the old one."""

from __future__ import annotations

import os
import re
import shutil
import time
import uuid
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from tracker.errors import LakeError
from tracker.lake.manifest import Manifest, from_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tracker.database.peek import Peek
    from tracker.lake.staging import Staging

MANIFEST = "manifest.json"
STAGING = "staging"
OUR_FILE = re.compile(r"([a-z_]+-)?[0-9a-f]{32}\.(parquet|tmp)")
"""Names that only sync gives; nothing else in the folder is ever deleted."""


class Lake:
    """A folder of Parquet files with a manifest."""

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)

    def __repr__(self) -> str:
        """Say where it is."""
        return f"Lake({str(self.folder)!r})"

    def path(self, file: str) -> Path:
        """Full path of a file that the manifest names."""
        return self.folder / file

    def manifest(self) -> Manifest | None:
        """The present state; None where no lake has been written yet."""
        path = self.folder / MANIFEST
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as err:
            message = f"the manifest of the lake cannot be read: {err}"
            raise LakeError(message, where=str(path), hint="check the permissions, or name another folder with --lake") from err
        return from_json(text, str(path))

    def is_fresh(self, peek: Peek) -> bool:
        """Whether the lake equals the database and was written by this version of trackr."""
        from tracker.version import version

        manifest = self.manifest()
        return (
            manifest is not None
            and (manifest.uuid, manifest.data_version, manifest.revision) == (peek.uuid, peek.data_version, peek.revision)
            and manifest.trackr == version()
            and not manifest.dirty
        )

    def staging(self) -> Staging:
        """A place for rows that ingest commits, so that sync need not read them back."""
        from tracker.lake.staging import Staging

        return Staging(self)

    @property
    def writable(self) -> bool:
        """Whether this process may change the lake."""
        place = self.folder
        while not place.exists() and place != place.parent:
            place = place.parent
        return os.access(place, os.W_OK)

    @contextmanager
    def lock(self, talk: Callable[[str], None] | None = None) -> Iterator[None]:
        """Be the only one that changes the lake; waits for another process and says so."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            handle = os.open(self.folder / "sync.lock", os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as err:
            message = f"the lake cannot be written: {err.strerror}"
            raise LakeError(
                message, where=str(self.folder), hint="name another folder with --lake, or read it as it is with --no-sync"
            ) from err
        try:
            _wait_for(handle, talk)
            yield
        finally:
            os.close(handle)

    def publish(self, manifest: Manifest) -> None:
        """Make a manifest the present one, atomically and durably; its files must be on disk already."""
        temporary = self.folder / f".{MANIFEST}.{uuid.uuid4().hex}"
        try:
            with temporary.open("w", encoding="utf-8") as stream:
                stream.write(manifest.to_json())
                stream.flush()
                os.fsync(stream.fileno())
            temporary.replace(self.folder / MANIFEST)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise
        sync_folder(self.folder)

    def _our_files(self) -> Iterator[str]:
        """Files of segments and tables, relative to the lake's folder; there may be thousands within a grace period."""
        for place in os.scandir(self.folder) if self.folder.is_dir() else ():
            if place.is_dir() and place.name != STAGING:
                yield from (f"{place.name}/{one.name}" for one in os.scandir(place) if OUR_FILE.fullmatch(one.name))

    def clean(self, manifest: Manifest | None, now: float | None = None) -> Manifest | None:
        """Delete what no reader can need: expired replaced files, leftovers of dead writers. Call it under the lock."""
        now = time.time() if now is None else now
        kept = {name: at for name, at in manifest.retired.items() if now - at < manifest.grace_seconds} if manifest else {}
        needed = {*(manifest.files() if manifest else ()), *kept}
        for file in list(self._our_files()):
            if file not in needed:
                self.path(file).unlink(missing_ok=True)
        for path in self.folder.glob(f".{MANIFEST}.*"):
            path.unlink(missing_ok=True)
        for place in (self.folder / STAGING).glob("*"):
            _remove_abandoned(place)
        if manifest is None or len(kept) == len(manifest.retired):
            return manifest
        from dataclasses import replace

        return replace(manifest, retired=kept)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable, where the system can."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def sync_file(path: Path) -> None:
    """Make a written file durable."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _wait_for(handle: int, talk: Callable[[str], None] | None) -> None:
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        if talk:
            talk("waiting for another process that syncs this lake")
        fcntl.flock(handle, fcntl.LOCK_EX)


def _remove_abandoned(place: Path) -> None:
    """Remove a staging folder whose owner is gone: an owner holds the lock on its folder."""
    import fcntl

    try:
        handle = os.open(place, os.O_RDONLY)
    except OSError:
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(place, ignore_errors=True)
    except OSError:
        return
    finally:
        os.close(handle)
