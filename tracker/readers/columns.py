"""Whole columns checked and converted at once; single values are looked at only where a column fails.

A column comes as a list of Python values (JSON lines, CSV) or as an Arrow array (Parquet). The fast way and the
value by value way give the same result; a test compares them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from itertools import chain
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from tracker.readers import values
from tracker.readers.values import MISSING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

_NUMBERS, _TEXTS = frozenset({int, float}), frozenset({str})
_ARROW_KINDS = {
    _TEXTS: pa.string(),
    frozenset({int}): pa.int64(),
    frozenset({float}): pa.float64(),
    _NUMBERS: pa.float64(),
    frozenset({bool}): pa.bool_(),
}
_TRUE, _FALSE = ("true", "1", "1.0"), ("false", "0", "0.0")
_TRUTH_WORDS = pa.array([*_TRUE, *_FALSE, *sorted(MISSING), "nan"])
_TRUTH_VALUES = pa.array([True] * len(_TRUE) + [False] * len(_FALSE) + [None] * (len(MISSING) + 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A value that is not what its column holds."""

    expected: str
    found: object

    def __str__(self) -> str:
        """Expected and found, in one phrase."""
        shown = repr(self.found)
        return f"expected {self.expected}, found {shown if len(shown) <= 80 else shown[:77] + '...'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """A converted column; `problems` says which rows could not be (they are null)."""

    array: pa.Array
    problems: dict[int, Problem] = field(default_factory=dict)
    special: pa.Array | None = None


def to_list(column: list[Any] | pa.Array) -> list[Any]:
    """The column as Python values."""
    return column if isinstance(column, list) else column.to_pylist()


def pick(column: list[Any] | pa.Array, rows: Sequence[int]) -> list[Any]:
    """Some values of a column as Python values."""
    if isinstance(column, list):
        return [column[row] for row in rows]
    return column.take(pa.array(rows, pa.int64())).to_pylist()  # type: ignore[no-any-return]


def texts(column: list[Any] | pa.Array) -> Checked:
    """Text; anything nested as JSON."""
    array = _infer(column)
    if array is not None:
        if _is_text(array.type):
            return Checked(array=array.cast(pa.string()))
        if pa.types.is_integer(array.type) or pa.types.is_null(array.type):
            return Checked(array=array.cast(pa.string()))
    return Checked(array=pa.array([values.text(value) for value in to_list(column)], pa.string()))


def keys(column: list[Any] | pa.Array, name: str) -> Checked:
    """Text that must be there."""
    checked = texts(column)
    array = checked.array
    empty = pc.equal(pc.binary_length(array), 0)
    missing = pc.or_(pc.is_null(array), pc.fill_null(empty, False))  # noqa: FBT003
    if not pc.any(missing).as_py():
        return checked
    problem = Problem(expected=f"a value for {name}", found=None)
    return Checked(array=array, problems=dict.fromkeys(_where(missing), problem))


def wholes(column: list[Any] | pa.Array, *, least: int = 0, most: int = 2**63 - 1) -> Checked:
    """Whole numbers; NaN and empty text are null."""
    expected = f"a whole number from {least}" if most >= 2**63 - 1 else f"a whole number from {least} to {most}"
    array = _numbers(column, pa.int64())
    if array is not None:
        try:
            array = array.cast(pa.int64())
        except pa.ArrowInvalid:
            array = None
    if array is not None:
        extremes = pc.min_max(array)
        low, high = extremes["min"].as_py(), extremes["max"].as_py()
        if low is None or (low >= least and high <= most):
            return Checked(array=array)

    def convert(value: object) -> int | None:
        found = values.whole(value)
        if found is None or not least <= found <= most:
            raise ValueError
        return found

    return _each(column, convert, expected, pa.int64())


def finite(column: list[Any] | pa.Array, *, fraction: bool = False) -> Checked:
    """Finite numbers, from 0 to 1 if `fraction`; NaN and empty text are null."""
    expected = "a number from 0 to 1" if fraction else "a finite number"
    low, high = (0.0, 1.0) if fraction else (-1.7976931348623157e308, 1.7976931348623157e308)
    array = _numbers(column, pa.float64())
    if array is not None:
        array = array.cast(pa.float64(), safe=False)
        extremes = pc.min_max(array)
        least, most = extremes["min"].as_py(), extremes["max"].as_py()
        if least is None or (least >= low and most <= high):
            return Checked(array=array)

    def convert(value: object) -> float | None:
        number, special = values.number(value)
        if special == "nan":
            return None
        if number is None or not low <= number <= high:
            raise ValueError
        return number

    return _each(column, convert, expected, pa.float64())


def scores(column: list[Any] | pa.Array) -> Checked:
    """Scores with their specials: NaN and infinity are null with a reason."""
    array = _numbers(column, pa.float64())
    if array is not None:
        array = array.cast(pa.float64(), safe=False)
        if array.null_count == _nulls(column) and pc.all(pc.is_finite(array)).as_py() is not False:
            return Checked(array=array)
    problems: dict[int, Problem] = {}
    numbers: list[float | None] = []
    specials: list[str | None] = []
    for row, value in enumerate(to_list(column)):
        found = values.number(value)
        if not values.is_number(value):
            problems[row] = Problem(expected="a number", found=value)
        numbers.append(found.value)
        specials.append(found.special)
    return Checked(array=pa.array(numbers, pa.float64()), problems=problems, special=pa.array(specials, pa.string()))


def truths(column: list[Any] | pa.Array) -> Checked:
    """Truth values: true, false, 0, 1 and their spellings; NaN and empty text are null."""
    array = _infer(column)
    if array is not None:
        if pa.types.is_boolean(array.type) or pa.types.is_null(array.type):
            return Checked(array=array.cast(pa.bool_()))
        if pa.types.is_floating(array.type):
            array = _without_nan(array)
        if pa.types.is_integer(array.type) or pa.types.is_floating(array.type):
            extremes = pc.min_max(array)
            least, most = extremes["min"].as_py(), extremes["max"].as_py()
            if least is None or (least >= 0 and most <= 1 and pc.all(pc.or_(pc.equal(array, 0), pc.equal(array, 1))).as_py()):
                return Checked(array=pc.equal(array, 1))
        elif _is_text(array.type):
            position = pc.index_in(pc.utf8_lower(pc.utf8_trim_whitespace(array.cast(pa.string()))), value_set=_TRUTH_WORDS)
            if position.null_count == array.null_count:
                return Checked(array=_TRUTH_VALUES.take(position))

    def convert(value: object) -> bool | None:
        if isinstance(value, str) and value.strip().lower() == "nan":
            return None
        found = values.truth(value)
        if found is None:
            raise ValueError
        return found

    return _each(column, convert, "true or false (or 1 or 0)", pa.bool_())


def words(column: list[Any] | pa.Array, known: Sequence[str]) -> Checked:
    """Text out of a known set."""
    checked = texts(column)
    array = pc.utf8_lower(pc.utf8_trim_whitespace(checked.array))
    array = pc.if_else(pc.equal(array, ""), pa.scalar(None, pa.string()), array)
    unknown = pc.and_(pc.is_valid(array), pc.invert(pc.is_in(array, value_set=pa.array(known))))
    problems = {row: Problem(expected=f"one of {', '.join(known)}", found=checked.array[row].as_py()) for row in _where(unknown)}
    return Checked(array=array, problems=problems)


def number_lists(column: list[Any] | pa.Array) -> Checked:
    """Lists of numbers as JSON text, NaN as null in them; a list, an object (its values) or JSON text."""
    told = _listed(column, _NUMBERS)
    if told is not None:
        return Checked(array=pa.array([orjson.dumps(value).decode() if value else None for value in told], pa.string()))

    def convert(value: object) -> str | None:
        if isinstance(value, str):
            value = orjson.loads(value.replace("NaN", "null").replace("-Infinity", "null").replace("Infinity", "null"))
        if isinstance(value, dict):
            value = list(value.values())
        if not isinstance(value, list) or not all(
            one is None or (isinstance(one, int | float) and not isinstance(one, bool)) for one in value
        ):
            raise ValueError
        return values.json_text(value) if value else None

    return _each(column, convert, "a list of numbers, one per option", pa.string())


def option_lists(column: list[Any] | pa.Array) -> Checked:
    """Lists of options as JSON text."""
    told = _listed(column, _TEXTS)
    if told is not None and [] not in told:
        return Checked(array=pa.array([None if value is None else orjson.dumps(value).decode() for value in told], pa.string()))

    def convert(value: object) -> str | None:
        found = values.option_list(value)
        if found is None:
            raise ValueError
        return values.json_text(found)

    return _each(column, convert, 'a list of options (or "A. ..." lines)', pa.string())


def each_once(column: list[Any] | pa.Array, convert: Callable[[object], Any], expected: str) -> Checked:
    """Check a column of few distinct values; the array holds nothing."""
    told = to_list(column)
    bad: set[Any] = set()
    for value in {str(one): one for one in told if not values.is_missing(one)}.values():
        try:
            convert(value)
        except (ValueError, OverflowError, OSError):
            bad.add(str(value))
    problems = {row: Problem(expected=expected, found=value) for row, value in enumerate(told) if bad and str(value) in bad}
    return Checked(array=pa.nulls(len(told)), problems=problems)


def moment(value: object) -> datetime | None:
    """A time: ISO text (UTC where it has no zone), seconds since 1970, or a time already. ValueError if it is none."""
    if value is None or value == "":
        return None
    if isinstance(value, str):
        try:
            return moment(float(value))
        except ValueError:
            return moment(datetime.fromisoformat(value))
    if isinstance(value, int | float) and not isinstance(value, bool):
        return datetime.fromtimestamp(value, UTC)
    if isinstance(value, datetime):
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    raise ValueError(value)


def _infer(column: list[Any] | pa.Array) -> pa.Array | None:
    """The column as an Arrow array; None when its values are of several kinds, or of one that needs a closer look."""
    if not isinstance(column, list):
        return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
    kinds = _kinds(column)
    if not kinds:
        return pa.nulls(len(column))
    kind = next((kind for known, kind in _ARROW_KINDS.items() if kinds == known), None)
    try:
        array = None if kind is None else pa.array(column, kind)
    except (pa.ArrowException, OverflowError, UnicodeEncodeError):
        return None
    mixed = len(kinds) > 1
    return None if mixed and (pc.max(pc.abs(array)).as_py() or 0) >= values.EXACT_FLOAT else array


def _kinds(column: Iterable[Any]) -> frozenset[type]:
    return frozenset(map(type, column)) - {type(None)}


def _listed(column: list[Any] | pa.Array, kinds: frozenset[type]) -> list[Any] | None:
    """The column as Python lists if it holds nothing but lists of values of these kinds, without nulls in them."""
    if not isinstance(column, list):
        if not (pa.types.is_list(column.type) or pa.types.is_large_list(column.type)):
            return None
        column = column.to_pylist()
    if _kinds(column) - {list}:
        return None
    return column if frozenset(map(type, chain.from_iterable(filter(None, column)))) <= kinds else None


def _numbers(column: list[Any] | pa.Array, kind: pa.DataType) -> pa.Array | None:
    """Numbers without NaN; text that is numbers of the kind throughout is cast."""
    array = _infer(column)
    if array is None:
        return None
    if _is_text(array.type):
        try:
            array = array.cast(pa.string()).cast(kind)
        except pa.ArrowInvalid:
            return None
    if pa.types.is_floating(array.type):
        return _without_nan(array)
    return array if pa.types.is_integer(array.type) or pa.types.is_null(array.type) else None


def _without_nan(array: pa.Array) -> pa.Array:
    return pc.if_else(pc.is_nan(array), pa.scalar(None, array.type), array)


def _nulls(column: list[Any] | pa.Array) -> int:
    return column.count(None) if isinstance(column, list) else column.null_count


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _each(column: list[Any] | pa.Array, convert: Callable[[object], Any], expected: str, kind: pa.DataType) -> Checked:
    """Value by value; `convert` raises ValueError for what is not expected."""
    problems: dict[int, Problem] = {}
    converted: list[Any] = []
    for row, value in enumerate(to_list(column)):
        if value is None or value != value or (isinstance(value, str) and value.strip().lower() in MISSING):  # noqa: PLR0124
            converted.append(None)
            continue
        try:
            converted.append(convert(value))
        except ValueError:
            converted.append(None)
            problems[row] = Problem(expected=expected, found=value)
    return Checked(array=pa.array(converted, kind), problems=problems)


def _where(mask: pa.Array) -> list[int]:
    return pc.indices_nonzero(mask).to_pylist()  # type: ignore[no-any-return]
