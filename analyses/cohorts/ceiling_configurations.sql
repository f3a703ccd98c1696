-- The configurations of a cohort in an order that no database id decides, with what compute needs to know of them.
select
    cells.configuration_id,
    any_value(cells.series) as series,
    any_value(cells.model) as model,
    any_value(cells.parameters)::double as parameters,
    coalesce(any_value(cells.input_mode) = 'native', false) as native,
    any_value(cells.input_size)::double as input_size,
    any_value(configurations.fingerprint) as fingerprint
from cells
join configurations on configurations.id = cells.configuration_id
where cells.configuration_id in (select configuration_id from cohort)
group by cells.configuration_id
order by series, model, fingerprint
