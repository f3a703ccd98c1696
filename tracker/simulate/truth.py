"""Planted truth: hardness per question and series, and the ability that gives a cell exactly its planted error."""

from __future__ import annotations

import numpy as np


def wrong_probability(difficulty: np.ndarray, ability: float) -> np.ndarray:
    """Logistic probability of a wrong answer."""
    return 0.5 * (1.0 + np.tanh(0.5 * (difficulty - ability)))


def ability_for(difficulty: np.ndarray, error: float, *, tolerance: float = 1e-13) -> float:
    """The ability at which the mean probability of a wrong answer equals `error`: Newton steps kept inside a bracket.

    The mean falls strictly with ability, so the root is unique for 0 < error < 1.
    """
    odds = np.log(error / (1 - error))
    low, high = float(difficulty.min() - odds), float(difficulty.max() - odds)
    ability = (low + high) / 2
    for _ in range(200):
        wrong = wrong_probability(difficulty, ability)
        excess = float(wrong.mean()) - error
        if abs(excess) <= tolerance or high - low <= 4e-16 * max(1.0, abs(low), abs(high)):
            break
        low, high = (ability, high) if excess > 0 else (low, ability)
        slope = float((wrong * (1 - wrong)).mean())
        step = ability + excess / slope if slope > 0 else low
        ability = step if low < step < high else (low + high) / 2
    return ability
