"""Hold-outs against refits one by one, planted truth, and what odd data does to them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from pydantic import ValidationError

from analyses import folds as folds_module
from analyses.cells import CellParameters, study_of_cells
from analyses.clusters import cluster_sums, draw
from analyses.holdout import Parameters, run
from analyses.holdout.fits import accuracy
from analyses.laws import BoundedLaw, CoupledLaw, SeparableLaw
from analyses.laws.separable import clipped
from tests.analyses.known import known
from tests.analyses.planted import PlantedLaw, planted_cells, session
from tracker.errors import AnalysisError

if TYPE_CHECKING:
    from analyses.result import Result

LAWS = {("A1", "S"): PlantedLaw(), ("B1", "S"): PlantedLaw(e=0.2, a=0.05, b=0.1), ("A1", "T"): PlantedLaw(a=0.2, b=0.05)}
SIZES = (1.0, 3.0, 9.0, 30.0)
INPUTS = {224: 100.0, 448: 400.0, 896: 1000.0, 1344: 2500.0}


def cells(draws: str = "answers", **options: Any) -> pd.DataFrame:
    given: dict[str, Any] = {"sizes": SIZES, "input_sizes": INPUTS, "questions": 60, "seed": 1}
    return planted_cells(LAWS, draws=draws, **(given | options))


def answer(frame: pd.DataFrame, **options: Any) -> Result:
    return run(session(frame), Parameters(workers=1, **options))


def rmse(result: Result) -> dict[tuple[str, str, str, str], dict[str, Any]]:
    return {(row["design"], row["exponents"], row["level"], row["law"]): row for row in result.tables["rmse"].rows()}


def plain(frame: pd.DataFrame) -> pd.DataFrame:
    """The cells of a frame of answers, by pandas."""
    by = ["series", "suite", "parameters", "input_size"]
    made = frame.groupby(by, as_index=False).agg(credit=("credit", "mean"), R=("visual_tokens", "mean"), n=("credit", "size"))
    return made.assign(N=made["parameters"] / 1e9, error=1 - made["credit"])


def reference_of(made: pd.DataFrame) -> tuple[float, float]:
    return float(np.exp(np.log(made["N"]).mean())), float(np.exp(np.log(made["R"]).mean()))


def predicted_one_by_one(made: pd.DataFrame, design: str, law: str, reference: tuple[float, float] | None = None) -> pd.Series:
    """Each cell by a fit of its group without its backbone, its input size, or both, alone in its call."""
    reference = reference or reference_of(made)
    kinds = {"separable": SeparableLaw, "coupled": CoupledLaw, "bounded": BoundedLaw}
    predicted = {}
    for place, cell in made.iterrows():
        group = made[(made["series"] == cell["series"]) & (made["suite"] == cell["suite"])]
        row, column = group["N"] == cell["N"], group["input_size"] == cell["input_size"]
        rest = group[~{"backbone": row, "input_size": column, "joint": row | column}[design]]
        error = clipped(rest["error"], rest["n"]) if law == "bounded" else rest["error"]
        fit = kinds[law](reference=reference).fit(rest["N"], rest["R"], error)
        predicted[place] = float(fit.predict(cell["N"], cell["R"]))
    return pd.Series(predicted)


@pytest.mark.parametrize("design", ["backbone", "input_size", "joint"])
@pytest.mark.parametrize("law", ["separable", "coupled", "bounded"])
def test_rmse_equals_fits_one_by_one(design: str, law: str) -> None:
    frame = cells()
    found = rmse(answer(frame, design=(design,), laws=(law,), exponents="group"))
    made = plain(frame)
    predicted = predicted_one_by_one(made, design, law)
    inside_n = (made["N"] > min(SIZES)) & (made["N"] < max(SIZES))
    inside_r = (made["input_size"] > min(INPUTS)) & (made["input_size"] < max(INPUTS))
    inside = {"backbone": inside_n, "input_size": inside_r, "joint": inside_n & inside_r}[design]
    for level, members, values in (
        ("all", inside | True, predicted.clip(0, 1)),
        ("interior", inside, predicted),
        ("endpoint", ~inside, predicted.clip(0, 1)),
    ):
        row = found[design, "group", level, law]
        assert row["rmse"] == pytest.approx(float(np.sqrt(((made["error"] - values)[members] ** 2).mean())), rel=1e-5)
        assert row["cells"] == members.sum()
        assert row["predictions_outside"] == ((predicted < 0) | (predicted > 1))[members].sum()


@pytest.mark.parametrize("exponents", ["group", "shared"])
@pytest.mark.parametrize("law", ["separable", "coupled"])
def test_cells_without_noise_are_predicted_exactly(exponents: str, law: str) -> None:
    result = answer(cells("expected"), laws=(law,), exponents=exponents)
    for row in result.tables["rmse"].rows():
        assert row["rmse"] < 1e-5, row
        assert row["predictions_outside"] == 0
    assert not result.warnings


def test_shared_folds_leave_a_level_out_of_every_group() -> None:
    """Against fit_shared of the remaining cells, one fold at a time."""
    frame = cells()
    found = rmse(answer(frame, design=("backbone",), laws=("separable",), exponents="shared"))
    made = plain(frame)
    reference = reference_of(made)
    groups = [group for _, group in made.groupby(["series", "suite"])]
    squares = []
    for n in SIZES:
        rest, out = ([group[(group["N"] == n) == held] for group in groups] for held in (False, True))
        stacked = {name: np.stack([part[name].to_numpy() for part in rest]) for name in ("N", "R", "error")}
        fitted = SeparableLaw().fit_shared(stacked["N"] / reference[0], stacked["R"] / reference[1], stacked["error"])
        assert len(np.unique(fitted.parameters["alpha"])) == 1
        predicted = fitted.predict(n / reference[0] * np.ones((3, 4)), np.stack([part["R"].to_numpy() for part in out]) / reference[1])
        squares.append((np.clip(predicted, 0, 1) - np.stack([part["error"].to_numpy() for part in out])) ** 2)
    assert found["backbone", "shared", "all", "separable"]["rmse"] == pytest.approx(float(np.sqrt(np.mean(squares))), rel=1e-5)


def test_differences_are_the_other_law_minus_the_separable_one_in_points() -> None:
    result = answer(cells(), exponents="group")
    found = rmse(result)
    for row in result.tables["differences"].rows():
        key = (row["design"], row["exponents"], row["level"])
        assert row["difference"] == pytest.approx(100 * (found[(*key, row["law"])]["rmse"] - found[(*key, "separable")]["rmse"]), abs=1e-12)


def test_folds_add_up_to_all_cells() -> None:
    result = answer(cells(), laws=("separable",), exponents="both")
    for (design, exponents, level, _), row in rmse(result).items():
        folds = [one for one in result.tables["folds"].rows() if (one["design"], one["exponents"]) == (design, exponents)]
        assert sum(one["cells" if level == "all" else "interior"] for one in folds) == row["cells"] or level == "endpoint"
        if level == "all":
            squares = sum(one["cells"] * one["rmse_separable"] ** 2 for one in folds)
            assert row["rmse"] == pytest.approx(np.sqrt(squares / row["cells"]), rel=1e-12)


def test_all_cells_pool_interior_and_endpoints_as_table_14_gives_table_11() -> None:
    (row,) = known("t14_t11")
    pooled = []
    for inside, interior_rmse, ends, endpoint_rmse in row.inputs.values():
        error = np.zeros((1, inside + ends))
        is_inside = np.arange(inside + ends) < inside
        predicted = np.where(is_inside, interior_rmse, endpoint_rmse)[None] / 100
        pooled.append(accuracy(error, predicted, is_inside).rmse[0, 0] * 100)
    assert row.recomputed == "; ".join(f"{value:.3f}" for value in pooled)


def test_only_cells_that_are_not_interior_are_clipped_before_the_rmse() -> None:
    measured = accuracy(np.array([[0.5, 0.5, 0.5, 0.5]]), np.array([[1.5, 1.5, 0.5, np.nan]]), np.array([True, False, False, False]))
    assert measured.rmse[0] == pytest.approx([np.sqrt(0.5 / 3), 1.0, np.sqrt(0.25 / 2)])
    assert measured.cells[0].tolist() == [3, 1, 2]
    assert measured.outside[0].tolist() == [2, 1, 1]


def test_intervals_are_percentiles_over_resampled_answers() -> None:
    frame = cells()
    result = answer(frame, design=("input_size",), laws=("separable",), exponents="group", replicates=6)
    study = study_of_cells(session(frame), "holdout", CellParameters())
    sums = cluster_sums(study)
    asked = study.answers.questions.text
    cluster = dict(zip(zip(asked["benchmark"], asked["question_key"], strict=True), sums.clusters.of_question, strict=True))
    place = [cluster[key] for key in zip(frame["benchmark"], frame["question_key"], strict=True)]
    found = []
    for weights in draw(sums.clusters, Parameters().seed, range(6)):
        repeated = frame.loc[frame.index.repeat(weights[place].astype(int))]
        made = plain(repeated)
        squares = (predicted_one_by_one(made, "input_size", "separable", study.reference).clip(0, 1) - made["error"]) ** 2
        found.append(float(np.sqrt(squares.mean())))
    row = rmse(result)["input_size", "group", "all", "separable"]
    assert (row["rmse_low"], row["rmse_high"]) == pytest.approx(tuple(np.percentile(found, [2.5, 97.5])), rel=1e-4)


@pytest.mark.parametrize("resampling", ["ordinary", "positive"])
def test_workers_change_no_digit(resampling: str) -> None:
    frame = cells(questions=20)
    options = {"design": ("backbone",), "laws": ("separable", "coupled"), "replicates": 9, "resampling": resampling}
    one, two = (run(session(frame), Parameters(workers=workers, **options)).envelope() for workers in (1, 2))
    for name in ("headline", "tables", "warnings"):
        assert json.dumps(one[name]) == json.dumps(two[name])


# ---- odd data ----------------------------------------------------------------------------------


def test_a_group_of_one_backbone_is_named_and_the_others_go_on() -> None:
    frame = cells("expected")
    frame = frame[(frame["series"] != "B1") | (frame["model"] == "B1-3B")]
    result = answer(frame, laws=("separable",), exponents="group")
    (about,) = (text for text in result.warnings if text.startswith("B1 x S"))
    assert about == "B1 x S: no fit: fewer than 5 cells"
    found = rmse(result)
    assert found["backbone", "group", "all", "separable"]["cells"] == 32
    assert found["backbone", "group", "all", "separable"]["rmse"] < 1e-5


def test_where_no_fold_can_be_fitted_the_tables_are_empty_of_numbers() -> None:
    frame = cells(sizes=(1.0,))
    result = answer(frame)
    assert {row["rmse"] for row in result.tables["rmse"].rows()} == {None}
    assert {row["cells"] for row in result.tables["rmse"].rows()} == {0}
    assert any("A1 x S" in text for text in result.warnings)
    json.dumps(result.envelope(), allow_nan=False)


def test_cells_without_tokens_or_input_size_are_named() -> None:
    frame = cells("expected")
    frame["visual_tokens"] = frame["visual_tokens"].where((frame["series"] != "B1") | (frame["input_size"] != 448))
    frame["input_size"] = frame["input_size"].astype("Int64").where((frame["suite"] != "T") | (frame["input_size"] != 896))
    result = answer(frame, laws=("separable",), exponents="group")
    assert any(text.startswith("B1 x S: 4 of 16 cells lack visual_tokens") for text in result.warnings)
    assert any(text.startswith("A1 x T: 4 of 16 cells have no input size") for text in result.warnings)
    found = rmse(result)
    assert found["backbone", "group", "all", "separable"]["cells"] == 44
    assert found["input_size", "group", "all", "separable"]["cells"] == 40
    assert found["backbone", "group", "all", "separable"]["rmse"] < 1e-5


@pytest.mark.parametrize("credit", [0.0, 1.0, 0.25])
def test_a_group_with_a_constant_error_is_named_and_not_scored(credit: float) -> None:
    frame = cells()
    without = answer(frame[frame["series"] != "B1"], laws=("separable",), exponents="group", reference=(5.0, 500.0))
    frame["credit"] = frame["credit"].mask(frame["series"] == "B1", credit)
    result = answer(frame, laws=("separable",), exponents="group", reference=(5.0, 500.0))
    assert result.warnings == ("B1 x S: no fit: the error is constant",)
    for found, expected in zip(result.tables["rmse"].rows(), without.tables["rmse"].rows(), strict=True):
        assert (found["cells"], found["rmse"]) == (expected["cells"], expected["rmse"])


def test_tokens_within_a_thousandth_are_one_level() -> None:
    frame = cells(input_sizes={224: 25600.0, 448: 25605.0, 896: 25610.0, 1344: 25616.0})
    result = answer(frame, exponents="group")
    assert all(text.endswith(": no fit: one level of R") for text in result.warnings)
    assert {row["cells"] for row in result.tables["rmse"].rows()} == {0}


def test_parts_of_folds_change_no_digit(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = cells(questions=20)
    options: dict[str, Any] = {"laws": ("separable", "bounded"), "replicates": 2}
    at_once = answer(frame, **options).envelope()
    monkeypatch.setattr(folds_module, "PLACES", 100)
    in_parts = answer(frame, **options).envelope()
    for name in ("headline", "tables", "warnings"):
        assert json.dumps(at_once[name]) == json.dumps(in_parts[name])


def test_few_clusters_are_named_and_one_gives_no_interval() -> None:
    options: dict[str, Any] = {"design": ("backbone",), "laws": ("separable",), "exponents": "group", "replicates": 3}
    few = answer(cells(questions=20), **options)
    assert [text for text in few.warnings if "clusters" in text] == [
        f"{suite}: 10 clusters: intervals from so few are too narrow" for suite in ("S", "T")
    ]
    assert all(row["rmse_low"] is not None for row in few.tables["rmse"].rows())
    one = answer(cells(questions=20, per_image=20), **options)
    assert sum("1 cluster:" in text for text in one.warnings) == 2
    assert {(row["rmse_low"], row["rmse_high"]) for row in one.tables["rmse"].rows()} == {(None, None)}
    assert all(row["rmse"] is not None for row in one.tables["rmse"].rows())


def test_rows_whose_interval_excludes_what_was_observed_are_named() -> None:
    result = answer(cells(), design=("input_size",), laws=("separable",), exponents="group", replicates=8)
    off = [row["level"] for row in result.tables["rmse"].rows() if not row["rmse_low"] <= row["rmse"] <= row["rmse_high"]]
    assert off
    (about,) = (text for text in result.warnings if text.startswith("rmse: "))
    assert f"interval of {len(off)} row" in about
    assert all(f"input_size group {level} separable" in about for level in off)


def test_a_study_without_tokens_has_nothing_to_predict() -> None:
    with pytest.raises(AnalysisError, match="no cell has parameters, visual tokens and an error"):
        answer(cells().assign(visual_tokens=None))


@pytest.mark.parametrize("options", [{"box": (1.0, 0.5)}, {"box": (0.0, 1.0)}, {"replicates": -1}, {"design": ()}, {"laws": ("cubic",)}])
def test_options_that_make_no_sense_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Parameters(**options)


def test_charts_draw_with_and_without_intervals() -> None:
    frame = cells(questions=20)
    for replicates in (0, 3):
        result = answer(frame, exponents="group", replicates=replicates)
        assert result.charts["differences"].to_dict()["facet"]
    assert not answer(frame, laws=("separable",), exponents="group").charts
