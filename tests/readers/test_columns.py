"""The fast way over a whole column and the value by value way must agree."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracker.readers import columns

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracker.readers.columns import Checked

CHECKS: dict[str, Callable[[Any], Checked]] = {
    "texts": columns.texts,
    "wholes": columns.wholes,
    "small": lambda column: columns.wholes(column, most=9),
    "finite": columns.finite,
    "fraction": lambda column: columns.finite(column, fraction=True),
    "scores": columns.scores,
    "truths": columns.truths,
    "number_lists": columns.number_lists,
}
CELLS = {
    "ints": st.one_of(st.none(), st.integers(-3, 12)),
    "floats": st.one_of(st.none(), st.floats(width=32), st.sampled_from([0.0, 1.0, 0.5])),
    "booleans": st.one_of(st.none(), st.booleans()),
    "words": st.one_of(st.none(), st.sampled_from(["1", "0", "true", "False", "0.5", "NaN", "inf", "x", "3", " 1", "1e3", "-2", "NA"])),
    "lists": st.one_of(st.none(), st.lists(st.floats(-5, 0), max_size=3)),
}


def outcome(checked: Checked) -> list[Any]:
    special = checked.special.to_pylist() if checked.special is not None else [None] * len(checked.array)
    return [
        "refused" if row in checked.problems else (None if isinstance(value, float) and math.isnan(value) else value, special[row])
        for row, value in enumerate(checked.array.to_pylist())
    ]


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("kind", CELLS)
@given(data=st.data())
def test_a_column_at_once_and_value_by_value_give_the_same(check: str, kind: str, data: st.DataObject) -> None:
    cells = data.draw(st.lists(CELLS[kind], min_size=1, max_size=8))
    convert = CHECKS[check]
    at_once = outcome(convert(cells))
    singly = [outcome(convert([cell, object()]))[0] for cell in cells]  # an object forbids the fast way
    assert at_once == singly
    assert outcome(convert(pa.array(cells))) == at_once


def test_problems_say_what_was_expected_and_found() -> None:
    assert str(columns.truths([True, 0.5]).problems[1]) == "expected true or false (or 1 or 0), found 0.5"
    assert str(columns.wholes([3, -1]).problems[1]) == "expected a whole number from 0, found -1"
    assert str(columns.finite([0.5, 1.5], fraction=True).problems[1]) == "expected a number from 0 to 1, found 1.5"
    assert str(columns.keys(["a", None], "model").problems[1]) == "expected a value for model, found None"
