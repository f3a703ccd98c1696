"""The planted probabilities: exact means, exact shares, images with the stated means."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracker.simulate.benchmarks import templates
from tracker.simulate.images import native_sizes
from tracker.simulate.seeds import generator, quota
from tracker.simulate.truth import ability_for, wrong_probability


@settings(deadline=None)
@given(
    st.lists(st.floats(-40, 40), min_size=1, max_size=50),
    st.floats(1e-6, 1 - 1e-6),
)
def test_the_mean_wrong_probability_equals_the_planted_error(difficulty: list[float], error: float) -> None:
    values = np.array(difficulty)
    assert wrong_probability(values, ability_for(values, error)).mean() == pytest.approx(error, abs=1e-12)


def test_harder_questions_are_wrong_more_often_and_more_able_models_less() -> None:
    values = np.linspace(-5, 5, 11)
    assert (np.diff(wrong_probability(values, 0.0)) > 0).all()
    assert (wrong_probability(values, 1.0) < wrong_probability(values, 0.0)).all()


@given(st.lists(st.floats(0.01, 10), min_size=1, max_size=8), st.integers(0, 500))
def test_quotas_add_up_and_are_off_by_less_than_one(shares: list[float], count: int) -> None:
    parts = quota(shares, count)
    exact = np.array(shares) / sum(shares) * count
    assert sum(parts) == count
    assert (np.abs(np.array(parts) - exact) < 1 + 1e-6).all()


@pytest.mark.parametrize("name", list(templates()))
def test_images_have_the_mean_sizes_of_the_paper(name: str) -> None:
    images = templates()[name].images
    sizes = native_sizes(images, 400, generator(1, name))
    assert sizes.width.mean() == pytest.approx(images.width, rel=0.01)
    assert sizes.height.mean() == pytest.approx(images.height, rel=0.01)
    assert len(set(zip(sizes.width.tolist(), sizes.height.tolist(), strict=True))) > 350


def test_generators_depend_on_seed_and_names_only() -> None:
    assert generator(1, "a", 2).random() == generator(1, "a", 2).random()
    assert len({generator(seed, *names).random() for seed, names in ((1, ("a", 2)), (2, ("a", 2)), (1, ("a", 3)), (1, ("a2",)))}) == 4
