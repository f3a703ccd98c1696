"""Charts of the sweep analysis (Figures 12 and 13)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt

if TYPE_CHECKING:
    from collections.abc import Mapping

    from analyses.result import Table

COLORS = ("#0072b2", "#e69f00", "#c1272d", "#009e73", "#cc79a7", "#56b4e9", "#555555", "#d55e00")
TOKENS, SIZE = ("tokens", "mean visual tokens (log)"), ("setting", "input size, px (log)")
SPAN = 4.0
"""Largest over smallest tokens of a sweep below which its curve is a vertical line among others."""
PANELS = 2
LARGEST = 16
TALL, SHORT, MANY = 22, 13, 24
"""Height of a row of the chart of gains (px), and with more rows than so many."""


def curves(tables: Mapping[str, Table]) -> Any:
    """Accuracy against mean visual tokens at the highest source quality: a panel per benchmark, a line per model (Figure 12).

    Many models are coloured by series. Sweeps of the input size some of which span few tokens are drawn against the input size.
    """
    rows = [row for row in _rows(tables) if row["quality_rank"] == 0]
    by = "model" if len({row["model"] for row in rows}) <= len(COLORS) else "series"
    rows = [row | {"line": row[by] or "none"} for row in rows]
    if rows and _narrow(rows):
        return _panels(rows, by, "Accuracy against input size, model held fixed", SIZE)
    return _panels(rows, by, "Accuracy against visual tokens, model held fixed")


def quality(tables: Mapping[str, Table]) -> Any:
    """The same at every source quality, for models with more than one (Figure 13)."""
    rows = _rows(tables)
    several = {row["model"] for row in rows if row["quality_rank"] > 0}
    many = len(several) > 1
    rows = [row | {"line": f"{row['model']}: {row['source_quality']}" if many else row["source_quality"]} for row in rows]
    rows = [row for row in rows if row["model"] in several]
    title = "Source quality and the return to visual tokens" + ("" if many else f", {min(several)}")
    return _panels(rows, "source quality", title)


def gains(tables: Mapping[str, Table]) -> Any:
    """End-point gains with their intervals (Table 28)."""
    rows = [row | {"row": f"{row['model']}, {row['benchmark']}"} for row in tables["gains"].rows() if row["holm_p"] is not None]
    base = alt.Chart(_values(rows))
    y = alt.Y("row:N", title="model, benchmark", sort=None, axis=alt.Axis(labelLimit=260, labelOverlap=False))
    significant = alt.condition("datum.holm_p < 0.05", alt.value(COLORS[0]), alt.value("#999999"))
    bars = base.mark_rule(strokeWidth=2).encode(
        y=y, x=alt.X("gain_low:Q", title="gain (percentage points)"), x2="gain_high:Q", color=significant
    )
    dots = base.mark_circle(size=70, opacity=1).encode(
        y=y, x="gain:Q", color=significant, tooltip=["model:N", "benchmark:N", "gain:Q", "gain_low:Q", "gain_high:Q", "holm_p:Q"]
    )
    zero = alt.Chart(_values([{"zero": 0}])).mark_rule(color="#bbb").encode(x="zero:Q")
    return (zero + bars + dots).properties(
        width=320,
        height=max(60, (TALL if len(rows) <= MANY else SHORT) * len(rows)),
        title="End-point gains with 95% intervals; blue: Holm p < 0.05",
    )


def _rows(tables: Mapping[str, Table]) -> list[dict[str, Any]]:
    """Points of the curves with known tokens, with the rank of their quality within the sweep."""
    ranks: dict[tuple[Any, ...], dict[str, int]] = {}
    rows = []
    for row in tables["curve"].rows():
        seen = ranks.setdefault((row["model"], row["benchmark"], row["axis"], row["settings"]), {})
        rank = seen.setdefault(row["source_quality"], len(seen))
        if row["tokens"] is not None:
            rows.append(row | {"quality_rank": rank, "sweep": f"{row['axis']} {row['settings']}"})
    return rows


def _narrow(rows: list[dict[str, Any]]) -> bool:
    """Whether all sweeps are of the input size and one of them has nearly the same tokens at all of its settings."""
    tokens: dict[tuple[Any, ...], list[float]] = {}
    for row in rows:
        tokens.setdefault((row["model"], row["benchmark"], row["sweep"]), []).append(row["tokens"])
    return all(row["axis"] == "input_size" for row in rows) and any(max(some) < SPAN * min(some) for some in tokens.values())


def _panels(rows: list[dict[str, Any]], legend: str, title: str, x: tuple[str, str] = TOKENS) -> Any:
    names = list(dict.fromkeys(row["line"] for row in rows))
    benchmarks = sorted({row["benchmark"] for row in rows})[:LARGEST]
    if not rows:
        return alt.Chart(_values([])).mark_point().properties(title=f"{title} (no token counts)")
    color = alt.Color(
        "line:N",
        title=legend,
        sort=names,
        scale=alt.Scale(domain=names, range=[COLORS[place % len(COLORS)] for place in range(len(names))]),
    )
    ticks: dict[str, Any] = {"values": sorted({row["setting"] for row in rows})} if x == SIZE else {"tickCount": 5}
    heading = alt.TitleParams(text=title, subtitle=f"visual tokens of some sweeps span less than {SPAN:g}x" if x == SIZE else "")
    panels = [
        alt.Chart(_values([row for row in rows if row["benchmark"] == benchmark]))
        .mark_line(point=alt.OverlayMarkDef(size=45))
        .encode(
            x=alt.X(
                f"{x[0]}:Q",
                title=x[1],
                scale=alt.Scale(type="log", base=2, nice=False, padding=10),
                axis=alt.Axis(format=",d", **ticks),
            ),
            y=alt.Y("accuracy:Q", title="accuracy (%)", scale=alt.Scale(zero=False)),
            color=color,
            detail=["model:N", "sweep:N"],
            order=f"{x[0]}:Q",
            tooltip=["model:N", "source_quality:N", "setting:Q", "tokens:Q", "accuracy:Q", "questions:Q"],
        )
        .properties(width=200, height=190, title=benchmark)
        for benchmark in benchmarks
    ]
    return alt.concat(*panels, columns=PANELS).resolve_scale(y="shared").properties(title=heading)


def _values(rows: list[dict[str, Any]]) -> Any:
    return alt.Data(values=rows)  # type: ignore[no-untyped-call]
