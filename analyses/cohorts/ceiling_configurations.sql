-- The configurations of a cohort in an order that no database id decides, with what compute needs to know of them.
select
    a.configuration_id,
    any_value(a.series) as series,
    any_value(a.model) as model,
    any_value(a.parameters)::double as parameters,
    coalesce(any_value(a.input_mode) = 'native', false) as native,
    any_value(a.input_size)::double as input_size,
    any_value(c.fingerprint) as fingerprint
from cohort a
join configurations c on c.id = a.configuration_id
group by a.configuration_id
order by series, model, fingerprint
