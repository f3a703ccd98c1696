from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyses.grouping import above, below, distinct_by, factorise, mean_by, position_by, quartile_by, slope_by, within
from tests.analyses import naive

groups = st.lists(st.lists(st.integers(1, 6), min_size=1, max_size=13), min_size=1, max_size=5)


def test_quartiles_of_distinct_values_are_even() -> None:
    values = np.arange(8, dtype=float)[::-1]
    assert quartile_by(np.zeros(8, dtype=np.int64), values).tolist() == [4, 4, 3, 3, 2, 2, 1, 1]


def test_ties_share_a_quartile_by_midrank() -> None:
    """1 1 1 2: midranks 2 2 2 4, so 4(m - .5)/4 = 1.5 and 3.5."""
    assert quartile_by(np.zeros(4, dtype=np.int64), np.array([1.0, 1, 1, 2])).tolist() == [2, 2, 2, 4]
    assert quartile_by(np.zeros(3, dtype=np.int64), np.array([7.0, 7, 7])).tolist() == [3, 3, 3]


@given(groups)
@settings(deadline=None)
def test_quartiles_follow_the_formula_in_exact_arithmetic(lists: list[list[int]]) -> None:
    group = np.concatenate([np.full(len(values), place, dtype=np.int64) for place, values in enumerate(lists)])
    values = np.concatenate([np.array(values, dtype=float) for values in lists])
    expected = [quartile for members in lists for quartile in naive.quartiles([float(value) for value in members])]
    shuffle = np.random.default_rng(0).permutation(len(group))
    assert quartile_by(group[shuffle], values[shuffle]).tolist() == np.array(expected)[shuffle].tolist()


@given(groups, st.integers(0, 5))
@settings(deadline=None)
def test_slopes_equal_a_loop(lists: list[list[int]], seed: int) -> None:
    rng = np.random.default_rng(seed)
    group = np.concatenate([np.full(len(values), place, dtype=np.int64) for place, values in enumerate(lists)])
    x = np.concatenate([np.array(values, dtype=float) for values in lists])
    y = rng.random(len(x))
    found = slope_by(group, x, y, len(lists))
    for place, values in enumerate(lists):
        expected = naive.slope([float(value) for value in values], y[group == place].tolist())
        assert np.isnan(found[place]) if expected is None else found[place] == pytest.approx(expected, abs=1e-12)


def test_means_skip_nan_and_empty_groups_have_none() -> None:
    means = mean_by(np.array([0, 0, 2]), np.array([1.0, np.nan, 3.0]), 3)
    assert means[0] == 1
    assert np.isnan(means[1])
    assert means[2] == 3


def test_distinct_values_are_counted_by_group() -> None:
    values = np.array([5.0, 6.0, np.nan, 1.0, 5.0])
    assert distinct_by(np.array([0, 0, 0, 1, 1]), np.array([0, 4, 1, 2, 3]), values, 3).tolist() == [2, 1, 0]


def test_positions_follow_the_sorted_order() -> None:
    assert position_by(np.array([1, 0, 0, 0]), np.array([9, 30, 10, 20], dtype=np.uint64)).tolist() == [0, 2, 0, 1]


def test_empty_columns_are_fine() -> None:
    none, numbers = np.zeros(0, dtype=np.int64), np.zeros(0)
    assert quartile_by(none, numbers).tolist() == []
    assert position_by(none, np.zeros(0, dtype=np.uint64)).tolist() == []
    assert distinct_by(none, none, numbers, 2).tolist() == [0, 0]


def test_cutoffs_compare_nine_decimals() -> None:
    """0.1 + 0.2 is 0.30000000000000004: not above 0.3."""
    value = np.array([0.1 + 0.2])
    assert not above(value, 0.3).any()
    assert not below(np.array([0.3 - 1e-12]), 0.3).any()
    assert within(np.array([0.55 - 0.5]), 0.05).all()
    assert not (above(np.array([np.nan]), 0) | below(np.array([np.nan]), 1) | within(np.array([np.nan]), 1)).any()


def test_labels_are_numbered_with_null_last() -> None:
    column = np.ma.MaskedArray(np.array(["b", "?", "a", "b"], dtype=object), mask=[False, True, False, False])
    factor = factorise(column)
    assert factor.labels == ["a", "b", None]
    assert factor.codes.tolist() == [1, 2, 0, 1]
