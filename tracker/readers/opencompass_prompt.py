"""What a prompt of OpenCompass asks, where it can be told from what stands around it.

Prompts are written with their examples and instructions. Only what is certain is taken off; else the whole prompt is the text.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from tracker.readers.lm_samples import question_of
from tracker.readers.values import json_text, text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FEWEST = 5
"""So many prompts must begin alike before what they share counts as instruction."""
_OPTION = re.compile(r"^[ \t]*\(?([A-Z])[.):][ \t]+(.*?)[ \t]*$", re.MULTILINE)
_ANSWERED = re.compile(r"\s*\(?[A-Z]\)?\.?[ \t]*\n+(?P<question>.+)", re.DOTALL)
_ASKING = frozenset({"human", "user"})


class Asked(NamedTuple):
    """A question's text and its options."""

    text: str | None
    options: list[str] | None = None


def asked(prompt: Any, before: str = "") -> Asked:
    """A question out of a prompt: the last turn of a conversation, the last of several questions that are alike."""
    words = last_turn(prompt)
    if words is None:
        return Asked(None)
    body = words.removeprefix(before).strip()
    return _last_question(body) or _single(body)


def last_turn(prompt: Any) -> str | None:
    """A prompt as text: of a conversation what the user says last."""
    if not isinstance(prompt, list):
        return text(prompt)
    turns = [one for one in prompt if isinstance(one, dict)]
    mine = [one for one in turns if str(one.get("role", "")).lower() in _ASKING] or turns
    if not mine:
        return json_text(prompt) if prompt else None
    return text(next((mine[-1][name] for name in ("prompt", "content") if mine[-1].get(name) is not None), None))


def beginning(prompts: Sequence[str]) -> str:
    """The whole lines with which all prompts begin: an instruction."""
    if len(prompts) < FEWEST or len(set(prompts)) < FEWEST:
        return ""
    shared = _shared(prompts)
    return shared[: shared.rfind("\n") + 1]


def choices(prompts: Sequence[str], before: str) -> Asked:
    """A question out of the prompts that end with one option each: lettered lines, else what the prompts go on with."""
    bodies = [one.removeprefix(before) for one in prompts]
    first = _single(bodies[0].strip())
    if first.options is not None and len(first.options) == len(bodies):
        return first
    shared = _shared(bodies)
    shared = shared if all(len(shared) == len(one) or one[len(shared)].isspace() for one in bodies) else shared[: _last_gap(shared)]
    rests = [one[len(shared) :].strip() for one in bodies]
    words = shared.strip()
    if not words:
        return Asked(None)
    return Asked(words, rests if all(rests) and len(set(rests)) == len(rests) else None)


def _shared(texts: Sequence[str]) -> str:
    """With what all texts begin: what the first and the last in alphabetical order begin with."""
    first, last = min(texts), max(texts)
    size = next((place for place, pair in enumerate(zip(first, last, strict=False)) if pair[0] != pair[1]), len(first))
    return first[:size]


def _last_gap(words: str) -> int:
    return len(words.rstrip()) - len((words.split() or [""])[-1]) if words and not words[-1].isspace() else len(words)


def _single(body: str) -> Asked:
    found = question_of(body)
    return Asked(found.text, [one[2] for one in _lettered(body)[0]] if found.options is not None and len(_lettered(body)) == 1 else None)


def _last_question(body: str) -> Asked | None:
    """The last of several questions with lettered options, where what lies between two of them is an answer and the next question."""
    runs = _lettered(body)
    if len(runs) < 2 or len(runs[-1]) < 2 or len(runs[-2]) < 2:
        return None
    closing = body[runs[-1][-1].end() :].strip()
    between = body[runs[-2][-1].end() : runs[-1][0].start()].strip()
    match = _ANSWERED.fullmatch(between[len(closing) :]) if closing and between.startswith(closing) else None
    return Asked(match["question"].strip(), [one[2] for one in runs[-1]]) if match else None


def _lettered(body: str) -> list[list[re.Match[str]]]:
    """Runs of lettered lines A, B, C, ..."""
    runs: list[list[re.Match[str]]] = []
    for match in _OPTION.finditer(body):
        if match[1] == "A":
            runs.append([match])
        elif runs and match[1] == chr(ord(runs[-1][-1][1]) + 1):
            runs[-1].append(match)
    return [run for run in runs if len(run) > 1]


def labels_of(row: Mapping[str, Any]) -> list[str]:
    """The options that a row has scores of, in order."""
    return [name.removeprefix("label: ") for name, value in row.items() if name.startswith("label: ") and isinstance(value, dict)]
