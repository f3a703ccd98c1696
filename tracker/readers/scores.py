"""Further scores of records: numeric columns that have no other meaning, and what a table calls scores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa

from tracker.batch import RECORD_SCORES
from tracker.readers.columns import pick
from tracker.readers.values import NOTHING, is_number, number, truth

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracker.readers.rows import Rows

SETTING_NAMES = frozenset({"seed", "temperature", "top_p", "top_k", "batch_size", "device", "num_gpus", "world_size", "rank"})
"""Numbers that belong to a run, never to a record."""


def is_score(name: str, told: Sequence[Any]) -> bool:
    """Whether a further column holds numbers of records."""
    if name in SETTING_NAMES or name.endswith(("_seed", "_id")) or name.startswith(("settings.", "tags.", "_")):
        return False
    some = [value for value in told if value is not None]
    return bool(some) and all(isinstance(value, float | int) or is_number(value) or truth(value) is not None for value in some)


def further_scores(rows: Rows, columns: Sequence[str], members: list[int]) -> pa.Table | None:
    """Scores of one run's rows: the columns named, columns `scores.NAME`, and a column `scores` of objects."""
    told = {name: pick(rows.columns[name], members) for name in columns}
    told |= {name.removeprefix("scores."): pick(column, members) for name, column in rows.columns.items() if name.startswith("scores.")}
    if "scores" in rows.columns:
        objects = [_object(value) for value in pick(rows.columns["scores"], members)]
        told |= {name: [one.get(name) for one in objects] for name in dict.fromkeys(name for one in objects for name in one)}
    parts = [part for scorer, values in told.items() if len(part := _part(scorer, values))]
    return pa.concat_tables(parts) if parts else None


def _part(scorer: str, told: Sequence[Any]) -> pa.Table:
    found = [(row, _number(value)) for row, value in enumerate(told) if value is not None]
    kept = [(row, one) for row, one in found if one != NOTHING]
    return pa.table(
        [
            pa.array([row for row, _ in kept], pa.int64()),
            pa.array([scorer] * len(kept), pa.string()),
            pa.array([one.value for _, one in kept], pa.float64()),
            pa.array([one.special for _, one in kept], pa.string()),
        ],
        schema=RECORD_SCORES,
    )


def _number(value: Any) -> Any:
    found = number(value)
    return number(truth(value)) if found == NOTHING else found


def _object(value: Any) -> dict[str, Any]:
    if isinstance(value, str):
        try:
            value = orjson.loads(value)
        except ValueError:
            return {}
    if isinstance(value, list) and all(isinstance(pair, tuple) and len(pair) == 2 for pair in value):  # a map of Parquet
        value = {str(name): one for name, one in value}
    return value if isinstance(value, dict) else {}
