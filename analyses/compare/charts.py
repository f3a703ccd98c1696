"""Charts of a comparison: a matrix of differences, and differences with their intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from analyses.result import Table

BETTER, WORSE, NEUTRAL = "#0072b2", "#c1272d", "#f7f7f7"
LABELLED = 16
"""Sides up to which the squares of the matrix hold numbers."""
LINES = 40
"""Pairs that the forest shows."""
DECIDED = "p_holm and p_cluster_holm < 0.05"
APART = "95% intervals, each on its own (not simultaneous)"


def matrix(tables: Mapping[str, Table]) -> Any:
    """Difference of the row's side minus the column's, in points, sides by accuracy; decided pairs are bold and starred."""
    sides = sorted(tables["models"].rows(), key=lambda row: -(row["accuracy"] if row["accuracy"] is not None else -1.0))
    order = [row["side"] for row in sides]
    squares = []
    for row in tables["pairs"].rows():
        for a, b, sign in ((row["a"], row["b"], 1), (row["b"], row["a"], -1)):
            points, star = 100 * sign * row["difference"], "*" if row["decided"] else ""
            squares.append({"a": a, "b": b, "points": points, "text": _signed(points) + star, "star": star, "p_holm": row["p_holm"]})
    widest = max((abs(square["points"]) for square in squares), default=1.0) or 1.0
    labelled = len(order) <= LABELLED
    side = 40 if labelled else max(12, 620 // len(order))
    base = alt.Chart(_values(squares), title=["Difference in points: row minus column", f"*: {DECIDED}"]).encode(
        x=alt.X("b:N", sort=order, title=None, axis=alt.Axis(labelAngle=-60, labelLimit=220)),
        y=alt.Y("a:N", sort=order, title=None, axis=alt.Axis(labelLimit=220)),
        tooltip=["a:N", "b:N", "points:Q", "p_holm:Q"],
    )
    colour = alt.Color(
        "points:Q", title="points", scale=alt.Scale(domain=[-widest, 0, widest], range=[WORSE, NEUTRAL, BETTER], interpolate="rgb")
    )
    ink = alt.condition(f"abs(datum.points) > {0.6 * widest}", alt.value("white"), alt.value("black"))
    layers = [base.mark_rect(stroke="#ddd").encode(color=colour)]
    shown = "text:N" if labelled else "star:N"
    layers.append(base.transform_filter("datum.star == ''").mark_text(fontSize=10).encode(text=shown, color=ink))
    layers.append(base.transform_filter("datum.star != ''").mark_text(fontSize=10, fontWeight="bold").encode(text=shown, color=ink))
    return alt.layer(*layers).properties(width=alt.Step(side), height=alt.Step(max(12, side - 12) if labelled else side))


def _signed(points: float) -> str:
    text = f"{points:+.1f}"
    return "0.0" if text in {"+0.0", "-0.0"} else text


def forest(tables: Mapping[str, Table]) -> Any:
    """Differences of pairs with their 95% intervals, the better side first; of many pairs those with the leading side."""
    rows = tables["pairs"].rows()
    if len(rows) > LINES:
        leader = max(
            tables["models"].rows(), key=lambda row: (row["better_than"] - row["worse_than"], row["accuracy"] or 0.0, -row["place"])
        )
        rows = [row for row in rows if leader["side"] in {row["a"], row["b"]}]
    rows = sorted((_turned(row) if row["difference"] < 0 else row for row in rows), key=lambda row: -row["difference"])[:LINES]
    first = {row["a"] for row in rows}
    alone = len(first) == 1
    title = f"{first.pop()} minus each of the others, in points" if alone else "Difference in points, the better side first"
    lines = [_line(row["b"] if alone else f"{row['a']} - {row['b']}", row) for row in rows]
    return _forest(lines, [title, APART])


def groups(tables: Mapping[str, Table]) -> Any:
    """Differences of the only pair by label."""
    pair, rows = tables["pairs"].rows()[0], tables["by"].rows()[: LINES - 2]
    if pair["difference"] < 0:
        pair, rows = _turned(pair), [_turned(row) for row in rows]
    lines = [_line("all questions", pair)]
    if pair["benchmarks"] > 1:
        macro = {name: pair[name.replace("difference", "difference_macro")] for name in _DIFFERENCE}
        lines.append(_line("all benchmarks, each the same weight", pair | macro | {"decided": None}))
    lines += [_line(f"{row['value'] or 'none'} ({row['by']})", row) for row in rows]
    return _forest(lines, [f"{pair['a']} - {pair['b']}: difference in points by label", APART])


_DIFFERENCE = ("difference", "difference_low", "difference_high")


def _turned(row: dict[str, Any]) -> dict[str, Any]:
    """The same pair the other way round."""
    turned = {"a": row["b"], "b": row["a"]}
    for stem in ("difference", "difference_macro"):
        for end, other in (("", ""), ("_low", "_high"), ("_high", "_low")):
            value = row.get(stem + other)
            turned[stem + end] = None if value is None else -value
    return row | turned


def _line(name: str, row: dict[str, Any]) -> dict[str, Any]:
    ends = {end: None if row[f"difference_{end}"] is None else 100 * row[f"difference_{end}"] for end in ("low", "high")}
    decided = {True: "yes", False: "no", None: "not tested"}[row["decided"]]
    return {"name": name, "points": 100 * row["difference"], "questions": row["questions"], "decided": decided, **ends}


def _forest(lines: Sequence[dict[str, Any]], title: Sequence[str]) -> Any:
    order = [line["name"] for line in lines]
    kinds = [kind for kind in ("yes", "no", "not tested") if kind in {line["decided"] for line in lines}]
    colours = {"yes": BETTER, "no": "#999999", "not tested": "#444444"}
    base = alt.Chart(_values(lines), title=alt.TitleParams(list(title))).encode(
        y=alt.Y("name:N", sort=order, title=None, axis=alt.Axis(labelLimit=480)),
        color=alt.Color(
            "decided:N",
            title=DECIDED,
            legend=alt.Legend(titleLimit=300),
            scale=alt.Scale(domain=kinds, range=[colours[kind] for kind in kinds]),
        ),
        tooltip=["name:N", "points:Q", "low:Q", "high:Q", "questions:Q"],
    )
    zero = alt.Chart(_values([{"zero": 0}])).mark_rule(color="#444", strokeDash=[3, 3]).encode(x="zero:Q")
    spans = base.mark_rule(strokeWidth=2).encode(x=alt.X("low:Q", title="points"), x2="high:Q")
    dots = base.mark_point(filled=True, size=55, opacity=1).encode(x=alt.X("points:Q", title="points"))
    return alt.layer(zero, spans, dots).properties(width=420, height=alt.Step(17))


def _values(rows: Sequence[dict[str, Any]]) -> alt.Data:
    return alt.Data(values=list(rows))  # type: ignore[no-untyped-call]
