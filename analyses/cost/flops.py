"""FLOP of what a prompt passes through beside the weights of the language model. A multiplication with an addition is 2 FLOP.

Letters: L layers, d width, h heads, k width of a head, m width of the MLP, p patch size in px, D width of the language model,
u = 4 d, n patches of an image, t visual tokens. Norms, softmax, positions and activations are left out: they are below 1%.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    Array = npt.NDArray[np.float64]

WINDOW = 64
"""Patches of a full window of Qwen2.5-VL: 112 px at patch 14, squared (window_size of its vision_config)."""
GLOBAL_LAYERS = 4
"""Layers of Qwen2.5-VL's encoder that attend to the whole image (fullatt_block_indexes 7, 15, 23, 31)."""
PATCHES_PER_TOKEN = 4
"""Patches that become one visual token (2 x 2), in all three encoders."""


def attention(architecture: Mapping[str, Any], tokens: Array) -> Array:
    """Causal attention of the language model over a sequence: 2 L h k T (T + 1).

    Position t attends to t keys: 2 h k t for the products with keys and as much with values, summed over t = 1..T in every
    layer. Layers with a sliding window are counted as if they had none.
    """
    width = architecture["heads"] * architecture["head_width"] if "head_width" in architecture else architecture["width"]
    return np.asarray(2.0 * architecture["layers"] * width * tokens * (tokens + 1.0))


def qwen2_5_vl(a: Mapping[str, Any], width: int, tokens: Array) -> Array:
    """Encoder and merger of Qwen2.5-VL for an image of n = 4 t patches.

    patches    2 n 6 p p d
    layers     L 2 n (4 d d + 3 d m), attention 4 d n n in 4 layers, 4 d n min(n, 64) in the others
    merger     2 t (u u + u D)

    Windows at the edge of an image are smaller than 64 patches; without its shape they count as full (under 1% of a layer).
    """
    d, m, n = a["width"], a["mlp_width"], PATCHES_PER_TOKEN * tokens
    whole = min(GLOBAL_LAYERS, a["layers"])
    seen = whole * n + (a["layers"] - whole) * np.minimum(n, WINDOW)
    layers = 2.0 * n * a["layers"] * (4 * d * d + 3 * d * m) + 4.0 * d * n * seen
    return np.asarray(2.0 * n * 6 * a["patch"] ** 2 * d + layers + _merger(d, width, tokens))


def qwen3_vl(a: Mapping[str, Any], width: int, tokens: Array) -> Array:
    """Encoder, merger and the S mergers of DeepStack of Qwen3-VL for an image of n = 4 t patches.

    patches    2 n 6 p p d
    layers     L (2 n (4 d d + 2 d m) + 4 d n n)
    mergers    (1 + S) 2 t (u u + u D)
    """
    d, m, n = a["width"], a["mlp_width"], PATCHES_PER_TOKEN * tokens
    layers = a["layers"] * (2.0 * n * (4 * d * d + 2 * d * m) + 4.0 * d * n * n)
    return np.asarray(2.0 * n * 6 * a["patch"] ** 2 * d + layers + (1 + a["deepstack"]) * _merger(d, width, tokens))


def tiles(encoder_parameters: float, projector_parameters: float, tokens_per_tile: int, tokens: Array) -> Array:
    """Parameters times tokens: 2 P_encoder per patch and class token of every tile, 2 P_projector per visual token."""
    entering = tokens / tokens_per_tile * (PATCHES_PER_TOKEN * tokens_per_tile + 1)
    return np.asarray(2.0 * encoder_parameters * entering + 2.0 * projector_parameters * tokens)


def tile_projector(a: Mapping[str, Any], width: int) -> int:
    """Parameters of InternVL's projector: 2 u + u D + D + D D + D."""
    u = 4 * a["width"]
    return int(2 * u + u * width + width + width * width + width)


def _merger(d: int, width: int, tokens: Array) -> Array:
    u = 4 * d
    return np.asarray(2.0 * tokens * (u * u + u * width))
