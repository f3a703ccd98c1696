-- The runs of a cohort with what describes them; pixel cap and output limit stand in the configuration only.
select
    cohort.run_id,
    any_value(cohort.configuration_id) as configuration_id,
    any_value(cohort.family) as family,
    any_value(cohort.series) as series,
    any_value(cohort.model) as model,
    any_value(cohort.suite) as suite,
    any_value(cohort.benchmark) as benchmark,
    any_value(configurations.fingerprint) as fingerprint,
    any_value(cohort.input_mode) as input_mode,
    any_value(cohort.source_quality) as source_quality,
    any_value(cohort.variant) as variant,
    any_value(cohort.parameters)::double as parameters,
    any_value(cohort.input_size)::double as input_size,
    any_value(cohort.max_tiles)::double as max_tiles,
    any_value(configurations.pixel_cap)::double as pixel_cap,
    any_value(cohort.vision_branches)::double as vision_branches,
    any_value(cohort.language_branches)::double as language_branches,
    any_value(configurations.max_new_tokens)::double as max_new_tokens
from cohort
join configurations on configurations.id = cohort.configuration_id
group by cohort.run_id
