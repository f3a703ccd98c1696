"""Tables and headline of fits per group: parameters, residuals in bins and by series, cells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from analyses.laws import criteria
from analyses.result import Column, FittedLaw, Table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from analyses.cells import CellStudy
    from analyses.law.fits import GroupFits

BINS = 5
"""Bins of equal width over the observed errors (Figure 3, middle)."""
PARAMETERS = {
    "e_inf": ("e", "error floor e, the error that neither axis removes"),
    "A_n": ("a", "amplitude of N at the reference N: error it adds there"),
    "alpha": ("alpha", "exponent of N"),
    "B_r": ("b", "amplitude of R at the reference R: error it adds there"),
    "beta": ("beta", "exponent of R"),
    "A": ("A", "amplitude of N for N in billions: A_n x reference_N^alpha"),
    "B": ("B", "amplitude of R in the units of R: B_r x reference_R^beta"),
}
THIRD = {
    "G_p": ("g", "amplitude of effective pixels P at the reference P: error it adds there"),
    "gamma": ("gamma", "exponent of P"),
    "G": ("G", "amplitude of P for P in px: G_p x reference_P^gamma"),
}
"""Parameters of a third axis."""


def group_columns(by: Sequence[str]) -> list[Column]:
    """A column per label that groups are made by."""
    return [Column(name, f"{name} of the group; empty where unknown") for name in by]


def group_data(fits: GroupFits) -> dict[str, list[str | None]]:
    """Values of `group_columns`."""
    return {name: fits.groups.column(name) for name in fits.groups.by}


def fits_table(fits: GroupFits, intervals: Mapping[str, tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]] | None = None) -> Table:
    """One row per group, in the layout of Table 7; `intervals` gives the ends of the parameters they are known for."""
    third = THIRD if "gamma" in fits.bound else {}
    columns = [
        *group_columns(fits.groups.by),
        *(Column(name, meaning, "number") for name, (_, meaning) in PARAMETERS.items()),
        Column("sse", "sum of squared errors, weighted where weights differ", "number"),
        Column("n", "cells", "count"),
        Column("r2", "1 - SSE/SST about the (weighted) mean of the group", "share"),
        *(Column(f"{name}_at_bound", f"whether {name} stopped at a bound of its range") for name in ("alpha", "beta")),
        *(Column(name, meaning, "number") for name, (_, meaning) in third.items()),
        *((Column("gamma_at_bound", "whether gamma stopped at a bound of its range"),) if third else ()),
        Column("status", "fitted, exponents at bounds, what the cells do not determine, or why there is no fit"),
        Column("bic", "Gaussian BIC: n (ln(2 pi SSE/n) + 1) + k ln n", "number"),
        Column("k", "free parameters that the levels of the group can tell apart", "count"),
        Column("token_span", "largest over smallest R of the group", "number"),
    ]
    data: dict[str, Any] = {
        **group_data(fits),
        **{name: fits.parameters[key] for name, (key, _) in {**PARAMETERS, **third}.items()},
        **{f"{name}_at_bound": _flags(fits, name) for name in fits.bound},
        "sse": fits.sse,
        "n": fits.n,
        "r2": fits.r2,
        "status": fits.status,
        "bic": fits.bic,
        "k": [k if fine else None for k, fine in zip(fits.k.tolist(), fits.fitted.tolist(), strict=True)],
        "token_span": fits.span,
    }
    for name, (low, high) in (intervals or {}).items():
        columns += [
            Column(f"{name}_{end}", f"{which} end of the 95% bootstrap interval of {name}", "number")
            for end, which in (("low", "lower"), ("high", "upper"))
        ]
        data |= {f"{name}_low": low, f"{name}_high": high}
    return Table.of(f"Fits: L = e + A/N^alpha + B/R^beta per {' x '.join(fits.groups.by) or 'cohort'}", columns, data)


def _flags(fits: GroupFits, name: str) -> list[bool | None]:
    return [bool(side) if fine else None for side, fine in zip(fits.bound[name].tolist(), fits.fitted.tolist(), strict=True)]


def fitted_laws(
    fits: GroupFits, intervals: Mapping[str, tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]] | None = None
) -> list[FittedLaw]:
    """The fitted groups as rows of `fits`."""
    shown = {**PARAMETERS, **(THIRD if "gamma" in fits.bound else {})}
    laws = []
    for group in np.flatnonzero(fits.fitted).tolist():
        values = {name: _plain(fits.parameters[key][group]) for name, (key, _) in shown.items()}
        for name, (low, high) in (intervals or {}).items():
            values |= {f"{name}_low": _plain(low[group]), f"{name}_high": _plain(high[group])}
        laws.append(
            FittedLaw(
                law=fits.law,
                group_key=fits.groups.name(group) or "all cells",
                parameters=values,
                at_bound=tuple(
                    f"{name} {'upper' if side[group] > 0 else 'lower'}" for name, side in fits.bound.items() if int(side[group]) != 0
                ),
                n=int(fits.n[group]),
                k=int(fits.k[group]),
                sse=_plain(fits.sse[group]),
                r2=_plain(fits.r2[group]),
                bic=_plain(fits.bic[group]),
            )
        )
    return laws


def headline_of(
    fits: GroupFits, error: npt.NDArray[np.float64], weights: npt.NDArray[np.float64], reference: Sequence[float]
) -> dict[str, Any]:
    """Numbers over all cells of fitted groups (Table 7, B.2); the pooled R2 is about the grand mean of these cells."""
    used = fits.used
    residual = fits.residual[used]
    fine = fits.fitted
    return {
        "groups": int(fine.sum()),
        "cells": int(used.sum()),
        "pooled_sse": float(fits.sse[fine].sum()) if fine.any() else None,
        "pooled_r2": criteria.r2(error[used], fits.predicted[used], weights[used]) if fine.any() else None,
        "median_sse": median(fits.sse[fine]),
        "median_r2": median(fits.r2[fine]),
        "reference_N": reference[0],
        "reference_R": reference[1],
        "residual_mean": float(residual.mean()) if len(residual) else None,
        "residual_sd": float(residual.std()) if len(residual) else None,
        "residual_excess_kurtosis": excess_kurtosis(residual),
        "alpha_at_bound": int((fits.bound["alpha"] != 0).sum()),
        "beta_at_bound": int((fits.bound["beta"] != 0).sum()),
        "groups_without_fit": int((~fine).sum()),
    }


def median(values: npt.NDArray[np.float64]) -> float | None:
    """Median of the values that are known."""
    known = values[~np.isnan(values)]
    return float(np.median(known)) if len(known) else None


def excess_kurtosis(values: npt.NDArray[np.float64]) -> float | None:
    """m4/m2^2 - 3 over n (the biased one); None where the values do not vary."""
    deviations = values - values.mean() if len(values) else values
    square = float((deviations**2).mean()) if len(values) else 0.0
    return float((deviations**4).mean()) / square**2 - 3.0 if square > 0 else None


def residuals_table(fits: GroupFits, error: npt.NDArray[np.float64]) -> Table:
    """Mean residual with its standard error in bins of equal width over the observed errors."""
    used = fits.used
    observed, residual = error[used], fits.residual[used]
    rows = {name: [] for name in ("low", "high", "cells", "mean", "sem")}  # type: dict[str, list[Any]]
    if len(observed):
        edges = np.linspace(observed.min(), observed.max(), BINS + 1)
        place = np.clip(np.searchsorted(edges, observed, side="right") - 1, 0, BINS - 1)
        for bin_ in range(BINS):
            some = residual[place == bin_]
            rows["low"].append(edges[bin_])
            rows["high"].append(edges[bin_ + 1])
            rows["cells"].append(len(some))
            rows["mean"].append(some.mean() if len(some) else np.nan)
            rows["sem"].append(some.std(ddof=1) / np.sqrt(len(some)) if len(some) > 1 else np.nan)
    return Table.of(
        "Residuals: observed minus predicted error in five bins of equal width over the observed errors",
        (
            Column("low", "lower end of the bin, an error", "share"),
            Column("high", "upper end of the bin, an error (only the last bin includes it)", "share"),
            Column("cells", "cells in the bin", "count"),
            Column("mean", "mean residual", "slope"),
            Column("sem", "standard error of the mean (standard deviation over n - 1, by root n)", "slope"),
        ),
        rows,
    )


def spread_table(fits: GroupFits, text: Mapping[str, npt.NDArray[np.object_]]) -> Table:
    """Spread of the residuals over all cells, by family and by series (Figure 9, right)."""
    used = fits.used
    rows = {name: [] for name in ("by", "value", "cells", "mean", "sd", "rms")}  # type: dict[str, list[Any]]

    def add(by: str, value: str | None, some: npt.NDArray[np.float64]) -> None:
        entries = (by, value, len(some), some.mean(), some.std(), np.sqrt((some**2).mean()))
        for name, entry in zip(rows, entries, strict=True):
            rows[name].append(entry)

    if used.any():
        add("all", "all", fits.residual[used])
    for by in ("family", "series"):
        labels = text[by][used]
        for label in sorted(set(labels.tolist()), key=lambda label: (label is None, str(label))):
            add(by, label, fits.residual[used][labels == label])
    return Table.of(
        "Spread: residuals by family and series",
        (
            Column("by", "all, family or series"),
            Column("value", "which; empty where unknown"),
            Column("cells", "cells of fitted groups", "count"),
            Column("mean", "mean residual (observed minus predicted error)", "slope"),
            Column("sd", "standard deviation of the residuals, over n", "share"),
            Column("rms", "root mean square of the residuals, sqrt(SSE/n)", "share"),
        ),
        rows,
    )


def cells_table(study: CellStudy, fits: GroupFits, resource: npt.NDArray[np.float64]) -> Table:
    """Every cell with what the law says of it."""
    cells, by = study.cells, fits.groups.by
    further = [name for name in ("model", "benchmark") if name not in by]
    return Table.of(
        "Cells: observed and predicted error",
        (
            *group_columns(by),
            *(Column(name, f"{name} of the cell") for name in further),
            Column("N", "parameters of the language model, in billions", "number"),
            Column("R", "mean visual tokens, or what --resource puts in their place", "number"),
            Column("input_size", "input size, in px", "count"),
            Column("n", "scored answers", "count"),
            Column("error", "1 - mean credit", "share"),
            Column("predicted", "error that the law predicts; empty where the group has no fit or the cell lacks N or R", "share"),
            Column("residual", "observed minus predicted error", "slope"),
        ),
        {
            **{name: [fits.groups.keys[code][place] for code in fits.groups.code.tolist()] for place, name in enumerate(by)},
            **{name: cells.text[name] for name in further},
            "N": cells.parameters,
            "R": resource,
            "input_size": whole(cells.input_size),
            "n": cells.n,
            "error": cells.error,
            "predicted": fits.predicted,
            "residual": fits.residual,
        },
        shown=10,
    )


def whole(values: npt.NDArray[np.float64]) -> list[int | None]:
    """Whole numbers, None for NaN."""
    return [None if np.isnan(value) else round(value) for value in values.tolist()]


def _plain(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None
