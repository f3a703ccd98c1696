"""Multiple choice by log-likelihood, as both harnesses log it: one [log-likelihood, is_greedy] pair per option."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any

from tracker.readers.values import best, json_text, softmax, whole

if TYPE_CHECKING:
    from collections.abc import Sequence

_UNKNOWN_GOLD = -100
"""What lm-eval writes where its answer is none of the options."""


_GREEDY = ("True", "False", True, False, "0", "1")
"""How is_greedy is written."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The scores of one answered multiple choice question."""

    scores: list[float | None]
    gold: tuple[int, ...]
    problem: str | None = None

    @property
    def gold_text(self) -> str | None:
        """Letter of the correct option; a JSON list where several are."""
        letters = [letter(one) for one in self.gold]
        return letters[0] if len(letters) == 1 else json_text(letters) if letters else None

    @property
    def p_gold(self) -> float | None:
        """Probability of the correct option, of all correct ones together where there are several."""
        probabilities = softmax(self.scores) if self.gold else None
        return None if probabilities is None else min(1.0, sum(probabilities[one] for one in self.gold))

    @property
    def best(self) -> str | None:
        """Letter of the likeliest option."""
        found = best(self.scores)
        return None if found is None else letter(found)


def letter(position: int) -> str:
    """A for the first option; its number from 1 past Z."""
    return ascii_uppercase[position] if position < len(ascii_uppercase) else str(position + 1)


def pairs(filtered: Any) -> list[float | None] | None:
    """Log-likelihoods if the responses are [log-likelihood, is_greedy] pairs (written as text before 0.4.13, and mostly after)."""
    if not isinstance(filtered, list) or not filtered:
        return None
    found: list[float | None] = []
    for one in filtered:
        pair = one[0] if isinstance(one, list) and len(one) == 1 else one
        if not isinstance(pair, list) or len(pair) != 2 or pair[1] not in _GREEDY or not isinstance(pair[0], str | float | int):
            return None
        try:
            found.append(float(pair[0]))
        except ValueError:
            return None
    return found


def choice(filtered: Any, target: Any, options: Sequence[str] | None, accuracy: float | None, *, mutual: bool = False) -> Choice | None:
    """A multiple choice answer, or None when the responses are something else.

    With acc_mutual_info the second half of the requests is unconditional: it is no option.
    """
    scores = pairs(filtered)
    if scores is None or len(scores) < 2:
        return None
    if mutual and len(scores) % 2 == 0:
        scores = scores[: len(scores) // 2]
    wanted = _targets(target)
    found = [_position(one, options, scores, accuracy) for one in wanted]
    outside = [one for one, place in zip(wanted, found, strict=True) if place is None and whole(one) != _UNKNOWN_GOLD]
    problem = f"target {outside[0]!r} is none of the {len(scores)} options (p_gold is left empty)" if outside else None
    inside = () if problem else tuple(place for place in found if place is not None)
    return Choice(scores, inside, problem)


def _targets(target: Any) -> list[Any]:
    """Targets in every way they are logged: raw up to 0.4.3, then as text, a list as Python writes it."""
    if isinstance(target, str) and target.startswith("[") and target.endswith("]"):
        try:
            target = ast.literal_eval(target)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return [target]
    values = target if isinstance(target, list) else [target]
    return [value for value in values if value is not None]


def _position(target: Any, options: Sequence[str] | None, scores: Sequence[float | None], accuracy: float | None) -> int | None:
    """Position of a target that is an index, an option's text, or a letter; where two readings differ, the one that acc confirms."""
    readings = []
    index = whole(target)
    if index is not None:
        readings.append(index)
    if isinstance(target, str):
        if options:
            readings.extend(place for place, option in enumerate(options) if option.strip() == target.strip())
        if len(target) == 1 and target in ascii_uppercase:
            readings.append(ascii_uppercase.index(target))
    inside = [one for one in dict.fromkeys(readings) if 0 <= one < len(scores)]
    if len(inside) > 1 and accuracy in {0.0, 1.0}:
        top = best(scores)
        confirmed = [one for one in inside if (one == top) == bool(accuracy)]
        inside = confirmed or inside
    return inside[0] if inside else None
