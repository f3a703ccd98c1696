"""Native resolution of QwenVL: both sides to multiples of one factor, the area kept between two limits."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tracker.errors import UsageError
from tracker.frontends.resize import ImageSize
from tracker.frontends.visual import VisualInput

MAX_ASPECT = 200


def native_size(width: int, height: int, *, factor: int, min_pixels: int, max_pixels: int, at_least_one: bool = True) -> ImageSize:
    """Round half to even to multiples of `factor`; shrink by floor above max_pixels, else grow by ceiling below min_pixels.

    `at_least_one` keeps the first rounding at one factor or more, as qwen-vl-utils does; transformers does not.
    A shrunk side is at least one factor. An aspect above 200 is an error.
    """
    if max(width, height) > MAX_ASPECT * min(width, height):
        message = f"an image of {width} x {height} px has an aspect above {MAX_ASPECT}"
        raise UsageError(message, hint="the native-resolution rule refuses such images")
    least = factor if at_least_one else 0
    across = max(least, round(width / factor) * factor)
    down = max(least, round(height / factor) * factor)
    if across * down > max_pixels:
        shrink = math.sqrt(width * height / max_pixels)
        across = max(factor, math.floor(width / shrink / factor) * factor)
        down = max(factor, math.floor(height / shrink / factor) * factor)
    elif across * down < min_pixels:
        grow = math.sqrt(min_pixels / (width * height))
        across = math.ceil(width * grow / factor) * factor
        down = math.ceil(height * grow / factor) * factor
    return ImageSize(across, down)


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeResolution:
    """The rule with its numbers; `factor` is the side (px) of a merged patch, that is of one token."""

    factor: int = 28
    min_pixels: int = 3_136
    max_pixels: int = 12_845_056
    at_least_one: bool = True

    def view(self, width: int, height: int) -> VisualInput:
        """What the language model gets for an image of this size, start and end markers not counted."""
        size = native_size(
            width, height, factor=self.factor, min_pixels=self.min_pixels, max_pixels=self.max_pixels, at_least_one=self.at_least_one
        )
        rows, columns = size.height // self.factor, size.width // self.factor
        return VisualInput(
            tokens=rows * columns,
            tiles=None,
            rows=rows,
            columns=columns,
            width=size.width,
            height=size.height,
            effective_pixels=min(width * height, size.area),
        )
