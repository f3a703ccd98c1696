"""Charts of the agreement of signals: agreement by model and benchmark, and accuracy by one signal against the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt

from analyses.intervals import wilson

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from analyses.result import Table

COLOURS = ("#0072b2", "#e69f00", "#009e73", "#c1272d", "#9467bd", "#56b4e9", "#8c6d31", "#666666")
LANES = len(COLOURS)
"""Benchmarks up to which each has a lane and a colour of its own; the rest are one."""
OTHERS = "others"


def models(tables: Mapping[str, Table]) -> Any:
    """Agreement by model and benchmark over its configurations, with its interval; a pale tick per configuration."""
    runs = [row for row in tables["runs"].rows() if row["agreement"] is not None]
    lanes = _lanes(runs)
    pooled = _pooled(runs, lanes)
    ticks = [{"model": row["model"], "lane": _lane(row, lanes), "agreement": row["agreement"]} for row in runs]
    order = list(dict.fromkeys(row["model"] for row in runs))
    share = alt.Scale(zero=False)
    base = alt.Chart(_values(pooled)).encode(
        y=alt.Y("model:N", sort=order, title=None),
        yOffset=alt.YOffset("lane:N", sort=lanes),
        color=_colours(lanes),
        tooltip=["model:N", "lane:N", "configurations:Q", "both_signals:Q", "agreement:Q", "low:Q", "high:Q"],
    )
    configurations = (
        alt.Chart(_values(ticks))
        .mark_tick(thickness=1.5, opacity=0.35, size=7)
        .encode(
            x=alt.X("agreement:Q", scale=share, title="share of records that agree"),
            y=alt.Y("model:N", sort=order),
            yOffset=alt.YOffset("lane:N", sort=lanes),
            color=_colours(lanes),
        )
    )
    spans = base.mark_rule(strokeWidth=2).encode(x=alt.X("low:Q", scale=share), x2="high:Q")
    dots = base.mark_point(filled=True, size=42, opacity=1).encode(x=alt.X("agreement:Q", scale=share))
    title = ["Agreement of text and logit prediction", "dots: over all configurations, 95% Wilson; ticks: single configurations"]
    height = alt.Step(max(9, 16 if len(lanes) == 1 else 9), **{"for": "offset"}) if len(lanes) > 1 else alt.Step(18)
    return alt.layer(configurations, spans, dots).properties(width=420, height=height, title=alt.TitleParams(title))


def _lanes(runs: Sequence[dict[str, Any]]) -> list[str]:
    """Benchmarks in order; with too many of them the largest, and the others together."""
    records: dict[str, int] = {}
    for row in runs:
        records[row["benchmark"]] = records.get(row["benchmark"], 0) + row["both_signals"]
    if len(records) <= LANES:
        return sorted(records)
    return [*sorted(sorted(records, key=lambda name: (-records[name], name))[: LANES - 1]), OTHERS]


def _lane(row: Mapping[str, Any], lanes: Sequence[str]) -> str:
    return row["benchmark"] if row["benchmark"] in lanes else OTHERS


def _pooled(runs: Sequence[dict[str, Any]], lanes: Sequence[str]) -> list[dict[str, Any]]:
    """Counts of each model in each lane."""
    sums: dict[tuple[str, str], list[int]] = {}
    for row in runs:
        one = sums.setdefault((row["model"], _lane(row, lanes)), [0, 0, 0])
        for place, number in enumerate((row["agree"], row["both_signals"], 1)):
            one[place] += number
    found = []
    for (model, lane), (agree, both, configurations) in sums.items():
        low, high = wilson(agree, both)
        shown = {"agreement": agree / both, "low": float(low), "high": float(high)}
        found.append({"model": model, "lane": lane, "configurations": configurations, "both_signals": both} | shown)
    return found


def signals(tables: Mapping[str, Table]) -> Any:
    """Accuracy by logit prediction against accuracy by text prediction, a point per run."""
    rows = [row for row in tables["runs"].rows() if row["accuracy_logit"] is not None]
    lanes = _lanes(rows)
    line = alt.Chart(_values([{"x": 0, "y": 0}, {"x": 1, "y": 1}])).mark_line(color="#444", strokeDash=[3, 3]).encode(x="x:Q", y="y:Q")
    points = (
        alt.Chart(_values([row | {"lane": _lane(row, lanes)} for row in rows]))
        .mark_point(filled=True, size=30, opacity=0.55)
        .encode(
            x=alt.X("accuracy_text:Q", title="accuracy by text prediction", scale=alt.Scale(domain=[0, 1])),
            y=alt.Y("accuracy_logit:Q", title="accuracy by logit prediction", scale=alt.Scale(domain=[0, 1])),
            color=_colours(lanes),
            tooltip=["model:N", "settings:N", "benchmark:N", "judged:Q", "accuracy_text:Q", "accuracy_logit:Q"],
        )
    )
    return alt.layer(line, points).properties(width=320, height=320, title="Accuracy by one signal against the other")


def _colours(lanes: Sequence[str]) -> alt.Color:
    scale = alt.Scale(domain=list(lanes), range=list(COLOURS[: max(len(lanes), 1)]))
    return alt.Color("lane:N", title="benchmark", scale=scale, legend=alt.Legend(symbolOpacity=1))


def _values(rows: Sequence[dict[str, Any]]) -> alt.Data:
    return alt.Data(values=list(rows))  # type: ignore[no-untyped-call]
