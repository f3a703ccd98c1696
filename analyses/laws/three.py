"""The law in three resources, L = e + A/N^alpha + B/R^beta + G/P^gamma (ours; the separable-law paper, D.2, does not write it down)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from analyses.laws.fit import Fit
from analyses.laws.floor import Floor, floor_of
from analyses.laws.inputs import cells_of
from analyses.laws.limits import checked, checked_reference
from analyses.laws.power_law import BOX
from analyses.laws.powers import SEPARABLE, Terms, data_of
from analyses.laws.shared import search
from analyses.laws.solutions import Solutions
from analyses.laws.terms import in_units, term

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas as pd

    from analyses.laws.powers import Data

TERMS = Terms(columns=((0,), (1,), (2,)), axes=((0,), (1,), (2,)))
POINTS, STARTS = 16, 12
"""Values of each exponent on the first grid, and how many of its minima are polished."""
AMPLITUDES = {"alpha": "a", "beta": "b", "gamma": "g"}


def three_axes(n: Any, r: Any, p: Any, e: Any, a: Any, alpha: Any, b: Any, beta: Any, g: Any, gamma: Any) -> Any:
    """The law on normalised axes."""
    return e + term(a, n, alpha) + term(b, r, beta) + term(g, p, gamma)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ThreeAxisFit(Fit):
    """The law in three resources fitted to one group of cells."""

    P: npt.NDArray[np.float64]
    reference_P: float  # noqa: N815 - the paper's letter
    """P at which G_p is stated."""

    @property
    def residuals(self) -> npt.NDArray[np.float64]:
        """Observed minus predicted error of each cell."""
        return self.error - self.predict(self.N, self.R, self.P)

    @property
    def axes(self) -> dict[str, npt.NDArray[np.float64]]:
        """N, R and P of the cells with weight."""
        return super(ThreeAxisFit, self).axes | {"P": self.P[self.weights > 0]}

    @property
    def units(self) -> tuple[float, ...]:
        """What each of the `axes` was divided by."""
        return (*self.reference, self.reference_P)

    def predict(self, N: Any, R: Any, P: Any = None) -> npt.NDArray[np.float64]:  # noqa: N803
        """Error at N, R and P, in the units of the fit; without P at those of the fitted cells."""
        axes = (N, R, self.P if P is None else P)
        normalised = (np.asarray(x, dtype=float) / unit for x, unit in zip(axes, (*self.reference, self.reference_P), strict=True))
        values = {name: value[0] for name, value in self.solution.parameters.items()}
        return np.asarray(three_axes(*normalised, **values))

    def to_frame(self) -> pd.DataFrame:
        """One row per cell: N, R, P, error, weight, predicted, residual."""
        frame = super(ThreeAxisFit, self).to_frame()
        frame.insert(2, "P", self.P)
        return frame


class ThreeAxisLaw:
    """L(N, R, P) = e_inf + A N^-alpha + B R^-beta + G P^-gamma with A, B, G >= 0.

    An exponent whose amplitude is 0 has no effect (`Solutions.undetermined`); it is returned as the geometric middle of its box.
    """

    name = "three-axis"
    k = 7

    def __init__(
        self,
        *,
        alpha: tuple[float, float] = BOX,
        beta: tuple[float, float] = BOX,
        gamma: tuple[float, float] = BOX,
        floor: str | Floor = "continuous",
        reference: tuple[float, float, float] | None = None,
    ) -> None:
        """`reference` are the N, R and P at which amplitudes are stated (default: geometric means of what is fitted)."""
        checked(alpha=alpha, beta=beta, gamma=gamma)
        checked_reference(reference)
        self.bounds = {"alpha": alpha, "beta": beta, "gamma": gamma}
        self.floor, self.reference = floor_of(floor), reference

    def fit(
        self,
        N: npt.ArrayLike,  # noqa: N803 - the paper's letters
        R: npt.ArrayLike,  # noqa: N803
        P: npt.ArrayLike,  # noqa: N803
        error: npt.ArrayLike,
        weights: npt.ArrayLike | None = None,
    ) -> ThreeAxisFit:
        """Fit one group: N, R, P and error of its cells (cells,), with weights if they differ.

        ValueError for values that are not finite, or axes that are not positive, in a cell with weight.
        """
        axes, y, w = cells_of({"N": N, "R": R, "P": P}, error, weights)
        units = self.reference or tuple(_centre(axis, w) for axis in axes)
        solution = self.fit_many(axes[0] / units[0], axes[1] / units[1], axes[2] / units[2], y, w)
        values = {name: float(value[0]) for name, value in solution.parameters.items()}
        parameters = {"e_inf": values["e"]}
        for name, exponent, unit in zip(("A_n", "B_r", "G_p"), AMPLITUDES, units, strict=True):
            parameters |= {name: values[AMPLITUDES[exponent]], exponent: values[exponent]}
            parameters[name[0]] = in_units(values[AMPLITUDES[exponent]], unit, values[exponent])
        return ThreeAxisFit(
            law=self.name,
            parameters=parameters,
            at_bound={name: "lower" if at < 0 else "upper" for name in AMPLITUDES if (at := int(solution.at_bound(name)[0])) != 0},
            reference=(units[0], units[1]),
            reference_P=units[2],
            N=axes[0],
            R=axes[1],
            P=axes[2],
            error=y,
            weights=w,
            k=self.k,
            objective=float(solution.objective[0]),
            solution=solution,
            floor=self.floor,
        )

    def fit_many(
        self, n: npt.ArrayLike, r: npt.ArrayLike, p: npt.ArrayLike, error: npt.ArrayLike, weights: npt.ArrayLike | None = None
    ) -> Solutions:
        """Fit many groups at once on normalised axes; arrays (cells,) or (fits, cells), weight 0 leaves a cell out.

        Grid over the three exponents, its lowest minima polished. `predict` of the solutions needs P: use their `function`.
        """
        data = _data(n, r, p, error, 1.0 if weights is None else weights)
        found = search(TERMS, data, np.array(list(self.bounds.values())), self.floor, points=POINTS, starts=STARTS)
        parameters = {"e": found.floor[:, 0]}
        for place, (exponent, amplitude) in enumerate(AMPLITUDES.items()):
            size, middle = found.amplitudes[:, 0, place], np.sqrt(np.prod(self.bounds[exponent]))
            parameters |= {amplitude: size, exponent: np.where(size == 0, middle, found.shapes[:, place])}
        return Solutions(
            law=self.name,
            parameters=parameters,
            objective=found.objective[:, 0] * data.unit,
            bounds=self.bounds,
            function=three_axes,
            amplitude_of=AMPLITUDES,
        )


def _data(n: Any, r: Any, p: Any, y: Any, w: Any) -> Data:
    n, r, p, y, w = np.broadcast_arrays(*(np.atleast_2d(np.asarray(values, dtype=float)) for values in (n, r, p, y, w)))
    two, third = (data_of(SEPARABLE, *(values[:, None] for values in (one, other, y, w))) for one, other in ((n, r), (p, p)))
    return replace(
        two,
        x=np.concatenate([two.x, third.x[..., :1, :]], axis=-2),
        shift=np.concatenate([two.shift, third.shift[..., :1]], axis=-1),
    )


def _centre(axis: npt.NDArray[np.float64], weights: npt.NDArray[np.float64]) -> float:
    """Geometric mean of the cells with weight."""
    kept = axis[weights > 0]
    return float(np.exp(np.log(kept[kept > 0]).mean())) if (kept > 0).any() else 1.0
