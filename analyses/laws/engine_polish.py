"""Newton's method on the profile of the objective over log exponents, for many starts at once.

The profile P(x), x = (log alpha, log beta), is the objective with floor and amplitudes at their optimum. At a given set of active
constraints its gradient is the partial derivative at fixed linear parameters and its Hessian H_xx - H_xz H_zz^-1 H_zx (variable
projection). A step minimises this quadratic model, convex or not, over a trust region within the box.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from analyses.laws.inner import CONSTANT, Inner, Sums, solve

if TYPE_CHECKING:
    from analyses.laws.engine_problem import Problem

STEPS = 60
"""Largest number of Newton steps."""
RADIUS = 0.5
"""First trust region, in log exponent; it grows up to `WIDEST`."""
WIDEST = 2.0
ENOUGH = 1e-10
"""The step that promises less than this share of the objective is the last one."""
NOISE = 1e-15
"""Rounding error of an objective, relative to the sum of squares of y."""
PIECE = 512
"""Rows of the problem that are followed together."""


@dataclass(frozen=True, slots=True)
class Profile:
    """Objective, gradient and Hessian (xx, xy, yy) by log exponents: half the sum of squares."""

    value: Any
    gradient: Any
    hessian: Any
    inner: Inner


def profile(problem: Problem, rows: Any, x: Any, low: Any, high: Any) -> Profile:
    """The profile of the fits `rows` (M,) at log exponents x (M, 2) with floors in [low, high] (M,)."""
    alpha, beta = np.exp(x[:, 0]), np.exp(x[:, 1])
    columns = np.empty((len(rows), 7, problem.y.shape[1]))
    columns[:, 0], columns[:, 2], columns[:, 4] = problem.n.columns(rows, alpha)
    columns[:, 1], columns[:, 3], columns[:, 5] = problem.r.columns(rows, beta)
    columns[:, 6] = problem.y[rows]
    w, total = problem.weights(rows), problem.total[rows]
    mean = (columns @ w[:, :, None])[:, :, 0] / np.where(total > 0, total, 1.0)[:, None]
    columns -= mean[:, :, None]
    columns *= np.sqrt(w)[:, None, :]
    t = columns @ np.swapaxes(columns, 1, 2)
    mean[:, 6] += problem.mean[rows]
    squares = [np.where(t[:, i, i] > CONSTANT * total * mean[:, i] ** 2, t[:, i, i], 0.0) for i in range(2)]
    sums = Sums(total, mean[:, 0], mean[:, 1], mean[:, 6], squares[0], squares[1], t[:, 0, 1], t[:, 0, 6], t[:, 1, 6], t[:, 6, 6])
    inner = solve(sums, low, high)
    mean[:, 6] -= inner.e
    t += (np.where(inner.held, total, 0.0)[:, None] * mean)[:, :, None] * mean[:, None, :]
    return Profile(0.5 * inner.sse, *_derivatives(t, inner.a, inner.b), inner)


def _derivatives(t: Any, a: Any, b: Any) -> tuple[Any, Any]:
    """Gradient and Hessian from the sums of products t of u, v, u', v', u'', v'', y; the floor is eliminated already."""
    residual = t[:, 6] - a[:, None] * t[:, 0] - b[:, None] * t[:, 1]
    u1, v1, u2, v2 = (residual[:, i] for i in (2, 3, 4, 5))
    # second derivatives by an exponent and an amplitude
    aa, ab = a * t[:, 2, 0] - u1, a * t[:, 2, 1]
    ba, bb = b * t[:, 3, 0], b * t[:, 3, 1] - v1
    # inverse of the amplitudes' Hessian over those that are not 0
    free_a, free_b = a > 0, b > 0
    both = free_a & free_b
    uu, vv, uv = t[:, 0, 0], t[:, 1, 1], t[:, 0, 1]
    determinant = np.where(both, uu * vv - uv * uv, 1.0)
    p = np.where(both, vv / determinant, np.where(free_a, 1 / np.where(free_a, uu, 1.0), 0.0))
    q = np.where(both, uu / determinant, np.where(free_b, 1 / np.where(free_b, vv, 1.0), 0.0))
    o = np.where(both, -uv / determinant, 0.0)
    hessian = (
        a * a * t[:, 2, 2] - a * u2 - (aa * aa * p + 2 * aa * ab * o + ab * ab * q),
        a * b * t[:, 2, 3] - (aa * ba * p + (aa * bb + ab * ba) * o + ab * bb * q),
        b * b * t[:, 3, 3] - b * v2 - (ba * ba * p + 2 * ba * bb * o + bb * bb * q),
    )
    return np.stack([-a * u1, -b * v1], axis=1), np.stack(hessian, axis=1)


@dataclass(slots=True)
class _State:
    """Where the searches stand; each array has one row per search."""

    place: Any
    rows: Any
    x: Any
    low: Any
    high: Any
    value: Any
    gradient: Any
    hessian: Any
    radius: Any

    def move(self, target: Any, new: Any, length: Any, promise: Any, noise: Any) -> None:
        """Go to the new points where they are not worse, and fit the trust regions to how well the model foretold the gain."""
        gain = self.value - new[0]
        better = gain > -noise
        wider, narrower = np.clip(2 * length, self.radius, WIDEST), 0.25 * length
        self.radius = np.where(gain > 0.75 * promise, wider, np.where(gain < 0.25 * promise, narrower, self.radius))
        self.x = np.where(better[:, None], target, self.x)
        self.value = np.where(better, new[0], self.value)
        self.gradient = np.where(better[:, None], new[1], self.gradient)
        self.hessian = np.where(better[:, None], new[2], self.hessian)

    def keep(self, going: Any) -> None:
        """Only these searches go on."""
        for name in self.__slots__:
            setattr(self, name, getattr(self, name)[going])


def polish(problem: Problem, rows: Any, x: Any, low: Any, high: Any, box: Any) -> tuple[Any, Any]:
    """Log exponents (M, 2) and objective (M,) of the minima reached from x (M, 2).

    `rows` (M, groups) are the rows of the problem that a search sums over, with floors in [low, high] (M, groups); `box` are the bounds of
    the log exponents, lower and upper.
    """
    size = max(1, PIECE // rows.shape[1])
    pieces = [slice(at, at + size) for at in range(0, len(rows), size)]
    found = [_polish(problem, rows[piece], x[piece], low[piece], high[piece], box) for piece in pieces]
    return np.concatenate([x[:0], *(one[0] for one in found)]), np.concatenate([np.zeros(0), *(one[1] for one in found)])


def _polish(problem: Problem, rows: Any, x: Any, low: Any, high: Any, box: Any) -> tuple[Any, Any]:
    answer, value = x.copy(), np.empty(len(rows))
    state = _State(np.arange(len(rows)), rows, x, low, high, *_summed(problem, rows, x, low, high), np.full(len(rows), RADIUS))
    for _ in range(STEPS):
        step, promise = newton_step(state.x, state.gradient, state.hessian, state.radius, box)
        target = np.clip(state.x + step, *box)
        new = _summed(problem, state.rows, target, state.low, state.high)
        noise = NOISE * problem.yy[state.rows].sum(axis=1)
        length = np.abs(step).max(axis=1)
        last = (promise <= ENOUGH * np.maximum(state.value, 0.0)) | (promise <= 1e-9 * noise) | (length < 1e-11)
        state.move(target, new, length, promise, noise)
        if last.any():
            answer[state.place[last]], value[state.place[last]] = state.x[last], state.value[last]
            state.keep(~last)
            if not len(state.place):
                break
    answer[state.place], value[state.place] = state.x, state.value
    return answer, 2 * value


def _summed(problem: Problem, rows: Any, x: Any, low: Any, high: Any) -> tuple[Any, Any, Any]:
    """Value (M,), gradient (M, 2) and Hessian (M, 3) of the sums over the rows (M, groups)."""
    groups = rows.shape[1]
    found = profile(problem, rows.ravel(), np.repeat(x, groups, axis=0), low.ravel(), high.ravel())
    if groups == 1:
        return found.value, found.gradient, found.hessian
    return (
        found.value.reshape(-1, groups).sum(axis=1),
        found.gradient.reshape(-1, groups, 2).sum(axis=1),
        found.hessian.reshape(-1, groups, 3).sum(axis=1),
    )


def newton_step(x: Any, gradient: Any, hessian: Any, radius: Any, box: Any) -> tuple[Any, Any]:
    """The step (M, 2) that minimises the quadratic model within trust region and box, exactly, and the decrease it promises (M,).

    Both limit each exponent on its own, so that the step lies in a rectangle: it is the stationary point if that is a minimum inside, and
    else the lowest point of the four edges.
    """
    g0, g1 = gradient[:, 0], gradient[:, 1]
    h00, h01, h11 = hessian[:, 0], hessian[:, 1], hessian[:, 2]
    least, most = np.maximum(box[0] - x, -radius[:, None]), np.minimum(box[1] - x, radius[:, None])
    determinant = h00 * h11 - h01 * h01
    convex = (h00 > 0) & (determinant > 1e-15 * np.abs(h00 * h11))
    safe = np.where(convex, determinant, 1.0)
    best = np.stack([(h01 * g1 - h11 * g0) / safe, (h01 * g0 - h00 * g1) / safe], axis=1)
    inside = convex & ((best >= least) & (best <= most)).all(axis=1)
    lowest = np.where(inside, -np.inf, 0.0)
    best = np.where(inside[:, None], best, 0.0)
    for side in (least, most):
        one = side[:, 0], _along(g1 + h01 * side[:, 0], h11, least[:, 1], most[:, 1])
        two = _along(g0 + h01 * side[:, 1], h00, least[:, 0], most[:, 0]), side[:, 1]
        for p0, p1 in (one, two):
            value = p0 * (g0 + 0.5 * h00 * p0 + h01 * p1) + p1 * (g1 + 0.5 * h11 * p1)
            lower = value < lowest
            lowest = np.where(lower, value, lowest)
            best = np.where(lower[:, None], np.stack([p0, p1], axis=1), best)
    p0, p1 = best[:, 0], best[:, 1]
    return best, -(p0 * (g0 + 0.5 * h00 * p0 + h01 * p1) + p1 * (g1 + 0.5 * h11 * p1))


def _along(slope: Any, curvature: Any, least: Any, most: Any) -> Any:
    """Where slope p + curvature p^2 / 2 is lowest in [least, most]."""
    stationary = np.clip(-slope / np.where(curvature > 0, curvature, 1.0), least, most)
    end = np.where(slope + curvature * (least + most) / 2 > 0, least, most)
    return np.where(curvature > 0, stationary, end)
