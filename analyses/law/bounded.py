"""The bounded law beside the separable one: parameters, medians and bounds, agreement of the exponents (separable-law paper, B.6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats

from analyses.exponents.summary import exponents_of, one_exponent, order_of
from analyses.law.tables import group_columns, group_data
from analyses.result import Column, Table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from analyses.law.fits import GroupFits

FEWEST = 3
"""Groups that a rank correlation needs."""


def bounded_table(fits: GroupFits) -> Table:
    """One row per group: the bounded law's parameters, with SSE and R2 of its predicted errors."""
    names = {
        "c": ("e", "floor on the logit scale"),
        "A_n": ("a", "amplitude of N at the reference N, in logits"),
        "alpha": ("alpha", "exponent of N"),
        "B_r": ("b", "amplitude of R at the reference R, in logits"),
        "beta": ("beta", "exponent of R"),
    }
    columns = [
        *group_columns(fits.groups.by),
        *(Column(name, meaning, "number") for name, (_, meaning) in names.items()),
        Column("sse", "sum of squared errors of the predicted errors (not of the logits that are fitted)", "number"),
        Column("n", "cells", "count"),
        Column("r2", "1 - SSE/SST of the errors", "share"),
        Column("status", "fitted, exponents at bounds, what the cells do not determine, or why there is no fit"),
    ]
    data: dict[str, Any] = {
        **group_data(fits),
        **{name: fits.parameters[key] for name, (key, _) in names.items()},
        "sse": fits.sse,
        "n": fits.n,
        "r2": fits.r2,
        "status": fits.status,
    }
    return Table.of("Bounded: L = sigma(c + A/N^alpha + B/R^beta), fitted on the logit of the error", columns, data)


def medians_table(laws: Mapping[str, GroupFits], family: Sequence[str | None]) -> Table:
    """Median exponents, those at bounds included, and fits at bounds, by family and law (Table 13)."""
    columns = (
        Column("family", "family of the groups; empty where unknown or mixed"),
        Column("law", "separable (continuous floor) or bounded"),
        Column("groups", "fitted groups", "count"),
        *(Column(f"{name}_median", f"median {name}, fits at bounds included", "number") for name in ("alpha", "beta")),
        *(
            Column(f"{name}_at_{side}", f"groups with {name} at its {side} bound", "count")
            for name in ("alpha", "beta")
            for side in ("lower", "upper")
        ),
    )
    rows: dict[str, list[Any]] = {column.name: [] for column in columns}
    for value in sorted(set(family), key=lambda value: (value is None, str(value))):
        for law, fits in laws.items():
            some = fits.fitted & np.array([one == value for one in family], dtype=bool)
            alpha, beta = (one_exponent(exponents_of(fits, name).take(some)) for name in ("alpha", "beta"))
            entries = (value, law, int(some.sum()), alpha.median_all, beta.median_all, alpha.lower, alpha.upper, beta.lower, beta.upper)
            for name, entry in zip(rows, entries, strict=True):
                rows[name].append(entry)
    return Table.of("Medians: exponents of the separable and the bounded law by family (Table 13)", columns, rows)


def agreement(separable: GroupFits, bounded: GroupFits) -> dict[str, Any]:
    """Rank correlations of the exponents of two laws, and groups in which both order alpha and beta alike."""
    numbers: dict[str, Any] = {
        f"bounded_rank_correlation_{name}": rank_correlation(exponents_of(separable, name).value, exponents_of(bounded, name).value)
        for name in ("alpha", "beta")
    }
    one, other = order_of(separable), order_of(bounded)
    known = ~(np.isnan(one) | np.isnan(other))
    return numbers | {"bounded_order_groups": int(known.sum()), "bounded_order_same": int((one[known] == other[known]).sum())}


def rank_correlation(x: npt.NDArray[np.float64], y: npt.NDArray[np.float64]) -> float | None:
    """Spearman's rho, ties at their mean rank; None for fewer than three pairs or where one side does not vary."""
    known = ~(np.isnan(x) | np.isnan(y))
    x, y = x[known], y[known]
    if len(x) < FEWEST or np.ptp(x) == 0 or np.ptp(y) == 0:
        return None
    return float(stats.spearmanr(x, y).statistic)
