"""Floors by task: subsets, points and fits by loops over the answers, summaries by the paper's numbers, and data that cannot carry a fit."""

from __future__ import annotations

from collections import defaultdict
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from analyses.cells import CellParameters, study_of_cells
from analyses.floors import Parameters, run
from analyses.floors.analysis import high, means_table, near_zero, tasks_table
from analyses.laws import SeparableLaw
from analyses.plot import save_plot
from tests.analyses.known import known
from tests.analyses.planted import PlantedLaw, planted_cells, session
from tracker.errors import AnalysisError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    import pandas as pd

    from analyses.result import Result

LABELS = {
    "HR-Bench": [("perception", "cross"), ("perception", "single")],
    "MME-RealWorld": [("perception", f"P{i}") for i in range(3)] + [("reasoning", f"R{i}") for i in range(2)],
    "TreeBench": [("perception", f"T{i}") for i in range(3)] + [("reasoning", f"U{i}") for i in range(2)],
    "V*Bench": [("perception", "direct_attributes"), ("reasoning", "relative_position")],
}
SUBSETS = {
    ("HR-Bench", "cross", "perception"),
    ("HR-Bench", "single", "perception"),
    ("MME-RealWorld", "perception", "perception"),
    ("MME-RealWorld", "reasoning", "reasoning"),
    ("TreeBench", "perception", "perception"),
    ("TreeBench", "reasoning", "reasoning"),
    ("V*Bench", "direct_attributes", "perception"),
    ("V*Bench", "relative_position", "reasoning"),
}
SIZES = (1.0, 3.0, 8.0, 20.0)


def labelled(
    series: Iterable[str] = ("A", "B"), *, noise: float = 0.05, suites: Iterable[str] = tuple(LABELS), seed: int = 0
) -> pd.DataFrame:
    """Answers with the labels of the paper's suites; each question's credit is off by its own and some noise."""
    rng = np.random.default_rng(seed)
    laws = {
        (name, suite): PlantedLaw(e=0.1 + 0.05 * place, a=0.05, alpha=0.3 + 0.1 * place, b=0.06, beta=0.4)
        for name in series
        for place, suite in enumerate(suites)
    }
    frame = planted_cells(laws, questions=30, sizes=SIZES, input_sizes=(224, 448, 896, 1344))
    number = frame["question_key"].str[1:].astype(int).to_numpy()
    pairs = [LABELS[suite][one % len(LABELS[suite])] for suite, one in zip(frame["suite"], number, strict=True)]
    frame["task"], frame["category"] = [task for task, _ in pairs], [category for _, category in pairs]
    frame["visual_tokens"] += number % 7
    frame["credit"] = np.clip(frame["credit"] + 0.02 * (number % 5 - 2) + noise * rng.standard_normal(len(frame)), 0, 1)
    return frame


def answer(frame: pd.DataFrame, **options: Any) -> Result:
    return run(session(frame), Parameters(**options))


def fits(result: Result) -> dict[tuple[str, ...], dict[str, Any]]:
    return {(row["series"], row["suite"], row["subset"]): row for row in result.tables["fits"].rows()}


def points(frame: pd.DataFrame, *, category: bool) -> tuple[list[float], list[float], list[float]]:
    """N (billions), R and error of each configuration (and category) of some answers, by loops."""
    groups: dict[tuple[Any, ...], list[tuple[float, float, float]]] = defaultdict(list)
    for row in frame.to_dict("records"):
        key = (row["configuration_id"], row["benchmark"], row["category"] if category else None)
        groups[key].append((row["parameters"] / 1e9, row["visual_tokens"], 1 - row["credit"]))
    n, r, error = ([fmean(one[place] for one in rows) for rows in groups.values()] for place in range(3))
    return n, r, error


# ---- subsets and points --------------------------------------------------------------------------


def test_the_paper_s_labels_give_eight_subsets_per_series() -> None:
    result = answer(labelled())
    assert {(row["suite"], row["subset"], row["task"]) for row in result.tables["fits"].rows()} == SUBSETS
    assert result.headline["fits"] == 16


@pytest.mark.parametrize(
    ("split", "expected"),
    [
        ("task", {"perception", "reasoning"}),
        ("category", {category for pairs in LABELS.values() for _, category in pairs}),
        ("both", {f"{task} / {category}" for pairs in LABELS.values() for task, category in pairs}),
    ],
)
def test_a_split_may_be_asked_for(split: str, expected: set[str]) -> None:
    assert set(answer(labelled(("A",)), split=split).tables["fits"].data["subset"]) == expected


def test_without_a_suite_to_split_by_the_subsets_are_tasks() -> None:
    assert set(answer(labelled(), by=("series",)).tables["fits"].data["subset"]) == {"perception", "reasoning"}


def test_a_further_label_splits_the_points_and_the_groups() -> None:
    frame = labelled(("A",), suites=("V*Bench",))
    rows = answer(frame, by=("suite", "domain")).tables["fits"].rows()
    number = {(row["domain"], row["subset"]) for row in rows}
    assert number == set(frame[["domain", "category"]].itertuples(index=False, name=None))
    assert {row["n"] for row in rows} == {16}
    some = frame[(frame["domain"] == "D1") & (frame["category"] == "direct_attributes")]
    fit = SeparableLaw(floor="grid").fit(*points(some, category=False))
    assert rows[0]["sse"] == pytest.approx(fit.objective, rel=1e-6)


@pytest.mark.parametrize(
    ("weighting", "fields"),
    [("paper", {"MME-RealWorld"}), ("pooled", set()), ("category", {"MME-RealWorld", "TreeBench", "HR-Bench", "V*Bench"})],
)
def test_points_are_configurations_or_configurations_times_categories(weighting: str, fields: set[str]) -> None:
    result = fits(answer(labelled(("A",)), weighting=weighting))
    for (_, suite, subset), row in result.items():
        categories = [c for t, c in LABELS[suite] if subset in (t, c)]
        assert row["n"] == 16 * (len(categories) if suite in fields else 1)


@pytest.mark.parametrize("weighting", ["paper", "pooled", "category"])
def test_a_fit_is_that_of_the_points_that_loops_make(weighting: str) -> None:
    frame = labelled()
    result = fits(answer(frame, weighting=weighting))
    for key in (("A", "MME-RealWorld", "perception"), ("B", "HR-Bench", "cross"), ("A", "TreeBench", "reasoning")):
        series, suite, subset = key
        some = frame[(frame["series"] == series) & (frame["suite"] == suite) & ((frame["task"] == subset) | (frame["category"] == subset))]
        by_category = weighting == "category" or (weighting == "paper" and suite == "MME-RealWorld")
        fit = SeparableLaw(floor="grid").fit(*points(some, category=by_category))
        row = result[key]
        assert row["e_inf"] == fit.parameters["e_inf"]
        assert row["sse"] == pytest.approx(fit.objective, rel=1e-6)
        assert (row["alpha"], row["beta"]) == pytest.approx((fit.parameters["alpha"], fit.parameters["beta"]), rel=1e-3)


def test_amplitudes_stand_at_the_reference_of_the_whole_cells() -> None:
    frame = labelled(("A",))
    store = session(frame)
    reference = study_of_cells(store, "law", CellParameters()).reference
    row = next(iter(fits(run(store, Parameters())).values()))
    pinned = next(iter(fits(run(store, Parameters(reference=reference))).values()))
    assert row == pinned


def test_noise_free_points_give_their_law_back() -> None:
    laws = {
        ("A", "X"): PlantedLaw(e=0.12, a=0.1, alpha=0.5, b=0.05, beta=0.7),
        ("B", "X"): PlantedLaw(e=0.3, a=0.02, alpha=1.1, b=0.05, beta=0.4),
    }
    result = answer(planted_cells(laws), floor="continuous", reference=(10.0, 1000.0))
    for (series, _, _), row in fits(result).items():
        law = laws[series, "X"]
        found = [row[name] for name in ("e_inf", "A_n", "alpha", "B_r", "beta")]
        assert found == pytest.approx([law.e, law.a, law.alpha, law.b, law.beta], abs=1e-5)


def test_neither_ids_nor_the_order_of_rows_change_a_digit() -> None:
    frame = labelled()
    shuffled = frame.sample(frac=1, random_state=3).assign(
        configuration_id=lambda rows: 7919 - rows["configuration_id"],
        run_id=lambda rows: 10_000 - rows["run_id"],
        question_id=lambda rows: 999 - rows["question_id"],
    )
    one, two = answer(frame).envelope(), answer(shuffled).envelope()
    assert one["tables"] == two["tables"]
    assert one["headline"] == two["headline"]


# ---- summaries -----------------------------------------------------------------------------------


def test_the_paper_s_series_means_give_its_pooled_means_and_gaps() -> None:
    row = known("t18")[0]
    series = ["InternVL2.5", "InternVL3", "InternVL3.5", "Qwen2.5-VL", "Qwen3-VL"]
    labels = [name for name in series for _ in range(8)]
    task = np.array((["perception"] * 5 + ["reasoning"] * 3) * 5, dtype=object)
    e_inf = np.concatenate([[p] * 5 + [r] * 3 for p, r in zip(row.inputs["P"], row.inputs["R"], strict=True)])
    table = means_table("series", labels, task, e_inf).rows()
    assert table[-1]["series"] == "pooled"
    assert (table[-1]["perception"], table[-1]["reasoning"]) == pytest.approx((0.073, 0.155), abs=5e-4)
    gaps = [float(text) for text in row.recomputed.split(";")[1].split()]
    assert [line["gap"] for line in table] == pytest.approx(gaps, abs=1e-6)


def test_tasks_count_floors_and_saturation_as_loops_do() -> None:
    result = answer(labelled(), floor_cutoff=0.1, saturation_cutoff=0.25)
    rows = result.tables["fits"].rows()
    for line in result.tables["tasks"].rows():
        some = [row["e_inf"] for row in rows if line["task"] in ("all", row["task"])]
        assert line["fits"] == len(some)
        assert line["mean_e_inf"] == pytest.approx(fmean(some))
        assert line["median_e_inf"] == pytest.approx(float(np.median(some)))
        assert line["floor_fits"] == sum(value <= 0.1 for value in some)
        assert line["saturation_fits"] == sum(round(value, 2) >= 0.25 for value in some)
        assert line["floor"] == pytest.approx(line["floor_fits"] / line["fits"])


def test_saturation_is_judged_after_rounding_and_floor_before() -> None:
    values = np.array([0.1951, 0.1949, 0.2, np.nan])
    assert high(values, 0.2).tolist() == [True, False, True, False]
    assert near_zero(np.array([0.01, 0.0104, 0.001, np.nan]), 0.01).tolist() == [True, False, True, False]


def test_summaries_of_no_fit_are_empty() -> None:
    nothing, flags = np.array([np.nan]), np.array([False])
    assert len(tasks_table(np.array(["x"], dtype=object), nothing, flags, flags)) == 0
    assert means_table("series", ["A"], np.array(["x"], dtype=object), nothing).rows()[0]["gap"] is None


# ---- data that cannot carry it -------------------------------------------------------------------


def test_groups_without_enough_to_fit_are_named_and_the_others_fitted() -> None:
    frame = labelled(("A", "B"), suites=("HR-Bench", "V*Bench"))
    some = frame["series"] == "B"
    frame.loc[some & (frame["category"] == "cross"), "credit"] = 0.25
    frame = frame[~(some & (frame["category"] == "relative_position") & (frame["input_size"] > 300))]
    result = answer(frame)
    rows = fits(result)
    assert rows["B", "HR-Bench", "cross"]["e_inf"] is None
    assert rows["B", "V*Bench", "relative_position"]["e_inf"] is None
    assert rows["B", "V*Bench", "direct_attributes"]["e_inf"] is not None
    assert result.headline["groups_without_fit"] == 2
    assert any("B x HR-Bench x cross" in text and "constant" in text for text in result.warnings)
    assert any("B x V*Bench x relative_position" in text for text in result.warnings)


def test_one_level_of_an_axis_leaves_its_exponent_and_the_floor_open() -> None:
    frame = labelled(("A",), suites=("HR-Bench",))
    frame["parameters"] = 8_000_000_000
    result = answer(frame)
    assert all(row["e_inf"] is None and row["alpha"] is None for row in result.tables["fits"].rows())
    assert result.headline["mean_e_inf"] is None
    assert any("one level of N" in text for text in result.warnings)


def test_floors_of_two_levels_are_shown_and_counted_in_no_summary() -> None:
    frame = labelled(("A", "B"), suites=("V*Bench",))
    result = answer(frame[(frame["series"] == "A") | frame["model"].isin(["B-1B", "B-8B"])])
    rows = fits(result)
    assert rows["B", "V*Bench", "direct_attributes"]["e_inf"] is not None
    assert rows["B", "V*Bench", "direct_attributes"]["floor"] is None
    assert "one of many solutions" in rows["B", "V*Bench", "direct_attributes"]["status"]
    assert (result.headline["fits"], result.headline["floors_undetermined"]) == (4, 2)
    assert result.headline["mean_e_inf"] == pytest.approx(fmean(row["e_inf"] for key, row in rows.items() if key[0] == "A"))
    assert [row["fits"] for row in result.tables["series"].rows()] == [2, 0, 2]


def test_missing_tokens_and_parameters_are_named() -> None:
    frame = labelled(("A", "B"), suites=("V*Bench",))
    frame["visual_tokens"] = frame["visual_tokens"].astype(float)
    frame.loc[frame["series"] == "A", "visual_tokens"] = np.nan
    frame["parameters"] = frame["parameters"].astype(float)
    frame.loc[(frame["series"] == "B") & (frame["model"] == "B-1B"), "parameters"] = np.nan
    result = answer(frame)
    rows = fits(result)
    assert rows["A", "V*Bench", "direct_attributes"]["e_inf"] is None
    assert rows["B", "V*Bench", "direct_attributes"]["n"] == 12
    assert any("A x V*Bench" in text and "visual_tokens" in text for text in result.warnings)
    assert any("B x V*Bench" in text and "B-1B" in text for text in result.warnings)


def test_a_study_without_any_fit_is_an_error_that_says_what_would_help() -> None:
    with pytest.raises(AnalysisError, match=r"no group can be fitted: .*not fitted: the error is constant") as caught:
        answer(labelled(("A",)).assign(credit=0.5))
    assert "three sizes" in str(caught.value.hint)
    with pytest.raises(AnalysisError, match=r"no group can be fitted: .*lack visual_tokens"):
        answer(labelled(("A",)).assign(visual_tokens=None))


def test_questions_without_labels_are_left_out_and_counted() -> None:
    frame = labelled(("A",), suites=("HR-Bench", "TreeBench"))
    unlabelled = (frame["suite"] == "TreeBench") & (frame["question_key"].isin(["q3", "q4"]))
    frame.loc[unlabelled, ["task", "category"]] = None
    result = answer(frame)
    assert any(text.startswith("2 questions without a label") and "TreeBench" in text for text in result.warnings)
    with pytest.raises(AnalysisError, match="no question has a task or a category"):
        answer(frame.assign(task=None, category=None))


def test_an_empty_cohort_and_a_box_upside_down_are_refused() -> None:
    with pytest.raises(AnalysisError, match="no scored answer"):
        answer(labelled(("A",)), where="series = 'none'")
    with pytest.raises((UsageError, ValueError), match="lower first"):
        Parameters(box=(3.0, 1.0))


def test_charts_are_drawn(tmp_path: Path) -> None:
    result = answer(labelled())
    save_plot(result, tmp_path / "floors.svg")
    text = (tmp_path / "floors.svg").read_text()
    assert "relative_position" in text
    assert "pooled" in text
