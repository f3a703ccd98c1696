"""The Visual-Parameter Exchange: where a budget goes under a separable law and a cost law (separable-law paper, E.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

DEGENERATE = 1e-8
"""An amplitude A_n or B_r below this leaves nothing to exchange: the closed form does not hold (E.3)."""


class Allocation(NamedTuple):
    """What minimises the error within the budget; NaN where the closed form does not hold."""

    N: npt.NDArray[np.float64]
    """Parameters, in the unit of the cost law (billions)."""
    R: npt.NDArray[np.float64]
    """Visual tokens."""


class Elasticities(NamedTuple):
    """Growth of the optimum with the budget; NaN where the closed form does not hold."""

    N: npt.NDArray[np.float64]
    """d log N* / d log C."""
    R: npt.NDArray[np.float64]
    """d log R* / d log C."""


def allocate(
    A: npt.ArrayLike,  # noqa: N803 - the paper's letters
    alpha: npt.ArrayLike,
    B: npt.ArrayLike,  # noqa: N803
    beta: npt.ArrayLike,
    kappa: npt.ArrayLike,
    p: npt.ArrayLike,
    q: npt.ArrayLike,
    budget: npt.ArrayLike,
) -> Allocation:
    """N* and R* (Eq. 26, taken in logarithms as Eq. 30); arguments broadcast.

    A = A_n Nref^alpha and B = B_r Rref^beta are physical amplitudes, N in the unit of kappa. Where any argument is not
    positive and finite the answer is NaN: the derivation needs all of them positive (Eq. 23).
    """
    given = np.broadcast_arrays(*(np.asarray(value, dtype=float) for value in (A, alpha, B, beta, kappa, p, q, budget)))
    with np.errstate(invalid="ignore"):
        valid = np.logical_and.reduce([np.isfinite(value) & (value > 0) for value in given])
    log_a, log_alpha, log_b, log_beta, log_kappa, log_p, log_q, log_budget = (np.log(np.where(valid, value, 1.0)) for value in given)
    shares = elasticities(*(given[place] for place in (1, 3, 5, 6)))
    log_k = log_alpha + log_a + log_q - log_beta - log_b - log_p
    rescaled = log_budget - log_kappa
    exponent, token_exponent, p_, q_ = (np.where(valid, given[place], 1.0) for place in (1, 3, 5, 6))
    d = p_ * token_exponent + q_ * exponent
    with np.errstate(over="ignore", under="ignore"):
        n = np.exp(shares.N * rescaled + q_ / d * log_k)
        r = np.exp(shares.R * rescaled - p_ / d * log_k)
    return Allocation(np.where(valid, n, np.nan), np.where(valid, r, np.nan))


def elasticities(alpha: npt.ArrayLike, beta: npt.ArrayLike, p: npt.ArrayLike, q: npt.ArrayLike) -> Elasticities:
    """beta/D and alpha/D with D = p beta + q alpha (Eq. 35); arguments broadcast, NaN where one is not positive and finite."""
    given = np.broadcast_arrays(*(np.asarray(value, dtype=float) for value in (alpha, beta, p, q)))
    with np.errstate(invalid="ignore"):
        valid = np.logical_and.reduce([np.isfinite(value) & (value > 0) for value in given])
    a, b, p_, q_ = (np.where(valid, value, 1.0) for value in given)
    d = p_ * b + q_ * a
    return Elasticities(np.where(valid, b / d, np.nan), np.where(valid, a / d, np.nan))


def degenerate(A_n: npt.ArrayLike, B_r: npt.ArrayLike) -> npt.NDArray[np.bool_]:  # noqa: N803 - the paper's letters
    """Whether a normalised amplitude is too small (or unknown) for the closed form."""
    a, b = np.broadcast_arrays(np.asarray(A_n, dtype=float), np.asarray(B_r, dtype=float))
    return ~((a >= DEGENERATE) & (b >= DEGENERATE))
