"""The user's own SQL: one condition or one SELECT, the same rows every time, each answer once."""

from __future__ import annotations

import pytest

from analyses.ceiling import Parameters, run
from analyses.parameters import checked
from tests.analyses import messy
from tests.analyses.planted import session
from tracker.errors import QueryError, UsageError

ROWS = messy.rows(0, gaps=False)


def refusal(**options: str) -> QueryError:
    with pytest.raises(QueryError) as caught:
        run(session(ROWS), Parameters(**options))
    return caught.value


@pytest.mark.parametrize(
    "where",
    [
        "true) or (true",
        "true); select (1",
        "true; select 1",
        "true order by 1",
        "true limit 1",
        "true union all select 2",
        "1, 2",
        "select true",
        "true /*",
        "-- nothing",
    ],
)
def test_what_is_not_one_condition_is_refused(where: str) -> None:
    assert refusal(where=where).where == "--where"


@pytest.mark.parametrize("where", ["true -- said why )", "(true) or (false)", "question_id in (select question_id from answers) /* ( */"])
def test_a_condition_may_have_comments_parentheses_and_selects(where: str) -> None:
    assert run(session(ROWS), Parameters(where=where)).headline == run(session(ROWS), Parameters()).headline


@pytest.mark.parametrize(
    "cohort", ["select * from answers) as x, (select 1", "select 1; select * from answers", "drop table answers", "-- no"]
)
def test_what_is_not_one_select_is_refused(cohort: str) -> None:
    assert refusal(cohort=cohort).where == "--cohort"


@pytest.mark.parametrize("option", ["where", "cohort"])
@pytest.mark.parametrize("text", ["", " \n"])
def test_no_sql_at_all_is_refused_at_its_option(option: str, text: str) -> None:
    with pytest.raises(UsageError, match=f"--{option}: expected SQL, found none"):
        checked(Parameters, {option: text})


@pytest.mark.parametrize(
    ("option", "sql", "named"),
    [
        ("where", "random() < 0.5", "random()"),
        ("where", "question_id in (select question_id from answers where Random() < 0.5)", "random()"),
        ("cohort", "select * from answers where uuid() > 'a'", "uuid()"),
        ("cohort", "select * from answers using sample 10%", "a sample without REPEATABLE"),
    ],
)
def test_what_chooses_other_rows_every_time_is_refused(option: str, sql: str, named: str) -> None:
    error = refusal(**{option: sql})
    assert error.where == f"--{option}"
    assert error.message == f"{named} chooses other rows every time: the numbers could not be had again"
    assert error.hint is not None
    assert run(session(ROWS), Parameters(where="hash(question_id) % 2 = 0")).cohort.rows > 0


def test_a_cohort_that_has_answers_twice_is_refused() -> None:
    error = refusal(cohort="select * from answers union all select * from answers")
    assert error.where == "--cohort"
    assert error.message.startswith("the cohort has an answer more than once (")
    once = run(session(ROWS), Parameters(cohort="select * from answers union select * from answers"))
    assert once.headline == run(session(ROWS), Parameters()).headline


def test_a_seed_is_not_negative() -> None:
    with pytest.raises(UsageError, match=r"--seed: .*greater than or equal to 0"):
        checked(Parameters, {"seed": -1})
