"""What can still be read of a `.json` log that is cut off or damaged: its header, and the samples before the damage."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from tracker.readers.lines import clean

if TYPE_CHECKING:
    from pathlib import Path

_SPACE = " \t\r\n"


def salvaged(path: Path, problem: str) -> tuple[dict[str, Any] | None, str]:
    """The log up to the damage and what to say of it; no log where not even its `eval` is complete."""
    words = path.read_bytes().removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace")
    document: dict[str, Any] = {}
    with suppress(ValueError, IndexError, RecursionError):
        _fill(document, words)
    if not isinstance(document.get("eval"), dict):
        return None, problem
    samples = document.get("samples")
    count = len(samples) if isinstance(samples, list) else 0
    return clean(document), f"damaged: {problem}; {count} samples before that are read (copy the log again from where it was written)"


def _fill(document: dict[str, Any], words: str) -> None:
    """Add the members of an object to a dictionary, those of `samples` one by one, until something is wrong."""
    decoder = json.JSONDecoder()
    at = _after(words, 0, "{")
    while True:
        key, at = decoder.raw_decode(words, _skip(words, at))
        at = _skip(words, _after(words, at, ":"))
        if key == "samples" and words[at] == "[":
            samples: list[Any] = document.setdefault("samples", [])
            at += 1
            while words[_skip(words, at)] != "]":
                value, at = decoder.raw_decode(words, _skip(words, at))
                samples.append(value)
                at = _skip(words, at)
                at += words[at] == ","
            at = _skip(words, at) + 1
        else:
            document[key], at = decoder.raw_decode(words, at)
        at = _after(words, at, ",")


def _skip(words: str, at: int) -> int:
    while words[at] in _SPACE:
        at += 1
    return at


def _after(words: str, at: int, sign: str) -> int:
    at = _skip(words, at)
    if words[at] != sign:
        raise ValueError(sign)
    return at + 1
