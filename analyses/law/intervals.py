"""Percentile intervals of the law's parameters from refits on resampled image clusters (separable-law paper, B.7)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from analyses.clusters import cluster_sums
from analyses.few_clusters import cluster_warnings
from analyses.law.tables import PARAMETERS
from analyses.laws.terms import all_in_units
from analyses.resampling import Layout, intervals_of

if TYPE_CHECKING:
    import numpy.typing as npt

    from analyses.cells import CellStudy
    from analyses.law.fits import GroupFits, Points
    from analyses.laws import SeparableLaw

Ends = tuple["npt.NDArray[np.float64]", "npt.NDArray[np.float64]"]


def law_intervals(
    study: CellStudy, points: Points, fits: GroupFits, law: SeparableLaw, replicates: int, *, workers: int | None, executor: str
) -> dict[str, Ends]:
    """Lower and upper end of the 95% interval of every parameter of the fits, NaN where the fit has no value or its cells do not vary.

    A replicate in which a term has no amplitude says nothing of its exponent and is left out of that exponent's interval. Warnings of
    too few clusters join those of the study.
    """
    layout = Layout.of(study.groups, points.keep, np.flatnonzero(fits.fitted).tolist())
    sums = cluster_sums(study)
    study.warnings.extend(cluster_warnings(study, sums, fits.used))
    refits = intervals_of(study, sums, layout, law, replicates, weights=points.weights, workers=workers, executor=executor)
    drawn = dict(refits.parameters)
    ends: dict[str, Ends] = {}
    if not drawn:
        return ends
    for amplitude, exponent, axis in (("a", "alpha", "N"), ("b", "beta", "R")):
        drawn[exponent] = np.where(drawn[amplitude] > 0, drawn[exponent], np.nan)
        drawn[amplitude.upper()] = all_in_units(drawn[amplitude], points.reference[axis], drawn[exponent])
    for name, (key, _) in PARAMETERS.items():
        low, high = (np.full(len(study.groups), np.nan) for _ in range(2))
        low[layout.group], high[layout.group] = refits.interval(drawn[key])
        unknown = np.isnan(fits.parameters[key])
        low[unknown] = high[unknown] = np.nan
        ends[name] = low, high
    return ends
