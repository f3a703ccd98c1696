"""Parameters of a language model from its architecture numbers: one function per kind of architecture.

Letters in the formulae: L layers, d width, h heads, g key/value heads, k width of a head, m width of the MLP,
V vocabulary as in the checkpoint, E experts, e experts per token, x width of an expert, s width of the shared expert.

Parts that many kinds share:
    embeddings  V d, and once more V d for the output head unless it is tied
    attention   2 d h k + 2 d g k          (queries and output; keys and values)
    gated MLP   3 d m                      (gate, up, down)
    norms       2 d per layer, d at the end (RMSNorm: a weight, no bias)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

Architecture = Mapping[str, Any]


class Count(NamedTuple):
    """All parameters, and those that one token uses."""

    total: int
    active: int


class Kind(NamedTuple):
    """A kind of architecture: how it is counted, and which numbers that needs."""

    counts: Callable[[Architecture], Count]
    numbers: tuple[str, ...]
    optional: tuple[str, ...] = ()


def llama(a: Architecture) -> Count:
    """Llama, Mistral, InternLM2, InternLM3, Falcon3, DeepSeek-LLM, Phi-3: no biases.

    L (2 d h k + 2 d g k + 3 d m + 2 d) + d + (1 or 2) V d
    """
    return _dense(a, 0)


def qwen2(a: Architecture) -> Count:
    """Qwen2, Qwen2.5 and the language part of Qwen2.5-VL: Llama with biases on queries, keys and values.

    Llama + L (h + 2 g) k
    """
    return _dense(a, _qkv_bias(a))


def qwen3(a: Architecture) -> Count:
    """Qwen3 and the language part of Qwen3-VL: Llama with a norm over each query and key head.

    Llama + L 2 k
    """
    return _dense(a, 2 * a["head_width"])


def gemma2(a: Architecture) -> Count:
    """Gemma 2: Llama with two more norms in each layer (after attention and after the MLP).

    Llama + L 2 d
    """
    return _dense(a, 2 * a["width"])


def gemma3(a: Architecture) -> Count:
    """Gemma 3 (text): Gemma 2 with norms over query and key heads.

    Llama + L (2 d + 2 k)
    """
    return _dense(a, 2 * a["width"] + 2 * a["head_width"])


def mixtral(a: Architecture) -> Count:
    """Mixtral: every layer's MLP is E experts and a router; one token uses e of them.

    L (2 d h k + 2 d g k + E 3 d x + d E + 2 d) + d + (1 or 2) V d
    """
    return _experts(a, 0)


def qwen3_moe(a: Architecture) -> Count:
    """Qwen3 mixture of experts: Mixtral with query and key norms.

    Mixtral + L 2 k
    """
    return _experts(a, 2 * a["head_width"])


def qwen2_moe(a: Architecture) -> Count:
    """Qwen1.5 and Qwen2 mixture of experts: Mixtral with biases and one gated shared expert that every token uses.

    Mixtral + L ((h + 2 g) k + 3 d s + d)
    """
    return _experts(a, _qkv_bias(a) + 3 * a["width"] * a["shared_width"] + a["width"])


def gpt_neox(a: Architecture) -> Count:
    """GPT-NeoX, Pythia: biases everywhere, LayerNorm with bias, a plain MLP, as many key/value heads as heads.

    L (4 d d + 4 d + 2 d m + m + d + 4 d) + 2 d + (1 or 2) V d
    """
    d, m = a["width"], a["mlp_width"]
    total = a["layers"] * (4 * d * d + 4 * d + 2 * d * m + m + d + 4 * d) + 2 * d + _embeddings(a)
    return Count(total, total)


def count(architecture: Architecture) -> Count:
    """Parameters of an architecture whose kind and numbers were checked."""
    return KINDS[architecture["kind"]].counts(architecture)


def _embeddings(a: Architecture) -> int:
    return int(a["vocabulary"] * a["width"] * (1 if a["tied"] else 2))


def _attention(a: Architecture) -> int:
    return int(2 * a["width"] * a["head_width"] * (a["heads"] + a["kv_heads"]))


def _qkv_bias(a: Architecture) -> int:
    return int((a["heads"] + 2 * a["kv_heads"]) * a["head_width"])


def _dense(a: Architecture, extra: int) -> Count:
    """Gated dense layers with `extra` parameters each beyond Llama's."""
    d = a["width"]
    total = a["layers"] * (_attention(a) + 3 * d * a["mlp_width"] + 2 * d + extra) + d + _embeddings(a)
    return Count(total, total)


def _experts(a: Architecture, extra: int) -> Count:
    """Gated expert layers with `extra` parameters each beyond Mixtral's."""
    d, expert = a["width"], 3 * a["width"] * a["expert_width"]
    layer = _attention(a) + a["experts"] * (expert + d) + 2 * d + extra
    total = a["layers"] * layer + d + _embeddings(a)
    return Count(total, total - a["layers"] * (a["experts"] - a["experts_per_token"]) * expert)


_SHARED = ("layers", "width", "heads", "kv_heads", "head_width", "vocabulary", "tied")
_DENSE = (*_SHARED, "mlp_width")
_SPARSE = (*_SHARED, "experts", "experts_per_token", "expert_width")

KINDS: dict[str, Kind] = {
    "llama": Kind(llama, _DENSE),
    "qwen2": Kind(qwen2, _DENSE),
    "qwen3": Kind(qwen3, _DENSE),
    "gemma2": Kind(gemma2, _DENSE),
    "gemma3": Kind(gemma3, _DENSE),
    "mixtral": Kind(mixtral, _SPARSE),
    "qwen2_moe": Kind(qwen2_moe, (*_SPARSE, "shared_width")),
    "qwen3_moe": Kind(qwen3_moe, _SPARSE),
    "gpt_neox": Kind(gpt_neox, ("layers", "width", "heads", "mlp_width", "vocabulary", "tied"), ("kv_heads", "head_width")),
}
"""Kinds of language architecture by name."""
