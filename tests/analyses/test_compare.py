"""The comparison of models from answers to tables: what names mean, what is common, and what cannot be compared."""

from __future__ import annotations

import json
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from analyses.compare import Parameters, run
from tests.analyses import compared
from tests.analyses.compared import answer, store
from tracker.errors import AnalysisError, UsageError

if TYPE_CHECKING:
    from analyses.result import Result


def compare(rows: list[dict[str, Any]], *sides: str, **options: Any) -> Result:
    aliases, texts = options.pop("aliases", None), options.pop("texts", None)
    return run(store(rows, aliases, texts), Parameters(sides=sides, **{"draws": 200} | options))


def pair(result: Result, place: int = 0) -> dict[str, Any]:
    return result.tables["pairs"].rows()[place]


@pytest.fixture
def rows() -> list[dict[str, Any]]:
    return compared.rows(0)


def test_pairs_equal_loops_over_the_answers(rows: list[dict[str, Any]]) -> None:
    result = compare(rows)
    scored = {model: compared.credits_of(rows, model) for model in ("M-0", "M-1", "M-2")}
    found = result.tables["pairs"].rows()
    assert [(row["a"], row["b"]) for row in found] == [("M-0", "M-1"), ("M-0", "M-2"), ("M-1", "M-2")]
    for row in found:
        a, b = compared.compared(scored[row["a"]], scored[row["b"]])
        assert row["questions"] == len(a)
        assert (row["accuracy_a"], row["accuracy_b"]) == pytest.approx((fmean(a.values()), fmean(b.values())))
        assert row["wins"] == sum(a[question] > b[question] + 1e-9 for question in a)
        assert row["losses"] == sum(a[question] < b[question] - 1e-9 for question in a)
        assert row["ties"] == row["questions"] - row["wins"] - row["losses"]
        assert row["difference"] == pytest.approx(row["accuracy_a"] - row["accuracy_b"])
        assert row["difference_low"] < row["difference"] < row["difference_high"]
        assert row["test"] == "t"


def test_common_to_all_is_less_than_common_to_a_pair(rows: list[dict[str, Any]]) -> None:
    scored = [compared.credits_of(rows, model) for model in ("M-0", "M-1", "M-2")]
    a, b = compared.compared(*scored[:2], among=scored[2:])
    row = pair(compare(rows, common="all"))
    assert (row["questions"], row["accuracy_a"], row["accuracy_b"]) == pytest.approx((len(a), fmean(a.values()), fmean(b.values())))
    assert row["accuracy_a"] != pair(compare(rows))["accuracy_a"]


def test_models_count_what_some_other_side_answered_too(rows: list[dict[str, Any]]) -> None:
    scored = [compared.credits_of(rows, model) for model in ("M-0", "M-1", "M-2")]
    row = compare(rows).tables["models"].rows()[0]
    own = {unit: credit for unit, credit in scored[0].items() if unit in scored[1] or unit in scored[2]}
    (mine,) = compared.compared(own)
    assert (row["side"], row["questions"], row["accuracy"]) == ("M-0", len(mine), pytest.approx(fmean(mine.values())))
    assert row["accuracy_low"] < row["accuracy"] < row["accuracy_high"]


def test_one_configuration_of_each_side_is_tested_exactly(rows: list[dict[str, Any]]) -> None:
    single = [row for row in rows if row["repetition"] == 0]
    result = compare(single, "M-0@input_size=224", "M-2@input_size=224")
    a = compared.credits_of([row for row in single if row["input_size"] == 224], "M-0")
    b = compared.credits_of([row for row in single if row["input_size"] == 224], "M-2")
    row = pair(result)
    assert row["test"] == "mcnemar"
    assert row["wins"] == sum(a[unit] > b[unit] for unit in a.keys() & b.keys())
    assert result.headline["settings"] == "input_mode=fixed, input_size=224"


def test_different_settings_of_one_model_can_be_compared(rows: list[dict[str, Any]]) -> None:
    result = compare(rows, "M-1@input_size=448", "M-1@input_size=224")
    a, b = (
        {question: credit for (size, question), credit in compared.credits_of(rows, "M-1").items() if size == wanted}
        for wanted in (448, 224)
    )
    assert pair(result)["difference"] == pytest.approx(fmean(a[q] - b[q] for q in a.keys() & b.keys()))
    assert any("input_size differs" in warning for warning in result.warnings)


def test_a_model_beside_one_configuration_is_compared_at_its_settings(rows: list[dict[str, Any]]) -> None:
    assert pair(compare(rows, "M-0@input_size=448", "M-1")) == pair(compare(rows, "M-0@input_size=448", "M-1@input_size=448")) | {
        "b": "M-1"
    }


def test_settings_that_no_side_varies_need_not_agree(rows: list[dict[str, Any]]) -> None:
    tiled = [row | {"max_tiles": 12 if row["model"] == "M-0" else None} for row in rows]
    result = compare(tiled, "M-0", "M-1")
    assert pair(result) == pair(compare(rows, "M-0", "M-1"))
    assert [warning for warning in result.warnings if "max_tiles" in warning] == ["max_tiles differs between sides: 12 (M-0), null (M-1)"]
    varied = [row | {"max_tiles": row["input_size"] // 112 if row["model"] == "M-0" else None} for row in rows]
    with pytest.raises(AnalysisError, match="no question has a score of two sides"):
        compare(varied, "M-0", "M-1")


def test_aliases_and_other_case_mean_the_model(rows: list[dict[str, Any]]) -> None:
    result = compare(rows, "org/m-zero", "m-1", aliases={"org/m-zero": "M-0"})
    assert (result.headline["a"], result.headline["b"]) == ("M-0", "M-1")


def test_a_value_with_a_comma_belongs_to_its_setting() -> None:
    rows = [
        answer("M", question, float(question % 2 == place), configuration_id=place + 1, variant=variant, input_size=224)
        for place, variant in enumerate(("a,b", "c"))
        for question in range(10)
    ]
    result = compare(rows, "M@variant=a,b,input_size=224", "M@variant=c")
    assert [row["side"] for row in result.tables["models"].rows()] == ["M@variant=a,b,input_size=224", "M@variant=c"]
    assert pair(result)["difference"] == 0


def test_null_is_a_value_of_a_setting() -> None:
    rows = [
        answer("M", question, float(place), configuration_id=place + 1, variant=(None, "v")[place])
        for place in (0, 1)
        for question in range(9)
    ]
    assert pair(compare(rows, "M@variant=v", "M@variant=null"))["difference"] == 1


def test_a_run_is_a_side_whether_it_counts_or_not(rows: list[dict[str, Any]]) -> None:
    old = [
        row | {"run_id": 999, "counts": False, "credit": 0.0} for row in rows if row["configuration_id"] == 1 and row["benchmark"] == "One"
    ]
    rows = [row | {"counts": True} for row in rows]
    result = compare([*rows, *old], "run:999", "run:11")
    new = [row for row in rows if row["run_id"] == 11]
    assert pair(result)["accuracy_a"] == 0
    assert pair(result)["accuracy_b"] == pytest.approx(fmean(compared.credits_of(new, "M-0").values()))
    assert pair(compare([*rows, *old], "M-0", "M-1")) == pair(compare(rows, "M-0", "M-1"))


def test_the_last_scored_attempt_counts() -> None:
    rows = [answer("A", q, 1.0, configuration_id=1, run_id=7, attempt=attempt, counts=False) for q in range(5) for attempt in (0, 1)]
    rows = [row | {"credit": 0.0 if row["attempt"] else 1.0} for row in rows]
    rows += [answer("B", q, 1.0, configuration_id=2, run_id=8) for q in range(5)]
    assert pair(compare(rows, "run:7", "run:8"))["accuracy_a"] == 0


def test_flips_list_every_question_that_differs() -> None:
    said = {"A": "AABBA", "B": "BAABA"}
    rows = [
        answer(model, q, float(said[model][q] == "A"), configuration_id=place + 1, prediction=said[model][q] if q != 2 else None)
        for place, model in enumerate("AB")
        for q in range(5)
    ]
    result = compare(rows, "A", "B", texts={100: "What  is\nit? " + "x" * 200})
    found = result.tables["flips"].rows()
    assert [(row["right"], row["benchmark"], row["question_key"]) for row in found] == [("A", "Two", "q000"), ("B", "Two", "q002")]
    assert (found[0]["answers_a"], found[0]["answers_b"], found[0]["gold"]) == ("A", "B", "A")
    assert found[0]["text"].startswith("What is it? xxx")
    assert len(found[0]["text"]) == 80
    assert (found[1]["answers_a"], found[1]["credit_b"]) == ("-", 1)
    turned = compare(rows, "B", "A").tables["flips"].rows()
    assert [row["right"] for row in turned] == ["B", "A"]


def test_flips_agree_with_wins_and_losses_and_show_common_settings_only(rows: list[dict[str, Any]]) -> None:
    result = compare(rows, pair=(3, 1))
    flips, row = result.tables["flips"].rows(), pair(result, 1)
    assert (sum(flip["right"] == "M-2" for flip in flips), sum(flip["right"] == "M-0" for flip in flips)) == (row["losses"], row["wins"])
    scored = [compared.credits_of(rows, model) for model in ("M-2", "M-0")]
    ids = {row["question_key"]: row["question_id"] for row in rows}
    for flip in flips:
        units = {unit for unit in set(scored[0]) & set(scored[1]) if unit[1] == ids[flip["question_key"]]}
        assert flip["credit_a"] == pytest.approx(fmean(scored[0][unit] for unit in units))
        said = [
            row["prediction"]
            for row in sorted(rows, key=lambda row: (row["input_size"], row["repetition"]))
            if row["model"] == "M-2" and (row["input_size"], row["question_id"]) in units
        ]
        assert flip["answers_a"] == " ".join(said)


def test_by_is_the_comparison_of_the_questions_with_a_label(rows: list[dict[str, Any]]) -> None:
    found = [row for row in compare(rows, by=("task", "benchmark")).tables["by"].rows() if row["a"] == "M-0" and row["b"] == "M-1"]
    assert [(row["by"], row["value"]) for row in found] == [
        ("task", "perception"),
        ("task", "reasoning"),
        ("benchmark", "One"),
        ("benchmark", "Two"),
    ]
    for row in found:
        alone = pair(compare([each for each in rows if each[row["by"]] == row["value"]], draws=0))
        same = ("questions", "accuracy_a", "accuracy_b", "wins", "losses", "ties", "p")
        assert [row[name] for name in same] == pytest.approx([alone[name] for name in same])
        assert row["difference_low"] < row["difference"] < row["difference_high"]


def test_questions_of_one_image_are_resampled_together_and_warned_of() -> None:
    rows = compared.rows(3, models=2, questions=200, sizes=(224,), per_image=4, missing=0)
    for row in rows:
        row["credit"] = float(
            np.random.default_rng([5, int(row["image_key"][1:]), len(row["model"]) * int(row["model"][2:])]).random() < 0.5
        )
    result, apart = compare(rows), compare([row | {"image_key": None} for row in rows])
    assert pair(result)["clusters"] == 100  # an image_key counts within its benchmark
    assert pair(result)["difference_high"] - pair(result)["difference_low"] > pair(apart)["difference_high"] - pair(apart)["difference_low"]
    assert any("share images" in warning for warning in result.warnings)
    robust = compare(rows, test="cluster")
    assert (pair(robust)["test"], robust.warnings) == ("cluster", ())
    assert pair(robust)["p"] > pair(result)["p"]


def test_pairs_with_the_first_side_are_a_smaller_family(rows: list[dict[str, Any]]) -> None:
    every, first = compare(rows), compare(rows, pairs="first")
    assert [(row["a"], row["b"]) for row in first.tables["pairs"].rows()] == [("M-0", "M-1"), ("M-0", "M-2")]
    for place in (0, 1):
        assert pair(first, place)["p"] == pair(every, place)["p"]
        assert pair(first, place)["p_holm"] <= pair(every, place)["p_holm"]


def test_models_count_decided_pairs() -> None:
    rows = [
        answer(model, q, float(q % 10 < 2 + 3 * place), configuration_id=place + 1, input_size=224)
        for place, model in enumerate("ABC")
        for q in range(100)
    ]
    result = compare(rows)
    assert [(row["better_than"], row["worse_than"]) for row in result.tables["models"].rows()] == [(0, 2), (1, 1), (2, 0)]
    assert (result.headline["best"], result.headline["decided_pairs"]) == ("C", 3)


# ---- what cannot be compared -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sides", "message"),
    [
        (("M-0", "M-9"), "no model called 'M-9'"),
        (("M-0", "M-9@input_size=224"), "no model called 'M-9'"),
        (("M-0", "M-1@input_size=3"), "no configuration with input_size=3"),
        (("M-0", "M-1@size=3"), "expected SETTING=VALUE"),
        (("M-0", "run:12345"), "there is no run:12345"),
        (("M-0", "run:x"), "there is no run:x"),
        (("M-0",), "a comparison needs two"),
        (("M-0", "m-0"), "M-0 is named twice"),
    ],
)
def test_a_name_that_means_nothing_is_said_with_what_there_is(rows: list[dict[str, Any]], sides: tuple[str, ...], message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        compare(rows, *sides)
    assert caught.value.hint


@pytest.mark.parametrize("places", [(1, 1), (0, 1), (1, 4)])
def test_the_pair_of_flips_is_among_the_sides(rows: list[dict[str, Any]], places: tuple[int, int]) -> None:
    with pytest.raises(UsageError, match="places from 1 to 3"):
        compare(rows, pair=places)


def test_no_common_question_is_an_error_that_says_what_each_side_has(rows: list[dict[str, Any]]) -> None:
    apart = [row for row in rows if (row["model"] == "M-0") == (row["benchmark"] == "One")]
    with pytest.raises(AnalysisError, match="no question has a score of two sides") as caught:
        compare(apart, "M-0", "M-1")
    assert "M-0 has 29 questions" in (caught.value.hint or "")
    with pytest.raises(AnalysisError, match="of all sides"):
        compare(apart, common="all")
    result = compare(apart)
    assert [(row["a"], row["b"]) for row in result.tables["pairs"].rows()] == [("M-1", "M-2")]
    assert pair(result)["p_holm"] == pair(result)["p"]
    assert any("2 of 3 pairs have no common question and no row: M-0 and M-1; M-0 and M-2" in warning for warning in result.warnings)
    assert any("nothing in common with any other side: M-0" in warning for warning in result.warnings)


def test_an_empty_cohort_is_an_error(rows: list[dict[str, Any]]) -> None:
    with pytest.raises(AnalysisError, match="no scored answer"):
        compare(rows, where="benchmark = 'Three'")
    with pytest.raises(AnalysisError, match="no scored answer"):
        compare([row | {"credit": None} for row in rows])


def test_where_narrows_the_questions(rows: list[dict[str, Any]]) -> None:
    assert pair(compare(rows, where="task = 'reasoning'")) == pair(compare([row for row in rows if row["task"] == "reasoning"]))


def test_mcnemar_falls_back_where_credit_is_partial_and_says_so() -> None:
    result = compare(compared.rows(4, partial=True), test="mcnemar")
    assert pair(result)["test"] == "t"
    assert any("exact McNemar needs credits of 0 or 1" in warning for warning in result.warnings)


def test_two_names_of_the_same_configurations_are_said(rows: list[dict[str, Any]]) -> None:
    one = [row for row in rows if row["input_size"] == 224]
    result = compare(one, "M-0", "M-0@input_size=224")
    assert pair(result)["difference"] == 0
    assert pair(result)["p"] == 1
    assert "M-0 and M-0@input_size=224 are the same configurations" in result.warnings


def test_answers_without_labels_images_or_options_are_compared() -> None:
    bare = ("task", "image_key", "suite", "gold", "prediction")
    rows = [{name: value for name, value in row.items() if name not in bare} for row in compared.rows(6, models=2)]
    result = compare(rows)
    assert [row["value"] for row in result.tables["by"].rows()] == [None, None]
    assert set(result.tables["flips"].data["answers_a"]) <= {"-", "- -", "- - -", "- - - -"}
    json.dumps(result.envelope(), allow_nan=False)


@pytest.mark.parametrize("sides", [(), ("M-0", "M-1")])
def test_charts_draw(rows: list[dict[str, Any]], sides: tuple[str, ...]) -> None:
    result = compare(rows, *sides)
    for name in result.charts:
        assert result.charts[name].to_dict()["layer"]


def test_the_chart_of_many_pairs_shows_those_with_the_best_side() -> None:
    result = compare(compared.rows(8, models=12, questions=30, sizes=(224,), missing=0))
    models = result.tables["models"].rows()
    leader = max(models, key=lambda row: (row["better_than"] - row["worse_than"], row["accuracy"]))["side"]
    lines = result.charts["forest"].to_dict()["layer"][1]["data"]["values"]
    assert result.headline["best"] == max(models, key=lambda row: row["accuracy"])["side"]
    assert len(lines) == 11
    assert all(leader in line["name"] or leader in result.charts["forest"].to_dict()["layer"][1]["title"]["text"][0] for line in lines)
    assert all(line["low"] <= line["points"] <= line["high"] and line["points"] >= 0 for line in lines)


# ---- what must not change a number -------------------------------------------------------------------


def test_ids_row_order_and_threads_do_not_matter(rows: list[dict[str, Any]]) -> None:
    def numbers(result: Result) -> str:
        envelope = result.envelope()
        for row in envelope["tables"]["flip_answers"]:
            del row["run_id"]
        return json.dumps({name: envelope[name] for name in ("headline", "tables", "warnings")} | {"digest": result.cohort.digest})

    shuffled = [rows[place] for place in np.random.default_rng(0).permutation(len(rows))]
    renamed = [
        row
        | {"question_id": 9_999 - row["question_id"], "configuration_id": 900 - row["configuration_id"], "run_id": 5_000 - row["run_id"]}
        for row in shuffled
    ]
    assert numbers(compare(renamed)) == numbers(compare(rows))
    assert numbers(compare(rows, workers=1)) == numbers(compare(rows, workers=4))


def test_the_order_of_names_swaps_signs(rows: list[dict[str, Any]]) -> None:
    one, other = pair(compare(rows, "M-0", "M-2")), pair(compare(rows, "M-2", "M-0"))
    assert one["difference"] == -other["difference"]
    assert (one["difference_low"], one["difference_high"]) == pytest.approx((-other["difference_high"], -other["difference_low"]))
    assert (one["wins"], one["losses"], one["p"]) == (other["losses"], other["wins"], other["p"])
