"""What the database knows of families, models and benchmarks, as a catalog."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from tracker.catalog import Catalog
from tracker.catalog.spec import BackboneSpec, BenchmarkSpec, FamilySpec, FrontendSpec, ModelSpec, SeriesSpec
from tracker.schema import Backbone, Benchmark, BenchmarkAlias, Family, Frontend, Model, ModelAlias, Series

if TYPE_CHECKING:
    from collections.abc import Collection


ORIGINS = ("shipped", "imported", "found")


def export_catalog(connection: sa.Connection, origins: Collection[str] = ORIGINS) -> Catalog:
    """Descriptions of some origins; families and frontends are always there."""
    families = _names(connection, Family)
    frontends = _names(connection, Frontend)
    series = _names(connection, Series)
    backbones = _names(connection, Backbone)
    return Catalog(
        families={name: FamilySpec(name) for name in families.values()},
        frontends={row["name"]: FrontendSpec(row["name"], row["kind"], row["parameters"]) for row in _rows(connection, Frontend)},
        series={
            row["name"]: SeriesSpec(row["name"], families.get(row["family_id"]), frontends.get(row["frontend_id"]))
            for row in _rows(connection, Series, origins)
        },
        backbones={row["name"]: _backbone(row) for row in _rows(connection, Backbone, origins)},
        models={
            row["name"]: _model(row, series, backbones, frontends, _aliases(connection, ModelAlias, ModelAlias.model_id, row))
            for row in _rows(connection, Model, origins)
        },
        benchmarks={
            row["name"]: _benchmark(row, _aliases(connection, BenchmarkAlias, BenchmarkAlias.benchmark_id, row))
            for row in _rows(connection, Benchmark, origins)
        },
    )


def _rows(connection: sa.Connection, table: Any, origins: Collection[str] | None = None) -> list[Any]:
    query = sa.select(table).order_by(table.name)
    return list(connection.execute(query if origins is None else query.where(table.origin.in_(origins))).mappings())


def _names(connection: sa.Connection, table: Any) -> dict[int | None, str]:
    return dict(connection.execute(sa.select(table.id, table.name).order_by(table.name)).all())


def _aliases(connection: sa.Connection, table: Any, owner: Any, row: Any) -> tuple[str, ...]:
    spellings = connection.execute(sa.select(table.alias).where(owner == row["id"]).order_by(table.alias)).scalars()
    return tuple(spelling for spelling in spellings if spelling != row["name"])


def _backbone(row: Any) -> BackboneSpec:
    return BackboneSpec(
        **{name: row[name] for name in ("name", "family", "stage", "architecture", "source", "parameters", "active_parameters")}
    )


def _model(
    row: Any, series: dict[int | None, str], backbones: dict[int | None, str], frontends: dict[int | None, str], aliases: tuple[str, ...]
) -> ModelSpec:
    return ModelSpec(
        name=row["name"],
        series=series[row["series_id"]],
        backbone=backbones.get(row["backbone_id"]),
        frontend=frontends.get(row["frontend_id"]),
        vision_parameters=row["vision_parameters"],
        aliases=aliases,
    )


def _benchmark(row: Any, aliases: tuple[str, ...]) -> BenchmarkSpec:
    plain = {name: row[name] for name in ("name", "suite", "split", "modality", "metric", "n_questions")}
    return BenchmarkSpec(**plain, tasks=row["tasks"] or {}, aliases=aliases)
