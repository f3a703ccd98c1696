"""What an answer costs: C = kappa N^p R^q, and where a growing budget goes (separable-law paper, 5.1, E.1, Table 29)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field, field_validator

from analyses.cells import fittable, study_of_cells
from analyses.cost.components import Variant, components_of
from analyses.cost.decisions import decisions_table, moves_table
from analyses.cost.directions import directions_table, group_paths, paths_table
from analyses.cost.laws import cells_table, cost_warnings, fit_laws, fitted_laws, laws_table
from analyses.law.fits import by_law, fit_groups
from analyses.law.options import FitParameters, points_of
from analyses.law.refusal import no_group_fitted
from analyses.result import Charts, plain

if TYPE_CHECKING:
    from analyses.cost.directions import GroupPath
    from analyses.cost.laws import Laws
    from analyses.law.fits import GroupFits
    from analyses.result import Result
    from analyses.session import StarSession

NAME = "cost"
HEAVIEST = 1e6
"""Largest weight of the vision encoder beside the language model's 1 (ours)."""


class Parameters(FitParameters):
    """Options of the cost analysis; floor, box and optimizer are those of the performance surfaces."""

    variant: Variant = Field(
        default="prompt", description="language side of the cost: 2 P T_prompt, with generated tokens, or with attention as well"
    )
    vision_weight: tuple[float, ...] = Field(
        default=(), description="weight of vision encoder and projector in the cost beside 0, such as 1; repeatable"
    )

    @field_validator("vision_weight")
    @classmethod
    def _weights(cls, weights: tuple[float, ...]) -> tuple[float, ...]:
        if any(not 0 <= weight <= HEAVIEST for weight in weights):
            message = f"expected a number from 0 to {HEAVIEST:g}"
            raise ValueError(message)
        return weights


def run(session: StarSession, parameters: Parameters) -> Result:
    """Fit the cost laws and follow the allocation paths."""
    study = study_of_cells(session, NAME, parameters)
    weights = sorted({0.0, *parameters.vision_weight})
    components, unknown = components_of(study, attention=parameters.variant == "attention", vision=len(weights) > 1)
    costs = np.stack([components.cost(parameters.variant, weight) for weight in weights])
    keep, lacking = fittable(study)
    fits = fit_groups(points_of(study, keep), by_law(parameters.law(study.reference)))
    laws = fit_laws(study.cells, keep, costs, weights)
    if not fits.fitted.any() and all(row.law.why is not None for row in laws.rows):
        first = next(iter([*lacking, *fits.warnings]), "there is none")
        raise no_group_fitted(study, [f"{first}; and no cost law: {laws.rows[0].law.why}"])
    paths = group_paths(study, fits, costs)
    return study.opened.result(
        rows=len(study.answers),
        digest=study.answers.digest,
        headline=_headline(laws, paths, fits),
        tables={
            "laws": laws_table(laws),
            "paths": paths_table(study.groups, paths, weights),
            "directions": directions_table(paths, weights),
            "moves": moves_table(paths, weights),
            "decisions": decisions_table(study, paths, weights),
            "cells": cells_table(study, components, costs, weights, fits.predicted),
        },
        charts=_charts(study.cells, laws, paths, costs),
        warnings=[*study.warnings, *lacking, *unknown, *cost_warnings(study, parameters.variant), *laws.warnings, *fits.warnings],
        fits=fitted_laws(laws),
    )


def _headline(laws: Laws, paths: list[GroupPath], fits: GroupFits) -> dict[str, Any]:
    """The pooled law at weight 0, and the directions of the paths."""
    pooled = laws.rows[0]
    walked = [path for path in paths if path.predicted]
    numbers = {
        "cells": pooled.law.n,
        "kappa": pooled.law.kappa,
        "p": pooled.law.p,
        "q": pooled.law.q,
        "r2": pooled.law.r2,
        "latency_cells": pooled.latency.n if pooled.latency is not None else 0,
        "latency_r2": pooled.latency.r2 if pooled.latency is not None else None,
        "groups": int(fits.fitted.sum()),
        "groups_with_path": len(walked),
        "N_faster": sum(path.predicted[0].faster == "N" for path in walked),
        "R_faster": sum(path.predicted[0].faster == "R" for path in walked),
        "same_direction_at_all_weights": sum(path.same_direction for path in walked),
        "oracle_agrees": sum(path.oracle_agrees for path in walked),
    }
    return {name: plain(value) for name, value in numbers.items()}


def _charts(cells: Any, laws: Laws, paths: list[GroupPath], costs: Any) -> Charts:
    def draw(name: str) -> Any:
        from analyses.cost import charts as cost_charts

        if name == "law":
            return cost_charts.law(cells, laws.rows[0].law, costs[0])
        return cost_charts.growth(paths, laws.weights)

    names = (["law"] if np.isfinite(laws.rows[0].law.p) else []) + (["growth"] if any(path.predicted for path in paths) else [])
    return Charts({name: partial(draw, name) for name in names})
