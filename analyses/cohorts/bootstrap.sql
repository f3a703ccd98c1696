-- The bootstrap cohort: the answers of cells; $attempts = 'last' keeps the last scored attempt of each repetition.
select *
from answers
where credit is not null
  and run_id in (select id from runs where current)
  and ($records = 'scored' or p_gold is not null)
  and ($attempts = 'all' or counts)
