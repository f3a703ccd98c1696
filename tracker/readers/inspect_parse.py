"""A sample of an Inspect log as JSON bytes: parsed without its transcript, which is most of it and is not wanted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from tracker.errors import InputError
from tracker.readers.lines import json_value

if TYPE_CHECKING:
    from collections.abc import Iterator

ATTACHMENT = "attachment://"
_REFERENCE = ATTACHMENT.encode()


@dataclass(frozen=True, slots=True)
class _Style:
    """How the keys are written around what is left out; each begins with the comma or bracket that ends what stands before."""

    messages: bytes
    output: bytes
    events: bytes
    usage: bytes
    attachments: bytes
    limit: bytes


_COMPACT = _Style(b',"messages":[', b'],"output":{', b',"events":[', b'],"model_usage":{', b',"attachments":{', b',"limit":{')
_PRETTY = _Style(
    b',\n  "messages": [', b'],\n  "output": {', b',\n  "events": [', b'],\n  "model_usage": {', b',\n  "attachments": {', b',\n  "limit": {'
)  # fmt: skip


class _NotThereError(Exception):
    """The bytes are not written as the framework writes them."""


def parse(raw: bytes, where: str) -> Any:
    """A JSON value, NaN tokens included; InputError says where it is broken."""
    try:
        return orjson.loads(raw)
    except ValueError:
        return json_value(raw, where)


def parse_sample(raw: bytes, where: str) -> Any:
    """A sample without its events, and without messages and attachments where they are not needed.

    Pieces are taken out between keys that follow each other in every version. A piece is a complete object, once its
    brackets are put back, only where it begins and ends at the sample's own keys and not at keys of the same name
    further inside; so whatever parses is right, and where one does not parse, the whole sample is parsed.
    """
    try:
        sample: dict[str, Any] = {}
        for piece in _pieces(raw, _PRETTY if raw.startswith(b"{\n") else _COMPACT):
            sample |= parse(piece, where)
    except (_NotThereError, InputError, TypeError):
        return parse(raw, where)
    output = sample.get("output")
    return sample if isinstance(output, dict) and output.get("choices") else parse(raw, where)


def _pieces(raw: bytes, style: _Style) -> Iterator[bytes]:
    messages = raw.find(style.messages)
    output = _found(raw.find(style.output, messages)) if messages > 0 else -1
    events = _found(raw.find(style.events, output))
    usage = _found(raw.rfind(style.usage, events))
    first, second = raw[:messages] + b"}", b"{" + raw[output + 2 : events] + b"}"
    yield first
    yield second
    attachments = raw.find(style.attachments, usage) if _REFERENCE not in first and _REFERENCE not in second else -1
    if attachments < 0:
        yield b"{" + raw[usage + 2 :]
        return
    yield b"{" + raw[usage + 2 : attachments] + b"}"
    limit = raw.rfind(style.limit, attachments)
    if limit > 0 and _is_object(last := b"{" + raw[limit + 1 :]):
        yield last


def _found(at: int) -> int:
    if at <= 0:
        raise _NotThereError
    return at


def _is_object(raw: bytes) -> bool:
    try:
        orjson.loads(raw)
    except ValueError:
        return False
    return True
