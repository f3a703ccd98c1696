CREATE TABLE analyses (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	name TEXT NOT NULL,
	created_at DATETIME NOT NULL,
	parameters JSON NOT NULL,
	cohort_sql TEXT NOT NULL,
	cohort_rows INTEGER NOT NULL,
	cohort_digest TEXT NOT NULL,
	data_version INTEGER NOT NULL,
	code_version TEXT NOT NULL,
	engine_version TEXT NOT NULL,
	seed INTEGER,
	seconds FLOAT NOT NULL,
	headline JSON NOT NULL,
	result JSON NOT NULL
);

CREATE INDEX ix_analyses_name ON analyses (name);

CREATE TABLE backbones (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	name TEXT NOT NULL,
	family TEXT,
	parameters INTEGER,
	active_parameters INTEGER,
	stage TEXT,
	architecture JSON,
	source TEXT,
	origin TEXT NOT NULL,
	CONSTRAINT ck_backbones_origin_known CHECK (origin = 'shipped' OR origin = 'imported' OR origin = 'found'),
	CONSTRAINT ck_backbones_stage_known CHECK (stage = 'base' OR stage = 'instruct'),
	CONSTRAINT ck_backbones_parameters_positive CHECK (parameters > 0),
	CONSTRAINT uq_backbones_name UNIQUE (name)
);

CREATE TABLE benchmark_aliases (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	alias TEXT NOT NULL,
	benchmark_id INTEGER NOT NULL,
	origin TEXT NOT NULL,
	CONSTRAINT ck_benchmark_aliases_origin_known CHECK (origin = 'shipped' OR origin = 'imported' OR origin = 'found'),
	CONSTRAINT fk_benchmark_aliases_benchmark_id_benchmarks FOREIGN KEY(benchmark_id) REFERENCES benchmarks (id) ON DELETE CASCADE,
	CONSTRAINT uq_benchmark_aliases_alias UNIQUE (alias)
);

CREATE INDEX ix_benchmark_aliases_benchmark_id ON benchmark_aliases (benchmark_id);

CREATE TABLE benchmarks (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	name TEXT NOT NULL,
	suite TEXT,
	split TEXT,
	modality TEXT,
	metric TEXT,
	n_questions INTEGER,
	tasks JSON,
	origin TEXT NOT NULL,
	CONSTRAINT ck_benchmarks_origin_known CHECK (origin = 'shipped' OR origin = 'imported' OR origin = 'found'),
	CONSTRAINT uq_benchmarks_name UNIQUE (name)
);

CREATE TABLE configurations (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	model_id INTEGER NOT NULL,
	fingerprint TEXT NOT NULL,
	input_mode TEXT,
	input_size INTEGER,
	max_tiles INTEGER,
	pixel_cap INTEGER,
	source_quality TEXT,
	vision_branches INTEGER,
	language_branches INTEGER,
	few_shot INTEGER,
	precision TEXT,
	max_new_tokens INTEGER,
	prompt TEXT,
	variant TEXT,
	CONSTRAINT ck_configurations_input_mode_known CHECK (input_mode = 'fixed' OR input_mode = 'native'),
	CONSTRAINT fk_configurations_model_id_models FOREIGN KEY(model_id) REFERENCES models (id),
	CONSTRAINT uq_configurations_model_id_fingerprint UNIQUE (model_id, fingerprint)
);

CREATE TABLE dirty_slices (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	series_id INTEGER NOT NULL,
	benchmark_id INTEGER NOT NULL
);

CREATE TABLE families (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	name TEXT NOT NULL,
	CONSTRAINT uq_families_name UNIQUE (name)
);

CREATE TABLE fits (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	analysis_id INTEGER NOT NULL,
	law TEXT NOT NULL,
	group_key TEXT NOT NULL,
	parameters JSON NOT NULL,
	at_bound JSON NOT NULL,
	n INTEGER NOT NULL,
	k INTEGER NOT NULL,
	sse FLOAT,
	r2 FLOAT,
	bic FLOAT,
	CONSTRAINT fk_fits_analysis_id_analyses FOREIGN KEY(analysis_id) REFERENCES analyses (id) ON DELETE CASCADE,
	CONSTRAINT uq_fits_analysis_id_law_group_key UNIQUE (analysis_id, law, group_key)
);

CREATE INDEX ix_fits_analysis_id ON fits (analysis_id);

CREATE TABLE frontends (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	name TEXT NOT NULL,
	kind TEXT NOT NULL,
	parameters JSON NOT NULL,
	CONSTRAINT ck_frontends_kind_known CHECK (kind = 'tiling' OR kind = 'anyres' OR kind = 'native' OR kind = 'fixed' OR kind = 'none'),
	CONSTRAINT uq_frontends_name UNIQUE (name)
);

CREATE TABLE imports (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	uri TEXT NOT NULL,
	digest TEXT NOT NULL,
	CONSTRAINT uq_imports_uri UNIQUE (uri)
);

CREATE TABLE ingests (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	started_at DATETIME NOT NULL,
	paths JSON NOT NULL,
	version TEXT NOT NULL,
	host TEXT
);

CREATE TABLE label_sources (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	scheme TEXT NOT NULL,
	source TEXT NOT NULL,
	priority INTEGER NOT NULL,
	CONSTRAINT uq_label_sources_scheme_source UNIQUE (scheme, source)
);

CREATE TABLE metric_points (
	run_id INTEGER NOT NULL,
	metric TEXT NOT NULL,
	step INTEGER NOT NULL,
	seq INTEGER NOT NULL,
	tokens FLOAT,
	flops FLOAT,
	value FLOAT,
	special TEXT,
	logged_at DATETIME,
	CONSTRAINT pk_metric_points PRIMARY KEY (run_id, metric, step, seq),
	CONSTRAINT ck_metric_points_special_known CHECK (special = 'nan' OR special = 'inf' OR special = '-inf'),
	CONSTRAINT fk_metric_points_run_id_runs FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
)
 WITHOUT ROWID;

CREATE TABLE model_aliases (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	alias TEXT NOT NULL,
	model_id INTEGER NOT NULL,
	origin TEXT NOT NULL,
	CONSTRAINT ck_model_aliases_origin_known CHECK (origin = 'shipped' OR origin = 'imported' OR origin = 'found'),
	CONSTRAINT fk_model_aliases_model_id_models FOREIGN KEY(model_id) REFERENCES models (id) ON DELETE CASCADE,
	CONSTRAINT uq_model_aliases_alias UNIQUE (alias)
);

CREATE INDEX ix_model_aliases_model_id ON model_aliases (model_id);

CREATE TABLE models (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	name TEXT NOT NULL,
	series_id INTEGER NOT NULL,
	backbone_id INTEGER,
	frontend_id INTEGER,
	vision_parameters INTEGER,
	origin TEXT NOT NULL,
	CONSTRAINT ck_models_origin_known CHECK (origin = 'shipped' OR origin = 'imported' OR origin = 'found'),
	CONSTRAINT fk_models_backbone_id_backbones FOREIGN KEY(backbone_id) REFERENCES backbones (id),
	CONSTRAINT fk_models_frontend_id_frontends FOREIGN KEY(frontend_id) REFERENCES frontends (id),
	CONSTRAINT fk_models_series_id_series FOREIGN KEY(series_id) REFERENCES series (id),
	CONSTRAINT uq_models_name UNIQUE (name)
);

CREATE INDEX ix_models_series_id ON models (series_id);

CREATE TABLE profiles (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	configuration_id INTEGER NOT NULL,
	batch_size INTEGER,
	latency_s FLOAT,
	memory_bytes INTEGER,
	flops FLOAT,
	parameters INTEGER,
	hardware TEXT,
	n_timed INTEGER,
	CONSTRAINT fk_profiles_configuration_id_configurations FOREIGN KEY(configuration_id) REFERENCES configurations (id)
);

CREATE INDEX ix_profiles_configuration_id ON profiles (configuration_id);

CREATE TABLE question_labels (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	benchmark TEXT NOT NULL,
	question_key TEXT NOT NULL,
	question_id INTEGER,
	scheme TEXT NOT NULL,
	source TEXT NOT NULL,
	value TEXT NOT NULL,
	CONSTRAINT fk_question_labels_question_id_questions FOREIGN KEY(question_id) REFERENCES questions (id),
	CONSTRAINT uq_question_labels_benchmark_question_key_scheme_source UNIQUE (benchmark, question_key, scheme, source)
);

CREATE INDEX ix_question_labels_question_id ON question_labels (question_id);

CREATE TABLE questions (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	benchmark_id INTEGER NOT NULL,
	"key" TEXT NOT NULL,
	same_as_id INTEGER,
	content_hash TEXT,
	hash_repeats BOOLEAN NOT NULL,
	image_key TEXT,
	pair_key TEXT,
	text TEXT,
	options TEXT,
	gold TEXT,
	n_options INTEGER,
	task TEXT,
	category TEXT,
	subcategory TEXT,
	image_width INTEGER,
	image_height INTEGER,
	CONSTRAINT ck_questions_n_options_positive CHECK (n_options > 0),
	CONSTRAINT fk_questions_benchmark_id_benchmarks FOREIGN KEY(benchmark_id) REFERENCES benchmarks (id),
	CONSTRAINT fk_questions_same_as_id_questions FOREIGN KEY(same_as_id) REFERENCES questions (id),
	CONSTRAINT uq_questions_benchmark_id_key UNIQUE (benchmark_id, "key")
);

CREATE INDEX ix_questions_benchmark_id_content_hash ON questions (benchmark_id, content_hash);

CREATE INDEX ix_questions_same_as_id ON questions (same_as_id);

CREATE TABLE record_scores (
	run_id INTEGER NOT NULL,
	question_id INTEGER NOT NULL,
	repetition INTEGER NOT NULL,
	attempt INTEGER NOT NULL,
	scorer TEXT NOT NULL,
	score FLOAT,
	special TEXT,
	CONSTRAINT pk_record_scores PRIMARY KEY (run_id, question_id, repetition, attempt, scorer),
	CONSTRAINT ck_record_scores_special_known CHECK (special = 'nan' OR special = 'inf' OR special = '-inf'),
	CONSTRAINT fk_record_scores_question_id_questions FOREIGN KEY(question_id) REFERENCES questions (id),
	CONSTRAINT fk_record_scores_run_id_runs FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
)
 WITHOUT ROWID;

CREATE TABLE records (
	run_id INTEGER NOT NULL,
	question_id INTEGER NOT NULL,
	repetition INTEGER NOT NULL,
	attempt INTEGER NOT NULL,
	final BOOLEAN NOT NULL,
	status TEXT NOT NULL,
	correct BOOLEAN,
	score FLOAT,
	special TEXT,
	score_rule TEXT,
	prediction TEXT,
	logit_prediction TEXT,
	p_gold FLOAT,
	option_scores TEXT,
	visual_tokens INTEGER,
	prompt_tokens INTEGER,
	generated_tokens INTEGER,
	tiles INTEGER,
	effective_pixels INTEGER,
	vision_flops FLOAT,
	latency_s FLOAT,
	response TEXT,
	CONSTRAINT pk_records PRIMARY KEY (run_id, question_id, repetition, attempt),
	CONSTRAINT ck_records_special_known CHECK (special = 'nan' OR special = 'inf' OR special = '-inf'),
	CONSTRAINT ck_records_status_known CHECK (status = 'scored' OR status = 'unscored' OR status = 'failed'),
	CONSTRAINT ck_records_p_gold_is_fraction CHECK (p_gold >= 0 AND p_gold <= 1),
	CONSTRAINT ck_records_counts_not_negative CHECK (repetition >= 0 AND attempt >= 0),
	CONSTRAINT fk_records_question_id_questions FOREIGN KEY(question_id) REFERENCES questions (id),
	CONSTRAINT fk_records_run_id_runs FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
)
 WITHOUT ROWID;

CREATE INDEX ix_records_question_id ON records (question_id);

CREATE TABLE rejections (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	ingest_id INTEGER NOT NULL,
	uri TEXT NOT NULL,
	digest TEXT NOT NULL,
	file TEXT NOT NULL,
	line INTEGER,
	reason TEXT NOT NULL,
	text TEXT,
	CONSTRAINT fk_rejections_ingest_id_ingests FOREIGN KEY(ingest_id) REFERENCES ingests (id)
);

CREATE INDEX ix_rejections_ingest_id ON rejections (ingest_id);

CREATE INDEX ix_rejections_uri_digest ON rejections (uri, digest);

CREATE TABLE run_sources (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	run_id INTEGER NOT NULL,
	uri TEXT NOT NULL,
	digest TEXT NOT NULL,
	seen_at DATETIME NOT NULL,
	CONSTRAINT fk_run_sources_run_id_runs FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE,
	CONSTRAINT uq_run_sources_run_id_uri UNIQUE (run_id, uri)
);

CREATE INDEX ix_run_sources_digest ON run_sources (digest);

CREATE INDEX ix_run_sources_uri ON run_sources (uri);

CREATE TABLE runs (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	kind TEXT NOT NULL,
	configuration_id INTEGER NOT NULL,
	benchmark_id INTEGER,
	model_name TEXT NOT NULL,
	benchmark_name TEXT,
	ingest_id INTEGER,
	source_format TEXT NOT NULL,
	framework TEXT,
	framework_version TEXT,
	source_uri TEXT NOT NULL,
	external_id TEXT NOT NULL,
	digest TEXT NOT NULL,
	status TEXT NOT NULL,
	status_reason TEXT,
	current BOOLEAN NOT NULL,
	started_at DATETIME,
	ended_at DATETIME,
	version INTEGER NOT NULL,
	n_records INTEGER NOT NULL,
	n_expected INTEGER,
	system TEXT,
	settings JSON NOT NULL,
	tags JSON NOT NULL,
	CONSTRAINT ck_runs_kind_known CHECK (kind = 'evaluation' OR kind = 'training'),
	CONSTRAINT ck_runs_status_known CHECK (status = 'finished' OR status = 'partial' OR status = 'failed'),
	CONSTRAINT ck_runs_n_records_not_negative CHECK (n_records >= 0),
	CONSTRAINT ck_runs_version_positive CHECK (version > 0),
	CONSTRAINT fk_runs_benchmark_id_benchmarks FOREIGN KEY(benchmark_id) REFERENCES benchmarks (id),
	CONSTRAINT fk_runs_configuration_id_configurations FOREIGN KEY(configuration_id) REFERENCES configurations (id),
	CONSTRAINT fk_runs_ingest_id_ingests FOREIGN KEY(ingest_id) REFERENCES ingests (id),
	CONSTRAINT uq_runs_identity UNIQUE (source_format, external_id, benchmark_id, configuration_id)
);

CREATE INDEX ix_runs_benchmark_id ON runs (benchmark_id);

CREATE INDEX ix_runs_configuration_id_benchmark_id ON runs (configuration_id, benchmark_id);

CREATE INDEX ix_runs_digest ON runs (digest);

CREATE TABLE scores (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	run_id INTEGER,
	model_id INTEGER,
	backbone_id INTEGER,
	benchmark_id INTEGER,
	metric TEXT NOT NULL,
	value FLOAT,
	special TEXT,
	stderr FLOAT,
	n INTEGER,
	step INTEGER,
	tokens FLOAT,
	CONSTRAINT ck_scores_special_known CHECK (special = 'nan' OR special = 'inf' OR special = '-inf'),
	CONSTRAINT fk_scores_backbone_id_backbones FOREIGN KEY(backbone_id) REFERENCES backbones (id),
	CONSTRAINT fk_scores_benchmark_id_benchmarks FOREIGN KEY(benchmark_id) REFERENCES benchmarks (id),
	CONSTRAINT fk_scores_model_id_models FOREIGN KEY(model_id) REFERENCES models (id),
	CONSTRAINT fk_scores_run_id_runs FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);

CREATE INDEX ix_scores_run_id ON scores (run_id);

CREATE TABLE series (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	family_id INTEGER,
	frontend_id INTEGER,
	name TEXT NOT NULL,
	origin TEXT NOT NULL,
	CONSTRAINT ck_series_origin_known CHECK (origin = 'shipped' OR origin = 'imported' OR origin = 'found'),
	CONSTRAINT fk_series_family_id_families FOREIGN KEY(family_id) REFERENCES families (id),
	CONSTRAINT fk_series_frontend_id_frontends FOREIGN KEY(frontend_id) REFERENCES frontends (id),
	CONSTRAINT uq_series_name UNIQUE (name)
);

CREATE TABLE store (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	uuid TEXT NOT NULL,
	data_version INTEGER NOT NULL,
	catalog_digest TEXT,
	created_at DATETIME NOT NULL,
	CONSTRAINT ck_store_single_row CHECK (id = 1)
);

CREATE TABLE trackr_alembic_version (
	version_num VARCHAR(32) NOT NULL,
	CONSTRAINT trackr_alembic_version_pkc PRIMARY KEY (version_num)
);

CREATE TABLE trajectories (
	question_id INTEGER NOT NULL,
	series_id INTEGER NOT NULL,
	n_configurations INTEGER NOT NULL,
	n_observations INTEGER NOT NULL,
	accuracy FLOAT NOT NULL,
	p_gold FLOAT,
	CONSTRAINT pk_trajectories PRIMARY KEY (question_id, series_id),
	CONSTRAINT ck_trajectories_accuracy_is_fraction CHECK (accuracy >= 0 AND accuracy <= 1),
	CONSTRAINT ck_trajectories_p_gold_is_fraction CHECK (p_gold >= 0 AND p_gold <= 1),
	CONSTRAINT fk_trajectories_question_id_questions FOREIGN KEY(question_id) REFERENCES questions (id),
	CONSTRAINT fk_trajectories_series_id_series FOREIGN KEY(series_id) REFERENCES series (id)
)
 WITHOUT ROWID;

CREATE INDEX ix_trajectories_series_id ON trajectories (series_id);
