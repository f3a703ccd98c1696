CREATE SCHEMA trackr;

CREATE TABLE trackr.alembic_version (
    version_num character varying(32) NOT NULL
);

CREATE TABLE trackr.analyses (
    id bigint NOT NULL,
    name text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    parameters json NOT NULL,
    cohort_sql text NOT NULL,
    cohort_rows bigint NOT NULL,
    cohort_digest text NOT NULL,
    data_version bigint NOT NULL,
    code_version text NOT NULL,
    engine_version text NOT NULL,
    seed bigint,
    seconds double precision NOT NULL,
    headline json NOT NULL,
    result json NOT NULL
);

COMMENT ON TABLE trackr.analyses IS 'a stored result of an analysis';

COMMENT ON COLUMN trackr.analyses.id IS 'surrogate key, never reused';

COMMENT ON COLUMN trackr.analyses.name IS 'analysis, such as ceiling';

COMMENT ON COLUMN trackr.analyses.created_at IS 'when it was computed (UTC)';

COMMENT ON COLUMN trackr.analyses.parameters IS 'its options';

COMMENT ON COLUMN trackr.analyses.cohort_sql IS 'SQL that selected the cohort';

COMMENT ON COLUMN trackr.analyses.cohort_rows IS 'rows of the cohort';

COMMENT ON COLUMN trackr.analyses.cohort_digest IS 'digest of the cohort''s rows';

COMMENT ON COLUMN trackr.analyses.data_version IS 'version of the data it was computed from';

COMMENT ON COLUMN trackr.analyses.code_version IS 'trackr version';

COMMENT ON COLUMN trackr.analyses.engine_version IS 'DuckDB version that ran the SQL';

COMMENT ON COLUMN trackr.analyses.seed IS 'random seed';

COMMENT ON COLUMN trackr.analyses.seconds IS 'wall time (s)';

COMMENT ON COLUMN trackr.analyses.headline IS 'headline numbers';

COMMENT ON COLUMN trackr.analyses.result IS 'tables and warnings as the command printed them';

CREATE SEQUENCE trackr.analyses_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER SEQUENCE trackr.analyses_id_seq OWNED BY trackr.analyses.id;

CREATE TABLE trackr.backbones (
    id bigint NOT NULL,
    name text NOT NULL,
    family text,
    parameters bigint,
    active_parameters bigint,
    stage text,
    architecture json,
    source text,
    origin text NOT NULL,
    CONSTRAINT ck_backbones_origin_known CHECK (((origin = 'shipped'::text) OR (origin = 'imported'::text) OR (origin = 'found'::text))),
    CONSTRAINT ck_backbones_parameters_positive CHECK ((parameters > 0)),
    CONSTRAINT ck_backbones_stage_known CHECK (((stage = 'base'::text) OR (stage = 'instruct'::text)))
);

COMMENT ON TABLE trackr.backbones IS 'a language model';

COMMENT ON COLUMN trackr.backbones.id IS 'surrogate key, never reused';

COMMENT ON COLUMN trackr.backbones.name IS 'backbone name';

COMMENT ON COLUMN trackr.backbones.family IS 'text family, such as Qwen3';

COMMENT ON COLUMN trackr.backbones.parameters IS 'exact parameter count of the language part, embeddings and output head included';

COMMENT ON COLUMN trackr.backbones.active_parameters IS 'parameters used per token (mixture of experts)';

COMMENT ON COLUMN trackr.backbones.stage IS 'base or instruct';

COMMENT ON COLUMN trackr.backbones.architecture IS 'layers, widths, heads, vocabulary, tied or untied output head';

COMMENT ON COLUMN trackr.backbones.source IS 'where the numbers come from';

COMMENT ON COLUMN trackr.backbones.origin IS 'shipped, imported or found';

CREATE SEQUENCE trackr.backbones_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER SEQUENCE trackr.backbones_id_seq OWNED BY trackr.backbones.id;

CREATE TABLE trackr.benchmark_aliases (
    id bigint NOT NULL,
    alias text NOT NULL,
    benchmark_id bigint NOT NULL,
    origin text NOT NULL,
    CONSTRAINT ck_benchmark_aliases_origin_known CHECK (((origin = 'shipped'::text) OR (origin = 'imported'::text) OR (origin = 'found'::text)))
);

COMMENT ON TABLE trackr.benchmark_aliases IS 'every spelling of a benchmark''s name, mapped to one benchmark';

COMMENT ON COLUMN trackr.benchmark_aliases.id IS 'surrogate key, never reused';

COMMENT ON COLUMN trackr.benchmark_aliases.alias IS 'spelling as it occurs in files';

COMMENT ON COLUMN trackr.benchmark_aliases.benchmark_id IS 'the benchmark it means';

COMMENT ON COLUMN trackr.benchmark_aliases.origin IS 'shipped, imported or found';

CREATE SEQUENCE trackr.benchmark_aliases_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER SEQUENCE trackr.benchmark_aliases_id_seq OWNED BY trackr.benchmark_aliases.id;

CREATE TABLE trackr.benchmarks (
    id bigint NOT NULL,
    name text NOT NULL,
    suite text,
    split text,
    modality text,
    metric text,
    n_questions bigint,
    tasks json,
    origin text NOT NULL,
    CONSTRAINT ck_benchmarks_origin_known CHECK (((origin = 'shipped'::text) OR (origin = 'imported'::text) OR (origin = 'found'::text)))
);

COMMENT ON TABLE trackr.benchmarks IS 'a question set';

COMMENT ON COLUMN trackr.benchmarks.id IS 'surrogate key, never reused';

COMMENT ON COLUMN trackr.benchmarks.name IS 'benchmark name';

COMMENT ON COLUMN trackr.benchmarks.suite IS 'suite that holds it; HR-Bench holds HRBench4K and HRBench8K';

COMMENT ON COLUMN trackr.benchmarks.split IS 'split of the data set';

COMMENT ON COLUMN trackr.benchmarks.modality IS 'image, text, video, ...';

COMMENT ON COLUMN trackr.benchmarks.metric IS 'primary metric';

COMMENT ON COLUMN trackr.benchmarks.n_questions IS 'number of questions in the released set';

COMMENT ON COLUMN trackr.benchmarks.tasks IS 'task of each category, used where the source gives no task';

COMMENT ON COLUMN trackr.benchmarks.origin IS 'shipped, imported or found';

CREATE SEQUENCE trackr.benchmarks_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER SEQUENCE trackr.benchmarks_id_seq OWNED BY trackr.benchmarks.id;

CREATE TABLE trackr.configurations (
    id bigint NOT NULL,
    model_id bigint NOT NULL,
    fingerprint text NOT NULL,
    input_mode text,
    input_size bigint,
    max_tiles bigint,
    pixel_cap bigint,
    source_quality text,
    vision_branches bigint,
    language_branches bigint,
    few_shot bigint,
    "precision" text,
    max_new_tokens bigint,
    prompt text,
    variant text,
    CONSTRAINT ck_configurations_input_mode_known CHECK (((input_mode = 'fixed'::text) OR (input_mode = 'native'::text)))
);

COMMENT ON TABLE trackr.configurations IS 'a model under fixed settings; null is a value of its own';

COMMENT ON COLUMN trackr.configurations.id IS 'surrogate key, never reused';

COMMENT ON COLUMN trackr.configurations.model_id IS 'model';

COMMENT ON COLUMN trackr.configurations.fingerprint IS 'digest of exactly the setting columns of this table';

COMMENT ON COLUMN trackr.configurations.input_mode IS 'fixed (long edge resized to input_size), native, or null when not known';

COMMENT ON COLUMN trackr.configurations.input_size IS 'long edge of the input image (px)';

COMMENT ON COLUMN trackr.configurations.max_tiles IS 'largest number of tiles';

COMMENT ON COLUMN trackr.configurations.pixel_cap IS 'largest number of input pixels';

COMMENT ON COLUMN trackr.configurations.source_quality IS 'what was done to the source image before it was resized';

COMMENT ON COLUMN trackr.configurations.vision_branches IS 'parallel branches of the vision part';

COMMENT ON COLUMN trackr.configurations.language_branches IS 'parallel branches of the language part';

COMMENT ON COLUMN trackr.configurations.few_shot IS 'number of examples in the prompt';

COMMENT ON COLUMN trackr.configurations."precision" IS 'number format of the weights, such as bf16';

COMMENT ON COLUMN trackr.configurations.max_new_tokens IS 'limit of generated tokens';

COMMENT ON COLUMN trackr.configurations.prompt IS 'prompt variant';

COMMENT ON COLUMN trackr.configurations.variant IS 'whatever else was varied on purpose';

CREATE SEQUENCE trackr.configurations_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER SEQUENCE trackr.configurations_id_seq OWNED BY trackr.configurations.id;

CREATE TABLE trackr.dirty_slices (
    id bigint NOT NULL,
    series_id bigint NOT NULL,
    benchmark_id bigint NOT NULL
);

COMMENT ON TABLE trackr.dirty_slices IS 'series x benchmark slices whose trajectories must be recomputed; rows are appended by writers and removed by the recomputation that read them';

COMMENT ON COLUMN trackr.dirty_slices.id IS 'surrogate key, never reused';

COMMENT ON COLUMN trackr.dirty_slices.series_id IS 'series of the slice';

COMMENT ON COLUMN trackr.dirty_slices.benchmark_id IS 'benchmark of the slice';

CREATE SEQUENCE trackr.dirty_slices_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER SEQUENCE trackr.dirty_slices_id_seq OWNED BY trackr.dirty_slices.id;

CREATE TABLE trackr.families (
    id bigint NOT NULL,
    name text NOT NULL
);

COMMENT ON TABLE trackr.families IS 'a line of models from one maker, such as InternVL';

COMMENT ON COLUMN trackr.families.id IS 'surrogate key, never reused';

COMMENT ON COLUMN trackr.families.name IS 'family name';

CREATE SEQUENCE trackr.families_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER SEQUENCE trackr.families_id_seq OWNED BY trackr.families.id;

CREATE TABLE trackr.fits (
    id bigint NOT NULL,
    analysis_id bigint NOT NULL,
    law text NOT NULL,
    group_key text NOT NULL,
    parameters json NOT NULL,
    at_bound json NOT NULL,
    n bigint NOT NULL,
    k bigint NOT NULL,
    sse double precision,
    r2 double precision,
    bic double precision
);

COMMENT ON TABLE trackr.fits IS 'one fitted law for one group';

COMMENT ON COLUMN trackr.fits.id IS 'surrogate key, never reused';

COMMENT ON COLUMN trackr.fits.analysis_id IS 'analysis that fitted it';

COMMENT ON COLUMN trackr.fits.law IS 'functional form';

COMMENT ON COLUMN trackr.fits.group_key IS 'group, such as InternVL3 x HR-Bench';

COMMENT ON COLUMN trackr.fits.parameters IS 'fitted values with intervals';

COMMENT ON COLUMN trackr.fits.at_bound IS 'parameters that stopped at a bound';

COMMENT ON COLUMN trackr.fits.n IS 'points';

COMMENT ON COLUMN trackr.fits.k IS 'free parameters';

COMMENT ON COLUMN trackr.fits.sse IS 'sum of squared errors';

COMMENT ON COLUMN trackr.fits.r2 IS 'coefficient of determination';

COMMENT ON COLUMN trackr.fits.bic IS 'Bayesian information criterion';

CREATE SEQUENCE trackr.fits_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER SEQUENCE trackr.fits_id_seq OWNED BY trackr.fits.id;

CREATE TABLE trackr.frontends (
    id bigint NOT NULL,
    name text NOT NULL,
    kind text NOT NULL,
    parameters json NOT NULL,
    CONSTRAINT ck_frontends_kind_known CHECK (((kind = 'tiling'::text) OR (kind = 'anyres'::text) OR (kind = 'native'::text) OR (kind = 'fixed'::text) OR (kind = 'none'::text)))
);

COMMENT ON TABLE trackr.frontends IS 'how images become visual tokens';

COMMENT ON COLUMN trackr.frontends.id IS 'surrogate key, never reused';

COMMENT ON COLUMN trackr.frontends.name IS 'frontend name';

COMMENT ON COLUMN trackr.frontends.kind IS 'tiling, anyres, native, fixed or none';

COMMENT ON COLUMN trackr.frontends.parameters IS 'numbers of the rule (tile and patch sizes in px, tokens per tile, pixel limits)';

CREATE SEQUENCE trackr.frontends_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER SEQUENCE trackr.frontends_id_seq OWNED BY trackr.frontends.id;

CREATE TABLE trackr.imports (
    id bigint NOT NULL,
    uri text NOT NULL,
    digest text NOT NULL
);

COMMENT ON TABLE trackr.imports IS 'label files and study aliases that ingests brought in, to notice that they are unchanged';

COMMENT ON COLUMN trackr.imports.id IS 'surrogate key, never reused';

COMMENT ON COLUMN trackr.imports.uri IS 'resolved path';

COMMENT ON COLUMN trackr.imports.digest IS 'digest of what was brought in';

CREATE SEQUENCE trackr.imports_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER SEQUENCE trackr.imports_id_seq OWNED BY trackr.imports.id;

CREATE TABLE trackr.ingests (
    id bigint NOT NULL,
    started_at timestamp with time zone NOT NULL,
    paths json NOT NULL,
    version text NOT NULL,
    host text
);

COMMENT ON TABLE trackr.ingests IS 'one ingest that changed something';

COMMENT ON COLUMN trackr.ingests.id IS 'surrogate key, never reused';

COMMENT ON COLUMN trackr.ingests.started_at IS 'start (UTC)';

COMMENT ON COLUMN trackr.ingests.paths IS 'paths that were asked for';

COMMENT ON COLUMN trackr.ingests.version IS 'trackr version';

COMMENT ON COLUMN trackr.ingests.host IS 'machine that ran it';

CREATE SEQUENCE trackr.ingests_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER SEQUENCE trackr.ingests_id_seq OWNED BY trackr.ingests.id;

CREATE TABLE trackr.label_sources (
    id bigint NOT NULL,
    scheme text NOT NULL,
    source text NOT NULL,
    priority bigint NOT NULL
);

COMMENT ON TABLE trackr.label_sources IS 'stated priority of label sources; sources without a row follow in alphabetical order';

COMMENT ON COLUMN trackr.label_sources.id IS 'surrogate key, never reused';

COMMENT ON COLUMN trackr.label_sources.scheme IS 'labelling scheme';

COMMENT ON COLUMN trackr.label_sources.source IS 'label source';

COMMENT ON COLUMN trackr.label_sources.priority IS 'the lowest number is the one the views use';

CREATE SEQUENCE trackr.label_sources_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER SEQUENCE trackr.label_sources_id_seq OWNED BY trackr.label_sources.id;

CREATE TABLE trackr.metric_points (
    run_id bigint NOT NULL,
    metric text NOT NULL,
    step bigint NOT NULL,
    seq integer NOT NULL,
    tokens double precision,
    flops double precision,
    value double precision,
    special text,
    logged_at timestamp with time zone,
    CONSTRAINT ck_metric_points_special_known CHECK (((special = 'nan'::text) OR (special = 'inf'::text) OR (special = '-inf'::text)))
);

COMMENT ON TABLE trackr.metric_points IS 'a point of a training or validation curve';

COMMENT ON COLUMN trackr.metric_points.run_id IS 'run';

COMMENT ON COLUMN trackr.metric_points.metric IS 'metric name';

COMMENT ON COLUMN trackr.metric_points.step IS 'training step';

COMMENT ON COLUMN trackr.metric_points.seq IS 'order among points of one step, from 0';

COMMENT ON COLUMN trackr.metric_points.tokens IS 'training tokens seen';

COMMENT ON COLUMN trackr.metric_points.flops IS 'training compute spent (FLOP)';

COMMENT ON COLUMN trackr.metric_points.value IS 'value in the metric''s own unit';

COMMENT ON COLUMN trackr.metric_points.special IS 'nan, inf or -inf when value is null for that reason';

COMMENT ON COLUMN trackr.metric_points.logged_at IS 'when it was logged (UTC)';

CREATE TABLE trackr.model_aliases (
    id bigint NOT NULL,
    alias text NOT NULL,
    model_id bigint NOT NULL,
    origin text NOT NULL,
    CONSTRAINT ck_model_aliases_origin_known CHECK (((origin = 'shipped'::text) OR (origin = 'imported'::text) OR (origin = 'found'::text)))
);

COMMENT ON TABLE trackr.model_aliases IS 'every spelling of a model''s name, mapped to one model';

COMMENT ON COLUMN trackr.model_aliases.id IS 'surrogate key, never reused';

COMMENT ON COLUMN trackr.model_aliases.alias IS 'spelling as it occurs in files';

COMMENT ON COLUMN trackr.model_aliases.model_id IS 'the model it means';

COMMENT ON COLUMN trackr.model_aliases.origin IS 'shipped, imported or found';

CREATE SEQUENCE trackr.model_aliases_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER SEQUENCE trackr.model_aliases_id_seq OWNED BY trackr.model_aliases.id;

CREATE TABLE trackr.models (
    id bigint NOT NULL,
    name text NOT NULL,
    series_id bigint NOT NULL,
    backbone_id bigint,
    frontend_id bigint,
    vision_parameters bigint,
    origin text NOT NULL,
    CONSTRAINT ck_models_origin_known CHECK (((origin = 'shipped'::text) OR (origin = 'imported'::text) OR (origin = 'found'::text)))
);

COMMENT ON TABLE trackr.models IS 'a model that was evaluated or trained';

COMMENT ON COLUMN trackr.models.id IS 'surrogate key, never reused';

COMMENT ON COLUMN trackr.models.name IS 'model name';

COMMENT ON COLUMN trackr.models.series_id IS 'series';

COMMENT ON COLUMN trackr.models.backbone_id IS 'language backbone; null when no catalog describes the model';

COMMENT ON COLUMN trackr.models.frontend_id IS 'frontend where it differs from the series''';

COMMENT ON COLUMN trackr.models.vision_parameters IS 'parameters of vision encoder and projector';

COMMENT ON COLUMN trackr.models.origin IS 'shipped, imported or found';

CREATE SEQUENCE trackr.models_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER SEQUENCE trackr.models_id_seq OWNED BY trackr.models.id;

CREATE TABLE trackr.profiles (
    id bigint NOT NULL,
    configuration_id bigint NOT NULL,
    batch_size bigint,
    latency_s double precision,
    memory_bytes bigint,
    flops double precision,
    parameters bigint,
    hardware text,
    n_timed bigint
);

COMMENT ON TABLE trackr.profiles IS 'a measured or computed cost of a configuration';

COMMENT ON COLUMN trackr.profiles.id IS 'surrogate key, never reused';

COMMENT ON COLUMN trackr.profiles.configuration_id IS 'configuration';

COMMENT ON COLUMN trackr.profiles.batch_size IS 'samples per batch';

COMMENT ON COLUMN trackr.profiles.latency_s IS 'time per batch (s)';

COMMENT ON COLUMN trackr.profiles.memory_bytes IS 'peak memory (bytes)';

COMMENT ON COLUMN trackr.profiles.flops IS 'floating point operations per sample';

COMMENT ON COLUMN trackr.profiles.parameters IS 'parameters loaded';

COMMENT ON COLUMN trackr.profiles.hardware IS 'device';

COMMENT ON COLUMN trackr.profiles.n_timed IS 'timed repetitions';

CREATE SEQUENCE trackr.profiles_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER SEQUENCE trackr.profiles_id_seq OWNED BY trackr.profiles.id;

CREATE TABLE trackr.question_labels (
    id bigint NOT NULL,
    benchmark text NOT NULL,
    question_key text NOT NULL,
    question_id bigint,
    scheme text NOT NULL,
    source text NOT NULL,
    value text NOT NULL
);

COMMENT ON TABLE trackr.question_labels IS 'a label given to a question key; one value per question, scheme and source';

COMMENT ON COLUMN trackr.question_labels.id IS 'surrogate key, never reused';

COMMENT ON COLUMN trackr.question_labels.benchmark IS 'benchmark name as the label file or run gave it';

COMMENT ON COLUMN trackr.question_labels.question_key IS 'question key as the label file or run gave it';

COMMENT ON COLUMN trackr.question_labels.question_id IS 'the question; null until it is known';

COMMENT ON COLUMN trackr.question_labels.scheme IS 'labelling scheme: domain, skill, ...';

COMMENT ON COLUMN trackr.question_labels.source IS 'who labelled: a file, a model, a framework';

COMMENT ON COLUMN trackr.question_labels.value IS 'label';

CREATE SEQUENCE trackr.question_labels_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER SEQUENCE trackr.question_labels_id_seq OWNED BY trackr.question_labels.id;

CREATE TABLE trackr.questions (
    id bigint NOT NULL,
    benchmark_id bigint NOT NULL,
    key text NOT NULL,
    same_as_id bigint,
    content_hash text,
    hash_repeats boolean NOT NULL,
    image_key text,
    pair_key text,
    text text,
    options text,
    gold text,
    n_options bigint,
    task text,
    category text,
    subcategory text,
    image_width bigint,
    image_height bigint,
    CONSTRAINT ck_questions_n_options_positive CHECK ((n_options > 0))
);

COMMENT ON TABLE trackr.questions IS 'one question of a benchmark under one key';

COMMENT ON COLUMN trackr.questions.id IS 'surrogate key, never reused';

COMMENT ON COLUMN trackr.questions.benchmark_id IS 'benchmark';

COMMENT ON COLUMN trackr.questions.key IS 'id of the question in the source, by the order its reader documents';

COMMENT ON COLUMN trackr.questions.same_as_id IS 'the question that this key means too (joined by content_hash); null where the key stands for itself';

COMMENT ON COLUMN trackr.questions.content_hash IS 'hash of text, sorted options and image';

COMMENT ON COLUMN trackr.questions.hash_repeats IS 'true where two keys of one run have this content_hash, so that it cannot join keys';

COMMENT ON COLUMN trackr.questions.image_key IS 'image or cluster id: questions that share it are resampled together';

COMMENT ON COLUMN trackr.questions.pair_key IS 'the same question in another release of the benchmark';

COMMENT ON COLUMN trackr.questions.text IS 'question text';

COMMENT ON COLUMN trackr.questions.options IS 'options in order, a JSON list';

COMMENT ON COLUMN trackr.questions.gold IS 'reference answer';

COMMENT ON COLUMN trackr.questions.n_options IS 'number of options';

COMMENT ON COLUMN trackr.questions.task IS 'perception, reasoning, ...';

COMMENT ON COLUMN trackr.questions.category IS 'category in the benchmark''s own words';

COMMENT ON COLUMN trackr.questions.subcategory IS 'finer category in the benchmark''s own words';

COMMENT ON COLUMN trackr.questions.image_width IS 'native image width (px)';

COMMENT ON COLUMN trackr.questions.image_height IS 'native image height (px)';

CREATE SEQUENCE trackr.questions_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER SEQUENCE trackr.questions_id_seq OWNED BY trackr.questions.id;

CREATE TABLE trackr.record_scores (
    run_id bigint NOT NULL,
    question_id bigint NOT NULL,
    repetition integer NOT NULL,
    attempt integer NOT NULL,
    scorer text NOT NULL,
    score double precision,
    special text,
    CONSTRAINT ck_record_scores_special_known CHECK (((special = 'nan'::text) OR (special = 'inf'::text) OR (special = '-inf'::text)))
);

COMMENT ON TABLE trackr.record_scores IS 'a further score of a record: another metric, filter or scorer';

COMMENT ON COLUMN trackr.record_scores.run_id IS 'run';

COMMENT ON COLUMN trackr.record_scores.question_id IS 'question';

COMMENT ON COLUMN trackr.record_scores.repetition IS 'repetition of the record';

COMMENT ON COLUMN trackr.record_scores.attempt IS 'attempt of the record';

COMMENT ON COLUMN trackr.record_scores.scorer IS 'metric, filter or scorer, such as exact_match,strict';

COMMENT ON COLUMN trackr.record_scores.score IS 'score in the scorer''s own unit';

COMMENT ON COLUMN trackr.record_scores.special IS 'nan, inf or -inf when score is null for that reason';

CREATE TABLE trackr.records (
    run_id bigint NOT NULL,
    question_id bigint NOT NULL,
    repetition integer NOT NULL,
    attempt integer NOT NULL,
    final boolean NOT NULL,
    status text NOT NULL,
    correct boolean,
    score double precision,
    special text,
    score_rule text,
    prediction text,
    logit_prediction text,
    p_gold double precision,
    option_scores text,
    visual_tokens bigint,
    prompt_tokens bigint,
    generated_tokens bigint,
    tiles bigint,
    effective_pixels bigint,
    vision_flops double precision,
    latency_s double precision,
    response text,
    CONSTRAINT ck_records_counts_not_negative CHECK (((repetition >= 0) AND (attempt >= 0))),
    CONSTRAINT ck_records_p_gold_is_fraction CHECK (((p_gold >= (0)::double precision) AND (p_gold <= (1)::double precision))),
    CONSTRAINT ck_records_special_known CHECK (((special = 'nan'::text) OR (special = 'inf'::text) OR (special = '-inf'::text))),
    CONSTRAINT ck_records_status_known CHECK (((status = 'scored'::text) OR (status = 'unscored'::text) OR (status = 'failed'::text)))
);

COMMENT ON TABLE trackr.records IS 'one answer to one question in one run';

COMMENT ON COLUMN trackr.records.run_id IS 'run';

COMMENT ON COLUMN trackr.records.question_id IS 'question';

COMMENT ON COLUMN trackr.records.repetition IS 'epoch or sampled repeat, from 0; all count';

COMMENT ON COLUMN trackr.records.attempt IS 'asked again, from 0; a later one supersedes an earlier';

COMMENT ON COLUMN trackr.records.final IS 'true for the last scored attempt of its repetition';

COMMENT ON COLUMN trackr.records.status IS 'scored (has a credit), unscored, or failed (no answer)';

COMMENT ON COLUMN trackr.records.correct IS 'whether the answer is right';

COMMENT ON COLUMN trackr.records.score IS 'score in the metric''s own unit';

COMMENT ON COLUMN trackr.records.special IS 'nan, inf or -inf when the source''s score is that and score is null';

COMMENT ON COLUMN trackr.records.score_rule IS 'how correct was decided';

COMMENT ON COLUMN trackr.records.prediction IS 'answer parsed from the text';

COMMENT ON COLUMN trackr.records.logit_prediction IS 'option with the highest confidence';

COMMENT ON COLUMN trackr.records.p_gold IS 'probability of the correct option, normalised over the options (0..1)';

COMMENT ON COLUMN trackr.records.option_scores IS 'log-likelihoods of the options in order, a JSON list (nats)';

COMMENT ON COLUMN trackr.records.visual_tokens IS 'visual tokens that entered the language model';

COMMENT ON COLUMN trackr.records.prompt_tokens IS 'tokens of the whole prompt, visual ones included';

COMMENT ON COLUMN trackr.records.generated_tokens IS 'tokens generated';

COMMENT ON COLUMN trackr.records.tiles IS 'image tiles, the thumbnail included';

COMMENT ON COLUMN trackr.records.effective_pixels IS 'pixels of the source that reached the encoder (px)';

COMMENT ON COLUMN trackr.records.vision_flops IS 'floating point operations of the vision part';

COMMENT ON COLUMN trackr.records.latency_s IS 'wall time of the answer (s)';

COMMENT ON COLUMN trackr.records.response IS 'text as generated';

CREATE TABLE trackr.rejections (
    id bigint NOT NULL,
    ingest_id bigint NOT NULL,
    uri text NOT NULL,
    digest text NOT NULL,
    file text NOT NULL,
    line bigint,
    reason text NOT NULL,
    text text
);

COMMENT ON TABLE trackr.rejections IS 'something that was offered and refused';

COMMENT ON COLUMN trackr.rejections.id IS 'surrogate key, never reused';

COMMENT ON COLUMN trackr.rejections.ingest_id IS 'the ingest that refused it';

COMMENT ON COLUMN trackr.rejections.uri IS 'source it belongs to (resolved path or address)';

COMMENT ON COLUMN trackr.rejections.digest IS 'digest of that source';

COMMENT ON COLUMN trackr.rejections.file IS 'file with the fault';

COMMENT ON COLUMN trackr.rejections.line IS 'line, from 1; null when the whole file is meant';

COMMENT ON COLUMN trackr.rejections.reason IS 'what was expected, what was found, what to do';

COMMENT ON COLUMN trackr.rejections.text IS 'the offending text, cut';

CREATE SEQUENCE trackr.rejections_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER SEQUENCE trackr.rejections_id_seq OWNED BY trackr.rejections.id;

CREATE TABLE trackr.run_sources (
    id bigint NOT NULL,
    run_id bigint NOT NULL,
    uri text NOT NULL,
    digest text NOT NULL,
    seen_at timestamp with time zone NOT NULL
);

COMMENT ON TABLE trackr.run_sources IS 'every place where a run was found';

COMMENT ON COLUMN trackr.run_sources.id IS 'surrogate key, never reused';

COMMENT ON COLUMN trackr.run_sources.run_id IS 'run';

COMMENT ON COLUMN trackr.run_sources.uri IS 'resolved path or address';

COMMENT ON COLUMN trackr.run_sources.digest IS 'digest seen there';

COMMENT ON COLUMN trackr.run_sources.seen_at IS 'when it was first seen there with this digest (UTC)';

CREATE SEQUENCE trackr.run_sources_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER SEQUENCE trackr.run_sources_id_seq OWNED BY trackr.run_sources.id;

CREATE TABLE trackr.runs (
    id bigint NOT NULL,
    kind text NOT NULL,
    configuration_id bigint NOT NULL,
    benchmark_id bigint,
    model_name text NOT NULL,
    benchmark_name text,
    ingest_id bigint,
    source_format text NOT NULL,
    framework text,
    framework_version text,
    source_uri text NOT NULL,
    external_id text NOT NULL,
    digest text NOT NULL,
    status text NOT NULL,
    status_reason text,
    current boolean NOT NULL,
    started_at timestamp with time zone,
    ended_at timestamp with time zone,
    version bigint NOT NULL,
    n_records bigint NOT NULL,
    n_expected bigint,
    system text,
    settings json NOT NULL,
    tags json NOT NULL,
    CONSTRAINT ck_runs_kind_known CHECK (((kind = 'evaluation'::text) OR (kind = 'training'::text))),
    CONSTRAINT ck_runs_n_records_not_negative CHECK ((n_records >= 0)),
    CONSTRAINT ck_runs_status_known CHECK (((status = 'finished'::text) OR (status = 'partial'::text) OR (status = 'failed'::text))),
    CONSTRAINT ck_runs_version_positive CHECK ((version > 0))
);

COMMENT ON TABLE trackr.runs IS 'one execution: an evaluation of a configuration on a benchmark, or a training run';

COMMENT ON COLUMN trackr.runs.id IS 'surrogate key, never reused';

COMMENT ON COLUMN trackr.runs.kind IS 'evaluation or training';

COMMENT ON COLUMN trackr.runs.configuration_id IS 'configuration';

COMMENT ON COLUMN trackr.runs.benchmark_id IS 'benchmark; null for a training run';

COMMENT ON COLUMN trackr.runs.model_name IS 'model as the source spells it';

COMMENT ON COLUMN trackr.runs.benchmark_name IS 'benchmark as the source spells it';

COMMENT ON COLUMN trackr.runs.ingest_id IS 'the ingest that wrote the present version';

COMMENT ON COLUMN trackr.runs.source_format IS 'reader that read it';

COMMENT ON COLUMN trackr.runs.framework IS 'tool that wrote it';

COMMENT ON COLUMN trackr.runs.framework_version IS 'version of that tool';

COMMENT ON COLUMN trackr.runs.source_uri IS 'file or address it was last read from';

COMMENT ON COLUMN trackr.runs.external_id IS 'the source''s own run id, else the resolved path or address';

COMMENT ON COLUMN trackr.runs.digest IS 'digest of bytes, reader version and effective mapping';

COMMENT ON COLUMN trackr.runs.status IS 'finished, partial (its writer says or proves that it stopped early) or failed';

COMMENT ON COLUMN trackr.runs.status_reason IS 'why the run is not finished';

COMMENT ON COLUMN trackr.runs.current IS 'true for the run of its configuration and benchmark that enters cells and trajectories';

COMMENT ON COLUMN trackr.runs.started_at IS 'start (UTC), as the source says';

COMMENT ON COLUMN trackr.runs.ended_at IS 'end (UTC), as the source says';

COMMENT ON COLUMN trackr.runs.version IS 'rises whenever a record of the run would read differently in the lake';

COMMENT ON COLUMN trackr.runs.n_records IS 'records of the run';

COMMENT ON COLUMN trackr.runs.n_expected IS 'records that the source declares';

COMMENT ON COLUMN trackr.runs.system IS 'name that groups training runs, such as encoder-free';

COMMENT ON COLUMN trackr.runs.settings IS 'everything the source says that has no column of its own';

COMMENT ON COLUMN trackr.runs.tags IS 'tags of the source';

CREATE SEQUENCE trackr.runs_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER SEQUENCE trackr.runs_id_seq OWNED BY trackr.runs.id;

CREATE TABLE trackr.scores (
    id bigint NOT NULL,
    run_id bigint,
    model_id bigint,
    backbone_id bigint,
    benchmark_id bigint,
    metric text NOT NULL,
    value double precision,
    special text,
    stderr double precision,
    n bigint,
    step bigint,
    tokens double precision,
    CONSTRAINT ck_scores_special_known CHECK (((special = 'nan'::text) OR (special = 'inf'::text) OR (special = '-inf'::text)))
);

COMMENT ON TABLE trackr.scores IS 'an aggregate score of a model or backbone on a benchmark, as its source states it';

COMMENT ON COLUMN trackr.scores.id IS 'surrogate key, never reused';

COMMENT ON COLUMN trackr.scores.run_id IS 'run that reported it';

COMMENT ON COLUMN trackr.scores.model_id IS 'model';

COMMENT ON COLUMN trackr.scores.backbone_id IS 'backbone';

COMMENT ON COLUMN trackr.scores.benchmark_id IS 'benchmark';

COMMENT ON COLUMN trackr.scores.metric IS 'metric, with its filter where there is one';

COMMENT ON COLUMN trackr.scores.value IS 'value in the metric''s own unit';

COMMENT ON COLUMN trackr.scores.special IS 'nan, inf or -inf when value is null for that reason';

COMMENT ON COLUMN trackr.scores.stderr IS 'standard error as reported';

COMMENT ON COLUMN trackr.scores.n IS 'questions behind it';

COMMENT ON COLUMN trackr.scores.step IS 'training step';

COMMENT ON COLUMN trackr.scores.tokens IS 'training tokens seen';

CREATE SEQUENCE trackr.scores_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER SEQUENCE trackr.scores_id_seq OWNED BY trackr.scores.id;

CREATE TABLE trackr.series (
    id bigint NOT NULL,
    family_id bigint,
    frontend_id bigint,
    name text NOT NULL,
    origin text NOT NULL,
    CONSTRAINT ck_series_origin_known CHECK (((origin = 'shipped'::text) OR (origin = 'imported'::text) OR (origin = 'found'::text)))
);

COMMENT ON TABLE trackr.series IS 'a generation in a family, such as InternVL3.5; an unknown model has a series of its own';

COMMENT ON COLUMN trackr.series.id IS 'surrogate key, never reused';

COMMENT ON COLUMN trackr.series.family_id IS 'family; null for a model that no catalog describes';

COMMENT ON COLUMN trackr.series.frontend_id IS 'frontend of the series';

COMMENT ON COLUMN trackr.series.name IS 'series name';

COMMENT ON COLUMN trackr.series.origin IS 'shipped (catalog of the package), imported (catalog of the user) or found (in files)';

CREATE SEQUENCE trackr.series_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER SEQUENCE trackr.series_id_seq OWNED BY trackr.series.id;

CREATE TABLE trackr.store (
    id bigint NOT NULL,
    uuid text NOT NULL,
    data_version bigint NOT NULL,
    catalog_digest text,
    created_at timestamp with time zone NOT NULL,
    CONSTRAINT ck_store_single_row CHECK ((id = 1))
);

COMMENT ON TABLE trackr.store IS 'one row: the identity of this database and the version of its data';

COMMENT ON COLUMN trackr.store.id IS 'always 1';

COMMENT ON COLUMN trackr.store.uuid IS 'identity of this database; a lake names the database it copies by it';

COMMENT ON COLUMN trackr.store.data_version IS 'raised by every transaction that changes data which the lake copies';

COMMENT ON COLUMN trackr.store.catalog_digest IS 'digest of the shipped catalog that was last written here';

COMMENT ON COLUMN trackr.store.created_at IS 'when the database was made (UTC)';

CREATE TABLE trackr.trajectories (
    question_id bigint NOT NULL,
    series_id bigint NOT NULL,
    n_configurations bigint NOT NULL,
    n_observations bigint NOT NULL,
    accuracy double precision NOT NULL,
    p_gold double precision,
    CONSTRAINT ck_trajectories_accuracy_is_fraction CHECK (((accuracy >= (0)::double precision) AND (accuracy <= (1)::double precision))),
    CONSTRAINT ck_trajectories_p_gold_is_fraction CHECK (((p_gold >= (0)::double precision) AND (p_gold <= (1)::double precision)))
);

COMMENT ON TABLE trackr.trajectories IS 'one question followed across the configurations of one series';

COMMENT ON COLUMN trackr.trajectories.question_id IS 'question';

COMMENT ON COLUMN trackr.trajectories.series_id IS 'series';

COMMENT ON COLUMN trackr.trajectories.n_configurations IS 'configurations that answered';

COMMENT ON COLUMN trackr.trajectories.n_observations IS 'final attempts that entered';

COMMENT ON COLUMN trackr.trajectories.accuracy IS 'mean credit over configurations';

COMMENT ON COLUMN trackr.trajectories.p_gold IS 'mean probability of the correct option over configurations that have one';

ALTER TABLE ONLY trackr.analyses ALTER COLUMN id SET DEFAULT nextval('trackr.analyses_id_seq'::regclass);

ALTER TABLE ONLY trackr.backbones ALTER COLUMN id SET DEFAULT nextval('trackr.backbones_id_seq'::regclass);

ALTER TABLE ONLY trackr.benchmark_aliases ALTER COLUMN id SET DEFAULT nextval('trackr.benchmark_aliases_id_seq'::regclass);

ALTER TABLE ONLY trackr.benchmarks ALTER COLUMN id SET DEFAULT nextval('trackr.benchmarks_id_seq'::regclass);

ALTER TABLE ONLY trackr.configurations ALTER COLUMN id SET DEFAULT nextval('trackr.configurations_id_seq'::regclass);

ALTER TABLE ONLY trackr.dirty_slices ALTER COLUMN id SET DEFAULT nextval('trackr.dirty_slices_id_seq'::regclass);

ALTER TABLE ONLY trackr.families ALTER COLUMN id SET DEFAULT nextval('trackr.families_id_seq'::regclass);

ALTER TABLE ONLY trackr.fits ALTER COLUMN id SET DEFAULT nextval('trackr.fits_id_seq'::regclass);

ALTER TABLE ONLY trackr.frontends ALTER COLUMN id SET DEFAULT nextval('trackr.frontends_id_seq'::regclass);

ALTER TABLE ONLY trackr.imports ALTER COLUMN id SET DEFAULT nextval('trackr.imports_id_seq'::regclass);

ALTER TABLE ONLY trackr.ingests ALTER COLUMN id SET DEFAULT nextval('trackr.ingests_id_seq'::regclass);

ALTER TABLE ONLY trackr.label_sources ALTER COLUMN id SET DEFAULT nextval('trackr.label_sources_id_seq'::regclass);

ALTER TABLE ONLY trackr.model_aliases ALTER COLUMN id SET DEFAULT nextval('trackr.model_aliases_id_seq'::regclass);

ALTER TABLE ONLY trackr.models ALTER COLUMN id SET DEFAULT nextval('trackr.models_id_seq'::regclass);

ALTER TABLE ONLY trackr.profiles ALTER COLUMN id SET DEFAULT nextval('trackr.profiles_id_seq'::regclass);

ALTER TABLE ONLY trackr.question_labels ALTER COLUMN id SET DEFAULT nextval('trackr.question_labels_id_seq'::regclass);

ALTER TABLE ONLY trackr.questions ALTER COLUMN id SET DEFAULT nextval('trackr.questions_id_seq'::regclass);

ALTER TABLE ONLY trackr.rejections ALTER COLUMN id SET DEFAULT nextval('trackr.rejections_id_seq'::regclass);

ALTER TABLE ONLY trackr.run_sources ALTER COLUMN id SET DEFAULT nextval('trackr.run_sources_id_seq'::regclass);

ALTER TABLE ONLY trackr.runs ALTER COLUMN id SET DEFAULT nextval('trackr.runs_id_seq'::regclass);

ALTER TABLE ONLY trackr.scores ALTER COLUMN id SET DEFAULT nextval('trackr.scores_id_seq'::regclass);

ALTER TABLE ONLY trackr.series ALTER COLUMN id SET DEFAULT nextval('trackr.series_id_seq'::regclass);

ALTER TABLE ONLY trackr.alembic_version
    ADD CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num);

ALTER TABLE ONLY trackr.analyses
    ADD CONSTRAINT pk_analyses PRIMARY KEY (id);

ALTER TABLE ONLY trackr.backbones
    ADD CONSTRAINT pk_backbones PRIMARY KEY (id);

ALTER TABLE ONLY trackr.benchmark_aliases
    ADD CONSTRAINT pk_benchmark_aliases PRIMARY KEY (id);

ALTER TABLE ONLY trackr.benchmarks
    ADD CONSTRAINT pk_benchmarks PRIMARY KEY (id);

ALTER TABLE ONLY trackr.configurations
    ADD CONSTRAINT pk_configurations PRIMARY KEY (id);

ALTER TABLE ONLY trackr.dirty_slices
    ADD CONSTRAINT pk_dirty_slices PRIMARY KEY (id);

ALTER TABLE ONLY trackr.families
    ADD CONSTRAINT pk_families PRIMARY KEY (id);

ALTER TABLE ONLY trackr.fits
    ADD CONSTRAINT pk_fits PRIMARY KEY (id);

ALTER TABLE ONLY trackr.frontends
    ADD CONSTRAINT pk_frontends PRIMARY KEY (id);

ALTER TABLE ONLY trackr.imports
    ADD CONSTRAINT pk_imports PRIMARY KEY (id);

ALTER TABLE ONLY trackr.ingests
    ADD CONSTRAINT pk_ingests PRIMARY KEY (id);

ALTER TABLE ONLY trackr.label_sources
    ADD CONSTRAINT pk_label_sources PRIMARY KEY (id);

ALTER TABLE ONLY trackr.metric_points
    ADD CONSTRAINT pk_metric_points PRIMARY KEY (run_id, metric, step, seq);

ALTER TABLE ONLY trackr.model_aliases
    ADD CONSTRAINT pk_model_aliases PRIMARY KEY (id);

ALTER TABLE ONLY trackr.models
    ADD CONSTRAINT pk_models PRIMARY KEY (id);

ALTER TABLE ONLY trackr.profiles
    ADD CONSTRAINT pk_profiles PRIMARY KEY (id);

ALTER TABLE ONLY trackr.question_labels
    ADD CONSTRAINT pk_question_labels PRIMARY KEY (id);

ALTER TABLE ONLY trackr.questions
    ADD CONSTRAINT pk_questions PRIMARY KEY (id);

ALTER TABLE ONLY trackr.record_scores
    ADD CONSTRAINT pk_record_scores PRIMARY KEY (run_id, question_id, repetition, attempt, scorer);

ALTER TABLE ONLY trackr.records
    ADD CONSTRAINT pk_records PRIMARY KEY (run_id, question_id, repetition, attempt);

ALTER TABLE ONLY trackr.rejections
    ADD CONSTRAINT pk_rejections PRIMARY KEY (id);

ALTER TABLE ONLY trackr.run_sources
    ADD CONSTRAINT pk_run_sources PRIMARY KEY (id);

ALTER TABLE ONLY trackr.runs
    ADD CONSTRAINT pk_runs PRIMARY KEY (id);

ALTER TABLE ONLY trackr.scores
    ADD CONSTRAINT pk_scores PRIMARY KEY (id);

ALTER TABLE ONLY trackr.series
    ADD CONSTRAINT pk_series PRIMARY KEY (id);

ALTER TABLE ONLY trackr.store
    ADD CONSTRAINT pk_store PRIMARY KEY (id);

ALTER TABLE ONLY trackr.trajectories
    ADD CONSTRAINT pk_trajectories PRIMARY KEY (question_id, series_id);

ALTER TABLE ONLY trackr.backbones
    ADD CONSTRAINT uq_backbones_name UNIQUE (name);

ALTER TABLE ONLY trackr.benchmark_aliases
    ADD CONSTRAINT uq_benchmark_aliases_alias UNIQUE (alias);

ALTER TABLE ONLY trackr.benchmarks
    ADD CONSTRAINT uq_benchmarks_name UNIQUE (name);

ALTER TABLE ONLY trackr.configurations
    ADD CONSTRAINT uq_configurations_model_id_fingerprint UNIQUE (model_id, fingerprint);

ALTER TABLE ONLY trackr.families
    ADD CONSTRAINT uq_families_name UNIQUE (name);

ALTER TABLE ONLY trackr.fits
    ADD CONSTRAINT uq_fits_analysis_id_law_group_key UNIQUE (analysis_id, law, group_key);

ALTER TABLE ONLY trackr.frontends
    ADD CONSTRAINT uq_frontends_name UNIQUE (name);

ALTER TABLE ONLY trackr.imports
    ADD CONSTRAINT uq_imports_uri UNIQUE (uri);

ALTER TABLE ONLY trackr.label_sources
    ADD CONSTRAINT uq_label_sources_scheme_source UNIQUE (scheme, source);

ALTER TABLE ONLY trackr.model_aliases
    ADD CONSTRAINT uq_model_aliases_alias UNIQUE (alias);

ALTER TABLE ONLY trackr.models
    ADD CONSTRAINT uq_models_name UNIQUE (name);

ALTER TABLE ONLY trackr.question_labels
    ADD CONSTRAINT uq_question_labels_benchmark_question_key_scheme_source UNIQUE (benchmark, question_key, scheme, source);

ALTER TABLE ONLY trackr.questions
    ADD CONSTRAINT uq_questions_benchmark_id_key UNIQUE (benchmark_id, key);

ALTER TABLE ONLY trackr.run_sources
    ADD CONSTRAINT uq_run_sources_run_id_uri UNIQUE (run_id, uri);

ALTER TABLE ONLY trackr.runs
    ADD CONSTRAINT uq_runs_identity UNIQUE (source_format, external_id, benchmark_id, configuration_id);

ALTER TABLE ONLY trackr.series
    ADD CONSTRAINT uq_series_name UNIQUE (name);

CREATE INDEX ix_analyses_name ON trackr.analyses USING btree (name);

CREATE INDEX ix_benchmark_aliases_benchmark_id ON trackr.benchmark_aliases USING btree (benchmark_id);

CREATE INDEX ix_fits_analysis_id ON trackr.fits USING btree (analysis_id);

CREATE INDEX ix_model_aliases_model_id ON trackr.model_aliases USING btree (model_id);

CREATE INDEX ix_models_series_id ON trackr.models USING btree (series_id);

CREATE INDEX ix_profiles_configuration_id ON trackr.profiles USING btree (configuration_id);

CREATE INDEX ix_question_labels_question_id ON trackr.question_labels USING btree (question_id);

CREATE INDEX ix_questions_benchmark_id_content_hash ON trackr.questions USING btree (benchmark_id, content_hash);

CREATE INDEX ix_questions_same_as_id ON trackr.questions USING btree (same_as_id);

CREATE INDEX ix_records_question_id ON trackr.records USING btree (question_id);

CREATE INDEX ix_rejections_ingest_id ON trackr.rejections USING btree (ingest_id);

CREATE INDEX ix_rejections_uri_digest ON trackr.rejections USING btree (uri, digest);

CREATE INDEX ix_run_sources_digest ON trackr.run_sources USING btree (digest);

CREATE INDEX ix_run_sources_uri ON trackr.run_sources USING btree (uri);

CREATE INDEX ix_runs_benchmark_id ON trackr.runs USING btree (benchmark_id);

CREATE INDEX ix_runs_configuration_id_benchmark_id ON trackr.runs USING btree (configuration_id, benchmark_id);

CREATE INDEX ix_runs_digest ON trackr.runs USING btree (digest);

CREATE INDEX ix_scores_run_id ON trackr.scores USING btree (run_id);

CREATE INDEX ix_trajectories_series_id ON trackr.trajectories USING btree (series_id);

ALTER TABLE ONLY trackr.benchmark_aliases
    ADD CONSTRAINT fk_benchmark_aliases_benchmark_id_benchmarks FOREIGN KEY (benchmark_id) REFERENCES trackr.benchmarks(id) ON DELETE CASCADE;

ALTER TABLE ONLY trackr.configurations
    ADD CONSTRAINT fk_configurations_model_id_models FOREIGN KEY (model_id) REFERENCES trackr.models(id);

ALTER TABLE ONLY trackr.fits
    ADD CONSTRAINT fk_fits_analysis_id_analyses FOREIGN KEY (analysis_id) REFERENCES trackr.analyses(id) ON DELETE CASCADE;

ALTER TABLE ONLY trackr.metric_points
    ADD CONSTRAINT fk_metric_points_run_id_runs FOREIGN KEY (run_id) REFERENCES trackr.runs(id) ON DELETE CASCADE;

ALTER TABLE ONLY trackr.model_aliases
    ADD CONSTRAINT fk_model_aliases_model_id_models FOREIGN KEY (model_id) REFERENCES trackr.models(id) ON DELETE CASCADE;

ALTER TABLE ONLY trackr.models
    ADD CONSTRAINT fk_models_backbone_id_backbones FOREIGN KEY (backbone_id) REFERENCES trackr.backbones(id);

ALTER TABLE ONLY trackr.models
    ADD CONSTRAINT fk_models_frontend_id_frontends FOREIGN KEY (frontend_id) REFERENCES trackr.frontends(id);

ALTER TABLE ONLY trackr.models
    ADD CONSTRAINT fk_models_series_id_series FOREIGN KEY (series_id) REFERENCES trackr.series(id);

ALTER TABLE ONLY trackr.profiles
    ADD CONSTRAINT fk_profiles_configuration_id_configurations FOREIGN KEY (configuration_id) REFERENCES trackr.configurations(id);

ALTER TABLE ONLY trackr.question_labels
    ADD CONSTRAINT fk_question_labels_question_id_questions FOREIGN KEY (question_id) REFERENCES trackr.questions(id);

ALTER TABLE ONLY trackr.questions
    ADD CONSTRAINT fk_questions_benchmark_id_benchmarks FOREIGN KEY (benchmark_id) REFERENCES trackr.benchmarks(id);

ALTER TABLE ONLY trackr.questions
    ADD CONSTRAINT fk_questions_same_as_id_questions FOREIGN KEY (same_as_id) REFERENCES trackr.questions(id);

ALTER TABLE ONLY trackr.record_scores
    ADD CONSTRAINT fk_record_scores_question_id_questions FOREIGN KEY (question_id) REFERENCES trackr.questions(id);

ALTER TABLE ONLY trackr.record_scores
    ADD CONSTRAINT fk_record_scores_run_id_runs FOREIGN KEY (run_id) REFERENCES trackr.runs(id) ON DELETE CASCADE;

ALTER TABLE ONLY trackr.records
    ADD CONSTRAINT fk_records_question_id_questions FOREIGN KEY (question_id) REFERENCES trackr.questions(id);

ALTER TABLE ONLY trackr.records
    ADD CONSTRAINT fk_records_run_id_runs FOREIGN KEY (run_id) REFERENCES trackr.runs(id) ON DELETE CASCADE;

ALTER TABLE ONLY trackr.rejections
    ADD CONSTRAINT fk_rejections_ingest_id_ingests FOREIGN KEY (ingest_id) REFERENCES trackr.ingests(id);

ALTER TABLE ONLY trackr.run_sources
    ADD CONSTRAINT fk_run_sources_run_id_runs FOREIGN KEY (run_id) REFERENCES trackr.runs(id) ON DELETE CASCADE;

ALTER TABLE ONLY trackr.runs
    ADD CONSTRAINT fk_runs_benchmark_id_benchmarks FOREIGN KEY (benchmark_id) REFERENCES trackr.benchmarks(id);

ALTER TABLE ONLY trackr.runs
    ADD CONSTRAINT fk_runs_configuration_id_configurations FOREIGN KEY (configuration_id) REFERENCES trackr.configurations(id);

ALTER TABLE ONLY trackr.runs
    ADD CONSTRAINT fk_runs_ingest_id_ingests FOREIGN KEY (ingest_id) REFERENCES trackr.ingests(id);

ALTER TABLE ONLY trackr.scores
    ADD CONSTRAINT fk_scores_backbone_id_backbones FOREIGN KEY (backbone_id) REFERENCES trackr.backbones(id);

ALTER TABLE ONLY trackr.scores
    ADD CONSTRAINT fk_scores_benchmark_id_benchmarks FOREIGN KEY (benchmark_id) REFERENCES trackr.benchmarks(id);

ALTER TABLE ONLY trackr.scores
    ADD CONSTRAINT fk_scores_model_id_models FOREIGN KEY (model_id) REFERENCES trackr.models(id);

ALTER TABLE ONLY trackr.scores
    ADD CONSTRAINT fk_scores_run_id_runs FOREIGN KEY (run_id) REFERENCES trackr.runs(id) ON DELETE CASCADE;

ALTER TABLE ONLY trackr.series
    ADD CONSTRAINT fk_series_family_id_families FOREIGN KEY (family_id) REFERENCES trackr.families(id);

ALTER TABLE ONLY trackr.series
    ADD CONSTRAINT fk_series_frontend_id_frontends FOREIGN KEY (frontend_id) REFERENCES trackr.frontends(id);

ALTER TABLE ONLY trackr.trajectories
    ADD CONSTRAINT fk_trajectories_question_id_questions FOREIGN KEY (question_id) REFERENCES trackr.questions(id);

ALTER TABLE ONLY trackr.trajectories
    ADD CONSTRAINT fk_trajectories_series_id_series FOREIGN KEY (series_id) REFERENCES trackr.series(id);
