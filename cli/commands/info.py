"""`trackr info`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from cli.options import json_option, store_options

if TYPE_CHECKING:
    from pathlib import Path

    from tracker.config import Location

COUNTED = (
    "models",
    "benchmarks",
    "questions",
    "configurations",
    "runs",
    "records",
    "record_scores",
    "trajectories",
    "metric_points",
    "scores",
    "question_labels",
    "rejections",
    "analyses",
)


@click.command()
@json_option
@store_options
def info(as_json: bool, location: Location) -> None:
    """Say where database and lake are, their versions, counts and sizes."""
    found = collect(location)
    if as_json:
        import orjson

        click.echo(orjson.dumps(found, option=orjson.OPT_INDENT_2, default=str))
        return
    for section, values in found.items():
        click.echo(f"{section}:")
        for name, value in values.items():
            click.echo(
                f"  {name}: {f'{value:,}' if isinstance(value, int) and not isinstance(value, bool) and name != 'data_version' else value}"
            )


def collect(location: Location) -> dict[str, dict[str, Any]]:
    """Everything that `trackr info` says."""
    from tracker.config import mask
    from tracker.database.peek import peek

    state = peek(location.url)
    found: dict[str, dict[str, Any]] = {
        "trackr": _versions(),
        "database": {"url": mask(location.url), "said by": location.url_origin, "exists": state is not None},
        "lake": _lake(location),
    }
    if state is not None:
        found["database"] |= {"uuid": state.uuid, "data_version": state.data_version, "schema": state.revision, **_file(location)}
        found["rows"] = _counts(location)
    return found


def _versions() -> dict[str, Any]:
    import platform
    from importlib.metadata import version as installed

    from tracker.version import version

    packages = {name: installed(name) for name in ("duckdb", "sqlalchemy", "pyarrow")}
    return {"version": version(), "python": platform.python_version(), **packages}


def _file(location: Location) -> dict[str, Any]:
    path = location.sqlite_path
    if path is None:
        return {}
    from tracker.database.engine import NETWORK_FILE_SYSTEMS, file_system
    from tracker.database.peek import connect_readonly

    connection = connect_readonly(path)
    journal = connection.execute("PRAGMA journal_mode").fetchone()[0]
    connection.close()
    kind = file_system(path)
    note = " (a network file system: rollback journal instead of WAL)" if kind in NETWORK_FILE_SYSTEMS else ""
    return {"journal": journal, "file system": f"{kind or 'unknown'}{note}", "bytes": path.stat().st_size}


def _lake(location: Location) -> dict[str, Any]:
    from tracker.lake import Lake

    manifest = Lake(location.lake).manifest()
    found: dict[str, Any] = {"folder": str(location.lake), "said by": location.lake_origin, "exists": manifest is not None}
    if manifest is not None:
        found |= {"data_version": manifest.data_version, "synced_at": manifest.synced_at, "bytes": _size(location.lake)}
    return found


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _counts(location: Location) -> dict[str, int]:
    from tracker.database.peek import rows

    return {name: rows(location.url, f"SELECT count(*) FROM {{0}}{name}")[0][0] for name in COUNTED}
