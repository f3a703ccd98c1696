"""What the cells of one group determine of a law, and what they leave open (rules of ours, the same for one fit and for many)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from analyses.laws.solutions import ZERO
from analyses.laws.terms import term

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

SAME_LEVEL = 1e-3
"""Values within this relative distance of the lowest of their level are one level: a lost answer moves the mean of R by less (ours)."""
ENOUGH_LEVELS = 3
"""Levels that an axis needs to tell amplitude, exponent and floor apart (two differences for A and alpha, and the floor)."""
CONSTANT = 1e-12
"""Errors that differ by less are one."""
TOGETHER = 0.999
"""Correlation of log N and log R from which the two axes count as one."""
EXPONENTS = {"alpha": ("a", "N"), "beta": ("b", "R"), "gamma": ("g", "P")}
"""Amplitude and axis of each exponent of a law that is a sum of powers."""
FITTED = "fitted"


def levels_of(values: npt.NDArray[np.float64]) -> int:
    """Distinct levels of an axis."""
    count, start = 0, -np.inf
    for value in np.sort(values).tolist():
        if value > start * (1 + SAME_LEVEL) or not count:
            count, start = count + 1, value
    return count


def parameters_of(exponents: int) -> int:
    """Parameters of a sum of so many powers and a floor."""
    return 1 + 2 * exponents


def vanishes(amplitude: npt.ArrayLike, exponent: npt.ArrayLike, lowest: npt.ArrayLike) -> npt.NDArray[np.bool_]:
    """Whether a term exceeds the error `ZERO` nowhere: it is largest at the lowest value of its axis."""
    return np.asarray(term(np.asarray(amplitude), np.asarray(lowest, dtype=float), np.asarray(exponent)) < ZERO)


def too_little(error: npt.NDArray[np.float64], levels: Mapping[str, int], k: int) -> str:
    """Why cells with these errors and levels by axis determine no fit of k parameters at all; empty where they do."""
    if not len(error):
        return "no cell with all that the law needs"
    if len(error) < k:
        return f"{len(error)} {'cell' if len(error) == 1 else 'cells'}, {k} parameters"
    if np.ptp(error) < CONSTANT:
        return "the error is constant"
    if max(levels.values()) < ENOUGH_LEVELS:
        return " and ".join(f"{counted(level)} of {axis}" for axis, level in levels.items())
    return ""


def open_powers(axes: Mapping[str, npt.NDArray[np.float64]], levels: Mapping[str, int], zero: Mapping[str, bool]) -> list[str]:
    """What a sum of powers leaves open, by exponent; `axes` and `levels` by axis, `zero` says which exponents have no amplitude."""
    notes = []
    for name, none in zero.items():
        amplitude, axis = EXPONENTS[name]
        called = f"{amplitude.upper()}_{axis.lower()}"
        if levels[axis] < ENOUGH_LEVELS:
            notes.append(f"{counted(levels[axis])} of {axis}: e_inf, {called} and {name} are {_how(levels[axis])}")
        elif none:
            notes.append(f"{called} = 0: {name} is not determined")
    return notes + together(axes, levels)


def open_shapes(axes: Mapping[str, npt.NDArray[np.float64]], levels: Mapping[str, int]) -> list[str]:
    """What any other law leaves open along each axis."""
    notes = [
        f"{counted(level)} of {axis}: the parameters along {axis} are {_how(level)}"
        for axis, level in levels.items()
        if level < ENOUGH_LEVELS
    ]
    return notes + together(axes, levels)


def together(axes: Mapping[str, npt.NDArray[np.float64]], levels: Mapping[str, int]) -> list[str]:
    """A note where N and R have levels enough and move together."""
    if min(levels["N"], levels["R"]) < ENOUGH_LEVELS:
        return []
    n, r = (np.log(axes[axis]) for axis in ("N", "R"))
    return ["N and R move together: their terms are not told apart"] if abs(np.corrcoef(n, r)[0, 1]) > TOGETHER else []


def at_bound(name: str, side: int) -> str:
    """How a status names an exponent at a bound; `side` is -1 or 1."""
    return f"{name} at {'upper' if side > 0 else 'lower'} bound"


def counted(level: int) -> str:
    """Such as one level, or 2 levels."""
    return "one level" if level == 1 else f"{level} levels"


def _how(level: int) -> str:
    return "not determined" if level == 1 else "one of many solutions"
