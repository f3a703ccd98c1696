"""Paired tests against SciPy, statsmodels and the paper's printed p values."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests

from analyses.paired import holm, mcnemar_exact, paired_t, paired_t_of_counts
from tests.analyses.known import Known, known


@pytest.mark.parametrize("size", [1, 2, 7, 100])
def test_holm_is_that_of_statsmodels(size: int) -> None:
    p = np.random.default_rng(size).beta(0.5, 4, size)
    np.testing.assert_allclose(holm(p), multipletests(p, method="holm")[1], rtol=1e-14)


def test_holm_keeps_ties_together_and_leaves_out_tests_that_are_none() -> None:
    np.testing.assert_allclose(holm([0.01, np.nan, 0.01, 0.5]), [0.03, np.nan, 0.03, 0.5])
    assert holm([]).shape == (0,)
    assert np.isnan(holm([np.nan])).all()


def test_mcnemar_is_that_of_statsmodels() -> None:
    pairs = np.random.default_rng(1).integers(0, 40, (50, 2))
    theirs = [mcnemar([[3, a], [b, 5]], exact=True).pvalue for a, b in pairs.tolist()]
    np.testing.assert_allclose(mcnemar_exact(pairs[:, 0], pairs[:, 1]), theirs, rtol=1e-12)


def test_mcnemar_without_discordant_questions_is_one() -> None:
    assert mcnemar_exact(0, 0) == 1.0
    assert mcnemar_exact(3, 3) == 1.0
    np.testing.assert_allclose(mcnemar_exact([5, 0], [0, 5]), 2 / 2**5)


def test_paired_t_is_that_of_scipy_on_any_differences() -> None:
    values = np.random.default_rng(2).normal(0.1, 1, (4, 30))
    theirs = stats.ttest_1samp(values, 0.0, axis=1)
    t, p = paired_t(values)
    np.testing.assert_allclose(t, theirs.statistic)
    np.testing.assert_allclose(p, theirs.pvalue)


def test_paired_t_leaves_nan_out() -> None:
    np.testing.assert_allclose(paired_t([1.0, np.nan, 0.0, 0.5]), paired_t([1.0, 0.0, 0.5]))


def test_counts_are_the_differences_they_stand_for() -> None:
    differences = np.array([1.0] * 12 + [-1.0] * 5 + [0.0] * 83)
    np.testing.assert_allclose(paired_t_of_counts(12, 5, 100), paired_t(differences), rtol=1e-12)


def test_equal_differences_decide_without_error() -> None:
    assert [float(v) for v in paired_t([0.0, 0.0, 0.0])] == [0.0, 1.0]
    assert [float(v) for v in paired_t([1.0, 1.0, 1.0])] == [np.inf, 0.0]
    assert np.isnan(paired_t([1.0])).all()
    assert np.isnan(paired_t([np.nan])).all()


@pytest.mark.parametrize("row", [row for row in known("sweep_") if "paired t-test" in row.what], ids=lambda row: row.id)
def test_the_paper_s_holm_p_come_from_its_wins_and_losses(row: Known) -> None:
    wins, losses, n = (row.inputs[name] for name in ("wins", "losses", "n"))
    differences = np.array([1.0] * wins + [-1.0] * losses + [0.0] * (n - wins - losses))
    for _, p in (paired_t(differences), paired_t_of_counts(wins, losses, n)):
        assert float(p * row.inputs["holm"]) == pytest.approx(float(row.expected), rel=6e-3)
