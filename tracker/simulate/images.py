"""Native image sizes whose shapes follow a stated mix and whose means are those of the benchmark."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tracker.simulate.seeds import quota, strewn

if TYPE_CHECKING:
    from tracker.simulate.spec import Images


class NativeSizes(NamedTuple):
    """Width and height (px) of each image."""

    width: np.ndarray
    height: np.ndarray


def native_sizes(images: Images, count: int, random: np.random.Generator) -> NativeSizes:
    """Shapes by quota, so that few images already have the benchmark's mean token counts; upright images as many as the ratio of mean width to mean height asks for."""
    shapes = strewn(quota([shape.share for shape in images.shapes], count, remainder="most common"), random)
    aspects = np.array([shape.aspect for shape in images.shapes])[shapes]
    jitter = np.array([shape.jitter for shape in images.shapes])[shapes]
    aspects = np.maximum(1.0, aspects * np.exp(np.clip(random.standard_normal(count), -2.5, 2.5) * jitter))
    relative = np.exp(np.clip(random.standard_normal(count), -2.5, 2.5) * images.spread)
    long_edge = relative * (images.width + images.height) / np.mean(relative * (1 + 1 / aspects))
    short_edge = long_edge / aspects
    upright = _upright(long_edge, short_edge, images, random)
    width = np.where(upright, short_edge, long_edge)
    height = np.where(upright, long_edge, short_edge)
    return NativeSizes(np.maximum(1, np.rint(width)).astype(np.int64), np.maximum(1, np.rint(height)).astype(np.int64))


def _upright(long_edge: np.ndarray, short_edge: np.ndarray, images: Images, random: np.random.Generator) -> np.ndarray:
    """Which images stand upright, so that the mean width comes out right as nearly as the shapes allow."""
    excess = long_edge - short_edge
    wanted = float(np.sum(long_edge) - images.width * len(long_edge))
    order = random.permutation(len(long_edge))
    turned = np.cumsum(excess[order])
    count = int(np.searchsorted(turned, max(0.0, wanted))) if wanted > 0 else 0
    upright = np.zeros(len(long_edge), dtype=bool)
    upright[order[: min(count, len(order))]] = True
    return upright
