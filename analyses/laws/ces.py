"""The CES law L = e + K [w N^delta + (1-w) R^delta]^(-1/delta) (separable-law paper, Eq. 13)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.special import expit, logit

from analyses.laws.coarse import lowest
from analyses.laws.floor import CONTINUOUS, floor_of
from analyses.laws.limits import checked_reference
from analyses.laws.polish import by_differences, descend, refined, solve
from analyses.laws.power_law import Law, rows, three
from analyses.laws.powers import SEPARABLE, data_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from analyses.laws.floor import Floor
    from analyses.laws.polish import Inner
    from analyses.laws.powers import Array, Data
    from analyses.laws.solutions import Solutions

WEIGHTS = (1e-6, 1 - 1e-6)
"""0 < w < 1 in numbers (ours)."""
DELTAS = (-8.0, 4.0)
SMALL, TINY = 0.1, 1e-5
"""|delta| under which the logarithm is taken without cancellation, and under which derivatives come from a series."""
POINTS, STARTS, CHUNK = 25, 5, 250
STEP = 1e-5
"""Step of differences of gradients."""


def log_mean(a: Any, b: Any, w: Any, delta: Any) -> Any:
    """Logarithm of the mean: log [w exp(delta a) + (1-w) exp(delta b)] / delta; its limit at delta = 0 is w a + (1-w) b."""
    a, b, w, delta = np.broadcast_arrays(a, b, w, delta)
    step = np.where(delta == 0, 1.0, delta)
    near = np.clip(delta, -SMALL, SMALL)
    with np.errstate(over="ignore"):
        small = np.log1p(w * np.expm1(near * a) + (1 - w) * np.expm1(near * b)) / step
    large = np.logaddexp(np.log(w) + delta * a, np.log1p(-w) + delta * b) / step
    return np.where(delta == 0, w * a + (1 - w) * b, np.where(np.abs(delta) < SMALL, small, large))


def ces(n: Any, r: Any, e: Any, a: Any, w: Any, delta: Any) -> Any:
    """The CES law; a is K."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return e + a * np.exp(-log_mean(np.log(n), np.log(r), w, delta))


def slopes(a: Array, b: Array, w: Any, delta: Any) -> tuple[Array, Array]:
    """Derivatives of `log_mean` with respect to logit w and to delta."""
    mean = log_mean(a, b, w, delta)
    share = expit(logit(w) + delta * (a - b))
    step = np.where(np.abs(delta) < TINY, 1.0, delta)
    spread = w * (1 - w) * (a - b)
    by_weight = np.where(np.abs(delta) < TINY, spread * (1 + delta * (1 - 2 * w) * (a - b) / 2), (share - w) / step)
    series = spread * (a - b) / 2 + delta * spread * (1 - 2 * w) * (a - b) ** 2 / 3
    by_delta = np.where(np.abs(delta) < TINY, series, (share * a + (1 - share) * b - mean) / step)
    return by_weight, by_delta


class CESLaw(Law):
    """L(N, R) = e_inf + K [w N^delta + (1-w) R^delta]^(-1/delta), K >= 0, 0 < w < 1, delta in [-8, 4]; K is the parameter a of `Solutions`.

    w and K belong to the axes they are stated on: on N and R themselves they are others than on n = N/Nref and r = R/Rref.
    """

    name = "ces"
    k = 4
    shapes = ("w", "delta")
    amplitudes = ("a",)
    amplitude_of: ClassVar[Mapping[str, str]] = {"w": "a", "delta": "a"}
    function = staticmethod(ces)

    def __init__(
        self,
        *,
        w: tuple[float, float] = WEIGHTS,
        delta: tuple[float, float] = DELTAS,
        floor: str | Floor = "continuous",
        reference: tuple[float, float] | None = None,
    ) -> None:
        """`reference` are the N and R at which w and K_nr are stated (default: geometric means of what is fitted)."""
        if not 0 < w[0] <= w[1] < 1 or not -np.inf < delta[0] <= delta[1] < np.inf:
            message = f"bounds of w must be inside 0 and 1, those of delta finite, both in order, not {w}, {delta}"
            raise ValueError(message)
        checked_reference(reference)
        self.w, self.delta, self.floor, self.reference = w, delta, floor_of(floor), reference

    @property
    def bounds(self) -> Mapping[str, tuple[float, float]]:
        """Search range of w and delta."""
        return {"w": self.w, "delta": self.delta}

    def physical(self, values: dict[str, float], reference: tuple[float, float]) -> dict[str, float]:
        """e_inf, K_nr, w, delta on normalised axes."""
        del reference
        return {"e_inf": values["e"], "K_nr": values["a"], "w": values["w"], "delta": values["delta"]}

    def fit_many(self, n: npt.ArrayLike, r: npt.ArrayLike, error: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> Solutions:
        """Fit many groups, each with its own shapes, on normalised axes; arrays (cells,) or (fits, cells), weight 0 leaves a cell out."""
        return self._fit(*(rows(values) for values in (n, r, error, weights)), shared=())

    def fit_shared(self, n: npt.ArrayLike, r: npt.ArrayLike, error: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> Solutions:
        """Fit groups that share their shapes; arrays (groups, cells), or (problems, groups, cells) for many such problems at once."""
        return self._fit(*(three(values) for values in (n, r, error, weights)), shared=self.shapes)

    def _fit(self, *arrays: Any, shared: tuple[str, ...]) -> Solutions:
        data = data_of(SEPARABLE, *arrays)
        if not data.y.size:
            return self.no_solutions(data, shared)
        found = [self._search(data.take(np.array([problem]))) for problem in range(len(data))]
        shapes = np.array([shape for shape, _ in found]).repeat(data.y.shape[1], axis=0)
        parameters = {
            "e": np.concatenate([inner.floor[0] for _, inner in found]),
            "a": np.concatenate([inner.amplitudes[0, :, 0] for _, inner in found]),
            "w": expit(shapes[:, 0]),
            "delta": shapes[:, 1],
        }
        residual = np.concatenate([inner.residual for _, inner in found])
        objective = (data.w * residual**2).sum(axis=-1).ravel()
        return self.solutions(data, parameters, objective, shared)

    def _search(self, data: Data) -> tuple[Array, Inner]:
        """Best (logit w, delta) of one problem, and what is solved there."""
        box = [tuple(logit(np.array(self.w))), self.delta]
        axes = [np.unique(np.linspace(low, high, POINTS)) for low, high in box]
        points = np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=-1)
        smooth = CONTINUOUS if self.floor.kind == "grid" else self.floor
        objective = np.concatenate([self._inner(data, points[at : at + CHUNK], smooth)[1].objective for at in range(0, len(points), CHUNK)])
        scale = (data.w * (data.y - data.mean[..., None]) ** 2).sum(axis=(-1, -2))
        places = lowest(objective.reshape(1, *(len(axis) for axis in axes)), scale, STARTS)[1]
        ends, _ = descend(partial(self._derivatives, data, smooth), points[places], np.array(box))
        shapes = np.concatenate([points[places], ends])
        best = shapes[int(np.argmin(self._inner(data, shapes, self.floor)[1].objective))]
        phi, inner = self._inner(data, best[None], self.floor)
        return best, refined(phi, data, inner)

    @staticmethod
    def _inner(data: Data, shapes: Array, floor: Floor) -> tuple[Array, Inner]:
        """Columns and solutions of the one problem of `data` at shapes (Q, 2)."""
        logs = data.x + data.shift[..., None]
        w, delta = (shapes[:, place, None, None] for place in (0, 1))
        phi = np.exp(-log_mean(logs[..., 0, :], logs[..., 1, :], expit(w), delta))[..., None, :]
        return phi, solve(phi, data.take(np.zeros(len(shapes), dtype=np.int64)), floor)

    def _derivatives(self, data: Data, floor: Floor, rows: npt.NDArray[np.int64], at: Array) -> tuple[Array, Array, Array]:
        def evaluate(rows: npt.NDArray[np.int64], at: Array) -> tuple[Array, Array]:
            del rows
            phi, inner = self._inner(data, at, floor)
            logs = data.x + data.shift[..., None]
            pull = 2.0 * data.w * inner.residual * inner.amplitudes * phi[..., 0, :]
            by = slopes(logs[..., 0, :], logs[..., 1, :], expit(at[:, :1, None]), at[:, 1:, None])
            return inner.objective, np.stack([(pull * one).sum(axis=(1, 2)) for one in by], axis=-1)

        return by_differences(evaluate, rows, at, STEP)
