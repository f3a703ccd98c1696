"""The database: the only place that knows SQLite from PostgreSQL."""

from __future__ import annotations

from tracker.database.engine import Database, StoreState, Transaction, create, open_database

__all__ = ["Database", "StoreState", "Transaction", "create", "open_database"]
