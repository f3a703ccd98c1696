"""Wilson score intervals of shares."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

Z = 1.959963984540054
"""The normal quantile of a two-sided 95% interval."""


def wilson(successes: npt.ArrayLike, trials: npt.ArrayLike) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Low and high end of the 95% interval of successes / trials; NaN where there are no trials.

    (p + z^2/2n +- z sqrt(p(1-p)/n + z^2/4n^2)) / (1 + z^2/n)
    """
    k, n = np.asarray(successes, dtype=float), np.asarray(trials, dtype=float)
    with np.errstate(invalid="ignore", divide="ignore"):
        p = k / n
        scale = 1 + Z * Z / n
        centre = (p + Z * Z / (2 * n)) / scale
        half = Z * np.sqrt(p * (1 - p) / n + Z * Z / (4 * n * n)) / scale
    empty = n == 0
    return np.where(empty, np.nan, np.clip(centre - half, 0, 1)), np.where(empty, np.nan, np.clip(centre + half, 0, 1))
