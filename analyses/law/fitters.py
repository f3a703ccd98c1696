"""Further ways to fit padded groups: behind a logistic link, with the exact token histogram of each cell, with a third axis."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from analyses.law.fits import Solved
from analyses.laws.axes import MomentAxis
from analyses.laws.separable import clipped

if TYPE_CHECKING:
    import numpy.typing as npt

    from analyses.cells import CellStudy
    from analyses.law.fits import Fitter, Padded
    from analyses.laws import SeparableLaw


def by_bounded(law: SeparableLaw, count: npt.NDArray[np.int64]) -> Fitter:
    """The fitter of a bounded law; errors are moved off 0 and 1 by half an answer of each cell's `count` (B.6; ours where it is silent)."""

    def fit(padded: Padded) -> Solved:
        n, r = padded.axis("N"), padded.axis("R")
        error = clipped(padded.error, padded.take(count.astype(float), 1.0))
        solutions = law.fit_many(n, r, error, padded.weights)
        return Solved(solutions=solutions, predicted=solutions.predict(n, r))

    return fit


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram:
    """How many answers of each cell have which visual tokens; rows by cell and tokens."""

    cell: npt.NDArray[np.int64]
    tokens: npt.NDArray[np.float64]
    count: npt.NDArray[np.float64]

    @classmethod
    def of(cls, study: CellStudy) -> Histogram:
        """Of the answers that state a positive number of visual tokens."""
        tokens = study.answers.numbers["visual_tokens"]
        used = (study.cell_of >= 0) & (tokens > 0)
        rows, count = np.unique(np.stack([study.cell_of[used].astype(float), tokens[used]]), axis=1, return_counts=True)
        return cls(cell=rows[0].astype(np.int64), tokens=rows[1], count=count.astype(float))

    def axis(self, cells: npt.NDArray[np.int64], reference: float) -> MomentAxis:
        """Of some cells, ascending, with tokens divided by a reference."""
        rows = np.isin(self.cell, cells)
        return MomentAxis.of(np.searchsorted(cells, self.cell[rows]), self.tokens[rows] / reference, self.count[rows])


def by_moments(law: SeparableLaw, histogram: Histogram, reference: float) -> Fitter:
    """The fitter of a law whose visual term is the mean of R^-beta over a cell's answers instead of the power of the mean (B.8)."""

    def fit(padded: Padded) -> Solved:
        predicted = np.full(padded.cells.shape, np.nan)
        found = []
        for row, present in enumerate(padded.present):
            cells = padded.cells[row, present]
            axis, n = histogram.axis(cells, reference), padded.axis("N")[row, present]
            one = law.fit_many(n, axis, padded.error[row, present], padded.weights[row, present])
            values = {name: value[0] for name, value in one.parameters.items()}
            predicted[row, present] = one.function(n, axis, **values)
            found.append(one)
        solutions = dataclasses.replace(
            found[0],
            parameters={name: np.concatenate([one.parameters[name] for one in found]) for name in found[0].parameters},
            objective=np.concatenate([one.objective for one in found]),
        )
        return Solved(solutions=solutions, predicted=predicted)

    return fit
