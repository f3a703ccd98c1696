"""How good are choices by the law? Regret of five rules under budgets, in sample and held out (separable-law paper, 5.2, E.3, E.4)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import Field, field_validator

from analyses.cells import CellParameters, fittable, study_of_cells
from analyses.holdout.fits import law_of
from analyses.laws.cost import fit_cost
from analyses.opening import nothing
from analyses.ranges import Box  # noqa: TC001 - pydantic reads annotations
from analyses.regret.decisions import EVALUATIONS, Evaluation, Market, decide
from analyses.regret.remarks import remarks
from analyses.regret.tables import (
    Judged,
    bounded_table,
    choices_table,
    decisions_table,
    excluded_table,
    groups_table,
    rules_table,
    suites_table,
    thresholds_table,
)
from analyses.resampling import Layout, batch_of, observed
from analyses.result import Charts

if TYPE_CHECKING:
    from analyses.laws.cost import CostLaw
    from analyses.regret.decisions import Decisions
    from analyses.result import Result
    from analyses.session import StarSession

NAME = "regret"
LACKING = {"flops": "prompt tokens", "latency": "latency"}
"""What a cell without the cost lacks, besides parameters."""


class Parameters(CellParameters):
    """Options of the regret analysis."""

    evaluation: tuple[Evaluation, ...] = Field(
        default=EVALUATIONS,
        min_length=1,
        description="in_sample: fitted to and chosen from all cells; joint, backbone, input_size: chosen from what a fold withholds",
    )
    budgets: tuple[float, ...] = Field(
        default=(25.0, 50.0, 75.0, 90.0), min_length=1, description="budgets as percentiles of the costs of a group's cells"
    )
    cost: Literal["flops", "latency"] = Field(default="flops", description="cost of a cell: FLOP of the prompt (2 N T), or mean latency")
    in_sample_floor: Literal["grid", "continuous", "free"] = Field(default="grid", description="floor of the fits in sample")
    floor: Literal["continuous", "grid", "free"] = Field(default="continuous", description="floor of the held-out fits")
    box: Box = Field(default=(0.05, 10.0), description="search range of every exponent")
    bounded: bool = Field(default=True, description="also choose by the bounded law, held out")

    @field_validator("budgets")
    @classmethod
    def _percentiles(cls, budgets: tuple[float, ...]) -> tuple[float, ...]:
        if not all(0 <= one <= 100 for one in budgets):
            message = "expected percentiles between 0 and 100"
            raise ValueError(message)
        return tuple(dict.fromkeys(budgets))

    @field_validator("evaluation")
    @classmethod
    def _once(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(names))


def run(session: StarSession, parameters: Parameters) -> Result:
    """Let every rule choose under every budget and measure what its choice loses."""
    study = study_of_cells(session, NAME, parameters)
    keep, lacking = fittable(study)
    if not keep.any():
        raise nothing(parameters, "no cell has parameters, visual tokens and an error")
    cells = study.cells
    cost = np.where(keep, cells.flops if parameters.cost == "flops" else cells.latency_s, np.nan)
    cost = np.where(cost > 0, cost, np.nan)
    layout = Layout.of(study.groups, keep)
    market = Market(
        layout=layout,
        batch=batch_of(layout, observed(study), cells.parameters, study.reference),
        group=np.where(keep, study.groups.code, -1),
        n=cells.parameters,
        r=cells.tokens,
        input_size=cells.input_size,
        error=cells.error,
        cost=cost,
        reference=study.reference,
        percentiles=parameters.budgets,
    )
    cost_law = fit_cost(cells.parameters[keep], cells.tokens[keep], cost[keep])
    judged = Judged(study=study, market=market, decisions=_decisions(market, cost_law, parameters))
    tables = {
        "rules": rules_table(judged),
        "thresholds": thresholds_table(judged),
        "groups": groups_table(judged),
        **({"suites": suites_table(judged)} if "suite" in study.groups.by else {}),
        **({"bounded": bounded_table(judged)} if parameters.bounded else {}),
        "excluded": excluded_table(judged),
        "decisions": decisions_table(judged),
        "choices": choices_table(judged),
    }
    return study.opened.result(
        rows=len(study.answers),
        digest=study.answers.digest,
        headline=_headline(judged, cost_law),
        tables=tables,
        charts=_charts(judged),
        warnings=[*study.warnings, *lacking, *remarks(judged, cost_law, LACKING[parameters.cost])],
    )


def _decisions(market: Market, cost_law: CostLaw, parameters: Parameters) -> list[Decisions]:
    held_out = law_of("separable", parameters.box, parameters.floor)
    bounded = law_of("bounded", parameters.box) if parameters.bounded else None
    return [
        decide(evaluation, market, law_of("separable", parameters.box, parameters.in_sample_floor), None, cost_law)
        if evaluation == "in_sample"
        else decide(evaluation, market, held_out, bounded, cost_law)
        for evaluation in parameters.evaluation
    ]


def _headline(judged: Judged, cost_law: CostLaw) -> dict[str, Any]:
    headline: dict[str, Any] = {
        "cells": int(judged.market.layout.inside.sum()),
        "groups": len(judged.market.layout),
        "cost_p": cost_law.p,
        "cost_q": cost_law.q,
    }
    for one in judged.decisions:
        headline[f"{one.evaluation}_decisions"] = len(one)
        for rule in ("direct", "projection"):
            headline[f"{one.evaluation}_{rule}_mean_regret"] = float(one.regret[rule].mean()) if len(one) else None
    return headline


def _charts(judged: Judged) -> Charts:
    drawn = judged.drawn()
    if drawn is None:
        return Charts()

    def draw(name: str) -> Any:
        from analyses.regret import charts as regret_charts

        return getattr(regret_charts, name)(drawn)

    return Charts({name: partial(draw, name) for name in ("bars", "distribution")})
