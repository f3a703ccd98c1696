"""Sums, means, slopes and ranks by group, over NumPy columns in a fixed order (so the numbers never depend on threads)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

DECIMALS = 9
"""Every comparison with a cutoff looks at the value rounded to nine decimals (DEFINITIONS, Regime)."""


class Factor(NamedTuple):
    """A text column as whole numbers."""

    labels: list[str | None]
    """Distinct values in alphabetical order, null last."""
    codes: npt.NDArray[np.int64]


def factorise(column: npt.NDArray[np.object_] | np.ma.MaskedArray[tuple[int, ...], np.dtype[np.object_]]) -> Factor:
    """Number the distinct values of a text column that may hold nulls."""
    missing = np.array(np.ma.getmaskarray(column))
    values = np.where(missing, "", np.ma.getdata(column)).astype(str)
    present, codes = np.unique(values[~missing], return_inverse=True)
    numbers = np.full(len(values), len(present), dtype=np.int64)
    numbers[~missing] = codes
    labels: list[str | None] = [str(label) for label in present]
    return Factor([*labels, None] if missing.any() else labels, numbers)


def floats(column: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """A numeric column with NaN for null."""
    return np.ma.filled(np.ma.asarray(column, dtype=float), np.nan)


def mean_by(group: npt.NDArray[np.int64], values: npt.NDArray[np.float64], size: int) -> npt.NDArray[np.float64]:
    """Mean of the values that are not NaN in each group; NaN where there is none."""
    known = ~np.isnan(values)
    total = np.bincount(group[known], weights=values[known], minlength=size)
    count = np.bincount(group[known], minlength=size)
    with np.errstate(invalid="ignore"):
        return np.asarray(total / count, dtype=np.float64)


def spread_by(group: npt.NDArray[np.int64], values: npt.NDArray[np.float64], size: int) -> npt.NDArray[np.float64]:
    """Standard deviation (over n) of the values that are not NaN in each group."""
    means = mean_by(group, values, size)
    return np.asarray(np.sqrt(mean_by(group, (values - means[group]) ** 2, size)))


def slope_by(group: npt.NDArray[np.int64], x: npt.NDArray[np.float64], y: npt.NDArray[np.float64], size: int) -> npt.NDArray[np.float64]:
    """Slope of the least squares line of y on x in each group; NaN where x does not vary."""
    known = ~(np.isnan(x) | np.isnan(y))
    group, x, y = group[known], x[known], y[known]
    x_off = x - mean_by(group, x, size)[group]
    y_off = y - mean_by(group, y, size)[group]
    varies = spread_of(group, x, size) > 0
    sxy = np.bincount(group, weights=x_off * y_off, minlength=size)
    sxx = np.bincount(group, weights=x_off * x_off, minlength=size)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(varies, sxy / sxx, np.nan), dtype=np.float64)


def spread_of(group: npt.NDArray[np.int64], values: npt.NDArray[np.float64], size: int) -> npt.NDArray[np.float64]:
    """Largest minus smallest value of each group; -inf where it is empty."""
    low, high = np.full(size, np.inf), np.full(size, -np.inf)
    np.minimum.at(low, group, values)
    np.maximum.at(high, group, values)
    return np.asarray(high - low, dtype=np.float64)


def distinct_by(
    group: npt.NDArray[np.int64], member: npt.NDArray[np.int64], values: npt.NDArray[np.float64], size: int
) -> npt.NDArray[np.int64]:
    """How many different members of a small set of values each group has, NaN aside; `member` says which value a row has."""
    distinct, codes = np.unique(values, return_inverse=True)
    known = ~np.isnan(values)[member]
    width = max(len(distinct), 1)
    seen = np.zeros(size * width, dtype=bool)
    seen[group[known] * width + codes[member[known]]] = True
    return np.asarray(seen.reshape(size, width).sum(axis=1))


def quartile_by(group: npt.NDArray[np.int64], values: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Quartile 1..4 of each value in its group by midrank, exact ties together.

    quartile = 1 + floor(4 (m - 0.5) / n) with midrank m = rank + (ties - 1)/2, in whole numbers:
    1 + (4 rank + 2 ties - 4) // n, so that no rounding can move a value.
    """
    order = np.lexsort((values, group))
    g, v = group[order], values[order]
    position = np.arange(len(g))
    new_group = np.r_[True, g[1:] != g[:-1]] if len(g) else np.zeros(0, dtype=bool)
    new_value = np.r_[True, (g[1:] != g[:-1]) | (v[1:] != v[:-1])] if len(g) else new_group
    group_run, value_run = np.cumsum(new_group) - 1, np.cumsum(new_value) - 1
    n = np.bincount(group_run)[group_run] if len(g) else position
    ties = np.bincount(value_run)[value_run] if len(g) else position
    rank = position[new_value][value_run] - position[new_group][group_run] + 1
    quartiles = np.empty(len(g), dtype=np.int64)
    quartiles[order] = 1 + (4 * rank + 2 * ties - 4) // n if len(g) else 0
    return quartiles


def position_by(group: npt.NDArray[np.int64], values: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """Position, from 0, of each value in the sorted order of its group."""
    order = np.lexsort((values, group))
    g = group[order]
    start = np.r_[True, g[1:] != g[:-1]] if len(g) else np.zeros(0, dtype=bool)
    place = np.arange(len(g))
    positions = np.empty(len(g), dtype=np.int64)
    positions[order] = place - place[start][np.cumsum(start) - 1] if len(g) else 0
    return positions


def below(values: npt.NDArray[np.float64], cutoff: float) -> npt.NDArray[np.bool_]:
    """Whether a value, rounded to nine decimals, is below a cutoff; false where it is not known."""
    return np.round(values, DECIMALS) < cutoff


def above(values: npt.NDArray[np.float64], cutoff: float) -> npt.NDArray[np.bool_]:
    """Whether a value, rounded to nine decimals, is above a cutoff; false where it is not known."""
    return np.round(values, DECIMALS) > cutoff


def within(values: npt.NDArray[np.float64], margin: float) -> npt.NDArray[np.bool_]:
    """Whether the size of a value, rounded to nine decimals, is at most a margin; false where it is not known."""
    return np.abs(np.round(values, DECIMALS)) <= margin
