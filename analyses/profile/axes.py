"""Which axis a trajectory responds to: range of its level means over backbones against that over input sizes (5.3, E.5). Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from analyses.grouping import mean_by

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Codes = npt.NDArray[np.int64]

TIE = 1e-9
"""Ranges this near to each other are a tie."""
AXES = ("N_dominated", "R_dominated", "tie")
N_DOMINATED, R_DOMINATED, TIED = range(3)
UNKNOWN = -1
"""No observation with an input size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Levels:
    """Level means of one axis. Arrays have one entry per trajectory."""

    number: Codes
    """Levels that the trajectory has observations at."""
    range: Floats
    """Largest minus smallest level mean; NaN without a level."""
    first: Floats
    """Mean at its lowest level."""
    last: Floats
    """Mean at its highest level."""


def level_means(trajectory: Codes, level: Codes, accuracy: Floats, size: int) -> Levels:
    """Means of the observations of each trajectory at each level, and their range; levels are numbered in ascending order."""
    distinct, position = np.unique(np.stack([trajectory, level]), axis=1, return_inverse=True)
    means = mean_by(position.ravel(), accuracy, distinct.shape[1])
    owner = distinct[0]
    number = np.bincount(owner, minlength=size)
    begin = np.cumsum(number) - number
    has = number > 0
    found = {name: np.full(size, np.nan) for name in ("range", "first", "last")}
    if len(owner):
        starts = begin[has]
        found["range"][has] = np.maximum.reduceat(means, starts) - np.minimum.reduceat(means, starts)
        found["first"][has], found["last"][has] = means[starts], means[starts + number[has] - 1]
    return Levels(number=number, **found)


def dominant(backbones: Levels, sizes: Levels) -> Codes:
    """Position in AXES of each trajectory; UNKNOWN where a range is not known."""
    difference = backbones.range - sizes.range
    with np.errstate(invalid="ignore"):
        axis = np.where(np.abs(difference) <= TIE, TIED, np.where(difference > 0, N_DOMINATED, R_DOMINATED))
    return np.where(np.isnan(difference), UNKNOWN, axis).astype(np.int64)
