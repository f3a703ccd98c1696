"""The paper's own search for the exponents (separable-law paper, B.1), for comparison.

Nelder-Mead on (log alpha, log beta) from 16 starts with a step of 0.4, at most 300 iterations, ftol 1e-8 and xtol 1e-7. At each step the floor
is searched over its grid (or solved for, where it is continuous or free) and the amplitudes by trying which of them are 0. The paper
leaves the penalty open; ours adds the squared distance to the box in log exponents. The best end point is clipped into the box, so that
every answer is feasible.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import minimize

from analyses.laws.floor import GRID_VALUES
from analyses.laws.inner import Sums, solve, solve_at

if TYPE_CHECKING:
    import numpy.typing as npt

    from analyses.laws.engine_problem import Problem
    from analyses.laws.floor import Floor

STARTS = tuple((alpha, beta) for alpha in (0.1, 0.3, 0.6, 1.0) for beta in (0.05, 0.15, 0.3, 0.6))
STEP = 0.4
OPTIONS = {"maxiter": 300, "fatol": 1e-8, "xatol": 1e-7}
FLOORS = np.array(GRID_VALUES)


def search(problem: Problem, box: npt.NDArray[np.float64], floor: Floor) -> tuple[Any, Any]:
    """Log exponents (F, 2) and floor (F,; NaN unless it is on the grid) of each fit; `box` holds the bounds of the log exponents."""
    found = [_search(problem, fit, box, floor) for fit in range(len(problem))]
    return np.array([x for x, _ in found]), np.array([e for _, e in found])


def _search(problem: Problem, fit: int, box: npt.NDArray[np.float64], floor: Floor) -> tuple[npt.NDArray[np.float64], float]:
    def penalised(x: npt.NDArray[np.float64]) -> float:
        outside = x - np.clip(x, *box)
        return _objective(problem, fit, x, floor)[0] + float(outside @ outside)

    best, lowest = np.zeros(2), math.inf
    for start in np.log(STARTS):
        simplex = start + np.array([[0.0, 0.0], [STEP, 0.0], [0.0, STEP]])
        end = minimize(penalised, start, method="Nelder-Mead", options=OPTIONS | {"initial_simplex": simplex})
        x = np.clip(end.x, *box)
        value, _ = _objective(problem, fit, x, floor)
        if value < lowest:
            best, lowest = x, value
    return best, _objective(problem, fit, best, floor)[1]


def _objective(problem: Problem, fit: int, x: npt.NDArray[np.float64], floor: Floor) -> tuple[float, float]:
    """Sum of squares at log exponents x, and its floor if that is on the grid."""
    rows, exponents = np.array([fit]), np.exp(x)
    w, total, y = problem.weights(rows)[0], problem.total[fit], problem.y[fit]
    if total == 0:
        return 0.0, math.nan
    columns = np.stack([axis.grid(rows, exponents[i : i + 1])[0, 0] for i, axis in enumerate((problem.n, problem.r))])
    mean = columns @ w / total
    centred = columns - mean[:, None]
    (uu, uv), (_, vv) = (centred * w) @ centred.T
    uy, vy = (centred * w) @ y
    sums = Sums(*map(np.atleast_1d, (total, mean[0], mean[1], problem.mean[fit], uu, vv, uv, uy, vy, problem.yy[fit])))
    if floor.kind != "grid":
        return float(solve(sums, *floor.bounds()).sse[0]), math.nan
    sse = solve_at(sums, FLOORS).sse
    place = int(np.argmin(sse))
    return float(sse[place]), float(FLOORS[place])
