-- The rows of a cohort as numbers: position of question and configuration in their own order, signals, and the hash that assigns halves.
-- $questions and $configurations are the ids in that order.
with question as (
    select unnest($questions::bigint[]) as question_id, generate_subscripts($questions::bigint[], 1) - 1 as question
), configuration as (
    select unnest($configurations::bigint[]) as configuration_id, generate_subscripts($configurations::bigint[], 1) - 1 as configuration
), identity as (
    select configuration.*, c.fingerprint
    from configuration
    join configurations c on c.id = configuration_id
)
select
    question::bigint as question,
    configuration::bigint as configuration,
    credit::double as credit,
    p_gold::double as p_gold,
    visual_tokens::double as visual_tokens,
    md5_number_upper(concat_ws(chr(31), $seed::varchar, benchmark, question_key, model, fingerprint)) as hash
from cohort
join question using (question_id)
join identity using (configuration_id)
order by question, configuration, repetition, attempt
