"""The status of one fit: what its cells do not determine, by the rules that fits of many groups follow too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analyses.laws.determined import (
    ENOUGH_LEVELS,
    EXPONENTS,
    FITTED,
    at_bound,
    levels_of,
    open_powers,
    open_shapes,
    too_little,
    vanishes,
)

if TYPE_CHECKING:
    from analyses.laws.fit import Fit

POWERS = frozenset({"separable", "bounded", "three-axis"})
"""Laws that are a sum of powers (of the error, or of its logit)."""


def lacking(fit: Fit) -> str:
    """Why the cells of a fit determine nothing; empty where they do."""
    return too_little(fit.error[fit.weights > 0], _levels(fit), fit.k)


def status_of(fit: Fit) -> str:
    """fitted, or why the cells determine no fit, what they leave open, shapes at bounds, and errors that are none."""
    if why := lacking(fit):
        return f"not determined: {why}"
    levels, zero = _levels(fit), _without_amplitude(fit) if fit.law in POWERS else {}
    notes = open_powers(fit.axes, levels, zero) if fit.law in POWERS else open_shapes(fit.axes, levels)
    unknown = {name for name, none in zero.items() if none or levels[EXPONENTS[name][1]] < ENOUGH_LEVELS}
    notes += [at_bound(name, 1 if side == "upper" else -1) for name, side in fit.at_bound.items() if name not in unknown]
    error = fit.error[fit.weights > 0]
    outside = int(((error < 0) | (error > 1)).sum())
    notes += [f"{outside} of {len(error)} errors are outside 0 to 1"] if outside else []
    return "; ".join(notes) or FITTED


def _levels(fit: Fit) -> dict[str, int]:
    return {axis: levels_of(values) for axis, values in fit.axes.items()}


def _without_amplitude(fit: Fit) -> dict[str, bool]:
    """Which exponents belong to a term that is nowhere more than nothing."""
    axes = {axis: values / unit for (axis, values), unit in zip(fit.axes.items(), fit.units, strict=True)}
    values = {name: float(value[0]) for name, value in fit.solution.parameters.items()}
    places = {name: EXPONENTS[name] for name in fit.solution.amplitude_of}
    return {name: bool(vanishes(values[amplitude], values[name], axes[axis].min())) for name, (amplitude, axis) in places.items()}
