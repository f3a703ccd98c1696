-- The questions of a cohort in an order that no database id decides.
select question_id, any_value(benchmark) as benchmark, any_value(question_key) as question_key, any_value(n_options)::double as n_options
from cohort
group by question_id
order by benchmark, question_key
