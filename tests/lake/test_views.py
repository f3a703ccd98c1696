"""The star views and macros: their columns are a contract, their numbers are computed a second way."""

from __future__ import annotations

import re
import sqlite3
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.lake.naive import Naive, same
from tests.lake.study import add_run
from tracker.config import sqlite_path
from tracker.lake import Session, portable_sql
from tracker.lake.docs import STAR_VIEWS, VIEWS, describe, macro_docs, sql, table_docs, view_docs
from tracker.lake.session import define_tables, define_views, engine, trajectories_sql

if TYPE_CHECKING:
    from collections.abc import Iterator

    import duckdb

    from tests.lake.conftest import Store

CONTRACT = {
    "answers": "run_id, question_id, repetition, attempt, counts, status, correct, score, credit, p_gold, prediction, logit_prediction, visual_tokens,"
    " prompt_tokens, generated_tokens, tiles, effective_pixels, latency_s, model, series, family, backbone, parameters, frontend, configuration_id,"
    " input_mode, input_size, max_tiles, variant, source_quality, vision_branches, language_branches, benchmark, suite, question_key, image_key,"
    " pair_key, task, category, domain, skill, gold, n_options",
    "cells": "family, series, model, parameters, suite, benchmark, configuration_id, run_id, input_mode, input_size, variant, n, errors, error,"
    " visual_tokens, prompt_tokens, flops, latency_s",
    "trajectories": "question_id, question_key, series, family, suite, benchmark, task, category, domain, skill, n_configurations, n_observations,"
    " accuracy, p_gold",
    "curves": "run, model, backbone, system, metric, step, tokens, flops, value",
}
"""Columns of the star views as the design fixes them."""


def rows(session: Session, text: str) -> list[dict[str, Any]]:
    result = session.sql(text)
    return [dict(zip(result.columns, row, strict=True)) for row in result.fetchall()]


@pytest.fixture
def empty() -> Iterator[duckdb.DuckDBPyConnection]:
    """A lake without a single row."""
    connection = engine()
    define_tables(connection, table_docs(), {})
    define_views(connection)
    yield connection
    connection.close()


@pytest.mark.parametrize("view", STAR_VIEWS)
def test_columns_of_star_views_are_the_contract(filled: Store, view: str) -> None:
    assert ", ".join(filled.session().sql(f"select * from {view}").columns) == CONTRACT[view]


@pytest.mark.parametrize("view", STAR_VIEWS)
def test_documented_columns_and_types_are_the_real_ones(filled: Store, view: str) -> None:
    described = filled.session().sql(f"describe {view}").fetchall()
    assert [(name, kind) for name, kind, *_ in described] == [(column.name, column.type) for column in view_docs()[view].columns]


@pytest.mark.parametrize("path", sorted(VIEWS.glob("*.sql")), ids=lambda path: path.stem)
def test_every_sql_file_runs_on_an_empty_lake(empty: duckdb.DuckDBPyConnection, path: Any) -> None:
    text = path.read_text()
    assert text.startswith("-- "), "the first line says what it is"
    empty.execute(text)
    assert empty.fetchall() == []


@pytest.mark.parametrize("name", ["cells", "run_totals"])
def test_portable_sql_runs_on_an_empty_lake(empty: duckdb.DuckDBPyConnection, name: str) -> None:
    assert empty.execute(portable_sql(name)).fetchall() == []


def test_answers_are_the_records_with_their_descriptions(filled: Store) -> None:
    session = filled.session()
    naive = Naive(filled.db)
    answers = rows(session, "select * from answers")
    assert len(answers) == len(naive.records) > 100
    names = CONTRACT["answers"].split(", ")
    expected = [{name: row[name] for name in names} for row in naive.answers()]
    assert same(expected, answers, "run_id", "question_id", "question_key", "repetition", "attempt", "gold", "prediction", "credit")


def test_some_of_everything_is_in_the_study(filled: Store) -> None:
    """The comparisons of this file would mean little if a case were missing."""
    session = filled.session()
    counts = session.sql(
        """
        select count(*) filter (not counts and credit is not null), count(*) filter (counts), count(*) filter (credit is null),
            count(*) filter (domain = 'D2'), count(*) filter (skill = 'S1'), count(*) filter (task = 'reasoning'),
            count(*) filter (pair_key = 'p-other'), count(*) filter (repetition > 0), count(*) filter (attempt > 0),
            count(*) filter (credit > 0 and credit < 1), count(*) filter (p_gold is null), count(*) filter (family is null)
        from answers
        """,
    ).fetchall()[0]
    assert all(count > 0 for count in counts), counts


def test_cells_are_computed_right(filled: Store) -> None:
    cells = rows(filled.session(), "select * from cells")
    assert cells
    assert same(Naive(filled.db).cells(), cells, "run_id")


def test_cells_of_runs_that_do_not_count_are_absent(filled: Store) -> None:
    session = filled.session()
    assert session.sql("select count(*) from cells join runs on run_id = id where not current").fetchall() == [(0,)]
    assert session.sql("select count(*) > 0 from answers join runs on run_id = id where not current").fetchall() == [(True,)]


def test_the_same_cells_sql_runs_on_the_database(any_store: Store) -> None:
    for seed in range(8):
        add_run(any_store.db, seed)
    any_store.sync()
    text = portable_sql("cells")
    path = sqlite_path(any_store.db.url)
    if path is not None:
        with sqlite3.connect(path) as connection:
            connection.row_factory = sqlite3.Row
            found = [dict(row) for row in connection.execute(text)]
        connection.close()
    else:
        with any_store.db.read() as read:
            read.execute(sa.text("SET search_path TO trackr"))
            found = [
                {name: float(value) if name in {"errors", "error"} else value for name, value in row.items()}
                for row in read.execute(sa.text(text)).mappings()
            ]
            found = [{name: _plain(value) for name, value in row.items()} for row in found]
    assert found
    assert same(found, rows(any_store.session(), "select * from cells"), "run_id")


def _plain(value: Any) -> Any:
    """PostgreSQL averages whole numbers to Decimal."""
    return value if value is None or isinstance(value, (str, int)) else float(value)


def test_trajectories_are_computed_right(any_store: Store) -> None:
    for seed in range(12):
        add_run(any_store.db, seed, configuration=seed % 8 + 1, benchmark=seed % 3 + 1, current=seed not in {3, 7})
    any_store.sync()
    expected = Naive(any_store.db).trajectories()
    assert expected
    session = any_store.session()
    assert same(expected, rows(session, "select * from trajectories"), "question_id", "series")
    assert same(expected, rows(session, session.trajectories_sql()), "question_id", "series")


def test_trajectories_of_some_answers_are_computed_by_the_same_sql(filled: Store) -> None:
    session = filled.session()
    where = "input_size > 500 and (domain is null or domain <> 'D4') -- a comment at the end"
    expected = Naive(filled.db).trajectories(lambda row: row["input_size"] > 500 and row["domain"] != "D4")
    found = rows(session, session.trajectories_sql(where))
    assert ", ".join(found[0]) == CONTRACT["trajectories"]
    assert same(expected, found, "question_id", "series")
    assert 0 < len(found) < len(rows(session, "select * from trajectories"))


def test_last_points_are_those_of_the_highest_step(filled: Store) -> None:
    session = filled.session()
    found = rows(session, "select * from last_points order by run_id, metric")
    every = rows(session, "select run_id, metric, step, seq, value, special, logged_at from metric_points")
    expected: dict[tuple[Any, Any], dict[str, Any]] = {}
    for point in sorted(every, key=lambda one: (one["step"], one["seq"])):
        expected[point["run_id"], point["metric"]] = {name: value for name, value in point.items() if name != "seq"}
    assert found == [expected[key] for key in sorted(expected)]
    assert found


def test_curves_show_points_of_training_runs(filled: Store) -> None:
    session = filled.session()
    curves = rows(session, "select * from curves order by metric, step")
    assert len(curves) == 10
    assert {row["system"] for row in curves} == {"free"}
    assert [row["value"] is None for row in curves[:5]] == [False, False, False, True, False]


def test_label_of_the_first_source_is_shown_and_no_answer_is_doubled(filled: Store) -> None:
    session = filled.session()
    shown = dict(session.sql("select distinct question_id, domain from answers where domain is not null").fetchall())
    assert shown == {102: "D2", 103: "D5"}, "a stated priority goes first, the rest by name"
    assert session.sql("select (select count(*) from answers) = (select count(*) from records)").fetchall() == [(True,)]


def test_two_keys_of_one_question_are_one_trajectory(filled: Store) -> None:
    session = filled.session()
    keys = session.sql("select distinct question_id, question_key, gold, pair_key from answers where question_id = 101").fetchall()
    assert keys == [(101, "q1", "C", "p-other")], "the canonical key's value, else the other key's"
    assert session.sql("select count(*) from answers where question_id = 112").fetchall() == [(0,)]


def test_tables_views_columns_and_macros_carry_comments(filled: Store) -> None:
    session = filled.session()
    assert session.sql("select comment from duckdb_views() where view_name = 'answers'").fetchall() == [(view_docs()["answers"].comment,)]
    missing = session.sql(
        "select table_name, column_name from duckdb_columns() where schema_name = 'main' and not internal and coalesce(comment, '') = ''"
    )
    assert missing.fetchall() == []
    macros = session.sql("select distinct function_name from duckdb_functions() where comment is not null and not internal").fetchall()
    assert {name for (name,) in macros} == set(macro_docs())


def test_everything_that_is_described_has_a_comment() -> None:
    for entry in describe():
        assert entry["comment"], entry["name"]
        assert all(column["comment"] for column in entry.get("columns", ()))


def test_portable_sql_is_only_promised_where_it_holds() -> None:
    with pytest.raises(ValueError, match="answers"):
        portable_sql("answers")


def test_stored_and_recomputed_trajectories_share_one_sql_file() -> None:
    assert sql("fold") in trajectories_sql("true")


@pytest.fixture(scope="module")
def duck() -> Iterator[duckdb.DuckDBPyConnection]:
    """Macros and nothing else."""
    connection = engine()
    connection.execute(sql("macros"))
    yield connection
    connection.close()


class TestMacros:
    def value(self, duck: duckdb.DuckDBPyConnection, call: str) -> Any:
        return duck.execute(f"select {call}").fetchall()[0][0]

    @pytest.mark.parametrize(
        ("call", "expected"),
        [
            ("regime(1.0)", "easy"),
            ("regime(0.9)", "scaling_bound"),
            ("regime(0.9000000000001)", "scaling_bound"),
            ("regime(0.2)", "scaling_bound"),
            ("regime(0.1999999999999)", "scaling_bound"),
            ("regime(0.1999)", "ceiling_bound"),
            ("regime(0)", "ceiling_bound"),
            ("regime(null)", None),
            ("regime(0.25, ceiling := 0.3)", "ceiling_bound"),
            ("regime(0.85, easy := 0.8)", "easy"),
            ("regime(1/3 + 1/3 + 1/3, easy := 1)", "scaling_bound"),
            ("above_chance(0.25, 4)", 0.0),
            ("above_chance(1, 4)", 1.0),
            ("above_chance(0, 4)", -1 / 3),
            ("above_chance(0.5, 1)", None),
            ("above_chance(0.5, null)", None),
            ("above_chance(null, 4)", None),
            ("wilson_low(0, 0)", None),
            ("wilson_high(0, 0)", None),
            ("wilson_low(0, 10)", 0.0),
            ("wilson_high(10, 10)", 1.0),
            ("wilson_low(3, 10)", 0.10779126740630081),
            ("wilson_high(3, 10)", 0.6032218525388546),
        ],
    )
    def test_known_values(self, duck: duckdb.DuckDBPyConnection, call: str, expected: Any) -> None:
        found = self.value(duck, call)
        assert found == (pytest.approx(expected, abs=1e-12) if isinstance(expected, float) else expected)

    @settings(deadline=None)
    @given(st.integers(0, 3000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
    def test_wilson_interval_is_that_of_scipy(self, duck: duckdb.DuckDBPyConnection, case: tuple[int, int]) -> None:
        from scipy.stats import binomtest

        k, n = case
        low, high = duck.execute("select wilson_low($k, $n), wilson_high($k, $n)", {"k": k, "n": n}).fetchall()[0]
        if n == 0:
            assert low is high is None
            return
        expected = binomtest(k, n).proportion_ci(method="wilson")
        assert (low, high) == (pytest.approx(expected.low, abs=1e-12), pytest.approx(expected.high, abs=1e-12))


def test_views_name_no_file_or_schema_that_a_user_would_miss() -> None:
    """`main.` appears only where a narrowed table must not shadow itself."""
    for name in STAR_VIEWS:
        assert not re.search(r"\bmain\.", sql(name))
