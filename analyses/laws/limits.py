"""What laws take: ranges of exponents, references and weights, checked in one place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

EXPONENTS = (1e-3, 100.0)
"""Within which an exponent may be searched (ours): below, a tenfold axis changes a term by 0.2 %; above, powers leave the range of floats."""


def checked(**bounds: tuple[float, float]) -> None:
    """ValueError where bounds are not in order and within `EXPONENTS`."""
    lowest, highest = EXPONENTS
    for name, (low, high) in bounds.items():
        if not lowest <= low <= high <= highest:
            message = f"bounds of {name} must be in order and within {lowest:g} and {highest:g}, not {low:g}, {high:g}"
            raise ValueError(message)


def checked_reference(reference: Sequence[float] | None) -> None:
    """ValueError where a reference is not positive and finite."""
    if reference is not None and not (np.isfinite(reference).all() and min(reference) > 0):
        message = f"a reference must be positive and finite, not {', '.join(f'{one:g}' for one in reference)}"
        raise ValueError(message)


def checked_weights(weights: npt.NDArray[np.float64]) -> None:
    """ValueError where weights are not finite or negative."""
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        message = "weights must be finite and not negative"
        raise ValueError(message)


def checked_shapes(shapes: dict[str, tuple[int, ...]]) -> tuple[int, ...]:
    """The shape (..., cells) that arrays broadcast to; ValueError that lists them where they do not agree, or where there are no cells."""
    try:
        common = np.broadcast_shapes(*shapes.values())
    except ValueError:
        common = None
    if common is None or len({shape[-1] for shape in shapes.values()}) > 1:
        message = "shapes do not agree: " + ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        raise ValueError(message)
    if not common[-1]:
        message = "there are no cells"
        raise ValueError(message)
    return common


def unit_of(weights: npt.NDArray[np.float64], axis: tuple[int, ...]) -> npt.NDArray[np.float64]:
    """A power of four near the largest weight along `axis` (1 where all are 0): dividing by it and its root is exact in floats."""
    largest = weights.max(axis=axis, initial=0.0)
    _, exponent = np.frexp(np.where(largest > 0, largest, 0.5))
    return np.asarray(np.ldexp(1.0, exponent - exponent % 2))
