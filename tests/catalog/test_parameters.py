"""Counts against totals that others published: the issue, the Hugging Face Hub's safetensors totals, papers."""

from __future__ import annotations

import inspect
import math

import pytest

from tracker.catalog import count, load, vision

# Language part: totals of the released checkpoints (safetensors metadata of the Hub, a tied head counted once).
PUBLISHED_BACKBONES = {
    "Qwen3-0.6B": 596_049_920,
    "Qwen3-0.6B-Base": 596_049_920,
    "Qwen3-1.7B": 1_720_574_976,
    "Qwen3-4B": 4_022_468_096,
    "Qwen3-8B": 8_190_735_360,
    "Qwen3-14B": 14_768_307_200,
    "Qwen3-32B": 32_762_123_264,
    "Qwen3-30B-A3B": 30_532_122_624,
    "Qwen2.5-0.5B": 494_032_768,
    "Qwen2.5-1.5B": 1_543_714_304,
    "Qwen2.5-3B": 3_085_938_688,
    "Qwen2.5-7B": 7_615_616_512,
    "Qwen2.5-14B": 14_770_033_664,
    "Qwen2.5-32B": 32_763_876_352,
    "Qwen2.5-72B": 72_706_203_648,
    "Falcon3-1B-Base": 1_669_408_768,
    "Falcon3-3B-Base": 3_227_655_168,
    "Falcon3-7B-Base": 7_455_550_464,
    "Falcon3-10B-Base": 10_305_653_760,
    "Llama-3.2-1B": 1_235_814_400,
    "Llama-3.2-3B": 3_212_749_824,
    "gemma-2-2b": 2_614_341_888,
    "gemma-2-9b": 9_241_705_984,
    "Mistral-7B-v0.3": 7_248_023_552,
    "deepseek-llm-7b-base": 6_910_365_696,
    "deepseek-math-7b-instruct": 6_910_365_696,
    "internlm2_5-1_8b-chat": 1_889_110_016,
    "internlm2_5-7b-chat": 7_737_708_544,
    "internlm2_5-20b-chat": 19_861_149_696,
    "internlm3-8b-instruct": 8_804_241_408,
}

# Whole checkpoints: language part, vision encoder and projector together.
PUBLISHED_MODELS = {
    "InternVL2.5-1B": 938_193_024,
    "InternVL2.5-8B": 8_075_365_376,
    "InternVL3-8B": 7_944_373_760,
    "InternVL3.5-1B": 1_060_897_792,
    "InternVL3.5-8B": 8_528_318_464,
    "Qwen2.5-VL-3B": 3_754_622_976,
    "Qwen2.5-VL-7B": 8_292_166_656,
    "Qwen2.5-VL-32B": 33_452_718_336,
    "Qwen2.5-VL-72B": 73_410_777_344,
    "Qwen3-VL-2B": 2_127_532_032,
    "Qwen3-VL-4B": 4_437_815_808,
    "Qwen3-VL-8B": 8_767_123_696,
}


@pytest.mark.parametrize(
    ("model", "parameters"), [("InternVL3.5-1B", 751_632_384), ("InternVL3.5-2B", 2_031_739_904), ("InternVL3.5-8B", 8_190_735_360)]
)
def test_known_answers_of_the_issue(model: str, parameters: int) -> None:
    assert load().parameters_of(load().models[model]) == parameters


def test_geometric_mean_over_the_26_models_is_660_billion() -> None:
    counts = [load().parameters_of(model) or 0 for model in load().models.values()]
    assert len(counts) == 26
    assert round(math.exp(sum(math.log(n) for n in counts) / 26) / 1e9, 2) == 6.60


def test_paper_has_22_distinct_backbone_levels_of_which_15_are_interior() -> None:
    """The hold-out folds of separable-law count exact N: equal vocabularies must give equal counts."""
    catalog = load()
    by_series: dict[str, list[int]] = {}
    for model in catalog.models.values():
        by_series.setdefault(model.series, []).append(catalog.parameters_of(model) or 0)
    assert len({n for counts in by_series.values() for n in counts}) == 22
    assert len({n for counts in by_series.values() for n in sorted(counts)[1:-1]}) == 15


@pytest.mark.parametrize(("backbone", "parameters"), PUBLISHED_BACKBONES.items())
def test_backbone_counts_equal_published_totals(backbone: str, parameters: int) -> None:
    assert load().backbones[backbone].parameters == parameters


@pytest.mark.parametrize(("name", "total"), PUBLISHED_MODELS.items())
def test_language_and_vision_together_equal_the_checkpoint(name: str, total: int) -> None:
    catalog = load()
    model = catalog.models[name]
    assert (catalog.parameters_of(model) or 0) + (model.vision_parameters or 0) == total


def test_internvl_language_parts_round_to_what_the_model_cards_print() -> None:
    """InternVL3.5's card: 0.8, 2.0, 4.4, 8.2, 14.8, 32.8 billion; tied heads would give 0.6 and 1.7 and 4.0."""
    catalog = load()
    printed = [
        round((catalog.parameters_of(catalog.models[f"InternVL3.5-{size}"]) or 0) / 1e9, 1)
        for size in ("1B", "2B", "4B", "8B", "14B", "38B")
    ]
    assert printed == [0.8, 2.0, 4.4, 8.2, 14.8, 32.8]


def test_encoders_alone() -> None:
    """InternViT-300M has 304,012,288 parameters; the rest of vision_parameters is the projector."""
    catalog = load()
    total = vision.count(catalog.encoders["InternViT-300M"].architecture, 1024)
    assert total - (2 * 4096 + 4096 * 1024 + 1024 + 1024 * 1024 + 1024) == 304_012_288


OTHER_KINDS = [
    ("mixtral", {"layers": 32, "width": 4096, "heads": 32, "kv_heads": 8, "head_width": 128, "experts": 8, "experts_per_token": 2, "expert_width": 14336, "vocabulary": 32000, "tied": False}, 46_702_792_704),
    ("qwen2_moe", {"layers": 24, "width": 2048, "heads": 16, "kv_heads": 16, "head_width": 128, "experts": 60, "experts_per_token": 4, "expert_width": 1408, "shared_width": 5632, "vocabulary": 151936, "tied": False}, 14_315_784_192),
    ("gpt_neox", {"layers": 16, "width": 2048, "heads": 8, "mlp_width": 8192, "vocabulary": 50304, "tied": False}, 1_011_781_632),
    ("gpt_neox", {"layers": 32, "width": 4096, "heads": 32, "mlp_width": 16384, "vocabulary": 50432, "tied": False}, 6_857_302_016),
    ("gemma3", {"layers": 26, "width": 1152, "heads": 4, "kv_heads": 1, "head_width": 256, "mlp_width": 6912, "vocabulary": 262144, "tied": True}, 999_885_952),
    ("llama", {"layers": 32, "width": 4096, "heads": 32, "kv_heads": 32, "head_width": 128, "mlp_width": 11008, "vocabulary": 32000, "tied": False}, 6_738_415_616),
]  # fmt: skip
"""Mixtral-8x7B, Qwen1.5-MoE-A2.7B, Pythia-1B and -6.9B, Gemma-3-1B, Llama-2-7B: kinds that the shipped data uses little or not."""


@pytest.mark.parametrize(("kind", "numbers", "total"), OTHER_KINDS)
def test_kinds_without_shipped_backbones(kind: str, numbers: dict[str, object], total: int) -> None:
    assert count.count({"kind": kind, **numbers}).total == total


def test_experts_that_a_token_does_not_use_are_not_active() -> None:
    backbone = load().backbones["Qwen3-30B-A3B"]
    assert backbone.active_parameters == 3_353_032_704
    assert load().backbones["Qwen3-8B"].active_parameters == load().backbones["Qwen3-8B"].parameters


@pytest.mark.parametrize("kind", [*count.KINDS.values(), *vision.KINDS.values()])
def test_every_kind_documents_its_formula(kind: count.Kind | vision.Kind) -> None:
    assert len((inspect.getdoc(kind.counts) or "").splitlines()) > 2
