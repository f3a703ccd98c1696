"""The tables, once. Column comments give meaning and units; null always means "not given".

All times are UTC. Fractions are 0..1. Every table lives in the PostgreSQL schema `trackr`
(translated away on SQLite), so that another tool's tables can share the database.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from sqlalchemy import (
    JSON,
    BigInteger,
    CheckConstraint,
    DateTime,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Text,
    TypeDecorator,
    UniqueConstraint,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

if TYPE_CHECKING:
    from sqlalchemy.engine import Dialect

SCHEMA = "trackr"
"""The PostgreSQL schema that holds every table."""

NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}


class UtcDateTime(TypeDecorator[datetime]):
    """A point in time in UTC, aware on both engines (SQLite itself keeps no zone)."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Refuse a naive time; store UTC."""
        if value is None:
            return None
        if value.tzinfo is None:
            message = f"a time without a zone: {value!r}"
            raise ValueError(message)
        value = value.astimezone(UTC)
        return value.replace(tzinfo=None) if dialect.name == "sqlite" else value

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Give an aware time back."""
        del dialect
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


BigInt = BigInteger().with_variant(Integer(), "sqlite")
key = Annotated[int, mapped_column(BigInt, primary_key=True, autoincrement=True, comment="surrogate key, never reused")]
name = Annotated[str, mapped_column(Text)]
when = Annotated[datetime, mapped_column(UtcDateTime())]


class Base(DeclarativeBase):
    """The mapped base of every table."""

    metadata = MetaData(schema=SCHEMA, naming_convention=NAMING)
    type_annotation_map: ClassVar[dict[Any, Any]] = {
        str: Text(),
        float: Float(53),
        int: BigInt,
        datetime: UtcDateTime(),
        dict[str, Any]: JSON(),
        list[Any]: JSON(),
    }


def _table(comment: str, *constraints: Any, **options: Any) -> tuple[Any, ...]:
    """Table arguments with a comment; ids are never reused on SQLite either."""
    return (*constraints, {"comment": comment, "sqlite_autoincrement": True, **options})


def _fk(target: str, *, comment: str, index: bool = False, ondelete: str | None = None, nullable: bool | None = None) -> Any:
    """A foreign key column."""
    options: dict[str, Any] = {} if nullable is None else {"nullable": nullable}
    return mapped_column(BigInt, ForeignKey(f"{SCHEMA}.{target}.id", ondelete=ondelete), index=index, comment=comment, **options)


def _fraction(column: str) -> CheckConstraint:
    return CheckConstraint(f"{column} >= 0 AND {column} <= 1", name=f"{column}_is_fraction")


def _one_of(column: str, *values: str) -> CheckConstraint:
    # Not IN (...): SQLite builds an index of such a list for every row it checks, which doubled the time of an insert.
    listed = " OR ".join(f"{column} = '{value}'" for value in values)
    return CheckConstraint(listed, name=f"{column}_known")


# ---- the store itself ------------------------------------------------------------------------


class Store(Base):
    """One row: who this database is and how far its data has moved."""

    __tablename__ = "store"
    __table_args__ = _table(
        "one row: the identity of this database and the version of its data", CheckConstraint("id = 1", name="single_row")
    )

    id: Mapped[int] = mapped_column(BigInt, primary_key=True, autoincrement=False, comment="always 1")
    uuid: Mapped[str] = mapped_column(comment="identity of this database; a lake names the database it copies by it")
    data_version: Mapped[int] = mapped_column(default=0, comment="raised by every transaction that changes data which the lake copies")
    catalog_digest: Mapped[str | None] = mapped_column(comment="digest of the shipped catalog that was last written here")
    created_at: Mapped[when] = mapped_column(comment="when the database was made (UTC)")


class DirtySlice(Base):
    """A series on a benchmark whose trajectories must be computed again."""

    __tablename__ = "dirty_slices"
    __table_args__ = _table(
        "series x benchmark slices whose trajectories must be recomputed; rows are appended by writers and removed by the recomputation that read them"
    )

    id: Mapped[key]
    series_id: Mapped[int] = mapped_column(comment="series of the slice")
    benchmark_id: Mapped[int] = mapped_column(comment="benchmark of the slice")


# ---- models ----------------------------------------------------------------------------------


class Family(Base):
    """A line of models from one maker."""

    __tablename__ = "families"
    __table_args__ = _table("a line of models from one maker, such as InternVL")

    id: Mapped[key]
    name: Mapped[str] = mapped_column(unique=True, comment="family name")


class Frontend(Base):
    """How images become visual tokens."""

    __tablename__ = "frontends"
    __table_args__ = _table("how images become visual tokens", _one_of("kind", "tiling", "anyres", "native", "fixed", "none"))

    id: Mapped[key]
    name: Mapped[str] = mapped_column(unique=True, comment="frontend name")
    kind: Mapped[str] = mapped_column(comment="tiling, anyres, native, fixed or none")
    parameters: Mapped[dict[str, Any]] = mapped_column(
        JSON(), comment="numbers of the rule (tile and patch sizes in px, tokens per tile, pixel limits)"
    )


class Series(Base):
    """A generation in a family."""

    __tablename__ = "series"
    __table_args__ = _table(
        "a generation in a family, such as InternVL3.5; an unknown model has a series of its own",
        _one_of("origin", "shipped", "imported", "found"),
    )

    id: Mapped[key]
    family_id: Mapped[int | None] = _fk("families", comment="family; null for a model that no catalog describes")
    frontend_id: Mapped[int | None] = _fk("frontends", comment="frontend of the series")
    name: Mapped[str] = mapped_column(unique=True, comment="series name")
    origin: Mapped[str] = mapped_column(comment="shipped (catalog of the package), imported (catalog of the user) or found (in files)")


class Backbone(Base):
    """A language model."""

    __tablename__ = "backbones"
    __table_args__ = _table(
        "a language model",
        CheckConstraint("parameters > 0", name="parameters_positive"),
        _one_of("stage", "base", "instruct"),
        _one_of("origin", "shipped", "imported", "found"),
    )

    id: Mapped[key]
    name: Mapped[str] = mapped_column(unique=True, comment="backbone name")
    family: Mapped[str | None] = mapped_column(comment="text family, such as Qwen3")
    parameters: Mapped[int | None] = mapped_column(
        comment="exact parameter count of the language part, embeddings and output head included"
    )
    active_parameters: Mapped[int | None] = mapped_column(comment="parameters used per token (mixture of experts)")
    stage: Mapped[str | None] = mapped_column(comment="base or instruct")
    architecture: Mapped[dict[str, Any] | None] = mapped_column(
        JSON(), comment="layers, widths, heads, vocabulary, tied or untied output head"
    )
    source: Mapped[str | None] = mapped_column(comment="where the numbers come from")
    origin: Mapped[str] = mapped_column(comment="shipped, imported or found")


class Model(Base):
    """A model that was evaluated or trained."""

    __tablename__ = "models"
    __table_args__ = _table("a model that was evaluated or trained", _one_of("origin", "shipped", "imported", "found"))

    id: Mapped[key]
    name: Mapped[str] = mapped_column(unique=True, comment="model name")
    series_id: Mapped[int] = _fk("series", comment="series", index=True)
    backbone_id: Mapped[int | None] = _fk("backbones", comment="language backbone; null when no catalog describes the model")
    frontend_id: Mapped[int | None] = _fk("frontends", comment="frontend where it differs from the series'")
    vision_parameters: Mapped[int | None] = mapped_column(comment="parameters of vision encoder and projector")
    origin: Mapped[str] = mapped_column(comment="shipped, imported or found")


class ModelAlias(Base):
    """A spelling of a model's name."""

    __tablename__ = "model_aliases"
    __table_args__ = _table("every spelling of a model's name, mapped to one model", _one_of("origin", "shipped", "imported", "found"))

    id: Mapped[key]
    alias: Mapped[str] = mapped_column(unique=True, comment="spelling as it occurs in files")
    model_id: Mapped[int] = _fk("models", comment="the model it means", index=True, ondelete="CASCADE")
    origin: Mapped[str] = mapped_column(comment="shipped, imported or found")


# ---- questions -------------------------------------------------------------------------------


class Benchmark(Base):
    """A question set."""

    __tablename__ = "benchmarks"
    __table_args__ = _table("a question set", _one_of("origin", "shipped", "imported", "found"))

    id: Mapped[key]
    name: Mapped[str] = mapped_column(unique=True, comment="benchmark name")
    suite: Mapped[str | None] = mapped_column(comment="suite that holds it; HR-Bench holds HRBench4K and HRBench8K")
    split: Mapped[str | None] = mapped_column(comment="split of the data set")
    modality: Mapped[str | None] = mapped_column(comment="image, text, video, ...")
    metric: Mapped[str | None] = mapped_column(comment="primary metric")
    n_questions: Mapped[int | None] = mapped_column(comment="number of questions in the released set")
    tasks: Mapped[dict[str, Any] | None] = mapped_column(JSON(), comment="task of each category, used where the source gives no task")
    origin: Mapped[str] = mapped_column(comment="shipped, imported or found")


class BenchmarkAlias(Base):
    """A spelling of a benchmark's name."""

    __tablename__ = "benchmark_aliases"
    __table_args__ = _table(
        "every spelling of a benchmark's name, mapped to one benchmark", _one_of("origin", "shipped", "imported", "found")
    )

    id: Mapped[key]
    alias: Mapped[str] = mapped_column(unique=True, comment="spelling as it occurs in files")
    benchmark_id: Mapped[int] = _fk("benchmarks", comment="the benchmark it means", index=True, ondelete="CASCADE")
    origin: Mapped[str] = mapped_column(comment="shipped, imported or found")


class Question(Base):
    """One question of a benchmark, under one key."""

    __tablename__ = "questions"
    __table_args__ = _table(
        "one question of a benchmark under one key",
        UniqueConstraint("benchmark_id", "key"),
        Index(None, "benchmark_id", "content_hash"),
        CheckConstraint("n_options > 0", name="n_options_positive"),
    )

    id: Mapped[key]
    benchmark_id: Mapped[int] = _fk("benchmarks", comment="benchmark")
    key: Mapped[str] = mapped_column(comment="id of the question in the source, by the order its reader documents")
    same_as_id: Mapped[int | None] = _fk(
        "questions",
        comment="the question that this key means too (joined by content_hash); null where the key stands for itself",
        index=True,
    )
    content_hash: Mapped[str | None] = mapped_column(comment="hash of text, sorted options and image")
    hash_repeats: Mapped[bool] = mapped_column(
        default=False, comment="true where two keys of one run have this content_hash, so that it cannot join keys"
    )
    image_key: Mapped[str | None] = mapped_column(comment="image or cluster id: questions that share it are resampled together")
    pair_key: Mapped[str | None] = mapped_column(comment="the same question in another release of the benchmark")
    text: Mapped[str | None] = mapped_column(comment="question text")
    options: Mapped[str | None] = mapped_column(comment="options in order, a JSON list")
    gold: Mapped[str | None] = mapped_column(comment="reference answer")
    n_options: Mapped[int | None] = mapped_column(comment="number of options")
    task: Mapped[str | None] = mapped_column(comment="perception, reasoning, ...")
    category: Mapped[str | None] = mapped_column(comment="category in the benchmark's own words")
    subcategory: Mapped[str | None] = mapped_column(comment="finer category in the benchmark's own words")
    image_width: Mapped[int | None] = mapped_column(comment="native image width (px)")
    image_height: Mapped[int | None] = mapped_column(comment="native image height (px)")


class QuestionLabel(Base):
    """A label that some source gave to a question."""

    __tablename__ = "question_labels"
    __table_args__ = _table(
        "a label given to a question key; one value per question, scheme and source",
        UniqueConstraint("benchmark", "question_key", "scheme", "source"),
    )

    id: Mapped[key]
    benchmark: Mapped[str] = mapped_column(comment="benchmark name as the label file or run gave it")
    question_key: Mapped[str] = mapped_column(comment="question key as the label file or run gave it")
    question_id: Mapped[int | None] = _fk("questions", comment="the question; null until it is known", index=True)
    scheme: Mapped[str] = mapped_column(comment="labelling scheme: domain, skill, ...")
    source: Mapped[str] = mapped_column(comment="who labelled: a file, a model, a framework")
    value: Mapped[str] = mapped_column(comment="label")


class LabelSource(Base):
    """The stated priority of a label source."""

    __tablename__ = "label_sources"
    __table_args__ = _table(
        "stated priority of label sources; sources without a row follow in alphabetical order", UniqueConstraint("scheme", "source")
    )

    id: Mapped[key]
    scheme: Mapped[str] = mapped_column(comment="labelling scheme")
    source: Mapped[str] = mapped_column(comment="label source")
    priority: Mapped[int] = mapped_column(comment="the lowest number is the one the views use")


# ---- runs and records ------------------------------------------------------------------------


class Configuration(Base):
    """A model under fixed settings."""

    __tablename__ = "configurations"
    __table_args__ = _table(
        "a model under fixed settings; null is a value of its own",
        UniqueConstraint("model_id", "fingerprint"),
        _one_of("input_mode", "fixed", "native"),
    )

    id: Mapped[key]
    model_id: Mapped[int] = _fk("models", comment="model")
    fingerprint: Mapped[str] = mapped_column(comment="digest of exactly the setting columns of this table")
    input_mode: Mapped[str | None] = mapped_column(comment="fixed (long edge resized to input_size), native, or null when not known")
    input_size: Mapped[int | None] = mapped_column(comment="long edge of the input image (px)")
    max_tiles: Mapped[int | None] = mapped_column(comment="largest number of tiles")
    pixel_cap: Mapped[int | None] = mapped_column(comment="largest number of input pixels")
    source_quality: Mapped[str | None] = mapped_column(comment="what was done to the source image before it was resized")
    vision_branches: Mapped[int | None] = mapped_column(comment="parallel branches of the vision part")
    language_branches: Mapped[int | None] = mapped_column(comment="parallel branches of the language part")
    few_shot: Mapped[int | None] = mapped_column(comment="number of examples in the prompt")
    precision: Mapped[str | None] = mapped_column(comment="number format of the weights, such as bf16")
    max_new_tokens: Mapped[int | None] = mapped_column(comment="limit of generated tokens")
    prompt: Mapped[str | None] = mapped_column(comment="prompt variant")
    variant: Mapped[str | None] = mapped_column(comment="whatever else was varied on purpose")


class Run(Base):
    """One execution: an evaluation of a configuration on a benchmark, or a training run."""

    __tablename__ = "runs"
    __table_args__ = _table(
        "one execution: an evaluation of a configuration on a benchmark, or a training run",
        UniqueConstraint("source_format", "external_id", "benchmark_id", "configuration_id", name="uq_runs_identity"),
        Index(None, "configuration_id", "benchmark_id"),
        _one_of("kind", "evaluation", "training"),
        _one_of("status", "finished", "partial", "failed"),
        CheckConstraint("version > 0", name="version_positive"),
        CheckConstraint("n_records >= 0", name="n_records_not_negative"),
    )

    id: Mapped[key]
    kind: Mapped[str] = mapped_column(comment="evaluation or training")
    configuration_id: Mapped[int] = _fk("configurations", comment="configuration")
    benchmark_id: Mapped[int | None] = _fk("benchmarks", comment="benchmark; null for a training run", index=True)
    model_name: Mapped[str] = mapped_column(comment="model as the source spells it")
    benchmark_name: Mapped[str | None] = mapped_column(comment="benchmark as the source spells it")
    ingest_id: Mapped[int | None] = _fk("ingests", comment="the ingest that wrote the present version")
    source_format: Mapped[str] = mapped_column(comment="reader that read it")
    framework: Mapped[str | None] = mapped_column(comment="tool that wrote it")
    framework_version: Mapped[str | None] = mapped_column(comment="version of that tool")
    source_uri: Mapped[str] = mapped_column(comment="file or address it was last read from")
    external_id: Mapped[str] = mapped_column(comment="the source's own run id, else the resolved path or address")
    digest: Mapped[str] = mapped_column(comment="digest of bytes, reader version and effective mapping", index=True)
    status: Mapped[str] = mapped_column(comment="finished, partial (its writer says or proves that it stopped early) or failed")
    status_reason: Mapped[str | None] = mapped_column(comment="why the run is not finished")
    current: Mapped[bool] = mapped_column(comment="true for the run of its configuration and benchmark that enters cells and trajectories")
    started_at: Mapped[datetime | None] = mapped_column(comment="start (UTC), as the source says")
    ended_at: Mapped[datetime | None] = mapped_column(comment="end (UTC), as the source says")
    version: Mapped[int] = mapped_column(comment="rises whenever a record of the run would read differently in the lake")
    n_records: Mapped[int] = mapped_column(comment="records of the run")
    n_expected: Mapped[int | None] = mapped_column(comment="records that the source declares")
    system: Mapped[str | None] = mapped_column(comment="name that groups training runs, such as encoder-free")
    settings: Mapped[dict[str, Any]] = mapped_column(JSON(), comment="everything the source says that has no column of its own")
    tags: Mapped[dict[str, Any]] = mapped_column(JSON(), comment="tags of the source")


class RunSource(Base):
    """A place where a run was found."""

    __tablename__ = "run_sources"
    __table_args__ = _table(
        "every place where a run was found", UniqueConstraint("run_id", "uri"), Index(None, "uri"), Index(None, "digest")
    )

    id: Mapped[key]
    run_id: Mapped[int] = _fk("runs", comment="run", ondelete="CASCADE")
    uri: Mapped[str] = mapped_column(comment="resolved path or address")
    digest: Mapped[str] = mapped_column(comment="digest seen there")
    seen_at: Mapped[when] = mapped_column(comment="when it was first seen there with this digest (UTC)")


class Record(Base):
    """One answer to one question in one run."""

    __tablename__ = "records"
    __table_args__ = _table(
        "one answer to one question in one run",
        _one_of("status", "scored", "unscored", "failed"),
        _one_of("special", "nan", "inf", "-inf"),
        _fraction("p_gold"),
        CheckConstraint("repetition >= 0 AND attempt >= 0", name="counts_not_negative"),
        Index(None, "question_id"),
        sqlite_autoincrement=False,
        sqlite_with_rowid=False,
    )

    run_id: Mapped[int] = mapped_column(
        BigInt, ForeignKey(f"{SCHEMA}.runs.id", ondelete="CASCADE"), primary_key=True, autoincrement=False, comment="run"
    )
    question_id: Mapped[int] = mapped_column(
        BigInt, ForeignKey(f"{SCHEMA}.questions.id"), primary_key=True, autoincrement=False, comment="question"
    )
    repetition: Mapped[int] = mapped_column(
        Integer, primary_key=True, autoincrement=False, comment="epoch or sampled repeat, from 0; all count"
    )
    attempt: Mapped[int] = mapped_column(
        Integer, primary_key=True, autoincrement=False, comment="asked again, from 0; a later one supersedes an earlier"
    )
    final: Mapped[bool] = mapped_column(comment="true for the last scored attempt of its repetition")
    status: Mapped[str] = mapped_column(comment="scored (has a credit), unscored, or failed (no answer)")
    correct: Mapped[bool | None] = mapped_column(comment="whether the answer is right")
    score: Mapped[float | None] = mapped_column(comment="score in the metric's own unit")
    special: Mapped[str | None] = mapped_column(comment="nan, inf or -inf when the source's score is that and score is null")
    score_rule: Mapped[str | None] = mapped_column(comment="how correct was decided")
    prediction: Mapped[str | None] = mapped_column(comment="answer parsed from the text")
    logit_prediction: Mapped[str | None] = mapped_column(comment="option with the highest confidence")
    p_gold: Mapped[float | None] = mapped_column(comment="probability of the correct option, normalised over the options (0..1)")
    option_scores: Mapped[str | None] = mapped_column(comment="log-likelihoods of the options in order, a JSON list (nats)")
    visual_tokens: Mapped[int | None] = mapped_column(comment="visual tokens that entered the language model")
    prompt_tokens: Mapped[int | None] = mapped_column(comment="tokens of the whole prompt, visual ones included")
    generated_tokens: Mapped[int | None] = mapped_column(comment="tokens generated")
    tiles: Mapped[int | None] = mapped_column(comment="image tiles, the thumbnail included")
    effective_pixels: Mapped[int | None] = mapped_column(comment="pixels of the source that reached the encoder (px)")
    vision_flops: Mapped[float | None] = mapped_column(comment="floating point operations of the vision part")
    latency_s: Mapped[float | None] = mapped_column(comment="wall time of the answer (s)")
    response: Mapped[str | None] = mapped_column(comment="text as generated")


class RecordScore(Base):
    """A further score of a record."""

    __tablename__ = "record_scores"
    __table_args__ = _table(
        "a further score of a record: another metric, filter or scorer",
        _one_of("special", "nan", "inf", "-inf"),
        sqlite_autoincrement=False,
        sqlite_with_rowid=False,
    )

    run_id: Mapped[int] = mapped_column(
        BigInt, ForeignKey(f"{SCHEMA}.runs.id", ondelete="CASCADE"), primary_key=True, autoincrement=False, comment="run"
    )
    question_id: Mapped[int] = mapped_column(
        BigInt, ForeignKey(f"{SCHEMA}.questions.id"), primary_key=True, autoincrement=False, comment="question"
    )
    repetition: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False, comment="repetition of the record")
    attempt: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False, comment="attempt of the record")
    scorer: Mapped[str] = mapped_column(primary_key=True, comment="metric, filter or scorer, such as exact_match,strict")
    score: Mapped[float | None] = mapped_column(comment="score in the scorer's own unit")
    special: Mapped[str | None] = mapped_column(comment="nan, inf or -inf when score is null for that reason")


class Trajectory(Base):
    """One question followed across the configurations of one series."""

    __tablename__ = "trajectories"
    __table_args__ = _table(
        "one question followed across the configurations of one series",
        _fraction("accuracy"),
        _fraction("p_gold"),
        Index(None, "series_id"),
        sqlite_autoincrement=False,
        sqlite_with_rowid=False,
    )

    question_id: Mapped[int] = mapped_column(
        BigInt, ForeignKey(f"{SCHEMA}.questions.id"), primary_key=True, autoincrement=False, comment="question"
    )
    series_id: Mapped[int] = mapped_column(
        BigInt, ForeignKey(f"{SCHEMA}.series.id"), primary_key=True, autoincrement=False, comment="series"
    )
    n_configurations: Mapped[int] = mapped_column(comment="configurations that answered")
    n_observations: Mapped[int] = mapped_column(comment="final attempts that entered")
    accuracy: Mapped[float] = mapped_column(comment="mean credit over configurations")
    p_gold: Mapped[float | None] = mapped_column(comment="mean probability of the correct option over configurations that have one")


class MetricPoint(Base):
    """A point of a training or validation curve."""

    __tablename__ = "metric_points"
    __table_args__ = _table(
        "a point of a training or validation curve",
        _one_of("special", "nan", "inf", "-inf"),
        sqlite_autoincrement=False,
        sqlite_with_rowid=False,
    )

    run_id: Mapped[int] = mapped_column(
        BigInt, ForeignKey(f"{SCHEMA}.runs.id", ondelete="CASCADE"), primary_key=True, autoincrement=False, comment="run"
    )
    metric: Mapped[str] = mapped_column(primary_key=True, comment="metric name")
    step: Mapped[int] = mapped_column(primary_key=True, autoincrement=False, comment="training step")
    seq: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False, comment="order among points of one step, from 0")
    tokens: Mapped[float | None] = mapped_column(comment="training tokens seen")
    flops: Mapped[float | None] = mapped_column(comment="training compute spent (FLOP)")
    value: Mapped[float | None] = mapped_column(comment="value in the metric's own unit")
    special: Mapped[str | None] = mapped_column(comment="nan, inf or -inf when value is null for that reason")
    logged_at: Mapped[datetime | None] = mapped_column(comment="when it was logged (UTC)")


class Score(Base):
    """An aggregate score of a model or backbone on a benchmark."""

    __tablename__ = "scores"
    __table_args__ = _table(
        "an aggregate score of a model or backbone on a benchmark, as its source states it", _one_of("special", "nan", "inf", "-inf")
    )

    id: Mapped[key]
    run_id: Mapped[int | None] = _fk("runs", comment="run that reported it", index=True, ondelete="CASCADE")
    model_id: Mapped[int | None] = _fk("models", comment="model")
    backbone_id: Mapped[int | None] = _fk("backbones", comment="backbone")
    benchmark_id: Mapped[int | None] = _fk("benchmarks", comment="benchmark")
    metric: Mapped[str] = mapped_column(comment="metric, with its filter where there is one")
    value: Mapped[float | None] = mapped_column(comment="value in the metric's own unit")
    special: Mapped[str | None] = mapped_column(comment="nan, inf or -inf when value is null for that reason")
    stderr: Mapped[float | None] = mapped_column(comment="standard error as reported")
    n: Mapped[int | None] = mapped_column(comment="questions behind it")
    step: Mapped[int | None] = mapped_column(comment="training step")
    tokens: Mapped[float | None] = mapped_column(comment="training tokens seen")


class Profile(Base):
    """A measured or computed cost of a configuration."""

    __tablename__ = "profiles"
    __table_args__ = _table("a measured or computed cost of a configuration")

    id: Mapped[key]
    configuration_id: Mapped[int] = _fk("configurations", comment="configuration", index=True)
    batch_size: Mapped[int | None] = mapped_column(comment="samples per batch")
    latency_s: Mapped[float | None] = mapped_column(comment="time per batch (s)")
    memory_bytes: Mapped[int | None] = mapped_column(comment="peak memory (bytes)")
    flops: Mapped[float | None] = mapped_column(comment="floating point operations per sample")
    parameters: Mapped[int | None] = mapped_column(comment="parameters loaded")
    hardware: Mapped[str | None] = mapped_column(comment="device")
    n_timed: Mapped[int | None] = mapped_column(comment="timed repetitions")


# ---- what was done ---------------------------------------------------------------------------


class Ingest(Base):
    """One ingest that changed something."""

    __tablename__ = "ingests"
    __table_args__ = _table("one ingest that changed something")

    id: Mapped[key]
    started_at: Mapped[when] = mapped_column(comment="start (UTC)")
    paths: Mapped[list[Any]] = mapped_column(JSON(), comment="paths that were asked for")
    version: Mapped[str] = mapped_column(comment="trackr version")
    host: Mapped[str | None] = mapped_column(comment="machine that ran it")


class Import(Base):
    """A label file, or the aliases of a study file, that an ingest brought in."""

    __tablename__ = "imports"
    __table_args__ = _table("label files and study aliases that ingests brought in, to notice that they are unchanged")

    id: Mapped[key]
    uri: Mapped[str] = mapped_column(unique=True, comment="resolved path")
    digest: Mapped[str] = mapped_column(comment="digest of what was brought in")


class Rejection(Base):
    """Something that was offered and refused."""

    __tablename__ = "rejections"
    __table_args__ = _table("something that was offered and refused", Index(None, "uri", "digest"))

    id: Mapped[key]
    ingest_id: Mapped[int] = _fk("ingests", comment="the ingest that refused it", index=True)
    uri: Mapped[str] = mapped_column(comment="source it belongs to (resolved path or address)")
    digest: Mapped[str] = mapped_column(comment="digest of that source")
    file: Mapped[str] = mapped_column(comment="file with the fault")
    line: Mapped[int | None] = mapped_column(comment="line, from 1; null when the whole file is meant")
    reason: Mapped[str] = mapped_column(comment="what was expected, what was found, what to do")
    text: Mapped[str | None] = mapped_column(comment="the offending text, cut")


class Analysis(Base):
    """A stored result."""

    __tablename__ = "analyses"
    __table_args__ = _table("a stored result of an analysis")

    id: Mapped[key]
    name: Mapped[str] = mapped_column(comment="analysis, such as ceiling", index=True)
    created_at: Mapped[when] = mapped_column(comment="when it was computed (UTC)")
    parameters: Mapped[dict[str, Any]] = mapped_column(JSON(), comment="its options")
    cohort_sql: Mapped[str] = mapped_column(comment="SQL that selected the cohort")
    cohort_rows: Mapped[int] = mapped_column(comment="rows of the cohort")
    cohort_digest: Mapped[str] = mapped_column(comment="digest of the cohort's rows")
    data_version: Mapped[int] = mapped_column(comment="version of the data it was computed from")
    code_version: Mapped[str] = mapped_column(comment="trackr version")
    engine_version: Mapped[str] = mapped_column(comment="DuckDB version that ran the SQL")
    seed: Mapped[int | None] = mapped_column(comment="random seed")
    seconds: Mapped[float] = mapped_column(comment="wall time (s)")
    headline: Mapped[dict[str, Any]] = mapped_column(JSON(), comment="headline numbers")
    result: Mapped[dict[str, Any]] = mapped_column(JSON(), comment="tables and warnings as the command printed them")


class Fit(Base):
    """One fitted law for one group."""

    __tablename__ = "fits"
    __table_args__ = _table("one fitted law for one group", UniqueConstraint("analysis_id", "law", "group_key"))

    id: Mapped[key]
    analysis_id: Mapped[int] = _fk("analyses", comment="analysis that fitted it", index=True, ondelete="CASCADE")
    law: Mapped[str] = mapped_column(comment="functional form")
    group_key: Mapped[str] = mapped_column(comment="group, such as InternVL3 x HR-Bench")
    parameters: Mapped[dict[str, Any]] = mapped_column(JSON(), comment="fitted values with intervals")
    at_bound: Mapped[list[Any]] = mapped_column(JSON(), comment="parameters that stopped at a bound")
    n: Mapped[int] = mapped_column(comment="points")
    k: Mapped[int] = mapped_column(comment="free parameters")
    sse: Mapped[float | None] = mapped_column(comment="sum of squared errors")
    r2: Mapped[float | None] = mapped_column(comment="coefficient of determination")
    bic: Mapped[float | None] = mapped_column(comment="Bayesian information criterion")


CONFIGURATION_FIELDS: tuple[str, ...] = (
    "input_mode",
    "input_size",
    "max_tiles",
    "pixel_cap",
    "source_quality",
    "vision_branches",
    "language_branches",
    "few_shot",
    "precision",
    "max_new_tokens",
    "prompt",
    "variant",
)
"""The columns that, with the model, make a configuration what it is."""

SEGMENT_TABLES: tuple[str, ...] = ("records", "record_scores", "metric_points")
"""Tables that the lake copies run by run."""

SMALL_TABLES: tuple[str, ...] = (
    "families",
    "frontends",
    "series",
    "backbones",
    "models",
    "model_aliases",
    "benchmarks",
    "benchmark_aliases",
    "questions",
    "question_labels",
    "label_sources",
    "configurations",
    "runs",
    "run_sources",
    "trajectories",
    "scores",
    "profiles",
    "ingests",
    "imports",
    "rejections",
)
"""Tables that the lake rewrites whole when the data moved."""
