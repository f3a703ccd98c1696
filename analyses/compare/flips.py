"""The questions that flip between two sides, with what each answered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from analyses.answers import objects
from analyses.cohort import select, statement
from analyses.compare.panel import HALF_DIGIT, uneven_block
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


def flips_table(
    session: StarSession, sides: Sequence[Side], there: Configurations, units: Units, table: Panel, rows: Rows, pair: tuple[int, int]
) -> Table:
    """The questions on which the credits of two sides differ: those that the first wins, then the others; largest difference first."""
    question, a, b = _credits(table, pair)
    apart = a - b
    flips = np.flatnonzero(np.abs(apart) > HALF_DIGIT)
    order = flips[np.lexsort((question[flips], -np.abs(np.round(apart[flips], 9)), apart[flips] < 0))]
    said, gold, text = _said(session, [sides[place] for place in pair], there, units, rows, question[order], pair)
    first, second = (sides[place].name for place in pair)
    columns = [
        Column("right", "the side that has more credit"),
        Column("benchmark", "benchmark"),
        Column("question_key", "key of the question in its source"),
        Column("credit_a", f"credit of {first}", "share"),
        Column("credit_b", f"credit of {second}", "share"),
        Column("answers_a", f"what {first} answered, by settings and repetition; - where no answer was parsed"),
        Column("answers_b", f"what {second} answered"),
        Column("gold", "reference answer"),
        Column("text", f"first {TEXT} characters of the question"),
    ]
    data: dict[str, Any] = {
        "right": [first if apart[row] > 0 else second for row in order],
        "benchmark": rows.questions.text["benchmark"][question[order]],
        "question_key": rows.questions.text["question_key"][question[order]],
        "credit_a": a[order],
        "credit_b": b[order],
        "answers_a": said[0],
        "answers_b": said[1],
        "gold": gold,
        "text": text,
    }
    return Table.of(f"Flips: questions on which {first} and {second} differ", columns, data, shown=20)


def _credits(table: Panel, pair: tuple[int, int]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Common questions of two sides and both credits."""
    a, b, present = uneven_block(table, np.array([pair[0]]), np.array([pair[1]]))
    question = np.concatenate([table.even_question, table.uneven_question[present[0]]])
    return question, np.concatenate([table.even[pair[0]], a[present]]), np.concatenate([table.even[pair[1]], b[present]])


def _said(
    session: StarSession,
    sides: Sequence[Side],
    there: Configurations,
    units: Units,
    rows: Rows,
    question: npt.NDArray[np.int64],
    pair: tuple[int, int],
) -> tuple[list[list[str]], list[str | None], list[str | None]]:
    """Answers of both sides, reference answer and text of some questions; answers only at settings that both have."""
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
    choice = units.choice_of[configuration]
    run, repetition, attempt = (np.ma.getdata(columns[name]) for name in ("run_id", "repetition", "attempt"))
    both = ~np.isnan(units.credit[list(pair)]).any(axis=0)
    shared = set((units.question[both] * len(units.settings) + units.choice[both]).tolist())
    position = {one: place for place, one in enumerate(question.tolist())}
    said: list[dict[int, dict[tuple[int, int], str]]] = [{}, {}]
    known: list[tuple[str | None, str | None]] = [(None, None)] * len(question)
    for row in np.lexsort((attempt, repetition, choice, asked)).tolist():
        place = position[int(asked[row])]
        known[place] = gold[row], _start(text[row])
        if int(asked[row]) * len(units.settings) + int(choice[row]) not in shared:
            continue
        for side, answers in zip(sides, said, strict=True):
            if run[row] == side.run if side.run is not None else int(configuration[row]) in side.configurations:
                answers.setdefault(place, {})[int(choice[row]), int(repetition[row])] = prediction[row] or "-"
    joined = [[" ".join(answers.get(place, {}).values()) for place in range(len(question))] for answers in said]
    return joined, [one for one, _ in known], [one for _, one in known]


def _start(text: str | None) -> str | None:
    if text is None:
        return None
    line = " ".join(text.split())
    return line if len(line) <= TEXT else line[: TEXT - 3] + "..."
