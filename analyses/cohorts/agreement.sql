-- The agreement cohort: every record of current runs, scored or not, attempts and repetitions alike.
select *
from answers
where run_id in (select id from runs where current)
