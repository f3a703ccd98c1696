"""Choices at the four budgets of each group, and how they move when the vision side enters the cost (E.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from analyses.cost.paths import PERCENTILES, choose, percentile_budgets
from analyses.law.tables import group_columns, whole
from analyses.result import Column, Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from analyses.cells import CellStudy
    from analyses.cost.directions import GroupPath


def _choices(paths: Sequence[GroupPath]) -> Iterator[tuple[GroupPath, npt.NDArray[np.float64], npt.NDArray[np.int64]]]:
    """Each group with candidates, its budgets by the cost at weight 0, and the choices, weights x budgets (-1: infeasible)."""
    for path in paths:
        if len(path.members):
            budgets = percentile_budgets(path.cost[0])
            yield path, budgets, np.stack([choose(cost, path.score, budgets) for cost in path.cost])


def moves_table(paths: Sequence[GroupPath], weights: Sequence[float]) -> Table:
    """How many choices become infeasible or change, at each weight."""
    chosen = [choices for _, _, choices in _choices(paths)]
    pooled = np.concatenate(chosen, axis=1) if chosen else np.empty((len(weights), 0), dtype=np.int64)
    rows: list[dict[str, Any]] = []
    for place, weight in enumerate(weights[1:], start=1):
        feasible = pooled[place] >= 0
        same = int((pooled[place] == pooled[0])[feasible].sum())
        rows.append(
            {
                "vision_weight": weight,
                "decisions": pooled.shape[1],
                "infeasible": int((~feasible).sum()),
                "feasible": int(feasible.sum()),
                "same": same,
                "changed": int(feasible.sum()) - same,
            }
        )
    columns = (
        Column("vision_weight", "lambda of Eq. 21", "number"),
        Column("decisions", "groups times four budgets", "count"),
        Column("infeasible", "decisions that no cell can meet at this weight", "count"),
        Column("feasible", "decisions that stay feasible", "count"),
        Column("same", "of these: the same cell as at weight 0", "count"),
        Column("changed", "of these: another cell", "count"),
    )
    return Table.of(
        "Moves: choices at the four budgets of weight 0, against weight 0",
        columns,
        {c.name: [row[c.name] for row in rows] for c in columns},
    )


def decisions_table(study: CellStudy, paths: Sequence[GroupPath], weights: Sequence[float]) -> Table:
    """A row per group, budget and weight."""
    cells, by = study.cells, study.groups.by
    rows: list[dict[str, Any]] = []
    for path, budgets, choices in _choices(paths):
        key = dict(zip(by, study.groups.keys[path.group], strict=True))
        for column, (percentile, budget) in enumerate(zip(PERCENTILES, budgets.tolist(), strict=True)):
            for place, weight in enumerate(weights):
                row: dict[str, Any] = {**key, "percentile": percentile, "budget": budget, "vision_weight": weight}
                at = int(choices[place, column])
                if at >= 0:
                    cell = int(path.members[at])
                    row |= {
                        "model": cells.text["model"][cell],
                        "input_size": whole(cells.input_size[[cell]])[0],
                        "N": cells.parameters[cell],
                        "R": cells.tokens[cell],
                        "cost": path.cost[place, at],
                        "predicted": path.score[at],
                        "error": cells.error[cell],
                        "same": at == int(choices[0, column]),
                    }
                rows.append(row | {"feasible": at >= 0})
    columns = (
        *group_columns(by),
        Column("percentile", "percentile of the costs of the group's cells at weight 0", "number"),
        Column("budget", "that cost, FLOP per answer", "number"),
        Column("vision_weight", "lambda of Eq. 21", "number"),
        Column("feasible", "whether any cell costs at most the budget"),
        *(() if "model" in by else (Column("model", "model of the cell of lowest predicted error"),)),
        Column("input_size", "its input size, in px", "count"),
        Column("N", "its parameters, in billions", "number"),
        Column("R", "its mean visual tokens", "number"),
        Column("cost", "its cost at this weight, FLOP per answer", "number"),
        Column("predicted", "its predicted error", "share"),
        Column("error", "its observed error", "share"),
        Column("same", "whether it is the choice at weight 0"),
    )
    return Table.of(
        "Decisions: the cell of lowest predicted error within the budget",
        columns,
        {c.name: [row.get(c.name) for row in rows] for c in columns},
        shown=12,
    )
