"""Token sweeps: the paper's numbers from its counts, every statistic by a second route, and sweeps that are none."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests

import tracker
from analyses import paired_bootstrap
from analyses.paired_bootstrap import bootstrap_intervals, bootstrap_means
from analyses.plot import save_plot
from analyses.sweep import Parameters, run
from analyses.sweep.settings import lowest_quality, quality_name
from tests.analyses.known import known
from tests.analyses.planted import session
from tests.analyses.sweeps import paired_credits, sweep_rows
from tracker.errors import AnalysisError

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt

    from analyses.result import Result

CAPS = (1, 4, 12, 36)
BENCHMARKS = {"HR-Bench": 40, "V*Bench": 57}


def answer(frame: pd.DataFrame, **options: Any) -> Result:
    options.setdefault("draws", 200)
    return run(session(frame), Parameters(**options))


def one(result: Result, table: str, **where: Any) -> dict[str, Any]:
    """The only row of a table that has these values."""
    rows = [row for row in result.tables[table].rows() if all(row[name] == value for name, value in where.items())]
    assert len(rows) == 1, rows
    return rows[0]


def credits_of(seed: int, n: int, slopes: dict[str | None, float], settings: int = len(CAPS)) -> dict[str | None, npt.NDArray[np.float64]]:
    rng = np.random.default_rng(seed)
    ease = rng.normal(0, 1.5, n)
    return {
        quality: (rng.random((settings, n)) < 1 / (1 + np.exp(-(ease + slope * np.arange(settings)[:, None])))).astype(float)
        for quality, slope in slopes.items()
    }


def factorial(seed: int = 0, **options: Any) -> pd.DataFrame:
    """A model under four tile limits and three source qualities on two benchmarks, and a second model under pixel caps."""
    frames, first = [], 0
    for place, (benchmark, n) in enumerate(BENCHMARKS.items()):
        credit = credits_of(seed + place, n, {None: 0.8, "1024 px": 0.5, "224 px": 0.2})
        frames.append(sweep_rows("Tiles-8B", benchmark, credit, settings=CAPS, first_question=first, per_image=2, **options))
        plain = credits_of(seed + 10 + place, n, {None: 0.4}, settings=3)
        frames.append(
            sweep_rows(
                "Pixels-8B", benchmark, plain, knob="pixel_cap", settings=(50, 100, 200), first_question=first, per_image=2, **options
            )
        )
        first += n
    return pd.concat(frames, ignore_index=True)


def wide(frame: pd.DataFrame, **where: Any) -> pd.DataFrame:
    """Credits of some answers: a row per question, a column per run."""
    for name, value in where.items():
        frame = frame[frame[name].isna()] if value is None else frame[frame[name] == value]
    return frame.pivot_table(index="question_key", columns=["max_tiles"], values="credit").sort_index()


# ---- the paper's numbers -------------------------------------------------------------------------


@pytest.mark.parametrize("row", known("sweep_Q") + known("sweep_Intern"), ids=lambda row: row.id)
def test_printed_holm_p_come_from_reconstructed_answers(row: Any) -> None:
    n, wins, losses = row.inputs["n"], row.inputs["wins"], row.inputs["losses"]
    result = answer(sweep_rows("M-8B", "B", {None: paired_credits(n, wins, losses)}))
    gain = one(result, "gains")
    assert (gain["wins"], gain["losses"], gain["questions"]) == (wins, losses, n)
    assert gain["gain"] == pytest.approx(100 * (wins - losses) / n)
    assert gain["p"] * row.inputs["holm"] == pytest.approx(float(row.expected), rel=6e-3)
    exact = one(answer(sweep_rows("M-8B", "B", {None: paired_credits(n, wins, losses)}), test="mcnemar"), "gains")
    note = float(row.note.rsplit(" ", 1)[1])
    assert exact["p"] * row.inputs["holm"] == pytest.approx(note, rel=6e-3)


def v_star() -> pd.DataFrame:
    """191 questions whose counts give Table 28 and D.2's factorial on V* Bench."""
    n, native_low, native_high, low_low, low_high = 191, 102, 160, 88, 101
    low, high = np.zeros(n), np.zeros(n)
    high[:native_high] = 1
    low[:100] = 1
    low[native_high : native_high + 2] = 1
    reduced_high, reduced_low = np.zeros(n), np.zeros(n)
    reduced_high[:98] = 1
    reduced_high[native_high : native_high + 3] = 1
    reduced_low[:low_low] = 1
    assert (low.sum(), high.sum(), reduced_low.sum(), reduced_high.sum()) == (native_low, native_high, low_low, low_high)
    return sweep_rows("InternVL3.5-8B", "V*Bench", {None: np.stack([low, high]), "224": np.stack([reduced_low, reduced_high])})


def test_the_factorial_on_v_star_gives_the_printed_points() -> None:
    result = answer(v_star())
    printed = [float(text) for text in known("sweep_gains")[0].expected.split()]
    gain, effect, interaction = printed[0], printed[3], printed[2]
    assert one(result, "gains", source_quality="native")["gain"] == pytest.approx(gain, abs=0.005)
    assert one(result, "gains", source_quality="224")["gain"] == pytest.approx(6.81, abs=0.005)
    row = one(result, "interactions")
    assert row["interaction"] == pytest.approx(interaction, abs=0.005)
    assert row["gain_higher"] - row["gain_lower"] == pytest.approx(row["interaction"])
    quality = one(result, "quality")
    assert quality["effect"] == pytest.approx(effect, abs=0.005)
    assert (quality["accuracy_higher"], quality["accuracy_lower"]) == pytest.approx((83.77, 52.88), abs=0.005)
    assert (quality["wins"], quality["losses"]) == (62, 3)
    accuracies = [row["accuracy"] for row in result.tables["curve"].rows()]
    assert accuracies == pytest.approx([53.40, 83.77, 46.07, 52.88], abs=0.005)
    (expected,) = known("sweep_quality")
    assert quality["p"] * expected.inputs["holm"] == pytest.approx(float(expected.expected), rel=6e-3)


def test_the_family_has_a_gain_per_sweep_and_two_tests_per_factorial() -> None:
    frame = factorial()
    result = answer(frame)
    rows = [row for name in ("gains", "interactions", "quality") for row in result.tables[name].rows()]
    family = [row for row in rows if row["holm_p"] is not None]
    assert len(family) == result.headline["tests"] == 4 + 2 + 2
    assert {row["source_quality"] for row in result.tables["gains"].rows() if row["holm_p"] is not None} == {"native"}
    assert {row["lower_quality"] for row in result.tables["quality"].rows() if row["holm_p"] is not None} == {"224 px"}
    np.testing.assert_allclose([row["holm_p"] for row in family], multipletests([row["p"] for row in family], method="holm")[1])


def test_the_lower_quality_of_the_family_may_be_named() -> None:
    result = answer(factorial(), lower="1024 px")
    assert {row["lower_quality"] for row in result.tables["interactions"].rows() if row["holm_p"] is not None} == {"1024 px"}


# ---- second routes -------------------------------------------------------------------------------


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_gains_interactions_and_quality_effects_equal_pandas_and_scipy(benchmark: str) -> None:
    frame = factorial(3)
    result = answer(frame)
    by_quality = {q: wide(frame, model="Tiles-8B", benchmark=benchmark, source_quality=q) for q in (None, "1024 px", "224 px")}
    for quality, table in by_quality.items():
        row = one(result, "gains", model="Tiles-8B", benchmark=benchmark, source_quality=quality_name(quality))
        differences = table[36] - table[1]
        assert row["gain"] == pytest.approx(100 * differences.mean())
        assert row["p"] == pytest.approx(stats.ttest_rel(table[36], table[1]).pvalue, rel=1e-9)
        assert (row["accuracy_from"], row["accuracy_to"]) == pytest.approx((100 * table[1].mean(), 100 * table[36].mean()))
        assert (row["tokens_from"], row["tokens_to"]) == (256, 256 * 36)
    for lower in ("1024 px", "224 px"):
        native, low = by_quality[None], by_quality[lower]
        both = (native[36] - native[1]) - (low[36] - low[1])
        row = one(result, "interactions", benchmark=benchmark, lower_quality=lower)
        assert row["interaction"] == pytest.approx(100 * both.mean())
        assert row["p"] == pytest.approx(stats.ttest_1samp(both, 0).pvalue, rel=1e-9)
        row = one(result, "quality", benchmark=benchmark, lower_quality=lower)
        assert row["effect"] == pytest.approx(100 * (native[36] - low[36]).mean())
        assert row["p"] == pytest.approx(stats.ttest_rel(native[36], low[36]).pvalue, rel=1e-9)


def test_mcnemar_is_that_of_statsmodels_and_a_sign_test_for_interactions() -> None:
    frame = factorial(4)
    result = answer(frame, test="mcnemar")
    native, low = (wide(frame, model="Tiles-8B", benchmark="V*Bench", source_quality=q) for q in (None, "224 px"))
    table = pd.crosstab(native[1], native[36]).reindex(index=[0.0, 1.0], columns=[0.0, 1.0], fill_value=0)
    row = one(result, "gains", model="Tiles-8B", benchmark="V*Bench", source_quality="native")
    assert row["p"] == pytest.approx(mcnemar(table, exact=True).pvalue)
    both = (native[36] - native[1]) - (low[36] - low[1])
    row = one(result, "interactions", benchmark="V*Bench", lower_quality="224 px")
    assert row["p"] == pytest.approx(stats.binomtest(int((both > 0).sum()), int((both != 0).sum())).pvalue)


def test_bootstrap_means_equal_loops_over_the_drawn_clusters() -> None:
    rng = np.random.default_rng(1)
    cluster = np.array([5, 5, 7, 9, 9, 9, 2, 11])
    values = rng.integers(-1, 2, (8, 3)).astype(float)
    found = bootstrap_means(cluster, values, draws=50, seed=(3, 4))
    names = sorted(set(cluster.tolist()))
    drawn = np.random.default_rng([3, 4]).integers(0, len(names), (50, len(names)))
    for draw in range(50):
        rows = [row for name in drawn[draw] for row in np.flatnonzero(cluster == names[name])]
        np.testing.assert_allclose(found[draw], values[rows].mean(axis=0), rtol=1e-12, atol=1e-15)


def test_the_size_of_chunks_changes_no_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(0).normal(size=(30, 2))
    whole = bootstrap_means(np.arange(30) // 2, values, draws=101, seed=(1,))
    monkeypatch.setattr(paired_bootstrap, "CHUNK", 100)
    np.testing.assert_array_equal(whole, bootstrap_means(np.arange(30) // 2, values, draws=101, seed=(1,)))


def test_intervals_are_near_those_of_scipy() -> None:
    values = np.random.default_rng(2).choice([-1.0, 0.0, 1.0], 150, p=[0.1, 0.6, 0.3])
    low, high = bootstrap_intervals(np.arange(150), values[:, None], draws=20_000, seed=(9,))[:, 0]
    theirs = stats.bootstrap((values,), np.mean, method="percentile", n_resamples=20_000, rng=np.random.default_rng(1)).confidence_interval
    assert (low, high) == pytest.approx((theirs.low, theirs.high), abs=0.007)


def test_questions_of_an_image_are_drawn_together() -> None:
    values = np.repeat(np.random.default_rng(3).choice([-1.0, 1.0], 40), 5)[:, None]
    alone = np.ptp(bootstrap_intervals(np.arange(200), values, draws=2000, seed=(1,)))
    together = np.ptp(bootstrap_intervals(np.arange(200) // 5, values, draws=2000, seed=(1,)))
    assert together > 1.8 * alone


def test_intervals_stand_around_the_gain_and_follow_the_seed() -> None:
    frame = factorial(5)
    row = one(answer(frame), "gains", model="Pixels-8B", benchmark="V*Bench")
    assert row["gain_low"] <= row["gain"] <= row["gain_high"]
    assert answer(frame).envelope()["tables"] == answer(frame).envelope()["tables"]
    assert one(answer(frame, seed=1), "gains", model="Pixels-8B", benchmark="V*Bench")["gain_low"] != row["gain_low"]
    assert one(answer(frame, draws=0), "gains", model="Pixels-8B", benchmark="V*Bench")["gain_low"] is None


def test_neither_ids_nor_the_order_of_rows_change_a_digit() -> None:
    frame = factorial(6)
    shuffled = frame.sample(frac=1, random_state=1).assign(
        configuration_id=lambda rows: 2**41 - rows["configuration_id"],
        run_id=lambda rows: 2**41 - rows["run_id"],
        question_id=lambda rows: 10_000 - rows["question_id"],
    )
    assert answer(frame).envelope()["tables"] == answer(shuffled, workers=1).envelope()["tables"]


# ---- what is a sweep -----------------------------------------------------------------------------


def test_only_questions_that_every_setting_answered_count() -> None:
    credit = credits_of(7, 30, {None: 0.5})[None]
    credit[1, 4], credit[3, 9] = np.nan, np.nan
    result = answer(sweep_rows("M-8B", "B", {None: credit}, settings=CAPS))
    kept = [place for place in range(30) if place not in (4, 9)]
    row = one(result, "gains")
    assert row["questions"] == 28
    assert row["gain"] == pytest.approx(100 * (credit[3, kept] - credit[0, kept]).mean())
    assert one(result, "curve", setting=4)["left_out"] == 2
    assert any("M-8B x B (max_tiles) 2 of 30" in text for text in result.warnings)


def test_superseded_attempts_are_left_out_and_repetitions_averaged() -> None:
    frame = sweep_rows("M-8B", "B", {None: paired_credits(20, 8, 2)})
    old = frame[(frame["max_tiles"] == 36)].assign(attempt=0, counts=False, credit=0.0)
    again = frame[(frame["max_tiles"] == 36)].assign(repetition=1, credit=0.0)
    result = answer(pd.concat([frame.assign(attempt=1, counts=True, repetition=0), old, again.assign(attempt=0, counts=True)]))
    credit = paired_credits(20, 8, 2)
    assert one(result, "gains")["gain"] == pytest.approx(100 * (credit[1] / 2 - credit[0]).mean())


def test_tokens_and_not_the_knob_order_the_ends() -> None:
    tokens = {None: np.array([[900.0] * 20, [100.0] * 20])}
    row = one(answer(sweep_rows("M-8B", "B", {None: paired_credits(20, 8, 2)}, tokens=tokens)), "gains")
    assert (row["setting_from"], row["setting_to"], row["tokens_from"]) == (36, 1, 100)
    assert row["gain"] == pytest.approx(-30.0)


def test_settings_that_differ_in_two_knobs_are_two_sweeps() -> None:
    frames = [sweep_rows("M-8B", "B", {None: paired_credits(20, 8, k)}, max_new_tokens=16 * (k + 1), settings=(1, 36)) for k in range(2)]
    result = answer(pd.concat(frames))
    assert sorted(row["settings"] for row in result.tables["gains"].rows()) == [
        f"input_mode=native, max_new_tokens={16 * k}" for k in (1, 2)
    ]


def test_input_size_is_swept_where_no_model_sweeps_a_knob_or_by_request() -> None:
    grid = sweep_rows("G-8B", "B", {None: paired_credits(20, 8, 2)}, knob="input_size", settings=(224, 448), max_tiles=12)
    assert one(answer(grid), "gains")["axis"] == "input_size"
    both = pd.concat([grid.assign(input_mode="fixed"), sweep_rows("M-8B", "B", {None: paired_credits(20, 8, 2)})])
    assert one(answer(both), "gains")["model"] == "M-8B"
    assert one(answer(both, axis="input_size"), "gains")["model"] == "G-8B"


def test_runs_that_do_not_state_the_knob_are_left_out_and_named() -> None:
    frame = sweep_rows("M-8B", "B", {None: paired_credits(20, 8, 2)})
    silent = frame[frame["max_tiles"] == 1].assign(max_tiles=None, configuration_id=1, run_id=1)
    result = answer(pd.concat([frame, silent]))
    assert one(result, "gains")["setting_from"] == 1
    assert any("1 runs that do not state max_tiles" in text for text in result.warnings)


def test_source_qualities_are_ordered_by_the_number_in_their_name() -> None:
    assert lowest_quality(["1024 px", "224 px", "blurred"]) == "224 px"
    assert lowest_quality(["blurred", "ash"]) == "ash"
    assert lowest_quality([]) is None
    assert [quality_name(value) for value in (None, "Native", "original", "224 px")] == ["native", "native", "native", "224 px"]


def test_equal_tokens_at_every_quality_are_counted_and_others_warned_of() -> None:
    frame = factorial(8)
    result = answer(frame)
    assert [row["share"] for row in result.tables["tokens"].rows()] == [1.0, 1.0]
    assert one(result, "tokens", benchmark="HR-Bench")["combinations"] == 4 * 40
    assert result.headline["identical_tokens"] == 1.0
    some = (frame["source_quality"] == "224 px") & (frame["max_tiles"] == 12) & (frame["question_key"] == "q0003")
    frame.loc[some, "visual_tokens"] += 1
    result = answer(frame)
    assert one(result, "tokens", benchmark="HR-Bench")["identical"] == 159
    assert any("Tiles-8B x HR-Bench" in text and "1 of 160" in text for text in result.warnings)


def test_a_quality_without_the_end_points_is_not_compared() -> None:
    frame = factorial(9)
    frame = frame[~((frame["source_quality"] == "224 px") & (frame["max_tiles"] == 36))]
    result = answer(frame)
    assert {row["lower_quality"] for row in result.tables["interactions"].rows()} == {"1024 px"}
    assert any("224 px has no common end points" in text for text in result.warnings)


# ---- data that cannot carry it -------------------------------------------------------------------


def test_a_cohort_without_a_sweep_is_refused() -> None:
    frame = sweep_rows("M-8B", "B", {None: paired_credits(20, 8, 2)})
    with pytest.raises(AnalysisError, match="one knob alone"):
        answer(frame[frame["max_tiles"] == 1])
    with pytest.raises(AnalysisError, match="no scored answer"):
        answer(frame, where="model = 'none'")


def test_sweeps_that_sweep_nothing_are_named_and_the_others_tested() -> None:
    fine = sweep_rows("M-8B", "Fine", {None: paired_credits(20, 8, 2)})
    same = sweep_rows("M-8B", "Same", {None: paired_credits(20, 8, 2)}, tokens={None: np.full((2, 20), 256.0)}, first_question=100)
    apart = paired_credits(20, 8, 2)
    apart[0, :10], apart[1, 10:] = np.nan, np.nan
    result = answer(pd.concat([fine, same, sweep_rows("M-8B", "Apart", {None: apart}, first_question=200)]))
    assert one(result, "gains")["benchmark"] == "Fine"
    assert any("Same" in text and "same visual tokens" in text for text in result.warnings)
    assert any("Apart" in text and "nothing to compare" in text for text in result.warnings)


def test_missing_tokens_leave_the_order_to_the_knob() -> None:
    result = answer(sweep_rows("M-8B", "B", {None: paired_credits(20, 8, 2)}, tokens={None: np.full((2, 20), np.nan)}))
    row = one(result, "gains")
    assert (row["setting_from"], row["setting_to"], row["tokens_from"]) == (1, 36, None)
    assert any("visual_tokens missing" in text for text in result.warnings)


def test_differences_that_are_all_alike_have_no_t_test() -> None:
    every = np.stack([np.zeros(6), np.ones(6)])
    frame = sweep_rows("M-8B", "B", {None: every})
    result = answer(frame)
    assert (one(result, "gains")["p"], one(result, "gains")["holm_p"]) == (None, None)
    assert any("M-8B x B" in text and "mcnemar" in text for text in result.warnings)
    assert one(answer(frame, test="mcnemar"), "gains")["p"] == pytest.approx(2 / 2**6)
    none = answer(sweep_rows("M-8B", "B", {None: np.ones((2, 6))}))
    assert (one(none, "gains")["gain"], one(none, "gains")["p"]) == (0.0, 1.0)


def test_a_single_question_is_not_compared() -> None:
    result = answer(sweep_rows("M-8B", "B", {None: np.array([[0.0], [1.0]])}))
    assert len(result.tables["gains"]) == 0
    assert result.headline["largest_gain"] is None
    assert not result.charts


def test_a_native_table_of_a_sweep_gives_the_same_numbers(tmp_path: Path) -> None:
    frame = factorial(12)
    columns = ["model", "benchmark", "image_key", "input_mode", "max_tiles", "pixel_cap", "source_quality", "visual_tokens"]
    table = frame[columns].assign(question_id=frame["question_key"], correct=frame["credit"] > 0)
    rows = [{name: value for name, value in row.items() if value == value and value is not None} for row in table.to_dict("records")]  # noqa: PLR0124 - NaN
    for row in rows:
        row.update({name: int(row[name]) for name in ("max_tiles", "pixel_cap") if name in row})
    path = tmp_path / "runs" / "sweep.jsonl"
    path.parent.mkdir()
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    with tracker.open(str(tmp_path / "trackr.db")) as opened:
        opened.ingest(path.parent)
        stored = run(opened.session(), Parameters(draws=200))
    planted = answer(frame)
    for name in ("gains", "interactions", "quality", "tokens"):
        mine, theirs = ([without(row) for row in result.tables[name].rows()] for result in (planted, stored))
        assert mine == theirs
    assert planted.headline == stored.headline


def without(row: dict[str, Any]) -> dict[str, Any]:
    """A row without the settings that a planted session does not have."""
    return {name: value for name, value in row.items() if name != "settings"}


def test_charts_are_drawn(tmp_path: Path) -> None:
    save_plot(answer(factorial(11)), tmp_path / "sweep.svg")
    text = (tmp_path / "sweep.svg").read_text()
    assert "Pixels-8B" in text
    assert "224 px" in text
