"""What sync derives: totals and last metric points of runs, renewed run by run, and the rows of `cells`: read, not computed anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tracker.lake.docs import CELL_ROWS, LAST_POINTS, PER_RUN, RUN_TOTALS, derived_docs, sql
from tracker.lake.session import define_tables, engine

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

    import duckdb

    from tracker.lake.manifest import TableDoc

MEMORY = "300MB"
ARROW_TYPES = {
    "BIGINT": pa.int64(),
    "DOUBLE": pa.float64(),
    "VARCHAR": pa.string(),
    "TIMESTAMP WITH TIME ZONE": pa.timestamp("us", tz="UTC"),
}
ORDER = {RUN_TOTALS: "run_id", LAST_POINTS: "run_id, metric", CELL_ROWS: "run_id"}


def derive(
    previous: Mapping[str, Path],
    unchanged: Collection[int],
    changed: Collection[int],
    docs: Mapping[str, TableDoc],
    files: Mapping[str, list[str]],
) -> dict[str, pa.Table]:
    """The derived tables: rows of unchanged runs as they were (in the files of `previous`), those of changed runs from their records and points."""
    connection = engine(MEMORY)
    try:
        define_tables(connection, {name: doc for name, doc in docs.items() if name not in derived_docs()}, files)
        connection.execute("CREATE TEMP TABLE changed AS SELECT unnest($runs::BIGINT[]) AS run_id", {"runs": list(changed)})
        made: dict[str, pa.Table] = {}
        for name, source in PER_RUN.items():
            kept = _kept(name, previous.get(name), unchanged)
            fresh = _compute(connection, name, source) if changed and files.get(source) else _schema(name).empty_table()
            made[name] = pa.concat_tables([kept, fresh]).sort_by([(column, "ascending") for column in ORDER[name].split(", ")])
        connection.register(RUN_TOTALS, made[RUN_TOTALS])
        cells = connection.sql(f"SELECT * FROM ({sql('cells')}) ORDER BY {ORDER[CELL_ROWS]}").to_arrow_table()
        return made | {CELL_ROWS: cells.cast(_schema(CELL_ROWS))}
    finally:
        connection.close()


def _kept(name: str, previous: Path | None, unchanged: Collection[int]) -> pa.Table:
    if previous is None:
        return _schema(name).empty_table()
    rows = pq.read_table(previous)
    return rows.filter(pc.is_in(rows["run_id"], pa.array(unchanged, pa.int64()))).cast(_schema(name))


def _compute(connection: duckdb.DuckDBPyConnection, name: str, source: str) -> pa.Table:
    narrowed = f"SELECT * FROM main.{source} WHERE run_id IN (SELECT run_id FROM changed)"
    return connection.sql(f"WITH {source} AS ({narrowed}) SELECT * FROM ({sql(name)})").to_arrow_table().cast(_schema(name))


def _schema(table: str) -> pa.Schema:
    return pa.schema([(column.name, ARROW_TYPES[column.type]) for column in derived_docs()[table].columns])
