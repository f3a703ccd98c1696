-- What a run's scored records add up to. Plain SQL: it runs on SQLite and PostgreSQL as it stands.
WITH credited AS (
    SELECT
        records.run_id,
        CASE
            WHEN records.correct IS NOT NULL THEN CASE WHEN records.correct THEN 1.0 ELSE 0.0 END
            WHEN records.score >= 0 AND records.score <= 1 THEN records.score
        END AS credit,
        records.visual_tokens,
        records.prompt_tokens,
        records.latency_s
    FROM records
)

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
