"""What the laws made of decaying columns have in common: the API of a law around the search for shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from analyses.laws.fit import Fit
from analyses.laws.floor import Floor, floor_of
from analyses.laws.powers import data_of
from analyses.laws.shared import search
from analyses.laws.solutions import Solutions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy.typing as npt

    from analyses.laws.powers import Array, Data, Terms
    from analyses.laws.shared import Found

BOX = (0.05, 10.0)
"""Search range of an exponent (separable-law paper, B.1)."""


class Law:
    """A law by the shapes that a search finds and the amplitudes that follow from them."""

    name: ClassVar[str]
    k: ClassVar[int]
    """Parameters of one group's own fit."""
    shapes: ClassVar[tuple[str, ...]]
    """Names of the shape parameters."""
    amplitudes: ClassVar[tuple[str, ...]]
    """Names of the group coefficients."""
    function: ClassVar[Callable[..., Any]]
    reference: tuple[float, float] | None

    @property
    def bounds(self) -> Mapping[str, tuple[float, float]]:
        """Search range of each shape."""
        raise NotImplementedError

    def fit_many(self, n: npt.ArrayLike, r: npt.ArrayLike, error: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> Solutions:
        """Fit many groups, each with its own shapes, on normalised axes; arrays (cells,) or (fits, cells), weight 0 leaves a cell out."""
        raise NotImplementedError

    def fit_shared(self, n: npt.ArrayLike, r: npt.ArrayLike, error: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> Solutions:
        """Fit groups that share their shapes; arrays (groups, cells), or (problems, groups, cells) for many such problems at once.

        The solutions are one per group, in order; of many problems, all groups of the first, then of the second, and so on.
        """
        raise NotImplementedError

    def physical(self, values: dict[str, float], reference: tuple[float, float]) -> dict[str, float]:
        """Parameters for people from those on normalised axes."""
        raise NotImplementedError

    def fit(self, N: npt.ArrayLike, R: npt.ArrayLike, error: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> Fit:  # noqa: N803
        """Fit one group: N, R and error of its cells, with weights if they differ."""
        n_axis, r_axis, y = (np.asarray(values, dtype=float) for values in (N, R, error))
        w = np.ones_like(y) if weights is None else np.asarray(weights, dtype=float)
        reference = self.reference or (float(np.exp(np.log(n_axis).mean())), float(np.exp(np.log(r_axis).mean())))
        solution = self.fit_many(n_axis / reference[0], r_axis / reference[1], y, w)
        return Fit(
            law=self.name,
            parameters=self.physical({name: float(value[0]) for name, value in solution.parameters.items()}, reference),
            at_bound={name: "lower" if at < 0 else "upper" for name in self.shapes if (at := int(solution.at_bound(name)[0])) != 0},
            reference=reference,
            N=n_axis,
            R=r_axis,
            error=y,
            weights=w,
            k=self.k,
            objective=float(solution.objective[0]),
            solution=solution,
        )


class PowerLaw(Law):
    """A law whose columns decay exponentially along log axes."""

    terms: ClassVar[Terms]
    points: ClassVar[int]
    """Values of each shape in the first grid."""
    starts: ClassVar[int]
    """Minima of it that are polished."""

    def __init__(self, *, floor: str | Floor, reference: tuple[float, float] | None) -> None:
        self.floor, self.reference = floor_of(floor), reference

    def fit_many(self, n: npt.ArrayLike, r: npt.ArrayLike, error: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> Solutions:
        """Fit many groups, each with its own shapes, on normalised axes; arrays (cells,) or (fits, cells), weight 0 leaves a cell out."""
        w = 1.0 if weights is None else weights
        data = data_of(self.terms, *(np.atleast_2d(np.asarray(values, dtype=float))[:, None] for values in (n, r, error, w)))
        return self._solutions(self._search(data), ())

    def fit_shared(self, n: npt.ArrayLike, r: npt.ArrayLike, error: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> Solutions:
        """Fit groups that share their shapes; arrays (groups, cells), or (problems, groups, cells) for many such problems at once.

        The solutions are one per group, in order; of many problems, all groups of the first, then of the second, and so on.
        """
        w = 1.0 if weights is None else weights
        data = data_of(self.terms, *(three(values) for values in (n, r, error, w)))
        return self._solutions(self._search(data), self.shapes)

    @property
    def _box(self) -> Array:
        return np.array([self.bounds[name] for name in self.shapes])

    def _search(self, data: Data) -> Found:
        return search(self.terms, data, self._box, self.floor, points=self.points, starts=self.starts)

    def _solutions(self, found: Found, shared: tuple[str, ...]) -> Solutions:
        groups = found.floor.shape[1]
        parameters = {"e": found.floor.ravel()}
        parameters |= {name: found.amplitudes[..., j].ravel() for j, name in enumerate(self.amplitudes)}
        parameters |= {name: np.repeat(found.shapes[:, s], groups) for s, name in enumerate(self.shapes)}
        return Solutions(
            law=self.name,
            parameters=parameters,
            objective=found.objective.ravel(),
            bounds=self.bounds,
            shared=shared,
            function=type(self).function,
        )


def three(values: npt.ArrayLike) -> Array:
    """Values as (problems, groups, cells)."""
    values = np.asarray(values, dtype=float)
    return values.reshape((1,) * (3 - values.ndim) + values.shape)
