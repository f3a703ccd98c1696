-- The rows of a cohort as numbers; what names them is looked up once per run and question.
select
    run_id,
    question_id,
    repetition,
    attempt,
    counts,
    credit::double as credit,
    p_gold::double as p_gold,
    visual_tokens::double as visual_tokens,
    prompt_tokens::double as prompt_tokens,
    generated_tokens::double as generated_tokens,
    effective_pixels::double as effective_pixels,
    latency_s::double as latency_s
from cohort
