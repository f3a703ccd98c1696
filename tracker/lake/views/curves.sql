-- A metric point with its run.
SELECT
    p.run_id AS run,
    r.model,
    r.backbone,
    r.system,
    p.metric,
    p.step,
    p.tokens,
    p.flops,
    p.value
FROM metric_points AS p
INNER JOIN facts.run_facts AS r ON p.run_id = r.run_id
