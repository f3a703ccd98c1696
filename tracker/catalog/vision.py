"""Parameters of vision encoder and projector from the encoder's numbers and the width D of the language model.

Letters: L layers, d width, m width of the MLP, p patch size in px, i image size in px, P learned positions,
u = 4 d, the width of the 2 x 2 patches that become one visual token.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

Architecture = Mapping[str, Any]


class Kind(NamedTuple):
    """A kind of encoder: how it is counted, and which numbers that needs."""

    counts: Callable[[Architecture, int], int]
    numbers: tuple[str, ...]


def intern_vit_300m(a: Architecture, width: int) -> int:
    """InternViT-300M: LayerNorm and biases everywhere, two layer scales.

    encoder    3 p p d + d + d + (i/p)^2 d + d + L (4 d d + 2 d m + 11 d + m)
    projector  2 u + u D + D + D D + D
    """
    d, m = a["width"], a["mlp_width"]
    return int(_intern_stem(a) + a["layers"] * (4 * d * d + 2 * d * m + 11 * d + m) + _intern_projector(d, width))


def intern_vit_6b(a: Architecture, width: int) -> int:
    """InternViT-6B: RMSNorm, no biases on queries, keys and values, norms over queries and keys.

    encoder    3 p p d + d + d + (i/p)^2 d + d + L (4 d d + 2 d m + 8 d + m)
    projector  2 u + u D + D + D D + D
    """
    d, m = a["width"], a["mlp_width"]
    return int(_intern_stem(a) + a["layers"] * (4 * d * d + 2 * d * m + 8 * d + m) + _intern_projector(d, width))


def qwen2_5_vl(a: Architecture, width: int) -> int:
    """Qwen2.5-VL: frame pairs, gated MLP with biases, RMSNorm.

    encoder  2 * 3 p p d + L (4 d d + 4 d + 3 d m + 2 m + d + 2 d)
    merger   d + u u + u + u D + D
    """
    d, m = a["width"], a["mlp_width"]
    u = 4 * d
    encoder = 6 * a["patch"] ** 2 * d + a["layers"] * (4 * d * d + 3 * d * m + 7 * d + 2 * m)
    return int(encoder + d + u * u + u + u * width + width)


def qwen3_vl(a: Architecture, width: int) -> int:
    """Qwen3-VL: frame pairs, learned positions, plain MLP, LayerNorm, and S further mergers that feed DeepStack.

    encoder  2 * 3 p p d + d + P d + L (4 d d + 4 d + 2 d m + m + d + 4 d)
    mergers  (1 + S) (u u + u + u D + D) + 2 d + S 2 u
    """
    d, m, stack = a["width"], a["mlp_width"], a["deepstack"]
    u = 4 * d
    encoder = 6 * a["patch"] ** 2 * d + d + a["positions"] * d + a["layers"] * (4 * d * d + 2 * d * m + 9 * d + m)
    return int(encoder + (1 + stack) * (u * u + u + u * width + width) + 2 * d + stack * 2 * u)


def count(architecture: Architecture, width: int) -> int:
    """Parameters of encoder and projector in front of a language model of this width."""
    return KINDS[architecture["kind"]].counts(architecture, width)


def _intern_stem(a: Architecture) -> int:
    """Patch embedding with bias, class token, positions of all patches and the class token."""
    d = a["width"]
    return int(3 * a["patch"] ** 2 * d + d + d + ((a["image"] // a["patch"]) ** 2 + 1) * d)


def _intern_projector(d: int, width: int) -> int:
    u = 4 * d
    return 2 * u + u * width + width + width * width + width


_VIT = ("layers", "width", "mlp_width", "patch")

KINDS: dict[str, Kind] = {
    "intern_vit_300m": Kind(intern_vit_300m, (*_VIT, "image")),
    "intern_vit_6b": Kind(intern_vit_6b, (*_VIT, "image")),
    "qwen2_5_vl": Kind(qwen2_5_vl, _VIT),
    "qwen3_vl": Kind(qwen3_vl, (*_VIT, "positions", "deepstack")),
}
"""Kinds of vision encoder by name."""
