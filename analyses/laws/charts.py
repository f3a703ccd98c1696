"""The chart of one fit. Altair is imported here and nowhere else in the laws."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt
import numpy as np

if TYPE_CHECKING:
    from analyses.laws.fit import Fit


def predicted_observed(fit: Fit) -> Any:
    """Predicted against observed error, a dot per cell with weight, coloured by N."""
    frame = fit.to_frame()
    rows = frame[frame["weight"] > 0].to_dict("records")
    values = [value for row in rows for value in (row["error"], row["predicted"]) if np.isfinite(value)] or [0.0, 1.0]
    span = [float(np.floor(min(0.0, *values) * 20) / 20), float(np.ceil(max(values) * 20) / 20)]
    line = _data([{"error": value, "predicted": value} for value in span]).mark_line(color="#888", strokeDash=[4, 3])
    dots = _data(rows).mark_circle(size=45, opacity=0.8)
    x = alt.X("error:Q", title="observed error", scale=alt.Scale(domain=span))
    y = alt.Y("predicted:Q", title="predicted error", scale=alt.Scale(domain=span))
    color = alt.Color("N:Q", title="N", scale=alt.Scale(type="log", scheme="viridis"))
    chart = line.encode(x=x, y=y) + dots.encode(x=x, y=y, color=color, tooltip=["N:Q", "R:Q", "error:Q", "predicted:Q", "residual:Q"])
    return chart.properties(width=320, height=300, title=f"{fit.law} law: {fit.n} cells, R2 {fit.r2:.3f}")


def _data(rows: Any) -> alt.Chart:
    return alt.Chart(alt.Data(values=rows))  # type: ignore[no-untyped-call]
