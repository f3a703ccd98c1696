"""Stored results: rows of `analyses` and `fits`. Storing one does not change the data that the lake copies."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from analyses.result import Column, Table
from tracker.errors import AnalysisError
from tracker.schema import Analysis, Fit

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from analyses.result import FittedLaw, Result
    from tracker.database import Database

LISTED = (
    Analysis.id,
    Analysis.name,
    Analysis.created_at,
    Analysis.data_version,
    Analysis.parameters,
    Analysis.cohort_rows,
    Analysis.seconds,
    Analysis.headline,
)


def save(db: Database, result: Result) -> int:
    """Store a result with its cohort, code version and fits; returns the id of its `analyses` row."""
    envelope = result.envelope()
    values = {
        "name": result.analysis,
        "created_at": datetime.now(UTC),
        "parameters": envelope["parameters"],
        "cohort_sql": result.cohort.sql,
        "cohort_rows": result.cohort.rows,
        "cohort_digest": result.cohort.digest,
        "data_version": result.data_version,
        "code_version": result.code_version,
        "engine_version": result.engine_version,
        "seed": result.seed,
        "seconds": result.seconds,
        "headline": envelope["headline"],
        "result": {"tables": envelope["tables"], "warnings": envelope["warnings"], "about": _about(result)},
    }
    with db.write() as transaction:
        identity: int = transaction.connection.execute(sa.insert(Analysis).values(values).returning(Analysis.id)).scalar_one()
        if result.fits:
            transaction.connection.execute(sa.insert(Fit), [_fit(identity, fit) for fit in result.fits])
    return identity


def _about(result: Result) -> dict[str, Any]:
    """What JSON objects do not keep: the order of names, and what tables and columns mean."""
    tables = [
        {"name": name, "title": table.title, "shown": table.shown, "columns": [dataclasses.asdict(column) for column in table.columns]}
        for name, table in result.tables.items()
    ]
    return {"headline": list(result.headline), "tables": tables}


def tables_of(row: Mapping[str, Any]) -> dict[str, Table]:
    """The tables of a stored result as they were."""
    tables = {}
    for about in row["result"]["about"]["tables"]:
        columns = tuple(Column(**column) for column in about["columns"])
        rows = row["result"]["tables"][about["name"]]
        data = {column.name: [line[column.name] for line in rows] for column in columns}
        tables[about["name"]] = Table(title=about["title"], columns=columns, data=data, shown=about["shown"])
    return tables


def headline_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """The headline of a stored result in its own order."""
    return {name: row["headline"][name] for name in row["result"]["about"]["headline"]}


def stored(db: Database, name: str | None = None) -> list[dict[str, Any]]:
    """Stored results, the latest first, without their tables."""
    query = sa.select(*LISTED, Analysis.result[("about", "headline")].label("order")).order_by(Analysis.id.desc())
    if name is not None:
        query = query.where(Analysis.name == name)
    with db.read() as connection:
        rows = [dict(row) for row in connection.execute(query).mappings()]
    for row in rows:
        row["headline"] = {name: row["headline"][name] for name in row.pop("order")}
    return rows


def show(db: Database, identity: int) -> dict[str, Any]:
    """One stored result with everything that was stored."""
    with db.read() as connection:
        row = connection.execute(sa.select(*Analysis.__table__.columns).where(Analysis.id == identity)).mappings().first()
        if row is None:
            message = f"no stored analysis has id {identity}"
            raise AnalysisError(message, hint="trackr analyses list")
        fits: Sequence[Any] = (
            connection.execute(sa.select(*Fit.__table__.columns).where(Fit.analysis_id == identity).order_by(Fit.id)).mappings().all()
        )
        return {**row, "fits": [dict(fit) for fit in fits]}


def _fit(analysis_id: int, fit: FittedLaw) -> dict[str, Any]:
    return {
        "analysis_id": analysis_id,
        "law": fit.law,
        "group_key": fit.group_key,
        "parameters": dict(fit.parameters),
        "at_bound": list(fit.at_bound),
        "n": fit.n,
        "k": fit.k,
        "sse": fit.sse,
        "r2": fit.r2,
        "bic": fit.bic,
    }
