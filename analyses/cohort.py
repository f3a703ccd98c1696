"""Cohorts: fixed SQL files, narrowed by a condition or replaced by the user's own SQL."""

from __future__ import annotations

import re
from contextlib import contextmanager
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from tracker.errors import QueryError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import duckdb

    from analyses.parameters import AnalysisParameters


def statement(name: str) -> str:
    """The text of `analyses/cohorts/<name>.sql`."""
    return (files("analyses") / "cohorts" / f"{name}.sql").read_text(encoding="utf-8").strip()


def cohort_sql(name: str, parameters: AnalysisParameters) -> str:
    """The cohort's SQL: the shipped file, over the rows that the user's SQL gives in place of `answers`, inside the user's condition."""
    base = statement(name)
    if parameters.cohort is not None:
        base = base.replace("from answers", f"from (\n{parameters.cohort.strip().rstrip(';')}\n) as answers", 1)
    if parameters.where is None:
        return base
    return f"select *\nfrom (\n{base}\n) as cohort\nwhere (\n{parameters.where}\n)"


def bindings(sql: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the values that the SQL names as $parameters (DuckDB refuses others)."""
    named = set(re.findall(r"\$([A-Za-z_]\w*)", sql))
    return {name: value for name, value in values.items() if name in named}


def select(connection: duckdb.DuckDBPyConnection, sql: str, values: Mapping[str, Any] | None = None, *, where: str) -> dict[str, Any]:
    """Run one statement and return its columns as NumPy arrays; an error names where the SQL came from."""
    return run(connection, sql, values, where=where).fetchnumpy()


def run(
    connection: duckdb.DuckDBPyConnection, sql: str, values: Mapping[str, Any] | None = None, *, where: str
) -> duckdb.DuckDBPyConnection:
    """Run one statement; an error names where the SQL came from."""
    import duckdb

    try:
        return connection.execute(sql, bindings(sql, values or {}))
    except duckdb.Error as err:
        lines = [line for line in str(err).splitlines() if line.strip()]
        raise QueryError(lines[0] if lines else type(err).__name__, where=where, hint=_hint(lines)) from err


def origin(parameters: AnalysisParameters) -> str:
    """The option that an error in a cohort's SQL is to be blamed on."""
    given = [f"--{name}" for name in ("cohort", "where") if getattr(parameters, name)]
    return " and ".join(given) or "cohort"


@contextmanager
def materialised(
    connection: duckdb.DuckDBPyConnection, sql: str, values: Mapping[str, Any], *, columns: Sequence[str], where: str
) -> Iterator[None]:
    """The temporary table `cohort`, with the columns that are needed, for as long as an analysis runs.

    `values` are the parameters of the analysis. QueryError names all columns that the user's own SQL lacks.
    """
    _one_select(connection, sql, where)
    text = f"create or replace temp table cohort as\nselect {', '.join(columns)}\nfrom (\n{sql}\n) as chosen"
    try:
        run(connection, text, values, where=where)
    except QueryError:
        if own := values.get("cohort"):
            _complete(connection, str(own).strip().rstrip(";"), sql, columns)
        raise
    try:
        yield
    finally:
        connection.execute("drop table if exists cohort")


@contextmanager
def threads(connection: duckdb.DuckDBPyConnection, workers: int | None) -> Iterator[None]:
    """At most so many DuckDB threads."""
    if workers is None:
        yield
        return
    before = connection.execute("select current_setting('threads')").fetchone()
    connection.execute(f"set threads = {int(workers)}")
    try:
        yield
    finally:
        connection.execute(f"set threads = {int(before[0]) if before else 1}")


def _one_select(connection: duckdb.DuckDBPyConnection, sql: str, where: str) -> None:
    import duckdb

    try:
        statements = connection.extract_statements(sql)
    except duckdb.Error as err:
        lines = [line for line in str(err).splitlines() if line.strip()]
        raise QueryError(lines[0], where=where, hint=_hint(lines)) from err
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        message = f"expected one SELECT, found {len(statements)} statements" if len(statements) != 1 else "expected a SELECT"
        raise QueryError(message, where=where)


def _complete(connection: duckdb.DuckDBPyConnection, own: str, sql: str, columns: Sequence[str]) -> None:
    """QueryError that names the columns of `answers` that an analysis reads, or the rest of its SQL names, and the user's own SQL lacks."""
    import duckdb

    try:
        there, known = ({str(row[0]) for row in connection.execute(f"describe {one}").fetchall()} for one in (own, "answers"))
    except duckdb.Error:
        return
    rest = re.sub(r"--.*", "", sql.replace(own, ""))
    named = {word for word in re.findall(r"\w+", rest) if word in known}
    if missing := [*(name for name in columns if name not in there), *sorted(named - there - set(columns))]:
        message = f"the cohort lacks columns: {', '.join(missing)}"
        raise QueryError(message, where="--cohort", hint="select * from answers where ... has them all")


def _hint(lines: list[str]) -> str:
    candidates = next((line.strip() for line in lines[1:] if "andidate" in line or "Did you mean" in line), None)
    return candidates or "conditions use the columns of answers: trackr schema answers"
