"""The question inside an EvalScope prompt: the task configuration keeps the template that was filled in."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import lru_cache
from string import Formatter, ascii_uppercase
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_WRAPPED = re.compile(r"Answer the following multiple choice question[^\n]*\n[^\S\n]*\n")
_WRAPPED_CHOICES = re.compile(r"\n[^\S\n]*\n(?=A\) )")
_CHOICE = re.compile(r"^[ \t]*([A-Z])\)[ \t]?", re.MULTILINE)
_FIRST_CHOICE = re.compile(r"^[ \t]*A\) ", re.MULTILINE)
_LETTERS = re.compile(r"\s*[A-Z](?: ?, ?[A-Z])*")
_ASKED = frozenset({"question", "query"})
LONGEST = 100_000
"""A longer prompt is kept as it is."""
ENOUGH_PROMPTS = 3
"""So many prompts must agree before what they begin with is taken for the shots."""


class Asked(NamedTuple):
    """What a prompt asks."""

    text: str | None = None
    options: list[str] | None = None
    image: str | None = None


@dataclass(frozen=True, slots=True)
class Template:
    """A prompt template as literal texts and the fields behind them; `shots` is what every prompt of a subset begins with."""

    pieces: tuple[tuple[str, str | None], ...] = ()
    """Literal text and the field behind it; no field behind the last one."""
    behind: bool = False
    """Whether something of unknown length stands before what the template gives."""
    boundary: str | None = None
    """What stands between the shots and the rest, where the template has shots."""

    def asked(self, messages: Any, shots: str = "") -> Asked:
        """The question of a conversation's last user message."""
        prompt, image = said_by(messages, "user")
        if prompt is None:
            return Asked(image=image)
        body = prompt[len(shots) :] if shots and prompt.startswith(shots) else prompt
        if self.boundary is not None and not shots:
            return Asked(prompt, None, image)
        bare = body.strip() if len(body) <= LONGEST else ""
        found = self.fields(bare) or _wrapped(bare)
        if found is None:
            return Asked(prompt, None, image)
        options = split_choices(found["choices"]) if found.get("choices") else None
        if found.get("choices") and options is None:
            return Asked(prompt, None, image)
        return Asked((found.get("question") or "").strip() or prompt, options, image)

    def fields(self, text: str) -> dict[str, str] | None:
        """The question and the choices that were filled in; nothing where the template does not fit, or fits in more than one way.

        White space of the literal texts may differ. The time grows with the length of the text alone.
        """
        if not self.pieces or not text:
            return None
        end = _ending(text, self.pieces[-1][0].split())
        opening = self.pieces[0][0].split()
        at = _last(text, opening) if self.behind else _beginning(text, 0, opening)
        found: dict[str, str] = {}
        for (_, name), (literal, following) in zip(self.pieces, self.pieces[1:], strict=False):
            if at is None or end is None or at > end:
                return None
            place = _next(text, (at, end), name, literal, following)
            if place is None:
                return None
            value, at = text[at : place[0]].strip(), place[1]
            if name == "choices" and not value.startswith("A) "):
                return None
            found.setdefault("question" if name in _ASKED else str(name), value)
        return found

    def shots(self, prompts: Sequence[str]) -> str:
        """What all prompts of a subset begin with, up to the end of the shots; empty where there are none or too few prompts."""
        if self.boundary is None or len(prompts) < ENOUGH_PROMPTS:
            return ""
        first, last = min(prompts), max(prompts)
        common = next((place for place, letter in enumerate(first) if place >= len(last) or letter != last[place]), len(first))
        end = first.rfind(self.boundary, 0, common)
        return first[: end + len(self.boundary)] if end >= 0 else ""


def template_of(arguments: Mapping[str, Any]) -> Template:
    """The template of a benchmark's own arguments: the one with shots where shots were given."""
    number, text = arguments.get("few_shot_num"), arguments.get("prompt_template")
    shots = isinstance(number, int) and number > 0
    own = arguments.get("few_shot_prompt_template") if shots else None
    if isinstance(own, str) and own:
        return _template(own)
    return _template(text, before=shots) if isinstance(text, str) else Template()


def _template(text: str, *, before: bool = False) -> Template:
    """`before` says that shots were put before what the template gives."""
    try:
        pieces = [(literal, name) for literal, name, _, _ in Formatter().parse(text.strip())]
    except ValueError:
        return Template()
    names = [name for _, name in pieces if name is not None]
    if "question" not in names and "query" not in names:
        return Template()
    boundary = None
    if "fewshot" in names:
        place = next(at for at, (_, name) in enumerate(pieces) if name == "fewshot")
        boundary = pieces[place + 1][0] if place + 1 < len(pieces) and pieces[place + 1][0] else None
        if boundary is None:
            return Template()
        pieces = [("", pieces[place + 1][1]), *pieces[place + 2 :]]
    elif before and not pieces[0][0].strip():
        boundary = "\n\n"
    joined: list[tuple[str, str | None]] = []
    held = ""
    for literal, name in pieces:
        held += literal
        if name is not None and name != "fewshot":
            joined.append((held, name))
            held = ""
    return Template((*joined, (held, None)), before and boundary is None, boundary)


def _next(text: str, part: tuple[int, int], name: str | None, literal: str, following: str | None) -> tuple[int, int | None] | None:
    """Where a field ends and where the next one begins."""
    at, end = part
    words = literal.split()
    if name == "letters":
        letters = _LETTERS.match(text, at, end)
        return None if letters is None else (letters.end(), _beginning(text, letters.end(), words))
    if following is None:
        return end, end
    if words:
        return _only(text, part, literal, words)
    if following != "choices":
        return None
    *_, last = (None, *_FIRST_CHOICE.finditer(text, at, end))
    return None if last is None else (last.start(), last.start())


def _only(text: str, part: tuple[int, int], literal: str, words: Sequence[str]) -> tuple[int, int] | None:
    """The one place of a literal text; of several the one that has its white space too."""
    places = [(one.start(), one.end()) for one in _spaced(words).finditer(text, *part)]
    if len(places) > 1:
        place = text.find(literal, *part)
        alone = place >= 0 and text.find(literal, place + 1, part[1]) < 0
        return (place, place + len(literal)) if alone else None
    return places[0] if places else None


def _beginning(text: str, at: int, words: Sequence[str]) -> int | None:
    """Where a text that begins with words goes on."""
    found = re.compile(rf"\s*{_spaced(words).pattern}").match(text, at)
    return found.end() if found is not None else None


def _last(text: str, words: Sequence[str]) -> int | None:
    *_, last = (None, *_spaced(words).finditer(text))
    return last.end() if last is not None else None


def _ending(text: str, words: Sequence[str]) -> int | None:
    """Where the words begin that a text ends with."""
    end = len(text.rstrip())
    for place, word in enumerate(reversed(words)):
        if place:
            bare = len(text[:end].rstrip())
            if bare == end:
                return None
            end = bare
        if not text.endswith(word, 0, end):
            return None
        end -= len(word)
    return end


@lru_cache(maxsize=256)
def _pattern(words: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(r"\s+".join(re.escape(word) for word in words))


def _spaced(words: Sequence[str]) -> re.Pattern[str]:
    """Words with any white space between them."""
    return _pattern(tuple(words))


def _wrapped(text: str) -> dict[str, str] | None:
    """Question and choices of the framework's usual prompt."""
    opening = _WRAPPED.match(text)
    choices = _WRAPPED_CHOICES.search(text, opening.end()) if opening is not None else None
    if opening is None or choices is None:
        return None
    return {"question": text[opening.end() : choices.start()].strip(), "choices": text[choices.end() :]}


def said_by(messages: Any, role: str) -> tuple[str | None, str | None]:
    """Text and image of the last message of a role; several images are no single image."""
    if not isinstance(messages, list):
        return None, None
    last = next((one for one in reversed(messages) if isinstance(one, dict) and one.get("role") == role), None)
    content = last.get("content") if last is not None else None
    if isinstance(content, str):
        return content, None
    if not isinstance(content, list):
        return None, None
    parts = [one for one in content if isinstance(one, dict)]
    words = [one["text"] for one in parts if isinstance(one.get("text"), str)]
    images = [one["image"] for one in parts if isinstance(one.get("image"), str)]
    return "\n".join(words) if words else None, _image_key(images[0]) if len(images) == 1 else None


def split_choices(text: str) -> list[str] | None:
    """Options of lines `A) red`, `B) blue`: an option may go on over several lines."""
    found: list[re.Match[str]] = []
    for match in _CHOICE.finditer(text):
        if len(found) < len(ascii_uppercase) and match[1] == ascii_uppercase[len(found)]:
            found.append(match)
    if len(found) < 2:
        return None
    ends = [*(one.start() for one in found[1:]), len(text)]
    return [text[one.end() : end].strip() for one, end in zip(found, ends, strict=True)]


def _image_key(image: str) -> str:
    """An image's address; one that is in the file itself by its hash."""
    return f"sha256:{hashlib.sha256(image.encode('utf-8', 'replace')).hexdigest()[:32]}" if image.startswith("data:") else image
