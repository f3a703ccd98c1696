"""The comparison of forms: every number by a second route, the paper's own numbers, and data that cannot carry it."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from pydantic import ValidationError
from scipy.optimize import nnls

from analyses.forms import Parameters, run
from analyses.forms.fits import COEFFICIENTS, FORMS, laws_of
from analyses.laws import CoupledLaw, Floor, MultiplicativeLaw, PNormLaw, SeparableLaw, bic
from analyses.laws.floor import GRID_VALUES
from analyses.plot import save_plot
from tests.analyses.known import known
from tests.analyses.planted import PlantedLaw, planted_cells, session
from tracker.errors import AnalysisError

if TYPE_CHECKING:
    from pathlib import Path

    from analyses.result import Result

SIZES = (1.0, 3.0, 9.0, 30.0)
INPUTS = {224: 100.0, 448: 400.0, 896: 1000.0, 1344: 2500.0}
LAWS = {
    ("A1", "S"): PlantedLaw(),
    ("A1", "T"): PlantedLaw(e=0.2, a=0.15, b=0.05),
    ("B1", "S"): PlantedLaw(e=0.05, a=0.05, b=0.2),
}


def frame_of(laws: dict[tuple[str, str], PlantedLaw] | None = None, **options: Any) -> pd.DataFrame:
    given: dict[str, Any] = {"sizes": SIZES, "input_sizes": INPUTS, "questions": 60, "draws": "answers", "seed": 3}
    return planted_cells(laws or LAWS, **(given | options))


def answer(frame: pd.DataFrame, **options: Any) -> Result:
    return run(session(frame), Parameters(workers=1, **options))


def rows(result: Result, table: str, *key: str) -> dict[Any, dict[str, Any]]:
    found = result.tables[table].rows()
    return {tuple(row[name] for name in key) if len(key) > 1 else row[key[0]]: row for row in found}


def plain(frame: pd.DataFrame) -> pd.DataFrame:
    """The cells of a frame of answers, by pandas, in the order of their groups."""
    by = ["series", "suite", "parameters", "input_size"]
    made = frame.groupby(by, as_index=False).agg(credit=("credit", "mean"), R=("visual_tokens", "mean"))
    return made.assign(N=made["parameters"] / 1e9, error=1 - made["credit"])


def stacked(made: pd.DataFrame) -> tuple[Any, Any, Any]:
    """n, r and error as groups x cells on axes divided by the geometric means."""
    arrays = []
    for name in ("N", "R", "error"):
        values = made[name] if name == "error" else made[name] / np.exp(np.log(made[name]).mean())
        arrays.append(np.array([values[part.index].to_numpy() for _, part in made.groupby(["series", "suite"])]))
    return arrays[0], arrays[1], arrays[2]


# ---- the paper's numbers -------------------------------------------------------------------------

PAPER = {"sep": "separable", "mult": "multiplicative", "coup": "coupled", "ces": "ces", "pn": "pnorm"}


@pytest.mark.parametrize("row", known("bic_"), ids=lambda row: row.id)
def test_bic_of_the_papers_forms_is_reproduced_within_the_rounding_of_their_sse(row: Any) -> None:
    tolerance = re.search(r"tolerance ([0-9.]+)", row.note)
    assert tolerance is not None
    found = float(bic(row.inputs["sse"], row.inputs["n"], row.inputs["k"]))
    assert found == pytest.approx(float(row.expected), abs=float(tolerance[1]))
    assert found == pytest.approx(float(row.recomputed), abs=0.006)


@pytest.mark.parametrize("row", known("bic_"), ids=lambda row: row.id)
def test_parameters_are_counted_as_the_paper_counts_them(row: Any) -> None:
    form = PAPER[row.id.removeprefix("bic_")]
    law = next(iter(laws_of(form, (0.05, 10.0), "free").values()))
    shapes = law.k - COEFFICIENTS[form]
    assert COEFFICIENTS[form] * 20 + shapes == row.inputs["k"]


@pytest.mark.parametrize("row", known("dsse_"), ids=lambda row: row.id)
def test_differences_of_sse_are_inside_the_interval_of_rounding(row: Any) -> None:
    interval = re.search(r"([-0-9.]+)\.\.([-0-9.]+)", row.note)
    assert interval is not None
    change = 100 * (row.inputs["sse"] / row.inputs["sse_sep"] - 1)
    assert float(interval[1]) - 0.01 <= change <= float(interval[2]) + 0.01
    assert change == pytest.approx(float(row.recomputed), abs=0.006)


@pytest.mark.parametrize("row", known("dbic_"), ids=lambda row: row.id)
def test_differences_of_bic_are_those_of_the_printed_ones(row: Any) -> None:
    assert row.inputs["bic"] - row.inputs["bic_sep"] == pytest.approx(float(row.expected), abs=0.11)


@pytest.mark.parametrize("row", known("table10_"), ids=lambda row: row.id)
def test_bic_difference_of_coupled_follows_from_the_ratio_of_objectives(row: Any) -> None:
    n, ratio, extra = row.inputs["n"], 1 + row.inputs["rel_pct"] / 100, row.inputs["extra_k"]
    assert extra == 83 - 62
    found = float(bic(1.221 * ratio, n, 83) - bic(1.221, n, 62))
    assert found == pytest.approx(float(row.expected), abs=0.041)


# ---- against second routes -----------------------------------------------------------------------


def test_every_form_has_the_sse_of_its_law_on_cells_made_by_pandas() -> None:
    frame = frame_of()
    n, r, y = stacked(plain(frame))
    result = answer(frame)
    found = rows(result, "forms", "form")
    assert list(found) == ["separable", "multiplicative", "coupled", "ces", "pnorm", "pnorm_exact"]
    for form in FORMS:
        for name, law in laws_of(form, (0.05, 10.0), "free").items():
            solutions = law.fit_shared(n, r, y)
            k = COEFFICIENTS[form] * 3 + len(solutions.bounds)
            sse = float(((solutions.predict(n, r) - y) ** 2).sum())
            assert found[name]["k"] == k
            assert found[name]["sse"] == pytest.approx(sse, rel=1e-6)
            assert found[name]["bic"] == pytest.approx(48 * (np.log(2 * np.pi * sse / 48) + 1) + k * np.log(48), abs=1e-3)
            assert found[name]["aic"] == pytest.approx(48 * (np.log(2 * np.pi * sse / 48) + 1) + 2 * k, abs=1e-3)
            assert found[name]["r2"] == pytest.approx(1 - sse / ((y - y.mean()) ** 2).sum(), rel=1e-6)
            base = found["separable"]
            assert found[name]["delta_sse"] == pytest.approx(100 * (found[name]["sse"] / base["sse"] - 1))
            assert found[name]["delta_bic"] == pytest.approx(found[name]["bic"] - base["bic"])


def test_shared_separable_is_the_least_sum_of_nnls_over_a_dense_grid() -> None:
    frame = frame_of()
    n, r, y = stacked(plain(frame))
    result = answer(frame, forms=("separable",))

    def total(alpha: float, beta: float) -> float:
        fitted = 0.0
        for group in range(len(y)):
            design = np.stack([np.ones_like(y[group]), n[group] ** -alpha, r[group] ** -beta], axis=1)
            fitted += nnls(design, y[group] + 50.0)[1] ** 2
        return fitted

    shapes = {row["shape"]: row["value"] for row in result.tables["shapes"].rows()}
    best = result.tables["forms"].rows()[0]["sse"]
    assert best == pytest.approx(total(shapes["alpha"], shapes["beta"]), rel=1e-6)
    grid = np.geomspace(0.05, 10, 40)
    assert min(total(alpha, beta) for alpha in grid for beta in grid) >= best * (1 - 1e-9)


@pytest.mark.parametrize("floor", ["grid", "continuous"])
def test_groups_with_shapes_of_their_own_are_fits_one_by_one(floor: Any) -> None:
    frame = frame_of()
    made = plain(frame)
    n_reference, r_reference = (float(np.exp(np.log(made[name]).mean())) for name in ("N", "R"))
    result = answer(frame, own_floor=floor)
    found, lower = rows(result, "groups", "series", "suite"), {"separable": 0, "multiplicative": 0}
    for key, part in made.groupby(["series", "suite"]):
        row = found[key]
        sse = {}
        for name, law in (("separable", SeparableLaw), ("multiplicative", MultiplicativeLaw)):
            fit = law(floor=floor, reference=(n_reference, r_reference)).fit(part["N"], part["R"], part["error"])
            sse[name] = fit.sse
            assert row[f"{name}_sse"] == pytest.approx(fit.sse, rel=1e-7)
            assert row[f"{name}_r2"] == pytest.approx(fit.r2, rel=1e-7)
            if floor == "grid":
                assert fit.parameters["e_inf"] in GRID_VALUES
        best = min(sse, key=lambda name: sse[name])
        assert row["lower"] == best
        lower[best] += 1
    summary = rows(result, "per_group", "form")
    for name, count in lower.items():
        assert summary[name]["groups_lower"] == count
        assert summary[name]["pooled_sse"] == pytest.approx(sum(row[f"{name}_sse"] for row in found.values()))
        assert summary[name]["median_r2"] == pytest.approx(float(np.median([row[f"{name}_r2"] for row in found.values()])))
    assert [summary[name]["k"] for name in lower] == [15, 12]


def test_coefficients_and_stored_fits_predict_the_sse_of_each_group() -> None:
    frame = frame_of()
    n, r, y = stacked(plain(frame))
    result = answer(frame)
    shapes = rows(result, "shapes", "form", "shape")
    coefficients = rows(result, "coefficients", "form", "series", "suite")
    for form in FORMS:
        for name, law in laws_of(form, (0.05, 10.0), "free").items():
            for group, key in enumerate(sorted(LAWS)):
                row = coefficients[name, *key]
                values = {shape: shapes[name, shape]["value"] for shape in law.bounds} if form != "separable" else {}
                if form == "separable":
                    values = {shape: shapes[name, shape]["value"] for shape in ("alpha", "beta")}
                amplitudes = {one: row[one] for one in ("e", "a", "b", "c") if row[one] is not None}
                function = law.fit_shared(n, r, y).function
                assert row["sse"] == pytest.approx(((function(n[group], r[group], **amplitudes, **values) - y[group]) ** 2).sum(), rel=1e-6)
    stored = {(fit.law, fit.group_key): fit for fit in result.fits}
    assert len(stored) == 6 * 3 + 2 * 3
    one = stored["coupled, shared shapes", "A1 x S"]
    assert one.parameters["C_nr"] == coefficients["coupled", "A1", "S"]["c"]
    assert (one.k, one.n, one.bic) == (4, 16, None)
    own = stored["separable", "A1 x S"]
    assert own.bic == pytest.approx(float(bic(own.sse, 16, 5)))


def test_precision_weights_are_inverse_cluster_variances_of_mean_one() -> None:
    """Every image has two questions whose answers agree, and every benchmark 30 images: Eq. 15 by loops."""
    frame = frame_of(draws="images")
    frame.loc[(frame["series"] == "B1") & (frame["input_size"] == 224), "credit"] = 1.0
    made = plain(frame).set_index(["series", "suite", "parameters", "input_size"])
    variance = {}
    for key, part in frame.groupby(["series", "suite", "parameters", "input_size"]):
        error = (1 - part["credit"]).mean()
        sums = part.assign(z=1 - part["credit"] - error).groupby("image_key")["z"].sum()
        variance[key] = len(sums) / (len(sums) - 1) * (sums**2).sum() / len(part) ** 2
    made["variance"] = pd.Series(variance)
    assert (made["variance"] == 0).any()
    made["w"] = 1 / made["variance"].clip(lower=made["variance"][made["variance"] > 0].min())
    made["w"] /= made["w"].mean()
    made = made.reset_index()
    n, r, y = stacked(made)
    w = np.array([part["w"].to_numpy() for _, part in made.groupby(["series", "suite"])])
    result = answer(frame, weights="precision", forms=("coupled", "multiplicative"))
    found = rows(result, "forms", "form")
    for name, law in (("separable", SeparableLaw), ("coupled", CoupledLaw), ("multiplicative", MultiplicativeLaw)):
        assert found[name]["sse"] == pytest.approx(law(floor="free").fit_shared(n, r, y, w).objective.sum(), rel=1e-6)
    assert found["coupled"]["sse"] <= found["separable"]["sse"]
    own = rows(result, "groups", "series", "suite")
    expected = MultiplicativeLaw(floor="grid").fit_many(n, r, y, w).objective
    assert [own[key]["multiplicative_sse"] for key in sorted(LAWS)] == pytest.approx(expected.tolist(), rel=1e-6)


# ---- planted truth -------------------------------------------------------------------------------


def with_errors(function: Any) -> pd.DataFrame:
    """Cells whose error is a function of N (billions), R and the number of the group, and a little noise."""
    frame = frame_of(questions=4, draws="expected")
    rng = np.random.default_rng(0)
    key = frame["configuration_id"].astype(str) + frame["suite"]
    noise = {one: 0.003 * rng.standard_normal() for one in key.unique()}
    group = (frame["series"] + frame["suite"]).map({name: place for place, name in enumerate(sorted({a + b for a, b in LAWS}))})
    error = function(frame["parameters"] / 1e9, frame["visual_tokens"], group) + key.map(noise)
    return frame.assign(credit=1 - error)


@pytest.mark.parametrize(
    ("form", "function"),
    [
        ("separable", lambda n, r, g: 0.1 + 0.1 * g + 0.2 * n**-0.4 + 2.0 * r**-0.6),
        ("multiplicative", lambda n, r, g: 0.1 + 0.1 * g + 3.0 * n**-0.4 * r**-0.4),
        ("coupled", lambda n, r, g: 0.1 + 0.05 * g + 0.1 * n**-0.9 + 4.0 * r**-0.8 + 3.0 * (n * r) ** -0.4),
        ("ces", lambda n, r, g: 0.1 + 0.1 * g + 0.3 * (0.9 * n**-1.5 + 0.1 * (r / 1000) ** -1.5) ** (1 / 1.5) * 0.5),
        ("pnorm", lambda n, r, g: ((0.5 * n**-0.3) ** 6 + (4.0 * r**-0.4) ** 6 + (0.2 + 0.05 * g) ** 6) ** (1 / 6)),
    ],
)
def test_bic_prefers_the_planted_form(form: str, function: Any) -> None:
    result = answer(with_errors(function))
    assert str(result.headline["best_by_bic"]).startswith(form)


def test_cells_without_noise_give_separable_back() -> None:
    amplitudes = ((0.1, 0.1), (0.12, 0.05), (0.05, 0.15))
    laws = {key: PlantedLaw(e=0.1, a=a, b=b) for key, (a, b) in zip(LAWS, amplitudes, strict=True)}
    frame = frame_of(laws, draws="expected", questions=4)
    result = answer(frame, own_floor="continuous")
    shapes = rows(result, "shapes", "form", "shape")
    assert shapes["separable", "alpha"]["value"] == pytest.approx(0.4, abs=1e-6)
    assert shapes["separable", "beta"]["value"] == pytest.approx(0.6, abs=1e-6)
    assert result.headline["separable_sse"] < 1e-20
    own = rows(result, "groups", "series", "suite")
    assert all(row["separable_alpha"] == pytest.approx(0.4, abs=1e-5) for row in own.values())
    assert {row["lower"] for row in own.values()} == {"separable"}


# ---- nesting and options -------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"floor": "continuous"}, {"floor": "grid"}, {"weights": "precision"}, {"box": (0.1, 2.0)}])
def test_coupled_is_never_above_separable_nor_the_exact_pnorm_above_the_papers(options: dict[str, Any]) -> None:
    found = rows(answer(frame_of(), **options), "forms", "form")
    assert found["coupled"]["sse"] <= found["separable"]["sse"] * (1 + 1e-9)
    assert found["pnorm_exact"]["sse"] <= found["pnorm"]["sse"] * (1 + 1e-12)


def test_narrower_choices_of_floor_never_fit_better() -> None:
    frame = frame_of()
    sse = [rows(answer(frame, floor=floor, forms=("coupled",)), "forms", "form") for floor in ("free", "continuous", "grid")]
    for form in ("separable", "coupled"):
        assert all(one[form]["sse"] <= other[form]["sse"] * (1 + 1e-9) for one, other in pairwise(sse))


def test_box_bounds_every_exponent_and_a_bound_is_flagged() -> None:
    result = answer(frame_of(), box=(0.9, 1.1))
    for row in result.tables["shapes"].rows():
        if row["shape"] in {"alpha", "beta", "gamma"}:
            assert (row["low"], row["high"]) == (0.9, 1.1)
            assert 0.9 <= row["value"] <= 1.1
            expected = {0.9: "lower", 1.1: "upper"}.get(row["value"])
            assert row["at_bound"] == (expected if row["groups"] else None)
    assert "lower" in {row["at_bound"] for row in result.tables["shapes"].rows()}


def test_pnorm_at_order_one_is_separable_on_the_cells_of_a_study() -> None:
    n, r, y = stacked(plain(frame_of()))
    box = (0.05, 3.0)
    expected = SeparableLaw(alpha=box, beta=box, floor=Floor("continuous", 0.0, np.inf)).fit_shared(n, r, y)
    for inner in ("exact", "paper"):
        assert PNormLaw(p=(1.0, 1.0), inner=inner).fit_shared(n, r, y).objective.sum() == pytest.approx(expected.objective.sum(), rel=1e-6)


def test_a_choice_of_forms_always_has_separable_first() -> None:
    result = answer(frame_of(), forms=("pnorm", "multiplicative"))
    assert result.tables["forms"].data["form"] == ["separable", "multiplicative", "pnorm", "pnorm_exact"]
    assert "coupled_delta_sse" not in result.headline


@pytest.mark.parametrize("options", [{"box": (1.0, 0.5)}, {"box": (0.0, 1.0)}, {"forms": ()}, {"forms": ("cubic",)}, {"weights": "none"}])
def test_options_that_make_no_sense_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Parameters(**options)


def test_reference_moves_amplitudes_and_nothing_else() -> None:
    frame = frame_of()
    one, other = answer(frame, forms=("coupled",)), answer(frame, forms=("coupled",), reference=(1.0, 100.0))
    for form in ("separable", "coupled"):
        assert rows(one, "forms", "form")[form]["sse"] == pytest.approx(rows(other, "forms", "form")[form]["sse"], rel=1e-9)
    assert other.headline["reference_N"] == 1.0
    assert one.tables["coefficients"].data["a"] != other.tables["coefficients"].data["a"]


def test_no_order_of_answers_and_no_numbering_changes_a_digit() -> None:
    frame = frame_of()
    renumbered = frame.sample(frac=1, random_state=1)
    renumbered = renumbered.assign(
        question_id=900 - renumbered["question_id"],
        run_id=5000 - renumbered["run_id"],
        configuration_id=99999 - renumbered["configuration_id"],
    )
    one, other = (answer(some, weights="precision").envelope()["tables"] for some in (frame, renumbered))
    assert json.dumps(one) == json.dumps(other)


def test_charts_are_drawn_and_tables_are_json(tmp_path: Path) -> None:
    result = answer(frame_of())
    assert tuple(result.charts) == ("candidates", "groups")
    save_plot(result, tmp_path / "forms.svg")
    text = (tmp_path / "forms.svg").read_text(encoding="utf-8")
    assert "p-norm, exact (k=12)" in text
    assert "SSE, multiplicative" in text
    json.dumps(result.envelope(), allow_nan=False)


# ---- odd data ------------------------------------------------------------------------------------


def spoiled(frame: pd.DataFrame, part: Any, **values: Any) -> pd.DataFrame:
    frame = frame.copy()
    for name, value in values.items():
        frame.loc[part, name] = value
    return frame


FRAME = frame_of()
ODD = (FRAME["series"] == "A1") & (FRAME["suite"] == "T")
CASES = {
    "fewer cells": (FRAME[~ODD | (FRAME["parameters"] == 1e9) & (FRAME["input_size"] < 800)], "2 cells are fewer than the 4 parameters"),
    "one backbone": (FRAME[~ODD | (FRAME["parameters"] == 1e9)], "one number of parameters N"),
    "one input size": (FRAME[~ODD | (FRAME["input_size"] == 448)], "one number of visual tokens R"),
    "constant error": (spoiled(FRAME, ODD, credit=0.5), "the error does not vary"),
    "no tokens": (spoiled(FRAME, ODD, visual_tokens=np.nan), "lack visual_tokens"),
    "no parameters": (spoiled(FRAME, ODD, parameters=np.nan), "lack the parameters"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_group_that_cannot_be_compared_is_named_and_the_others_go_on(case: str) -> None:
    frame, reason = CASES[case]
    result = answer(frame)
    assert any("A1 x T" in warning and reason in warning for warning in result.warnings), result.warnings
    assert result.headline["groups"] == 2
    assert result.headline["cells"] == 32
    alone = answer(FRAME[~ODD], reference=(result.headline["reference_N"], result.headline["reference_R"]))
    assert result.tables["forms"].rows() == alone.tables["forms"].rows()
    assert result.tables["groups"].rows() == alone.tables["groups"].rows()


def test_four_cells_carry_shared_shapes_but_none_of_their_own() -> None:
    few = FRAME[~ODD | FRAME["parameters"].isin([1e9, 3e9]) & FRAME["input_size"].isin([224, 448])]
    result = answer(few)
    assert result.headline["groups"] == 3
    assert result.headline["own_groups"] == 2
    assert any("A1 x T: fewer than 5 cells" in warning for warning in result.warnings)
    alone = answer(few[few["suite"] == "T"])
    assert "per_group" not in alone.tables
    assert tuple(alone.charts) == ("candidates",)
    assert alone.headline["groups"] == 1


def test_errors_below_zero_leave_the_pnorm_out() -> None:
    result = answer(spoiled(FRAME, ODD & (FRAME["input_size"] == 1344), credit=1.2))
    assert "pnorm" not in result.tables["forms"].data["form"]
    assert any("pnorm is left out" in warning for warning in result.warnings)


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_errors_of_zero_and_one_are_fitted(value: float) -> None:
    result = answer(spoiled(FRAME, ODD & (FRAME["input_size"] == 1344), credit=value))
    assert result.headline["groups"] == 3
    assert all(sse is not None for sse in result.tables["forms"].data["sse"])


def test_one_group_of_everything_and_groups_of_single_models_have_an_answer() -> None:
    whole = answer(FRAME, by=())
    assert whole.headline["groups"] == 1
    assert whole.fits[0].group_key == "all cells"
    save = whole.charts["groups"].to_dict()
    assert save["title"]
    with pytest.raises(AnalysisError, match="no group can be fitted"):
        answer(FRAME, by=("series", "suite", "model"))


def test_nothing_to_fit_is_an_error() -> None:
    with pytest.raises(AnalysisError, match="no scored answer"):
        answer(FRAME, where="series = 'nobody'")
    with pytest.raises(AnalysisError, match=r"no group can be fitted: .* cells lack visual_tokens") as caught:
        answer(FRAME.assign(visual_tokens=np.nan))
    assert "visual_tokens" in str(caught.value.hint)
    with pytest.raises(AnalysisError, match="no group can be fitted") as caught:
        answer(FRAME.assign(credit=0.25), weights="precision")
    assert caught.value.message.count("the error does not vary") == 3
    with pytest.raises(AnalysisError, match="--drop leaves no cell") as caught:
        answer(FRAME, drop=tuple(f"series={name}" for name in sorted(set(FRAME["series"]))))
    assert caught.value.hint == "drop less"


def test_precision_weights_without_any_variance_say_that_they_are_equal() -> None:
    equal, precise = (answer(FRAME.assign(image_key="one"), weights=weights) for weights in ("equal", "precision"))
    assert "no cell has a variance over clusters: precision weights are equal weights here" in precise.warnings
    assert precise.tables["forms"].rows() == equal.tables["forms"].rows()
