-- What joins the questions of a cohort to images and to other releases; where spellings differ the first in order stands.
select
    question_id,
    min(suite) as suite,
    min(image_key) as image_key,
    min(pair_key) as pair_key
from answers
where question_id in (select question_id from cohort)
group by question_id
