"""Paired differences of many sides: counts, exact tests, image-cluster bootstrap, smallest detectable differences. Arrays in, arrays out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from threadpoolctl import threadpool_limits

from analyses.clusters import draw
from analyses.compare.panel import HALF_DIGIT, own, sums_by_cluster, uneven_block
from analyses.intervals import Z
from analyses.paired import FEW, sign_flip
from analyses.progress import report

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from analyses.clusters import Clusters
    from analyses.compare.panel import Floats, Marks, Panel, Whole

CHUNK = 500
"""Replicates whose weights are in memory at a time."""
NUMBERS_AT_A_TIME = 4_000_000
"""Entries of the largest array of a block of pairs."""
LEVELS = (0.025, 0.975)
POWER_80 = 0.8416212335729143
"""The normal quantile of 80%."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs:
    """What is known of each pair; arrays with one entry per pair. Credits of a, b and their difference a - b are per question."""

    n: Whole
    """Common questions."""
    clusters: Whole
    accuracy_a: Floats
    accuracy_b: Floats
    wins: Whole
    """Questions where a has more credit than b."""
    losses: Whole
    binary: Marks
    """Whether every credit is 0 or 1."""
    square: Floats
    """Mean squared difference; for binary credit the share of questions on which the two disagree."""
    absolute: Floats
    """Mean absolute difference."""
    variance: Floats
    """Variance of the mean difference with image clusters drawn within strata."""
    differing: Whole
    """Clusters whose differences do not add up to 0."""
    flipped: Floats
    """Exact p of flipping the signs of the clusters' differences; NaN where more than FEW clusters differ."""
    low: Floats
    high: Floats

    @property
    def difference(self) -> Floats:
        """Mean difference."""
        return self.accuracy_a - self.accuracy_b

    @property
    def spread(self) -> Floats:
        """Sample variance of the differences of questions; NaN for fewer than two."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(np.maximum(self.square - self.difference**2, 0.0) * self.n / np.where(self.n > 1, self.n - 1, np.nan))

    @property
    def design_effect(self) -> Floats:
        """Variance with clusters over the variance of independent questions; NaN where nothing varies."""
        with np.errstate(invalid="ignore", divide="ignore"):
            independent = self.spread / self.n
            return np.where(independent > 0, self.variance / independent, np.nan)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """What is known of each side; arrays with one entry per side."""

    n: Whole
    """Questions at settings that some other side answered too."""
    accuracy: Floats
    low: Floats
    high: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Apart:
    """Mean differences of pairs on one panel."""

    clusters: Whole
    difference: Floats
    """NaN where a pair has no common question."""
    replicates: Floats
    """Pairs x replicates."""


def measure(panels: Sequence[Panel], clusters: Clusters, pairs: tuple[Whole, Whole], *, draws: int, seed: int) -> list[tuple[Pairs, Sides]]:
    """Compare the pairs (i, j) of sides on each of the panels, with the same resampled clusters for all of them.

    Intervals are 95% percentile intervals of the cluster bootstrap; NaN without draws and for fewer than two clusters. One BLAS thread: no thread count changes a digit.
    """
    with threadpool_limits(1):
        return [(work.pairs(*pairs), work.sides()) for work in resampled(panels, clusters, draws=draws, seed=seed)]


def resampled(panels: Sequence[Panel], clusters: Clusters, *, draws: int, seed: int) -> list[Work]:
    """The panels with their sums over clusters in every replicate, the same clusters for all panels."""
    works = [Work(one, clusters, draws) for one in panels]
    for first in range(0, draws, CHUNK):
        report("resampling", first, draws)
        weights = draw(clusters, seed, range(first, min(first + CHUNK, draws)))
        for work in works:
            work.resample(slice(first, first + len(weights)), weights)
    report("resampling", draws, draws)
    return works


class Work:
    """Sums of one panel over clusters, once and per replicate."""

    def __init__(self, one: Panel, clusters: Clusters, draws: int) -> None:
        self.panel, self.clusters, self.draws = one, clusters, draws
        self.cluster = clusters.of_question[one.even_question]
        self.sums = sums_by_cluster(one.even, self.cluster, len(clusters))
        self.count = np.bincount(self.cluster, minlength=len(clusters)).astype(float)
        self.binary: Marks = np.asarray(_binary(one.even).all(axis=1))
        self.uneven, self.place = np.unique(clusters.of_question[one.uneven_question], return_inverse=True)
        self.resampled = np.empty((len(one.even), draws))
        self.size = np.empty(draws)
        self.weights = np.empty((draws, len(self.uneven)), dtype=np.float32)

    def resample(self, rows: slice, weights: Floats) -> None:
        """Sums of the even questions of each side in some replicates."""
        self.resampled[:, rows] = self.sums @ weights.T
        self.size[rows] = weights @ self.count
        self.weights[rows] = weights[:, self.uneven]

    def sides(self) -> Sides:
        """Each side over its own questions."""
        credit, answered = own(self.panel)
        sums, counts = (sums_by_cluster(values, self.place, len(self.uneven)) for values in (credit, answered))
        n = self.panel.even.shape[1] + answered.sum(axis=1)
        low, high = self._interval(self.resampled + self._resampled(sums), self.size + self._resampled(counts))
        alone = np.count_nonzero(self.count[self.uneven] + counts, axis=1) + np.count_nonzero(np.delete(self.count, self.uneven)) < 2
        with np.errstate(invalid="ignore"):
            accuracy = (self.panel.even.sum(axis=1) + credit.sum(axis=1)) / n
        return Sides(n=n, accuracy=accuracy, low=np.where(alone, np.nan, low), high=np.where(alone, np.nan, high))

    def pairs(self, i: Whole, j: Whole) -> Pairs:
        """Each pair over its common questions."""
        parts = [self._block(i[rows], j[rows]) for rows in self.blocks(len(i))]
        return Pairs(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in Pairs.__slots__})

    def apart(self, i: Whole, j: Whole) -> Apart:
        """Mean difference of each pair, once and per replicate."""
        a, b, present = uneven_block(self.panel, i, j)
        n = self.panel.even.shape[1] + present.sum(axis=1)
        counts = sums_by_cluster(present, self.place, len(self.uneven))
        sums = sums_by_cluster(a - b, self.place, len(self.uneven))
        shared = np.count_nonzero(self.count[self.uneven] + counts, axis=1) + np.count_nonzero(np.delete(self.count, self.uneven))
        with np.errstate(invalid="ignore", divide="ignore"):
            return Apart(
                clusters=shared,
                difference=((self.panel.even[i] - self.panel.even[j]).sum(axis=1) + (a - b).sum(axis=1)) / n,
                replicates=(self.resampled[i] - self.resampled[j] + self._resampled(sums)) / (self.size + self._resampled(counts)),
            )

    def blocks(self, pairs: int) -> Iterator[slice]:
        """Pairs whose arrays are in memory at a time."""
        width = max(self.draws, self.panel.even.shape[1], self.panel.units.shape[1], len(self.clusters), 1)
        size = max(1, NUMBERS_AT_A_TIME // width)
        for first in range(0, max(pairs, 1), size):
            report("pairs", first, pairs)
            yield slice(first, first + size)

    def _block(self, i: Whole, j: Whole) -> Pairs:
        even = self.panel.even
        a, b, present = uneven_block(self.panel, i, j)
        apart = [even[i] - even[j], a - b]
        n = even.shape[1] + present.sum(axis=1)
        sums = sums_by_cluster(apart[1], self.place, len(self.uneven))
        counts = sums_by_cluster(present, self.place, len(self.uneven))
        total = self.sums[i] - self.sums[j]
        total[:, self.uneven] += sums
        size = np.tile(self.count, (len(i), 1))
        size[:, self.uneven] += counts
        low, high = self._interval(self.resampled[i] - self.resampled[j] + self._resampled(sums), self.size + self._resampled(counts))
        side_sums, shared = even.sum(axis=1), np.count_nonzero(size, axis=1)
        differing = np.abs(total) > HALF_DIGIT
        few = differing.sum(axis=1) <= FEW
        with np.errstate(invalid="ignore", divide="ignore"):
            return Pairs(
                n=n,
                clusters=shared,
                accuracy_a=(side_sums[i] + a.sum(axis=1)) / n,
                accuracy_b=(side_sums[j] + b.sum(axis=1)) / n,
                wins=sum(((part > HALF_DIGIT).sum(axis=1) for part in apart), np.zeros(len(i), dtype=np.int64)),
                losses=sum(((part < -HALF_DIGIT).sum(axis=1) for part in apart), np.zeros(len(i), dtype=np.int64)),
                binary=self.binary[i] & self.binary[j] & (_binary(a) & _binary(b)).all(axis=1),
                square=sum((np.einsum("pq,pq->p", part, part) for part in apart), np.zeros(len(i))) / n,
                absolute=sum((np.abs(part).sum(axis=1) for part in apart), np.zeros(len(i))) / n,
                variance=self._variance(total, size, n),
                differing=differing.sum(axis=1),
                flipped=np.array([sign_flip(row[mask]) if one else np.nan for row, mask, one in zip(total, differing, few, strict=True)]),
                low=np.where(shared < 2, np.nan, low),
                high=np.where(shared < 2, np.nan, high),
            )

    def _variance(self, total: Floats, size: Floats, n: Whole) -> Floats:
        """Eq. 15 of the separable-law paper for a mean difference, added over strata; m counts the clusters that the pair shares."""
        away = total - size * (total.sum(axis=1) / n)[:, None]
        member = np.zeros((len(self.clusters), int(self.clusters.stratum.max(initial=-1)) + 1))
        member[np.arange(len(self.clusters)), self.clusters.stratum] = 1.0
        m, linear, square = np.asarray(size > 0, dtype=float) @ member, away @ member, (away**2) @ member
        parts = np.where(m > 1, m / np.maximum(m - 1, 1.0) * (square - linear**2 / np.maximum(m, 1.0)), 0.0)
        return np.asarray(np.maximum(parts, 0.0).sum(axis=1) / n.astype(float) ** 2)

    def _resampled(self, sums: Floats) -> Floats:
        """Rows x replicates: weighted sums over the clusters of uneven questions."""
        resampled = np.zeros((len(sums), self.draws))
        for first in range(0, self.draws if len(self.uneven) else 0, CHUNK):
            rows = slice(first, first + CHUNK)
            resampled[:, rows] = sums @ self.weights[rows].T.astype(float)
        return resampled

    def _interval(self, numerator: Floats, denominator: Floats) -> tuple[Floats, Floats]:
        with np.errstate(invalid="ignore", divide="ignore"):
            return percentiles(numerator / denominator)


def percentiles(replicates: Floats) -> tuple[Floats, Floats]:
    """Ends of the 95% interval of each row; a replicate that is NaN (it holds none of a row's questions) is left out of its row."""
    if not replicates.shape[1]:
        return np.full(len(replicates), np.nan), np.full(len(replicates), np.nan)
    empty = np.isnan(replicates).any(axis=1)
    ends = np.full((2, len(replicates)), np.nan)
    ends[:, ~empty] = np.quantile(replicates[~empty], LEVELS, axis=1, overwrite_input=True)
    for row in np.flatnonzero(empty).tolist():
        known = replicates[row][~np.isnan(replicates[row])]
        if len(known):
            ends[:, row] = np.quantile(known, LEVELS)
    return ends[0], ends[1]


def _binary(values: Floats) -> Marks:
    return np.asarray((values == 0) | (values == 1), dtype=np.bool_)


def smallest_detectable(pairs: Pairs) -> Floats:
    """The smallest true difference that a two-sided test at 5% finds with 80% power, at the disagreement and clustering observed.

    Connor (1987, Biometrics 43, 207) for matched pairs: d sqrt(n) = z_a sqrt(psi) + z_b sqrt(psi - d^2), with psi the mean squared
    difference (for binary credit the share of questions on which the two disagree) and both times the design effect, solved for d.
    NaN where no difference would be found: it would have to be larger than the mean absolute difference.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        effect, n = pairs.design_effect, pairs.n.astype(float)
        psi = pairs.square * effect
        root = np.sqrt(psi * (n - effect * (Z**2 - POWER_80**2)))
        smallest = (Z * np.sqrt(psi * n) + POWER_80 * root) / (n + POWER_80**2 * effect)
        return np.where(smallest <= pairs.absolute, smallest, np.nan)
