-- One row per run: its model, settings and benchmark by name, as the star views show them.
SELECT
    runs.id AS run_id,
    runs.current,
    models.name AS model,
    series.name AS series,
    families.name AS family,
    backbones.name AS backbone,
    backbones.parameters,
    frontends.name AS frontend,
    runs.configuration_id,
    configurations.input_mode,
    configurations.input_size,
    configurations.max_tiles,
    configurations.variant,
    configurations.source_quality,
    configurations.vision_branches,
    configurations.language_branches,
    benchmarks.name AS benchmark,
    benchmarks.suite,
    models.series_id,
    runs.benchmark_id,
    runs.system
FROM runs
INNER JOIN configurations ON runs.configuration_id = configurations.id
INNER JOIN models ON configurations.model_id = models.id
INNER JOIN series ON models.series_id = series.id
LEFT JOIN families ON series.family_id = families.id
LEFT JOIN backbones ON models.backbone_id = backbones.id
LEFT JOIN frontends ON coalesce(models.frontend_id, series.frontend_id) = frontends.id
LEFT JOIN benchmarks ON runs.benchmark_id = benchmarks.id
