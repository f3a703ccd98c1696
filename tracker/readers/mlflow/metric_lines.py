"""Lines of the metric files of file stores.

`time value`, `time value step`, or `time value step dataset digest`; in the files of logged models the run's id
stands behind the step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tracker.readers.lines import shorten

if TYPE_CHECKING:
    from collections.abc import Iterator

_LARGEST = 2**63


class Point(NamedTuple):
    """A value of a metric; a time that the line does not have as a whole number is refused before."""

    time_ms: int
    value: float
    step: int
    run_id: str | None = None
    dataset_name: str | None = None
    dataset_digest: str | None = None


class OddLine(NamedTuple):
    """A line that is no point."""

    line: int
    reason: str
    text: str


def metric_points(raw: bytes, *, of_model: bool = False) -> Iterator[Point | OddLine]:
    """The points of a file in order, and its odd lines."""
    lines = raw.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    ended = lines[-1] == b""
    last, before, wide = len(lines), None, 0
    for number, line in enumerate(lines, 1):
        fields = line.split()
        if not fields:
            continue
        found = _point(fields, of_model=of_model)
        if isinstance(found, Point) and number == last and not ended and _may_be_cut(found, len(fields), before, wide):
            found = "cut off: no line end follows it"
        if isinstance(found, Point):
            yield found
            before, wide = found, len(fields)
        else:
            yield OddLine(number, f"{found} (delete the line, or fetch the file again)", shorten(line))


def _may_be_cut(found: Point, width: int, before: Point | None, wide: int) -> bool:
    """Whether a last line without an end is likely incomplete: too narrow, or with a step that falls behind."""
    if width < 3 or width < wide:
        return True
    return before is not None and width == 3 and found.step < before.step


def _point(fields: list[bytes], *, of_model: bool) -> Point | str:
    """A point, or what is wrong with a line."""
    extra = 1 if of_model else 0
    if len(fields) not in {2, 3} and len(fields) < 5 + extra and not (of_model and len(fields) == 4):
        return f"expected 'time value step' or 'time value step dataset digest', found {len(fields)} field{'s'[: len(fields) != 1]}"
    time, step = _whole(fields[0]), _whole(fields[2]) if len(fields) > 2 else 0
    if time is None:
        return f"expected a time in milliseconds, found {shorten(fields[0])!r}"
    try:
        value = float(fields[1])
    except ValueError:
        value = None
    if value is None or b"_" in fields[1]:
        return f"expected a number as value, found {shorten(fields[1])!r}"
    if step is None:
        return f"expected a whole number as step, found {shorten(fields[2])!r}"
    run_id = _text(fields[3]) if of_model and len(fields) > 3 else None
    if len(fields) < 5:
        return Point(time, value, step, run_id)
    return Point(time, value, step, run_id, _text(b" ".join(fields[3 + extra : -1])), _text(fields[-1]))


def _whole(field: bytes) -> int | None:
    """A whole number of 64 bits, also one that is written as a float."""
    try:
        found = int(field)
    except ValueError:
        try:
            number = float(field)
        except ValueError:
            return None
        if not number.is_integer():
            return None
        found = int(number)
    return found if -_LARGEST <= found < _LARGEST and b"_" not in field else None


def _text(field: bytes) -> str:
    return field.decode("utf-8", "replace")
