"""What every table, view, column and macro means: tables from the schema, star views and macros from views/docs.toml."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracker.lake.manifest import ColumnDoc, TableDoc

if TYPE_CHECKING:
    from collections.abc import Mapping

VIEWS = Path(__file__).parent / "views"

STAR_VIEWS = ("answers", "cells", "trajectories", "curves")
"""The views of a session besides one per table."""

TRAJECTORY_ROWS = "trajectory_rows"
"""Session name of the table `trajectories`, whose own name is that of the star view."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MacroDoc:
    """A macro with its call."""

    call: str
    comment: str


RUN_TOTALS = "run_totals"
LAST_POINTS = "last_points"
CELL_ROWS = "cell_rows"
"""Tables that sync derives; the database has none of them."""
PER_RUN = {RUN_TOTALS: "records", LAST_POINTS: "metric_points"}
"""Derived tables that are renewed run by run, each with the table it is made from."""


def sql(name: str) -> str:
    """Text of a SQL file of the lake."""
    return (VIEWS / f"{name}.sql").read_text(encoding="utf-8")


def table_docs() -> dict[str, TableDoc]:
    """Every table of the lake: those that it copies, in the order of the schema, and those that sync derives."""
    from tracker.schema import SEGMENT_TABLES, SMALL_TABLES

    copied = {name: doc for name, doc in all_table_docs().items() if name in {*SEGMENT_TABLES, *SMALL_TABLES}}
    return copied | dict(derived_docs())


def all_table_docs() -> dict[str, TableDoc]:
    """Every table of the database, in the order of the schema."""
    from tracker.schema import Base

    return {
        table.name: TableDoc(
            comment=table.comment or "",
            columns=tuple(ColumnDoc(column.name, _duckdb_type(column.type), column.comment or "") for column in table.columns),
        )
        for table in Base.metadata.tables.values()
    }


@cache
def view_docs() -> Mapping[str, TableDoc]:
    """The star views."""
    return _described("view")


@cache
def derived_docs() -> Mapping[str, TableDoc]:
    """Tables that sync computes from others, so that views need not."""
    cells = view_docs()["cells"]
    rows = TableDoc(comment=f"{cells.comment}; sync makes it with the SQL of the view", columns=cells.columns)
    return {**_described("derived"), CELL_ROWS: rows}


@cache
def macro_docs() -> Mapping[str, MacroDoc]:
    """The macros of a session."""
    return {name: MacroDoc(call=entry["call"], comment=entry["comment"]) for name, entry in _toml()["macro"].items()}


def describe() -> list[dict[str, Any]]:
    """Everything a user can name: star views, macros, tables of the lake, tables that only the database has."""
    tables = all_table_docs()
    in_lake = table_docs()
    entries = [_entry(name, "view", doc) for name, doc in view_docs().items()]
    entries += [{"name": name, "kind": "macro", "comment": doc.comment, "call": doc.call} for name, doc in macro_docs().items()]
    entries += [_entry(TRAJECTORY_ROWS if name == "trajectories" else name, "table", doc) for name, doc in in_lake.items()]
    entries += [_entry(name, "database table", doc) for name, doc in tables.items() if name not in in_lake]
    return entries


def _entry(name: str, kind: str, doc: TableDoc) -> dict[str, Any]:
    return {"name": name, "kind": kind, "comment": doc.comment, "columns": [column._asdict() for column in doc.columns]}


def _described(section: str) -> Mapping[str, TableDoc]:
    return {
        name: TableDoc(
            comment=entry["comment"], columns=tuple(ColumnDoc(column, *described) for column, described in entry["columns"].items())
        )
        for name, entry in _toml()[section].items()
    }


@cache
def _toml() -> dict[str, Any]:
    return tomllib.loads((VIEWS / "docs.toml").read_text(encoding="utf-8"))


def _duckdb_type(kind: Any) -> str:
    """DuckDB type of a column as the lake stores it."""
    import sqlalchemy as sa

    from tracker.schema import UtcDateTime

    if isinstance(kind, UtcDateTime):
        return "TIMESTAMP WITH TIME ZONE"
    if isinstance(kind, sa.Boolean):
        return "BOOLEAN"
    if isinstance(kind, sa.Integer):
        return "BIGINT"
    if isinstance(kind, sa.Float):
        return "DOUBLE"
    return "VARCHAR"
