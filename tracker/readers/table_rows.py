"""Cells of an ad-hoc table become one row in native columns: answers compared, confidences from whatever the table has.

Losses are mean negative log-likelihoods: the lowest is the best option.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from tracker.readers.values import best, is_missing, json_text, number, option_list, p_gold, softmax, text, whole

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tracker.table_rules import TableRule

_LETTER = re.compile(r"^\(?([A-Z])\)?[.:]?$")
_DERIVED = ("losses", "log_likelihoods", "probabilities", "question_id", "options", "gold", "prediction")


class BadRowError(Exception):
    """A row that cannot be read; the message is the reason of its refusal."""


class NativeRows:
    """Makes native rows by one rule."""

    def __init__(self, rule: TableRule) -> None:
        self.rule, self.fields = rule, rule.fields

    def native(self, cells: Mapping[str, Any], correct_from: str) -> dict[str, Any]:
        """Native columns of one record, without its id; `correct_from` is the column that says whether it is correct."""
        native = {name: value for name, value in cells.items() if name not in _DERIVED}
        options = _options(cells)
        scores = _log_likelihoods(cells)
        count = len(options) if options else len(scores) if scores else None
        if options and scores and len(options) != len(scores):
            message = f"expected one value per option ({len(options)}), found {len(scores)}"
            raise BadRowError(message)
        if count is not None:
            native.setdefault("n_options", count)
        gold, prediction = cells.get("gold"), cells.get("prediction")
        native |= {"options": options, "gold": text(gold), "prediction": text(prediction)}
        if scores is not None and count is not None:
            native |= self._confidence(scores, gold, prediction, options, count, cells)
        if "correct" in self.fields:
            native["score_rule"] = f"column {correct_from}"
        elif {"prediction", "gold"} <= self.fields:
            native |= {"correct": self._is_correct(prediction, gold, options, count), "score_rule": "prediction == gold"}
        return native

    def _confidence(
        self, scores: list[float | None], gold: Any, prediction: Any, options: list[str] | None, count: int, cells: Mapping[str, Any]
    ) -> dict[str, Any]:
        position = self._position(gold, options, count)
        likeliest = best(scores)
        found: dict[str, Any] = {}
        if "option_scores" not in cells:
            found["option_scores"] = json_text([one if one is not None and math.isfinite(one) else None for one in scores])
        if "p_gold" not in cells:
            found["p_gold"] = p_gold(scores, position)
        if "logit_prediction" not in cells and likeliest is not None and softmax(scores) is not None:
            found["logit_prediction"] = self._named(likeliest, gold if gold is not None else prediction, options)
        return found

    def _position(self, answer: Any, options: list[str] | None, count: int) -> int | None:
        """Which option an answer means."""
        way = self._way(answer, options)
        if way == "index":
            found = whole(answer)
            position = None if found is None else found - self.rule.first_index
        elif way == "letter":
            met = _LETTER.match(str(answer).strip())
            position = ord(met[1]) - 65 if met else None
        else:
            position = options.index(str(answer)) if options and str(answer) in options else None
        return position if position is not None and 0 <= position < count else None

    def _way(self, answer: Any, options: list[str] | None) -> str:
        """How answers are written: as the rule says, else a number is an index, an option's own text is text."""
        if self.rule.answers:
            return self.rule.answers
        if isinstance(answer, int | float) and not isinstance(answer, bool):
            return "index"
        written = str(answer).strip()
        if options and written in options:
            return "text"
        return "letter" if _LETTER.match(written) else "index" if whole(written) is not None else "text"

    def _named(self, position: int, like: Any, options: list[str] | None) -> str:
        """An option, written as answers are written."""
        way = "letter" if like is None and not self.rule.answers else self._way(like, options)
        if way == "index":
            return str(position + self.rule.first_index)
        return (
            chr(65 + position) if way == "letter" and position < 26 else options[position] if options and way == "text" else str(position)
        )

    def _is_correct(self, prediction: Any, gold: Any, options: list[str] | None, count: int | None) -> bool | None:
        if prediction is None or gold is None or (isinstance(prediction, float) and math.isnan(prediction)):
            return None
        if (text(prediction) or "").strip() == (text(gold) or "").strip():
            return True
        if count is None or self._way(prediction, options) == self._way(gold, options):
            return False
        chosen = self._position(prediction, options, count)
        return chosen is not None and chosen == self._position(gold, options, count)


def _options(cells: Mapping[str, Any]) -> list[str] | None:
    told = cells.get("options")
    if is_missing(told):
        return None
    options = option_list(told)
    if options is None:
        message = f"options: expected a list of options (or 'A. ...' lines), found {str(told)[:60]!r}"
        raise BadRowError(message)
    return options


def _log_likelihoods(cells: Mapping[str, Any]) -> list[float | None] | None:
    """Log-likelihoods of the options in nats, from whatever the table has."""
    for field in ("log_likelihoods", "losses", "probabilities"):
        told = cells.get(field)
        if is_missing(told):
            continue
        if isinstance(told, str):
            told = _json_list(field, told)
        told = list(told.values()) if isinstance(told, dict) else told
        if not isinstance(told, list):
            message = f"{field}: expected a list of numbers, one per option, found {str(told)[:60]!r}"
            raise BadRowError(message)
        return [_log_likelihood(field, one) for one in told] or None
    return None


def _json_list(field: str, told: str) -> Any:
    import json

    try:
        return json.loads(told)
    except (ValueError, RecursionError) as err:
        message = f"{field}: expected a list of numbers, one per option, found {told[:60]!r}"
        raise BadRowError(message) from err


def _log_likelihood(field: str, told: Any) -> float | None:
    found = number(told)
    if found.special == "nan" or told is None:
        return None
    if found.value is None and found.special is None:
        message = f"{field}: expected a number for each option, found {told!r}"
        raise BadRowError(message)
    value = found.value if found.value is not None else math.inf if found.special == "inf" else -math.inf
    if field == "losses":
        return -value
    if field == "log_likelihoods":
        return value
    if value < 0 or not math.isfinite(value):
        message = f"{field}: expected probabilities from 0, found {told!r}"
        raise BadRowError(message)
    return math.log(value) if value > 0 else -math.inf
