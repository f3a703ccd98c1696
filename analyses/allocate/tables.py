"""Tables and headline of the allocation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from analyses.allocate.groups import UNDETERMINED, WITHIN
from analyses.cost.paths import faster
from analyses.law.tables import group_columns, whole
from analyses.result import Column, Table, plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analyses.allocate.groups import BestCell, GroupAllocation
    from analyses.cells import Groups

FIRST = {"N": "N first", "R": "R first", "tie": "tie"}


def direction(one: GroupAllocation) -> str | None:
    """Which axis a growing budget expands faster, by the continuous elasticities."""
    rates = one.rates
    return FIRST[faster(float(rates.N), float(rates.R))] if one.solved else None


def outside(value: float, ends: tuple[float, float]) -> str:
    """below, above or nothing."""
    low, high = ends
    return "below" if value < low * (1 - WITHIN) else "above" if value > high * (1 + WITHIN) else ""


def inside_of(one: GroupAllocation) -> list[bool]:
    """Whether the optimum of each budget lies in the ranges of the group's cells; nothing for an unsolved group."""
    if not one.solved:
        return []
    optimum = one.at(one.budgets)
    pairs = zip(optimum.N.tolist(), optimum.R.tolist(), strict=True)
    return [not outside(n, one.n_range) and not outside(r, one.r_range) for n, r in pairs]


def outside_warning(found: Sequence[GroupAllocation]) -> list[str]:
    """One warning with the number of optima that no cell is near to."""
    inside = [value for one in found for value in inside_of(one)]
    if all(inside):
        return []
    some = f"{inside.count(False):,} of {len(inside):,} optima lie outside the ranges of N and R of their group's cells"
    return [f"{some}: the law is extrapolated there; best_cell_model is what there is within the budget"]


def allocations_table(groups: Groups, found: Sequence[GroupAllocation]) -> Table:
    """A row per group and budget."""
    rows: list[dict[str, Any]] = []
    for one in found:
        key = dict(zip(groups.by, groups.keys[one.group], strict=True))
        optimum = one.at(one.budgets)
        predicted = one.predicted(optimum)
        for place, (percentile, budget) in enumerate(zip(one.percentiles, one.budgets.tolist(), strict=True)):
            n, r = float(optimum.N[place]), float(optimum.R[place])
            sides = {"N": outside(n, one.n_range), "R": outside(r, one.r_range)}
            row = {**key, "percentile": percentile, "budget": budget, "N": n, "R": r, "predicted": predicted[place], "status": one.status}
            if one.solved:
                row |= {
                    "inside": not any(sides.values()),
                    "outside": " and ".join(f"{axis} {side}" for axis, side in sides.items() if side) or None,
                }
            rows.append(row | _best(one.best[place]))
        if not len(one.budgets):
            rows.append({**key, "status": one.status})
    columns = (
        *group_columns(groups.by),
        Column("percentile", "percentile of the group's cell costs that the budget is; empty for --budgets", "number"),
        Column("budget", "C0, FLOP per answer", "number"),
        Column("N", "N* of Eq. 26, in billions of parameters", "number"),
        Column("R", "R* of Eq. 26, in visual tokens", "number"),
        Column("predicted", "error that the group's law predicts at N*, R*", "share"),
        Column("inside", "whether N* and R* lie in the ranges of the group's cells"),
        Column("outside", "on which side they do not"),
        Column("best_cell_model", "model of the cell of lowest predicted error that costs at most the budget; empty where there is none"),
        Column("best_cell_input_size", "its input size, px", "count"),
        Column("best_cell_N", "its parameters, in billions", "number"),
        Column("best_cell_R", "its mean visual tokens", "number"),
        Column("best_cell_cost", "its cost, FLOP per answer", "number"),
        Column("best_cell_predicted", "its predicted error", "share"),
        Column("best_cell_error", "its measured error", "share"),
        Column("status", "solved, or why there is no optimum"),
    )
    data = {column.name: [row.get(column.name) for row in rows] for column in columns}
    return Table.of("Allocations: N* and R* that minimise the predicted error within a budget", columns, data)


def _best(cell: BestCell | None) -> dict[str, Any]:
    if cell is None:
        return {}
    (size,) = whole(np.array([cell.input_size]))
    return {
        "best_cell_model": cell.model,
        "best_cell_input_size": size,
        "best_cell_N": cell.N,
        "best_cell_R": cell.R,
        "best_cell_cost": cell.cost,
        "best_cell_predicted": cell.predicted,
        "best_cell_error": cell.error,
    }


def elasticities_table(groups: Groups, found: Sequence[GroupAllocation]) -> Table:
    """A row per group."""
    rows: list[dict[str, Any]] = []
    for one in found:
        rates, law, values = one.rates, one.cost_law, one.parameters
        rows.append(
            {
                **dict(zip(groups.by, groups.keys[one.group], strict=True)),
                "dlogN_dlogC": float(rates.N),
                "dlogR_dlogC": float(rates.R),
                "direction": direction(one),
                "alpha": values["alpha"],
                "beta": values["beta"],
                "A_n": values["a"],
                "B_r": values["b"],
                "alpha_at_bound": bool(one.bound["alpha"]) if one.fitted else None,
                "beta_at_bound": bool(one.bound["beta"]) if one.fitted else None,
                "conditional_on_box": one.conditional,
                "p": law.p,
                "q": law.q,
                "kappa": law.kappa,
                "cost_r2": law.r2,
                "law_status": one.law_status,
                "status": one.status,
            }
        )
    columns = (
        *group_columns(groups.by),
        Column("dlogN_dlogC", "beta/(p beta + q alpha): growth of N* with the budget (Eq. 35)", "slope"),
        Column("dlogR_dlogC", "alpha/(p beta + q alpha): growth of R* with the budget (Eq. 35)", "slope"),
        Column(
            "direction", "N first where beta > alpha, R first where alpha > beta: the continuous elasticities, not the finite paths of cost"
        ),
        Column("alpha", "exponent of N", "number"),
        Column("beta", "exponent of R", "number"),
        Column("A_n", "amplitude of N at the reference N", "number"),
        Column("B_r", "amplitude of R at the reference R", "number"),
        Column("alpha_at_bound", "whether alpha stopped at a bound of the box"),
        Column("beta_at_bound", "whether beta stopped at a bound of the box"),
        Column("conditional_on_box", "whether either exponent is at a bound, which makes the answer that of the box"),
        Column("p", "elasticity of cost with respect to N", "number"),
        Column("q", "elasticity of cost with respect to R", "number"),
        Column("kappa", "FLOP at a billion parameters and one visual token, by the cost law", "number"),
        Column("cost_r2", "R2 of the cost law in logarithms", "share"),
        Column("law_status", "what the fit of the group says: fitted, exponents at bounds, what the cells do not determine"),
        Column("status", "solved, or why there is no optimum"),
    )
    data = {column.name: [row[column.name] for row in rows] for column in columns}
    return Table.of("Elasticities: how fast N* and R* grow with the budget", columns, data)


def directions_table(found: Sequence[GroupAllocation]) -> Table:
    """Groups by direction, a row per family."""
    rows: list[dict[str, Any]] = []
    for family in sorted({one.family for one in found}, key=lambda name: (name is None, str(name))):
        some = [one for one in found if one.family == family]
        ways = [direction(one) for one in some]
        rows.append(
            {
                "family": family,
                "groups": len(some),
                "N_first": ways.count("N first"),
                "R_first": ways.count("R first"),
                "tie": ways.count("tie"),
                "unsolved": ways.count(None),
                "conditional_on_box": sum(one.solved and bool(one.conditional) for one in some),
            }
        )
    columns = (
        Column("family", "family of the groups' cells; empty where unknown"),
        Column("groups", "groups", "count"),
        Column("N_first", "groups whose N* grows faster with the budget", "count"),
        Column("R_first", "groups whose R* grows faster", "count"),
        Column("tie", "groups in which both grow alike", "count"),
        Column("unsolved", "groups without an optimum", "count"),
        Column("conditional_on_box", "solved groups with an exponent at a bound", "count"),
    )
    return Table.of("Directions: groups by continuous elasticity", columns, {c.name: [row[c.name] for row in rows] for c in columns})


def headline_of(found: Sequence[GroupAllocation], *, pooled: bool) -> dict[str, Any]:
    """Counts of groups and optima, and the cost law where all groups share it."""
    solved = [one for one in found if one.solved]
    law = found[0].cost_law if pooled and found else None
    inside = [value for one in solved for value in inside_of(one)]
    ways = [direction(one) for one in solved]
    numbers = {
        "groups": len(found),
        "solved": len(solved),
        "undetermined": sum(one.status.startswith(UNDETERMINED) for one in found),
        "N_first": ways.count("N first"),
        "R_first": ways.count("R first"),
        "conditional_on_box": sum(bool(one.conditional) for one in solved),
        "optima": len(inside),
        "optima_inside": inside.count(True),
        "kappa": law.kappa if law is not None else None,
        "p": law.p if law is not None else None,
        "q": law.q if law is not None else None,
        "cost_r2": law.r2 if law is not None else None,
        "smallest_dlogN_dlogC": min((float(one.rates.N) for one in solved), default=None),
        "largest_dlogN_dlogC": max((float(one.rates.N) for one in solved), default=None),
    }
    return {name: plain(value) for name, value in numbers.items()}
