"""Verify: compare counts and checksums of the lake with the database, run by run and table by table."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import duckdb

from tracker.database import bulk
from tracker.errors import LakeError
from tracker.lake.copying import run_states
from tracker.lake.docs import CELL_ROWS, LAST_POINTS, RUN_TOTALS, sql
from tracker.lake.session import define_tables, engine, manifest_files, session_name
from tracker.schema import SEGMENT_TABLES, SMALL_TABLES

if TYPE_CHECKING:
    from collections.abc import Iterator

    import sqlalchemy as sa

    from tracker.database import Database
    from tracker.lake.folder import Lake
    from tracker.lake.manifest import Manifest

RUNS_AT_A_TIME = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCheck:
    """One table, compared."""

    table: str
    database_rows: int
    lake_rows: int
    differing_runs: tuple[int, ...] = ()
    """Runs whose rows differ, for tables that are copied run by run."""
    equal: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyReport:
    """The whole comparison."""

    data_version: int
    tables: tuple[TableCheck, ...]
    problems: tuple[str, ...]
    """Everything that is wrong, one line each; empty when lake == database."""
    seconds: float

    @property
    def ok(self) -> bool:
        """Whether lake == database."""
        return not self.problems


def verify(db: Database, lake: Lake) -> VerifyReport:
    """Compare every row of the lake with the database; the lake must be at the database's version."""
    started = time.perf_counter()
    with lake.lock(), db.read() as connection:
        manifest = _matching(db, lake, connection)
        problems = list(_file_problems(lake, manifest)) + list(_run_problems(connection, manifest))
        tables: tuple[TableCheck, ...] = ()
        if not problems:
            tables, wrong = _compare(connection, lake, manifest)
            problems = [_describe(check) for check in tables if not check.equal] + wrong
    return VerifyReport(data_version=manifest.data_version, tables=tables, problems=tuple(problems), seconds=time.perf_counter() - started)


def _matching(db: Database, lake: Lake, connection: sa.Connection) -> Manifest:
    manifest = lake.manifest()
    if manifest is None:
        message = "there is no lake yet"
        raise LakeError(message, where=str(lake.folder), hint="trackr lake sync makes it")
    store = db.store(connection)
    if manifest.uuid != store.uuid:
        message = f"this lake copies another database ({manifest.uuid}, not {store.uuid})"
        raise LakeError(message, where=str(lake.folder), hint="trackr lake rebuild replaces it")
    if manifest.data_version != store.data_version:
        message = f"the lake is at data version {manifest.data_version}, the database at {store.data_version}"
        raise LakeError(message, where=str(lake.folder), hint="trackr lake sync first")
    return manifest


def _file_problems(lake: Lake, manifest: Manifest) -> Iterator[str]:
    for file in manifest.files():
        if not lake.path(file).exists():
            yield f"{file}: missing"


def _run_problems(connection: sa.Connection, manifest: Manifest) -> Iterator[str]:
    states = run_states(connection)
    if {run_id: state.version for run_id, state in states.items()} != manifest.runs:
        yield "the manifest holds other runs or run versions than the database"
    for table in SEGMENT_TABLES:
        seen: set[int] = set()
        for segment in manifest.segments.get(table, ()):
            if seen & segment.runs.keys():
                yield f"{segment.file}: a run that another segment holds too"
            seen |= segment.runs.keys()
            if any(states.get(run_id) is None or states[run_id].version != number for run_id, number in segment.runs.items()):
                yield f"{segment.file}: outdated runs"


def _compare(connection: sa.Connection, lake: Lake, manifest: Manifest) -> tuple[tuple[TableCheck, ...], list[str]]:
    duck = engine()
    try:
        define_tables(duck, manifest.docs, manifest_files(lake, manifest))
        segments = [_compare_segments(duck, connection, name, sorted(manifest.runs)) for name in SEGMENT_TABLES]
        tables = (*segments, *(_compare_table(duck, connection, name) for name in SMALL_TABLES))
        return tables, list(_wrong_derived(duck))
    except duckdb.Error as err:
        message = f"a file of the lake cannot be read: {str(err).splitlines()[0]}"
        raise LakeError(message, where=str(lake.folder), hint="trackr lake rebuild makes it again") from err
    finally:
        duck.close()


def _compare_segments(duck: duckdb.DuckDBPyConnection, connection: sa.Connection, name: str, run_ids: list[int]) -> TableCheck:
    expected: dict[int, tuple[int, int]] = {}
    for start in range(0, len(run_ids), RUNS_AT_A_TIME):
        for rows in bulk.read_runs(connection, name, run_ids[start : start + RUNS_AT_A_TIME]):
            duck.register("piece", rows)
            for run_id, count, total in _checksums(duck, "piece", name):
                before = expected.get(run_id, (0, 0))
                expected[run_id] = (before[0] + count, before[1] + total)
            duck.unregister("piece")
    found = {run_id: (count, total) for run_id, count, total in _checksums(duck, session_name(name), name)}
    differing = sorted(run_id for run_id in expected.keys() | found.keys() if expected.get(run_id) != found.get(run_id))
    return TableCheck(
        table=name,
        database_rows=sum(count for count, _ in expected.values()),
        lake_rows=sum(count for count, _ in found.values()),
        differing_runs=tuple(differing),
        equal=not differing,
    )


def _checksums(duck: duckdb.DuckDBPyConnection, relation: str, table: str) -> list[tuple[Any, ...]]:
    """(run, rows, sum of row hashes): the order of rows does not matter, how often a row occurs does."""
    query = f"SELECT run_id, count(*), CAST(sum(CAST({_row_hash(table)} AS HUGEINT)) AS HUGEINT) FROM {relation} GROUP BY run_id"
    return duck.execute(query).fetchall()


def _compare_table(duck: duckdb.DuckDBPyConnection, connection: sa.Connection, name: str) -> TableCheck:
    duck.register("piece", bulk.read_table(connection, name))
    query = f"SELECT count(*), CAST(coalesce(sum(CAST({_row_hash(name)} AS HUGEINT)), 0) AS HUGEINT) FROM "
    expected, found = (duck.execute(query + relation).fetchall()[0] for relation in ("piece", session_name(name)))
    duck.unregister("piece")
    return TableCheck(table=name, database_rows=expected[0], lake_rows=found[0], equal=expected == found)


def _wrong_derived(duck: duckdb.DuckDBPyConnection) -> Iterator[str]:
    """Derived rows that do not follow from what they are made of; sums of fractions differ in the last digits by their order."""
    means = ("credits", "visual_tokens", "prompt_tokens", "latency_s")
    differs = " OR ".join(
        f"coalesce(abs(a.{name} - b.{name}) > 1e-9 * abs(b.{name}), a.{name} IS DISTINCT FROM b.{name})" for name in means
    )
    query = f"""
        SELECT coalesce(a.run_id, b.run_id) FROM {RUN_TOTALS} AS a FULL JOIN ({sql(RUN_TOTALS)}) AS b ON a.run_id = b.run_id
        WHERE a.n IS DISTINCT FROM b.n OR {differs} ORDER BY ALL LIMIT 5
    """
    runs = ", ".join(str(run_id) for (run_id,) in duck.execute(query).fetchall())
    if runs:
        yield f"{RUN_TOTALS}: totals of runs {runs} do not follow from their records"
    whole = {
        LAST_POINTS: (LAST_POINTS, "last points do not follow from the metric points"),
        CELL_ROWS: ("cells", "cells do not follow from the totals of their runs"),
    }
    for table, (name, problem) in whole.items():
        stored, computed = f"SELECT * FROM {table}", f"SELECT * FROM ({sql(name)})"
        found = f"SELECT count(*) FROM (({stored} EXCEPT ALL {computed}) UNION ALL ({computed} EXCEPT ALL {stored}))"
        if duck.execute(found).fetchall() != [(0,)]:
            yield f"{table}: {problem}"


def _row_hash(table: str) -> str:
    columns = ", ".join(f'"{column}"' for column in bulk.arrow_schema(table).names)
    return f"hash(row({columns}))"


def _describe(check: TableCheck) -> str:
    if check.differing_runs:
        shown = ", ".join(str(run_id) for run_id in check.differing_runs[:5])
        more = f" and {len(check.differing_runs) - 5} more" if len(check.differing_runs) > 5 else ""
        return f"{check.table}: rows of runs {shown}{more} differ"
    return f"{check.table}: {check.lake_rows} rows in the lake, {check.database_rows} in the database, or other content"
