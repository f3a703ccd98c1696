"""Values as files hold them, turned into what records hold: 0 is a value, NaN is not null, nothing is guessed."""

from __future__ import annotations

import hashlib
import math
import re
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_SPECIAL = {
    "nan": "nan", "+nan": "nan", "-nan": "nan",
    "inf": "inf", "+inf": "inf", "infinity": "inf", "+infinity": "inf",
    "-inf": "-inf", "-infinity": "-inf",
}  # fmt: skip
MISSING = frozenset({"", "na", "n/a", "none", "null"})
"""How text files write a missing number or truth value."""
_TRUTHS = {"true": True, "false": False, "1": True, "0": False, "1.0": True, "0.0": False}
_LETTERED = re.compile(r"^\s*\(?([A-Z])[.):]\s*(.*?)\s*$", re.DOTALL)
EXACT_FLOAT = 2**53


class Number(NamedTuple):
    """A number, or the reason why it is none ('nan', 'inf', '-inf'); both null when there is nothing."""

    value: float | None
    special: str | None


NOTHING = Number(None, None)
_NOT_FINITE = {"nan": Number(None, "nan"), "inf": Number(None, "inf"), "-inf": Number(None, "-inf")}


def number(value: object) -> Number:
    """A score: finite, or special, or nothing. Text that is no number is nothing; see `is_number`."""
    if isinstance(value, float | int):
        try:
            return _finite(float(value))
        except OverflowError:
            return _NOT_FINITE["inf" if value > 0 else "-inf"]
    if isinstance(value, str):
        special = _SPECIAL.get(value.strip().lower())
        if special:
            return _NOT_FINITE[special]
        try:
            return _finite(float(value)) if "_" not in value else NOTHING
        except ValueError:
            return NOTHING
    return NOTHING


def is_number(value: object) -> bool:
    """Whether `number` understands the value (null included)."""
    if value is None or (isinstance(value, str) and value.strip().lower() in MISSING):
        return True
    return number(value) != NOTHING


def is_missing(value: object) -> bool:
    """Null, NaN or empty text: a cell in which nothing was written."""
    return value is None or value == "" or (isinstance(value, float) and math.isnan(value))


def text(value: object) -> str | None:
    """Text: a string as it is, a whole float without its '.0', anything nested as JSON; NaN and null are nothing."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        if math.isnan(value):
            return None
        return str(int(value)) if value.is_integer() and abs(value) < EXACT_FLOAT else repr(value)
    if isinstance(value, list | tuple | dict):
        return json_text(value)
    return str(value)


def whole(value: object) -> int | None:
    """A whole number (12, 12.0, "12", "12.0"); None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**63 else None
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < 2**63 else None
    if isinstance(value, str):
        try:
            return whole(int(value)) if "_" not in value else None
        except ValueError:
            found = number(value).value
            return None if found is None else whole(found)
    return None


def as_mapping(value: Any) -> Mapping[str, Any]:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """The value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def as_count(*values: Any) -> int | None:
    """The first of some values that is a whole number from 0."""
    return next((found for value in values if (found := whole(value)) is not None and found >= 0), None)


def truth(value: object) -> bool | None:
    """A truth value (true, 1, 1.0, "true", "1", ...); None for anything else, 0.5 included."""
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return None if value not in (0, 1) else bool(value)
    if isinstance(value, str):
        return _TRUTHS.get(value.strip().lower())
    return None


def json_text(value: object) -> str:
    """JSON without spaces; NaN and infinity become null, whole numbers beyond 64 bits floats."""
    option = orjson.OPT_NON_STR_KEYS | orjson.OPT_SERIALIZE_NUMPY
    try:
        return orjson.dumps(value, default=str, option=option).decode()
    except TypeError:
        return orjson.dumps(_narrow(value), default=str, option=option).decode()


def _narrow(value: object) -> object:
    if isinstance(value, dict):
        return {str(key): _narrow(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_narrow(one) for one in value]
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return number(value).value
    return value


def option_list(value: object) -> list[str] | None:
    r"""Options in order: a list, a letter -> option object, JSON text of either, or lettered lines ("A. red\nB. blue")."""
    if isinstance(value, str):
        stripped = value.strip()
        if stripped[:1] in {"[", "{"}:
            try:
                return option_list(orjson.loads(stripped))
            except ValueError:
                pass
        lines = [match for line in stripped.splitlines() if (match := _LETTERED.match(line))]
        letters = "".join(match[1] for match in lines)
        return [match[2] for match in lines] if len(lines) > 1 and is_alphabet(letters) else None
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple) and value:
        return [text(one) or "" for one in value]
    return None


def is_alphabet(letters: str) -> bool:
    """Whether the letters are A, B, C, ... in order."""
    return letters == "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[: len(letters)]


def softmax(log_likelihoods: Sequence[float | None]) -> list[float] | None:
    """Probabilities over the options; None when one of them is missing or NaN, or all are -inf."""
    known = [value for value in log_likelihoods if value is not None and not math.isnan(value)]
    if not known or len(known) < len(log_likelihoods):
        return None
    top = max(known)
    if math.isinf(top):
        return None
    weights = [math.exp(value - top) for value in known]
    total = math.fsum(weights)
    return [weight / total for weight in weights]


def p_gold(log_likelihoods: Sequence[float | None], gold: int | None) -> float | None:
    """Probability of the option at position `gold`, normalised over the options."""
    probabilities = softmax(log_likelihoods)
    if probabilities is None or gold is None or not 0 <= gold < len(probabilities):
        return None
    return min(probabilities[gold], 1.0)


def best(log_likelihoods: Sequence[float | None]) -> int | None:
    """Position of the likeliest option, the first of equals; None when one of them is missing or NaN, or all are -inf."""
    if not log_likelihoods or any(value is None or math.isnan(value) for value in log_likelihoods):
        return None
    found = max(range(len(log_likelihoods)), key=lambda position: log_likelihoods[position] or 0.0)
    return None if log_likelihoods[found] == -math.inf else found


def content_hash(text: str | None, options: Iterable[str] | None = None, image: str | None = None) -> str:
    """Hash of what a question asks: its text and sorted options (white space does not count) and its image."""
    parts = [_squeeze(text), sorted(_squeeze(one) for one in options) if options is not None else None, image]
    return hashlib.sha256(orjson.dumps(parts)).hexdigest()


def columns_of(rows: Sequence[dict[str, Any]]) -> dict[str, list[Any]]:
    """Rows as columns, in order of first occurrence; null where a row lacks one."""
    names = tuple(rows[0]) if rows else ()
    if all(tuple(row) == names for row in rows):
        return dict(zip(names, map(list, zip(*[row.values() for row in rows], strict=True)), strict=True))
    return {name: column(rows, name) for name in column_names(rows)}


def column(rows: Sequence[dict[str, Any]], name: str) -> list[Any]:
    """One column of rows; null where a row lacks it."""
    return [row.get(name) for row in rows]


def column_names(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Every name that occurs, in order of first occurrence."""
    names: dict[str, None] = {}
    for row in rows:
        if not (row.keys() <= names.keys()):
            names.update(dict.fromkeys(row))
    return list(names)


def _squeeze(words: str | None) -> str:
    return " ".join((words or "").split())


def _finite(value: float) -> Number:
    if math.isfinite(value):
        return Number(value, None)
    return _NOT_FINITE["nan" if math.isnan(value) else "inf" if value > 0 else "-inf"]
