"""One fitted law, for people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from analyses.laws import criteria
from analyses.laws.axes import MomentAxis
from analyses.laws.status import lacking, status_of

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas as pd

    from analyses.laws.floor import Floor
    from analyses.laws.solutions import Solutions


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """A law fitted to one group of cells."""

    law: str
    parameters: dict[str, float]
    """e_inf, A_n, alpha, B_r, beta on axes divided by the reference; A = A_n Nref^alpha and B = B_r Rref^beta in the units of N and R."""
    at_bound: dict[str, Literal["lower", "upper"]]
    """Shape parameters that stopped at a bound of the search."""
    reference: tuple[float, float]
    N: npt.NDArray[np.float64] | MomentAxis
    R: npt.NDArray[np.float64] | MomentAxis
    error: npt.NDArray[np.float64]
    weights: npt.NDArray[np.float64]
    k: int
    """Free parameters."""
    objective: float
    """What was minimised."""
    solution: Solutions
    floor: Floor | None = None
    """What the floor could be; None for a law without one."""

    def __repr__(self) -> str:
        """Short: measures of fit and status."""
        return f"<{type(self).__name__} {self.measures()}; {self.status}>"

    @property
    def n(self) -> int:
        """Number of cells with weight."""
        return int((self.weights > 0).sum())

    @property
    def residuals(self) -> npt.NDArray[np.float64]:
        """Observed minus predicted error of each cell."""
        return self.error - self.predict(self.N, self.R)

    @property
    def sse(self) -> float:
        """Weighted sum of squared errors."""
        return criteria.sse(self.residuals, self.weights)

    @property
    def r2(self) -> float:
        """1 - SSE/SST about the weighted mean of the group."""
        return criteria.r2(self.error, self.predict(self.N, self.R), self.weights)

    @property
    def bic(self) -> float:
        """Gaussian BIC."""
        return float(criteria.bic(self.sse, self.n, self.k))

    @property
    def aic(self) -> float:
        """Gaussian AIC."""
        return float(criteria.aic(self.sse, self.n, self.k))

    @property
    def undetermined(self) -> tuple[str, ...]:
        """Exponents without effect, because their amplitude is 0."""
        return tuple(name for name in self.solution.amplitude_of if self.solution.undetermined(name)[0])

    @property
    def axes(self) -> dict[str, npt.NDArray[np.float64]]:
        """N and R (means of a `MomentAxis`) of the cells with weight."""
        return {name: (x.mean if isinstance(x, MomentAxis) else x)[self.weights > 0] for name, x in (("N", self.N), ("R", self.R))}

    @property
    def units(self) -> tuple[float, ...]:
        """What each of the `axes` was divided by."""
        return self.reference

    @property
    def determined(self) -> bool:
        """Whether there are cells and levels enough for the measures of fit to say anything."""
        return not lacking(self)

    @property
    def status(self) -> str:
        """fitted, or what the cells do not determine, shapes at bounds, and errors that are none."""
        return status_of(self)

    def predict(self, N: npt.ArrayLike | MomentAxis, R: npt.ArrayLike | MomentAxis) -> npt.NDArray[np.float64]:  # noqa: N803
        """Error at N and R, in the units of the fit; a `MomentAxis` has means over questions."""
        n, r = (
            (x if isinstance(x, MomentAxis) else np.asarray(x, dtype=float)) / unit for x, unit in zip((N, R), self.reference, strict=True)
        )
        values = {name: value[0] for name, value in self.solution.parameters.items()}
        return np.asarray(self.solution.function(n, r, **values), dtype=float)

    def to_frame(self) -> pd.DataFrame:
        """One row per cell: N, R (means of a `MomentAxis`), error, weight, predicted, residual."""
        import pandas as pd

        predicted = self.predict(self.N, self.R)
        return pd.DataFrame(
            {
                "N": self.N.mean if isinstance(self.N, MomentAxis) else self.N,
                "R": self.R.mean if isinstance(self.R, MomentAxis) else self.R,
                "error": self.error,
                "weight": self.weights,
                "predicted": predicted,
                "residual": self.error - predicted,
            }
        )

    def measures(self) -> str:
        """Cells, parameters and measures of fit in a line."""
        return f"{self.law}: n {self.n}, k {self.k}, SSE {self.sse:.6g}, R2 {self.r2:.4f}, BIC {self.bic:.2f}, AIC {self.aic:.2f}"

    def summary(self) -> str:
        """Measures of fit, status, parameters with bounds hit, floor and reference as text."""
        lines = [self.measures(), f"  status: {self.status}"]
        width = max(map(len, self.parameters))
        for name, value in self.parameters.items():
            note = f"  at its {self.at_bound[name]} bound" if name in self.at_bound else ""
            note = "  undetermined: its amplitude is 0" if name in self.undetermined else note
            lines.append(f"  {name:<{width}}  {value:.6g}{note}")
        lines += [f"  floor: {self.floor}"] if self.floor is not None else []
        lines.append(f"  reference: N {self.reference[0]:.6g}, R {self.reference[1]:.6g}")
        return "\n".join(lines)

    def chart(self) -> Any:
        """Predicted against observed error, an Altair chart."""
        from analyses.laws.charts import predicted_observed

        return predicted_observed(self)
