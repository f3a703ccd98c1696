"""How to spend a budget: N* and R* in closed form for each group (separable-law paper, 5.1 and E.2, Eqs. 26 and 35)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import Field, field_validator

from analyses.allocate.groups import UNDETERMINED, group_allocations
from analyses.allocate.tables import allocations_table, directions_table, elasticities_table, headline_of, outside_warning
from analyses.cells import fittable, study_of_cells
from analyses.cost.components import Variant, components_of
from analyses.cost.laws import cost_warnings
from analyses.law.fits import by_law, fit_groups
from analyses.law.options import FitParameters, points_of
from analyses.law.refusal import no_group_fitted
from analyses.law.tables import fitted_laws
from analyses.result import Charts

if TYPE_CHECKING:
    from analyses.allocate.groups import GroupAllocation
    from analyses.cells import CellStudy
    from analyses.result import Result
    from analyses.session import StarSession

NAME = "allocate"


class Parameters(FitParameters):
    """Options of the allocation; floor, box and optimizer are those of the performance surfaces."""

    budgets: tuple[float, ...] = Field(
        default=(),
        description="budget in FLOP per answer, such as 1e13; repeatable (default: percentiles 25, 50, 75, 90 of each group's cell costs)",
    )
    cost_scope: Literal["pooled", "series"] = Field(
        default="pooled", description="cost law of a group: that of all cells, or that of its own series"
    )
    variant: Variant = Field(
        default="prompt", description="language side of the cost: 2 P T_prompt, with generated tokens, or with attention as well"
    )

    @field_validator("budgets")
    @classmethod
    def _spendable(cls, budgets: tuple[float, ...]) -> tuple[float, ...]:
        if any(not 0 < budget < np.inf for budget in budgets):
            message = "expected a positive number"
            raise ValueError(message)
        return budgets


def run(session: StarSession, parameters: Parameters) -> Result:
    """Fit the performance and cost laws and solve for the optimum."""
    study = study_of_cells(session, NAME, parameters)
    components, unknown = components_of(study, attention=parameters.variant == "attention", vision=False)
    keep, lacking = fittable(study)
    fits = fit_groups(points_of(study, keep), by_law(parameters.law(study.reference)))
    if not fits.fitted.any():
        raise no_group_fitted(study, [*lacking, *fits.warnings])
    cost = np.where(keep, components.language(parameters.variant), np.nan)
    found, warnings = group_allocations(study, fits, cost, scope=parameters.cost_scope, budgets=parameters.budgets)
    notes = _unsaid(fits.warnings, warnings)
    return study.opened.result(
        rows=len(study.answers),
        digest=study.answers.digest,
        headline=headline_of(found, pooled=parameters.cost_scope == "pooled"),
        tables={
            "elasticities": elasticities_table(study.groups, found),
            "directions": directions_table(found),
            "allocations": allocations_table(study.groups, found),
        },
        charts=_charts(study, found),
        warnings=[
            *study.warnings,
            *lacking,
            *unknown,
            *cost_warnings(study, parameters.variant),
            *notes,
            *warnings,
            *outside_warning(found),
        ],
        fits=fitted_laws(fits),
    )


def _unsaid(notes: list[str], warnings: list[str]) -> list[str]:
    """What the fits say that no warning about an undetermined optimum repeats."""
    return [note for note in notes if not any(_repeats(warning, *note.split(": ", 1)) for warning in warnings)]


def _repeats(warning: str, group: str, what: str = "") -> bool:
    return warning.startswith(f"{group}: no optimum, {UNDETERMINED}: ") and what in warning


def _charts(study: CellStudy, found: list[GroupAllocation]) -> Charts:
    def draw() -> Any:
        from analyses.allocate import charts as allocate_charts

        return allocate_charts.trajectories(study, found)

    return Charts({"trajectories": draw} if any(one.solved for one in found) else {})
