"""Tables and stored fits of the comparison of forms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from analyses.result import Column, FittedLaw, Table, plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analyses.cells import Groups
    from analyses.forms.fits import FormFit

FORMULAS = {
    "separable": "e + A n^-alpha + B r^-beta",
    "multiplicative": "e + K n^-alpha r^-beta",
    "coupled": "e + A n^-alpha + B r^-beta + C (n r)^-gamma",
    "ces": "e + K [w n^delta + (1-w) r^delta]^(-1/delta)",
    "pnorm": "((A n^-alpha)^p + (B r^-beta)^p + C^p)^(1/p), fitted on e^p",
    "pnorm_exact": "((A n^-alpha)^p + (B r^-beta)^p + C^p)^(1/p), fitted on e",
}
NAMES = {"e": "e_inf", "a": "A_n", "b": "B_r", "c": "C_nr"}
SYMBOLS = {("multiplicative", "a"): "K_nr", ("ces", "a"): "K_nr", ("pnorm", "c"): "C", ("pnorm_exact", "c"): "C"}
"""How coefficients are called, where it is not as in `NAMES`."""
SIDES = {-1: "lower", 0: None, 1: "upper"}


def forms_table(fits: Sequence[FormFit]) -> Table:
    """Table 8: the first fit is the one that the others are compared with."""
    base = fits[0]
    return Table.of(
        "Forms with shapes that all groups share (differences from separable)",
        (
            Column(
                "form", "functional form; pnorm as the paper fits it (least squares on e^p, scored on e), pnorm_exact by least squares on e"
            ),
            Column("k", "parameters of the fit: coefficients of every group and the shared shapes", "count"),
            Column("sse", "sum of squared errors over all cells, weighted where weights differ", "number"),
            Column("bic", "Gaussian BIC: n (ln(2 pi SSE/n) + 1) + k ln n; lower is better", "number"),
            Column("aic", "Gaussian AIC: n (ln(2 pi SSE/n) + 1) + 2 k; lower is better", "number"),
            Column("delta_sse", "change of SSE from separable, in percent", "number"),
            Column("delta_bic", "change of BIC from separable", "number"),
            Column("r2", "1 - SSE/SST about the (weighted) mean of all cells", "share"),
            Column("n", "cells", "count"),
            Column("formula", "the form on n = N/Nref, r = R/Rref"),
        ),
        {
            "form": [fit.form for fit in fits],
            "k": [fit.k for fit in fits],
            "sse": [fit.total for fit in fits],
            "bic": [fit.bic for fit in fits],
            "aic": [fit.aic for fit in fits],
            "delta_sse": [0.0 if fit is base else 100.0 * (fit.total / base.total - 1.0) if base.total > 0 else None for fit in fits],
            "delta_bic": [0.0 if fit is base else difference(fit.bic, base.bic) for fit in fits],
            "r2": [fit.pooled_r2 for fit in fits],
            "n": [fit.n for fit in fits],
            "formula": [FORMULAS[fit.form] for fit in fits],
        },
    )


def difference(one: float, other: float) -> float | None:
    """One minus other where both are finite."""
    return one - other if np.isfinite(one) and np.isfinite(other) else None


def shapes_table(fits: Sequence[FormFit]) -> Table:
    """Shapes that all groups share."""
    rows = [(fit, name) for fit in fits for name in fit.solutions.bounds]
    return Table.of(
        "Shapes that all groups share",
        (
            Column("form", "functional form"),
            Column("shape", "exponent or other shape parameter; w and K of ces belong to n = N/Nref and r = R/Rref"),
            Column("value", "best value", "number"),
            Column("low", "lower bound of the search", "number"),
            Column("high", "upper bound of the search", "number"),
            Column("at_bound", "lower or upper where the value stopped at a bound"),
            Column(
                "groups", "groups in which the term that it shapes has an amplitude above zero; with none the shape says nothing", "count"
            ),
        ),
        {
            "form": [fit.form for fit, _ in rows],
            "shape": [name for _, name in rows],
            "value": [fit.solutions.parameters[name][0] for fit, name in rows],
            "low": [fit.solutions.bounds[name][0] for fit, name in rows],
            "high": [fit.solutions.bounds[name][1] for fit, name in rows],
            "at_bound": [None if not _with_term(fit, name) else SIDES[int(fit.solutions.at_bound(name)[0])] for fit, name in rows],
            "groups": [_with_term(fit, name) for fit, name in rows],
        },
    )


def _with_term(fit: FormFit, shape: str) -> int:
    parameters, of = fit.solutions.parameters, fit.solutions.amplitude_of
    names = [of[shape]] if shape in of else sorted(set(of.values()))
    return int(np.any([parameters[name] > 0 for name in names], axis=0).sum())


def per_group_table(fits: Sequence[FormFit]) -> Table:
    """Table 9: forms whose shapes are each group's own."""
    return Table.of(
        "Separable and multiplicative with shapes of each group's own",
        (
            Column("form", "functional form"),
            Column("pooled_sse", "sum of squared errors over all cells, weighted where weights differ", "number"),
            Column("median_r2", "median of the groups' R2", "share"),
            Column("groups_lower", "groups in which this form has the lower SSE; a tie counts for neither", "count"),
            Column("groups", "groups compared", "count"),
            Column("pooled_r2", "1 - SSE/SST about the (weighted) mean of all cells", "share"),
            Column("k", "parameters of all groups together", "count"),
            Column("bic", "Gaussian BIC of all cells", "number"),
        ),
        {
            "form": [fit.form for fit in fits],
            "pooled_sse": [fit.total for fit in fits],
            "median_r2": [float(np.nanmedian(fit.r2)) if not np.isnan(fit.r2).all() else None for fit in fits],
            "groups_lower": [int(np.all([fit.sse < other.sse for other in fits if other is not fit], axis=0).sum()) for fit in fits],
            "groups": [len(fit.sse) for fit in fits],
            "pooled_r2": [fit.pooled_r2 for fit in fits],
            "k": [fit.k for fit in fits],
            "bic": [fit.bic for fit in fits],
        },
    )


def groups_table(groups: Groups, fitted: Sequence[int], own: Sequence[FormFit], counts: Sequence[int]) -> Table:
    """Each group under both forms with shapes of its own."""
    columns = [Column(name, f"{name} of the group; empty where unknown") for name in groups.by]
    columns.append(Column("n", "cells", "count"))
    data: dict[str, Any] = {name: [groups.column(name)[group] for group in fitted] for name in groups.by}
    data["n"] = counts
    for fit in own:
        form = fit.form
        columns += [
            Column(f"{form}_sse", f"sum of squared errors of the {form} form, weighted where weights differ", "number"),
            Column(f"{form}_r2", f"1 - SSE/SST of the {form} form about the (weighted) mean of the group", "share"),
            *(Column(f"{form}_{name}", f"{name} of the {form} form", "number") for name in fit.solutions.bounds),
            Column(f"{form}_at_bound", f"exponents of the {form} form that stopped at a bound"),
        ]
        data |= {f"{form}_sse": fit.sse, f"{form}_r2": fit.r2}
        data |= {f"{form}_{name}": fit.solutions.parameters[name] for name in fit.solutions.bounds}
        data[f"{form}_at_bound"] = [", ".join(_bounds(fit, row)) or None for row in range(len(fit.sse))]
    columns.append(Column("lower", "form with the lower SSE"))
    data["lower"] = [_lower(own, row) for row in range(len(fitted))]
    return Table.of("Groups under separable and multiplicative, shapes of their own", columns, data)


def _lower(own: Sequence[FormFit], row: int) -> str | None:
    best = min(own, key=lambda fit: fit.sse[row])
    return best.form if sum(fit.sse[row] == best.sse[row] for fit in own) == 1 else None


def _bounds(fit: FormFit, row: int) -> list[str]:
    solutions = fit.solutions
    sides = {name: SIDES[int(solutions.at_bound(name)[row])] for name in solutions.bounds if not solutions.undetermined(name)[row]}
    return [f"{name} {side}" for name, side in sides.items() if side]


def coefficients_table(groups: Groups, fitted: Sequence[int], fits: Sequence[FormFit]) -> Table:
    """Coefficients of every group under every form with shared shapes."""
    rows = [(fit, row) for fit in fits for row in range(len(fit.sse))]
    meanings = {
        "e": "intercept; the p-norm has none",
        "a": "amplitude of the term in n (of the product or aggregate in multiplicative and ces): error it adds at the reference",
        "b": "amplitude of the term in r",
        "c": "amplitude of the term in n r of coupled; the floor inside the norm of pnorm",
    }
    return Table.of(
        "Coefficients of the groups, shapes shared",
        (
            Column("form", "functional form"),
            *(Column(name, f"{name} of the group; empty where unknown") for name in groups.by),
            *(Column(name, meaning, "number") for name, meaning in meanings.items()),
            Column("sse", "sum of squared errors of the group, weighted where weights differ", "number"),
            Column("r2", "1 - SSE/SST about the (weighted) mean of the group", "share"),
        ),
        {
            "form": [fit.form for fit, _ in rows],
            **{name: [groups.column(name)[fitted[row]] for _, row in rows] for name in groups.by},
            **{
                name: [fit.solutions.parameters[name][row] if name in fit.solutions.parameters else None for fit, row in rows]
                for name in meanings
            },
            "sse": [fit.sse[row] for fit, row in rows],
            "r2": [fit.r2[row] for fit, row in rows],
        },
        shown=20,
    )


def fitted_laws(groups: Groups, fitted: Sequence[int], fits: Sequence[FormFit], counts: Sequence[int], *, shared: bool) -> list[FittedLaw]:
    """Every group under every form as rows of `fits`; a shared fit has no BIC of a group."""
    return [
        FittedLaw(
            law=f"{fit.form}, shared shapes" if shared else fit.form,
            group_key=groups.name(group) or "all cells",
            parameters={symbol(fit.form, name): plain(float(value[row])) for name, value in fit.solutions.parameters.items()},
            n=counts[row],
            k=fit.coefficients,
            at_bound=tuple(_bounds(fit, row)),
            sse=plain(float(fit.sse[row])),
            r2=plain(float(fit.r2[row])),
            bic=None if shared else plain(float(_bic(fit, row, counts[row]))),
        )
        for fit in fits
        for row, group in enumerate(fitted)
    ]


def _bic(fit: FormFit, row: int, count: int) -> float:
    from analyses.laws.criteria import bic

    return float(bic(fit.sse[row], count, fit.coefficients))


def symbol(form: str, name: str) -> str:
    """How the paper writes a coefficient."""
    return SYMBOLS.get((form, name), NAMES.get(name, name))
