"""What the laws made of decaying columns have in common: the API of a law around the search for shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from analyses.laws.fit import Fit
from analyses.laws.floor import Floor, floor_of
from analyses.laws.inputs import cells_of
from analyses.laws.limits import checked_reference
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
    intercept: ClassVar[bool] = True
    """Whether a group has a floor e beside its amplitudes."""
    amplitude_of: ClassVar[Mapping[str, str]]
    """The amplitude that a shape belongs to: where it is 0, the shape has no effect."""
    function: ClassVar[Callable[..., Any]]
    reference: tuple[float, float] | None

    @property
    def bounds(self) -> Mapping[str, tuple[float, float]]:
        """Search range of each shape."""
        raise NotImplementedError

    def fit_many(self, n: npt.ArrayLike, r: npt.ArrayLike, error: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> Solutions:
        """Fit many groups, each with its own shapes, on normalised axes; arrays (cells,) or (fits, cells), weight 0 leaves a cell out.

        A fit without any weight has NaN parameters and objective 0. ValueError where a cell with weight has no positive n and r or no finite error.
        """
        raise NotImplementedError

    def fit_shared(self, n: npt.ArrayLike, r: npt.ArrayLike, error: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> Solutions:
        """Fit groups that share their shapes; arrays (groups, cells), or (problems, groups, cells) for many such problems at once.

        The solutions are one per group, in order; of many problems, all groups of the first, then of the second, and so on. A group
        without any weight takes no part and has NaN coefficients. ValueError as in `fit_many`.
        """
        raise NotImplementedError

    def solutions(self, data: Data, parameters: dict[str, Array], objective: Array, shared: tuple[str, ...]) -> Solutions:
        """Solutions of P x G groups in order; parameters of groups without weight become NaN, their shapes where no group has any."""
        weighed = np.any(data.w > 0, axis=-1)
        without = {True: ~np.any(weighed, axis=1).repeat(weighed.shape[1]), False: ~weighed.ravel()}
        return Solutions(
            law=self.name,
            parameters={name: np.where(without[name in self.shapes], np.nan, values) for name, values in parameters.items()},
            objective=objective * data.unit.repeat(weighed.shape[1]),
            bounds=self.bounds,
            shared=shared,
            function=type(self).function,
            amplitude_of=self.amplitude_of,
        )

    def no_solutions(self, data: Data, shared: tuple[str, ...]) -> Solutions:
        """The solutions of no group at all."""
        names = (*(("e",) if self.intercept else ()), *self.amplitudes, *self.shapes)
        return self.solutions(data, {name: np.zeros(0) for name in names}, np.zeros(0), shared)

    def physical(self, values: dict[str, float], reference: tuple[float, float]) -> dict[str, float]:
        """Parameters for people from those on normalised axes."""
        raise NotImplementedError

    def fit(self, N: npt.ArrayLike, R: npt.ArrayLike, error: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> Fit:  # noqa: N803
        """Fit one group: N, R and error of its cells, with weights if they differ; `Fit.status` says what so few cells do not determine.

        ValueError names the argument and the place of what cannot be used.
        """
        (n_axis, r_axis), y, w = cells_of({"N": N, "R": R}, error, weights)
        reference = self.reference or (_centre(n_axis, w), _centre(r_axis, w))
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
            floor=getattr(self, "floor", None) if self.intercept else None,
        )


class PowerLaw(Law):
    """A law whose columns decay exponentially along log axes."""

    terms: ClassVar[Terms]
    points: ClassVar[int]
    """Values of each shape in the first grid."""
    starts: ClassVar[int]
    """Minima of it that are polished."""

    def __init__(self, *, floor: str | Floor, reference: tuple[float, float] | None) -> None:
        checked_reference(reference)
        self.floor, self.reference = floor_of(floor), reference

    def fit_many(self, n: npt.ArrayLike, r: npt.ArrayLike, error: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> Solutions:
        """Fit many groups, each with its own shapes, on normalised axes; arrays (cells,) or (fits, cells), weight 0 leaves a cell out."""
        data = data_of(self.terms, *(rows(values) for values in (n, r, error, weights)))
        return self._solutions(data, ())

    def fit_shared(self, n: npt.ArrayLike, r: npt.ArrayLike, error: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> Solutions:
        """Fit groups that share their shapes; arrays (groups, cells), or (problems, groups, cells) for many such problems at once.

        The solutions are one per group, in order; of many problems, all groups of the first, then of the second, and so on.
        """
        data = data_of(self.terms, *(three(values) for values in (n, r, error, weights)))
        return self._solutions(data, self.shapes)

    @property
    def _box(self) -> Array:
        return np.array([self.bounds[name] for name in self.shapes])

    def _search(self, data: Data) -> Found:
        return search(self.terms, data, self._box, self.floor, points=self.points, starts=self.starts)

    def _solutions(self, data: Data, shared: tuple[str, ...]) -> Solutions:
        if not data.y.size:
            return self.no_solutions(data, shared)
        found, groups = self._search(data), data.y.shape[1]
        parameters = {"e": found.floor.ravel()}
        parameters |= {name: found.amplitudes[..., j].ravel() for j, name in enumerate(self.amplitudes)}
        parameters |= {name: np.repeat(found.shapes[:, s], groups) for s, name in enumerate(self.shapes)}
        return self.solutions(data, parameters, found.objective.ravel(), shared)


def _centre(axis: Array, weights: Array) -> float:
    used = weights > 0
    return float(np.exp(np.log(axis[used]).mean())) if used.any() else 1.0


def rows(values: npt.ArrayLike | None) -> Any:
    """Values (cells,) or (fits, cells) as problems of one group each; None stays None."""
    return None if values is None else np.atleast_2d(np.asarray(values, dtype=float))[:, None]


def three(values: npt.ArrayLike | None) -> Any:
    """Values as (problems, groups, cells); None stays None."""
    if values is None:
        return None
    values = np.asarray(values, dtype=float)
    return values.reshape((1,) * (3 - values.ndim) + values.shape)
