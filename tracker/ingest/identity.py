"""Which run is which: identities, the places where a run was found, and the version of it that is kept.

All rules are functions of what the sources say and of the places known now, never of the order in which they
were met: a run that has no id of its own is named by the first of its places in alphabetical order.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from tracker.schema import Run, RunSource

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

IDENTITY = ("source_format", "external_id", "benchmark_id", "configuration_id")
"""What makes a run unique (DEFINITIONS, Identity)."""
EARLIEST = datetime.min.replace(tzinfo=UTC)
IN_LIMIT = 500

Recency = tuple[bool, datetime, datetime, int, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRun:
    """A stored run that a source offers again."""

    run_id: int
    version: int
    recency: Recency
    lives_elsewhere: bool
    """Whether a place that is not read now holds the stored version."""


def spelled_identity(external_id: str, model_name: str, benchmark_name: str | None) -> str:
    """Identity of a run of a file whose runs differ by nothing but the spelling of a name."""
    return f"{external_id}#{model_name}|{benchmark_name or ''}"


def plain_identity(external_id: str, model_name: str, benchmark_name: str | None) -> str:
    """The identity without the spelling."""
    return external_id.removesuffix(spelled_identity("", model_name, benchmark_name))


def recency(values: Mapping[str, Any] | sa.RowMapping) -> Recency:
    """Order of versions of one run that different places hold."""
    return (
        values["status"] == "finished",
        values["ended_at"] or EARLIEST,
        values["started_at"] or EARLIEST,
        values["n_records"],
        values["digest"],
    )


def stored_runs(connection: sa.Connection, external_ids: Sequence[str], reading: set[str]) -> dict[tuple[Any, ...], StoredRun]:
    """Stored runs by identity; `reading` are the addresses that are read now."""
    columns = [
        Run.id,
        Run.version,
        Run.status,
        Run.ended_at,
        Run.started_at,
        Run.n_records,
        Run.digest,
        *(getattr(Run, name) for name in IDENTITY),
    ]
    found = [
        row for part in _parts(external_ids) for row in connection.execute(sa.select(*columns).where(Run.external_id.in_(part))).mappings()
    ]
    places = _places_of(connection, [row["id"] for row in found])
    return {
        tuple(row[name] for name in IDENTITY): StoredRun(
            run_id=row["id"],
            version=row["version"],
            recency=recency(row),
            lives_elsewhere=any(digest == row["digest"] and uri not in reading for uri, digest in places.get(row["id"], ())),
        )
        for row in found
    }


def leave_copies(connection: sa.Connection, uri: str) -> None:
    """A source changed whose runs other places still hold as they were: there they stay, under the name of such a place."""
    here = sa.alias(RunSource.__table__)
    statement = (
        sa.select(RunSource.run_id)
        .join(Run, RunSource.run_id == Run.id)
        .join(here, sa.and_(here.c.run_id == Run.id, here.c.uri == uri))
        .where(RunSource.uri != uri, RunSource.digest == Run.digest, Run.source_uri == uri)
        .distinct()
    )
    copied = list(connection.execute(statement).scalars())
    if copied:
        connection.execute(sa.delete(RunSource).where(RunSource.uri == uri, RunSource.run_id.in_(copied)))
        settle_places(connection, copied)


def settle_places(connection: sa.Connection, run_ids: Sequence[int]) -> list[int]:
    """Name runs by the first place that holds their present version; returns the runs that no place holds any more."""
    places = _places_of(connection, run_ids)
    columns = (Run.id, Run.digest, Run.source_uri, Run.external_id, Run.model_name, Run.benchmark_name)
    gone: list[int] = []
    for part in _parts(run_ids):
        for run in connection.execute(sa.select(*columns).where(Run.id.in_(part))).all():
            holding = [uri for uri, digest in places.get(run.id, ()) if digest == run.digest]
            if not holding:
                gone.append(run.id)
            elif (first := min(holding)) != run.source_uri:
                connection.execute(sa.update(Run).where(Run.id == run.id).values(source_uri=first, external_id=_renamed(run, first)))
    return gone


def settle_identities(connection: sa.Connection) -> list[int]:
    """After links moved: tell runs of one file apart by the spelling that alone still differs.

    Of versions of one run in different places the latest stays. Returns the runs to remove.
    """
    columns = [
        Run.id,
        Run.model_name,
        Run.benchmark_name,
        Run.status,
        Run.ended_at,
        Run.started_at,
        Run.n_records,
        Run.digest,
        *(getattr(Run, name) for name in IDENTITY),
    ]
    groups: dict[tuple[Any, ...], list[Any]] = {}
    for row in connection.execute(sa.select(*columns).order_by(Run.id)).all():
        run = row._mapping  # noqa: SLF001 - SQLAlchemy's public name
        plain = plain_identity(run["external_id"], run["model_name"], run["benchmark_name"])
        groups.setdefault((run["source_format"], plain, run["benchmark_id"], run["configuration_id"]), []).append(run)
    older: list[int] = []
    renamed: dict[int, str] = {}
    for (_, plain, _, _), members in groups.items():
        latest = max(members, key=recency)
        kept = sorted(
            (run for run in members if run["digest"] == latest["digest"]), key=lambda run: (run["model_name"], run["benchmark_name"] or "")
        )
        for run in members:
            if run["digest"] != latest["digest"]:
                _yield_places(connection, run["id"], latest["id"])
                older.append(run["id"])
        for rank, run in enumerate(kept):
            wanted = plain if rank == 0 else spelled_identity(plain, run["model_name"], run["benchmark_name"])
            if run["external_id"] != wanted:
                renamed[run["id"]] = wanted
    for stage in ({run_id: f"#{run_id}" for run_id in renamed}, renamed):  # two names may change places
        for run_id, name in stage.items():
            connection.execute(sa.update(Run).where(Run.id == run_id).values(external_id=name))
    return older


def _yield_places(connection: sa.Connection, old: int, new: int) -> None:
    """The places of an older version are noted with the run that stays."""
    noted = sa.select(RunSource.uri).where(RunSource.run_id == new)
    connection.execute(sa.update(RunSource).where(RunSource.run_id == old, RunSource.uri.not_in(noted)).values(run_id=new))


def _renamed(run: Any, uri: str) -> str:
    """The identity of a run that is named by its place, at another place; other identities stay."""
    external_id: str = run.external_id
    plain = plain_identity(external_id, run.model_name, run.benchmark_name)
    return uri + external_id[len(plain) :] if plain == run.source_uri else external_id


def _places_of(connection: sa.Connection, run_ids: Iterable[int]) -> dict[int, list[tuple[str, str]]]:
    places: dict[int, list[tuple[str, str]]] = {}
    for part in _parts(list(run_ids)):
        for run_id, uri, digest in connection.execute(
            sa.select(RunSource.run_id, RunSource.uri, RunSource.digest).where(RunSource.run_id.in_(part))
        ):
            places.setdefault(run_id, []).append((uri, digest))
    return places


def _parts(values: Sequence[Any]) -> Iterable[Sequence[Any]]:
    return (values[start : start + IN_LIMIT] for start in range(0, len(values), IN_LIMIT))
