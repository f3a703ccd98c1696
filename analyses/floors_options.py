"""Options of the analyses that read the floor of fits to parts of the questions."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator

from analyses.cells import CellParameters
from analyses.laws import SeparableLaw
from analyses.laws.separable import BOX


class FloorParameters(CellParameters):
    """How the law is fitted (separable-law paper, B.1)."""

    floor: Literal["grid", "continuous"] = Field(
        default="grid", description="error floor of a fit: grid (the 55 values of the paper) or continuous (0.001 to 0.999)"
    )
    box: tuple[float, float] = Field(default=BOX, description="search range of both exponents")

    @field_validator("box")
    @classmethod
    def _ordered(cls, box: tuple[float, float]) -> tuple[float, float]:
        if not 0 < box[0] < box[1]:
            message = "expected two positive numbers, the lower first"
            raise ValueError(message)
        return box

    def law(self, reference: tuple[float, float]) -> SeparableLaw:
        """The law that the options ask for."""
        return SeparableLaw(alpha=self.box, beta=self.box, floor=self.floor, reference=reference)
