"""What is known of families, series, backbones, models, frontends and benchmarks: data, counts and a loader; no database."""

from __future__ import annotations

from tracker.catalog.read import load, read
from tracker.catalog.spec import (
    BackboneSpec,
    BenchmarkSpec,
    Catalog,
    EncoderSpec,
    FamilySpec,
    FrontendSpec,
    ModelSpec,
    SeriesSpec,
)
from tracker.catalog.write import dump

__all__ = [
    "BackboneSpec",
    "BenchmarkSpec",
    "Catalog",
    "EncoderSpec",
    "FamilySpec",
    "FrontendSpec",
    "ModelSpec",
    "SeriesSpec",
    "dump",
    "load",
    "read",
]
