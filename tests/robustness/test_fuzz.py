"""Files damaged at random: a reading comes of each, every refusal is of use, and a store holds whole runs only.

`TRACKR_FUZZ=3000 pytest tests/robustness/test_fuzz.py` tries that many for each format.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.ingest.tables import open_store
from tests.robustness.damage import damaged, fitting
from tests.robustness.reading import Read, faults_of
from tests.robustness.samples import sample_units
from tests.robustness.units import STUDY, Unit, all_units, formats

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tracker.api import Tracker

EXAMPLES = int(os.environ.get("TRACKR_FUZZ", "0"))
NUMBERS = st.integers(0, 2**31)
HALF_RUNS = """
SELECT r.id FROM runs r WHERE
    r.n_records <> (SELECT count(*) FROM records x WHERE x.run_id = r.id)
    OR NOT EXISTS (SELECT 1 FROM run_sources p WHERE p.run_id = r.id)
    OR EXISTS (SELECT 1 FROM record_scores s WHERE s.run_id = r.id AND NOT EXISTS (
        SELECT 1 FROM records x WHERE x.run_id = r.id AND x.question_id = s.question_id AND x.repetition = s.repetition AND x.attempt = s.attempt))
UNION ALL SELECT x.run_id FROM records x WHERE NOT EXISTS (SELECT 1 FROM runs r WHERE r.id = x.run_id)
UNION ALL SELECT x.run_id FROM records x WHERE NOT EXISTS (SELECT 1 FROM questions q WHERE q.id = x.question_id)
"""
"""Runs whose records are not all there, that came from nowhere, or of which something is left."""


@st.composite
def cases(draw: st.DrawFn, units: tuple[Unit, ...]) -> tuple[Unit, str, bytes]:
    """A unit, a file of it, and its content with one to four damages."""
    unit = draw(st.sampled_from(units))
    target = draw(st.sampled_from(unit.targets))
    content = unit.files[target]
    for _ in range(draw(st.integers(1, 4))):
        content = damaged(content, draw(st.sampled_from(fitting(content))), draw(NUMBERS), draw(NUMBERS))
    return unit, target, content


def units_of(format_: str) -> tuple[Unit, ...]:
    """Our own units and the real ones."""
    return (*(unit for unit in all_units() if unit.format == format_), *sample_units(format_))


def try_each(format_: str, examples: int, check: Callable[[Unit, str, bytes], None]) -> None:
    """A check on damaged files of a format, the same ones in every run."""
    quiet = list(HealthCheck)

    @settings(max_examples=EXAMPLES or examples, deadline=None, derandomize=True, database=None, suppress_health_check=quiet)
    @given(case=cases(units_of(format_)))
    def run(case: tuple[Unit, str, bytes]) -> None:
        check(*case)

    run()


@pytest.mark.parametrize("format_", formats())
def test_a_reading_comes_of_whatever_a_file_holds(format_: str, tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    spool.mkdir()

    def check(unit: Unit, target: str, content: bytes) -> None:
        folder = fresh(tmp_path / "in")
        read = Read(unit.write(folder, **{target: content}), spool)
        assert faults_of(read.refusals) == []
        assert read.uneven == []
        assert [reading.source.uri for reading in read.readings if not reading.runs and not reading.refusals] == []
        assert not any(spool.iterdir())

    try_each(format_, 25, check)


@pytest.mark.parametrize("format_", formats())
def test_a_store_holds_no_half_run(format_: str, sqlite_url: str, tmp_path: Path) -> None:
    """Each case takes the place of the one before it, as a file that changes does."""
    folder, database = tmp_path / "in", sqlite_url.removeprefix("sqlite:///")

    def check(store: Tracker) -> Callable[[Unit, str, bytes], None]:
        def check_one(unit: Unit, target: str, content: bytes) -> None:
            unit.write(fresh(folder), **{target: content})
            store.ingest(folder, study=STUDY)
            assert query(database, HALF_RUNS) == []
            again = store.ingest(folder, study=STUDY)
            assert (again.new, again.updated, again.removed, again.records) == (0, 0, 0, 0)

        return check_one

    with open_store(sqlite_url, tmp_path) as store:
        unit = units_of(format_)[0]
        store.ingest(unit.write(fresh(folder)), study=STUDY)
        assert query(database, "SELECT count(*) FROM runs") != [(0,)]
        try_each(format_, 3, check(store))


def fresh(folder: Path) -> Path:
    """An empty folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder


def query(database: str, statement: str) -> list[Any]:
    """Rows of a statement."""
    with closing(sqlite3.connect(database)) as connection:
        return connection.execute(statement).fetchall()
