"""Tables of the exponents analysis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from analyses.result import Column, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analyses.exponents.levels import Level

SIDES = {-1: "lower", 0: None, 1: "upper"}
PARTS = (
    Column("level", "group: fits of whole groups; subset: fits of their tasks or categories"),
    Column("by", "what the fits are summarised by"),
    Column("value", "which; empty where unknown"),
    Column("fits", "fits", "count"),
)


def exponents_table(levels: Sequence[Level]) -> Table:
    """Interior counts, medians and ranges (Table 27, and the text of 4.1 and D.1)."""
    columns = (
        *PARTS,
        Column("exponent", "alpha: of N; beta: of R"),
        Column("median", "median of the interior estimates", "number"),
        Column("min", "smallest interior estimate", "number"),
        Column("max", "largest interior estimate", "number"),
        Column("interior", "fits whose estimate lies strictly inside the search range", "count"),
        Column("at_lower", "fits that stop at the lower bound", "count"),
        Column("at_upper", "fits that stop at the upper bound", "count"),
        Column("undetermined", "fits whose cells do not determine it: no amplitude, or fewer than three levels", "count"),
        Column("median_all", "median with the fits at a bound, which are limits rather than estimates", "number"),
    )
    rows: dict[str, list[Any]] = {column.name: [] for column in columns}
    for level in levels:
        for by, value, some in level.parts():
            for name, one in zip(("alpha", "beta"), level.exponents(some), strict=True):
                _add(
                    rows,
                    level=level.name,
                    by=by,
                    value=value,
                    fits=int(some.sum()),
                    exponent=name,
                    median=one.median,
                    min=one.low,
                    max=one.high,
                    interior=one.interior,
                    at_lower=one.lower,
                    at_upper=one.upper,
                    undetermined=one.undetermined,
                    median_all=one.median_all,
                )
    return Table.of("Exponents: estimates by family, series and task", columns, rows, shown=60)


def ratios_table(levels: Sequence[Level]) -> Table:
    """Which exponent is larger (4.3, D.1)."""
    columns = (
        *PARTS,
        Column("both_interior", "fits with both exponents strictly inside the search range", "count"),
        Column("ratio_median", "median alpha/beta of these", "number"),
        Column("ratio_min", "smallest", "number"),
        Column("ratio_max", "largest", "number"),
        Column("interior_alpha_greater", "of these, alpha > beta", "count"),
        Column("interior_beta_greater", "of these, beta > alpha", "count"),
        Column("alpha_greater", "fits that determine both exponents, at a bound or not, with alpha > beta", "count"),
        Column("beta_greater", "the same with beta > alpha", "count"),
    )
    rows: dict[str, list[Any]] = {column.name: [] for column in columns}
    for level in levels:
        for by, value, some in level.parts():
            both = level.balance(some)
            _add(
                rows,
                level=level.name,
                by=by,
                value=value,
                fits=int(some.sum()),
                both_interior=both.both_interior,
                ratio_median=both.ratio_median,
                ratio_min=both.ratio_low,
                ratio_max=both.ratio_high,
                interior_alpha_greater=both.interior_alpha_greater,
                interior_beta_greater=both.interior_beta_greater,
                alpha_greater=both.alpha_greater,
                beta_greater=both.beta_greater,
            )
    return Table.of("Ratios: alpha/beta, and which exponent is larger", columns, rows, shown=60)


def estimates_table(levels: Sequence[Level]) -> Table:
    """Every fit with its exponents."""
    by = levels[-1].fits.groups.by
    columns = (
        PARTS[0],
        *(Column(name, f"{name} of the group; empty where unknown or not split by it") for name in by),
        Column("family", "family of the group's cells; empty where they differ"),
        Column("n", "cells", "count"),
        Column("alpha", "exponent of N; empty where not determined", "number"),
        Column("beta", "exponent of R; empty where not determined", "number"),
        Column("ratio", "alpha/beta where both are inside the search range", "number"),
        Column("alpha_bound", "lower or upper where alpha stops at a bound"),
        Column("beta_bound", "lower or upper where beta stops at a bound"),
        Column("status", "fitted, exponents at bounds, what the cells do not determine, or why there is no fit"),
    )
    columns = tuple({column.name: column for column in columns}.values())
    rows: dict[str, list[Any]] = {column.name: [] for column in columns}
    for level in levels:
        both = (level.alpha.interior & level.beta.interior).tolist()
        for group, key in enumerate(level.fits.groups.keys):
            alpha, beta = float(level.alpha.value[group]), float(level.beta.value[group])
            values = dict.fromkeys(by) | {"family": level.labels["family"][group]} | dict(zip(level.fits.groups.by, key, strict=True))
            _add(
                rows,
                level=level.name,
                **values,
                n=int(level.fits.n[group]),
                alpha=alpha,
                beta=beta,
                ratio=alpha / beta if both[group] else None,
                alpha_bound=SIDES[int(level.alpha.bound[group])],
                beta_bound=SIDES[int(level.beta.bound[group])],
                status=level.fits.status[group],
            )
    return Table.of("Estimates: exponents of every fit", columns, rows, shown=80)


def _add(rows: dict[str, list[Any]], **values: Any) -> None:
    for name, value in values.items():
        rows[name].append(value)
