"""FLOP formulae against sums over single matrix products, and against the catalog's counts of parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from analyses.cost import flops as cost_flops
from tracker.catalog import load, vision

LANGUAGE = {"layers": 3, "width": 32, "heads": 4, "kv_heads": 2, "head_width": 16}
QWEN25 = {"kind": "qwen2_5_vl", "layers": 6, "width": 16, "mlp_width": 40, "patch": 14}
QWEN3 = {"kind": "qwen3_vl", "layers": 5, "width": 16, "mlp_width": 40, "patch": 16, "positions": 9, "deepstack": 3}
WIDTH = 24


def product(rows: int, inner: int, columns: int) -> float:
    """FLOP of a matrix product."""
    return 2.0 * rows * inner * columns


def self_attention(queries: int, keys: int, width: int) -> float:
    """Products of queries with keys, and of weights with values, all heads together."""
    return product(queries, width, keys) + product(queries, keys, width)


def gated(patches: int, d: int, m: int) -> float:
    return 2 * product(patches, d, m) + product(patches, m, d)


def merger(tokens: int, d: int) -> float:
    return product(tokens, 4 * d, 4 * d) + product(tokens, 4 * d, WIDTH)


def test_attention_is_the_sum_over_positions_of_what_each_sees() -> None:
    for tokens in (1, 2, 17, 230):
        loops = sum(
            LANGUAGE["layers"] * LANGUAGE["heads"] * self_attention(1, position, LANGUAGE["head_width"])
            for position in range(1, tokens + 1)
        )
        assert cost_flops.attention(LANGUAGE, np.array([float(tokens)]))[0] == loops


def test_attention_of_an_architecture_without_head_width_takes_the_width() -> None:
    plain = {"layers": 3, "width": 64, "heads": 4}
    assert cost_flops.attention(plain, np.array([10.0])) == cost_flops.attention(LANGUAGE, np.array([10.0]))


@pytest.mark.parametrize(("rows", "columns"), [(8, 8), (16, 24), (8, 64)])
def test_qwen2_5_vl_attends_within_windows_and_in_four_layers_to_everything(rows: int, columns: int) -> None:
    patches, d, m = rows * columns, QWEN25["width"], QWEN25["mlp_width"]
    assert isinstance(d, int)
    assert isinstance(m, int)
    loops = product(patches, 6 * 14**2, d) + merger(patches // 4, d)
    for layer in range(6):
        loops += 4 * product(patches, d, d) + gated(patches, d, m)
        windows = [patches] if layer < 4 else [64] * (rows // 8 * (columns // 8))
        loops += sum(self_attention(window, window, d) for window in windows)
    assert cost_flops.qwen2_5_vl(QWEN25, WIDTH, np.array([patches / 4]))[0] == pytest.approx(loops, rel=1e-14)


def test_qwen2_5_vl_sees_an_image_smaller_than_a_window_whole() -> None:
    small = cost_flops.qwen2_5_vl(QWEN25, WIDTH, np.array([4.0]))[0]
    d = 16
    loops = product(16, 6 * 14**2, d) + merger(4, d) + 6 * (4 * product(16, d, d) + gated(16, d, 40) + self_attention(16, 16, d))
    assert small == pytest.approx(loops, rel=1e-14)


@pytest.mark.parametrize("patches", [4, 64, 1024])
def test_qwen3_vl_attends_globally_and_feeds_three_further_mergers(patches: int) -> None:
    d, m = 16, 40
    loops = product(patches, 6 * 16**2, d) + 4 * merger(patches // 4, d)
    for _ in range(5):
        loops += 4 * product(patches, d, d) + product(patches, d, m) + product(patches, m, d) + self_attention(patches, patches, d)
    assert cost_flops.qwen3_vl(QWEN3, WIDTH, np.array([patches / 4]))[0] == pytest.approx(loops, rel=1e-14)


def test_tiles_cost_their_parameters_times_the_tokens_that_enter() -> None:
    assert cost_flops.tiles(300e6, 20e6, 256, np.array([256.0 * 13]))[0] == 2 * 300e6 * 13 * 1025 + 2 * 20e6 * 13 * 256


def encoders(kind: str) -> list[dict[str, Any]]:
    return [dict(spec.architecture) for spec in load().encoders.values() if spec.architecture["kind"] == kind]


@pytest.mark.parametrize(("kind", "flop"), [("qwen2_5_vl", cost_flops.qwen2_5_vl), ("qwen3_vl", cost_flops.qwen3_vl)])
def test_without_attention_every_patch_costs_twice_the_parameters_it_passes(kind: str, flop: Any) -> None:
    for a in encoders(kind):
        patches, width = 4096.0, 3584
        u, mergers = 4 * a["width"], 1 + a.get("deepstack", 0)
        merged = mergers * (u * u + u * width)
        through = vision.count(a, width) - merged - a.get("positions", 0) * a["width"]
        seen = patches if kind == "qwen3_vl" else 4 / a["layers"] * patches + (1 - 4 / a["layers"]) * 64
        linear = flop(a, width, np.array([patches / 4]))[0] - 4 * a["layers"] * a["width"] * patches * seen
        assert linear == pytest.approx(2 * patches * through + 2 * patches / 4 * merged, rel=2e-3)


def test_the_projector_of_tiles_is_what_the_catalog_counts_beyond_the_encoder() -> None:
    for kind in ("intern_vit_300m", "intern_vit_6b"):
        for a in encoders(kind):
            for width in (896, 5120):
                grown = vision.count(a, width) - vision.count(a, 1)
                assert cost_flops.tile_projector(a, width) - cost_flops.tile_projector(a, 1) == grown
