"""Laws that are sums of decaying columns, e + sum_j x_j exp(-sum_s shape_s X_s): their data and columns, in arrays.

Arrays are problems x groups x (columns or shapes) x cells. Groups of a problem share its shapes; each has its own amplitudes and floor.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from analyses.laws.limits import checked_shapes, checked_weights, unit_of
from analyses.laws.terms import scaled

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Terms:
    """Which shapes decay in which column, and along which axes (0 is log n, 1 is log r); a shape belongs to one column."""

    columns: tuple[tuple[int, ...], ...]
    axes: tuple[tuple[int, ...], ...]

    @property
    def owner(self) -> tuple[int, ...]:
        """Column of each shape."""
        return tuple(next(j for j, shapes in enumerate(self.columns) if s in shapes) for s in range(len(self.axes)))


SEPARABLE = Terms(columns=((0,), (1,)), axes=((0,), (1,)))
MULTIPLICATIVE = Terms(columns=((0, 1),), axes=((0,), (1,)))
COUPLED = Terms(columns=((0,), (1,), (2,)), axes=((0,), (1,), (0, 1)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Data:
    """What a law is fitted to: P problems of G groups of C cells."""

    x: Array
    """Axis of each shape, from 0 at its smallest in the group: (P, G, S, C)."""
    shift: Array
    """What was taken from it, (P, G, S)."""
    y: Array
    w: Array
    """Weights in units of `unit`, (P, G, C)."""
    root: Array
    """Square root of the weights, (P, G, C); 0 leaves a cell out."""
    total: Array
    """Sum of weights, at least a tiny number; (P, G)."""
    mean: Array
    """Weighted mean of y, (P, G)."""
    unit: Array
    """Near the largest weight of a problem, so that the size of weights does not matter; (P,)."""

    def take(self, rows: npt.NDArray[np.int64]) -> Data:
        """Some of the problems."""
        return Data(**{name: getattr(self, name)[rows] for name in self.__slots__})

    def without_last_shape(self) -> Data:
        """The same without the last shape."""
        return replace(self, x=self.x[..., :-1, :], shift=self.shift[..., :-1])

    def __len__(self) -> int:
        """Number of problems."""
        return len(self.y)


def data_of(terms: Terms, n: npt.ArrayLike, r: npt.ArrayLike, y: npt.ArrayLike, weights: npt.ArrayLike | None) -> Data:
    """Arrays (P, G, cells) of which some may have 1 problem or 1 group.

    ValueError where shapes do not agree, weights are negative or not finite, or a cell with weight has no positive n and r or no finite error.
    """
    n, r, y = (np.asarray(values, dtype=float) for values in (n, r, y))
    w = np.ones((1, 1, y.shape[-1])) if weights is None else np.asarray(weights, dtype=float)
    named = {"n": n, "r": r, "error": y, "weights": w}
    checked_shapes({name: values.shape for name, values in named.items()})
    checked_weights(w)
    n, r, y, w = np.broadcast_arrays(*named.values())
    used = w > 0
    if not (np.isfinite(y) & (n > 0) & (r > 0) & np.isfinite(n) & np.isfinite(r))[used].all():
        message = "every cell with weight needs a positive n, a positive r and a finite error"
        raise ValueError(message)
    unit = unit_of(w, (1, 2))
    w, y = w / unit[:, None, None], np.where(used, y, 0.0)
    logs = [np.log(np.where(used, axis, 1.0)) for axis in (n, r)]
    x = np.stack([sum((logs[axis] for axis in axes[1:]), start=logs[axes[0]]) for axes in terms.axes], axis=-2)
    shift = np.where(used[..., None, :], x, np.inf).min(axis=-1, initial=np.inf)
    shift = np.where(np.isfinite(shift), shift, 0.0)
    total = np.maximum(w.sum(axis=-1), np.finfo(float).tiny)
    return Data(
        x=np.where(used[..., None, :], x - shift[..., None], 0.0),
        shift=shift,
        y=y,
        w=w,
        root=np.sqrt(w),
        total=total,
        mean=(w * y).sum(axis=-1) / total,
        unit=unit,
    )


def columns_of(terms: Terms, z: Array) -> Array:
    """Columns (..., K, C) from the exponents z = shape * x (..., S, C)."""
    exponent = [sum((z[..., s, :] for s in shapes[1:]), start=z[..., shapes[0], :]) for shapes in terms.columns]
    return np.exp(-np.stack(exponent, axis=-2))


def physical(terms: Terms, amplitudes: Array, shapes: Array, shift: Array) -> Array:
    """Amplitudes on the axes as they were given: a column was exp(-shape (log axis - shift)); (P, G, K) from shapes (P, S)."""
    return np.stack(
        [scaled(amplitudes[..., j], sum(shapes[:, None, s] * shift[..., s] for s in members)) for j, members in enumerate(terms.columns)],
        axis=-1,
    )


def grid(bounds: tuple[float, float], points: int) -> Array:
    """Values of a shape from bound to bound, equally far apart in logarithm."""
    return np.exp(np.linspace(np.log(bounds[0]), np.log(bounds[1]), points)) if bounds[1] > bounds[0] else np.array([bounds[0]])


def mesh(values: Sequence[Array]) -> Array:
    """Every combination, (combinations, S)."""
    return np.stack([axis.ravel() for axis in np.meshgrid(*values, indexing="ij")], axis=-1)
