"""Names in files to rows of the database, and again when a catalog says more.

A name is resolved in this order: a spelling that a catalog lists, the same without regard to case, a name met
before, a new row of its own. Links are a function of the names that runs keep and of the catalog, so any order
of ingest and import ends in the same links.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from tracker.catalog import load
from tracker.database.engine import dump_json
from tracker.ingest.identity import settle_identities, spelled_identity
from tracker.schema import (
    CONFIGURATION_FIELDS,
    Backbone,
    Benchmark,
    BenchmarkAlias,
    Configuration,
    Model,
    ModelAlias,
    Profile,
    Question,
    Run,
    Score,
    Series,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tracker.ingest.questions import Questions

FOUND = "found"


class Linker:
    """Resolves names with the aliases of one moment; make a new one when the data moved."""

    def __init__(self, connection: sa.Connection) -> None:
        self.connection = connection
        self._models = _Aliases(connection, ModelAlias, ModelAlias.model_id)
        self._benchmarks = _Aliases(connection, BenchmarkAlias, BenchmarkAlias.benchmark_id)
        self._configurations: dict[tuple[int, str], int] = {}
        self._backbones: dict[str, int] | None = None
        rows = connection.execute(sa.select(Configuration.model_id, Configuration.fingerprint, Configuration.id))
        self._configurations.update({(model_id, fingerprint): row_id for model_id, fingerprint, row_id in rows})
        self.series_of: dict[int, int] = dict(connection.execute(sa.select(Model.id, Model.series_id)).all())

    def model(self, spelling: str) -> int:
        """The model of a spelling; an unknown one gets a row, and a series of its own."""
        known = self._models.resolve(spelling)
        return known if known is not None else self._new_model(spelling)

    def benchmark(self, spelling: str) -> int:
        """The benchmark of a spelling; an unknown one gets a row."""
        known = self._benchmarks.resolve(spelling)
        return known if known is not None else self._new_benchmark(spelling)

    def known_benchmark(self, spelling: str) -> int | None:
        """The benchmark of a spelling, or None."""
        return self._benchmarks.resolve(spelling)

    def configuration(self, model_id: int, settings: Mapping[str, Any]) -> int:
        """The configuration of a model under settings (the columns that make one, nothing else)."""
        values = {name: settings.get(name) for name in CONFIGURATION_FIELDS}
        mark = fingerprint(values)
        if (model_id, mark) not in self._configurations:
            statement = sa.insert(Configuration).values(model_id=model_id, fingerprint=mark, **values).returning(Configuration.id)
            self._configurations[model_id, mark] = self.connection.execute(statement).scalar_one()
        return self._configurations[model_id, mark]

    def _new_model(self, spelling: str) -> int:
        series_id = self._new_series(spelling)
        taken = self.connection.execute(sa.select(Model.id).where(Model.name == spelling)).first()
        name = found_name(spelling) if taken else spelling
        values = {"name": name, "series_id": series_id, "backbone_id": self.backbone(spelling), "origin": FOUND}
        statement = sa.insert(Model).values(values).returning(Model.id)
        model_id: int = self.connection.execute(statement).scalar_one()
        self.connection.execute(sa.insert(ModelAlias).values(alias=spelling, model_id=model_id, origin=FOUND))
        self._models.add(spelling, model_id)
        self.series_of[model_id] = series_id
        return model_id

    def backbone(self, spelling: str) -> int | None:
        """The language model that an unknown model's name means, if it is one that a catalog describes."""
        if self._backbones is None:
            self._backbones = _backbones(self.connection)
        known = load().backbone(spelling) or load().backbone(spelling.replace("__", "/"))
        for name in (known.name if known else spelling, spelling, spelling.replace("__", "/").rsplit("/", 1)[-1]):
            if name.casefold() in self._backbones:
                return self._backbones[name.casefold()]
        return None

    def _new_series(self, spelling: str) -> int:
        taken = self.connection.execute(sa.select(Series.id).where(Series.name == spelling)).first()
        name = found_name(spelling) if taken else spelling
        return int(self.connection.execute(sa.insert(Series).values(name=name, origin=FOUND).returning(Series.id)).scalar_one())

    def _new_benchmark(self, spelling: str) -> int:
        taken = self.connection.execute(sa.select(Benchmark.id).where(Benchmark.name == spelling)).first()
        name = found_name(spelling) if taken else spelling
        benchmark_id: int = self.connection.execute(
            sa.insert(Benchmark).values(name=name, origin=FOUND).returning(Benchmark.id)
        ).scalar_one()
        self.connection.execute(sa.insert(BenchmarkAlias).values(alias=spelling, benchmark_id=benchmark_id, origin=FOUND))
        self._benchmarks.add(spelling, benchmark_id)
        return benchmark_id


class _Aliases:
    """Spellings of one kind of thing."""

    def __init__(self, connection: sa.Connection, table: Any, target: Any) -> None:
        self._described: dict[str, int] = {}
        self._found: dict[str, int] = {}
        folded: dict[str, set[int]] = {}
        for alias, row_id, origin in connection.execute(sa.select(table.alias, target, table.origin)):
            if origin == FOUND:
                self._found[alias] = row_id
            else:
                self._described[alias] = row_id
                folded.setdefault(alias.casefold(), set()).add(row_id)
        self._folded = {alias: next(iter(ids)) for alias, ids in folded.items() if len(ids) == 1}

    def resolve(self, spelling: str) -> int | None:
        slashed = spelling.replace("__", "/")
        for name in (spelling, slashed):
            if name in self._described:
                return self._described[name]
        for name in (spelling, slashed):
            if name.casefold() in self._folded:
                return self._folded[name.casefold()]
        return self._found.get(spelling)

    def add(self, spelling: str, row_id: int) -> None:
        self._found[spelling] = row_id


def found_name(spelling: str) -> str:
    """Name of something that was only found, where a description has the plain name."""
    return f"{spelling} (found)"


def _backbones(connection: sa.Connection) -> dict[str, int]:
    """Described backbones by name without regard to case; a folded name of two means neither."""
    folded: dict[str, list[int]] = {}
    for name, row_id in connection.execute(sa.select(Backbone.name, Backbone.id)):
        folded.setdefault(name.casefold(), []).append(row_id)
    return {name: ids[0] for name, ids in folded.items() if len(ids) == 1}


def fingerprint(values: Mapping[str, Any]) -> str:
    """Digest of the setting columns; null is a value of its own."""
    return hashlib.sha256(dump_json({name: values[name] for name in CONFIGURATION_FIELDS}).encode()).hexdigest()[:32]


def relink(connection: sa.Connection) -> set[int]:
    """Point every run to what its names mean now; returns the runs that moved (their versions rose)."""
    from tracker.ingest.labels import attach
    from tracker.ingest.questions import Questions

    linker, questions = Linker(connection), Questions(connection)
    moved = _relink_models(connection, linker) | _relink_benchmarks(connection, linker, questions)
    older = settle_identities(connection) if moved else []
    if older:
        connection.execute(sa.delete(Run).where(Run.id.in_(older)))
    attach(connection)  # labels follow the questions that moved, before those left behind are removed
    questions.rehashed |= prune(connection)
    questions.join_keys()
    _relink_backbones(connection, linker)
    return moved


def _relink_backbones(connection: sa.Connection, linker: Linker) -> None:
    """Models that are only found, and scores of a language model itself, mean the backbones that are described now."""
    query = (
        sa.select(Model.id, ModelAlias.alias, Model.backbone_id)
        .join(ModelAlias, ModelAlias.model_id == Model.id)
        .where(Model.origin == FOUND, ModelAlias.origin == FOUND)
    )
    for model_id, spelling, backbone_id in connection.execute(query).all():
        wanted = linker.backbone(spelling)
        if wanted != backbone_id:
            connection.execute(sa.update(Model).where(Model.id == model_id).values(backbone_id=wanted))
    scored = sa.select(Run.model_name, Score.backbone_id).join(Score, Score.run_id == Run.id).distinct()
    for spelling, backbone_id in connection.execute(scored).all():
        wanted = linker.backbone(spelling)
        if wanted != backbone_id:
            runs = sa.select(Run.id).where(Run.model_name == spelling)
            connection.execute(sa.update(Score).where(Score.run_id.in_(runs)).values(backbone_id=wanted))


def _relink_models(connection: sa.Connection, linker: Linker) -> set[int]:
    pairs = sa.select(Run.model_name, Configuration.model_id).join(Configuration, Run.configuration_id == Configuration.id).distinct()
    moved: set[int] = set()
    for spelling, model_id in connection.execute(pairs).all():
        wanted = linker.model(spelling)
        if wanted == model_id:
            continue
        columns = [Configuration.id, *(getattr(Configuration, name) for name in CONFIGURATION_FIELDS)]
        for row in connection.execute(sa.select(*columns).where(Configuration.model_id == model_id)).all():
            target = linker.configuration(wanted, {name: getattr(row, name) for name in CONFIGURATION_FIELDS})
            runs = connection.execute(sa.select(Run.id).where(Run.configuration_id == row.id, Run.model_name == spelling)).scalars().all()
            for run_id in runs:
                _move(connection, run_id, {"configuration_id": target})
            connection.execute(sa.update(Profile).where(Profile.configuration_id == row.id).values(configuration_id=target))
            connection.execute(sa.update(Score).where(Score.run_id.in_(runs)).values(model_id=wanted))
            moved.update(runs)
    return moved


def _relink_benchmarks(connection: sa.Connection, linker: Linker, questions: Questions) -> set[int]:
    pairs = sa.select(Run.benchmark_name, Run.benchmark_id).where(Run.benchmark_name.is_not(None)).distinct()
    moved: set[int] = set()
    for spelling, benchmark_id in connection.execute(pairs).all():
        if spelling is None or benchmark_id is None:
            continue
        wanted = linker.benchmark(spelling)
        if wanted == benchmark_id:
            continue
        runs = connection.execute(sa.select(Run.id).where(Run.benchmark_name == spelling, Run.benchmark_id == benchmark_id)).scalars().all()
        _move_questions(connection, benchmark_id, wanted, list(runs), questions)
        for run_id in runs:
            _move(connection, run_id, {"benchmark_id": wanted})
        connection.execute(sa.update(Score).where(Score.run_id.in_(runs), Score.benchmark_id == benchmark_id).values(benchmark_id=wanted))
        moved.update(runs)
    return moved


def _move(connection: sa.Connection, run_id: int, values: dict[str, int]) -> None:
    """Change a run's links; where that would make two runs one, the identity says which spelling it came by."""
    run = connection.execute(sa.select(Run).where(Run.id == run_id)).one()
    identity = {
        "source_format": run.source_format,
        "external_id": run.external_id,
        "benchmark_id": run.benchmark_id,
        "configuration_id": run.configuration_id,
        **values,
    }
    clash = connection.execute(
        sa.select(Run.id).where(*(getattr(Run, name) == value for name, value in identity.items()), Run.id != run_id)
    ).first()
    external_id = spelled_identity(run.external_id, run.model_name, run.benchmark_name) if clash else run.external_id
    connection.execute(sa.update(Run).where(Run.id == run_id).values(external_id=external_id, version=Run.version + 1, **values))


def _move_questions(connection: sa.Connection, old: int, new: int, runs: list[int], questions: Questions) -> None:
    """Let the records of some runs answer the questions of another benchmark, key by key."""
    from tracker.ingest.questions import ATTRIBUTES
    from tracker.schema import Record, RecordScore

    used = sa.select(Record.question_id).where(Record.run_id.in_(runs)).distinct()
    rows = connection.execute(sa.select(Question).where(Question.benchmark_id == old, Question.id.in_(used))).all()
    ids = questions.merge_rows(new, [{"key": row.key, **{name: getattr(row, name) for name in ATTRIBUTES}} for row in rows])
    for row in rows:
        for table in (Record, RecordScore):
            statement = sa.update(table).where(table.run_id.in_(runs), table.question_id == row.id).values(question_id=ids[row.key])
            connection.execute(statement)


def prune(connection: sa.Connection) -> set[int]:
    """Remove what was only found in files and no run uses any more; returns benchmarks that lost questions."""
    from tracker.ingest.questions import prune_questions
    from tracker.schema import Trajectory

    pruned = prune_questions(connection)
    if pruned.unjoined:
        from tracker.ingest.runs import all_slices, mark_dirty

        mark_dirty(connection, {slice_ for slice_ in all_slices(connection) if slice_[1] in pruned.unjoined})
    gone = sa.delete(Configuration).where(
        ~sa.exists().where(Run.configuration_id == Configuration.id),
        ~sa.exists().where(Profile.configuration_id == Configuration.id),
    )
    connection.execute(gone)
    connection.execute(
        sa.delete(Model).where(
            Model.origin == FOUND,
            ~sa.exists().where(Configuration.model_id == Model.id),
            ~sa.exists().where(Score.model_id == Model.id),
        )
    )
    empty = sa.select(Series.id).where(Series.origin == FOUND, ~sa.exists().where(Model.series_id == Series.id))
    connection.execute(sa.delete(Trajectory).where(Trajectory.series_id.in_(empty)))
    connection.execute(sa.delete(Series).where(Series.id.in_(empty)))
    connection.execute(
        sa.delete(Benchmark).where(
            Benchmark.origin == FOUND,
            ~sa.exists().where(Run.benchmark_id == Benchmark.id),
            ~sa.exists().where(Question.benchmark_id == Benchmark.id),
            ~sa.exists().where(Score.benchmark_id == Benchmark.id),
        )
    )
    return pruned.benchmarks
