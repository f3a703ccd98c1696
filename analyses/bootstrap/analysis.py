"""How sure are the fits? Refits on resampled image clusters (separable-law paper, B.4 and B.7)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from analyses.bootstrap.groups import ready
from analyses.bootstrap.intervals import fitted_laws, intervals, intervals_table, replicates_table
from analyses.bootstrap.options import SHAPES, Parameters
from analyses.bootstrap.pair import LABELS, PairFits, PairPlan, exponents_table, fit_pair, pair_piece, pair_table, pair_warnings
from analyses.cells import fittable, study_of_cells
from analyses.clusters import cluster_sums
from analyses.executor import run_pieces
from analyses.few_clusters import clusters_of_groups
from analyses.law.refusal import no_group_fitted
from analyses.resampling import intervals_of, observed, pieces_of
from analyses.result import Charts

if TYPE_CHECKING:
    from analyses.bootstrap.groups import Ready
    from analyses.bootstrap.intervals import GroupIntervals
    from analyses.cells import CellStudy
    from analyses.clusters import ClusterSums
    from analyses.result import Result, Table
    from analyses.session import StarSession

__all__ = ["NAME", "Parameters", "run"]

NAME = "bootstrap"
OFTEN = 0.9
"""Share of refits at a bound from which Table 15 marks an exponent."""
SECONDS_A_PAIR = 0.02
"""A guess of two shared fits to one replicate, for the decision whether worker processes pay."""


def run(session: StarSession, parameters: Parameters) -> Result:
    """Resample image clusters, rebuild the cells, refit: intervals per group, or two laws compared."""
    study = study_of_cells(session, NAME, parameters, cohort=NAME)
    keep, lacking = fittable(study)
    sums = cluster_sums(study)
    names = parameters.pair or (parameters.law,)
    needed = max(law.k - (len(SHAPES[law.name]) if parameters.pair else 0) for law in map(parameters.law_of, names))
    groups = ready(study, sums, keep, needed, parameters.weightings)
    if not len(groups.layout):
        raise no_group_fitted(study, [*lacking, *groups.unfit])
    warnings = [*study.warnings, *lacking, *groups.unfit, *groups.warnings]
    answer = _pair if parameters.pair else _intervals
    return answer(study, sums, groups, parameters, warnings)


def _intervals(study: CellStudy, sums: ClusterSums, groups: Ready, parameters: Parameters, warnings: list[str]) -> Result:
    law, layout = parameters.law_of(parameters.law), groups.layout
    found = []
    for weighting, weights in groups.weights.items():
        refits = intervals_of(
            study,
            sums,
            layout,
            law,
            parameters.replicates,
            kind=parameters.resampling,
            weights=weights,
            workers=parameters.workers,
            executor=parameters.executor,
            what=f"refits, {weighting} weights",
        )
        found.append(intervals(study, layout, law, weighting, weights, refits))
    clusters = clusters_of_groups(sums, layout)
    refits = found[0].refits
    unfit = [(study.groups.name(group) or "all cells", int(n)) for group, n in zip(layout.group, (~refits.fitted).sum(axis=0), strict=True)]
    warnings = warnings + [f"{name}: {n:,} of {parameters.replicates:,} resamples left too little to fit" for name, n in unfit if n]
    table = intervals_table(study, found, parameters.level)
    return study.opened.result(
        rows=len(study.answers),
        digest=study.answers.digest,
        headline={
            "law": parameters.law,
            "groups": len(layout),
            "cells": int(layout.inside.sum()),
            "clusters": len(sums.clusters),
            "replicates": parameters.replicates,
            "refits": int(sum(one.refits.fitted.sum() for one in found)),
            **{f"{name}_often_at_bound": _often(found[0], name) for name in SHAPES[parameters.law]},
            "lost_cells": int(refits.lost.sum()),
            "reference_N": study.reference[0],
            "reference_R": study.reference[1],
        },
        tables={"intervals": table, "replicates": replicates_table(study, layout, refits, clusters)},
        charts=_charts(table, list(study.groups.by)),
        warnings=warnings,
        fits=fitted_laws(study, found, parameters.level),
    )


def _often(one: GroupIntervals, name: str) -> int:
    """Groups with at least nine in ten refits at a bound."""
    return int((one.share(name, "at_bound") >= OFTEN).sum()) if name in one.refits.at_bound else 0


def _charts(table: Table, by: list[str]) -> Charts:
    def draw() -> Any:
        from analyses.bootstrap import charts as bootstrap_charts

        return bootstrap_charts.intervals(table, by)

    return Charts({"intervals": draw})


def _pair(study: CellStudy, sums: ClusterSums, groups: Ready, parameters: Parameters, warnings: list[str]) -> Result:
    one, two = (parameters.shared_law_of(name) for name in parameters.pair)
    plan = PairPlan(
        sums=sums,
        layout=groups.layout,
        laws=(one, two),
        parameters=study.cells.parameters,
        reference=study.reference,
        weights=groups.weights,
        seed=parameters.seed,
        kind=parameters.resampling,
    )
    seconds = parameters.replicates * len(groups.weights) * SECONDS_A_PAIR
    parts = run_pieces(
        pair_piece,
        plan,
        pieces_of(parameters.replicates),
        what=f"{two.name} against {one.name}",
        workers=parameters.workers,
        executor=parameters.executor,
        seconds=seconds,
    )
    refits, point = PairFits.joined(parts), fit_pair(plan, observed(study))
    unused = int(np.isnan(refits.objective[0, 0]).sum())
    if unused:
        warnings = [*warnings, f"{unused:,} of {parameters.replicates:,} resamples left a group too little to fit; they are not used"]
    tables = {
        "pair": pair_table(plan, point, refits, parameters.level),
        "exponents": exponents_table(plan, point, refits, parameters.level),
    }
    warnings = [*warnings, *pair_warnings(plan, point, refits, tables["pair"])]
    rows = {row["objective"]: row for row in tables["pair"].rows()}
    shown = ("delta_q", "relative_delta_q", "delta_bic", "delta_bic_low", "delta_bic_high", "favours_first")
    return study.opened.result(
        rows=len(study.answers),
        digest=study.answers.digest,
        headline={
            "first": one.name,
            "second": two.name,
            "groups": len(plan.layout),
            "cells": int(point.n[0]),
            "clusters": len(sums.clusters),
            "replicates": parameters.replicates,
            **{f"{objective}_{name}": row[name] for objective, row in rows.items() for name in shown},
            "lost_cells": int(refits.lost.sum()),
        },
        tables=tables,
        charts=_pair_charts(plan, point, refits),
        warnings=warnings,
    )


def _pair_charts(plan: PairPlan, point: PairFits, refits: PairFits) -> Charts:
    drawn = {
        name: {
            LABELS[weighting]: (getattr(point, name)[place, 0], getattr(refits, name)[place])
            for place, weighting in enumerate(plan.weights)
        }
        for name in ("relative", "delta_bic")
    }

    def draw(name: str, title: str) -> Any:
        from analyses.bootstrap import charts as bootstrap_charts

        return bootstrap_charts.density(drawn[name], title, tuple(law.name for law in plan.laws))

    titles = {"objective": ("relative", "difference of the objective, %"), "delta_bic": ("delta_bic", "difference of BIC")}
    return Charts({chart: partial(draw, *arguments) for chart, arguments in titles.items()})
