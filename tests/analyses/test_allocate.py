"""The allocation against planted laws, numerical minimisation along the budget line, and the paper's own parameters."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from analyses.allocate import Parameters, run
from analyses.allocate.groups import SOLVED, GroupAllocation
from analyses.allocate.tables import allocations_table, directions_table, elasticities_table, headline_of
from analyses.cells import Groups
from analyses.laws.cost import CostLaw, fit_cost
from analyses.parameters import checked
from analyses.plot import figure, svg
from tests.analyses.known import known
from tests.analyses.planted import LAW_REFERENCE, PlantedLaw, planted_cells, session
from tracker.errors import AnalysisError, UsageError

if TYPE_CHECKING:
    import pandas as pd

    from analyses.result import Result

LAWS = {
    ("Alpha", "S"): PlantedLaw(e=0.08, a=0.15, alpha=0.35, b=0.02, beta=0.9),
    ("Alpha", "T"): PlantedLaw(e=0.1, a=0.1, alpha=0.6, b=0.1, beta=0.3),
    ("Beta", "S"): PlantedLaw(e=0.05, a=0.05, alpha=0.8, b=0.15, beta=0.4),
}
EXACT = Parameters(floor="continuous")


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return planted_cells(LAWS, questions=12, input_sizes={224: 64, 448: 256, 672: 576, 1008: 1296, 1792: 4096})


@pytest.fixture(scope="module")
def result(frame: pd.DataFrame) -> Result:
    return run(session(frame), EXACT)


def rows_of(result: Result, table: str, **wanted: Any) -> list[dict[str, Any]]:
    return [row for row in result.tables[table].rows() if all(row[name] == value for name, value in wanted.items())]


def costs(frame: pd.DataFrame) -> pd.DataFrame:
    """N, R and cost of each cell by plain grouping."""
    cells = (
        frame.groupby(["series", "suite", "parameters", "input_size"])
        .agg(R=("visual_tokens", "mean"), T=("prompt_tokens", "mean"))
        .reset_index()
    )
    return cells.assign(N=cells["parameters"] / 1e9, C=2.0 * cells["parameters"] * cells["T"])


def test_planted_groups_get_the_optimum_that_a_search_along_the_budget_line_finds(frame: pd.DataFrame, result: Result) -> None:
    cells = costs(frame)
    law = fit_cost(cells["N"], cells["R"], cells["C"])
    for (series, suite), planted in LAWS.items():
        own = cells[(cells["series"] == series) & (cells["suite"] == suite)]
        rows = rows_of(result, "allocations", series=series, suite=suite)
        assert [row["percentile"] for row in rows] == [25, 50, 75, 90]
        assert [row["budget"] for row in rows] == pytest.approx(np.percentile(own["C"], [25, 50, 75, 90]).tolist())
        for row in rows:
            budget = row["budget"]

            def error(x: float, budget: float = budget, planted: PlantedLaw = planted) -> float:
                n = np.exp(x)
                return float(planted.error(n, (budget / (law.kappa * n**law.p)) ** (1 / law.q)))

            best = minimize_scalar(error, bounds=(-8, 8), method="bounded", options={"xatol": 1e-10})
            assert np.log(row["N"]) == pytest.approx(best.x, abs=1e-4)
            assert row["predicted"] == pytest.approx(best.fun, abs=1e-6)
            assert law.kappa * row["N"] ** law.p * row["R"] ** law.q == pytest.approx(budget, rel=1e-9)
            inside = own["N"].min() <= row["N"] <= own["N"].max() and own["R"].min() <= row["R"] <= own["R"].max()
            assert row["inside"] == inside
            assert (row["outside"] is None) == inside


def test_elasticities_are_those_of_the_planted_exponents(frame: pd.DataFrame, result: Result) -> None:
    for (series, suite), planted in LAWS.items():
        (row,) = rows_of(result, "elasticities", series=series, suite=suite)
        d = row["p"] * planted.beta + row["q"] * planted.alpha
        assert (row["dlogN_dlogC"], row["dlogR_dlogC"]) == pytest.approx((planted.beta / d, planted.alpha / d), rel=1e-4)
        assert row["direction"] == ("N first" if planted.beta > planted.alpha else "R first")
        low, high = (run(session(frame), Parameters(floor="continuous", budgets=(budget,))) for budget in (1e13, 1.1e13))
        ends = [rows_of(one, "allocations", series=series, suite=suite)[0] for one in (low, high)]
        for axis, rate in (("N", "dlogN_dlogC"), ("R", "dlogR_dlogC")):
            assert np.log(ends[1][axis] / ends[0][axis]) / np.log(1.1) == pytest.approx(row[rate], rel=1e-9)
        assert ends[0]["percentile"] is None


def test_a_cost_law_per_series_is_fitted_to_the_cells_of_the_series(frame: pd.DataFrame) -> None:
    dearer = frame.assign(prompt_tokens=frame["prompt_tokens"] + np.where(frame["series"] == "Beta", 900, 0))
    result = run(session(dearer), Parameters(floor="continuous", cost_scope="series"))
    cells = costs(dearer)
    for series, suite in LAWS:
        own = cells[cells["series"] == series]
        law = fit_cost(own["N"], own["R"], own["C"])
        (row,) = rows_of(result, "elasticities", series=series, suite=suite)
        assert (row["kappa"], row["p"], row["q"]) == pytest.approx((law.kappa, law.p, law.q))
    assert result.headline["p"] is None


def test_an_amplitude_of_zero_is_reported_and_not_divided_by() -> None:
    flat = planted_cells({("Flat", "S"): PlantedLaw(a=0.0, b=0.1), ("Fine", "S"): LAWS["Alpha", "S"]}, questions=6)
    result = run(session(flat), EXACT)
    for row in rows_of(result, "allocations", series="Flat"):
        assert (row["N"], row["R"], row["predicted"], row["inside"]) == (None, None, None, None)
        assert row["status"] == "degenerate: alpha is not determined"
    (row,) = rows_of(result, "elasticities", series="Flat")
    assert (row["dlogN_dlogC"], row["direction"], row["conditional_on_box"]) == (None, None, False)
    assert "Flat x S: no optimum, degenerate: alpha is not determined" in result.warnings
    assert rows_of(result, "elasticities", series="Fine")[0]["status"] == "solved"
    assert (result.headline["groups"], result.headline["solved"]) == (2, 1)
    json.dumps(result.envelope(), allow_nan=False)


def test_exponents_at_the_box_are_flagged(frame: pd.DataFrame) -> None:
    result = run(session(frame), Parameters(floor="continuous", box=(0.5, 3.0)))
    row = rows_of(result, "elasticities", series="Alpha", suite="S")[0]
    assert (row["alpha"], row["alpha_at_bound"], row["beta_at_bound"], row["conditional_on_box"]) == (pytest.approx(0.5), True, False, True)
    assert result.headline["conditional_on_box"] == sum(row["conditional_on_box"] for row in result.tables["elasticities"].rows())


def paper_groups(budgets: tuple[float, ...] = (1e13,)) -> list[GroupAllocation]:
    """The paper's Table 7 under its pooled cost law (Table 29)."""
    law = CostLaw(kappa=1.24e10, p=1.00, q=0.77, r2=0.995, n=650)
    reference = (6.6, 1135.0)
    groups = []
    for place, (series, suite, e, a, alpha, b, beta, *_) in enumerate(known("t7_rows")[0].inputs):
        values = {"e": e, "a": a, "alpha": alpha, "b": b, "beta": beta, "A": a * reference[0] ** alpha, "B": b * reference[1] ** beta}
        groups.append(
            GroupAllocation(
                group=place,
                name=f"{series} x {suite}",
                family="InternVL" if series.startswith("IVL") else "QwenVL",
                parameters=values,
                bound={"alpha": int(alpha >= 10), "beta": int(beta >= 10)},
                cost_law=law,
                reference=reference,
                budgets=np.array(budgets),
                percentiles=(None,) * len(budgets),
                best=(None,) * len(budgets),
                cost_range=(1e12, 1e14),
                n_range=(0.5, 72.0),
                r_range=(64.0, 16000.0),
                fitted=True,
                law_status="fitted",
                status=SOLVED,
            )
        )
    return groups


def paper_labels() -> Groups:
    keys: list[tuple[str | None, ...]] = [(row[0], row[1]) for row in known("t7_rows")[0].inputs]
    return Groups(by=("series", "suite"), keys=keys, code=np.arange(len(keys)))


def test_the_papers_groups_expand_n_first_in_every_internvl_and_r_first_in_seven_of_eight_qwenvl() -> None:
    groups = paper_groups()
    found = {row["family"]: row for row in directions_table(groups).rows()}
    assert (found["InternVL"]["N_first"], found["InternVL"]["R_first"]) == (12, 0)
    assert (found["QwenVL"]["N_first"], found["QwenVL"]["R_first"]) == (1, 7)
    assert headline_of(groups, pooled=True)["R_first"] == 7
    expected = {(series, suite): rates for series, suite, *rates in known("vpe_elasticities")[0].inputs}
    for row in elasticities_table(paper_labels(), groups).rows():
        assert [row["dlogN_dlogC"], row["dlogR_dlogC"]] == pytest.approx(expected[row["series"], row["suite"]], abs=1.01e-4)
        assert row["dlogN_dlogC"] + 0.77 * row["dlogR_dlogC"] == pytest.approx(1, abs=1e-14)


def test_the_papers_optima_satisfy_budget_and_balance() -> None:
    groups = paper_groups((1e12, 1e13, 1e14))
    for row in allocations_table(paper_labels(), groups).rows():
        values = next(one.parameters for one in groups if one.name == f"{row['series']} x {row['suite']}")
        assert 1.24e10 * row["N"] * row["R"] ** 0.77 == pytest.approx(row["budget"], rel=1e-12)
        left = values["alpha"] * values["A"] / 1.00 * row["N"] ** -values["alpha"]
        right = values["beta"] * values["B"] / 0.77 * row["R"] ** -values["beta"]
        assert left == pytest.approx(right, rel=1e-12)


def test_prompts_that_no_cell_states_leave_no_cost_law_and_no_cell_to_afford(frame: pd.DataFrame) -> None:
    one = frame[(frame["series"] == "Alpha") & (frame["suite"] == "S")].drop(columns=["prompt_tokens"])
    result = run(session(one), EXACT)
    (row,) = result.tables["elasticities"].rows()
    assert row["status"] == "no cost law: no cell has a positive N, R and cost"
    assert (row["dlogN_dlogC"], row["direction"]) == (None, None)
    (found,) = result.tables["allocations"].rows()
    assert (found["N"], found["inside"], found["best_cell_model"]) == (None, None, None)
    assert any(warning.startswith("Alpha x S: no optimum, no cost law") for warning in result.warnings)
    assert dict(result.charts) == {}
    json.dumps(result.envelope(), allow_nan=False)


@pytest.mark.parametrize(("change", "reason"), [("constant", "the error is constant"), ("few", "4 cells, 5 parameters")])
def test_where_no_group_can_be_fitted_the_analysis_ends_with_the_reason(frame: pd.DataFrame, change: str, reason: str) -> None:
    one = frame[(frame["series"] == "Alpha") & (frame["suite"] == "S")]
    changed = {"constant": one.assign(credit=0.5), "few": one[(one["parameters"] < 3e9) & (one["input_size"] < 600)]}[change]
    with pytest.raises(AnalysisError, match=f"no group can be fitted: Alpha x S: not fitted: {reason}") as caught:
        run(session(changed), EXACT)
    assert "--by" in str(caught.value.hint)


def test_two_levels_of_an_axis_leave_no_optimum_and_count_nowhere(frame: pd.DataFrame, result: Result) -> None:
    sizes = sorted(frame["parameters"].unique())
    fewer = frame[(frame["series"] != "Beta") | frame["parameters"].isin(sizes[:2])]
    found = run(session(fewer), EXACT)
    (row,) = rows_of(found, "elasticities", series="Beta")
    assert row["status"] == "undetermined: 2 levels of N: e_inf, A_n and alpha are one of many solutions"
    assert (row["dlogN_dlogC"], row["dlogR_dlogC"], row["direction"]) == (None, None, None)
    for optimum in rows_of(found, "allocations", series="Beta"):
        assert (optimum["N"], optimum["R"], optimum["predicted"], optimum["inside"], optimum["outside"]) == (None,) * 5
        assert optimum["best_cell_model"] is not None
    assert (found.headline["groups"], found.headline["solved"], found.headline["undetermined"], found.headline["optima"]) == (3, 2, 1, 8)
    assert found.headline["N_first"] + found.headline["R_first"] == 2
    assert sum(row["unsolved"] for row in found.tables["directions"].rows()) == 1
    assert [warning for warning in found.warnings if "Beta x S" in warning] == [f"Beta x S: no optimum, {row['status']}"]
    assert result.headline["undetermined"] == 0


def test_axes_that_move_together_are_undetermined() -> None:
    bound = planted_cells(
        {("Bound", "S"): LAWS["Alpha", "S"]}, questions=12, input_sizes={224: 64, 448: 256, 672: 576, 1008: 1296, 1792: 4096}
    )
    sizes, tokens = sorted(bound["parameters"].unique()), sorted(bound["input_size"].unique())
    level = {size: tokens[min(place, len(tokens) - 1)] for place, size in enumerate(sizes[: len(tokens)])}
    diagonal = bound[bound["parameters"].map(level) == bound["input_size"]].copy()
    diagonal["visual_tokens"] = (diagonal["parameters"] / 1e7).astype(int)
    found = run(session(diagonal), EXACT)
    (row,) = found.tables["elasticities"].rows()
    assert row["status"].startswith("undetermined: N and R move together")


def test_beside_each_optimum_stands_the_cell_that_a_search_over_the_affordable_ones_finds(frame: pd.DataFrame, result: Result) -> None:
    cells = costs(frame)
    credit = frame.groupby(["series", "suite", "parameters", "input_size"])["credit"].mean().reset_index()
    cells = cells.merge(credit).assign(error=lambda rows: 1 - rows["credit"])
    for row in result.tables["allocations"].rows():
        planted = LAWS[row["series"], row["suite"]]
        own = cells[(cells["series"] == row["series"]) & (cells["suite"] == row["suite"]) & (cells["C"] <= row["budget"] * (1 + 1e-9))]
        predicted = planted.error(own["N"].to_numpy(), own["R"].to_numpy())
        best = own.iloc[int(np.argmin(predicted))]
        assert (row["best_cell_N"], row["best_cell_R"], row["best_cell_input_size"]) == (best["N"], best["R"], best["input_size"])
        assert row["best_cell_cost"] == pytest.approx(best["C"])
        assert row["best_cell_predicted"] == pytest.approx(predicted.min(), abs=1e-4)
        assert row["best_cell_error"] == pytest.approx(best["error"])
        assert row["best_cell_model"] is not None


def test_optima_outside_the_data_are_counted_in_one_warning(result: Result) -> None:
    rows = result.tables["allocations"].rows()
    outside = sum(row["inside"] is False for row in rows)
    (warning,) = [text for text in result.warnings if "optima lie outside" in text]
    assert outside > 0
    assert warning.startswith(f"{outside} of {len(rows)} optima lie outside")
    assert result.headline["optima_inside"] == len(rows) - outside


def test_an_exponent_at_its_bound_is_conditional_also_without_an_optimum() -> None:
    flat = planted_cells({("Flat", "S"): PlantedLaw(a=0.0, b=1e-4, beta=3.0)}, questions=6)
    result = run(session(flat), Parameters(floor="continuous", box=(0.05, 2.0)))
    (row,) = result.tables["elasticities"].rows()
    assert row["status"].startswith("degenerate")
    assert (row["alpha_at_bound"], row["beta_at_bound"], row["conditional_on_box"]) == (False, True, True)
    assert result.headline["conditional_on_box"] == 0


def test_a_cost_that_falls_with_tokens_has_no_exchange(frame: pd.DataFrame) -> None:
    odd = frame.assign(prompt_tokens=(5_000_000 / frame["visual_tokens"]).astype(int))
    result = run(session(odd), EXACT)
    assert all("both have to be positive" in row["status"] for row in result.tables["elasticities"].rows())


def test_missing_tokens_and_parameters_leave_the_other_groups(frame: pd.DataFrame) -> None:
    worse = frame.copy()
    worse.loc[worse["series"] == "Beta", "parameters"] = None
    result = run(session(worse), EXACT)
    assert [row["status"].split(":")[0] for row in result.tables["elasticities"].rows()] == ["solved", "solved", "not fitted"]
    assert any("Beta x S: 30 of 30 cells lack the parameters" in warning for warning in result.warnings)


def test_an_empty_cohort_and_a_budget_of_nothing_are_errors(frame: pd.DataFrame) -> None:
    with pytest.raises(AnalysisError, match="no scored answer"):
        run(session(frame), Parameters(where="series = 'none'"))
    with pytest.raises(UsageError, match="positive"):
        checked(Parameters, {"budgets": (0.0,)})
    with pytest.raises(UsageError, match="reference"):
        checked(Parameters, {"reference": (0.0, 1.0)})


def test_references_and_the_order_of_rows_do_not_move_the_optimum(frame: pd.DataFrame, result: Result) -> None:
    shuffled = run(session(frame.sample(frac=1, random_state=2)), EXACT)
    assert {name: table.rows() for name, table in shuffled.tables.items()} == {name: table.rows() for name, table in result.tables.items()}
    pinned = run(session(frame), Parameters(floor="continuous", reference=LAW_REFERENCE))
    for one, other in zip(pinned.tables["allocations"].rows(), result.tables["allocations"].rows(), strict=True):
        assert np.log([one["N"], one["R"]]) == pytest.approx(np.log([other["N"], other["R"]]), abs=1e-4)


def test_trajectories_are_drawn(result: Result) -> None:
    assert list(result.charts) == ["trajectories"]
    assert svg(figure(result)).startswith("<svg")


def test_a_panel_names_the_lines_that_it_lacks(frame: pd.DataFrame) -> None:
    sizes = sorted(frame["parameters"].unique())
    found = run(session(frame[(frame["series"] != "Beta") | frame["parameters"].isin(sizes[:2])]), EXACT)
    assert "not drawn, undetermined: Beta" in svg(figure(found))
