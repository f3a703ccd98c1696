"""Charts of the exponents analysis (Figure 5 b and c of the separable-law paper)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analyses.result import Table

COLORS = ("#e69f00", "#0072b2", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")
AXIS = alt.Axis(values=[digit * 10.0**power for power in range(-3, 3) for digit in (1, 2, 5)], format="~g")


def medians(tables: dict[str, Table]) -> Any:
    """Median interior exponents of the group fits by family on a log axis, with their range (Figure 5b)."""
    rows = [
        {**row, "family": row["value"] or "none", "text": f"{row['median']:.3g} (n = {row['interior']})"}
        for row in tables["exponents"].rows()
        if row["level"] == "group" and row["by"] == "family" and row["median"] is not None
    ]
    x = alt.X(
        "median:Q", title="interior estimates: median and range (log)", scale=alt.Scale(type="log", nice=False, padding=40), axis=AXIS
    )
    base = _data(rows).encode(
        y=alt.Y("exponent:N", title="exponent", axis=alt.Axis(labelFontSize=13)),
        yOffset=alt.YOffset("family:N"),
        color=_families([row["family"] for row in rows]),
        tooltip=["family:N", "exponent:N", "interior:Q", "at_lower:Q", "at_upper:Q", "median:Q", "median_all:Q"],
    )
    lines = base.mark_rule(strokeWidth=2, opacity=0.5).encode(x=alt.X("min:Q"), x2="max:Q")
    dots = base.mark_circle(size=110, opacity=1).encode(x=x)
    words = base.mark_text(dy=-11, fontSize=11).encode(x=x, text="text:N")
    return (lines + dots + words).properties(width=320, height=150, title="Exponents of the groups by family")


def plane(tables: dict[str, Table]) -> Any:
    """Every fit of the finest level in the plane of both exponents: filled inside the search range, hollow at a bound (Figure 5c)."""
    listed = tables["estimates"].rows()
    level = listed[-1]["level"] if listed else "group"
    rows = [
        {**row, "family": row["family"] or "none", "at": "at a bound" if row["alpha_bound"] or row["beta_bound"] else "inside"}
        for row in listed
        if row["level"] == level and row["alpha"] is not None and row["beta"] is not None
    ]
    values = [value for row in rows for value in (row["alpha"], row["beta"])] or [0.1, 10.0]
    span = [min(values) * 0.8, max(values) * 1.25]
    x, y = (
        kind(f"{name}:Q", title=f"{name} (log)", scale=alt.Scale(type="log", domain=span, nice=False), axis=AXIS)
        for kind, name in ((alt.X, "alpha"), (alt.Y, "beta"))
    )
    line = _data([{"alpha": value, "beta": value} for value in span]).mark_line(color="#888", strokeDash=[4, 3]).encode(x=x, y=y)
    fits = [row for row in listed if row["level"] == level and not str(row["status"]).startswith("not fitted")]
    title = f"Exponents of {level} fits; hollow: at a bound"
    without = f"{len(fits) - len(rows)} of {len(fits)} fits do not determine both and are not drawn" if len(rows) < len(fits) else ""
    labels = [name for name in ("series", "suite", "subset", "task") if name in tables["estimates"].names]
    color = _families([row["family"] for row in rows])
    tips = [*(f"{name}:N" for name in labels), "alpha:Q", "beta:Q", "status:N"]
    layers = [line]
    for filled in (True, False):
        some = [row for row in rows if (row["at"] == "inside") is filled]
        if some:
            mark = _data(some).mark_point(size=60, strokeWidth=1.6, filled=filled, opacity=0.9)
            layers.append(mark.encode(x=x, y=y, color=color, tooltip=tips))
    return alt.layer(*layers).properties(width=300, height=280, title=alt.TitleParams(text=title, subtitle=without))


def _families(names: Sequence[str]) -> alt.Color:
    domain = sorted(set(names))
    return alt.Color(
        "family:N", title="family", scale=alt.Scale(domain=domain, range=[COLORS[i % len(COLORS)] for i in range(len(domain))])
    )


def _data(rows: Sequence[dict[str, Any]]) -> alt.Chart:
    return alt.Chart(alt.Data(values=list(rows)))  # type: ignore[no-untyped-call]
