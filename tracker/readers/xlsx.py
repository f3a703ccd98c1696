"""Rows of Excel workbooks (.xlsx), as they are in the file and without the guesses that data frames make.

Text stays text ("NA", "None", "001"), Excel's own escapes (`_x000B_`) are undone, whole numbers are whole, an empty cell is
null. A workbook is examined before it is read, because a small file may unpack to any size. What Excel cuts off (a text of
32,767 characters) is reported and kept.
"""

from __future__ import annotations

import zipfile
from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any

from tracker.batch import Refusal
from tracker.errors import InputError
from tracker.readers.lines import listed
from tracker.readers.tabular import CHUNK_BYTES, CHUNK_ROWS, Chunk, Truncated, said_by
from tracker.readers.values import EXACT_FLOAT
from tracker.readers.xlsx_archive import MAGIC, UNREADABLE, examine, find_parts, foreign_file, header

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

LONGEST_CELL = 32_767
"""Characters (UTF-16 units) that Excel keeps of a text; writers cut the rest off."""


def is_xlsx(head: bytes) -> bool:
    """Whether a file starts like a workbook (an archive that names its sheets or content types first)."""
    return head.startswith(MAGIC) and (b"[Content_Types].xml" in head[:4096] or b"xl/" in head or b"_rels/.rels" in head[:4096])


def columns(path: Path, sheet: str | None = None) -> list[str] | None:
    """Names in the first row of the first (or named) sheet, cheaply; None where they cannot be had. Never raises.

    Unlike `rows` it reads the beginning of the sheet alone, so it says nothing about the rest of the file.
    """
    try:
        return header(find_parts(path, sheet))
    except UNREADABLE:
        return None


def rows(path: Path, sheet: str | None = None) -> tuple[list[str], Iterator[tuple[int, list[Any]]]]:
    """The header of the first (or named) sheet, and (row number as Excel shows it, cells) of every row that is not empty.

    The header is the first row that is not empty. Cells are text, int, float, bool or None; dates and times are ISO text;
    every row has as many cells as the header. Raises InputError (file, reason, remedy) for whatever is no readable workbook.
    """
    found = _filled(path, sheet)
    _, first = next(found, (0, []))
    names = ["" if one is None else str(one).strip() for one in first]
    if not any(names):
        message = "a sheet without any cell"
        raise InputError(message, where=str(path), hint="delete it or run its writer again")
    repeated = sorted({name for name in names if name and names.count(name) > 1})
    if repeated:
        message = f"the header names a column twice: {listed(repeated)}"
        raise InputError(message, where=str(path), hint="rename one of them")
    return names, found


def chunks(path: Path, sheet: str | None = None, *, report_cut: bool = True) -> Iterator[Chunk | Refusal | Truncated]:
    """The rows in chunks of bounded size (`unit` is "row", places are Excel's row numbers).

    With `report_cut` a note comes for each row that Excel cut; the row itself comes too.
    """
    names, found = rows(path, sheet)
    held: list[list[Any]] = []
    lines: list[int] = []
    size = 0
    for line, cells in found:
        cut = cut_columns(names, cells) if report_cut else []
        if cut:
            yield cut_note(path, line, cut)
        held.append(cells)
        lines.append(line)
        size += sum(len(one) for one in cells if isinstance(one, str))
        if len(lines) >= CHUNK_ROWS or size >= CHUNK_BYTES:
            yield _chunk(names, held, lines)
            held, lines, size = [], [], 0
    if lines:
        yield _chunk(names, held, lines)


def cut_columns(names: Iterable[str], cells: Iterable[Any]) -> list[str]:
    """Columns whose text is as long as Excel keeps, so that its end is lost."""
    return [
        name
        for name, one in zip(names, cells, strict=False)
        if isinstance(one, str) and len(one) * 2 >= LONGEST_CELL and (len(one) == LONGEST_CELL or _units(one) == LONGEST_CELL)
    ]


def cut_note(path: Path, line: int, names: list[str]) -> Refusal:
    """What to say of a row that Excel cut; the row itself is kept."""
    several = f"column{'s' if len(names) > 1 else ''} {', '.join(names)}"
    reason = f"row {line}, {several}: exactly 32,767 characters, the most that Excel keeps, so its end is lost; the row is kept"
    return Refusal(file=str(path), line=line, reason=f"{reason} (write CSV, TSV or JSON instead of xlsx)")


def _chunk(names: list[str], held: list[list[Any]], lines: list[int]) -> Chunk:
    cells = {name: list(one) for name, one in zip(names, zip(*held, strict=True), strict=True) if name}
    return Chunk(columns=cells, lines=lines, unit="row")


def _filled(path: Path, sheet: str | None) -> Iterator[tuple[int, list[Any]]]:
    """Rows that are not empty, as wide as the first of them."""
    width: int | None = None
    for number, cells in enumerate(_opened(path, sheet), 1):
        plain = [_plain(one) for one in cells]
        if all(one is None for one in plain):
            continue
        if width is None:
            while plain[-1] is None:
                plain.pop()
            width = len(plain)
        yield number, plain[:width] + [None] * (width - len(plain))


def _opened(path: Path, sheet: str | None) -> Iterator[list[Any]]:
    """Every row of a sheet by calamine."""
    import python_calamine as calamine

    try:
        parts = find_parts(path, sheet)
        examine(path, parts)
        with calamine.load_workbook(str(path)) as book:
            yield from book.get_sheet_by_index(parts.position).iter_rows()
    except InputError:
        raise
    except OSError as err:
        message = f"cannot be read: {err.strerror or err}"
        raise InputError(message, where=str(path)) from err
    except zipfile.BadZipFile as err:
        raise InputError(foreign_file(path), where=str(path), hint="run its writer again") from err
    except GeneratorExit:
        raise
    except BaseException as err:  # calamine's own errors, and the panics of what it is made of, which are no Exception
        if not isinstance(err, Exception) and type(err).__name__ != "PanicException":
            raise
        message = f"a workbook that cannot be read: {said_by(err)[:200]}"
        raise InputError(message, where=str(path), hint="run its writer again, or open it and save it as CSV") from err


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < EXACT_FLOAT else value
    if isinstance(value, str):
        return value or None
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    return str(value) if isinstance(value, timedelta) else value


def _units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
