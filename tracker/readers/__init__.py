"""Readers, in the order in which they are asked."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tracker.readers.base import Reader

NAMES = (
    "table",
    "score_table",
    "mlflow",
    "inspect_ai",
    "lm_eval",
    "lmms_eval",
    "vlmevalkit",
    "helm",
    "evalscope",
    "opencompass",
    "lighteval",
    "every_eval_ever",
    "native",
)
"""Modules beside this one, each with its READER; the study file's own tables are asked first, the native table last."""


def all_readers() -> tuple[Reader, ...]:
    """Every reader."""
    return tuple(map(reader, NAMES))


def reader(name: str) -> Reader:
    """The reader of a name; imports no other."""
    found: Reader = import_module(f"tracker.readers.{name}").READER
    return found
