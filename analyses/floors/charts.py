"""Charts of the floors analysis: where the floors are, and their means by task."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt

from analyses.result import plain

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from analyses.result import Table

COLORS = ("#0072b2", "#c1272d", "#e69f00", "#009e73", "#cc79a7", "#56b4e9")
ROW = 22
PANEL = 190
ROOM = 0.04
"""How far the axis reaches beyond 0 and 1, so that no mark is cut."""


def floors(tables: Mapping[str, Table], by: Sequence[str], cutoffs: tuple[float, float]) -> Any:
    """Every fitted floor: a panel per second label (suite), a row per first label and subset, the cutoffs as lines."""
    rows = [row for row in tables["fits"].rows() if row["e_inf"] is not None]
    panel = by[1] if len(by) > 1 else None
    points = [
        {
            "row": f"{row[by[0]] or 'none'}, {row['subset']}",
            "panel": str(row[panel] or "none") if panel else "all",
            "task": row["task"] or "none",
            "e_inf": row["e_inf"],
            "n": row["n"],
            "r2": row["r2"],
            "determined": row["floor"] is not None,
        }
        for row in rows
    ]
    names = sorted({point["panel"] for point in points})
    hollow = sum(not point["determined"] for point in points)
    note = "dashed: cutoffs of Floor and Saturation" + (f"; hollow: not determined by the points ({hollow})" if hollow else "")
    return alt.concat(
        *(
            _panel([point for point in points if point["panel"] == name], name, cutoffs, _tasks(points), f"{by[0]}, subset")
            for name in names
        ),
        columns=2,
    ).properties(title=alt.TitleParams(text="Error floors by task", subtitle=note))


def _panel(points: list[dict[str, Any]], name: str, cutoffs: tuple[float, float], tasks: list[str], title: str) -> Any:
    lines = alt.Chart(values([{"cutoff": plain(cutoff)} for cutoff in cutoffs])).mark_rule(color="#999", strokeDash=[4, 3])
    floors = [0.0, 1.0, *(point["e_inf"] for point in points)]
    scale = alt.Scale(domain=[min(floors) - ROOM, max(floors) + ROOM], nice=False)
    axis = alt.Axis(values=[0, 0.2, 0.4, 0.6, 0.8, 1])
    layers = [lines.encode(x="cutoff:Q")]
    for filled in (True, False):
        if some := [point for point in points if point["determined"] is filled]:
            dots = alt.Chart(values(some)).mark_point(size=60, strokeWidth=1.6, filled=filled, opacity=0.9)
            layers.append(
                dots.encode(
                    x=alt.X("e_inf:Q", title="error floor (share of answers)", scale=scale, axis=axis),
                    y=alt.Y("row:N", title=title, axis=alt.Axis(labelLimit=220, grid=True)),
                    color=alt.Color("task:N", title="task", scale=alt.Scale(domain=tasks, range=_colors(tasks))),
                    tooltip=["panel:N", "row:N", "task:N", "e_inf:Q", "n:Q", "r2:Q"],
                )
            )
    return alt.layer(*layers).properties(width=PANEL, height=ROW * len({point["row"] for point in points}), title=name)


def means(tables: Mapping[str, Table], by: Sequence[str], cutoffs: tuple[float, float]) -> Any:
    """Mean floor by the first label and task (Table 18)."""
    del cutoffs
    table = tables[by[0]]
    tasks = [name for name in table.names if name not in {by[0], "gap", "fits"}]
    rows = [
        {"group": str(row[by[0]] or "none"), "task": name, "e_inf": row[name], "order": place}
        for place, row in enumerate(table.rows())
        for name in tasks
        if row[name] is not None
    ]
    return (
        alt.Chart(values(rows), title=f"Mean error floor by {by[0]} and task")
        .mark_bar()
        .encode(
            x=alt.X("group:N", title=by[0], sort=alt.EncodingSortField("order"), axis=alt.Axis(labelAngle=-30)),
            xOffset=alt.XOffset("task:N", sort=tasks),
            y=alt.Y("e_inf:Q", title="mean error floor (share of answers)"),
            color=alt.Color("task:N", title="task", scale=alt.Scale(domain=tasks, range=_colors(tasks))),
            tooltip=["group:N", "task:N", "e_inf:Q"],
        )
        .properties(width=max(180, 60 * len(table)), height=220)
    )


def _tasks(points: list[dict[str, Any]]) -> list[str]:
    return sorted({str(point["task"]) for point in points})


def _colors(tasks: Sequence[str]) -> list[str]:
    return [COLORS[place % len(COLORS)] for place in range(len(tasks))]


def values(rows: list[dict[str, Any]]) -> Any:
    """Rows as the data of a chart."""
    return alt.Data(values=rows)  # type: ignore[no-untyped-call]
