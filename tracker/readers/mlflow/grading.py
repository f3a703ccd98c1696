"""Which of several scores of an answer says whether it is right: one rule for evaluation tables and for assessed traces."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from tracker.readers.lm_rules import has_other_scale
from tracker.readers.values import is_number, number, truth

if TYPE_CHECKING:
    from collections.abc import Iterable

RIGHT_NAMES = (
    "correct", "is_correct", "correctness", "exact_match", "em", "hit", "match", "is_match", "passed", "pass", "accuracy", "acc", "success",
)  # fmt: skip
"""Names of scores that say right or wrong, in order."""
_WORDS = {"yes": True, "no": False, "pass": True, "fail": False, "passed": True, "failed": False, "correct": True, "incorrect": False}
_ENDS = ("/v1", "/v2", "/score", "/value", "_score")
Kind = Literal["truth", "share", "number"]


class Score(NamedTuple):
    """A single score: right or wrong where it says so, and its number."""

    correct: bool | None
    value: float | None


@cache
def plain_name(name: str) -> str:
    """A score's name without version and other ends: exact_match/v1/score is exact_match."""
    short = name.strip().lower().replace(" ", "_").replace("-", "_")
    while (end := next((one for one in _ENDS if short.endswith(one) and len(short) > len(one)), None)) is not None:
        short = short.removesuffix(end)
    return short


@cache
def rank(name: str) -> int | None:
    """Place of a name among those that say right or wrong."""
    short = plain_name(name)
    return RIGHT_NAMES.index(short) if short in RIGHT_NAMES else None


def said(value: Any) -> bool | None:
    """Right or wrong in whatever words (true, yes, pass, correct, 1, ...)."""
    if isinstance(value, str):
        word = _WORDS.get(value.strip().lower())
        return truth(value) if word is None else word
    return truth(value)


def kind_of(name: str, values: Iterable[Any]) -> Kind | None:
    """What a score's values are: right or wrong, a share from 0 to 1, or some other number; None for anything else."""
    told = [value for value in values if value is not None and value == value and value != ""]  # noqa: PLR0124 - NaN
    if not told:
        return None
    if all(said(value) is not None for value in told):
        return "truth"
    numbers = [number(value) for value in told]
    if any(one == (None, None) for one in numbers):
        return None
    inside = all(one.value is not None and 0 <= one.value <= 1 for one in numbers)
    return "share" if inside and not has_other_scale(plain_name(name)) else "number"


def score(value: Any, kind: Kind | None) -> Score:
    """One value of a score of a kind. A number among values that are right or wrong (later than those that told the kind) is a number."""
    if kind == "truth" and (right := said(value)) is not None:
        return Score(right, float(right))
    return Score(None, number(value).value) if kind is not None else Score(None, None)


def is_odd(value: Any) -> bool:
    """Whether there is a value that is neither right or wrong nor a number."""
    return not is_number(value) and said(value) is None
