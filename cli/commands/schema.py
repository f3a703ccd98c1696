"""`trackr schema`: every table, view and macro, documented."""

from __future__ import annotations

import difflib
import sys
from typing import Any

import click

from cli.options import json_option
from cli.output import json_text, write_rows
from tracker.errors import UsageError


@click.command()
@click.argument("name", required=False)
@json_option
def schema(name: str | None, as_json: bool) -> None:
    """Describe tables, views and their columns.

    Without NAME: everything there is, one line each. With NAME: its columns with types, meanings and units.
    """
    from tracker.lake.docs import describe

    entries = {entry["name"]: entry for entry in describe()}
    if name is None:
        _list(list(entries.values()), as_json=as_json)
        return
    if name not in entries:
        near = difflib.get_close_matches(name, entries, n=3)
        message = f"there is no table, view or macro {name!r}"
        raise UsageError(message, hint=f"did you mean {' or '.join(near)}?" if near else "trackr schema lists them all")
    _show(entries[name], as_json=as_json)


def _list(entries: list[dict[str, Any]], *, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(json_text(entries) + "\n")
        return
    write_rows(["name", "kind", "a row is"], [(entry["name"], entry["kind"], entry["comment"]) for entry in entries])


def _show(entry: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(json_text(entry) + "\n")
        return
    sys.stdout.write(f"{entry['name']} ({entry['kind']}): {entry['comment']}\n")
    if "columns" in entry:
        sys.stdout.write("\n")
        sys.stdout.flush()
        write_rows(["column", "type", "meaning"], [(c["name"], c["type"], c["comment"]) for c in entry["columns"]])
    else:
        sys.stdout.write(f"{entry['call']}\n")
