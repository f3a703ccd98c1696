"""Options of analyses that fit the separable law to groups, and cells as points of such fits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
from pydantic import Field

from analyses.cells import CellParameters, lacks_of_groups
from analyses.law.fits import Points
from analyses.laws import SeparableLaw
from analyses.laws.separable import BOX
from analyses.ranges import Box  # noqa: TC001 - pydantic reads annotations

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from analyses.cells import CellStudy, ResourceName


class FitParameters(CellParameters):
    """Floor, search range and optimizer of the separable law."""

    floor: Literal["grid", "continuous", "free"] = Field(
        default="grid",
        description="error floor: grid (the 55 values of the paper), continuous (0.001 to 0.999), free (an intercept of any sign)",
    )
    box: Box = Field(default=BOX, description="search range of both exponents, such as 0.05,3")
    optimizer: Literal["global", "paper"] = Field(
        default="global", description="global: exact search over the exponents; paper: Nelder-Mead from 16 starts"
    )

    def law(self, reference: tuple[float, float]) -> SeparableLaw:
        """The law that the options ask for."""
        known = reference if np.isfinite(reference).all() else None  # NaN: nothing is fitted
        return SeparableLaw(alpha=self.box, beta=self.box, floor=self.floor, reference=known, optimizer=self.optimizer)


def points_of(
    study: CellStudy,
    keep: npt.NDArray[np.bool_],
    weights: npt.NDArray[np.float64] | None = None,
    *,
    resources: Sequence[ResourceName] = ("tokens",),
) -> Points:
    """The cells of a study as points of N and visual tokens, with equal weights if none are given; `resources` are what `keep` is about."""
    cells, (reference_n, reference_r) = study.cells, study.reference
    return Points(
        groups=study.groups,
        axes={"N": cells.parameters / reference_n, "R": cells.tokens / reference_r},
        reference={"N": reference_n, "R": reference_r},
        error=cells.error,
        weights=np.ones(len(cells)) if weights is None else weights,
        keep=keep,
        lacks=lacks_of_groups(study, resources),
    )
