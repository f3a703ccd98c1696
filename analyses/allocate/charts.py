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
    Frame = tuple[list[float], list[float]]

STEPS = 81
LARGEST_PANELS = 12
MARGIN = 3.0
"""How far a panel reaches beyond the ranges of the cells, as a factor."""
INSIDE, OUTSIDE = "inside the data", "outside"
SUBTITLE = "boxes: ranges of each group's cells; dashed: outside its own box; dotted: equal FLOP, a line per power of ten"


def trajectories(study: CellStudy, found: Sequence[GroupAllocation]) -> Any:
    """A panel per suite (or whatever groups are made by beside the first label), a line per series, budgets as points.

    Optima that lie more than MARGIN beyond the ranges of all cells are not drawn; the subtitle of a panel names the lines that it lacks.
    """
    by = study.groups.by
    names = {one.group: _names(study.groups.keys[one.group]) for one in found}
    panels = list(dict.fromkeys(panel for _, panel in names.values()))[:LARGEST_PANELS]
    lines = list(dict.fromkeys(name for name, _ in names.values()))
    frame = _frame([one for one in found if one.solved])
    scale = alt.Scale(domain=lines, range=[COLORS[i % len(COLORS)] for i in range(len(lines))])
    colors = alt.Color("line:N", title=by[0] if by else "group", scale=scale), alt.Stroke("line:N", scale=scale, legend=None)
    drawn = [_panel(panel, [one for one in found if names[one.group][1] == panel], names, frame, colors) for panel in panels]
    title = alt.TitleParams(text="Optimal N and R as the budget grows", subtitle=SUBTITLE)
    return alt.concat(*drawn, columns=2, title=title)


def _names(key: tuple[str | None, ...]) -> tuple[str, str]:
    """Line and panel of a group."""
    texts = ["none" if value is None else str(value) for value in key]
    return (texts[0], " x ".join(texts[1:]) or "all groups") if texts else ("all cells", "all groups")


def _frame(solved: Sequence[GroupAllocation]) -> Frame:
    """Ranges of the axes, shared by all panels."""
    n = [edge for one in solved for edge in one.n_range]
    r = [edge for one in solved for edge in one.r_range]
    return [min(n) / MARGIN, max(n) * MARGIN], [min(r) / MARGIN, max(r) * MARGIN]


def _panel(
    title: str,
    members: Sequence[GroupAllocation],
    names: dict[int, tuple[str, str]],
    frame: Frame,
    colors: tuple[alt.Color, alt.Stroke],
) -> Any:
    color, edge = colors
    scales = [alt.Scale(type="log", domain=edges, nice=False) for edges in frame]
    x = alt.X("N:Q", title="N* (billions of parameters)", scale=scales[0], axis=alt.Axis(tickCount=4, format="~g", grid=False))
    y = alt.Y("R:Q", title="R* (visual tokens)", scale=scales[1], axis=alt.Axis(tickCount=4, format="~s", grid=False))
    tooltip = ["line:N", "budget:Q", "N:Q", "R:Q"]
    solved = [one for one in members if one.solved]
    paths = [row for one in solved for row in _path(one, frame, names)]
    points = [row for one in solved for row in _rows(one, one.budgets, frame, names)]
    boxes = [_box(one, frame, names) for one in members if np.isfinite([*one.n_range, *one.r_range]).all()]
    seen = (
        alt.Chart(values(boxes))
        .mark_rect(fillOpacity=0.07, strokeOpacity=0.8, strokeWidth=1, clip=True)
        .encode(x=alt.X("low_N:Q", title=""), x2="high_N:Q", y=alt.Y("low_R:Q", title=""), y2="high_R:Q", color=color, stroke=edge)
    )
    costs = (
        alt.Chart(values(_equal_costs(solved, frame)))
        .mark_line(color="#bbb", strokeDash=[1, 3], strokeWidth=1, clip=True)
        .encode(x=x, y=y, detail="law:N", tooltip=["budget:Q"])
    )
    dash = alt.StrokeDash("where:N", legend=None, scale=alt.Scale(domain=[INSIDE, OUTSIDE], range=[[1, 0], [5, 3]]))
    grown = (
        alt.Chart(values(paths))
        .mark_line(clip=True, strokeWidth=2)
        .encode(x=x, y=y, color=color, strokeDash=dash, detail="piece:N", order="budget:Q", tooltip=tooltip)
    )
    size = alt.Size("rank:Q", legend=None, scale=alt.Scale(range=[20, 110]))
    spent = (
        alt.Chart(values(points)).mark_point(filled=True, clip=True, opacity=0.9).encode(x=x, y=y, color=color, size=size, tooltip=tooltip)
    )
    heading = alt.TitleParams(text=title, subtitle=_lacking(members, {row["group"] for row in paths}, names), subtitleColor="#555")
    return alt.layer(seen, costs, grown, spent).properties(width=270, height=210, title=heading)


def _lacking(members: Sequence[GroupAllocation], drawn: set[int], names: dict[int, tuple[str, str]]) -> list[str]:
    """A line per reason with the lines that the panel does not show."""
    reasons: dict[str, list[str]] = {}
    for one in members:
        if one.group not in drawn:
            why = "beyond this panel" if one.solved else one.status.split(":")[0]
            reasons.setdefault(why, []).append(names[one.group][0])
    return [f"not drawn, {why}: {', '.join(lines)}" for why, lines in reasons.items()] or [""]


def _path(one: GroupAllocation, frame: Frame, names: dict[int, tuple[str, str]]) -> list[dict[str, Any]]:
    """The optimum from the cheapest to the dearest cell or budget, in pieces inside and outside of the box that share their ends."""
    ends = [*one.cost_range, *one.budgets.tolist()]
    rows: list[dict[str, Any]] = []
    for row in _rows(one, np.geomspace(np.nanmin(ends), np.nanmax(ends), STEPS), frame, names):
        within = one.n_range[0] <= row["N"] <= one.n_range[1] and one.r_range[0] <= row["R"] <= one.r_range[1]
        row["where"] = INSIDE if within else OUTSIDE
        turns = bool(rows) and rows[-1]["where"] != row["where"]
        row["piece"] = f"{one.group} {int(rows[-1]['piece'].split()[1]) + turns if rows else 0}"
        if turns:
            rows.append({**rows[-1], "where": row["where"], "piece": row["piece"]})
        rows.append(row)
    return rows


def _box(one: GroupAllocation, frame: Frame, names: dict[int, tuple[str, str]]) -> dict[str, Any]:
    """The ranges of its cells, cut at the panel."""
    edges: dict[str, float] = {}
    for axis, ends, (low, high) in (("N", one.n_range, frame[0]), ("R", one.r_range, frame[1])):
        edges |= {f"low_{axis}": max(ends[0], low), f"high_{axis}": min(ends[1], high)}
    return {"line": names[one.group][0], **edges}


def _rows(one: GroupAllocation, budgets: Array, frame: Frame, names: dict[int, tuple[str, str]]) -> list[dict[str, Any]]:
    """The optima that lie within the panel."""
    optimum = one.at(budgets)
    return [
        {"group": one.group, "line": names[one.group][0], "budget": budget, "rank": rank, "N": n, "R": r}
        for rank, (budget, n, r) in enumerate(zip(budgets.tolist(), optimum.N.tolist(), optimum.R.tolist(), strict=True))
        if frame[0][0] <= n <= frame[0][1] and frame[1][0] <= r <= frame[1][1]
    ]


def _equal_costs(members: Sequence[GroupAllocation], frame: Frame) -> list[dict[str, Any]]:
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
