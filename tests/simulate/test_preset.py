"""The preset that reproduces the paper's grid, without writing it: cells, tokens, errors, regimes."""

from __future__ import annotations

import math
from collections import defaultdict
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tracker.catalog import load
from tracker.simulate import preset
from tracker.simulate.answers import Answers, draw, shortfalls
from tracker.simulate.cells import Cell, Study, study
from tracker.simulate.companions import labels_csv
from tracker.simulate.study import check
from tracker.simulate.trajectories import Trajectories

if TYPE_CHECKING:
    from collections.abc import Iterator

SHARED = (224, 336, 512, 768, 1024, 2048)


@cache
def grid() -> Study:
    """The study with its questions, drawn from nothing else."""
    return study(preset("separable-law"), load())


@cache
def cells() -> tuple[Cell, ...]:
    """All cells."""
    made = grid()
    return tuple(cell for model in made.models for cell in made.cells_of(model))


def tokens(cell: Cell) -> float:
    """Mean tokens over the rows of a run."""
    made = grid()
    return float(made.views(cell).tokens[made.question_sets[cell.benchmark.name].rows].mean())


def test_there_are_650_cells_of_26_models_with_537_940_generations() -> None:
    made = grid()
    assert len(cells()) == 650
    assert len({cell.model.name for cell in cells()}) == 26
    assert len({(cell.benchmark.name, cell.input_size) for cell in cells()}) == 25
    assert sum(len(made.question_sets[cell.benchmark.name].rows) for cell in cells()) == 537_940


def test_every_planted_error_is_inside_zero_and_one() -> None:
    errors = [grid().planted_error(cell, tokens(cell)) for cell in cells()]
    assert min(errors) > 0.15
    assert max(errors) < 0.85


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_other_seeds_are_inside_too(seed: int) -> None:
    check(study(preset("separable-law").model_copy(update={"seed": seed}), load()))


def test_mean_tokens_are_those_of_the_paper() -> None:
    """InternVL: 1,500 to 2,300 with spans of 1.07 to 1.55 in a group; QwenVL: 34 to 88 over the shared sizes, up to 360 with 4096 px."""
    groups: dict[tuple[str, str | None], list[Cell]] = defaultdict(list)
    for cell in cells():
        groups[cell.model.series, cell.suite].append(cell)
    for (series, suite), group in groups.items():
        means = [tokens(cell) for cell in group]
        shared = [tokens(cell) for cell in group if cell.input_size in SHARED]
        if series.startswith("InternVL"):
            assert 1_300 < min(means) < max(means) < 2_400, (series, suite)
            assert 1.05 < max(means) / min(means) < 1.6, (series, suite)
        else:
            assert 34 < max(shared) / min(shared) < 90, (series, suite)
            assert max(means) / min(means) < 360, (series, suite)
    v_star = [tokens(cell) for cell in groups["InternVL3", "V*Bench"]]
    assert max(v_star) / min(v_star) == pytest.approx(1.067, abs=0.01)
    assert math.exp(np.mean([math.log(tokens(cell)) for cell in cells()])) == pytest.approx(1_135, rel=0.03)
    assert math.exp(np.mean([math.log(cell.model.parameters) for cell in cells()])) == pytest.approx(6.60e9, rel=0.002)


def test_most_questions_keep_their_tile_count_at_all_shared_sizes() -> None:
    """The paper has 69.9%."""
    kept = []
    for benchmark in ("HRBench4K", "MME-RealWorld-Lite", "TreeBench", "V*Bench"):
        sizes = [grid().views(cell).tiles for cell in cells() if cell.model.name == "InternVL3.5-8B" and cell.benchmark.name == benchmark]
        kept.extend((np.ptp(np.array(sizes), axis=0) == 0).tolist())
    assert len(kept) == 3_178
    assert 0.6 < np.mean(kept) < 0.85


def drawn() -> Iterator[Answers]:
    """Every run."""
    lacking = shortfalls(grid(), list(cells()))
    return (draw(grid(), cell, lacking[cell]) for cell in cells())


@pytest.fixture(scope="module")
def totals() -> dict[str, float]:
    """One pass over all runs: counts, the worst deviation from a planted mean, regimes."""
    followed = Trajectories(grid())
    sums: dict[str, float] = defaultdict(float)
    for answers in drawn():
        followed.add(answers)
        scored = answers.scored
        both = scored & (answers.logit_prediction >= 0)
        sums["failed"] += int(answers.failed.sum())
        sums["both"] += int(both.sum())
        sums["agreeing"] += int((answers.logit_prediction == answers.prediction)[both].sum())
        sums["off"] = max(sums["off"], abs(float(answers.wrong_probability[scored].mean()) - answers.planted_error))
        error = float((~answers.correct[scored]).mean())
        spread = math.sqrt(float((answers.wrong_probability * (1 - answers.wrong_probability))[scored].sum())) / int(scored.sum())
        sums["far"] += abs(error - answers.planted_error) > 4 * spread
        sums["squared"] += (error - answers.planted_error) ** 2
    slices = followed.truth()
    sums["trajectories"] = sum(part["trajectories"] for part in slices)
    sums["observations"] = sum(part["observations"] for part in slices)
    for regime in ("easy", "scaling_bound", "ceiling_bound"):
        sums[regime] = sum(part["regimes"][regime] for part in slices) / sums["trajectories"]
    ceiling: dict[tuple[str, str], list[bool]] = defaultdict(list)
    for part in slices:
        for key, accuracy in zip(part["question_keys"], part["accuracy"], strict=True):
            ceiling[part["benchmark"], key].append(accuracy is not None and accuracy < 0.2)
    sums["everywhere"] = float(np.mean([all(found) for (benchmark, _), found in ceiling.items() if benchmark != "HRBench8K"]))
    return sums


def test_failed_and_unusable_records_are_as_many_as_in_the_paper(totals: dict[str, float]) -> None:
    assert totals["failed"] == 691
    assert totals["both"] == 536_781
    assert totals["trajectories"] == 19_890
    assert 515_800 < totals["observations"] < 516_100
    assert totals["agreeing"] / totals["both"] == pytest.approx(0.966, abs=0.001)


def test_every_cell_has_its_planted_error_in_expectation(totals: dict[str, float]) -> None:
    """Exactly in expectation; the drawn errors scatter around it no more than answers drawn one by one and shared numbers allow."""
    assert totals["off"] <= 1e-12
    assert totals["far"] <= 3
    assert math.sqrt(totals["squared"] / 650) < 0.02


def test_regimes_are_roughly_those_of_the_paper(totals: dict[str, float]) -> None:
    assert totals["easy"] == pytest.approx(0.20, abs=0.05)
    assert totals["scaling_bound"] == pytest.approx(0.494, abs=0.05)
    assert totals["ceiling_bound"] == pytest.approx(0.307, abs=0.05)
    assert totals["everywhere"] == pytest.approx(0.18, abs=0.04)


def test_confidences_are_consistent_with_predictions() -> None:
    cell = next(cell for cell in cells() if cell.benchmark.name == "V*Bench")
    answers = draw(grid(), cell, shortfalls(grid(), list(cells()))[cell])
    usable = np.flatnonzero(answers.logit_prediction >= 0)
    assert (answers.confidence[usable].argmax(axis=1) == answers.logit_prediction[usable]).all()
    np.testing.assert_allclose(answers.confidence[usable].sum(axis=1), 1.0, rtol=1e-12)
    gold = grid().question_sets["V*Bench"].gold[answers.question]
    np.testing.assert_array_equal(answers.p_gold[usable], answers.confidence[usable, gold[usable]])
    assert (answers.correct == ((answers.prediction == gold) & ~answers.failed)).all()
    right_chance = 1 - answers.wrong_probability[usable]
    assert np.corrcoef(right_chance, answers.p_gold[usable])[0, 1] > 0.7


def test_questions_have_the_structure_of_their_benchmarks() -> None:
    sets = grid().question_sets
    for name in ("HRBench4K", "HRBench8K"):
        questions = sets[name].questions
        assert len({question.key for question in questions}) == 800
        assert len({question.image_key for question in questions}) == 200
        assert len({question.pair_key for question in questions}) == 800
    small, large = ({question.pair_key: question for question in sets[name].questions} for name in ("HRBench4K", "HRBench8K"))
    assert set(small) == set(large)
    assert all(
        (small[pair].text, small[pair].options, small[pair].gold) == (large[pair].text, large[pair].options, large[pair].gold)
        for pair in small
    )
    assert sum(small[pair].key == large[pair].key for pair in small) < 20
    by_image: dict[str, set[str]] = defaultdict(set)
    for question in sets["HRBench4K"].questions:
        by_image[question.image_key].add(question.options[question.gold])
    assert all(len(golds) == 1 for golds in by_image.values())
    assert set(sets["V*Bench"].n_options.tolist()) == {2, 4}
    assert set(sets["MME-RealWorld-Lite"].n_options.tolist()) == {5}
    rows, counts = np.unique(sets["MME-RealWorld-Lite"].rows, return_counts=True)
    assert (len(rows), int((counts == 2).sum()), int(counts.max())) == (1_782, 137, 2)


def test_tasks_follow_the_catalog_and_labels_cover_the_six_shared_sizes() -> None:
    catalog = load()
    for name, questions in grid().question_sets.items():
        tasks = catalog.benchmarks[name].tasks
        assert {tasks[question.category.full_name] == question.category.task for question in questions.questions} == {True}
        assert catalog.benchmark(questions.template.task) is catalog.benchmarks[name]
    lines = [line.split(",") for line in labels_csv(grid()).splitlines()]
    assert lines[0] == ["benchmark", "question_key", "scheme", "value", "source"]
    assert len(lines) - 1 == 2 * 3_178
    assert {line[0] for line in lines[1:]} == set(grid().question_sets) - {"HRBench8K"}
    assert {line[3] for line in lines[1:]} == {f"{kind}{number}" for kind in "DS" for number in range(1, 7)}
