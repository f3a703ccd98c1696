"""Synthetic groups like the paper's, and the optimum of the separable law by a dense search that shares no code with the engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize

BOX = (0.05, 10.0)
POINTS = 200
"""Points of the dense search in each log exponent."""
FOLLOWED = 6
"""Local minima (or floors) that are followed from there."""
REFERENCE = (6.6, 1135.0)
"""N (billions) and R at which amplitudes are stated."""
TABLE_7 = (
    (0.001, 0.308, 0.149, 1.24, 4.66, 1.5),
    (0.001, 0.527, 0.058, 11.41, 10.0, 1.2),
    (0.001, 0.582, 0.057, 9.65, 10.0, 1.22),
    (0.001, 0.089, 0.381, 56.31, 10.0, 1.067),
    (0.001, 0.262, 0.183, 1.05, 3.87, 1.5),
    (0.36, 0.120, 0.194, 12.48, 10.0, 1.2),
    (0.06, 0.506, 0.071, 8.57, 10.0, 1.22),
    (0.01, 0.008, 1.262, 65.96, 10.0, 1.067),
    (0.001, 0.312, 0.145, 1.42, 4.93, 1.55),
    (0.46, 0.008, 1.203, 13.78, 10.0, 1.2),
    (0.50, 0.054, 0.418, 11.96, 10.0, 1.22),
    (0.001, 0.057, 0.465, 62.21, 10.0, 1.067),
    (0.001, 0.043, 0.462, 0.372, 0.123, 88.0),
    (0.001, 1.3e-6, 10.0, 0.599, 0.075, 50.0),
    (0.24, 0.261, 0.053, 0.092, 0.187, 36.0),
    (0.001, 3.8e-6, 10.0, 0.324, 0.205, 40.0),
    (0.001, 0.036, 0.756, 0.343, 0.162, 88.0),
    (0.08, 1.5e-8, 10.0, 0.468, 0.110, 50.0),
    (0.40, 0.033, 0.800, 0.121, 0.184, 34.0),
    (0.001, 0.057, 0.589, 0.230, 0.323, 40.0),
)
"""e, A_n, alpha, B_r, beta of the paper's groups, and a span of tokens like theirs."""


@dataclass(frozen=True)
class Group:
    """Cells on normalised axes: n, r and the error without noise (cells,), and the noise that belongs to it."""

    n: Any
    r: Any
    error: Any
    noise: float


def group(rng: np.random.Generator) -> Group:
    """24 to 42 cells: a law of Table 7 with its exponents and amplitudes moved, or one with any exponents."""
    e, a, alpha, b, beta, span = TABLE_7[rng.integers(len(TABLE_7))]
    small = span > 2
    if rng.random() < 0.5:
        alpha, beta = np.clip(np.array([alpha, beta]) * np.exp(rng.normal(0, 0.2, 2)), *BOX)
    else:
        alpha, beta, span = (
            np.exp(rng.uniform(np.log(0.05), np.log([3.0, 10.0]))),
            0.0,
            float(np.exp(rng.uniform(np.log(1.06), np.log(88)))),
        )
        alpha, beta = alpha
    sizes = np.exp(np.linspace(np.log(2.0 if small else 0.5), np.log(32.0 if small else 72.0), 4 if small else 6)) / REFERENCE[0]
    tokens = np.geomspace(1, span, int(rng.integers(6, 8)))
    tokens *= (8000 if small else 2000) / REFERENCE[1] / span
    n, r = (axis.ravel() for axis in np.meshgrid(sizes, tokens, indexing="ij"))
    r = r * np.exp(rng.normal(0, 0.002 if span < 2 else 0.01, r.shape))
    # some amplitudes are drawn, so that the axis explains 0.02 to 0.4 of the error, and none exceeds 0.45
    columns = n**-alpha, r**-beta
    parts = [
        rng.uniform(0.02, 0.4) * column / np.ptp(column) if rng.random() < 0.5 else c * column
        for c, column in zip((a, b), columns, strict=True)
    ]
    error = e + sum(part * min(1.0, 0.45 / part.max()) for part in parts)
    return Group(n, r, error, float(rng.uniform(0.01, 0.05)))


def dense(n: Any, r: Any, y: Any, floors: Any) -> float:
    """Least sum of squares over the box, equal weights; `floors` are the grid of floors, or None for [0.001, 0.999]."""
    axis = np.linspace(*np.log(BOX), POINTS)
    surface, chosen = _surface(n, r, y, axis, axis, floors)
    ends = [(*_follow(np.array([axis[i], axis[j]]), n, r, y, floor), floor) for (i, j), floor in _places(surface, chosen)]
    best, x, floor = min(ends, key=lambda end: end[0])
    best = min(best, float(surface.min()))
    for side in (-1, 1) if floors is not None else ():
        place, start = int(np.searchsorted(floors, floor)) + side, x
        while 0 <= place < len(floors):
            value, start = _follow(start, n, r, y, floors[place])
            if value >= best:
                break
            best, place = value, place + side
    return max(best, 0.0)


def _follow(x: Any, n: Any, r: Any, y: Any, floor: float | None) -> tuple[float, Any]:
    """The local minimum reached from x with the floor given."""
    options = {"ftol": 1e-15, "gtol": 1e-11}
    found = minimize(_profile, x, args=(n, r, y, floor), jac=True, method="L-BFGS-B", bounds=[tuple(np.log(BOX))] * 2, options=options)
    return float(found.fun), found.x


def _places(surface: Any, chosen: Any) -> Any:
    """Where to follow: the lowest local minima, or for a grid of floors the lowest point of each of the best floors."""
    if chosen is not None:
        lowest = {
            floor: np.unravel_index(np.where(chosen == floor, surface, np.inf).argmin(), surface.shape) for floor in np.unique(chosen)
        }
        order = sorted(lowest, key=lambda floor: surface[lowest[floor]])
        return [(lowest[floor], floor) for floor in order[:FOLLOWED]]
    padded = np.pad(surface, 1, constant_values=np.inf)
    around = [padded[i : i + POINTS, j : j + POINTS] for i in range(3) for j in range(3) if (i, j) != (1, 1)]
    places = np.argwhere(surface <= np.min(around, axis=0))
    order = np.argsort(surface[tuple(places.T)], kind="stable")
    return [(tuple(places[at]), None) for at in order[:FOLLOWED]]


def _columns(n: Any, r: Any, la: Any, lb: Any) -> tuple[Any, Any]:
    return (n / n.min()) ** -np.exp(la)[..., None], (r / r.min()) ** -np.exp(lb)[..., None]


def _surface(n: Any, r: Any, y: Any, la: Any, lb: Any, floors: Any) -> tuple[Any, Any]:
    """Sum of squares at every pair of exponents, and which floor it takes (None for a continuous one)."""
    u, v = _columns(n, r, la, lb)
    centred = [column - column.mean(axis=-1, keepdims=True) for column in (u, v)]
    gram = _products(*centred, y - y.mean())
    a, b = _amplitudes(*gram)
    e = np.clip(y.mean() - a * u.mean(axis=-1)[:, None] - b * v.mean(axis=-1), 0.001, 0.999)
    if floors is None:
        return _with_floor(u, v, y, e), None
    place = np.searchsorted(floors, e).clip(1, len(floors) - 1)
    below, above = (_with_floor(u, v, y, floors[at]) for at in (place - 1, place))
    return np.minimum(below, above), floors[np.where(below <= above, place - 1, place)]


def _with_floor(u: Any, v: Any, y: Any, e: Any) -> Any:
    """Sum of squares with the floor given at each pair."""
    uu, uv, vv, uy, vy = _products(u, v, y)
    uy, vy = uy - e * u.sum(axis=-1)[:, None], vy - e * v.sum(axis=-1)
    a, b = _amplitudes(uu, uv, vv, uy, vy)
    return ((y - y.mean()) ** 2).sum() + len(y) * (y.mean() - e) ** 2 - 2 * (a * uy + b * vy) + a * a * uu + 2 * a * b * uv + b * b * vv


def _products(u: Any, v: Any, y: Any) -> tuple[Any, ...]:
    return ((u * u).sum(-1)[:, None], u @ v.T, (v * v).sum(-1), (u @ y)[:, None], v @ y)


def _amplitudes(uu: Any, uv: Any, vv: Any, uy: Any, vy: Any) -> tuple[Any, Any]:
    """Nonnegative least squares in two columns."""
    determinant = np.maximum(uu * vv - uv**2, 1e-300)
    a, b = (vv * uy - uv * vy) / determinant, (uu * vy - uv * uy) / determinant
    only_a, only_b = np.maximum(uy / uu, 0), np.maximum(vy / vv, 0)
    inside, first = (a >= 0) & (b >= 0), only_a**2 * uu >= only_b**2 * vv
    return np.where(inside, a, np.where(first, only_a, 0)), np.where(inside, b, np.where(first, 0, only_b))


def _profile(x: Any, n: Any, r: Any, y: Any, floor: float | None) -> tuple[float, Any]:
    """Sum of squares and its gradient at one pair of log exponents, amplitudes and floor by active sets of the residuals."""
    u, v = (column[0] for column in _columns(n, r, x[:1], x[1:]))
    best: tuple[float, Any, float, float] = (np.inf, y, 0.0, 0.0)
    for floors, columns in _active_sets(floor):
        design = np.stack([(np.ones_like(y), u, v)[column] for column in columns], axis=1) if columns else np.zeros((len(y), 0))
        solved = np.linalg.lstsq(design, y - floors, rcond=None)[0] if columns else np.zeros(0)
        z = dict(zip(columns, solved, strict=True))
        e, a, b = floors + z.get(0, 0.0), z.get(1, 0.0), z.get(2, 0.0)
        residual = y - e - a * u - b * v
        sse = float(residual @ residual)
        if a >= 0 and b >= 0 and (floor is not None or 0.001 <= e <= 0.999) and sse < best[0]:
            best = sse, residual, a, b
    sse, residual, a, b = best
    slopes = [
        2 * np.exp(x[0]) * a * (residual * np.log(n / n.min()) * u).sum(),
        2 * np.exp(x[1]) * b * (residual * np.log(r / r.min()) * v).sum(),
    ]
    return sse, np.array(slopes)


def _active_sets(floor: float | None) -> Any:
    sides = ((1, 2), (1,), (2,), ())
    if floor is not None:
        return [(floor, side) for side in sides]
    return [(0.0, (0, *side)) for side in sides] + [(bound, side) for bound in (0.001, 0.999) for side in sides]
