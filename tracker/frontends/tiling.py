"""Dynamic tiling of InternVL: the grid shaped most like the image, cut into tiles of one size, with a thumbnail."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from tracker.frontends.visual import VisualInput


class Grid(NamedTuple):
    """Tiles across and down."""

    columns: int
    rows: int

    @property
    def tiles(self) -> int:
        """Number of tiles."""
        return self.columns * self.rows


@cache
def tile_grids(min_tiles: int, max_tiles: int) -> tuple[Grid, ...]:
    """Every grid with min_tiles <= columns x rows <= max_tiles, fewest tiles first."""
    sides = range(1, max_tiles + 1)
    grids = (Grid(columns, rows) for columns in sides for rows in sides if min_tiles <= columns * rows <= max_tiles)
    return tuple(sorted(grids, key=lambda grid: (grid.tiles, grid.columns)))


def closest_grid(width: int, height: int, *, tile: int = 448, min_tiles: int = 1, max_tiles: int = 12) -> Grid:
    """The grid whose shape is nearest to the image's; |W/H - a/b| in double precision.

    Of two that are exactly as near the later, larger one wins if the image area exceeds half of its area.
    """
    aspect = width / height
    best, nearest = Grid(1, 1), float("inf")
    for grid in tile_grids(min_tiles, max_tiles):
        distance = abs(aspect - grid.columns / grid.rows)
        if distance < nearest or (distance == nearest and width * height > 0.5 * tile * tile * grid.tiles):
            best, nearest = grid, distance
    return best


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamicTiling:
    """The rule with its numbers: tile side in px, limits of the tile count, tokens of one tile."""

    tile: int = 448
    min_tiles: int = 1
    max_tiles: int = 12
    tokens_per_tile: int = 256
    thumbnail: bool = True

    def view(self, width: int, height: int) -> VisualInput:
        """What the language model gets for an image of this size; `tiles` counts the thumbnail, effective pixels do not."""
        grid = closest_grid(width, height, tile=self.tile, min_tiles=self.min_tiles, max_tiles=self.max_tiles)
        tiles = grid.tiles + int(self.thumbnail and grid.tiles > 1)
        stretched = (grid.columns * self.tile, grid.rows * self.tile)
        return VisualInput(
            tokens=tiles * self.tokens_per_tile,
            tiles=tiles,
            rows=grid.rows,
            columns=grid.columns,
            width=stretched[0],
            height=stretched[1],
            effective_pixels=min(width * height, stretched[0] * stretched[1]),
        )
