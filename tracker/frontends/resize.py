"""Resizing an image to a long edge, aspect kept."""

from __future__ import annotations

from typing import NamedTuple


class ImageSize(NamedTuple):
    """Width and height in px."""

    width: int
    height: int

    @property
    def area(self) -> int:
        """Number of pixels."""
        return self.width * self.height


def resize_long_edge(width: int, height: int, edge: int) -> ImageSize:
    """Scale by s = edge / max(width, height); each side is round(s * side), halves to even, at least 1 px.

    The product is taken before the division, so that the long edge comes out as `edge` exactly.
    """
    longest = max(width, height)
    return ImageSize(max(1, round(edge * width / longest)), max(1, round(edge * height / longest)))
