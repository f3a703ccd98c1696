"""Write a catalog into the database and link again what was ingested before it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from tracker.catalog import load
from tracker.errors import InputError
from tracker.ingest.export import export_catalog
from tracker.ingest.link import FOUND, found_name, relink
from tracker.ingest.runs import all_slices, mark_dirty, refresh_current
from tracker.schema import Backbone, Benchmark, BenchmarkAlias, Family, Frontend, Model, ModelAlias, Series, Store

if TYPE_CHECKING:
    from tracker.catalog import Catalog, FrontendSpec
    from tracker.database import Database

SHIPPED, IMPORTED = "shipped", "imported"


@dataclass(slots=True, kw_only=True)
class CatalogReport:
    """What a catalog import changed."""

    added: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    merged_models: list[str] = field(default_factory=list)
    merged_benchmarks: list[str] = field(default_factory=list)
    relinked_runs: int = 0

    @property
    def anything(self) -> bool:
        """Whether the database changed."""
        return bool(self.added or self.changed or self.relinked_runs)


def ensure_shipped(database: Database, catalog: Catalog) -> None:
    """Bring the package's own catalog into the database, once for each version of it."""
    with database.read() as connection:
        if database.store(connection).catalog_digest == catalog.digest:
            return
    import_catalog(database, catalog, origin=SHIPPED)


def import_catalog(database: Database, catalog: Catalog, *, origin: str = IMPORTED) -> CatalogReport:
    """Write a catalog; what the user imported is never overwritten by what is shipped."""
    report = CatalogReport()
    with database.write() as transaction:
        connection = transaction.connection
        if origin == SHIPPED and database.store(connection).catalog_digest == catalog.digest:
            return report
        before = all_slices(connection)
        found_models, found_benchmarks = _found_names(connection)
        _Writer(connection, origin, report).write(catalog)
        if report.anything:
            report.relinked_runs = len(relink(connection))
            _after(connection, before)
        left_models, left_benchmarks = _found_names(connection)
        report.merged_models = sorted(found_models - left_models)
        report.merged_benchmarks = sorted(found_benchmarks - left_benchmarks)
        if origin == SHIPPED:
            connection.execute(sa.update(Store).values(catalog_digest=catalog.digest))
        if report.anything or origin == SHIPPED:
            transaction.changed()
    return report


def import_aliases(database: Database, models: dict[str, str], benchmarks: dict[str, str]) -> CatalogReport:
    """Write spellings that a study file maps to names; a name that no catalog knows stays a name of its own."""
    report = CatalogReport()
    with database.write() as transaction:
        connection = transaction.connection
        before = all_slices(connection)
        writer = _Writer(connection, IMPORTED, report)
        for table, owner, column, aliases in (
            (ModelAlias, Model, "model_id", models),
            (BenchmarkAlias, Benchmark, "benchmark_id", benchmarks),
        ):
            for alias, name in sorted(aliases.items()):
                writer.alias(table, column, alias, writer.target(table, owner, column, name))
        if report.anything:
            report.relinked_runs = len(relink(connection))
            _after(connection, before)
            transaction.changed()
    return report


def known_catalog(connection: sa.Connection) -> Catalog:
    """What a new description may refer to and complete: the shipped catalog with what was imported over it."""
    shipped, imported = load(), export_catalog(connection, origins=(IMPORTED,))
    own = {
        name: {**getattr(shipped, name), **getattr(imported, name)} for name in ("families", "series", "backbones", "models", "benchmarks")
    }
    frontends = {
        name: spec for name, spec in imported.frontends.items() if name not in shipped.frontends or not _same(spec, shipped.frontends[name])
    }
    return replace(shipped, **own, frontends={**shipped.frontends, **frontends})


def _same(one: FrontendSpec, other: FrontendSpec) -> bool:
    return (one.kind, dict(one.parameters)) == (other.kind, dict(other.parameters))


def _after(connection: sa.Connection, before: set[tuple[int, int]]) -> None:
    refresh_current(connection)
    mark_dirty(connection, before | all_slices(connection))


def _found_names(connection: sa.Connection) -> tuple[set[str], set[str]]:
    return tuple(set(connection.execute(sa.select(table.name).where(table.origin == FOUND)).scalars()) for table in (Model, Benchmark))  # type: ignore[return-value]


class _Writer:
    """Upserts by name."""

    def __init__(self, connection: sa.Connection, origin: str, report: CatalogReport) -> None:
        self.connection, self.origin, self.report = connection, origin, report

    def write(self, catalog: Catalog) -> None:
        for family in catalog.families.values():
            self.upsert(Family, family.name, {})
        for frontend in catalog.frontends.values():
            self.upsert(Frontend, frontend.name, {"kind": frontend.kind, "parameters": dict(frontend.parameters)})
        for series in catalog.series.values():
            values = {"family_id": self.id_of(Family, series.family), "frontend_id": self.id_of(Frontend, series.frontend)}
            self.upsert(Series, series.name, values)
        for backbone in catalog.backbones.values():
            names = ("family", "parameters", "active_parameters", "stage", "source")
            values = {name: getattr(backbone, name) for name in names}
            self.upsert(Backbone, backbone.name, {**values, "architecture": dict(backbone.architecture) if backbone.architecture else None})
        for model in catalog.models.values():
            values = {
                "series_id": self.id_of(Series, model.series),
                "backbone_id": self.id_of(Backbone, model.backbone),
                "frontend_id": self.id_of(Frontend, model.frontend),
                "vision_parameters": model.vision_parameters,
            }
            row_id = self.upsert(Model, model.name, values)
            for alias in dict.fromkeys((model.name, *model.aliases)):
                self.alias(ModelAlias, "model_id", alias, row_id)
        for benchmark in catalog.benchmarks.values():
            names = ("suite", "split", "modality", "metric", "n_questions")
            values = {name: getattr(benchmark, name) for name in names}
            row_id = self.upsert(Benchmark, benchmark.name, {**values, "tasks": dict(benchmark.tasks) or None})
            for alias in dict.fromkeys((benchmark.name, *benchmark.aliases)):
                self.alias(BenchmarkAlias, "benchmark_id", alias, row_id)

    def id_of(self, table: Any, name: str | None) -> int | None:
        """Row of a name that this catalog or an earlier one describes; a family or series may be made by naming it."""
        if name is None:
            return None
        row_id = self.connection.execute(sa.select(table.id).where(table.name == name)).scalar()
        if row_id is None and table in (Family, Series):
            return self.upsert(table, name, {})
        return row_id

    def own_series(self, name: str) -> int:
        """A series of its own for a model that nothing else describes."""
        origin = self.connection.execute(sa.select(Series.origin).where(Series.name == name)).scalar()
        return self.upsert(Series, name if origin in (None, FOUND) else found_name(name), {})

    def upsert(self, table: Any, name: str, values: dict[str, Any]) -> int:
        """Insert or update the row of a name."""
        row = self.connection.execute(sa.select(table).where(table.name == name)).mappings().first()
        has_origin = "origin" in table.__table__.c
        if table is Series and row is not None and row["origin"] == FOUND:
            # It belongs to an unknown model of the same name, which keeps a series of its own.
            self.connection.execute(sa.update(Series).where(Series.id == row["id"]).values(name=found_name(name)))
            row = None
        if row is None:
            values = {**values, **({"origin": self.origin} if has_origin else {})}
            self.report.added.append(f"{table.__tablename__}: {name}")
            return int(self.connection.execute(sa.insert(table).values(name=name, **values).returning(table.id)).scalar_one())
        if self.origin == SHIPPED and has_origin and row["origin"] == IMPORTED:
            return int(row["id"])
        changes = {column: value for column, value in values.items() if row[column] != value}
        if has_origin and (changes or row["origin"] == FOUND) and row["origin"] != self.origin:
            changes["origin"] = self.origin
        if changes:
            self.connection.execute(sa.update(table).where(table.id == row["id"]).values(changes))
            self.report.changed.append(f"{table.__tablename__}: {name}")
        return int(row["id"])

    def alias(self, table: Any, column: str, alias: str, row_id: int) -> None:
        """Map a spelling to a row; the name of another thing that is described is no spelling of this one."""
        owner = Model if table is ModelAlias else Benchmark
        named = sa.select(owner.id).where(owner.name == alias, owner.origin != FOUND, owner.id != row_id)
        if self.connection.execute(named).first():
            message = f"the alias {alias!r} is the name of another {owner.__name__.lower()} that is described"
            raise InputError(message, hint="leave the alias out, or describe that one under its own name")
        row = self.connection.execute(sa.select(table).where(table.alias == alias)).mappings().first()
        if row is None:
            self.connection.execute(sa.insert(table).values(alias=alias, origin=self.origin, **{column: row_id}))
            self.report.added.append(f"{table.__tablename__}: {alias}")
            return
        if self.origin == SHIPPED and row["origin"] == IMPORTED:
            return
        if row[column] != row_id or row["origin"] == FOUND:
            self.connection.execute(sa.update(table).where(table.id == row["id"]).values(origin=self.origin, **{column: row_id}))
            self.report.changed.append(f"{table.__tablename__}: {alias}")

    def target(self, aliases: Any, owner: Any, column: str, name: str) -> int:
        """The row that a study file's name means: by spelling, by name, else a new one of the user's own."""
        known = self.connection.execute(sa.select(getattr(aliases, column)).where(aliases.alias == name, aliases.origin != FOUND)).scalar()
        if known is not None:
            return int(known)
        values = {"series_id": self.own_series(name)} if owner is Model else {}
        row_id = self.upsert(owner, name, values)
        self.alias(aliases, column, name, row_id)
        return row_id
