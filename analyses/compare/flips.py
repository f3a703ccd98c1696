"""The questions that flip between two sides, and every answer behind them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from analyses.answers import objects
from analyses.cohort import select, statement
from analyses.compare.panel import HALF_DIGIT, uneven_block
from analyses.compare.sides import spelled
from analyses.grouping import DECIMALS, floats
from analyses.identity import places
from analyses.result import Column, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from analyses.compare.panel import Panel
    from analyses.compare.sides import Configurations, Side
    from analyses.compare.units import Rows, Units
    from analyses.session import StarSession

TEXT = 80
"""Characters of a question's text that are shown."""
SIDES = ("a", "b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer behind a flip."""

    flip: int
    """Position of its question among the flips."""
    side: int
    choice: int
    repetition: int
    attempt: int
    configuration: int
    run: int
    prediction: str | None
    credit: float

    @property
    def order(self) -> tuple[Any, ...]:
        """By flip, side, settings and repetition; no database id decides."""
        return self.flip, self.side, self.choice, self.repetition, self.configuration, self.attempt, self.credit, self.prediction or ""


def flips_tables(
    session: StarSession,
    sides: Sequence[Side],
    there: Configurations,
    units: Units,
    table: Panel,
    rows: Rows,
    pair: tuple[int, int],
    least: float,
) -> tuple[Table, Table]:
    """The questions on which the credits of two sides differ (by `least` or more), and the answers behind them.

    Wins of the first and of the second side alternate as long as there are both, larger differences first.
    """
    question, a, b = _credits(table, pair)
    apart = a - b
    flips = np.flatnonzero((np.abs(apart) > HALF_DIGIT) & (np.abs(apart) > least - HALF_DIGIT))
    largest = flips[np.lexsort((question[flips], -np.abs(np.round(apart[flips], DECIMALS))))]
    lost = apart[largest] < 0
    order = largest[np.lexsort((lost, np.where(lost, np.cumsum(lost), np.cumsum(~lost))))]
    two = [sides[place] for place in pair]
    both = np.asarray(~np.isnan(units.credit[list(pair)]).any(axis=0))
    answers, gold, text = _answers(session, two, there, units, rows, question[order], both)
    first, second = (side.name for side in two)
    columns = [
        Column("right", "the side that has more credit"),
        Column("benchmark", "benchmark"),
        Column("question_key", "key of the question in its source"),
        Column("settings", "choices of settings that the credits are means over", "count"),
        Column("credit_a", f"credit of {first}", "share"),
        Column("credit_b", f"credit of {second}", "share"),
        Column("answers_a", f"what {first} answered, by settings and repetition; - where no answer was parsed"),
        Column("answers_b", f"what {second} answered"),
        Column("gold", "reference answer"),
        Column("text", f"first {TEXT} characters of the question"),
    ]
    said = [{(one.choice, one.repetition, one.flip): one.prediction or "-" for one in answers if one.side == side} for side in (0, 1)]
    data: dict[str, Any] = {
        "right": [first if apart[row] > 0 else second for row in order],
        "benchmark": rows.questions.text["benchmark"][question[order]],
        "question_key": rows.questions.text["question_key"][question[order]],
        "settings": np.bincount(units.question[both], minlength=len(rows.questions))[question[order]],
        "credit_a": a[order],
        "credit_b": b[order],
        "gold": gold,
        "text": text,
    }
    for name, of_side in zip(SIDES, said, strict=True):
        joined: list[list[str]] = [[] for _ in order]
        for (_, _, flip), prediction in of_side.items():
            joined[flip].append(prediction)
        data[f"answers_{name}"] = [" ".join(one) for one in joined]
    return (
        Table.of(f"Flips: questions on which {first} and {second} differ", columns, data, shown=20),
        _answers_table(answers, two, there, rows, question[order]),
    )


def _credits(table: Panel, pair: tuple[int, int]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Common questions of two sides and both credits."""
    a, b, present = uneven_block(table, np.array([pair[0]]), np.array([pair[1]]))
    question = np.concatenate([table.even_question, table.uneven_question[present[0]]])
    return question, np.concatenate([table.even[pair[0]], a[present]]), np.concatenate([table.even[pair[1]], b[present]])


def _answers(
    session: StarSession,
    sides: Sequence[Side],
    there: Configurations,
    units: Units,
    rows: Rows,
    question: npt.NDArray[np.int64],
    both: npt.NDArray[np.bool_],
) -> tuple[list[Answer], list[str | None], list[str | None]]:
    """The answers of both sides to some questions at the settings that both have, and the questions' reference answers and texts."""
    wanted = sorted({place for side in sides if side.run is None for place in side.configurations})
    columns = select(
        session.connection,
        statement("compare_flips"),
        {
            "questions": rows.question_ids[question].tolist(),
            "configurations": there.ids[wanted].tolist(),
            "runs": [side.run for side in sides if side.run is not None],
        },
        where="cohort",
    )
    prediction, gold, text = (objects(columns[name]) for name in ("prediction", "gold", "text"))
    asked = places(np.ma.getdata(columns["question_id"]), rows.question_ids)
    configuration = places(np.ma.getdata(columns["configuration_id"]), there.ids)
    run, repetition, attempt = (np.ma.getdata(columns[name]) for name in ("run_id", "repetition", "attempt"))
    counts, credit = np.ma.filled(columns["counts"], fill_value=False), floats(columns["credit"])
    shared = set((units.question[both] * len(units.settings) + units.choice[both]).tolist())
    position = {one: place for place, one in enumerate(question.tolist())}
    known: list[tuple[str | None, str | None]] = [(None, None)] * len(question)
    last: dict[tuple[int, ...], Answer] = {}
    for row in np.argsort(attempt, kind="stable").tolist():
        flip, place = position[int(asked[row])], int(configuration[row])
        known[flip] = gold[row], _start(text[row])
        choice = int(units.choice_of[place])
        if int(asked[row]) * len(units.settings) + choice not in shared:
            continue
        for number, side in enumerate(sides):
            if run[row] == side.run if side.run is not None else counts[row] and place in side.configurations:
                one = Answer(
                    flip=flip,
                    side=number,
                    choice=choice,
                    repetition=int(repetition[row]),
                    attempt=int(attempt[row]),
                    configuration=place,
                    run=int(run[row]),
                    prediction=prediction[row],
                    credit=float(credit[row]),
                )
                last[flip, number, place, one.run, one.repetition] = one
    return sorted(last.values(), key=lambda one: one.order), [one for one, _ in known], [one for _, one in known]


def _answers_table(
    answers: Sequence[Answer], sides: Sequence[Side], there: Configurations, rows: Rows, question: npt.NDArray[np.int64]
) -> Table:
    """One row per answer behind the flips."""
    varying = there.varying([place for side in sides for place in side.configurations])
    asked = question[[one.flip for one in answers]]
    columns = [
        Column("benchmark", "benchmark"),
        Column("question_key", "key of the question in its source"),
        Column("side", "whose answer"),
        Column("settings", "settings in which the configurations of the two sides differ"),
        Column("repetition", "repetition", "count"),
        Column("run_id", "run that holds the answer: trackr runs show ID"),
        Column("prediction", "answer that was parsed; empty where there is none"),
        Column("credit", "its credit", "share"),
    ]
    data: dict[str, Any] = {
        "benchmark": rows.questions.text["benchmark"][asked],
        "question_key": rows.questions.text["question_key"][asked],
        "side": [sides[one.side].name for one in answers],
        "settings": [spelled({name: there.settings[one.configuration][name] for name in varying}) or None for one in answers],
        "repetition": [one.repetition for one in answers],
        "run_id": [one.run for one in answers],
        "prediction": [one.prediction for one in answers],
        "credit": [one.credit for one in answers],
    }
    return Table.of("Flip answers: the answers behind the flips", columns, data, shown=8)


def _start(text: str | None) -> str | None:
    if text is None:
        return None
    line = " ".join(text.split())
    return line if len(line) <= TEXT else line[: TEXT - 3] + "..."
