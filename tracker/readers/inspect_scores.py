"""Scores of an Inspect log: what their values mean, and which score is the one that says right or wrong."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from tracker.readers.lm_rules import has_other_scale
from tracker.readers.values import NOTHING, Number, number

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

OLD_NAME = "score"
"""Name of the one score that samples of early 2024 had, where the header does not name it."""
_LETTERS = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}
_WORDS = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
_MOST_WORDS = 50


class Value(NamedTuple):
    """A single value: its number, and whether it is a verdict (C, I, P, N, yes, no, true, false), one of the letters, or a word without a number."""

    number: Number
    verdict: bool = False
    letter: bool = False
    word: str | None = None


def meaning(value: Any) -> Value:
    """What a score's value means, by the framework's own rule, except that a word it does not know is nothing and not 0."""
    if isinstance(value, bool):
        return Value(Number(float(value), None), verdict=True)
    if isinstance(value, str):
        verdict = _LETTERS.get(value)
        if verdict is not None:
            return Value(Number(verdict, None), verdict=True, letter=True)
        verdict = _WORDS.get(value.lower())
        if verdict is not None:
            return Value(Number(verdict, None), verdict=True)
        found = number(value)
        return Value(found) if found != NOTHING else Value(NOTHING, word=value)
    return Value(number(value))


def values_of(sample: Mapping[str, Any], old_name: str = OLD_NAME) -> Iterator[tuple[str, Any]]:
    """Scores of a sample by name; the parts of an object or list are `scorer.key`."""
    told = sample.get("scores")
    if told is None and sample.get("score") is not None:
        told = {old_name: sample["score"]}
    for scorer, score in told.items() if isinstance(told, dict) else ():
        value = score.get("value") if isinstance(score, dict) else score
        name = str(scorer).rpartition("/")[2] or str(scorer)
        if isinstance(value, dict):
            yield from ((f"{name}.{key}", one) for key, one in value.items())
        elif isinstance(value, list):
            yield from ((f"{name}.{at}", one) for at, one in enumerate(value))
        else:
            yield name, value


@dataclass(slots=True)
class Profile:
    """The values that a score takes in a log."""

    verdicts: int = 0
    letters: int = 0
    numbers: int = 0
    not_numbers: int = 0
    outside: bool = False
    between: bool = False
    words: Counter[str] = field(default_factory=Counter)

    def learn(self, value: Any) -> None:
        """One more value."""
        told = meaning(value)
        if told.word is not None:
            self.words[told.word[:100]] += 1
        elif told.number.special is not None:
            self.not_numbers += told.number.special == "nan"
            self.outside = self.outside or told.number.special != "nan"
        elif told.number.value is not None:
            self.verdicts += told.verdict
            self.letters += told.letter
            self.numbers += not told.verdict
            self.outside = self.outside or not 0 <= told.number.value <= 1
            self.between = self.between or (not told.verdict and told.number.value not in {0.0, 1.0})

    def is_share(self, name: str) -> bool:
        """Whether the values say how right an answer is: all in [0, 1], words only as exceptions, no other scale by name."""
        if self.outside or has_other_scale(name) or has_other_scale(name.rpartition(".")[2]):
            return False
        return not self.words or self.words.total() < self.verdicts


@dataclass(slots=True)
class Profiles:
    """All scores of a log."""

    by_name: dict[str, Profile] = field(default_factory=dict)

    def learn(self, samples: Iterable[Any], old_name: str = OLD_NAME) -> None:
        """Scores of some samples, or of their summaries."""
        for sample in samples:
            if isinstance(sample, dict):
                for name, value in values_of(sample, old_name):
                    profile = self.by_name.get(name)
                    if profile is None:
                        profile = self.by_name[name] = Profile()
                    profile.learn(value)

    def primary(self, order: Iterable[str], headline: str | None = None) -> str | None:
        """The score that says right or wrong, of those whose values are a share of right answers (`is_share`).

        It is the one that the task declares as its headline, else the first. Where that one gives numbers, a scorer
        that says C or I goes before it; one that has values goes before one that has only NaN.
        """
        named = [name for name in dict.fromkeys([*order, *self.by_name]) if name in self.by_name]
        shares = {name: one for name in named if (one := self.by_name[name]).is_share(name)}
        if headline in shares:
            return headline
        known = [name for name, one in shares.items() if one.verdicts or one.numbers]
        lettered = [name for name in known if shares[name].letters and "." not in name]
        if known and lettered and not shares[known[0]].verdicts:
            return lettered[0]
        return next(iter([*known, *(name for name, one in shares.items() if one.not_numbers)]), None)

    def words(self) -> dict[str, dict[str, int]]:
        """How often scores took values that are no numbers."""
        return {name: dict(one.words.most_common(_MOST_WORDS)) for name, one in self.by_name.items() if one.words}
