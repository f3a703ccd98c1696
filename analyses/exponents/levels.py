"""Fits at two levels of detail, groups and groups split by a label, and the parts that their exponents are summarised by."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from analyses.answers import QUESTION_LABELS
from analyses.cells import group_cells, make_cells
from analyses.exponents.summary import Balance, Exponents, OneExponent, balance, exponents_of, one_exponent

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from analyses.cells import CellStudy
    from analyses.law.fits import GroupFits

GROUP = "group"
"""Name of the level of whole groups."""
TASK = "task"


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """Fits at one level of detail."""

    name: str
    """GROUP or SUBSET."""
    fits: GroupFits
    alpha: Exponents
    beta: Exponents
    labels: dict[str, npt.NDArray[np.object_]]
    """family, series and, of subsets, task of each fit; None where a fit holds several or none."""

    @classmethod
    def of(cls, name: str, study: CellStudy, fits: GroupFits) -> Level:
        """The exponents of a study's fits, and what they are told apart by."""
        return cls(
            name=name,
            fits=fits,
            alpha=exponents_of(fits, "alpha"),
            beta=exponents_of(fits, "beta"),
            labels={label: label_of_groups(study, label) for label in ("family", "series", *(() if name == GROUP else (TASK,)))},
        )

    def exponents(self, rows: npt.NDArray[np.bool_]) -> tuple[OneExponent, OneExponent]:
        """The two exponents of some fits."""
        return one_exponent(self.alpha.take(rows)), one_exponent(self.beta.take(rows))

    def balance(self, rows: npt.NDArray[np.bool_]) -> Balance:
        """The balance of alpha and beta in some fits."""
        return balance(self.alpha.take(rows), self.beta.take(rows))

    def parts(self) -> Iterator[tuple[str, str | None, npt.NDArray[np.bool_]]]:
        """By what, which value, and which fits: all, each family, series and task, and family x task."""
        fitted = self.fits.fitted
        yield "all", "all", fitted
        for by, values in self.labels.items():
            for value in _ordered(values[fitted]):
                yield by, value, fitted & (values == value)
        if TASK in self.labels:
            families, tasks = self.labels["family"], self.labels[TASK]
            for family in _ordered(families[fitted]):
                for task in _ordered(tasks[fitted & (families == family)]):
                    yield "family x task", f"{family or 'none'} x {task or 'none'}", fitted & (families == family) & (tasks == task)


def label_of_groups(study: CellStudy, label: str) -> npt.NDArray[np.object_]:
    """What all cells of each group are labelled with; None where they differ."""
    values = study.cells.text[label]
    distinct = [set(values[study.groups.members(group)].tolist()) for group in range(len(study.groups))]
    found = np.full(len(distinct), None, dtype=object)
    found[:] = [next(iter(one)) if len(one) == 1 else None for one in distinct]
    return found


def split_study(study: CellStudy, labels: Sequence[str]) -> CellStudy:
    """The same answers in cells that labels of the questions split further; groups are left to the caller, the reference stays."""
    answers = study.answers.take(study.cell_of >= 0)
    every = tuple(dict.fromkeys((*(name for name in study.groups.by if name in QUESTION_LABELS), *labels)))
    cells, cell_of = make_cells(answers, every, np.ones(len(answers.runs), dtype=bool))
    return dataclasses.replace(study, answers=answers, cells=cells, cell_of=cell_of, groups=group_cells(cells, study.groups.by))


def _ordered(values: npt.NDArray[np.object_]) -> list[str | None]:
    return sorted(set(values.tolist()), key=lambda value: (value is None, str(value)))
