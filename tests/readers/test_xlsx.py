"""Workbooks: values as they are in the file, what Excel cuts, and files that are damaged or made to do harm."""

from __future__ import annotations

import datetime as dt
import io
import random
import struct
import warnings
import zipfile
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest
import xlsxwriter

from tests.conftest import samples
from tracker.batch import Refusal
from tracker.errors import InputError
from tracker.readers import xlsx, xlsx_archive
from tracker.readers.tabular import Chunk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path


def written(path: Path, rows: Sequence[Sequence[Any]], **options: Any) -> Path:
    """Rows by xlsxwriter."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with xlsxwriter.Workbook(path, {"strings_to_formulas": False, **options}) as book:
            sheet = book.add_worksheet("first")
            for at, row in enumerate(rows):
                for column, value in enumerate(row):
                    sheet.write(at, column, value)
    return path


def content(path: Path, sheet: str | None = None) -> tuple[list[str], list[tuple[int, list[Any]]]]:
    names, found = xlsx.rows(path, sheet)
    return names, list(found)


def by_hand(path: Path) -> list[list[str]]:
    """The cells of a workbook without gaps, as text, read from its XML by the standard library alone."""
    space = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
    with zipfile.ZipFile(path) as archive:
        items = ET.fromstring(archive.read("xl/sharedStrings.xml")).iter(f"{space}si")  # noqa: S314 - a known file
        texts = ["".join(part.text or "" for part in item.iter(f"{space}t")).replace("_x005F_", "_") for item in items]
        rows = ET.fromstring(archive.read("xl/worksheets/sheet1.xml")).iter(f"{space}row")  # noqa: S314
        return [[texts[int(told(cell, space))] if cell.get("t") == "s" else told(cell, space) for cell in row] for row in rows]


def told(cell: ET.Element, space: str) -> str:
    return cell.findtext(f"{space}v") or ""


def rewritten(source: Path, target: Path, member: str, blocks: Callable[[], Iterator[bytes]]) -> Path:
    """The same workbook with other bytes in one member."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as new:
        for info in old.infolist():
            if info.filename != member:
                new.writestr(info.filename, old.read(info))
        with new.open(member, "w", force_zip64=True) as stream:
            for block in blocks():
                stream.write(block)
    return target


def test_values_are_what_the_file_holds(tmp_path: Path) -> None:
    texts = ["NA", "None", "nan", "null", "001", "1e5", "True", "=1+1", "a\x0bb", "a\r\nb", "_x000B_", "  x ", "café 😀", "#N/A"]
    path = written(
        tmp_path / "a.xlsx", [["kind", "value"], *[["text", one] for one in texts], ["n", 3], ["n", 2.5], ["b", True], ["none", ""]]
    )
    names, rows = content(path)
    assert names == ["kind", "value"]
    assert [cells[1] for _, cells in rows] == [*texts, 3, 2.5, True, None]
    assert [type(cells[1]) for _, cells in rows[len(texts) : len(texts) + 3]] == [int, float, bool]
    assert [number for number, _ in rows] == list(range(2, len(rows) + 2))
    assert xlsx.columns(path) == names


def test_dates_are_iso_text_and_errors_are_empty(tmp_path: Path) -> None:
    with xlsxwriter.Workbook(tmp_path / "a.xlsx", {"default_date_format": "yyyy-mm-dd hh:mm:ss"}) as book:
        sheet = book.add_worksheet("one")
        sheet.write_row(0, 0, ["a", "b", "c"])
        sheet.write_datetime(1, 0, dt.datetime(2026, 1, 2, 3, 4, 5))  # noqa: DTZ001 - Excel knows no zones
        sheet.write_datetime(1, 1, dt.datetime(2026, 1, 2), book.add_format({"num_format": "yyyy-mm-dd"}))  # noqa: DTZ001
        sheet.write_datetime(1, 2, dt.time(1, 2, 3), book.add_format({"num_format": "hh:mm:ss"}))
        sheet.write_formula(2, 0, "=1/0", None, "#DIV/0!")
        sheet.write_formula(2, 1, "=1+1", None, 2)
        sheet.write_formula(2, 2, '="x"', None, "x")
        book.add_worksheet("two").write(0, 0, "other")
    names, rows = content(tmp_path / "a.xlsx")
    assert names == ["a", "b", "c"]
    assert rows == [(2, ["2026-01-02T03:04:05", "2026-01-02", "01:02:03"]), (3, [None, 2, "x"])]
    assert content(tmp_path / "a.xlsx", "two") == (["other"], [])
    assert xlsx.columns(tmp_path / "a.xlsx", "two") == ["other"]
    assert xlsx.columns(tmp_path / "a.xlsx", "third") is None
    with pytest.raises(InputError, match="no sheet 'third'; it has one, two"):
        xlsx.rows(tmp_path / "a.xlsx", "third")


def test_a_table_may_begin_anywhere_and_have_gaps(tmp_path: Path) -> None:
    with xlsxwriter.Workbook(tmp_path / "a.xlsx") as book:
        sheet = book.add_worksheet()
        for row, column, value in [(3, 2, "h1"), (3, 4, "h2"), (7, 2, 5), (8, 4, "z"), (8, 6, "outside")]:
            sheet.write(row, column, value)
    assert content(tmp_path / "a.xlsx") == (["h1", "", "h2"], [(8, [5, None, None]), (9, [None, None, "z"])])
    assert xlsx.columns(tmp_path / "a.xlsx") == ["h1", "", "h2"]
    (chunk,) = xlsx.chunks(tmp_path / "a.xlsx")
    assert isinstance(chunk, Chunk)
    assert (chunk.columns, chunk.lines, chunk.unit) == ({"h1": [5, None], "h2": [None, "z"]}, [8, 9], "row")


def test_a_text_as_long_as_excel_keeps_is_reported(tmp_path: Path) -> None:
    long = "x" * 40_000
    path = written(tmp_path / "a.xlsx", [["a", "b"], ["short", long], [long, long], ["x" * 32_766, 1]])
    *notes, chunk = xlsx.chunks(path)
    assert [(one.line, one.reason.partition(":")[0]) for one in notes if isinstance(one, Refusal)] == [
        (2, "row 2, column b"),
        (3, "row 3, columns a, b"),
    ]
    assert isinstance(chunk, Chunk)
    assert [len(one) for one in chunk.columns["a"]] == [5, 32_767, 32_766]
    assert [type(one) for one in xlsx.chunks(path, report_cut=False)] == [Chunk]
    assert xlsx.cut_columns(["a"], ["😀" * 16_383 + "x"]) == ["a"]  # Excel counts UTF-16 units


def test_many_rows_come_in_chunks(tmp_path: Path) -> None:
    path = written(tmp_path / "a.xlsx", [["index", "text"], *[[at, f"text {at}"] for at in range(45_000)]], constant_memory=True)
    found = [one for one in xlsx.chunks(path) if isinstance(one, Chunk)]
    assert [len(one.lines) for one in found] == [20_000, 20_000, 5_000]
    assert [value for one in found for value in one.columns["index"]] == list(range(45_000))


def test_a_real_workbook_reads_as_its_own_xml_says() -> None:
    path = samples("vlmevalkit", "mmstar", "eval", "submits", "llava_next_yi_34b_MMStar.xlsx")
    header, *expected = by_hand(path)
    names, rows = content(path)
    assert names == xlsx.columns(path) == header
    assert [[str(cell) for cell in cells] for _, cells in rows] == expected


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "empty file"),
        (b"\0" * 100, "empty file"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0", "git lfs pull"),
        (xlsx_archive.OLD_MAGIC + b"\0" * 600, "old format"),
        (xlsx_archive.OLD_MAGIC + "EncryptedPackage".encode("utf-16-le"), "password"),
        (b"a,b\n1,2\n", "no workbook"),
        (b"PK\x03\x04" + b"x" * 100, "cut off or damaged"),
    ],
    ids=str,
)
def test_what_is_no_workbook_is_said_to_be(tmp_path: Path, data: bytes, said: str) -> None:
    path = tmp_path / "a.xlsx"
    path.write_bytes(data)
    assert xlsx.columns(path) is None
    with pytest.raises(InputError, match=said) as caught:
        xlsx.rows(path)
    assert str(path) in str(caught.value)


def test_other_archives_empty_sheets_and_repeated_names_are_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "zip.xlsx", "w") as archive:
        archive.writestr("header.json", "{}")
    with pytest.raises(InputError, match="without a workbook"):
        xlsx.rows(tmp_path / "zip.xlsx")
    with pytest.raises(InputError, match="without any cell"):
        xlsx.rows(written(tmp_path / "empty.xlsx", []))
    with pytest.raises(InputError, match="names a column twice: a"):
        xlsx.rows(written(tmp_path / "twice.xlsx", [["a", "b", "a"], [1, 2, 3]]))
    with pytest.raises(InputError, match="cannot be read: No such file"):
        xlsx.rows(tmp_path / "nowhere.xlsx")


def test_damage_anywhere_is_an_input_error_or_the_rows(tmp_path: Path) -> None:
    rows: list[list[Any]] = [["index", "text"], *[[at, f"words {at} " * 20] for at in range(50)]]
    whole = written(tmp_path / "a.xlsx", rows).read_bytes()
    path, draw = tmp_path / "b.xlsx", random.Random(3)
    outcomes: set[Any] = set()
    for turn in range(400):
        data = bytearray(whole)
        if turn % 2:
            del data[draw.randrange(len(data)) :]
        else:
            for _ in range(draw.choice([1, 3, 30])):
                data[draw.randrange(len(data))] = draw.randrange(256)
        path.write_bytes(data)
        xlsx.columns(path)
        try:
            outcomes.add(len(content(path)[1]))
        except InputError as err:
            outcomes.add("refused" if "b.xlsx" in str(err.where) else str(err))
    assert outcomes == {50, "refused"}


def test_a_stray_cell_does_not_make_a_sheet_of_billions(tmp_path: Path) -> None:
    with xlsxwriter.Workbook(tmp_path / "a.xlsx") as book:
        sheet = book.add_worksheet()
        sheet.write(0, 0, "index")
        sheet.write(1_048_575, 16_383, "far")
    with pytest.raises(InputError, match="1048576 rows and up to 16384 columns"):
        xlsx.rows(tmp_path / "a.xlsx")


def test_a_small_file_may_not_unpack_to_anything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xlsx_archive, "UNPACKED_BYTES", 8 << 20)
    small = written(tmp_path / "a.xlsx", [["index"], *[["x" * 100]] * 3])

    def strings() -> Iterator[bytes]:
        yield b'<sst xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><si><t>'
        for _ in range(20):
            yield b"x" * (1 << 20)
        yield b"</t></si></sst>"

    bomb = rewritten(small, tmp_path / "bomb.xlsx", "xl/sharedStrings.xml", strings)
    assert bomb.stat().st_size < 100_000
    with pytest.raises(InputError, match="unpacks to more than 8 MB"):
        xlsx.rows(bomb)
    data = bytearray(bomb.read_bytes())  # a lie about its size in the archive's directory
    place = data.rfind(b"PK\x01\x02", 0, data.rfind(b"xl/sharedStrings.xml"))
    data[place + 24 : place + 28] = struct.pack("<I", 500)
    (tmp_path / "lie.xlsx").write_bytes(data)
    assert zipfile.ZipFile(io.BytesIO(data)).getinfo("xl/sharedStrings.xml").file_size == 500
    with pytest.raises(InputError, match="unpacks to more than 8 MB"):
        xlsx.rows(tmp_path / "lie.xlsx")


def test_a_text_that_a_million_cells_share_is_counted_for_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xlsx_archive, "UNPACKED_BYTES", 8 << 20)
    source = written(tmp_path / "a.xlsx", [["index"], ["y" * 30_000]])

    def cells() -> Iterator[bytes]:
        yield b'<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData><row r="1"><c r="A1" t="s"><v>0</v></c></row>'
        for row in range(2, 1002):
            yield b'<row r="%d"><c r="A%d" t="s"><v>1</v></c></row>' % (row, row)
        yield b"</sheetData></worksheet>"

    shared = rewritten(source, tmp_path / "b.xlsx", "xl/worksheets/sheet1.xml", cells)
    with pytest.raises(InputError, match="texts are more than 8 MB"):
        xlsx.rows(shared)
    monkeypatch.setattr(xlsx_archive, "UNPACKED_BYTES", 64 << 20)
    assert len(content(shared)[1]) == 1000
