"""Can the scores be trusted? Text against logit predictions, token limits and parser failures (separable-law paper, A.5)."""

from __future__ import annotations

import hashlib
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import Field

from analyses.agreement.counts import Counts, load_counts
from analyses.agreement.tables import headline_of, limits_table, runs_table, shares_table
from analyses.compare.sides import load_configurations
from analyses.opening import nothing, opened
from analyses.parameters import AnalysisParameters
from analyses.result import Charts

if TYPE_CHECKING:
    from analyses.result import Result
    from analyses.session import StarSession

NAME = "agreement"
By = Literal["family", "series", "model", "suite", "benchmark", "task", "category", "domain", "skill"]
COLUMNS = (
    "run_id", "question_id", "repetition", "attempt", "status", "credit", "prediction", "logit_prediction", "gold", "generated_tokens",
    "configuration_id", "model", "series", "family", "parameters", "benchmark", "suite", "task", "category", "domain", "skill",
)  # fmt: skip
"""Columns of the cohort that are read."""
SHOWN = 5


class Parameters(AnalysisParameters):
    """Options of the agreement of signals."""

    by: tuple[By, ...] = Field(default=("series", "suite"), description="labels to break the pooled counts down by")


def run(session: StarSession, parameters: Parameters) -> Result:
    """Count how far the two predictions agree, and what went wrong."""
    with opened(session, NAME, parameters, cohort=NAME, columns=COLUMNS) as one:
        there = load_configurations(session)
        if not there.model:
            raise nothing(parameters, "no record in the cohort")
        counts = load_counts(session, there)
    tables = {
        "pooled": shares_table(counts, tuple(dict.fromkeys(parameters.by))),
        "configurations": runs_table(counts, ("model", "settings")),
        "runs": runs_table(counts, ("model", "settings", "benchmark")),
        "limits": limits_table(counts),
    }
    return one.result(
        rows=int(counts.numbers["records"].sum()),
        digest=_digest(counts),
        headline=headline_of(counts),
        tables=tables,
        charts=Charts({name: partial(_draw, name, tables) for name in ("models", "signals")}),
        warnings=_warnings(counts),
    )


def _draw(name: str, tables: dict[str, Any]) -> Any:
    from analyses.agreement import charts as agreement_charts

    return getattr(agreement_charts, name)(tables)


def _digest(counts: Counts) -> str:
    """SHA-256 over names and counts in natural order."""
    digest = hashlib.sha256()
    for values in counts.text.values():
        digest.update("\x1f".join(map(str, values.tolist())).encode() + b"\x1e")
    for numbers in counts.numbers.values():
        digest.update(numbers.astype("<f8").tobytes())
    return digest.hexdigest()


def _warnings(counts: Counts) -> list[str]:
    """What the records do not hold."""
    n = counts.numbers
    scored = n["scored"].sum()
    warnings = []
    ranked = int(n["one_signal"].sum())
    if ranked:
        warnings.append(
            f"{ranked:,} of {int(scored):,} scored records hold option scores and no generated text: their prediction is the option of the best "
            "score, a signal that would be compared with itself; they are left out of agreement and accuracy by signal"
        )
    for name, what in (("with_text", "text predictions"), ("with_logit", "logit predictions")):
        if scored and not n[name].sum() and not (ranked and name == "with_logit"):
            warnings.append(f"no scored record has {what}: agreement is empty")
    if n["both_signals"].sum() and not n["right_with_gold"].sum():
        warnings.append("no right answer stands beside a reference answer: accuracy by signal is empty")
    if counts.foreign.any():
        names = sorted({str(name) for name in counts.text["benchmark"][counts.foreign].tolist()})
        some = ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")
        warnings.append(
            f"right answers are not spelled as the reference answers on {some}: whether a logit prediction is right is not known there"
        )
    if not n["counted"].sum():
        warnings.append("no record has generated_tokens: token limits are empty")
    elif not n["limited"].sum():
        warnings.append("no configuration states max_new_tokens: token limits are empty")
    elif (np.isnan(counts.limit) & (n["counted"] > 0)).any():
        unknown = int(n["counted"][np.isnan(counts.limit)].sum())
        warnings.append(f"max_new_tokens is not known for {unknown:,} of {int(n['counted'].sum()):,} generations")
    return warnings
