"""From answers to units: what every side answered to each question at each choice of settings."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from analyses.answers import QUESTION_TEXT, AskedQuestions, objects
from analyses.cohort import select, statement
from analyses.compare.sides import natural, spelled
from analyses.grouping import floats, mean_by
from analyses.identity import places, starts

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from analyses.compare.sides import Configurations, Side
    from analyses.session import StarSession

COLUMNS = (
    "run_id", "question_id", "repetition", "attempt", "counts", "credit", "configuration_id", "model", "series", "parameters", *QUESTION_TEXT,
    "n_options",
)  # fmt: skip
"""Columns of the cohort that are read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Scored answers, the last attempt of each repetition, by question, configuration, run and repetition."""

    question_ids: npt.NDArray[np.int64]
    questions: AskedQuestions
    question: npt.NDArray[np.int64]
    configuration: npt.NDArray[np.int64]
    run: npt.NDArray[np.int64]
    repetition: npt.NDArray[np.int64]
    attempt: npt.NDArray[np.int64]
    counts: npt.NDArray[np.bool_]
    credit: npt.NDArray[np.float64]

    def __len__(self) -> int:
        """Number of answers."""
        return len(self.question)

    def digest(self, there: Configurations) -> str:
        """SHA-256 over natural keys and values of all rows, whatever the sides: equal data, equal digest."""
        order = np.lexsort((self.credit, self.attempt, self.repetition, ~self.counts, self.configuration, self.question))
        digest = hashlib.sha256()
        texts = [there.model, there.fingerprint, *(values.tolist() for values in self.questions.text.values())]
        for values in (*texts, [list(settings.values()) for settings in there.settings]):
            digest.update("\x1f".join(map(str, values)).encode() + b"\x1e")
        for codes in (self.question, self.configuration, self.counts, self.repetition, self.attempt):
            digest.update(codes[order].astype("<i8").tobytes())
        for numbers in (self.questions.n_options, self.credit[order]):
            digest.update(numbers.astype("<f8").tobytes())
        return digest.hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Units:
    """Units by question and settings; a unit is a question at one choice of the settings that must agree."""

    credit: npt.NDArray[np.float64]
    """Sides x units: mean credit over repetitions; NaN where a side has no scored answer."""
    question: npt.NDArray[np.int64]
    """Position of each unit's question, ascending."""
    choice: npt.NDArray[np.int64]
    """Position of each unit's choice in `settings`."""
    settings: list[str]
    """The choices of settings; one empty text where nothing varies."""
    choice_of: npt.NDArray[np.int64]
    """Choice of each configuration of the cohort; 0 for those of no side."""
    answered: list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]
    """Of each side, the configuration and the unit of each of its answers."""

    def used(self, *, common: Literal["pairwise", "all"], baseline: bool) -> list[set[int]]:
        """The configurations of each side that take part: those with an answer that some pair compares (`baseline`: with the first side)."""
        there = ~np.isnan(self.credit)
        number = there.sum(axis=0)
        useful = there & (number == len(there) if common == "all" else number > 1)
        if baseline:
            useful[1:] &= there[0]
        return [set(configuration[mask[unit]].tolist()) for mask, (configuration, unit) in zip(useful, self.answered, strict=True)]


def load_rows(session: StarSession, there: Configurations) -> Rows:
    """Read the materialised cohort."""
    ids, questions = _questions(select(session.connection, statement("answers_questions"), where="cohort"))
    columns = select(session.connection, statement("compare_rows"), where="cohort")
    whole = {name: np.ma.getdata(columns[name]).astype(np.int64) for name in ("run_id", "repetition", "attempt")}
    question = places(np.ma.getdata(columns["question_id"]), ids)
    configuration = places(np.ma.getdata(columns["configuration_id"]), there.ids)
    order = np.lexsort((whole["attempt"], whole["repetition"], whole["run_id"], configuration, question))
    question, configuration = question[order], configuration[order]
    run, repetition = whole["run_id"][order], whole["repetition"][order]
    last = np.roll(starts(question, configuration, run, repetition), -1)
    return Rows(
        question_ids=ids,
        questions=questions,
        question=question[last],
        configuration=configuration[last],
        run=run[last],
        repetition=repetition[last],
        attempt=whole["attempt"][order][last],
        counts=np.ma.filled(columns["counts"], fill_value=False)[order][last].astype(bool),
        credit=floats(columns["credit"])[order][last],
    )


def _questions(columns: dict[str, Any]) -> tuple[npt.NDArray[np.int64], AskedQuestions]:
    """The questions of the cohort by (benchmark, key), and their ids."""
    text = {name: objects(columns[name]) for name in QUESTION_TEXT}
    keys = [np.array([str(value) for value in text[name].tolist()]) for name in ("question_key", "benchmark")]
    order = np.lexsort(keys)
    questions = AskedQuestions(text={name: values[order] for name, values in text.items()}, n_options=floats(columns["n_options"])[order])
    return np.ma.getdata(columns["question_id"])[order], questions


def rows_of(side: Side, rows: Rows) -> npt.NDArray[np.int64]:
    """The answers of a side: of its run where it is one, else those of its configurations that count."""
    if side.run is not None:
        return np.flatnonzero(rows.run == side.run)
    return np.flatnonzero(rows.counts & np.isin(rows.configuration, side.configurations))


def make_units(sides: Sequence[Side], there: Configurations, axes: Sequence[str], rows: Rows) -> Units:
    """The units that any side answered."""
    used = {tuple(there.settings[place][name] for name in axes) for side in sides for place in side.configurations}
    choices = {values: number for number, values in enumerate(sorted(used, key=lambda values: [natural(value) for value in values]))}
    choice = np.array([choices.get(tuple(settings[name] for name in axes), 0) for settings in there.settings], dtype=np.int64)
    parts = [rows_of(side, rows) for side in sides]
    codes = [rows.question[part] * len(choices) + choice[rows.configuration[part]] for part in parts]
    distinct = np.unique(np.concatenate(codes))
    units = [np.searchsorted(distinct, code) for code in codes]
    credit = np.stack([mean_by(unit, rows.credit[part], len(distinct)) for unit, part in zip(units, parts, strict=True)])
    return Units(
        credit=credit,
        question=distinct // len(choices),
        choice=distinct % len(choices),
        settings=[spelled(dict(zip(axes, values, strict=True))) for values in choices],
        choice_of=choice,
        answered=[(rows.configuration[part], unit) for unit, part in zip(units, parts, strict=True)],
    )
