"""Resizing to a long edge."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from tracker.frontends import resize_long_edge


def test_the_long_edge_is_exact_and_the_short_one_rounds_half_to_even() -> None:
    for width, height, edge in np.random.default_rng(1).integers(1, 9000, size=(2000, 3)).tolist():
        size = resize_long_edge(width, height, edge)
        assert max(size) == edge
        assert min(size) == max(1, round(Fraction(edge * min(width, height), max(width, height))))


@pytest.mark.parametrize(
    ("native", "edge", "resized"), [((2246, 1582), 224, (224, 158)), ((4023, 3503), 2048, (2048, 1783)), ((100, 200), 4096, (2048, 4096))]
)
def test_known_sizes(native: tuple[int, int], edge: int, resized: tuple[int, int]) -> None:
    assert resize_long_edge(*native, edge) == resized
