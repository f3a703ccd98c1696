"""Charts of the comparison of forms: candidates by difference in SSE and BIC, and groups under two forms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt

if TYPE_CHECKING:
    from collections.abc import Mapping

    from analyses.result import Table

COLORS = {
    "separable": "#0072b2",
    "coupled": "#009e73",
    "multiplicative": "#e69f00",
    "ces": "#cc79a7",
    "pnorm": "#c1272d",
    "pnorm_exact": "#7a4b2a",
}
TITLES = {"ces": "CES", "pnorm": "p-norm", "pnorm_exact": "p-norm, exact"}
SMALLEST_SSE = 1e-9
"""Where the axes of SSE end: a logarithm has no zero."""


def candidates(tables: Mapping[str, Table]) -> Any:
    """Every form by its differences from separable in SSE (percent) and BIC (Figure 3, right); lower left is better."""
    rows = [
        {
            "form": row["form"],
            "name": f"{TITLES.get(row['form'], row['form'])} (k={row['k']})",
            "label": TITLES.get(row["form"], row["form"]),
            "delta_sse": row["delta_sse"],
            "delta_bic": row["delta_bic"],
            "sse": row["sse"],
            "bic": row["bic"],
        }
        for row in tables["forms"].rows()
        if row["delta_sse"] is not None and row["delta_bic"] is not None
    ]
    color = alt.Color(
        "name:N", title="form", scale=alt.Scale(domain=[row["name"] for row in rows], range=[COLORS[row["form"]] for row in rows])
    )
    zero = alt.Chart(_values([{"zero": 0}]))
    base = alt.Chart(_values(rows)).encode(
        x=alt.X("delta_sse:Q", title="SSE, change from separable (%)", scale=alt.Scale(nice=True, padding=25)),
        y=alt.Y("delta_bic:Q", title="BIC, difference from separable", scale=alt.Scale(nice=True, padding=25)),
        color=color,
        tooltip=["name:N", "sse:Q", "bic:Q", "delta_sse:Q", "delta_bic:Q"],
    )
    return (
        zero.mark_rule(color="#bbb", strokeDash=[4, 3]).encode(x="zero:Q")
        + zero.mark_rule(color="#bbb", strokeDash=[4, 3]).encode(y="zero:Q")
        + base.mark_circle(size=110, opacity=0.9)
    ).properties(width=340, height=280, title="Forms with shared shapes; lower and further left is better")


def groups(tables: Mapping[str, Table]) -> Any:
    """SSE of each group under both forms with shapes of its own; above the line separable is lower."""
    table = tables["groups"]
    by = [name for name in table.names if name != "n"][: table.names.index("n")]
    rows = [
        {
            "group": " x ".join(str(row[name] or "none") for name in by) or "all cells",
            "color": str(row[by[-1]] or "none") if by else "all cells",
            "separable": max(row["separable_sse"], SMALLEST_SSE),
            "multiplicative": max(row["multiplicative_sse"], SMALLEST_SSE),
            "n": row["n"],
        }
        for row in table.rows()
    ]
    values = [row[name] for row in rows for name in ("separable", "multiplicative")]
    domain = [min(values) / 1.3, max(values) * 1.3]
    scale = alt.Scale(type="log", domain=domain, nice=False)
    line = alt.Chart(_values([{"x": value} for value in domain])).mark_line(color="#999", strokeDash=[4, 3]).encode(x="x:Q", y="x:Q")
    points = (
        alt.Chart(_values(rows))
        .mark_circle(size=80, opacity=0.85)
        .encode(
            x=alt.X("separable:Q", title="SSE, separable", scale=scale, axis=alt.Axis(format="~g", tickCount=5, labelOverlap="greedy")),
            y=alt.Y(
                "multiplicative:Q", title="SSE, multiplicative", scale=scale, axis=alt.Axis(format="~g", tickCount=5, labelOverlap="greedy")
            ),
            color=alt.Color("color:N", title=by[-1] if by else None),
            tooltip=["group:N", "n:Q", "separable:Q", "multiplicative:Q"],
        )
    )
    return (line + points).properties(width=300, height=280, title="Groups with shapes of their own; above the line separable is lower")


def _values(rows: list[dict[str, Any]]) -> alt.Data:
    return alt.Data(values=rows)  # type: ignore[no-untyped-call]
