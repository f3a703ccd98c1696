"""Decisions under budgets: fits, candidates, choices of every rule, and what each choice costs in error (E.3, E.4)."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from analyses import choices
from analyses.folds import Folds, fitted_groups, make_folds
from analyses.holdout.fits import fold_fits
from analyses.laws.allocation import allocate, degenerate
from analyses.laws.separable import BoundedLaw, separable

if TYPE_CHECKING:
    import numpy.typing as npt

    from analyses.folds import Design
    from analyses.holdout.fits import Law
    from analyses.laws import Solutions
    from analyses.laws.cost import CostLaw
    from analyses.resampling import Batch, Layout

Evaluation = Literal["in_sample", "joint", "backbone", "input_size"]
EVALUATIONS: tuple[Evaluation, ...] = ("in_sample", "joint", "backbone", "input_size")
RULES = ("direct", "projection", "largest_tokens", "largest_backbone", "log_centre")
BOUNDED = "direct_bounded"
"""Direct selection by the bounded law."""
POINTS = 100.0
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
class Decisions:
    """The decisions of an evaluation: one per fold and budget with at least two feasible candidates. Arrays have one entry each."""

    evaluation: Evaluation
    folds: Folds
    fold: npt.NDArray[np.int64]
    row: npt.NDArray[np.int64]
    """Row of the group in the layout."""
    percentile: npt.NDArray[np.float64]
    budget: npt.NDArray[np.float64]
    cells: npt.NDArray[np.int64]
    """Decisions x width: cells of the group."""
    feasible: npt.NDArray[np.bool_]
    """Decisions x width: candidates that the budget allows."""
    two_axes: npt.NDArray[np.bool_]
    """Whether at least two N and two input sizes are feasible."""
    cross: npt.NDArray[np.bool_]
    """Whether the crossing of the fold's row and column is feasible, and two more cells on either."""
    best: npt.NDArray[np.int64]
    """Place of the designated best: the first with the lowest observed error."""
    choice: dict[str, npt.NDArray[np.int64]]
    """Place that each rule chose."""
    fallback: npt.NDArray[np.bool_]
    """Whether projection had no closed form and chose as direct selection does."""
    regret: dict[str, npt.NDArray[np.float64]]
    """Observed error of the choice minus the lowest feasible one, percentage points."""
    fitted: npt.NDArray[np.bool_]
    """Whether each fold could be fitted."""
    excluded: Excluded

    def __len__(self) -> int:
        """Number of decisions."""
        return len(self.fold)

    def cell(self, places: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The cells at some places."""
        return self.cells[np.arange(len(places)), places]

    def hit(self, rule: str) -> npt.NDArray[np.bool_]:
        """Whether a rule chose the designated best cell."""
        return np.asarray(self.choice[rule] == self.best)


def folds_of(evaluation: Evaluation, market: Market) -> Folds:
    """The folds of an evaluation; in sample, one per group that withholds nothing and scores every cell."""
    if evaluation != "in_sample":
        design: Design = evaluation
        return make_folds(design, "group", market.group, market.n, market.input_size)
    groups = market.layout.group
    scored = np.asarray(market.group == groups[:, None])
    unknown = np.full(len(groups), np.nan)
    return Folds(
        design="joint",
        scope="group",
        group=groups,
        parameters=unknown,
        input_size=unknown,
        withheld=np.zeros_like(scored),
        scored=scored,
    )


def decide(evaluation: Evaluation, market: Market, law: Law, bounded: Law | None, cost_law: CostLaw) -> Decisions:
    """Every decision of an evaluation; candidates are the withheld cells (in sample: all cells) of the group with a known cost."""
    folds = folds_of(evaluation, market)
    fitted = fitted_groups(folds, market.group, (market.n, market.input_size, market.r), need=law.k)[np.arange(len(folds)), folds.group]
    used = folds.take(fitted)
    budgets = market.budgets
    row = np.searchsorted(market.layout.group, used.group)
    cells = market.layout.cell[row]
    withheld = used.scored if evaluation == "in_sample" else used.withheld
    candidate = np.take_along_axis(withheld, cells, axis=1) & market.layout.inside[row]
    fold, level = (axis.ravel() for axis in np.indices((len(used), len(market.percentiles))))
    budget = budgets[row[fold], level]
    feasible = candidate[fold] & choices.affordable(market.cost[cells[fold]], budget[:, None])
    count = feasible.sum(axis=1)
    kept = np.flatnonzero(count >= FEWEST)
    costless = np.isnan(budget)
    excluded = Excluded(
        planned=len(folds) * len(market.percentiles),
        not_fitted=(len(folds) - len(used)) * len(market.percentiles),
        without_cost=int(costless.sum()),
        none_feasible=int(((count == 0) & ~costless).sum()),
        one_feasible=int((count == 1).sum()),
    )
    fold, feasible, budget = fold[kept], feasible[kept], budget[kept]
    place = _Places(market=market, row=row[fold], cells=cells[fold], feasible=feasible, budget=budget)
    solutions = fold_fits(law, market.layout, market.batch, used)[0] if len(used) else None
    chosen, fallback = place.choose(solutions, fold, cost_law, in_sample=evaluation == "in_sample")
    if bounded is not None and len(used):
        chosen[BOUNDED] = place.direct(fold_fits(bounded, market.layout, market.batch, used)[0], fold)
    best = choices.first_lowest(place.of(market.error), feasible)
    return Decisions(
        evaluation=evaluation,
        folds=folds,
        fold=np.flatnonzero(fitted)[fold],
        row=row[fold],
        percentile=np.array(market.percentiles)[level[kept]],
        budget=budget,
        cells=cells[fold],
        feasible=feasible,
        two_axes=place.levels(market.n) & place.levels(market.input_size),
        cross=place.cross(used, fold),
        best=best,
        choice=chosen,
        fallback=fallback,
        regret={rule: place.regret(choice, best) for rule, choice in chosen.items()},
        fitted=fitted,
        excluded=excluded,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Places:
    """The candidates of decisions; arrays are decisions x width."""

    market: Market
    row: npt.NDArray[np.int64]
    cells: npt.NDArray[np.int64]
    feasible: npt.NDArray[np.bool_]
    budget: npt.NDArray[np.float64]

    def of(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Values of cells at their places."""
        return values[self.cells]

    def levels(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
        """Whether the feasible candidates have at least two different values."""
        spread = np.where(self.feasible, self.of(values), np.nan)
        low = np.where(np.isnan(spread), np.inf, spread).min(axis=1, initial=np.inf)
        high = np.where(np.isnan(spread), -np.inf, spread).max(axis=1, initial=-np.inf)
        return np.asarray(high > low)

    def cross(self, used: Folds, fold: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Whether the crossing of a joint fold is feasible, and at least two more cells of its row and of its column."""
        row = self.of(self.market.n) == used.parameters[fold, None]
        column = self.of(self.market.input_size) == used.input_size[fold, None]
        crossing = (self.feasible & row & column).any(axis=1)
        more = [(self.feasible & line).sum(axis=1) >= 2 for line in (row & ~column, column & ~row)]
        return np.asarray(crossing & more[0] & more[1])

    def regret(self, choice: npt.NDArray[np.int64], best: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Percentage points of error above the best; exactly 0 for equals."""
        error, rows = self.of(self.market.error), np.arange(len(choice))
        above = error[rows, choice] - error[rows, best]
        return np.where(above <= choices.EQUAL, 0.0, POINTS * above)

    def direct(self, solutions: Solutions, fold: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Direct selection by the fit of each decision's fold."""
        n, r = self.of(self.market.n) / self.market.reference[0], self.of(self.market.r) / self.market.reference[1]
        return choices.direct(order_of(solutions.take(fold), n, r), self.feasible)

    def choose(
        self, solutions: Solutions | None, fold: npt.NDArray[np.int64], cost_law: CostLaw, *, in_sample: bool
    ) -> tuple[dict[str, npt.NDArray[np.int64]], npt.NDArray[np.bool_]]:
        """The choice of every rule, and where projection fell back to direct selection."""
        n, r = self.of(self.market.n), self.of(self.market.r)
        static = {
            "largest_tokens": choices.largest_tokens(n, r, self.feasible),
            "largest_backbone": choices.largest_backbone(n, r, self.feasible),
            "log_centre": choices.log_centre(n, r, self.feasible),
        }
        if solutions is None:
            none = np.zeros(0, dtype=np.int64)
            return {"direct": none, "projection": none, **static}, none.astype(bool)
        selected = self.direct(solutions, fold)
        optimum = optimum_of(solutions.take(fold), self.market.reference, cost_law, self.budget, in_sample=in_sample)
        ranges = self.market.ranges(self.market.n)[self.row], self.market.ranges(self.market.r)[self.row]
        projected = choices.projection(n, r, self.feasible, optimum, ranges)
        fallback = projected < 0
        return {"direct": selected, "projection": np.where(fallback, selected, projected), **static}, fallback


def order_of(solutions: Solutions, n: npt.NDArray[np.float64], r: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """What is lowest where the predicted error is: for the bounded law the argument of its logistic link.

    Beyond the cells of a fit the link saturates, and candidates whose predicted errors are all 1 in floating point would be equal.
    """
    scale = dataclasses.replace(solutions, function=separable) if solutions.law == BoundedLaw.name else solutions
    return scale.predict(n, r)


def optimum_of(
    solutions: Solutions, reference: tuple[float, float], cost_law: CostLaw, budget: npt.NDArray[np.float64], *, in_sample: bool
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """N* (billions) and R* of each fit at its budget; NaN where there is no closed form.

    Held out, that is where A_n or B_r is below 1e-8 (E.3). In sample, where the paper has no such rule, a zero amplitude takes the
    limit: all of the budget goes to the other axis.
    """
    a, alpha, b, beta = (solutions.parameters[name] for name in ("a", "alpha", "b", "beta"))
    n_star, r_star = allocate(
        a * reference[0] ** alpha, alpha, b * reference[1] ** beta, beta, cost_law.kappa, cost_law.p, cost_law.q, budget
    )
    if not in_sample:
        poor = degenerate(a, b)
        return np.where(poor, np.nan, n_star), np.where(poor, np.nan, r_star)
    if cost_law.p > 0 and cost_law.q > 0:
        only_n, only_r = (b == 0) & (a > 0), (a == 0) & (b > 0)
        n_star = np.where(only_n, np.inf, np.where(only_r, 0.0, n_star))
        r_star = np.where(only_n, 0.0, np.where(only_r, np.inf, r_star))
    return n_star, r_star
