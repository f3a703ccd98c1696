"""The tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
"""64 bits; on SQLite every integer has them, and only INTEGER can be a row's own id."""


def upgrade() -> None:
    op.create_table(
        "analyses",
        sa.Column("id", BIG, autoincrement=True, nullable=False, comment="surrogate key, never reused"),
        sa.Column("name", sa.Text(), nullable=False, comment="analysis, such as ceiling"),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False, comment="when it was computed (UTC)"),
        sa.Column("parameters", sa.JSON(), nullable=False, comment="its options"),
        sa.Column("cohort_sql", sa.Text(), nullable=False, comment="SQL that selected the cohort"),
        sa.Column("cohort_rows", BIG, nullable=False, comment="rows of the cohort"),
        sa.Column("cohort_digest", sa.Text(), nullable=False, comment="digest of the cohort's rows"),
        sa.Column("data_version", BIG, nullable=False, comment="version of the data it was computed from"),
        sa.Column("code_version", sa.Text(), nullable=False, comment="trackr version"),
        sa.Column("engine_version", sa.Text(), nullable=False, comment="DuckDB version that ran the SQL"),
        sa.Column("seed", BIG, nullable=True, comment="random seed"),
        sa.Column("seconds", sa.Float(precision=53), nullable=False, comment="wall time (s)"),
        sa.Column("headline", sa.JSON(), nullable=False, comment="headline numbers"),
        sa.Column("result", sa.JSON(), nullable=False, comment="tables and warnings as the command printed them"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_analyses")),
        comment="a stored result of an analysis",
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("analyses", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_analyses_name"), ["name"], unique=False)

    op.create_table(
        "backbones",
        sa.Column("id", BIG, autoincrement=True, nullable=False, comment="surrogate key, never reused"),
        sa.Column("name", sa.Text(), nullable=False, comment="backbone name"),
        sa.Column("family", sa.Text(), nullable=True, comment="text family, such as Qwen3"),
        sa.Column(
            "parameters", BIG, nullable=True, comment="exact parameter count of the language part, embeddings and output head included"
        ),
        sa.Column("active_parameters", BIG, nullable=True, comment="parameters used per token (mixture of experts)"),
        sa.Column("stage", sa.Text(), nullable=True, comment="base or instruct"),
        sa.Column("architecture", sa.JSON(), nullable=True, comment="layers, widths, heads, vocabulary, tied or untied output head"),
        sa.Column("source", sa.Text(), nullable=True, comment="where the numbers come from"),
        sa.Column("origin", sa.Text(), nullable=False, comment="shipped, imported or found"),
        sa.CheckConstraint("origin = 'shipped' OR origin = 'imported' OR origin = 'found'", name=op.f("ck_backbones_origin_known")),
        sa.CheckConstraint("stage = 'base' OR stage = 'instruct'", name=op.f("ck_backbones_stage_known")),
        sa.CheckConstraint("parameters > 0", name=op.f("ck_backbones_parameters_positive")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_backbones")),
        sa.UniqueConstraint("name", name=op.f("uq_backbones_name")),
        comment="a language model",
        sqlite_autoincrement=True,
    )
    op.create_table(
        "benchmarks",
        sa.Column("id", BIG, autoincrement=True, nullable=False, comment="surrogate key, never reused"),
        sa.Column("name", sa.Text(), nullable=False, comment="benchmark name"),
        sa.Column("suite", sa.Text(), nullable=True, comment="suite that holds it; HR-Bench holds HRBench4K and HRBench8K"),
        sa.Column("split", sa.Text(), nullable=True, comment="split of the data set"),
        sa.Column("modality", sa.Text(), nullable=True, comment="image, text, video, ..."),
        sa.Column("metric", sa.Text(), nullable=True, comment="primary metric"),
        sa.Column("n_questions", BIG, nullable=True, comment="number of questions in the released set"),
        sa.Column("tasks", sa.JSON(), nullable=True, comment="task of each category, used where the source gives no task"),
        sa.Column("origin", sa.Text(), nullable=False, comment="shipped, imported or found"),
        sa.CheckConstraint("origin = 'shipped' OR origin = 'imported' OR origin = 'found'", name=op.f("ck_benchmarks_origin_known")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_benchmarks")),
        sa.UniqueConstraint("name", name=op.f("uq_benchmarks_name")),
        comment="a question set",
        sqlite_autoincrement=True,
    )
    op.create_table(
        "dirty_slices",
        sa.Column("id", BIG, autoincrement=True, nullable=False, comment="surrogate key, never reused"),
        sa.Column("series_id", BIG, nullable=False, comment="series of the slice"),
        sa.Column("benchmark_id", BIG, nullable=False, comment="benchmark of the slice"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_dirty_slices")),
        comment="series x benchmark slices whose trajectories must be recomputed; rows are appended by writers and removed by the recomputation that read them",
        sqlite_autoincrement=True,
    )
    op.create_table(
        "families",
        sa.Column("id", BIG, autoincrement=True, nullable=False, comment="surrogate key, never reused"),
        sa.Column("name", sa.Text(), nullable=False, comment="family name"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_families")),
        sa.UniqueConstraint("name", name=op.f("uq_families_name")),
        comment="a line of models from one maker, such as InternVL",
        sqlite_autoincrement=True,
    )
    op.create_table(
        "frontends",
        sa.Column("id", BIG, autoincrement=True, nullable=False, comment="surrogate key, never reused"),
        sa.Column("name", sa.Text(), nullable=False, comment="frontend name"),
        sa.Column("kind", sa.Text(), nullable=False, comment="tiling, anyres, native, fixed or none"),
        sa.Column(
            "parameters",
            sa.JSON(),
            nullable=False,
            comment="numbers of the rule (tile and patch sizes in px, tokens per tile, pixel limits)",
        ),
        sa.CheckConstraint(
            "kind = 'tiling' OR kind = 'anyres' OR kind = 'native' OR kind = 'fixed' OR kind = 'none'", name=op.f("ck_frontends_kind_known")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_frontends")),
        sa.UniqueConstraint("name", name=op.f("uq_frontends_name")),
        comment="how images become visual tokens",
        sqlite_autoincrement=True,
    )
    op.create_table(
        "imports",
        sa.Column("id", BIG, autoincrement=True, nullable=False, comment="surrogate key, never reused"),
        sa.Column("uri", sa.Text(), nullable=False, comment="resolved path"),
        sa.Column("digest", sa.Text(), nullable=False, comment="digest of what was brought in"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_imports")),
        sa.UniqueConstraint("uri", name=op.f("uq_imports_uri")),
        comment="label files and study aliases that ingests brought in, to notice that they are unchanged",
        sqlite_autoincrement=True,
    )
    op.create_table(
        "ingests",
        sa.Column("id", BIG, autoincrement=True, nullable=False, comment="surrogate key, never reused"),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False, comment="start (UTC)"),
        sa.Column("paths", sa.JSON(), nullable=False, comment="paths that were asked for"),
        sa.Column("version", sa.Text(), nullable=False, comment="trackr version"),
        sa.Column("host", sa.Text(), nullable=True, comment="machine that ran it"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_ingests")),
        comment="one ingest that changed something",
        sqlite_autoincrement=True,
    )
    op.create_table(
        "label_sources",
        sa.Column("id", BIG, autoincrement=True, nullable=False, comment="surrogate key, never reused"),
        sa.Column("scheme", sa.Text(), nullable=False, comment="labelling scheme"),
        sa.Column("source", sa.Text(), nullable=False, comment="label source"),
        sa.Column("priority", BIG, nullable=False, comment="the lowest number is the one the views use"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_label_sources")),
        sa.UniqueConstraint("scheme", "source", name=op.f("uq_label_sources_scheme_source")),
        comment="stated priority of label sources; sources without a row follow in alphabetical order",
        sqlite_autoincrement=True,
    )
    op.create_table(
        "store",
        sa.Column("id", BIG, autoincrement=False, nullable=False, comment="always 1"),
        sa.Column("uuid", sa.Text(), nullable=False, comment="identity of this database; a lake names the database it copies by it"),
        sa.Column("data_version", BIG, nullable=False, comment="raised by every transaction that changes data which the lake copies"),
        sa.Column("catalog_digest", sa.Text(), nullable=True, comment="digest of the shipped catalog that was last written here"),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False, comment="when the database was made (UTC)"),
        sa.CheckConstraint("id = 1", name=op.f("ck_store_single_row")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_store")),
        comment="one row: the identity of this database and the version of its data",
        sqlite_autoincrement=True,
    )
    op.create_table(
        "benchmark_aliases",
        sa.Column("id", BIG, autoincrement=True, nullable=False, comment="surrogate key, never reused"),
        sa.Column("alias", sa.Text(), nullable=False, comment="spelling as it occurs in files"),
        sa.Column("benchmark_id", BIG, nullable=False, comment="the benchmark it means"),
        sa.Column("origin", sa.Text(), nullable=False, comment="shipped, imported or found"),
        sa.CheckConstraint("origin = 'shipped' OR origin = 'imported' OR origin = 'found'", name=op.f("ck_benchmark_aliases_origin_known")),
        sa.ForeignKeyConstraint(
            ["benchmark_id"], ["benchmarks.id"], name=op.f("fk_benchmark_aliases_benchmark_id_benchmarks"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_benchmark_aliases")),
        sa.UniqueConstraint("alias", name=op.f("uq_benchmark_aliases_alias")),
        comment="every spelling of a benchmark's name, mapped to one benchmark",
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("benchmark_aliases", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_benchmark_aliases_benchmark_id"), ["benchmark_id"], unique=False)

    op.create_table(
        "fits",
        sa.Column("id", BIG, autoincrement=True, nullable=False, comment="surrogate key, never reused"),
        sa.Column("analysis_id", BIG, nullable=False, comment="analysis that fitted it"),
        sa.Column("law", sa.Text(), nullable=False, comment="functional form"),
        sa.Column("group_key", sa.Text(), nullable=False, comment="group, such as InternVL3 x HR-Bench"),
        sa.Column("parameters", sa.JSON(), nullable=False, comment="fitted values with intervals"),
        sa.Column("at_bound", sa.JSON(), nullable=False, comment="parameters that stopped at a bound"),
        sa.Column("n", BIG, nullable=False, comment="points"),
        sa.Column("k", BIG, nullable=False, comment="free parameters"),
        sa.Column("sse", sa.Float(precision=53), nullable=True, comment="sum of squared errors"),
        sa.Column("r2", sa.Float(precision=53), nullable=True, comment="coefficient of determination"),
        sa.Column("bic", sa.Float(precision=53), nullable=True, comment="Bayesian information criterion"),
        sa.ForeignKeyConstraint(["analysis_id"], ["analyses.id"], name=op.f("fk_fits_analysis_id_analyses"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_fits")),
        sa.UniqueConstraint("analysis_id", "law", "group_key", name=op.f("uq_fits_analysis_id_law_group_key")),
        comment="one fitted law for one group",
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("fits", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_fits_analysis_id"), ["analysis_id"], unique=False)

    op.create_table(
        "questions",
        sa.Column("id", BIG, autoincrement=True, nullable=False, comment="surrogate key, never reused"),
        sa.Column("benchmark_id", BIG, nullable=False, comment="benchmark"),
        sa.Column("key", sa.Text(), nullable=False, comment="id of the question in the source, by the order its reader documents"),
        sa.Column(
            "same_as_id",
            BIG,
            nullable=True,
            comment="the question that this key means too (joined by content_hash); null where the key stands for itself",
        ),
        sa.Column("content_hash", sa.Text(), nullable=True, comment="hash of text, sorted options and image"),
        sa.Column(
            "hash_repeats",
            sa.Boolean(),
            nullable=False,
            comment="true where two keys of one run have this content_hash, so that it cannot join keys",
        ),
        sa.Column("image_key", sa.Text(), nullable=True, comment="image or cluster id: questions that share it are resampled together"),
        sa.Column("pair_key", sa.Text(), nullable=True, comment="the same question in another release of the benchmark"),
        sa.Column("text", sa.Text(), nullable=True, comment="question text"),
        sa.Column("options", sa.Text(), nullable=True, comment="options in order, a JSON list"),
        sa.Column("gold", sa.Text(), nullable=True, comment="reference answer"),
        sa.Column("n_options", BIG, nullable=True, comment="number of options"),
        sa.Column("task", sa.Text(), nullable=True, comment="perception, reasoning, ..."),
        sa.Column("category", sa.Text(), nullable=True, comment="category in the benchmark's own words"),
        sa.Column("subcategory", sa.Text(), nullable=True, comment="finer category in the benchmark's own words"),
        sa.Column("image_width", BIG, nullable=True, comment="native image width (px)"),
        sa.Column("image_height", BIG, nullable=True, comment="native image height (px)"),
        sa.CheckConstraint("n_options > 0", name=op.f("ck_questions_n_options_positive")),
        sa.ForeignKeyConstraint(["benchmark_id"], ["benchmarks.id"], name=op.f("fk_questions_benchmark_id_benchmarks")),
        sa.ForeignKeyConstraint(["same_as_id"], ["questions.id"], name=op.f("fk_questions_same_as_id_questions")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_questions")),
        sa.UniqueConstraint("benchmark_id", "key", name=op.f("uq_questions_benchmark_id_key")),
        comment="one question of a benchmark under one key",
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("questions", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_questions_benchmark_id_content_hash"), ["benchmark_id", "content_hash"], unique=False)
        batch_op.create_index(batch_op.f("ix_questions_same_as_id"), ["same_as_id"], unique=False)

    op.create_table(
        "rejections",
        sa.Column("id", BIG, autoincrement=True, nullable=False, comment="surrogate key, never reused"),
        sa.Column("ingest_id", BIG, nullable=False, comment="the ingest that refused it"),
        sa.Column("uri", sa.Text(), nullable=False, comment="source it belongs to (resolved path or address)"),
        sa.Column("digest", sa.Text(), nullable=False, comment="digest of that source"),
        sa.Column("file", sa.Text(), nullable=False, comment="file with the fault"),
        sa.Column("line", BIG, nullable=True, comment="line, from 1; null when the whole file is meant"),
        sa.Column("reason", sa.Text(), nullable=False, comment="what was expected, what was found, what to do"),
        sa.Column("text", sa.Text(), nullable=True, comment="the offending text, cut"),
        sa.ForeignKeyConstraint(["ingest_id"], ["ingests.id"], name=op.f("fk_rejections_ingest_id_ingests")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_rejections")),
        comment="something that was offered and refused",
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("rejections", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_rejections_ingest_id"), ["ingest_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_rejections_uri_digest"), ["uri", "digest"], unique=False)

    op.create_table(
        "series",
        sa.Column("id", BIG, autoincrement=True, nullable=False, comment="surrogate key, never reused"),
        sa.Column("family_id", BIG, nullable=True, comment="family; null for a model that no catalog describes"),
        sa.Column("frontend_id", BIG, nullable=True, comment="frontend of the series"),
        sa.Column("name", sa.Text(), nullable=False, comment="series name"),
        sa.Column(
            "origin",
            sa.Text(),
            nullable=False,
            comment="shipped (catalog of the package), imported (catalog of the user) or found (in files)",
        ),
        sa.CheckConstraint("origin = 'shipped' OR origin = 'imported' OR origin = 'found'", name=op.f("ck_series_origin_known")),
        sa.ForeignKeyConstraint(["family_id"], ["families.id"], name=op.f("fk_series_family_id_families")),
        sa.ForeignKeyConstraint(["frontend_id"], ["frontends.id"], name=op.f("fk_series_frontend_id_frontends")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_series")),
        sa.UniqueConstraint("name", name=op.f("uq_series_name")),
        comment="a generation in a family, such as InternVL3.5; an unknown model has a series of its own",
        sqlite_autoincrement=True,
    )
    op.create_table(
        "models",
        sa.Column("id", BIG, autoincrement=True, nullable=False, comment="surrogate key, never reused"),
        sa.Column("name", sa.Text(), nullable=False, comment="model name"),
        sa.Column("series_id", BIG, nullable=False, comment="series"),
        sa.Column("backbone_id", BIG, nullable=True, comment="language backbone; null when no catalog describes the model"),
        sa.Column("frontend_id", BIG, nullable=True, comment="frontend where it differs from the series'"),
        sa.Column("vision_parameters", BIG, nullable=True, comment="parameters of vision encoder and projector"),
        sa.Column("origin", sa.Text(), nullable=False, comment="shipped, imported or found"),
        sa.CheckConstraint("origin = 'shipped' OR origin = 'imported' OR origin = 'found'", name=op.f("ck_models_origin_known")),
        sa.ForeignKeyConstraint(["backbone_id"], ["backbones.id"], name=op.f("fk_models_backbone_id_backbones")),
        sa.ForeignKeyConstraint(["frontend_id"], ["frontends.id"], name=op.f("fk_models_frontend_id_frontends")),
        sa.ForeignKeyConstraint(["series_id"], ["series.id"], name=op.f("fk_models_series_id_series")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_models")),
        sa.UniqueConstraint("name", name=op.f("uq_models_name")),
        comment="a model that was evaluated or trained",
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("models", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_models_series_id"), ["series_id"], unique=False)

    op.create_table(
        "question_labels",
        sa.Column("id", BIG, autoincrement=True, nullable=False, comment="surrogate key, never reused"),
        sa.Column("benchmark", sa.Text(), nullable=False, comment="benchmark name as the label file or run gave it"),
        sa.Column("question_key", sa.Text(), nullable=False, comment="question key as the label file or run gave it"),
        sa.Column("question_id", BIG, nullable=True, comment="the question; null until it is known"),
        sa.Column("scheme", sa.Text(), nullable=False, comment="labelling scheme: domain, skill, ..."),
        sa.Column("source", sa.Text(), nullable=False, comment="who labelled: a file, a model, a framework"),
        sa.Column("value", sa.Text(), nullable=False, comment="label"),
        sa.ForeignKeyConstraint(["question_id"], ["questions.id"], name=op.f("fk_question_labels_question_id_questions")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_question_labels")),
        sa.UniqueConstraint(
            "benchmark", "question_key", "scheme", "source", name=op.f("uq_question_labels_benchmark_question_key_scheme_source")
        ),
        comment="a label given to a question key; one value per question, scheme and source",
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("question_labels", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_question_labels_question_id"), ["question_id"], unique=False)

    op.create_table(
        "trajectories",
        sa.Column("question_id", BIG, autoincrement=False, nullable=False, comment="question"),
        sa.Column("series_id", BIG, autoincrement=False, nullable=False, comment="series"),
        sa.Column("n_configurations", BIG, nullable=False, comment="configurations that answered"),
        sa.Column("n_observations", BIG, nullable=False, comment="final attempts that entered"),
        sa.Column("accuracy", sa.Float(precision=53), nullable=False, comment="mean credit over configurations"),
        sa.Column(
            "p_gold",
            sa.Float(precision=53),
            nullable=True,
            comment="mean probability of the correct option over configurations that have one",
        ),
        sa.CheckConstraint("accuracy >= 0 AND accuracy <= 1", name=op.f("ck_trajectories_accuracy_is_fraction")),
        sa.CheckConstraint("p_gold >= 0 AND p_gold <= 1", name=op.f("ck_trajectories_p_gold_is_fraction")),
        sa.ForeignKeyConstraint(["question_id"], ["questions.id"], name=op.f("fk_trajectories_question_id_questions")),
        sa.ForeignKeyConstraint(["series_id"], ["series.id"], name=op.f("fk_trajectories_series_id_series")),
        sa.PrimaryKeyConstraint("question_id", "series_id", name=op.f("pk_trajectories")),
        comment="one question followed across the configurations of one series",
        sqlite_autoincrement=False,
        sqlite_with_rowid=False,
    )
    with op.batch_alter_table("trajectories", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_trajectories_series_id"), ["series_id"], unique=False)

    op.create_table(
        "configurations",
        sa.Column("id", BIG, autoincrement=True, nullable=False, comment="surrogate key, never reused"),
        sa.Column("model_id", BIG, nullable=False, comment="model"),
        sa.Column("fingerprint", sa.Text(), nullable=False, comment="digest of exactly the setting columns of this table"),
        sa.Column(
            "input_mode", sa.Text(), nullable=True, comment="fixed (long edge resized to input_size), native, or null when not known"
        ),
        sa.Column("input_size", BIG, nullable=True, comment="long edge of the input image (px)"),
        sa.Column("max_tiles", BIG, nullable=True, comment="largest number of tiles"),
        sa.Column("pixel_cap", BIG, nullable=True, comment="largest number of input pixels"),
        sa.Column("source_quality", sa.Text(), nullable=True, comment="what was done to the source image before it was resized"),
        sa.Column("vision_branches", BIG, nullable=True, comment="parallel branches of the vision part"),
        sa.Column("language_branches", BIG, nullable=True, comment="parallel branches of the language part"),
        sa.Column("few_shot", BIG, nullable=True, comment="number of examples in the prompt"),
        sa.Column("precision", sa.Text(), nullable=True, comment="number format of the weights, such as bf16"),
        sa.Column("max_new_tokens", BIG, nullable=True, comment="limit of generated tokens"),
        sa.Column("prompt", sa.Text(), nullable=True, comment="prompt variant"),
        sa.Column("variant", sa.Text(), nullable=True, comment="whatever else was varied on purpose"),
        sa.CheckConstraint("input_mode = 'fixed' OR input_mode = 'native'", name=op.f("ck_configurations_input_mode_known")),
        sa.ForeignKeyConstraint(["model_id"], ["models.id"], name=op.f("fk_configurations_model_id_models")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_configurations")),
        sa.UniqueConstraint("model_id", "fingerprint", name=op.f("uq_configurations_model_id_fingerprint")),
        comment="a model under fixed settings; null is a value of its own",
        sqlite_autoincrement=True,
    )
    op.create_table(
        "model_aliases",
        sa.Column("id", BIG, autoincrement=True, nullable=False, comment="surrogate key, never reused"),
        sa.Column("alias", sa.Text(), nullable=False, comment="spelling as it occurs in files"),
        sa.Column("model_id", BIG, nullable=False, comment="the model it means"),
        sa.Column("origin", sa.Text(), nullable=False, comment="shipped, imported or found"),
        sa.CheckConstraint("origin = 'shipped' OR origin = 'imported' OR origin = 'found'", name=op.f("ck_model_aliases_origin_known")),
        sa.ForeignKeyConstraint(["model_id"], ["models.id"], name=op.f("fk_model_aliases_model_id_models"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_model_aliases")),
        sa.UniqueConstraint("alias", name=op.f("uq_model_aliases_alias")),
        comment="every spelling of a model's name, mapped to one model",
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("model_aliases", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_model_aliases_model_id"), ["model_id"], unique=False)

    op.create_table(
        "profiles",
        sa.Column("id", BIG, autoincrement=True, nullable=False, comment="surrogate key, never reused"),
        sa.Column("configuration_id", BIG, nullable=False, comment="configuration"),
        sa.Column("batch_size", BIG, nullable=True, comment="samples per batch"),
        sa.Column("latency_s", sa.Float(precision=53), nullable=True, comment="time per batch (s)"),
        sa.Column("memory_bytes", BIG, nullable=True, comment="peak memory (bytes)"),
        sa.Column("flops", sa.Float(precision=53), nullable=True, comment="floating point operations per sample"),
        sa.Column("parameters", BIG, nullable=True, comment="parameters loaded"),
        sa.Column("hardware", sa.Text(), nullable=True, comment="device"),
        sa.Column("n_timed", BIG, nullable=True, comment="timed repetitions"),
        sa.ForeignKeyConstraint(["configuration_id"], ["configurations.id"], name=op.f("fk_profiles_configuration_id_configurations")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_profiles")),
        comment="a measured or computed cost of a configuration",
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("profiles", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_profiles_configuration_id"), ["configuration_id"], unique=False)

    op.create_table(
        "runs",
        sa.Column("id", BIG, autoincrement=True, nullable=False, comment="surrogate key, never reused"),
        sa.Column("kind", sa.Text(), nullable=False, comment="evaluation or training"),
        sa.Column("configuration_id", BIG, nullable=False, comment="configuration"),
        sa.Column("benchmark_id", BIG, nullable=True, comment="benchmark; null for a training run"),
        sa.Column("model_name", sa.Text(), nullable=False, comment="model as the source spells it"),
        sa.Column("benchmark_name", sa.Text(), nullable=True, comment="benchmark as the source spells it"),
        sa.Column("ingest_id", BIG, nullable=True, comment="the ingest that wrote the present version"),
        sa.Column("source_format", sa.Text(), nullable=False, comment="reader that read it"),
        sa.Column("framework", sa.Text(), nullable=True, comment="tool that wrote it"),
        sa.Column("framework_version", sa.Text(), nullable=True, comment="version of that tool"),
        sa.Column("source_uri", sa.Text(), nullable=False, comment="file or address it was last read from"),
        sa.Column("external_id", sa.Text(), nullable=False, comment="the source's own run id, else the resolved path or address"),
        sa.Column("digest", sa.Text(), nullable=False, comment="digest of bytes, reader version and effective mapping"),
        sa.Column(
            "status", sa.Text(), nullable=False, comment="finished, partial (its writer says or proves that it stopped early) or failed"
        ),
        sa.Column("status_reason", sa.Text(), nullable=True, comment="why the run is not finished"),
        sa.Column(
            "current",
            sa.Boolean(),
            nullable=False,
            comment="true for the run of its configuration and benchmark that enters cells and trajectories",
        ),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True, comment="start (UTC), as the source says"),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True, comment="end (UTC), as the source says"),
        sa.Column("version", BIG, nullable=False, comment="rises whenever a record of the run would read differently in the lake"),
        sa.Column("n_records", BIG, nullable=False, comment="records of the run"),
        sa.Column("n_expected", BIG, nullable=True, comment="records that the source declares"),
        sa.Column("system", sa.Text(), nullable=True, comment="name that groups training runs, such as encoder-free"),
        sa.Column("settings", sa.JSON(), nullable=False, comment="everything the source says that has no column of its own"),
        sa.Column("tags", sa.JSON(), nullable=False, comment="tags of the source"),
        sa.CheckConstraint("kind = 'evaluation' OR kind = 'training'", name=op.f("ck_runs_kind_known")),
        sa.CheckConstraint("status = 'finished' OR status = 'partial' OR status = 'failed'", name=op.f("ck_runs_status_known")),
        sa.CheckConstraint("n_records >= 0", name=op.f("ck_runs_n_records_not_negative")),
        sa.CheckConstraint("version > 0", name=op.f("ck_runs_version_positive")),
        sa.ForeignKeyConstraint(["benchmark_id"], ["benchmarks.id"], name=op.f("fk_runs_benchmark_id_benchmarks")),
        sa.ForeignKeyConstraint(["configuration_id"], ["configurations.id"], name=op.f("fk_runs_configuration_id_configurations")),
        sa.ForeignKeyConstraint(["ingest_id"], ["ingests.id"], name=op.f("fk_runs_ingest_id_ingests")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_runs")),
        sa.UniqueConstraint("source_format", "external_id", "benchmark_id", "configuration_id", name="uq_runs_identity"),
        comment="one execution: an evaluation of a configuration on a benchmark, or a training run",
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("runs", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_runs_benchmark_id"), ["benchmark_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_runs_configuration_id_benchmark_id"), ["configuration_id", "benchmark_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_runs_digest"), ["digest"], unique=False)

    op.create_table(
        "metric_points",
        sa.Column("run_id", BIG, autoincrement=False, nullable=False, comment="run"),
        sa.Column("metric", sa.Text(), nullable=False, comment="metric name"),
        sa.Column("step", BIG, autoincrement=False, nullable=False, comment="training step"),
        sa.Column("seq", sa.Integer(), autoincrement=False, nullable=False, comment="order among points of one step, from 0"),
        sa.Column("tokens", sa.Float(precision=53), nullable=True, comment="training tokens seen"),
        sa.Column("flops", sa.Float(precision=53), nullable=True, comment="training compute spent (FLOP)"),
        sa.Column("value", sa.Float(precision=53), nullable=True, comment="value in the metric's own unit"),
        sa.Column("special", sa.Text(), nullable=True, comment="nan, inf or -inf when value is null for that reason"),
        sa.Column("logged_at", sa.DateTime(timezone=True), nullable=True, comment="when it was logged (UTC)"),
        sa.CheckConstraint("special = 'nan' OR special = 'inf' OR special = '-inf'", name=op.f("ck_metric_points_special_known")),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_metric_points_run_id_runs"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", "metric", "step", "seq", name=op.f("pk_metric_points")),
        comment="a point of a training or validation curve",
        sqlite_autoincrement=False,
        sqlite_with_rowid=False,
    )
    op.create_table(
        "record_scores",
        sa.Column("run_id", BIG, autoincrement=False, nullable=False, comment="run"),
        sa.Column("question_id", BIG, autoincrement=False, nullable=False, comment="question"),
        sa.Column("repetition", sa.Integer(), autoincrement=False, nullable=False, comment="repetition of the record"),
        sa.Column("attempt", sa.Integer(), autoincrement=False, nullable=False, comment="attempt of the record"),
        sa.Column("scorer", sa.Text(), nullable=False, comment="metric, filter or scorer, such as exact_match,strict"),
        sa.Column("score", sa.Float(precision=53), nullable=True, comment="score in the scorer's own unit"),
        sa.Column("special", sa.Text(), nullable=True, comment="nan, inf or -inf when score is null for that reason"),
        sa.CheckConstraint("special = 'nan' OR special = 'inf' OR special = '-inf'", name=op.f("ck_record_scores_special_known")),
        sa.ForeignKeyConstraint(["question_id"], ["questions.id"], name=op.f("fk_record_scores_question_id_questions")),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_record_scores_run_id_runs"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", "question_id", "repetition", "attempt", "scorer", name=op.f("pk_record_scores")),
        comment="a further score of a record: another metric, filter or scorer",
        sqlite_autoincrement=False,
        sqlite_with_rowid=False,
    )
    op.create_table(
        "records",
        sa.Column("run_id", BIG, autoincrement=False, nullable=False, comment="run"),
        sa.Column("question_id", BIG, autoincrement=False, nullable=False, comment="question"),
        sa.Column("repetition", sa.Integer(), autoincrement=False, nullable=False, comment="epoch or sampled repeat, from 0; all count"),
        sa.Column(
            "attempt", sa.Integer(), autoincrement=False, nullable=False, comment="asked again, from 0; a later one supersedes an earlier"
        ),
        sa.Column("final", sa.Boolean(), nullable=False, comment="true for the last scored attempt of its repetition"),
        sa.Column("status", sa.Text(), nullable=False, comment="scored (has a credit), unscored, or failed (no answer)"),
        sa.Column("correct", sa.Boolean(), nullable=True, comment="whether the answer is right"),
        sa.Column("score", sa.Float(precision=53), nullable=True, comment="score in the metric's own unit"),
        sa.Column("special", sa.Text(), nullable=True, comment="nan, inf or -inf when the source's score is that and score is null"),
        sa.Column("score_rule", sa.Text(), nullable=True, comment="how correct was decided"),
        sa.Column("prediction", sa.Text(), nullable=True, comment="answer parsed from the text"),
        sa.Column("logit_prediction", sa.Text(), nullable=True, comment="option with the highest confidence"),
        sa.Column(
            "p_gold", sa.Float(precision=53), nullable=True, comment="probability of the correct option, normalised over the options (0..1)"
        ),
        sa.Column("option_scores", sa.Text(), nullable=True, comment="log-likelihoods of the options in order, a JSON list (nats)"),
        sa.Column("visual_tokens", BIG, nullable=True, comment="visual tokens that entered the language model"),
        sa.Column("prompt_tokens", BIG, nullable=True, comment="tokens of the whole prompt, visual ones included"),
        sa.Column("generated_tokens", BIG, nullable=True, comment="tokens generated"),
        sa.Column("tiles", BIG, nullable=True, comment="image tiles, the thumbnail included"),
        sa.Column("effective_pixels", BIG, nullable=True, comment="pixels of the source that reached the encoder (px)"),
        sa.Column("vision_flops", sa.Float(precision=53), nullable=True, comment="floating point operations of the vision part"),
        sa.Column("latency_s", sa.Float(precision=53), nullable=True, comment="wall time of the answer (s)"),
        sa.Column("response", sa.Text(), nullable=True, comment="text as generated"),
        sa.CheckConstraint("special = 'nan' OR special = 'inf' OR special = '-inf'", name=op.f("ck_records_special_known")),
        sa.CheckConstraint("status = 'scored' OR status = 'unscored' OR status = 'failed'", name=op.f("ck_records_status_known")),
        sa.CheckConstraint("p_gold >= 0 AND p_gold <= 1", name=op.f("ck_records_p_gold_is_fraction")),
        sa.CheckConstraint("repetition >= 0 AND attempt >= 0", name=op.f("ck_records_counts_not_negative")),
        sa.ForeignKeyConstraint(["question_id"], ["questions.id"], name=op.f("fk_records_question_id_questions")),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_records_run_id_runs"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", "question_id", "repetition", "attempt", name=op.f("pk_records")),
        comment="one answer to one question in one run",
        sqlite_autoincrement=False,
        sqlite_with_rowid=False,
    )
    with op.batch_alter_table("records", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_records_question_id"), ["question_id"], unique=False)

    op.create_table(
        "run_sources",
        sa.Column("id", BIG, autoincrement=True, nullable=False, comment="surrogate key, never reused"),
        sa.Column("run_id", BIG, nullable=False, comment="run"),
        sa.Column("uri", sa.Text(), nullable=False, comment="resolved path or address"),
        sa.Column("digest", sa.Text(), nullable=False, comment="digest seen there"),
        sa.Column("seen_at", sa.DateTime(timezone=True), nullable=False, comment="when it was first seen there with this digest (UTC)"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_run_sources_run_id_runs"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_run_sources")),
        sa.UniqueConstraint("run_id", "uri", name=op.f("uq_run_sources_run_id_uri")),
        comment="every place where a run was found",
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("run_sources", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_run_sources_digest"), ["digest"], unique=False)
        batch_op.create_index(batch_op.f("ix_run_sources_uri"), ["uri"], unique=False)

    op.create_table(
        "scores",
        sa.Column("id", BIG, autoincrement=True, nullable=False, comment="surrogate key, never reused"),
        sa.Column("run_id", BIG, nullable=True, comment="run that reported it"),
        sa.Column("model_id", BIG, nullable=True, comment="model"),
        sa.Column("backbone_id", BIG, nullable=True, comment="backbone"),
        sa.Column("benchmark_id", BIG, nullable=True, comment="benchmark"),
        sa.Column("metric", sa.Text(), nullable=False, comment="metric, with its filter where there is one"),
        sa.Column("value", sa.Float(precision=53), nullable=True, comment="value in the metric's own unit"),
        sa.Column("special", sa.Text(), nullable=True, comment="nan, inf or -inf when value is null for that reason"),
        sa.Column("stderr", sa.Float(precision=53), nullable=True, comment="standard error as reported"),
        sa.Column("n", BIG, nullable=True, comment="questions behind it"),
        sa.Column("step", BIG, nullable=True, comment="training step"),
        sa.Column("tokens", sa.Float(precision=53), nullable=True, comment="training tokens seen"),
        sa.CheckConstraint("special = 'nan' OR special = 'inf' OR special = '-inf'", name=op.f("ck_scores_special_known")),
        sa.ForeignKeyConstraint(["backbone_id"], ["backbones.id"], name=op.f("fk_scores_backbone_id_backbones")),
        sa.ForeignKeyConstraint(["benchmark_id"], ["benchmarks.id"], name=op.f("fk_scores_benchmark_id_benchmarks")),
        sa.ForeignKeyConstraint(["model_id"], ["models.id"], name=op.f("fk_scores_model_id_models")),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_scores_run_id_runs"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_scores")),
        comment="an aggregate score of a model or backbone on a benchmark, as its source states it",
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("scores", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_scores_run_id"), ["run_id"], unique=False)


def downgrade() -> None:
    with op.batch_alter_table("scores", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_scores_run_id"))

    op.drop_table("scores")
    with op.batch_alter_table("run_sources", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_run_sources_uri"))
        batch_op.drop_index(batch_op.f("ix_run_sources_digest"))

    op.drop_table("run_sources")
    with op.batch_alter_table("records", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_records_question_id"))

    op.drop_table("records")
    op.drop_table("record_scores")
    op.drop_table("metric_points")
    with op.batch_alter_table("runs", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_runs_digest"))
        batch_op.drop_index(batch_op.f("ix_runs_configuration_id_benchmark_id"))
        batch_op.drop_index(batch_op.f("ix_runs_benchmark_id"))

    op.drop_table("runs")
    with op.batch_alter_table("profiles", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_profiles_configuration_id"))

    op.drop_table("profiles")
    with op.batch_alter_table("model_aliases", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_model_aliases_model_id"))

    op.drop_table("model_aliases")
    op.drop_table("configurations")
    with op.batch_alter_table("trajectories", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_trajectories_series_id"))

    op.drop_table("trajectories")
    with op.batch_alter_table("question_labels", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_question_labels_question_id"))

    op.drop_table("question_labels")
    with op.batch_alter_table("models", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_models_series_id"))

    op.drop_table("models")
    op.drop_table("series")
    with op.batch_alter_table("rejections", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_rejections_uri_digest"))
        batch_op.drop_index(batch_op.f("ix_rejections_ingest_id"))

    op.drop_table("rejections")
    with op.batch_alter_table("questions", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_questions_same_as_id"))
        batch_op.drop_index(batch_op.f("ix_questions_benchmark_id_content_hash"))

    op.drop_table("questions")
    with op.batch_alter_table("fits", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_fits_analysis_id"))

    op.drop_table("fits")
    with op.batch_alter_table("benchmark_aliases", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_benchmark_aliases_benchmark_id"))

    op.drop_table("benchmark_aliases")
    op.drop_table("store")
    op.drop_table("label_sources")
    op.drop_table("ingests")
    op.drop_table("imports")
    op.drop_table("frontends")
    op.drop_table("families")
    op.drop_table("dirty_slices")
    op.drop_table("benchmarks")
    op.drop_table("backbones")
    with op.batch_alter_table("analyses", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_analyses_name"))

    op.drop_table("analyses")
