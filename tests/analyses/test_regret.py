"""Choices under budgets against a naive second implementation, planted truth, and the numbers of the separable-law paper."""

from __future__ import annotations

import json
from ast import literal_eval
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from pydantic import ValidationError

from analyses import choices
from analyses import folds as folds_module
from analyses.laws import SeparableLaw, Solutions
from analyses.laws.allocation import allocate
from analyses.laws.cost import fit_cost
from analyses.laws.separable import bounded
from analyses.progress import reporting
from analyses.regret import Parameters, run
from analyses.regret.decisions import RULES
from analyses.regret.places import order_of
from analyses.regret.tables import shares_within, summary
from tests.analyses.known import known
from tests.analyses.planted import PlantedLaw, planted_cells, session
from tracker.errors import AnalysisError

if TYPE_CHECKING:
    from analyses.result import Result

LAWS = {("A1", "S"): PlantedLaw(), ("B1", "S"): PlantedLaw(e=0.2, a=0.05, b=0.1), ("A1", "T"): PlantedLaw(a=0.2, b=0.05)}
SIZES = (1.0, 3.0, 9.0, 30.0)
INPUTS = {224: 100.0, 448: 400.0, 896: 1000.0, 1344: 2500.0}
PERCENTILES = (25, 50, 75, 90)


def cells(draws: str = "answers", **options: Any) -> pd.DataFrame:
    given: dict[str, Any] = {"sizes": SIZES, "input_sizes": INPUTS, "questions": 30, "seed": 1}
    return planted_cells(LAWS, draws=draws, **(given | options))


def answer(frame: pd.DataFrame, **options: Any) -> Result:
    return run(session(frame), Parameters(workers=1, **options))


def chosen(result: Result, rule: str | None = None) -> list[dict[str, Any]]:
    """The choices of a rule (of all), each with its decision."""
    about = {row["decision"]: row for row in result.tables["decisions"].rows()}
    return [about[row["decision"]] | row for row in result.tables["choices"].rows() if rule in (None, row["rule"])]


def test_a_saturated_link_still_orders_candidates() -> None:
    """Far below its smallest backbone a bounded law predicts 1 for every candidate; the one with most tokens is still best."""
    bounds = {"alpha": (0.05, 10.0), "beta": (0.05, 10.0)}
    values = {"e": -2.0, "a": 1e-6, "alpha": 10.0, "b": 0.5, "beta": 0.3}
    solutions = Solutions(
        law="bounded",
        parameters={name: np.array([value]) for name, value in values.items()},
        objective=np.zeros(1),
        bounds=bounds,
        function=bounded,
    )
    n, r = np.full((1, 3), 0.1), np.array([[0.1, 1.0, 10.0]])
    assert (solutions.predict(n, r) == 1).all()
    assert choices.direct(order_of(solutions, n, r), np.ones((1, 3), dtype=bool)).tolist() == [2]


# ---- rules against a naive second implementation ------------------------------------------------


def best_of(places: list[int], *keys: Any) -> int:
    """The place with the lowest keys, the first of equals; keys are rounded, as equals of a computation differ by rounding."""
    return min(places, key=lambda place: (*(round(float(key[place]), 12) for key in keys), place))


@pytest.mark.parametrize("seed", range(60))
def test_rules_equal_loops_on_small_grids_with_ties(seed: int) -> None:
    rng = np.random.default_rng(seed)
    width = int(rng.integers(1, 9))
    n, r = rng.choice([1.0, 2.0, 4.0, 8.0], width), rng.choice([100.0, 200.0, 400.0], width)
    predicted, feasible = rng.choice([0.1, 0.2, 0.3], width), rng.random(width) < 0.7
    places = np.flatnonzero(feasible).tolist()
    one = (n[None], r[None], feasible[None])
    found = [
        choices.direct(predicted[None], feasible[None]),
        choices.largest_backbone(*one),
        choices.largest_tokens(*one),
        choices.log_centre(*one),
        choices.projection(*one, (np.array([3.0]), np.array([1e9])), (np.array([[1.0, 8.0]]), np.array([[100.0, 300.0]]))),
    ]
    if not places:
        assert [int(choice[0]) for choice in found] == [-1] * 5
        return
    x, y = np.log(n), np.log(r)
    centre = [(min(axis[places]) + max(axis[places])) / 2 for axis in (x, y)]
    expected = [
        best_of(places, predicted),
        best_of(places, -n, r),
        best_of(places, -r, n),
        best_of(places, (x - centre[0]) ** 2 + (y - centre[1]) ** 2),
        best_of(places, (x - np.log(3)) ** 2 + (y - np.log(300)) ** 2),
    ]
    assert [int(choice[0]) for choice in found] == expected


def test_budgets_are_linear_percentiles_of_known_costs() -> None:
    cost = np.array([[4.0, 1.0, np.nan, 3.0], [np.nan] * 4])
    found = choices.budgets_of(cost, PERCENTILES)
    assert found[0] == pytest.approx(np.percentile([4.0, 1.0, 3.0], PERCENTILES), rel=1e-15)
    assert np.isnan(found[1]).all()


def test_a_cell_that_costs_exactly_the_budget_is_affordable() -> None:
    cost = np.array([[1e13 / 3 * (1 + 1e-15), 2e13, np.nan]])
    assert choices.affordable(cost, np.array([[1e13 / 3]])).tolist() == [[True, False, False]]


def test_direct_choices_of_a_law_over_groups_and_budgets() -> None:
    predicted, cost = np.array([[0.5, 0.2, 0.1], [0.4, 0.4, 0.9]]), np.array([[1.0, 2.0, 3.0], [1.0, 2.0, np.nan]])
    present = np.array([[True, True, True], [True, True, False]])
    assert choices.direct_choices(predicted, cost, present, np.array([[0.5, 2.0, 3.0], [1.0, 2.0, 9.0]])).tolist() == [
        [-1, 1, 2],
        [0, 0, 0],
    ]


# ---- the whole analysis against loops -------------------------------------------------------------


def naive(frame: pd.DataFrame, evaluation: str) -> list[dict[str, Any]]:
    """Every decision by loops over pandas rows."""
    by = ["series", "suite", "parameters", "input_size"]
    made = frame.groupby(by, as_index=False).agg(
        credit=("credit", "mean"), R=("visual_tokens", "mean"), prompt=("prompt_tokens", "mean"), model=("model", "first")
    )
    made = made.assign(N=made["parameters"] / 1e9, error=1 - made["credit"], cost=2 * made["parameters"] * made["prompt"])
    reference = float(np.exp(np.log(made["N"]).mean())), float(np.exp(np.log(made["R"]).mean()))
    law = fit_cost(made["N"], made["R"], made["cost"])
    found = []
    for key, group in made.groupby(["series", "suite"]):
        for n, size in folds(group, evaluation):
            held = (group["N"] == n) | (group["input_size"] == size) if evaluation != "in_sample" else group["N"] < 0
            rest, candidates = group[~held], group if evaluation == "in_sample" else group[held]
            fit = SeparableLaw(reference=reference, floor="grid" if evaluation == "in_sample" else "continuous").fit(
                rest["N"], rest["R"], rest["error"]
            )
            for percentile in PERCENTILES:
                budget = float(np.percentile(group["cost"], percentile))
                feasible = candidates[candidates["cost"] <= budget * (1 + 1e-12)].reset_index(drop=True)
                if len(feasible) >= 2:
                    found += decide(feasible, group, fit, law, budget, (*key, n, size, percentile), held_out=evaluation != "in_sample")
    return found


def folds(group: pd.DataFrame, evaluation: str) -> list[tuple[float | None, float | None]]:
    sizes, inputs = sorted(set(group["N"])), sorted(set(group["input_size"]))
    return {
        "in_sample": [(None, None)],
        "backbone": [(n, None) for n in sizes],
        "input_size": [(None, size) for size in inputs],
        "joint": [(n, size) for n in sizes for size in inputs],
    }[evaluation]


def decide(
    feasible: pd.DataFrame, group: pd.DataFrame, fit: Any, law: Any, budget: float, key: tuple[Any, ...], *, held_out: bool
) -> list[dict[str, Any]]:
    places = list(feasible.index)
    x, y = np.log(feasible["N"].to_numpy()), np.log(feasible["R"].to_numpy())
    direct = best_of(places, fit.predict(feasible["N"], feasible["R"]))
    p = fit.parameters
    star = allocate(p["A"], p["alpha"], p["B"], p["beta"], law.kappa, law.p, law.q, budget)
    if held_out and min(p["A_n"], p["B_r"]) < 1e-8:
        projection = direct
    else:
        at = [np.clip(np.log(s), np.log(group[name].min()), np.log(group[name].max())) for s, name in zip(star, "NR", strict=True)]
        projection = best_of(places, (x - at[0]) ** 2 + (y - at[1]) ** 2)
    made = {
        "direct": direct,
        "projection": projection,
        "largest_tokens": best_of(places, -feasible["R"].to_numpy(), feasible["N"].to_numpy()),
        "largest_backbone": best_of(places, -feasible["N"].to_numpy(), feasible["R"].to_numpy()),
        "log_centre": best_of(places, (x - (x.min() + x.max()) / 2) ** 2 + (y - (y.min() + y.max()) / 2) ** 2),
    }
    error = feasible["error"].to_numpy()
    best = best_of(places, error)
    return [
        {
            "key": key,
            "rule": rule,
            "feasible": len(feasible),
            "model": feasible["model"][place],
            "input_size": feasible["input_size"][place],
            "best_model": feasible["model"][best],
            "best_input_size": feasible["input_size"][best],
            "regret": 100 * (error[place] - error[best]),
            "hit": int(place == best),
        }
        for rule, place in made.items()
    ]


@pytest.mark.parametrize("evaluation", ["in_sample", "joint", "backbone", "input_size"])
@pytest.mark.parametrize("seed", [1, 2])
def test_every_decision_equals_loops(evaluation: str, seed: int) -> None:
    frame = cells(seed=seed)
    result = answer(frame, evaluation=(evaluation,), bounded=False)
    expected = naive(frame, evaluation)
    found = chosen(result)
    assert len(found) == len(expected)
    names = {(row["key"], row["rule"]): row for row in expected}
    for row in found:
        key = (row["series"], row["suite"], row["left_out_parameters"], row["left_out_input_size"], row["percentile"])
        one = names[key, row["rule"]]
        assert {name: row[name] for name in ("feasible", "model", "input_size", "best_model", "best_input_size", "hit")} == {
            name: one[name] for name in ("feasible", "model", "input_size", "best_model", "best_input_size", "hit")
        }
        assert row["regret"] == pytest.approx(one["regret"], abs=1e-9)


def test_summaries_are_those_of_the_decisions() -> None:
    result = answer(cells())
    for row in result.tables["rules"].rows():
        regret = np.array([one["regret"] for one in chosen(result, row["rule"]) if one["evaluation"] == row["evaluation"]])
        hits = [one["hit"] for one in chosen(result, row["rule"]) if one["evaluation"] == row["evaluation"]]
        expected = (len(regret), regret.mean(), np.median(regret), np.percentile(regret, 90), regret.max(), np.mean(hits))
        found = tuple(row[name] for name in ("decisions", "mean", "median", "p90", "worst", "hit_share"))
        assert found == pytest.approx(expected, abs=1e-12)
    for row in result.tables["excluded"].rows():
        left_out = row["not_fitted"] + row["without_cost"] + row["none_feasible"] + row["one_feasible"]
        assert row["planned"] == row["decisions"] + left_out
    for row in result.tables["groups"].rows():
        same = [
            one["regret"]
            for one in chosen(result, row["rule"])
            if all(one[name] == row[name] for name in ("evaluation", "series", "suite"))
        ]
        assert (row["decisions"], row["mean"]) == (len(same), pytest.approx(np.mean(same), abs=1e-12))


@pytest.mark.parametrize("evaluation", ["in_sample", "joint", "backbone", "input_size"])
def test_direct_selection_loses_nothing_where_cells_follow_the_law(evaluation: str) -> None:
    result = answer(cells("expected"), evaluation=(evaluation,), in_sample_floor="continuous")
    (row,) = (row for row in result.tables["rules"].rows() if row["rule"] == "direct")
    assert row["decisions"] > 0
    assert row["worst"] == 0
    assert not result.warnings


def test_both_laws_choose_alike_where_they_agree() -> None:
    result = answer(cells("expected"))
    by = {row["design"]: row for row in result.tables["bounded"].rows()}
    assert set(by) == {"joint", "joint_two_axes", "joint_cross", "backbone", "input_size"}
    assert by["joint"]["decisions"] >= by["joint_two_axes"]["decisions"] >= by["joint_cross"]["decisions"] > 0
    joint = [row for row in chosen(result) if row["evaluation"] == "joint"]
    pairs = pd.DataFrame(joint).pivot_table(
        index=["series", "suite", "left_out_parameters", "left_out_input_size", "percentile"],
        columns="rule",
        values=["model", "input_size"],
        aggfunc="first",
    )
    same = (pairs["model"]["direct"] == pairs["model"]["direct_bounded"]) & (
        pairs["input_size"]["direct"] == pairs["input_size"]["direct_bounded"]
    )
    assert by["joint"]["same_choice"] == pytest.approx(same.mean())


# ---- numbers of the paper ----------------------------------------------------------------------------


def regrets() -> np.ndarray:
    """The 80 in-sample regrets of projection, groups x budgets, as reconstructed from Table 34."""
    (row,) = known("t34_recon")
    return np.array(row.inputs)


@pytest.mark.parametrize(("name", "groups"), [("pooled", slice(0, 20)), ("InternVL", slice(0, 12)), ("QwenVL", slice(12, 20))])
def test_summaries_of_table_31(name: str, groups: slice) -> None:
    (row,) = known(f"t31_{name}")
    found = summary(regrets()[groups].ravel(), np.zeros(1, dtype=bool))
    assert [found[key] for key in ("mean", "median", "p90", "worst")] == pytest.approx(literal_eval(row.recomputed), abs=1e-3)
    assert [found[key] for key in ("mean", "median", "p90", "worst")] == pytest.approx(literal_eval(row.expected), abs=0.02)


@pytest.mark.parametrize(("name", "groups"), [("pooled", slice(0, 20)), ("InternVL", slice(0, 12)), ("QwenVL", slice(12, 20))])
def test_thresholds_of_table_33(name: str, groups: slice) -> None:
    (row,) = known(f"t33_{name}")
    found = [100 * float(share or 0) for share in shares_within(regrets()[groups].ravel()).values()]
    assert found == pytest.approx(literal_eval(row.recomputed), abs=6e-4)
    assert found == pytest.approx(literal_eval(row.expected), abs=0.006)


@pytest.mark.parametrize(("name", "place"), [("HR", 0), ("MME", 1), ("TREE", 2), ("V", 3)])
def test_medians_by_suite_of_table_32(name: str, place: int) -> None:
    (row,) = [row for row in known(f"t32_{name}") if row.id == f"t32_{name}"]
    found = summary(regrets()[place::4].ravel(), np.zeros(1, dtype=bool))["median"]
    assert found == pytest.approx(float(row.recomputed), abs=1e-3)


def test_means_and_families_of_table_34() -> None:
    (pooled,), (family,) = known("t34_mean"), known("t34_fam")
    means = np.array(pooled.inputs["means"])
    assert means.mean() == pytest.approx(float(pooled.recomputed), abs=0.006)
    assert regrets().mean(axis=1) == pytest.approx(means, abs=0.006)
    assert [float(part) for part in family.recomputed.split("/")] == pytest.approx([means[:12].mean(), means[12:].mean()], abs=6e-5)


def test_hits_of_table_34() -> None:
    (row,) = known("t34_hits")
    hits = np.arange(80) < int(row.recomputed)
    found = summary(regrets().ravel(), hits)
    assert (found["hits"], found["decisions"]) == (41, 80)
    assert f"{found['hits']}/{found['decisions']} = {found['hit_share']:.2%}" == row.expected


# ---- odd data ----------------------------------------------------------------------------------------


def test_a_group_without_prompt_tokens_is_named_and_the_others_decide() -> None:
    frame = cells()
    frame["prompt_tokens"] = frame["prompt_tokens"].where(frame["series"] != "B1")
    result = answer(frame, evaluation=("in_sample", "joint"))
    assert any(text.startswith("B1 x S: 16 of 16 cells have no prompt tokens") for text in result.warnings)
    excluded = {row["evaluation"]: row for row in result.tables["excluded"].rows()}
    assert (excluded["in_sample"]["without_cost"], excluded["joint"]["without_cost"]) == (4, 64)
    assert {row["series"] for row in result.tables["decisions"].rows()} == {"A1"}


def test_without_any_cost_nothing_is_decided() -> None:
    result = answer(cells().assign(prompt_tokens=None))
    assert {row["decisions"] for row in result.tables["rules"].rows()} == {0}
    assert {row["mean"] for row in result.tables["rules"].rows()} == {None}
    assert any("no cost law" in text for text in result.warnings)
    assert not result.charts
    json.dumps(result.envelope(), allow_nan=False)


def test_a_group_of_one_backbone_is_named() -> None:
    frame = cells()
    frame = frame[(frame["series"] != "B1") | (frame["model"] == "B1-3B")]
    result = answer(frame)
    (about,) = (text for text in result.warnings if text.startswith("B1 x S"))
    assert about == "B1 x S: no fit: fewer than 5 cells"
    assert {row["series"] for row in result.tables["decisions"].rows()} == {"A1"}


def test_one_backbone_in_the_study_leaves_no_cost_law() -> None:
    result = answer(cells(sizes=(1.0,)))
    assert any("no cost law (N has one level)" in text for text in result.warnings)
    assert len(result.tables["decisions"]) == 0


def test_latency_is_a_cost_too() -> None:
    result = answer(cells(), cost="latency", evaluation=("in_sample",))
    assert result.headline["in_sample_decisions"] == 12
    assert result.headline["cost_p"] == pytest.approx(0.8, abs=1e-6)
    missing = answer(cells().assign(latency_s=None), cost="latency", evaluation=("in_sample",))
    assert any("have no latency" in text for text in missing.warnings)


def test_an_axis_without_effect_is_no_closed_form_held_out() -> None:
    flat = planted_cells({("A1", "S"): PlantedLaw(a=0.0)}, sizes=SIZES, input_sizes=INPUTS)
    result = answer(flat, bounded=False)
    fallback = {row["evaluation"]: row["fallback"] for row in result.tables["excluded"].rows()}
    assert fallback["in_sample"] == 0
    assert fallback["joint"] > 0
    assert any("joint: projection has no closed form" in text for text in result.warnings)
    joint = {rule: [row["model"] for row in chosen(result, rule) if row["evaluation"] == "joint"] for rule in RULES}
    assert joint["projection"] == joint["direct"]


def test_a_group_with_a_constant_error_is_named_and_decides_nothing() -> None:
    frame = cells()
    frame["credit"] = frame["credit"].mask(frame["series"] == "B1", 0.25)
    result = answer(frame, reference=(5.0, 500.0))
    assert "B1 x S: no fit: the error is constant" in result.warnings
    without = answer(frame[frame["series"] != "B1"], reference=(5.0, 500.0))
    for found, expected in zip(result.tables["rules"].rows(), without.tables["rules"].rows(), strict=True):
        assert (found["decisions"], found["mean"]) == (expected["decisions"], expected["mean"])


def test_tokens_within_a_thousandth_are_one_level() -> None:
    result = answer(cells(input_sizes={224: 25600.0, 448: 25605.0, 896: 25610.0, 1344: 25616.0}), cost="latency")
    assert "A1 x S: no fit: one level of R" in result.warnings
    assert "no cost law (R has one level): projection chooses as direct selection does" in result.warnings
    assert len(result.tables["decisions"]) == len(result.tables["choices"]) == 0


def test_parts_of_folds_change_no_digit(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = cells()
    at_once = answer(frame).envelope()
    monkeypatch.setattr(folds_module, "PLACES", 200)
    in_parts = answer(frame).envelope()
    for name in ("headline", "tables", "warnings"):
        assert json.dumps(at_once[name]) == json.dumps(in_parts[name])


def test_progress_counts_the_folds_of_each_evaluation() -> None:
    told: list[tuple[str, int, int]] = []
    with reporting(lambda what, done, total: told.append((what, done, total))):
        answer(cells(), evaluation=("joint",), bounded=False)
    assert ("decisions, joint", 0, 48) in told
    assert ("decisions, joint", 48, 48) in told


def test_exponents_of_any_size_overflow_nowhere() -> None:
    result = answer(cells(), box=(0.05, 100.0), reference=(5.0, 5000.0), evaluation=("joint",), bounded=False)
    assert len(result.tables["decisions"]) > 0


def test_a_cost_that_falls_with_an_axis_leaves_no_closed_form() -> None:
    frame = cells()
    frame["latency_s"] = 0.02 * (frame["parameters"] / 1e9) ** -0.5 * (frame["visual_tokens"] + 50)
    result = answer(frame, cost="latency", evaluation=("joint",))
    assert [text.split(" (")[0] for text in result.warnings] == ["the cost law falls along an axis"]
    joint = {rule: [row["model"] for row in chosen(result, rule)] for rule in RULES}
    assert joint["projection"] == joint["direct"]


def test_groups_without_a_suite_have_no_table_of_suites() -> None:
    result = answer(cells(), by=("family",), evaluation=("in_sample",))
    assert "suites" not in result.tables
    assert "family" in result.tables["decisions"].names


def test_a_study_without_tokens_decides_nothing() -> None:
    with pytest.raises(AnalysisError, match="no cell has parameters, visual tokens and an error"):
        answer(cells().assign(visual_tokens=None))


@pytest.mark.parametrize("options", [{"box": (1.0, 0.5)}, {"budgets": (120.0,)}, {"budgets": ()}, {"evaluation": ()}, {"cost": "euros"}])
def test_options_that_make_no_sense_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Parameters(**options)


def test_charts_show_the_joint_hold_out() -> None:
    result = answer(cells())
    for name in ("bars", "distribution"):
        assert "joint hold-out" in json.dumps(result.charts[name].to_dict())
    one = answer(cells(), evaluation=("backbone",))
    assert "backbone hold-out" in json.dumps(one.charts["bars"].to_dict())
