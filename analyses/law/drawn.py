"""What the charts of the law are drawn from, and what they share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import altair as alt
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analyses.cells import CellStudy
    from analyses.law.fits import GroupFits, Points
    from analyses.result import Table

COLORS = ("#e69f00", "#0072b2", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#882255", "#999933")


MOST_DOTS = 4000
"""Dots that a chart draws at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """What the charts are drawn from."""

    study: CellStudy
    points: Points
    fits: GroupFits
    tables: dict[str, Table]
    moments: bool = False
    """Whether the visual term is a mean over answers: then no curve at one R can be drawn."""

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Cells of fitted groups."""
        cells, fits = self.study.cells, self.fits
        groups = [named(fits, group) for group in range(len(fits.groups))]
        return [
            {
                "group": groups[int(fits.groups.code[cell])],
                "family": str(cells.text["family"][cell] or "none"),
                "series": str(cells.text["series"][cell] or "none"),
                "model": str(cells.text["model"][cell]),
                "N": float(cells.parameters[cell]),
                "R": float(self.points.axes["R"][cell] * self.points.reference["R"]),
                "observed": float(cells.error[cell]),
                "predicted": float(fits.predicted[cell]),
                "residual": float(fits.residual[cell]),
            }
            for cell in np.flatnonzero(fits.used).tolist()
        ]


def named(fits: GroupFits, group: int) -> str:
    """How charts call a group."""
    return fits.groups.name(group) or "all cells"


def diagonal(span: Sequence[float]) -> Any:
    """The line of equal errors over a span."""
    line = data_of([{"observed": value, "predicted": value} for value in span]).mark_line(color="#888", strokeDash=[4, 3])
    scale = alt.Scale(domain=list(span), nice=False, zero=False)
    return line.encode(x=alt.X("observed:Q", scale=scale), y=alt.Y("predicted:Q", scale=scale))


def span_of(rows: Sequence[dict[str, Any]]) -> list[float]:
    """Round numbers around all observed and predicted errors."""
    values = [value for row in rows for value in (row["observed"], row["predicted"])]
    low, high = float(np.floor(min(values) * 20) / 20), float(np.ceil(max(values) * 20) / 20)
    return [low, max(high, low + 0.05)]


def thinned(rows: Sequence[dict[str, Any]]) -> tuple[Sequence[dict[str, Any]], str]:
    """Not more rows than a chart can show, and what that leaves out."""
    step = -(-len(rows) // MOST_DOTS)
    return (rows, "") if step <= 1 else (rows[::step], f"every {step}th of {len(rows):,} cells")


def color_of(name: str, rows: Sequence[dict[str, Any]]) -> alt.Color:
    """A colour for each value of a label, the same in every chart of these rows."""
    domain = sorted({row[name] for row in rows})
    return alt.Color(f"{name}:N", title=name, scale=alt.Scale(domain=domain, range=[COLORS[i % len(COLORS)] for i in range(len(domain))]))


def tips() -> list[str]:
    """What a dot says when it is pointed at."""
    return ["group:N", "model:N", "N:Q", "R:Q", "observed:Q", "predicted:Q"]


def data_of(rows: Sequence[dict[str, Any]]) -> alt.Chart:
    """A chart of rows."""
    return alt.Chart(alt.Data(values=list(rows)))  # type: ignore[no-untyped-call]
