-- What happened to the records of each run and label of its questions. Blank text is no text; case and blanks around do not tell predictions apart.
-- A record with option scores and without any generation was scored by likelihood: its prediction is the option of the best score.
with said as (
    select distinct r.run_id, coalesce(q.same_as_id, q.id) as question_id, r.repetition, r.attempt
    from records r
    join questions q on q.id = r.question_id
    where nullif(trim(r.prediction), '') is null
      and nullif(trim(r.response), '') is not null
),

ranked as (
    select distinct r.run_id, coalesce(q.same_as_id, q.id) as question_id, r.repetition, r.attempt
    from records r
    join questions q on q.id = r.question_id
    where r.logit_prediction is not null
      and r.prediction is not null
      and (r.generated_tokens is null or r.generated_tokens <= 0)
      and r.option_scores is not null
      and nullif(trim(r.response), '') is null
),

judged as (
    select
        cohort.run_id,
        cohort.configuration_id,
        cohort.benchmark,
        cohort.suite,
        cohort.series,
        cohort.family,
        cohort.model,
        cohort.task,
        cohort.category,
        cohort.domain,
        cohort.skill,
        cohort.status,
        cohort.credit,
        upper(nullif(trim(cohort.prediction), '')) as prediction,
        ranked.run_id is not null as ranked,
        case when ranked.run_id is null then upper(nullif(trim(cohort.logit_prediction), '')) end as logit_prediction,
        upper(nullif(trim(cohort.gold), '')) as gold,
        cohort.generated_tokens,
        configurations.max_new_tokens,
        said.run_id is not null or coalesce(cohort.generated_tokens > 0, false) as generated
    from cohort
    join configurations on configurations.id = cohort.configuration_id
    left join said using (run_id, question_id, repetition, attempt)
    left join ranked using (run_id, question_id, repetition, attempt)
)

select
    run_id, configuration_id, benchmark, suite, series, family, model, task, category, domain, skill, max_new_tokens,
    count(*) as records,
    count(credit) as scored,
    count(*) filter (credit is null and status is distinct from 'failed') as unscored,
    count(*) filter (credit is null and status = 'failed') as failed,
    coalesce(sum(credit::decimal(18, 12)), 0)::double as credit,
    count(prediction) filter (credit is not null) as with_text,
    count(logit_prediction) filter (credit is not null) as with_logit,
    count(*) filter (credit is not null and ranked) as one_signal,
    count(*) filter (credit is not null and prediction is not null and logit_prediction is not null) as both_signals,
    count(*) filter (credit is not null and prediction = logit_prediction) as agree,
    count(*) filter (credit = 1 and prediction is not null and gold is not null) as right_with_gold,
    count(*) filter (credit = 1 and prediction = gold) as right_as_gold,
    count(*) filter (credit is not null and prediction is not null and logit_prediction is not null and gold is not null) as judged,
    coalesce(sum(credit::decimal(18, 12)) filter (prediction is not null and logit_prediction is not null and gold is not null), 0)::double as credit_judged,
    count(*) filter (credit is not null and prediction is not null and logit_prediction = gold) as logit_right,
    count(*) filter (credit = 1 and prediction is not null and logit_prediction <> gold) as only_text_right,
    count(*) filter (credit = 0 and prediction is not null and logit_prediction = gold) as only_logit_right,
    count(*) filter (prediction is null and generated) as without_option,
    count(*) filter (generated_tokens is not null) as counted,
    count(*) filter (generated_tokens is not null and max_new_tokens is not null) as limited,
    count(*) filter (generated_tokens >= max_new_tokens) as at_limit,
    count(*) filter (generated_tokens >= max_new_tokens and prediction is null) as at_limit_without_option
from judged
group by all
