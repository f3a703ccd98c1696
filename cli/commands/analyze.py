"""`trackr analyze NAME`: run an analysis. Its options are made from its Parameters model."""

from __future__ import annotations

import json
import types
import typing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from analyses.registry import all_analyses, find
from cli.options import json_option, store_options
from tracker.errors import AnalysisError, TrackrError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic import BaseModel
    from pydantic.fields import FieldInfo

    from analyses.registry import AnalysisEntry
    from analyses.result import Result
    from tracker.api import Tracker
    from tracker.config import Location


class _AnalysisGroup(click.Group):
    """One subcommand per registered analysis, imported when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order of the registry."""
        del ctx
        return [entry.name for entry in all_analyses()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Make the command of one analysis."""
        del ctx
        return _command(find(cmd_name)) if cmd_name in self.list_commands(None) else None  # type: ignore[arg-type]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List analyses without importing them."""
        del ctx
        with formatter.section("Analyses"):
            formatter.write_dl([(entry.name, entry.summary) for entry in all_analyses()])


@click.group(cls=_AnalysisGroup)
def analyze() -> None:
    """Run an analysis."""


def _command(entry: AnalysisEntry) -> click.Command:
    model = entry.load().Parameters

    @store_options
    def run(location: Location, **options: Any) -> int:
        outputs = {name: options.pop(name) for name in ("as_json", "csv", "plot", "chart", "html", "save", "no_sync")}
        given = {name: value for name, value in options.items() if value not in {None, ()}}
        if "cohort" in given:
            given["cohort"] = _read(given["cohort"])
        return _analyse(entry, location, given, **outputs)

    for decorator in reversed([*_parameter_options(model), *_output_options()]):
        run = decorator(run)
    return click.command(entry.name, help=f"{entry.summary}\n\nConditions and cohorts use the columns of answers (trackr schema answers).")(
        run
    )


def _analyse(
    entry: AnalysisEntry,
    location: Location,
    given: dict[str, Any],
    *,
    as_json: bool,
    csv: Path | None,
    plot: Path | None,
    chart: tuple[str, ...],
    html: Path | None,
    save: bool,
    no_sync: bool,
) -> int:
    """Run, store, write the files that were asked for, print. A file that cannot be written costs the exit code, not the answer."""
    from analyses.parameters import checked
    from analyses.progress import reporting
    from cli.progress import Progress
    from tracker.api import Tracker

    module = entry.load()
    parameters = checked(module.Parameters, given)
    _check_plot(plot, chart)
    progress = Progress()
    with Tracker(location) as tracker:
        with reporting(progress):
            result = module.run(tracker.session(sync=not no_sync), parameters)
        progress.close()
        problems = _unknown_charts(result, chart)
        if save and not problems:
            result = _stored(tracker, result)
    problems += _write(result, csv=csv, plot=None if problems else plot, charts=chart, html=html)
    _print(result, as_json=as_json)
    for problem in problems:
        click.echo(f"trackr: {problem}", err=True)
    return problems[0].exit_code if problems else 0


def _check_plot(plot: Path | None, charts: tuple[str, ...]) -> None:
    """UsageError for what can be seen to be wrong before anything runs."""
    if plot is not None:
        from analyses.plot import format_of

        format_of(plot)
    elif charts:
        message = "names a chart for --plot FILE, which is not given"
        raise UsageError(message, where="--chart")


def _unknown_charts(result: Result, names: tuple[str, ...]) -> list[TrackrError]:
    if not names:
        return []
    from analyses.plot import check_names

    try:
        check_names(result, names)
    except UsageError as err:
        return [err]
    return []


def _print(result: Result, *, as_json: bool) -> None:
    for warning in result.warnings:
        click.echo(f"trackr: {warning}", err=True)
    if as_json:
        click.echo(json.dumps(result.envelope(), allow_nan=False, ensure_ascii=False))
    else:
        from analyses.text import render

        click.echo(render(result))


def _stored(tracker: Tracker, result: Result) -> Result:
    """Store the result; whoever may only read gets the answer and a warning."""
    from analyses.store import save

    try:
        identity = save(tracker.database(create_missing=False), result)
    except TrackrError as err:
        return result.warn(f"the result was not stored: {err}")
    click.echo(f"trackr: stored as analysis {identity} (trackr analyses show {identity})", err=True)
    return result


def _write(result: Result, *, csv: Path | None, plot: Path | None, charts: tuple[str, ...], html: Path | None) -> list[TrackrError]:
    """Write the files; what went wrong with some."""
    wanted: list[tuple[Path, Callable[[Result, Path], object]]] = []
    if csv is not None:
        from analyses.export import save_csv

        wanted.append((csv, save_csv))
    if plot is not None:
        from analyses.plot import save_plot

        wanted.append((plot, partial(save_plot, names=charts)))
    if html is not None:
        from analyses.report import save_report

        wanted.append((html, save_report))
    problems: list[TrackrError] = []
    for path, save in wanted:
        try:
            _to_disk(path, save, result)
        except TrackrError as err:
            problems.append(err)
    return problems


def _to_disk(path: Path, save: Callable[[Result, Path], object], result: Result) -> None:
    try:
        save(result, path)
    except OSError as err:
        message = f"cannot be written: {err.strerror}"
        raise AnalysisError(message, where=str(path), hint="choose another path") from err
    except ModuleNotFoundError as err:
        message = f"charts need {err.name}, which is not installed"
        raise AnalysisError(message, where=str(path), hint="pip install altair vl-convert-python") from err
    click.echo(f"trackr: wrote {path}", err=True)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as err:
        message = f"cannot be read: {err.strerror if isinstance(err, OSError) else 'not UTF-8'}"
        raise TrackrError(message, where=f"--cohort {path}") from err


def _output_options() -> list[Callable[[Any], Any]]:
    file = click.Path(dir_okay=False, path_type=Path)
    return [
        json_option,
        click.option(
            "--csv", type=click.Path(file_okay=False, path_type=Path), metavar="DIR", help="Write one CSV file per table into DIR."
        ),
        click.option("--plot", type=file, metavar="FILE", help="Draw the charts into FILE (.svg, .png or .html)."),
        click.option("--chart", multiple=True, metavar="NAME", help="Draw only this chart; repeatable (default: all on one sheet)."),
        click.option("--html", type=file, metavar="FILE", help="Write a self-contained report."),
        click.option("--save/--no-save", default=True, show_default=True, help="Store the result in the database."),
        click.option("--no-sync", is_flag=True, help="Use the lake as it is, even when the database is newer."),
    ]


def _parameter_options(model: type[BaseModel]) -> list[Callable[[Any], Any]]:
    hints = typing.get_type_hints(model)
    return [_option(name, field, hints[name]) for name, field in model.model_fields.items()]


def _option(name: str, field: FieldInfo, hint: Any) -> Callable[[Any], Any]:
    """A click option for a pydantic field; values that are not given stay with the model."""
    flag = "--" + name.replace("_", "-")
    text = (field.description or "").rstrip(".")
    if name == "cohort":
        return click.option(
            flag, type=click.Path(exists=False, dir_okay=False, path_type=Path), metavar="FILE.sql", help=f"File with {text}."
        )
    if isinstance(field.json_schema_extra, dict) and field.json_schema_extra.get("argument"):
        return click.argument(name, nargs=-1, required=field.is_required(), metavar=str(field.json_schema_extra["argument"]))
    kind, multiple = _kind(hint)
    if kind is bool:
        return click.option(
            f"{flag}/--no-{name.replace('_', '-')}", default=None, help=f"{text}  [default: {'on' if field.default else 'off'}]"
        )
    default = ",".join(map(str, field.default)) if isinstance(field.default, tuple) else field.default
    shown = f"{text}; repeatable" if multiple and "repeatable" not in text else text
    many = multiple and kind is not str  # a text may hold commas of its own
    return click.option(
        flag,
        type=_Listed(kind) if many else kind,
        multiple=multiple,
        default=None,
        callback=_flat if many else None,
        help=shown if default in {None, ""} else f"{shown}  [default: {default}]",
    )


class _Listed(click.ParamType[tuple[Any, ...]]):
    """One value, or several with commas between them."""

    name = "list"

    def __init__(self, kind: Any) -> None:
        self.kind = click.types.convert_type(kind)

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str | None:
        """The values there are, or their type."""
        return str(self.kind.get_metavar(param, ctx) or self.kind.name.upper())

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[Any, ...]:
        """The values of one option."""
        return tuple(self.kind.convert(part.strip(), param, ctx) for part in value.split(","))


class _Numbers(click.ParamType[tuple[Any, ...]]):
    """So many numbers with commas between them, such as 0.05,10."""

    name = "numbers"

    def __init__(self, kinds: tuple[type, ...]) -> None:
        self.kinds = kinds

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str | None:
        """How they are written."""
        del param, ctx
        return ",".join("X" for _ in self.kinds)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[Any, ...]:
        """The numbers."""
        parts = value.split(",")
        try:
            return tuple(kind(part) for kind, part in zip(self.kinds, parts, strict=True))
        except ValueError:
            self.fail(f"expected {len(self.kinds)} numbers with commas between them, found {value!r}", param, ctx)


def _flat(ctx: click.Context, param: click.Parameter, value: tuple[tuple[Any, ...], ...]) -> tuple[Any, ...]:
    """The values of all uses of an option, each once."""
    del ctx, param
    return tuple(dict.fromkeys(one for some in value for one in some))


def _kind(hint: Any) -> tuple[Any, bool]:
    """Click's type of an annotation, and whether the option repeats."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return _kind(arguments[0])
    if origin is typing.Literal:
        return click.Choice(arguments), False
    if origin is tuple and arguments[-1] is not Ellipsis:
        return _Numbers(arguments), False
    if origin is tuple:
        return _kind(arguments[0])[0], True
    if origin in {types.UnionType, typing.Union}:
        return _kind(next(argument for argument in arguments if argument is not type(None)))
    return hint, False
