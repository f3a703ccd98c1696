"""Cluster bootstrap of mean differences between two answers to the same questions, many comparisons at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from threadpoolctl import threadpool_limits

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

CHUNK = 4_000_000
"""Cluster weights held at a time."""
PERCENTILES = (2.5, 97.5)


def bootstrap_means(
    cluster: npt.NDArray[np.int64], values: npt.NDArray[np.float64], *, draws: int, seed: Sequence[int]
) -> npt.NDArray[np.float64]:
    """Means (draws, comparisons) of `values` (questions, comparisons) over clusters drawn with replacement.

    `cluster` is the cluster of each question; every draw takes as many clusters as there are, with all of their questions, and the
    same ones for all comparisons. `seed` and the number of draws alone decide them.
    """
    _, code = np.unique(cluster, return_inverse=True)
    m = int(code.max(initial=-1)) + 1
    sums = np.stack([np.bincount(code, weights=column, minlength=m) for column in values.T], axis=1)
    sizes = np.bincount(code, minlength=m).astype(float)
    rng = np.random.default_rng(list(seed))
    means = np.empty((draws, values.shape[1]))
    step = max(1, CHUNK // max(m, 1))
    with threadpool_limits(1):
        for start in range(0, draws, step):
            rows = min(step, draws - start)
            drawn = rng.integers(0, m, (rows, m)) + m * np.arange(rows)[:, None]
            weights = np.bincount(drawn.ravel(), minlength=rows * m).reshape(rows, m).astype(float)
            means[start : start + rows] = (weights @ sums) / (weights @ sizes)[:, None]
    return means


def bootstrap_intervals(
    cluster: npt.NDArray[np.int64], values: npt.NDArray[np.float64], *, draws: int, seed: Sequence[int]
) -> npt.NDArray[np.float64]:
    """Pointwise 95% percentile intervals (2, comparisons) of the means of `bootstrap_means`; NaN with fewer than two clusters."""
    if len(np.unique(cluster)) < 2 or draws < 1:
        return np.full((2, values.shape[1]), np.nan)
    return np.asarray(np.percentile(bootstrap_means(cluster, values, draws=draws, seed=seed), PERCENTILES, axis=0))
