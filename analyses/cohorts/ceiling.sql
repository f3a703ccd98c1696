-- The ceiling cohort: every answer that enters a trajectory; $records = 'both' asks for a probability as well.
select *
from answers
where counts
  and credit is not null
  and ($records = 'scored' or p_gold is not null)
