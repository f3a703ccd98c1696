"""Chart of the hold-outs: differences of RMSE with their intervals (Figure 10, right)."""

from __future__ import annotations

from typing import Any

import altair as alt
import numpy as np

COLORS = ("#0072b2", "#e69f00", "#c1272d")
LEVELS = {"all": "all (clipped)", "interior": "interior (as predicted)"}
DESIGNS = {"backbone": "backbone size left out", "input_size": "input size left out", "joint": "both left out"}
SCOPES = {"shared": "shared exponents", "group": "exponents per group"}
ROOM = 0.06
"""Part of the range that the axis reaches beyond the values."""


def differences_chart(rows: list[dict[str, Any]]) -> alt.FacetChart:
    """RMSE of each other law minus the separable law's: a row per exponents and design, a colour per level."""
    values = [
        {
            "fold": f"{SCOPES[row['exponents']]}, {DESIGNS[row['design']]}",
            "level": LEVELS[row["level"]],
            "law": f"{row['law']} minus separable",
            "difference": row["difference"],
            "low": row.get("difference_low"),
            "high": row.get("difference_high"),
        }
        for row in rows
        if row["level"] in LEVELS and np.isfinite(row["difference"])
    ]
    ends = [end for value in values for end in (value["difference"], value["low"], value["high"], 0.0) if end is not None]
    room = (max(ends) - min(ends) or 1.0) * ROOM
    order = list(dict.fromkeys(value["fold"] for value in values))
    base = alt.Chart().encode(
        y=alt.Y("fold:N", title="exponents, what is left out", sort=order, axis=alt.Axis(labelLimit=260)),
        yOffset=alt.YOffset("level:N", sort=list(LEVELS.values())),
        color=alt.Color("level:N", title="held-out cells", scale=alt.Scale(domain=list(LEVELS.values()), range=list(COLORS[:2]))),
    )
    layers = [
        alt.Chart().mark_rule(color="#888", strokeDash=[4, 3]).encode(x=alt.datum(0)),
        base.mark_circle(size=60, opacity=1).encode(
            x=alt.X(
                "difference:Q",
                title="difference of RMSE, percentage points",
                scale=alt.Scale(domain=[min(ends) - room, max(ends) + room], nice=False),
            ),
            tooltip=["law:N", "fold:N", "level:N", "difference:Q", "low:Q", "high:Q"],
        ),
    ]
    if any(value["low"] is not None for value in values):
        layers.insert(1, base.mark_rule(strokeWidth=2).encode(x="low:Q", x2="high:Q"))
    chart: alt.FacetChart = (
        alt.layer(*layers, data=alt.Data(values=values))  # type: ignore[no-untyped-call]
        .properties(width=260, height=alt.Step(16))
        .facet(alt.Facet("law:N", title=None), columns=2, title="Held-out RMSE against the separable law")
    )
    return chart
