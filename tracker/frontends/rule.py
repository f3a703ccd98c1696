"""From a catalog's description of a frontend to its rule."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, Protocol

from tracker.errors import UsageError
from tracker.frontends.native import NativeResolution
from tracker.frontends.tiling import DynamicTiling
from tracker.frontends.visual import VisualInput

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Rule", "VisualInput", "rule"]


class Rule(Protocol):
    """Anything that says what a frontend makes of an image."""

    def view(self, width: int, height: int) -> VisualInput:
        """What the language model gets for an image of this size (px)."""
        ...


_RULES: dict[str, type[DynamicTiling | NativeResolution]] = {"tiling": DynamicTiling, "native": NativeResolution}


def rule(kind: str, parameters: Mapping[str, Any]) -> Rule:
    """The rule of a frontend kind with the numbers that `parameters` gives; others keep their defaults.

    Parameters that describe the frontend without entering its rule are left alone.
    """
    made = _RULES.get(kind)
    if made is None:
        message = f"no token rule for frontend kind {kind!r}"
        raise UsageError(message, hint=f"known kinds: {', '.join(_RULES)}")
    known = {field.name for field in fields(made)}
    return made(**{name: value for name, value in parameters.items() if name in known})
