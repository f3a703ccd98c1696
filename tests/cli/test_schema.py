"""`trackr schema`: everything that can be named, documented."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.cli.running import Done, runner
from tracker.lake.docs import STAR_VIEWS, TRAJECTORY_ROWS
from tracker.schema import Base

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def trackr(capfd: pytest.CaptureFixture[str]) -> Callable[..., Done]:
    return runner(capfd)


def test_every_table_view_and_macro_is_listed(trackr: Callable[..., Done]) -> None:
    listed = {entry["name"]: entry["kind"] for entry in trackr("schema", "--json").json()}
    tables = {table.name for table in Base.metadata.tables.values()} - {"trajectories"}
    assert listed.keys() >= tables | set(STAR_VIEWS) | {TRAJECTORY_ROWS, "regime", "above_chance", "wilson_low", "wilson_high"}
    assert listed["answers"] == "view"
    assert listed["records"] == "table"
    assert listed["fits"] == "database table"
    done = trackr("schema")
    assert all(name in done.out for name in listed)


def test_columns_have_types_meanings_and_units(trackr: Callable[..., Done]) -> None:
    done = trackr("schema", "answers")
    assert "latency_s" in done.out
    assert "wall time of the answer (s)" in done.out
    assert "DOUBLE" in done.out
    column = next(c for c in trackr("schema", "runs", "--json").json()["columns"] if c["name"] == "started_at")
    assert column == {"name": "started_at", "type": "TIMESTAMP WITH TIME ZONE", "comment": "start (UTC), as the source says"}


def test_macro_shows_its_call(trackr: Callable[..., Done]) -> None:
    assert "regime(accuracy, ceiling := 0.2, easy := 0.9)" in trackr("schema", "regime").out


def test_misspelt_name_is_answered_with_the_near_ones(trackr: Callable[..., Done]) -> None:
    done = trackr("schema", "anwsers")
    assert done.code == 2
    assert "answers" in done.err
