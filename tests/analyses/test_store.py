"""Stored results on both engines."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest

from analyses.ceiling import Parameters, run
from analyses.result import FittedLaw
from analyses.store import headline_of, save, show, stored, tables_of
from analyses.text import render_table
from tests.analyses import messy
from tests.analyses.planted import session
from tracker.database import open_database
from tracker.errors import AnalysisError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from analyses.result import Result
    from tracker.database import Database


@pytest.fixture(scope="module")
def result() -> Result:
    return run(session(messy.rows(0)), Parameters(where="n_options > 2"))


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    opened = open_database(database_url)
    yield opened
    opened.close()


def test_a_stored_result_comes_back_as_it_was(database: Database, result: Result) -> None:
    row = show(database, save(database, result))
    envelope = result.envelope()
    assert row["name"] == "ceiling"
    assert row["result"]["tables"] == envelope["tables"]
    assert row["result"]["warnings"] == envelope["warnings"]
    assert row["headline"] == envelope["headline"]
    assert list(headline_of(row)) == list(envelope["headline"])
    assert row["parameters"] == envelope["parameters"]
    assert (row["cohort_sql"], row["cohort_rows"], row["cohort_digest"]) == (result.cohort.sql, result.cohort.rows, result.cohort.digest)
    assert (row["data_version"], row["seed"], row["engine_version"]) == (7, 20260909, result.engine_version)
    assert row["fits"] == []


def test_stored_tables_print_as_fresh_ones(database: Database, result: Result) -> None:
    tables = tables_of(show(database, save(database, result)))
    assert list(tables) == list(result.tables)
    for name, table in tables.items():
        assert render_table(name, table) == render_table(name, result.tables[name])


def test_fits_are_stored_with_their_analysis(database: Database, result: Result) -> None:
    fit = FittedLaw(law="separable", group_key="A x S", parameters={"alpha": {"value": 0.3}}, at_bound=("beta",), n=36, k=5, sse=0.01)
    row = show(database, save(database, dataclasses.replace(result, fits=(fit,))))
    assert [(each["law"], each["group_key"], each["at_bound"], each["n"], each["r2"]) for each in row["fits"]] == [
        ("separable", "A x S", ["beta"], 36, None)
    ]


def test_storing_does_not_move_the_data(database: Database, result: Result) -> None:
    with database.read() as connection:
        before = database.store(connection)
    save(database, result)
    with database.read() as connection:
        assert database.store(connection) == before


def test_the_latest_result_is_listed_first(database: Database, result: Result) -> None:
    first, second = save(database, result), save(database, result)
    assert [row["id"] for row in stored(database)] == [second, first]
    assert stored(database, "other") == []


def test_an_unknown_id_is_said(database: Database) -> None:
    with pytest.raises(AnalysisError, match="no stored analysis has id 7"):
        show(database, 7)
