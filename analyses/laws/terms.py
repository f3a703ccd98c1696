"""Terms of laws, an amplitude times a power of a resource, also where the power alone is beyond the range of floats."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from analyses.laws.axes import MomentAxis


def term(amplitude: Any, axis: Any, exponent: Any) -> Any:
    """amplitude * axis ** -exponent; an axis may be a `MomentAxis`."""
    with np.errstate(over="ignore", invalid="ignore"):
        value = np.asarray(amplitude * axis**-exponent)
    if isinstance(axis, MomentAxis) or np.isfinite(value).all():
        return value
    with np.errstate(all="ignore"):
        return np.where(np.isfinite(value), value, np.exp(np.log(amplitude) - exponent * np.log(axis)))


def in_units(amplitude: float, unit: float, exponent: float) -> float:
    """amplitude * unit ** exponent: an amplitude at the reference `unit` on the axis as it is; infinity where that is no float."""
    try:
        return amplitude * float(unit) ** float(exponent) if amplitude else 0.0
    except OverflowError:
        return math.inf
