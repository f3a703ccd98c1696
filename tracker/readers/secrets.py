"""What gives access to something is not kept: values named like a key, password, secret or token, logins in addresses, keys known by their form."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any

HIDDEN = "***"
"""What stands in place of a secret."""
_NAME = re.compile(
    r"(?:^|[^a-z0-9])(?:api_?keys?|access_?keys?(?:_ids?)?|secrets?(?:_?keys?)?|private_?keys?|passwords?|passwd|pwd|pass|passphrase|token|bearer|jwt"
    r"|(?:api|auth|access|bearer|refresh|session|hf|hugging_?face|github|gitlab|openai|wandb)_?tokens"
    r"|o?auth|authorization|credentials?|cookies?|sig|connection_?string|conn_?str|dsn)$"
    r"|[a-z0-9]_key$"
)
_NO_SECRET = re.compile(
    r"(?:^|_)(?:eos|bos|pad|unk|sep|cls|mask|stop|start|end|begin|image|img|video|audio|vision|special|separator|think|first|last|next|per|eot|eod|eom"
    r"|max|min|num|n|total|new|input|output|prompt|completion|generated)_token$"
    r"|(?:^|[^a-z0-9])(?:primary|foreign|question|score|image|img|pair|sort|group|cache|public|partition|row|column|field|map|metric|config|task|model"
    r"|prompt|query|choices?|options?|labels?|text|target|input|output|gold|answer|response|reference|pred|prediction|data|dataset|doc|item|record|result"
    r"|id|index|unique|join|lookup|dict|json|split|subset|category|pad|hot|cross|main|sub|is|no|by|on|audio|video|media|state|context|instruction"
    r"|rating|judge_score|message|messages|content|name|run|sample|source|feature|hash|content_hash|document|value|key)_key$"
    r"|(?:^|_)(?:first|second|single|multi|two|one|forward|backward|n|num|k|tests?|max|per)_pass$"
)
"""Tokens that a model reads, keys of tables and objects, passes over data."""
_COUNTS = re.compile(r"(?:tokens?|pass)$")
"""Names under which a number counts something."""
_FLAG = re.compile(r"--?[a-z][\w.-]{0,200}", re.IGNORECASE)
_FLAG_ENDS = ("key", "token", "secret", "password")
_NAMED = re.compile(r"(?<![\w.-])([\w.-]{1,200})(\\*[\"']?[ \t]{0,3}[:=][ \t]{0,3}|[ \t]+(?=\S))")
"""A name and what stands between it and its value; only after the option of a command line that is white space alone."""
_VALUE = re.compile(r"(?:(?:bearer|basic|token|digest)[ \t]+)?[^,;&\s]+", re.IGNORECASE)
_LINE = re.compile(r"[^\n\"']+")
_QUOTE = re.compile(r"\\*[\"']")
_QUOTED = {'"': re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL), "'": re.compile(r"'(?:[^'\\]|\\.)*'", re.DOTALL)}
_BRACKET = re.compile(r"[\[\]{}]")
_HEADERS = ("cookie", "authorization")
"""Headers whose value goes on to the end of the line."""
_LOGIN = re.compile(r"(\w://)[^/\s?#]+@")
_SIGNED = re.compile(r"([?&](?:[\w-]{1,40}[-_])?(?:sig|signature)=)[^&\s\"']+", re.IGNORECASE)
_BEARER = re.compile(r"\b(Bearer[ \t]+)[^\s\"',;]+|\b(bearer[ \t]+)[\w.~+/=-]{16,}")
_FORM = re.compile(
    r"\b(?:sk-[\w-]{16,}|hf_[A-Za-z0-9]{20,}|gh[opsur]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{20,}|AKIA[A-Z0-9]{16}|AIza[\w-]{30,}|xox[abprs]-[\w-]{10,})"
)
"""Keys that are known by their form."""
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_LONGEST_JSON = 1 << 20
_LONGEST_COUNT = 7


@lru_cache(maxsize=8192)
def is_secret(name: str) -> bool:
    """Whether values of a name give access to something: `OPENAI_API_KEY`, `model.token`, `client_secret`; not `eos_token`, `question_key`."""
    plain = _plain(name)
    return _NAME.search(plain) is not None and _NO_SECRET.search(plain) is None


def hides(name: str, value: Any) -> bool:
    """Whether a value is hidden for its name: any text, number, list or object that is not empty; truth values and counts of tokens are kept."""
    return is_secret(name) and _tells(value, counts=_COUNTS.search(_plain(name)) is not None)


def masked(value: Any, also: frozenset[str] = frozenset()) -> Any:
    """A JSON value to be kept: without secrets, and without the memory addresses of functions (they mean nothing).

    `also` are further names of secrets, for formats in which a plain word is one.
    """
    if isinstance(value, str):
        return _ADDRESS.sub("", value) if value.startswith("<") else masked_text(value)
    if isinstance(value, dict):
        return {str(name): _entry(str(name), one, also) for name, one in value.items()}
    if isinstance(value, list | tuple):
        flagged = [False, *(isinstance(one, str) and _FLAG.fullmatch(one) is not None and _is_flag(one) for one in value)]
        return [HIDDEN if hide and _is_given(one) else masked(one, also) for hide, one in zip(flagged, value, strict=False)]
    return value


def masked_text(text: str) -> str:
    """A text without the secrets in it: arguments, flags, logins in addresses, keys that are known by their form; also in JSON as text."""
    if text[:1] in {"{", "["} and len(text) <= _LONGEST_JSON:
        told = _masked_json(text)
        if told is not None:
            return told
    if "://" in text:
        text = _SIGNED.sub(rf"\1{HIDDEN}", _LOGIN.sub(rf"\1{HIDDEN}@", text))
    if "=" in text or ":" in text or "-" in text:
        text = _without(text)
    if "earer" in text:
        text = _BEARER.sub(lambda found: f"{found[1] or found[2]}{HIDDEN}", text)
    return _FORM.sub(HIDDEN, text)


def _plain(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower().replace("-", "_")


def _tells(value: Any, *, counts: bool) -> bool:
    if value is None or isinstance(value, bool) or not value:
        return False
    if isinstance(value, list | tuple):
        return any(_tells(one, counts=counts) for one in value)
    if isinstance(value, int | float):
        return not counts
    if isinstance(value, str) and counts:
        return not (value.isdecimal() and len(value) <= _LONGEST_COUNT)
    return True


def _is_flag(flag: str) -> bool:
    """Whether an option of a command line has a secret for its value."""
    name = _plain(flag.lstrip("-"))
    return flag.startswith("-") and (is_secret(name) or (name.endswith(_FLAG_ENDS) and _NO_SECRET.search(name) is None))


def _is_given(value: Any) -> bool:
    """Whether what follows an option is its value, and no further option."""
    return isinstance(value, str | int | float) and not isinstance(value, bool) and not str(value).startswith("--")


def _masked_json(text: str) -> str | None:
    """JSON as text without secrets; as it was where it holds none; nothing where it is no JSON."""
    try:
        value = json.loads(text)
        told = masked(value)
        return json.dumps(told, ensure_ascii=False) if told != value else text
    except (ValueError, RecursionError):
        return None


def _without(text: str) -> str:
    """A text without the values of secret names; what it takes grows with the length alone, whatever the text is."""
    kept: list[str] = []
    start = at = 0
    while (found := _NAMED.search(text, at)) is not None:
        name, between, at = found[1], found[2], found.end()
        if between.isspace() and (not _FLAG.fullmatch(name) or text.startswith("--", at)):
            continue
        bare = name.lstrip("-")
        if not (is_secret(bare) or _is_flag(name)):
            continue
        end = _end_of_value(text, at, line=":" in between and bare.lower().endswith(_HEADERS))
        value = text[at:end]
        if end == at or (is_secret(bare) and not hides(bare, value)):
            continue
        quote = _QUOTE.match(value)
        kept += [text[start:at], f"{quote[0]}{HIDDEN}{quote[0]}" if quote else HIDDEN]
        start = at = end
    return "".join([*kept, text[start:]]) if kept else text


def _end_of_value(text: str, at: int, *, line: bool) -> int:
    """Where a value ends: quoted ones with their quotes, objects and lists as a whole, else before white space or a separator."""
    quote = _QUOTE.match(text, at)
    if quote is not None:
        quoted = _QUOTED.get(quote[0])
        closed = quoted.match(text, at) if quoted is not None else None
        if closed is not None:
            return closed.end()
        end = text.find(quote[0], quote.end()) if quoted is None else -1
        return end + len(quote[0]) if end >= 0 else len(text)
    if text[at : at + 1] in {"{", "["}:
        return _closed(text, at)
    bare = (_LINE if line else _VALUE).match(text, at)
    return at if bare is None else at + len(bare[0].rstrip(")]}\"'" + ("" if line else "\\")))


def _closed(text: str, at: int) -> int:
    depth = 0
    for found in _BRACKET.finditer(text, at):
        depth += 1 if found[0] in "[{" else -1
        if depth == 0:
            return found.end()
    return len(text)


def _entry(name: str, value: Any, also: frozenset[str]) -> Any:
    if hides(name, value):
        return HIDDEN
    if (
        name in also
        and value
        and (isinstance(value, str) or (isinstance(value, list | tuple) and any(isinstance(one, str) for one in value)))
    ):
        return HIDDEN
    return masked(value, also)
