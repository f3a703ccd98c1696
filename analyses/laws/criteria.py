"""Measures of fit that all laws share."""

from __future__ import annotations

from typing import Any

import numpy as np


def bic(sse: Any, n: Any, k: Any) -> Any:
    """Gaussian BIC, n (ln(2 pi SSE / n) + 1) + k ln n; the variance is not among the k parameters (it reproduces Table 8 of the
    separable-law paper). Minus infinity where SSE is 0; NaN without cells.
    """  # noqa: D205
    n = _cells(n)
    with np.errstate(divide="ignore"):
        return n * (np.log(2 * np.pi * np.asarray(sse, dtype=float) / n) + 1) + k * np.log(n)


def aic(sse: Any, n: Any, k: Any) -> Any:
    """Gaussian AIC, n (ln(2 pi SSE / n) + 1) + 2 k, with the k of `bic`; NaN without cells."""
    n = _cells(n)
    with np.errstate(divide="ignore"):
        return n * (np.log(2 * np.pi * np.asarray(sse, dtype=float) / n) + 1) + 2 * k


def _cells(n: Any) -> Any:
    n = np.asarray(n, dtype=float)
    return np.where(n > 0, n, np.nan)


def sse(residuals: Any, weights: Any) -> float:
    """Weighted sum of squares over the cells with weight."""
    w = np.asarray(weights, dtype=float)
    return float((w[w > 0] * np.asarray(residuals, dtype=float)[w > 0] ** 2).sum())


def r2(y: Any, predicted: Any, weights: Any = None) -> float:
    """1 - SSE/SST about the (weighted) mean of yover cells with weight; NaN where y does not vary or none has."""
    y, predicted = np.asarray(y, dtype=float), np.asarray(predicted, dtype=float)
    w = np.ones_like(y) if weights is None else np.asarray(weights, dtype=float)
    if not (w > 0).any():
        return float("nan")
    y, predicted, w = y[w > 0], predicted[w > 0], w[w > 0] / w.max()
    sst = float((w * (y - np.average(y, weights=w)) ** 2).sum())
    return 1.0 - float((w * (y - predicted) ** 2).sum()) / sst if sst > 0 else float("nan")
