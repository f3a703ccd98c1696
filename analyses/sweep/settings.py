"""Sweeps among the runs of a cohort: one model on one benchmark under settings that differ in one knob alone."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from analyses.cohort import select, statement
from analyses.grouping import mean_by

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from analyses.answers import Answers
    from analyses.session import StarSession

Axis = Literal["auto", "max_tiles", "pixel_cap", "input_size"]
KNOBS = ("max_tiles", "pixel_cap")
"""Knobs of the visual front end, looked for first; input_size only where no model sweeps one of them."""
IDENTITY = frozenset({"id", "model_id", "fingerprint"})
QUALITY = "source_quality"
NATIVE = "native"
UNTOUCHED = frozenset({"native", "none", "original"})
"""How a source image that nothing was done to is spelled; null is one as well."""
ENOUGH = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """Runs of a model on a benchmark by source quality and setting of the knob."""

    model: str
    family: str | None
    series: str | None
    suite: str | None
    benchmark: str
    axis: str
    context: str
    """The settings that all of its runs share."""
    settings: tuple[float, ...]
    """Values of the knob at every quality together, ascending."""
    runs: Mapping[tuple[str, float], tuple[int, ...]]
    """Runs of a (quality, setting)."""

    @property
    def name(self) -> str:
        """How messages call it."""
        return f"{self.model} x {self.benchmark} ({self.axis})"

    def qualities(self) -> list[str]:
        """Source qualities with at least two settings: native, then by falling number in their name, then those without one."""
        counted = Counter(quality for quality, _ in self.runs)
        return sorted((quality for quality, n in counted.items() if n >= ENOUGH), key=_quality_order)

    def settings_at(self, quality: str) -> list[float]:
        """Values of the knob that were run at a quality."""
        return [setting for setting in self.settings if (quality, setting) in self.runs]


def settings_of(session: StarSession) -> dict[str, dict[str, Any]]:
    """Settings by fingerprint, from the materialised cohort; null is None."""
    columns = select(session.connection, statement("sweep_settings"), where="cohort")
    names = [name for name in columns if name not in IDENTITY]
    rows = {name: [_plain(value) for value in np.ma.asarray(columns[name]).tolist()] for name in names}
    prints = np.ma.asarray(columns["fingerprint"]).tolist()
    return {str(fingerprint): {name: rows[name][place] for name in names} for place, fingerprint in enumerate(prints)}


def _plain(value: Any) -> Any:
    return None if value is None or (isinstance(value, float) and np.isnan(value)) else value


def find_sweeps(answers: Answers, settings: Mapping[str, Mapping[str, Any]], axis: Axis, warnings: list[str]) -> list[Sweep]:
    """Sweeps by (model, benchmark, knob, shared settings), each over at least two settings of its knob."""
    if axis != "auto":
        return sweeps_of(answers, settings, axis, warnings)
    found = [sweep for knob in KNOBS for sweep in sweeps_of(answers, settings, knob, warnings)]
    return sorted(found, key=_order) or sweeps_of(answers, settings, "input_size", warnings)


def sweeps_of(answers: Answers, settings: Mapping[str, Mapping[str, Any]], axis: str, warnings: list[str]) -> list[Sweep]:
    """Sweeps of one knob: runs that agree in the model, the benchmark and every setting but the knob and the source quality."""
    text = answers.runs.text
    contexts: dict[tuple[str, str, str], list[int]] = {}
    for run, fingerprint in enumerate(text["fingerprint"].tolist()):
        shared = {name: value for name, value in settings[fingerprint].items() if name not in {axis, QUALITY} and value is not None}
        context = ", ".join(f"{name}={shared[name]}" for name in sorted(shared))
        contexts.setdefault((str(text["model"][run]), str(text["benchmark"][run]), context), []).append(run)
    sweeps = []
    for (model, benchmark, context), members in contexts.items():
        runs: dict[tuple[str, float], tuple[int, ...]] = {}
        without = 0
        for run in members:
            one = settings[text["fingerprint"][run]]
            if one[axis] is None:
                without += 1
            else:
                place = (quality_name(one[QUALITY]), float(one[axis]))
                runs[place] = (*runs.get(place, ()), run)
        sweep = Sweep(
            model=model,
            family=text["family"][members[0]],
            series=text["series"][members[0]],
            suite=text["suite"][members[0]],
            benchmark=benchmark,
            axis=axis,
            context=context,
            settings=tuple(sorted({setting for _, setting in runs})),
            runs=runs,
        )
        if sweep.qualities():
            sweeps.append(sweep)
            if without:
                warnings.append(f"{sweep.name}: {without} runs that do not state {axis} are left out")
    return sorted(sweeps, key=_order)


def _order(sweep: Sweep) -> tuple[str, ...]:
    return (sweep.family or "", sweep.series or "", sweep.model, sweep.suite or "", sweep.benchmark, sweep.axis, sweep.context)


def quality_name(value: Any) -> str:
    """The source quality as it is shown; images that nothing was done to are `native`."""
    name = "" if value is None else str(value).strip()
    return NATIVE if not name or name.lower() in UNTOUCHED else name


def quality_number(name: str) -> float | None:
    """The first number in the name of a source quality; infinite for native, None without one."""
    if name == NATIVE:
        return float("inf")
    found = re.search(r"\d+(\.\d+)?", name)
    return float(found.group()) if found else None


def _quality_order(name: str) -> tuple[bool, float, str]:
    number = quality_number(name)
    return (number is None, -(number or 0.0), name)


def lowest_quality(names: Sequence[str]) -> str | None:
    """The one with the smallest number in its name, else the first in alphabetical order; None without any."""
    numbered = [name for name in sorted(names, key=_quality_order) if quality_number(name) is not None]
    return numbered[-1] if numbered else min(names, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What each run answered: one row per run and question, attempts superseded and repetitions averaged."""

    start: npt.NDArray[np.int64]
    """First row of each run, and the number of rows at the end."""
    question: npt.NDArray[np.int64]
    credit: npt.NDArray[np.float64]
    tokens: npt.NDArray[np.float64]
    """Visual tokens; NaN where not stated."""

    def column(self, runs: Sequence[int], values: npt.NDArray[np.float64], size: int) -> npt.NDArray[np.float64]:
        """Means over runs for each of `size` questions; NaN where none answered."""
        rows = np.concatenate([np.arange(self.start[run], self.start[run + 1]) for run in runs])
        return mean_by(self.question[rows], values[rows], size)


def asked(answers: Answers) -> Asked:
    """Average the answers that count by run and question."""
    size = len(answers.questions)
    rows = answers.counts
    key, position = np.unique(answers.run[rows] * max(size, 1) + answers.question[rows], return_inverse=True)
    run = key // max(size, 1)
    return Asked(
        start=np.searchsorted(run, np.arange(len(answers.runs) + 1)),
        question=key % max(size, 1),
        credit=mean_by(position, answers.numbers["credit"][rows], len(key)),
        tokens=mean_by(position, answers.numbers["visual_tokens"][rows], len(key)),
    )
