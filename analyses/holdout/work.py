"""The pieces of work of the hold-outs: which folds there are, and their refits on the cells as observed and resampled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from analyses.clusters import draw
from analyses.folds import FITTED, chunks, interior, make_folds, obstacles
from analyses.holdout.fits import LEVELS, accuracy, cells_needed, predictions
from analyses.resampling import batch_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from analyses.cells import Cells
    from analyses.clusters import ClusterSums, Rebuilt, Resampling
    from analyses.folds import Design, Folds, Scope
    from analyses.holdout.fits import Law
    from analyses.resampling import Layout


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The folds of a design, and what each leaves to fit."""

    folds: Folds
    need: int
    """Cells of a group that a fit needs."""
    obstacles: npt.NDArray[np.int8]
    """Folds x groups: what keeps the group from being fitted without the withheld cells."""
    predicted: npt.NDArray[np.bool_]
    """By cell: whether a fold scores it whose fit of its group is possible."""
    inside: npt.NDArray[np.bool_]
    """Interior cells."""

    @property
    def ready(self) -> npt.NDArray[np.bool_]:
        """Folds x groups: whether the group can be fitted without the withheld cells."""
        return np.asarray(self.obstacles == FITTED)

    def fitted(self, among: npt.NDArray[np.bool_] | None = None) -> int:
        """Folds that predict a cell (among some cells)."""
        cells = self.predicted if among is None else self.predicted & among
        return len(np.unique(self.folds.scored_by[cells]))


def make_job(design: Design, scope: Scope, group: npt.NDArray[np.int64], cells: Cells, laws: Sequence[Law]) -> Job:
    """The folds of a design over the cells whose group is not negative, for laws that are to be compared on the same cells."""
    n, size = cells.parameters, cells.input_size
    folds, need = make_folds(design, scope, group, n, size), cells_needed(laws, scope)
    found = obstacles(folds, group, (n, size, cells.tokens), need=need, error=cells.error)
    predicted = folds.scored_by >= 0
    predicted[predicted] = found[folds.scored_by[predicted], group[predicted]] == FITTED
    return Job(folds=folds, need=need, obstacles=found, predicted=predicted, inside=interior(design, group, n, size))


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What every piece of work needs; sent to each worker once."""

    layout: Layout
    parameters: npt.NDArray[np.float64]
    """N of each cell, billions."""
    reference: tuple[float, float]
    cells: Rebuilt
    """The cells as observed."""
    jobs: list[Job]
    laws: list[Law]
    sums: ClusterSums | None
    """For replicates."""
    seed: int
    kind: Resampling

    def predict(self, job: Job, law: Law, rebuilt: Rebuilt, some: slice = slice(None)) -> npt.NDArray[np.float64]:
        """Replicates x cells: held-out predictions, by some of the folds."""
        batch = batch_of(self.layout, rebuilt, self.parameters, self.reference)
        folds = job.folds.take(np.arange(len(job.folds))[some])
        return self.layout.unpad(predictions(law, self.layout, batch, folds, job.ready[some]), len(self.parameters))

    def pieces(self) -> list[tuple[int, int, int, int]]:
        """Pieces of work on the cells as observed: job and law by number, first fold, and the one after the last."""
        of_scope = {"group": self.layout.cell.shape[1], "shared": self.layout.cell.size}
        return [
            (number, law, start, stop)
            for number, job in enumerate(self.jobs)
            for law in range(len(self.laws))
            for start, stop in chunks(len(job.folds), of_scope[job.folds.scope])
        ]


def observed_piece(plan: Plan, piece: tuple[int, int, int, int]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """The cells, as observed, that some folds of a job predict by a law, and their predictions."""
    number, law, start, stop = piece
    job = plan.jobs[number]
    predicted = plan.predict(job, plan.laws[law], plan.cells, slice(start, stop))[0]
    cells = np.flatnonzero((job.folds.scored_by >= start) & (job.folds.scored_by < stop))
    return cells, predicted[cells]


def replicate_piece(plan: Plan, replicates: Sequence[int]) -> npt.NDArray[np.float64]:
    """RMSE of replicates x jobs x laws x LEVELS; every replicate repeats every fold from nothing."""
    if plan.sums is None:
        message = "no clusters to resample"
        raise ValueError(message)
    rebuilt = plan.sums.rebuild(draw(plan.sums.clusters, plan.seed, replicates, plan.kind))
    answer = np.empty((len(replicates), len(plan.jobs), len(plan.laws), len(LEVELS)))
    for j, job in enumerate(plan.jobs):
        for place, law in enumerate(plan.laws):
            answer[:, j, place] = accuracy(rebuilt.error, plan.predict(job, law, rebuilt), job.inside).rmse
    return answer
