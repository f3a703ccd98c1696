-- A configuration on a benchmark, over every scored record of its current run. Plain SQL, as run_totals.sql is.
SELECT
    families.name AS family,
    series.name AS series,
    models.name AS model,
    backbones.parameters,
    benchmarks.suite,
    benchmarks.name AS benchmark,
    runs.configuration_id,
    run_totals.run_id,
    configurations.input_mode,
    configurations.input_size,
    configurations.variant,
    run_totals.n,
    run_totals.n - run_totals.credits AS errors,
    1.0 - run_totals.credits / run_totals.n AS error,
    run_totals.visual_tokens,
    run_totals.prompt_tokens,
    2.0 * backbones.parameters * run_totals.prompt_tokens AS flops,
    run_totals.latency_s
FROM run_totals
INNER JOIN runs ON run_totals.run_id = runs.id
INNER JOIN configurations ON runs.configuration_id = configurations.id
INNER JOIN models ON configurations.model_id = models.id
INNER JOIN series ON models.series_id = series.id
INNER JOIN benchmarks ON runs.benchmark_id = benchmarks.id
LEFT JOIN families ON series.family_id = families.id
LEFT JOIN backbones ON models.backbone_id = backbones.id
WHERE runs.current
