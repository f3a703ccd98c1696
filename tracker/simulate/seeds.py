"""Random numbers that depend on the seed and on names only: adding a model or a size changes nothing elsewhere."""

from __future__ import annotations

import hashlib

import numpy as np


def generator(seed: int, *names: object) -> np.random.Generator:
    """A generator of its own for these names."""
    text = "\0".join(str(name) for name in names)
    words = np.frombuffer(hashlib.sha256(text.encode()).digest(), dtype=np.uint32)
    return np.random.default_rng([seed, *words.tolist()])


def quota(shares: list[float], count: int) -> list[int]:
    """Whole numbers that add up to `count`, as near to the shares as can be (largest remainders)."""
    exact = np.asarray(shares, dtype=float) / sum(shares) * count
    whole = np.floor(exact).astype(int)
    order = np.argsort(-(exact - whole), kind="stable")
    whole[order[: count - int(whole.sum())]] += 1
    return [int(value) for value in whole]


def spread_out(shares: list[float], count: int, random: np.random.Generator) -> np.ndarray:
    """Positions 0.. of `shares`, each by its quota, in random order."""
    return random.permutation(np.repeat(np.arange(len(shares)), quota(shares, count)))
