"""The p-norm law L = ((A N^-alpha)^p + (B R^-beta)^p + C^p)^(1/p) (separable-law paper, Eq. 14)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from scipy.optimize import minimize

from analyses.laws.coarse import lowest
from analyses.laws.limits import checked, checked_reference
from analyses.laws.linear import best_amplitudes
from analyses.laws.polish import by_differences, descend, unlogged
from analyses.laws.power_law import Law, rows, three
from analyses.laws.powers import SEPARABLE, data_of, grid, mesh
from analyses.laws.terms import in_units, scaled, term

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy.typing as npt

    from analyses.laws.powers import Array, Data
    from analyses.laws.solutions import Solutions

BOX = (0.05, 3.0)
ORDERS = (0.5, 15.0)
POINTS, ORDER_POINTS, STARTS = 11, 8, 8
CHUNK, TOGETHER = 100, 300_000
"""Points of the grid, and points times cells, that are solved at once."""
MANY, ENOUGH, FOLLOWED = 4000, 30, 2
"""Of more cells than `MANY` some stand for all, at least `ENOUGH` of a group, until the `FOLLOWED` best ends are followed on with all."""
STEPS, FEW = 200, 8
"""Gauss-Newton steps at most, and on the first grid."""
CONVERGED = 1e-14
"""The inner solution stands when no group's sum of squares falls by more than this part."""
TINY = np.finfo(float).tiny


def pnorm(n: Any, r: Any, a: Any, alpha: Any, b: Any, beta: Any, c: Any, p: Any) -> Any:
    """The p-norm law."""
    return (term(a, n, alpha) ** p + term(b, r, beta) ** p + c**p) ** (1.0 / p)


@dataclass(frozen=True, slots=True, kw_only=True)
class Powers:
    """Amplitudes of e^p = x1 n^-(alpha p) + x2 r^-(beta p) + x3 for shapes (Q, 3), and what they predict."""

    columns: Array
    """(Q, G, 3, C)"""
    amplitudes: Array
    """(Q, G, 3)"""
    predicted: Array
    """(Q, G, C), on the scale of e."""
    sse: Array
    """(Q, G)"""


class PNormLaw(Law):
    """L = ((A N^-alpha)^p + (B R^-beta)^p + C^p)^(1/p), A, B, C >= 0, alpha and beta in [0.05, 3], p in [0.5, 15].

    `inner` says how A, B and C are found for given shapes: "exact" minimises the squared error of e; "paper" is the paper's fitter,
    nonnegative least squares on e^p that is then scored on e. The exact fit never ends above the paper's.
    """

    name = "pnorm"
    k = 6
    shapes = ("alpha", "beta", "p")
    amplitudes = ("a", "b", "c")
    intercept = False
    amplitude_of: ClassVar[Mapping[str, str]] = {"alpha": "a", "beta": "b"}
    function = staticmethod(pnorm)

    def __init__(
        self,
        *,
        alpha: tuple[float, float] = BOX,
        beta: tuple[float, float] = BOX,
        p: tuple[float, float] = ORDERS,
        inner: Literal["exact", "paper"] = "exact",
        reference: tuple[float, float] | None = None,
    ) -> None:
        """`reference` are the N and R at which A_n and B_r are stated (default: geometric means of what is fitted)."""
        checked(alpha=alpha, beta=beta, p=p)
        checked_reference(reference)
        self.alpha, self.beta, self.p, self.inner, self.reference = alpha, beta, p, inner, reference

    @property
    def bounds(self) -> Mapping[str, tuple[float, float]]:
        """Search range of the exponents and of p."""
        return {"alpha": self.alpha, "beta": self.beta, "p": self.p}

    def physical(self, values: dict[str, float], reference: tuple[float, float]) -> dict[str, float]:
        """C, A_n, alpha, B_r, beta, p at the reference, and A, B in the units of N and R."""
        a, alpha, b, beta, c, p = (values[name] for name in ("a", "alpha", "b", "beta", "c", "p"))
        units = {"A": in_units(a, reference[0], alpha), "B": in_units(b, reference[1], beta)}
        return {"C": c, "A_n": a, "alpha": alpha, "B_r": b, "beta": beta, "p": p} | units

    def fit_many(self, n: npt.ArrayLike, r: npt.ArrayLike, error: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> Solutions:
        """Fit many groups, each with its own shapes, on normalised axes; arrays (cells,) or (fits, cells), weight 0 leaves a cell out."""
        return self._fit(*(rows(values) for values in (n, r, error, weights)), shared=())

    def fit_shared(self, n: npt.ArrayLike, r: npt.ArrayLike, error: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> Solutions:
        """Fit groups that share their shapes; arrays (groups, cells), or (problems, groups, cells) for many such problems at once."""
        return self._fit(*(three(values) for values in (n, r, error, weights)), shared=self.shapes)

    def _fit(self, *arrays: Any, shared: tuple[str, ...]) -> Solutions:
        data = data_of(SEPARABLE, *arrays)
        if (data.y[data.w > 0] < 0).any():
            message = "the p-norm law needs errors of at least 0"
            raise ValueError(message)
        if not data.y.size:
            return self.no_solutions(data, shared)
        found = [_Search(self, data.take(np.array([problem]))).best() for problem in range(len(data))]
        shapes = np.concatenate([shape for shape, _ in found]).repeat(data.y.shape[1], axis=0)
        root = np.concatenate([one.amplitudes[0] for _, one in found]) ** (1.0 / shapes[:, 2:])
        amplitudes = scaled(root[:, :2], shapes[:, :2] * data.shift.reshape(-1, 2))
        parameters = {"a": amplitudes[:, 0], "b": amplitudes[:, 1], "c": root[:, 2]}
        parameters |= {name: shapes[:, place] for place, name in enumerate(self.shapes)}
        return self.solutions(data, parameters, np.concatenate([one.sse[0] for _, one in found]), shared)


class _Search:
    """The search of one problem."""

    def __init__(self, law: PNormLaw, data: Data) -> None:
        self.law, self.data = law, data
        self.bounds = np.array([law.alpha, law.beta, law.p])
        self.box = np.log(self.bounds)
        self.scale = max(float((data.w * (data.y - data.mean[..., None]) ** 2).sum()), TINY)

    def best(self) -> tuple[Array, Powers]:
        """Shapes (1, 3) and what is solved there."""
        few = thinned(self.data)
        rough = self if few is None else _Search(self.law, few)
        shapes = rough.simplex(rough.minima(lambda some: rough.solved(some).sse))
        if few is not None:
            shapes = self.simplex(_lowest(shapes, self.solved(shapes), FOLLOWED))
        paper = _lowest(shapes, self.solved(shapes), 1)
        if self.law.inner == "paper":
            return paper, self.solved(paper)
        ends = rough.descended(np.concatenate([paper, rough.minima(lambda some: rough.exact(some, FEW).sse)]))
        if few is not None:
            ends = np.concatenate([paper, ends])
            ends = self.descended(_lowest(ends, self.exact(ends), FOLLOWED))
        shapes = np.concatenate([paper, ends])
        best = _lowest(shapes, self.exact(shapes), 1)
        return best, self.exact(best)

    def minima(self, sse: Callable[[Array], Array]) -> Array:
        """Shapes of the lowest local minima of the grid."""
        axes = [
            grid((float(low), float(high)), points) for (low, high), points in zip(self.bounds, (POINTS, POINTS, ORDER_POINTS), strict=True)
        ]
        points, size = mesh(axes), max(1, min(CHUNK, TOGETHER // self.data.y.size))
        total = np.concatenate([sse(points[at : at + size]).sum(axis=1) for at in range(0, len(points), size)])
        return points[lowest(total.reshape(1, *(len(axis) for axis in axes)), np.array([self.scale]), STARTS)[1]]

    def simplex(self, starts: Array) -> Array:
        """Starts, and where Nelder-Mead leads from each by the paper's objective."""
        ends = np.array(
            [minimize(self._score, np.log(start), bounds=self.box, method="Nelder-Mead", options=SIMPLEX).x for start in starts]
        )
        return np.concatenate([starts, unlogged(ends, ends, self.bounds)[0]])

    def descended(self, starts: Array) -> Array:
        """Where starts descend to by the exact objective."""
        return unlogged(*descend(partial(by_differences, self._exact_value, step=STEP), np.log(starts), self.box), self.bounds)[0]

    def solved(self, shapes: Array, *, weighted: bool = False) -> Powers:
        """Nonnegative least squares on e^p; weighted: with the squared slope of e in e^p at the data, which comes nearer to least squares on e."""
        p = shapes[:, 2, None, None]
        y = np.maximum(self.data.y, TINY)
        with np.errstate(over="ignore"):
            factor = (y ** (1.0 - p) / p) ** 2 if weighted else 1.0
        columns = self._columns(shapes)
        return self._powers(columns, _nonnegative(columns, y**p, self.data.w * np.minimum(factor, 1e12)), p)

    def exact(self, shapes: Array, steps: int = STEPS) -> Powers:
        """Least squares on e: Gauss-Newton on the amplitudes, each step a nonnegative least squares problem, halved until it descends."""
        p = shapes[:, 2, None, None]
        now, other = self.solved(shapes), self.solved(shapes, weighted=True)
        now = replace(now, **_chosen(other.sse < now.sse, other, now))
        for _ in range(steps):
            power = np.maximum((now.amplitudes[..., None, :] @ now.columns)[..., 0, :], TINY)
            slope = np.maximum(now.predicted, TINY) / (p * power)
            with np.errstate(over="ignore", invalid="ignore"):
                weight = np.clip(slope * slope, 0.0, 1e200) * self.data.w
                target = power + (self.data.y - now.predicted) / slope
            aim = _nonnegative(now.columns, np.nan_to_num(target), weight)
            before = now.sse
            for shorter in (1.0, 0.5, 0.25, 0.0625, 0.004):
                trial = self._powers(now.columns, now.amplitudes + shorter * (aim - now.amplitudes), p)
                now = replace(now, **_chosen((trial.sse < now.sse) & (now.sse == before), trial, now))
                if (now.sse < before).all():
                    break
            if (before - now.sse <= CONVERGED * before).all():
                break
        return now

    def _columns(self, shapes: Array) -> Array:
        decay = shapes[:, None, :2] * shapes[:, None, 2:]
        columns = np.exp(-decay[..., None] * self.data.x)
        return np.concatenate([columns, np.ones_like(columns[..., :1, :])], axis=-2)

    def _powers(self, columns: Array, amplitudes: Array, p: Array) -> Powers:
        predicted = np.maximum((amplitudes[..., None, :] @ columns)[..., 0, :], 0.0) ** (1.0 / p)
        sse = (self.data.w * (self.data.y - predicted) ** 2).sum(axis=-1)
        return Powers(columns=columns, amplitudes=amplitudes, predicted=predicted, sse=sse)

    def _score(self, logs: Array) -> float:
        """The paper's objective at log shapes (3,), in units of the total sum of squares."""
        return float(self.solved(np.exp(logs)[None]).sse.sum()) / self.scale

    def _exact_value(self, rows: npt.NDArray[np.int64], logs: Array) -> tuple[Array, Array]:
        """Objectives and gradients at log shapes (Q, 3), in units of the total sum of squares."""
        del rows
        shapes = np.exp(logs)
        one = self.exact(shapes)
        p = shapes[:, 2, None, None]
        power = np.maximum((one.amplitudes[..., None, :] @ one.columns)[..., 0, :], TINY)
        pull = -2.0 * self.data.w * (self.data.y - one.predicted) * one.predicted
        decay = shapes[:, None, :2, None] * p[..., None] * self.data.x
        parts = -(one.amplitudes[..., :2, None] * decay * one.columns[..., :2, :]) / (p * power)[..., None, :]
        by_shape = (pull[..., None, :] * parts).sum(axis=(1, 3))
        by_order = by_shape.sum(axis=1) - (pull * np.log(power) / p).sum(axis=(1, 2))
        return one.sse.sum(axis=1) / self.scale, np.concatenate([by_shape, by_order[:, None]], axis=1) / self.scale


SIMPLEX = {"maxiter": 600, "xatol": 1e-8, "fatol": 1e-13}
STEP = 1e-4
"""Step of differences of gradients."""


def thinned(data: Data) -> Data | None:
    """One problem with some of each group's cells in place of many, the same ones every time; None where they are not many."""
    used = data.w > 0
    if used.sum() <= MANY:
        return None
    size = max(ENOUGH, MANY // data.y.shape[1])
    order = np.argsort(np.where(used, np.random.default_rng(0).random(data.y.shape[-1]), np.inf), axis=-1)[..., :size]
    y, w, root = (np.take_along_axis(values, order, axis=-1) for values in (data.y, data.w, data.root))
    x = np.take_along_axis(data.x, order[..., None, :], axis=-1)
    total = np.maximum(w.sum(axis=-1), TINY)
    return replace(data, x=x, y=y, w=w, root=root, total=total, mean=(w * y).sum(axis=-1) / total)


def _lowest(shapes: Array, solved: Powers, count: int) -> Array:
    """The shapes with the lowest objective, first of equals first."""
    return shapes[np.argsort(solved.sse.sum(axis=1), kind="stable")[:count]]


def _nonnegative(columns: Array, target: Array, weight: Array) -> Array:
    """Amplitudes >= 0 of columns (Q, G, 3, C); target and weight are scaled so that powers do not overflow."""
    size = np.maximum(weight.max(axis=-1, keepdims=True), TINY)
    root = np.sqrt(weight / size)
    cols = columns * root[..., None, :]
    return best_amplitudes(cols @ np.swapaxes(cols, -1, -2), (cols @ (target * root)[..., None])[..., 0])


def _chosen(better: npt.NDArray[np.bool_], one: Powers, other: Powers) -> dict[str, Array]:
    return {
        "amplitudes": np.where(better[..., None], one.amplitudes, other.amplitudes),
        "predicted": np.where(better[..., None], one.predicted, other.predicted),
        "sse": np.where(better, one.sse, other.sse),
    }
