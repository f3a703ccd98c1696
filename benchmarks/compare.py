"""A matrix of paired comparisons: 100 models on one set of 10,000 questions with 1,000 draws, against SciPy pair by pair; prints JSON."""

from __future__ import annotations

import json
from itertools import pairwise
from time import perf_counter
from typing import Any

import numpy as np
from scipy import stats

from analyses.clusters import Clusters
from analyses.compare.pairs import measure
from analyses.compare.panel import panel
from analyses.compare.tables import p_values
from analyses.paired import holm

MODELS, QUESTIONS, DRAWS = 100, 10_000, 1_000
ASKED = 5
"""Pairs that SciPy compares: all 4,950 would take many minutes."""


def compare_figures() -> dict[str, Any]:
    """Seconds of the whole matrix: counts, intervals, exact McNemar and Holm; every question answered, and one in a thousand not."""
    credit = _credits()
    holed = np.where(np.random.default_rng(1).random(credit.shape) < 0.001, np.nan, credit)
    whole = min(_matrix(credit) for _ in range(3))
    pair = _scipy(credit) / ASKED
    return {
        "compare_matrix_s (target < 5)": whole,
        "compare_matrix_with_gaps_s": _matrix(holed),
        "compare_matrix_images_of_four_s": _matrix(credit, per_image=4),
        "compare_two_models_s": min(_matrix(credit[:2]) for _ in range(3)),
        "scipy_bootstrap_pair_s": pair,
        "scipy_over_matrix": pair * MODELS * (MODELS - 1) / 2 / whole,
    }


def _credits() -> Any:
    rng = np.random.default_rng(0)
    ability, easiness = rng.normal(0, 0.5, MODELS), rng.normal(0, 1.5, QUESTIONS)
    return (rng.random((MODELS, QUESTIONS)) < 1 / (1 + np.exp(-(ability[:, None] + easiness)))).astype(float)


def _matrix(credit: Any, per_image: int = 1) -> float:
    started = perf_counter()
    images = np.arange(QUESTIONS) // per_image
    clusters = Clusters(of_question=images, stratum=np.zeros(images[-1] + 1, dtype=np.int64))
    one = panel(credit, np.arange(QUESTIONS))
    pairs, _ = measure([one], clusters, np.triu_indices(len(credit), 1), draws=DRAWS, seed=1)[0]
    holm(p_values(pairs, "auto")[0])
    return perf_counter() - started


def _scipy(credit: Any) -> float:
    """Seconds that SciPy takes for some pairs: the paired bootstrap and the exact test."""
    started = perf_counter()
    for a, b in pairwise(credit[: ASKED + 1]):
        stats.bootstrap((a - b,), np.mean, n_resamples=DRAWS, method="percentile", rng=np.random.default_rng(1))
        wins, losses = int((a > b).sum()), int((a < b).sum())
        stats.binomtest(wins, wins + losses)
    return perf_counter() - started


if __name__ == "__main__":
    print(json.dumps(compare_figures(), indent=2))
