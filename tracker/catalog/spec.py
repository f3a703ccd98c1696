"""What a catalog says of families, series, frontends, encoders, backbones, models and benchmarks."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

FRONTEND_KINDS = ("tiling", "anyres", "native", "fixed", "none")
"""How a frontend turns an image into visual tokens."""

STAGES = ("base", "instruct")
"""Training stages of a backbone."""


@dataclass(frozen=True)
class FamilySpec:
    """A line of models from one maker."""

    name: str


@dataclass(frozen=True)
class FrontendSpec:
    """A rule from image size to visual tokens, and its numbers."""

    name: str
    kind: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    source: str | None = None


@dataclass(frozen=True)
class EncoderSpec:
    """A vision encoder; with the width of a backbone it gives the parameters of encoder and projector."""

    name: str
    architecture: Mapping[str, Any]
    source: str | None = None


@dataclass(frozen=True)
class SeriesSpec:
    """A generation in a family."""

    name: str
    family: str | None = None
    frontend: str | None = None


@dataclass(frozen=True)
class BackboneSpec:
    """A language model. `parameters` counts embeddings and output head; it follows from `architecture` where that is known."""

    name: str
    family: str | None = None
    stage: str | None = None
    architecture: Mapping[str, Any] | None = None
    source: str | None = None
    parameters: int | None = None
    active_parameters: int | None = None
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True)
class ModelSpec:
    """A model that is evaluated: a backbone behind an encoder and a frontend (None: that of its series)."""

    name: str
    series: str
    backbone: str | None = None
    frontend: str | None = None
    encoder: str | None = None
    vision_parameters: int | None = None
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True)
class BenchmarkSpec:
    """A question set. `n_rows` differs from `n_questions` where the release repeats ids; sizes are means in px."""

    name: str
    suite: str | None = None
    split: str | None = None
    modality: str | None = None
    metric: str | None = None
    n_questions: int | None = None
    n_rows: int | None = None
    image_width: int | None = None
    image_height: int | None = None
    source: str | None = None
    tasks: Mapping[str, str] = field(default_factory=dict)
    aliases: tuple[str, ...] = ()


Named = TypeVar("Named", BackboneSpec, ModelSpec, BenchmarkSpec)


@dataclass(frozen=True)
class Catalog:
    """Everything that is described, by name."""

    families: Mapping[str, FamilySpec] = field(default_factory=dict)
    frontends: Mapping[str, FrontendSpec] = field(default_factory=dict)
    encoders: Mapping[str, EncoderSpec] = field(default_factory=dict)
    series: Mapping[str, SeriesSpec] = field(default_factory=dict)
    backbones: Mapping[str, BackboneSpec] = field(default_factory=dict)
    models: Mapping[str, ModelSpec] = field(default_factory=dict)
    benchmarks: Mapping[str, BenchmarkSpec] = field(default_factory=dict)

    def model(self, spelling: str) -> ModelSpec | None:
        """The model that a spelling means: exact first, then without regard to case."""
        return _find(self._model_spellings, spelling)

    def backbone(self, spelling: str) -> BackboneSpec | None:
        """The backbone that a spelling means, likewise."""
        return _find(self._backbone_spellings, spelling)

    def benchmark(self, spelling: str) -> BenchmarkSpec | None:
        """The benchmark that a spelling means, likewise."""
        return _find(self._benchmark_spellings, spelling)

    def frontend_of(self, model: ModelSpec) -> FrontendSpec | None:
        """The frontend of a model: its own, else that of its series."""
        series = self.series.get(model.series)
        return self.frontends.get(model.frontend or (series.frontend if series else None) or "")

    def parameters_of(self, model: ModelSpec) -> int | None:
        """Exact parameter count of a model's language part."""
        backbone = self.backbones.get(model.backbone or "")
        return backbone.parameters if backbone else None

    @cached_property
    def digest(self) -> str:
        """SHA-256 over the content, whatever file it came from and in whatever order."""
        text = json.dumps(vars_of(self), sort_keys=True, default=vars_of, ensure_ascii=False)
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

    @cached_property
    def _model_spellings(self) -> dict[str, ModelSpec | None]:
        return _spellings(self.models)

    @cached_property
    def _backbone_spellings(self) -> dict[str, BackboneSpec | None]:
        return _spellings(self.backbones)

    @cached_property
    def _benchmark_spellings(self) -> dict[str, BenchmarkSpec | None]:
        return _spellings(self.benchmarks)


def vars_of(value: Any) -> dict[str, Any]:
    """The fields of a spec (cached values left out), or a mapping as a dict."""
    if isinstance(value, Mapping):
        return dict(value)
    return {name: getattr(value, name) for name in value.__dataclass_fields__}


def _spellings(specs: Mapping[str, Named]) -> dict[str, Named | None]:
    """Exact spellings as they are, folded ones behind a NUL; a folded spelling of two specs means neither."""
    exact: dict[str, Named | None] = {}
    folded: dict[str, Named | None] = {}
    spec: Named
    for spec in specs.values():
        for spelling in (spec.name, *spec.aliases):
            exact[spelling] = spec
            key = "\0" + spelling.casefold()
            folded[key] = spec if key not in folded or folded[key] is spec else None
    return {**exact, **folded}


def _find(spellings: Mapping[str, Named | None], spelling: str) -> Named | None:
    found = spellings.get(spelling)
    return found if found is not None else spellings.get("\0" + spelling.casefold())
