"""Terms of laws, an amplitude times a power of a resource, also where the power alone is beyond the range of floats."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from analyses.laws.axes import MomentAxis


def term(amplitude: Any, axis: Any, exponent: Any) -> Any:
    """The amplitude times axis ** -exponent; an axis may be a `MomentAxis`."""
    with np.errstate(all="ignore"):
        value = np.asarray(amplitude * (axis if isinstance(axis, MomentAxis) else np.asarray(axis, dtype=float)) ** -exponent)
    if isinstance(axis, MomentAxis) or np.isfinite(value).all():
        return value
    with np.errstate(all="ignore"):
        return np.where(np.isfinite(value), value, np.exp(np.log(amplitude) - exponent * np.log(axis)))


def scaled(amplitude: Any, log: Any) -> Any:
    """The amplitude times exp(log), 0 where the amplitude is; NaN where that is no float."""
    with np.errstate(all="ignore"):
        value = amplitude * np.exp(log)
    return np.where(amplitude == 0, 0.0, np.where(np.isfinite(value) & (value != 0), value, np.nan))


def all_in_units(amplitudes: Any, unit: float, exponents: Any) -> Any:
    """`in_units` of arrays, but NaN where that is no float; an exponent that is NaN counts as 0."""
    with np.errstate(all="ignore"):
        value = amplitudes * unit ** np.nan_to_num(exponents)
    return np.where(np.isfinite(value), value, np.nan)


def in_units(amplitude: float, unit: float, exponent: float) -> float:
    """An amplitude at the reference `unit` in units of the axis, amplitude * unit ** exponent; infinity where that is no float."""
    try:
        return amplitude * float(unit) ** float(exponent) if amplitude else 0.0
    except OverflowError:
        return math.inf
