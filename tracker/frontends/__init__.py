"""Image size -> visual tokens, tiles and effective pixels. Pure functions over values; nothing of trackr is imported but its errors."""

from tracker.frontends.native import NativeResolution, native_size
from tracker.frontends.resize import ImageSize, resize_long_edge
from tracker.frontends.rule import Rule, VisualInput, rule
from tracker.frontends.tiling import DynamicTiling, closest_grid, tile_grids

__all__ = [
    "DynamicTiling",
    "ImageSize",
    "NativeResolution",
    "Rule",
    "VisualInput",
    "closest_grid",
    "native_size",
    "resize_long_edge",
    "rule",
    "tile_grids",
]
