"""What sync derives: totals of runs, renewed run by run, and from them the rows of `cells`, so that they are read and not computed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tracker.lake.docs import CELL_ROWS, RUN_TOTALS, derived_docs, sql
from tracker.lake.session import define_tables, engine

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

    import duckdb

    from tracker.lake.manifest import TableDoc

MEMORY = "300MB"
ARROW_TYPES = {"BIGINT": pa.int64(), "DOUBLE": pa.float64(), "VARCHAR": pa.string()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Derived:
    """The derived tables."""

    run_totals: pa.Table
    cell_rows: pa.Table


def derive(
    previous: Path | None,
    unchanged: Collection[int],
    changed: Collection[int],
    docs: Mapping[str, TableDoc],
    files: Mapping[str, list[str]],
) -> Derived:
    """Totals of every run (those of unchanged runs as they were, those of changed runs from their records), and the cells."""
    connection = engine(MEMORY)
    try:
        define_tables(connection, {name: doc for name, doc in docs.items() if name not in derived_docs()}, files)
        totals = pa.concat_tables([_kept(previous, unchanged), _compute(connection, changed)]).sort_by("run_id")
        connection.register(RUN_TOTALS, totals)
        cells = connection.sql(f"SELECT * FROM ({sql('cells')}) ORDER BY run_id").to_arrow_table()
        return Derived(run_totals=totals, cell_rows=cells.cast(_schema(CELL_ROWS)))
    finally:
        connection.close()


def _kept(previous: Path | None, unchanged: Collection[int]) -> pa.Table:
    if previous is None:
        return _schema(RUN_TOTALS).empty_table()
    totals = pq.read_table(previous)
    return totals.filter(pc.is_in(totals["run_id"], pa.array(unchanged, pa.int64())))


def _compute(connection: duckdb.DuckDBPyConnection, run_ids: Collection[int]) -> pa.Table:
    if not run_ids:
        return _schema(RUN_TOTALS).empty_table()
    connection.execute("CREATE TEMP TABLE changed AS SELECT unnest($runs) AS run_id", {"runs": list(run_ids)})
    narrowed = "SELECT * FROM main.records WHERE run_id IN (SELECT run_id FROM changed)"
    return connection.sql(f"WITH records AS ({narrowed}) SELECT * FROM ({sql(RUN_TOTALS)})").to_arrow_table().cast(_schema(RUN_TOTALS))


def _schema(table: str) -> pa.Schema:
    return pa.schema([(column.name, ARROW_TYPES[column.type]) for column in derived_docs()[table].columns])
