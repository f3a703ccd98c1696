"""Which runs belong to a grid of model sizes and input sizes: not native image size, not the sweep of another setting."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from analyses.answers import Runs

KNOBS = ("max_tiles", "pixel_cap", "source_quality", "vision_branches", "language_branches")
"""Settings whose sweeps are analyses of their own."""


def on_the_grid(runs: Runs, warnings: list[str], *, native: bool = False, sweeps: bool = False) -> npt.NDArray[np.bool_]:
    """Which runs belong to the grid; `native` and `sweeps` let these in. What is left out is a warning."""
    kept = np.ones(len(runs), dtype=bool)
    if not native:
        left = np.asarray(runs.text["input_mode"] == "native", dtype=bool)
        kept &= ~left
        if left.any():
            warnings.append(f"{int(left.sum()):,} cells at native image size are left out (--include-native)")
    if not sweeps:
        left = kept & ~usual(runs, kept)
        kept &= ~left
        if left.any():
            warnings.append(
                f"{int(left.sum()):,} cells of sweeps are left out: they differ from what is usual for their model in {' or '.join(KNOBS)} (--include-sweeps)"
            )
    return kept


def usual(runs: Runs, kept: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Whether a run has the usual value of every knob, judged among the kept runs.

    Where a model has several values of a knob at one input size, the value that is most frequent over all its runs is the usual one
    (then at this size, then in order). A knob that only follows the input size is no sweep.
    """
    fine = np.ones(len(runs), dtype=bool)
    members = np.flatnonzero(kept).tolist()
    model, size = _spelled(runs.text["model"]), _spelled(runs.numbers["input_size"])
    for knob in KNOBS:
        value = _spelled(runs.text[knob] if knob in runs.text else runs.numbers[knob])
        overall = Counter((model[run], value[run]) for run in members)
        at_size = Counter((model[run], size[run], value[run]) for run in members)
        best: dict[tuple[str, str], tuple[int, int, str]] = {}
        for one_model, one_size, one_value in at_size:
            rank = (-overall[one_model, one_value], -at_size[one_model, one_size, one_value], one_value)
            best[one_model, one_size] = min(best.get((one_model, one_size), rank), rank)
        for run in members:
            fine[run] &= value[run] == best[model[run], size[run]][2]
    return fine


def _spelled(values: npt.NDArray[np.object_] | npt.NDArray[np.float64]) -> list[str]:
    """Values as text, empty where unknown."""
    return ["" if value is None or value != value else str(value) for value in values.tolist()]  # noqa: PLR0124 - NaN
