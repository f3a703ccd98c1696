"""The pieces of work of the hold-outs: which folds there are, and their refits on the cells as observed and resampled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from analyses.clusters import draw
from analyses.folds import fitted_groups, interior, make_folds
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
    ready: npt.NDArray[np.bool_]
    """Folds x groups: whether the group can be fitted without the withheld cells."""
    predicted: npt.NDArray[np.bool_]
    """Folds x cells: scored cells of groups that can be fitted."""
    inside: npt.NDArray[np.bool_]
    """Interior cells."""


def make_job(design: Design, scope: Scope, group: npt.NDArray[np.int64], cells: Cells, laws: Sequence[Law]) -> Job:
    """The folds of a design over the cells whose group is not negative, for laws that are to be compared on the same cells."""
    n, size = cells.parameters, cells.input_size
    folds = make_folds(design, scope, group, n, size)
    ready = fitted_groups(folds, group, (n, size, cells.tokens), need=cells_needed(laws, scope))
    known = np.where(group >= 0, group, 0)
    return Job(
        folds=folds,
        ready=ready,
        predicted=folds.scored & ready[:, known] if ready.shape[1] else folds.scored,
        inside=interior(design, group, n, size),
    )


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

    def predict(self, job: Job, law: Law, rebuilt: Rebuilt) -> npt.NDArray[np.float64]:
        """Replicates x cells: held-out predictions."""
        batch = batch_of(self.layout, rebuilt, self.parameters, self.reference)
        return self.layout.unpad(predictions(law, self.layout, batch, job.folds, job.ready), len(self.parameters))


def observed_piece(plan: Plan, piece: tuple[int, int]) -> npt.NDArray[np.float64]:
    """Predictions of each cell as observed, for a job and a law by number."""
    job, law = piece
    predicted: npt.NDArray[np.float64] = plan.predict(plan.jobs[job], plan.laws[law], plan.cells)[0]
    return predicted


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
