"""The YAML that MLflow writes: block mappings and lists of scalars, as its file stores hold them.

Only this much is read, so that no YAML library is needed: no anchors, no merges, no flow collections beyond what is
JSON. Scalars have the types of YAML 1.1, except that dates and times stay text.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

_NULLS = {"", "~", "null", "Null", "NULL"}
_BOOLS = {
    **dict.fromkeys(("true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"), True),
    **dict.fromkeys(("false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"), False),
}
_INT = re.compile(r"[-+]?(?:0b[01_]+|0x[0-9a-fA-F_]+|0[0-7_]+|0|[1-9][0-9_]*)")
_FLOAT = re.compile(r"[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?")
_SPECIAL = re.compile(r"([-+]?)\.(inf|Inf|INF|nan|NaN|NAN)")
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL)
_ESCAPES = {
    "0": "\0", "a": "\a", "b": "\b", "t": "\t", "\t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r", "e": "\x1b", " ": " ", '"': '"',
    "/": "/", "\\": "\\", "N": "\x85", "_": "\xa0", "L": "\u2028", "P": "\u2029",
}  # fmt: skip
_TAG = re.compile(r"![^ \t]*(?:[ \t]+|$)")
_DEEPEST = 100


class YamlError(ValueError):
    """A place that is not what is read here; `line` counts from 1."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


def parse(text: str) -> Any:
    """The value of a YAML document; YamlError says where it is broken."""
    reader = _Reader(text.removeprefix("\ufeff"))
    try:
        value = reader.block(0, 0)
    except YamlError:
        raise
    except (ValueError, OverflowError) as err:
        raise YamlError(reader.at + 1, str(err)) from err
    reader.skip()
    if reader.at < len(reader.lines):
        raise YamlError(reader.at + 1, "expected a key and a value")
    return value


def scalar(text: str) -> Any:
    """The value of a plain (unquoted) scalar."""
    if text in _NULLS:
        return None
    if text in _BOOLS:
        return _BOOLS[text]
    if _INT.fullmatch(text):
        return _whole(text)
    if _FLOAT.fullmatch(text):
        return float(text.replace("_", ""))
    special = _SPECIAL.fullmatch(text)
    if special:
        return math.nan if special[2].lower() == "nan" else float(f"{special[1]}inf")
    return text


def _whole(text: str) -> Any:
    plain = text.replace("_", "")
    sign, digits = (-1, plain[1:]) if plain[0] == "-" else (1, plain.lstrip("+"))
    base = {"0b": 2, "0x": 16}.get(digits[:2], 8 if len(digits) > 1 and digits[0] == "0" else 10)
    try:
        return sign * int(digits[2:] if base in {2, 16} else digits, base)
    except ValueError:  # nothing behind the prefix, or more digits than Python reads
        return text


class _Reader:
    def __init__(self, text: str) -> None:
        self.lines = re.split(r"\r\n|\r|\n", text)
        self.at = 0

    def skip(self) -> None:
        """Pass blank lines, comments and document marks."""
        while self.at < len(self.lines):
            bare = self.lines[self.at].strip(" \t")
            if bare and not bare.startswith("#") and not re.fullmatch(r"---|\.\.\.|%.*", self.lines[self.at].rstrip(" \t")):
                return
            self.at += 1

    def block(self, least: int, depth: int) -> Any:
        """The mapping, list or scalar that begins on the next line, indented by at least so much; None where there is none."""
        self.skip()
        if self.at >= len(self.lines):
            return None
        line = self.lines[self.at]
        indent = _indent(line)
        if indent < least:
            return None
        if depth > _DEEPEST:
            raise YamlError(self.at + 1, "nested too deeply")
        if _is_item(line, indent):
            return self.sequence(indent, depth)
        if _key(line, indent) is not None or line[indent : indent + 2] == "? ":
            return self.mapping(indent, depth)
        self.at += 1
        return self.value(line[indent:], indent - 1 if indent else -1, depth)

    def sequence(self, indent: int, depth: int) -> list[Any]:
        found: list[Any] = []
        while True:
            self.skip()
            if self.at >= len(self.lines):
                return found
            line = self.lines[self.at]
            if _indent(line) != indent or not _is_item(line, indent):
                return found
            found.append(self.compact(indent, depth))

    def compact(self, indent: int, depth: int) -> Any:
        """What follows a mark of one character ('-' or ':'): a block may begin on the same line."""
        line = self.lines[self.at]
        rest = line[indent + 1 :]
        inner = len(rest) - len(rest.lstrip(" ")) + indent + 1
        if not rest.strip(" \t"):
            self.at += 1
            return self.member("", indent, depth) if line[indent] == ":" else self.block(indent + 1, depth + 1)
        if _is_item(line, inner) or _key(line, inner) is not None or line[inner : inner + 2] == "? ":
            self.lines[self.at] = " " * inner + line[inner:]
            return self.block(inner, depth + 1)
        self.at += 1
        return self.value(line[inner:], indent, depth)

    def mapping(self, indent: int, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while True:
            self.skip()
            if self.at >= len(self.lines):
                return found
            line = self.lines[self.at]
            if _indent(line) != indent:
                if _indent(line) > indent:
                    raise YamlError(self.at + 1, "an indentation that fits no key")
                return found
            if line[indent : indent + 2] == "? ":
                self.at += 1
                key = str(self.value(line[indent + 2 :], indent, depth))
                self.skip()
                line = self.lines[self.at] if self.at < len(self.lines) else ""
                if not line.startswith(" " * indent + ":"):
                    raise YamlError(self.at + 1, "expected ':' and a value")
                found[key] = self.compact(indent, depth)
                continue
            split = _key(line, indent)
            if split is None:
                if _is_item(line, indent):
                    return found
                raise YamlError(self.at + 1, "expected a key and ':'")
            self.at += 1
            found[split[0]] = self.member(split[1], indent, depth)

    def member(self, rest: str, indent: int, depth: int) -> Any:
        """The value behind a key: on its line, or in the lines below."""
        if rest.strip(" \t") and not rest.lstrip(" \t").startswith("#"):
            return self.value(rest.strip(" "), indent, depth)
        self.skip()
        if self.at < len(self.lines) and _indent(self.lines[self.at]) == indent and _is_item(self.lines[self.at], indent):
            return self.sequence(indent, depth + 1)
        return self.block(indent + 1, depth + 1)

    def value(self, text: str, indent: int, depth: int) -> Any:
        """A value that begins with this text; lines indented more than `indent` go on with it."""
        tag = _TAG.match(text)
        if tag:
            text = text[tag.end() :]
            if not text:
                return self.member("", indent, depth)
        first = text[:1]
        if first == "'":
            return self.quoted(text, r"'((?:[^']|'')*)'(?!')", indent, _single)
        if first == '"':
            return self.quoted(text, r'"((?:[^"\\]|\\.)*)"', indent, _double)
        if first in {"|", ">"}:
            return self.literal(text, indent)
        if first in {"[", "{"}:
            return self.flow(text, indent)
        if first in {"&", "*", "@", "`"}:
            raise YamlError(self.at, f"{first!r} is not read here")
        return scalar(_folded([_plain(line) for line in [text, *self.following(indent)]]))

    def following(self, indent: int) -> list[str]:
        """The lines that go on with a plain scalar."""
        start = self.at
        while self.at < len(self.lines) and (not self.lines[self.at].strip(" \t") or _indent(self.lines[self.at]) > indent):
            self.at += 1
        taken = self.lines[start : self.at]
        while taken and not taken[-1].strip(" \t"):
            taken.pop()
            self.at -= 1
        return taken

    def quoted(self, text: str, pattern: str, indent: int, value: Any) -> str:
        start, found = self.at, re.match(pattern, text, re.DOTALL)
        pieces = [text]
        while found is None:
            if self.at >= len(self.lines) or (self.lines[self.at].strip(" \t") and _indent(self.lines[self.at]) <= indent):
                raise YamlError(start, "a quote that is not closed")
            pieces.append(self.lines[self.at])
            self.at += 1
            if text[0] in pieces[-1]:
                found = re.match(pattern, "\n".join(pieces), re.DOTALL)
        rest = "\n".join(pieces)[found.end() :].strip(" \t")
        if rest and not rest.startswith("#"):
            raise YamlError(self.at, "text behind a closing quote")
        return str(value(found[1]))

    def literal(self, text: str, indent: int) -> str:
        """A block scalar (`|` keeps line ends, `>` folds them)."""
        lines = []
        while self.at < len(self.lines) and (not self.lines[self.at].strip(" \t") or _indent(self.lines[self.at]) > indent):
            lines.append(self.lines[self.at])
            self.at += 1
        told = re.search(r"[1-9]", text)
        inner = max(indent, 0) + int(told[0]) if told else min((_indent(line) for line in lines if line.strip(" \t")), default=0)
        lines = [line[inner:] for line in lines]
        body = "\n".join(lines).rstrip("\n") if text[0] == "|" else _folded(lines).rstrip("\n")
        if "-" in text:
            return body
        return body + "\n" * (len(lines) - len("\n".join(lines).rstrip("\n").split("\n")) + 1 if "+" in text else bool(body))

    def flow(self, text: str, indent: int) -> Any:
        start = self.at
        whole = _plain("\n".join([text, *self.following(indent)]))
        try:
            return json.loads(whole)
        except (ValueError, RecursionError) as err:
            raise YamlError(start, "a collection in brackets that is not JSON") from err


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _is_item(line: str, indent: int) -> bool:
    return line[indent : indent + 2] == "- " or line[indent:] == "-"


def _key(line: str, indent: int) -> tuple[str, str] | None:
    """(key, what stands behind its colon), or None."""
    text = line[indent:]
    for mark, pattern, value in (
        ("'", r"'((?:[^']|'')*)'(?!')\s*:(?=[ \t]|$)", _single),
        ('"', r'"((?:[^"\\]|\\.)*)"[ \t]*:(?=[ \t]|$)', _double),
    ):
        if text.startswith(mark):
            found = re.match(pattern, text)
            return (value(found[1]), text[found.end() :]) if found else None
    found = re.search(r":(?=[ \t]|$)", text)
    if found is None or found.start() == 0 or text[0] in "#[{|>&*@`":
        return None
    key = re.sub(r"^![^ \t]*[ \t]+", "", text[: found.start()]).rstrip(" \t")
    return None if " #" in key else (key, text[found.end() :])


def _plain(line: str) -> str:
    """A line of a plain scalar without its comment."""
    if line.lstrip(" \t").startswith("#"):
        return ""
    found = re.search(r"[ \t]#", line)
    return (line[: found.start()] if found else line).strip(" \t")


def _folded(lines: list[str]) -> str:
    """Lines joined as YAML joins them: by a space, and n blank lines between them are n line ends."""
    found, blank = lines[0] if lines else "", 0
    for line in lines[1:]:
        if not line:
            blank += 1
            continue
        found += ("\n" * blank if blank else " ") + line
        blank = 0
    return found + "\n" * blank


def _single(text: str) -> str:
    return _quoted_lines(text.replace("''", "'"))


def _double(text: str) -> str:
    text = re.sub(
        r"((?:\\\\)*)\\\n[ \t]*((?:\n[ \t]*)*)", lambda found: found[1] + "\0" + found[2].replace(" ", "").replace("\t", ""), text
    )
    parts = [_quoted_lines(part) if "\n" in part else part for part in text.split("\0")]
    return "".join(_ESCAPE.sub(_unescaped, part) for part in parts)


def _unescaped(found: re.Match[str]) -> str:
    number = found[1] or found[2] or found[3]
    if number:
        return chr(int(number, 16))
    if found[4] not in _ESCAPES:
        message = f"\\{found[4]} is no escape"
        raise ValueError(message)
    return _ESCAPES[found[4]]


def _quoted_lines(text: str) -> str:
    """A quoted text of several lines, folded."""
    lines = text.split("\n")
    if len(lines) == 1:
        return text
    lines = [lines[0].rstrip(" \t"), *(line.strip(" \t") for line in lines[1:-1]), lines[-1].lstrip(" \t")]
    found, blank = lines[0], 0
    for place, line in enumerate(lines[1:], 1):
        if line or place == len(lines) - 1:
            found += ("\n" * blank if blank else " ") + line
            blank = 0
        else:
            blank += 1
    return found
