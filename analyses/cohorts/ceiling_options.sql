-- How many option scores the records of current runs hold for each question: the smallest and the largest number.
select
    coalesce(q.same_as_id, q.id) as question_id,
    min(r.scores)::double as fewest,
    max(r.scores)::double as most
from (
    select question_id, length(option_scores) - length(replace(option_scores, ',', '')) + 1 as scores
    from records
    where option_scores is not null
      and length(option_scores) > 2
      and run_id in (select id from runs where current)
) r
join questions q on q.id = r.question_id
group by 1
