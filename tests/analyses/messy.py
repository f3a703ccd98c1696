"""A small study with everything that real ones have: gaps, repetitions, ties, native sizes, unknown models, superseded answers."""

from __future__ import annotations

from typing import Any

import numpy as np

MODELS = (("A-1", "A", 1_000), ("A-2", "A", 2_000), ("A-4", "A", 4_000), ("B-1", "B", 1_500), ("B-3", "B", 3_000), ("B-x", "B", None))
SIZES = (224, 336, 448, None)
KEYS = {"easy": 12, "hard": 14, "mixed": 30}


def rows(seed: int, *, gaps: bool = True) -> list[dict[str, Any]]:
    """Answers of two series; without gaps every question is in the matched cohort."""
    rng = np.random.default_rng(seed)
    answers: list[dict[str, Any]] = []
    question_id = 100
    for kind, count in KEYS.items():
        for key in range(count):
            question_id += 1
            question = {
                "question_id": question_id,
                "question_key": f"{kind}-{key}",
                "benchmark": "One" if key % 2 else "Two",
                "suite": "S",
                "task": "reasoning" if key % 3 else "perception",
                "category": None if key % 5 == 0 else f"c{key % 2}",
                "n_options": None if gaps and key == 7 else 2 + key % 3,
            }
            for model_row, (model, series, parameters) in enumerate(MODELS):
                for size_row, size in enumerate(SIZES):
                    answers += _answers(
                        rng, kind, question, gaps=gaps, place=(model_row, size_row), model=(model, series, parameters), size=size
                    )
    return answers


def _answers(
    rng: np.random.Generator,
    kind: str,
    question: dict[str, Any],
    *,
    gaps: bool,
    place: tuple[int, int],
    model: tuple[str, str, int | None],
    size: int | None,
) -> list[dict[str, Any]]:
    name, series, parameters = model
    if not gaps and (size is None or parameters is None):
        return []
    if gaps and rng.random() < 0.02:
        return []
    response = {"easy": 4.0, "hard": -4.0, "mixed": -2.0 + place[0] + place[1]}[kind]
    p = 1 / (1 + np.exp(-response))
    found = []
    for repetition in range(2 if gaps and rng.random() < 0.1 else 1):
        credit = float(rng.random() < p)
        found.append(
            question
            | {
                "run_id": place[0] * 10 + place[1],
                "configuration_id": 500 - place[0] * 10 - place[1],
                "model": name,
                "series": series,
                "family": "F",
                "parameters": parameters,
                "input_mode": "native" if size is None else "fixed",
                "input_size": size,
                "repetition": repetition,
                "attempt": 0,
                "counts": not (gaps and rng.random() < 0.03),
                "credit": None if gaps and rng.random() < 0.03 else credit if rng.random() < 0.9 else 0.5,
                "p_gold": None if gaps and rng.random() < 0.003 else round(float(np.clip(p + rng.normal(0, 0.03), 0, 1)), 3),
                "visual_tokens": None
                if gaps and rng.random() < 0.01
                else (256 if (size or 900) < 400 else 768) + (16 * place[1] if series == "B" else 0),
            }
        )
    return found
