"""One fit per group of cells: padding, what is identified, parameters, bounds hit and measures of fit. No database."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from analyses.laws import criteria
from analyses.laws.determined import (
    CONSTANT,
    ENOUGH_LEVELS,
    EXPONENTS,
    FITTED,
    SAME_LEVEL,
    at_bound,
    levels_of,
    open_powers,
    parameters_of,
    too_little,
    vanishes,
)
from analyses.laws.terms import all_in_units
from analyses.notes import Note, merged

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from analyses.cells import Groups
    from analyses.laws import Solutions
    from analyses.laws.separable import SeparableLaw

__all__ = ["CONSTANT", "EXPONENTS", "SAME_LEVEL", "GroupFits", "Padded", "Points", "Solved", "by_law", "fit_groups", "pad"]

BEYOND = "its amplitudes at the reference are too large or too small for numbers: the exponents are too steep so far from it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Points:
    """Cells as points of fits. Arrays have one entry per cell."""

    groups: Groups
    axes: Mapping[str, npt.NDArray[np.float64]]
    """N and R, or N, R and P, each divided by its reference; what is not kept may hold NaN."""
    reference: Mapping[str, float]
    """What each axis was divided by: N in billions, R in tokens, P in px."""
    error: npt.NDArray[np.float64]
    weights: npt.NDArray[np.float64]
    keep: npt.NDArray[np.bool_]
    lacks: tuple[str, ...] = ()
    """What cells of each group lack that are not kept, for its status; empty where nobody says."""

    def members(self, group: int) -> npt.NDArray[np.int64]:
        """Kept cells of a group."""
        return np.flatnonzero((self.groups.code == group) & self.keep)

    def only(self, keep: npt.NDArray[np.bool_]) -> Points:
        """The same points of which only some cells are kept."""
        return replace(self, keep=self.keep & keep)


@dataclass(frozen=True, slots=True, kw_only=True)
class Padded:
    """Groups of different sizes as arrays groups x cells; a place without a cell has weight 0."""

    points: Points
    cells: npt.NDArray[np.int64]
    """Cell of each place (cell 0 where there is none)."""
    present: npt.NDArray[np.bool_]
    withheld: npt.NDArray[np.bool_] | None = None
    """Places whose cells are predicted but not fitted."""

    def take(self, values: npt.NDArray[Any], fill: float) -> npt.NDArray[np.float64]:
        """Values of cells in their places."""
        return np.where(self.present, values[self.cells], fill)

    def axis(self, name: str) -> npt.NDArray[np.float64]:
        """An axis in its places, 1 where there is no cell."""
        return self.take(self.points.axes[name], 1.0)

    @property
    def error(self) -> npt.NDArray[np.float64]:
        """Observed errors, one half where there is no cell."""
        return self.take(self.points.error, 0.5)

    @property
    def weights(self) -> npt.NDArray[np.float64]:
        """Weights, 0 where there is no cell or it is withheld."""
        weights = self.take(self.points.weights, 0.0)
        return weights if self.withheld is None else np.where(self.withheld, 0.0, weights)


@dataclass(frozen=True, slots=True, kw_only=True)
class Solved:
    """Fits of padded groups with their predictions, groups x cells."""

    solutions: Solutions
    predicted: npt.NDArray[np.float64]


class Fitter(Protocol):
    """What fits padded groups."""

    def __call__(self, padded: Padded) -> Solved:
        """Fit every group."""


def by_law(law: SeparableLaw) -> Fitter:
    """The fitter of a law in N and R, each group on its own."""

    def fit(padded: Padded) -> Solved:
        n, r = padded.axis("N"), padded.axis("R")
        solutions = law.fit_many(n, r, padded.error, padded.weights)
        return Solved(solutions=solutions, predicted=solutions.predict(n, r))

    return fit


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupFits:
    """Fits of all groups. Arrays have one entry per group, NaN where nothing was fitted."""

    law: str
    groups: Groups
    n: npt.NDArray[np.int64]
    """Kept cells."""
    fitted: npt.NDArray[np.bool_]
    status: list[str]
    """fitted, what stands at a bound, what is not determined, or why there is no fit."""
    k: npt.NDArray[np.int64]
    """Free parameters that the levels of the group can tell apart."""
    parameters: dict[str, npt.NDArray[np.float64]]
    """e, a, alpha, b, beta (and g, gamma), and A, B (and G) in the units of the axes; NaN also where the group does not determine them."""
    bound: dict[str, npt.NDArray[np.int64]]
    """-1, 0 or 1 for each exponent: at its lower bound, inside (or not determined), at its upper bound."""
    determined: dict[str, npt.NDArray[np.bool_]]
    """Whether the group determines each exponent at all."""
    span: npt.NDArray[np.float64]
    """Largest over smallest R."""
    predicted: npt.NDArray[np.float64]
    """Of each cell."""
    residual: npt.NDArray[np.float64]
    """Observed minus predicted error of each cell."""
    sse: npt.NDArray[np.float64]
    """Weighted, as r2 and bic."""
    r2: npt.NDArray[np.float64]
    bic: npt.NDArray[np.float64]
    warnings: list[str] = field(default_factory=list)

    @property
    def used(self) -> npt.NDArray[np.bool_]:
        """Cells of fitted groups."""
        return ~np.isnan(self.predicted)

    def interior(self, exponent: str) -> npt.NDArray[np.bool_]:
        """Groups whose exponent is determined and inside its range."""
        return np.asarray(self.determined[exponent] & (self.bound[exponent] == 0))


def fit_groups(points: Points, fitter: Fitter, *, names: Sequence[str] = ("alpha", "beta")) -> GroupFits:
    """Fit every group that can be fitted; for the others the status says why not.

    A group is not fitted with fewer cells than parameters, a constant error, or fewer than three levels on every axis. With one
    level on an axis its amplitude and exponent and the floor are not determined: they are left empty. With two levels they are
    one of many solutions with the same predictions: they are kept and the status says so.
    """
    count = len(points.groups)
    members = [points.members(group) for group in range(count)]
    axes = {EXPONENTS[name][1]: points.axes[EXPONENTS[name][1]] for name in names}
    levels = {axis: np.array([levels_of(values[rows]) for rows in members], dtype=np.int64) for axis, values in axes.items()}
    unfit = [
        too_little(points.error[rows], {axis: int(level[group]) for axis, level in levels.items()}, parameters_of(len(names)))
        for group, rows in enumerate(members)
    ]
    fitted = np.array([not why for why in unfit], dtype=bool)
    padded = pad(points, [rows for rows, fine in zip(members, fitted, strict=True) if fine])
    found = _spread(padded, fitter, fitted, names, len(points.error))
    for group in np.flatnonzero(fitted).tolist():
        if not np.isfinite(found.predicted[members[group]]).all():
            unfit[group], fitted[group] = BEYOND, False
            found.forget(group, members[group])
    determined = {name: fitted & (levels[EXPONENTS[name][1]] >= ENOUGH_LEVELS) & ~found.zero[name] for name in names}
    bound = {name: np.where(determined[name], found.bound[name], 0) for name in names}
    parameters = found.parameters
    for name in names:
        amplitude, axis = EXPONENTS[name]
        flat = levels[axis] <= 1
        parameters[name][found.zero[name] | flat] = np.nan
        parameters[amplitude][flat] = np.nan
        parameters["e"][flat] = np.nan
        parameters[amplitude.upper()] = all_in_units(parameters[amplitude], points.reference[axis], parameters[name])
    capital = {EXPONENTS[name][0]: EXPONENTS[name][0].upper() for name in names}
    beyond = {capital[name]: np.isnan(parameters[capital[name]]) & ~np.isnan(parameters[name]) for name in capital}
    k = np.full(count, parameters_of(len(names))) - np.sum([np.clip(ENOUGH_LEVELS - level, 0, 2) for level in levels.values()], axis=0)
    status, notes = [], []
    for group, rows in enumerate(members):
        open_ = (
            open_powers(
                {axis: values[rows] for axis, values in axes.items()},
                {axis: int(level[group]) for axis, level in levels.items()},
                {name: bool(found.zero[name][group]) for name in names},
            )
            if fitted[group]
            else []
        )
        open_ += [f"{name} is too large or too small for a number" for name in beyond if fitted[group] and beyond[name][group]]
        sides = {name: int(bound[name][group]) for name in names}
        one = _Said(name=_named(points.groups, group), unfit=unfit[group], open=open_, sides=sides, lacks=points.lacks[group : group + 1])
        status.append(one.status)
        notes += one.notes(len(rows), parameters_of(len(names)))
    residual = points.error - found.predicted
    measures = [_measures(points, rows, found.predicted, int(k[group])) for group, rows in enumerate(members)]
    sse, r2, bic = (np.where(fitted, [one[place] for one in measures], np.nan) for place in range(3))
    return GroupFits(
        law=found.law,
        groups=points.groups,
        n=np.array([len(rows) for rows in members], dtype=np.int64),
        fitted=fitted,
        status=status,
        k=k,
        parameters=parameters,
        bound=bound,
        determined=determined,
        span=np.array([_span(points.axes["R"][rows]) for rows in members]),
        predicted=found.predicted,
        residual=residual,
        sse=sse,
        r2=r2,
        bic=bic,
        warnings=merged(notes, count),
    )


def pad(points: Points, members: Sequence[npt.NDArray[np.int64]]) -> Padded:
    """Put the cells of groups into rows of equal length."""
    width = max((len(rows) for rows in members), default=0)
    cells = np.zeros((len(members), width), dtype=np.int64)
    present = np.zeros((len(members), width), dtype=bool)
    for place, rows in enumerate(members):
        cells[place, : len(rows)], present[place, : len(rows)] = rows, True
    return Padded(points=points, cells=cells, present=present)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """Solutions in the places of their groups."""

    law: str
    parameters: dict[str, npt.NDArray[np.float64]]
    bound: dict[str, npt.NDArray[np.int64]]
    zero: dict[str, npt.NDArray[np.bool_]]
    predicted: npt.NDArray[np.float64]

    def forget(self, group: int, cells: npt.NDArray[np.int64]) -> None:
        """Leave a group without numbers."""
        for values in self.parameters.values():
            values[group] = np.nan
        for sides in self.bound.values():
            sides[group] = 0
        self.predicted[cells] = np.nan


def _spread(padded: Padded, fitter: Fitter, fitted: npt.NDArray[np.bool_], names: Sequence[str], cells: int) -> _Found:
    """Fit, and put what comes back where its groups and cells are."""
    wanted = ("e", *(part for name in names for part in (EXPONENTS[name][0], name)))
    parameters = {name: np.full(len(fitted), np.nan) for name in wanted}
    bound = {name: np.zeros(len(fitted), dtype=np.int64) for name in names}
    zero = {name: np.zeros(len(fitted), dtype=bool) for name in names}
    predicted = np.full(cells, np.nan)
    if not fitted.any():
        return _Found(law="", parameters=parameters, bound=bound, zero=zero, predicted=predicted)
    solved = fitter(padded)
    for name in wanted:
        parameters[name][fitted] = solved.solutions.parameters[name]
    for name in names:
        amplitude, axis = EXPONENTS[name]
        lowest = np.where(padded.present, padded.axis(axis), np.inf).min(axis=1)
        bound[name][fitted] = solved.solutions.at_bound(name)
        zero[name][fitted] = vanishes(solved.solutions.parameters[amplitude], solved.solutions.parameters[name], lowest)
    predicted[padded.cells[padded.present]] = solved.predicted[padded.present]
    return _Found(law=solved.solutions.law, parameters=parameters, bound=bound, zero=zero, predicted=predicted)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Said:
    """What there is to say of a group."""

    name: str
    unfit: str
    """Why it is not fitted; empty where it is."""
    open: list[str]
    """What it does not determine."""
    sides: dict[str, int]
    """The bound of each exponent: -1, 0 or 1."""
    lacks: tuple[str, ...]
    """What its other cells lack."""

    @property
    def status(self) -> str:
        """All of it."""
        bounds = [at_bound(name, side) for name, side in self.sides.items() if side]
        said = [f"not fitted: {self.unfit}"] if self.unfit else [*self.open, *bounds] or [FITTED]
        return "; ".join([*said, *(text for text in self.lacks if text)])

    def notes(self, cells: int, k: int) -> list[Note]:
        """What deserves a warning. Of a group without cells, what its cells lack is warned of elsewhere."""
        if not self.unfit:
            return [Note(self.name, text) for text in self.open]
        if not cells and any(self.lacks):
            return []
        kind = f"not fitted: fewer cells than the {k} parameters" if 0 < cells < k else ""
        return [Note(self.name, f"not fitted: {self.unfit}", kind)]


def _named(groups: Groups, group: int) -> str:
    return groups.name(group) or "all cells"


def _span(values: npt.NDArray[np.float64]) -> float:
    return float(values.max() / values.min()) if len(values) else float("nan")


def _measures(points: Points, rows: npt.NDArray[np.int64], predicted: npt.NDArray[np.float64], k: int) -> tuple[float, float, float]:
    """SSE, R2 and BIC of a group."""
    if not len(rows):
        return (float("nan"),) * 3
    error, weights = points.error[rows], points.weights[rows]
    sse = float((weights * (error - predicted[rows]) ** 2).sum())
    return sse, criteria.r2(error, predicted[rows], weights), float(criteria.bic(sse, len(rows), k))
