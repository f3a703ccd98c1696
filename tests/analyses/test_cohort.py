"""A cohort of the user's own: what it lacks is named at once."""

from __future__ import annotations

import pytest

from analyses.law import Parameters, run
from tests.analyses.planted import PlantedLaw, planted_cells, session
from tracker.errors import QueryError

ROWS = planted_cells({("A", "S"): PlantedLaw(b=0.05)}, questions=4)


def refusal(cohort: str, **options: str) -> QueryError:
    with pytest.raises(QueryError) as caught:
        run(session(ROWS), Parameters(cohort=cohort, **options))
    return caught.value


def test_every_column_that_a_cohort_lacks_is_named() -> None:
    about = refusal("select * exclude (run_id, suite, task) from answers;")
    assert about.message == "the cohort lacks columns: run_id, suite, task"
    assert about.where == "--cohort"
    assert about.hint == "select * from answers where ... has them all"
    assert "question_id, repetition, attempt, counts, p_gold" in refusal("select run_id, credit from answers").message


def test_a_column_that_only_the_condition_names_is_among_them() -> None:
    assert refusal("select * exclude (model, status) from answers", where="status is not null").message.endswith("model, status")


def test_any_other_mistake_stays_what_the_database_says() -> None:
    assert "lacks" not in refusal("select * from answers where nothing_like_it = 3").message
    assert "lacks" not in refusal("select * from answers", where="nothing_like_it = 3").message
