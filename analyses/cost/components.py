"""What the answers of a cell cost: FLOP of the prompt, the generation, attention and the vision side, averaged over its answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from analyses.answers import objects
from analyses.cells import BILLION
from analyses.cohort import select, statement
from analyses.cost import flops as cost_flops
from analyses.grouping import floats, mean_by

if TYPE_CHECKING:
    from collections.abc import Mapping

    import duckdb
    import numpy.typing as npt

    from analyses.cells import CellStudy

    Array = npt.NDArray[np.float64]

Variant = Literal["prompt", "generation", "attention"]
Tokens = Callable[["Array"], "Array"]
SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """What the store and the shipped catalog know of a model; None where they do not."""

    architecture: Mapping[str, Any] | None
    """Numbers of the language model."""
    vision: Tokens | None
    """FLOP of encoder and projector for an image of so many visual tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Components:
    """FLOP per answer, one entry per cell; NaN where something it needs is not known."""

    prompt: Array
    """2 P T_prompt (Eq. 20)."""
    generation: Array
    """2 P T_generated."""
    attention: Array
    """Causal attention of the language model over prompt and generated tokens."""
    vision: Array
    """Encoder and projector."""

    def language(self, variant: Variant) -> Array:
        """The language side: the prompt, with generated tokens, or C' with attention as well (E.1)."""
        if variant == "prompt":
            return self.prompt
        return self.prompt + self.generation + (self.attention if variant == "attention" else 0.0)

    def cost(self, variant: Variant, weight: float) -> Array:
        """C = C_language + weight (C_vision + C_projector) (Eq. 21); at weight 0 the vision side may be unknown."""
        return self.language(variant) + weight * self.vision if weight else self.language(variant)


def components_of(study: CellStudy, *, attention: bool, vision: bool) -> tuple[Components, list[str]]:
    """The components of every cell, and what is not known of them. What is not asked for is NaN and needs no architecture."""
    cells, answers = study.cells, study.answers
    size = len(cells)
    prompt, generated = answers.numbers["prompt_tokens"], answers.numbers["generated_tokens"]
    unknown = np.full(size, np.nan)
    parts = {"attention": unknown, "vision": unknown}
    warnings: list[str] = []
    if attention or vision:
        facts = model_facts(study.opened.session.connection)
        if attention:
            functions = {name: partial(cost_flops.attention, fact.architecture) for name, fact in facts.items() if fact.architecture}
            parts["attention"] = _mean(study, prompt + generated, functions)
            warnings += _lacking(cells.text["model"], functions, "attention FLOP", "the architecture of the language model")
        if vision:
            views = {name: fact.vision for name, fact in facts.items() if fact.vision is not None}
            parts["vision"] = _mean(study, answers.numbers["visual_tokens"], views)
            warnings += _lacking(cells.text["model"], views, "vision FLOP", "the numbers of the vision encoder")
    per_token = 2.0 * cells.parameters * BILLION
    return Components(prompt=cells.flops, generation=per_token * cells.generated_tokens, **parts), warnings


def _mean(study: CellStudy, tokens: Array, functions: Mapping[str, Tokens]) -> Array:
    """Mean over the answers of each cell of its model's function of their tokens."""
    inside = np.flatnonzero(study.cell_of >= 0)
    cell_of, tokens = study.cell_of[inside], tokens[inside]
    models, code = np.unique(study.cells.text["model"].astype(str), return_inverse=True)
    values = np.full(len(tokens), np.nan)
    for place, model in enumerate(models.tolist()):
        if model in functions:
            rows = code[cell_of] == place
            values[rows] = functions[model](tokens[rows])
    return mean_by(cell_of, values, len(study.cells))


def _lacking(models: npt.NDArray[np.object_], known: Mapping[str, Any], what: str, needs: str) -> list[str]:
    unknown = [str(model) for model in dict.fromkeys(models.tolist()) if model not in known]
    if not unknown:
        return []
    named = ", ".join(unknown[:SHOWN]) + (f" and {len(unknown) - SHOWN} more" if len(unknown) > SHOWN else "")
    return [f"{what} not known for {named}: {needs} is not known"]


def model_facts(connection: duckdb.DuckDBPyConnection) -> dict[str, ModelFacts]:
    """Facts of every model of the store."""
    columns = select(connection, statement("cost_models"), where="cost_models")
    names, architectures, kinds, frontends = (
        objects(columns[name]).tolist() for name in ("model", "architecture", "frontend", "frontend_parameters")
    )
    vision_parameters = floats(columns["vision_parameters"]).tolist()
    facts = {}
    for name, text, kind, frontend, parameters in zip(names, architectures, kinds, frontends, vision_parameters, strict=True):
        architecture = _numbers(text)
        vision = _vision(name, architecture, kind, _numbers(frontend) or {}, parameters)
        facts[name] = ModelFacts(architecture=architecture, vision=vision)
    return facts


def _numbers(text: str | None) -> dict[str, Any] | None:
    value = json.loads(text) if text else None
    return value if isinstance(value, dict) else None


def _vision(
    name: str, architecture: Mapping[str, Any] | None, kind: str | None, frontend: Mapping[str, Any], parameters: float
) -> Tokens | None:
    """The vision side of a model: by its encoder's numbers, else parameters times tokens where tiles say how many tokens enter."""
    width = architecture["width"] if architecture else 0
    encoder = _encoder(name, width, parameters)
    if kind == "native" and encoder is not None:
        function = {"qwen2_5_vl": cost_flops.qwen2_5_vl, "qwen3_vl": cost_flops.qwen3_vl}.get(encoder["kind"])
        return partial(function, encoder, width) if function else None
    if kind == "tiling" and parameters > 0 and frontend.get("tokens_per_tile"):
        projector = cost_flops.tile_projector(encoder, width) if encoder is not None else 0
        return partial(cost_flops.tiles, parameters - projector, projector, frontend["tokens_per_tile"])
    return None


def _encoder(name: str, width: int, parameters: float) -> Mapping[str, Any] | None:
    """The encoder that the shipped catalog gives the model, if it has as many parameters as the store says."""
    from tracker.catalog import load, vision

    catalog = load()
    spec = catalog.models.get(name)
    encoder = catalog.encoders.get(spec.encoder or "") if spec is not None else None
    if encoder is None or not width or vision.count(encoder.architecture, width) != parameters:
        return None
    return encoder.architecture
