-- The configurations of a cohort by name, with every setting as text.
select
    c.id as configuration_id,
    of_cohort.model,
    of_cohort.series,
    of_cohort.parameters::double as parameters,
    c.fingerprint,
    c.input_mode,
    c.input_size::varchar as input_size,
    c.max_tiles::varchar as max_tiles,
    c.pixel_cap::varchar as pixel_cap,
    c.source_quality,
    c.vision_branches::varchar as vision_branches,
    c.language_branches::varchar as language_branches,
    c.few_shot::varchar as few_shot,
    c.precision,
    c.max_new_tokens::varchar as max_new_tokens,
    c.prompt,
    c.variant
from (
    select configuration_id, min(model) as model, min(series) as series, min(parameters) as parameters
    from cohort
    group by configuration_id
) as of_cohort
join configurations c on c.id = of_cohort.configuration_id
