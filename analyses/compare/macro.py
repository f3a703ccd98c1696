"""Differences in which every benchmark, not every question, has the same weight."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from threadpoolctl import threadpool_limits

from analyses.compare.pairs import percentiles, resampled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analyses.clusters import Clusters
    from analyses.compare.pairs import Pairs, Sides, Work
    from analyses.compare.panel import Floats, Panel, Whole


@dataclass(frozen=True, slots=True, kw_only=True)
class Macro:
    """Means over benchmarks; arrays with one entry per pair."""

    benchmarks: Whole
    """Benchmarks with a common question."""
    difference: Floats
    low: Floats
    """NaN where a benchmark has fewer than two images: its share of the uncertainty is not known."""
    high: Floats


def measure_both(
    panels: Sequence[Panel], benchmark: Whole, clusters: Clusters, pairs: tuple[Whole, Whole], *, draws: int, seed: int
) -> tuple[list[tuple[Pairs, Sides]], Macro]:
    """What `measure` gives for each panel, and of the first panel the mean difference over benchmarks (`benchmark` of each question)."""
    whole = panels[0]
    asked = np.unique(benchmark[np.concatenate([whole.even_question, whole.uneven_question])])
    parts = [whole.take(benchmark == one) for one in asked] if len(asked) > 1 else []
    with threadpool_limits(1):
        works = resampled([*panels, *parts], clusters, draws=draws, seed=seed)
        measured = [(work.pairs(*pairs), work.sides()) for work in works[: len(panels)]]
        every = measured[0][0]
        if not parts:
            return measured, Macro(benchmarks=(every.n > 0).astype(np.int64), difference=every.difference, low=every.low, high=every.high)
        return measured, _macro(works[0], works[len(panels) :], *pairs)


def _macro(whole: Work, works: Sequence[Work], i: Whole, j: Whole) -> Macro:
    blocks = [_block(works, i[rows], j[rows], whole.draws) for rows in whole.blocks(len(i))]
    return Macro(**{name: np.concatenate([getattr(block, name) for block in blocks]) for name in Macro.__slots__})


def _block(works: Sequence[Work], i: Whole, j: Whole, draws: int) -> Macro:
    benchmarks, total, replicates = np.zeros(len(i), dtype=np.int64), np.zeros(len(i)), np.zeros((len(i), draws))
    known = np.ones(len(i), dtype=bool)
    for work in works:
        apart = work.apart(i, j)
        shared = ~np.isnan(apart.difference)
        benchmarks += shared
        total += np.where(shared, apart.difference, 0.0)
        replicates += np.where(shared[:, None], apart.replicates, 0.0)
        known &= ~shared | (apart.clusters > 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        low, high = percentiles(replicates / benchmarks[:, None])
        difference = total / benchmarks
    return Macro(benchmarks=benchmarks, difference=difference, low=np.where(known, low, np.nan), high=np.where(known, high, np.nan))
