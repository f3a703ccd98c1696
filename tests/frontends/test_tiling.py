"""Dynamic tiling against the released rule, written a second way, and published answers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from tracker.frontends import DynamicTiling, closest_grid, resize_long_edge, tile_grids


def released_grid(width: int, height: int, limit: int) -> tuple[int, int]:
    """The loop of the released preprocessor: a set of grids, sorted by area, strict improvement, area rule on ties."""
    ratios = {(i, j) for n in range(1, limit + 1) for i in range(1, n + 1) for j in range(1, n + 1) if i * j <= limit}
    best, difference = (1, 1), float("inf")
    for grid in sorted(ratios, key=lambda pair: pair[0] * pair[1]):
        now = abs(width / height - grid[0] / grid[1])
        if now < difference:
            difference, best = now, grid
        elif now == difference and width * height > 0.5 * 448 * 448 * grid[0] * grid[1]:
            best = grid
    return best


@pytest.mark.parametrize("limit", [1, 6, 12, 24, 36, 40])
def test_grids_agree_with_the_released_loop_on_random_sizes(limit: int) -> None:
    for width, height in np.random.default_rng(limit).integers(1, 6000, size=(400, 2)).tolist():
        assert closest_grid(width, height, max_tiles=limit) == released_grid(width, height, limit)


@pytest.mark.parametrize("limit", [6, 12])
def test_the_chosen_shape_is_the_nearest_in_exact_arithmetic(limit: int) -> None:
    shapes = {Fraction(a, b) for a in range(1, limit + 1) for b in range(1, limit + 1) if a * b <= limit}
    for width, height in np.random.default_rng(7).integers(1, 6000, size=(300, 2)).tolist():
        grid = closest_grid(width, height, max_tiles=limit)
        distances = {abs(Fraction(width, height) - shape) for shape in shapes}
        assert float(abs(Fraction(width, height) - Fraction(*grid))) == pytest.approx(float(min(distances)), abs=1e-12)


def test_the_number_of_grids_at_twelve_tiles() -> None:
    assert len(tile_grids(1, 12)) == 35


@pytest.mark.parametrize(
    ("size", "limit", "grid", "tokens"),
    [
        ((1920, 1080), 12, (4, 2), 2304),
        ((4000, 1000), 12, (4, 1), 5 * 256),
        ((1240, 1754), 34, (2, 3), 1792),
        ((1240, 1754), 35, (5, 7), 9216),
        ((448, 448), 12, (1, 1), 256),
    ],
)
def test_published_tilings(size: tuple[int, int], limit: int, grid: tuple[int, int], tokens: int) -> None:
    view = DynamicTiling(max_tiles=limit).view(*size)
    assert (view.columns, view.rows) == grid
    assert view.tokens == tokens


def test_a_square_grows_by_area_only() -> None:
    tiles = [DynamicTiling().view(side, side).tiles for side in (224, 448, 634, 1024, 2048)]
    assert tiles == [1, 1, 5, 10, 10]


def test_a_v_star_image_costs_the_same_at_every_input_size() -> None:
    sizes = [resize_long_edge(2246, 1582, edge) for edge in (224, 336, 512, 768, 1024, 2048)]
    assert [DynamicTiling().view(*size).tokens for size in sizes] == [1792] * 6


def test_effective_pixels_leave_the_thumbnail_out() -> None:
    assert DynamicTiling().view(1920, 1080).effective_pixels == 1_605_632
    assert DynamicTiling().view(*resize_long_edge(2246, 1582, 224)).effective_pixels == 35_392
