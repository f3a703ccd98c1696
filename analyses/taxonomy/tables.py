"""Tables of the taxonomy analysis (Tables 24, 25, 26)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from analyses.floors.analysis import bound_names
from analyses.resampling import quantiles
from analyses.result import Column, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from analyses.cells import Groups
    from analyses.clusters import Resampling
    from analyses.decomposition import Shares
    from analyses.law.fits import GroupFits

QUANTILES = (0.5, 0.025, 0.975)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resampled:
    """A bootstrap of the decomposition."""

    kind: Resampling
    replicates: int
    complete: int
    """Replicates that keep every pairing; the shares are theirs."""
    varies: bool
    """Whether any cell changes from replicate to replicate."""
    shares: Shares


def pairings_table(fits: GroupFits, questions: npt.NDArray[np.int64]) -> Table:
    """One row per pairing."""
    by = fits.groups.by
    columns = [
        *(Column(name, f"{name} of the questions") for name in by),
        Column("e_inf", "error floor: the error that neither axis removes", "number"),
        Column("alpha", "exponent of N; empty where A_n is zero or N has one level", "number"),
        Column("beta", "exponent of R; empty where B_r is zero or R has one level", "number"),
        Column("A_n", "error that N adds at the reference N", "number"),
        Column("B_r", "error that R adds at the reference R", "number"),
        Column("sse", "sum of squared errors over the sub-cells", "number"),
        Column("r2", "1 - SSE/SST about the mean of the sub-cells", "share"),
        Column("sub_cells", "benchmark x configuration cells of the pairing with enough questions", "count"),
        Column("questions", "distinct questions in them", "count"),
        Column("alpha_at_bound", "bound of the search range that alpha lies at; empty inside"),
        Column("beta_at_bound", "bound of the search range that beta lies at; empty inside"),
        Column("status", "fitted, exponents at bounds, what the sub-cells do not determine, or why there is no fit"),
    ]
    data: dict[str, Any] = {name: fits.groups.column(name) for name in by}
    data |= {name: fits.parameters[key] for name, key in (("e_inf", "e"), ("alpha", "alpha"), ("beta", "beta"), ("A_n", "a"), ("B_r", "b"))}
    data |= {"sse": fits.sse, "r2": fits.r2, "sub_cells": fits.n, "questions": questions, "status": fits.status}
    data |= {f"{name}_at_bound": bound_names(fits, name) for name in ("alpha", "beta")}
    return Table.of("Pairings: L = e + A/N^alpha + B/R^beta over all series", columns, data)


def marginals_table(by: Sequence[str], labels: Sequence[npt.NDArray[np.str_]], floors: npt.NDArray[np.float64]) -> Table:
    """Mean floors over the pairings with one, by each label (Table 24)."""
    rows = [
        (name, str(value), floors[codes == value].mean(), int((codes == value).sum()))
        for name, codes in zip(reversed(by), reversed(labels), strict=True)
        for value in np.unique(codes)
    ]
    columns = (
        Column("by", "label"),
        Column("value", "its value"),
        Column("mean_e_inf", "mean error floor, each pairing with the same weight", "number"),
        Column("pairings", "pairings with a determined floor", "count"),
    )
    return Table.of(
        "Marginals: mean error floors (Table 24)",
        columns,
        {column.name: [row[place] for row in rows] for place, column in enumerate(columns)},
    )


def highest_table(groups: Groups, floors: npt.NDArray[np.float64], high: float) -> Table:
    """Pairings with a high floor, highest first (Table 25)."""
    picked = [group for group in np.argsort(-floors, kind="stable").tolist() if round(float(floors[group]), 9) >= high]
    by = groups.by
    columns = (*(Column(name, f"{name} of the questions") for name in by), Column("e_inf", "error floor", "number"))
    data: dict[str, Any] = {name: [groups.column(name)[group] for group in picked] for name in by}
    return Table.of(f"Highest: pairings with a floor of at least {high:g} (Table 25)", columns, data | {"e_inf": floors[picked]})


def shares_table(by: Sequence[str], shares: Shares | None) -> Table:
    """What each label explains of the spread of the floors (Eq. 19)."""
    columns = (
        Column("label", "label of the questions"),
        Column("r2_alone", "R2 of this label alone", "share"),
        Column("r2_added", "R2 that it adds to the other label", "share"),
        Column("r2_both", "R2 of both labels", "share"),
        Column("share", "V: mean of r2_alone and r2_added", "share"),
    )
    rows: list[tuple[Any, ...]] = []
    if shares is not None:
        one, two, both = float(shares.r2_first), float(shares.r2_second), float(shares.r2_both)
        rows = [(by[0], one, both - two, both, float(shares.first)), (by[1], two, both - one, both, float(shares.second))]
    return Table.of(
        "Shares: variance of the floors that each label accounts for (Eq. 19)",
        columns,
        {column.name: [row[place] for row in rows] for place, column in enumerate(columns)},
    )


def bootstrap_table(by: Sequence[str], resampled: Sequence[Resampled]) -> Table:
    """Intervals of the shares over image-cluster replicates that keep every pairing (Table 26)."""
    one, two = by
    ratio = f"V_{two}_over_V_{one}"
    columns = (
        Column("resampling", "ordinary: clusters drawn with replacement; positive: Dirichlet weights"),
        Column("replicates", "replicates", "count"),
        Column("complete", "replicates in which every pairing can be fitted; the other columns are about these", "count"),
        *(
            Column(f"{name}{end}", f"{which} of {name.removeprefix('V_')}'s share V over replicates", "share")
            for name in (f"V_{two}", f"V_{one}")
            for end, which in (("", "median"), ("_low", "2.5th percentile"), ("_high", "97.5th percentile"))
        ),
        *(
            Column(f"{ratio}{end}", f"{which} of their ratio over replicates; empty where it is infinite", "number")
            for end, which in (("", "median"), ("_low", "2.5th percentile"), ("_high", "97.5th percentile"))
        ),
        Column(f"{ratio}_infinite", f"complete replicates with V of {one} zero, whose ratio is infinite", "count"),
        Column(f"{two}_larger", f"share of replicates with V of {two} above V of {one}", "share"),
    )
    data: dict[str, list[Any]] = {column.name: [] for column in columns}
    for run in resampled:
        data["resampling"].append(run.kind)
        data["replicates"].append(run.replicates)
        data["complete"].append(run.complete)
        first, second = run.shares.first, run.shares.second
        known = ~(np.isnan(first) | np.isnan(second))
        with np.errstate(divide="ignore", invalid="ignore"):
            measures = {f"V_{two}": second[known], f"V_{one}": first[known], ratio: (second / first)[known]}
        for name, values in measures.items():
            middle, low, high = quantiles(values, QUANTILES) if len(values) else (np.nan,) * 3
            for end, value in (("", middle), ("_low", low if run.varies else np.nan), ("_high", high if run.varies else np.nan)):
                data[name + end].append(value)
        data[f"{ratio}_infinite"].append(int(np.isinf(measures[ratio]).sum()))
        data[f"{two}_larger"].append((second > first)[known].mean() if run.varies and known.any() else np.nan)
    return Table.of("Bootstrap: variance shares over resampled image clusters (Table 26)", columns, data)
