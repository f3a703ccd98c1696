"""`trackr runs list|show|delete`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from cli.options import ROW_ID, json_option, store_options

if TYPE_CHECKING:
    from tracker.config import Location

LIST = """
select r.id, r.status, r.current, m.name as model, b.name as benchmark, c.input_mode, c.input_size, c.variant,
       r.n_records, r.source_format, r.ended_at, r.source_uri
from runs r join configurations c on r.configuration_id = c.id join models m on c.model_id = m.id
left join benchmarks b on r.benchmark_id = b.id
where ($model is null or m.name ilike $model or m.id in (select model_id from model_aliases where lower(alias) = lower($model)))
  and ($benchmark is null or b.name ilike $benchmark or b.id in (select benchmark_id from benchmark_aliases where lower(alias) = lower($benchmark)))
  and ($status is null or r.status = $status)
order by r.id
"""


@click.group()
def runs() -> None:
    """List, show and delete runs."""


@runs.command("list")
@click.option("--model", help="Only this model, under any spelling (% stands for anything).")
@click.option("--benchmark", help="Only this benchmark, under any spelling (% stands for anything).")
@click.option("--status", type=click.Choice(["finished", "partial", "failed"]), help="Only runs of this status.")
@json_option
@store_options
def list_runs(model: str | None, benchmark: str | None, status: str | None, as_json: bool, location: Location) -> None:
    """List runs with their ids."""
    from cli.output import write_rows
    from tracker.api import Tracker

    with Tracker(location) as tracker:
        result = tracker.sql(LIST, {"model": model, "benchmark": benchmark, "status": status})
        write_rows([column[0] for column in result.description], result.fetchall(), as_json=as_json)


@runs.command("show")
@click.argument("run_id", type=ROW_ID)
@json_option
@store_options
def show_run(run_id: int, as_json: bool, location: Location) -> None:
    """Show everything that is known of one run."""
    from tracker.api import Tracker
    from tracker.errors import UsageError

    with Tracker(location) as tracker:
        found = _one(
            tracker,
            "select r.*, m.name as model, b.name as benchmark from runs r join configurations c on r.configuration_id = c.id join models m on c.model_id = m.id left join benchmarks b on r.benchmark_id = b.id where r.id = $id",
            run_id,
        )
        if found is None:
            message = f"no run with id {run_id}"
            raise UsageError(message, hint="trackr runs list shows the ids")
        found["configuration"] = _one(
            tracker, "select c.* from configurations c where c.id = (select configuration_id from runs where id = $id)", run_id
        )
        found["places"] = _all(tracker, "select uri, digest, seen_at from run_sources where run_id = $id order by uri", run_id)
        found["scores"] = _all(tracker, "select metric, value, special, stderr, n from scores where run_id = $id order by metric", run_id)
        found["answers"] = _one(
            tracker,
            "select count(*) as records, count(credit) as scored, avg(credit) as accuracy, avg(p_gold) as p_gold, avg(visual_tokens) as visual_tokens from answers where run_id = $id",
            run_id,
        )
    _print(found, as_json=as_json)


@runs.command("delete")
@click.argument("run_ids", type=ROW_ID, nargs=-1, required=True)
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@json_option
@store_options
def delete_run(run_ids: tuple[int, ...], yes: bool, as_json: bool, location: Location) -> None:
    """Delete runs with their records; cells and trajectories follow."""
    from tracker.api import Tracker

    if not yes:
        click.confirm(f"Delete {len(run_ids)} run{'s' if len(run_ids) > 1 else ''} with all records?", abort=True, err=True)
    with Tracker(location) as tracker:
        records = tracker.delete_runs(run_ids)
    if as_json:
        _print({"deleted_runs": list(run_ids), "deleted_records": records}, as_json=True)
    else:
        click.echo(
            f"deleted {len(run_ids)} run{'s' if len(run_ids) > 1 else ''}, {records:,} records (their files are untouched: the next ingest of them brings them back)"
        )


def _all(tracker: Any, query: str, run_id: int) -> list[dict[str, Any]]:
    result = tracker.sql(query, {"id": run_id})
    names = [column[0] for column in result.description]
    return [dict(zip(names, row, strict=True)) for row in result.fetchall()]


def _one(tracker: Any, query: str, run_id: int) -> dict[str, Any] | None:
    rows = _all(tracker, query, run_id)
    return rows[0] if rows else None


def _print(value: dict[str, Any], *, as_json: bool) -> None:
    import orjson

    if as_json:
        click.echo(orjson.dumps(value, option=orjson.OPT_INDENT_2, default=str))
        return
    for name, content in value.items():
        if isinstance(content, dict | list) and not content:
            continue
        if isinstance(content, dict):
            click.echo(f"{name}:")
            for inner, inner_value in content.items():
                if inner_value is not None:
                    click.echo(f"  {inner}: {inner_value}")
        elif isinstance(content, list):
            click.echo(f"{name}:")
            for row in content:
                click.echo("  " + ", ".join(f"{inner}={inner_value}" for inner, inner_value in row.items() if inner_value is not None))
        elif content is not None:
            click.echo(f"{name}: {content}")
