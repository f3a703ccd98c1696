-- The compare cohort: every answer that enters a trajectory, and the scored answers of runs that the call names as run:ID.
select *
from answers
where credit is not null
  and (counts or list_contains($sides, 'run:' || run_id))
