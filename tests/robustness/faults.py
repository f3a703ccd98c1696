"""A corpus of damaged files, the same in every run: each fault is a unit with one file spoilt.

A fault knows what a careful reader would still find: `remains` is the file without the part that is lost, and a
reader must find at least as many records as in that.
"""

from __future__ import annotations

import gzip
import io
import json
import pickle
import random
import zipfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.robustness.damage import damaged
from tests.robustness.units import Unit, adhoc_rows, all_units, native_rows, score_rows, xlsx

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

POINTER = (
    b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n"
)
TYPES: tuple[Any, ...] = (None, 5, "x", [], {}, [None], True, {"a": [1]})
CELL_LIMIT = 32_767
"""Characters that Excel keeps of a text."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A unit with one damaged file. `said` means that the damage is one that a reader must speak of."""

    unit: Unit
    target: str
    name: str
    content: bytes
    remains: bytes | None = None
    said: bool = False

    def write(self, folder: Path) -> Path:
        """The damaged unit in a folder."""
        return self.unit.write(folder, **{self.target: self.content})


class Trap:
    """Loading its pickle writes a file."""

    def __init__(self, place: str) -> None:
        self.place = place

    def __reduce__(self) -> tuple[Any, ...]:
        return open, (self.place, "w")


def all_faults(trap: Path) -> list[Fault]:
    """Every fault; loading one of its pickles would write the file `trap`."""
    found = [fault for unit in all_units() for place, target in enumerate(unit.targets) for fault in _of_target(unit, target, place, trap)]
    return [*found, *_excel(), *_filters(), *_pickles(trap)]


def _of_target(unit: Unit, target: str, place: int, trap: Path) -> Iterator[Fault]:
    """Faults of one file; the first file of a unit is damaged in every way, the others in some."""
    content = unit.files[target]
    made = [*_whole(content, trap), *_kinds(content, target)]
    rotation = sum(map(ord, unit.format + unit.name + target))
    for number, (name, damage, remains, said) in enumerate(made):
        if damage != content and (number + rotation) % (4 if place == 0 else 8) == 0:
            # Any text may be the value of a parameter.
            yield Fault(unit, target, name, damage, remains, said=said and "/params/" not in target)


Made = tuple[str, bytes, bytes | None, bool]


def _whole(content: bytes, trap: Path) -> Iterator[Made]:
    """The whole file is something else."""
    text = _is_text(content)
    yield "empty", b"", None, True
    yield "blank", b"\n \n\n", None, True
    yield "pointer", POINTER, None, True
    yield "zeros", b"\0" * len(content), None, True
    yield "noise", random.Random(1).randbytes(max(len(content), 64)), None, True
    yield "pickle", pickle.dumps(Trap(str(trap))), None, True
    yield "gzip", gzip.compress(content, mtime=0), None, True
    yield "page", b"<!DOCTYPE html>\n<html><body>404: Not Found</body></html>\n", None, True
    if text:
        yield "utf-16", content.decode().encode("utf-16"), None, True
        yield "utf-16 without mark", content.decode().encode("utf-16-le"), None, True
        yield "mark", b"\xef\xbb\xbf" + content, content, False
        yield "carriage returns", content.replace(b"\n", b"\r\n"), content, False


def _kinds(content: bytes, target: str) -> Iterable[Made]:
    if not _is_text(content):
        return _binary(content)
    is_list = content.lstrip()[:1] == b"["
    if (target.endswith((".jsonl", ".csv", ".tsv")) and not is_list) or (target.endswith(".json") and _is_lines(content)):
        objects = content.lstrip().startswith(b"{")
        return [*_by_line(content, objects=objects), *(_cuts(content, (0.4, 0.9)) if objects else _cut_tables(content))]
    if content.lstrip()[:1] in {b"{", b"["}:
        return [*_cuts(content, (0.1, 0.35, 0.6, 0.85, 0.99)), *_document(content)]
    return [*_cuts(content, (0.3, 0.8)), ("latin-1", content.replace(b"e", b"\xe9", 1), None, False)]


def _is_text(content: bytes) -> bool:
    try:
        return "\0" not in content.decode()
    except UnicodeDecodeError:
        return False


def _is_lines(content: bytes) -> bool:
    try:
        return len([json.loads(line) for line in content.splitlines() if line.strip()]) > 1
    except ValueError:
        return False


# ---- lines ---------------------------------------------------------------------------------------


def _cuts(content: bytes, shares: Iterable[float]) -> Iterator[Made]:
    """The file ends too early, within a line."""
    for share in shares:
        at = int(len(content) * share)
        while at > 1 and content[at - 1 : at + 1].find(b"\n") >= 0:
            at -= 1
        lines = content[: content.rfind(b"\n", 0, at) + 1]
        yield f"cut at {share}", content[:at], lines if _is_lines(content) else None, _is_lines(content)


def _cut_tables(content: bytes) -> Iterator[Made]:
    """A table ends behind the first cell of a row: a cut in the last cell of a row cannot be told from a short cell."""
    lines = content.splitlines(keepends=True)
    for at in (len(lines) // 2, len(lines) - 1):
        before = b"".join(lines[:at])
        cell = min(found for mark in b",\t" if (found := lines[at].find(bytes([mark]))) >= 0)
        yield f"cut in row {at}", before + lines[at][:cell], before, at > 1


def _by_line(content: bytes, *, objects: bool) -> Iterator[Made]:
    """One line is damaged, or one more is there; the others are as they were."""
    lines = content.splitlines(keepends=True)
    first = 0 if objects else 1
    at = first + (len(lines) - first) // 2
    line, rest = lines[at], b"".join(lines[:at] + lines[at + 1 :])

    def with_line(new: bytes) -> bytes:
        return b"".join([*lines[:at], new, *lines[at + 1 :]])

    middle = line.find(b"e", 2) + 1
    yield "latin-1 byte", with_line(line[:middle] + b"\xe9" + line[middle:]), rest, True
    yield "line of utf-16", with_line(line.decode().strip().encode("utf-16-le") + b"\n"), rest, True
    yield "nul", with_line(line[:middle] + b"\0" + line[middle:]), rest, False
    yield "U+2028", with_line(line[:middle] + "\u2028".encode() + line[middle:]), rest, False
    yield "line again", with_line(line + line), content, False
    yield "blank lines", with_line(b"\n\n" + line + b"   \n"), content, False
    last = content.rstrip(b"\n")
    yield "last line cut off", last[: last.rfind(b"\n") + 1 + (len(last) - last.rfind(b"\n")) // 2], last[: last.rfind(b"\n") + 1], objects
    if objects:
        yield "surrogate", with_line(line.replace(b'": "', b'": "\\ud800', 1)), content, False
        yield "NaN", with_line(_with_numbers(line, b"NaN")), rest, False
        yield "Infinity", with_line(_with_numbers(line, b"-Infinity")), rest, False
        yield "duplicate keys", with_line(line.rstrip()[:-1] + b", " + line.lstrip()[1:]), content, False
        for odd in (b"garbage", b"null", b"[1, 2]", b'"x"', b"5", b"{"):
            yield f"line {odd.decode()}", with_line(line + odd + b"\n"), content, True
        yield "half a line", with_line(line[: len(line) // 2] + b"\n"), rest, True
        yield "no line end", with_line(line.rstrip()), b"".join(lines[:at] + lines[at + 2 :]), at + 1 < len(lines)


def _with_numbers(text: bytes, token: bytes) -> bytes:
    """Fractions become a token, or whole numbers where there are none."""
    import re

    found, count = re.subn(rb"(?<=: )-?\d+\.\d+", token, text)
    return found if count else re.sub(rb"(?<=: )-?\d+(?=[,}])", token, text)


# ---- documents -----------------------------------------------------------------------------------


def _document(content: bytes) -> Iterator[Made]:
    """Values of a document are of another type, or are there twice."""
    document = json.loads(content)
    if isinstance(document, list):
        yield "an object instead of a list", json.dumps({"rows": document}).encode(), None, False
        for number, odd in enumerate(TYPES[:6]):
            spoilt = [*document[: len(document) // 2], odd, *document[len(document) // 2 :]]
            yield f"entry {number}", json.dumps(spoilt).encode(), content, False
        return
    for number, name in enumerate(list(document)[:14]):
        odd = TYPES[(number * 3 + len(name)) % len(TYPES)]
        yield f"{name} is {odd!r}", json.dumps(document | {name: odd}).encode(), None, False
        if name != "samples":  # Inspect writes logs without them, too
            yield f"no {name}", json.dumps({key: one for key, one in document.items() if key != name}).encode(), None, False
    yield "NaN", _with_numbers(content, b"NaN"), None, False
    yield "Infinity", _with_numbers(content, b"Infinity"), None, False
    yield "keys again", content.rstrip()[:-1] + b", " + content.lstrip()[1:], None, False
    yield "surrogate", content.replace(b'": "', b'": "\\udcff', 3), None, False
    yield "latin-1 byte", content.replace(b'": "', b'": "\xe9', 1), None, True


# ---- binary files --------------------------------------------------------------------------------


def _binary(content: bytes) -> Iterator[Made]:
    """Cut at many places, bytes flipped, holes."""
    for part in range(1, 12):
        yield f"cut at {part}/12", content[: len(content) * part // 12], None, False
    for back in (1, 4, 22, 100):
        yield f"without the last {back}", content[:-back], None, False
    source = random.Random(len(content))
    for number in range(12):
        yield f"flip {number}", damaged(content, "flip", source.randrange(len(content)), 1 << number % 8), None, False
    for number in range(6):
        yield f"hole {number}", damaged(content, "hole", source.randrange(len(content)), source.randrange(200)), None, False
        yield f"zero part {number}", damaged(content, "zeros", source.randrange(len(content)), source.randrange(1024)), None, False
    for number in range(6):
        op = "cell" if content.startswith(b"SQLite") else "column" if content.startswith(b"PAR1") else "member"
        yield f"{op} {number}", damaged(content, op, source.randrange(2**30), source.randrange(2**30)), None, False


# ---- faults of their own kind --------------------------------------------------------------------


def _excel() -> Iterator[Fault]:
    """What a workbook loses on the way: long texts, control characters, ids that became numbers, dates, errors."""
    rows = adhoc_rows()
    losses: dict[str, list[dict[str, Any]]] = {
        "cut text": [{**row, "note": "a" * CELL_LIMIT} for row in rows],
        "cut options": [{**row, "out": ("A. yes " * 6000)[:CELL_LIMIT]} for row in rows],
        "escapes": [{**row, "note": "a_x000B_b_x0000_c_x005F_"} for row in rows],
        "escaped id": [{**row, "id": f"{row['id']}_x000D_"} for row in rows],
        "numbers from ids": [{**row, "id": 1000 + at} for at, row in enumerate(rows)],
        "long numbers from ids": [{**row, "id": 12_345_678_901_234_567_890 + at * 10_000} for at, row in enumerate(rows)],
        "truth from letters": [{**row, "out": at % 2 == 0} for at, row in enumerate(rows)],
        "errors": [{**row, "out": "#REF!"} for row in rows],
        "no ids": [{**row, "id": None if at == 4 else row["id"]} for at, row in enumerate(rows)],
    }
    for name, table in losses.items():
        content = xlsx(table)
        unit = Unit("table", f"excel {name}", {"adhoc.xlsx": content}, ("adhoc.xlsx",))
        kept = xlsx([row for row in table if row["id"] is not None])
        yield Fault(unit, "adhoc.xlsx", name, content, kept, name == "no ids")
    for suffix, table in (("native", native_rows()), ("board", score_rows())):
        unit = Unit("score_table", f"excel {suffix}", {f"{suffix}.xlsx": xlsx(table)}, (f"{suffix}.xlsx",))
        yield Fault(unit, f"{suffix}.xlsx", "sheet lost", _without(xlsx(table), "sheet1.xml"), None, False)


def _without(content: bytes, lost: str) -> bytes:
    """A workbook without one of its parts."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            if not name.endswith(lost):
                new.writestr(name, old.read(name))
    return out.getvalue()


def _filters() -> Iterator[Fault]:
    """The rows of a filter come twice, or name no filter, or one filter under two names."""
    unit = next(unit for unit in all_units() if unit.name == "v047_labelled")
    (target,) = unit.targets
    content = unit.files[target]
    rows = [json.loads(line) for line in content.splitlines()]
    yield Fault(unit, target, "filters again", content + content, content)
    one = rows[0]["filter"]
    told: dict[str, Any] = {"one name": one, "no name": None, "a list": [one], "a number": 3}
    for name, value in told.items():
        yield Fault(unit, target, f"filters: {name}", b"".join(json.dumps({**row, "filter": value}).encode() + b"\n" for row in rows))
    yield Fault(
        unit,
        target,
        "filters missing",
        b"".join(json.dumps({k: v for k, v in row.items() if k != "filter"}).encode() + b"\n" for row in rows),
    )


def _pickles(trap: Path) -> Iterator[Fault]:
    """Pickles under names that readers know, by every protocol that differs."""
    names = (
        "answers.pkl",
        "adhoc.pkl",
        "adhoc.pt",
        "adhoc.jsonl",
        "Toy-VL_POPE.pkl",
        "samples_toy_2024-01-01T00-00-00.jsonl",
        "log.eval",
        "mlflow.db",
        "scenario_state.json",
    )
    for number, name in enumerate(names):
        content = pickle.dumps(Trap(str(trap)), protocol=(0, 2, 4)[number % 3])
        yield Fault(Unit("pickle", name, {name: content}, (name,)), name, "pickle", content)
