"""Many fits of one law at once."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from analyses.laws.axes import MomentAxis

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy.typing as npt

AT_BOUND = 1e-6
"""An exponent is at a bound when it is this near to it, relative to the bound."""

ZERO = 1e-8
"""A term that nowhere in its group exceeds this error is no term: its amplitude is zero and its exponent undetermined (ours)."""


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
    amplitude_of: Mapping[str, str] = field(default_factory=dict)
    """The amplitude that each exponent belongs to: without it the exponent has no effect."""

    def __len__(self) -> int:
        """Number of fits."""
        return len(self.objective)

    def __repr__(self) -> str:
        """Short: the law, how many fits, and of what."""
        return f"<Solutions {self.law}: {len(self)} {'fit' if len(self) == 1 else 'fits'} of {', '.join(self.parameters)}>"

    def predict(self, n: npt.ArrayLike | MomentAxis, r: npt.ArrayLike | MomentAxis) -> npt.NDArray[np.float64]:
        """Predicted error of each fit at n, r of shape (cells,) or (fits, cells); the answer is fits x cells."""
        values = {name: value[:, None] for name, value in self.parameters.items()}
        return self.function(_axis(n), _axis(r), **values)

    def at_bound(self, name: str) -> npt.NDArray[np.int64]:
        """-1 where the parameter lies at its lower bound, 1 at its upper bound, 0 inside."""
        low, high = self.bounds[name]
        value = self.parameters[name]
        return np.where(value <= low + abs(low) * AT_BOUND, -1, np.where(value >= high - abs(high) * AT_BOUND, 1, 0)).astype(np.int64)

    def undetermined(self, name: str) -> npt.NDArray[np.bool_]:
        """True where the amplitude of this exponent is 0, so that any value of it fits equally well."""
        if name not in self.amplitude_of:
            return np.zeros(len(self), dtype=bool)
        return np.asarray(self.parameters[self.amplitude_of[name]] == 0)

    def take(self, rows: npt.NDArray[np.int64] | npt.NDArray[np.bool_] | slice) -> Solutions:
        """Some of the fits."""
        values = {name: value[rows] for name, value in self.parameters.items()}
        return replace(self, parameters=values, objective=self.objective[rows])


def _axis(x: Any) -> Any:
    return x if isinstance(x, MomentAxis) else np.atleast_2d(np.asarray(x, dtype=float))
