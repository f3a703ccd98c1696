"""Which field of a row is the key of its question."""

from __future__ import annotations

import pytest

from tracker.readers.keys import ID_FIELDS, OWN_IDS, id_fields, keyed, own_ids, question_key


@pytest.mark.parametrize(
    ("benchmark", "field"),
    [
        ("HRBench4K", "index"), ("hrbench8k", "index"), ("V*Bench", "question_id"), ("vstar_bench", "question_id"), ("VStarBench", "question_id"),
        ("MME-RealWorld-Lite", "question_id"), ("mmerealworld_lite", "question_id"), ("TreeBench", "question_id"), ("MMStar", "question_id"),
        ("MMMU_DEV_VAL", "id"), ("mmmu_val", "id"), ("MMBench_DEV_EN_V11", "index"), ("BLINK", "idx"), ("MathVista_MINI", "pid"),
        ("mathvista_testmini", "pid"), ("MathVision", "id"), ("MATH-V", "id"),
    ],
)  # fmt: skip
def test_benchmarks_with_ids_of_their_own_are_known_by_any_spelling(benchmark: str, field: str) -> None:
    assert own_ids(benchmark)[0] == field
    assert id_fields(benchmark) == (*own_ids(benchmark), *ID_FIELDS)


@pytest.mark.parametrize("benchmark", ["gsm8k", "math", "MME", "POPE", "RealWorldQA", "my-hrbench", "", "!"])
def test_others_have_none(benchmark: str) -> None:
    assert own_ids(benchmark) == ()


def test_mathvista_is_not_taken_for_mathvision() -> None:
    """Both begin alike; the longer name stands first."""
    names = list(OWN_IDS)
    assert all(not one.startswith(earlier) for place, one in enumerate(names) for earlier in names[:place])


def test_the_order_of_id_fields() -> None:
    row = {name: f"by-{name}" for name in ID_FIELDS}
    for name in ID_FIELDS:
        assert question_key("fw", "gsm8k", row) == f"by-{name}"
        del row[name]
    assert question_key("fw", "gsm8k", row) is None
    assert question_key("fw", "gsm8k", row, "a" * 64) == f"hash:{'a' * 24}"


def test_ids_of_the_data_set_stay_and_positions_get_a_prefix() -> None:
    assert question_key("fw", "MMStar", {"index": 7}) == "7"
    assert question_key("fw", "MathVista", {"pid": "7", "index": 3}) == "7"
    assert question_key("fw", "MathVista", {"index": 3}) == "fw:3"
    assert question_key("fw", "gsm8k", {"index": 7.0}) == "fw:7"
    assert question_key("fw", "gsm8k", {"id": "7.0"}) == "fw:7"
    assert question_key("fw", "gsm8k", {"id": "val_7"}) == "val_7"
    assert question_key("one", "gsm8k", {"id": 7}) != question_key("two", "gsm8k", {"id": 7})


@pytest.mark.parametrize("nothing", [None, "", "  ", float("nan")])
def test_what_says_nothing_is_passed_over(nothing: object) -> None:
    assert question_key("fw", "MMStar", {"question_id": nothing, "index": nothing, "doc_id": "d"}) == "d"
    assert question_key("fw", "MMStar", {"question_id": nothing}) is None


def test_zero_is_an_id() -> None:
    assert question_key("fw", "MMStar", {"index": 0}) == "0"
    assert question_key("fw", "gsm8k", {"id": 0}) == "fw:0"


@pytest.mark.parametrize("key", ["-1", "1.5", "1e3", "0x1", "a1", "1a", "1 2", "١x"])
def test_only_bare_whole_numbers_are_positions(key: str) -> None:
    assert keyed("fw", key) == key
