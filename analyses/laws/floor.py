"""What the floor e of a law may be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

GRID_VALUES: tuple[float, ...] = tuple(sorted({0.001, 0.005, 0.01, 0.03, 0.99, 0.999} | {round(0.02 * i, 2) for i in range(1, 50)}))
"""The 55 floors of the separable-law paper (B.1): multiples of 0.02 from 0.02 to 0.98, and 0.001, 0.005, 0.01, 0.03, 0.99, 0.999."""


@dataclass(frozen=True, slots=True)
class Floor:
    """grid: one of the 55 values; continuous: anything in [low, high]; free: an intercept of any sign."""

    kind: Literal["grid", "continuous", "free"]
    low: float = 0.001
    high: float = 0.999

    def bounds(self) -> tuple[float, float]:
        """Lowest and highest value."""
        return (-np.inf, np.inf) if self.kind == "free" else (self.low, self.high)


GRID = Floor("grid")
CONTINUOUS = Floor("continuous")
FREE = Floor("free")


def floor_of(name: str | Floor) -> Floor:
    """grid, continuous or free by name."""
    return name if isinstance(name, Floor) else {"grid": GRID, "continuous": CONTINUOUS, "free": FREE}[name]
