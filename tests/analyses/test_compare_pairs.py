"""Paired differences from arrays: every number by a second route."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests

from analyses.clusters import Clusters
from analyses.compare.pairs import Pairs, measure, smallest_detectable
from analyses.compare.panel import panel
from analyses.compare.tables import p_values
from analyses.paired import holm


def clusters_of(cluster: np.ndarray[Any, Any], stratum: np.ndarray[Any, Any] | None = None) -> Clusters:
    size = int(cluster.max()) + 1
    return Clusters(of_question=cluster, stratum=np.zeros(size, dtype=np.int64) if stratum is None else stratum)


def compare(
    credit: np.ndarray[Any, Any], *, cluster: np.ndarray[Any, Any] | None = None, draws: int = 200, common: Any = "pairwise", **options: Any
) -> Pairs:
    """All pairs of sides over questions that are units and, where nothing else is said, clusters."""
    questions = np.arange(credit.shape[1])
    pairs = np.triu_indices(len(credit), 1)
    groups = clusters_of(questions if cluster is None else cluster, options.pop("stratum", None))
    return measure([panel(credit, questions, common)], groups, pairs, draws=draws, seed=3, **options)[0][0]


def binary(seed: int, sides: int = 4, questions: int = 120, missing: float = 0.0) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(seed)
    p = 1 / (1 + np.exp(-(rng.normal(0, 1, questions) + rng.normal(0, 0.6, sides)[:, None])))
    credit = (rng.random((sides, questions)) < p).astype(float)
    credit[rng.random(credit.shape) < missing] = np.nan
    return credit


@pytest.mark.parametrize("missing", [0.0, 0.01, 0.4])
@pytest.mark.parametrize("common", ["pairwise", "all"])
@pytest.mark.parametrize("partial", [False, True])
def test_counts_and_means_equal_loops(missing: float, common: str, partial: bool) -> None:
    credit = binary(1, missing=missing)
    if partial:
        credit *= np.random.default_rng(0).choice([0.2, 0.7, 1.0], credit.shape)
    found = compare(credit, common=common)
    everyone = ~np.isnan(credit).any(axis=0)
    for place, (i, j) in enumerate(combinations(range(len(credit)), 2)):
        a, b = credit[i], credit[j]
        shared = everyone if common == "all" else ~np.isnan(a) & ~np.isnan(b)
        a, b = a[shared], b[shared]
        assert found.n[place] == len(a) == found.clusters[place]
        assert found.accuracy_a[place] == pytest.approx(a.mean())
        assert found.difference[place] == pytest.approx((a - b).mean())
        assert (found.wins[place], found.losses[place]) == (sum(a > b), sum(a < b))
        assert found.square[place] == pytest.approx(((a - b) ** 2).mean())
        assert found.spread[place] == pytest.approx(np.var(a - b, ddof=1))
        assert found.binary[place] == (not partial)
        assert found.variance[place] == pytest.approx(np.var(a - b, ddof=1) / len(a))
        assert found.design_effect[place] == pytest.approx(1)


def test_questions_at_several_settings_are_averaged_over_what_a_pair_shares() -> None:
    """Two questions at three settings; the second side lacks one, the third another."""
    credit = np.array([[1, 0, 1, 0, 0, 1], [1, np.nan, 0, 1, 0, 0], [0, 0, np.nan, 1, 1, 1]])
    question = np.array([0, 0, 0, 1, 1, 1])
    found = measure([panel(credit, question)], clusters_of(np.arange(2)), (np.array([0, 0, 1]), np.array([1, 2, 2])), draws=10, seed=1)[0][
        0
    ]
    assert found.accuracy_a == pytest.approx([(1 + 1 / 3) / 2, (0.5 + 1 / 3) / 2, (1 + 1 / 3) / 2])
    assert found.accuracy_b == pytest.approx([(0.5 + 1 / 3) / 2, (0 + 1) / 2, (0 + 1) / 2])
    assert not found.binary.any()
    strict = measure([panel(credit, question, "all")], clusters_of(np.arange(2)), (np.array([0]), np.array([1])), draws=10, seed=1)[0][0]
    assert (strict.accuracy_a[0], strict.accuracy_b[0]) == pytest.approx(((1 + 1 / 3) / 2, (1 + 1 / 3) / 2))


def test_the_bootstrap_of_single_questions_is_that_of_scipy() -> None:
    credit = binary(2, sides=2, questions=400)
    found = compare(credit, draws=8_000)
    expected = stats.bootstrap(
        (credit[0], credit[1]),
        lambda a, b, axis: (a - b).mean(axis=axis),
        paired=True,
        vectorized=True,
        method="percentile",
        n_resamples=8_000,
        rng=np.random.default_rng(0),
    ).confidence_interval
    assert (found.low[0], found.high[0]) == pytest.approx((expected.low, expected.high), abs=0.005)


@pytest.mark.parametrize("missing", [0.0, 0.02, 0.5])
def test_resampled_differences_equal_loops_over_weights(missing: float) -> None:
    """Also where sides answered different questions and clusters lie in strata."""
    from analyses.clusters import draw

    credit = binary(5, questions=60, missing=missing)
    cluster = np.arange(60) // 3
    stratum = (np.arange(20) >= 12).astype(np.int64)
    found = compare(credit, cluster=cluster, stratum=stratum, draws=50)
    weights = draw(clusters_of(cluster, stratum), 3, range(50))
    for place, (i, j) in enumerate(combinations(range(4), 2)):
        shared = ~np.isnan(credit[i]) & ~np.isnan(credit[j])
        apart = (credit[i] - credit[j])[shared]
        replicates = [float(np.average(apart, weights=w)) for w in weights[:, cluster[shared]]]
        assert (found.low[place], found.high[place]) == pytest.approx(tuple(np.quantile(replicates, [0.025, 0.975])))


def test_the_cluster_variance_is_that_of_the_bootstrap() -> None:
    rng = np.random.default_rng(9)
    cluster = np.repeat(np.arange(80), 4)
    effect = np.repeat(rng.normal(0, 2, 80), 4)
    credit = np.stack([(rng.random(320) < 1 / (1 + np.exp(-effect))), (rng.random(320) < 1 / (1 + np.exp(effect)))]).astype(float)
    found = compare(credit, cluster=cluster, draws=8_000)
    width = (found.high - found.low)[0] / 2 / 1.96
    assert np.sqrt(found.variance[0]) == pytest.approx(width, rel=0.04)
    apart = compare(credit, draws=8_000)
    assert found.high[0] - found.low[0] > 1.3 * (apart.high[0] - apart.low[0])
    assert found.design_effect[0] > 1.7


def test_exact_mcnemar_and_holm_equal_statsmodels() -> None:
    credit = binary(7, sides=6)
    found = compare(credit)
    p, tests = p_values(found, "auto")
    for place, (i, j) in enumerate(combinations(range(6), 2)):
        both = [[int(((credit[i] == a) & (credit[j] == b)).sum()) for b in (1, 0)] for a in (1, 0)]
        assert p[place] == pytest.approx(mcnemar(both, exact=True).pvalue)
    assert set(tests) == {"mcnemar"}
    assert holm(p) == pytest.approx(multipletests(p, method="holm")[1])


def test_partial_credit_has_a_paired_t_test() -> None:
    credit = binary(8, sides=3) * np.random.default_rng(1).choice([0.5, 1.0], (3, 120))
    p, tests = p_values(compare(credit), "auto")
    assert tests == ["t"] * 3
    assert p == pytest.approx([stats.ttest_rel(credit[i], credit[j]).pvalue for i, j in combinations(range(3), 2)])


def test_the_cluster_test_is_a_t_test_of_cluster_means_where_clusters_are_alike() -> None:
    credit = binary(10, sides=2, questions=200)
    p, tests = p_values(compare(credit, cluster=np.arange(200) // 4), "cluster")
    means = (credit[0] - credit[1]).reshape(50, 4).mean(axis=1)
    assert tests == ["cluster"]
    assert p[0] == pytest.approx(stats.ttest_1samp(means, 0).pvalue)


def test_identical_sides_differ_by_nothing() -> None:
    credit = np.tile(binary(11, sides=1), (2, 1))
    for table in (credit, credit * 0.5):
        found = compare(table)
        assert (found.difference[0], found.low[0], found.high[0], found.wins[0], found.losses[0]) == (0, 0, 0, 0, 0)
        assert p_values(found, "auto")[0][0] == 1
        assert p_values(found, "cluster")[0][0] == 1
        assert np.isnan(smallest_detectable(found)[0])


def test_the_order_of_sides_swaps_signs() -> None:
    credit = binary(12, sides=2, missing=0.1)
    one, other = compare(credit), compare(credit[::-1])
    assert one.difference == pytest.approx(-other.difference)
    assert one.low == pytest.approx(-other.high)
    assert one.high == pytest.approx(-other.low)
    assert (one.wins[0], one.losses[0]) == (other.losses[0], other.wins[0])
    assert p_values(one, "auto")[0] == p_values(other, "auto")[0]
    assert smallest_detectable(one) == pytest.approx(smallest_detectable(other))


def studies(credit: list[np.ndarray[Any, Any]], draws: int = 0) -> Pairs:
    """Many studies of two sides at once: each pair of sides is one."""
    sides = np.concatenate(credit)
    pairs = np.arange(0, len(sides), 2), np.arange(1, len(sides), 2)
    questions = np.arange(sides.shape[1])
    return measure([panel(sides, questions)], clusters_of(questions), pairs, draws=draws, seed=3)[0][0]


def test_a_planted_difference_lies_in_its_interval() -> None:
    """Of 400 studies with a true difference of 0.1, about 95% hold it."""
    rng = np.random.default_rng(13)
    both = rng.random((400, 300))
    moved = (both + rng.normal(0, 0.1, both.shape)) % 1
    found = studies([np.stack([one < 0.6, other < 0.5]).astype(float) for one, other in zip(both, moved, strict=True)], draws=400)
    held = (found.low <= 0.1) & (found.high >= 0.1)
    assert 0.91 < held.mean() < 0.98


def test_the_smallest_detectable_difference_is_found_four_times_in_five() -> None:
    rng = np.random.default_rng(14)
    n, psi = 1_000, 0.2

    def study(difference: float) -> np.ndarray[Any, Any]:
        kind = rng.choice(3, n, p=[(psi + difference) / 2, (psi - difference) / 2, 1 - psi])
        return np.stack([kind != 1, kind != 0]).astype(float)

    claimed = float(np.mean(smallest_detectable(studies([study(0.0) for _ in range(20)]))))
    assert claimed == pytest.approx((1.959964 + 0.841621) * np.sqrt(psi / n), rel=0.02)
    found = p_values(studies([study(claimed) for _ in range(1_000)]), "t")[0] < 0.05
    assert 0.765 < found.mean() < 0.835


def test_the_smallest_detectable_difference_solves_connors_equation() -> None:
    found = compare(binary(15, sides=3, questions=300), cluster=np.arange(300) // 2)
    delta, effect = smallest_detectable(found), found.design_effect
    psi = found.square * effect
    assert delta * np.sqrt(found.n) == pytest.approx(
        1.959963984540054 * np.sqrt(psi) + 0.8416212335729143 * np.sqrt(psi - delta**2 * effect)
    )


def test_without_enough_questions_no_difference_is_detectable() -> None:
    found = compare(np.array([[1.0, 0, 1, 0], [1, 0, 0, 0]]))
    assert np.isnan(smallest_detectable(found)[0])


def test_pairs_without_a_common_question_are_empty_and_the_others_go_on() -> None:
    credit = binary(16, sides=3, questions=40)
    credit[0, 20:] = np.nan
    credit[1, :20] = np.nan
    found = compare(credit)
    assert found.n.tolist() == [0, 20, 20]
    p, _ = p_values(found, "auto")
    assert np.isnan([found.difference[0], found.low[0], p[0], smallest_detectable(found)[0]]).all()
    assert not np.isnan([*found.difference[1:], *found.low[1:], *p[1:]]).any()


def test_a_single_question_has_no_spread() -> None:
    found = compare(np.array([[1.0], [0.0]]))
    assert found.difference[0] == 1
    assert np.isnan([found.low[0], found.high[0], found.spread[0]]).all()
    assert p_values(found, "auto")[0][0] == 1
    assert np.isnan(p_values(found, "t")[0][0])


def test_one_image_has_no_interval_and_a_replicate_without_a_common_question_is_left_out() -> None:
    """Sides 0 and 1 share one question of forty, sides 0 and 2 two: most replicates hold neither."""
    credit = np.full((3, 40), np.nan)
    credit[0], credit[1, 0], credit[2, :2] = 0.0, 1.0, (1.0, 0.0)
    credit[1, 30:] = 1.0
    credit[0, 30:] = np.nan
    credit[2, 30:] = 0.0
    answers = measure([panel(credit, np.arange(40))], clusters_of(np.arange(40)), np.triu_indices(3, 1), draws=300, seed=1)
    found, sides = answers[0]
    assert found.clusters.tolist() == [1, 2, 11]
    assert np.isnan([found.low[0], found.high[0]]).all()
    assert (found.low[1], found.high[1]) == (-1, 0)
    assert (found.low[2], found.high[2]) == (pytest.approx(10 / 11, abs=0.3), 1)
    assert not np.isnan(sides.low).any()
    alone = measure([panel(np.ones((2, 1)), np.arange(1))], clusters_of(np.arange(1)), np.triu_indices(2, 1), draws=10, seed=1)[0][1]
    assert np.isnan(alone.low).all()
    assert alone.accuracy.tolist() == [1, 1]


def test_blocks_and_panels_change_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    credit = binary(17, sides=5, missing=0.05)
    whole = compare(credit)
    monkeypatch.setattr("analyses.compare.pairs.NUMBERS_AT_A_TIME", 1)
    monkeypatch.setattr("analyses.compare.pairs.CHUNK", 7)
    for name in Pairs.__slots__:
        assert getattr(compare(credit), name) == pytest.approx(getattr(whole, name), nan_ok=True)


def test_a_part_of_the_questions_is_the_comparison_of_these_questions() -> None:
    credit = binary(18, sides=3, missing=0.1)
    half = np.arange(120) % 2 == 0
    pairs = np.triu_indices(3, 1)
    one = panel(credit, np.arange(120))
    found = measure([one.take(half)], clusters_of(np.arange(120)), pairs, draws=0, seed=1)[0][0]
    alone = compare(credit[:, half], draws=0)
    for name in ("n", "accuracy_a", "accuracy_b", "wins", "losses", "square", "variance"):
        assert getattr(found, name) == pytest.approx(getattr(alone, name))
    assert np.isnan(found.low).all()
