"""`trackr labels import|export|prefer|agreement`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from cli.options import json_option, store_options
from cli.output import TEXT_FORMATS
from tracker.errors import TrackrError

if TYPE_CHECKING:
    from tracker.config import Location

PAIR_COLUMNS = ("benchmark", "source_1", "source_2", "n", "agreeing", "agreement", "chance", "kappa")
CONFUSION_COLUMNS = ("benchmark", "source_1", "source_2", "value_1", "value_2", "n")
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


@labels.command("agreement")
@click.argument("scheme")
@click.option("--between", nargs=2, metavar="SOURCE1 SOURCE2", help="Only these two sources (default: every pair).")
@click.option("--by-benchmark", is_flag=True, help="For each benchmark by itself.")
@click.option("--confusion", is_flag=True, help="How often each value of one source meets each value of the other, instead of the summary.")
@click.option("--format", "format_", type=click.Choice(TEXT_FORMATS), default="table", show_default=True, help="Output format.")
@json_option
@store_options
def agreement(
    scheme: str,
    between: tuple[str, str] | None,
    by_benchmark: bool,
    confusion: bool,
    format_: str,
    as_json: bool,
    location: Location,
) -> None:
    """Compare label sources of a SCHEME: agreement, Cohen's kappa and the confusion table.

    Over the questions that both sources label. As a table both are shown; --json gives both as one object.
    """
    from cli.output import json_text, write_rows
    from tracker.agreement import agreement as compare
    from tracker.api import Tracker

    with Tracker(location) as tracker:
        found = compare(tracker.session(), scheme, between or None, by_benchmark=by_benchmark)
    if as_json:
        click.echo(json_text({"scheme": scheme, "pairs": found.pairs, "confusion": found.confusion}, indent=True))
        return
    dropped = set() if by_benchmark else {"benchmark"}
    tables = [(PAIR_COLUMNS, found.pairs), (CONFUSION_COLUMNS, found.confusion)]
    for number, (columns, rows) in enumerate(tables[1:] if confusion else tables if format_ == "table" else tables[:1]):
        if number:
            click.echo()
        names = [name for name in columns if name not in dropped]
        write_rows(names, [[row[name] for name in names] for row in rows], format=format_)


def _write(rows: list[dict[str, object]], stream: TextIO, *, as_json: bool) -> None:
    import csv
    import json

    if as_json:
        stream.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        return
    writer = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
