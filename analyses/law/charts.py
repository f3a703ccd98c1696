"""Charts of the law analysis (Figures 3, 7, 8, 9 and 11 of the separable-law paper)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import altair as alt
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from analyses.cells import CellStudy
    from analyses.law.fits import GroupFits, Points
    from analyses.result import Table

COLORS = ("#e69f00", "#0072b2", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#882255", "#999933")
QUARTILES = ("#9ecae1", "#6baed6", "#2171b5", "#08306b")
FACETS = 24
"""Panels that a chart has at most."""
CURVE = 40
"""Points of a curve."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """What the charts are drawn from."""

    study: CellStudy
    points: Points
    fits: GroupFits
    tables: dict[str, Table]
    moments: bool = False
    """Whether the visual term is a mean over answers: then no curve at one R can be drawn."""

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Cells of fitted groups."""
        cells, fits = self.study.cells, self.fits
        groups = [_named(fits, group) for group in range(len(fits.groups))]
        return [
            {
                "group": groups[int(fits.groups.code[cell])],
                "family": str(cells.text["family"][cell] or "none"),
                "series": str(cells.text["series"][cell] or "none"),
                "model": str(cells.text["model"][cell]),
                "N": float(cells.parameters[cell]),
                "R": float(self.points.axes["R"][cell] * self.points.reference["R"]),
                "observed": float(cells.error[cell]),
                "predicted": float(fits.predicted[cell]),
                "residual": float(fits.residual[cell]),
            }
            for cell in np.flatnonzero(fits.used).tolist()
        ]


def predicted(drawn: Drawn) -> Any:
    """Predicted against observed error, a dot per cell (Figure 3, left)."""
    rows = drawn.rows
    span = _span(rows)
    dots = (
        _data(rows)
        .mark_circle(size=28, opacity=0.6)
        .encode(
            x=alt.X("observed:Q", title="observed error", scale=alt.Scale(domain=span)),
            y=alt.Y("predicted:Q", title="predicted error", scale=alt.Scale(domain=span)),
            color=_color("family", rows),
            tooltip=_tips(),
        )
    )
    return (_diagonal(span) + dots).properties(width=300, height=280, title="Predicted and observed error")


def residuals(drawn: Drawn) -> Any:
    """Residual against observed error, with the mean and its standard error in five bins (Figure 3, middle)."""
    rows = drawn.rows
    x = alt.X("observed:Q", title="observed error", scale=alt.Scale(domain=_span(rows)))
    title = "residual (observed - predicted)"
    y = alt.Y("residual:Q", title=title)
    dots = _data(rows).mark_circle(size=28, opacity=0.35).encode(x=x, y=y, color=_color("family", rows), tooltip=_tips())
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
    base = _data(bins).encode(x=x)
    bars = base.mark_rule(strokeWidth=2, color="black").encode(y=alt.Y("from:Q", title=title), y2="to:Q")
    means = base.mark_point(shape="diamond", filled=True, size=70, color="black").encode(y=y, tooltip=["cells:Q", "residual:Q"])
    zero = _data([{"residual": 0.0}]).mark_rule(color="#888", strokeDash=[4, 3]).encode(y=y)
    return (zero + dots + bars + means).properties(width=300, height=280, title="Residuals; black: bin mean +- SEM")


def groups(drawn: Drawn) -> Any:
    """Predicted against observed error in a panel per group, with the same axes (Figure 7)."""
    rows, note = _first(drawn)
    span = _span(rows)
    fits = drawn.fits
    r2 = {_named(fits, group): fits.r2[group] for group in range(len(fits.groups))}
    panels = []
    for name in dict.fromkeys(row["group"] for row in rows):
        some = [row for row in rows if row["group"] == name]
        dots = (
            _data(some)
            .mark_circle(size=24, opacity=0.7)
            .encode(
                x=alt.X("observed:Q", title=None, scale=alt.Scale(domain=span), axis=alt.Axis(tickCount=4)),
                y=alt.Y("predicted:Q", title=None, scale=alt.Scale(domain=span), axis=alt.Axis(tickCount=4)),
                color=_color("series", rows),
                tooltip=_tips(),
            )
        )
        panels.append((_diagonal(span) + dots).properties(width=120, height=110, title=_title(name, f"R2 {_short(r2[name])}")))
    return alt.concat(*panels, columns=_columns(drawn)).properties(title=f"Predicted (up) and observed error (right) by group{note}")


def curves(drawn: Drawn) -> Any:
    """Error against N in a panel per group: cells by quartile of R, curves of the law at each quartile's median R (Figure 8)."""
    rows, note = _first(drawn)
    panels = []
    for name in dict.fromkeys(row["group"] for row in rows):
        some = [row for row in rows if row["group"] == name]
        group = next(place for place in range(len(drawn.fits.groups)) if _named(drawn.fits, place) == name)
        quartile = quartiles_of(np.array([row["R"] for row in some]))
        for row, number in zip(some, quartile.tolist(), strict=True):
            row["quartile"] = f"Q{number}"
        color = alt.Color(
            "quartile:N", title="quartile of R", scale=alt.Scale(domain=[f"Q{number}" for number in range(1, 5)], range=list(QUARTILES))
        )
        x = alt.X(
            "N:Q", title=None, scale=alt.Scale(type="log", nice=False, padding=6), axis=alt.Axis(values=[1, 3, 10, 30, 100], grid=False)
        )
        y = alt.Y("error:Q", title=None, scale=alt.Scale(zero=False), axis=alt.Axis(tickCount=4))
        dots = _data([{**row, "error": row["observed"]} for row in some]).mark_circle(size=26, opacity=0.85)
        lines = _data(_curves(drawn, group, some)).mark_line(strokeWidth=1.6)
        panels.append(
            (
                lines.encode(x=x, y=y, color=color, detail="quartile:N")
                + dots.encode(x=x, y=y, color=color, tooltip=["model:N", "N:Q", "R:Q", "observed:Q", "predicted:Q"])
            ).properties(width=120, height=110, title=_title(name))
        )
    return alt.concat(*panels, columns=_columns(drawn)).properties(
        title=f"Error against N (billions, log) by group; lines: the law at the median R of each quartile{note}"
    )


def quartiles_of(values: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Quartile 1..4 of each value by the 25th, 50th and 75th percentile; a value on an edge belongs to the lower one."""
    return np.searchsorted(np.percentile(values, [25, 50, 75]), values, side="left") + 1


def _curves(drawn: Drawn, group: int, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The law of a group over its range of N at the median R of each quartile.

    A group that does not determine its floor has none, and neither have laws with a third axis or with means over answers.
    """
    values = {name: float(drawn.fits.parameters[name][group]) for name in ("e", "a", "alpha", "b", "beta")}
    for amplitude, exponent in (("a", "alpha"), ("b", "beta")):
        if values[amplitude] < np.finfo(float).tiny:
            values[exponent] = 1.0
    if drawn.moments or drawn.fits.law != "separable" or any(np.isnan(value) for value in values.values()):
        return []
    sizes = [row["N"] for row in rows]
    n = np.geomspace(min(sizes), max(sizes), CURVE)
    lines = []
    for quartile in sorted({row["quartile"] for row in rows}):
        r = float(np.median([row["R"] for row in rows if row["quartile"] == quartile]))
        error = (
            values["e"]
            + values["a"] * (n / drawn.points.reference["N"]) ** -values["alpha"]
            + values["b"] * (r / drawn.points.reference["R"]) ** -values["beta"]
        )
        lines += [{"N": float(x), "error": float(y), "quartile": quartile} for x, y in zip(n, error, strict=True)]
    return lines


def histogram(drawn: Drawn) -> Any:
    """Residuals of all cells with the Gaussian of the same mean and variance (Figure 9, left)."""
    residual = drawn.fits.residual[drawn.fits.used]
    count, edges = np.histogram(residual, bins=min(40, max(5, round(np.sqrt(len(residual)) * 1.5))))
    density = count / max(count.sum(), 1) / np.diff(edges)
    bars = _data(
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
    line = _data([{"from": float(a), "density": float(b)} for a, b in zip(x, y, strict=True)])
    gaussian = line.mark_line(color="#c1272d").encode(x="from:Q", y="density:Q")
    return (drawn_bars + gaussian).properties(width=300, height=240, title="Residuals; red: Gaussian of the same mean and variance")


def spread(drawn: Drawn) -> Any:
    """Standard deviation of the residuals by series (Figure 9, right)."""
    rows = [{**row, "value": row["value"] or "none"} for row in drawn.tables["spread"].rows() if row["by"] == "series"]
    order = [row["value"] for row in rows]
    return (
        _data(rows)
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
    return (
        _data(rows)
        .mark_bar()
        .encode(
            x=alt.X("group:N", title=None, sort=names, axis=alt.Axis(labelAngle=-40, labelLimit=220)),
            xOffset=alt.XOffset("law:N", sort=list(titles.values())),
            y=alt.Y("r2:Q", title="in-sample R2"),
            color=alt.Color("law:N", title="law", sort=list(titles.values()), scale=alt.Scale(range=["#0072b2", "#e69f00", "#009e73"])),
            tooltip=["group:N", "law:N", "r2:Q"],
        )
        .properties(width=max(200, 34 * len(names)), height=240, title="Effective pixels as the visual resource")
    )


def _label(row: dict[str, Any], by: Sequence[str]) -> str:
    return " x ".join(str(row[name] or "none") for name in by) or "all cells"


def _first(drawn: Drawn) -> tuple[list[dict[str, Any]], str]:
    """Cells of the first groups, and a note where there are more."""
    rows = drawn.rows
    names = list(dict.fromkeys(_named(drawn.fits, int(group)) for group in np.flatnonzero(drawn.fits.fitted)))
    note = f" (the first {FACETS} of {len(names)} groups)" if len(names) > FACETS else ""
    shown = names[:FACETS]
    return sorted((row for row in rows if row["group"] in shown), key=lambda row: shown.index(row["group"])), note


def _columns(drawn: Drawn) -> int:
    """Panels in a row: one per value of the second label where groups are series x suite, else six."""
    by = drawn.fits.groups.by
    values = len({key[1] for key in drawn.fits.groups.keys}) if len(by) == 2 else 6
    return values if 2 <= values <= 6 else 6


def _named(fits: GroupFits, group: int) -> str:
    return fits.groups.name(group) or "all cells"


def _title(text: str, below: str = "") -> Any:
    return alt.TitleParams(text, subtitle=below, fontSize=10, subtitleFontSize=9, anchor="start", limit=150)


def _short(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.2f}"


def _diagonal(span: Sequence[float]) -> Any:
    line = _data([{"observed": value, "predicted": value} for value in span])
    return line.mark_line(color="#888", strokeDash=[4, 3]).encode(x="observed:Q", y="predicted:Q")


def _span(rows: Sequence[dict[str, Any]]) -> list[float]:
    """From 0 (or a prediction below it) to a round number above all errors."""
    values = [value for row in rows for value in (row["observed"], row["predicted"])] or [0.0, 1.0]
    return [min(0.0, float(np.floor(min(values) * 20) / 20)), max(0.05, float(np.ceil(max(values) * 20) / 20))]


def _color(name: str, rows: Sequence[dict[str, Any]]) -> alt.Color:
    domain = sorted({row[name] for row in rows})
    return alt.Color(f"{name}:N", title=name, scale=alt.Scale(domain=domain, range=[COLORS[i % len(COLORS)] for i in range(len(domain))]))


def _tips() -> list[str]:
    return ["group:N", "model:N", "N:Q", "R:Q", "observed:Q", "predicted:Q"]


def _data(rows: Sequence[dict[str, Any]]) -> alt.Chart:
    return alt.Chart(alt.Data(values=list(rows)))  # type: ignore[no-untyped-call]
