"""The candidates of decisions, and what every rule chooses of them (separable-law paper, E.3)."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from analyses import choices
from analyses.laws.allocation import allocate, degenerate
from analyses.laws.separable import BoundedLaw, separable

if TYPE_CHECKING:
    import numpy.typing as npt

    from analyses.folds import Folds
    from analyses.laws import Solutions
    from analyses.laws.cost import CostLaw
    from analyses.regret.decisions import Market

POINTS = 100.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """The candidates of decisions; arrays are decisions x width."""

    market: Market
    row: npt.NDArray[np.int64]
    cells: npt.NDArray[np.int64]
    feasible: npt.NDArray[np.bool_]
    budget: npt.NDArray[np.float64]

    def of(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Values of cells at their places."""
        return values[self.cells]

    def cell(self, places: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The cell at a place of each decision."""
        return self.cells[np.arange(len(places)), places]

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
    at_reference = float(cost_law.predict(*reference))
    n_star, r_star = allocate(a, alpha, b, beta, at_reference, cost_law.p, cost_law.q, budget)
    n_star, r_star = n_star * reference[0], r_star * reference[1]
    if not in_sample:
        poor = degenerate(a, b)
        return np.where(poor, np.nan, n_star), np.where(poor, np.nan, r_star)
    if cost_law.p > 0 and cost_law.q > 0:
        only_n, only_r = (b == 0) & (a > 0), (a == 0) & (b > 0)
        n_star = np.where(only_n, np.inf, np.where(only_r, 0.0, n_star))
        r_star = np.where(only_n, 0.0, np.where(only_r, np.inf, r_star))
    return n_star, r_star
