"""The coupled law L = e + A N^-alpha + B R^-beta + C (N R)^-gamma (separable-law paper, Eq. 12)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from analyses.laws.coarse import lowest, surface
from analyses.laws.floor import CONTINUOUS
from analyses.laws.limits import checked
from analyses.laws.power_law import BOX, PowerLaw
from analyses.laws.powers import COUPLED, SEPARABLE, grid
from analyses.laws.shared import polished, search
from analyses.laws.terms import in_units, term

if TYPE_CHECKING:
    from collections.abc import Mapping

    from analyses.laws.floor import Floor
    from analyses.laws.powers import Array, Data
    from analyses.laws.shared import Found

SEPARABLE_POINTS, SEPARABLE_STARTS = 21, 3
GAMMAS, GAMMA_STARTS = 25, 2
TWINS = ([0, 1, 0], [0, 1, 1], [2, 1, 2], [0, 2, 2])
"""Starts beside the best shapes, gamma equal to alpha or beta: where R or N hardly varies, the product term fits only near there."""


def coupled(n: Any, r: Any, e: Any, a: Any, alpha: Any, b: Any, beta: Any, c: Any, gamma: Any) -> Any:
    """The coupled law."""
    return e + term(a, n, alpha) + term(b, r, beta) + term(c, n * r, gamma)


class CoupledLaw(PowerLaw):
    """L(N, R) = e_inf + A N^-alpha + B R^-beta + C (N R)^-gamma with A, B, C >= 0; the range of gamma is ours.

    It contains the separable law (C = 0) and never ends above it: the best separable shapes of the same data are among the starts.
    Where c is 0, gamma says nothing.
    """

    name = "coupled"
    k = 7
    shapes = ("alpha", "beta", "gamma")
    amplitudes = ("a", "b", "c")
    amplitude_of: ClassVar[Mapping[str, str]] = {"alpha": "a", "beta": "b", "gamma": "c"}
    terms = COUPLED
    points = 13
    starts = 5
    function = staticmethod(coupled)

    def __init__(
        self,
        *,
        alpha: tuple[float, float] = BOX,
        beta: tuple[float, float] = BOX,
        gamma: tuple[float, float] = BOX,
        floor: str | Floor = "continuous",
        reference: tuple[float, float] | None = None,
    ) -> None:
        """`reference` are the N and R at which A_n, B_r and C_nr are stated (default: geometric means of what is fitted)."""
        checked(alpha=alpha, beta=beta, gamma=gamma)
        super().__init__(floor=floor, reference=reference)
        self.alpha, self.beta, self.gamma = alpha, beta, gamma

    @property
    def bounds(self) -> Mapping[str, tuple[float, float]]:
        """Search range of each exponent."""
        return {"alpha": self.alpha, "beta": self.beta, "gamma": self.gamma}

    def physical(self, values: dict[str, float], reference: tuple[float, float]) -> dict[str, float]:
        """e_inf, A_n, alpha, B_r, beta, C_nr, gamma at the reference, and A, B, C in the units of N and R."""
        a, b, c = (values[name] for name in ("a", "b", "c"))
        alpha, beta, gamma = (values[name] for name in ("alpha", "beta", "gamma"))
        return {
            "e_inf": values["e"],
            "A_n": a,
            "alpha": alpha,
            "B_r": b,
            "beta": beta,
            "C_nr": c,
            "gamma": gamma,
            "A": in_units(a, reference[0], alpha),
            "B": in_units(b, reference[1], beta),
            "C": in_units(c, reference[0] * reference[1], gamma),
        }

    def _search(self, data: Data) -> Found:
        seeds = self._seeds(data)
        found = search(self.terms, data, self._box, self.floor, points=self.points, starts=self.starts, seeds=seeds)
        twins = [found.shapes[:, members] for members in TWINS]
        return polished(self.terms, data, found, np.stack([*twins, *np.moveaxis(seeds, 1, 0)], axis=1), self._box, self.floor)

    def _seeds(self, data: Data) -> Array:
        """The best separable shapes of the data, each with the best values of gamma beside them; (P, GAMMA_STARTS, 3)."""
        box = self._box
        two = data.without_last_shape()
        best = search(SEPARABLE, two, box[:2], self.floor, points=SEPARABLE_POINTS, starts=SEPARABLE_STARTS).shapes
        smooth = CONTINUOUS if self.floor.kind == "grid" else self.floor
        gammas = grid(self.gamma, GAMMAS)
        seeds = np.repeat(np.concatenate([best, np.full((len(best), 1), gammas[0])], axis=1)[:, None], GAMMA_STARTS, axis=1)
        objective = surface(COUPLED, data, [best[:, :1], best[:, 1:], gammas], smooth).reshape(len(data), -1)
        scale = (data.w * (data.y - data.mean[..., None]) ** 2).sum(axis=(-1, -2))
        problem, place = lowest(objective, scale, GAMMA_STARTS)
        rank = np.arange(len(problem)) - np.searchsorted(problem, problem)
        seeds[problem, rank, 2] = gammas[place]
        return seeds
