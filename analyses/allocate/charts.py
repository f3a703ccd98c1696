"""Trajectories of the optimum under a growing budget (Figure 6a)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt
import numpy as np

from analyses.cost.charts import COLORS, values

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from analyses.allocate.groups import GroupAllocation
    from analyses.cells import CellStudy

    Array = npt.NDArray[np.float64]

STEPS = 41
LARGEST_PANELS = 12
MARGIN = 3.0
"""How far a panel reaches beyond the ranges of the cells, as a factor."""


def trajectories(study: CellStudy, found: Sequence[GroupAllocation]) -> Any:
    """A panel per suite (or whatever groups are made by beside the first label), a line per series, budgets as points.

    Optima that lie more than MARGIN beyond the ranges of all cells are not drawn.
    """
    solved = [one for one in found if one.solved]
    by = study.groups.by
    line = by[0] if by else "group"
    names = {one.group: _names(study.groups.keys[one.group]) for one in solved}
    panels = list(dict.fromkeys(panel for _, panel in names.values()))[:LARGEST_PANELS]
    lines = list(dict.fromkeys(name for name, _ in names.values()))
    frame = _frame(solved)
    color = alt.Color("line:N", title=line, scale=alt.Scale(domain=lines, range=[COLORS[i % len(COLORS)] for i in range(len(lines))]))
    drawn = [_panel(panel, [one for one in solved if names[one.group][1] == panel], names, frame, color) for panel in panels]
    return alt.concat(*drawn, columns=2, title="Optimal N and R as the budget grows (dashed: equal FLOP; grey: range of the cells)")


def _names(key: tuple[str | None, ...]) -> tuple[str, str]:
    """Line and panel of a group."""
    texts = ["none" if value is None else str(value) for value in key]
    return (texts[0], " x ".join(texts[1:]) or "all groups") if texts else ("all cells", "all groups")


def _frame(solved: Sequence[GroupAllocation]) -> tuple[list[float], list[float]]:
    """Ranges of the axes, shared by all panels."""
    n = [edge for one in solved for edge in one.n_range]
    r = [edge for one in solved for edge in one.r_range]
    return [min(n) / MARGIN, max(n) * MARGIN], [min(r) / MARGIN, max(r) * MARGIN]


def _panel(
    title: str,
    members: Sequence[GroupAllocation],
    names: dict[int, tuple[str, str]],
    frame: tuple[list[float], list[float]],
    color: alt.Color,
) -> Any:
    scales = [alt.Scale(type="log", domain=edges, nice=False) for edges in frame]
    x = alt.X("N:Q", title="N* (billions)", scale=scales[0], axis=alt.Axis(tickCount=4, format="~g", grid=False))
    y = alt.Y("R:Q", title="R* (visual tokens)", scale=scales[1], axis=alt.Axis(tickCount=4, format="~s", grid=False))
    tooltip = ["line:N", "budget:Q", "N:Q", "R:Q"]
    paths = [row for one in members for row in _rows(one, _along(one), frame, names)]
    points = [row for one in members for row in _rows(one, one.budgets, frame, names)]
    seen = (
        alt.Chart(values([_ranges(one) for one in members]))
        .mark_rect(color="#888", opacity=0.1)
        .encode(x=alt.X("low_N:Q", title=""), x2="high_N:Q", y=alt.Y("low_R:Q", title=""), y2="high_R:Q")
    )
    costs = (
        alt.Chart(values(_equal_costs(members, frame)))
        .mark_line(color="#aaa", strokeDash=[3, 3], strokeWidth=1, clip=True)
        .encode(x=x, y=y, detail="law:N", tooltip=["budget:Q"])
    )
    grown = alt.Chart(values(paths)).mark_line(clip=True, strokeWidth=2).encode(x=x, y=y, color=color, order="budget:Q", tooltip=tooltip)
    size = alt.Size("rank:Q", legend=None, scale=alt.Scale(range=[20, 110]))
    spent = (
        alt.Chart(values(points)).mark_point(filled=True, clip=True, opacity=0.9).encode(x=x, y=y, color=color, size=size, tooltip=tooltip)
    )
    return alt.layer(seen, costs, grown, spent).properties(width=250, height=210, title=title)


def _along(one: GroupAllocation) -> Array:
    """Budgets from the cheapest to the dearest cell or budget."""
    ends = [*one.cost_range, *one.budgets.tolist()]
    return np.geomspace(np.nanmin(ends), np.nanmax(ends), STEPS)


def _ranges(one: GroupAllocation) -> dict[str, float]:
    return {"low_N": one.n_range[0], "high_N": one.n_range[1], "low_R": one.r_range[0], "high_R": one.r_range[1]}


def _rows(
    one: GroupAllocation, budgets: Array, frame: tuple[list[float], list[float]], names: dict[int, tuple[str, str]]
) -> list[dict[str, Any]]:
    """The optima that lie within the panel."""
    optimum = one.at(budgets)
    return [
        {"line": names[one.group][0], "budget": budget, "rank": rank, "N": n, "R": r}
        for rank, (budget, n, r) in enumerate(zip(budgets.tolist(), optimum.N.tolist(), optimum.R.tolist(), strict=True))
        if frame[0][0] <= n <= frame[0][1] and frame[1][0] <= r <= frame[1][1]
    ]


def _equal_costs(members: Sequence[GroupAllocation], frame: tuple[list[float], list[float]]) -> list[dict[str, Any]]:
    """Lines of equal cost at the powers of ten around the budgets, by each cost law of the panel."""
    rows: list[dict[str, Any]] = []
    for number, law in enumerate(dict.fromkeys(one.cost_law for one in members)):
        budgets = np.concatenate([one.budgets for one in members if one.cost_law == law])
        for decade in range(int(np.floor(np.log10(budgets.min()))), int(np.ceil(np.log10(budgets.max()))) + 1):
            for n in np.geomspace(frame[0][0], frame[0][1], 60).tolist():
                r = (10.0**decade / (law.kappa * n**law.p)) ** (1 / law.q)
                if frame[1][0] <= r <= frame[1][1]:
                    rows.append({"law": f"{number} {decade}", "N": n, "R": r, "budget": 10.0**decade})
    return rows
