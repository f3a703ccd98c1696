"""Options that are a range or a reference, in every analysis that has them."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from analyses import registry
from analyses.parameters import checked
from analyses.ranges import Box
from tracker.errors import UsageError

MODELS: dict[str, Any] = {entry.name: entry.load().Parameters for entry in registry.all_analyses()}
BOXED = sorted(name for name, model in MODELS.items() if "box" in model.model_fields)
REFERRED = sorted(name for name, model in MODELS.items() if "reference" in model.model_fields)


def test_the_analyses_that_fit_have_them() -> None:
    assert {"law", "forms", "bootstrap", "holdout", "regret", "taxonomy", "floors", "exponents", "allocate", "cost"} <= set(BOXED)
    assert set(BOXED) <= set(REFERRED)
    assert get_args(Box)[0] == tuple[float, float]


@pytest.mark.parametrize("name", BOXED)
@pytest.mark.parametrize(
    "box", [(0.05, float("inf")), (0.001, 1000.0), (1e-300, 1e300), (3.0, 1.0), (1.0, 1.0), (0.0, 1.0), (-1.0, 1.0), (float("nan"), 1.0)]
)
def test_a_box_that_is_none_is_refused_by_its_option(name: str, box: tuple[float, float]) -> None:
    with pytest.raises(UsageError, match=r"two exponents between 0\.001 and 100, the lower first") as caught:
        checked(MODELS[name], {"box": box})
    assert caught.value.where == "--box"


@pytest.mark.parametrize("name", REFERRED)
@pytest.mark.parametrize(
    "reference", [(float("inf"), 1.0), (1e300, 1.0), (1.0, 1e10), (1.0, 1e-4), (0.0, 1.0), (1.0, -1.0), (1.0, float("nan"))]
)
def test_a_reference_that_is_none_is_refused_by_its_option(name: str, reference: tuple[float, float]) -> None:
    with pytest.raises(UsageError, match="N between 1e-06 and 1e\\+06 billion and R between") as caught:
        checked(MODELS[name], {"reference": reference})
    assert caught.value.where == "--reference"


@pytest.mark.parametrize("weight", [-1.0, 1e7, 1e308, float("inf"), float("nan")])
def test_a_weight_of_the_vision_encoder_has_a_limit(weight: float) -> None:
    with pytest.raises(UsageError, match=r"a number from 0 to 1e\+06") as caught:
        checked(MODELS["cost"], {"vision_weight": (weight,)})
    assert caught.value.where == "--vision-weight"


@pytest.mark.parametrize("name", BOXED)
def test_ends_of_the_ranges_are_taken(name: str) -> None:
    values: dict[str, Any] = {"box": (0.001, 100.0), "reference": (1e-6, 1e9)}
    made = checked(MODELS[name], values)
    assert made.box == values["box"]
    assert checked(MODELS[name], {}).reference is None
