"""What people give to `fit`: checked value by value, so that an error says where it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from analyses.laws.axes import MomentAxis

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt


class Cells(NamedTuple):
    """The cells of one group."""

    axes: list[Any]
    """Arrays, or `MomentAxis` as they came."""
    error: npt.NDArray[np.float64]
    weights: npt.NDArray[np.float64]


def cells_of(axes: Mapping[str, npt.ArrayLike | MomentAxis], error: npt.ArrayLike, weights: npt.ArrayLike | None) -> Cells:
    """Axes by name, errors and weights (default: 1) as arrays (cells,).

    ValueError that names the argument, and the place in it, for lengths that differ, weights that are negative or not finite, no weight
    at all, axes that are not positive and finite, and errors that are not finite. What a cell without weight holds does not matter.
    """
    ready = {name: values if isinstance(values, MomentAxis) else np.asarray(values, dtype=float) for name, values in axes.items()}
    y = np.asarray(error, dtype=float)
    w = np.ones_like(y) if weights is None else np.asarray(weights, dtype=float)
    _same_length({**ready, "error": y, **({} if weights is None else {"weights": w})})
    _each("weights", w, np.isfinite(w) & (w >= 0), "a finite number that is not negative")
    used = w > 0
    if not used.any():
        message = "no cell has a weight" if len(w) else "there are no cells"
        raise ValueError(message)
    for name, values in ready.items():
        if not isinstance(values, MomentAxis):
            _each(name, values, np.isfinite(values) & (values > 0) | ~used, "a positive number (weight 0 leaves a cell out)")
    _each("error", y, np.isfinite(y) | ~used, "a finite number (weight 0 leaves a cell out)")
    return Cells(list(ready.values()), y, w)


def _same_length(arrays: Mapping[str, npt.NDArray[np.float64] | MomentAxis]) -> None:
    for name, values in arrays.items():
        if len(values.shape) != 1:
            message = f"{name} has shape {values.shape}: expected one value per cell of one group (fit_many takes many groups)"
            raise ValueError(message)
    if len({len(values) for values in arrays.values()}) > 1:
        (first, values), *others = arrays.items()
        message = f"{first} has {len(values)} values, " + ", ".join(f"{name} {len(other)}" for name, other in others)
        raise ValueError(message)


def _each(name: str, values: npt.NDArray[np.float64], fine: npt.NDArray[np.bool_], expected: str) -> None:
    if not fine.all():
        place = int(np.argmin(fine))
        others = int((~fine).sum()) - 1
        message = f"{name}[{place}] is {values[place]:g}{f' ({others} more like it)' if others else ''}: expected {expected}"
        raise ValueError(message)
