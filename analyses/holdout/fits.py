"""Refits of a law on the cells that each fold leaves, and its predictions of the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np

from analyses.folds import chunks
from analyses.laws import BoundedLaw, CoupledLaw, SeparableLaw
from analyses.laws.separable import clipped

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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
    """Fit the group of each fold without its withheld cells, in every replicate: (replicates x folds) fits, and the fold's row in the layout.

    All folds at once: `parts` makes parts of many folds.
    """
    row = np.searchsorted(layout.group, folds.group)
    withheld = folds.withholds(np.arange(len(folds))[:, None], layout.cell[row])
    fits = (-1, layout.cell.shape[1])
    n, r, y, w = (values[:, row].reshape(fits) for values in (batch.n, batch.r, target(law, batch), batch.weights * 1.0))
    w = w * ~np.broadcast_to(withheld, (len(batch.error), *withheld.shape)).reshape(fits)
    return law.fit_many(n, r, y, w), row


def parts(folds: Folds, width: int) -> Iterator[Folds]:
    """The folds in parts of fits of so many places each; no digit of a fit depends on the others of its part."""
    for start, stop in chunks(len(folds), width):
        yield folds.take(np.arange(start, stop))


def _own_exponents(
    law: Law, layout: Layout, batch: Batch, folds: Folds, ready: npt.NDArray[np.bool_], answer: npt.NDArray[np.float64]
) -> None:
    width = layout.cell.shape[1]
    for some in parts(folds.take(ready[np.arange(len(folds)), folds.group]), width * len(answer)):
        solutions, row = fold_fits(law, layout, batch, some)
        predicted = solutions.predict(batch.n[:, row].reshape(-1, width), batch.r[:, row].reshape(-1, width))
        predicted = predicted.reshape(len(answer), *layout.cell[row].shape)
        fold, place = np.nonzero(some.scores(np.arange(len(some))[:, None], layout.cell[row]) & layout.inside[row])
        answer[:, row[fold], place] = predicted[:, fold, place]


def _shared_exponents(
    law: Law, layout: Layout, batch: Batch, folds: Folds, ready: npt.NDArray[np.bool_], answer: npt.NDArray[np.float64]
) -> None:
    patterns, of_fold = np.unique(ready[:, layout.group], axis=0, return_inverse=True)
    for number, pattern in enumerate(patterns):
        rows = np.flatnonzero(pattern)
        alike = folds.take(of_fold.ravel() == number)
        cells = np.flatnonzero(np.isin(folds.cell_group, layout.group[rows]))
        alike = alike.take(np.unique(alike.scored_by[cells][alike.scored_by[cells] >= 0]))
        for some in parts(alike, layout.cell[rows].size * len(answer)):
            _shared_part(law, layout, batch, some, rows, answer)


def _shared_part(
    law: Law, layout: Layout, batch: Batch, folds: Folds, rows: npt.NDArray[np.int64], answer: npt.NDArray[np.float64]
) -> None:
    """Some folds over the same rows of the layout."""
    cell, fold = layout.cell[rows], np.arange(len(folds))[:, None, None]
    seen = ~folds.withholds(fold, cell)
    shape = (len(answer), *seen.shape)
    given = (batch.n, batch.r, target(law, batch), batch.weights)
    n, r, y, w = (np.broadcast_to(values[:, None, rows], shape) for values in given)
    problems = (-1, *cell.shape)
    solutions = law.fit_shared(n.reshape(problems), r.reshape(problems), y.reshape(problems), (w * seen).reshape(problems))
    predicted = solutions.predict(n.reshape(-1, cell.shape[1]), r.reshape(-1, cell.shape[1])).reshape(shape)
    scored, row, place = np.nonzero(folds.scores(fold, cell) & layout.inside[rows])
    answer[:, rows[row], place] = predicted[:, scored, row, place]


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
