"""Data of many fits, made ready once for the search of the exponents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from analyses.laws.axes import Axis, MeanPowerAxis, MomentAxis, PowerAxis
from analyses.laws.limits import checked_shapes, checked_weights, unit_of

if TYPE_CHECKING:
    import numpy.typing as npt


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """F fits of C cells; arrays that all fits share have one row."""

    n: Axis
    r: Axis
    y: npt.NDArray[np.float64]
    """Error minus its weighted mean, 0 in cells without weight: (F, C)."""
    mean: npt.NDArray[np.float64]
    """Weighted mean error: (F,)."""
    yy: npt.NDArray[np.float64]
    """Weighted sum of squares of `y`: (F,)."""
    w: npt.NDArray[np.float64]
    """Weights in units of `unit`: (F or 1, C)."""
    total: npt.NDArray[np.float64]
    """Their sum: (F,)."""
    unit: npt.NDArray[np.float64]
    """Near the largest weight, so that the size of weights does not matter; the same for fits that share exponents: (F,)."""

    def __len__(self) -> int:
        """Number of fits."""
        return len(self.y)

    def weights(self, rows: Any) -> npt.NDArray[np.float64]:
        """Weights of some fits (one row if all fits share them)."""
        return self.w if len(self.w) == 1 else self.w[rows]

    @classmethod
    def of(cls, n: Any, r: Any, y: npt.ArrayLike, w: npt.ArrayLike | None, groups: int = 1) -> Problem:
        """Check and prepare: n, r, y, w of shape (C,) or (F, C), n and r maybe `MomentAxis`; each `groups` rows share exponents.

        ValueError that names the array if its values are not finite (n, r: not positive; w: negative) in a cell with weight, or if the
        shapes do not agree.
        """
        target = np.atleast_2d(np.asarray(y, dtype=float))
        weights = np.ones((1, target.shape[1])) if w is None else np.atleast_2d(np.asarray(w, dtype=float))
        axes = {
            name: axis if isinstance(axis, MomentAxis) else np.atleast_2d(np.asarray(axis, dtype=float))
            for name, axis in (("n", n), ("r", r))
        }
        shapes = {"error": target.shape, "weights": weights.shape} | {name: _rows(axis.shape) for name, axis in axes.items()}
        fits = checked_shapes(shapes)[0]
        checked_weights(weights)
        kept = weights > 0
        _check("error", target, kept, positive=False)
        for name, axis in axes.items():
            if not isinstance(axis, MomentAxis):
                _check(name, axis, kept, positive=True)
        unit = np.ones(1) if w is None else unit_of(weights.reshape(-1, 1 if len(weights) == 1 else groups, weights.shape[1]), (1, 2))
        unit = unit if len(weights) == 1 else unit.repeat(groups)
        return cls._ready(axes, target, weights / unit[:, None], np.broadcast_to(unit, fits))

    @classmethod
    def _ready(cls, axes: dict[str, Any], y: npt.NDArray[np.float64], w: npt.NDArray[np.float64], unit: npt.NDArray[np.float64]) -> Problem:
        fits = len(unit)
        y = np.where(w > 0, y, 0.0)
        y = np.ascontiguousarray(np.broadcast_to(y, (fits, y.shape[1])))
        total = np.broadcast_to(_dot(w, np.ones_like(w)), fits)
        mean = _dot(y, np.broadcast_to(w, y.shape)) / np.where(total > 0, total, 1.0)
        centred = np.where(w > 0, y - mean[:, None], 0.0)
        flat = np.abs(centred).max(axis=1) <= 1e-14 * np.abs(y).max(axis=1)
        centred[flat] = 0.0
        made = {
            name: MeanPowerAxis(axis, fits) if isinstance(axis, MomentAxis) else PowerAxis(axis, w, fits) for name, axis in axes.items()
        }
        return cls(made["n"], made["r"], centred, mean, _dot(centred, centred * w), w, total, unit)


def _dot(a: npt.NDArray[np.float64], b: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Row by row: the same digits whatever else is in the batch."""
    return np.asarray((np.ascontiguousarray(a)[:, None, :] @ np.ascontiguousarray(b)[:, :, None])[:, 0, 0])


def _rows(shape: tuple[int, ...]) -> tuple[int, ...]:
    return shape if len(shape) == 2 else (1, *shape)


def _check(name: str, values: npt.NDArray[np.float64], kept: npt.NDArray[np.bool_], *, positive: bool) -> None:
    good = np.isfinite(values) & (values > 0) if positive else np.isfinite(values)
    if (kept & ~good).any():
        message = f"{name} must be {'positive and ' if positive else ''}finite in every cell with weight"
        raise ValueError(message)
