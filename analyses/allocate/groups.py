"""The closed form for every group: which laws enter, where it does not hold, and how its optimum lies to the cells there are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from analyses.choices import direct_choices
from analyses.cost.paths import PERCENTILES, percentile_budgets
from analyses.laws.allocation import DEGENERATE, Allocation, Elasticities, allocate, elasticities
from analyses.laws.cost import CostLaw, fit_cost
from analyses.laws.separable import separable
from analyses.notes import Note, merged

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from analyses.cells import CellStudy
    from analyses.law.fits import GroupFits

    Array = npt.NDArray[np.float64]

SOLVED = "solved"
UNDETERMINED = "undetermined"
TERMS = 5
"""Parameters that a group with enough levels on both axes tells apart."""
TOGETHER = "N and R move together"
"""How the status of a fit says that its two terms are not told apart."""
WITHIN = 1e-12
"""An optimum this near to the end of a range, relative to it, is inside."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BestCell:
    """The cell of lowest predicted error that a budget affords (direct selection, 5.2)."""

    model: str
    input_size: float
    """NaN where it is not stated."""
    N: float
    R: float
    cost: float
    predicted: float
    error: float
    """Measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupAllocation:
    """Laws, budgets and optima of one group; optima are NaN unless the status is `solved`."""

    group: int
    name: str
    family: str | None
    """Families of its cells; None where unknown."""
    parameters: dict[str, float]
    """e, a, alpha, b, beta on normalised axes; A and B in physical ones (Eq. 22)."""
    bound: dict[str, int]
    """-1, 0 or 1 for alpha and beta."""
    cost_law: CostLaw
    reference: tuple[float, float]
    budgets: Array
    """FLOP per answer."""
    percentiles: tuple[float | None, ...]
    """Percentiles of the group's cell costs that the budgets are; None for the user's own."""
    best: tuple[BestCell | None, ...]
    """What each budget affords; None where it affords no cell, or the group has no fit."""
    cost_range: tuple[float, float]
    """Of its cells; NaN where none has a cost."""
    n_range: tuple[float, float]
    r_range: tuple[float, float]
    fitted: bool
    """Whether the performance law is fitted."""
    law_status: str
    """What that fit says."""
    status: str
    """solved, or why there is no optimum."""

    @property
    def solved(self) -> bool:
        """Whether the closed form holds."""
        return self.status == SOLVED

    @property
    def conditional(self) -> bool | None:
        """Whether an exponent at its bound makes the answer that of the box; None without a fit."""
        return any(self.bound.values()) if self.fitted else None

    @property
    def rates(self) -> Elasticities:
        """Elasticities of the optimum: d log N*/d log C and d log R*/d log C (Eq. 35)."""
        law = self.cost_law
        alpha, beta = (self.parameters[name] if self.solved else np.nan for name in ("alpha", "beta"))
        return elasticities(alpha, beta, law.p, law.q)

    def at(self, budgets: Array) -> Allocation:
        """The optimum at each budget (Eq. 26)."""
        if not self.solved:
            return Allocation(np.full(len(budgets), np.nan), np.full(len(budgets), np.nan))
        values, law = self.parameters, self.cost_law
        return allocate(values["A"], values["alpha"], values["B"], values["beta"], law.kappa, law.p, law.q, budgets)

    def predicted(self, optimum: Allocation) -> Array:
        """Error that the performance law predicts there."""
        n, r = optimum.N / self.reference[0], optimum.R / self.reference[1]
        return np.asarray(separable(n, r, *(self.parameters[name] for name in ("e", "a", "alpha", "b", "beta"))))


def group_allocations(
    study: CellStudy, fits: GroupFits, cost: Array, *, scope: Literal["pooled", "series"], budgets: Sequence[float]
) -> tuple[list[GroupAllocation], list[str]]:
    """Every group, with a warning for each whose optimum is not solved; `cost` has one entry per cell, NaN where unknown."""
    cells = study.cells
    pooled = fit_cost(cells.parameters, cells.tokens, cost)
    found = []
    for group in range(len(study.groups)):
        members = study.groups.members(group)
        law = pooled if scope == "pooled" else _law_of_series(study, members, cost)
        values = {name: float(fits.parameters[name][group]) for name in ("e", "a", "alpha", "b", "beta", "A", "B")}
        known = members[np.isfinite(cost[members]) & (cost[members] > 0)]
        own = np.asarray(budgets, dtype=float) if budgets else percentile_budgets(cost[known]) if len(known) else np.empty(0)
        families = {str(name) for name in cells.text["family"][members].tolist() if name is not None}
        found.append(
            GroupAllocation(
                group=group,
                name=study.groups.name(group) or "all cells",
                family=" and ".join(sorted(families)) or None,
                parameters=values,
                bound={name: int(fits.bound[name][group]) for name in ("alpha", "beta")},
                cost_law=law,
                reference=study.reference,
                budgets=own,
                percentiles=(None,) * len(own) if budgets else PERCENTILES[: len(own)],
                best=_best_cells(study, members, fits.predicted, cost, own),
                cost_range=_range(cost[known]),
                n_range=_range(cells.parameters[members]),
                r_range=_range(cells.tokens[members]),
                fitted=bool(fits.fitted[group]),
                law_status=fits.status[group],
                status=_status(values, law, fits, group, own),
            )
        )
    notes = [Note(one.name, f"no optimum, {one.status}", _kind(one.status)) for one in found if one.fitted and not one.solved]
    return found, merged(notes, len(found))


def _kind(status: str) -> str:
    """The same for all groups of a trouble: an amplitude is a number of its group."""
    return "no optimum, degenerate: an amplitude is below the smallest that counts" if "is below" in status else ""


def _best_cells(
    study: CellStudy, members: npt.NDArray[np.int64], predicted: Array, cost: Array, budgets: Array
) -> tuple[BestCell | None, ...]:
    cells = study.cells
    candidates = ~np.isnan(predicted[members])
    chosen = direct_choices(predicted[members][None], cost[members][None], candidates[None], budgets[None])[0]
    return tuple(
        BestCell(
            model=str(cells.text["model"][cell]),
            input_size=float(cells.input_size[cell]),
            N=float(cells.parameters[cell]),
            R=float(cells.tokens[cell]),
            cost=float(cost[cell]),
            predicted=float(predicted[cell]),
            error=float(cells.error[cell]),
        )
        if place >= 0
        else None
        for place, cell in zip(chosen.tolist(), members[chosen].tolist(), strict=True)
    )


def _law_of_series(study: CellStudy, members: npt.NDArray[np.int64], cost: Array) -> CostLaw:
    """The cost law of all cells of the series that the group has cells of."""
    series = study.cells.text["series"]
    rows = np.isin(series.astype(str), np.unique(series[members].astype(str)))
    return fit_cost(study.cells.parameters[rows], study.cells.tokens[rows], cost[rows])


def _status(values: dict[str, float], law: CostLaw, fits: GroupFits, group: int, budgets: Array) -> str:
    """Why the closed form does not hold, or `solved`."""
    said = fits.status[group]
    if not fits.fitted[group]:
        return said
    if fits.k[group] < TERMS or TOGETHER in said:
        return f"{UNDETERMINED}: " + "; ".join(note for note in said.split("; ") if not note.endswith(" bound"))
    for amplitude, name, exponent in (("a", "A_n", "alpha"), ("b", "B_r", "beta")):
        if np.isnan(values[exponent]):
            return f"degenerate: {exponent} is not determined"
        if not values[amplitude] >= DEGENERATE:
            return f"degenerate: {name} = {values[amplitude]:.2g} is below {DEGENERATE:g}"
    if law.why is not None:
        return f"no cost law: {law.why}"
    if not min(law.p, law.q) > 0:
        return f"no exchange: the cost law has p = {law.p:.3g} and q = {law.q:.3g}, and both have to be positive"
    return SOLVED if len(budgets) else "no budget: no cell has a cost"


def _range(values: Array) -> tuple[float, float]:
    known: Any = values[np.isfinite(values)]
    return (float(known.min()), float(known.max())) if len(known) else (np.nan, np.nan)
