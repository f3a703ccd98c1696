"""Which run counts, which trajectories must be computed again, and how runs go."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from tracker.database import bulk
from tracker.errors import UsageError
from tracker.ingest.link import prune
from tracker.ingest.questions import Questions
from tracker.schema import Configuration, DirtySlice, Model, Question, Record, Run, Trajectory

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tracker.database import Database

EARLIEST = datetime.min.replace(tzinfo=UTC)
IN_LIMIT = 500


def refresh_current(connection: sa.Connection, pairs: Iterable[tuple[int, int]] | None = None) -> None:
    """Mark the current run of each (configuration, benchmark), and its slice as dirty.

    Current is the finished run that is last by (ended_at, started_at, first ingest), nulls first (DEFINITIONS).
    A run without any scored record cannot hide one that has some. None means every pair.
    """
    columns = (Run.id, Run.configuration_id, Run.benchmark_id, Run.status, Run.ended_at, Run.started_at, Run.current, Run.n_records)
    wanted = None if pairs is None else {pair for pair in pairs if pair[1] is not None}
    query = sa.select(*columns).where(Run.kind == "evaluation", Run.benchmark_id.is_not(None))
    if wanted is None:
        rows = connection.execute(query).all()
    else:
        chosen = sorted({configuration for configuration, _ in wanted})
        rows = [
            row
            for start in range(0, len(chosen), IN_LIMIT)
            for row in connection.execute(query.where(Run.configuration_id.in_(chosen[start : start + IN_LIMIT])))
        ]
    groups: dict[tuple[int, int | None], list[sa.Row[*tuple[Any, ...]]]] = {}
    for row in rows:
        if wanted is None or (row.configuration_id, row.benchmark_id) in wanted:
            groups.setdefault((row.configuration_id, row.benchmark_id), []).append(row)
    changes = []
    for group in groups.values():
        finished = [row for row in group if row.status == "finished" and row.n_records]
        if len(finished) > 1:
            scored = _scored(connection, [row.id for row in finished])
            finished = [row for row in finished if row.id in scored] or finished
        last = max(finished, key=lambda row: (row.ended_at or EARLIEST, row.started_at or EARLIEST, row.id), default=None)
        changes += [{"b_id": row.id, "b_current": row is last} for row in group if row.current != (row is last)]
    if changes:
        table = bulk.table("runs")
        connection.execute(sa.update(table).where(table.c.id == sa.bindparam("b_id")).values(current=sa.bindparam("b_current")), changes)


def _scored(connection: sa.Connection, run_ids: Sequence[int]) -> set[int]:
    """Those of some runs that have a scored record."""
    some = sa.exists().where(Record.run_id == Run.id, Record.status == "scored")
    return {
        run_id
        for start in range(0, len(run_ids), IN_LIMIT)
        for run_id in connection.execute(sa.select(Run.id).where(Run.id.in_(run_ids[start : start + IN_LIMIT]), some)).scalars()
    }


def mark_dirty(connection: sa.Connection, slices: Iterable[tuple[int, int]]) -> None:
    """Note that trajectories of (series, benchmark) slices must be computed again."""
    rows = [{"series_id": series_id, "benchmark_id": benchmark_id} for series_id, benchmark_id in sorted(set(slices))]
    if rows:
        connection.execute(sa.insert(DirtySlice), rows)


def all_slices(connection: sa.Connection) -> set[tuple[int, int]]:
    """Every slice that has a current run or a stored trajectory."""
    runs = (
        sa.select(Model.series_id, Run.benchmark_id)
        .join(Configuration, Run.configuration_id == Configuration.id)
        .join(Model, Configuration.model_id == Model.id)
        .where(Run.current)
    )
    stored = sa.select(Trajectory.series_id, Question.benchmark_id).join(Question, Trajectory.question_id == Question.id)
    return {(row[0], row[1]) for query in (runs, stored) for row in connection.execute(query.distinct()) if row[1] is not None}


def slices_of(connection: sa.Connection, run_ids: Sequence[int]) -> set[tuple[int, int]]:
    """The slices that some runs belong to."""
    found: set[tuple[int, int]] = set()
    base = (
        sa.select(Model.series_id, Run.benchmark_id)
        .join(Configuration, Run.configuration_id == Configuration.id)
        .join(Model, Configuration.model_id == Model.id)
    )
    for start in range(0, len(run_ids), IN_LIMIT):
        rows = connection.execute(base.where(Run.id.in_(run_ids[start : start + IN_LIMIT]), Run.benchmark_id.is_not(None)).distinct())
        found.update((row[0], row[1]) for row in rows if row[1] is not None)
    return found


def pairs_of(connection: sa.Connection, run_ids: Sequence[int]) -> set[tuple[int, int]]:
    """(configuration, benchmark) of some runs."""
    found: set[tuple[int, int]] = set()
    for start in range(0, len(run_ids), IN_LIMIT):
        rows = connection.execute(sa.select(Run.configuration_id, Run.benchmark_id).where(Run.id.in_(run_ids[start : start + IN_LIMIT])))
        found.update((row[0], row[1]) for row in rows if row[1] is not None)
    return found


def remove_runs(connection: sa.Connection, run_ids: Sequence[int]) -> None:
    """Delete runs with everything that belongs to them."""
    pairs, slices = pairs_of(connection, run_ids), slices_of(connection, run_ids)
    mark_dirty(connection, slices)
    for start in range(0, len(run_ids), IN_LIMIT):
        connection.execute(sa.delete(Run).where(Run.id.in_(run_ids[start : start + IN_LIMIT])))
    refresh_current(connection, pairs)


def delete_runs(database: Database, run_ids: Sequence[int]) -> int:
    """Delete runs by id; returns how many records went with them. Raises UsageError for an unknown id."""
    with database.write() as transaction:
        connection = transaction.connection
        known = dict(connection.execute(sa.select(Run.id, Run.n_records).where(Run.id.in_(run_ids))).all())
        unknown = sorted(set(run_ids) - set(known))
        if unknown:
            message = f"no run with id {', '.join(map(str, unknown))}"
            raise UsageError(message, hint="trackr runs list shows the ids")
        remove_runs(connection, list(known))
        questions = Questions(connection)
        questions.rehashed |= prune(connection)
        mark_dirty(
            connection,
            {(series, benchmark) for benchmark in questions.join_keys() for series, other in all_slices(connection) if other == benchmark},
        )
        transaction.changed()
        return sum(known.values())
