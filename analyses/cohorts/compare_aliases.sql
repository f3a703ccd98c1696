-- Every spelling of a model with its name.
select a.alias, m.name
from model_aliases a
join models m on m.id = a.model_id
