"""`with t.run(...) as run: run.log(...)`: evaluations from one's own loop."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.ingest.tables import run_rows, write_rows
from tracker.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from tracker.api import Tracker


def test_a_logged_run_is_stored_when_its_block_ends(each_store: Tracker) -> None:
    with each_store.run(model="Qwen2.5-VL-7B", benchmark="HRBench4K", input_size=448, run_id="mine", seed=3) as run:
        run.log(question_id=1, correct=True, p_gold=0.5, visual_tokens=0, prediction="A", domain="D1", category="single")
        run.log(question_id="2", score=0.25, option_scores=[-1.0, -2.0], options=["a", "b"], text="What?", gold="A")
        run.log(question_id="2", correct=False)
        run.log(question_id="3", score=math.nan)
        run.log(question_id="4", response="no answer found")
    assert run.report is not None
    assert (run.report.new, run.report.records) == (1, 5)
    found = each_store.sql(
        "select question_key, attempt, status, credit, counts, p_gold, visual_tokens, domain, n_options from answers order by 1, 2"
    ).fetchall()
    assert found == [
        ("1", 0, "scored", 1.0, True, 0.5, 0, "D1", None),
        ("2", 0, "scored", 0.25, False, None, None, None, 2),
        ("2", 1, "scored", 0.0, True, None, None, None, 2),
        ("3", 0, "unscored", None, False, None, None, None, None),
        ("4", 0, "unscored", None, False, None, None, None, None),
    ]
    assert each_store.sql("select option_scores, special from records order by question_id, attempt").fetchall()[1:4:2] == [
        ("[-1.0,-2.0]", None),
        (None, "nan"),
    ]
    facts = each_store.sql("select external_id, source_format, status, settings, started_at <= ended_at, current from runs").fetchall()
    assert facts == [("mine", "log", "finished", '{"seed":3}', True, True)]
    assert each_store.sql("select input_mode, input_size, n from cells").fetchall() == [(None, 448, 3)]


def test_an_error_in_the_block_stores_a_partial_run_and_goes_on(store: Tracker) -> None:

    def evaluate() -> None:
        with store.run(model="m", benchmark="b") as run:
            run.log(question_id="1", correct=True)
            run.log(question_id="2", score=1 / 0)

    with pytest.raises(ZeroDivisionError):
        evaluate()
    assert store.sql("select status, status_reason, n_records, current from runs").fetchall() == [
        ("partial", "ZeroDivisionError: division by zero", 1, False)
    ]


def test_the_same_run_id_replaces_and_another_adds(store: Tracker) -> None:
    for answers in (2, 3):
        with store.run(model="m", benchmark="b", run_id="r") as run:
            for number in range(answers):
                run.log(question_id=number, correct=True)
    assert store.sql("select n_records, version from runs").fetchall() == [(3, 2)]
    with store.run(model="m", benchmark="b") as run:
        run.log(question_id=0, correct=False)
    assert store.sql("select n_records, current from runs order by id").fetchall() == [(3, False), (1, True)]


def test_a_logged_question_joins_the_same_question_of_a_table(store: Tracker, tmp_path: Path) -> None:
    write_rows(tmp_path / "a.jsonl", [{**row, "text": f"T{row['question_id']}", "options": ["x", "y"]} for row in run_rows(n=2)])
    store.ingest(tmp_path / "a.jsonl")
    with store.run(model="m", benchmark="Bench") as run:
        run.log(question_id="z0", correct=True, text="Tq0", options=["y", "x"])
    assert store.sql("select count(distinct question_id) from answers").fetchall() == [(2,)]


def test_values_of_numpy_are_values(store: Tracker) -> None:
    with store.run(model="m", benchmark="b") as run:
        run.log(question_id=np.int64(1), correct=np.bool_(True), p_gold=np.float32(0.5), visual_tokens=np.int32(7))  # type: ignore[arg-type]
    assert store.sql("select question_key, correct, p_gold, visual_tokens from answers").fetchall() == [("1", True, 0.5, 7)]


def test_mistakes_are_said_when_they_are_made(store: Tracker) -> None:
    with (
        pytest.raises(UsageError, match=r"unknown field 'visual_token' .did you mean visual_tokens"),
        store.run(model="m", benchmark="b") as run,
    ):
        run.log(question_id="1", correct=True, visual_token=1)
    with pytest.raises(UsageError, match="neither correct nor score"), store.run(model="m", benchmark="b") as run:
        run.log(question_id="1")
    with pytest.raises(UsageError, match="input_size"):
        store.run(model="m", benchmark="b", input_size=-1)
    with pytest.raises(UsageError, match=r"unknown setting 'input_siz' .did you mean input_size"):
        store.run(model="m", benchmark="b", input_siz=448)
    assert store.run(model="m", benchmark="b", batch_size=8, temperature=0.2, prompt_id=3, image_size=448).run_id
    with pytest.raises(UsageError, match="wrong type"), store.run(model="m", benchmark="b") as run:
        run.log(question_id="1", correct=True, visual_tokens="many")


def test_a_mistake_costs_nothing_that_was_logged_before(store: Tracker) -> None:
    wrong: list[dict[str, Any]] = [
        {"correct": "perhaps"},
        {"correct": 0.5},
        {"correct": True, "p_gold": 2},
        {"correct": True, "visual_tokens": 2**70},
    ]
    with store.run(model="m", benchmark="b") as run:
        run.log(question_id="1", correct=1)  # type: ignore[arg-type]
        for fields in wrong:
            with pytest.raises(UsageError):
                run.log(question_id="2", **fields)
        run.log(question_id="3", correct=0.0)  # type: ignore[arg-type]
    assert store.sql("select question_key, correct from answers order by 1").fetchall() == [("1", True), ("3", False)]


def test_what_is_logged_after_the_run_is_refused(store: Tracker) -> None:
    with store.run(model="m", benchmark="b") as run:
        run.log(question_id="1", correct=True)
    with pytest.raises(UsageError, match="the run has ended"):
        run.log(question_id="2", correct=True)
    for names in ({"model": "", "benchmark": "b"}, {"model": "m", "benchmark": " "}):
        with pytest.raises(UsageError, match="expected a name"):
            store.run(**names)
