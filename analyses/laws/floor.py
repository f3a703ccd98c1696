"""What the floor e of a law may be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

GRID_VALUES: tuple[float, ...] = tuple(sorted({0.001, 0.005, 0.01, 0.03, 0.99, 0.999} | {round(0.02 * i, 2) for i in range(1, 50)}))
"""The 55 floors of the separable-law paper (B.1): multiples of 0.02 from 0.02 to 0.98, and 0.001, 0.005, 0.01, 0.03, 0.99, 0.999."""

KINDS = ("grid", "continuous", "free")


@dataclass(frozen=True, slots=True)
class Floor:
    """grid: one of the 55 values; continuous: anything in [low, high]; free: an intercept of any sign."""

    kind: Literal["grid", "continuous", "free"]
    low: float = 0.001
    high: float = 0.999

    def __post_init__(self) -> None:
        """ValueError for another kind, or bounds that are not in order."""
        if self.kind not in KINDS:
            message = f"there is no kind of floor {self.kind!r}: there are {', '.join(KINDS)}"
            raise ValueError(message)
        if not self.low <= self.high:
            message = f"bounds of a floor must be in order, not {self.low:g}, {self.high:g}"
            raise ValueError(message)

    def bounds(self) -> tuple[float, float]:
        """Lowest and highest value."""
        return (-np.inf, np.inf) if self.kind == "free" else (self.low, self.high)

    def __str__(self) -> str:
        """For people: the kind and what it allows."""
        if self.kind == "free":
            return "free (any value)"
        return f"grid ({len(GRID_VALUES)} values)" if self.kind == "grid" else f"continuous ({self.low:.4g} to {self.high:.4g})"


GRID = Floor("grid")
CONTINUOUS = Floor("continuous")
FREE = Floor("free")
FLOORS = {"grid": GRID, "continuous": CONTINUOUS, "free": FREE}


def floor_of(name: str | Floor) -> Floor:
    """grid, continuous or free by name; ValueError that lists them for another."""
    if isinstance(name, Floor):
        return name
    if name not in FLOORS:
        message = f"there is no floor {name!r}: there are {', '.join(FLOORS)}, or a Floor"
        raise ValueError(message)
    return FLOORS[name]
