"""Refits on resampled image clusters: cells of replicates in padded batches, so that all groups of many replicates are one call.

A worker needs `ClusterSums` and a `Layout`, never the answers: `resampled(sums, range(500), seed=...)` gives the cells of replicates
piece by piece, `batch_of` lays them out for `fit_many`, and `refit` runs a law over all of it with `run_pieces`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from analyses.clusters import Rebuilt, draw
from analyses.executor import LOCAL, run_pieces
from analyses.few_clusters import varies
from analyses.laws.separable import clipped
from analyses.laws.solutions import ZERO
from analyses.laws.terms import term

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from analyses.cells import CellStudy, Groups
    from analyses.clusters import ClusterSums, Resampling
    from analyses.laws import Solutions

PIECE = 25
"""Replicates of one piece of work; no number of workers changes it."""
SECONDS_A_FIT = {"separable": 2.5e-4, "bounded": 2.5e-4}
SECONDS_ELSE = 2.5e-3
"""Guesses, for the decision whether worker processes pay."""


class Law(Protocol):
    """What a law offers to refits."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def k(self) -> int:
        """Parameters of one fit."""

    def fit_many(self, n: Any, r: Any, error: Any, weights: Any = None) -> Solutions:
        """Fit many groups at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Groups of different sizes as rows of one width: cell numbers, and which places hold a cell."""

    group: npt.NDArray[np.int64]
    """Number of each row's group in `study.groups`."""
    cell: npt.NDArray[np.int64]
    """Rows x width: cell at each place; padded with the row's first cell."""
    inside: npt.NDArray[np.bool_]
    """Rows x width: whether the place holds a cell."""

    @classmethod
    def of(cls, groups: Groups, keep: npt.NDArray[np.bool_], fitted: Sequence[int] | None = None) -> Layout:
        """The kept cells of the groups (of `fitted` alone, if given) that have any, in order."""
        members = [(group, np.flatnonzero((groups.code == group) & keep)) for group in (range(len(groups)) if fitted is None else fitted)]
        members = [(group, cells) for group, cells in members if len(cells)]
        width = max((len(cells) for _, cells in members), default=0)
        cell, inside = np.zeros((len(members), width), dtype=np.int64), np.zeros((len(members), width), dtype=bool)
        for row, (_, cells) in enumerate(members):
            cell[row], cell[row, : len(cells)], inside[row, : len(cells)] = cells[0], cells, True
        return cls(group=np.array([group for group, _ in members], dtype=np.int64), cell=cell, inside=inside)

    def __len__(self) -> int:
        """Number of groups."""
        return len(self.group)

    def pad(self, values: npt.NDArray[np.float64], fill: float | None = None) -> npt.NDArray[np.float64]:
        """Values by cell (..., cells) as (..., groups, width); padding repeats the first cell of the group, or is `fill` (weights: 0)."""
        padded = np.asarray(values, dtype=float)[..., self.cell]
        return padded if fill is None else np.where(self.inside, padded, fill)

    def unpad(self, values: npt.NDArray[np.float64], cells: int) -> npt.NDArray[np.float64]:
        """The reverse: (..., groups, width) as (..., cells); NaN for a cell of no group."""
        flat = np.full((*values.shape[:-2], cells), np.nan)
        flat[..., self.cell[self.inside]] = values[..., self.inside]
        return flat


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Cells of replicates for `fit_many`: arrays replicates x groups x width on normalised axes; weight 0 for padding and lost cells."""

    n: npt.NDArray[np.float64]
    """N / Nref."""
    r: npt.NDArray[np.float64]
    """R / Rref."""
    error: npt.NDArray[np.float64]
    weights: npt.NDArray[np.float64]
    count: npt.NDArray[np.float64]
    """Answers of each cell in the replicate."""
    lost: npt.NDArray[np.int64]
    """Replicates x groups: cells without answers or tokens in the replicate."""

    def supported(self, k: int) -> npt.NDArray[np.bool_]:
        """Replicates x groups: at least k cells, two values on both axes and of the error: what a law with k parameters needs."""
        inside = self.weights > 0
        enough = inside.sum(axis=-1) >= k
        for values in (self.n, self.r, self.error):
            high = np.where(inside, values, -np.inf).max(axis=-1, initial=-np.inf)
            low = np.where(inside, values, np.inf).min(axis=-1, initial=np.inf)
            enough &= high > low
        return np.asarray(enough)


def batch_of(
    layout: Layout,
    rebuilt: Rebuilt,
    parameters: npt.NDArray[np.float64],
    reference: tuple[float, float],
    weights: npt.NDArray[np.float64] | None = None,
) -> Batch:
    """Lay out the cells of replicates; `parameters` (N in billions) and `weights` (default 1) by cell, `reference` the N and R of 1."""
    present = (rebuilt.n > 0) & (rebuilt.tokens > 0) & ~np.isnan(rebuilt.error)
    inside = layout.inside & present[..., layout.cell]
    w = np.where(inside, 1.0 if weights is None else layout.pad(weights), 0.0)
    return Batch(
        n=np.broadcast_to(layout.pad(parameters) / reference[0], inside.shape),
        r=np.where(inside, layout.pad(rebuilt.tokens) / reference[1], 1.0),
        error=np.where(inside, layout.pad(rebuilt.error), 0.5),
        weights=w,
        count=np.where(inside, layout.pad(rebuilt.n), 1.0),
        lost=np.asarray((layout.inside & ~inside).sum(axis=-1), dtype=np.int64),
    )


def observed(study: CellStudy) -> Rebuilt:
    """The cells as they are, as the one replicate of a `Rebuilt`."""
    return Rebuilt(n=study.cells.n[None].astype(float), error=study.cells.error[None], tokens=study.cells.tokens[None])


def pieces_of(replicates: int, size: int = PIECE) -> list[range]:
    """Numbers of replicates in pieces for `run_pieces`."""
    return [range(start, min(start + size, replicates)) for start in range(0, replicates, size)]


def resampled(
    sums: ClusterSums, replicates: Sequence[int], *, seed: int, kind: Resampling = "ordinary", size: int = PIECE
) -> Iterator[Rebuilt]:
    """The cells of numbered replicates, `size` at a time; seed and number alone decide a replicate."""
    for start in range(0, len(replicates), size):
        yield sums.rebuild(draw(sums.clusters, seed, replicates[start : start + size], kind))


@dataclass(frozen=True, slots=True, kw_only=True)
class Refits:
    """Fits of a law to groups in replicates: arrays replicates x groups, NaN where a replicate left too little to fit."""

    parameters: dict[str, npt.NDArray[np.float64]]
    objective: npt.NDArray[np.float64]
    at_bound: dict[str, npt.NDArray[np.int64]]
    """-1 at the lower, 1 at the upper bound, 0 inside, not determined or not fitted."""
    determined: dict[str, npt.NDArray[np.bool_]]
    """Whether the refit has the exponent's term at all: where its amplitude is zero the exponent says nothing."""
    fitted: npt.NDArray[np.bool_]
    lost: npt.NDArray[np.int64]
    """Cells that lost all their answers in the replicate."""
    varies: npt.NDArray[np.bool_] | None = None
    """Groups whose cells change from replicate to replicate; None: not looked at."""

    def interval(self, values: npt.NDArray[np.float64], level: float = 0.95) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Ends of the percentile intervals of values (replicates x groups); NaN for groups that do not vary."""
        low, high = percentiles(values, level)
        if self.varies is not None:
            low[~self.varies] = high[~self.varies] = np.nan
        return low, high

    @classmethod
    def joined(cls, parts: Sequence[Refits]) -> Refits:
        """Pieces one after the other."""
        parameters = dict.fromkeys(name for part in parts for name in part.parameters)
        shapes = dict.fromkeys(name for part in parts for name in part.at_bound)
        nothing = {id(part): np.full(part.objective.shape, np.nan) for part in parts}
        return cls(
            parameters={name: np.concatenate([part.parameters.get(name, nothing[id(part)]) for part in parts]) for name in parameters},
            objective=np.concatenate([part.objective for part in parts]),
            at_bound={name: np.concatenate([part.at_bound.get(name, np.zeros_like(part.lost)) for part in parts]) for name in shapes},
            determined={name: np.concatenate([part.determined.get(name, part.lost < 0) for part in parts]) for name in shapes},
            fitted=np.concatenate([part.fitted for part in parts]),
            lost=np.concatenate([part.lost for part in parts]),
        )


def target(law: Law, batch: Batch) -> npt.NDArray[np.float64]:
    """The errors that a law is fitted to: for the bounded one clipped by their counts, so that their logit is finite."""
    return clipped(batch.error, batch.count) if law.name == "bounded" else batch.error


def fit_batch(law: Law, batch: Batch) -> Refits:
    """Fit a law to every group of every replicate in one call."""
    fitted = batch.supported(law.k)
    if not fitted.any():
        nothing = np.full(fitted.shape, np.nan)
        return Refits(parameters={}, objective=nothing, at_bound={}, determined={}, fitted=fitted, lost=batch.lost)
    return refits_of(law.fit_many(batch.n[fitted], batch.r[fitted], target(law, batch)[fitted], batch.weights[fitted]), batch, fitted)


def refits_of(found: Solutions, batch: Batch, fitted: npt.NDArray[np.bool_]) -> Refits:
    """Solutions of the fitted places of a batch as arrays replicates x groups."""

    def spread(values: npt.NDArray[Any], empty: float) -> npt.NDArray[Any]:
        full = np.full(fitted.shape, empty, dtype=values.dtype)
        full[fitted] = values
        return full

    places = batch.n[fitted], batch.r[fitted], batch.weights[fitted]
    determined = {name: has_term(found, name, *places) for name in found.bounds}
    return Refits(
        parameters={name: spread(values, np.nan) for name, values in found.parameters.items()},
        objective=spread(found.objective, np.nan),
        at_bound={name: spread(np.where(has, found.at_bound(name), 0), 0) for name, has in determined.items()},
        determined={name: spread(has, 0) for name, has in determined.items()},
        fitted=fitted,
        lost=batch.lost,
    )


def has_term(
    found: Solutions, exponent: str, n: npt.NDArray[np.float64], r: npt.NDArray[np.float64], weights: npt.NDArray[np.float64]
) -> npt.NDArray[np.bool_]:
    """Whether the term of an exponent exceeds ZERO anywhere in its group; arrays (..., cells), the answer (...)."""
    amplitude, axis = {"alpha": ("a", n), "beta": ("b", r), "gamma": ("c", n * r)}[exponent]
    size = found.parameters.get(amplitude, found.parameters["a"])  # one amplitude serves both axes of the multiplicative law
    lowest = np.where(weights > 0, axis, np.inf).min(axis=-1)
    return np.asarray((term(size, lowest.ravel(), found.parameters[exponent]) >= ZERO).reshape(lowest.shape))


def percentiles(values: npt.NDArray[np.float64], level: float = 0.95) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Ends of the percentile interval over the first axis, NaN aside (linear interpolation); NaN where nothing is left."""
    low, high = quantiles(values, ((1 - level) / 2, (1 + level) / 2))
    return low, high


def quantiles(values: npt.NDArray[np.float64], at: Sequence[float]) -> npt.NDArray[np.float64]:
    """Quantiles over the first axis, NaN aside (linear interpolation); NaN where nothing is left: len(at) x the other axes.

    Between a finite and an infinite value the answer is the infinite one (the upper one between both infinities).
    """
    found = np.full((len(at), *values.shape[1:]), np.nan)
    some = ~np.isnan(values).all(axis=0)
    chosen = values[:, some]
    with np.errstate(invalid="ignore"):
        found[:, some] = np.nanquantile(chosen, at, axis=0)
    if np.isinf(chosen).any():
        below, above = (np.nanquantile(chosen, at, axis=0, method=method) for method in ("lower", "higher"))
        found[:, some] = np.select([below == above, np.isinf(above), np.isinf(below)], [below, above, below], found[:, some])
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What every piece of a bootstrap needs; small, and sent to each worker once."""

    sums: ClusterSums
    layout: Layout
    law: Law
    parameters: npt.NDArray[np.float64]
    """N of each cell, billions."""
    reference: tuple[float, float]
    weights: npt.NDArray[np.float64] | None
    seed: int
    kind: Resampling

    def batch(self, replicates: Sequence[int]) -> Batch:
        """The cells of some replicates, laid out."""
        rebuilt = self.sums.rebuild(draw(self.sums.clusters, self.seed, replicates, self.kind))
        return batch_of(self.layout, rebuilt, self.parameters, self.reference, self.weights)


def refit_piece(plan: Plan, replicates: Sequence[int]) -> Refits:
    """One piece of `intervals_of`."""
    return fit_batch(plan.law, plan.batch(replicates))


def intervals_of(
    study: CellStudy,
    sums: ClusterSums,
    layout: Layout,
    law: Law,
    replicates: int,
    *,
    kind: Resampling = "ordinary",
    weights: npt.NDArray[np.float64] | None = None,
    workers: int | None = None,
    executor: str = LOCAL,
    what: str = "bootstrap refits",
) -> Refits:
    """Refit a law to the groups of a layout in replicates of the study's image clusters; percentiles of the arrays are intervals.

    `weights` are by cell and stay as they are in every refit. The seed is the study's.
    """
    plan = Plan(
        sums=sums,
        layout=layout,
        law=law,
        parameters=study.cells.parameters,
        reference=study.reference,
        weights=weights,
        seed=study.opened.parameters.seed,
        kind=kind,
    )
    seconds = replicates * len(layout) * SECONDS_A_FIT.get(law.name, SECONDS_ELSE)
    refits = Refits.joined(
        run_pieces(refit_piece, plan, pieces_of(replicates), what=what, workers=workers, executor=executor, seconds=seconds)
    )
    return replace(refits, varies=varies(sums, layout))
