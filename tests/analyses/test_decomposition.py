"""Variance shares of two factors against exact tables, scikit-learn and the paper's numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from analyses.decomposition import two_factor_shares
from tests.analyses.known import known

if TYPE_CHECKING:
    import numpy.typing as npt


def sklearn_r2(values: npt.NDArray[np.float64], *factors: npt.NDArray[np.int64]) -> float:
    columns = np.hstack([(codes[:, None] == np.unique(codes)).astype(float) for codes in factors])
    return float(LinearRegression().fit(columns, values).score(columns, values))


def paper_table() -> tuple[npt.NDArray[np.float64], list[str], list[str]]:
    """The 33 floors of the paper, domain and skill of each."""
    floors = known("t25_recon")[0].inputs
    return np.array(list(floors.values())), [key[:2] for key in floors], [key[2:] for key in floors]


def test_an_additive_table_gives_exact_shares() -> None:
    first, second = np.repeat(np.arange(3), 4), np.tile(np.arange(4), 3)
    a, b = np.array([0.0, 0.3, -0.3]), np.array([0.1, -0.1, 0.4, -0.4])
    shares = two_factor_shares(0.5 + a[first] + b[second], first, second)
    total = 4 * (a**2).sum() + 3 * (b**2).sum()
    assert float(shares.r2_both) == pytest.approx(1.0, abs=1e-12)
    assert float(shares.first) == pytest.approx(4 * (a**2).sum() / total, abs=1e-12)
    assert float(shares.second) == pytest.approx(3 * (b**2).sum() / total, abs=1e-12)


def test_an_additive_table_with_missing_cells_is_still_explained_in_full() -> None:
    first, second = np.array([0, 0, 1, 1, 2, 2]), np.array([0, 1, 1, 2, 2, 0])
    shares = two_factor_shares(np.array([1.0, 3.0, 5.0])[first] + np.array([0.2, 0.1, 0.9])[second], first, second)
    assert float(shares.r2_both) == pytest.approx(1.0, abs=1e-12)
    assert float(shares.first + shares.second) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_shares_are_those_of_scikit_learn_where_cells_are_missing(seed: int) -> None:
    rng = np.random.default_rng(seed)
    present = rng.permutation(36)[:31]
    first, second, values = present // 6, present % 6, rng.random(31)
    shares = two_factor_shares(values, first, second)
    one, two, both = sklearn_r2(values, first), sklearn_r2(values, second), sklearn_r2(values, first, second)
    np.testing.assert_allclose([shares.r2_first, shares.r2_second, shares.r2_both], [one, two, both], atol=1e-12)
    np.testing.assert_allclose(shares.second, 0.5 * (two + both - one), atol=1e-12)
    np.testing.assert_allclose(shares.first, 0.5 * (one + both - two), atol=1e-12)


def test_many_tables_at_once_are_each_as_alone() -> None:
    rng = np.random.default_rng(5)
    first, second, values = rng.integers(0, 4, 20), rng.integers(0, 3, 20), rng.random((7, 20))
    together = two_factor_shares(values, first, second)
    for row, alone in enumerate(two_factor_shares(one, first, second) for one in values):
        np.testing.assert_allclose([together.first[row], together.second[row]], [alone.first, alone.second], atol=1e-14)


def test_labels_may_be_words_and_their_order_means_nothing() -> None:
    values, domain, skill = paper_table()
    turned = two_factor_shares(values[::-1], domain[::-1], skill[::-1])
    np.testing.assert_allclose(float(two_factor_shares(values, domain, skill).second), float(turned.second), atol=1e-14)


def test_a_constant_table_has_no_shares_and_one_level_explains_nothing() -> None:
    assert np.isnan(two_factor_shares([0.2, 0.2, 0.2], [0, 1, 1], [0, 0, 1]).first)
    shares = two_factor_shares([0.1, 0.5, 0.9], [0, 0, 0], [0, 1, 2])
    assert (float(shares.first), float(shares.second)) == pytest.approx((0.0, 1.0))
    assert two_factor_shares(np.empty((0, 3)), [0, 1, 1], [0, 0, 1]).first.shape == (0,)


def test_the_paper_s_floors_give_its_r2_and_shares() -> None:
    values, domain, skill = paper_table()
    shares = two_factor_shares(values, domain, skill)
    expected = [float(text) for text in known("t25_recon")[0].expected.split()]
    assert [100 * float(r2) for r2 in (shares.r2_first, shares.r2_second, shares.r2_both)] == pytest.approx(expected, abs=0.005)
    v_skill, v_domain, ratio = (float(text) for text in known("eq19")[0].expected.split())
    assert 100 * float(shares.second) == pytest.approx(v_skill, abs=0.01)
    assert 100 * float(shares.first) == pytest.approx(v_domain, abs=0.01)
    assert float(shares.second / shares.first) == pytest.approx(ratio, abs=0.01)
