"""One row of a samples file of Every Eval Ever: what it asks, what was answered, and what its score is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from tracker.readers.every_eval_ever_document import INSPECT, LM_EVAL
from tracker.readers.lm_rules import graded
from tracker.readers.values import as_mapping, json_text, number, text, truth, whole

if TYPE_CHECKING:
    from tracker.readers.every_eval_ever_document import Document
    from tracker.readers.values import Number

OWN_COLUMNS = (
    *("p_gold", "option_scores", "logit_prediction", "visual_tokens", "prompt_tokens", "generated_tokens", "tiles", "effective_pixels"),
    *("vision_flops", "latency_s", "content_hash", "image_key", "pair_key", "n_options", "image_width", "image_height"),
    *("task", "category", "subcategory", "repetition", "attempt", "score_rule"),
)
"""Native columns that trackr's own export writes into the metadata of a row, as text."""
OWN_SCORES = "scores."
METRICS = "lm_eval_metrics"
"""Where lm-eval's converter keeps the metrics of a sample as they were."""
FURTHER = "further scores"
"""Where `restored` puts the metrics that no row of their own has; no name that the schema knows."""
NO_SCORE = "null"
"""How trackr's own export writes in metadata that `correct` or `score` was null though the format wants one."""
CATEGORIES = ("category", "subject", "subset")
SHORT_ANSWER = 200
"""An extracted value beyond this length is a response and no answer."""


def restored(row: Any) -> Any:
    """A row of lm-eval's converter as it should be.

    It takes metrics that are text ("True", "0.5": lm-eval before 0.4.13) for no numbers, and then writes a single row with score 0
    and no result. The metrics are in the metadata: the first becomes the row's own again, the others further scores.
    A row without any number has no score.
    """
    if not isinstance(row, dict) or row.get("evaluation_result_id") is not None:
        return row
    metadata = as_mapping(row.get("metadata"))
    if METRICS not in metadata:
        return row
    filtered = text(metadata.get("filter")) or "none"
    marked = {} if filtered == "none" else {"filter": filtered}
    found = {name: graded(value, binary=True).number.value for name, value in _metrics(metadata[METRICS]).items()}
    scored = {name: value for name, value in found.items() if value is not None}
    if not scored:
        return {**row, "evaluation": {"score": None, "is_correct": None}}
    first, *others = scored
    names = {name: f"{name},{filtered}" if marked else name for name in others}
    return {
        **row,
        "evaluation_result_id": f"{first}:{filtered}" if marked else first,
        "evaluation": {"score": scored[first], "is_correct": scored[first] == 1},
        FURTHER: {names[name]: scored[name] for name in others},
    }


def _metrics(words: Any) -> dict[str, Any]:
    try:
        found = orjson.loads(words) if isinstance(words, str) else words
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def score_of(row: dict[str, Any]) -> Number:
    """The score of a row."""
    value = as_mapping(row.get("evaluation")).get("score")
    return number(None if isinstance(value, bool) else value)


def failure(row: dict[str, Any], document: Document) -> str | None:
    """The error of a sample that has no answer; the zero that the format demands beside it is none.

    A row of Inspect's converter that names its result has a scorer's own score, errors or not.
    """
    error = text(row.get("error"))
    if not error or (row.get("evaluation_result_id") is not None and (document.library or "").lower() in INSPECT):
        return None
    evaluation = as_mapping(row.get("evaluation"))
    return error if truth(evaluation.get("is_correct")) is not True and not score_of(row).value else None


def asked(row: dict[str, Any], document: Document) -> dict[str, Any]:
    """Text, options and reference."""
    asked = as_mapping(row.get("input"))
    choices = asked.get("choices")
    options = [text(one) or "" for one in choices] if isinstance(choices, list) and choices else None
    references = asked.get("reference")
    told = [one for value in (references if isinstance(references, list) else [references]) if (one := text(value)) is not None]
    gold = told[0] if len(told) == 1 else json_text(told) if told else None
    if gold is not None and options and gold not in options and (document.library or "").lower() in LM_EVAL and not document.own:
        position = whole(gold)  # lm-eval's target of a multiple-choice task
        gold = chr(65 + position) if position is not None and 0 <= position < min(len(options), 26) else gold
    metadata = as_mapping(row.get("metadata"))
    raw = text(asked.get("raw"))
    return {
        "text": raw or None,
        "options": options,
        "gold": gold or None,
        "category": next((found for name in CATEGORIES if (found := text(metadata.get(name)))), None),
        "subcategory": text(metadata.get("subcategory")) or None,
        "task": text(metadata.get("task")) or None,
    }


def answered(row: dict[str, Any], document: Document) -> dict[str, Any]:
    """Response, extracted answer, tokens and time."""
    output = as_mapping(row.get("output")).get("raw")
    given = [one for one in output if one is not None] if isinstance(output, list) else [] if output is None else [output]
    response = text(given[0]) if len(given) == 1 else json_text(given) if given else _last_words(row.get("messages"))
    return {"response": response, "prediction": _extracted(row, response), **_usage(row), "latency_s": _latency(row, document)}


def _last_words(messages: Any) -> str | None:
    """The last answer of a conversation."""
    turns = messages if isinstance(messages, list) else []
    answers = [text(one.get("content")) for one in turns if isinstance(one, dict) and one.get("role") == "assistant"]
    return next((one for one in reversed(answers) if one), None)


def _extracted(row: dict[str, Any], response: str | None) -> str | None:
    """The final extracted answer."""
    found = row.get("answer_attribution")
    entries = [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
    final = [one for one in entries if one.get("is_terminal") is True] or entries
    value = text(final[-1].get("extracted_value")) if final else None
    return None if not value or (len(value) > SHORT_ANSWER and value == response) else value


def _usage(row: dict[str, Any]) -> dict[str, Any]:
    """Tokens; all zero is what converters write where nothing was counted."""
    usage = as_mapping(row.get("token_usage"))
    read, written = usage.get("input_tokens"), usage.get("output_tokens")
    if not read and not written:
        read = written = None
    return {"prompt_tokens": read, "generated_tokens": written}


def _latency(row: dict[str, Any], document: Document) -> float | None:
    """Seconds. Inspect's converter writes waiting as latency and working as generation: working is the answer's time; others may have only one."""
    performance = as_mapping(row.get("performance"))
    total, working = number(performance.get("latency_ms")).value, number(performance.get("generation_time_ms")).value
    found = working if total is None or (working is not None and (document.library or "").lower() in INSPECT) else total
    return None if found is None else found / 1000


def own_columns(metadata: Any) -> dict[str, Any]:
    """What trackr's own export put into the metadata."""
    told = {name: text(metadata.get(name)) for name in OWN_COLUMNS if metadata.get(name) is not None and name != "repetition"}
    if "option_scores" in told:
        try:
            told["option_scores"] = orjson.loads(told["option_scores"] or "null")
        except ValueError:
            del told["option_scores"]
    scores = {name: number(value).value for name, value in metadata.items() if name.startswith(OWN_SCORES) and len(name) > len(OWN_SCORES)}
    return {**told, **scores}
