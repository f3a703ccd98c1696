-- The questions of a cohort with what describes them; where spellings differ the first in order stands.
select
    question_id,
    min(benchmark) as benchmark,
    min(suite) as suite,
    min(question_key) as question_key,
    min(image_key) as image_key,
    min(pair_key) as pair_key,
    min(task) as task,
    min(category) as category,
    min(domain) as domain,
    min(skill) as skill,
    min(n_options)::double as n_options
from cohort
group by question_id
