"""The separable law L = e + A/N^alpha + B/R^beta, fitted to every group of cells (separable-law paper, 2.3, 2.4, B.1, B.2)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import Field, model_validator

from analyses.cells import fittable, study_of_cells
from analyses.clusters import cluster_sums, precision_weights
from analyses.exponents.levels import label_of_groups
from analyses.few_clusters import variance_warnings
from analyses.law.bounded import agreement, bounded_table, medians_table
from analyses.law.fits import by_law, fit_groups
from analyses.law.fitters import Histogram, by_bounded, by_moments
from analyses.law.intervals import law_intervals
from analyses.law.options import FitParameters, points_of
from analyses.law.refusal import no_group_fitted
from analyses.law.resources import Resource, by_axes, points_with, resources_of, resources_table
from analyses.law.sensitivity import sensitivity_table
from analyses.law.tables import cells_table, fits_table, fitted_laws, headline_of, residuals_table, spread_table
from analyses.laws import BoundedLaw, SeparableLaw
from analyses.result import Charts

if TYPE_CHECKING:
    import numpy.typing as npt

    from analyses.cells import CellStudy
    from analyses.law.fits import GroupFits, Points
    from analyses.law.intervals import Ends
    from analyses.result import FittedLaw, Result, Table
    from analyses.session import StarSession

__all__ = ["NAME", "Parameters", "points_of", "run"]

NAME = "law"
CHARTS = ("predicted", "residuals", "groups", "curves", "histogram", "spread")


class Parameters(FitParameters):
    """Options of the law analysis."""

    resource: Resource = Field(
        default="visual_tokens",
        description="the visual resource: visual_tokens R, effective_pixels P in its place, or both (a third term, and the three compared)",
    )
    tokens: Literal["mean", "moment"] = Field(
        default="mean", description="visual term of a cell: power of its mean tokens, or the mean of R^-beta over its answers"
    )
    bounded: bool = Field(default=False, description="fit the law behind a logistic link as well, and compare the exponents")
    weights: Literal["equal", "precision"] = Field(
        default="equal", description="weight of a cell: the same for all, or the inverse cluster variance of its error"
    )
    sensitivity: bool = Field(
        default=False, description="compare with a narrower box, another floor, exact tokens, the bounded law, without the largest size"
    )
    intervals: int = Field(default=0, ge=0, description="bootstrap replicates for 95% intervals of every parameter; 0: none")
    executor: str = Field(default="local", description="where the refits of --intervals run: local, or dask://HOST:PORT", exclude=True)

    @model_validator(mode="after")
    def _compatible(self) -> Parameters:
        plain = self.resource == "visual_tokens" and self.tokens == "mean"
        if (self.intervals or self.sensitivity) and not plain:
            message = "intervals and sensitivity need the visual tokens of cells: --resource visual_tokens --tokens mean"
            raise ValueError(message)
        if self.tokens == "moment" and self.resource != "visual_tokens":
            message = "moments are of visual tokens: --tokens moment needs --resource visual_tokens"
            raise ValueError(message)
        return self


def run(session: StarSession, parameters: Parameters) -> Result:
    """Fit the law to every group and say how well it does."""
    study = study_of_cells(session, NAME, parameters)
    keep, lacking = kept(study, parameters)
    weights = precise(study, keep, lacking) if parameters.weights == "precision" else None
    points = points_with(study, keep, parameters.resource, parameters.reference, weights)
    fits = fitted(study, points, parameters)
    if not fits.fitted.any():
        raise no_group_fitted(study, [*lacking, *fits.warnings], resources_of(parameters.resource))
    ends = intervals(study, points, fits, parameters)
    resource = points.axes["R"] * points.reference["R"]
    headline = headline_of(fits, study.cells.error, points.weights, (points.reference["N"], points.reference["R"]))
    tables = {"fits": fits_table(fits, ends)}
    laws = fitted_laws(fits, ends)
    if parameters.bounded:
        headline |= add_bounded(study, points, parameters, tables, laws)
    if parameters.resource == "both":
        headline["reference_P"] = points.reference["P"]
        tables["resources"] = resources_table(study, points, parameters)
    if parameters.sensitivity:
        tables["sensitivity"] = sensitivity_table(study, points, parameters, fits)
    tables |= {
        "residuals": residuals_table(fits, study.cells.error),
        "spread": spread_table(fits, study.cells.text),
        "cells": cells_table(study, fits, resource),
    }
    return study.opened.result(
        rows=len(study.answers),
        digest=study.answers.digest,
        headline=headline,
        tables=tables,
        charts=charts(study, points, fits, tables, moments=parameters.tokens == "moment"),
        warnings=[*study.warnings, *lacking, *fits.warnings, *uncosted(study, parameters)],
        fits=laws,
    )


def kept(study: CellStudy, parameters: Parameters) -> tuple[npt.NDArray[np.bool_], list[str]]:
    """Cells that have all that the law needs, and warnings about the others."""
    keep, lacking = np.ones(len(study.cells), dtype=bool), []
    for resource in resources_of(parameters.resource):
        some, notes = fittable(study, resource=resource)
        keep &= some
        lacking += notes
    return keep, lacking


def precise(study: CellStudy, keep: npt.NDArray[np.bool_], warnings: list[str]) -> npt.NDArray[np.float64]:
    """Weights in inverse proportion to the variance of each cell's error; what they rest on joins the warnings."""
    variance = cluster_sums(study).variance(study.cells.error)
    warnings += variance_warnings(variance, keep)
    return precision_weights(variance, keep)


def fitted(study: CellStudy, points: Points, parameters: Parameters) -> GroupFits:
    """The fits that the options ask for."""
    law = parameters.law((points.reference["N"], points.reference["R"]))
    if parameters.tokens == "moment":
        return fit_groups(points, by_moments(law, Histogram.of(study), points.reference["R"]))
    if parameters.resource == "both":
        return fit_groups(points, by_axes(parameters), names=("alpha", "beta", "gamma"))
    return fit_groups(points, by_law(law))


def intervals(study: CellStudy, points: Points, fits: GroupFits, parameters: Parameters) -> dict[str, Ends]:
    """Bootstrap intervals where they are asked for."""
    if not parameters.intervals:
        return {}
    law = parameters.law(study.reference)
    return law_intervals(study, points, fits, law, parameters.intervals, workers=parameters.workers, executor=parameters.executor)


def add_bounded(
    study: CellStudy, points: Points, parameters: Parameters, tables: dict[str, Table], laws: list[FittedLaw]
) -> dict[str, Any]:
    """The bounded law and its matched separable one (continuous floor): tables, rows of `fits`, and numbers for the headline."""
    reference = (points.reference["N"], points.reference["R"])
    options: dict[str, Any] = {"alpha": parameters.box, "beta": parameters.box, "reference": reference, "optimizer": parameters.optimizer}
    matched = fit_groups(points, by_law(SeparableLaw(floor="continuous", **options)))
    bounded = fit_groups(points, by_bounded(BoundedLaw(**options), study.cells.n))
    tables["bounded"] = bounded_table(bounded)
    tables["medians"] = medians_table({"separable": matched, "bounded": bounded}, label_of_groups(study, "family").tolist())
    laws += fitted_laws(bounded)
    return agreement(matched, bounded)


def uncosted(study: CellStudy, parameters: Parameters) -> list[str]:
    """A warning where choices under a budget are asked for and no cell has a cost."""
    if not parameters.sensitivity or not np.isnan(study.cells.flops).all():
        return []
    return ["no cell states prompt_tokens: no cost, so no choices are compared"]


def charts(study: CellStudy, points: Points, fits: GroupFits, tables: dict[str, Table], *, moments: bool) -> Charts:
    """Charts of the fitted groups."""

    def draw(name: str) -> Any:
        from analyses.law import charts as law_charts

        return getattr(law_charts, name)(law_charts.Drawn(study=study, points=points, fits=fits, tables=tables, moments=moments))

    return Charts({name: partial(draw, name) for name in (*CHARTS, *(("resources",) if "resources" in tables else ()))})
