"""What sweeps plant and draw: a cell per setting, gains between the settings with the fewest and the most tokens, and what quality changes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tracker.simulate.setting import UNTOUCHED

if TYPE_CHECKING:
    from tracker.simulate.answers import Answers
    from tracker.simulate.cells import Cell

Entry = dict[str, Any]
PLANTED, DRAWN = "planted_error", "error"


@dataclass(slots=True)
class SweepTruth:
    """Cells of sweeps by model and benchmark, gathered while runs are written."""

    _first: dict[tuple[str, str], Cell] = field(default_factory=dict)
    _cells: dict[tuple[str, str], list[Entry]] = field(default_factory=dict)

    def add(self, answers: Answers, numbers: Entry) -> None:
        """Note a run with the numbers that every cell has."""
        cell = answers.cell
        key = cell.model.name, cell.benchmark.name
        self._first.setdefault(key, cell)
        if cell.setting is not None:
            at = {"source_quality": cell.setting.source_quality, "setting": cell.setting.value, "usable_tokens": answers.usable_tokens}
            self._cells.setdefault(key, []).append({**at, **numbers, "accuracy": _accuracy(numbers)})

    def __len__(self) -> int:
        """Number of cells."""
        return sum(map(len, self._cells.values()))

    def truth(self) -> list[Entry]:
        """One entry per model and benchmark; errors, gains and effects are shares."""
        return [_entry(self._first[key], cells) for key, cells in self._cells.items()]


def _entry(cell: Cell, cells: list[Entry]) -> Entry:
    by_quality: dict[str, list[Entry]] = {}
    for one in cells:
        by_quality.setdefault(one["source_quality"], []).append(one)
    ends = {quality: _ends(members) for quality, members in by_quality.items()}
    ordered = sorted(ends, key=lambda quality: float("inf") if quality == UNTOUCHED else float(quality), reverse=True)
    setting = cell.setting
    return {
        "model": cell.model.name,
        "series": cell.model.series,
        "suite": cell.suite,
        "benchmark": cell.benchmark.name,
        "axis": None if setting is None else setting.knob,
        "input_mode": "native",
        "parameters": cell.model.parameters,
        "questions": None if setting is None else setting.questions,
        "pixels_per_token": None if setting is None else setting.pixels_per_token,
        "law": cell.law.model_dump(include={"floor", "a_n", "alpha", "b_r", "beta"}),
        "cells": cells,
        "gains": [
            {
                "source_quality": quality,
                "setting_from": low["setting"],
                "setting_to": high["setting"],
                "tokens_from": low["visual_tokens"],
                "tokens_to": high["visual_tokens"],
                "planted_gain": _gain(low, high, PLANTED),
                "gain": _gain(low, high, DRAWN),
            }
            for quality, (low, high) in ((quality, ends[quality]) for quality in ordered)
        ],
        "comparisons": [
            {
                "source_quality": ordered[0],
                "lower_quality": lower,
                "planted_interaction": _interaction(ends[ordered[0]], ends[lower], PLANTED),
                "interaction": _interaction(ends[ordered[0]], ends[lower], DRAWN),
                "planted_effect": _gain(ends[lower][1], ends[ordered[0]][1], PLANTED),
                "effect": _gain(ends[lower][1], ends[ordered[0]][1], DRAWN),
            }
            for lower in ordered[1:]
        ],
    }


def _ends(cells: list[Entry]) -> tuple[Entry, Entry]:
    """The settings with the fewest and the most mean tokens; of equals the smaller and the larger value of the knob."""
    ordered = sorted(cells, key=lambda one: (one["visual_tokens"], one["setting"]))
    return ordered[0], ordered[-1]


def _accuracy(numbers: Entry) -> float | None:
    return 1 - numbers["errors"] / numbers["n"] if numbers["n"] else None


def _gain(low: Entry, high: Entry, which: str) -> float | None:
    """Accuracy at one cell minus accuracy at another, as planted or as drawn over the scored answers of each."""
    if which == PLANTED:
        return float(low["planted_error"] - high["planted_error"])
    return None if low["accuracy"] is None or high["accuracy"] is None else float(high["accuracy"] - low["accuracy"])


def _interaction(higher: tuple[Entry, Entry], lower: tuple[Entry, Entry], which: str) -> float | None:
    gains = _gain(*higher, which), _gain(*lower, which)
    return None if gains[0] is None or gains[1] is None else gains[0] - gains[1]
