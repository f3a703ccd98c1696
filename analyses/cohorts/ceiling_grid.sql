-- Every answer of a cohort to the questions that the call names as BENCHMARK/KEY, smallest models and images first.
select
    answers.benchmark,
    answers.question_key,
    answers.series,
    answers.model,
    answers.parameters::double as parameters,
    answers.input_mode,
    answers.input_size::double as input_size,
    answers.repetition,
    answers.prediction,
    answers.gold,
    answers.credit::double as credit,
    answers.p_gold::double as p_gold,
    answers.visual_tokens::double as visual_tokens
from answers
join cohort using (run_id, question_id, repetition, attempt)
join configurations on configurations.id = answers.configuration_id
where list_contains($question, answers.benchmark || '/' || answers.question_key)
order by
    answers.benchmark, answers.question_key, answers.series, answers.parameters nulls last, answers.model, answers.input_size nulls last,
    configurations.fingerprint, answers.repetition
