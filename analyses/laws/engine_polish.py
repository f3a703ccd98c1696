"""Newton's method on the profile of the objective over log exponents, for many starts at once.

The profile P(x), x = (log alpha, log beta), is the objective with floor and amplitudes at their optimum. At a given set of active
constraints its gradient is the partial derivative at fixed linear parameters and its Hessian H_xx - H_xz H_zz^-1 H_zx (variable
projection). Steps go along the eigenvectors of the Hessian with absolute eigenvalues (so that saddles are left), within a trust region
and the box.
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
PIECE = 256
"""Starts that are followed together."""


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

    def keep(self, going: Any) -> None:
        for name in self.__slots__:
            setattr(self, name, getattr(self, name)[going])


def polish(problem: Problem, rows: Any, x: Any, low: Any, high: Any, box: Any) -> tuple[Any, Any]:
    """Log exponents (M, 2) and objective (M,) of the minima reached from x; `box` is ((low, low), (high, high)) in log exponents."""
    if not len(rows):
        return x, np.zeros(0)
    pieces = [slice(at, at + PIECE) for at in range(0, len(rows), PIECE)]
    found = [_polish(problem, rows[piece], x[piece], low[piece], high[piece], box) for piece in pieces]
    return np.concatenate([one[0] for one in found]), np.concatenate([one[1] for one in found])


def _polish(problem: Problem, rows: Any, x: Any, low: Any, high: Any, box: Any) -> tuple[Any, Any]:
    answer, value = x.copy(), np.empty(len(rows))
    first = profile(problem, rows, x, low, high)
    state = _State(np.arange(len(rows)), rows, x.copy(), low, high, first.value, first.gradient, first.hessian, np.full(len(rows), RADIUS))
    for _ in range(STEPS):
        step, promise = newton_step(state.x, state.gradient, state.hessian, state.radius, box)
        target = np.clip(state.x + step, *box)
        new = profile(problem, state.rows, target, state.low, state.high)
        noise = NOISE * problem.yy[state.rows]
        gain = state.value - new.value
        better = gain > -noise
        length = np.abs(step).max(axis=1)
        last = (promise <= ENOUGH * np.maximum(state.value, 0.0)) | (promise <= 1e-9 * noise) | (length < 1e-11)
        state.radius = np.where(
            gain > 0.75 * promise, np.clip(2 * length, state.radius, WIDEST), np.where(gain < 0.25 * promise, 0.25 * length, state.radius)
        )
        take = better[:, None]
        state.x = np.where(take, target, state.x)
        state.value = np.where(better, new.value, state.value)
        state.gradient = np.where(take, new.gradient, state.gradient)
        state.hessian = np.where(take, new.hessian, state.hessian)
        if last.any():
            answer[state.place[last]], value[state.place[last]] = state.x[last], state.value[last]
            state.keep(~last)
            if not len(state.place):
                break
    answer[state.place], value[state.place] = state.x, state.value
    return answer, 2 * value


def newton_step(x: Any, gradient: Any, hessian: Any, radius: Any, box: Any) -> tuple[Any, Any]:
    """Step within the trust region and the box, and the decrease that the quadratic model promises."""
    free = ~(((x <= box[0]) & (gradient > 0)) | ((x >= box[1]) & (gradient < 0)))
    g = np.where(free, gradient, 0.0)
    cross = np.where(free.all(axis=1), hessian[:, 1], 0.0)
    h = np.where(free, hessian[:, ::2], 1.0)
    step = _saddle_free(g, h[:, 0], cross, h[:, 1])
    length = np.abs(step).max(axis=1)
    step *= np.minimum(1.0, radius / np.maximum(length, 1e-300))[:, None]
    # an exponent that would leave the box stops at its bound, and the other is solved for anew
    inside = np.clip(x + step, *box) - x
    stopped = inside != step
    for one, other in ((0, 1), (1, 0)):
        again = stopped[:, one] & ~stopped[:, other] & free[:, other]
        if again.any():
            curvature = np.maximum(np.abs(h[:, other]), 1e-300)
            wanted = -(g[:, other] + cross * inside[:, one]) / curvature
            inside[:, other] = np.where(again, np.clip(wanted, -radius, radius), inside[:, other])
    step = np.clip(x + inside, *box) - x
    promise = -(g * step).sum(axis=1) - 0.5 * (h[:, 0] * step[:, 0] ** 2 + 2 * cross * step[:, 0] * step[:, 1] + h[:, 1] * step[:, 1] ** 2)
    return step, promise


def _saddle_free(g: Any, h00: Any, h01: Any, h11: Any) -> Any:
    """-|H|^-1 g for symmetric 2 x 2 matrices, |H| with absolute eigenvalues."""
    centre, half = (h00 + h11) / 2, (h00 - h11) / 2
    spread = np.hypot(half, h01)
    angle = 0.5 * np.arctan2(h01, half)
    c, s = np.cos(angle), np.sin(angle)
    smallest = 1e-13 * (np.abs(centre) + spread) + 1e-300
    one = -(c * g[:, 0] + s * g[:, 1]) / np.maximum(np.abs(centre + spread), smallest)
    two = -(c * g[:, 1] - s * g[:, 0]) / np.maximum(np.abs(centre - spread), smallest)
    return np.stack([c * one - s * two, s * one + c * two], axis=1)
