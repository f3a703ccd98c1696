"""The tests behind a comparison: sign flips, images, equal benchmarks, families of labels; each by a second route."""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

from analyses.clusters import Clusters, draw
from analyses.compare.macro import Macro, measure_both
from analyses.compare.pairs import measure
from analyses.compare.panel import panel
from analyses.compare.tables import decide, p_of_clusters, p_values
from analyses.paired import FEW, mcnemar_exact, paired_t, sign_flip
from tests.analyses import compared
from tests.analyses.test_compare import compare, pair
from tests.analyses.test_compare_pairs import binary, clusters_of
from tests.analyses.test_compare_pairs import compare as pairs_of


@pytest.mark.parametrize("number", [2, 3, 5, 9, 12])
def test_sign_flips_are_those_of_scipy(number: int) -> None:
    rng = np.random.default_rng(number)
    for values in (rng.normal(0.4, 1, number), rng.integers(-2, 4, number) / 2):
        expected = stats.permutation_test(
            (values, np.zeros(number)),
            lambda a, b, axis: (a - b).sum(axis=axis),
            permutation_type="samples",
            n_resamples=np.inf,
            vectorized=True,
        ).pvalue
        assert sign_flip(values) == pytest.approx(min(expected, 1.0))


def test_sign_flips_of_whole_numbers_are_exact_mcnemar() -> None:
    for wins, losses in product(range(8), range(12)):
        assert sign_flip([1.0] * wins + [-1.0] * losses + [0.0] * 5) == pytest.approx(float(mcnemar_exact(wins, losses)))
    assert sign_flip(np.ones(FEW)) == pytest.approx(2.0 ** (1 - FEW))
    assert np.isnan(sign_flip(np.ones(FEW + 1)))
    assert sign_flip([]) == 1


def test_sign_flips_reject_a_true_null_as_often_as_they_say() -> None:
    """Half credits on few questions, where t relies on a normal mean that is not there."""
    rng = np.random.default_rng(1)
    p = np.array([sign_flip(rng.choice([-1, -0.5, 0, 0, 0.5, 1], 12)) for _ in range(2_000)])
    assert (p <= 0.05).mean() < 0.062


def test_partial_credit_on_few_images_has_exact_sign_flips_and_t_where_asked() -> None:
    credit = binary(3, sides=2, questions=15) * np.random.default_rng(1).choice([0.5, 1.0], (2, 15))
    found = pairs_of(credit)
    p, tests = p_values(found, "auto")
    expected = stats.permutation_test(
        tuple(credit), lambda a, b, axis: (a - b).mean(axis=axis), permutation_type="samples", n_resamples=np.inf, vectorized=True
    ).pvalue
    assert (tests, p[0]) == (["permutation"], pytest.approx(expected))
    assert p_of_clusters(found, p)[0] == p[0]
    p, tests = p_values(found, "t")
    assert (tests, p[0]) == (["t"], pytest.approx(paired_t(credit[0] - credit[1])[1]))


def test_images_are_flipped_whole() -> None:
    credit = binary(4, sides=2, questions=36)
    found = pairs_of(credit, cluster=np.arange(36) // 3)
    sums = (credit[0] - credit[1]).reshape(12, 3).sum(axis=1)
    expected = np.mean([abs(np.dot(signs, sums)) >= abs(sums.sum()) - 1e-9 for signs in product((1, -1), repeat=12)])
    assert p_of_clusters(found, p_values(found, "auto")[0])[0] == pytest.approx(expected)
    assert p_values(found, "cluster")[1] == ["permutation"]


def test_p_of_images_is_p_where_every_question_has_its_own_and_a_t_test_of_images_else() -> None:
    credit = binary(5, sides=3, questions=400)
    for test in ("auto", "t"):
        found = pairs_of(credit)
        p, _ = p_values(found, test)
        assert p_of_clusters(found, p).tolist() == p.tolist()
    shared = pairs_of(credit, cluster=np.arange(400) // 4)
    p, _ = p_values(shared, "auto")
    means = [(credit[i] - credit[j]).reshape(100, 4).mean(axis=1) for i, j in combinations(range(3), 2)]
    assert p_of_clusters(shared, p) == pytest.approx([stats.ttest_1samp(one, 0).pvalue for one in means])


def test_a_pair_is_decided_when_both_corrected_p_are_small() -> None:
    """Each picture has four questions that are answered alike: questions alone would decide."""
    rng = np.random.default_rng(6)
    apart = np.repeat(rng.choice([-1, 0, 1], 60, p=[0.25, 0.3, 0.45]), 4)
    credit = np.stack([apart > 0, apart < 0]).astype(float)
    (found,) = decide([pairs_of(credit, cluster=np.arange(240) // 4)], "auto")
    assert found.p[0] < 0.05 < found.p_cluster[0]
    assert not found.decided[0]
    (alone,) = decide([pairs_of(credit)], "auto")
    assert alone.decided[0]


def test_p_by_label_is_corrected_over_the_rows_of_the_table() -> None:
    result = compare(compared.rows(7, models=3, per_image=2), by=("task", "benchmark"))
    table = result.tables["by"].data
    for name in ("p", "p_cluster"):
        assert table[f"{name}_holm"] == pytest.approx(multipletests(table[name], method="holm")[1])
    assert len(table["p"]) == 12
    pairs = result.tables["pairs"].data
    assert pairs["p_cluster_holm"] == pytest.approx(multipletests(pairs["p_cluster"], method="holm")[1])
    two = compare(compared.rows(7, models=3, per_image=2), "M-0", "M-1")
    assert (two.headline["p"], two.headline["p_cluster"]) == (pair(two)["p"], pair(two)["p_cluster"])


def both(credit: Any, benchmark: Any, clusters: Clusters, draws: int) -> Macro:
    one = panel(credit, np.arange(credit.shape[1]))
    return measure_both([one], benchmark, clusters, np.triu_indices(len(credit), 1), draws=draws, seed=3)[1]


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_benchmarks_of_equal_weight_equal_loops_over_weights(missing: float) -> None:
    """Three benchmarks of 60, 20 and 10 questions, two on a picture."""
    credit = binary(8, sides=3, questions=90)
    credit[:, :40][np.random.default_rng(2).random((3, 40)) < missing] = np.nan
    benchmark = np.repeat([0, 1, 2], [60, 20, 10])
    cluster = np.arange(90) // 2
    clusters = clusters_of(cluster, benchmark[::2])
    found = both(credit, benchmark, clusters, 60)
    weights = draw(clusters, 3, range(60))[:, cluster]
    for place, (i, j) in enumerate(combinations(range(3), 2)):
        shared = ~np.isnan(credit[i] + credit[j])
        apart = np.where(shared, credit[i] - credit[j], 0.0)
        means = [
            [np.sum(apart * w * (benchmark == one)) / np.sum(shared * w * (benchmark == one)) for one in range(3)]
            for w in (np.ones(90), *weights)
        ]
        assert found.benchmarks[place] == 3
        assert found.difference[place] == pytest.approx(np.mean(means[0]))
        assert (found.low[place], found.high[place]) == pytest.approx(tuple(np.quantile(np.mean(means[1:], axis=1), [0.025, 0.975])))


def test_one_benchmark_has_the_same_weight_as_its_questions() -> None:
    credit = binary(9, sides=2)
    one = panel(credit, np.arange(120))
    pairs = np.array([0]), np.array([1])
    ((whole, _),), macro = measure_both([one], np.zeros(120, dtype=np.int64), clusters_of(np.arange(120)), pairs, draws=50, seed=1)
    assert (macro.benchmarks[0], macro.difference[0], macro.low[0], macro.high[0]) == (1, whole.difference[0], whole.low[0], whole.high[0])
    assert whole.low == measure([one], clusters_of(np.arange(120)), pairs, draws=50, seed=1)[0][0].low


def test_a_benchmark_with_one_picture_leaves_the_interval_of_equal_benchmarks_empty() -> None:
    credit = binary(10, sides=3, questions=40)
    credit[2, 20:] = np.nan
    benchmark = np.repeat([0, 1], 20)
    clusters = clusters_of(np.append(np.arange(20), np.full(20, 20)), np.append(np.zeros(20, dtype=np.int64), 1))
    found = both(credit, benchmark, clusters, 40)
    assert found.benchmarks.tolist() == [2, 1, 1]
    assert np.isnan([found.low[0], found.high[0]]).all()
    assert not np.isnan([*found.difference, *found.low[1:], *found.high[1:]]).any()


def test_pairs_on_no_common_benchmark_have_no_mean_over_benchmarks() -> None:
    credit = binary(11, sides=3, questions=40)
    credit[0, 20:] = np.nan
    credit[1, :20] = np.nan
    found = both(credit, np.repeat([0, 1], 20), clusters_of(np.arange(40), np.repeat([0, 1], 20)), 40)
    assert found.benchmarks.tolist() == [0, 1, 1]
    assert np.isnan(found.difference).tolist() == [True, False, False]


def test_the_table_states_both_weights() -> None:
    rows = [row for row in compared.rows(12, models=2, missing=0) if row["benchmark"] == "One" or row["question_id"] < 120]
    row = pair(compare(rows))
    a, b = (compared.credits_of(rows, model) for model in ("M-0", "M-1"))
    of = {row["question_id"]: row["benchmark"] for row in rows}
    parts = [np.mean([a[unit] - b[unit] for unit in a if of[unit[1]] == name]) for name in ("One", "Two")]
    assert row["difference_macro"] == pytest.approx(np.mean(parts))
    assert row["difference"] == pytest.approx(np.mean([a[unit] - b[unit] for unit in a]))
    assert row["difference_macro"] != pytest.approx(row["difference"])
