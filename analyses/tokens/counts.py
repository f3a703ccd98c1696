"""Visual tokens by question and input size, for each model on each benchmark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from analyses.grouping import mean_by

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from analyses.cells import Cells, CellStudy


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """The visual tokens of a model on a benchmark."""

    family: str | None
    series: str | None
    model: str
    benchmark: str
    sizes: npt.NDArray[np.float64]
    """Input sizes, ascending, px."""
    questions: npt.NDArray[np.int64]
    """Questions (rows of `answers.questions`) that state tokens at any of the sizes."""
    tokens: npt.NDArray[np.float64]
    """Questions x sizes; mean over the answers to a question, NaN where none states tokens."""

    @property
    def complete(self) -> npt.NDArray[np.bool_]:
        """Questions that state tokens at every size."""
        return np.asarray(~np.isnan(self.tokens).any(axis=1))

    def same_at_ends(self) -> npt.NDArray[np.bool_]:
        """Questions with the same tokens at the smallest and the largest size; false where one is missing."""
        return np.asarray(self.tokens[:, 0] == self.tokens[:, -1])

    def same_at_all(self) -> npt.NDArray[np.bool_]:
        """Questions with the same tokens at every size; false where one is missing."""
        return np.asarray((self.tokens == self.tokens[:, :1]).all(axis=1))

    def falls(self) -> npt.NDArray[np.bool_]:
        """Questions with fewer tokens at some size than at the size before; false where one of the two is missing."""
        return np.asarray((self.tokens[:, 1:] < self.tokens[:, :-1]).any(axis=1))

    def only(self, keep: npt.NDArray[np.bool_]) -> Counts:
        """Some of the questions."""
        return Counts(
            family=self.family,
            series=self.series,
            model=self.model,
            benchmark=self.benchmark,
            sizes=self.sizes,
            questions=self.questions[keep],
            tokens=self.tokens[keep],
        )


def shared_sizes(cells: Cells) -> list[float]:
    """Input sizes that every suite has cells of, ascending."""
    suites = cells.text["suite"]
    of = [set(cells.input_size[(suites == suite) & ~np.isnan(cells.input_size)].tolist()) for suite in set(suites.tolist())]
    return sorted(set.intersection(*of)) if of else []


def counted(study: CellStudy, sizes: Sequence[float] | None) -> list[Counts]:
    """Models on benchmarks with tokens at two input sizes or more (at two of `sizes`, if given), by series, model and benchmark.

    An answer counts if it is the last scored one of its repetition, so that every question weighs the same.
    """
    cells, answers = study.cells, study.answers
    usable = (study.cell_of >= 0) & answers.counts & ~np.isnan(answers.numbers["visual_tokens"])
    size_of_cell = cells.input_size
    allowed = ~np.isnan(size_of_cell) if sizes is None else np.isin(size_of_cell, list(sizes))
    usable &= allowed[study.cell_of]
    rows = np.flatnonzero(usable)
    names = list(zip(*(cells.text[name].tolist() for name in ("series", "model", "benchmark", "family")), strict=True))
    ordered = sorted(set(names), key=lambda name: tuple((part is None, str(part)) for part in name))
    number = {name: place for place, name in enumerate(ordered)}
    unit = np.array([number[name] for name in names], dtype=np.int64)[study.cell_of[rows]]
    found = []
    for place, (series, model, benchmark, family) in enumerate(ordered):
        some = rows[unit == place]
        levels, column = np.unique(size_of_cell[study.cell_of[some]], return_inverse=True)
        questions, row = np.unique(answers.question[some], return_inverse=True)
        if len(levels) > 1:
            flat = mean_by(row * len(levels) + column, answers.numbers["visual_tokens"][some], len(questions) * len(levels))
            found.append(
                Counts(
                    family=family,
                    series=series,
                    model=model,
                    benchmark=benchmark,
                    sizes=levels,
                    questions=questions,
                    tokens=flat.reshape(len(questions), len(levels)),
                )
            )
    return found
