"""The cost law C = kappa N^p R^q (separable-law paper, Eq. 5), fitted by least squares in logarithms (E.1, Table 29)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from analyses.laws.determined import SAME_LEVEL

if TYPE_CHECKING:
    import numpy.typing as npt


@dataclass(frozen=True, slots=True, kw_only=True)
class CostLaw:
    """Cost of a cell; NaN in every number where the cells do not determine them."""

    kappa: float
    """Cost at N = 1 (a billion parameters) and R = 1, in the unit of the costs that were fitted."""
    p: float
    """Elasticity with respect to N."""
    q: float
    """Elasticity with respect to R."""
    r2: float
    """1 - SSE/SST of the logarithms; NaN where all costs are equal."""
    n: int
    """Cells with a positive N, R and cost; others are left out."""
    why: str | None = None
    """What the cells lack, where there is no fit."""

    def predict(self, N: npt.ArrayLike, R: npt.ArrayLike) -> npt.NDArray[np.float64]:  # noqa: N803 - the paper's letters
        """Cost at N (billions) and R (tokens)."""
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(self.kappa * np.asarray(N, dtype=float) ** self.p * np.asarray(R, dtype=float) ** self.q, dtype=float)


def fit_cost(N: npt.ArrayLike, R: npt.ArrayLike, C: npt.ArrayLike) -> CostLaw:  # noqa: N803 - the paper's letters
    """Ordinary least squares of log C on log N (billions) and log R, with an intercept; each cell counts once.

    N and R need two levels each; values within SAME_LEVEL (0.1%) are one.
    """
    values = np.stack(np.broadcast_arrays(*(np.asarray(axis, dtype=float).ravel() for axis in (N, R, C))))
    with np.errstate(invalid="ignore"):
        known = (np.isfinite(values) & (values > 0)).all(axis=0)
    x, y, cost = np.log(values[:, known])
    n = int(known.sum())
    why = _undetermined(x, y)
    if why is not None:
        return _none(n, why)
    origin = x.mean(), y.mean(), cost.mean()
    design = np.stack([x - origin[0], y - origin[1]], axis=1)
    centred = cost - origin[2]
    (p, q), _, _, _ = np.linalg.lstsq(design, centred, rcond=None)
    sse, sst = float(((centred - design @ (p, q)) ** 2).sum()), float((centred**2).sum())
    with np.errstate(over="ignore", under="ignore"):
        kappa = float(np.exp(origin[2] - p * origin[0] - q * origin[1]))
    if not 0 < kappa < np.inf:
        return _none(n, f"exponents of {p:.3g} and {q:.3g} leave no cost at N = 1 and R = 1")
    varied = sst > n * (np.spacing(np.abs(cost).max())) ** 2
    return CostLaw(kappa=kappa, p=float(p), q=float(q), r2=1 - sse / sst if varied else np.nan, n=n)


def _none(n: int, why: str) -> CostLaw:
    return CostLaw(kappa=np.nan, p=np.nan, q=np.nan, r2=np.nan, n=n, why=why)


def _undetermined(x: npt.NDArray[Any], y: npt.NDArray[Any]) -> str | None:
    """Why logarithms of N and R do not determine p and q."""
    if not len(x):
        return "no cell has a positive N, R and cost"
    if len(x) < 3:
        return "fewer than three cells have N, R and a cost"
    for what, values in (("N", x), ("R", y)):
        if np.ptp(values) <= np.log1p(SAME_LEVEL):
            return f"{what} has one level"
    centred = np.stack([x - x.mean(), y - y.mean()], axis=1)
    scaled = centred / np.linalg.norm(centred, axis=0)
    if np.linalg.matrix_rank(scaled, tol=1e-7) < 2:
        return "N and R move together"
    return None
