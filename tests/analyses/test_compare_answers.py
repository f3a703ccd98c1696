"""What a comparison says of its answers: what is left out, which flips and which runs are behind them, what the charts mark."""

from __future__ import annotations

import json
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.analyses import compared
from tests.analyses.compared import answer
from tests.analyses.test_compare import compare, pair
from tracker.errors import UsageError

if TYPE_CHECKING:
    from analyses.result import Result

Row = dict[str, Any]


def variants(model: str, names: str, first: int, questions: int = 20) -> list[Row]:
    """One configuration per variant, each right on another share of the questions."""
    return [
        answer(model, q, float((q + place) % (3 + first % 2) > 0), configuration_id=first + place, variant=name)
        for place, name in enumerate(names)
        for q in range(questions)
    ]


# ---- what takes part ----------------------------------------------------------------------------------


def test_configurations_that_no_other_side_matches_are_counted_and_named() -> None:
    rows = [*variants("A", "stuvwxyz", 10), *variants("B", "ijkz", 30)]
    result = compare(rows, "A", "B")
    assert [(row["configurations"], row["configurations_used"]) for row in result.tables["models"].rows()] == [(8, 1), (4, 1)]
    (first,) = [warning for warning in result.warnings if "configurations of A " in warning]
    assert first.startswith("only 1 of 8 configurations of A enter (variant=z)")
    assert "(variant=s; variant=t; variant=u; variant=v; variant=w and 2 more)" in first
    assert "A@variant=... chooses one" in first
    assert any(warning.startswith("only 1 of 4 configurations of B enter (variant=z)") for warning in result.warnings)
    assert not any("enter" in warning for warning in compare(rows, "A@variant=z", "B@variant=z").warnings)


@pytest.mark.parametrize(("options", "expected"), [({}, [2, 3, 2]), ({"common": "all"}, [1, 1, 1]), ({"pairs": "first"}, [2, 2, 2])])
def test_configurations_used_depend_on_what_is_compared(options: Row, expected: list[int]) -> None:
    """A has x, y; B has x, y, z; C has y, z: only y is everyone's, and z is not the first side's."""
    rows = [*variants("A", "xy", 10), *variants("B", "xyz", 20), *variants("C", "yz", 30)]
    if options == {"pairs": "first"}:
        expected = [2, 2, 1]
    found = compare(rows, "A", "B", "C", **options).tables["models"].data["configurations_used"]
    assert found == expected


def test_many_sides_of_few_configurations_are_said_in_a_few_warnings() -> None:
    rows = [row for place in range(8) for row in variants(f"M-{place}", f"z{place}", 10 * place + 10, questions=8)]
    warnings = [warning for warning in compare(rows).warnings if "enter" in warning]
    assert len(warnings) == 6
    assert warnings[-1].startswith("3 more sides")


def test_every_configuration_of_a_model_can_be_a_side() -> None:
    rows = [*variants("A", "xyz", 10), *variants("B", "x", 20)]
    result = compare(rows, "a@*", "B@*", aliases={"org/a": "A"})
    assert result.tables["models"].data["side"] == ["A@variant=x", "A@variant=y", "A@variant=z", "B"]
    named = compare(rows, "A@variant=x", "A@variant=y", "A@variant=z", "B")
    assert result.tables["pairs"].rows() == named.tables["pairs"].rows()
    with pytest.raises(UsageError, match="no model called 'C@"):
        compare(rows, "C@*", "B")
    with pytest.raises(UsageError, match="only B is here"):
        compare(rows, "B@*")


def test_configurations_that_differ_in_no_setting_stay_one_side() -> None:
    rows = [*variants("A", "xy", 10), *variants("A", "xy", 20)]
    result = compare(rows, "A@*")
    assert [(row["side"], row["configurations"]) for row in result.tables["models"].rows()] == [("A@variant=x", 2), ("A@variant=y", 2)]


def test_the_headline_holds_the_settings_that_do_not_vary() -> None:
    rows = compared.rows(1, models=2)
    many = [row | {"max_tiles": 12 if row["model"] == "M-0" else None, "variant": "Look at it. " * 9} for row in rows]
    headline = compare(many).headline
    assert headline["settings"] == "input_size=224; input_size=448"
    assert headline["settings_fixed"] == "input_mode=fixed, max_tiles=12 | null, variant=Look at it. Look at it. Look at it. L..."
    bare = [row | {"input_mode": None, "input_size": None} for row in rows if row["input_size"] == 224]
    assert compare(bare).headline["settings"] == "none recorded"


def test_best_needs_the_same_questions_of_all_sides() -> None:
    rows = compared.rows(2, missing=0)
    best = max(("M-0", "M-1", "M-2"), key=lambda model: fmean(compared.credits_of(rows, model).values()))
    assert compare(rows).headline["best"] == best
    gap = compare(rows[1:])
    assert (gap.headline["best"], gap.headline["best_accuracy"]) == (None, None)
    assert any("best is empty: the sides stand on different questions" in warning for warning in gap.warnings)
    strict = compare(rows[1:], common="all")
    assert strict.headline["best"] is not None
    assert not any("best is empty" in warning for warning in strict.warnings)


def test_the_digest_is_of_the_cohort_and_not_of_the_names() -> None:
    rows = compared.rows(3)
    digests = [compare(rows, *sides).cohort.digest for sides in ((), ("M-0", "M-1"), ("M-2@input_size=224", "M-0@input_size=448"))]
    assert len(set(digests)) == 1
    for change in ({"credit": 0.5}, {"task": "other"}, {"question_key": "other"}):
        assert compare([rows[0] | change, *rows[1:]]).cohort.digest != digests[0]
    assert compare(rows, where="benchmark = 'One'").cohort.digest != digests[0]


# ---- flips --------------------------------------------------------------------------------------------


def test_wins_and_losses_alternate_with_larger_differences_first() -> None:
    credits_ = {"A": [1, 1, 1, 0, 0.5, 1, 0.9], "B": [0, 0.2, 0.9, 1, 1, 1, 0]}
    rows = [
        answer(model, q, credit, configuration_id=place + 1) for place, model in enumerate("AB") for q, credit in enumerate(credits_[model])
    ]
    found = compare(rows, "A", "B").tables["flips"].rows()
    assert [(row["right"], row["question_key"]) for row in found] == [
        ("A", "q000"),
        ("B", "q003"),
        ("A", "q006"),
        ("B", "q004"),
        ("A", "q001"),
        ("A", "q002"),
    ]
    large = compare(rows, "A", "B", min_difference=0.5)
    assert [row["question_key"] for row in large.tables["flips"].rows()] == ["q000", "q003", "q006", "q004", "q001"]
    assert pair(large)["wins"] == 4


def test_answers_behind_flips_equal_loops_over_the_answers() -> None:
    rows = compared.rows(5, models=2, missing=0.15)
    late = [row | {"attempt": 1, "credit": 1.0 - row["credit"], "prediction": "Z"} for row in rows[:20]]
    other = [row | {"run_id": 999, "counts": False, "prediction": "old"} for row in rows if row["configuration_id"] == 1]
    rows = [row | {"attempt": 0, "counts": place >= 20} for place, row in enumerate(rows)]
    given = [*rows, *(row | {"counts": True} for row in late), *other]
    result = compare(given, "M-0", "M-1")
    counting = [row for row in given if row["counts"]]
    units = [{(row["input_size"], row["question_id"]) for row in counting if row["model"] == model} for model in ("M-0", "M-1")]
    flips = {(row["benchmark"], row["question_key"]) for row in result.tables["flips"].rows()}
    told = ("benchmark", "question_key", "model", "input_size", "repetition", "run_id", "prediction", "credit")
    expected = {
        tuple(f"input_size={row[name]}" if name == "input_size" else row[name] for name in told)
        for row in counting
        if (row["benchmark"], row["question_key"]) in flips and (row["input_size"], row["question_id"]) in units[0] & units[1]
    }
    found = [tuple(row.values()) for row in result.tables["flip_answers"].rows()]
    assert len(found) == len(set(found))
    assert set(found) == expected
    assert [row[:2] for row in found] == sorted((row[:2] for row in found), key=_places(result))
    for row in result.tables["flips"].rows():
        own = [one for one in found if one[:2] == (row["benchmark"], row["question_key"])]
        assert row["settings"] == len({one[3] for one in own})


def _places(result: Result) -> Any:
    order = [(row["benchmark"], row["question_key"]) for row in result.tables["flips"].rows()]
    return order.index


def test_a_run_as_a_side_shows_its_own_answers() -> None:
    rows = [answer("A", q, 1.0, configuration_id=1, run_id=7, counts=True) for q in range(6)]
    rows += [answer("A", q, 0.0, configuration_id=1, run_id=8, counts=False) for q in range(6)]
    found = compare(rows, "A", "run:8").tables["flip_answers"].rows()
    assert {(row["side"], row["run_id"], row["prediction"], row["settings"]) for row in found} == {
        ("A", 7, "A", None),
        ("run:8", 8, "B", None),
    }


def test_the_four_counts_of_two_sides_add_up() -> None:
    rows = compared.rows(6, models=2, sizes=(224,), missing=0)
    row = pair(compare(rows))
    a, b = (compared.credits_of(rows, model) for model in ("M-0", "M-1"))
    assert (row["both_right"], row["both_wrong"]) == tuple(sum(a[unit] == b[unit] == credit for unit in a) for credit in (1, 0))
    assert row["both_right"] + row["both_wrong"] == row["ties"]
    partial = pair(compare(compared.rows(6, models=2, partial=True)))
    assert partial["both_right"] is partial["both_wrong"] is None


# ---- charts -------------------------------------------------------------------------------------------


def _marks(result: Result, name: str, layer: int) -> list[Row]:
    chart = result.charts[name].to_dict()
    values: list[Row] = (chart["layer"][layer].get("data") or chart["data"])["values"]
    return values


def test_the_matrix_stars_decided_pairs_and_has_no_minus_zero() -> None:
    rows = [
        answer(model, q, float(q % 50 < share), configuration_id=place + 1)
        for place, (model, share) in enumerate((("A", 10), ("B", 10), ("C", 40)))
        for q in range(100)
    ]
    squares = {(mark["a"], mark["b"]): mark["text"] for mark in _marks(compare(rows), "matrix", 0)}
    assert squares["A", "B"] == squares["B", "A"] == "0.0"
    assert squares["C", "A"] == "+60.0*"
    assert squares["A", "C"] == "-60.0*"
    tiny = [answer(model, q, 0.5 + 1e-5 * place, configuration_id=place + 1) for place, model in enumerate("ABC") for q in range(9)]
    assert {mark["text"].rstrip("*") for mark in _marks(compare(tiny), "matrix", 0)} == {"0.0"}


def test_charts_turn_pairs_so_that_the_better_side_is_first() -> None:
    rows = compared.rows(9, models=4)
    assert all(line["points"] >= 0 for line in _marks(compare(rows), "forest", 1))
    result = compare(rows, "M-0", "M-3")
    assert pair(result)["difference"] < 0
    lines = {line["name"]: line for line in _marks(result, "groups", 1)}
    assert lines["all questions"]["points"] == pytest.approx(-100 * pair(result)["difference"])
    assert lines["all benchmarks, each the same weight"]["low"] == pytest.approx(-100 * pair(result)["difference_macro_high"])
    assert "not simultaneous" in json.dumps(result.charts["groups"].to_dict())


def test_by_colours_follow_the_corrected_p() -> None:
    rng = np.random.default_rng(4)
    rows = [
        answer(model, q, float(rng.random() < 0.4 + 0.2 * place), configuration_id=place + 1)
        for place, model in enumerate("AB")
        for q in range(90)
    ]
    result = compare(rows, by=("task", "benchmark"))
    for row in result.tables["by"].rows():
        (line,) = [line for line in _marks(result, "groups", 1) if line["name"] == f"{row['value']} ({row['by']})"]
        assert (line["decided"] == "yes") == (row["p_holm"] < 0.05 and row["p_cluster_holm"] < 0.05)
