"""One evaluation met in several formats is one configuration: every spelling, where it may stand, what goes first, what says nothing."""

from __future__ import annotations

from typing import Any

import pytest

from tracker.batch import PRECISIONS, Settings
from tracker.readers.setting import NESTED, PRECISION_KEYS, SPELLINGS, precision_of, revision_of, settings_from

COLUMNS = [(column, spelling) for column, spellings in SPELLINGS.items() for spelling in spellings]


@pytest.mark.parametrize(("column", "spelling"), COLUMNS)
@pytest.mark.parametrize("value", [448, 448.0, "448", " 448 ", "448.0"], ids=repr)
def test_every_spelling_of_every_column(column: str, spelling: str, value: Any) -> None:
    assert settings_from({spelling: value}) == Settings.model_validate({column: 448})


def test_no_spelling_means_two_columns() -> None:
    spellings = [spelling for _, spelling in COLUMNS]
    assert len(spellings) == len(set(spellings))


@pytest.mark.parametrize(
    "value",
    [None, "", "auto", "None", True, False, -1, 0.5, "many", float("nan"), float("inf"), 2**70, [], {}, ["x"], {"a": "x"}],
    ids=repr,
)
@pytest.mark.parametrize("column", SPELLINGS)
def test_what_is_no_count_says_nothing(column: str, value: Any) -> None:
    assert settings_from({SPELLINGS[column][0]: value}) == Settings()


def test_zero_shots_is_an_answer_and_zero_of_anything_else_is_none() -> None:
    for column, spellings in SPELLINGS.items():
        found = settings_from({spellings[0]: 0})
        assert found == (Settings(few_shot=0) if column == "few_shot" else Settings())
    assert settings_from({"num_fewshot": 0}, {"num_fewshot": 5}).few_shot == 0
    assert settings_from({"num_fewshot": None}, {"num_fewshot": 5}).few_shot == 5
    assert settings_from({"num_fewshot": 5}, few_shot=0).few_shot == 0
    assert settings_from({"num_fewshot": 5}, few_shot=None).few_shot == 5


@pytest.mark.parametrize("column", ["vision_branches", "language_branches"])
@pytest.mark.parametrize("spelling", ["{}", "num_{}", "n_{}"])
def test_branch_counts(column: str, spelling: str) -> None:
    name = spelling.format(column)
    assert settings_from({name: 2}) == Settings.model_validate({column: 2})
    assert settings_from({name: None}) == settings_from({name: 0}) == Settings()
    assert settings_from({name: 1}) != Settings()


@pytest.mark.parametrize("inside", NESTED)
def test_arguments_of_the_processor_stand_inside(inside: str) -> None:
    assert settings_from({"pretrained": "m", inside: {"max_pixels": 1003520, "dtype": "bf16"}}) == Settings(
        pixel_cap=1003520, precision="bf16"
    )
    assert settings_from({f"model_args.{inside}": {"max_pixels": 7}}) == Settings(pixel_cap=7)
    assert settings_from({inside: "text", "max_pixels": 9}) == Settings(pixel_cap=9)


def test_outside_goes_before_inside_and_the_first_mapping_before_the_next() -> None:
    inner, outer = {"max_pixels": 1}, {"max_pixels": 2, "mm_processor_kwargs": {"max_pixels": 1, "max_num": 6}}
    assert settings_from(outer) == Settings(pixel_cap=2, max_tiles=6)
    assert settings_from(inner, outer) == Settings(pixel_cap=1, max_tiles=6)
    assert settings_from({"mm_processor_kwargs": inner}, {"max_pixels": 3}).pixel_cap == 1
    assert settings_from(None, {}, inner).pixel_cap == 1
    assert settings_from(inner, outer, pixel_cap=5).pixel_cap == 5


def test_of_several_spellings_in_one_mapping_the_first_listed_counts() -> None:
    for column, spellings in SPELLINGS.items():
        told = {spelling: place + 1 for place, spelling in reversed([*enumerate(spellings)])}
        assert getattr(settings_from(told), column) == 1, column


def test_dotted_names_and_paths_are_found_by_their_last_part_and_plain_ones_go_first() -> None:
    assert settings_from({"model.dtype": "fp16", "eval/num_fewshot": "5", "a.b.max_tokens": 64}) == Settings(
        precision="float16", few_shot=5, max_new_tokens=64
    )
    assert settings_from({"max_tokens": 32, "judge.max_tokens": 1024}).max_new_tokens == 32
    assert settings_from({"judge.max_tokens": 1024, "max_tokens": 32}).max_new_tokens == 32


@pytest.mark.parametrize(
    ("value", "size"),
    [
        ([336, 448], 448),
        ((448, 336), 448),
        ({"height": 336, "width": 448}, 448),
        ({"longest_edge": 1024}, 1024),
        (["448", None], 448),
        ([0, 0], None),
    ],
)
def test_the_input_size_is_the_longer_side(value: Any, size: int | None) -> None:
    assert settings_from({"image_size": value}) == Settings(input_size=size)
    assert settings_from({"max_pixels": value}) == Settings()


def test_the_size_of_a_processor_may_be_an_object_of_sides_or_of_numbers_of_pixels() -> None:
    """As the image processors of Hugging Face have it."""
    for told in (
        {"size": {"longest_edge": 1536}},
        {"processor_kwargs": {"size": {"longest_edge": 1536}}},
        {"size": {"height": 1536, "width": 768}},
    ):
        assert settings_from(told).pixel_cap is None
    assert (
        settings_from({"processor_kwargs": {"size": {"longest_edge": 1536}}})
        == settings_from({"long_edge": 1536})
        == Settings(input_size=1536)
    )
    assert settings_from({"size": {"shortest_edge": 3136, "longest_edge": 12845056}}) == Settings(pixel_cap=12845056)
    assert settings_from({"image_size": 65_536}).input_size == 65_536
    assert settings_from({"image_size": 65_537}) == Settings()


@pytest.mark.parametrize("key", PRECISION_KEYS)
@pytest.mark.parametrize(
    ("spelling", "kept"),
    [
        *PRECISIONS.items(),
        ("torch.bfloat16", "bfloat16"), ("BF16", "bfloat16"), ("bfloat16", "bfloat16"), ("torch.float16", "float16"), ("float16", "float16"),
        ("Half", "float16"), (" fp32 ", "float32"), ("8bit", "8bit"), ("4bit", "4bit"), ("awq", "awq"), ("fp8", "fp8"),
    ],
)  # fmt: skip
def test_a_precision_has_one_spelling(key: str, spelling: str, kept: str) -> None:
    assert settings_from({key: spelling}) == Settings(precision=kept)


@pytest.mark.parametrize("nothing", ["auto", "AUTO", "None", "null", "default", "", " ", None, float("nan")], ids=repr)
def test_a_dtype_that_leaves_it_to_the_checkpoint_says_nothing(nothing: Any) -> None:
    assert precision_of({"dtype": nothing}) is None
    assert settings_from({"dtype": nothing}, {"model_dtype": "bfloat16"}).precision == "bfloat16"
    assert settings_from({"precision": nothing, "dtype": "fp16"}).precision == "float16"


@pytest.mark.parametrize(("flag", "kept"), [("load_in_4bit", "4bit"), ("load_in_8bit", "8bit")])
def test_quantised_weights_go_before_the_dtype_of_the_computation(flag: str, kept: str) -> None:
    for yes in (True, "True", "true", 1, "1"):
        assert settings_from({"dtype": "bfloat16", flag: yes}).precision == kept
    for no in (False, "False", 0, None, ""):
        assert settings_from({"dtype": "bfloat16", flag: no}).precision == "bfloat16"


def test_revisions_other_than_the_main_one_are_variants() -> None:
    assert settings_from({"revision": "step1000"}).variant == settings_from({"model_revision": "step1000"}).variant == "revision=step1000"
    for main in ("main", "MAIN", "", None, "None", "default"):
        assert revision_of({"revision": main}) is None
    assert settings_from({"revision": "step1000"}, variant="mine").variant == "mine"


@pytest.mark.parametrize(
    ("told", "mode"), [("fixed", "fixed"), ("Native", "native"), (" fixed ", "fixed"), ("tiled", None), ("", None), (None, None), (3, None)]
)
def test_input_modes(told: Any, mode: str | None) -> None:
    assert settings_from({"input_mode": told}).input_mode == mode


def test_columns_that_no_mapping_is_asked_for_come_from_the_reader_alone() -> None:
    assert settings_from({"prompt": "x", "source_quality": "y", "variant": "z"}) == Settings()
    assert settings_from({}, prompt="x", source_quality="y", variant="z") == Settings(prompt="x", source_quality="y", variant="z")
