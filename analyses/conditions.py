"""The user's own SQL is looked at by itself, before it becomes part of a larger statement."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tracker.errors import QueryError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import duckdb

    from analyses.parameters import AnalysisParameters

COLUMNS = "conditions use the columns of answers: trackr schema answers"
SAME = "hash(question_id) % 10 = 0 takes the same tenth of the questions every time"
IDENTITY = ("run_id", "question_id", "repetition", "attempt")
"""Columns that name an answer."""


def inspect(connection: duckdb.DuckDBPyConnection, parameters: AnalysisParameters) -> None:
    """QueryError where `--where` is not one condition, `--cohort` not one SELECT, or either chooses other rows every time."""
    if parameters.where is not None:
        # Without parentheses it cannot close one that it did not open; inside them it cannot go on after its end.
        for text in (f"select 1 where\n{parameters.where}\n", f"select 1 where (\n{parameters.where}\n)"):
            _inspect(connection, text, "--where")
    if parameters.cohort is not None:
        _inspect(connection, parameters.cohort.strip().rstrip(";"), "--cohort")


def each_answer_once(connection: duckdb.DuckDBPyConnection) -> None:
    """QueryError where the temporary table `cohort` has an answer twice."""
    named = ", ".join(IDENTITY)
    twice = connection.execute(f"select count(*) - count(distinct ({named})) from cohort").fetchone()
    if twice and twice[0]:
        message = f"the cohort has an answer more than once ({twice[0]:,} rows too many; {named} name an answer)"
        raise QueryError(message, where="--cohort", hint="select distinct, or union in place of union all")


def _inspect(connection: duckdb.DuckDBPyConnection, sql: str, where: str) -> None:
    row = connection.execute("select json_serialize_sql(?)", [sql]).fetchone()
    tree: dict[str, Any] = json.loads(row[0]) if row else {}
    if tree.get("error"):
        if tree.get("error_type") == "parser":
            raise QueryError(str(tree["error_message"]), where=where, hint=COLUMNS)
        message = "expected a SELECT" if where == "--cohort" else "expected a condition"
        raise QueryError(message, where=where, hint=COLUMNS)
    statements = tree["statements"]
    if len(statements) != 1:
        message = f"expected one SELECT, found {len(statements)} statements"
        raise QueryError(message, where=where)
    if changing := next(_changing(statements, _volatile(connection)), None):
        message = f"{changing} chooses other rows every time: the numbers could not be had again"
        raise QueryError(message, where=where, hint=SAME)


def _volatile(connection: duckdb.DuckDBPyConnection) -> set[str]:
    """Functions whose value changes from row to row."""
    rows = connection.execute("select distinct lower(function_name) from duckdb_functions() where stability = 'VOLATILE'").fetchall()
    return {str(row[0]) for row in rows}


def _changing(tree: Any, volatile: set[str]) -> Iterator[str]:
    """Volatile functions and unrepeatable samples in a statement."""
    if isinstance(tree, dict):
        name = str(tree.get("function_name", "")).lower()
        if name in volatile:
            yield f"{name}()"
        if "sample_size" in tree and not tree.get("repeatable"):
            yield "a sample without REPEATABLE"
        tree = list(tree.values())
    if isinstance(tree, list):
        for one in tree:
            yield from _changing(one, volatile)
