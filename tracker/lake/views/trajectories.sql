-- A question followed across the configurations of one series, as stored.
SELECT
    t.question_id,
    q.question_key,
    series.name AS series,
    families.name AS family,
    benchmarks.suite,
    benchmarks.name AS benchmark,
    q.task,
    q.category,
    q.domain,
    q.skill,
    t.n_configurations,
    t.n_observations,
    t.accuracy,
    t.p_gold
FROM trajectory_rows AS t
INNER JOIN series ON t.series_id = series.id
INNER JOIN facts.question_facts AS q ON t.question_id = q.id
INNER JOIN benchmarks ON q.benchmark_id = benchmarks.id
LEFT JOIN families ON series.family_id = families.id
