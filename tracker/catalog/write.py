"""From a Catalog to TOML that reads back to the same Catalog."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from tracker.catalog.spec import BackboneSpec, Catalog, ModelSpec, vars_of

if TYPE_CHECKING:
    from collections.abc import Mapping

_BARE = re.compile(r"[A-Za-z0-9_-]+\Z")
_TABLES = ("families", "frontends", "encoders", "series", "backbones", "models", "benchmarks")


def dump(catalog: Catalog) -> str:
    """The catalog as TOML. What is computed from other numbers is left out: reading computes it again."""
    lines: list[str] = []
    for table in _TABLES:
        for name, spec in getattr(catalog, table).items():
            lines.append(f"[{table}.{_key(name)}]")
            lines += [f"{_key(key)} = {_value(value)}" for key, value in given(spec).items()]
            lines.append("")
    return "\n".join(lines)


def given(spec: Any) -> dict[str, Any]:
    """What was said of a spec, without what follows from other numbers."""
    fields = {key: value for key, value in vars_of(spec).items() if key != "name" and value is not None and value not in ((), {})}
    if isinstance(spec, BackboneSpec) and spec.architecture is not None:
        fields.pop("parameters", None)
        fields.pop("active_parameters", None)
    if isinstance(spec, ModelSpec) and spec.encoder is not None:
        fields.pop("vision_parameters", None)
    return fields


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(_value(item) for item in value)}]"
    return _inline(value)


def _inline(table: Mapping[str, Any]) -> str:
    inner = ", ".join(f"{_key(key)} = {_value(value)}" for key, value in table.items())
    return f"{{ {inner} }}" if inner else "{}"


def _key(key: str) -> str:
    return key if _BARE.match(key) else _text(key)


def _text(text: str) -> str:
    """A TOML basic string: JSON's escapes, and DEL, which JSON leaves alone."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
