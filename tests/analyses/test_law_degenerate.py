"""Groups that the law cannot be fitted to, in part or at all: a warning that names them, and the others fitted."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

from analyses.plot import svg
from tests.analyses.lawlike import LAWS, PARAMETERS, answer, changed, group, noisy
from tests.analyses.planted import PlantedLaw, planted_cells
from tracker.errors import AnalysisError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from analyses.result import Result


@pytest.fixture(scope="module")
def noise() -> pd.DataFrame:
    return noisy()


MAPS = ("Beta2", "Maps")
OPTIONS: dict[str, dict[str, Any]] = {"plain": {}, "all": {"bounded": True, "sensitivity": True}, "moment": {"tokens": "moment"}}


@pytest.fixture(scope="module")
def whole(noise: pd.DataFrame) -> dict[str, Result]:
    """The study without anything wrong."""
    return {name: answer(noise, reference=(5.0, 1000.0), **options) for name, options in OPTIONS.items()}


def maps(rows: pd.DataFrame) -> pd.Series[bool]:
    return (rows["series"] == MAPS[0]) & (rows["suite"] == MAPS[1])


def few_cells(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.loc[~maps(rows) | ((rows["parameters"] == 1e9) & (rows["input_size"] <= 672))]


def one_model(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.loc[~maps(rows) | (rows["parameters"] == 1e9)]


def two_models(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.loc[~maps(rows) | (rows["parameters"] <= 2e9)]


def one_count(rows: pd.DataFrame) -> pd.DataFrame:
    return changed(rows, maps(rows), visual_tokens=512)


def constant(rows: pd.DataFrame) -> pd.DataFrame:
    return changed(rows, maps(rows), credit=0.25)


def no_tokens(rows: pd.DataFrame) -> pd.DataFrame:
    return changed(rows, maps(rows), visual_tokens=None)


def some_tokens(rows: pd.DataFrame) -> pd.DataFrame:
    return changed(rows, maps(rows) & (rows["parameters"] == 1e9), visual_tokens=None)


def no_parameters(rows: pd.DataFrame) -> pd.DataFrame:
    return changed(rows, maps(rows), parameters=None)


DEGENERATE: list[tuple[Callable[[pd.DataFrame], pd.DataFrame], str, str, dict[str, Any]]] = [
    (few_cells, "not fitted: 3 cells, 5 parameters", "3 cells, 5 parameters", dict.fromkeys((*PARAMETERS, "r2", "sse", "bic", "k"))),
    (one_model, "one level of N: e_inf, A_n and alpha are not determined", "one level of N", dict.fromkeys(("e_inf", "A_n", "alpha", "A"))),
    (one_count, "one level of R: e_inf, B_r and beta are not determined", "one level of R", dict.fromkeys(("e_inf", "B_r", "beta", "B"))),
    (two_models, "2 levels of N: e_inf, A_n and alpha are one of many solutions", "2 levels of N", {"k": 4}),
    (constant, "not fitted: the error is constant", "the error is constant", dict.fromkeys((*PARAMETERS, "r2"))),
    (no_tokens, "not fitted: no cell with all that the law needs", "lack visual_tokens", {"n": 0, "alpha": None}),
    (some_tokens, "fitted; 6 of 36 cells lack visual_tokens", "6 of 36 cells lack visual_tokens", {"n": 30}),
    (no_parameters, "not fitted: no cell with all that the law needs", "lack the parameters of their model", {"n": 0, "e_inf": None}),
]


@pytest.mark.parametrize(("change", "status", "warning", "values"), DEGENERATE, ids=[case[0].__name__ for case in DEGENERATE])
@pytest.mark.parametrize("kind", OPTIONS)
def test_a_group_that_cannot_be_fitted_says_why_and_the_others_are_fitted(
    noise: pd.DataFrame,
    change: Callable[[pd.DataFrame], pd.DataFrame],
    status: str,
    warning: str,
    values: dict[str, Any],
    kind: str,
    whole: dict[str, Result],
) -> None:
    result = answer(change(noise), reference=(5.0, 1000.0), **OPTIONS[kind])
    row = group(result, *MAPS)
    assert row["status"].startswith(status)
    assert {name: row[name] for name in values} == values
    assert [text for text in result.warnings if text.startswith("Beta2 x Maps: ") and warning in text]
    for key in LAWS:
        if key != MAPS:
            assert group(result, *key) == group(whole[kind], *key)
    json.dumps(result.envelope())
    if kind == "plain":
        for name in result.charts:
            svg(result.charts[name])


def test_predictions_of_one_level_are_those_of_the_other_axis_alone(noise: pd.DataFrame) -> None:
    result = answer(one_model(noise), floor="continuous")
    row = group(result, *MAPS)
    cells = [one for one in result.tables["cells"].rows() if (one["series"], one["suite"]) == MAPS]
    base = {round(one["predicted"] - row["B_r"] * (one["R"] / result.headline["reference_R"]) ** -row["beta"], 9) for one in cells}
    assert len(base) == 1
    assert row["k"] == 3


def test_an_axis_without_effect_has_no_exponent() -> None:
    laws = {("A", "S"): PlantedLaw(e=0.1, a=0.0, alpha=0.4, b=0.15, beta=0.5)}
    result = answer(planted_cells(laws), floor="continuous")
    row = group(result, "A", "S")
    assert (row["A_n"], row["alpha"], row["A"], row["alpha_at_bound"]) == (
        pytest.approx(0, abs=1e-9),
        None,
        pytest.approx(0, abs=1e-9),
        False,
    )
    assert row["beta"] == pytest.approx(0.5, abs=1e-5)
    assert row["status"] == "A_n = 0: alpha is not determined"
    assert result.warnings == ("A x S: A_n = 0: alpha is not determined",)
    assert result.headline["alpha_at_bound"] == 0


def test_axes_that_move_together_are_named() -> None:
    rows = planted_cells({("A", "S"): PlantedLaw(b=0.05)})
    pairs = set(zip((1e9, 2e9, 4e9, 8e9, 16e9, 32e9), (224, 448, 672, 896, 1344, 2048), strict=True))
    rows = rows[[pair in pairs for pair in zip(rows["parameters"], rows["input_size"], strict=True)]]
    rows["visual_tokens"] = (rows["parameters"] / 1e7).astype(int)
    result = answer(rows)
    assert result.warnings == ("A x S: N and R move together: their terms are not told apart",)


@pytest.mark.parametrize(
    ("values", "reason", "hint"),
    [
        (
            {"visual_tokens": None},
            "Alpha1 x Charts: 36 of 36 cells lack visual_tokens and are left out",
            "records need the field visual_tokens",
        ),
        ({"parameters": None}, "Alpha1 x Charts: 36 of 36 cells lack the parameters of their model", "trackr catalog import FILE"),
        ({"credit": 0.25}, "Alpha1 x Charts: not fitted: the error is constant", "at least 5 cells and three sizes"),
        ({"visual_tokens": 512, "parameters": 1e9}, "Alpha1 x Charts: not fitted: one level of N and one level of R", "--by family,suite"),
    ],
)
def test_a_study_without_any_fit_is_an_error_that_says_what_would_help(
    noise: pd.DataFrame, values: dict[str, Any], reason: str, hint: str
) -> None:
    with pytest.raises(AnalysisError) as caught:
        answer(noise.assign(**values), bounded=True, sensitivity=True)
    assert caught.value.message.startswith(f"no group can be fitted: {reason}")
    assert hint in str(caught.value.hint)


def test_pixels_are_fitted_where_no_cell_has_visual_tokens(noise: pd.DataFrame) -> None:
    rows = noise.assign(effective_pixels=noise["input_size"] ** 2)
    result = answer(rows.assign(visual_tokens=None), resource="effective_pixels")
    assert group(result, *MAPS)["beta"] == group(answer(rows, resource="effective_pixels"), *MAPS)["beta"]


def test_many_groups_with_the_same_trouble_are_one_warning_and_a_status_each(noise: pd.DataFrame) -> None:
    laws = {(f"M{i}", "S"): PlantedLaw(e=0.1 + i / 50, b=0.05) for i in range(8)}
    rows = planted_cells(laws, sizes=(1.0, 2.0, 4.0), input_sizes=(224, 448, 672))
    small = rows["series"].isin([f"M{i}" for i in range(7)])
    rows = rows[~small | ((rows["parameters"] == 1e9) & (rows["input_size"] <= 224 * (1 + rows["series"].str[1:].astype(int) % 3)))]
    rows = pd.concat([rows, noise])
    result = answer(rows)
    assert (
        "7 of 12 groups: not fitted: fewer cells than the 5 parameters (M0 x S, M1 x S, M2 x S, M3 x S, M4 x S, and 2 more)"
        in result.warnings
    )
    statuses = dict(zip(result.tables["fits"].data["series"], result.tables["fits"].data["status"], strict=True))
    assert [statuses[f"M{i}"] for i in range(4)] == [
        f"not fitted: {what}, 5 parameters" for what in ("1 cell", "2 cells", "3 cells", "1 cell")
    ]


def test_a_study_without_costs_makes_no_choices(noise: pd.DataFrame) -> None:
    rows = answer(noise.assign(prompt_tokens=None), sensitivity=True).tables["sensitivity"].rows()
    assert {(row["choices"], row["same_choices"]) for row in rows} == {(0, 0)}


def test_an_empty_cohort_is_an_error(noise: pd.DataFrame) -> None:
    with pytest.raises(AnalysisError, match="no scored answer"):
        answer(noise, where="series = 'nobody'")
    with pytest.raises(UsageError, match="no column"):
        answer(noise, drop=("colour=blue",))
