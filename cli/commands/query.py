"""`trackr query`: anything, in DuckDB SQL."""

from __future__ import annotations

import re
import sys
import uuid
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from cli.options import store_options
from cli.output import TERMINAL_ROWS, TERMINAL_WIDTH, TEXT_FORMATS, write_rows
from tracker.errors import TrackrError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tracker.config import Location
    from tracker.lake import Session

BINARY_FORMATS = ("parquet", "arrow")
SUFFIXES = {
    ".csv": "csv",
    ".json": "json",
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
    ".md": "markdown",
    ".txt": "table",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}
FETCH_ROWS = 2000


@click.command()
@click.argument("sql", required=False)
@click.option("-f", "--file", metavar="FILE", help="Read the SQL from a file (-: standard input).")
@click.option(
    "--format", "format_", type=click.Choice([*TEXT_FORMATS, *BINARY_FORMATS]), help="Output format (default: by -o's suffix, else table)."
)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Write here instead of to stdout.")
@click.option("-p", "--param", "params", multiple=True, metavar="NAME=VALUE", help="A value for $NAME in the SQL; may be repeated.")
@click.option("--limit", type=click.IntRange(min=0), metavar="N", help="At most N rows (default: all).")
@click.option("--all", "show_all", is_flag=True, help="Show every row and whole texts on a terminal too.")
@click.option("--no-sync", is_flag=True, help="Ask the lake as it is, without looking at the database.")
@store_options
def query(
    sql: str | None,
    file: str | None,
    format_: str | None,
    as_json: bool,
    output: Path | None,
    params: tuple[str, ...],
    limit: int | None,
    show_all: bool,
    no_sync: bool,
    location: Location,
) -> None:
    """Ask anything in DuckDB SQL.

    Tables and views: trackr schema. SQL is an argument, a file (-f) or standard input (-). Several statements run one
    after the other; the rows of the last one are printed.

    \b
    trackr query "select series, regime(accuracy) r, count(*) n from trajectories group by all"
    trackr query 'select * from answers where model = $m' -p m=InternVL3-8B -o answers.parquet
    """  # noqa: D301 - click wants the character
    text = read_sql(sql, file)
    values = parse_params(params)
    kind = choose_format("json" if as_json else format_, output)
    from cli.progress import Progress
    from tracker.lake import open_session

    progress = Progress()
    session = open_session(location, sync=not no_sync, talk=talk, progress=progress)
    progress.close()
    with session:
        if kind in BINARY_FORMATS:
            _write_binary(session, text, values, kind, output, limit)
        else:
            _write_text(session, text, values, kind, output, limit, show_all=show_all)


def read_sql(sql: str | None, file: str | None) -> str:
    """The SQL from where the user says it is."""
    if (sql is None) == (file is None):
        message = "the SQL is missing" if sql is None else "SQL was given both as an argument and with -f"
        raise UsageError(message, hint='trackr query "select * from cells", trackr query -f FILE, or trackr query - for standard input')
    if sql is not None and sql != "-":
        return sql
    name = file or "-"
    try:
        return sys.stdin.buffer.read().decode("utf-8") if name == "-" else Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as err:
        message = f"cannot read the SQL: {getattr(err, 'strerror', None) or err}"
        raise UsageError(message, where=name) from err


def parse_params(params: Sequence[str]) -> dict[str, Any]:
    """`NAME=VALUE` texts as typed values."""
    values: dict[str, Any] = {}
    for param in params:
        name, separator, value = param.partition("=")
        if not separator or not re.fullmatch(r"[A-Za-z_]\w*", name):
            message = f"--param {param!r} is not NAME=VALUE"
            raise UsageError(message)
        values[name] = typed(value)
    return values


def typed(text: str) -> int | float | bool | str | None:
    """Whole number, number, true, false, null; anything else is text."""
    if re.fullmatch(r"[+-]?\d+", text):
        return int(text)
    if re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", text):
        return float(text)
    return {"true": True, "false": False, "null": None}.get(text.lower(), text)


def choose_format(format_: str | None, output: Path | None) -> str:
    """The format that was asked for, else the one that the file's suffix means."""
    if format_ or output is None:
        if format_ in BINARY_FORMATS and output is None and sys.stdout.isatty():
            message = f"{format_} is not for a terminal"
            raise UsageError(message, hint=f"-o FILE.{format_}, or redirect stdout")
        return format_ or "table"
    kind = SUFFIXES.get(output.suffix.lower())
    if kind is None:
        message = f"the suffix of {output.name!r} tells no format"
        raise UsageError(message, hint=f"use --format, or one of {', '.join(SUFFIXES)}")
    return kind


def talk(line: str) -> None:
    """Say something that is not data."""
    click.echo(f"trackr: {line}", err=True)


def _write_text(
    session: Session, sql: str, values: Mapping[str, Any], kind: str, output: Path | None, limit: int | None, *, show_all: bool
) -> None:
    cursor = session.execute(sql, values)
    columns = [column[0] for column in cursor.description or ()]
    bounded = kind == "table" and output is None and sys.stdout.isatty() and not show_all
    max_rows = TERMINAL_ROWS if bounded and limit is None else limit
    rows = session.rows(cursor)
    with _target(output) as stream:
        write_rows(columns, rows, format=kind, stream=stream, max_rows=max_rows, max_width=TERMINAL_WIDTH if bounded else None)
    if max_rows is not None and next(rows, None) is not None:
        talk(
            f"only the first {max_rows:,} rows are shown; "
            + ("--all or -o FILE gives every row" if limit is None else "a larger --limit, or none, gives more")
        )


def _write_binary(session: Session, sql: str, values: Mapping[str, Any], kind: str, output: Path | None, limit: int | None) -> None:
    from cli.arrow import write_batches

    reader = session.batches(sql, values)
    if kind == "parquet" and (spans := [field.name for field in reader.schema if str(field.type) == "month_day_nano_interval"]):
        message = f"Parquet has no type for the intervals of {spans[0]}"
        raise UsageError(message, hint="cast them: CAST(x AS VARCHAR), or write --format arrow")
    with _target(output) as stream:
        cut = write_batches(reader, kind, stream, limit)
    if cut:
        talk(f"only the first {limit:,} rows are written; a larger --limit, or none, gives more")


@contextmanager
def _target(output: Path | None) -> Iterator[IO[bytes]]:
    """Stdout, or a file that appears only when it is complete."""
    if output is None:
        yield sys.stdout.buffer
        return
    special = output.exists() and not output.is_file()
    place = output if special else output.with_name(f".{output.name}.{uuid.uuid4().hex[:8]}")
    try:
        with place.open("wb") as stream:
            yield stream
        if not special:
            place.replace(output)
    except BaseException as err:
        if not special:
            place.unlink(missing_ok=True)
        if isinstance(err, OSError) and not isinstance(err, BrokenPipeError):
            message = f"cannot write: {err.strerror or err}"
            raise TrackrError(message, where=str(output)) from err
        raise
