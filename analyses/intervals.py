"""Wilson score intervals of shares, for independent trials and for trials in clusters."""

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


def clustered_wilson(
    hits: npt.NDArray[np.bool_], cluster: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Ends of the 95% intervals of the shares of hits (trials x kinds) whose trials come in clusters; arrays (kinds,).

    Wilson's interval with the effective number of trials n / max(1, deff), where deff is the cluster variance of the share,
    m/(m-1) sum over clusters of (z - p a)^2 / n^2 with z hits among a trials, over p (1-p)/n. A share of 0 or 1 has no variance to tell:
    the clusters count as trials. NaN for fewer than two clusters.
    """
    codes = np.unique(cluster, return_inverse=True)[1]
    n, trials = len(codes), np.bincount(codes)
    m = len(trials)
    if m < 2:
        return np.full(hits.shape[1], np.nan), np.full(hits.shape[1], np.nan)
    p = hits.mean(axis=0)
    z = np.stack([np.bincount(codes, weights=kind, minlength=m) for kind in hits.T], axis=1)
    variance = m / (m - 1) * ((z - p * trials[:, None]) ** 2).sum(axis=0) / n**2
    with np.errstate(invalid="ignore", divide="ignore"):
        effective = np.where((p > 0) & (p < 1), n / np.maximum(1.0, variance * n / (p * (1 - p))), m)
    return wilson(p * effective, effective)
