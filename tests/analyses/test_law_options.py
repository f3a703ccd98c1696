"""Options of the law: moments, pixels, the bounded law, weights, intervals, sensitivity."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy import stats

from analyses.law import Parameters
from analyses.law.bounded import rank_correlation
from analyses.laws import BoundedLaw, SeparableLaw
from analyses.laws.separable import clipped
from analyses.plot import svg
from tests.analyses.lawlike import LAWS, PARAMETERS, answer, by_group, cell_means, changed, group, noisy
from tests.analyses.planted import PlantedLaw, planted_cells
from tracker.errors import AnalysisError

if TYPE_CHECKING:
    import pandas as pd


@pytest.fixture(scope="module")
def noise() -> pd.DataFrame:
    return noisy()


@pytest.fixture(scope="module")
def exact() -> pd.DataFrame:
    return planted_cells(LAWS)


def test_moments_equal_brute_force_over_the_answers(noise: pd.DataFrame) -> None:
    result = answer(noise, tokens="moment", floor="continuous", where="suite = 'Maps' and series = 'Beta2'")
    row = group(result, "Beta2", "Maps")
    reference = result.headline["reference_R"], result.headline["reference_N"]
    for one in result.tables["cells"].rows():
        some = noise[(noise["model"] == one["model"]) & (noise["input_size"] == one["input_size"]) & (noise["suite"] == "Maps")]
        moment = np.mean([(tokens / reference[0]) ** -row["beta"] for tokens in some["visual_tokens"]])
        expected = row["e_inf"] + row["A_n"] * (one["N"] / reference[1]) ** -row["alpha"] + row["B_r"] * moment
        assert one["predicted"] == pytest.approx(expected)
    assert row["sse"] != pytest.approx(group(answer(noise, floor="continuous"), "Beta2", "Maps")["sse"], rel=1e-6)


def test_moments_of_equal_tokens_are_powers_of_the_mean(exact: pd.DataFrame) -> None:
    mean, moment = (answer(exact, tokens=tokens, floor="continuous").tables["fits"].rows() for tokens in ("mean", "moment"))
    for one, other in zip(mean, moment, strict=True):
        assert [one[name] for name in PARAMETERS[:5]] == pytest.approx([other[name] for name in PARAMETERS[:5]], abs=1e-6)


def test_effective_pixels_take_the_place_of_tokens(noise: pd.DataFrame) -> None:
    result = answer(noise, resource="effective_pixels")
    pixels = noise.groupby(["series", "suite", "model", "input_size"])["effective_pixels"].mean()
    assert result.headline["reference_R"] == pytest.approx(float(np.exp(np.log(pixels).mean())))
    some = cell_means(noise)[lambda cells: (cells["series"] == "Beta2") & (cells["suite"] == "Maps")]
    fit = SeparableLaw(floor="grid").fit(some["N"], some["input_size"] ** 2, some["error"])
    assert group(result, "Beta2", "Maps")["sse"] == pytest.approx(fit.sse, rel=1e-9)


@pytest.fixture(scope="module")
def pixels() -> pd.DataFrame:
    """A study in which tokens and effective pixels move apart and both count."""
    rows = planted_cells(
        {("A", "S"): PlantedLaw(b=0.0)}, questions=12, input_sizes={224: 100, 448: 200, 672: 400, 896: 800, 1344: 1600, 2048: 3200}
    )
    rows["effective_pixels"] = rows["visual_tokens"] * np.array([300, 1200, 90])[rows["parameters"].rank(method="dense").astype(int) % 3]
    third = 0.1 * (rows["effective_pixels"] / 1e5) ** -0.5
    rows["credit"] -= 0.03 * (rows["visual_tokens"] / 1000) ** -0.8 + third
    return rows


def test_three_axes_give_back_a_planted_third_term(pixels: pd.DataFrame) -> None:
    result = answer(pixels, resource="both", floor="continuous", reference=(10.0, 1000.0))
    row = group(result, "A", "S")
    planted = {"e_inf": 0.1, "A_n": 0.1, "alpha": 0.4, "B_r": 0.03, "beta": 0.8, "gamma": 0.5, "G": 0.1 * 1e5**0.5}
    assert {name: row[name] for name in planted} == pytest.approx(planted, rel=1e-3)
    assert (row["k"], row["gamma_at_bound"]) == (7, False)
    assert result.headline["reference_P"] == pytest.approx(float(np.exp(np.log(pixels["effective_pixels"]).mean())))
    assert [column.name for column in result.tables["fits"].columns][:14] == [
        "series", "suite", *PARAMETERS, "sse", "n", "r2", "alpha_at_bound", "beta_at_bound",
    ]  # fmt: skip


def test_resources_are_compared_on_the_same_cells(pixels: pd.DataFrame) -> None:
    result = answer(pixels, resource="both", floor="continuous")
    rows = {row["resource"]: row for row in result.tables["resources"].rows()}
    cells = cell_means(pixels).merge(
        pixels.groupby(["model", "input_size"])["effective_pixels"].mean().rename("P").reset_index(), on=["model", "input_size"]
    )
    for resource, axis, exponent in (("visual_tokens", "R", "beta"), ("effective_pixels", "P", "gamma")):
        fit = SeparableLaw().fit(cells["N"], cells[axis], cells["error"])
        row = rows[resource]
        assert (row["r2"], row["bic"], row["n"], row["k"]) == pytest.approx((fit.r2, fit.bic, 36, 5))
        assert (row["alpha"], row[exponent]) == pytest.approx((fit.parameters["alpha"], fit.parameters["beta"]), rel=1e-3)
        for level, rmse in (("N", "backbone_rmse"), ("input_size", "input_size_rmse")):
            off = []
            for value in sorted(set(cells[level])):
                seen, unseen = cells[cells[level] != value], cells[cells[level] == value]
                refit = SeparableLaw().fit(seen["N"], seen[axis], seen["error"])
                off += ((unseen["error"] - np.clip(refit.predict(unseen["N"], unseen[axis]), 0, 1)) ** 2).tolist()
            assert row[rmse] == pytest.approx(np.sqrt(np.mean(off)), rel=1e-4)
    assert rows["both"]["r2"] == pytest.approx(1)
    assert rows["both"]["k"] == 7
    assert rows["both"]["backbone_rmse"] < 1e-4 < rows["visual_tokens"]["backbone_rmse"]
    assert "L(N, R, P)" in svg(result.charts["resources"])


def test_a_cell_without_pixels_is_left_out_of_every_comparison(pixels: pd.DataFrame) -> None:
    less = changed(pixels, (pixels["parameters"] == 1e9) & (pixels["input_size"] == 224), effective_pixels=None)
    result = answer(less, resource="both")
    assert {row["n"] for row in result.tables["resources"].rows()} == {35}
    assert "A x S: 1 of 36 cells lack effective_pixels and are left out (A-1B)" in result.warnings
    with pytest.raises(AnalysisError, match=r"no group can be fitted: A x S: 36 of 36 cells lack effective_pixels") as caught:
        answer(pixels.assign(effective_pixels=None), resource="both")
    assert caught.value.hint == "records need the field effective_pixels (docs/formats.md)"


def test_the_bounded_law_is_fitted_to_logits_and_compared(noise: pd.DataFrame) -> None:
    result = answer(noise, bounded=True)
    cells = cell_means(noise)
    reference = result.headline["reference_N"], result.headline["reference_R"]
    exponents: dict[str, list[tuple[float, float]]] = {"alpha": [], "beta": []}
    for (series, suite), some in by_group(cells):
        fit = BoundedLaw(reference=reference).fit(some["N"], some["R"], clipped(some["error"], some["n"]))
        matched = SeparableLaw(reference=reference).fit(some["N"], some["R"], some["error"])
        row = group(result, series, suite, "bounded")
        assert (row["c"], row["alpha"], row["beta"]) == pytest.approx(
            [fit.parameters[name] for name in ("e_inf", "alpha", "beta")], rel=1e-4
        )
        assert row["sse"] == pytest.approx(float(((some["error"] - fit.predict(some["N"], some["R"])) ** 2).sum()))
        for name, pairs in exponents.items():
            pairs.append((matched.parameters[name], fit.parameters[name]))
    for name, pairs in exponents.items():
        expected = stats.spearmanr([pair[0] for pair in pairs], [pair[1] for pair in pairs]).statistic
        assert result.headline[f"bounded_rank_correlation_{name}"] == pytest.approx(expected)
    order = [np.sign(a[side] - b[side]) for a, b in zip(*exponents.values(), strict=True) for side in (0, 1)]
    assert result.headline["bounded_order_groups"] == 4
    assert result.headline["bounded_order_same"] == sum(one == other for one, other in zip(order[::2], order[1::2], strict=True))
    medians = {(row["family"], row["law"]): row for row in result.tables["medians"].rows()}
    assert medians["Alpha", "bounded"]["alpha_median"] == pytest.approx(
        np.median([row["alpha"] for row in result.tables["bounded"].rows() if row["series"] == "Alpha1"])
    )
    assert {fit.law for fit in result.fits} == {"separable", "bounded"}


def test_a_bounded_law_takes_errors_of_zero_and_one() -> None:
    rows = planted_cells({("A", "S"): PlantedLaw(e=0.0, a=0.02, alpha=1.0, b=0.028, beta=1.2)}, draws="counts", questions=10)
    result = answer(rows, bounded=True)
    assert {0.0, 1.0} & set(result.tables["cells"].data["error"])
    assert all(0 < value < 1 for value in (row["r2"] for row in result.tables["bounded"].rows()))


def test_precision_weights_are_the_inverse_cluster_variance(noise: pd.DataFrame) -> None:
    result = answer(noise, weights="precision", floor="continuous")
    cells = result.tables["cells"].df()
    variances = []
    for _, cell in cells.iterrows():
        some = noise[(noise["model"] == cell["model"]) & (noise["input_size"] == cell["input_size"]) & (noise["suite"] == cell["suite"])]
        off = (1 - some["credit"] - cell["error"]).groupby(some["image_key"]).sum()
        m = len(off)
        variances.append(m / (m - 1) * ((off - off.mean()) ** 2).sum() / len(some) ** 2)
    weights = 1 / np.array(variances)
    weights /= weights.mean()
    some = (cells["series"] == "Alpha1") & (cells["suite"] == "Maps")
    fit = SeparableLaw().fit(cells["N"][some], cells["R"][some], cells["error"][some], weights[some])
    row = group(result, "Alpha1", "Maps")
    assert (row["sse"], row["r2"], row["bic"]) == pytest.approx((fit.sse, fit.r2, fit.bic))
    assert result.headline["pooled_sse"] == pytest.approx(sum(result.tables["fits"].data["sse"]))


def test_precision_weights_without_any_variance_say_that_they_are_equal(noise: pd.DataFrame) -> None:
    result = answer(noise.assign(image_key="one"), weights="precision")
    assert "no cell has a variance over clusters: precision weights are equal weights here" in result.warnings
    assert result.tables["fits"].rows() == answer(noise).tables["fits"].rows()


def test_a_single_image_has_no_interval_and_few_are_warned_of(noise: pd.DataFrame) -> None:
    one = noise.assign(image_key=noise["image_key"].where(noise["suite"] != "Maps", "one"))
    result = answer(one, intervals=3, workers=1)
    for row in result.tables["fits"].rows():
        assert (row["e_inf_low"] is None) == (row["e_inf_high"] is None) == (row["suite"] == "Maps")
        assert row["e_inf"] is not None
    assert "Maps: 1 cluster: its cells are the same in every resample; groups of such cells alone have no interval" in result.warnings
    few = answer(noise.assign(image_key=noise["question_key"].str[-1]), intervals=3, workers=1)
    assert "Maps: 10 clusters: intervals from so few are too narrow" in few.warnings


def test_intervals_hold_the_estimates_of_a_large_study(noise: pd.DataFrame) -> None:
    result = answer(noise, intervals=60, workers=1)
    inside = [
        row[f"{name}_low"] - 1e-9 <= row[name] <= row[f"{name}_high"] + 1e-9 for row in result.tables["fits"].rows() for name in PARAMETERS
    ]
    assert sum(inside) >= 0.9 * len(inside)
    again = answer(noise, intervals=60, workers=1)
    assert again.tables["fits"].rows() == result.tables["fits"].rows()
    stored = result.fits[0].parameters
    assert stored["alpha_low"] <= stored["alpha_high"]


def test_sensitivity_compares_every_variant_with_what_was_asked(noise: pd.DataFrame) -> None:
    result = answer(noise, sensitivity=True)
    rows = {row["variant"]: row for row in result.tables["sensitivity"].rows()}
    assert list(rows) == ["as asked", "box 0.05,3", "continuous floor", "moment tokens", "bounded"]
    asked = rows["as asked"]
    assert (asked["order_changes"], asked["floors_moved"], asked["choices"], asked["same_choices"]) == (0, 0, 16, 16)
    assert asked["pooled_sse"] == pytest.approx(result.headline["pooled_sse"])
    assert rows["continuous floor"]["pooled_sse"] <= asked["pooled_sse"]
    assert rows["moment tokens"]["pooled_sse"] == pytest.approx(answer(noise, tokens="moment").headline["pooled_sse"])
    assert rows["box 0.05,3"]["pooled_sse"] == pytest.approx(answer(noise, box=(0.05, 3.0)).headline["pooled_sse"])
    assert rows["bounded"]["floors_moved"] is None


def test_sensitivity_leaves_out_the_size_that_one_release_has() -> None:
    rows = noisy(releases={"Maps": ("Maps4K", "Maps8K")})
    rows = rows[~((rows["benchmark"] == "Maps4K") & (rows["input_size"] == 2048))]
    result = answer(rows, sensitivity=True)
    row = next(row for row in result.tables["sensitivity"].rows() if row["variant"] == "without 2048 px")
    cells = result.headline["cells"]
    assert row["cells"] == cells - 12
    dropped = answer(rows[rows["benchmark"] != "Maps8K"], reference=(result.headline["reference_N"], result.headline["reference_R"]))
    assert row["pooled_sse"] == pytest.approx(dropped.headline["pooled_sse"])


def test_choices_equal_a_loop_over_the_cells(noise: pd.DataFrame) -> None:
    narrow, wide = answer(noise, box=(0.05, 0.1)), answer(noise, sensitivity=True, box=(0.05, 0.1))
    row = next(row for row in wide.tables["sensitivity"].rows() if row["variant"] == "box 0.05,3")
    other = answer(noise, box=(0.05, 3.0))
    prompts = noise.groupby(["suite", "model", "input_size"])["prompt_tokens"].mean()
    same = 0
    for series, suite in LAWS:
        cells = [
            (one["predicted"], two["predicted"], 2e9 * one["N"] * prompts[suite, one["model"], one["input_size"]])
            for one, two in zip(narrow.tables["cells"].rows(), other.tables["cells"].rows(), strict=True)
            if (one["series"], one["suite"]) == (series, suite)
        ]
        for budget in np.percentile([cost for *_, cost in cells], [25, 50, 75, 90]):
            feasible = [cell for cell in cells if cell[2] <= budget * (1 + 1e-12)]
            same += min(range(len(feasible)), key=lambda i: feasible[i][0]) == min(range(len(feasible)), key=lambda i: feasible[i][1])
    assert (row["choices"], row["same_choices"]) == (16, same)


@pytest.mark.parametrize(
    "options",
    [{"box": (3.0, 0.05)}, {"box": (0.0, 1.0)}, {"tokens": "moment", "resource": "both"}, {"tokens": "moment", "intervals": 5}],
)
def test_options_that_contradict_each_other_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"expected|need|moments"):
        Parameters(**options)


def test_ranks_of_too_few_or_equal_values_have_no_correlation() -> None:
    assert rank_correlation(np.array([1.0, 2.0]), np.array([1.0, 2.0])) is None
    assert rank_correlation(np.array([1.0, 2.0, 3.0]), np.full(3, 10.0)) is None
    assert rank_correlation(np.array([1.0, 2.0, np.nan, 3.0]), np.array([2.0, 4.0, 1.0, 8.0])) == pytest.approx(1)
