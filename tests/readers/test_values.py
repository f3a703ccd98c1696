from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracker.readers import values
from tracker.readers.values import Number


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, Number(0.0, None)),
        (-0.5, Number(-0.5, None)),
        ("0e0", Number(0.0, None)),
        (True, Number(1.0, None)),
        (math.nan, Number(None, "nan")),
        ("NaN", Number(None, "nan")),
        (math.inf, Number(None, "inf")),
        ("-Infinity", Number(None, "-inf")),
        (10**400, Number(None, "inf")),
        (None, Number(None, None)),
        ("", Number(None, None)),
        ("1_0", Number(None, None)),
        ("abc", Number(None, None)),
        ([1], Number(None, None)),
    ],
)
def test_numbers_keep_zero_nan_and_nothing_apart(value: object, expected: Number) -> None:
    assert values.number(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [(True, True), ("TRUE", True), (1, True), (0.0, False), ("0", False), (0.5, None), ("yes", None), (2, None), (None, None)],
)
def test_truth_is_never_guessed(value: object, expected: bool | None) -> None:
    assert values.truth(value) is expected


@pytest.mark.parametrize(
    ("value", "expected"), [(3, 3), (4.0, 4), ("5", 5), ("6.0", 6), (3.5, None), (True, None), ("x", None), (2**70, None), (math.inf, None)]
)
def test_whole_numbers(value: object, expected: int | None) -> None:
    assert values.whole(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [(12.0, "12"), (1.5, "1.5"), (0, "0"), (False, "false"), ("", ""), (math.nan, None), (None, None), ([1, "a"], '[1,"a"]')],
)
def test_text_of_ids_does_not_depend_on_how_a_table_stored_them(value: object, expected: str | None) -> None:
    assert values.text(value) == expected


def test_options_are_read_from_every_shape_they_come_in() -> None:
    expected = ["red", "blue"]
    shapes: list[Any] = [expected, {"A": "red", "B": "blue"}, '["red", "blue"]', "A. red\nB. blue\n", "(A) red\n(B) blue"]
    assert [values.option_list(shape) for shape in shapes] == [expected] * 5
    assert values.option_list("red or blue") is None
    assert values.option_list("A. red\nC. blue") is None


@given(st.lists(st.floats(-200, 0), min_size=1, max_size=6), st.data())
def test_p_gold_is_a_probability_and_the_best_option_has_the_highest(scores: list[float], data: st.DataObject) -> None:
    gold = data.draw(st.integers(0, len(scores) - 1))
    found = values.p_gold(scores, gold)
    best = values.best(scores)
    assert found is not None
    assert best is not None
    assert 0 <= found <= 1
    assert found <= (values.p_gold(scores, best) or 0)
    assert math.isclose(found, math.exp(scores[gold]) / math.fsum(map(math.exp, scores)), rel_tol=1e-9, abs_tol=1e-300)


def test_a_missing_likelihood_gives_no_probability() -> None:
    assert values.p_gold([-1.0, math.nan], 0) is None
    assert values.p_gold([-1.0, None], 0) is None
    assert values.best([-1.0, math.nan]) is None
    assert values.p_gold([-math.inf, -1.0], 0) == 0.0
    assert values.p_gold([-math.inf, -math.inf], 0) is None
    assert values.p_gold([-1.0, -2.0], 7) is None


def test_the_content_hash_ignores_order_of_options_and_white_space() -> None:
    assert values.content_hash("What  is\nit?", ["b", "a "], "1.jpg") == values.content_hash("What is it?", ["a", "b"], "1.jpg")
    assert values.content_hash("What?", ["a"], "1.jpg") != values.content_hash("What?", ["a"], "2.jpg")
    assert values.content_hash("What?", []) != values.content_hash("What?")
