"""The design of the separable-law paper, as far as its numbers follow from the catalog, the presets and the floor grid."""

from __future__ import annotations

import numpy as np
import pytest

from analyses.laws.floor import GRID_VALUES
from tests.analyses.known import known
from tracker.catalog import load
from tracker.simulate.spec import preset


def test_the_geometric_mean_of_n_follows_from_the_catalog() -> None:
    (row,) = known("geomean_N")
    catalog, plan = load(), preset("separable-law")
    combinations = sum(len(benchmark.input_sizes) for benchmark in plan.benchmark)
    sizes = [catalog.parameters_of(model) for model in catalog.models.values()]
    assert (len(sizes), combinations, len(sizes) * combinations) == (26, 25, 650)
    assert float(np.exp(np.mean(np.log(np.array(sizes, dtype=float) / 1e9)))) == pytest.approx(float(row.recomputed), abs=5e-5)


def test_configurations_of_the_taxonomy_are_models_at_sizes_with_labels() -> None:
    (row,) = known("subcells")
    labelled = sum(len(benchmark.input_sizes) for benchmark in preset("separable-law").benchmark if benchmark.name != "HRBench8K")
    assert len(load().models) * labelled == int(row.recomputed)


def test_printed_floors_are_on_the_grid_and_on_no_even_one() -> None:
    (row,) = known("floor_grid")
    assert len(GRID_VALUES) == 55
    assert set(row.inputs["printed"]) | {0.001, 0.01, 0.03} <= set(GRID_VALUES)
    even = np.linspace(0.001, 0.999, 55)
    assert min(np.abs(even - floor).min() for floor in row.inputs["printed"]) > 0.001


def test_the_source_quality_factorial_has_as_many_questions_and_caps() -> None:
    (row,) = known("factorial")
    (sweep,) = [sweep for sweep in preset("sweeps").sweep if len(sweep.source_quality or ()) > 1]
    assert sweep.max_tiles is not None
    assert len(sweep.max_tiles) * sum(sweep.benchmarks.values()) == int(row.recomputed)
