"""`trackr analyses`: stored results."""

from __future__ import annotations

import json
from contextlib import closing
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from cli.options import ROW_ID, json_option, store_options

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tracker.config import Location
    from tracker.database import Database

HEADLINES = 3
"""Shares of the headline that a list shows."""


@click.group(invoke_without_command=True)
@click.pass_context
def analyses(ctx: click.Context) -> None:
    """List and show stored results."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_)


@analyses.command("list")
@click.option("--name", help="Only this analysis.")
@store_options
@json_option
def list_(location: Location, name: str | None, *, as_json: bool) -> None:
    """List stored results, the latest first."""
    from analyses.store import stored

    with closing(_database(location)) as db:
        rows = stored(db, name)
    if as_json:
        click.echo(json.dumps([_plain(row) for row in rows], ensure_ascii=False))
        return
    if not rows:
        click.echo("trackr: no analysis is stored yet (trackr analyze ceiling)", err=True)
    for line in _lines(rows):
        click.echo(line)


@analyses.command()
@click.argument("identity", metavar="ID", type=ROW_ID)
@store_options
@json_option
def show(location: Location, identity: int, *, as_json: bool) -> None:
    """Show one stored result."""
    from analyses.store import show as stored_result

    with closing(_database(location)) as db:
        row = stored_result(db, identity)
    if as_json:
        click.echo(json.dumps(_plain(row), ensure_ascii=False))
        return
    for line in _described(row):
        click.echo(line)


def _database(location: Location) -> Database:
    from tracker.database import open_database

    return open_database(location.url, create_missing=False)


def _lines(rows: list[dict[str, Any]]) -> Iterator[str]:
    from analyses.text import headline_kind, number

    for row in rows:
        shares = [(name, value) for name, value in row["headline"].items() if isinstance(value, float)][:HEADLINES]
        numbers = ", ".join(f"{name} {number(value, headline_kind(value))}" for name, value in shares)
        cohort = "  own cohort" if row["parameters"].get("cohort") else ""
        where = f"  where {' '.join(row['parameters']['where'].split())}" if row["parameters"].get("where") else ""
        yield f"{row['id']:>4}  {_minute(row['created_at'])}  {row['name']}  {row['cohort_rows']:,} rows of data version {row['data_version']}  {numbers}{cohort}{where}"


def _described(row: Mapping[str, Any]) -> Iterator[str]:
    """Facts, headline and tables of a stored result."""
    from analyses.store import headline_of, tables_of
    from analyses.text import render_headline, render_table

    yield f"analysis {row['id']}: {row['name']}, {_minute(row['created_at'])} UTC, data version {row['data_version']}, trackr {row['code_version']}"
    yield f"parameters {json.dumps(row['parameters'], ensure_ascii=False)}"
    yield f"cohort {row['cohort_rows']:,} rows, digest {row['cohort_digest']}, selected by"
    yield from (f"    {line}" for line in row["cohort_sql"].splitlines())
    yield ""
    yield render_headline(headline_of(row))
    for name, table in tables_of(row).items():
        yield "\n" + render_table(name, table)
    for warning in row["result"]["warnings"]:
        yield f"\nwarning: {warning}"


def _minute(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M")


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value.isoformat() if isinstance(value, datetime) else value for name, value in row.items()}
