"""Groups to fit, and slow searches to compare with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import minimize, nnls

from analyses.laws.floor import GRID_VALUES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from analyses.laws import Floor

BOX = (0.05, 10.0)
LOW, HIGH = np.log(BOX)


@dataclass(frozen=True)
class Cells:
    n: Any
    r: Any
    y: Any


def cells(rng: np.random.Generator, span: float | None = None) -> Cells:
    """A planted law with noise: 4 or 6 sizes, 6 or 7 token levels, spans of tokens between 1.06 and 88."""
    sizes = np.geomspace(0.5, 72, int(rng.choice([4, 6]))) / 6.6
    span = float(np.exp(rng.uniform(np.log(1.06), np.log(88)))) if span is None else span
    tokens = np.geomspace(1, span, int(rng.choice([6, 7]))) * rng.uniform(0.03, 1)
    n, r = (axis.ravel() for axis in np.meshgrid(sizes, tokens, indexing="ij"))
    r = r * np.exp(rng.normal(0, 0.004, r.shape))
    alpha, beta = np.exp(rng.uniform(np.log(0.05), np.log([3, 10])))
    u, v = (n / n.min()) ** -alpha, (r / r.min()) ** -beta
    y = rng.choice([0.001, 0.1, 0.4]) + rng.uniform(0, 0.4) * u + rng.uniform(0, 0.4) * v
    return Cells(n, r, y + rng.normal(0, rng.choice([0.01, 0.03, 0.05]), y.shape))


def many(count: int, seed: int, span: float | None = None) -> Iterator[Cells]:
    """Several of them."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        yield cells(rng, span)


def inner(u: Any, v: Any, y: Any, floor: Floor, w: Any = None) -> float:
    """Least weighted sum of squares for given columns, by scipy's nonnegative least squares."""
    root = np.sqrt(np.ones_like(y) if w is None else w)
    design = np.stack([u, v], axis=1) * root[:, None]
    if floor.kind == "grid":
        return float(min(nnls(design, (y - e) * root)[1] for e in GRID_VALUES) ** 2)
    ones = root[:, None]
    if floor.kind == "free":  # an intercept of any sign is the difference of two that are not negative
        return float(nnls(np.hstack([ones, -ones, design]), y * root)[1] ** 2)
    with_floor, norm = nnls(np.hstack([ones, design]), (y - floor.low) * root)
    return float(norm**2 if floor.low + with_floor[0] <= floor.high else nnls(design, (y - floor.high) * root)[1] ** 2)


def searched(one: Cells, floor: Floor, points: int = 60, followed: int = 4) -> float:
    """Least sum of squares over the box by a grid and Nelder-Mead from its lowest local minima."""
    axis = np.linspace(LOW, HIGH, points)
    columns = [(x / x.min()) ** -np.exp(axis)[:, None] for x in (one.n, one.r)]
    surface = np.array([[inner(u, v, one.y, floor) for v in columns[1]] for u in columns[0]])
    padded = np.pad(surface, 1, constant_values=np.inf)
    around = [padded[i : i + points, j : j + points] for i in range(3) for j in range(3) if (i, j) != (1, 1)]
    places = sorted(np.argwhere(surface <= np.min(around, axis=0)).tolist(), key=lambda place: surface[tuple(place)])

    def objective(x: Any) -> float:
        return inner((one.n / one.n.min()) ** -np.exp(x[0]), (one.r / one.r.min()) ** -np.exp(x[1]), one.y, floor)

    options = {"xatol": 1e-9, "fatol": 1e-15, "maxiter": 400}
    ends = [
        minimize(objective, axis[place], method="Nelder-Mead", bounds=[(LOW, HIGH)] * 2, options=options).fun for place in places[:followed]
    ]
    return float(min([*ends, surface.min()]))
