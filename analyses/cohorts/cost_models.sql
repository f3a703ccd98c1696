-- What the cost of a model needs beside its parameters: architecture of its language model, parameters of its vision part, its frontend.
select
    models.name as model,
    backbones.architecture::varchar as architecture,
    models.vision_parameters::double as vision_parameters,
    frontends.kind as frontend,
    frontends.parameters::varchar as frontend_parameters
from models
left join backbones on backbones.id = models.backbone_id
left join series on series.id = models.series_id
left join frontends on frontends.id = coalesce(models.frontend_id, series.frontend_id)
