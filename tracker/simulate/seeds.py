"""Random numbers that depend on the seed and on names only: adding a model or a size changes nothing elsewhere."""

from __future__ import annotations

import hashlib
from typing import Literal

import numpy as np


def generator(seed: int, *names: object) -> np.random.Generator:
    """A generator of its own for these names."""
    text = "\0".join(str(name) for name in names)
    words = np.frombuffer(hashlib.sha256(text.encode()).digest(), dtype=np.uint32)
    return np.random.default_rng([seed, *words.tolist()])


def quota(shares: list[float], count: int, *, remainder: Literal["nearest", "most common"] = "nearest") -> list[int]:
    """Whole numbers that add up to `count`: shares rounded down, what is left to the largest remainders or to the largest share."""
    exact = np.asarray(shares, dtype=float) / sum(shares) * count
    whole = np.floor(exact + 1e-9).astype(int)
    left = count - int(whole.sum())
    if remainder == "nearest":
        whole[np.argsort(-(exact - whole), kind="stable")[:left]] += 1
    else:
        whole[int(np.argmax(exact))] += left
    return [int(value) for value in whole]


def strewn(counts: list[int], random: np.random.Generator) -> np.ndarray:
    """Position i counts[i] times, in random order."""
    return random.permutation(np.repeat(np.arange(len(counts)), counts))
