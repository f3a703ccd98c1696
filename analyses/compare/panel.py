"""Credits of several sides on common questions, arranged so that most of the work of comparing them is done once per side.

A unit is a question at one choice of settings. Two sides are compared on the units that both answered: the credit of a side on a
question is its mean over these units. Where all sides answered the same units of a question (an even question), that mean is
the same for every pair; the few other questions are averaged pair by pair.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from scipy import sparse

from analyses.grouping import DECIMALS

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Whole = npt.NDArray[np.int64]
    Marks = npt.NDArray[np.bool_]

Common = Literal["pairwise", "all"]
HALF_DIGIT = 0.5 * 10.0**-DECIMALS
"""Credits that differ by less are a tie."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """Credits of sides on common questions."""

    even: Floats
    """Sides x even questions: mean credit over the units that every side answered."""
    even_question: Whole
    units: Floats
    """Sides x units of the other questions; NaN where a side did not answer."""
    first: Whole
    """Where each of the other questions begins among these units."""
    uneven_question: Whole

    def take(self, questions: Marks) -> Panel:
        """The panel of some of the questions."""
        even, uneven = questions[self.even_question], questions[self.uneven_question]
        lengths = np.diff(np.append(self.first, self.units.shape[1]))
        kept = lengths[uneven]
        return Panel(
            even=self.even[:, even],
            even_question=self.even_question[even],
            units=self.units[:, np.repeat(uneven, lengths)],
            first=np.cumsum(kept) - kept,
            uneven_question=self.uneven_question[uneven],
        )


def panel(credit: Floats, question: Whole, common: Common = "pairwise") -> Panel:
    """Arrange credits (sides x units, NaN where unanswered) of units that are sorted by question.

    pairwise: every pair is compared on what both of its sides answered; all: every pair on what all sides answered.
    """
    answered = ~np.isnan(credit)
    number = answered.sum(axis=0)
    useful = number == len(credit) if common == "all" else number >= 2
    credit, question, number = credit[:, useful], question[useful], number[useful]
    asked, place = np.unique(question, return_inverse=True)
    uneven = np.bincount(place[number < len(credit)], minlength=len(asked)) > 0
    even_units = ~uneven[place]
    return Panel(
        even=_means(credit[:, even_units], question[even_units]),
        even_question=asked[~uneven],
        units=credit[:, ~even_units],
        first=_starts(question[~even_units]),
        uneven_question=asked[uneven],
    )


def _means(credit: Floats, question: Whole) -> Floats:
    """Mean over the units of each question."""
    first = _starts(question)
    if len(first) == credit.shape[1]:
        return credit
    return np.add.reduceat(credit, first, axis=1) / np.diff(np.append(first, credit.shape[1]))


def _starts(question: Whole) -> Whole:
    return np.flatnonzero(np.r_[True, question[1:] != question[:-1]]) if len(question) else np.zeros(0, dtype=np.int64)


class Block(NamedTuple):
    """Credits of some pairs: arrays pairs x questions; a question that a pair does not share counts 0 and is not present."""

    a: Floats
    b: Floats
    present: Marks


def uneven_block(one: Panel, i: Whole, j: Whole) -> Block:
    """The other questions of the pairs (i, j)."""
    a, b = one.units[i], one.units[j]
    both = ~(np.isnan(a) | np.isnan(b))
    if not len(one.first):
        empty = np.zeros((len(i), 0))
        return Block(empty, empty, empty.astype(bool))
    shared = np.add.reduceat(both, one.first, axis=1, dtype=np.int64)
    with np.errstate(invalid="ignore"):
        means = [np.add.reduceat(np.where(both, side, 0.0), one.first, axis=1) / shared for side in (a, b)]
    present = shared > 0
    return Block(np.where(present, means[0], 0.0), np.where(present, means[1], 0.0), present)


def own(one: Panel) -> tuple[Floats, Marks]:
    """Sides x other questions: mean credit over all units that the side answered, and whether there is one."""
    if not len(one.first):
        empty = np.zeros((len(one.units), 0))
        return empty, empty.astype(bool)
    answered = ~np.isnan(one.units)
    number = np.add.reduceat(answered, one.first, axis=1, dtype=np.int64)
    with np.errstate(invalid="ignore"):
        mean = np.add.reduceat(np.where(answered, one.units, 0.0), one.first, axis=1) / number
    return np.where(number > 0, mean, 0.0), number > 0


def sums_by_cluster(values: npt.NDArray[np.generic], cluster: Whole, clusters: int) -> Floats:
    """Rows x clusters: sums of the columns of each cluster."""
    member = sparse.csr_array((np.ones(len(cluster)), (cluster, np.arange(len(cluster)))), shape=(clusters, len(cluster)))
    return np.ascontiguousarray((member @ values.T.astype(float)).T)
