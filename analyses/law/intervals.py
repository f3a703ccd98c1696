"""Percentile intervals of the law's parameters from refits on resampled image clusters (separable-law paper, B.7)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from analyses.clusters import cluster_sums
from analyses.law.tables import PARAMETERS
from analyses.resampling import Layout, intervals_of

if TYPE_CHECKING:
    import numpy.typing as npt

    from analyses.cells import CellStudy
    from analyses.law.fits import GroupFits, Points
    from analyses.laws import SeparableLaw

LEVELS = (0.025, 0.975)
Ends = tuple["npt.NDArray[np.float64]", "npt.NDArray[np.float64]"]


def law_intervals(
    study: CellStudy, points: Points, fits: GroupFits, law: SeparableLaw, replicates: int, *, workers: int | None, executor: str
) -> dict[str, Ends]:
    """Lower and upper end of the 95% interval of every parameter of the fits, NaN where the fit has no value.

    A replicate in which a term has no amplitude says nothing of its exponent and is left out of that exponent's interval.
    """
    layout = Layout.of(study.groups, points.keep, np.flatnonzero(fits.fitted).tolist())
    refits = intervals_of(study, cluster_sums(study), layout, law, replicates, weights=points.weights, workers=workers, executor=executor)
    drawn = dict(refits.parameters)
    ends: dict[str, Ends] = {}
    if not drawn:
        return ends
    for amplitude, exponent, axis in (("a", "alpha", "N"), ("b", "beta", "R")):
        drawn[exponent] = np.where(drawn[amplitude] > 0, drawn[exponent], np.nan)
        drawn[amplitude.upper()] = drawn[amplitude] * points.reference[axis] ** np.where(np.isnan(drawn[exponent]), 0.0, drawn[exponent])
    for name, (key, _) in PARAMETERS.items():
        low, high = (np.full(len(study.groups), np.nan) for _ in LEVELS)
        for row, group in enumerate(layout.group.tolist()):
            known = drawn[key][:, row][~np.isnan(drawn[key][:, row])]
            if len(known) and not np.isnan(fits.parameters[key][group]):
                low[group], high[group] = np.quantile(known, LEVELS)
        ends[name] = low, high
    return ends
