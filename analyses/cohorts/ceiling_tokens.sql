-- Mean visual tokens of each configuration on each benchmark, as cells define them.
select configuration_id, benchmark, visual_tokens::double as visual_tokens
from cells
where visual_tokens is not null
