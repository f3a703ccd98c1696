"""Nonnegative least squares of up to three columns, for many problems at once, from correlations alone.

Columns have length one. The best of the at most eight choices of columns whose amplitudes all come out positive is the exact
solution: the problem is convex, and its solution solves the unconstrained problem on its own support.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy.typing as npt

    Array = npt.NDArray[np.float64]
    Pairs = Mapping[tuple[int, int], Array]

DEGENERATE = 1e-12
"""Columns with a smaller determinant of correlations count as dependent: fewer of them fit as well."""
CONSTANT = 1e-24
"""A centred column with less than this part of its raw sum of squares is constant."""


def best_gain(pairs: Pairs, c: Sequence[Array], means: Sequence[Array] | None = None, room: Array | None = None) -> Array:
    """Largest drop of the sum of squares that amplitudes >= 0 give.

    `pairs[i, j]` are correlations of columns and c[i] products of columns with the target; all broadcast. With `means` and `room`
    only amplitudes with sum(means * x) <= room count (a floor of at least room below the mean); -inf where none does.
    """
    best = np.zeros(()) if room is None else np.where(room >= 0, 0.0, -np.inf)
    for members, scaled, det in _solutions(pairs, c):
        ok = det > DEGENERATE
        gain = sum(c[i] * x for i, x in zip(members, scaled, strict=True))
        for x in scaled:
            ok = ok & (x > 0)
        if means is not None and room is not None:
            ok = ok & (sum(means[i] * x for i, x in zip(members, scaled, strict=True)) <= room * det)
        best = np.maximum(best, np.where(ok, gain / np.where(ok, det, 1.0), -np.inf))
    return np.asarray(best)


def best_amplitudes(gram: Array, products: Array) -> Array:
    """Amplitudes >= 0 that minimise x'Gx - 2c'x; gram (..., k, k), products (..., k). A column of zeros gets 0."""
    k = products.shape[-1]
    length = np.sqrt(np.maximum(gram[..., range(k), range(k)], 0.0))
    scale = np.divide(1.0, length, out=np.zeros_like(length), where=length > 0)
    c = [products[..., i] * scale[..., i] for i in range(k)]
    pairs = {(i, j): gram[..., i, j] * (scale[..., i] * scale[..., j]) for i, j in combinations(range(k), 2)}
    best = np.zeros(products.shape[:-1])
    x = np.zeros(products.shape)
    for members, scaled, det in _solutions(pairs, c):
        ok = det > DEGENERATE
        for value in scaled:
            ok = ok & (value > 0)
        det = np.where(ok, det, 1.0)  # noqa: PLW2901
        gain = sum(c[i] * value for i, value in zip(members, scaled, strict=True)) / det
        ok &= gain > best
        best = np.where(ok, gain, best)
        x[ok] = 0.0
        for i, value in zip(members, scaled, strict=True):
            x[..., i] = np.where(ok, value / det, x[..., i])
    return x * scale


def _solutions(pairs: Pairs, c: Sequence[Array]) -> Iterator[tuple[tuple[int, ...], tuple[Array, ...], Array]]:
    """For each choice of columns: which, amplitudes times the determinant, the determinant."""
    k = len(c)
    one = np.ones(())
    for i in range(k):
        yield (i,), (c[i],), one
    for i, j in combinations(range(k), 2):
        rho = pairs[i, j]
        yield (i, j), (c[i] - rho * c[j], c[j] - rho * c[i]), 1.0 - rho * rho
    if k == 3:
        p, q, s = pairs[0, 1], pairs[0, 2], pairs[1, 2]
        a, b, d = q * s - p, p * s - q, p * q - s
        dets = 1.0 - p * p, 1.0 - q * q, 1.0 - s * s
        det = dets[0] + q * b - s * (s - p * q)
        x = (c[0] * dets[2] + c[1] * a + c[2] * b, c[0] * a + c[1] * dets[1] + c[2] * d, c[0] * b + c[1] * d + c[2] * dets[0])
        yield (0, 1, 2), x, det


def inverse(gram: Array, active: npt.NDArray[np.bool_]) -> Array:
    """Inverse of a symmetric matrix (..., k, k), k <= 3, on its active rows and columns; zero elsewhere and where it is singular."""
    k = gram.shape[-1]
    length = np.sqrt(np.maximum(gram[..., range(k), range(k)], 0.0))
    usable = active & (length > 0)
    scale = np.divide(1.0, length, out=np.zeros_like(length), where=usable)
    corr = gram * (scale[..., :, None] * scale[..., None, :])
    corr[..., range(k), range(k)] = 1.0
    if k == 1:
        unit = np.ones_like(corr)
    elif k == 2:
        det = _safe(1.0 - corr[..., 0, 1] ** 2)
        unit = np.stack([np.stack([det * 0 + 1, -corr[..., 0, 1]], -1), np.stack([-corr[..., 0, 1], det * 0 + 1], -1)], -2)
        unit /= det[..., None, None]
    else:
        p, q, s = corr[..., 0, 1], corr[..., 0, 2], corr[..., 1, 2]
        a, b, d = q * s - p, p * s - q, p * q - s
        x, y, z = 1 - s * s, 1 - q * q, 1 - p * p
        det = _safe(z + q * b + s * d)
        unit = np.stack([np.stack(row, -1) for row in ((x, a, b), (a, y, d), (b, d, z))], -2) / det[..., None, None]
    return np.asarray(unit * (scale[..., :, None] * scale[..., None, :]))


def _safe(det: Array) -> Array:
    return np.where(det > DEGENERATE, det, np.inf)
