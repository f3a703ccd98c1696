"""Image clusters by plain loops: who belongs together, what a replicate is made of, and the variance of Eq. 15."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import combinations
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

from analyses.cells import CellParameters, study_of_cells
from analyses.clusters import cluster_sums, draw, find_clusters, precision_weights
from tests.analyses.planted import PlantedLaw, planted_cells, session

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analyses.cells import CellStudy
    from analyses.clusters import Clusters

LAWS = {(series, suite): PlantedLaw(b=0.12) for series in ("InternVL3", "Qwen3-VL") for suite in ("HR-Bench", "TreeBench")}


def study_of(frame: pd.DataFrame, **options: Any) -> CellStudy:
    return study_of_cells(session(frame), "clusters", CellParameters(**options))


def frame_of(seed: int = 0, **options: Any) -> pd.DataFrame:
    """Answers on two suites, one with two releases whose questions pair; clusters of different sizes, some of them unknown."""
    rng = np.random.default_rng(seed)
    given: dict[str, Any] = {
        "draws": "answers", "sizes": (1.0, 8.0), "input_sizes": (224, 448), "questions": 15, "spread": 0.5,
        "releases": {"HR-Bench": ("HR-4K", "HR-8K")},
    }  # fmt: skip
    frame = planted_cells(LAWS, **(given | options))
    facts = frame.drop_duplicates("question_id").set_index("question_id")
    image = facts["image_key"].mask(rng.random(len(facts)) < 0.3)
    pair = facts["pair_key"].mask(rng.random(len(facts)) < 0.4)
    image[rng.random(len(facts)) < 0.3] = "shared"
    frame["image_key"], frame["pair_key"] = frame["question_id"].map(image), frame["question_id"].map(pair)
    again = frame.sample(50, random_state=seed).assign(attempt=1, credit=1.0)
    frame = pd.concat([frame.assign(attempt=0), again], ignore_index=True)
    frame["visual_tokens"] = frame["visual_tokens"].astype("Int64").mask(rng.random(len(frame)) < 0.2)
    return frame


def components(study: CellStudy) -> dict[int, frozenset[int]]:
    """Questions that belong together, by joining pairs until nothing changes."""
    text = {name: values.tolist() for name, values in study.answers.questions.text.items()}
    group = {question: {question} for question in range(len(study.answers.questions))}
    for one, two in combinations(group, 2):
        image = text["image_key"][one] is not None and all(text[name][one] == text[name][two] for name in ("benchmark", "image_key"))
        pair = text["pair_key"][one] is not None and all(text[name][one] == text[name][two] for name in ("suite", "pair_key"))
        if (image or pair) and group[one] is not group[two]:
            group[one] |= group[two]
            for member in group[one]:
                group[member] = group[one]
    return {question: frozenset(members) for question, members in group.items()}


@pytest.mark.parametrize("seed", range(3))
def test_clusters_are_images_within_a_benchmark_joined_by_pairs_within_a_suite(seed: int) -> None:
    study = study_of(frame_of(seed))
    found = find_clusters(study.answers.questions)
    members: dict[int, set[int]] = defaultdict(set)
    for question, cluster in enumerate(found.of_question.tolist()):
        members[cluster].add(question)
    expected = components(study)
    assert {frozenset(one) for one in members.values()} == set(expected.values())
    assert [min(members[cluster]) for cluster in range(len(found))] == sorted(min(one) for one in members.values())


def test_the_same_key_elsewhere_joins_nothing_and_an_unknown_key_is_alone() -> None:
    rows = [
        {"question_id": i, "benchmark": benchmark, "suite": suite, "image_key": image, "pair_key": pair}
        for i, (benchmark, suite, image, pair) in enumerate(
            [
                ("A1", "A", "i", "p"),  # 0 and 2: one image; 0 and 3: a pair across releases
                ("A1", "A", None, None),
                ("A1", "A", "i", None),
                ("A2", "A", "i", "p"),  # the same image name in another benchmark is another image
                ("A2", "A", "i", None),
                ("B1", "B", "i", "p"),  # the same pair in another suite is another pair
                ("C1", None, "j", "p"),  # no suite: a pair stays in its benchmark
                ("C2", None, "j", "p"),
            ]
        )
    ]
    common = {"credit": 1.0, "configuration_id": 1, "model": "M-1B", "series": "M", "parameters": 1, "visual_tokens": 5}
    frame = pd.DataFrame([{**row, **common, "run_id": row["benchmark"]} for row in rows])
    frame["run_id"] = pd.factorize(frame["run_id"])[0]
    frame["question_key"] = [f"q{i}" for i in range(len(frame))]
    clusters = find_clusters(study_of(frame).answers.questions)
    assert clusters.of_question.tolist() == [0, 1, 0, 0, 0, 2, 3, 4]
    assert clusters.stratum.tolist() == [0, 0, 1, 2, 3]
    assert clusters.sizes().tolist() == [2, 1, 1, 1]


def test_strata_are_benchmarks_and_releases_that_share_images() -> None:
    sums = cluster_sums(study_of(planted_cells(LAWS, sizes=(1.0, 8.0), questions=10, releases={"HR-Bench": ("HR-4K", "HR-8K")})))
    assert sums.clusters.sizes().tolist() == [5, 5]
    assert len(sums.clusters) == 10
    alone = cluster_sums(study_of(planted_cells(LAWS, sizes=(1.0, 8.0), questions=10)))
    assert alone.clusters.sizes().tolist() == [5, 5]


def test_questions_outside_the_cells_are_in_no_cluster() -> None:
    frame = planted_cells(LAWS, sizes=(1.0, 8.0), questions=10, releases={"HR-Bench": ("HR-4K", "HR-8K")})
    study = study_of(frame, drop=("benchmark=TreeBench",))
    clusters = cluster_sums(study).clusters
    benchmark = study.answers.questions.text["benchmark"]
    assert np.array_equal(clusters.of_question == -1, benchmark == "TreeBench")
    assert len(clusters) == 5


def recounted(study: CellStudy, clusters: Clusters, weights: Sequence[float]) -> dict[int, tuple[float, float, float]]:
    """Count, error and mean tokens of each cell when every answer counts as often as its cluster was drawn."""
    answers = study.answers
    rows: dict[int, list[tuple[float, float, float]]] = defaultdict(list)
    for row in range(len(answers)):
        if study.cell_of[row] >= 0:
            weight = weights[clusters.of_question[answers.question[row]]]
            rows[int(study.cell_of[row])].append((weight, answers.numbers["credit"][row], answers.numbers["visual_tokens"][row]))
    found = {}
    for cell, members in rows.items():
        n = sum(weight for weight, _, _ in members)
        error = sum(weight * (1 - credit) for weight, credit, _ in members) / n if n else np.nan
        stated = sum(weight for weight, _, tokens in members if tokens == tokens)  # noqa: PLR0124 - NaN
        tokens = sum(weight * tokens for weight, _, tokens in members if tokens == tokens) / stated if stated else np.nan  # noqa: PLR0124
        found[cell] = (n, error, tokens)
    return found


@pytest.mark.parametrize("kind", ["ordinary", "positive"])
@pytest.mark.parametrize("seed", range(2))
def test_a_replicate_equals_recounted_answers(seed: int, kind: Any) -> None:
    study = study_of(frame_of(seed, questions=6))
    sums = cluster_sums(study)
    weights = draw(sums.clusters, 11, range(5), kind)
    rebuilt = sums.rebuild(weights)
    for replicate in range(5):
        expected = recounted(study, sums.clusters, weights[replicate].tolist())
        for cell in range(len(study.cells)):
            found = (rebuilt.n[replicate, cell], rebuilt.error[replicate, cell], rebuilt.tokens[replicate, cell])
            assert found == pytest.approx(expected[cell], rel=1e-12, nan_ok=True)


def test_ordinary_resampling_counts_whole_answers_drawn_again() -> None:
    study = study_of(frame_of(0))
    sums = cluster_sums(study)
    weights = draw(sums.clusters, 3, [0])[0]
    drawn = [cluster for cluster, times in enumerate(weights.astype(int).tolist()) for _ in range(times)]
    cells: dict[int, list[float]] = defaultdict(list)
    for cluster in drawn:
        for row in range(len(study.answers)):
            if sums.clusters.of_question[study.answers.question[row]] == cluster:
                cells[int(study.cell_of[row])].append(1 - study.answers.numbers["credit"][row])
    rebuilt = sums.rebuild(weights[None])
    for cell, errors in cells.items():
        assert (rebuilt.n[0, cell], rebuilt.error[0, cell]) == pytest.approx((len(errors), fmean(errors)), rel=1e-12)


def test_weights_of_one_give_the_cells_back() -> None:
    study = study_of(frame_of(1))
    sums = cluster_sums(study)
    rebuilt = sums.rebuild(np.ones((1, len(sums.clusters))))
    assert np.array_equal(rebuilt.n[0], study.cells.n)
    assert rebuilt.error[0] == pytest.approx(study.cells.error, rel=1e-12)
    assert rebuilt.tokens[0] == pytest.approx(study.cells.tokens, rel=1e-12)


def test_r_may_be_effective_pixels() -> None:
    study = study_of(frame_of(1))
    sums = cluster_sums(study, "effective_pixels")
    rebuilt = sums.rebuild(np.ones((1, len(sums.clusters))))
    assert rebuilt.tokens[0] == pytest.approx(study.cells.effective_pixels, rel=1e-12)


@pytest.mark.parametrize("kind", ["ordinary", "positive"])
def test_weights_of_a_stratum_sum_to_its_clusters(kind: Any) -> None:
    clusters = cluster_sums(study_of(frame_of(2))).clusters
    weights = draw(clusters, 20260909, range(40), kind)
    for stratum, size in enumerate(clusters.sizes().tolist()):
        assert weights[:, clusters.stratum == stratum].sum(axis=1) == pytest.approx(np.full(40, size), rel=1e-12)
    if kind == "ordinary":
        assert np.array_equal(weights, np.round(weights))
        assert (weights == 0).any()
    else:
        assert (weights > 0).all()


@pytest.mark.parametrize("kind", ["ordinary", "positive"])
def test_a_replicate_is_the_same_in_whatever_piece_it_comes(kind: Any) -> None:
    study = study_of(frame_of(2))
    sums = cluster_sums(study)
    together = sums.rebuild(draw(sums.clusters, 5, range(20), kind))
    for piece in (range(7), range(7, 8), [19, 3], range(8, 20)):
        alone = sums.rebuild(draw(sums.clusters, 5, piece, kind))
        for name in ("n", "error", "tokens"):
            assert np.array_equal(getattr(alone, name), getattr(together, name)[list(piece)], equal_nan=True), name


def test_seeds_differ_and_may_be_negative() -> None:
    clusters = cluster_sums(study_of(frame_of(2))).clusters
    drawn = [draw(clusters, seed, range(3)) for seed in (1, 2, -1)]
    assert not np.array_equal(drawn[0], drawn[1])
    assert not np.array_equal(drawn[0], drawn[2])


def test_no_order_and_no_id_decides_a_replicate() -> None:
    frame = frame_of(0)
    shuffled = frame.sample(frac=1, random_state=4).reset_index(drop=True)
    values = shuffled["question_id"].unique()
    new = np.random.default_rng(1).permutation(10 * len(values))[: len(values)]
    shuffled["question_id"] = shuffled["question_id"].map(dict(zip(values, new.tolist(), strict=True)))
    one, two = (cluster_sums(study_of(rows)) for rows in (frame, shuffled))
    drawn = [sums.rebuild(draw(sums.clusters, 1, range(5))) for sums in (one, two)]
    for name in ("n", "error", "tokens"):
        assert np.array_equal(getattr(drawn[0], name), getattr(drawn[1], name), equal_nan=True)


def variance_of(study: CellStudy, clusters: Clusters, cell: int) -> float:
    """Eq. 15 as it is written, for one cell of one benchmark."""
    answers = study.answers
    benchmark = study.cells.text["benchmark"][cell]
    images = {
        clusters.of_question[question]
        for question in range(len(answers.questions))
        if answers.questions.text["benchmark"][question] == benchmark and clusters.of_question[question] >= 0
    }
    a: Counter[int] = Counter()
    z: dict[int, float] = defaultdict(float)
    for row in np.flatnonzero(study.cell_of == cell).tolist():
        image = int(clusters.of_question[answers.question[row]])
        a[image] += 1
        z[image] += 1 - answers.numbers["credit"][row]
    n, m = sum(a.values()), len(images)
    error = sum(z.values()) / n
    deviations = [z[image] - error * a[image] for image in images]
    return float(m / (m - 1) * (sum(d**2 for d in deviations) - sum(deviations) ** 2 / m) / n**2)


@pytest.mark.parametrize("seed", range(2))
def test_the_variance_is_eq_15(seed: int) -> None:
    study = study_of(frame_of(seed))
    sums = cluster_sums(study)
    found = sums.variance(study.cells.error)
    assert (found > 0).all()
    for cell in range(len(study.cells)):
        assert found[cell] == pytest.approx(variance_of(study, sums.clusters, cell), rel=1e-10)


def test_a_release_with_fewer_images_counts_its_own() -> None:
    frame = planted_cells(LAWS, draws="answers", sizes=(1.0, 8.0), questions=10, per_image=1, releases={"HR-Bench": ("HR-4K", "HR-8K")})
    frame = frame[(frame["benchmark"] != "HR-8K") | frame["question_key"].isin(["q0", "q1", "q2"])]
    study = study_of(frame)
    sums = cluster_sums(study)
    counted = dict(zip(study.cells.text["benchmark"].tolist(), sums.clusters_of_cell.tolist(), strict=True))
    assert counted == {"HR-4K": 10, "HR-8K": 3, "TreeBench": 10}
    for cell in range(len(study.cells)):
        assert sums.variance(study.cells.error)[cell] == pytest.approx(variance_of(study, sums.clusters, cell), abs=1e-15)


def test_the_variance_of_independent_answers_is_that_of_their_mean() -> None:
    study = study_of(planted_cells(LAWS, draws="answers", sizes=(1.0, 8.0), questions=30, per_image=1))
    p = study.cells.error
    assert cluster_sums(study).variance(p) == pytest.approx(p * (1 - p) / 29, rel=1e-12)


def test_precision_weights_are_inverse_variances_with_mean_one() -> None:
    weights = precision_weights(np.array([1.0, 2.0, 4.0]))
    assert weights.mean() == pytest.approx(1)
    assert weights / weights[0] == pytest.approx([1, 1 / 2, 1 / 4])


def test_precision_weights_of_cells_without_a_variance_are_finite() -> None:
    weights = precision_weights(np.array([0.0, 1.0, np.nan, 4.0, 0.5]), np.array([True, True, True, True, False]))
    assert weights / weights[1] == pytest.approx([1, 1, 1 / 4, 1 / 4, 0])
    assert weights[:4].mean() == pytest.approx(1)
    assert precision_weights(np.array([0.0, np.nan])).tolist() == [1.0, 1.0]
