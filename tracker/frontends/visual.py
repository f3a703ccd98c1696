"""What a frontend makes of one image."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class VisualInput:
    """Tokens that enter the language model for one image, and how they came about.

    `tiles` is null for rules without tiles; grids are rows x columns of tiles or of merged patches; width and height
    (px) are of the image after the frontend's own resizing; effective pixels = min(area given, area of the grid).
    """

    tokens: int
    tiles: int | None
    rows: int
    columns: int
    width: int
    height: int
    effective_pixels: int
