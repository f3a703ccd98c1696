"""One record as a row of a samples file, schema 0.3.0."""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING, Any

import orjson

from tracker.every_eval_ever.document import SCHEMA_VERSION
from tracker.readers.every_eval_ever_rows import NO_SCORE, OWN_COLUMNS, OWN_SCORES
from tracker.readers.values import json_text

if TYPE_CHECKING:
    from collections.abc import Mapping

ELSEWHERE = frozenset({"prompt_tokens", "generated_tokens", "latency_s", "repetition", "attempt", "score_rule", "n_options"})
"""Columns that go to metadata only where the format has no better place, or where they say something."""
BREAKS = {b"\xc2\x85": b"\\u0085", b"\xe2\x80\xa8": b"\\u2028", b"\xe2\x80\xa9": b"\\u2029"}
"""Characters that some readers take for line ends: escaped, as JSON allows."""


def row(record: Mapping[str, Any], *, evaluation_id: str, model_id: str, evaluation_name: str, metric: str) -> dict[str, Any]:
    """A scored record; `record` holds the columns of records and questions, `credit`, and `scorers` with `scores`."""
    credit = float(record["credit"])
    correct = record["correct"] if record["correct"] is not None else credit == 1.0
    raw, references = record["text"] or "", _references(record["gold"])
    usage = _usage(record)
    made: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": evaluation_id,
        "model_id": model_id,
        "evaluation_name": evaluation_name,
        "evaluation_result_id": metric,
        "sample_id": record["key"],
        "sample_hash": hashlib.sha256((raw + "".join(references)).encode()).hexdigest(),
        "interaction_type": "single_turn",
        "input": {"raw": raw, "reference": references, "choices": _choices(record["options"])},
        "output": {"raw": [] if record["response"] is None else [record["response"]]},
        "answer_attribution": _attribution(record["prediction"]),
        "evaluation": {"score": credit, "is_correct": bool(correct)},
        "token_usage": usage,
        "performance": None if record["latency_s"] is None else {"latency_ms": record["latency_s"] * 1000},
        "metadata": _metadata(record, credit, metric, counted=usage is not None) or None,
    }
    return {name: value for name, value in made.items() if value is not None}


def line(made: Mapping[str, Any]) -> bytes:
    """A row as one line for every reader."""
    written = orjson.dumps(made)
    for mark, escaped in BREAKS.items():
        if mark in written:
            written = written.replace(mark, escaped)
    return written + b"\n"


def _metadata(record: Mapping[str, Any], credit: float, metric: str, *, counted: bool) -> dict[str, str]:
    """What has no place of its own, as text; numbers as Python prints them, so that they are read back as they were."""
    kept = {name: record[name] for name in OWN_COLUMNS if name not in ELSEWHERE and record[name] is not None}
    kept |= {name: record[name] for name in ("repetition", "attempt") if record[name]}
    if not counted:
        kept |= {name: record[name] for name in ("prompt_tokens", "generated_tokens") if record[name] is not None}
    if record["latency_s"] is not None and record["latency_s"] * 1000 / 1000 != record["latency_s"]:
        kept["latency_s"] = record["latency_s"]
    if record["n_options"] is not None and record["options"] is None:
        kept["n_options"] = record["n_options"]
    if record["score_rule"] is not None and record["score_rule"] != metric:
        kept["score_rule"] = record["score_rule"]
    if record["correct"] is None:
        kept["correct"] = NO_SCORE
    if record["score"] != credit:
        kept["score"] = NO_SCORE if record["score"] is None else record["score"]
    further = zip(record["scorers"] or (), record["scores"] or (), strict=True)
    kept |= {f"{OWN_SCORES}{name}": value for name, value in further if value is not None and math.isfinite(value)}
    return {name: value if isinstance(value, str) else repr(value) for name, value in kept.items()}


def _references(gold: str | None) -> list[str]:
    """The reference answers: a list that a reader stored as JSON is a list again."""
    if gold is None:
        return []
    if gold.startswith("["):
        try:
            found = orjson.loads(gold)
        except ValueError:
            return [gold]
        if isinstance(found, list) and len(found) > 1 and all(isinstance(one, str) for one in found) and json_text(found) == gold:
            return found
    return [gold]


def _choices(options: str | None) -> list[str] | None:
    found = None if options is None else orjson.loads(options)
    return [str(one) for one in found] if isinstance(found, list) and found else None


def _attribution(prediction: str | None) -> list[dict[str, Any]]:
    if not prediction:
        return []
    return [{"turn_idx": 0, "source": "output.raw", "extracted_value": prediction, "extraction_method": "unknown", "is_terminal": True}]


def _usage(record: Mapping[str, Any]) -> dict[str, int] | None:
    """Tokens, where both are known: the format wants both and their sum."""
    read, written = record["prompt_tokens"], record["generated_tokens"]
    if read is None or written is None:
        return None
    return {"input_tokens": read, "output_tokens": written, "total_tokens": read + written}
