"""Charts of a comparison: a matrix of differences, and differences with their intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from analyses.result import Table

BETTER, WORSE, NEUTRAL = "#0072b2", "#c1272d", "#f7f7f7"
DECIDED = 0.05
LABELLED = 16
"""Sides up to which the squares of the matrix hold numbers."""
LINES = 40
"""Pairs that the forest shows."""


def matrix(tables: Mapping[str, Table]) -> Any:
    """Difference of the row's side minus the column's, in points, sides by accuracy; pairs without decision are pale."""
    sides = sorted(tables["models"].rows(), key=lambda row: -(row["accuracy"] if row["accuracy"] is not None else -1.0))
    order = [row["side"] for row in sides]
    squares = []
    for row in tables["pairs"].rows():
        for a, b, sign in ((row["a"], row["b"], 1), (row["b"], row["a"], -1)):
            if row["difference"] is not None:
                points = 100 * sign * row["difference"]
                decided = row["p_holm"] is not None and row["p_holm"] < DECIDED
                squares.append({"a": a, "b": b, "points": points, "text": f"{points:+.1f}", "decided": decided, "p_holm": row["p_holm"]})
    widest = max((abs(square["points"]) for square in squares), default=1.0) or 1.0
    side = max(12, min(34, 620 // max(len(order), 1)))
    base = alt.Chart(_values(squares), title="Difference in points: row minus column (pale: p_holm >= 0.05)").encode(
        x=alt.X("b:N", sort=order, title=None, axis=alt.Axis(labelAngle=-60, labelLimit=220)),
        y=alt.Y("a:N", sort=order, title=None, axis=alt.Axis(labelLimit=220)),
        tooltip=["a:N", "b:N", "points:Q", "p_holm:Q"],
    )
    colour = alt.Color(
        "points:Q", title="points", scale=alt.Scale(domain=[-widest, 0, widest], range=[WORSE, NEUTRAL, BETTER], interpolate="rgb")
    )
    rectangles = base.mark_rect(stroke="#ddd").encode(color=colour, opacity=alt.condition("datum.decided", alt.value(1.0), alt.value(0.35)))
    layers = [rectangles]
    if len(order) <= LABELLED:
        layers.append(base.mark_text(fontSize=9).encode(text="text:N", color=_readable(widest)))
    return alt.layer(*layers).properties(width=alt.Step(side), height=alt.Step(side))


def _readable(widest: float) -> Any:
    return alt.condition(f"datum.decided && abs(datum.points) > {0.6 * widest}", alt.value("white"), alt.value("black"))


def forest(tables: Mapping[str, Table]) -> Any:
    """Differences of pairs with their 95% intervals; of many pairs those with the best side."""
    rows = tables["pairs"].rows()
    if len(rows) > LINES:
        best = max(tables["models"].rows(), key=lambda row: -1.0 if row["accuracy"] is None else row["accuracy"])["side"]
        rows = [_turned(row) if row["b"] == best else row for row in rows if best in {row["a"], row["b"]}][:LINES]
    lines = [
        _line(f"{row['a']} - {row['b']}", row, row["p_holm"] is not None and row["p_holm"] < DECIDED) for row in rows if row["questions"]
    ]
    lines.sort(key=lambda line: -line["points"])
    return _forest(lines, "Difference in points, 95% interval", "p_holm < 0.05")


def groups(tables: Mapping[str, Table]) -> Any:
    """Differences of the only pair by label."""
    pair = tables["pairs"].rows()[0]
    lines = [_line("all questions", pair, pair["p"] is not None and pair["p"] < DECIDED)]
    lines += [
        _line(f"{row['value'] or 'none'} ({row['by']})", row, row["p"] is not None and row["p"] < DECIDED)
        for row in tables["by"].rows()[: LINES - 1]
    ]
    return _forest(lines, f"{pair['a']} - {pair['b']}: difference in points by label", "p < 0.05, not adjusted")


def _turned(row: dict[str, Any]) -> dict[str, Any]:
    """The same pair the other way round."""
    turned = {"a": row["b"], "b": row["a"]}
    for name, other in (("difference", "difference"), ("difference_low", "difference_high"), ("difference_high", "difference_low")):
        turned[name] = None if row[other] is None else -row[other]
    return row | turned


def _line(name: str, row: dict[str, Any], decided: bool) -> dict[str, Any]:  # noqa: FBT001 - a fact of the line
    ends = {end: None if row[f"difference_{end}"] is None else 100 * row[f"difference_{end}"] for end in ("low", "high")}
    return {"name": name, "points": 100 * row["difference"], "questions": row["questions"], "decided": decided, **ends}


def _forest(lines: Sequence[dict[str, Any]], title: str, meaning: str) -> Any:
    order = [line["name"] for line in lines]
    base = alt.Chart(_values(lines), title=title).encode(
        y=alt.Y("name:N", sort=order, title=None, axis=alt.Axis(labelLimit=360)),
        color=alt.Color("decided:N", title=meaning, scale=alt.Scale(domain=[True, False], range=[BETTER, "#999999"])),
        tooltip=["name:N", "points:Q", "low:Q", "high:Q", "questions:Q"],
    )
    zero = alt.Chart(_values([{"zero": 0}])).mark_rule(color="#444", strokeDash=[3, 3]).encode(x="zero:Q")
    spans = base.mark_rule(strokeWidth=2).encode(x=alt.X("low:Q", title="points"), x2="high:Q")
    dots = base.mark_point(filled=True, size=55, opacity=1).encode(x=alt.X("points:Q", title="points"))
    return alt.layer(zero, spans, dots).properties(width=420, height=alt.Step(17))


def _values(rows: Sequence[dict[str, Any]]) -> alt.Data:
    return alt.Data(values=list(rows))  # type: ignore[no-untyped-call]
