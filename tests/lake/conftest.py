"""A store on each engine with a few runs, and its lake."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from tests.lake.study import add_run, new_database
from tracker.lake import Lake, Session, connect, sync, verify

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tracker.database import Database


@dataclass(frozen=True, slots=True)
class Store:
    """A database and its lake."""

    db: Database
    lake: Lake

    def sync(self) -> None:
        """Bring the lake up."""
        sync(self.db, self.lake)

    def assert_equal(self) -> None:
        """The lake holds what the database holds."""
        report = verify(self.db, self.lake)
        assert report.ok, report.problems

    def session(self) -> Session:
        """A session over the lake as it is."""
        return connect(self.lake)


@pytest.fixture
def store(sqlite_url: str, tmp_path: Path) -> Iterator[Store]:
    """A SQLite store without runs."""
    db = new_database(sqlite_url)
    yield Store(db, Lake(tmp_path / "lake"))
    db.close()


@pytest.fixture
def any_store(database_url: str, tmp_path: Path) -> Iterator[Store]:
    """The same on each engine."""
    db = new_database(database_url)
    yield Store(db, Lake(tmp_path / "lake"))
    db.close()


@pytest.fixture
def filled(store: Store) -> Store:
    """A SQLite store with runs that count, runs that do not, and a training run; synced."""
    for seed in range(12):
        add_run(store.db, seed, configuration=seed % 8 + 1, benchmark=seed % 3 + 1, current=seed not in {3, 7})
    add_run(store.db, 99, kind="training", configuration=1)
    store.sync()
    return store
