"""Traces with assessments (GenAI evaluation) become rows in native columns: one record per trace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracker.readers.keys import question_key
from tracker.readers.mlflow import grading
from tracker.readers.mlflow.texts import EXPECTED, answered, asked, field, opened
from tracker.readers.values import as_count, content_hash, json_text, text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tracker.readers.mlflow.model import Trace

TOKEN_USAGE = "mlflow.trace.tokenUsage"  # noqa: S105 - a key of metadata
SCORER_TRACE = "mlflow.trace.sourceScorer"
"""Tag of a trace that a judge left behind, not the model."""
SOURCES = ("CODE", "HUMAN", "LLM_JUDGE", "AI_JUDGE")
"""Who assesses, in order of trust."""
MODEL_NAME = "mlflow.llm.model"
"""Key under which a trace's metadata holds the model that its spans name."""
OPTION_FIELDS = ("options", "choices")


def rows(traces: Sequence[Trace], benchmark: str) -> list[dict[str, Any]]:
    """Traces as native rows, in their order; those that judges left behind are no answers."""
    answers = [trace for trace in traces if SCORER_TRACE not in trace.tags]
    primary, kinds = primary_of(answers)
    return [_row(trace, benchmark, primary, kinds) for trace in answers]


def primary_of(traces: Iterable[Trace]) -> tuple[str | None, dict[str, grading.Kind | None]]:
    """The assessment that is the credit of a run's answers, and what kind each assessment is.

    First one whose name says right or wrong (by code, then by anyone), then any that is yes or no, then any from 0
    to 1; among equals code goes before people and people before models as judges, then the name decides.
    """
    values: dict[str, list[Any]] = {}
    sources: dict[str, int] = {}
    for trace in traces:
        for name, told in feedback(trace).items():
            values.setdefault(name, []).append(told.get("value"))
            source = str(told.get("source_type") or "").upper()
            trust = SOURCES.index(source) if source in SOURCES else len(SOURCES)
            sources[name] = min(trust, sources.get(name, trust))
    kinds = {name: grading.kind_of(name, told) for name, told in values.items()}
    ranked: list[tuple[int, int, int, str]] = []
    for name, kind in kinds.items():
        place = grading.rank(name)
        if place is not None and kind in {"truth", "share"}:
            ranked.append((0 if sources[name] == 0 else 1, place, sources[name], name))
        elif kind == "truth":
            ranked.append((2, sources[name], 0, name))
        elif kind == "share":
            ranked.append((3, sources[name], 0, name))
    return min(ranked)[-1] if ranked else None, kinds


def feedback(trace: Trace) -> dict[str, Mapping[str, Any]]:
    """Assessments by name that are no expectations, the last valid one of each name."""
    return {
        str(one.get("name")): one
        for one in trace.assessments
        if not one.get("expectation") and one.get("valid") is not False and one.get("name")
    }


def expectations(trace: Trace) -> dict[str, Any]:
    """What was expected, by name."""
    return {str(one["name"]): one.get("value") for one in trace.assessments if one.get("expectation") and one.get("name")}


def _row(trace: Trace, benchmark: str, primary: str | None, kinds: Mapping[str, grading.Kind | None]) -> dict[str, Any]:
    inputs = opened(trace.request)
    words = asked(inputs)
    gold, tokens = _gold(trace), _tokens(trace)
    options = field(inputs, OPTION_FIELDS) if isinstance(inputs, dict) else None
    options = [text(one) or "" for one in options] if isinstance(options, list) and options else None
    hashed = content_hash(words, options) if words else None
    named = {**trace.tags, **{str(name).lower(): one for name, one in inputs.items()}} if isinstance(inputs, dict) else trace.tags
    row: dict[str, Any] = {
        "question_id": question_key("mlflow", benchmark, named, hashed) or trace.trace_id,
        "text": words,
        "options": options,
        "gold": gold,
        "response": answered(trace.response),
        "status": "failed" if failed(trace) else None,
        "latency_s": trace.duration_ms / 1000 if trace.duration_ms is not None and trace.duration_ms >= 0 else None,
        "prompt_tokens": as_count(tokens.get("input_tokens")),
        "generated_tokens": as_count(tokens.get("output_tokens")),
        "correct": None,
        "score": None,
        "score_rule": None,
    }
    for name, told in feedback(trace).items():
        graded = grading.score(told.get("value"), kinds.get(name))
        if name == primary and row["status"] is None:  # a record without an answer has no credit, whatever a scorer made of nothing
            source = str(told.get("source_type") or "")
            row |= {"correct": graded.correct, "score": graded.value, "score_rule": f"{name} ({source})" if source else name}
        else:
            row[f"scores.{name}"] = graded.value
    return row


def model_of(traces: Iterable[Trace]) -> str | None:
    """The model that answered, where all traces name the same."""
    told = {trace.metadata[MODEL_NAME] for trace in traces if MODEL_NAME in trace.metadata and SCORER_TRACE not in trace.tags}
    return told.pop() if len(told) == 1 else None


def failed(trace: Trace) -> bool:
    """Whether the model gave no answer."""
    return "ERROR" in str(trace.status or "").upper()


def _gold(trace: Trace) -> str | None:
    told = expectations(trace)
    if not told:
        return None
    found = field(told, EXPECTED)
    if found is None and len(told) == 1:
        found = next(iter(told.values()))
    return json_text(told) if found is None else answered(found)


def _tokens(trace: Trace) -> Mapping[str, Any]:
    told = opened(trace.metadata.get(TOKEN_USAGE))
    return told if isinstance(told, dict) else {}
