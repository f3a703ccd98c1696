"""Stored trajectories: recompute the dirty slices over the lake's own files and put them into the database."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import sqlalchemy as sa

from tracker.database import bulk
from tracker.lake.session import define_tables, define_views, engine, trajectories_sql
from tracker.schema import Configuration, DirtySlice, Model, Question, Run, Trajectory

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from tracker.database import Database
    from tracker.lake.manifest import TableDoc

CHUNK_RECORDS = 1_000_000
"""Records folded at a time; bounds memory."""

MEMORY = "400MB"


class Slice(NamedTuple):
    """A series on a benchmark."""

    series_id: int
    benchmark_id: int


class RunInput(NamedTuple):
    """A run as the recomputation saw it."""

    run_id: int
    version: int
    current: bool
    n_records: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DirtySlices:
    """What one snapshot says must be recomputed."""

    ids: dict[Slice, frozenset[int]] = field(default_factory=dict)
    """slice -> ids of its dirty rows."""
    inputs: dict[Slice, frozenset[RunInput]] = field(default_factory=dict)
    """slice -> the runs that can enter it."""

    def __bool__(self) -> bool:
        """Whether anything must be recomputed."""
        return bool(self.ids)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """What storing did: the data version it was based on, and the whole table afterwards."""

    base_version: int
    slices: int
    table: pa.Table


def dirty_slices(connection: sa.Connection) -> DirtySlices:
    """Read what must be recomputed, and the runs it depends on."""
    ids: dict[Slice, set[int]] = {}
    for row in connection.execute(sa.select(DirtySlice.id, DirtySlice.series_id, DirtySlice.benchmark_id)):
        ids.setdefault(Slice(row.series_id, row.benchmark_id), set()).add(row.id)
    return DirtySlices(ids={key: frozenset(value) for key, value in ids.items()}, inputs=_inputs(connection, ids.keys()))


def recompute(dirty: DirtySlices, docs: Mapping[str, TableDoc], files: Mapping[str, list[str]]) -> dict[Slice, pa.Table]:
    """Rows of `trajectories` for every dirty slice that has any, from the files of the snapshot."""
    connection = engine(MEMORY)
    try:
        define_tables(connection, docs, files)
        define_views(connection)
        found: dict[Slice, pa.Table] = {}
        for chunk in _chunks(dirty):
            found |= _fold(connection, chunk)
        return found
    finally:
        connection.close()


def store(db: Database, dirty: DirtySlices, rows: Mapping[Slice, pa.Table]) -> Stored:
    """Replace the trajectories of the slices that nobody has touched since they were read; the others stay dirty."""
    with db.write() as transaction:
        connection = transaction.connection
        base = db.store(connection).data_version
        now = dirty_slices(connection)
        clean = [
            key
            for key, ids in dirty.ids.items()
            if now.ids.get(key) and now.ids[key] <= ids and now.inputs.get(key) == dirty.inputs.get(key)
        ]
        if clean:
            _delete(connection, clean)
            tables = [rows[key] for key in clean if key in rows]
            if tables:
                bulk.insert(connection, "trajectories", pa.concat_tables(tables))
            _forget(connection, [row_id for key in clean for row_id in dirty.ids[key]])
            transaction.changed()
        return Stored(base_version=base, slices=len(clean), table=bulk.read_table(connection, "trajectories"))


def _inputs(connection: sa.Connection, slices: Collection[Slice]) -> dict[Slice, frozenset[RunInput]]:
    if not slices:
        return {}
    query = (
        sa.select(Run.id, Run.version, Run.current, Run.n_records, Model.series_id, Run.benchmark_id)
        .join(Configuration, Run.configuration_id == Configuration.id)
        .join(Model, Configuration.model_id == Model.id)
    )
    wanted: dict[Slice, set[RunInput]] = {key: set() for key in slices}
    for row in connection.execute(query):
        members = wanted.get(Slice(row.series_id, row.benchmark_id))
        if members is not None:
            members.add(RunInput(row.id, row.version, row.current, row.n_records))
    return {key: frozenset(members) for key, members in wanted.items()}


def _chunks(dirty: DirtySlices) -> Iterator[list[Slice]]:
    """Slices in groups of bounded size, those of one benchmark together."""
    chunk: list[Slice] = []
    records = 0
    for key in sorted(dirty.ids, key=lambda key: (key.benchmark_id, key.series_id)):
        size = sum(run.n_records for run in dirty.inputs.get(key, ()) if run.current)
        if chunk and records + size > CHUNK_RECORDS:
            yield chunk
            chunk, records = [], 0
        chunk.append(key)
        records += size
    if chunk:
        yield chunk


def _fold(connection: Any, chunk: list[Slice]) -> dict[Slice, pa.Table]:
    connection.execute("CREATE OR REPLACE TEMP TABLE dirty (series_id BIGINT, benchmark_id BIGINT)")
    connection.execute(
        "INSERT INTO dirty SELECT unnest($series), unnest($benchmarks)",
        {"series": [k.series_id for k in chunk], "benchmarks": [k.benchmark_id for k in chunk]},
    )
    runs = "run_id IN (SELECT run_id FROM facts.run_facts SEMI JOIN dirty USING (series_id, benchmark_id))"
    folded = connection.sql(
        f"""
        SELECT f.question_id, s.id AS series_id, q.benchmark_id, f.n_configurations, f.n_observations, f.accuracy, f.p_gold
        FROM ({trajectories_sql(runs)}) AS f
        INNER JOIN series AS s ON f.series = s.name
        INNER JOIN questions AS q ON f.question_id = q.id
        ORDER BY ALL
        """,
    ).to_arrow_table()
    schema = bulk.arrow_schema("trajectories")
    found: dict[Slice, pa.Table] = {}
    for key in chunk:
        rows = folded.filter(pc.and_(pc.equal(folded["series_id"], key.series_id), pc.equal(folded["benchmark_id"], key.benchmark_id)))
        if rows.num_rows:
            found[key] = rows.select(schema.names).cast(schema)
    return found


def _delete(connection: sa.Connection, slices: list[Slice]) -> None:
    questions = sa.select(Question.id).where(Question.benchmark_id == sa.bindparam("benchmark"))
    statement = sa.delete(Trajectory).where(Trajectory.series_id == sa.bindparam("series"), Trajectory.question_id.in_(questions))
    connection.execute(statement, [{"series": key.series_id, "benchmark": key.benchmark_id} for key in slices])


def _forget(connection: sa.Connection, ids: list[int]) -> None:
    for start in range(0, len(ids), 500):
        connection.execute(sa.delete(DirtySlice).where(DirtySlice.id.in_(ids[start : start + 500])))
