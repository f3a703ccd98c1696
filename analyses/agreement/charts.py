"""Charts of the agreement of signals: agreement by model and benchmark, and accuracy by one signal against the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from analyses.result import Table

COLOURS = ("#0072b2", "#e69f00", "#009e73", "#c1272d", "#9467bd", "#56b4e9", "#8c6d31", "#666666")


def models(tables: Mapping[str, Table]) -> Any:
    """Agreement of each run, a line per model and a colour per benchmark."""
    rows = [row for row in tables["runs"].rows() if row["agreement"] is not None]
    return (
        alt.Chart(_values(rows), title="Agreement of text and logit prediction, a point per run")
        .mark_point(filled=True, size=38, opacity=0.65)
        .encode(
            x=alt.X("agreement:Q", title="share of records that agree", scale=alt.Scale(zero=False)),
            y=alt.Y("model:N", sort=list(dict.fromkeys(row["model"] for row in rows)), title=None),
            color=_benchmarks(),
            tooltip=["model:N", "settings:N", "benchmark:N", "both_signals:Q", "agreement:Q"],
        )
        .properties(width=420, height=alt.Step(16))
    )


def signals(tables: Mapping[str, Table]) -> Any:
    """Accuracy by logit prediction against accuracy by text prediction, a point per run."""
    rows = [row for row in tables["runs"].rows() if row["accuracy_logit"] is not None]
    line = alt.Chart(_values([{"x": 0, "y": 0}, {"x": 1, "y": 1}])).mark_line(color="#444", strokeDash=[3, 3]).encode(x="x:Q", y="y:Q")
    points = (
        alt.Chart(_values(rows))
        .mark_point(filled=True, size=38, opacity=0.65)
        .encode(
            x=alt.X("accuracy_text:Q", title="accuracy by text prediction", scale=alt.Scale(domain=[0, 1])),
            y=alt.Y("accuracy_logit:Q", title="accuracy by logit prediction", scale=alt.Scale(domain=[0, 1])),
            color=_benchmarks(),
            tooltip=["model:N", "settings:N", "benchmark:N", "accuracy_text:Q", "accuracy_logit:Q"],
        )
    )
    return alt.layer(line, points).properties(width=320, height=320, title="Accuracy by one signal against the other")


def _benchmarks() -> alt.Color:
    return alt.Color("benchmark:N", title="benchmark", scale=alt.Scale(range=list(COLOURS)))


def _values(rows: Sequence[dict[str, Any]]) -> alt.Data:
    return alt.Data(values=list(rows))  # type: ignore[no-untyped-call]
