"""Paths of every group under every cost measure, by the law and by observed errors, and which axis they expand faster (E.1)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from analyses.cost.paths import BUDGETS, Slopes, supported, walk
from analyses.law.tables import group_columns
from analyses.result import Column, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from analyses.cells import CellStudy, Groups
    from analyses.law.fits import GroupFits

    Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPath:
    """The candidates of a group and its paths, one entry per weight of the vision side; no entry where there is no path."""

    group: int
    name: str
    family: str | None
    """Families of its cells; None where unknown."""
    members: npt.NDArray[np.int64]
    """Candidates: cells with N, R, a predicted error and a cost at every weight."""
    cost: Array
    """Weights x candidates, FLOP per answer."""
    score: Array
    """Predicted error of the candidates."""
    budgets: Array | None
    predicted: tuple[Slopes, ...]
    observed: tuple[Slopes, ...]
    status: str
    """walked, or why there is no path."""

    @property
    def same_direction(self) -> bool:
        """Whether one axis grows faster at every weight."""
        return len({slopes.faster for slopes in self.predicted}) == 1

    @property
    def oracle_agrees(self) -> bool:
        """Whether the path of observed errors expands the same axis faster, at every weight."""
        pairs = zip(self.predicted, self.observed, strict=True)
        return bool(self.predicted) and all(law.faster == oracle.faster for law, oracle in pairs)


def group_paths(study: CellStudy, fits: GroupFits, costs: Array) -> list[GroupPath]:
    """The paths of all groups; `costs` is weights x cells."""
    cells = study.cells
    known = np.isfinite(costs).all(axis=0) & (costs > 0).all(axis=0) & ~np.isnan(fits.predicted)
    paths = []
    for group in range(len(study.groups)):
        inside = study.groups.members(group)
        members = inside[known[inside]]
        families = {str(name) for name in cells.text["family"][inside].tolist() if name is not None}
        cost, score = costs[:, members], fits.predicted[members]
        budgets = supported(cost) if len(members) else None
        axes = cells.parameters[members], cells.tokens[members]
        rows = [] if budgets is None else list(cost)
        paths.append(
            GroupPath(
                group=group,
                name=study.groups.name(group) or "all cells",
                family=" and ".join(sorted(families)) or None,
                members=members,
                cost=cost,
                score=score,
                budgets=budgets,
                predicted=tuple(walk(row, score, *axes, budgets) for row in rows if budgets is not None),
                observed=tuple(walk(row, cells.error[members], *axes, budgets) for row in rows if budgets is not None),
                status=_status(fits, group, len(members), walked=budgets is not None),
            )
        )
    return paths


def _status(fits: GroupFits, group: int, candidates: int, *, walked: bool) -> str:
    if walked:
        return "walked"
    if not fits.fitted[group]:
        return fits.status[group]
    return "no budget is common to all weights" if candidates else "no cell has a cost at every weight"


def paths_table(groups: Groups, paths: Sequence[GroupPath], weights: Sequence[float]) -> Table:
    """A row per group and weight."""
    rows: list[dict[str, Any]] = []
    for path in paths:
        key = dict(zip(groups.by, groups.keys[path.group], strict=True))
        low, high = (path.budgets[0], path.budgets[-1]) if path.budgets is not None else (None, None)
        for place, weight in enumerate(weights):
            row = {
                **key, "vision_weight": weight, "cells": len(path.members), "budget_low": low, "budget_high": high, "status": path.status
            }  # fmt: skip
            if path.predicted:
                law, oracle = path.predicted[place], path.observed[place]
                row |= {
                    "slope_N": law.N,
                    "slope_R": law.R,
                    "faster": law.faster,
                    "oracle_slope_N": oracle.N,
                    "oracle_slope_R": oracle.R,
                    "oracle_faster": oracle.faster,
                    "oracle_agrees": law.faster == oracle.faster,
                    "same_direction": path.same_direction,
                }
            rows.append(row)
    columns = (
        *group_columns(groups.by),
        Column("vision_weight", "lambda of Eq. 21", "number"),
        Column("cells", "candidates: cells with N, R, a predicted error and a cost at every weight", "count"),
        Column("budget_low", "lowest of the budgets that all weights support, FLOP per answer", "number"),
        Column("budget_high", "highest of them", "number"),
        Column("slope_N", "least squares slope of log N on log budget along the cells of lowest predicted error", "slope"),
        Column("slope_R", "the same of log R", "slope"),
        Column("faster", "the axis of the larger slope"),
        Column("oracle_slope_N", "slope of log N along the cells of lowest observed error", "slope"),
        Column("oracle_slope_R", "the same of log R", "slope"),
        Column("oracle_faster", "the axis of the larger of these"),
        Column("oracle_agrees", "whether both paths expand the same axis faster"),
        Column("same_direction", "whether `faster` is the same at all weights"),
        Column("status", "walked, or why there is no path"),
    )
    title = f"Paths: growth of N and R along {BUDGETS} budgets, log-spaced, over the cells there are"
    return Table.of(title, columns, {c.name: [row.get(c.name) for row in rows] for c in columns})


def directions_table(paths: Sequence[GroupPath], weights: Sequence[float]) -> Table:
    """How many groups expand which axis faster, by family."""
    walked = [path for path in paths if path.predicted]
    rows: list[dict[str, Any]] = []
    for family in sorted({path.family for path in walked}, key=lambda name: (name is None, str(name))):
        some = [path for path in walked if path.family == family]
        for place, weight in enumerate(weights):
            law = Counter(path.predicted[place].faster for path in some)
            oracle = Counter(path.observed[place].faster for path in some)
            agrees = sum(path.predicted[place].faster == path.observed[place].faster for path in some)
            rows.append(
                {
                    "family": family,
                    "vision_weight": weight,
                    "groups": len(some),
                    **{f"{axis}_faster": law[axis] for axis in ("N", "R")},
                    "tie": law["tie"],
                    **{f"oracle_{axis}_faster": oracle[axis] for axis in ("N", "R")},
                    "oracle_agrees": agrees,
                }
            )
    columns = (
        Column("family", "family of the groups' cells; empty where unknown"),
        Column("vision_weight", "lambda of Eq. 21", "number"),
        Column("groups", "groups with a path", "count"),
        Column("N_faster", "groups whose path grows faster in log N", "count"),
        Column("R_faster", "groups whose path grows faster in log R", "count"),
        Column("tie", "groups with equal slopes", "count"),
        Column("oracle_N_faster", "groups whose path of observed errors grows faster in log N", "count"),
        Column("oracle_R_faster", "groups whose path of observed errors grows faster in log R", "count"),
        Column("oracle_agrees", "groups in which both paths agree", "count"),
    )
    return Table.of(
        "Directions: groups by the axis that a growing budget expands faster",
        columns,
        {c.name: [row[c.name] for row in rows] for c in columns},
    )
