"""A store per test, on SQLite or on both engines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.ingest.tables import open_store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tracker.api import Tracker


@pytest.fixture
def store(sqlite_url: str, tmp_path: Path) -> Iterator[Tracker]:
    """A store on SQLite."""
    with open_store(sqlite_url, tmp_path) as opened:
        yield opened


@pytest.fixture
def each_store(database_url: str, tmp_path: Path) -> Iterator[Tracker]:
    """A store; the test runs once per engine."""
    with open_store(database_url, tmp_path) as opened:
        yield opened
