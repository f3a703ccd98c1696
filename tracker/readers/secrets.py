"""What gives access to something is not kept: values named like a key, password, secret or token, logins in addresses, keys known by their form."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

HIDDEN = "***"
"""What stands in place of a secret."""
_NAME = re.compile(
    r"(?:^|[^a-z0-9])(?:api_?key|access_?key(?:_id)?|secret(?:_?key)?|private_?key|password|passwd|passphrase|token|authorization|credentials?)$"
)
_NO_SECRET = re.compile(
    r"(?:^|_)(?:eos|bos|pad|unk|sep|cls|mask|stop|start|end|begin|image|img|video|audio|vision|special|separator|think|first|last|next|per|eot|eod|eom)_token$"
)
"""Tokens that a model reads."""
_FLAG = re.compile(r"--?[a-z][\w.-]*(?:key|token|secret|password)")
"""Options of a command line whose value is a secret."""
_GIVEN = re.compile(
    r"([\w.-]*(?:key|key_id|secret|password|passwd|passphrase|token|authorization|credentials?))=([^,;&\s]+)", re.IGNORECASE
)
_FLAGGED = re.compile(rf"(?:(?<=\s)|^)({_FLAG.pattern})(\s+)(\S+)", re.IGNORECASE)
_LOGIN = re.compile(r"(\w://)[^/\s@?#]+@")
_FORM = re.compile(
    r"\b(?:sk-[\w-]{16,}|hf_[A-Za-z0-9]{20,}|gh[opsur]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{20,}|AKIA[A-Z0-9]{16}|AIza[\w-]{30,}|xox[abprs]-[\w-]{10,})"
)
"""Keys that are known by their form."""
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


@lru_cache(maxsize=8192)
def is_secret(name: str) -> bool:
    """Whether values of a name give access to something: `OPENAI_API_KEY`, `model.token`, `client_secret`; not `eos_token`."""
    plain = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower().replace("-", "_")
    return _NAME.search(plain) is not None and _NO_SECRET.search(plain) is None


def masked(value: Any, also: frozenset[str] = frozenset()) -> Any:
    """A JSON value to be kept: without secrets, and without the memory addresses of functions (they mean nothing).

    `also` are further names of secrets, for formats in which a plain word is one.
    """
    if isinstance(value, str):
        return _ADDRESS.sub("", value) if value.startswith("<") else masked_text(value)
    if isinstance(value, dict):
        return {str(name): _entry(str(name), one, also) for name, one in value.items()}
    if isinstance(value, list | tuple):
        flagged = [False, *(isinstance(one, str) and _FLAG.fullmatch(one.lower()) is not None for one in value)]
        return [HIDDEN if hide and isinstance(one, str) else masked(one, also) for hide, one in zip(flagged, value, strict=False)]
    return value


def masked_text(text: str) -> str:
    """A text without the secrets in it: arguments, flags, logins in addresses, keys that are known by their form."""
    if "=" in text:
        text = _GIVEN.sub(_without, text)
    if "-" in text:
        text = _FLAGGED.sub(rf"\1\2{HIDDEN}", text)
    if "://" in text and "@" in text:
        text = _LOGIN.sub(rf"\1{HIDDEN}@", text)
    return _FORM.sub(HIDDEN, text)


def _without(given: re.Match[str]) -> str:
    name = given[1]
    return f"{name}={HIDDEN}" if is_secret(name.lstrip("-")) or _FLAG.fullmatch(name.lower()) else given[0]


def _entry(name: str, value: Any, also: frozenset[str]) -> Any:
    if (name in also or is_secret(name)) and value:
        if isinstance(value, str):
            return HIDDEN
        if isinstance(value, list | tuple) and any(isinstance(one, str) for one in value):
            return HIDDEN
    return masked(value, also)
