"""`trackr labels import|export|prefer`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from cli.options import json_option, store_options
from tracker.errors import TrackrError

if TYPE_CHECKING:
    from tracker.config import Location

COLUMNS = ("benchmark", "question_key", "scheme", "value", "source")


@click.group()
def labels() -> None:
    """Import, export and rank question labels."""


@labels.command("import")
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@json_option
@store_options
def import_(file: Path, as_json: bool, location: Location) -> None:
    """Import labels from a CSV, TSV or JSONL file with the columns benchmark, question_key, scheme, value, source."""
    from tracker.api import Tracker

    with Tracker(location) as tracker:
        report = tracker.import_labels(file)
    if as_json:
        import dataclasses

        import orjson

        click.echo(orjson.dumps(dataclasses.asdict(report), option=orjson.OPT_INDENT_2))
        return
    waiting = f"; {report.waiting:,} wait for questions that no run has asked yet" if report.waiting else ""
    click.echo(f"{report.read:,} labels read: {report.added:,} new, {report.changed:,} changed{waiting}")


@labels.command("export")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False), required=False)
@store_options
def export(file: Path | None, location: Location) -> None:
    """Export every label as CSV to FILE (JSONL when it ends in .jsonl), or to stdout."""
    from tracker.api import Tracker
    from tracker.ingest.labels import export_labels

    with Tracker(location) as tracker, tracker.database(create_missing=False).read() as connection:
        rows = list(export_labels(connection))
    if file is None or str(file) == "-":
        _write(rows, sys.stdout, as_json=False)
    else:
        try:
            with file.open("w", encoding="utf-8", newline="") as stream:
                _write(rows, stream, as_json=file.suffix in {".jsonl", ".ndjson"})
        except OSError as err:
            message = f"cannot be written: {err.strerror}"
            raise TrackrError(message, where=str(file), hint="choose another file") from err
        click.echo(f"{len(rows):,} labels written to {file}", err=True)


@labels.command("prefer")
@click.argument("scheme")
@click.argument("sources", nargs=-1, required=True)
@store_options
def prefer(scheme: str, sources: tuple[str, ...], location: Location) -> None:
    """State whose labels of a SCHEME the views use: SOURCES in order of preference."""
    from tracker.api import Tracker

    with Tracker(location) as tracker:
        tracker.prefer_labels(scheme, sources)
    click.echo(f"{scheme}: {' before '.join(sources)}, others after them in alphabetical order")


def _write(rows: list[dict[str, object]], stream: TextIO, *, as_json: bool) -> None:
    import csv
    import json

    if as_json:
        stream.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        return
    writer = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
