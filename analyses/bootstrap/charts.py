"""Charts of the bootstrap: intervals per group, and densities of the differences of two laws (Figure 10)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt
import numpy as np
from scipy.stats import gaussian_kde

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from analyses.result import Table

COLORS = ("#0072b2", "#e69f00")
BOUND_COLORS = ("#0072b2", "#e69f00", "#c1272d")
FLOOR_COLOR = "#555555"
BOUNDS = ("never", "in some refits", "in 90% or more")
OFTEN = 0.9
POINTS = 200
AXES = {
    "alpha": ("alpha, exponent of N", "log"),
    "beta": ("beta, exponent of R", "log"),
    "gamma": ("gamma, exponent of N R", "log"),
    "e_inf": ("e_inf, error floor", "linear"),
}


def intervals(table: Table, by: Sequence[str]) -> alt.HConcatChart:
    """A row per group, a panel per exponent and for the floor; the colour says how often refits reach a bound."""
    rows = table.rows()
    several = len({row["weights"] for row in rows}) > 1
    names = [name for name in AXES if name in table.names]
    panels = [_panel(rows, by, name, several=several, labels=name == names[0]) for name in names]
    chart: alt.HConcatChart = alt.hconcat(*panels, title=table.title).resolve_scale(y="shared")
    return chart


def _panel(rows: list[dict[str, Any]], by: Sequence[str], name: str, *, several: bool, labels: bool) -> Any:
    title, scale = AXES[name]
    values = [
        {
            "group": _group(row, by, several=several),
            "value": row[name],
            "low": row[f"{name}_low"],
            "high": row[f"{name}_high"],
            "bound": _bound(row.get(f"{name}_at_bound") or 0.0),
            "share": row.get(f"{name}_at_bound"),
        }
        for row in rows
    ]
    base = alt.Chart(_data(values)).encode(
        y=alt.Y(
            "group:N",
            title=None,
            sort=list(dict.fromkeys(value["group"] for value in values)),
            axis=alt.Axis(labelLimit=260, labels=labels, ticks=labels),
        ),
        color=alt.Color("bound:N", title="exponent at a bound", scale=alt.Scale(domain=list(BOUNDS), range=list(BOUND_COLORS)))
        if f"{name}_at_bound" in rows[0]
        else alt.value(FLOOR_COLOR),
        tooltip=["group:N", "value:Q", "low:Q", "high:Q", "share:Q"],
    )
    x = alt.Scale(type="log", nice=False) if scale == "log" else alt.Scale(zero=True)
    panel: Any = alt.layer(
        base.mark_rule(strokeWidth=3, opacity=0.6).encode(x=alt.X("low:Q", title=title, scale=x), x2="high:Q"),
        base.mark_point(filled=True, size=55, opacity=1).encode(x=alt.X("value:Q", title=title, scale=x)),
    ).properties(width=230, height=alt.Step(18))
    return panel


def _data(rows: list[dict[str, Any]]) -> alt.Data:
    return alt.Data(values=rows)  # type: ignore[no-untyped-call]


def _group(row: Mapping[str, Any], by: Sequence[str], *, several: bool) -> str:
    name = " x ".join("none" if row[one] is None else str(row[one]) for one in by) or "all cells"
    return f"{name}, {row['weights']}" if several else name


def _bound(share: float) -> str:
    return BOUNDS[0] if share == 0 else BOUNDS[1] if share < OFTEN else BOUNDS[2]


def density(drawn: Mapping[str, tuple[float, npt.NDArray[np.float64]]], title: str, laws: tuple[str, ...]) -> Any:
    """Bootstrap density of a difference, second law minus first, a colour per objective; a line marks the cells as they are."""
    values = [row for objective, (_, replicates) in drawn.items() for row in _curve(objective, replicates)]
    points = [{"objective": objective, "x": float(point)} for objective, (point, _) in drawn.items() if np.isfinite(point)]
    color = alt.Color("objective:N", title="objective", scale=alt.Scale(domain=["unweighted", "precision"], range=list(COLORS)))
    label = f"{title}, {laws[1]} minus {laws[0]}"
    x = alt.X("x:Q", title=label, scale=alt.Scale(zero=False))
    chart: Any = alt.layer(
        alt.Chart(_data(values))
        .mark_area(opacity=0.35, line=True)
        .encode(x=x, y=alt.Y("density:Q", title="bootstrap density", stack=None), color=color),
        alt.Chart(_data(points)).mark_rule(strokeDash=[5, 3], strokeWidth=2).encode(x=x, color=color),
    ).properties(width=320, height=220, title=f"Bootstrap: {label}")
    return chart


def _curve(objective: str, replicates: npt.NDArray[np.float64]) -> list[dict[str, Any]]:
    """Gaussian kernel density (Scott's rule) over the range of the replicates; empty where they do not vary."""
    known = replicates[np.isfinite(replicates)]
    if len(known) < 2 or np.ptp(known) <= 1e-9 * np.abs(known).max():
        return []
    kernel = gaussian_kde(known)
    margin = 3 * float(np.sqrt(kernel.covariance[0, 0]))
    x = np.linspace(known.min() - margin, known.max() + margin, POINTS)
    return [{"objective": objective, "x": float(one), "density": float(y)} for one, y in zip(x, kernel(x), strict=True)]
