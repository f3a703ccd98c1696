"""The inner problem of the separable law: for given exponents the exact floor and amplitudes, for many problems at once.

Minimise sum w (y - e - a u - b v)^2 over low <= e <= high, a >= 0, b >= 0. It is a convex quadratic problem in three variables, so that
its optimum is found by trying which constraints are active. It only needs the weighted means of u, v, y and their centred sums of products.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

COLLINEAR = 1e-13
"""1 - correlation^2 of u and v below which they count as one column."""
CONSTANT = 1e-26
"""Centred over plain sum of squares below which a column counts as constant."""


@dataclass(frozen=True, slots=True)
class Sums:
    """Weighted sums of many problems; the arrays broadcast against each other."""

    w: Any
    """Sum of weights."""
    mu: Any
    """Weighted means of u, v and y."""
    mv: Any
    my: Any
    uu: Any
    """Sums of products of the centred columns."""
    vv: Any
    uv: Any
    uy: Any
    vy: Any
    yy: Any


@dataclass(frozen=True, slots=True)
class Inner:
    """The optimum of each problem."""

    e: Any
    a: Any
    b: Any
    sse: Any
    held: Any
    """True where e stands at a bound."""


def solve(sums: Sums, low: Any, high: Any) -> Inner:
    """Exact optimum with the floor in [low, high] (both infinite: free)."""
    a, b, gain = amplitudes(sums.uu, sums.uv, sums.vv, sums.uy, sums.vy)
    e = sums.my - a * sums.mu - b * sums.mv
    sse = sums.yy - gain
    above = e > high
    held = above | (e < low)
    if not held.any():
        return Inner(e, a, b, sse, held)
    bound = np.where(above, high, low) if above.any() else low
    at = amplitudes(*_about(sums, bound))
    held_sse = sums.yy + sums.w * (sums.my - bound) ** 2 - at[2]
    e, a, b, sse = (np.where(held, other, one) for other, one in ((bound, e), (at[0], a), (at[1], b), (held_sse, sse)))
    return Inner(e, a, b, sse, held)


def solve_at(sums: Sums, e: Any) -> Inner:
    """Exact optimum with the floor given."""
    a, b, gain = amplitudes(*_about(sums, e))
    return Inner(e, a, b, sums.yy + sums.w * (sums.my - e) ** 2 - gain, np.ones(np.shape(a), dtype=bool))


def amplitudes(uu: Any, uv: Any, vv: Any, uy: Any, vy: Any) -> tuple[Any, Any, Any]:
    """a, b >= 0 that minimise a^2 uu + 2 a b uv + b^2 vv - 2 a uy - 2 b vy, and how far below 0 they bring it."""
    a_alone, b_alone = _alone(uu, uy), _alone(vv, vy)
    square = uu * vv
    determinant = square - uv * uv
    regular = determinant > COLLINEAR * square
    inverse = 1.0 / np.where(regular, determinant, np.inf)
    a, b = vv * uy, uu * vy
    a -= uv * vy
    b -= uv * uy
    both = (a > 0) & (b > 0) & regular
    first = a_alone * uy >= b_alone * vy
    a = np.where(both, a * inverse, np.where(first, a_alone, 0.0))
    b = np.where(both, b * inverse, np.where(first, 0.0, b_alone))
    return a, b, a * uy + b * vy


def _about(sums: Sums, e: Any) -> tuple[Any, Any, Any, Any, Any]:
    """Sums of products of u, v and y - e, not centred."""
    wu, wv, s = sums.w * sums.mu, sums.w * sums.mv, sums.my - e
    return sums.uu + wu * sums.mu, sums.uv + wu * sums.mv, sums.vv + wv * sums.mv, sums.uy + wu * s, sums.vy + wv * s


def _alone(square: Any, product: Any) -> Any:
    """The amplitude of one column when the other is left out."""
    return np.maximum(product, 0.0) / np.where(square > 0, square, np.inf)
