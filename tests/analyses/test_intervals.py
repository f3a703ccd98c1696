from __future__ import annotations

import duckdb
import numpy as np
import pytest
from scipy.stats import binomtest

from analyses.intervals import clustered_wilson, wilson

CASES = [(0, 1), (1, 1), (0, 50), (50, 50), (3, 17), (6104, 19890), (1, 1_000_000)]


@pytest.mark.parametrize(("successes", "trials"), CASES)
def test_wilson_equals_scipy(successes: int, trials: int) -> None:
    expected = binomtest(successes, trials).proportion_ci(method="wilson")
    low, high = wilson(successes, trials)
    assert float(low) == pytest.approx(expected.low, abs=1e-12)
    assert float(high) == pytest.approx(expected.high, abs=1e-12)


def test_wilson_equals_the_macros_of_a_session() -> None:
    from tracker.lake.docs import sql

    connection = duckdb.connect()
    connection.execute(sql("macros"))
    for successes, trials in CASES:
        found = connection.execute("select wilson_low(?, ?), wilson_high(?, ?)", [successes, trials] * 2).fetchone()
        low, high = wilson(successes, trials)
        assert found == pytest.approx((float(low), float(high)), abs=1e-12)


def test_no_trials_no_interval() -> None:
    low, high = wilson([0], [0])
    assert np.isnan(low).all()
    assert np.isnan(high).all()


def test_clusters_of_one_trial_are_independent_trials() -> None:
    hits = np.random.default_rng(0).random((400, 2)) < [0.3, 0.8]
    found = clustered_wilson(hits, np.arange(400))
    assert np.array(found) == pytest.approx(np.array(wilson(hits.sum(axis=0), 400)), abs=2e-4)  # m/(m-1)


def test_repeating_every_trial_leaves_the_interval_of_clusters_as_it_is() -> None:
    hits = np.random.default_rng(1).random((300, 1)) < 0.25
    once = clustered_wilson(hits, np.arange(300))
    assert np.array(clustered_wilson(np.repeat(hits, 7, axis=0), np.repeat(np.arange(300), 7))) == pytest.approx(np.array(once), abs=1e-12)


def test_the_interval_is_as_wide_as_a_bootstrap_of_clusters() -> None:
    rng = np.random.default_rng(2)
    sizes = rng.integers(1, 9, 250)
    cluster = np.repeat(np.arange(250), sizes)
    hits = (rng.random(len(cluster)) < np.repeat(rng.beta(1, 2, 250), sizes))[:, None]
    z = np.bincount(cluster, weights=hits[:, 0])
    drawn = rng.integers(0, 250, (4000, 250))
    shares = z[drawn].sum(axis=1) / sizes[drawn].sum(axis=1)
    low, high = (float(end[0]) for end in clustered_wilson(hits, cluster))
    assert (low, high) == pytest.approx(np.quantile(shares, [0.025, 0.975]), abs=0.006)
    assert high - low > 1.5 * float(np.subtract(*reversed([end[0] for end in wilson(hits.sum(axis=0), len(hits))])))


def test_what_clusters_cannot_tell() -> None:
    low, high = clustered_wilson(np.ones((6, 1), dtype=bool), np.zeros(6, dtype=int))
    assert np.isnan([low[0], high[0]]).all()
    low, high = clustered_wilson(np.ones((6, 1), dtype=bool), np.arange(6) // 2)
    assert (low[0], high[0]) == pytest.approx([float(end) for end in wilson(3, 3)])
