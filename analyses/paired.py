"""Tests of paired differences: Student's t, McNemar's exact test, exact sign flips, and Holm's correction over a family of tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import special

if TYPE_CHECKING:
    import numpy.typing as npt


FEW = 20
"""Differences whose signs `sign_flip` flips in every way: 2^20 patterns, counted from two halves of 2^10 sums."""


def holm(p: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Holm's step-down adjusted p values of a family (Holm, 1979), in the shape of `p`; NaN is no test and stays NaN."""
    given = np.asarray(p, dtype=float)
    flat = given.ravel()
    adjusted = np.full(flat.shape, np.nan)
    tests = np.flatnonzero(~np.isnan(flat))
    order = tests[np.argsort(flat[tests], kind="stable")]
    multiplied = flat[order] * np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(multiplied), 1.0)
    return adjusted.reshape(given.shape)


def mcnemar_exact(wins: npt.ArrayLike, losses: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Two-sided exact McNemar p: twice the binomial(wins + losses, 1/2) tail of the smaller count, at most 1; arrays broadcast.

    1 where nothing is discordant.
    """
    won, lost = np.broadcast_arrays(np.asarray(wins, dtype=float), np.asarray(losses, dtype=float))
    fewer = np.minimum(won, lost)
    tail = special.betainc(np.maximum(won, lost), fewer + 1.0, 0.5)
    return np.asarray(np.where(won == lost, 1.0, np.minimum(2.0 * tail, 1.0)))


def paired_t(differences: npt.ArrayLike) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """The t and two-sided p (df n - 1) of the mean of differences (..., n), over the last axis; NaN is left out."""
    values = np.asarray(differences, dtype=float)
    kept = ~np.isnan(values)
    n = kept.sum(axis=-1)
    total = np.where(kept, values, 0.0).sum(axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = total / n
        variance = (np.where(kept, values - mean[..., None], 0.0) ** 2).sum(axis=-1) / (n - 1)
    return t_of_moments(mean, variance, n)


def paired_t_of_counts(
    wins: npt.ArrayLike, losses: npt.ArrayLike, n: npt.ArrayLike
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """The t and two-sided p of `n` differences of which `wins` are +1, `losses` -1 and the others 0; arrays broadcast."""
    won, lost, size = (np.asarray(a, dtype=float) for a in np.broadcast_arrays(wins, losses, n))
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = (won - lost) / size
        variance = (won + lost - size * mean**2) / (size - 1)
    return t_of_moments(mean, variance, size)


def t_of_moments(mean: npt.ArrayLike, variance: npt.ArrayLike, n: npt.ArrayLike) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """The t and two-sided p from mean, sample variance and number; arrays broadcast.

    Differences that are all equal decide without error: p is 1 at 0 and 0 elsewhere. Fewer than two give NaN.
    """
    centre, spread, size = (np.asarray(a, dtype=float) for a in np.broadcast_arrays(mean, variance, n))
    with np.errstate(invalid="ignore", divide="ignore"):
        t = np.where(centre == 0, 0.0, centre / np.sqrt(np.maximum(spread, 0.0) / size))
        p = 2.0 * special.stdtr(size - 1, -np.abs(t))
    few = ~(size > 1)
    return np.where(few, np.nan, t), np.where(few, np.nan, p)


def sign_flip(differences: npt.ArrayLike) -> float:
    """Exact two-sided p of the sum of differences when each might as well have the other sign (Fisher's randomisation test, 1935).

    Over all 2^m sign patterns of the m differences that are not 0; of +1 and -1 it is exact McNemar. 1 where nothing differs, NaN for
    more than FEW: the number of patterns at least as far from 0 as the sum is counted from the sums of two halves, sorted.
    """
    values = np.asarray(differences, dtype=float).ravel()
    values = values[values != 0]
    if len(values) > FEW:
        return float("nan")
    furthest = abs(float(values.sum())) - 1e-9 * float(np.abs(values).sum())
    if furthest <= 0:
        return 1.0
    one, other = _signed_sums(values[: len(values) // 2]), np.sort(_signed_sums(values[len(values) // 2 :]))
    above = len(other) - np.searchsorted(other, furthest - one, side="left")
    below = np.searchsorted(other, -furthest - one, side="right")
    return float((above + below).sum() / 2.0 ** len(values))


def _signed_sums(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Sums of all sign patterns."""
    sums = np.zeros(1)
    for value in values.tolist():
        sums = np.concatenate([sums + value, sums - value])
    return sums
