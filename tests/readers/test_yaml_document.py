"""YAML as frameworks dump it, and documents that mean harm."""

from __future__ import annotations

import math
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tracker.readers.yaml_document import DEEPEST, LARGEST, YamlError, parse

PATH = Path("folder/meta.yaml")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("\ufeffa: 1", {"a": 1}),
        ("a: 2024-01-01\nb: 2024-01-01 10:00:00", {"a": "2024-01-01", "b": "2024-01-01 10:00:00"}),
        ("1: a\ntrue: b\n2024-01-01: c", {"1": "a", "true": "b", "2024-01-01": "c"}),
        ("a: 'yes'\nb: yes\nc: .inf\nd: 0x1F\ne: ~", {"a": "yes", "b": True, "c": math.inf, "d": 31, "e": None}),
        ("a: &x [1, {b: 2}]\nc: *x", {"a": [1, {"b": 2}], "c": [1, {"b": 2}]}),
        ("a: &x {b: 1}\nc: {<<: *x, d: 2}", {"a": {"b": 1}, "c": {"b": 1, "d": 2}}),
        ("a: !!python/object/apply:os.system [ls]\nb: !Mode high\nc: !!binary aGk=\nd: !!timestamp 2024-01-01", None),
    ],
)
def test_values(text: str, value: Any) -> None:
    wanted = value if "!!" not in text else {"a": ["ls"], "b": "high", "c": "aGk=", "d": "2024-01-01"}
    assert parse(text, PATH) == wanted


# What PyYAML writes with allow_unicode and reads back as something else is left out.
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\x85\u2028\u2029"), max_size=30)
SCALAR = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT | st.dates().map(str)


@given(st.dictionaries(TEXT, SCALAR | st.lists(SCALAR, max_size=3) | st.dictionaries(TEXT, SCALAR, max_size=3), max_size=5), st.booleans())
def test_what_pyyaml_dumps_is_read_back(told: dict[str, Any], readable: bool) -> None:
    assert parse(yaml.safe_dump(told, allow_unicode=readable), PATH) == told


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: 1\nb: 'x", "line 2, column 6: not valid YAML: while scanning a quoted scalar: found unexpected end of stream"),
        ("a: b: c", "line 1, column 5"),
        ("a: *nowhere", "undefined alias"),
        ("? [a]\n: 1", "unhashable key"),
        ("a: 1\n---\nb: 1", "line 2, column 1: not valid YAML: expected a single document"),
        ("a: 1\nb: \0", "line 2: not valid YAML: control characters are not allowed"),
        ("a: " + "9" * 5000, "digits"),
        ("a: !!int x", "invalid literal"),
        ("a: \ud800", "surrogates"),
        ("[" * 1_000_000, "nest"),
        ("- " * 1_000_000, "nest"),
        ("- " * (DEEPEST + 5) + "x", "nested too deeply"),
        ("a: &x [*x]", "nested too deeply"),
        ("a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, DEEPEST + 5)), "nested too deeply"),
        ("a0: &a0 lol\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12)), "aliases"),
        ("a0: &a0 {x: 1}\n" + "".join(f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}]}}\n" for n in range(1, 40)), "aliases"),
        ("a: &a " + "x" * 100_000 + "\nb: [" + "*a, " * 1000 + "]", "aliases"),
        ("#" * (LARGEST + 1), "larger than 16 MB"),
    ],
    ids=lambda one: one[:20],
)
def test_what_cannot_be_read_is_an_error_in_one_line_with_its_place(text: str, words: str) -> None:
    with pytest.raises(YamlError) as caught:
        parse(text, PATH)
    assert words in str(caught.value)
    assert str(caught.value).startswith("folder/meta.yaml: line ")
    assert str(caught.value).endswith("(correct it, or fetch it again)")
    assert "\n" not in str(caught.value)


@given(st.text("ab :'\"-\n\\{}[]!&*?|>#1,<=", max_size=60))
def test_any_text_is_a_value_or_an_error_of_ours(text: str) -> None:
    with suppress(YamlError):
        parse(text, PATH)
