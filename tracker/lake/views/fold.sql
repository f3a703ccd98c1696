-- Trajectories from answers: average the repetitions of each configuration, then the configurations of each series.
WITH by_configuration AS (
    SELECT
        question_id,
        series,
        configuration_id,
        count(*) AS n_observations,
        avg(credit) AS accuracy,
        avg(p_gold) AS p_gold,
        any_value(question_key) AS question_key,
        any_value(family) AS family,
        any_value(suite) AS suite,
        any_value(benchmark) AS benchmark,
        any_value(task) AS task,
        any_value(category) AS category,
        any_value(domain) AS domain,
        any_value(skill) AS skill
    FROM answers
    WHERE counts AND credit IS NOT NULL
    GROUP BY question_id, series, configuration_id
)

SELECT
    question_id,
    any_value(question_key) AS question_key,
    series,
    any_value(family) AS family,
    any_value(suite) AS suite,
    any_value(benchmark) AS benchmark,
    any_value(task) AS task,
    any_value(category) AS category,
    any_value(domain) AS domain,
    any_value(skill) AS skill,
    count(*) AS n_configurations,
    cast(sum(n_observations) AS BIGINT) AS n_observations,
    avg(accuracy) AS accuracy,
    avg(p_gold) AS p_gold
FROM by_configuration
GROUP BY question_id, series
