"""Refits of a law on the cells that each fold leaves, and its predictions of the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np

from analyses.laws import BoundedLaw, CoupledLaw, SeparableLaw
from analyses.laws.separable import clipped

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from analyses.folds import Folds, Scope
    from analyses.laws import Floor, Solutions
    from analyses.resampling import Batch, Layout

LawName = Literal["separable", "coupled", "bounded"]
SHAPES = {"separable": 2, "bounded": 2, "coupled": 3}
"""Exponents of a law; its other parameters (k less these) are the floor and the amplitudes."""


class Law(Protocol):
    """What folds need of a law."""

    @property
    def name(self) -> str:
        """Name of the form."""

    @property
    def k(self) -> int:
        """Parameters of a group's own fit."""

    def fit_many(self, n: Any, r: Any, error: Any, weights: Any = None) -> Solutions:
        """Fits x cells, each fit with its own exponents."""

    def fit_shared(self, n: Any, r: Any, error: Any, weights: Any = None) -> Solutions:
        """Problems x groups x cells, the groups of a problem with shared exponents; solutions by problem, then group."""


def law_of(name: LawName, box: tuple[float, float], floor: str | Floor = "continuous") -> Law:
    """A law by name, with every exponent searched in `box`."""
    if name == "coupled":
        return CoupledLaw(alpha=box, beta=box, gamma=box, floor=floor)
    return {"separable": SeparableLaw, "bounded": BoundedLaw}[name](alpha=box, beta=box, floor=floor)


def cells_needed(laws: Sequence[Law], scope: Scope) -> int:
    """Cells of a group that the largest of the laws needs: as many as it has parameters of the group's own."""
    return max(law.k - (SHAPES[law.name] if scope == "shared" else 0) for law in laws)


def target(law: Law, batch: Batch) -> npt.NDArray[np.float64]:
    """The errors that a law is fitted to; for the bounded one within [0.5/n, 1 - 0.5/n], so that their logit is finite."""
    return clipped(batch.error, batch.count) if law.name == "bounded" else batch.error


def predictions(law: Law, layout: Layout, batch: Batch, folds: Folds, ready: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
    """Replicates x groups x width: each scored cell as predicted by the fit that did not see it, else NaN.

    `ready` (folds x groups, of `fitted_groups`) says which groups a fold can fit; others are neither fitted nor predicted.
    """
    predict = _own_exponents if folds.scope == "group" else _shared_exponents
    answer = np.full(batch.error.shape, np.nan)
    predict(law, layout, batch, folds, ready, answer)
    answer[batch.weights == 0] = np.nan
    return answer


def fold_fits(law: Law, layout: Layout, batch: Batch, folds: Folds) -> tuple[Solutions, npt.NDArray[np.int64]]:
    """Fit the group of each fold without its withheld cells, in every replicate: (replicates x folds) fits, and the fold's row in the layout."""
    row = np.searchsorted(layout.group, folds.group)
    withheld = np.take_along_axis(folds.withheld, layout.cell[row], axis=1)
    fits = (-1, layout.cell.shape[1])
    n, r, y, w = (values[:, row].reshape(fits) for values in (batch.n, batch.r, target(law, batch), batch.weights * 1.0))
    w = w * ~np.broadcast_to(withheld, (len(batch.error), *withheld.shape)).reshape(fits)
    return law.fit_many(n, r, y, w), row


def _own_exponents(
    law: Law, layout: Layout, batch: Batch, folds: Folds, ready: npt.NDArray[np.bool_], answer: npt.NDArray[np.float64]
) -> None:
    folds = folds.take(ready[np.arange(len(folds)), folds.group])
    if not len(folds):
        return
    solutions, row = fold_fits(law, layout, batch, folds)
    fits = (-1, layout.cell.shape[1])
    predicted = solutions.predict(batch.n[:, row].reshape(fits), batch.r[:, row].reshape(fits)).reshape(
        len(answer), *layout.cell[row].shape
    )
    fold, place = np.nonzero(np.take_along_axis(folds.scored, layout.cell[row], axis=1) & layout.inside[row])
    answer[:, row[fold], place] = predicted[:, fold, place]


def _shared_exponents(
    law: Law, layout: Layout, batch: Batch, folds: Folds, ready: npt.NDArray[np.bool_], answer: npt.NDArray[np.float64]
) -> None:
    y = target(law, batch)
    patterns, of_fold = np.unique(ready[:, layout.group], axis=0, return_inverse=True)
    for number, pattern in enumerate(patterns):
        rows, members = np.flatnonzero(pattern), np.flatnonzero(of_fold.ravel() == number)
        cell, inside = layout.cell[rows], layout.inside[rows]
        if not (folds.scored[members][:, cell] & inside).any():
            continue
        seen = ~folds.withheld[members][:, cell]
        shape = (len(answer), *seen.shape)
        n, r, target_, w = (np.broadcast_to(values[:, None, rows], shape) for values in (batch.n, batch.r, y, batch.weights))
        problems = (-1, *cell.shape)
        solutions = law.fit_shared(n.reshape(problems), r.reshape(problems), target_.reshape(problems), (w * seen).reshape(problems))
        predicted = solutions.predict(n.reshape(-1, cell.shape[1]), r.reshape(-1, cell.shape[1])).reshape(shape)
        fold, row, place = np.nonzero(folds.scored[members][:, cell] & inside)
        answer[:, rows[row], place] = predicted[:, fold, row, place]


LEVELS = ("all", "interior", "endpoint")


@dataclass(frozen=True, slots=True, kw_only=True)
class Accuracy:
    """How well held-out cells are predicted, by level; arrays are replicates x levels (LEVELS)."""

    rmse: npt.NDArray[np.float64]
    """All and endpoint cells with predictions clipped to [0, 1], interior cells as predicted; NaN where there is no cell."""
    cells: npt.NDArray[np.int64]
    outside: npt.NDArray[np.int64]
    """Predictions outside [0, 1], before clipping."""


def accuracy(error: npt.NDArray[np.float64], predicted: npt.NDArray[np.float64], inside: npt.NDArray[np.bool_]) -> Accuracy:
    """Root mean square of error minus prediction (replicates x cells) where there is a prediction; `inside`: interior cells."""
    known = np.isfinite(predicted)
    rmse, cells, outside = [], [], []
    for level, members in zip(LEVELS, (np.ones_like(inside), inside, ~inside), strict=True):
        used = known & members
        values = predicted if level == "interior" else np.clip(predicted, 0.0, 1.0)
        count = used.sum(axis=1)
        square = np.where(used, (error - values) ** 2, 0.0).sum(axis=1)
        rmse.append(np.sqrt(np.divide(square, count, out=np.full(len(count), np.nan), where=count > 0)))
        cells.append(count)
        outside.append((used & ((predicted < 0) | (predicted > 1))).sum(axis=1))
    return Accuracy(rmse=np.stack(rmse, axis=1), cells=np.stack(cells, axis=1), outside=np.stack(outside, axis=1))
