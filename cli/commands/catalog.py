"""`trackr catalog`: what is known of models and benchmarks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cli.options import json_option, store_options
from tracker.errors import InputError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tracker.catalog import Catalog
    from tracker.config import Location

_TABLES = ("models", "benchmarks", "backbones", "series", "families", "frontends", "encoders")


@click.group()
def catalog() -> None:
    """Show, import and export what is known of models and benchmarks."""


@catalog.command()
@click.argument("name", required=False)
@store_options
@json_option
def show(name: str | None, location: Location, *, as_json: bool) -> None:
    """List models and benchmarks, or describe NAME (any spelling of it)."""
    known = _catalog(location)
    found = _describe(known, name) if name else None
    if as_json:
        shown = found if found is not None else {table: [_fields(spec) for spec in getattr(known, table).values()] for table in _TABLES}
        click.echo(json.dumps(shown, ensure_ascii=False, default=dict))
    elif found is not None:
        for entry in found:
            _print_entry(entry)
    else:
        _print_lists(known)


@catalog.command("export")
@click.argument("file", required=False, type=click.Path(dir_okay=False, path_type=Path))
@store_options
def export(file: Path | None, location: Location) -> None:
    """Write every description as TOML to FILE, or to stdout; what was only found in files has none."""
    from tracker.catalog import dump

    text = dump(_catalog(location, found=False))
    if file is None or str(file) == "-":
        click.echo(text, nl=False)
        return
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as err:
        message = f"cannot be written: {err.strerror}"
        raise InputError(message, where=str(file)) from err
    click.echo(f"wrote {file}", err=True)


@catalog.command("import")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@store_options
@json_option
def import_(file: Path, location: Location, *, as_json: bool) -> None:
    """Take the descriptions of a TOML FILE into the database and re-link what was ingested before."""
    from tracker.api import Tracker

    with Tracker(location) as tracker:
        report = tracker.import_catalog(file)
    counts = {name: _number(getattr(report, name)) for name in ("added", "changed", "merged_models", "merged_benchmarks", "relinked_runs")}
    if as_json:
        click.echo(json.dumps(counts))
    else:
        click.echo(", ".join(f"{value} {name.replace('_', ' ')}" for name, value in counts.items()))


def _catalog(location: Location, *, found: bool = True) -> Catalog:
    """The database's descriptions; the shipped ones while there is no database."""
    from tracker.database.peek import peek

    if peek(location.url) is None:
        from tracker.catalog import load

        return load()
    from tracker.api import Tracker

    with Tracker(location) as tracker:
        return tracker.export_catalog(found=found)


def _describe(known: Catalog, name: str) -> list[dict[str, Any]]:
    """Every entry that a name means, with its table."""
    found = [("models", known.model(name)), ("benchmarks", known.benchmark(name)), ("backbones", known.backbone(name))]
    found += [(table, getattr(known, table).get(name)) for table in ("series", "families", "frontends", "encoders")]
    entries = []
    for table, spec in found:
        if spec is not None:
            entry = {"table": table, **_fields(spec)}
            if table == "models":
                entry |= _of_model(known, spec)
            entries.append(entry)
    if not entries:
        message = f"nothing known as {name!r}"
        raise UsageError(message, hint=_near(known, name))
    return entries


def _of_model(known: Catalog, model: Any) -> dict[str, Any]:
    """What a model gets from its series and backbone."""
    series = known.series.get(model.series)
    frontend = known.frontend_of(model)
    return {
        "family": series.family if series else None,
        "frontend": frontend.name if frontend else None,
        "parameters": known.parameters_of(model),
    }


def _near(known: Catalog, name: str) -> str:
    import difflib

    spellings = {
        spelling: None
        for table in _TABLES
        for spec in getattr(known, table).values()
        for spelling in (spec.name, *getattr(spec, "aliases", ()))
    }
    near = difflib.get_close_matches(name, spellings, n=1)
    return f"did you mean {near[0]!r}?" if near else "see `trackr catalog show` for what is known, docs/catalog.md for how to describe more"


def _fields(spec: Any) -> dict[str, Any]:
    return {field: getattr(spec, field) for field in spec.__dataclass_fields__}


def _number(value: Any) -> int:
    return value if isinstance(value, int) else len(value)


def _print_entry(entry: Mapping[str, Any]) -> None:
    click.echo(f"{entry['name']} ({entry['table']})")
    for field, value in entry.items():
        if field in {"name", "table"} or value is None or value in ((), {}):
            continue
        click.echo(f"  {field:<18} {_shown(value)}")


def _shown(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, tuple):
        return ", ".join(value)
    if isinstance(value, str):
        return value
    return ", ".join(f"{key} = {item}" for key, item in value.items())


def _print_lists(known: Catalog) -> None:
    rows = []
    for model in known.models.values():
        frontend, count = known.frontend_of(model), known.parameters_of(model)
        rows.append((model.name, model.series, model.backbone or "", f"{count:,}" if count else "", frontend.name if frontend else ""))
    _print_table(("model", "series", "backbone", "parameters", "frontend"), rows, right=3)
    click.echo()
    benchmarks = [(b.name, b.suite or "", f"{b.n_questions:,}" if b.n_questions else "") for b in known.benchmarks.values()]
    _print_table(("benchmark", "suite", "questions"), benchmarks, right=2)


def _print_table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]], *, right: int) -> None:
    """Columns as wide as their content; one column to the right."""
    lines = [header, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    for line in lines:
        cells = [
            f"{cell:>{width}}" if column == right else f"{cell:<{width}}"
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        click.echo("  ".join(cells).rstrip())
