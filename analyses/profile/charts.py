"""Scaling-bound share against N-dominated share (Figure 6d)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt

from analyses.cost.charts import COLORS, values
from analyses.profile.tables import profiles_table

if TYPE_CHECKING:
    from analyses.profile.tables import Profile


def axes(profile: Profile) -> Any:
    """A mark per family and suite (or whatever is profiled)."""
    rows = [
        {
            "family": row["family"] or "none",
            "group": " x ".join(str(row[name] or "none") for name in profile.by) or "all",
            "scaling": row["scaling_bound"],
            "n": row["N_dominated"],
            "trajectories": row["scaling_trajectories"],
        }
        for row in profiles_table(profile).rows()
        if row["N_dominated"] is not None
    ]
    percent = alt.Axis(format="%", tickCount=5)
    return (
        alt.Chart(values(rows), title="What a benchmark separates, and by which axis")
        .mark_point(filled=True, size=130, opacity=0.9)
        .encode(
            x=alt.X(
                "scaling:Q", title="share of trajectories that are scaling bound", scale=alt.Scale(zero=False, padding=12), axis=percent
            ),
            y=alt.Y("n:Q", title="N-dominated among them", scale=alt.Scale(domain=[0, 1]), axis=percent),
            color=alt.Color("family:N", title="family", scale=alt.Scale(range=list(COLORS))),
            shape=alt.Shape("group:N", title=", ".join(profile.by) or "group"),
            tooltip=["family:N", "group:N", "scaling:Q", "n:Q", "trajectories:Q"],
        )
        .properties(width=330, height=300)
    )
