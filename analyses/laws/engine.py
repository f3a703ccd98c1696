"""Search for the exponents of the separable law (stand-in: right, not fast)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import nnls

if TYPE_CHECKING:
    import numpy.typing as npt

    from analyses.laws.floor import Floor

from analyses.laws.floor import GRID_VALUES


def fit_many(
    n: npt.ArrayLike,
    r: npt.ArrayLike,
    y: npt.ArrayLike,
    w: npt.ArrayLike | None,
    *,
    alpha: tuple[float, float],
    beta: tuple[float, float],
    floor: Floor,
    optimizer: str = "global",
) -> dict[str, npt.NDArray[np.float64]]:
    """e, a, alpha, b, beta and objective of each fit."""
    n, r, y = (np.atleast_2d(np.asarray(values, dtype=float)) for values in (n, r, y))
    w = np.ones((1, 1)) if w is None else np.atleast_2d(np.asarray(w, dtype=float))
    n, r, y, w = np.broadcast_arrays(n, r, y, w)
    found = [_fit(*one, alpha, beta, floor) for one in zip(n, r, y, w, strict=True)]
    return {name: np.array([one[place] for one in found]) for place, name in enumerate(("e", "a", "alpha", "b", "beta", "objective"))}


def _fit(n: Any, r: Any, y: Any, w: Any, alpha: tuple[float, float], beta: tuple[float, float], floor: Floor) -> tuple[float, ...]:
    keep = w > 0
    n, r, y, w = n[keep], r[keep], y[keep], w[keep]
    low, high = np.log([alpha[0], beta[0]]), np.log([alpha[1], beta[1]])
    best = (np.inf,)
    centre, width, points = (low + high) / 2, (high - low) / 2, 17
    for _ in range(9):
        axes = [
            np.unique(np.clip(np.linspace(c - h, c + h, points), lo, hi)) for c, h, lo, hi in zip(centre, width, low, high, strict=True)
        ]
        for la in axes[0]:
            for lb in axes[1]:
                one = _inner(n ** -np.exp(la), r ** -np.exp(lb), y, w, floor)
                if one[-1] < best[-1]:
                    best = (one[0], one[1], np.exp(la), one[2], np.exp(lb), one[3])
        centre, width, points = np.log([best[2], best[4]]), width / 3, 7
    return tuple(float(value) for value in best)


def _inner(u: Any, v: Any, y: Any, w: Any, floor: Floor) -> tuple[float, float, float, float]:
    root = np.sqrt(w)
    if floor.kind == "free":
        design = np.stack([u - np.average(u, weights=w), v - np.average(v, weights=w)], axis=1)
        amplitudes, _ = nnls(design * root[:, None], (y - np.average(y, weights=w)) * root)
        e = np.average(y - np.stack([u, v], axis=1) @ amplitudes, weights=w)
        residual = y - e - np.stack([u, v], axis=1) @ amplitudes
        return e, amplitudes[0], amplitudes[1], float((w * residual**2).sum())
    low = floor.low
    x, _ = nnls(np.stack([np.ones_like(u), u, v], axis=1) * root[:, None], (y - low) * root)
    es = [min(low + x[0], floor.high)]
    if floor.kind == "grid":
        place = np.searchsorted(GRID_VALUES, es[0])
        es = [GRID_VALUES[min(max(place + d, 0), len(GRID_VALUES) - 1)] for d in (-1, 0)]
    answers = []
    for e in es:
        amplitudes, norm = nnls(np.stack([u, v], axis=1) * root[:, None], (y - e) * root)
        answers.append((e, amplitudes[0], amplitudes[1], norm**2))
    return min(answers, key=lambda one: one[-1])
