"""Charts of the cost analysis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from analyses.cells import Cells
    from analyses.cost.directions import GroupPath
    from analyses.laws.cost import CostLaw

COLORS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#999999")


def law(cells: Cells, fitted: CostLaw, cost: npt.NDArray[np.float64]) -> Any:
    """FLOP of each cell against what the pooled law says."""
    predicted = fitted.predict(cells.parameters, cells.tokens)
    known = np.isfinite(predicted) & np.isfinite(cost) & (cost > 0)
    rows = [
        {
            "series": cells.text["series"][cell] or "none",
            "cell": cells.name(cell),
            "predicted": float(predicted[cell]),
            "cost": float(cost[cell]),
        }
        for cell in np.flatnonzero(known).tolist()
    ]
    low, high = (float(edge) for edge in (min(predicted[known].min(), cost[known].min()), max(predicted[known].max(), cost[known].max())))
    domain = [low / 1.3, high * 1.3]
    scale = alt.Scale(type="log", domain=domain)
    axis = alt.Axis(format=".0e", tickCount=5)
    points = (
        alt.Chart(values(rows))
        .mark_circle(opacity=0.6, size=24)
        .encode(
            x=alt.X("predicted:Q", title="kappa N^p R^q, FLOP per answer", scale=scale, axis=axis),
            y=alt.Y("cost:Q", title="cost of the cell, FLOP per answer", scale=scale, axis=axis),
            color=alt.Color("series:N", title="series", scale=alt.Scale(range=list(COLORS)), legend=alt.Legend(symbolOpacity=1)),
            tooltip=["cell:N", "cost:Q", "predicted:Q"],
        )
    )
    ends = values([{"x": edge, "y": edge} for edge in domain])
    equal = alt.Chart(ends).mark_line(color="#888", strokeDash=[4, 3]).encode(x=alt.X("x:Q", title=""), y=alt.Y("y:Q", title=""))
    title = f"Pooled cost law: p = {fitted.p:.2f}, q = {fitted.q:.2f}, R2 = {fitted.r2:.3f}"
    return alt.layer(equal, points).properties(width=330, height=300, title=title)


def growth(paths: Sequence[GroupPath], weights: Sequence[float]) -> Any:
    """Growth of N and R along the finite paths of each group; below the dashed line N grows faster."""
    rows: list[dict[str, Any]] = []
    for path in paths:
        for place, slopes in enumerate(path.predicted):
            rows.append(
                {"group": path.name, "family": path.family or "none", "weight": f"{weights[place]:g}", "N": slopes.N, "R": slopes.R}
            )
    high = max([0.1, *(max(row["N"], row["R"]) for row in rows)]) * 1.08
    low = min([0.0, *(min(row["N"], row["R"]) for row in rows)]) - 0.04
    scale = alt.Scale(domain=[low, high], nice=False)
    points = (
        alt.Chart(values(rows))
        .mark_point(filled=True, opacity=0.75, size=60)
        .encode(
            x=alt.X("N:Q", title="slope of log N on log budget", scale=scale),
            y=alt.Y("R:Q", title="slope of log R on log budget", scale=scale),
            color=alt.Color("family:N", title="family", scale=alt.Scale(range=list(COLORS))),
            shape=alt.Shape("weight:N", title="vision weight"),
            tooltip=["group:N", "weight:N", "N:Q", "R:Q"],
        )
    )
    ends = values([{"x": edge, "y": edge} for edge in (low, high)])
    equal = alt.Chart(ends).mark_line(color="#888", strokeDash=[4, 3]).encode(x=alt.X("x:Q", title=""), y=alt.Y("y:Q", title=""))
    return alt.layer(equal, points).properties(width=330, height=300, title="Growth along the finite allocation paths")


def values(rows: list[dict[str, Any]]) -> alt.Data:
    """Rows as data of a chart."""
    return alt.Data(values=rows)  # type: ignore[no-untyped-call]
