"""The question inside an EvalScope prompt: the task configuration keeps the template that was filled in."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from string import Formatter, ascii_uppercase
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_WRAPPED = re.compile(
    r"\AAnswer the following multiple choice question[^\n]*\n\s*\n(?P<question>.*?)\n\s*\n(?P<choices>A\) .*)\Z", re.DOTALL
)
_CHOICE = re.compile(r"^[ \t]*([A-Z])\)[ \t]?", re.MULTILINE)
_PARTS = {
    "question": r"(?P<question>.*)",
    "query": r"(?P<question>.*)",
    "choices": r"(?P<choices>[ \t]*A\) .*)",
    "letters": r"[A-Z](?: ?, ?[A-Z])*",
    "fewshot": "",
}
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
    """A prompt template as an expression; `shots` is what every prompt of a subset begins with."""

    pattern: re.Pattern[str] | None = None
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
        match = (self.pattern.fullmatch(bare) if self.pattern is not None and bare else None) or _WRAPPED.fullmatch(bare)
        if match is None:
            return Asked(prompt, None, image)
        found = match.groupdict()
        options = split_choices(found["choices"]) if found.get("choices") else None
        if found.get("choices") and options is None:
            return Asked(prompt, None, image)
        return Asked((found.get("question") or "").strip() or prompt, options, image)

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
    seen: set[str] = set()
    made = r".*" if before and boundary is None else ""
    for literal, name in pieces:
        made += _loose(literal)
        if name is not None:
            part = _PARTS.get(name, r".*?")
            made += part if name not in seen else r".*?"
            seen |= {name}
    return Template(re.compile(_stripped(made), re.DOTALL), boundary)


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


def _loose(literal: str) -> str:
    """The literal text, with any white space where it has some."""
    words = [re.escape(word) for word in literal.split()]
    if not words:
        return r"\s+" if literal else ""
    return (r"\s*" if literal[0].isspace() else "") + r"\s+".join(words) + (r"\s*" if literal[-1].isspace() else "")


def _stripped(pattern: str) -> str:
    return r"\s*" + pattern + r"\s*"
