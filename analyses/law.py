"""The separable law L = e + A/N^alpha + B/R^beta, fitted to every group of cells (separable-law paper, 2.3, 2.4, B.1, B.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
from pydantic import Field, field_validator

from analyses.cells import CellParameters, fittable, study_of_cells
from analyses.law_fits import Points, by_law, fit_groups
from analyses.law_tables import cells_table, fits_table, fitted_laws, headline_of, residuals_table, spread_table
from analyses.laws import SeparableLaw
from analyses.laws.separable import BOX
from analyses.result import Charts

if TYPE_CHECKING:
    import numpy.typing as npt

    from analyses.cells import CellStudy
    from analyses.result import Result
    from analyses.session import StarSession

NAME = "law"


class Parameters(CellParameters):
    """Options of the law analysis."""

    floor: Literal["grid", "continuous", "free"] = Field(
        default="grid",
        description="error floor: grid (the 55 values of the paper), continuous (0.001 to 0.999), free (an intercept of any sign)",
    )
    box: tuple[float, float] = Field(default=BOX, description="search range of both exponents")
    optimizer: Literal["global", "paper"] = Field(
        default="global", description="global: exact search over the exponents; paper: Nelder-Mead from 16 starts"
    )

    @field_validator("box")
    @classmethod
    def _ordered(cls, box: tuple[float, float]) -> tuple[float, float]:
        if not 0 < box[0] < box[1]:
            message = "expected two positive numbers, the lower first"
            raise ValueError(message)
        return box

    def law(self, reference: tuple[float, float]) -> SeparableLaw:
        """The law that the options ask for."""
        return SeparableLaw(alpha=self.box, beta=self.box, floor=self.floor, reference=reference, optimizer=self.optimizer)


def points_of(study: CellStudy, keep: npt.NDArray[np.bool_], weights: npt.NDArray[np.float64] | None = None) -> Points:
    """The cells of a study as points of N and visual tokens."""
    cells, (reference_n, reference_r) = study.cells, study.reference
    return Points(
        groups=study.groups,
        axes={"N": cells.parameters / reference_n, "R": cells.tokens / reference_r},
        reference={"N": reference_n, "R": reference_r},
        error=cells.error,
        weights=np.ones(len(cells)) if weights is None else weights,
        keep=keep,
    )


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
