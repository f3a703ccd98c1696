"""Agreement of text and logit predictions, token limits and parser failures: every number by loops over the records."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from statsmodels.stats.proportion import proportion_confint

from analyses.agreement import Parameters, run
from tests.analyses import compared
from tests.analyses.known import known
from tracker.errors import AnalysisError

if TYPE_CHECKING:
    from collections.abc import Callable

    from analyses.result import Result

Row = dict[str, Any]


def agreement(rows: list[Row], **options: Any) -> Result:
    planted = compared.store(rows)
    columns = [
        "run_id",
        "question_id",
        "repetition",
        "attempt",
        "prediction",
        "logit_prediction",
        "option_scores",
        "generated_tokens",
        "response",
    ]
    frame = pd.DataFrame(rows).reindex(columns=columns).astype(object)
    planted.connection.register("given", frame.where(frame.notna(), None))
    planted.connection.execute("""create or replace table records as select run_id::bigint as run_id, question_id::bigint as question_id,
        repetition::integer as repetition, attempt::integer as attempt, prediction::varchar as prediction,
        logit_prediction::varchar as logit_prediction, option_scores::varchar as option_scores,
        generated_tokens::bigint as generated_tokens, response::varchar as response from given""")
    return run(planted, Parameters(**options))


def records(seed: int, *, gaps: bool = True) -> list[Row]:
    """Records of two models at two sizes on two benchmarks: failures, blanks, other spellings, hits of the limit."""
    rng = np.random.default_rng(seed)
    found = []
    for configuration in range(1, 5):
        for question in range(60):
            text, logit = rng.choice(list("ABCD"), 2)
            logit = text if rng.random() < 0.8 else logit
            row = compared.answer(f"M-{configuration % 2}", question, float(text == "A"), configuration_id=configuration, repetition=0)
            row |= {"input_size": 100 * configuration, "parameters": configuration, "max_new_tokens": 48 if configuration < 4 else 32}
            row |= {"attempt": 0, "response": f"The answer is {text}.", "prediction": text, "logit_prediction": logit, "status": "scored"}
            row |= {"generated_tokens": int(rng.choice([5, 31, 32, 47, 48]))}
            found.append(_damaged(rng, row) if gaps else row)
    return found


def _damaged(rng: np.random.Generator, row: Row) -> Row:
    kind = rng.choice(8, p=[0.4, 0.1, 0.1, 0.1, 0.1, 0.1, 0.05, 0.05])
    nothing = {"credit": None, "correct": None, "prediction": None}
    return (
        row
        | (
            {},
            nothing | {"status": "failed", "response": None, "logit_prediction": None, "generated_tokens": None},
            nothing | {"status": "unscored", "response": "I cannot say"},
            {"prediction": " ", "credit": 0.0, "response": " ", "generated_tokens": 0},
            {"logit_prediction": None},
            {"prediction": f" {row['prediction'].lower()}", "logit_prediction": row["prediction"]},
            nothing | {"prediction": "", "credit": 0.0, "generated_tokens": None},
            {"gold": None},
        )[kind]
    )


def counted(rows: list[Row]) -> Row:
    """The counts by plain loops."""

    def text(row: Row, name: str) -> str:
        return (row[name] or "").strip().upper()

    scored = [row for row in rows if row["credit"] is not None]
    silent = [row for row in scored if row.get("option_scores") and not text(row, "response") and not row["generated_tokens"]]
    single = {id(row) for row in silent if row["prediction"] is not None and row["logit_prediction"] is not None}
    both = [row for row in scored if text(row, "prediction") and text(row, "logit_prediction") and id(row) not in single]
    judged = [row for row in both if text(row, "gold")]
    limited = [row for row in rows if row["generated_tokens"] is not None and row["max_new_tokens"] is not None]
    at_limit = [row for row in limited if row["generated_tokens"] >= row["max_new_tokens"]]
    bare = [row for row in rows if not text(row, "prediction") and (text(row, "response") or (row["generated_tokens"] or 0) > 0)]
    right = {id(row): text(row, "logit_prediction") == text(row, "gold") for row in judged}
    return {
        "records": len(rows),
        "scored": len(scored),
        "unscored": sum(row["credit"] is None and row["status"] != "failed" for row in rows),
        "failed": sum(row["credit"] is None and row["status"] == "failed" for row in rows),
        "accuracy": sum(row["credit"] for row in scored) / len(scored),
        "one_signal": len(single),
        "both_signals": len(both),
        "agree": sum(text(row, "prediction") == text(row, "logit_prediction") for row in both),
        "agreement": sum(text(row, "prediction") == text(row, "logit_prediction") for row in both) / len(both),
        "judged": len(judged),
        "accuracy_text": sum(row["credit"] for row in judged) / len(judged),
        "accuracy_logit": sum(right.values()) / len(judged),
        "only_text_right": sum(row["credit"] == 1 and not right[id(row)] for row in judged),
        "only_logit_right": sum(row["credit"] == 0 and right[id(row)] for row in judged),
        "without_option": len(bare),
        "at_limit": len(at_limit),
        "at_limit_share": len(at_limit) / len(limited),
        "at_limit_without_option": sum(not text(row, "prediction") for row in at_limit),
    }


@pytest.mark.parametrize("gaps", [True, False])
def test_counts_equal_loops_over_the_records(gaps: bool) -> None:
    rows = records(1, gaps=gaps)
    result = agreement(rows, by=("benchmark", "task"))

    def settings(row: Row) -> str:
        """M-0 has two sizes and two limits, M-1 two sizes."""
        return f"input_size={row['input_size']}" + (f",max_new_tokens={row['max_new_tokens']}" if row["model"] == "M-0" else "")

    chosen: dict[str, Callable[[Row], tuple[Any, ...]]] = {
        "configurations": lambda row: (row["model"], settings(row)),
        "runs": lambda row: (row["model"], settings(row), row["benchmark"]),
    }
    for name, key in chosen.items():
        found = {tuple(list(row.values())[: 2 + (name == "runs")]): row for row in result.tables[name].rows()}
        assert set(found) == {key(row) for row in rows}
        for identity, row in found.items():
            expected = counted([each for each in rows if key(each) == identity])
            assert {column: row[column] for column in expected} == pytest.approx(expected)
    for row in result.tables["pooled"].rows():
        expected = counted([each for each in rows if row["by"] == "all" or each[row["by"]] == row["value"]])
        assert {column: row[column] for column in expected} == pytest.approx(expected)
    whole = counted(rows)
    assert {name: result.headline[name] for name in result.headline if name in whole} == pytest.approx(
        {name: whole[name] for name in result.headline if name in whole}
    )
    assert result.headline["runs"] == 8
    assert result.cohort.rows == len(rows)


def test_records_ranked_by_option_scores_are_no_second_signal() -> None:
    """Where nothing was generated the prediction is the option of the best score; text or tokens make it a signal of its own."""
    scores = {"option_scores": "[-1.0, -2.0]"}
    kinds = (
        scores | {"response": None, "generated_tokens": None},
        scores | {"response": " ", "generated_tokens": 0},
        scores | {"response": None, "generated_tokens": 3},
        scores,
        {"response": None, "generated_tokens": None},
    )
    rows = [row | kinds[place % 5] for place, row in enumerate(records(10, gaps=False))]
    result = agreement(rows, by=("benchmark",))
    expected = counted(rows)
    assert expected["one_signal"] == 96
    for name in expected:
        assert result.tables["pooled"].rows()[0][name] == pytest.approx(expected[name])
    assert result.headline["one_signal"] == 96
    assert any(warning.startswith("96 of 240 scored records hold option scores and no generated text") for warning in result.warnings)


def test_runs_of_likelihoods_alone_have_no_agreement() -> None:
    ranked = {"option_scores": "[-1.0, -2.0]", "response": None, "generated_tokens": None}
    result = agreement([row | ranked | {"prediction": row["logit_prediction"]} for row in records(11, gaps=False)])
    assert (result.headline["both_signals"], result.headline["agreement"], result.headline["accuracy_logit"]) == (0, None, None)
    assert not any("no scored record has logit predictions" in warning for warning in result.warnings)
    for name in result.charts:
        result.charts[name].to_dict()


def test_the_chart_pools_the_configurations_of_a_model_on_a_benchmark() -> None:
    rows = records(12)
    layers = agreement(rows).charts["models"].to_dict()["layer"]
    ticks, dots = (layers[place]["data"]["values"] for place in (0, 2))
    assert len(ticks) == 8
    for dot in dots:
        expected = counted([row for row in rows if (row["model"], row["benchmark"]) == (dot["model"], dot["lane"])])
        interval = proportion_confint(expected["agree"], expected["both_signals"], method="wilson")
        assert (dot["agreement"], dot["low"], dot["high"]) == pytest.approx((expected["agreement"], *interval))
    assert len(dots) == 4
    many = [row | {"benchmark": f"B{row['question_id'] % 20:02d}"} for row in records(13)]
    lanes = {dot["lane"] for dot in agreement(many).charts["models"].to_dict()["layer"][2]["data"]["values"]}
    assert len(lanes) == 8
    assert "others" in lanes


def test_limits_are_counted_one_by_one() -> None:
    rows = records(2)
    found = agreement(rows).tables["limits"].rows()
    assert [row["max_new_tokens"] for row in found] == [32, 48]
    for row in found:
        members = [each for each in rows if each["max_new_tokens"] == row["max_new_tokens"]]
        expected = counted(members)
        assert row["at_limit"] == expected["at_limit"]
        assert row["at_limit_without_option"] == expected["at_limit_without_option"]
        assert row["generations"] == sum(each["generated_tokens"] is not None for each in members)
        assert row["runs"] == (2 if row["max_new_tokens"] == 32 else 6)


def test_the_interval_of_agreement_is_wilsons() -> None:
    row = agreement(records(3)).tables["pooled"].rows()[0]
    expected = proportion_confint(row["agree"], row["both_signals"], method="wilson")
    assert (row["agreement_low"], row["agreement_high"]) == pytest.approx(expected)


def test_the_papers_counts_give_the_papers_share() -> None:
    """518,644 of 536,781 records agree: 96.6% (A.5)."""
    scored, both, share = known("records")[0].recomputed.split()
    rows = [
        compared.answer("M", 2 * place, 1.0, configuration_id=1, repetition=0, run_id=1)
        | {"attempt": 0, "prediction": "A", "logit_prediction": logit, "response": "A", "max_new_tokens": 48, "generated_tokens": 48}
        for place, logit in enumerate(["A"] * 9662 + ["B"] * 338)
    ]
    assert 518_644 / int(both) == pytest.approx(float(share.rstrip("%")) / 100, abs=5e-5)
    assert int(scored) > int(both)
    assert agreement(rows).headline["agreement"] == pytest.approx(518_644 / int(both), abs=5e-5)


def test_reference_answers_in_other_words_judge_nothing() -> None:
    rows = [row | ({"gold": "a red car"} if row["benchmark"] == "One" else {}) for row in records(4, gaps=False)]
    result = agreement(rows, by=("benchmark",))
    found = {row["value"]: row for row in result.tables["pooled"].rows()}
    assert (found["One"]["judged"], found["One"]["accuracy_logit"], found["One"]["only_text_right"]) == (0, None, None)
    assert found["Two"]["accuracy_logit"] == found["all"]["accuracy_logit"] is not None
    assert found["One"]["agreement"] is not None
    assert any("not spelled as the reference answers on One" in warning for warning in result.warnings)


@pytest.mark.parametrize(
    ("missing", "message", "empty"),
    [
        ({"logit_prediction": None}, "no scored record has logit predictions", ("agree", "agreement", "accuracy_logit")),
        ({"prediction": None}, "no scored record has text predictions", ("agree", "agreement", "accuracy_text")),
        ({"gold": None}, "accuracy by signal is empty", ("accuracy_text", "accuracy_logit")),
        ({"generated_tokens": None}, "no record has generated_tokens", ("at_limit", "at_limit_share", "at_limit_without_option")),
        ({"max_new_tokens": None}, "no configuration states max_new_tokens", ("at_limit", "at_limit_share")),
    ],
)
def test_what_is_not_recorded_stays_empty_and_is_said(missing: Row, message: str, empty: tuple[str, ...]) -> None:
    result = agreement([row | missing for row in records(5)])
    assert any(message in warning for warning in result.warnings)
    for name in empty:
        assert result.headline[name] is None
    json.dumps(result.envelope(), allow_nan=False)
    for name in result.charts:
        result.charts[name].to_dict()


def test_a_limit_that_some_configurations_do_not_state_is_said() -> None:
    rows = [row | ({"max_new_tokens": None} if row["configuration_id"] == 1 else {}) for row in records(6)]
    result = agreement(rows)
    assert result.tables["limits"].data["max_new_tokens"] == [32, 48, None]
    assert result.tables["limits"].data["at_limit"][-1] is None
    assert any("max_new_tokens is not known for" in warning for warning in result.warnings)
    assert result.headline["at_limit"] == counted(rows)["at_limit"]


def test_runs_that_are_not_current_do_not_count() -> None:
    rows = records(7)
    old = [row | {"run_id": 7_777, "current": False} for row in rows if row["configuration_id"] == 1]
    assert agreement([*(row | {"current": True} for row in rows), *old]).headline == agreement(rows).headline


def test_where_narrows_the_records_and_an_empty_cohort_is_an_error() -> None:
    rows = records(8)
    assert agreement(rows, where="benchmark = 'One'").headline["records"] == sum(row["benchmark"] == "One" for row in rows)
    with pytest.raises(AnalysisError, match="no record in the cohort"):
        agreement(rows, where="false")


def test_ids_and_row_order_do_not_matter() -> None:
    def numbers(result: Result) -> str:
        envelope = result.envelope()
        return json.dumps({name: envelope[name] for name in ("headline", "tables", "warnings")} | {"digest": result.cohort.digest})

    rows = records(9)
    renamed = [
        row
        | {"question_id": 9_999 - row["question_id"], "configuration_id": 900 - row["configuration_id"], "run_id": 5_000 - row["run_id"]}
        for row in reversed(rows)
    ]
    assert numbers(agreement(renamed)) == numbers(agreement(rows))
