"""Resources as columns of the design: a power of one number per cell, or the mean power over a cell's questions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

BLOCK = 1 << 20
"""Numbers of a moment axis that are computed at a time."""


@dataclass(frozen=True, slots=True, eq=False)
class MomentAxis:
    """A resource that differs between the questions of a cell: `axis ** -beta` is the mean of R^-beta over its records (B.8)."""

    values: npt.NDArray[np.float64]
    """Distinct values, cell after cell: (values,)."""
    counts: npt.NDArray[np.float64]
    """Records with each value: (values,), or (fits, values) where they differ between fits."""
    starts: npt.NDArray[np.int64]
    """Where each cell's values begin: (cells,)."""

    @classmethod
    def of(cls, cells: npt.ArrayLike, values: npt.ArrayLike, counts: npt.ArrayLike) -> MomentAxis:
        """From the histogram as rows: cell number (0, 1, ...), value, records (or fits x rows of records).

        ValueError where a cell has no records, a value is not positive or a count negative.
        """
        cell, value, count = np.asarray(cells, dtype=np.int64), np.asarray(values, dtype=float), np.asarray(counts, dtype=float)
        if not (np.isfinite(value).all() and (value > 0).all()):
            message = "values of a moment axis must be positive and finite"
            raise ValueError(message)
        if not (np.isfinite(count).all() and (count >= 0).all()):
            message = "counts of a moment axis must be finite and not negative"
            raise ValueError(message)
        if len(np.unique(cell)) != cell.max(initial=-1) + 1 or not len(cell):
            message = "every cell of a moment axis needs records"
            raise ValueError(message)
        order = np.lexsort((value, cell))
        cell, value, count = cell[order], value[order], count[..., order]
        new = np.ones(len(cell), dtype=bool)
        new[1:] = (cell[1:] != cell[:-1]) | (value[1:] != value[:-1])
        places = np.flatnonzero(new)
        cell, value, count = cell[places], value[places], np.add.reduceat(count, places, axis=-1)
        starts = np.searchsorted(cell, np.arange(cell[-1] + 1))
        axis = cls(value, np.ascontiguousarray(count), starts)
        if not (axis._totals() > 0).all():
            message = "every cell of a moment axis needs records"
            raise ValueError(message)
        return axis

    @property
    def mean(self) -> npt.NDArray[np.float64]:
        """Mean value of each cell."""
        return np.asarray(self**1.0)

    @property
    def shape(self) -> tuple[int, ...]:
        """(cells,) or (fits, cells)."""
        return (*self.counts.shape[:-1], len(self.starts))

    def __len__(self) -> int:
        """Number of cells."""
        return len(self.starts)

    def __truediv__(self, unit: float) -> MomentAxis:
        """In another unit."""
        return MomentAxis(self.values / unit, self.counts, self.starts)

    def __pow__(self, exponent: Any) -> npt.NDArray[np.float64]:
        """Mean power of each cell: (cells,), or (fits, cells) for exponents of shape (fits, 1)."""
        exponents = np.asarray(exponent, dtype=float)
        rows = np.exp(exponents.reshape(-1, 1) * np.log(self.values)) * self.counts
        mean = np.add.reduceat(rows, self.starts, axis=-1) / self._totals()
        return np.asarray(mean if exponents.ndim or self.counts.ndim == 2 else mean[0])

    def _totals(self) -> npt.NDArray[np.float64]:
        return np.add.reduceat(self.counts, self.starts, axis=-1)


class Axis(Protocol):
    """A resource of F fits, scaled so that its columns lie in (0, 1]."""

    shared: bool
    """The same for all fits."""
    unit: npt.NDArray[np.float64]
    """Log of the value at which a column is 1: (fits,)."""
    single: npt.NDArray[np.bool_]
    """Fits in which the cells with weight have one value only: (fits,)."""

    def grid(self, rows: npt.NDArray[np.int64], exponents: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Columns of some fits at common exponents: (fits or 1, exponents, cells)."""

    def columns(self, rows: npt.NDArray[np.int64], exponents: npt.NDArray[np.float64]) -> tuple[Any, Any, Any]:
        """Columns of the fits `rows`, each at its own exponent, and their first two derivatives by log exponent: (rows, cells)."""


class PowerAxis:
    """Values x to the power -exponent."""

    def __init__(self, x: npt.NDArray[np.float64], weights: npt.NDArray[np.float64], fits: int) -> None:
        """`x` and `weights` (fits or 1, cells); cells without weight may hold anything."""
        kept = weights > 0
        log = np.log(np.where(kept, x, 1.0))
        lowest = np.where(kept, log, np.inf).min(axis=1, keepdims=True)
        lowest = np.where(np.isfinite(lowest), lowest, 0.0)
        self.log = np.where(kept, log - lowest, 0.0)
        self.shared = len(self.log) == 1
        self.unit = np.broadcast_to(lowest[:, 0], fits)
        self.single = np.broadcast_to(self.log.max(axis=1) == 0, fits)

    def grid(self, rows: npt.NDArray[np.int64], exponents: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """See `Axis`."""
        log = self.log if self.shared else self.log[rows]
        return np.asarray(np.exp(-exponents[:, None] * log[:, None, :]))

    def columns(self, rows: npt.NDArray[np.int64], exponents: npt.NDArray[np.float64]) -> tuple[Any, Any, Any]:
        """See `Axis`."""
        power = (self.log if self.shared else self.log[rows]) * -exponents[:, None]
        column = np.exp(power)
        slope = power * column
        return column, slope, (1 + power) * slope


class MeanPowerAxis:
    """Means of powers over the questions of a cell."""

    def __init__(self, axis: MomentAxis, fits: int) -> None:
        """`axis` in units of the reference."""
        log = np.log(axis.values)
        self.log, self.starts = log - log.min(), axis.starts
        counts = np.atleast_2d(axis.counts)
        totals = np.add.reduceat(counts, axis.starts, axis=-1)
        lengths = np.diff(axis.starts, append=len(log))
        self.share = counts / np.repeat(totals, lengths, axis=-1)
        self.shared = len(self.share) == 1
        self.unit = np.full(fits, log.min())
        self.single = np.full(fits, self.log.max() == 0)

    def grid(self, rows: npt.NDArray[np.int64], exponents: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """See `Axis`."""
        share = self.share if self.shared else self.share[rows]
        powers = np.exp(-exponents[:, None] * self.log)
        return np.stack([np.add.reduceat(powers * one, self.starts, axis=-1) for one in share])

    def columns(self, rows: npt.NDArray[np.int64], exponents: npt.NDArray[np.float64]) -> tuple[Any, Any, Any]:
        """See `Axis`."""
        size = max(1, BLOCK // len(self.log))
        parts = [self._columns(rows[at : at + size], exponents[at : at + size]) for at in range(0, len(rows), size)]
        return tuple(np.concatenate(part) for part in zip(*parts, strict=True))  # type: ignore[return-value]

    def _columns(self, rows: npt.NDArray[np.int64], exponents: npt.NDArray[np.float64]) -> tuple[Any, Any, Any]:
        power = self.log * -exponents[:, None]
        terms = np.exp(power) * (self.share if self.shared else self.share[rows])
        slopes = power * terms
        return tuple(np.add.reduceat(one, self.starts, axis=-1) for one in (terms, slopes, (1 + power) * slopes))  # type: ignore[return-value]
