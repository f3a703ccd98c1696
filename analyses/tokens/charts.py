"""Chart of the tokens analysis: the range of visual tokens of each group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt

if TYPE_CHECKING:
    from analyses.result import Table

COLORS = ("#e69f00", "#0072b2", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")
SHOWN = 40
TICKS = [float(digit * 10**power) for power in range(7) for digit in (1, 3)]
BEFORE, ROOM = 1.3, 2.0
"""Factors by which the axis reaches beyond the smallest and the largest value; the words need the room."""


def ranges(spans: Table) -> Any:
    """Smallest to largest mean visual tokens of each group on a log axis, by family (Figure 5a)."""
    labels = [name for name in spans.names if name not in {"family", "cells", "lowest", "highest", "span", "shared_span"}]
    rows = [row for row in spans.rows() if row["span"] is not None]
    points = [
        {
            "group": " x ".join(str(row[name] or "none") for name in labels),
            "family": row["family"] or "none",
            "lowest": row["lowest"],
            "highest": row["highest"],
            "span": row["span"],
            "text": f"{row['span']:.3g}x",
        }
        for row in rows[:SHOWN]
    ]
    families = sorted({point["family"] for point in points})
    color = alt.Color("family:N", title="family", scale=alt.Scale(domain=families, range=list(COLORS)))
    base = alt.Chart(alt.Data(values=points)).encode(  # type: ignore[no-untyped-call]
        y=alt.Y("group:N", title=" x ".join(labels) or None, axis=alt.Axis(labelLimit=260)),
        color=color,
        tooltip=["group:N", "family:N", "lowest:Q", "highest:Q", "span:Q"],
    )
    domain = [min((row["lowest"] for row in points), default=1) / BEFORE, max((row["highest"] for row in points), default=10) * ROOM]
    scale = alt.Scale(type="log", nice=False, domain=domain)
    x = alt.X("lowest:Q", title="mean visual tokens R of a cell (log)", scale=scale, axis=alt.Axis(values=TICKS, format=",d"))
    bars = base.mark_rule(size=6).encode(x=x, x2="highest:Q")
    words = base.mark_text(align="left", dx=5, fontSize=10).encode(x=alt.X("highest:Q"), text="text:N", color=alt.value("#555"))
    more = f" (the first {SHOWN} of {len(rows)} groups)" if len(rows) > SHOWN else ""
    return (bars + words).properties(width=420, title=f"Range of visual tokens over input sizes{more}")
