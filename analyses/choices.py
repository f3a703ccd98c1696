"""Rules that choose a configuration under a budget (separable-law paper, 5.2 and E.3). Pure functions of arrays, no database.

Arrays are decisions x candidates: `n` and `r` of the candidates, `feasible` which of them the budget allows (by their actual cost).
A choice is the place of a candidate, -1 where none is feasible; of equals the first is chosen, so that candidates come in the
order that decides ties (of series, N, input size).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

EQUAL = 1e-12
"""Errors, and relative costs, sizes and distances, that differ by less are equal: two candidates are exactly as far from their centre."""


def first_lowest(values: npt.NDArray[np.float64], among: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Place of the first lowest value among some candidates; -1 where there is none."""
    masked = np.where(among, values, np.inf)
    lowest = masked.min(axis=-1, keepdims=True, initial=np.inf)
    return np.where(among.any(axis=-1), (masked <= lowest + EQUAL).argmax(axis=-1), -1).astype(np.int64)


def budgets_of(cost: npt.NDArray[np.float64], percentiles: Sequence[float]) -> npt.NDArray[np.float64]:
    """Budgets at percentiles (linear) of the costs of each group (groups x cells, NaN where there is no cost): groups x percentiles."""
    answer = np.full((len(cost), len(percentiles)), np.nan)
    for row, costs in enumerate(cost):
        known = costs[~np.isnan(costs)]
        if len(known):
            answer[row] = np.percentile(known, percentiles)
    return answer


def affordable(cost: npt.NDArray[np.float64], budget: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """Which candidates cost no more than the budget; unknown costs are not affordable. Arguments broadcast."""
    with np.errstate(invalid="ignore"):
        return np.asarray(cost <= budget * (1 + EQUAL))


def direct(predicted: npt.NDArray[np.float64], feasible: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Direct selection: the lowest predicted error."""
    return first_lowest(predicted, feasible & ~np.isnan(predicted))


def largest_backbone(n: npt.NDArray[np.float64], r: npt.NDArray[np.float64], feasible: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """The largest N, and of those the smallest R."""
    largest = np.where(feasible, n, -np.inf).max(axis=-1, keepdims=True, initial=-np.inf)
    return first_lowest(np.log(r), feasible & (n >= largest * (1 - EQUAL)))


def largest_tokens(n: npt.NDArray[np.float64], r: npt.NDArray[np.float64], feasible: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """The largest R, and of those the smallest N."""
    return largest_backbone(r, n, feasible)


def nearest(
    n: npt.NDArray[np.float64],
    r: npt.NDArray[np.float64],
    feasible: npt.NDArray[np.bool_],
    log_n: npt.NDArray[np.float64],
    log_r: npt.NDArray[np.float64],
) -> npt.NDArray[np.int64]:
    """The feasible candidate nearest to a point (one per decision) in natural logarithms of N and R."""
    square = (np.log(n) - log_n[..., None]) ** 2 + (np.log(r) - log_r[..., None]) ** 2
    return first_lowest(square, feasible)


def log_centre(n: npt.NDArray[np.float64], r: npt.NDArray[np.float64], feasible: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """The candidate nearest to the middle of the feasible ranges of log N and log R."""
    middle = []
    for values in (np.log(n), np.log(r)):
        low = np.where(feasible, values, np.inf).min(axis=-1, initial=np.inf)
        high = np.where(feasible, values, -np.inf).max(axis=-1, initial=-np.inf)
        middle.append((np.where(np.isfinite(low), low, 0.0) + np.where(np.isfinite(high), high, 0.0)) / 2)
    return nearest(n, r, feasible, middle[0], middle[1])


def projection(
    n: npt.NDArray[np.float64],
    r: npt.NDArray[np.float64],
    feasible: npt.NDArray[np.bool_],
    optimum: tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]],
    ranges: tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]],
) -> npt.NDArray[np.int64]:
    """Clip the continuous optimum (N*, R*, one per decision) into the observed ranges and take the nearest feasible candidate.

    ranges: lowest and highest N, lowest and highest R of each decision's group, decisions x 2. N* and R* may be 0 or infinite; -1 where
    they are NaN.
    """
    with np.errstate(divide="ignore"):
        log_n, log_r = (
            np.clip(np.log(star), np.log(span[..., 0]), np.log(span[..., 1])) for star, span in zip(optimum, ranges, strict=True)
        )
    known = ~(np.isnan(log_n) | np.isnan(log_r))
    return np.where(known, nearest(n, r, feasible, np.where(known, log_n, 0.0), np.where(known, log_r, 0.0)), -1)


def direct_choices(
    predicted: npt.NDArray[np.float64], cost: npt.NDArray[np.float64], present: npt.NDArray[np.bool_], budgets: npt.NDArray[np.float64]
) -> npt.NDArray[np.int64]:
    """In-sample direct selection: groups x budgets, the place of the chosen cell (-1: none is feasible).

    predicted and cost: groups x cells (say `solutions.predict(n, r)` and `layout.pad(cells.flops)`); present: which places hold a
    cell; budgets: groups x levels, of `budgets_of`. Two laws choose alike where their answers are equal.
    """
    feasible = present[:, None, :] & affordable(cost[:, None, :], budgets[:, :, None])
    return direct(np.broadcast_to(predicted[:, None, :], feasible.shape), feasible)
