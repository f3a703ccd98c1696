"""Native resolution against a second implementation and published answers."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal, getcontext

import numpy as np
import pytest

from tracker.errors import UsageError
from tracker.frontends import NativeResolution, native_size, resize_long_edge

QWEN25 = NativeResolution()
QWEN3 = NativeResolution(factor=32, min_pixels=65_536, max_pixels=16_777_216)


def decimal_size(width: int, height: int, factor: int, least: int, most: int) -> tuple[int, int]:
    """The same rule in decimal arithmetic of 50 digits."""
    getcontext().prec = 50

    def multiple(side: Decimal, how: str) -> int:
        return int((side / factor).quantize(Decimal(1), rounding=how)) * factor

    sides = Decimal(width), Decimal(height)
    first = [max(factor, multiple(side, ROUND_HALF_EVEN)) for side in sides]
    area = Decimal(width * height)
    if first[0] * first[1] > most:
        scale = (Decimal(most) / area).sqrt()
        return tuple(max(factor, multiple(side * scale, ROUND_FLOOR)) for side in sides)  # type: ignore[return-value]
    if first[0] * first[1] < least:
        scale = (Decimal(least) / area).sqrt()
        return tuple(multiple(side * scale, ROUND_CEILING) for side in sides)  # type: ignore[return-value]
    return first[0], first[1]


@pytest.mark.parametrize("rule", [QWEN25, QWEN3, NativeResolution(max_pixels=401_408)])
def test_sizes_agree_with_exact_arithmetic(rule: NativeResolution) -> None:
    differing = 0
    for width, height in np.random.default_rng(3).integers(30, 7000, size=(500, 2)).tolist():
        size = native_size(width, height, factor=rule.factor, min_pixels=rule.min_pixels, max_pixels=rule.max_pixels)
        differing += size != decimal_size(width, height, rule.factor, rule.min_pixels, rule.max_pixels)
    assert differing == 0


@pytest.mark.parametrize(("size", "tokens"), [((224, 224), 64), ((1920, 1080), 2691), ((1240, 1754), 2772)])
def test_published_counts(size: tuple[int, int], tokens: int) -> None:
    assert QWEN25.view(*size).tokens == tokens


@pytest.mark.parametrize(("size", "tokens"), [((336, 224), 70), ((336, 252), 80), ((336, 336), 100)])
def test_halves_round_to_even(size: tuple[int, int], tokens: int) -> None:
    assert QWEN3.view(*size).tokens == tokens


def test_the_minimum_makes_counts_fall_between_224_and_336_px() -> None:
    """Only a minimum of 64 tokens can: without it the smaller input gives fewer tokens."""
    small, large = (resize_long_edge(1600, 1000, edge) for edge in (224, 336))
    assert QWEN3.view(*small).tokens == 77
    assert QWEN3.view(*large).tokens == 70
    assert NativeResolution(factor=32).view(*small).tokens == 28


@pytest.mark.parametrize(
    ("size", "careful", "library"),
    [((12, 834), (28, 840), (28, 476)), ((1301, 14), (1288, 28), (560, 28)), ((2743, 23), (2744, 28), (2744, 28))],
)
def test_extreme_shapes_by_both_first_roundings(size: tuple[int, int], careful: tuple[int, int], library: tuple[int, int]) -> None:
    assert native_size(*size, factor=28, min_pixels=3_136, max_pixels=12_845_056) == careful
    assert native_size(*size, factor=28, min_pixels=3_136, max_pixels=12_845_056, at_least_one=False) == library


def test_a_shrunk_side_is_at_least_one_factor() -> None:
    assert native_size(2743, 23, factor=28, min_pixels=3_136, max_pixels=64 * 28 * 28) == (2436, 28)


def test_aspect_200_passes_and_more_is_refused() -> None:
    assert QWEN25.view(2000, 10).rows == 1
    with pytest.raises(UsageError, match="aspect above 200"):
        QWEN25.view(2001, 10)


def test_effective_pixels_are_those_of_the_smaller_of_input_and_grid() -> None:
    assert QWEN25.view(1920, 1080).effective_pixels == 1920 * 1080
    assert QWEN25.view(8000, 6000).effective_pixels == QWEN25.view(8000, 6000).width * QWEN25.view(8000, 6000).height
