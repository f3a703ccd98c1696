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
    assert (row["dlogN_dlogC"], row["direction"], row["conditional_on_box"]) == (None, None, None)
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
                cost_range=(1e12, 1e14),
                n_range=(0.5, 72.0),
                r_range=(64.0, 16000.0),
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


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ("no prompts", "no cost law: no cell has a positive N, R and cost"),
        ("one model", "not fitted"),
        ("constant", "constant"),
        ("few", "cells"),
    ],
)
def test_what_cannot_be_allocated_says_why(frame: pd.DataFrame, change: str, status: str) -> None:
    one = frame[(frame["series"] == "Alpha") & (frame["suite"] == "S")]
    changed = {
        "no prompts": lambda: one.drop(columns=["prompt_tokens"]),
        "one model": lambda: one[(one["parameters"] == 4_000_000_000) & (one["input_size"] < 700)],
        "constant": lambda: one.assign(credit=0.5),
        "few": lambda: one[(one["parameters"] < 3e9) & (one["input_size"] < 600)],
    }[change]()
    result = run(session(changed), EXACT)
    (row,) = result.tables["elasticities"].rows()
    assert status in row["status"]
    assert (row["dlogN_dlogC"], row["direction"]) == (None, None)
    assert all(found["N"] is None and found["inside"] is None for found in result.tables["allocations"].rows())
    assert any(warning.startswith("Alpha x S: ") for warning in result.warnings)
    assert dict(result.charts) == {}
    json.dumps(result.envelope(), allow_nan=False)


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
    with pytest.raises(UsageError, match="positive"):
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
