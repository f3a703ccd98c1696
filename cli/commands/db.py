"""`trackr db`: create, upgrade and check the database."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from cli.options import json_option, store_options
from tracker.config import mask

if TYPE_CHECKING:
    from collections.abc import Iterator

    import sqlalchemy as sa

    from tracker.config import Location


@click.group()
def db() -> None:
    """Create, upgrade and check the database."""


@db.command()
@store_options
@json_option
def upgrade(location: Location, *, as_json: bool) -> None:
    """Create the database, or bring its tables up to this version.

    Every command that writes does this by itself; on a shared PostgreSQL you may want to choose the moment.
    """
    from tracker.database import open_database

    before = _revision(location)
    database = open_database(location.url)
    database.close()
    after = _revision(location)
    if as_json:
        _print_json({"database": _place(location), "before": before, "after": after, "changed": before != after})
    elif before == after:
        click.echo(f"{_place(location)} is up to date (schema {after})")
    else:
        click.echo(f"{_place(location)} upgraded from {before or 'nothing'} to schema {after}")


@db.command()
@store_options
@json_option
def current(location: Location, *, as_json: bool) -> None:
    """Say which schema the database has and which one this version knows."""
    from tracker.database import migrate

    revision, head = _revision(location), migrate.head()
    if as_json:
        _print_json({"database": _place(location), "current": revision, "head": head, "up_to_date": revision == head})
    elif revision is None:
        click.echo(f"{_place(location)} has no trackr tables yet; trackr db upgrade makes them (schema {head})")
    else:
        remedy = "up to date" if revision == head else f"trackr db upgrade brings it to {head}"
        click.echo(f"{_place(location)} is at schema {revision} ({remedy})")


@db.command()
@store_options
@json_option
def check(location: Location, *, as_json: bool) -> None:
    """Compare the tables of the database with those of this version; exit 1 when they differ."""
    from tracker.database import migrate

    with _engine(location) as engine:
        differences = ["the database does not exist"] if engine is None else migrate.check(engine)
    if as_json:
        _print_json({"database": _place(location), "equal": not differences, "differences": differences})
    else:
        click.echo("\n".join(differences) or f"{_place(location)} has exactly the tables of this version")
    if differences:
        click.get_current_context().exit(1)


def _place(location: Location) -> str:
    return str(location.sqlite_path or mask(location.url))


def _revision(location: Location) -> str | None:
    from tracker.database import migrate

    with _engine(location) as engine:
        return None if engine is None else migrate.current(engine)


@contextmanager
def _engine(location: Location) -> Iterator[sa.Engine | None]:
    """An engine on what is there; None for a SQLite file that does not exist (looking must not make one)."""
    from tracker.database import create
    from tracker.database.engine import translated

    path = location.sqlite_path
    if path is not None and not path.exists():
        yield None
        return
    engine = create(location.url)
    try:
        with translated(location.url):
            yield engine
    finally:
        engine.dispose()


def _print_json(value: dict[str, Any]) -> None:
    import json

    click.echo(json.dumps(value))
