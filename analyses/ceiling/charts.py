"""Charts of the ceiling analysis. Points are counted in a grid first, so that a large study draws as fast as a small one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt
import numpy as np

from analyses.ceiling.persistence import quartile_means
from analyses.ceiling.regimes import REGIMES
from analyses.grouping import mean_by, spread_by

if TYPE_CHECKING:
    import numpy.typing as npt

    from analyses.ceiling.matched import Matched
    from analyses.ceiling.observations import Data
    from analyses.result import Table

BINS = 32
COLORS = ("#0072b2", "#e69f00", "#c1272d")
LARGEST_FACETS = 12
ANSWERED = {"right": "#b9d9f0", "in part": "#e3e3b4", "wrong": "#f5c9a8"}
LONGEST_ANSWER, SHOWN_ANSWERS = 8, 3
TITLES = {"easy": "easy", "scaling_bound": "scaling bound", "ceiling_bound": "ceiling bound"}


def probability(data: Data, matched: Matched, regimes: npt.NDArray[np.int64]) -> alt.Chart:
    """Mean probability of the correct option against its variability over configurations (Figure 4, left)."""
    del matched
    size = len(data.trajectories)
    spread = spread_by(data.observations.trajectory, data.observations.p_gold, size)
    mean = mean_by(data.observations.trajectory, data.observations.p_gold, size)
    return _density(
        spread,
        mean,
        regimes,
        x="standard deviation of p_gold",
        y="mean p_gold",
        title="Probability of the correct option",
        x_range=(0, 0.5),
        y_range=(0, 1),
    )


def gain(data: Data, matched: Matched, regimes: npt.NDArray[np.int64]) -> alt.Chart:
    """Gain in probability against the probability at low compute (Figure 4, middle)."""
    del data
    p = np.where(matched.keep[:, None], matched.levels["p"], np.nan)
    return _density(
        p[:, 0],
        p[:, 3] - p[:, 0],
        regimes,
        x="p_gold, lowest compute quartile",
        y="gain to the highest quartile",
        title="Gain with compute",
        x_range=(0, 1),
        y_range=(-1, 1),
    )


def quartiles(data: Data, matched: Matched, regimes: npt.NDArray[np.int64]) -> alt.FacetChart:
    """Accuracy by compute quartile, a panel per domain and a line per skill; per benchmark and task where there are no labels (Figure 4, right)."""
    del regimes
    labels = data.trajectories.labels
    panel = "domain" if labels["domain"].labels not in ([None], []) else "benchmark"
    line = "skill" if labels["skill"].labels not in ([None], []) else "task"
    rows = []
    for panel_code, panel_name in list(enumerate(labels[panel].labels))[:LARGEST_FACETS]:
        for line_code, line_name in enumerate(labels[line].labels):
            members = matched.keep & (labels[panel].codes == panel_code) & (labels[line].codes == line_code)
            if members.any():
                group = {panel: panel_name or "none", line: line_name or "none"}
                rows += [_finite(group | level) for level in quartile_means(matched, members)]
    base = alt.Chart(_values(rows)).mark_line(point=True)
    encoded = base.encode(
        x=alt.X("quartile:O", title="compute quartile", axis=alt.Axis(labelAngle=0)),
        y=alt.Y("accuracy:Q", title="mean accuracy", scale=alt.Scale(domain=[0, 1])),
        color=alt.Color(f"{line}:N", title=line),
        tooltip=[f"{panel}:N", f"{line}:N", "quartile:O", "accuracy:Q", "trajectories:Q"],
    )
    faceted: alt.FacetChart = encoded.properties(width=150, height=130).facet(
        alt.Facet(f"{panel}:N", title=panel), columns=3, title=f"Accuracy by compute quartile, {panel} and {line}"
    )
    return faceted


def shares(data: Data, matched: Matched, regimes: npt.NDArray[np.int64]) -> alt.Chart:
    """Regime shares by suite, series and task, as far as there are such labels."""
    del matched
    rows: list[dict[str, Any]] = []
    for by in ("suite", "series", "task"):
        factor = data.trajectories.labels[by]
        if factor.labels == [None]:
            continue
        for code, value in enumerate(factor.labels):
            members = regimes[factor.codes == code]
            rows += [
                {
                    "group": f"{value or 'none'} ({by})",
                    "order": len(rows),
                    "regime": TITLES[name],
                    "rank": rank,
                    "share": float((members == rank).mean()),
                    "trajectories": len(members),
                }
                for rank, name in enumerate(REGIMES)
            ]
    chart: alt.Chart = (
        alt.Chart(_values(rows), title="Regime shares")
        .mark_bar()
        .encode(
            x=alt.X("share:Q", title="share of trajectories", stack="zero", scale=alt.Scale(domain=[0, 1])),
            y=alt.Y("group:N", title="suite, series, task", sort=alt.EncodingSortField("order", op="min")),
            color=_regime_color(),
            order=alt.Order("rank:Q"),
            tooltip=["group:N", "regime:N", "share:Q", "trajectories:Q"],
        )
        .properties(width=420)
    )
    return chart


def answers(grid: Table) -> Any:
    """What each model answered at each input size, a panel per question (Figures 14 and 15)."""
    cells: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in grid.rows():
        question = f"{row['benchmark']}/{row['question_key']}" + (f", right: {row['gold']}" if row["gold"] else "")
        size = f"{row['input_size']:g}" if row["input_size"] is not None else row["input_mode"] or "unknown"
        cells.setdefault((question, row["model"], size), []).append(row)
    rows = [
        {
            "question": question,
            "model": model,
            "size": size,
            "credit": (credit := float(np.mean([row["credit"] for row in members]))),
            "answered": "right" if credit >= 1 else "wrong" if credit <= 0 else "in part",
            "answer": " ".join((row["prediction"] or "-")[:LONGEST_ANSWER] for row in members[:SHOWN_ANSWERS]),
        }
        for (question, model, size), members in cells.items()
    ]
    sizes = sorted({row["size"] for row in rows}, key=lambda size: (not size.isdecimal(), int(size) if size.isdecimal() else 0, size))
    seen = {row["answered"] for row in rows}
    base = alt.Chart().encode(
        x=alt.X("size:N", sort=sizes, title="input size (px)", axis=alt.Axis(labelAngle=0)),
        y=alt.Y("model:N", sort=list(dict.fromkeys(row["model"] for row in rows)), title="model"),
        tooltip=["question:N", "model:N", "size:N", "answer:N", "credit:Q"],
    )
    squares = base.mark_rect(stroke="white").encode(
        color=alt.Color(
            "answered:N",
            title="answer",
            scale=alt.Scale(
                domain=[name for name in ANSWERED if name in seen], range=[ANSWERED[name] for name in ANSWERED if name in seen]
            ),
        )
    )
    letters = base.mark_text(fontSize=10).encode(text="answer:N")
    layered = alt.layer(squares, letters).properties(width=alt.Step(44), height=alt.Step(16))
    facet = alt.Facet("question:N", title=None, sort=list(dict.fromkeys(row["question"] for row in rows)))
    return layered.facet(facet, columns=2, data=_values(rows), title="Answers over models and input sizes")


def _density(
    x_values: npt.NDArray[np.float64],
    y_values: npt.NDArray[np.float64],
    regimes: npt.NDArray[np.int64],
    *,
    x: str,
    y: str,
    title: str,
    x_range: tuple[float, float],
    y_range: tuple[float, float],
) -> alt.Chart:
    """Trajectories counted on a grid, one circle per regime and square."""
    rows = []
    known = ~(np.isnan(x_values) | np.isnan(y_values))
    for code, name in enumerate(REGIMES):
        members = known & (regimes == code)
        counts, x_edges, y_edges = np.histogram2d(x_values[members], y_values[members], bins=BINS, range=(x_range, y_range))
        for column, row in np.argwhere(counts > 0).tolist():
            rows.append(
                {
                    "x": float((x_edges[column] + x_edges[column + 1]) / 2),
                    "y": float((y_edges[row] + y_edges[row + 1]) / 2),
                    "regime": TITLES[name],
                    "trajectories": int(counts[column, row]),
                }
            )
    chart: alt.Chart = (
        alt.Chart(_values(rows), title=title)
        .mark_circle(opacity=0.55)
        .encode(
            x=alt.X("x:Q", title=x, scale=alt.Scale(domain=list(x_range)), axis=alt.Axis(tickCount=5)),
            y=alt.Y("y:Q", title=y, scale=alt.Scale(domain=list(y_range)), axis=alt.Axis(tickCount=5)),
            size=alt.Size("trajectories:Q", title="trajectories", scale=alt.Scale(range=[8, 220])),
            color=_regime_color(),
            tooltip=["regime:N", "trajectories:Q", "x:Q", "y:Q"],
        )
        .properties(width=300, height=260)
    )
    return chart


def _regime_color() -> alt.Color:
    return alt.Color("regime:N", title="regime", scale=alt.Scale(domain=list(TITLES.values()), range=list(COLORS)))


def _values(rows: list[dict[str, Any]]) -> alt.Data:
    return alt.Data(values=rows)  # type: ignore[no-untyped-call]


def _finite(row: dict[str, Any]) -> dict[str, Any]:
    return {name: None if isinstance(value, float) and not np.isfinite(value) else value for name, value in row.items()}
