"""Padded batches of replicates and refits over them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from analyses.cells import CellParameters, fittable, study_of_cells
from analyses.clusters import Rebuilt, cluster_sums
from analyses.laws import BoundedLaw, CoupledLaw, MultiplicativeLaw, SeparableLaw
from analyses.resampling import Layout, batch_of, fit_batch, intervals_of, observed, percentiles, pieces_of, quantiles, resampled
from tests.analyses.planted import PlantedLaw, planted_cells, session

if TYPE_CHECKING:
    from analyses.cells import CellStudy
    from analyses.resampling import Law

LAWS = {
    ("InternVL3", "HR-Bench"): PlantedLaw(b=0.1),
    ("InternVL3", "TreeBench"): PlantedLaw(e=0.2, a=0.04, alpha=0.7, b=0.1, beta=0.3),
    ("Qwen3-VL", "HR-Bench"): PlantedLaw(e=0.15, a=0.03, alpha=0.9, b=0.12, beta=0.5),
}
ALL: tuple[Law, ...] = (SeparableLaw(), BoundedLaw(), MultiplicativeLaw(), CoupledLaw())


@pytest.fixture(scope="module")
def study() -> CellStudy:
    frame = planted_cells(LAWS, draws="images", questions=40, spread=0.5, releases={"HR-Bench": ("HR-4K", "HR-8K")}, seed=4)
    return study_of_cells(session(frame), "resampling", CellParameters())


@pytest.fixture(scope="module")
def layout(study: CellStudy) -> Layout:
    return Layout.of(study.groups, fittable(study)[0])


def test_a_layout_pads_groups_to_one_width_and_back(study: CellStudy, layout: Layout) -> None:
    assert layout.inside.sum(axis=1).tolist() == [42, 36, 42]
    values = np.stack([study.cells.error, study.cells.tokens])
    padded = layout.pad(values, 0.0)
    assert padded.shape == (2, 3, 42)
    for row in range(3):
        members = study.groups.members(row)
        assert np.array_equal(padded[:, row, : len(members)], values[:, members])
        assert (padded[:, row, len(members) :] == 0).all()
    assert np.array_equal(layout.unpad(padded, len(study.cells)), values)


def test_a_layout_holds_kept_cells_of_chosen_groups(study: CellStudy) -> None:
    keep = study.cells.input_size != 2048
    layout = Layout.of(study.groups, keep, [2, 0])
    assert layout.group.tolist() == [2, 0]
    assert set(layout.cell[layout.inside].tolist()) == set(np.flatnonzero(keep & (study.groups.code != 1)).tolist())
    assert np.isnan(layout.unpad(layout.pad(study.cells.error), len(study.cells))[study.groups.code == 1]).all()
    assert len(Layout.of(study.groups, np.zeros(len(keep), dtype=bool))) == 0


@pytest.mark.parametrize("law", ALL, ids=lambda law: law.name)
def test_a_batch_fits_each_group_as_it_is_fitted_alone(study: CellStudy, layout: Layout, law: Law) -> None:
    refits = fit_batch(law, batch_of(layout, observed(study), study.cells.parameters, study.reference))
    for row in range(len(layout)):
        cells = study.groups.members(row)
        n, r = study.cells.parameters[cells] / study.reference[0], study.cells.tokens[cells] / study.reference[1]
        error = study.cells.error[cells]
        if law.name == "bounded":
            error = np.clip(error, 0.5 / study.cells.n[cells], 1 - 0.5 / study.cells.n[cells])
        alone = law.fit_many(n, r, error)
        assert refits.objective[0, row] == pytest.approx(alone.objective[0], rel=1e-6)
        assert refits.fitted[0, row]


def test_lost_cells_have_no_weight_and_too_few_are_not_fitted(study: CellStudy, layout: Layout) -> None:
    whole = observed(study)
    n = np.repeat(whole.n, 3, axis=0)
    first, second = study.groups.members(0), study.groups.members(1)
    n[1, first[:5]] = 0
    n[2, second[4:]] = 0
    error = np.where(n > 0, np.repeat(whole.error, 3, axis=0), np.nan)
    tokens = np.where(n > 0, np.repeat(whole.tokens, 3, axis=0), np.nan)
    batch = batch_of(layout, Rebuilt(n=n, error=error, tokens=tokens), study.cells.parameters, study.reference)
    assert batch.lost.tolist() == [[0, 0, 0], [5, 0, 0], [0, 32, 0]]
    refits = fit_batch(SeparableLaw(), batch)
    assert refits.fitted.tolist() == [[True, True, True], [True, True, True], [True, False, True]]
    assert np.isnan(refits.objective[2, 1])
    assert np.isnan(refits.parameters["alpha"][2, 1])
    rest = first[5:]
    alone = SeparableLaw().fit_many(
        study.cells.parameters[rest] / study.reference[0], study.cells.tokens[rest] / study.reference[1], study.cells.error[rest]
    )
    assert refits.objective[1, 0] == pytest.approx(alone.objective[0], rel=1e-6)


def test_a_replicate_without_any_fit_is_empty_and_joins_others(study: CellStudy, layout: Layout) -> None:
    nothing = Rebuilt(
        n=np.zeros((2, len(study.cells))), error=np.full((2, len(study.cells)), np.nan), tokens=np.full((2, len(study.cells)), np.nan)
    )
    empty = fit_batch(SeparableLaw(), batch_of(layout, nothing, study.cells.parameters, study.reference))
    full = fit_batch(SeparableLaw(), batch_of(layout, observed(study), study.cells.parameters, study.reference))
    joined = type(full).joined([empty, full])
    assert joined.fitted.sum(axis=1).tolist() == [0, 0, 3]
    assert np.isnan(joined.parameters["alpha"][:2]).all()
    assert np.array_equal(joined.parameters["alpha"][2], full.parameters["alpha"][0])
    assert not joined.determined["alpha"][:2].any()


def test_an_exponent_without_a_term_is_not_determined(study: CellStudy, layout: Layout) -> None:
    flat = 0.2 + 0.1 * (study.cells.tokens / study.reference[1]) ** -0.5
    rebuilt = Rebuilt(n=study.cells.n[None].astype(float), error=flat[None], tokens=study.cells.tokens[None])
    refits = fit_batch(SeparableLaw(), batch_of(layout, rebuilt, study.cells.parameters, study.reference))
    assert not refits.determined["alpha"].any()
    assert refits.determined["beta"].all()
    assert (refits.at_bound["alpha"] == 0).all()
    assert refits.parameters["beta"] == pytest.approx(0.5, abs=1e-4)


def test_refits_are_those_of_each_replicate(study: CellStudy, layout: Layout) -> None:
    sums, law = cluster_sums(study), SeparableLaw(floor="grid")
    weights = np.linspace(0.5, 2, len(study.cells))
    refits = intervals_of(study, sums, layout, law, 27, weights=weights, workers=1)
    assert refits.objective.shape == (27, 3)
    for replicate, rebuilt in enumerate(resampled(sums, range(27), seed=study.opened.parameters.seed, size=1)):
        if replicate not in {0, 11, 26}:
            continue
        for row in range(3):
            cells = study.groups.members(row)
            alone = law.fit_many(
                study.cells.parameters[cells] / study.reference[0],
                rebuilt.tokens[0, cells] / study.reference[1],
                rebuilt.error[0, cells],
                weights[cells],
            )
            assert refits.objective[replicate, row] == pytest.approx(alone.objective[0], rel=1e-6)


def test_pieces_cover_all_replicates_in_order() -> None:
    assert pieces_of(60) == [range(25), range(25, 50), range(50, 60)]
    assert pieces_of(3, 2) == [range(2), range(2, 3)]


def test_percentiles_are_linear_quantiles_of_what_is_known() -> None:
    values: np.ndarray[Any, Any] = np.random.default_rng(0).normal(size=(101, 3))
    values[3, 1] = np.nan
    values[:, 2] = np.nan
    low, high = percentiles(values, 0.9)
    known = np.sort(values[:, 1][~np.isnan(values[:, 1])])
    place = 0.05 * (len(known) - 1)
    expected = known[int(place)] + (place - int(place)) * (known[int(place) + 1] - known[int(place)])
    assert low[1] == pytest.approx(expected, rel=1e-12)
    assert (low[0], high[0]) == pytest.approx((np.quantile(values[:, 0], 0.05), np.quantile(values[:, 0], 0.95)))
    assert np.isnan([low[2], high[2]]).all()


def test_quantiles_beside_infinities_are_infinite_and_never_invented() -> None:
    """Linear interpolation between order statistics, done by hand: a finite neighbour of infinity gives infinity."""
    values = np.array(
        [[1.0, np.inf, -np.inf, np.nan], [2.0, np.inf, 1.0, 5.0], [3.0, np.inf, np.inf, np.inf], [np.inf, np.inf, np.inf, np.nan]]
    )
    assert quantiles(values, [0.0, 0.5, 0.6, 1.0]).tolist() == [
        [1.0, np.inf, -np.inf, 5.0],
        [2.5, np.inf, np.inf, np.inf],
        [pytest.approx(2.8), np.inf, np.inf, np.inf],
        [np.inf, np.inf, np.inf, np.inf],
    ]
