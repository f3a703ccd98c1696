from __future__ import annotations

import duckdb
import numpy as np
import pytest
from scipy.stats import binomtest

from analyses.intervals import wilson

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
