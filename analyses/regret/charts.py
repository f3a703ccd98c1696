"""Charts of regret: mean and 90th percentile by rule, and the distribution (Figure 6 b and c)."""

from __future__ import annotations

from typing import Any

import altair as alt
import numpy as np

TITLES = {
    "projection": "projection",
    "direct": "direct selection",
    "largest_backbone": "largest backbone",
    "largest_tokens": "largest token count",
    "log_centre": "log-centre",
}
"""Rules in the order of Figure 6 b."""
COLORS = ("#0072b2", "#c1272d", "#e69f00", "#56b4e9", "#888888")
ROOM = 1.2
"""The axis of the bars reaches so far beyond the longest, for its number."""
STEPS = 400
"""Points of a curve at most."""


def bars(drawn: dict[str, Any]) -> Any:
    """Mean and 90th percentile of regret, a bar each."""
    measures = ("mean", "90th percentile")
    rows: list[dict[str, Any]] = [
        {"rule": title, "measure": measure, "regret": float(value)}
        for rule, title in TITLES.items()
        for measure, value in zip(measures, (drawn["regret"][rule].mean(), np.percentile(drawn["regret"][rule], 90)), strict=True)
    ]
    longest = max(row["regret"] for row in rows) or 1.0
    base = alt.Chart(_values(rows), title=f"Regret by rule, {_named(drawn)}").encode(
        y=alt.Y("rule:N", title="rule", sort=list(TITLES.values())),
        yOffset=alt.YOffset("measure:N", sort=measures),
        x=alt.X("regret:Q", title="regret, percentage points", scale=alt.Scale(domain=[0, longest * ROOM], nice=False)),
        tooltip=["rule:N", "measure:N", "regret:Q"],
    )
    marks = base.mark_bar().encode(
        color=alt.Color("measure:N", title=None, scale=alt.Scale(domain=measures, range=["#0072b2", "#9ecae1"]), sort=measures)
    )
    text = base.mark_text(align="left", dx=3, fontSize=10).encode(text=alt.Text("regret:Q", format=".2f"))
    return alt.layer(marks, text).properties(width=300, height=alt.Step(14))


def distribution(drawn: dict[str, Any]) -> alt.Chart:
    """Share of decisions with at most some regret, a line per rule."""
    rows = []
    largest = max(float(regret.max()) for regret in drawn["regret"].values())
    for rule, title in TITLES.items():
        regret = np.sort(drawn["regret"][rule])
        at = np.unique(np.concatenate([[0.0, largest], np.quantile(regret, np.linspace(0, 1, STEPS), method="higher")]))
        share = np.searchsorted(regret, at, side="right") / len(regret)
        rows += [{"rule": title, "regret": float(x), "share": float(y)} for x, y in zip(at, share, strict=True)]
    chart: alt.Chart = (
        alt.Chart(_values(rows), title=f"Decisions within a regret, {_named(drawn)}")
        .mark_line(interpolate="step-after", strokeWidth=2)
        .encode(
            x=alt.X("regret:Q", title="regret, percentage points"),
            y=alt.Y("share:Q", title="share of decisions", axis=alt.Axis(format="%"), scale=alt.Scale(domain=[0, 1])),
            color=alt.Color("rule:N", title="rule", scale=alt.Scale(domain=list(TITLES.values()), range=list(COLORS))),
            tooltip=["rule:N", "regret:Q", "share:Q"],
        )
        .properties(width=300, height=220)
    )
    return chart


def _named(drawn: dict[str, Any]) -> str:
    names = {"in_sample": "in sample", "joint": "joint hold-out", "backbone": "backbone hold-out", "input_size": "input-size hold-out"}
    return names[str(drawn["evaluation"])]


def _values(rows: list[dict[str, Any]]) -> alt.Data:
    return alt.Data(values=rows)  # type: ignore[no-untyped-call]
