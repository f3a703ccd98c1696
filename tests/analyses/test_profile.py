"""Regimes and dominant axes against plain loops over answers, and against the paper's Tables 35 and 36."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyses.grouping import Factor
from analyses.parameters import checked
from analyses.plot import figure, svg
from analyses.profile import Parameters, run
from analyses.profile.axes import N_DOMINATED, R_DOMINATED, TIED, dominant, level_means
from analyses.profile.tables import Profile, headline_of, largest_table, profiles_table, regimes_table, sizes_table
from tests.analyses import planted
from tests.analyses.known import known
from tests.analyses.planted import session
from tracker.errors import AnalysisError, UsageError

if TYPE_CHECKING:
    from analyses.result import Result

SUITES = {"HR": 1600, "MME": 1782, "TREE": 405, "V": 191}
FAMILIES = ("InternVL", "QwenVL")
SERIES = {"InternVL": 3, "QwenVL": 2}
AXES = {
    "HR": ((89.7, 6.7, 3.6), (63.0, 31.6, 5.5)),
    "MME": ((70.5, 20.7, 8.8), (40.4, 53.5, 6.1)),
    "TREE": ((88.5, 7.0, 4.5), (58.6, 35.9, 5.5)),
    "V": ((47.8, 38.5, 13.7), (22.6, 72.6, 4.9)),
}
"""Table 36, right half: N-dominated, R-dominated and tie among scaling_bound trajectories."""
ONE_SIZE = {"HR": (1007, 416)}


@pytest.fixture(scope="module")
def study() -> planted.PlantedSession:
    return planted.study(scale=0.04, seed=3)


@pytest.fixture(scope="module")
def result(study: planted.PlantedSession) -> Result:
    return run(study, Parameters())


def answers_of(store: planted.PlantedSession) -> list[dict[str, Any]]:
    relation = store.connection.execute("select * from answers")
    names = [column[0] for column in relation.description or ()]
    return [dict(zip(names, row, strict=True)) for row in relation.fetchall()]


def profiled(answers: list[dict[str, Any]], cutoff: float = 0.2, easy: float = 0.9) -> list[dict[str, Any]]:
    """Every trajectory by loops: repetitions averaged, then levels, then ranges."""
    cells: dict[Any, dict[Any, list[float]]] = defaultdict(lambda: defaultdict(list))
    about: dict[Any, dict[str, Any]] = {}
    for answer in answers:
        key = (answer["benchmark"], answer["question_key"], answer["series"])
        cells[key][answer["model"], answer["input_size"], answer["configuration_id"]].append(answer["credit"])
        about[key] = answer
    found = []
    for key, configurations in cells.items():
        means = {where: sum(credits_) / len(credits_) for where, credits_ in configurations.items()}
        accuracy = round(sum(means.values()) / len(means), 9)
        axes: list[dict[Any, list[float]]] = [defaultdict(list), defaultdict(list)]
        for (model, size, _), mean in means.items():
            axes[0][model].append(mean)
            axes[1][size].append(mean)
        levels = [{level: sum(values) / len(values) for level, values in axis.items()} for axis in axes]
        n, r = (max(values.values()) - min(values.values()) for values in levels)
        found.append(
            {
                "family": about[key]["family"],
                "suite": about[key]["suite"],
                "regime": "easy" if accuracy > easy else "ceiling_bound" if accuracy < cutoff else "scaling_bound",
                "axis": "tie" if abs(n - r) <= 1e-9 else "N_dominated" if n > r else "R_dominated",
                "sizes": len(levels[1]),
                "change": levels[1][max(levels[1])] - levels[1][min(levels[1])],
            }
        )
    return found


def share(rows: list[dict[str, Any]], name: str, value: str) -> float | None:
    return sum(row[name] == value for row in rows) / len(rows) if rows else None


def test_every_share_is_that_of_loops_over_the_answers(study: planted.PlantedSession, result: Result) -> None:
    trajectories = profiled(answers_of(study))
    for row in result.tables["regimes"].rows():
        own = [one for one in trajectories if one["suite"] == row["suite"]]
        assert row["trajectories"] == len(own)
        for regime in ("easy", "scaling_bound", "ceiling_bound"):
            assert row[regime] == pytest.approx(share(own, "regime", regime))
    for row, sizes, largest in zip(*(result.tables[name].rows() for name in ("profiles", "two_sizes", "largest_size")), strict=True):
        own = [one for one in trajectories if (one["family"], one["suite"]) == (row["family"], row["suite"])]
        moved = [one for one in own if one["regime"] == "scaling_bound"]
        several = [one for one in moved if one["sizes"] >= 2]
        assert (row["trajectories"], row["scaling_trajectories"]) == (len(own), len(moved))
        for axis in ("N_dominated", "R_dominated", "tie"):
            assert row[axis] == pytest.approx(share(moved, "axis", axis))
            assert sizes[axis] == pytest.approx(share(several, "axis", axis))
        assert (sizes["one_size"], sizes["two_sizes"]) == (len(moved) - len(several), len(several))
        changes = [one["change"] for one in moved if one["axis"] == "R_dominated"]
        assert largest["R_dominated_trajectories"] == len(changes)
        assert largest["less_accurate"] == sum(change < -1e-9 for change in changes)
        assert largest["equally_accurate"] == sum(abs(change) <= 1e-9 for change in changes)
        assert largest["more_accurate"] == sum(change > 1e-9 for change in changes)
    assert sum(row["one_size"] for row in result.tables["two_sizes"].rows() if row["suite"] != "HR-Bench") == 0
    assert result.headline["one_size"] == sum(row["one_size"] for row in result.tables["two_sizes"].rows()) > 0
    assert result.headline["N_dominated"] == pytest.approx(
        share([one for one in trajectories if one["regime"] == "scaling_bound"], "axis", "N_dominated")
    )


def test_cutoffs_move_the_regimes(study: planted.PlantedSession) -> None:
    result = run(study, Parameters(cutoff=0.3, easy=0.7))
    trajectories = profiled(answers_of(study), 0.3, 0.7)
    assert result.headline["scaling_bound"] == pytest.approx(share(trajectories, "regime", "scaling_bound"))


def factor(values: list[str]) -> Factor:
    names = sorted(set(values))
    return Factor(list(names), np.array([names.index(value) for value in values], dtype=np.int64))


def largest_remainder(shares: tuple[float, ...], total: int) -> list[int]:
    """Counts whose shares are nearest to the printed ones."""
    exact = [value / sum(shares) * total for value in shares]
    counts = [int(value) for value in exact]
    for place in sorted(range(len(shares)), key=lambda place: counts[place] - exact[place])[: total - sum(counts)]:
        counts[place] += 1
    return counts


@pytest.fixture(scope="module")
def paper() -> Profile:
    """Trajectories in the numbers of Table 36."""
    columns: dict[str, list[Any]] = {name: [] for name in ("regime", "axis", "sizes", "family", "suite")}
    for suite, questions in SUITES.items():
        for place, family in enumerate(FAMILIES):
            regimes = known(f"t35_{suite}")[0].inputs["t36"][place]
            easy, moved, bound = largest_remainder(tuple(regimes), questions * SERIES[family])
            axes = [axis for axis, count in enumerate(largest_remainder(AXES[suite][place], moved)) for _ in range(count)]
            one_size = ONE_SIZE.get(suite, (0, 0))[place]
            columns["regime"] += [0] * easy + [1] * moved + [2] * bound
            columns["axis"] += [N_DOMINATED] * easy + axes + [N_DOMINATED] * bound
            columns["sizes"] += [6] * easy + [1] * one_size + [6] * (moved - one_size) + [6] * bound
            columns["family"] += [family] * (easy + moved + bound)
            columns["suite"] += [suite] * (easy + moved + bound)
    arrays = {name: np.array(columns[name], dtype=np.int64) for name in ("regime", "axis", "sizes")}
    return Profile(
        **arrays,
        backbones=np.full(len(arrays["regime"]), 6),
        change=np.zeros(len(arrays["regime"])),
        family=factor(columns["family"]),
        by={"suite": factor(columns["suite"])},
    )


def test_table_35_follows_from_table_36(paper: Profile) -> None:
    rows = {row["suite"]: row for row in regimes_table(paper).rows()}
    for suite in SUITES:
        printed = [float(value) for value in known(f"t35_{suite}")[0].expected.strip("()").split(",")]
        assert [100 * rows[suite][name] for name in ("easy", "scaling_bound", "ceiling_bound")] == pytest.approx(printed, abs=0.1)
    overall = [float(value) for value in known("regime_overall")[0].expected.split("/")]
    headline = headline_of(paper)
    assert headline["trajectories"] == 19_890
    assert [100 * headline[name] for name in ("easy", "scaling_bound", "ceiling_bound")] == pytest.approx(overall, abs=0.1)


def test_table_36_and_the_check_on_two_sizes(paper: Profile) -> None:
    for row in profiles_table(paper).rows():
        shares = AXES[row["suite"]][FAMILIES.index(row["family"])]
        assert [100 * row[name] for name in ("N_dominated", "R_dominated", "tie")] == pytest.approx(shares, abs=0.15)
    printed_checks = [[float(value) for value in part.split("/")] for part in known("hr_two_sizes")[0].expected.split(";")]
    checks = [row for row in sizes_table(paper).rows() if row["suite"] == "HR"]
    assert [row["one_size"] for row in checks] == [1007, 416]
    for row, printed in zip(checks, printed_checks, strict=True):
        assert [100 * row[name] for name in ("N_dominated", "R_dominated", "tie")] == pytest.approx(printed, abs=0.15)
    assert [row["R_dominated_trajectories"] for row in largest_table(paper).rows() if (row["family"], row["suite"]) == ("QwenVL", "V")] == [
        193
    ]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4), st.sampled_from([0.0, 0.25, 0.5, 1.0])), max_size=40))
def test_level_means_are_those_of_loops(rows: list[tuple[int, int, float]]) -> None:
    trajectory, level, accuracy = (
        np.array([row[place] for row in rows], dtype=kind) for place, kind in ((0, np.int64), (1, np.int64), (2, float))
    )
    found = level_means(trajectory, level, accuracy, 5)
    for one in range(5):
        own: dict[int, list[float]] = defaultdict(list)
        for owner, at, value in rows:
            if owner == one:
                own[at].append(value)
        means = {at: sum(values) / len(values) for at, values in own.items()}
        assert found.number[one] == len(means)
        expected = (max(means.values()) - min(means.values()), means[min(means)], means[max(means)]) if means else (np.nan,) * 3
        assert (found.range[one], found.first[one], found.last[one]) == pytest.approx(expected, nan_ok=True)


def test_ranges_within_the_tolerance_are_a_tie() -> None:
    ranges = np.array([0.3, 0.3 + 5e-10, 0.3 + 5e-9, 0.2, np.nan])
    levels = [
        level_means(np.arange(5).repeat(2), np.tile([0, 1], 5), np.stack([np.zeros(5), r], axis=1).ravel(), 5)
        for r in (ranges, np.full(5, 0.3))
    ]
    assert dominant(*levels).tolist() == [TIED, TIED, N_DOMINATED, R_DOMINATED, -1]


def small(**changes: Any) -> pd.DataFrame:
    """Two questions, two models, two sizes: the first question follows the model, the second the size."""
    rows = [
        {
            "question_id": question, "question_key": f"q{question}", "benchmark": "B", "suite": "S", "series": "X", "family": "F",
            "model": f"X-{model}", "parameters": 10**9 * (model + 1), "configuration_id": 2 * model + size, "input_mode": "fixed",
            "input_size": 224 * (size + 1), "visual_tokens": 64, "credit": float((model, size)[question]),
        }
        for question in (0, 1)
        for model in (0, 1)
        for size in (0, 1)
    ]  # fmt: skip
    return pd.DataFrame(rows).assign(**changes)


def test_one_question_follows_the_model_and_one_the_size() -> None:
    (row,) = run(session(small()), Parameters()).tables["profiles"].rows()
    assert (row["family"], row["suite"], row["N_dominated"], row["R_dominated"], row["tie"]) == ("F", "S", 0.5, 0.5, 0.0)


def test_native_size_counts_for_regimes_and_for_no_axis() -> None:
    frame = small()
    native = frame[frame["input_size"] == 448].assign(
        configuration_id=lambda rows: rows["configuration_id"] + 10, input_mode="native", input_size=None, credit=1.0
    )
    result = run(session(pd.concat([frame, native], ignore_index=True)), Parameters())
    (row,) = result.tables["profiles"].rows()
    assert (row["N_dominated"], row["R_dominated"]) == (0.5, 0.5)
    assert any(warning.startswith("4 of 12 observations have no input size") for warning in result.warnings)


def test_models_without_parameters_are_levels_of_their_own() -> None:
    (row,) = run(session(small(parameters=None)), Parameters()).tables["profiles"].rows()
    assert (row["N_dominated"], row["R_dominated"]) == (0.5, 0.5)


def test_one_model_or_one_size_cannot_dominate_and_is_said() -> None:
    frame = small()
    one_model = run(session(frame[frame["model"] == "X-0"].assign(credit=[0.0, 1.0, 0.0, 1.0])), Parameters())
    assert one_model.headline["R_dominated"] == 1
    assert "X: its trajectories have one backbone size and cannot be N-dominated" in one_model.warnings
    one_size = run(session(frame[frame["input_size"] == 224].assign(credit=[0.0, 1.0, 0.0, 1.0])), Parameters())
    assert (one_size.headline["N_dominated"], one_size.headline["one_size"]) == (1, 2)
    assert one_size.headline["N_dominated_of_two_sizes"] is None
    assert "X: its trajectories have one input size and cannot be R-dominated" in one_size.warnings


def test_nothing_between_the_cutoffs_or_without_sizes_leaves_empty_shares() -> None:
    bound = run(session(small(credit=0.0)), Parameters())
    assert (bound.headline["ceiling_bound"], bound.headline["N_dominated"]) == (1, None)
    assert any("no trajectory is scaling_bound" in warning for warning in bound.warnings)
    assert dict(bound.charts) == {}
    unsized = run(session(small(input_size=None)), Parameters())
    assert (unsized.headline["scaling_trajectories"], unsized.headline["scaling_bound"]) == (0, 1)
    assert any("their axis is not known" in warning for warning in unsized.warnings)
    for result in (bound, unsized):
        json.dumps(result.envelope(), allow_nan=False)


def test_labels_that_are_missing_are_one_group_and_said() -> None:
    result = run(session(small(family=None)), Parameters(by=("suite", "domain")))
    (row,) = result.tables["profiles"].rows()
    assert (row["family"], row["suite"], row["domain"], row["trajectories"]) == (None, "S", None, 2)
    assert any("no question has a domain" in warning for warning in result.warnings)
    assert any("no series has a family" in warning for warning in result.warnings)


def test_groups_by_task_are_the_combinations_that_occur(study: planted.PlantedSession) -> None:
    rows = run(study, Parameters(by=("suite", "task"))).tables["regimes"].rows()
    assert [(row["suite"], row["task"]) for row in rows] == sorted((row["suite"], row["task"]) for row in rows)
    assert len(rows) == 8


def test_an_empty_cohort_and_crossed_cutoffs_are_errors() -> None:
    with pytest.raises(AnalysisError, match="no scored answer"):
        run(session(small()), Parameters(where="series = 'none'"))
    with pytest.raises(UsageError, match="above easy"):
        checked(Parameters, {"cutoff": 0.95})


def test_the_order_of_rows_changes_no_digit(study: planted.PlantedSession, result: Result) -> None:
    frame = study.connection.execute("select * from answers").df()
    frame = frame.assign(question_id=frame["question_id"].max() - frame["question_id"]).sample(frac=1, random_state=1)
    shuffled = run(session(frame), Parameters())
    assert {name: table.rows() for name, table in shuffled.tables.items()} == {name: table.rows() for name, table in result.tables.items()}


def test_the_chart_has_a_mark_per_family_and_suite(result: Result) -> None:
    assert list(result.charts) == ["axes"]
    assert len(result.charts["axes"].to_dict()["data"]["values"]) == len(result.tables["profiles"])
    assert svg(figure(result)).startswith("<svg")
