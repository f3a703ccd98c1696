"""The separable law L = e + A/N^alpha + B/R^beta, and its bounded version (separable-law paper, Eqs. 3 and 16)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy.special import expit, logit

from analyses.laws.axes import MomentAxis
from analyses.laws.engine import fit_many, fit_shared_many
from analyses.laws.fit import Fit
from analyses.laws.floor import Floor, floor_of
from analyses.laws.inputs import cells_of
from analyses.laws.limits import checked, checked_reference
from analyses.laws.solutions import Solutions
from analyses.laws.terms import in_units, term

if TYPE_CHECKING:
    import numpy.typing as npt

BOX = (0.05, 10.0)
"""Search range of an exponent (B.1)."""
LOWEST_ERROR = 0.001
AMPLITUDES = {"alpha": "a", "beta": "b"}
OPTIMIZERS = ("global", "paper")


def separable(n: Any, r: Any, e: Any, a: Any, alpha: Any, b: Any, beta: Any) -> Any:
    """The separable law."""
    return e + term(a, n, alpha) + term(b, r, beta)


def bounded(n: Any, r: Any, e: Any, a: Any, alpha: Any, b: Any, beta: Any) -> Any:
    """The separable law behind a logistic link."""
    return expit(separable(n, r, e, a, alpha, b, beta))


class SeparableLaw:
    """L(N, R) = e_inf + A N^-alpha + B R^-beta with A, B >= 0."""

    name = "separable"
    k = 5

    def __init__(
        self,
        *,
        alpha: tuple[float, float] = BOX,
        beta: tuple[float, float] = BOX,
        floor: str | Floor = "continuous",
        reference: tuple[float, float] | None = None,
        optimizer: Literal["global", "paper"] = "global",
    ) -> None:
        """`reference` are the N and R at which A_n and B_r are stated (default: geometric means of what is fitted)."""
        checked(alpha=alpha, beta=beta)
        checked_reference(reference)
        if optimizer not in OPTIMIZERS:
            message = f"there is no optimizer {optimizer!r}: there are {', '.join(OPTIMIZERS)}"
            raise ValueError(message)
        self.alpha, self.beta, self.floor, self.reference, self.optimizer = alpha, beta, floor_of(floor), reference, optimizer

    def fit(
        self,
        N: npt.ArrayLike | MomentAxis,  # noqa: N803 - the paper's letters
        R: npt.ArrayLike | MomentAxis,  # noqa: N803
        error: npt.ArrayLike,
        weights: npt.ArrayLike | None = None,
    ) -> Fit:
        """Fit one group: N, R and error of its cells (cells,), with weights if they differ.

        With a `MomentAxis` the mean power over a cell's questions takes the place of the power of their mean (B.8). Whatever can be
        fitted is: `Fit.status` says what so few cells do not determine. ValueError names the argument and the place for lengths that
        differ, values that are not finite, and N and R that are not positive, in a cell with weight.
        """
        (n_axis, r_axis), y, w = cells_of({"N": N, "R": R}, error, weights)
        self._checked(y[w > 0])
        reference = self.reference or (_centre(n_axis, w), _centre(r_axis, w))
        solution = self.fit_many(n_axis / reference[0], r_axis / reference[1], y, w)
        e, a, alpha, b, beta = (float(solution.parameters[name][0]) for name in ("e", "a", "alpha", "b", "beta"))
        return Fit(
            law=self.name,
            parameters={
                "e_inf": e,
                "A_n": a,
                "alpha": alpha,
                "B_r": b,
                "beta": beta,
                "A": in_units(a, reference[0], alpha),
                "B": in_units(b, reference[1], beta),
            },
            at_bound={name: "lower" if at < 0 else "upper" for name in ("alpha", "beta") if (at := int(solution.at_bound(name)[0])) != 0},
            reference=reference,
            N=n_axis,
            R=r_axis,
            error=y,
            weights=w,
            k=self.k,
            objective=float(solution.objective[0]),
            solution=solution,
            floor=self._floor(),
        )

    def fit_many(
        self,
        n: npt.ArrayLike | MomentAxis,
        r: npt.ArrayLike | MomentAxis,
        error: npt.ArrayLike,
        weights: npt.ArrayLike | None = None,
    ) -> Solutions:
        """Fit many groups at once on axes that are already normalised; arrays (cells,) or (fits, cells), weight 0 leaves a cell out.

        A fit without any weight has NaN parameters and objective 0. ValueError as in `fit`.
        """
        found = fit_many(
            n, r, self._target(error), weights, alpha=self.alpha, beta=self.beta, floor=self._floor(), optimizer=self.optimizer
        )
        return self._solutions(found, ())

    def fit_shared(self, n: npt.ArrayLike, r: npt.ArrayLike, error: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> Solutions:
        """Fit groups that share alpha and beta; arrays (groups, cells), or (problems, groups, cells) for many such problems at once.

        The solutions are one per group, in order; of many problems, all groups of the first, then of the second, and so on. The search
        is always the global one (floors on the grid are chosen by descent, which may miss the optimum by some 1e-4 of the objective). A
        group without any weight takes no part. ValueError as in `fit`.
        """
        target = self._target(error)
        stacked = target if target.ndim == 3 else target[None]
        found = fit_shared_many(n, r, stacked, weights, alpha=self.alpha, beta=self.beta, floor=self._floor())
        return self._solutions({name: values.ravel() for name, values in found.items()}, ("alpha", "beta"))

    def _solutions(self, found: dict[str, npt.NDArray[np.float64]], shared: tuple[str, ...]) -> Solutions:
        return Solutions(
            law=self.name,
            parameters={name: found[name] for name in ("e", "a", "alpha", "b", "beta")},
            objective=found["objective"],
            bounds={"alpha": self.alpha, "beta": self.beta},
            shared=shared,
            function=self._error,
            amplitude_of=AMPLITUDES,
        )

    def _floor(self) -> Floor:
        return self.floor

    @staticmethod
    def _checked(error: npt.NDArray[np.float64]) -> None:
        """ValueError for errors that the law cannot have."""

    @staticmethod
    def _target(error: npt.ArrayLike) -> npt.NDArray[np.float64]:
        return np.asarray(error, dtype=float)

    _error = staticmethod(separable)


class BoundedLaw(SeparableLaw):
    """L = sigma(c + A N^-alpha + B R^-beta), fitted on the logit of the error with c >= logit 0.001 (Eq. 16); e_inf is c."""

    name = "bounded"

    def _floor(self) -> Floor:
        return Floor("continuous", float(logit(LOWEST_ERROR)), np.inf)

    @staticmethod
    def _checked(error: npt.NDArray[np.float64]) -> None:
        outside = error[(error <= 0) | (error >= 1)]
        if len(outside):
            message = (
                f"{len(outside)} errors, such as {outside[0]:g}, have no logit: move them inside 0 and 1 (analyses.laws.separable.clipped)"
            )
            raise ValueError(message)

    @staticmethod
    def _target(error: npt.ArrayLike) -> npt.NDArray[np.float64]:
        return np.asarray(logit(np.asarray(error, dtype=float)), dtype=float)

    _error = staticmethod(bounded)


def _centre(axis: npt.NDArray[np.float64] | MomentAxis, weights: npt.NDArray[np.float64]) -> float:
    """Geometric mean of the cells with weight."""
    values = axis.mean if isinstance(axis, MomentAxis) else axis
    kept = values[weights > 0]
    return float(np.exp(np.log(kept[kept > 0]).mean())) if (kept > 0).any() else 1.0


def clipped(error: npt.ArrayLike, count: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Errors moved into [0.5/n, 1 - 0.5/n] for n answers, so that their logit is finite (ours; the paper leaves it open)."""
    edge = 0.5 / np.asarray(count, dtype=float)
    return np.asarray(np.clip(np.asarray(error, dtype=float), edge, 1 - edge))
