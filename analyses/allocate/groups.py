"""The closed form for every group: which laws enter, where it does not hold, and how its optimum lies to the cells there are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from analyses.cost.paths import PERCENTILES, percentile_budgets
from analyses.laws.allocation import DEGENERATE, Allocation, Elasticities, allocate, elasticities
from analyses.laws.cost import CostLaw, fit_cost
from analyses.laws.separable import separable

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from analyses.cells import CellStudy
    from analyses.law.fits import GroupFits

    Array = npt.NDArray[np.float64]

SOLVED = "solved"
WITHIN = 1e-12
"""An optimum this near to the end of a range, relative to it, is inside."""


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
    cost_range: tuple[float, float]
    """Of its cells; NaN where none has a cost."""
    n_range: tuple[float, float]
    r_range: tuple[float, float]
    law_status: str
    """What the fit of the performance law says."""
    status: str
    """solved, or why there is no optimum."""

    @property
    def solved(self) -> bool:
        """Whether the closed form holds."""
        return self.status == SOLVED

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
                cost_range=_range(cost[known]),
                n_range=_range(cells.parameters[members]),
                r_range=_range(cells.tokens[members]),
                law_status=fits.status[group],
                status=_status(values, law, fits.status[group], fitted=bool(fits.fitted[group]), budgets=own),
            )
        )
    warnings = [f"{one.name}: no optimum, {one.status}" for one in found if not one.solved and fits.fitted[one.group]]
    return found, warnings


def _law_of_series(study: CellStudy, members: npt.NDArray[np.int64], cost: Array) -> CostLaw:
    """The cost law of all cells of the series that the group has cells of."""
    series = study.cells.text["series"]
    rows = np.isin(series.astype(str), np.unique(series[members].astype(str)))
    return fit_cost(study.cells.parameters[rows], study.cells.tokens[rows], cost[rows])


def _status(values: dict[str, float], law: CostLaw, law_status: str, *, fitted: bool, budgets: Array) -> str:
    """Why the closed form does not hold, or `solved`."""
    if not fitted:
        return law_status
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
