"""Totals of runs: what `cells` adds up, kept in the lake so that it is read and not computed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tracker.lake.docs import sql
from tracker.lake.session import define_tables, engine

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

    from tracker.lake.manifest import TableDoc

RUN_TOTALS = "run_totals"
SCHEMA = pa.schema(
    [
        ("run_id", pa.int64()),
        ("n", pa.int64()),
        ("credits", pa.float64()),
        ("visual_tokens", pa.float64()),
        ("prompt_tokens", pa.float64()),
        ("latency_s", pa.float64()),
    ],
)
MEMORY = "300MB"


def renew(
    previous: Path | None, unchanged: Collection[int], changed: Collection[int], docs: Mapping[str, TableDoc], records: list[str]
) -> pa.Table:
    """Totals of every run: those of unchanged runs as they were, those of changed runs from their records."""
    kept = SCHEMA.empty_table()
    if previous is not None:
        kept = pq.read_table(previous)
        kept = kept.filter(pc.is_in(kept["run_id"], pa.array(unchanged, pa.int64())))
    return pa.concat_tables([kept, _compute(changed, docs, records)]).sort_by("run_id")


def _compute(run_ids: Collection[int], docs: Mapping[str, TableDoc], records: list[str]) -> pa.Table:
    if not run_ids or not records:
        return SCHEMA.empty_table()
    connection = engine(MEMORY)
    try:
        define_tables(connection, {"records": docs["records"]}, {"records": records})
        connection.execute("CREATE TEMP TABLE changed AS SELECT unnest($runs) AS run_id", {"runs": list(run_ids)})
        narrowed = "SELECT * FROM main.records WHERE run_id IN (SELECT run_id FROM changed)"
        totals = connection.sql(f"WITH records AS ({narrowed}) SELECT * FROM ({sql(RUN_TOTALS)})").to_arrow_table()
        return totals.select(SCHEMA.names).cast(SCHEMA)
    finally:
        connection.close()
