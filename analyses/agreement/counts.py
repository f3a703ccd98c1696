"""Counts of records by run and label of the question, in natural order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from analyses.answers import objects
from analyses.cohort import select, statement
from analyses.compare.sides import spelled
from analyses.grouping import floats
from analyses.identity import places

if TYPE_CHECKING:
    import numpy.typing as npt

    from analyses.compare.sides import Configurations
    from analyses.session import StarSession

TEXT = ("benchmark", "suite", "series", "family", "model", "task", "category", "domain", "skill")
NUMBERS = (
    "records", "scored", "unscored", "failed", "credit", "with_text", "with_logit", "one_signal", "both_signals", "agree", "right_with_gold",
    "right_as_gold", "judged", "credit_judged", "logit_right", "only_text_right", "only_logit_right", "without_option", "counted", "limited",
    "at_limit", "at_limit_without_option",
)  # fmt: skip
AS_GOLD = 0.95
"""Share of a run's right answers that must be spelled as the reference answer for its logit predictions to be judged by it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """One entry per run and combination of labels, by configuration, benchmark and labels."""

    text: dict[str, npt.NDArray[np.object_]]
    """TEXT and `settings`; None where unknown."""
    limit: npt.NDArray[np.float64]
    """max_new_tokens of the configuration; NaN where unknown."""
    run: npt.NDArray[np.int64]
    """Which entries are of one run, numbered in this order."""
    numbers: dict[str, npt.NDArray[np.float64]]
    """NUMBERS; those that judge logit predictions are 0 in runs where `foreign` holds."""
    foreign: npt.NDArray[np.bool_]
    """Whether the run's reference answers are spelled otherwise than its predictions."""

    def __len__(self) -> int:
        """Number of entries."""
        return len(self.run)


def load_counts(session: StarSession, there: Configurations) -> Counts:
    """Count the records of the materialised cohort."""
    columns = select(session.connection, statement("agreement_counts"), where="cohort")
    configuration = places(np.ma.getdata(columns["configuration_id"]), there.ids)
    text = {name: objects(columns[name]) for name in TEXT}
    keys = [np.array(["" if value is None else str(value) for value in text[name].tolist()], dtype=str) for name in TEXT]
    run = np.ma.getdata(columns["run_id"])
    order = np.lexsort((run, *reversed(keys), configuration))
    run, configuration = run[order], configuration[order]
    first: dict[int, int] = {}
    number = np.array([first.setdefault(int(one), len(first)) for one in run.tolist()], dtype=np.int64)
    numbers = {name: floats(columns[name])[order] for name in NUMBERS}
    foreign = _foreign(number, numbers)
    for name in ("judged", "credit_judged", "logit_right", "only_text_right", "only_logit_right"):
        numbers[name] = np.where(foreign, 0.0, numbers[name])
    settings = np.array(_settings(there), dtype=object)
    return Counts(
        text={name: values[order] for name, values in text.items()} | {"settings": settings[configuration]},
        limit=floats(columns["max_new_tokens"])[order],
        run=number,
        numbers=numbers,
        foreign=foreign,
    )


def _foreign(run: npt.NDArray[np.int64], numbers: dict[str, npt.NDArray[np.float64]]) -> npt.NDArray[np.bool_]:
    """Where too few right answers are spelled as the reference; a run without a right answer to tell by is foreign where it would be judged."""
    right, same, judged = (np.bincount(run, weights=numbers[name])[run] for name in ("right_with_gold", "right_as_gold", "judged"))
    return np.asarray((judged > 0) & (same < AS_GOLD * right))


def _settings(there: Configurations) -> list[str]:
    """Of each configuration the settings in which its model's configurations differ, else its input size."""
    places: dict[str, list[int]] = {}
    for place, model in enumerate(there.model):
        places.setdefault(model, []).append(place)
    varying = {model: there.varying(own) for model, own in places.items()}
    found = []
    for model, chosen in zip(there.model, there.settings, strict=True):
        names = varying[model] or (["input_size"] if chosen["input_size"] is not None else [])
        found.append(spelled({name: chosen[name] for name in names}))
    return found
