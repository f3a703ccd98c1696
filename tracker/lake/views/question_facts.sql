-- One row per question key: the question it means, with the attributes and labels that the star views show.
WITH members AS (
    SELECT
        id,
        coalesce(same_as_id, id) AS question_id,
        same_as_id IS NOT NULL AS is_other_key,
        key, benchmark_id, image_key, pair_key, gold, n_options, task, category
    FROM questions
),

-- The canonical key's own value; where it is null, that of its first other key that has one.
merged AS (
    SELECT
        question_id,
        first(key ORDER BY is_other_key, key) AS question_key,
        first(benchmark_id ORDER BY is_other_key, key) AS benchmark_id,
        first(image_key ORDER BY is_other_key, key) FILTER (image_key IS NOT NULL) AS image_key,
        first(pair_key ORDER BY is_other_key, key) FILTER (pair_key IS NOT NULL) AS pair_key,
        first(gold ORDER BY is_other_key, key) FILTER (gold IS NOT NULL) AS gold,
        first(n_options ORDER BY is_other_key, key) FILTER (n_options IS NOT NULL) AS n_options,
        first(task ORDER BY is_other_key, key) FILTER (task IS NOT NULL) AS task,
        first(category ORDER BY is_other_key, key) FILTER (category IS NOT NULL) AS category
    FROM members
    GROUP BY question_id
),

-- One source per scheme and question: the lowest stated priority, then sources without one by name.
ranked AS (
    SELECT
        m.question_id,
        l.scheme,
        l.value,
        row_number() OVER (
            PARTITION BY m.question_id, l.scheme
            ORDER BY p.priority ASC NULLS LAST, l.source ASC, m.is_other_key ASC, m.key ASC, l.question_key ASC, l.benchmark ASC
        ) AS place
    FROM question_labels AS l
    INNER JOIN members AS m ON l.question_id = m.id
    LEFT JOIN label_sources AS p ON l.scheme = p.scheme AND l.source = p.source
    WHERE l.scheme IN ('domain', 'skill')
),

labels AS (
    SELECT
        question_id,
        max(value) FILTER (scheme = 'domain') AS domain,
        max(value) FILTER (scheme = 'skill') AS skill
    FROM ranked
    WHERE place = 1
    GROUP BY question_id
)

SELECT
    members.id,
    members.question_id,
    merged.question_key,
    merged.benchmark_id,
    merged.image_key,
    merged.pair_key,
    coalesce(merged.task, cast(cast(benchmarks.tasks AS JSON) AS MAP(VARCHAR, VARCHAR))[merged.category]) AS task,
    merged.category,
    labels.domain,
    labels.skill,
    merged.gold,
    merged.n_options
FROM members
INNER JOIN merged ON members.question_id = merged.question_id
LEFT JOIN benchmarks ON merged.benchmark_id = benchmarks.id
LEFT JOIN labels ON members.question_id = labels.question_id
