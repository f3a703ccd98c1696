-- The rows of a cohort as numbers; what names them is looked up once per question and configuration.
select run_id, question_id, configuration_id, repetition, attempt, counts, credit::double as credit
from cohort
