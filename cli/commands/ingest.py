"""`trackr ingest PATH...`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from cli.options import Moment, json_option, store_options
from cli.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from tracker.config import Location
    from tracker.ingest.report import IngestReport

SHOWN = 20


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option("--study", type=click.Path(path_type=Path), help="Study file (default: study.toml in a PATH, else here).")
@click.option("--strict", is_flag=True, help="Read everything first; load only if nothing is rejected.")
@click.option("--dry-run", is_flag=True, help="Say what would be loaded and rejected; load nothing.")
@click.option(
    "--workers",
    type=click.IntRange(min=0),
    default=None,
    help="Reading processes; 0 reads in this one (default: one per core when it pays).",
)
@click.option(
    "--since",
    type=Moment(),
    metavar="TIME",
    help="Only what changed since then: a date, a time (UTC unless it says), or an age: 7d, 12h, 30m.",
)
@click.option("--experiment", "experiments", multiple=True, metavar="NAME", help="Only runs of this MLflow experiment (may be repeated).")
@click.option("-v", "--verbose", is_flag=True, help="List skipped files and every rejection.")
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
@json_option
@store_options
def ingest(
    paths: tuple[str, ...],
    study: Path | None,
    strict: bool,
    dry_run: bool,
    workers: int | None,
    since: datetime | None,
    experiments: tuple[str, ...],
    verbose: bool,
    quiet: bool,
    as_json: bool,
    location: Location,
) -> int:
    """Read run folders, files and MLflow stores into the database.

    A PATH is a folder, a file, or the address of an MLflow store: sqlite:///mlflow.db, postgresql://HOST/NAME,
    http://HOST:5000.

    What is unchanged is left alone; what is damaged is listed and stored as a rejection, and the rest goes in.
    Exit code 3 says that something was rejected.
    """
    from tracker.api import Tracker
    from tracker.quick import modest_memory, without_pandas

    without_pandas()
    modest_memory()
    progress = Progress(quiet=quiet)
    with Tracker(location) as tracker:
        try:
            report = tracker.ingest(
                *paths,
                study=study,
                strict=strict,
                dry_run=dry_run,
                workers=workers,
                since=since,
                experiments=experiments,
                progress=progress,
            )
        finally:
            progress.close()
    if as_json:
        import orjson

        click.echo(orjson.dumps(report.to_json(), option=orjson.OPT_INDENT_2))
    else:
        _summary(report, location, verbose=verbose)
    return report.exit_code


def _summary(report: IngestReport, location: Location, *, verbose: bool) -> None:
    from cli.output import sanitise

    click.echo(_counts(report, location))
    for name, names in (("model", report.unknown_models), ("benchmark", report.unknown_benchmarks)):
        if names:
            shown = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
            click.echo(f"not in the catalog, {name}{'s' if len(names) > 1 else ''}: {shown} (describe with: trackr catalog import FILE)")
    for note in _notes(report):
        click.echo(note)
    if report.rejected:
        kept = " (kept in the table rejections)" if report.loaded else ""
        click.echo(f"rejected: {len(report.rejected):,}{kept}", err=True)
        for one in report.rejected if verbose else report.rejected[:SHOWN]:
            place = f":{one.line}" if one.line is not None else ""
            click.echo(f"  {sanitise(one.file)}{place}: {sanitise(one.reason)}", err=True)
        if len(report.rejected) > SHOWN and not verbose:
            click.echo(f"  and {len(report.rejected) - SHOWN:,} more (-v lists all)", err=True)
    if report.skipped and not report.sources:
        click.echo(
            "nothing here is in a format that trackr knows (-v lists the files; docs/study-file.md tells how tables of any shape are read)",
            err=True,
        )
    if report.skipped and verbose:
        click.echo(f"no evaluation output: {len(report.skipped):,} files", err=True)
        for path in report.skipped:
            click.echo(f"  {sanitise(path)}", err=True)


def _notes(report: IngestReport) -> Iterator[str]:
    """What a reader of the numbers should know."""
    for reason, count in report.not_counting.items():
        yield f"not counting in cells and trajectories, in the whole database: {count:,} run{'s' if count > 1 else ''} {reason}"
    noted = {
        "answers to a question that the same run had answered (later attempts; the last scored one counts)": report.repeated,
        "questions that sources describe differently (the value that sorts first is kept)": report.disputed,
        "texts whose NUL characters were replaced": report.nul_characters,
    }
    yield from (f"{text}: {count:,}" for text, count in noted.items() if count)
    yield from (f"left out, {reason}: {count:,}" for reason, count in report.left_out.items())
    yield from (f"no file meets this rule of the study file: {rule}" for rule in report.idle_rules)


def _files(count: int) -> str:
    return "1 file is" if count == 1 else f"{count:,} files are"


def _counts(report: IngestReport, location: Location) -> str:
    from tracker.config import mask

    parts = [f"{report.new:,} new", f"{report.updated:,} updated", f"{report.unchanged:,} unchanged"]
    parts += [
        f"{count:,} {name}"
        for count, name in (
            (report.duplicate, "found again elsewhere"),
            (report.outdated, "older than what is stored"),
            (report.removed, "removed"),
            (report.partial, "not finished"),
        )
        if count
    ]
    skipped = f"; {_files(len(report.skipped))} no evaluation output" if report.skipped else ""
    verb = "would load" if report.dry_run else "loaded" if report.loaded else "loaded nothing (--strict): would have loaded"
    where = "" if report.dry_run else f" into {mask(location.url).removeprefix('sqlite:///')}"
    return f"{verb} {report.records:,} record{'' if report.records == 1 else 's'}{where}: runs {', '.join(parts)}{skipped} ({report.seconds:.1f} s)"
