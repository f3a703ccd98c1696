-- The rows of a cohort as numbers; what names them is looked up once per question and configuration.
select
    question_id,
    configuration_id,
    repetition,
    attempt,
    credit::double as credit,
    p_gold::double as p_gold,
    visual_tokens::double as visual_tokens,
    n_options::double as n_options
from cohort
