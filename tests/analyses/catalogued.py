"""The tables of models beside planted answers, as a store with the shipped catalog has them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tracker.catalog import load

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.analyses.planted import PlantedSession


def catalogued(session: PlantedSession, own: Mapping[str, Mapping[str, Any]] | None = None) -> PlantedSession:
    """Add models, backbones, series and frontends: every shipped model, and `own` ones.

    A model of one's own is a mapping with architecture, vision_parameters, frontend (a kind) and parameters of the frontend, all optional.
    """
    catalog = load()
    models = {}
    for name, spec in catalog.models.items():
        frontend, backbone = catalog.frontend_of(spec), catalog.backbones.get(spec.backbone or "")
        models[name] = {
            "architecture": dict(backbone.architecture) if backbone and backbone.architecture else None,
            "vision_parameters": spec.vision_parameters,
            "frontend": frontend.kind if frontend else None,
            "parameters": dict(frontend.parameters) if frontend else None,
        }
    connection = session.connection
    connection.execute(
        "create table models (id bigint, name varchar, series_id bigint, backbone_id bigint, frontend_id bigint, vision_parameters bigint)"
    )
    connection.execute("create table backbones (id bigint, architecture varchar)")
    connection.execute("create table series (id bigint, frontend_id bigint)")
    connection.execute("create table frontends (id bigint, kind varchar, parameters varchar)")
    for identity, (name, about) in enumerate({**models, **(own or {})}.items()):
        architecture, frontend = about.get("architecture"), about.get("frontend")
        connection.execute("insert into backbones values (?, ?)", [identity, json.dumps(architecture) if architecture else None])
        connection.execute("insert into series values (?, ?)", [identity, identity if frontend else None])
        connection.execute(
            "insert into frontends values (?, ?, ?)", [identity, frontend or "none", json.dumps(about.get("parameters") or {})]
        )
        connection.execute(
            "insert into models values (?, ?, ?, ?, null, ?)", [identity, name, identity, identity, about.get("vision_parameters")]
        )
    return session
