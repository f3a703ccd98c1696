"""Exponents over fits: the paper's medians and counts from its printed exponents, and planted groups and subsets by pandas."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

from analyses.exponents import Parameters, run
from analyses.exponents.summary import Exponents, balance, one_exponent
from analyses.plot import svg
from tests.analyses.known import known
from tests.analyses.lawlike import answer, noisy
from tests.analyses.planted import PlantedLaw, planted_cells, session
from tracker.errors import AnalysisError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analyses.result import Result

LOW, HIGH = 0.05, 10.0


def printed(values: Sequence[float], marks: Sequence[bool] | None = None) -> Exponents:
    """Exponents as the paper prints them; those on the box are at its bounds, or those with a mark."""
    value = np.array(values, dtype=float)
    side = np.where(value >= HIGH, 1, np.where(value <= LOW, -1, 0))
    return Exponents(value=value, bound=side if marks is None else np.where(marks, np.where(value > 1, 1, -1), 0))


def found(rows: pd.DataFrame, **options: Any) -> Result:
    return run(session(rows), Parameters(**options))


def part(result: Result, table: str, **values: Any) -> dict[str, Any]:
    return next(row for row in result.tables[table].rows() if all(row[name] == value for name, value in values.items()))


@pytest.fixture(scope="module")
def noise() -> pd.DataFrame:
    return noisy()


# ---- the paper -------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", known("t27_"), ids=lambda row: row.id)
def test_a_row_of_table_27_follows_from_table_7(row: Any) -> None:
    alpha, beta = (one_exponent(printed(row.inputs[name])) for name in ("alpha", "beta"))
    answer = (alpha.median, alpha.low, alpha.high, alpha.lower + alpha.upper, beta.median)
    assert answer == pytest.approx(ast.literal_eval(row.recomputed))
    assert answer == pytest.approx(ast.literal_eval(row.expected), abs=0.006)


def test_medians_of_the_families_follow_from_table_7() -> None:
    table = pd.DataFrame(known("t7_rows")[0].inputs).rename(columns={0: "series", 4: "alpha", 6: "beta"})
    family = {"InternVL": table[table["series"].str.startswith("IVL")], "QwenVL": table[table["series"].str.startswith("Q")]}
    for row in known("med_"):
        _, name, exponent, *rest = row.id.split("_")
        one = one_exponent(printed(family[name][exponent].tolist()))
        value = one.median_all if rest == ["all"] or row.id == "med_InternVL_alpha" else one.median
        assert value == pytest.approx(float(row.recomputed)), row.id
        assert value == pytest.approx(float(row.expected), abs=0.006), row.id


def test_alpha_is_larger_in_as_many_groups_as_table_17_counts() -> None:
    rows = known("t7_rows")[0].inputs
    both = balance(printed([row[4] for row in rows]), printed([row[6] for row in rows]))
    assert both.alpha_greater == int(known("order_ab")[0].expected)
    assert both.beta_greater == 13


def task_fits(identity: str) -> tuple[Exponents, Exponents, list[list[Any]]]:
    rows = known(identity)[0].inputs
    alpha = printed([row[3] for row in rows], [row[5] == "a" for row in rows])
    return alpha, printed([row[4] for row in rows], [row[5] == "b" for row in rows]), rows


def test_ratios_of_the_task_fits_follow_from_table_19() -> None:
    alpha, beta, _ = task_fits("t19_Q")
    both = balance(alpha, beta)
    assert f"{both.both_interior}, {both.ratio_median:.4f}, {both.interior_alpha_greater}" == known("t19_Q")[0].recomputed
    alpha, beta, _ = task_fits("t19_I")
    both = balance(alpha, beta)
    assert (both.both_interior, both.interior_beta_greater) == (11, 10)
    assert both.ratio_median == pytest.approx(0.0395, abs=0.0002)
    assert one_exponent(beta).upper == 12


def test_a_fit_without_amplitude_of_n_says_nothing_of_the_ratio() -> None:
    alpha, beta, rows = task_fits("t19_Q")
    undetermined = np.array([row[:3] == ["Q2.5", "V", "DA"] for row in rows])
    without = balance(Exponents(value=np.where(undetermined, np.nan, alpha.value), bound=alpha.bound), beta)
    assert without.both_interior == 12
    assert without.ratio_median == pytest.approx(float(known("t19_drop")[0].recomputed), abs=0.003)
    assert one_exponent(Exponents(value=np.where(undetermined, np.nan, alpha.value), bound=alpha.bound)).undetermined == 1


@pytest.mark.parametrize(("identity", "place"), [("t19_Q", 0), ("t19_I", 1)])
def test_ratios_of_the_reasoning_fits_follow_from_table_19(identity: str, place: int) -> None:
    alpha, beta, rows = task_fits(identity)
    reasoning = np.array([row[2] in {"R", "RP"} for row in rows])
    expected = float(known("t19_reasoning")[0].recomputed.split(" / ")[place].split()[0])
    assert balance(alpha.take(reasoning), beta.take(reasoning)).ratio_median == pytest.approx(expected, rel=0.002)


def test_nothing_to_summarise_gives_no_numbers() -> None:
    one = one_exponent(printed([]))
    assert (one.interior, one.undetermined) == (0, 0)
    assert np.isnan([one.median, one.low, one.high, one.median_all]).all()
    assert np.isnan(balance(printed([]), printed([])).ratio_median)


# ---- planted studies -------------------------------------------------------------------------------


def test_group_exponents_are_those_of_law(noise: pd.DataFrame) -> None:
    result, law = found(noise, floor="continuous"), answer(noise, floor="continuous")
    rows = [row for row in result.tables["estimates"].rows() if row["level"] == "group"]
    for one, other in zip(rows, law.tables["fits"].rows(), strict=True):
        assert [one[name] for name in ("series", "suite", "alpha", "beta", "n", "status")] == [
            other[name] for name in ("series", "suite", "alpha", "beta", "n", "status")
        ]


def test_summaries_equal_pandas_over_the_estimates(noise: pd.DataFrame) -> None:
    result = found(noise)
    estimates = result.tables["estimates"].df()
    for level, task in (("group", None), ("subset", None), ("subset", "reasoning")):
        for family in ("Alpha", "Beta"):
            some = estimates[(estimates["level"] == level) & (estimates["family"] == family)]
            key = {"level": level, "by": "family", "value": family}
            if task:
                some = some[some["task"] == task]
                key |= {"by": "family x task", "value": f"{family} x {task}"}
            for name in ("alpha", "beta"):
                row = part(result, "exponents", exponent=name, **key)
                interior = some[name][some[f"{name}_bound"].isna() & some[name].notna()]
                assert row["fits"] == len(some) > 0
                assert row["interior"] == len(interior)
                assert row["at_upper"] == (some[f"{name}_bound"] == "upper").sum()
                assert row["at_lower"] == (some[f"{name}_bound"] == "lower").sum()
                assert row["median_all"] == pytest.approx(some[name].median())
                if len(interior):
                    assert (row["median"], row["min"], row["max"]) == pytest.approx((interior.median(), interior.min(), interior.max()))
            row = part(result, "ratios", **key)
            assert row["both_interior"] == some["ratio"].notna().sum()
            assert row["alpha_greater"] == (some["alpha"] > some["beta"]).sum()
            if row["both_interior"]:
                assert row["ratio_median"] == pytest.approx((some["alpha"] / some["beta"])[some["ratio"].notna()].median())


def test_subsets_are_fits_of_their_own_questions(noise: pd.DataFrame) -> None:
    result = found(noise, split="task")
    law = answer(noise, by=("series", "suite", "task"))
    subsets = [row for row in result.tables["estimates"].rows() if row["level"] == "subset"]
    assert len(subsets) == 8
    for row in law.tables["fits"].rows():
        one = part(result, "estimates", level="subset", series=row["series"], suite=row["suite"], task=row["task"])
        assert (one["alpha"], one["beta"]) == pytest.approx((row["alpha"], row["beta"]), rel=1e-6)


def test_headline_counts_what_the_tables_hold(noise: pd.DataFrame) -> None:
    result = found(noise)
    headline = result.headline
    assert (headline["group_fits"], headline["subset_fits"]) == (4, 8)
    assert headline["alpha_median_Alpha"] == part(result, "exponents", level="group", value="Alpha", exponent="alpha")["median"]
    assert headline["ratio_median_Beta"] == part(result, "ratios", level="subset", value="Beta")["ratio_median"]
    for name in result.charts:
        assert "Alpha" in svg(result.charts[name])


def test_fits_of_groups_alone_need_no_labels(noise: pd.DataFrame) -> None:
    unlabelled = noise.assign(task=None, category=None)
    result = found(unlabelled)
    assert "no question has a task or a category to split by: fits of whole groups alone" in result.warnings
    assert {row["level"] for row in result.tables["estimates"].rows()} == {"group"}
    quiet = found(noise, split="none")
    assert quiet.warnings == ()
    assert quiet.tables["exponents"].rows() == result.tables["exponents"].rows()


def test_an_exponent_without_effect_is_undetermined_in_every_summary() -> None:
    laws = {("A", "S"): PlantedLaw(a=0.0, b=0.05), ("B", "S"): PlantedLaw(b=0.05)}
    result = found(planted_cells(laws), split="none", floor="continuous")
    row = part(result, "exponents", by="all", exponent="alpha")
    assert (row["fits"], row["interior"], row["undetermined"], row["median_all"]) == (2, 1, 1, pytest.approx(0.4, abs=1e-4))
    assert part(result, "ratios", by="all")["both_interior"] == 1
    assert result.warnings == ("A x S: A_n = 0: alpha is not determined",)


def test_a_study_without_any_fit_is_an_error_that_says_what_would_help(noise: pd.DataFrame) -> None:
    with pytest.raises(AnalysisError, match=r"no group can be fitted: .*lack visual_tokens") as caught:
        found(noise.assign(visual_tokens=None))
    assert "visual_tokens" in str(caught.value.hint)


def test_an_empty_cohort_is_an_error(noise: pd.DataFrame) -> None:
    with pytest.raises(AnalysisError, match="no scored answer"):
        found(noise, where="series = 'nobody'")
