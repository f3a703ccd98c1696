"""Many fits of one law at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy.typing as npt

AT_BOUND = 1e-6
"""An exponent is at a bound when it is this near to it, relative to the bound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Solutions:
    """F fits on normalised axes; arrays have one entry per fit, also for parameters that fits share."""

    law: str
    parameters: dict[str, npt.NDArray[np.float64]]
    """Such as e, a, alpha, b, beta (linear and shape parameters on n = N/Nref, r = R/Rref)."""
    objective: npt.NDArray[np.float64]
    """Weighted sum of squared errors on the scale that was fitted."""
    bounds: Mapping[str, tuple[float, float]]
    """Of the shape parameters."""
    shared: tuple[str, ...] = ()
    """Parameters that all fits share."""
    function: Callable[..., npt.NDArray[np.float64]]
    """Error at (n, r) from the parameters by name; it broadcasts."""

    def __len__(self) -> int:
        """Number of fits."""
        return len(self.objective)

    def predict(self, n: npt.ArrayLike, r: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Predicted error of each fit at n, r of shape (cells,) or (fits, cells); the answer is fits x cells."""
        values = {name: value[:, None] for name, value in self.parameters.items()}
        return self.function(np.atleast_2d(np.asarray(n, dtype=float)), np.atleast_2d(np.asarray(r, dtype=float)), **values)

    def at_bound(self, name: str) -> npt.NDArray[np.int64]:
        """-1 where the parameter lies at its lower bound, 1 at its upper bound, 0 inside."""
        low, high = self.bounds[name]
        value = self.parameters[name]
        return np.where(value <= low * (1 + AT_BOUND), -1, np.where(value >= high * (1 - AT_BOUND), 1, 0)).astype(np.int64)

    def take(self, rows: npt.NDArray[np.int64] | npt.NDArray[np.bool_] | slice) -> Solutions:
        """Some of the fits."""
        return Solutions(
            law=self.law,
            parameters={name: value[rows] for name, value in self.parameters.items()},
            objective=self.objective[rows],
            bounds=self.bounds,
            shared=self.shared,
            function=self.function,
        )
