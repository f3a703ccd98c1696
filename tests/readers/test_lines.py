from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracker.errors import InputError, SourceFormatError
from tracker.readers import lines
from tracker.readers.lines import LARGEST_DOCUMENT, json_document, json_lines

if TYPE_CHECKING:
    from pathlib import Path


def written(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def test_good_lines_survive_every_kind_of_bad_neighbour(tmp_path: Path) -> None:
    data = b'\xef\xbb\xbf{"a": 1}\r\n\n  \n{"a": NaN}\n{"a": "\\ud83d"}\n{"a": "caf\xe9"}\n{"a":}\n{"a": "x\xe2\x80\xa8y"}\n[1]\n{"a": "cut'
    found = list(json_lines(written(tmp_path / "a.jsonl", data)))
    assert [line.number for line in found] == [1, 4, 5, 6, 7, 8, 9, 10]
    assert found[0].value == {"a": 1}
    assert math.isnan(found[1].value["a"])
    assert found[2].value == {"a": "\ufffd"}
    assert found[3].error is not None
    assert "byte 0xe9 at column 11 is not UTF-8" in found[3].error
    assert "iconv -f LATIN1 -t UTF-8 'a.jsonl'" in found[3].error
    assert found[4].error == "not valid JSON at column 6: Expecting value (correct or delete the line)"
    assert found[5].value == {"a": "x\u2028y"}
    assert found[6].value == [1]
    assert found[7].error is not None
    assert found[7].error.startswith("JSON that is cut off at column 11")
    assert [line.truncated for line in found] == [False] * 7 + [True]


def test_a_whole_number_beyond_64_bits_is_what_the_fast_parser_makes_of_it(tmp_path: Path) -> None:
    digits = ["18446744073709551615", "18446744073709551616", "-9223372036854775809", "1" * 40, "1" * 5000]
    fast = list(json_lines(written(tmp_path / "a.jsonl", "".join(f'{{"a": {one}}}\n' for one in digits[:4]).encode())))
    slow = list(json_lines(written(tmp_path / "b.jsonl", "".join(f'{{"b": NaN, "a": {one}}}\n' for one in digits).encode())))
    assert [line.value["a"] for line in slow] == [line.value["a"] for line in fast] + [math.inf]
    assert json_document(written(tmp_path / "c.json", f'{{"b": NaN, "a": {digits[3]}}}'.encode())) == {
        "b": pytest.approx(math.nan, nan_ok=True),
        "a": 1.1111111111111112e39,
    }


def test_a_cut_line_in_the_middle_is_no_truncated_file(tmp_path: Path) -> None:
    found = list(json_lines(written(tmp_path / "a.jsonl", b'{"a": [1, 2\n{"a": 1}\n')))
    assert [line.truncated for line in found] == [False, False]
    assert found[1].value == {"a": 1}


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf16_is_refused_once_with_its_remedy(tmp_path: Path, encoding: str) -> None:
    found = list(json_lines(written(tmp_path / "a.jsonl", '{"a": 1}\n{"a": 2}\n'.encode(encoding))))
    assert len(found) == 1
    assert "iconv -f UTF-16 -t UTF-8" in str(found[0].error)


def test_a_git_lfs_pointer_says_how_to_fetch_the_file(tmp_path: Path) -> None:
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12\n"
    (line,) = json_lines(written(tmp_path / "a.jsonl", pointer))
    assert "git lfs pull" in str(line.error)


def test_lines_longer_than_a_block_are_read_whole(tmp_path: Path) -> None:
    long = json.dumps({"a": "x" * (3 * lines.BLOCK_BYTES)})
    found = list(json_lines(written(tmp_path / "a.jsonl", f'{{"a": 0}}\n{long}\n{{"a": 2}}'.encode())))
    assert [line.number for line in found] == [1, 2, 3]
    assert len(found[1].value["a"]) == 3 * lines.BLOCK_BYTES


def test_an_endless_line_is_refused_and_the_next_one_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "LONGEST_LINE", 1000)
    monkeypatch.setattr(lines, "BLOCK_BYTES", 300)
    data = b'{"a": 1}\n{"a": "' + b"x" * 5000 + b'"}\n{"a": 3}\n'
    found = list(json_lines(written(tmp_path / "a.jsonl", data)))
    assert [(line.number, line.value) for line in found] == [(1, {"a": 1}), (2, None), (3, {"a": 3})]


def test_deep_nesting_is_an_error_not_a_crash(tmp_path: Path) -> None:
    found = list(json_lines(written(tmp_path / "a.jsonl", b"[" * 200_000 + b'\n{"a": 1}\n')))
    assert found[0].error is not None
    assert found[1].value == {"a": 1}


@given(
    st.lists(
        st.dictionaries(st.text(max_size=5), st.one_of(st.integers(-(2**63), 2**64 - 1), st.floats(), st.text(), st.none()), max_size=4),
        max_size=20,
    ),
    st.integers(1, 50),
)
def test_any_block_size_gives_the_same_lines(tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, object]], block: int) -> None:
    path = written(tmp_path_factory.mktemp("lines") / "a.jsonl", "\n".join(json.dumps(row) for row in rows).encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "BLOCK_BYTES", block)
        found = list(json_lines(path))
    assert [line.number for line in found] == list(range(1, len(rows) + 1))
    assert [json.dumps(line.value) for line in found] == [json.dumps(json.loads(json.dumps(row))) for row in rows] or any(
        "\\ud" in json.dumps(row) for row in rows
    )


def test_documents_say_where_they_are_broken(tmp_path: Path) -> None:
    assert json_document(written(tmp_path / "a.json", b'{"a": [1, NaN]}'))["a"][0] == 1
    with pytest.raises(SourceFormatError, match="line 2, column 6"):
        json_document(written(tmp_path / "b.json", b'{\n"a": x}'))
    with pytest.raises(SourceFormatError, match="cut off"):
        json_document(written(tmp_path / "c.json", b'{"a": [1, 2'))
    with pytest.raises(InputError, match=r"line 2.*0xe9"):
        json_document(written(tmp_path / "d.json", b'{\n"a": "\xe9"}'))
    with pytest.raises(InputError, match="empty file"):
        json_document(written(tmp_path / "e.json", b" \n"))
    with pytest.raises(InputError, match="cannot be read"):
        json_document(tmp_path / "none.json")


def test_a_document_beyond_memory_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "huge.json"
    with path.open("wb") as stream:
        stream.truncate(LARGEST_DOCUMENT + 1)
    with pytest.raises(InputError, match="would take too much memory"):
        json_document(path)
