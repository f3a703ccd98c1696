"""Intervals of the parameters of each group from refits of its cells (separable-law paper, B.7, Table 15)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from analyses.bootstrap.options import shown
from analyses.laws import criteria
from analyses.resampling import batch_of, observed, refits_of, target
from analyses.result import Column, FittedLaw, Table, plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from analyses.cells import CellStudy
    from analyses.resampling import Law, Layout, Refits

ORDER = ("alpha", "beta", "gamma", "e", "a", "b", "c")
MEANINGS = {
    "alpha": "exponent of N",
    "beta": "exponent of R",
    "gamma": "exponent of N R",
    "e": "error floor (bounded law: on the logit scale)",
    "a": "amplitude of N at the reference N (multiplicative law: of N and R at the reference)",
    "b": "amplitude of R at the reference R",
    "c": "amplitude of N R at the reference",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupIntervals:
    """The fit to each group as it is, and its refits, under one weighting. Rows are those of the layout."""

    law: Law
    weighting: str
    layout: Layout
    point: Refits
    refits: Refits
    sse: npt.NDArray[np.float64]
    r2: npt.NDArray[np.float64]

    @property
    def names(self) -> list[str]:
        """Parameters in the order of the table."""
        return [name for name in ORDER if name in self.point.parameters]

    @property
    def shapes(self) -> list[str]:
        """Exponents."""
        return [name for name in ORDER if name in self.point.determined]

    def values(self, refits: Refits, name: str) -> npt.NDArray[np.float64]:
        """Values of a parameter, NaN where an exponent is not determined."""
        values = refits.parameters[name]
        return np.where(refits.determined[name], values, np.nan) if name in refits.determined else values

    def share(self, name: str, which: str) -> npt.NDArray[np.float64]:
        """Share of the fitted refits whose exponent is `at_bound`, or `undetermined`."""
        hit = self.refits.at_bound[name] != 0 if which == "at_bound" else self.refits.fitted & ~self.refits.determined[name]
        with np.errstate(invalid="ignore"):
            return np.asarray(hit.sum(axis=0) / self.refits.fitted.sum(axis=0))


def intervals(
    study: CellStudy, layout: Layout, law: Law, weighting: str, weights: npt.NDArray[np.float64], refits: Refits
) -> GroupIntervals:
    """Put the fits to the cells as they are beside the refits."""
    batch = batch_of(layout, observed(study), study.cells.parameters, study.reference, weights)
    n, r, error, w = batch.n[0], batch.r[0], batch.error[0], batch.weights[0]
    found = law.fit_many(n, r, target(law, batch)[0], w)
    predicted = found.predict(n, r)
    return GroupIntervals(
        law=law,
        weighting=weighting,
        layout=layout,
        point=refits_of(found, batch, np.ones((1, len(layout)), dtype=bool)),
        refits=refits,
        sse=(w * (error - predicted) ** 2).sum(axis=1),
        r2=np.array([criteria.r2(error[row], predicted[row], w[row]) for row in range(len(layout))]),
    )


def intervals_table(study: CellStudy, found: Sequence[GroupIntervals], level: float) -> Table:
    """One row per group and weighting, in the layout of Table 15."""
    law, names, shapes = found[0].law.name, found[0].names, found[0].shapes
    by = study.groups.by
    columns = [*(Column(name, f"{name} of the group; empty where unknown") for name in by), Column("weights", "weights of the cells")]
    for name in names:
        what = f"{100 * level:g}% percentile interval of {shown(law, name)} over the refits"
        columns += [
            Column(shown(law, name), f"{MEANINGS[name]}, of the cells as they are; empty where its term is zero", "number"),
            Column(f"{shown(law, name)}_low", f"lower end of the {what}", "number"),
            Column(f"{shown(law, name)}_high", f"upper end of the {what}", "number"),
        ]
    for name in shapes:
        columns += [
            Column(f"{name}_at_bound", f"share of the refits in which {name} reached a bound of its search range", "share"),
            Column(f"{name}_undetermined", f"share of the refits whose term of {name} is zero; they are not in its interval", "share"),
        ]
    columns += [
        Column("replicates", "refits that the intervals come from", "count"),
        Column("sse", "sum of squared errors of the cells as they are, weighted where weights differ", "number"),
        Column("n", "cells", "count"),
    ]
    data: dict[str, list[Any]] = {column.name: [] for column in columns}
    for one in found:
        for name in by:
            values = study.groups.column(name)
            data[name] += [values[group] for group in one.layout.group]
        data["weights"] += [one.weighting] * len(one.layout)
        for name in names:
            low, high = ends(one, name, level)
            data[shown(law, name)] += list(one.values(one.point, name)[0])
            data[f"{shown(law, name)}_low"] += list(low)
            data[f"{shown(law, name)}_high"] += list(high)
        for name in shapes:
            for which in ("at_bound", "undetermined"):
                data[f"{name}_{which}"] += list(one.share(name, which))
        data["replicates"] += list(one.refits.fitted.sum(axis=0))
        data["sse"] += list(one.sse)
        data["n"] += list(one.layout.inside.sum(axis=1))
    return Table.of(f"{100 * level:g}% percentile intervals of the {law} law per {' x '.join(by) or 'cohort'}", columns, data)


def ends(one: GroupIntervals, name: str, level: float) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Interval of a parameter in each group; NaN where no refit determines it."""
    if name not in one.refits.parameters:
        return (np.full(len(one.layout), np.nan),) * 2
    return one.refits.interval(one.values(one.refits, name), level)


def fitted_laws(study: CellStudy, found: Sequence[GroupIntervals], level: float) -> list[FittedLaw]:
    """The groups as rows of `fits`, intervals among their parameters."""
    rows = []
    for one in found:
        law = one.law.name
        values = {shown(law, name): one.values(one.point, name)[0] for name in one.names}
        for name in one.names:
            low, high = ends(one, name, level)
            values |= {f"{shown(law, name)}_low": low, f"{shown(law, name)}_high": high}
        for row, group in enumerate(one.layout.group.tolist()):
            n = int(one.layout.inside[row].sum())
            sides = {name: int(one.point.at_bound[name][0, row]) for name in one.shapes}
            label = study.groups.name(group) or "all cells"
            rows.append(
                FittedLaw(
                    law=law,
                    group_key=label if one.weighting == "equal" else f"{label}, {one.weighting} weights",
                    parameters={name: plain(value[row]) for name, value in values.items()},
                    at_bound=tuple(f"{name} {'upper' if side > 0 else 'lower'}" for name, side in sides.items() if side),
                    n=n,
                    k=one.law.k,
                    sse=plain(one.sse[row]),
                    r2=plain(one.r2[row]),
                    bic=plain(criteria.bic(one.sse[row], n, one.law.k)),
                )
            )
    return rows


def replicates_table(study: CellStudy, layout: Layout, refits: Refits, clusters: Sequence[int]) -> Table:
    """What the replicates left of each group."""
    columns = [
        *(Column(name, f"{name} of the group; empty where unknown") for name in study.groups.by),
        Column("cells", "cells", "count"),
        Column("clusters", "image clusters that the cells draw on", "count"),
        Column("replicates", "resamples", "count"),
        Column("fitted", "resamples in which the group was fitted", "count"),
        Column("not_fitted", "resamples that left fewer cells than parameters, one level on an axis or a constant error", "count"),
        Column("with_lost_cells", "resamples in which a cell lost all its answers; it has no weight there", "count"),
        Column("lost_cells", "cells lost, over all resamples", "count"),
    ]
    data: dict[str, Any] = {name: [study.groups.column(name)[group] for group in layout.group] for name in study.groups.by}
    data |= {
        "cells": layout.inside.sum(axis=1),
        "clusters": clusters,
        "replicates": [len(refits.fitted)] * len(layout),
        "fitted": refits.fitted.sum(axis=0),
        "not_fitted": (~refits.fitted).sum(axis=0),
        "with_lost_cells": (refits.lost > 0).sum(axis=0),
        "lost_cells": refits.lost.sum(axis=0),
    }
    return Table.of("What the resamples left of each group", columns, data)
