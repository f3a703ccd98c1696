-- Every setting of the configurations in a cohort; equal fingerprints are equal settings.
select *
from configurations
where id in (select configuration_id from cohort)
