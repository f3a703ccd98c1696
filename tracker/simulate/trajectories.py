"""Expected and drawn accuracy of every question in every series, gathered while runs are written."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from tracker.simulate.answers import Answers
    from tracker.simulate.cells import Study

EASY, CEILING = 0.9, 0.2


@dataclass(slots=True)
class _Sums:
    """Sums over configurations, one number per question."""

    expected: np.ndarray
    expected_of: np.ndarray
    drawn: np.ndarray
    drawn_of: np.ndarray


@dataclass(slots=True)
class Trajectories:
    """One sum per series and benchmark."""

    study: Study
    _sums: dict[tuple[str, str], _Sums] = field(default_factory=dict)

    def add(self, answers: Answers) -> None:
        """Count a run: the last scored row of each question, and its chance to be right."""
        cell = answers.cell
        count = len(self.study.question_sets[cell.benchmark.name].questions)
        sums = self._sums.setdefault((cell.model.series, cell.benchmark.name), _Sums(*(np.zeros(count) for _ in range(4))))
        chance = np.full(count, np.nan)
        chance[answers.question] = 1 - answers.wrong_probability
        sums.expected += np.nan_to_num(chance)
        sums.expected_of += ~np.isnan(chance)
        last = np.full(count, -1)
        rows = np.flatnonzero(answers.scored)
        last[answers.question[rows]] = rows
        seen = last >= 0
        sums.drawn[seen] += answers.correct[last[seen]]
        sums.drawn_of += seen

    def truth(self) -> list[dict[str, Any]]:
        """Accuracies per question, and the regimes they make with the default cutoffs."""
        return [self._slice(series, benchmark, sums) for (series, benchmark), sums in self._sums.items()]

    def _slice(self, series: str, benchmark: str, sums: _Sums) -> dict[str, Any]:
        keys = [str(question.key) for question in self.study.question_sets[benchmark].questions]
        expected = sums.expected / sums.expected_of
        followed = sums.drawn_of > 0
        drawn = np.divide(sums.drawn, sums.drawn_of, out=np.full(len(keys), np.nan), where=followed)
        return {
            "series": series,
            "benchmark": benchmark,
            "trajectories": int(followed.sum()),
            "observations": int(sums.drawn_of.sum()),
            "expected_regimes": regimes(expected),
            "regimes": regimes(drawn[followed]),
            "question_keys": keys,
            "expected_accuracy": expected.round(6).tolist(),
            "accuracy": [None if np.isnan(value) else round(value, 9) for value in drawn.tolist()],
        }


def regimes(accuracy: np.ndarray) -> dict[str, int]:
    """How many questions are easy, scaling bound and ceiling bound."""
    rounded = accuracy.round(9)
    easy, ceiling = int((rounded > EASY).sum()), int((rounded < CEILING).sum())
    return {"easy": easy, "scaling_bound": len(accuracy) - easy - ceiling, "ceiling_bound": ceiling}
