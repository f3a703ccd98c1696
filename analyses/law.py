"""The separable law L = e + A/N^alpha + B/R^beta, fitted to every group of cells (separable-law paper, 2.3, 2.4, B.1, B.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analyses.cells import fittable, study_of_cells
from analyses.law_fits import by_law, fit_groups
from analyses.law_options import FitParameters, points_of
from analyses.law_tables import cells_table, fits_table, fitted_laws, headline_of, residuals_table, spread_table
from analyses.result import Charts

if TYPE_CHECKING:
    from analyses.result import Result
    from analyses.session import StarSession

__all__ = ["NAME", "Parameters", "points_of", "run"]

NAME = "law"


class Parameters(FitParameters):
    """Options of the law analysis."""


def run(session: StarSession, parameters: Parameters) -> Result:
    """Fit the law to every group and say how well it does."""
    study = study_of_cells(session, NAME, parameters)
    keep, lacking = fittable(study)
    points = points_of(study, keep)
    fits = fit_groups(points, by_law(parameters.law(study.reference)))
    return study.opened.result(
        rows=len(study.answers),
        digest=study.answers.digest,
        headline=headline_of(fits, study.cells.error, points.weights, study.reference),
        tables={
            "fits": fits_table(fits),
            "residuals": residuals_table(fits, study.cells.error),
            "spread": spread_table(fits, study.cells.text),
            "cells": cells_table(study, fits, study.cells.tokens),
        },
        charts=Charts(),
        warnings=[*study.warnings, *lacking, *fits.warnings],
        fits=fitted_laws(fits),
    )
