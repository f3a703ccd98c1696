"""The law finds what `trackr simulate` planted, from cells without sampling noise."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pytest

from analyses.laws import SeparableLaw
from tracker.catalog import load
from tracker.simulate.cells import study
from tracker.simulate.spec import StudyPlan

REFERENCE = (6.60, 1135.0)
SIZES = (224, 336, 512, 768, 1024, 2048)
LAWS = [
    {"series": "Qwen3-VL", "benchmark": "HRBench4K", "floor": 0.05, "a_n": 0.06, "alpha": 0.6, "b_r": 0.22, "beta": 0.3},
    {"series": "Qwen3-VL", "benchmark": "TreeBench", "floor": 0.30, "a_n": 0.04, "alpha": 0.9, "b_r": 0.12, "beta": 0.18},
    {"series": "Qwen2.5-VL", "benchmark": "HRBench4K", "floor": 0.002, "a_n": 0.20, "alpha": 0.25, "b_r": 0.25, "beta": 0.15},
    {"series": "Qwen2.5-VL", "benchmark": "TreeBench", "floor": 0.12, "a_n": 0.10, "alpha": 0.45, "b_r": 0.05, "beta": 0.75},
]


def planted_cells() -> dict[tuple[str, str], list[tuple[float, float, float]]]:
    """(series, benchmark) -> (N in billions, R, planted error) of its cells, as the simulator makes them before it draws answers."""
    models = tuple(name for name in load().models if name.startswith(("Qwen3-VL-", "Qwen2.5-VL-")))
    benchmarks: Any = [{"name": name, "questions": 60, "input_sizes": SIZES} for name in ("HRBench4K", "TreeBench")]
    plan = StudyPlan.model_validate({"models": models, "benchmark": benchmarks, "law": LAWS})
    made = study(plan, load())
    groups = defaultdict(list)
    for model in made.models:
        for cell in made.cells_of(model):
            tokens = float(made.views(cell).tokens.mean())
            groups[model.series, cell.benchmark.name].append((model.parameters / 1e9, tokens, made.planted_error(cell, tokens)))
    return groups


@pytest.mark.parametrize("law", LAWS, ids=lambda law: f"{law['series']} {law['benchmark']}")
def test_planted_parameters_come_back(law: dict[str, Any]) -> None:
    n, r, error = np.array(planted_cells()[law["series"], law["benchmark"]]).T
    assert len(n) == 24
    assert r.max() / r.min() > 2
    fit = SeparableLaw(reference=REFERENCE).fit(n, r, error)
    found = {name: fit.parameters[name] for name in ("e_inf", "A_n", "alpha", "B_r", "beta")}
    planted = [law[name] for name in ("floor", "a_n", "alpha", "b_r", "beta")]
    assert found == pytest.approx(dict(zip(found, planted, strict=True)), abs=1e-6)
    assert fit.sse < 1e-20
    assert not fit.at_bound
