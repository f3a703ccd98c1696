"""Charts of the law with a panel per group: predicted and observed errors, and curves over N (Figures 7 and 8)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import altair as alt
import numpy as np

from analyses.law.drawn import color_of, data_of, diagonal, named, span_of, tips

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from analyses.law.drawn import Drawn

QUARTILES = {"Q1": ("#f0a202", 3.4), "Q2": ("#d1495b", 2.6), "Q3": ("#7b2d8b", 1.8), "Q4": ("#12355b", 1.2)}
"""Colour and line width of each quartile: later lines are thinner, so that two of them on top of each other are both seen."""
FACETS = 24
"""Panels that a chart has at most."""
CURVE = 40
"""Points of a curve."""
WIDE, HIGH = 130, 115
IN_A_ROW = 6
NOT_SURE = [4, 2]
"""Dashes of curves whose exponents are limits rather than estimates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """A group's panel."""

    group: int
    name: str
    rows: list[dict[str, Any]]
    column: str
    """Panels of the same column share their axis of errors."""
    left: bool
    bottom: bool


def groups(drawn: Drawn) -> Any:
    """Predicted against observed error in a panel per group, with the same axes (Figure 7)."""
    panels, note = _panels(drawn)
    every = [row for panel in panels for row in panel.rows]
    span = span_of(every)

    def one(panel: Panel) -> Any:
        scale, axis = alt.Scale(domain=span, nice=False, zero=False), alt.Axis(tickCount=4)
        x = alt.X("observed:Q", title="observed error" if panel.bottom else None, scale=scale, axis=axis)
        y = alt.Y("predicted:Q", title="predicted error" if panel.left else None, scale=scale, axis=axis)
        dots = data_of(panel.rows).mark_circle(size=24, opacity=0.7).encode(x=x, y=y, color=color_of("series", every), tooltip=tips())
        return _titled(diagonal(span) + dots, panel, f"R2 {_short(drawn.fits.r2[panel.group])}")

    return _sheet(drawn, panels, one, f"Predicted and observed error by group{note}")


def curves(drawn: Drawn) -> Any:
    """Error against N in a panel per group: cells by quartile of R, curves of the law at each quartile's median R (Figure 8).

    Dashed where an exponent is at its bound or not determined (open). Panels of a column (a suite) have the same axis.
    """
    panels, note = _panels(drawn)
    lines = {}
    for panel in panels:
        for row, number in zip(panel.rows, quartiles_of(np.array([row["R"] for row in panel.rows])).tolist(), strict=True):
            row["quartile"] = f"Q{number}"
        lines[panel.group] = _lines(drawn, panel)
    spans: dict[str, list[float]] = {}
    for panel in panels:
        values = [row["observed"] for row in panel.rows] + [row["error"] for row in lines[panel.group]]
        low, high = spans.get(panel.column, [np.inf, -np.inf])
        spans[panel.column] = [min(low, *values), max(high, *values)]
    colors = alt.Scale(domain=list(QUARTILES), range=[color for color, _ in QUARTILES.values()])
    color = alt.Color("quartile:N", title="quartile of R", scale=colors)

    def one(panel: Panel) -> Any:
        sizes = sorted({row["N"] for row in panel.rows})
        ticks = alt.Axis(values=sizes, labelExpr="format(datum.value, '.2~r')", labelOverlap="greedy", grid=False)
        x = alt.X("N:Q", title="N (billions)" if panel.bottom else None, scale=alt.Scale(type="log", nice=False, padding=6), axis=ticks)
        low, high = spans[panel.column]
        scale = alt.Scale(domain=[low - 0.03 * (high - low), high + 0.03 * (high - low)], nice=False, zero=False)
        y = alt.Y("error:Q", title="error" if panel.left else None, scale=scale, axis=alt.Axis(tickCount=4))
        layers = [
            data_of([row for row in lines[panel.group] if row["quartile"] == quartile])
            .mark_line(strokeDash=NOT_SURE if _unsure(drawn, panel.group) else [1, 0], strokeWidth=width)
            .encode(x=x, y=y, color=color, tooltip=["quartile:N", alt.Tooltip("R:Q", title="median R", format=".0f"), "N:Q", "error:Q"])
            for quartile, (_, width) in QUARTILES.items()
        ]
        dots = data_of([{**row, "error": row["observed"]} for row in panel.rows]).mark_circle(size=26, opacity=0.85)
        dots = dots.encode(x=x, y=y, color=color, tooltip=["model:N", "quartile:N", "N:Q", "R:Q", "observed:Q", "predicted:Q"])
        medians = _medians(panel.rows)
        middles = " / ".join(f"{medians[name]:.0f}" if name in medians else "-" for name in QUARTILES)
        return _titled(alt.layer(*layers, dots), panel, f"R {middles}", _exponents(drawn, panel.group))

    title = f"Error against N by group; lines: the law at the median R of each quartile, Q1 to Q4 (under each title){note}"
    return _sheet(
        drawn, panels, one, title, "dashed: an exponent at a bound of its range, or open (not determined); a column has one axis of errors"
    )


def quartiles_of(values: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Quartile 1..4 of each value by the 25th, 50th and 75th percentile; a value on an edge belongs to the lower one."""
    return np.searchsorted(np.percentile(values, [25, 50, 75]), values, side="left") + 1


def _medians(rows: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Median R of each quartile that has cells."""
    present = sorted({row["quartile"] for row in rows})
    return {quartile: float(np.median([row["R"] for row in rows if row["quartile"] == quartile])) for quartile in present}


def _unsure(drawn: Drawn, group: int) -> bool:
    """Whether an exponent of a group is a limit or one of many solutions rather than an estimate."""
    return not all(drawn.fits.interior(name)[group] for name in drawn.fits.bound)


def _exponents(drawn: Drawn, group: int) -> str:
    """Such as alpha 0.30, beta 10 (bound)."""
    fits = drawn.fits
    said = []
    for name, bound in fits.bound.items():
        mark = " (bound)" if bound[group] else ""
        said.append(f"{name} {fits.parameters[name][group]:.2g}{mark}" if fits.determined[name][group] else f"{name} open")
    return ", ".join(said)


def _lines(drawn: Drawn, panel: Panel) -> list[dict[str, Any]]:
    """The law of a group over its range of N at the median R of each quartile.

    A group that does not determine its floor has none, and neither have laws with a third axis or with means over answers.
    """
    values = {name: float(drawn.fits.parameters[name][panel.group]) for name in ("e", "a", "alpha", "b", "beta")}
    for amplitude, exponent in (("a", "alpha"), ("b", "beta")):
        if values[amplitude] < np.finfo(float).tiny:
            values[exponent] = 1.0
    if drawn.moments or drawn.fits.law != "separable" or any(np.isnan(value) for value in values.values()):
        return []
    sizes = [row["N"] for row in panel.rows]
    n = np.geomspace(min(sizes), max(sizes), CURVE)
    lines = []
    for quartile, r in _medians(panel.rows).items():
        error = (
            values["e"]
            + values["a"] * (n / drawn.points.reference["N"]) ** -values["alpha"]
            + values["b"] * (r / drawn.points.reference["R"]) ** -values["beta"]
        )
        lines += [{"N": float(x), "R": r, "error": float(y), "quartile": quartile} for x, y in zip(n, error, strict=True)]
    return lines


def _panels(drawn: Drawn) -> tuple[list[Panel], str]:
    """The first fitted groups with their cells, and a note where there are more."""
    fits = drawn.fits
    fitted = np.flatnonzero(fits.fitted).tolist()
    note = f" (the first {FACETS} of {len(fitted)} groups)" if len(fitted) > FACETS else ""
    shown, columns = fitted[:FACETS], _columns(drawn)
    rows: dict[str, list[dict[str, Any]]] = {}
    for row in drawn.rows:
        rows.setdefault(row["group"], []).append(row)
    by_label = len(fits.groups.by) == 2
    return [
        Panel(
            group=group,
            name=named(fits, group),
            rows=rows[named(fits, group)],
            column=str(fits.groups.keys[group][1]) if by_label else "",
            left=place % columns == 0,
            bottom=place + columns >= len(shown),
        )
        for place, group in enumerate(shown)
    ], note


def _columns(drawn: Drawn) -> int:
    """Panels in a row: one per value of the second label where every group of series x suite is fitted, else six."""
    groups = drawn.fits.groups
    values = len({key[1] for key in groups.keys}) if len(groups.by) == 2 else IN_A_ROW
    whole = bool(drawn.fits.fitted.all()) and len(groups) % values == 0
    return values if 2 <= values <= IN_A_ROW and whole else IN_A_ROW


def _sheet(drawn: Drawn, panels: Sequence[Panel], one: Callable[[Panel], Any], title: str, below: str = "") -> Any:
    sheet = alt.concat(*(one(panel) for panel in panels), columns=_columns(drawn))
    return sheet.properties(title=alt.TitleParams(title, subtitle=below, anchor="start"))


def _titled(chart: Any, panel: Panel, *below: str) -> Any:
    title = alt.TitleParams(panel.name, subtitle=list(below), fontSize=10, subtitleFontSize=9, anchor="start", limit=WIDE + 30)
    return chart.properties(width=WIDE, height=HIGH, title=title)


def _short(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.2f}"
