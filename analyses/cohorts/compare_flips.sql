-- What the two sides of a pair answered to the questions that flip, with the start of the question's text.
select
    answers.run_id,
    answers.question_id,
    answers.configuration_id,
    answers.repetition,
    answers.attempt,
    answers.counts,
    answers.credit::double as credit,
    answers.prediction,
    answers.gold,
    q.text
from answers
join cohort using (run_id, question_id, repetition, attempt)
join questions q on q.id = answers.question_id
where list_contains($questions, answers.question_id)
  and (list_contains($configurations, answers.configuration_id) or list_contains($runs, answers.run_id))
