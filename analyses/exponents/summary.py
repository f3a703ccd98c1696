"""What fitted exponents say together: medians, ranges, bounds, and which of the two is larger (separable-law paper, D.1, Table 27)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from analyses.law.fits import GroupFits


@dataclass(frozen=True, slots=True, kw_only=True)
class Exponents:
    """Exponents of several fits. Arrays have one entry per fit."""

    value: npt.NDArray[np.float64]
    """NaN where the fit does not determine it."""
    bound: npt.NDArray[np.int64]
    """-1 at the lower bound of the search, 1 at the upper one, else 0."""

    @property
    def known(self) -> npt.NDArray[np.bool_]:
        """Determined by the fit, at a bound or not."""
        return ~np.isnan(self.value)

    @property
    def interior(self) -> npt.NDArray[np.bool_]:
        """Determined and strictly inside the search range."""
        return np.asarray(self.known & (self.bound == 0))

    def take(self, rows: npt.NDArray[np.bool_]) -> Exponents:
        """Some of the fits."""
        return Exponents(value=self.value[rows], bound=self.bound[rows])


@dataclass(frozen=True, slots=True, kw_only=True)
class OneExponent:
    """One exponent over fits; NaN where no fit has it."""

    interior: int
    lower: int
    upper: int
    undetermined: int
    median: float
    """Of interior estimates."""
    low: float
    """Smallest interior estimate."""
    high: float
    """Largest interior estimate."""
    median_all: float
    """With those at a bound, which are limits rather than estimates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Balance:
    """alpha against beta over fits; the ratio is of fits that have both exponents inside their range."""

    both_interior: int
    ratio_median: float
    ratio_low: float
    ratio_high: float
    interior_alpha_greater: int
    interior_beta_greater: int
    alpha_greater: int
    """Over all fits that determine both, at bounds or not."""
    beta_greater: int


def exponents_of(fits: GroupFits, name: str) -> Exponents:
    """An exponent of every fit; NaN where the cells do not determine it."""
    determined = fits.determined[name]
    return Exponents(value=np.where(determined, fits.parameters[name], np.nan), bound=np.where(determined, fits.bound[name], 0))


def order_of(fits: GroupFits) -> npt.NDArray[np.float64]:
    """1 where alpha > beta, -1 where beta > alpha, 0 where equal; NaN where a group does not determine both."""
    return np.asarray(np.sign(exponents_of(fits, "alpha").value - exponents_of(fits, "beta").value))


def one_exponent(exponents: Exponents) -> OneExponent:
    """Counts, medians and range of one exponent."""
    inside, known = exponents.value[exponents.interior], exponents.value[exponents.known]
    return OneExponent(
        interior=len(inside),
        lower=int((exponents.known & (exponents.bound < 0)).sum()),
        upper=int((exponents.known & (exponents.bound > 0)).sum()),
        undetermined=int((~exponents.known).sum()),
        median=_median(inside),
        low=float(inside.min()) if len(inside) else float("nan"),
        high=float(inside.max()) if len(inside) else float("nan"),
        median_all=_median(known),
    )


def balance(alpha: Exponents, beta: Exponents) -> Balance:
    """Ratios and order of the two exponents."""
    both = alpha.interior & beta.interior
    ratio = alpha.value[both] / beta.value[both]
    known = alpha.known & beta.known
    return Balance(
        both_interior=int(both.sum()),
        ratio_median=_median(ratio),
        ratio_low=float(ratio.min()) if len(ratio) else float("nan"),
        ratio_high=float(ratio.max()) if len(ratio) else float("nan"),
        interior_alpha_greater=int((ratio > 1).sum()),
        interior_beta_greater=int((ratio < 1).sum()),
        alpha_greater=int((alpha.value[known] > beta.value[known]).sum()),
        beta_greater=int((alpha.value[known] < beta.value[known]).sum()),
    )


def _median(values: npt.NDArray[np.float64]) -> float:
    return float(np.median(values)) if len(values) else float("nan")
