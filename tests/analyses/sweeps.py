"""Planted token sweeps: answers to the same questions under settings of one knob and several source qualities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt


def paired_credits(n: int, wins: int, losses: int, correct: int | None = None) -> npt.NDArray[np.float64]:
    """Two rows of credits over n questions: `wins` go from 0 to 1, `losses` from 1 to 0, `correct` are right in both."""
    both = (n - wins - losses) // 2 if correct is None else correct
    credit = np.zeros((2, n))
    credit[1, :wins] = 1
    credit[0, wins : wins + losses] = 1
    credit[:, wins + losses : wins + losses + both] = 1
    return credit


def sweep_rows(
    model: str,
    benchmark: str,
    credit: Mapping[Any, npt.NDArray[np.float64]],
    *,
    knob: str = "max_tiles",
    settings: Sequence[int] = (1, 36),
    tokens: Mapping[Any, npt.NDArray[np.float64]] | None = None,
    per_image: int = 1,
    first_question: int = 0,
    **other: Any,
) -> pd.DataFrame:
    """Answers of a model: for each source quality its credits, settings x questions (NaN: not asked).

    Visual tokens are 256 x setting unless `tokens` gives them in the same shape; other settings are columns.
    """
    blocks: list[pd.DataFrame] = []
    for quality, values in credit.items():
        for place, setting in enumerate(settings):
            n = values.shape[1]
            fixed: dict[str, Any] = {"input_mode": "native", knob: setting, "source_quality": quality} | other
            frame = pd.DataFrame(
                {
                    "question_id": first_question + np.arange(n),
                    "question_key": [f"q{i:04d}" for i in range(n)],
                    "image_key": [f"i{i // per_image}" for i in range(n)],
                    "credit": values[place],
                    "visual_tokens": (256 * setting if tokens is None else tokens[quality][place]),
                }
            ).assign(model=model, series=model.rsplit("-", 1)[0], family=model[:5], benchmark=benchmark, suite=benchmark, **fixed)
            identity = "|".join(f"{name}={value}" for name, value in sorted(fixed.items(), key=str))
            frame["configuration_id"] = abs(hash((model, identity))) % 2**40
            frame["run_id"] = abs(hash((model, benchmark, identity))) % 2**40
            blocks.append(frame[~frame["credit"].isna()])
    return pd.concat(blocks, ignore_index=True)
