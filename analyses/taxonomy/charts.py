"""Charts of the taxonomy analysis: floors of the pairings, and their means by label."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from analyses.result import Table

CELL = 52
DARK = 0.45
"""Floors above this have white numbers."""


def pairings(tables: Mapping[str, Table], by: Sequence[str]) -> Any:
    """Floors by both labels."""
    one, two = by
    rows = [
        {
            "first": str(row[one]),
            "second": str(row[two]),
            "e_inf": row["e_inf"],
            "sub_cells": row["sub_cells"],
            "questions": row["questions"],
        }
        for row in tables["pairings"].rows()
        if row["e_inf"] is not None
    ]
    base = alt.Chart(_values(rows)).encode(
        x=alt.X("second:N", title=two, axis=alt.Axis(labelAngle=0, orient="top")), y=alt.Y("first:N", title=one)
    )
    tiles = base.mark_rect().encode(
        color=alt.Color("e_inf:Q", title="error floor (share of answers)", scale=alt.Scale(scheme="blues", domainMin=0)),
        tooltip=["first:N", "second:N", "e_inf:Q", "sub_cells:Q", "questions:Q"],
    )
    numbers = base.mark_text(fontSize=12).encode(
        text=alt.Text("e_inf:Q", format=".2f"), color=alt.condition(f"datum.e_inf > {DARK}", alt.value("white"), alt.value("#222"))
    )
    across, down = (len({row[name] for row in rows}) for name in ("second", "first"))
    return (tiles + numbers).properties(
        width=CELL * max(across, 2), height=CELL * max(down, 2) * 0.7, title=f"Error floors by {one} and {two}"
    )


def marginals(tables: Mapping[str, Table], by: Sequence[str]) -> Any:
    """Mean floors by each label (Table 24)."""
    rows = tables["marginals"].rows()
    panels = [
        alt.Chart(_values([row for row in rows if row["by"] == name]))
        .mark_bar()
        .encode(
            x=alt.X("value:N", title=name, axis=alt.Axis(labelAngle=0)),
            y=alt.Y("mean_e_inf:Q", title="mean error floor (share of answers)"),
            color=alt.value("#0072b2"),
            tooltip=["value:N", "mean_e_inf:Q", "pairings:Q"],
        )
        .properties(width=34 * max(3, sum(row["by"] == name for row in rows)), height=180, title=f"by {name}")
        for name in reversed(by)
    ]
    return alt.hconcat(*panels).resolve_scale(y="shared").properties(title="Mean error floors over pairings")


def _values(rows: list[dict[str, Any]]) -> Any:
    return alt.Data(values=rows)  # type: ignore[no-untyped-call]
