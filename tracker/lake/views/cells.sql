-- A configuration on a benchmark, over every scored record of its current run. Plain SQL: it runs on SQLite as it stands.
WITH credited AS (
    SELECT
        records.run_id,
        CASE
            WHEN records.correct IS NOT NULL THEN CAST(records.correct AS INTEGER)
            WHEN records.score >= 0 AND records.score <= 1 THEN records.score
        END AS credit,
        records.visual_tokens,
        records.prompt_tokens,
        records.latency_s
    FROM records
),

totals AS (
    SELECT
        run_id,
        COUNT(*) AS n,
        SUM(credit) AS credits,
        AVG(visual_tokens) AS visual_tokens,
        AVG(prompt_tokens) AS prompt_tokens,
        AVG(latency_s) AS latency_s
    FROM credited
    WHERE credit IS NOT NULL
    GROUP BY run_id
)

SELECT
    families.name AS family,
    series.name AS series,
    models.name AS model,
    backbones.parameters,
    benchmarks.suite,
    benchmarks.name AS benchmark,
    runs.configuration_id,
    totals.run_id,
    configurations.input_mode,
    configurations.input_size,
    configurations.variant,
    totals.n,
    totals.n - totals.credits AS errors,
    1.0 - totals.credits / totals.n AS error,
    totals.visual_tokens,
    totals.prompt_tokens,
    2.0 * backbones.parameters * totals.prompt_tokens AS flops,
    totals.latency_s
FROM totals
INNER JOIN runs ON totals.run_id = runs.id
INNER JOIN configurations ON runs.configuration_id = configurations.id
INNER JOIN models ON configurations.model_id = models.id
INNER JOIN series ON models.series_id = series.id
INNER JOIN benchmarks ON runs.benchmark_id = benchmarks.id
LEFT JOIN families ON series.family_id = families.id
LEFT JOIN backbones ON models.backbone_id = backbones.id
WHERE runs.current
