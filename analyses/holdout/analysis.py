"""Does the law predict what it has not seen? A backbone size, an input size or both left out (separable-law paper, B.5 and B.6)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import Field, field_validator

from analyses.cells import CellParameters, fittable, study_of_cells
from analyses.clusters import cluster_sums
from analyses.executor import LOCAL, run_pieces
from analyses.few_clusters import cluster_warnings
from analyses.folds import DESIGNS, SCOPES, Design, levels
from analyses.holdout.fits import LEVELS, LawName, accuracy, law_of
from analyses.holdout.remarks import off_intervals, unfit, without_input_size
from analyses.holdout.tables import Found, differences_of, differences_table, folds_table, rmse_table
from analyses.holdout.work import Plan, make_job, observed_piece, replicate_piece
from analyses.opening import nothing
from analyses.ranges import Box  # noqa: TC001 - pydantic reads annotations
from analyses.resampling import Layout, observed, pieces_of
from analyses.result import Charts

if TYPE_CHECKING:
    import numpy.typing as npt

    from analyses.cells import CellStudy
    from analyses.result import Result
    from analyses.session import StarSession

NAME = "holdout"
PIECE = 4
"""Replicates of one piece of work."""
SECONDS_A_FIT = 5e-4
SECONDS_A_SHARED_FIT = 0.01


class Parameters(CellParameters):
    """Options of the hold-outs."""

    design: tuple[Design, ...] = Field(default=DESIGNS, min_length=1, description="what a fold leaves out; joint: one N and one input size")
    laws: tuple[LawName, ...] = Field(
        default=("separable", "coupled", "bounded"),
        min_length=1,
        description="laws to compare; separable is what the others are compared to",
    )
    exponents: Literal["shared", "group", "both"] = Field(
        default="both", description="shared: one set of exponents, folds leave a level out of all groups; group: each group by itself"
    )
    floor: Literal["continuous", "grid", "free"] = Field(default="continuous", description="floor of the separable and the coupled law")
    box: Box = Field(default=(0.05, 10.0), description="search range of every exponent")
    replicates: int = Field(default=0, ge=0, description="resamples of image clusters that repeat every fold, for intervals (paper: 200)")
    resampling: Literal["ordinary", "positive"] = Field(
        default="ordinary", description="ordinary: clusters drawn with replacement; positive: Dirichlet weights"
    )
    executor: str = Field(default=LOCAL, description="local, or dask://HOST:PORT", exclude=True)

    @field_validator("design", "laws")
    @classmethod
    def _once(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(names))


def run(session: StarSession, parameters: Parameters) -> Result:
    """Refit without each level and predict what was left out."""
    study = study_of_cells(session, NAME, parameters)
    keep, lacking = fittable(study)
    if not keep.any():
        raise nothing(parameters, "no cell has parameters, visual tokens and an error")
    group = np.where(keep, study.groups.code, -1)
    laws = [law_of(name, parameters.box, parameters.floor) for name in parameters.laws]
    scopes = SCOPES if parameters.exponents == "both" else (parameters.exponents,)
    jobs = [make_job(design, scope, group, study.cells, laws) for scope in scopes for design in parameters.design]
    sums = cluster_sums(study) if parameters.replicates else None
    plan = Plan(
        layout=Layout.of(study.groups, keep),
        parameters=study.cells.parameters,
        reference=study.reference,
        cells=observed(study),
        jobs=jobs,
        laws=laws,
        sums=sums,
        seed=parameters.seed,
        kind=parameters.resampling,
    )
    remarks = [
        *without_input_size(study, keep, parameters.design),
        *unfit(study, group, jobs),
        *([] if sums is None else cluster_warnings(study, sums, keep)),
    ]
    found = _found(plan, parameters)
    tables = {"rmse": rmse_table(study, found), "differences": differences_table(found), "folds": folds_table(study, found)}
    return study.opened.result(
        rows=len(study.answers),
        digest=study.answers.digest,
        headline=_headline(study, keep, found),
        tables=tables,
        charts=_charts(found),
        warnings=[*study.warnings, *lacking, *remarks, *off_intervals(tables)],
    )


def _found(plan: Plan, parameters: Parameters) -> Found:
    pieces = plan.pieces()
    seconds = _seconds(plan)
    workers, executor = parameters.workers, parameters.executor
    found = run_pieces(observed_piece, plan, pieces, what="folds", workers=workers, executor=executor, seconds=seconds)
    predicted = np.full((len(plan.jobs), len(plan.laws), len(plan.parameters)), np.nan)
    for (job, law, _, _), (cells, values) in zip(pieces, found, strict=True):
        predicted[job, law, cells] = values
    resampled: list[npt.NDArray[np.float64]] = []
    if parameters.replicates:
        replicates = pieces_of(parameters.replicates, PIECE)
        seconds *= parameters.replicates
        resampled = run_pieces(
            replicate_piece, plan, replicates, what="resampled folds", workers=workers, executor=executor, seconds=seconds
        )
    return Found(
        laws=parameters.laws,
        jobs=plan.jobs,
        error=plan.cells.error[0],
        predicted=predicted,
        resampled=np.concatenate(resampled) if resampled else None,
        varied=None if plan.sums is None else np.diff(plan.sums.records.indptr) > 1,
    )


def _seconds(plan: Plan) -> float:
    """A guess for one pass over all folds on one core."""
    each = {"group": SECONDS_A_FIT, "shared": SECONDS_A_SHARED_FIT}
    return sum(each[job.folds.scope] * len(job.folds) * len(plan.laws) for job in plan.jobs)


def _headline(study: CellStudy, keep: npt.NDArray[np.bool_], found: Found) -> dict[str, Any]:
    cells = study.cells.take(keep)
    headline: dict[str, Any] = {
        "cells": len(cells),
        "groups": len(np.unique(study.groups.code[keep])),
        "backbone_levels": len(levels(cells.parameters)),
        "input_size_levels": len(levels(cells.input_size)),
        "folds": sum(len(job.folds) for job in found.jobs),
        "fits": sum(job.fitted() for job in found.jobs) * len(found.laws),
    }
    if found.resampled is not None:
        headline["replicates"] = len(found.resampled)
    for job, predicted in zip(found.jobs, found.predicted, strict=True):
        measured = accuracy(found.error[None], predicted[:1], job.inside).rmse[0]
        for level in ("all", "interior"):
            headline[f"rmse_{job.folds.design}_{job.folds.scope}_{level}"] = measured[LEVELS.index(level)]
    return headline


def _charts(found: Found) -> Charts:
    differences = differences_of(found)
    if not differences:
        return Charts()

    def draw() -> Any:
        from analyses.holdout.charts import differences_chart

        return differences_chart(differences)

    return Charts({"differences": partial(draw)})
