-- The cells cohort: every scored answer of current runs, attempts and repetitions alike; $records = 'both' asks for a probability as well.
select *
from answers
where credit is not null
  and run_id in (select id from runs where current)
  and ($records = 'scored' or p_gold is not null)
