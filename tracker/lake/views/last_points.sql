-- The last point of each metric of a run: the highest step, and of its points the last one.
WITH last AS (
    SELECT
        run_id,
        metric,
        max(struct_pack(step := step, seq := seq, value := value, special := special, logged_at := logged_at)) AS point
    FROM metric_points
    GROUP BY run_id, metric
)

SELECT
    run_id,
    metric,
    point.step AS step,
    point.value AS value,
    point.special AS special,
    point.logged_at AS logged_at
FROM last
