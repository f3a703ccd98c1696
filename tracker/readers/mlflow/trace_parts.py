"""Traces as file stores and servers write them, in the forms of MLflow 2 and 3, become `Trace` objects."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import orjson

from tracker.readers.mlflow.model import Trace

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

INPUTS, OUTPUTS = "mlflow.spanInputs", "mlflow.spanOutputs"
TRACE_INPUTS, TRACE_OUTPUTS = "mlflow.traceInputs", "mlflow.traceOutputs"
SOURCE_RUN = "mlflow.sourceRun"
"""Key of a trace's metadata that names its run."""
_DURATION = re.compile(r"(-?\d+(?:\.\d+)?)s")


def trace_id_of(info: Mapping[str, Any]) -> str | None:
    """The id of a trace, as version 3 or 2 call it."""
    found = info.get("trace_id") or info.get("request_id")
    return found if isinstance(found, str) else None


def trace_of(
    info: Mapping[str, Any],
    data: Mapping[str, Any] | None,
    *,
    trace_id: str,
    metadata: Mapping[str, Any],
    tags: Mapping[str, Any],
    assessments: Iterable[Any],
) -> Trace:
    """A trace from its info and its data (`{"spans": [...]}`); without data the previews in the info stand in."""
    request, response = _ends(data or {})
    if request is None:
        request = _json(metadata.get(TRACE_INPUTS) or info.get("request_preview"))
    if response is None:
        response = _json(metadata.get(TRACE_OUTPUTS) or info.get("response_preview"))
    status = info.get("state") or info.get("status")
    return Trace(
        trace_id=trace_id,
        request=request,
        response=response,
        status=str(status) if status else None,
        duration_ms=_duration(info),
        timestamp_ms=milliseconds(info.get("request_time", info.get("timestamp_ms"))),
        metadata=texts(metadata),
        tags=texts(tags),
        assessments=[found for one in assessments if (found := assessment_of(one)) is not None],
    )


def assessment_of(told: Any) -> dict[str, Any] | None:
    """An assessment with the keys that `Trace.assessments` has; None where it has no name."""
    if not isinstance(told, dict) or not isinstance(told.get("assessment_name") or told.get("name"), str):
        return None
    expectation, feedback = told.get("expectation"), told.get("feedback")
    held = expectation if isinstance(expectation, dict) else feedback if isinstance(feedback, dict) else {}
    value = held.get("value")
    packed = held.get("serialized_value")
    if isinstance(packed, dict):
        value = _json(packed.get("value"))
    source = told.get("source")
    found: dict[str, Any] = {
        "name": told.get("assessment_name") or told.get("name"),
        "value": value,
        "source_type": source.get("source_type") if isinstance(source, dict) else None,
        "rationale": told.get("rationale"),
        "error": _error(held.get("error", told.get("error"))),
        "valid": told.get("valid") is not False,
        "created_ms": milliseconds(told.get("create_time", told.get("create_time_ms"))),
        "expectation": isinstance(expectation, dict),
    }
    return found


def milliseconds(told: Any) -> int | None:
    """A time as milliseconds since 1970: a number, its digits, or an ISO time."""
    if isinstance(told, bool) or told is None:
        return None
    if isinstance(told, int | float):
        return int(told) if abs(told) < 2**63 else None
    try:
        return int(told)
    except (TypeError, ValueError):
        pass
    try:
        time = datetime.fromisoformat(str(told))
    except ValueError:
        return None
    return round((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * 1000)


def texts(told: Mapping[str, Any]) -> dict[str, str]:
    """Keys and values as text."""
    return {str(name): value if isinstance(value, str) else str(value) for name, value in told.items() if value is not None}


def pairs(told: Any) -> dict[str, str]:
    """A list of `{"key": ..., "value": ...}` (or a mapping) as a mapping of texts; what is neither is empty."""
    if isinstance(told, dict):
        return texts(told)
    if not isinstance(told, list):
        return {}
    return texts({one["key"]: one.get("value", "") for one in told if isinstance(one, dict) and isinstance(one.get("key"), str)})


def _duration(info: Mapping[str, Any]) -> float | None:
    for name in ("execution_duration_ms", "execution_time_ms"):
        told = info.get(name)
        if isinstance(told, str) and told.lstrip("-").isdigit():
            return float(told)
        if isinstance(told, int | float) and not isinstance(told, bool):
            return float(told)
    found = _DURATION.fullmatch(str(info.get("execution_duration", "")))
    return float(found[1]) * 1000 if found else None


def _error(told: Any) -> str | None:
    if isinstance(told, dict):
        parts = [str(told[name]) for name in ("error_code", "error_message") if told.get(name)]
        return ": ".join(parts) or None
    return str(told) if told else None


def _ends(data: Mapping[str, Any]) -> tuple[Any, Any]:
    """Inputs and outputs of the root span."""
    spans = data.get("spans")
    for span in spans if isinstance(spans, list) else ():
        if isinstance(span, dict) and not (span.get("parent_span_id") or span.get("parent_id")):
            attributes = span.get("attributes")
            if isinstance(attributes, list):  # OpenTelemetry's typed values
                typed = {
                    one["key"]: _typed(one.get("value")) for one in attributes if isinstance(one, dict) and isinstance(one.get("key"), str)
                }
                return typed.get(INPUTS), typed.get(OUTPUTS)
            if isinstance(attributes, dict):  # JSON texts
                return _json(attributes.get(INPUTS)), _json(attributes.get(OUTPUTS))
    return _json(data.get("request")), _json(data.get("response"))


def _typed(told: Any) -> Any:
    """The value of an OpenTelemetry value."""
    if not isinstance(told, dict) or not told:
        return None
    kind, held = next(iter(told.items()))
    if kind == "kvlist_value" and isinstance(held, dict):
        listed = held.get("values")
        return {one["key"]: _typed(one.get("value")) for one in listed or () if isinstance(one, dict) and isinstance(one.get("key"), str)}
    if kind == "array_value" and isinstance(held, dict):
        return [_typed(one) for one in held.get("values") or ()]
    if kind == "int_value" and isinstance(held, str) and held.lstrip("-").isdigit():
        return int(held)
    return held


def _json(told: Any) -> Any:
    """The JSON value in a text, or the text; anything else as it is."""
    if not isinstance(told, str):
        return told
    try:
        return orjson.loads(told)
    except ValueError:
        return told
