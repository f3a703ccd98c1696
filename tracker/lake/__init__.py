"""The lake: a columnar copy of the database in Parquet, kept up by `sync`, read through a DuckDB session.

Importing this package is cheap; what needs Arrow, DuckDB or the ORM is loaded when it is used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from tracker.lake.folder import Lake
from tracker.lake.manifest import Manifest

if TYPE_CHECKING:
    from tracker.lake.freshness import freshen, open_session
    from tracker.lake.session import Session, connect, portable_sql
    from tracker.lake.staging import Staging
    from tracker.lake.syncing import SyncReport, rebuild, sync
    from tracker.lake.verifying import VerifyReport, verify

_PLACES = {
    "Session": "session",
    "Staging": "staging",
    "SyncReport": "syncing",
    "VerifyReport": "verifying",
    "connect": "session",
    "freshen": "freshness",
    "open_session": "freshness",
    "portable_sql": "session",
    "rebuild": "syncing",
    "sync": "syncing",
    "verify": "verifying",
}

__all__ = [
    "Lake",
    "Manifest",
    "Session",
    "Staging",
    "SyncReport",
    "VerifyReport",
    "connect",
    "freshen",
    "open_session",
    "portable_sql",
    "rebuild",
    "sync",
    "verify",
]


def __getattr__(name: str) -> Any:
    """Load what was asked for."""
    if name in _PLACES:
        value = getattr(importlib.import_module(f"tracker.lake.{_PLACES[name]}"), name)
        globals()[name] = value
        return value
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)
