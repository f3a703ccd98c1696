"""The `trackr` command: a table of commands, each loaded when it is called."""

from __future__ import annotations

import errno
import importlib
import os
import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if os.path.basename(sys.argv[0]) == "trackr" and signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # noqa: PTH119 - pathlib is slow
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C while the program loads just ends it, without a stack trace

import click

from tracker.errors import TrackrError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType

COMMANDS: dict[str, tuple[str, str]] = {
    "ingest": ("cli.commands.ingest:ingest", "Read run folders and files into the database."),
    "query": ("cli.commands.query:query", "Ask anything in DuckDB SQL."),
    "analyze": ("cli.commands.analyze:analyze", "Run an analysis."),
    "analyses": ("cli.commands.analyses:analyses", "List and show stored results."),
    "schema": ("cli.commands.schema:schema", "Describe tables, views and their columns."),
    "export": ("cli.commands.export:export", "Write runs in formats of others."),
    "runs": ("cli.commands.runs:runs", "List, show and delete runs."),
    "catalog": ("cli.commands.catalog:catalog", "Show, import and export what is known of models and benchmarks."),
    "labels": ("cli.commands.labels:labels", "Import, export and rank question labels."),
    "lake": ("cli.commands.lake:lake", "Look after the Parquet copy of the database."),
    "db": ("cli.commands.db:db", "Create, upgrade and check the database."),
    "info": ("cli.commands.info:info", "Say where things are, versions, counts and sizes."),
    "simulate": ("cli.commands.simulate:simulate", "Write the run folders of a study with planted truth."),
}
"""name -> (module:attribute, one line of help)."""

UNWRITABLE = frozenset({errno.EBADF, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ENOSPC})
"""What the system answers where standard output takes nothing."""

ENGINES = frozenset({"_duckdb", "duckdb", "psycopg", "pyarrow", "sqlalchemy", "sqlite3"})
"""Modules whose errors are about the data or the machine, wherever nobody told them better."""


class LazyGroup(click.Group):
    """A group whose commands are imported when they are called, not when help is printed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order of the table."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command."""
        del ctx
        if cmd_name not in COMMANDS:
            return None
        module, attribute = COMMANDS[cmd_name][0].split(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command. Whoever reads stdout may stop early (`| head`): that is no error, but Click would make it exit code 1."""
        try:
            code = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        return code

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List commands without importing them."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        """Answer a misspelt command with the nearest one."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as err:
            import difflib

            near = difflib.get_close_matches(args[0], COMMANDS, n=1)
            if near:
                message = f"{err.message} Did you mean {near[0]!r}?"
                raise click.UsageError(message, ctx) from None
            raise


def print_version(ctx: click.Context, _option: click.Parameter, value: bool) -> None:
    """Print the installed version."""
    if value and not ctx.resilient_parsing:
        from tracker.version import version

        click.echo(f"trackr {version()}")
        ctx.exit()


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--version", is_flag=True, expose_value=False, is_eager=True, callback=print_version, help="Print the version and exit.")
def cli() -> None:
    """Keep every question that a model was asked, and answer what scaling does to it."""


def main(args: Sequence[str] | None = None) -> None:
    """Run the command line; every error becomes one line on stderr (or JSON on stdout) here."""
    arguments = list(sys.argv[1:] if args is None else args)
    _open_standard_streams()
    try:
        code = _run(arguments)
    except OSError as err:
        code = _system_error(arguments, err)
    sys.exit(code)


def _run(arguments: list[str]) -> int:
    """Run a command and say what went wrong; what cannot be said is an OSError."""
    try:
        code = _called(arguments)
    except TrackrError as err:
        code = _report(arguments, err.kind, err.message, err.where, err.hint, err.exit_code)
    except click.ClickException as err:
        if not _wants_json(arguments):
            err.show()
        code = _report(arguments, "usage", err.format_message(), None, None, err.exit_code, quiet=True)
    except (click.Abort, KeyboardInterrupt):
        code = _interrupted()
    except RuntimeError as err:
        if "interrupted" not in str(err).lower():  # how DuckDB tells a Ctrl-C that came while it worked
            raise
        code = _interrupted()
    except MemoryError:
        code = _report(arguments, "error", "there is not enough memory", None, "close other programs, or ask for less at once", 1)
    except Exception as err:  # what an engine says of a broken store is one line; a fault of our own keeps its traceback
        if isinstance(err, OSError) or type(err).__module__.partition(".")[0] not in ENGINES:
            raise
        first = next(iter(str(err).strip().splitlines()), type(err).__name__)
        code = _report(arguments, "error", first, None, "trackr lake verify and trackr db check tell whether the store is sound", 1)
    return code if isinstance(code, int) else 0


def _called(arguments: list[str]) -> Any:
    """Run a command; whatever goes wrong after Ctrl-C is its doing: a module that was being loaded, say, answers with an ImportError."""
    interrupts: list[int] = []

    def interrupt(number: int, frame: FrameType | None) -> None:
        interrupts.append(number)
        signal.default_int_handler(number, frame)

    before = signal.getsignal(signal.SIGINT)
    if before in {signal.SIG_DFL, signal.default_int_handler}:
        with suppress(ValueError):  # another thread than the first
            signal.signal(signal.SIGINT, interrupt)
    try:
        return cli.main(arguments, prog_name="trackr", standalone_mode=False)
    except Exception as err:
        if interrupts:
            raise KeyboardInterrupt from err
        raise
    finally:
        if signal.getsignal(signal.SIGINT) is interrupt:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def _open_standard_streams() -> None:
    """Give a stream that the caller closed to the null device, from which nothing can be read and to which nothing can be written.

    Otherwise the next file that is opened would take its number, and whatever is printed would go into that file.
    """
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is None:
            # What goes to stderr may be lost; data that is lost is an error.
            flags = os.O_RDONLY if name == "stdout" else os.O_WRONLY
            opened = os.open(os.devnull, flags)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115 - it lives as long as the process


def _system_error(arguments: list[str], err: OSError) -> int:
    """What the system refused, in one line; an error of writing that names no file is one of standard output."""
    what = (err.strerror or str(err) or type(err).__name__).splitlines()[0]
    with suppress(OSError):
        if err.filename is not None or err.errno not in UNWRITABLE:
            where = None if err.filename is None else os.fsdecode(err.filename)
            return _report(arguments, "error", what, where, "check the path, its permissions and the space left", 1)
    with suppress(OSError):
        sys.stdout.flush()  # what is left of it would fail again when Python ends
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    with suppress(OSError):
        click.echo(f"trackr: standard output cannot be written: {what} (free space, or write to another place)", err=True)
    return 1


def _interrupted() -> int:
    click.echo("trackr: interrupted", err=True)
    return 130


def _wants_json(arguments: list[str]) -> bool:
    return "--json" in arguments


def _report(arguments: list[str], kind: str, message: str, where: str | None, hint: str | None, code: int, *, quiet: bool = False) -> int:
    """Print an error the way that was asked for."""
    if _wants_json(arguments):
        import json

        error: dict[str, Any] = {"kind": kind, "message": message, "where": where, "hint": hint}
        click.echo(json.dumps({"error": error}))
    elif not quiet:
        place = f"{where}: " if where else ""
        remedy = f" ({hint})" if hint else ""
        click.echo(f"trackr: {place}{message}{remedy}", err=True)
    return code


if __name__ == "__main__":
    main()
