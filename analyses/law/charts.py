"""Charts of the law analysis (Figures 3, 7, 8, 9 and 11 of the separable-law paper)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt
import numpy as np

from analyses.law.drawn import Drawn, color_of, data_of, diagonal, span_of, thinned, tips
from analyses.law.panels import curves, groups

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Drawn", "curves", "groups", "histogram", "predicted", "residuals", "resources", "spread"]

FACETS = 24
"""Groups that the chart of resources has at most."""


def predicted(drawn: Drawn) -> Any:
    """Predicted against observed error, a dot per cell (Figure 3, left)."""
    rows = drawn.rows
    span = span_of(rows)
    shown, note = thinned(rows)
    dots = (
        data_of(shown)
        .mark_circle(size=28, opacity=0.6)
        .encode(
            x=alt.X("observed:Q", title="observed error", scale=alt.Scale(domain=span, nice=False, zero=False)),
            y=alt.Y("predicted:Q", title="predicted error", scale=alt.Scale(domain=span, nice=False, zero=False)),
            color=color_of("family", rows),
            tooltip=tips(),
        )
    )
    return (diagonal(span) + dots).properties(width=300, height=280, title=alt.Title("Predicted and observed error", subtitle=note))


def residuals(drawn: Drawn) -> Any:
    """Residual against observed error, with the mean and its standard error in five bins (Figure 3, middle)."""
    rows = drawn.rows
    x = alt.X("observed:Q", title="observed error", scale=alt.Scale(domain=span_of(rows), nice=False, zero=False))
    title = "residual (observed - predicted)"
    y = alt.Y("residual:Q", title=title)
    shown, note = thinned(rows)
    dots = data_of(shown).mark_circle(size=28, opacity=0.35).encode(x=x, y=y, color=color_of("family", rows), tooltip=tips())
    bins = [
        {
            "observed": (row["low"] + row["high"]) / 2,
            "residual": row["mean"],
            "from": row["mean"] - (row["sem"] or 0.0),
            "to": row["mean"] + (row["sem"] or 0.0),
            "cells": row["cells"],
        }
        for row in drawn.tables["residuals"].rows()
        if row["mean"] is not None
    ]
    base = data_of(bins).encode(x=x)
    bars = base.mark_rule(strokeWidth=2, color="black").encode(y=alt.Y("from:Q", title=title), y2="to:Q")
    means = base.mark_point(shape="diamond", filled=True, size=70, color="black").encode(y=y, tooltip=["cells:Q", "residual:Q"])
    zero = data_of([{"residual": 0.0}]).mark_rule(color="#888", strokeDash=[4, 3]).encode(y=y)
    return (zero + dots + bars + means).properties(
        width=300, height=280, title=alt.Title("Residuals; black: bin mean +- SEM", subtitle=note)
    )


def histogram(drawn: Drawn) -> Any:
    """Residuals of all cells with the Gaussian of the same mean and variance (Figure 9, left)."""
    residual = drawn.fits.residual[drawn.fits.used]
    count, edges = np.histogram(residual, bins=min(40, max(5, round(np.sqrt(len(residual)) * 1.5))))
    density = count / max(count.sum(), 1) / np.diff(edges)
    bars = data_of(
        [
            {"from": float(a), "to": float(b), "density": float(d), "zero": 0.0, "cells": int(c)}
            for a, b, d, c in zip(edges, edges[1:], density, count, strict=False)
        ]
    )
    drawn_bars = bars.mark_rect(color="#9ecae1", stroke="white", strokeWidth=0.5).encode(
        x=alt.X("from:Q", title="residual (observed - predicted)"),
        x2="to:Q",
        y=alt.Y("density:Q", title="density"),
        y2="zero:Q",
        tooltip=["cells:Q"],
    )
    sd = float(residual.std())
    if sd == 0:
        return drawn_bars.properties(width=300, height=240, title="Residuals")
    x = np.linspace(edges[0], edges[-1], 120)
    y = np.exp(-((x - residual.mean()) ** 2) / (2 * sd**2)) / (sd * np.sqrt(2 * np.pi))
    line = data_of([{"from": float(a), "density": float(b)} for a, b in zip(x, y, strict=True)])
    gaussian = line.mark_line(color="#c1272d").encode(x="from:Q", y="density:Q")
    return (drawn_bars + gaussian).properties(width=300, height=240, title="Residuals; red: Gaussian of the same mean and variance")


def spread(drawn: Drawn) -> Any:
    """Standard deviation of the residuals by series (Figure 9, right)."""
    rows = [{**row, "value": row["value"] or "none"} for row in drawn.tables["spread"].rows() if row["by"] == "series"]
    order = [row["value"] for row in rows]
    return (
        data_of(rows)
        .mark_bar(color="#0072b2")
        .encode(
            x=alt.X("value:N", title=None, sort=order, axis=alt.Axis(labelAngle=-30)),
            y=alt.Y("sd:Q", title="standard deviation of residuals"),
            tooltip=["value:N", "cells:Q", "sd:Q", "mean:Q"],
        )
        .properties(width=max(150, 45 * len(rows)), height=240, title="Spread of residuals by series")
    )


def resources(drawn: Drawn) -> Any:
    """In-sample R2 of the law in N and R, in N and effective pixels, and in all three, by group (Figure 11)."""
    titles = {"visual_tokens": "L(N, R)", "effective_pixels": "L(N, P)", "both": "L(N, R, P)"}
    by = drawn.fits.groups.by
    listed = [row for row in drawn.tables["resources"].rows() if row["r2"] is not None]
    names = list(dict.fromkeys(_label(row, by) for row in listed))[:FACETS]
    rows = [{"group": _label(row, by), "law": titles[row["resource"]], "r2": row["r2"]} for row in listed if _label(row, by) in names]
    law = alt.Scale(domain=list(titles.values()), range=["#0072b2", "#e69f00", "#009e73"])
    r2 = alt.Y("r2:Q", title="in-sample R2", scale=alt.Scale(zero=False))
    base = data_of(rows).encode(x=alt.X("group:N", title=None, sort=names, axis=alt.Axis(labelAngle=-40, labelLimit=220, grid=True)))
    ranges = base.mark_rule(color="#999").encode(y=alt.Y("min(r2):Q", title="in-sample R2"), y2="max(r2):Q")
    dots = base.mark_point(filled=True, size=70, opacity=1).encode(
        y=r2,
        color=alt.Color("law:N", title="law", scale=law),
        shape=alt.Shape("law:N", title="law", scale=alt.Scale(domain=list(titles.values()), range=["circle", "square", "diamond"])),
        tooltip=["group:N", "law:N", "r2:Q"],
    )
    return (ranges + dots).properties(width=max(200, 34 * len(names)), height=240, title="Effective pixels as the visual resource")


def _label(row: dict[str, Any], by: Sequence[str]) -> str:
    return " x ".join(str(row[name] or "none") for name in by) or "all cells"
