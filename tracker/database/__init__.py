"""The database: the only place that knows SQLite from PostgreSQL.

Importing this package is cheap; the ORM is loaded when a database is opened (`peek` does without it).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tracker.database.engine import Database, StoreState, Transaction, create, open_database

__all__ = ["Database", "StoreState", "Transaction", "create", "open_database"]


def __getattr__(name: str) -> Any:
    """Load the engine when it is first asked for."""
    if name in __all__:
        from tracker.database import engine

        return getattr(engine, name)
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)
