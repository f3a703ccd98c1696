"""Folds against plain loops, and against the counts of the separable-law paper on its own grid."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from analyses import folds as folds_module
from analyses.folds import (
    CONSTANT_ERROR,
    DESIGNS,
    FEW_CELLS,
    FITTED,
    ONE_LEVEL,
    SCOPES,
    Design,
    Folds,
    Scope,
    fitted_groups,
    interior,
    levels,
    make_folds,
    obstacles,
    told,
    whole_groups,
)
from tests.analyses.known import known
from tracker.catalog import load
from tracker.simulate import preset
from tracker.simulate.cells import study


@cache
def paper_grid() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Group (series x suite), exact N of the catalog in billions and input size of the paper's 650 cells."""
    made = study(preset("separable-law"), load())
    cells = [
        (cell.model.series, cell.suite, cell.model.parameters / 1e9, cell.input_size) for m in made.models for cell in made.cells_of(m)
    ]
    names = sorted({cell[:2] for cell in cells}, key=str)
    group = np.array([names.index(cell[:2]) for cell in cells])
    return group, np.array([cell[2] for cell in cells]), np.array([cell[3] for cell in cells], dtype=float)


def a_grid(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cells of up to four groups with gaps, repeated levels, unknown sizes, and cells that take no part."""
    rng = np.random.default_rng(seed)
    cells = int(rng.integers(1, 40))
    size = rng.choice([224.0, 448.0, 1024.0, np.nan], cells, p=[0.3, 0.3, 0.3, 0.1])
    return rng.integers(-1, 4, cells), rng.choice([0.5, 1.0, 2.0, 8.0], cells), size


def loops(
    design: Design, scope: Scope, group: np.ndarray, n: np.ndarray, size: np.ndarray
) -> dict[tuple[int, float | None, float | None], tuple[set[int], set[int]]]:
    """(group or -1, N, input size) -> withheld and scored cells."""
    cells = [i for i in range(len(group)) if group[i] >= 0]
    found: dict[tuple[int, float | None, float | None], tuple[set[int], set[int]]] = {}
    for i in cells:
        for j in cells:
            number = -1 if scope == "shared" else int(group[i])
            same = [k for k in cells if scope == "shared" or group[k] == group[i]]
            if j not in same or (design != "backbone" and np.isnan(size[j])):
                continue
            row, column = {k for k in same if n[k] == n[i]}, {k for k in same if size[k] == size[j]}
            if design == "backbone":
                found[number, float(n[i]), None] = (row, row)
            elif design == "input_size":
                found[number, None, float(size[j])] = (column, column)
            elif row & column:
                found[number, float(n[i]), float(size[j])] = (row | column, row & column)
    return found


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("scope", SCOPES)
def test_folds_equal_loops_over_pairs_of_cells(seed: int, design: Design, scope: Scope) -> None:
    group, n, size = a_grid(seed)
    folds = make_folds(design, scope, group, n, size)
    expected = loops(design, scope, group, n, size)
    found = {
        (int(g), None if np.isnan(p) else float(p), None if np.isnan(s) else float(s)): (
            set(np.flatnonzero(withheld).tolist()),
            set(np.flatnonzero(scored).tolist()),
        )
        for g, p, s, withheld, scored in zip(folds.group, folds.parameters, folds.input_size, folds.withheld, folds.scored, strict=True)
    }
    assert len(folds) == len(found)
    assert found == expected


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("design", DESIGNS)
def test_interior_cells_lie_strictly_between_the_ends_of_their_group(seed: int, design: Design) -> None:
    group, n, size = a_grid(seed)
    found = interior(design, group, n, size)
    for cell in range(len(group)):
        same = [k for k in range(len(group)) if group[k] == group[cell]]
        sizes = [size[k] for k in same if not np.isnan(size[k])]
        between = {
            "backbone": min(n[same]) < n[cell] < max(n[same]),
            "input_size": bool(sizes) and min(sizes) < size[cell] < max(sizes),
        }
        expected = all(between.values()) if design == "joint" else between[design]
        assert found[cell] == (expected and group[cell] >= 0)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("scope", SCOPES)
def test_no_cell_is_scored_twice_and_none_is_scored_that_the_fit_sees(seed: int, design: Design, scope: Scope) -> None:
    folds = make_folds(design, scope, *a_grid(seed))
    assert folds.scored.sum(axis=0).max(initial=0) <= 1
    assert not (folds.scored & ~folds.withheld).any()


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("scope", SCOPES)
def test_a_group_is_fitted_where_enough_cells_and_two_levels_remain(seed: int, scope: Scope) -> None:
    group, n, size = a_grid(seed)
    folds = make_folds("joint", scope, group, n, size)
    ready = fitted_groups(folds, group, (n, size), need=3)
    for fold in range(len(folds)):
        for number in range(group.max() + 1):
            rest = [k for k in range(len(group)) if group[k] == number and not folds.withheld[fold, k]]
            concerned = folds.group[fold] in (-1, number)
            sizes = {size[k] for k in rest if not np.isnan(size[k])}
            known_sizes = [k for k in range(len(group)) if group[k] == number and not np.isnan(size[k])]
            enough = len(rest) >= 3 and len({n[k] for k in rest}) > 1 and (len(sizes) > 1 or not known_sizes)
            assert ready[fold, number] == (concerned and enough)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("scope", SCOPES)
def test_blocks_of_any_size_give_the_same(seed: int, design: Design, scope: Scope, monkeypatch: pytest.MonkeyPatch) -> None:
    group, n, size = a_grid(seed)
    folds = make_folds(design, scope, group, n, size)
    error = np.random.default_rng(seed).choice([0.1, 0.2], len(group))
    at_once = obstacles(folds, group, (n, size), need=2, error=error)
    monkeypatch.setattr(folds_module, "PLACES", 7)
    assert (obstacles(folds, group, (n, size), need=2, error=error) == at_once).all()
    assert folds.withheld_cells().tolist() == folds.withheld.sum(axis=1).tolist()
    assert sorted(row for rows, _ in folds.blocks() for row in rows.tolist()) == list(range(len(folds)))


@pytest.mark.parametrize("scope", SCOPES)
def test_some_folds_withhold_and_score_what_they_did_among_all(scope: Scope) -> None:
    folds = make_folds("joint", scope, *a_grid(3))
    rows = np.arange(len(folds))[::2]
    some = folds.take(rows)
    assert (some.withheld == folds.withheld[rows]).all()
    assert (some.scored == folds.scored[rows]).all()
    assert (folds.take(np.arange(len(folds)) % 2 == 0).scored == some.scored).all()


def test_whole_groups_withhold_nothing_and_score_all() -> None:
    group = np.array([2, 0, -1, 2])
    folds = whole_groups(group, np.ones(4), np.full(4, np.nan))
    assert folds.group.tolist() == [0, 2]
    assert not folds.withheld.any()
    assert folds.scored.tolist() == [[False, True, False, False], [True, False, False, True]]


def square(size: int = 4) -> tuple[Folds, np.ndarray, np.ndarray]:
    """Backbone folds of a group of size x size cells, their N, and their input size."""
    n, px = (axis.ravel() for axis in np.meshgrid(2.0 ** np.arange(size), 224.0 * np.arange(1, size + 1), indexing="ij"))
    return make_folds("backbone", "group", np.zeros(len(n), dtype=np.int64), n, px), n, px


def test_values_within_a_thousandth_are_one_level() -> None:
    folds, n, px = square()
    for spread, found in ((0.99e-3, ONE_LEVEL + 2), (1.01e-3, FITTED)):
        tokens = 256 * (1 + spread * (px - px.min()) / np.ptp(px))
        assert (obstacles(folds, folds.cell_group, (n, px, tokens), need=5) == found).all()


def test_a_fold_that_leaves_a_constant_error_is_not_fitted() -> None:
    folds, n, px = square()
    error = np.where(n == 1, 0.1 + px / 1e4, 0.3)
    assert obstacles(folds, folds.cell_group, (n, px), need=5, error=error).ravel().tolist() == [CONSTANT_ERROR, FITTED, FITTED, FITTED]
    assert obstacles(folds, folds.cell_group, (n, px), need=13, error=error).ravel().tolist() == [FEW_CELLS] * 4
    assert fitted_groups(folds, folds.cell_group, (n, px), need=5).all()


def test_obstacles_in_words() -> None:
    few, level, fine = (np.array([code], dtype=np.int8) for code in (FEW_CELLS, ONE_LEVEL + 1, FITTED))
    need = {"joint fold": 5, "backbone fold": 7}
    assert not told({"joint fold": fine}, ("N", "R"), need)
    assert told({"joint fold": level, "backbone fold": level}, ("N", "R"), need) == "no fit: one level of R"
    assert told({"joint fold": few, "backbone fold": few}, ("N", "R"), need) == "no fit: too few cells"
    some = {"joint fold": np.concatenate([few, fine, few]), "backbone fold": level}
    assert told(some, ("N", "R"), need) == "not fitted: 2 of 3 joint folds (fewer than 5 cells), 1 of 1 backbone fold (one level of R)"


def test_the_paper_has_22_backbone_levels_15_of_them_interior() -> None:
    (row,) = known("levels")
    group, n, size = paper_grid()
    folds = make_folds("backbone", "shared", group, n, size)
    inside = (folds.scored & interior("backbone", group, n, size)).any(axis=1)
    assert row.recomputed == f"{len(folds)}; {int(inside.sum())}"
    assert len(levels(n)) == len(folds)


def test_the_paper_has_7_input_sizes_5_of_them_interior() -> None:
    group, n, size = paper_grid()
    folds = make_folds("input_size", "shared", group, n, size)
    assert len(folds) == 7
    assert (folds.scored & interior("input_size", group, n, size)).any(axis=1).sum() == 5


def test_the_paper_has_400_and_442_interior_cells() -> None:
    (row,) = known("interior_cells")
    group, n, size = paper_grid()
    assert row.recomputed == f"{interior('backbone', group, n, size).sum()}, {interior('input_size', group, n, size).sum()}"


def test_the_paper_fits_two_laws_1798_times() -> None:
    (row,) = known("fits1798")
    group, n, size = paper_grid()
    counts = [len(make_folds(design, "group", group, n, size)) for design in DESIGNS]
    assert counts == [104, 125, 650]
    assert int(row.recomputed) == 2 * (len(np.unique(group)) + sum(counts))


def test_the_paper_plans_2600_joint_decisions() -> None:
    (row,) = known("planned2600")
    planned, left_out, alone = 4 * len(make_folds("joint", "group", *paper_grid())), 44, 177
    assert row.recomputed == f"{planned}, {planned - left_out - alone}"


def test_a_joint_fold_of_the_paper_withholds_a_row_and_a_column() -> None:
    group, n, size = paper_grid()
    folds = make_folds("joint", "group", group, n, size)
    for fold in range(len(folds)):
        models = len(np.unique(n[group == folds.group[fold]]))
        sizes = len(np.unique(size[group == folds.group[fold]]))
        assert folds.withheld[fold].sum() == models + sizes - 1
        assert folds.scored[fold].sum() == 1
