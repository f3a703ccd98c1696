"""`trackr lake`: look after the Parquet copy of the database."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from cli.options import json_option, store_options
from cli.output import json_text, write_rows
from tracker.errors import LakeError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracker.config import Location
    from tracker.database import Database
    from tracker.lake import Manifest, SyncReport


@click.group()
def lake() -> None:
    """Look after the Parquet copy of the database.

    The lake is derived: it can be deleted and made again at any time.
    """


@lake.command()
@json_option
@store_options
def status(as_json: bool, location: Location) -> None:
    """Say where the lake is, what it copies, and whether it is fresh."""
    from tracker.database.peek import peek
    from tracker.lake import Lake

    found = Lake(location.lake)
    manifest = found.manifest()
    seen = peek(location.url)
    facts: dict[str, Any] = {
        "folder": str(found.folder),
        "exists": manifest is not None,
        "fresh": seen is not None and found.is_fresh(seen),
        "data_version": manifest.data_version if manifest else None,
        "database_version": seen.data_version if seen else None,
        "uuid": manifest.uuid if manifest else None,
        "database_uuid": seen.uuid if seen else None,
    }
    if manifest:
        facts |= _content(manifest)
    _facts(facts, as_json=as_json)


@lake.command()
@json_option
@store_options
def sync(as_json: bool, location: Location) -> None:
    """Bring the lake to the database as it is now."""
    from tracker.lake import Lake
    from tracker.lake import sync as run

    with _database(location) as db, _progress() as progress:
        report = run(db, Lake(location.lake), progress=progress, talk=_talk)
    _report(report, as_json=as_json)


@lake.command()
@json_option
@store_options
def rebuild(as_json: bool, location: Location) -> None:
    """Write the whole lake again from the database, whatever is there."""
    from tracker.lake import Lake
    from tracker.lake import rebuild as run

    with _database(location) as db, _progress() as progress:
        report = run(db, Lake(location.lake), progress=progress, talk=_talk)
    _report(report, as_json=as_json)


@lake.command()
@json_option
@store_options
def verify(as_json: bool, location: Location) -> None:
    """Compare counts and checksums of every table and run with the database; exit code 1 if anything differs."""
    from tracker.lake import Lake
    from tracker.lake import verify as run

    with _database(location) as db:
        report = run(db, Lake(location.lake))
    if as_json:
        sys.stdout.write(json_text({"ok": report.ok, **asdict(report)}) + "\n")
        raise SystemExit(0 if report.ok else 1)
    if not report.ok:
        more = f" and {len(report.problems) - 1} more" if len(report.problems) > 1 else ""
        message = f"the lake differs from the database: {report.problems[0]}{more}"
        raise LakeError(message, where=str(location.lake), hint="trackr lake rebuild makes it again; --json lists every difference")
    rows = sum(check.lake_rows for check in report.tables)
    sys.stdout.write(f"lake == database at data version {report.data_version}: {rows:,} rows in {len(report.tables)} tables\n")


@lake.command()
@click.argument("table", required=False)
@json_option
@store_options
def files(table: str | None, as_json: bool, location: Location) -> None:
    """List the current Parquet files, for other engines; with TABLE, its paths and nothing else.

    Replaced files stay for a while after a sync, so a list stays readable for ten minutes.
    """
    from tracker.lake import Lake

    found = Lake(location.lake)
    manifest = found.manifest()
    if manifest is None:
        message = "there is no lake yet"
        raise LakeError(message, where=str(found.folder), hint="trackr lake sync makes it from the database")
    listed = [(name, s.rows, s.bytes, str(found.path(s.file))) for name, segments in manifest.segments.items() for s in segments]
    listed += [(name, t.rows, t.bytes, str(found.path(t.file))) for name, t in manifest.tables.items()]
    if table is not None:
        if table not in {*manifest.segments, *manifest.tables}:
            message = f"the lake has no table {table!r}"
            raise UsageError(message, hint="trackr lake files lists them all")
        listed = [entry for entry in listed if entry[0] == table]
        if not as_json:
            sys.stdout.writelines(f"{path}\n" for _, _, _, path in listed)
            return
    write_rows(["table", "rows", "bytes", "file"], listed, as_json=as_json)


def _content(manifest: Manifest) -> dict[str, Any]:
    return {
        "synced_at": manifest.synced_at,
        "trackr": manifest.trackr,
        "files": len(manifest.files()),
        "bytes": manifest.bytes,
        "replaced_files": len(manifest.retired),
        "outdated_slices": manifest.dirty,
        "rows": {name: manifest.rows(name) for name in manifest.docs},
    }


def _facts(facts: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(json_text(facts) + "\n")
        return
    rows = facts.pop("rows", {})
    for name, value in facts.items():
        shown = {None: "none", True: "yes", False: "no"}.get(value, value) if value is None or isinstance(value, bool) else value
        sys.stdout.write(f"{name.replace('_', ' '):<17} {shown:,}\n" if type(shown) is int else f"{name.replace('_', ' '):<17} {shown}\n")
    if rows:
        sys.stdout.write("\n")
        sys.stdout.flush()
        write_rows(["table", "rows"], [(name, count) for name, count in rows.items() if count])


def _report(report: SyncReport, *, as_json: bool) -> None:
    for warning in report.warnings:
        _talk(warning)
    if as_json:
        sys.stdout.write(json_text(asdict(report)) + "\n")
    elif report.up_to_date:
        sys.stdout.write(f"up to date at data version {report.data_version}\n")
    else:
        sys.stdout.write(
            f"data version {report.data_version}: {report.runs_added:,} runs added, {report.runs_replaced:,} replaced, "
            f"{report.runs_removed:,} removed, {report.rows_written:,} rows written in {report.seconds:.1f} s\n",
        )


@contextmanager
def _database(location: Location) -> Iterator[Database]:
    from tracker.database import open_database

    db = open_database(location.url, create_missing=False)
    try:
        yield db
    finally:
        db.close()


@contextmanager
def _progress() -> Iterator[Any]:
    from cli.progress import Progress

    progress = Progress()
    try:
        yield progress
    finally:
        progress.close()


def _talk(line: str) -> None:
    click.echo(f"trackr: {line}", err=True)
