"""`trackr export every-eval-ever`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from cli.options import json_option, store_options

if TYPE_CHECKING:
    from datetime import datetime

    from tracker.config import Location
    from tracker.every_eval_ever import Export


@click.group()
def export() -> None:
    """Write runs in formats of others."""


@export.command("every-eval-ever")
@click.argument("folder", metavar="OUT_DIR", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--where", metavar="SQL", help="Which runs, as a condition over model, series, benchmark, status, ... (default: current and finished)."
)
@click.option("--collection", metavar="NAME", help="First folder below data/ (default: the benchmark).")
@click.option("--developer", metavar="NAME", default="unspecified", show_default=True, help="Developer of models whose name has none.")
@click.option("--organization", metavar="NAME", default="unspecified", show_default=True, help="Who provides the results.")
@click.option(
    "--relationship",
    type=click.Choice(["first_party", "third_party", "collaborative", "other"]),
    default="other",
    show_default=True,
    help="Of the evaluator to the model's developer.",
)
@click.option(
    "--retrieved", metavar="TIME", help="When the results were collected, ISO 8601 or seconds since 1970 (default: the end of each run)."
)
@click.option("--overwrite", is_flag=True, help="Replace files that trackr did not write.")
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
@json_option
@store_options
def every_eval_ever(
    folder: Path,
    where: str | None,
    collection: str | None,
    developer: str,
    organization: str,
    relationship: str,
    retrieved: str | None,
    overwrite: bool,
    quiet: bool,
    as_json: bool,
    location: Location,
) -> None:
    """Write runs as Every Eval Ever documents (schema 0.3.0) below OUT_DIR/data.

    One document and one samples file per run. Records without a score cannot be expressed there: they are left out and counted.
    The same data gives the same bytes again.
    """
    from cli.progress import Progress
    from tracker.api import Tracker
    from tracker.every_eval_ever import Choices
    from tracker.every_eval_ever import export as write

    choices = Choices(
        where=where,
        collection=collection,
        developer=developer,
        organization=organization,
        relationship=relationship,
        retrieved=_moment(retrieved),
        overwrite=overwrite,
    )
    progress = Progress(quiet=quiet)
    with Tracker(location) as tracker:
        try:
            done = write(tracker.session(), folder, choices, progress)
        finally:
            progress.close()
    _say(done, folder, as_json=as_json)


def _say(done: Export, folder: Path, *, as_json: bool) -> None:
    if as_json:
        import orjson

        click.echo(orjson.dumps(done.to_json(), option=orjson.OPT_INDENT_2))
    else:
        click.echo(f"{done.documents:,} documents with {done.rows:,} rows written below {folder}", err=True)
    if done.unscored:
        click.echo(f"left out: {done.unscored:,} records without a score (the format demands one)", err=True)
    if done.empty:
        click.echo(f"left out: {done.empty:,} runs of which nothing can be expressed", err=True)


def _moment(text: str | None) -> datetime | None:
    from tracker.errors import UsageError
    from tracker.readers.columns import moment

    try:
        return moment(text)
    except (ValueError, OverflowError, OSError) as err:
        message = f"--retrieved {text!r} is no time"
        raise UsageError(message, hint="2026-01-31T12:00:00Z, or seconds since 1970") from err
