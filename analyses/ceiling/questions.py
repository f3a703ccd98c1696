"""Each question with its regime in every series, for those who want to look."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from analyses.ceiling.regimes import CEILING, REGIMES
from analyses.result import Column, Table

if TYPE_CHECKING:
    import numpy.typing as npt

    from analyses.ceiling.observations import Data
    from analyses.grouping import Factor

SHOWN = 10
ATTRIBUTES = {
    "suite": "suite of the benchmark",
    "task": "task of the question",
    "category": "category in the benchmark's own words",
    "domain": "visual domain",
    "skill": "skill that it asks for",
}


def questions_table(data: Data, regimes: npt.NDArray[np.int64], series: list[str]) -> Table:
    """One row per question; a column per series holds the regime, empty where the series did not answer."""
    trajectories, size = data.trajectories, len(data.questions.ids)
    grid = np.full((size, len(series)), -1, dtype=np.int64)
    grid[trajectories.question, trajectories.series] = regimes
    total = np.bincount(trajectories.question, weights=trajectories.accuracy, minlength=size)
    count = np.bincount(trajectories.question, minlength=size)
    first = np.full(size, -1, dtype=np.int64)
    first[trajectories.question[::-1]] = np.arange(len(trajectories))[::-1]
    words = np.array([*REGIMES, None], dtype=object)
    shown = count > 0
    data_columns: dict[str, Any] = {"benchmark": data.questions.benchmark[shown], "question_key": data.questions.key[shown]}
    data_columns |= {name: _label(trajectories.labels[name])[first[shown]] for name in ATTRIBUTES}
    data_columns["accuracy"] = total[shown] / count[shown]
    data_columns["ceiling_bound_in"] = (grid[shown] == CEILING).sum(axis=1)
    columns = [Column("benchmark", "benchmark"), Column("question_key", "key of the question in its source")]
    columns += [Column(name, meaning) for name, meaning in ATTRIBUTES.items()]
    columns += [
        Column("accuracy", "mean accuracy over the series", "share"),
        Column("ceiling_bound_in", "number of series in which it is ceiling_bound", "count"),
    ]
    for code, name in enumerate(series):
        column = name if name not in data_columns else f"series {name}"
        data_columns[column] = words[grid[shown, code]]
        columns.append(Column(column, f"regime in {name}; empty where it has no answer"))
    return Table.of("Questions: the regime of each question in every series", columns, data_columns, shown=SHOWN)


def _label(factor: Factor) -> npt.NDArray[np.object_]:
    return np.array(factor.labels, dtype=object)[factor.codes]
