"""`trackr analyses`: stored results."""

from __future__ import annotations

import json
from contextlib import closing
from datetime import datetime
from functools import cache
from pathlib import Path
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
@click.option("--csv", type=click.Path(file_okay=False, path_type=Path), metavar="DIR", help="Write one CSV file per table into DIR.")
@store_options
@json_option
def show(location: Location, identity: int, csv: Path | None, *, as_json: bool) -> None:
    """Show one stored result."""
    from analyses.export import save_tables
    from analyses.store import show as stored_result
    from analyses.store import tables_of

    with closing(_database(location)) as db:
        row = stored_result(db, identity)
    if csv is not None:
        save_tables(tables_of(row), csv)
        click.echo(f"trackr: wrote {csv}", err=True)
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
        yield f"{row['id']:>4}  {_minute(row['created_at'])}  {_command(row)}  {row['cohort_rows']:,} rows of data version {row['data_version']}  {numbers}"


def _command(row: Mapping[str, Any]) -> str:
    """The analysis with what was chosen in it, nearly as it was typed."""
    usual = _defaults(row["name"])
    chosen = {name: value for name, value in row["parameters"].items() if value != usual.get(name)}
    words = [row["name"]]
    for name, value in chosen.items():
        if name == "cohort":
            words.append("--cohort (own SQL)")
        elif name in usual:
            words.append(f"--{name.replace('_', '-')} {' '.join(_spelled(value).split())}")
        else:
            words.append(_spelled(value).replace(",", " "))
    return " ".join(words)


@cache
def _defaults(name: str) -> dict[str, Any]:
    """Options of an analysis with their defaults, as JSON keeps them; arguments without option are not among them."""
    from analyses.registry import find
    from analyses.result import plain
    from tracker.errors import UsageError

    try:
        fields = find(name).load().Parameters.model_fields
    except UsageError:  # of another version of trackr
        return {}
    return {
        field: plain(info.get_default(call_default_factory=True))
        for field, info in fields.items()
        if not (isinstance(info.json_schema_extra, dict) and info.json_schema_extra.get("argument"))
    }


def _spelled(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


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
