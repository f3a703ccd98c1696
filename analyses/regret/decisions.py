"""Decisions under budgets: fits, candidates, choices of every rule, and what each choice costs in error (E.3, E.4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from analyses import choices
from analyses.folds import FITTED, chunks, make_folds, obstacles, whole_groups
from analyses.holdout.fits import fold_fits
from analyses.progress import report
from analyses.regret.places import Places

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from analyses.folds import Design, Folds
    from analyses.holdout.fits import Law
    from analyses.laws.cost import CostLaw
    from analyses.resampling import Batch, Layout

Evaluation = Literal["in_sample", "joint", "backbone", "input_size"]
EVALUATIONS: tuple[Evaluation, ...] = ("in_sample", "joint", "backbone", "input_size")
RULES = ("direct", "projection", "largest_tokens", "largest_backbone", "log_centre")
BOUNDED = "direct_bounded"
"""Direct selection by the bounded law."""
FEWEST = 2
"""Feasible candidates that make a decision."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Market:
    """What there is to choose from: groups as rows of a layout, arrays groups x width."""

    layout: Layout
    batch: Batch
    """The cells as observed, as one replicate."""
    group: npt.NDArray[np.int64]
    """Group of each cell; -1 where it takes no part."""
    n: npt.NDArray[np.float64]
    """N of each cell, billions; arrays of this kind have one entry per cell."""
    r: npt.NDArray[np.float64]
    input_size: npt.NDArray[np.float64]
    error: npt.NDArray[np.float64]
    cost: npt.NDArray[np.float64]
    """NaN where unknown."""
    reference: tuple[float, float]
    percentiles: tuple[float, ...]

    @property
    def budgets(self) -> npt.NDArray[np.float64]:
        """Groups x percentiles: percentiles of the costs of all the group's cells."""
        return choices.budgets_of(self.layout.pad(self.cost, np.nan), self.percentiles)

    def ranges(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Lowest and highest value of each group, groups x 2."""
        padded = self.layout.pad(values)
        return np.stack([padded.min(axis=1), padded.max(axis=1)], axis=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Excluded:
    """How many decisions were planned, and why some are none."""

    planned: int
    not_fitted: int
    """What the fold leaves cannot be fitted."""
    without_cost: int
    """No cell of the group has a cost."""
    none_feasible: int
    one_feasible: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """Decisions, one per fold and budget with at least two feasible candidates. Arrays have one entry each."""

    fold: npt.NDArray[np.int64]
    row: npt.NDArray[np.int64]
    """Row of the group in the layout."""
    percentile: npt.NDArray[np.float64]
    budget: npt.NDArray[np.float64]
    feasible: npt.NDArray[np.int64]
    """Candidates that the budget allows."""
    two_axes: npt.NDArray[np.bool_]
    """Whether at least two N and two input sizes are feasible."""
    cross: npt.NDArray[np.bool_]
    """Whether the crossing of the fold's row and column is feasible, and two more cells on either."""
    best: npt.NDArray[np.int64]
    """The designated best cell: the first with the lowest observed error."""
    fallback: npt.NDArray[np.bool_]
    """Whether projection had no closed form and chose as direct selection does."""
    choice: dict[str, npt.NDArray[np.int64]]
    """The cell that each rule chose."""
    regret: dict[str, npt.NDArray[np.float64]]
    """Observed error of the choice minus the lowest feasible one, percentage points."""
    excluded: Excluded

    def __len__(self) -> int:
        """Number of decisions."""
        return len(self.fold)

    def hit(self, rule: str) -> npt.NDArray[np.bool_]:
        """Whether a rule chose the designated best cell."""
        return np.asarray(self.choice[rule] == self.best)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decisions(Made):
    """The decisions of an evaluation."""

    evaluation: Evaluation
    folds: Folds
    obstacles: npt.NDArray[np.int8]
    """What keeps each fold from being fitted."""


def folds_of(evaluation: Evaluation, market: Market) -> Folds:
    """The folds of an evaluation; in sample, one per group that withholds nothing and scores every cell."""
    if evaluation == "in_sample":
        return whole_groups(market.group, market.n, market.input_size)
    design: Design = evaluation
    return make_folds(design, "group", market.group, market.n, market.input_size)


def decide(evaluation: Evaluation, market: Market, law: Law, bounded: Law | None, cost_law: CostLaw) -> Decisions:
    """Every decision of an evaluation; candidates are the withheld cells (in sample: all cells) of the group with a known cost.

    Folds are taken in parts of bounded size; no digit depends on them.
    """
    folds = folds_of(evaluation, market)
    axes = market.n, market.input_size, market.r
    found = obstacles(folds, market.group, axes, need=law.k, error=market.error)[np.arange(len(folds)), folds.group]
    used = np.flatnonzero(found == FITTED)
    work = _Work(market=market, budgets=market.budgets, laws=(law, bounded), cost_law=cost_law, in_sample=evaluation == "in_sample")
    made = []
    for start, stop in list(chunks(len(used), market.layout.cell.shape[1] * len(market.percentiles))) or [(0, 0)]:
        report(f"decisions, {evaluation}", start, len(used))
        made.append(work.part(folds, used[start:stop]))
    report(f"decisions, {evaluation}", len(used), len(used))
    levels = len(market.percentiles)
    return Decisions(
        evaluation=evaluation,
        folds=folds,
        obstacles=found,
        excluded=Excluded(
            planned=len(folds) * levels,
            not_fitted=(len(folds) - len(used)) * levels,
            **{name: sum(getattr(part.excluded, name) for part in made) for name in ("without_cost", "none_feasible", "one_feasible")},
        ),
        **_joined(made),
    )


def _joined(parts: Sequence[Made]) -> dict[str, Any]:
    """Arrays of the parts one after the other."""
    names = ("fold", "row", "percentile", "budget", "feasible", "two_axes", "cross", "best", "fallback")
    return {name: np.concatenate([getattr(part, name) for part in parts]) for name in names} | {
        name: {rule: np.concatenate([getattr(part, name)[rule] for part in parts]) for rule in getattr(parts[0], name)}
        for name in ("choice", "regret")
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    """What the decisions of some folds need."""

    market: Market
    budgets: npt.NDArray[np.float64]
    """Groups x percentiles."""
    laws: tuple[Law, Law | None]
    """The separable law, and the bounded one."""
    cost_law: CostLaw
    in_sample: bool

    def part(self, folds: Folds, numbers: npt.NDArray[np.int64]) -> Made:
        """The decisions of some folds, given by number."""
        market, (law, bounded) = self.market, self.laws
        used = folds.take(numbers)
        row = np.searchsorted(market.layout.group, used.group)
        cells = market.layout.cell[row]
        withheld = used.scores if self.in_sample else used.withholds
        candidate = withheld(np.arange(len(used))[:, None], cells) & market.layout.inside[row]
        fold, level = (axis.ravel() for axis in np.indices((len(used), len(market.percentiles))))
        budget = self.budgets[row[fold], level]
        feasible = candidate[fold] & choices.affordable(market.cost[cells[fold]], budget[:, None])
        count, costless = feasible.sum(axis=1), np.isnan(budget)
        kept = np.flatnonzero(count >= FEWEST)
        fold, feasible, budget = fold[kept], feasible[kept], budget[kept]
        place = Places(market=market, row=row[fold], cells=cells[fold], feasible=feasible, budget=budget)
        solutions = fold_fits(law, market.layout, market.batch, used)[0] if len(used) else None
        chosen, fallback = place.choose(solutions, fold, self.cost_law, in_sample=self.in_sample)
        if bounded is not None:
            none = np.zeros(0, dtype=np.int64)
            chosen[BOUNDED] = place.direct(fold_fits(bounded, market.layout, market.batch, used)[0], fold) if len(used) else none
        best = choices.first_lowest(place.of(market.error), feasible)
        return Made(
            fold=numbers[fold],
            row=row[fold],
            percentile=np.array(market.percentiles)[level[kept]],
            budget=budget,
            feasible=count[kept],
            two_axes=place.levels(market.n) & place.levels(market.input_size),
            cross=place.cross(used, fold),
            best=place.cell(best),
            fallback=fallback,
            choice={rule: place.cell(choice) for rule, choice in chosen.items()},
            regret={rule: place.regret(choice, best) for rule, choice in chosen.items()},
            excluded=Excluded(
                planned=len(costless),
                not_fitted=0,
                without_cost=int(costless.sum()),
                none_feasible=int(((count == 0) & ~costless).sum()),
                one_feasible=int((count == 1).sum()),
            ),
        )
