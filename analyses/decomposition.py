"""How much of the spread of a two-way table each factor accounts for, whatever cells are missing (separable-law paper, C.5, Eq. 19)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

INDEPENDENT = 1e-10
"""Directions with a relative singular value below this are none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """Shares of variance in a table, or in each of many; NaN where nothing varies."""

    r2_first: npt.NDArray[np.float64]
    """R2 of the first factor alone."""
    r2_second: npt.NDArray[np.float64]
    r2_both: npt.NDArray[np.float64]
    """R2 of both factors together, without interaction."""

    @property
    def first(self) -> npt.NDArray[np.float64]:
        """V of the first factor: its share averaged over both orders of entry (Eq. 19)."""
        return 0.5 * (self.r2_first + (self.r2_both - self.r2_second))

    @property
    def second(self) -> npt.NDArray[np.float64]:
        """V of the second factor (Eq. 19)."""
        return 0.5 * (self.r2_second + (self.r2_both - self.r2_first))


def two_factor_shares(values: npt.ArrayLike, first: npt.ArrayLike, second: npt.ArrayLike) -> Shares:
    """Variance shares of two factors by least squares on indicator columns, every cell of the table with equal weight.

    values: (cells,) or (tables, cells); first, second: level of each cell on the two factors, of any kind. Missing cells are simply
    not given. The answers have the shape of `values` without its last axis.
    """
    table = np.asarray(values, dtype=float)
    one, two = (np.unique(np.asarray(levels), return_inverse=True)[1] for levels in (first, second))
    centred = table - table.mean(axis=-1, keepdims=True)
    total = (centred**2).sum(axis=-1)
    flat = np.ptp(table, axis=-1) == 0
    indicators = [_indicators(one), _indicators(two), np.hstack([_indicators(one), _indicators(two)])]
    with np.errstate(invalid="ignore", divide="ignore"):
        r2 = [np.where(flat, np.nan, ((centred @ _span(columns)) ** 2).sum(axis=-1) / total) for columns in indicators]
    return Shares(r2_first=r2[0], r2_second=r2[1], r2_both=r2[2])


def parameters_of(first: npt.ArrayLike, second: npt.ArrayLike) -> int:
    """Numbers that indicators of both factors and a mean may choose: values no more than these are explained whatever they are."""
    columns = [_indicators(np.unique(np.asarray(levels), return_inverse=True)[1]) for levels in (first, second)]
    return 1 + int(_span(np.hstack(columns)).shape[1])


def _indicators(codes: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    return np.eye(int(codes.max(initial=0)) + 1)[codes]


def _span(columns: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """An orthonormal basis of what indicator columns explain beside the mean."""
    centred = columns - columns.mean(axis=0)
    u, singular, _ = np.linalg.svd(centred, full_matrices=False)
    basis: npt.NDArray[np.float64] = u[:, singular > INDEPENDENT * max(1.0, float(singular.max(initial=0.0)))]
    return basis
