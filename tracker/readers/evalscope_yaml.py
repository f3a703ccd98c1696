"""The YAML that EvalScope dumps its task configuration as: block mappings, lists and scalars, read without a YAML library.

Only what such a dump holds is understood. What is not (anchors, tags, flow collections with content) stays text or is left out;
nothing raises and nothing is constructed.
"""

from __future__ import annotations

import re
from typing import Any

_KEY = re.compile(r"""(?P<key>"[^"]*"|'[^']*'|[^\s#\-\[\]{}"'&*!|>%@`:][^:#]*|-?[\w.]+)\s*:(?:[ \t]+(?P<rest>.*))?$""")
_NUMBER = re.compile(r"[-+]?(?:\d+|\d+\.\d*(?:[eE][-+]\d+)?)")
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "e": "\x1b"} | {
    "N": "\x85", "_": "\xa0", "L": "\u2028", "P": "\u2029",
}  # fmt: skip
_WORDS: dict[str, Any] = {"null": None, "~": None, "": None, "true": True, "false": False, "{}": {}, "[]": []}
_SPECIAL = {".nan": "nan", ".inf": "inf", "+.inf": "inf", "-.inf": "-inf"}
DEEPEST = 40


def parse_yaml(document: str) -> dict[str, Any]:
    """The mapping that a dump holds, as far as it is understood; empty for anything else."""
    value = _Parser(document.removeprefix("\ufeff")).block(0, 0)
    return value if isinstance(value, dict) else {}


class _Parser:
    def __init__(self, document: str) -> None:
        self.lines = re.split(r"\r?\n", document)
        self.at = 0

    def block(self, indent: int, depth: int) -> Any:
        """The mapping or list whose entries begin at this indent."""
        if depth > DEEPEST or not self._skip_blank():
            return None
        if self._is_item():
            return self._list(indent, depth)
        found: dict[str, Any] = {}
        while self._skip_blank():
            inside = self._indent()
            if inside < indent or (inside == indent and self._is_item()):
                break
            match = _KEY.match(self.lines[self.at].strip()) if inside == indent else None
            self.at += 1
            if match is not None:
                found[_unquoted(match["key"])] = self._value((match["rest"] or "").strip(), indent, depth, listed=True)
        return found

    def _list(self, indent: int, depth: int) -> list[Any]:
        found: list[Any] = []
        while self._skip_blank() and self._indent() == indent and self._is_item():
            line = self.lines[self.at]
            rest = line.strip()[1:].strip()
            if rest == "-" or rest.startswith("- ") or (rest[:1] not in {"'", '"'} and _KEY.match(rest)):
                self.lines[self.at] = " " * indent + " " + line.strip()[1:]
                found.append(self.block(self._indent(), depth + 1))
            else:
                self.at += 1
                found.append(self._value(rest, indent, depth, listed=False))
        return found

    def _value(self, rest: str, indent: int, depth: int, *, listed: bool) -> Any:
        """What follows a key or a dash, on its line and the lines that belong to it."""
        if rest[:1] in {"|", ">"}:
            return self._literal(rest, indent)
        if rest[:1] in {"'", '"'}:
            return self._quoted(rest)
        if not rest or rest.startswith("#"):
            if not self._skip_blank():
                return None
            inside = self._indent()
            if inside > indent or (listed and inside == indent and self._is_item()):
                return self.block(inside, depth + 1)
            return None
        parts = [rest]
        while self.at < len(self.lines) and self.lines[self.at].strip() and self._indent() > indent:
            parts.append(self.lines[self.at].strip())
            self.at += 1
        return _scalar(" ".join(parts).partition(" #")[0].strip())

    def _literal(self, mark: str, indent: int) -> str:
        taken: list[str] = []
        while self.at < len(self.lines) and (not self.lines[self.at].strip() or self._indent() > indent):
            taken.append(self.lines[self.at])
            self.at += 1
        margin = min((len(one) - len(one.lstrip(" ")) for one in taken if one.strip()), default=0)
        lines = [one[margin:] for one in taken]
        body = "\n".join(lines).rstrip("\n") if mark.startswith("|") else _folded(lines)
        return body if "-" in mark else body + "\n"

    def _quoted(self, rest: str) -> str:
        """A quoted scalar; one that is not closed ends with the document."""
        quote, taken = rest[0], [rest[1:]]
        while not _closed(taken[-1], quote) and self.at < len(self.lines):
            taken.append(self.lines[self.at].strip(" \t"))
            self.at += 1
        taken[-1] = taken[-1][: _closed(taken[-1], quote) - 1] if _closed(taken[-1], quote) else taken[-1]
        if quote == "'":
            return _folded(taken).replace("''", "'")
        return _ESCAPE.sub(_unescaped, _folded(taken, escapes=True))

    def _skip_blank(self) -> bool:
        while self.at < len(self.lines):
            line = self.lines[self.at].strip()
            if line and not line.startswith("#") and line not in {"---", "..."}:
                return True
            self.at += 1
        return False

    def _indent(self) -> int:
        line = self.lines[self.at]
        return len(line) - len(line.lstrip(" "))

    def _is_item(self) -> bool:
        line = self.lines[self.at].strip()
        return line == "-" or line.startswith("- ")


def _closed(line: str, quote: str) -> int:
    """The place behind the closing quote; 0 where the scalar goes on."""
    at = 0
    while at < len(line):
        if quote == '"' and line[at] == "\\":
            at += 2
        elif line[at] == quote:
            if quote == "'" and line[at + 1 : at + 2] == "'":
                at += 2
                continue
            return at + 1
        else:
            at += 1
    return 0


def _folded(lines: list[str], *, escapes: bool = False) -> str:
    """Lines as one text: a line break is a space, each empty line a line break."""
    made, breaks = lines[0] if lines else "", 0
    for place, line in enumerate(lines[1:], 2):
        if escapes and not breaks and (len(made) - len(made.rstrip("\\"))) % 2:
            made = made[:-1] + line
        elif not line.strip(" \t") and place < len(lines):
            breaks += 1
        else:
            made = made.rstrip(" \t") + ("\n" * breaks if breaks else " ") + line
            breaks = 0
    return made


def _unescaped(match: re.Match[str]) -> str:
    code = match[1] or match[2] or match[3]
    if not code:
        return _ESCAPED.get(match[4], match[4])
    point = int(code, 16)
    return chr(point) if point < 0x110000 and not 0xD800 <= point < 0xE000 else "\N{REPLACEMENT CHARACTER}"


def _unquoted(key: str) -> str:
    return key[1:-1] if key[:1] in {"'", '"'} and len(key) > 1 else key.strip()


def _scalar(word: str) -> Any:
    lowered = word.lower()
    if lowered in _WORDS:
        known = _WORDS[lowered]
        return type(known)() if isinstance(known, dict | list) else known
    if lowered in _SPECIAL:
        return float(_SPECIAL[lowered])
    if _NUMBER.fullmatch(word) and len(word) <= 40:
        return float(word) if "." in word else int(word)
    return word
