"""The answers to chosen questions over input sizes and models (Appendix F: Figures 14 and 15)."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

import numpy as np

from analyses.answers import objects
from analyses.cohort import select, statement
from analyses.grouping import floats
from analyses.result import Column, Table
from tracker.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analyses.ceiling.observations import Questions
    from analyses.session import StarSession

BILLION = 1e9
COLUMNS = (
    Column("benchmark", "benchmark"),
    Column("question_key", "key of the question in its source"),
    Column("series", "model series"),
    Column("model", "model"),
    Column("N", "parameters of the language model (billions)", "number"),
    Column("input_mode", "fixed (long edge resized to input_size) or native"),
    Column("input_size", "long edge of the input image (px)", "number"),
    Column("repetition", "epoch or sampled repeat, from 0", "count"),
    Column("prediction", "answer parsed from the text"),
    Column("gold", "reference answer"),
    Column("credit", "1 for a right answer, 0 for a wrong one", "number"),
    Column("p_gold", "probability of the correct option", "share"),
    Column("visual_tokens", "visual tokens that entered the language model", "number"),
)


def grid_table(session: StarSession, names: Sequence[str], questions: Questions) -> Table:
    """One row per answer to the questions BENCHMARK/KEY of the materialised cohort; UsageError for one that is not in it."""
    there = [f"{benchmark}/{key}" for benchmark, key in zip(questions.benchmark.tolist(), questions.key.tolist(), strict=True)]
    unknown = sorted(set(names) - set(there))
    if unknown:
        near = difflib.get_close_matches(unknown[0], there, n=3, cutoff=0.0)
        message = f"no question {unknown[0]!r} has a scored answer in the cohort"
        raise UsageError(message, where="--question", hint="questions are BENCHMARK/KEY, such as " + " or ".join(near))
    columns = select(session.connection, statement("ceiling_grid"), {"question": list(names)}, where="cohort")
    numbers = ("parameters", "input_size", "credit", "p_gold", "visual_tokens")
    data = {name: floats(columns[name]) if name in numbers else objects(columns[name]) for name in columns if name != "repetition"}
    data["N"] = data["parameters"] / BILLION
    data["repetition"] = np.ma.getdata(columns["repetition"])
    return Table.of("Grid: answers to the chosen questions over models and input sizes", COLUMNS, data, shown=60)
