"""Planted studies for tests of the law, and its cells by pandas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from analyses.law import Parameters, run
from tests.analyses.planted import PlantedLaw, PlantedSession, planted_cells, session

if TYPE_CHECKING:
    import pandas as pd

    from analyses.result import Result

LAWS = {
    ("Alpha1", "Charts"): PlantedLaw(e=0.1, a=0.1, alpha=0.4, b=0.08, beta=0.6),
    ("Alpha1", "Maps"): PlantedLaw(e=0.2, a=0.05, alpha=0.8, b=0.15, beta=0.3),
    ("Beta2", "Charts"): PlantedLaw(e=0.05, a=0.2, alpha=0.25, b=0.03, beta=0.9),
    ("Beta2", "Maps"): PlantedLaw(e=0.15, a=0.12, alpha=0.5, b=0.05, beta=0.45),
}
PARAMETERS = ("e_inf", "A_n", "alpha", "B_r", "beta", "A", "B")


def noisy(**options: Any) -> pd.DataFrame:
    return planted_cells(LAWS, draws="answers", questions=200, spread=0.8, seed=5, **options)


def answer(rows: pd.DataFrame | PlantedSession, **options: Any) -> Result:
    return run(rows if isinstance(rows, PlantedSession) else session(rows), Parameters(**options))


def group(result: Result, series: str, suite: str, table: str = "fits") -> dict[str, Any]:
    return next(row for row in result.tables[table].rows() if (row["series"], row["suite"]) == (series, suite))


def cell_means(rows: pd.DataFrame) -> pd.DataFrame:
    """Cells by pandas: N in billions, R, error."""
    return (
        rows.groupby(["series", "suite", "model", "benchmark", "input_size"])
        .agg(
            N=("parameters", lambda n: n.iloc[0] / 1e9),
            R=("visual_tokens", "mean"),
            error=("credit", lambda credit: 1 - credit.mean()),
            n=("credit", "size"),
        )
        .reset_index()
    )


def by_group(cells: pd.DataFrame) -> list[tuple[tuple[str, str], pd.DataFrame]]:
    return [(key, cells[(cells["series"] == key[0]) & (cells["suite"] == key[1])]) for key in LAWS]


def changed(rows: pd.DataFrame, where: Any, **values: Any) -> pd.DataFrame:
    copy = rows.copy()
    for name, value in values.items():
        copy[name] = copy[name].mask(where, value)
    return copy
