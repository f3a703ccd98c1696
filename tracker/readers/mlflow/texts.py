"""The text of what a model was asked and what it answered, out of the shapes that MLflow users log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from tracker.readers.values import json_text, text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ASKED = ("question", "inputs", "input", "prompt", "query", "problem", "instruction", "request", "messages")
"""Names of what was asked, in order."""
ANSWERED = ("response", "outputs", "output", "answer", "content", "completion", "generated_text", "text", "message", "choices", "result")
"""Names of an answer inside an object, in order."""
EXPECTED = (
    "expected_response",
    "expected_answer",
    "ground_truth",
    "target",
    "targets",
    "reference",
    "references",
    "gold",
    "label",
    "answer",
    "expected",
)
"""Names of the expected answer, in order."""


def asked(value: Any) -> str | None:
    """The text of a question: text as it is, the last user message of a chat, the question's own field, the only field, else JSON."""
    return _text(value, ASKED)


def answered(value: Any) -> str | None:
    """The text of an answer, likewise."""
    return _text(value, ANSWERED)


def opened(value: Any) -> Any:
    """A JSON object or list that is held as text, as what it is."""
    if isinstance(value, str) and value[:1] in {"{", "["} and value[-1:] in {"}", "]"}:
        try:
            return orjson.loads(value)
        except ValueError:
            return value
    return value


def field(value: Mapping[str, Any], names: Sequence[str]) -> Any:
    """The first of some fields that is there, whatever the case of its name."""
    lowered = {str(name).lower(): one for name, one in value.items()}
    return next((lowered[name] for name in names if lowered.get(name) is not None), None)


def _text(value: Any, names: Sequence[str], depth: int = 4) -> str | None:
    told = opened(value)
    if not depth or not isinstance(told, dict | list):
        return text(value) or None
    if not told:
        return None
    if isinstance(told, list):
        return _of_list(told, names, depth)
    if isinstance(told.get("role"), str) and "content" in told:
        return _text(told["content"], names, depth - 1)
    found = field(told, names)
    if found is None:
        found = next(iter(told.values())) if len(told) == 1 else None
    return json_text(told) if found is None else _text(found, names, depth - 1)


def _of_list(told: Sequence[Any], names: Sequence[str], depth: int) -> str | None:
    """Messages (the last of the user, else the last), parts of one message, or one thing alone."""
    parts = [one for one in told if isinstance(one, dict)]
    if len(parts) < len(told):
        return text(told[0]) if len(told) == 1 else json_text(told)
    users = [one for one in parts if one.get("role") == "user"]
    if users or any("role" in one for one in parts):
        return _text((users or parts)[-1].get("content"), names, depth - 1)
    texts = [one["text"] for one in parts if one.get("type") in {"text", "output_text", "input_text"} and isinstance(one.get("text"), str)]
    if texts:
        return "\n".join(texts)
    return _text(parts[0], names, depth - 1) if len(parts) == 1 else json_text(told)
