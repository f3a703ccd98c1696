"""Cost laws and finite paths against plain loops, SciPy and statsmodels, and against planted laws; what is missing is said."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy.stats import linregress

from analyses import cost
from analyses.cost import Parameters, run
from analyses.cost import flops as cost_flops
from analyses.plot import figure, svg
from tests.analyses import planted
from tests.analyses.catalogued import catalogued
from tests.analyses.planted import PlantedLaw, planted_cells, session
from tracker.catalog import load
from tracker.errors import AnalysisError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from analyses.result import Result

N_FIRST = PlantedLaw(e=0.1, a=0.25, alpha=0.3, b=0.002, beta=1.2)
R_FIRST = PlantedLaw(e=0.05, a=0.01, alpha=1.5, b=0.2, beta=0.35)
GRID = {224: 64.0, 448: 256.0, 672: 576.0, 1344: 2304.0}
REAL = [
    "InternVL3-1B",
    "InternVL3-8B",
    "InternVL3-38B",
    "Qwen2.5-VL-3B",
    "Qwen2.5-VL-7B",
    "Qwen2.5-VL-72B",
    "Qwen3-VL-2B",
    "Qwen3-VL-8B",
    "Qwen3-VL-32B",
]


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return planted_cells({("One-1", "S"): N_FIRST, ("Two-1", "S"): R_FIRST}, sizes=(1, 3, 9, 30), input_sizes=GRID, spread=0.3)


@pytest.fixture(scope="module")
def result(frame: pd.DataFrame) -> Result:
    return run(session(frame), Parameters(floor="continuous"))


@pytest.fixture(scope="module")
def real() -> pd.DataFrame:
    """Models of the shipped catalog, three per series."""
    catalog = load()
    rows: list[pd.DataFrame] = []
    for place, name in enumerate(REAL):
        spec = catalog.models[name]
        n = catalog.parameters_of(spec)
        assert n is not None
        law = N_FIRST if spec.series.startswith("InternVL") else R_FIRST
        for level, (size, tokens) in enumerate(GRID.items()):
            own = np.round(tokens * (np.linspace(0.8, 1.2, 6) if "Qwen" in name else np.full(6, 4.0))).astype(int)
            rows.append(
                pd.DataFrame(
                    {
                        "question_id": np.arange(6), "question_key": [f"q{i}" for i in range(6)], "benchmark": "B", "suite": "S",
                        "series": spec.series, "family": "InternVL" if "Intern" in name else "QwenVL", "model": name, "parameters": n,
                        "configuration_id": 100 * place + level, "input_mode": "fixed", "input_size": size, "visual_tokens": own,
                        "prompt_tokens": own + 50, "generated_tokens": np.arange(6), "credit": 1 - float(law.error(n / 1e9, own.mean())),
                    }
                )
            )  # fmt: skip
    return pd.concat(rows, ignore_index=True)


def cells(frame: pd.DataFrame) -> list[pd.DataFrame]:
    """The answers of each cell in the order of series, parameters and input size."""
    return [rows for _, rows in frame.groupby(["series", "parameters", "input_size", "benchmark"], sort=True)]


def rows_of(result: Result, table: str, **wanted: Any) -> list[dict[str, Any]]:
    return [row for row in result.tables[table].rows() if all(row[name] == value for name, value in wanted.items())]


def test_laws_are_least_squares_on_the_logarithms_of_cell_means(frame: pd.DataFrame, result: Result) -> None:
    n, r, flop, latency = (
        np.array([value(rows) for rows in cells(frame)])
        for value in (
            lambda rows: rows["parameters"].iloc[0] / 1e9,
            lambda rows: rows["visual_tokens"].mean(),
            lambda rows: 2 * rows["parameters"].iloc[0] * rows["prompt_tokens"].mean(),
            lambda rows: rows["latency_s"].mean(),
        )
    )
    series = np.array([rows["series"].iloc[0] for rows in cells(frame)])
    for row in result.tables["laws"].rows():
        members = np.ones(len(n), dtype=bool) if row["scope"] == "pooled" else series == row["scope"]
        design = sm.add_constant(np.log(np.stack([n, r], axis=1)[members]))
        for prefix, values in (("", flop), ("latency_", latency)):
            fitted = sm.OLS(np.log(values[members]), design).fit()
            found = [row[f"{prefix}{name}"] for name in ("kappa", "p", "q", "r2", "n")]
            expected = [np.exp(fitted.params[0]), *fitted.params[1:], fitted.rsquared, members.sum()]
            assert found == pytest.approx(expected, rel=1e-9)
    assert [row["scope"] for row in result.tables["laws"].rows()] == ["pooled", "One-1", "Two-1"]
    assert result.headline["p"] == pytest.approx(1, abs=1e-9)
    assert result.tables["laws"].rows()[0]["latency_p"] == pytest.approx(0.8)
    assert {(fit.law, fit.group_key) for fit in result.fits} == {
        (law, scope) for law in ("cost", "latency") for scope in ("pooled", "One-1", "Two-1")
    }


def walked(cost: list[float], score: list[float], n: list[float], r: list[float], budgets: Any) -> tuple[float, float]:
    """Slopes of a path, by loops and scipy."""
    chosen = []
    for budget in budgets:
        feasible = [cell for cell in range(len(cost)) if cost[cell] <= budget]
        chosen.append(min(feasible, key=lambda cell: (score[cell], cell)))
    return tuple(linregress(np.log(budgets), np.log([axis[cell] for cell in chosen])).slope for axis in (n, r))


def test_paths_are_what_loops_over_budgets_pick(real: pd.DataFrame) -> None:
    weights = (0.5, 1.0, 2.0)
    result = run(catalogued(session(real)), Parameters(floor="continuous", vision_weight=weights))
    table = result.tables["cells"].rows()
    directions = {}
    for series in ("InternVL3", "Qwen2.5-VL", "Qwen3-VL"):
        mine = [row for row in table if row["series"] == series]
        n, r, error, score = ([row[name] for row in mine] for name in ("N", "R", "error", "predicted"))
        costs = {weight: [row["prompt_flop"] + weight * row["vision_flop"] for row in mine] for weight in (0.0, *weights)}
        low, high = max(map(min, costs.values())), min(map(max, costs.values()))
        budgets = np.exp(np.linspace(np.log(low), np.log(high), 101))
        budgets[0], budgets[-1] = low, high
        paths = rows_of(result, "paths", series=series)
        assert [row["vision_weight"] for row in paths] == [0.0, *weights]
        for row in paths:
            assert (row["budget_low"], row["budget_high"], row["cells"]) == (low, high, 12)
            law, oracle = (walked(costs[row["vision_weight"]], values, n, r, budgets) for values in (score, error))
            assert (row["slope_N"], row["slope_R"]) == pytest.approx(law, abs=1e-9)
            assert (row["oracle_slope_N"], row["oracle_slope_R"]) == pytest.approx(oracle, abs=1e-9)
            assert row["faster"] == ("N" if law[0] > law[1] else "R")
            assert row["oracle_agrees"] == ((law[0] > law[1]) == (oracle[0] > oracle[1]))
        directions[series] = {row["faster"] for row in paths}
        assert {row["same_direction"] for row in paths} == {len(directions[series]) == 1}
    assert directions["InternVL3"] == {"N"}
    assert directions["Qwen3-VL"] == {"R"}
    assert [(row["family"], row["groups"]) for row in rows_of(result, "directions", vision_weight=1.0)] == [("InternVL", 1), ("QwenVL", 2)]
    assert result.headline["same_direction_at_all_weights"] == sum(len(ways) == 1 for ways in directions.values())


def test_the_vision_side_is_the_mean_over_the_questions_of_a_cell(real: pd.DataFrame) -> None:
    catalog = load()
    result = run(catalogued(session(real)), Parameters(vision_weight=(1.0,), variant="attention"))
    table = iter(result.tables["cells"].rows())
    for answers in cells(real):
        row = next(table)
        spec = catalog.models[str(answers["model"].iloc[0])]
        backbone, encoder = catalog.backbones[spec.backbone or ""], catalog.encoders[spec.encoder or ""].architecture
        assert backbone.architecture is not None
        width = backbone.architecture["width"]
        sums = {"prompt_flop": 0.0, "generation_flop": 0.0, "attention_flop": 0.0, "vision_flop": 0.0}
        for answer in answers.to_dict("records"):
            tokens = np.array([float(answer["visual_tokens"])])
            length = answer["prompt_tokens"] + answer["generated_tokens"]
            sums["prompt_flop"] += 2.0 * answer["parameters"] * answer["prompt_tokens"]
            sums["generation_flop"] += 2.0 * answer["parameters"] * answer["generated_tokens"]
            sums["attention_flop"] += (
                2.0
                * backbone.architecture["layers"]
                * backbone.architecture["heads"]
                * backbone.architecture["head_width"]
                * length
                * (length + 1)
            )
            if spec.series == "InternVL3":
                projector = cost_flops.tile_projector(encoder, width)
                assert spec.vision_parameters is not None
                sums["vision_flop"] += 2.0 * ((spec.vision_parameters - projector) * tokens[0] / 256 * 1025 + projector * tokens[0])
            else:
                sums["vision_flop"] += float(getattr(cost_flops, str(encoder["kind"]))(encoder, width, tokens)[0])
        assert {name: row[name] for name in sums} == pytest.approx({name: value / len(answers) for name, value in sums.items()}, rel=1e-12)
        assert row["cost"] == pytest.approx(sum(sums[name] for name in sums if name != "vision_flop") / len(answers))
        assert row["cost_with_vision"] == pytest.approx(sum(sums.values()) / len(answers))
    assert result.warnings == ("no answer states latency_s: the columns of latency are empty",)


def test_decisions_at_the_budgets_of_the_language_side(real: pd.DataFrame) -> None:
    result = run(catalogued(session(real)), Parameters(floor="continuous", vision_weight=(40.0,)))
    same = infeasible = 0
    for series in ("InternVL3", "Qwen2.5-VL", "Qwen3-VL"):
        mine = rows_of(result, "cells", series=series)
        cost = {0.0: [row["cost"] for row in mine], 40.0: [row["cost_with_vision"] for row in mine]}
        for percentile, budget in zip((25, 50, 75, 90), np.percentile(cost[0.0], (25, 50, 75, 90)), strict=True):
            chosen = {}
            for weight, costs in cost.items():
                feasible = [cell for cell in range(12) if costs[cell] <= budget]
                chosen[weight] = min(feasible, key=lambda cell: mine[cell]["predicted"], default=None)
                (row,) = rows_of(result, "decisions", series=series, percentile=percentile, vision_weight=weight)
                assert row["budget"] == pytest.approx(budget)
                assert row["feasible"] == bool(feasible)
                best = chosen[weight]
                assert (row["model"], row["input_size"]) == (
                    (mine[best]["model"], mine[best]["input_size"]) if best is not None else (None, None)
                )
            infeasible += chosen[40.0] is None
            same += chosen[40.0] is not None and chosen[40.0] == chosen[0.0]
    assert infeasible > 0
    (moves,) = result.tables["moves"].rows()
    assert moves == {
        "vision_weight": 40.0,
        "decisions": 12,
        "infeasible": infeasible,
        "feasible": 12 - infeasible,
        "same": same,
        "changed": 12 - infeasible - same,
    }


def test_generated_tokens_add_to_the_cost_when_they_are_asked_for(frame: pd.DataFrame, result: Result) -> None:
    generation = run(session(frame), Parameters(variant="generation"))
    for one, other in zip(result.tables["cells"].rows(), generation.tables["cells"].rows(), strict=True):
        assert other["cost"] == pytest.approx(one["cost"] + 2e9 * one["N"] * 5)


def own_models(frame: pd.DataFrame, own: Mapping[str, Mapping[str, Any]]) -> Result:
    return run(catalogued(session(frame), own), Parameters(vision_weight=(1.0,), variant="attention"))


def test_models_of_ones_own_have_what_the_store_knows_of_them(frame: pd.DataFrame) -> None:
    language = {"layers": 4, "width": 64, "heads": 8, "head_width": 8, "kv_heads": 8}
    tiles = {"architecture": language, "vision_parameters": 1000, "frontend": "tiling", "parameters": {"tokens_per_tile": 64}}
    names = sorted(frame["model"].unique())
    known = own_models(frame, dict.fromkeys(names, tiles))
    row = known.tables["cells"].rows()[0]
    assert row["vision_flop"] == pytest.approx(2 * 1000 * row["R"] / 64 * 257)
    assert not [warning for warning in known.warnings if "vision" in warning]
    for about in ({**tiles, "frontend": "native"}, {**tiles, "vision_parameters": None}, {**tiles, "parameters": {}}, {}):
        unknown = own_models(frame, dict.fromkeys(names, about))
        assert [row["vision_flop"] for row in unknown.tables["cells"].rows()] == [None] * 32
        assert any(
            "the numbers of the vision encoder is not known" in w and "One-1-1B" in w and "and 3 more" in w for w in unknown.warnings
        )
        assert {row["status"] for row in unknown.tables["paths"].rows()} == {"no cell has a cost at every weight"}


def test_a_shipped_model_whose_vision_part_was_changed_is_not_counted_by_the_shipped_encoder(real: pd.DataFrame) -> None:
    store = catalogued(session(real))
    store.connection.execute("update models set vision_parameters = 5 where name in ('Qwen3-VL-2B', 'InternVL3-1B')")
    result = run(store, Parameters(vision_weight=(1.0,)))
    found = {row["model"]: row for row in result.tables["cells"].rows()}
    assert found["Qwen3-VL-2B"]["vision_flop"] is None
    assert found["Qwen3-VL-8B"]["vision_flop"] > 0
    assert found["InternVL3-1B"]["vision_flop"] == pytest.approx(2 * 5 * found["InternVL3-1B"]["R"] / 256 * 1025)
    assert "vision FLOP not known for Qwen3-VL-2B: the numbers of the vision encoder is not known" in result.warnings


def test_answers_without_prompt_tokens_leave_their_group_without_a_path_and_the_rest_goes_on(frame: pd.DataFrame) -> None:
    partly = frame.assign(prompt_tokens=frame["prompt_tokens"].where(frame["series"] != "One-1"))
    result = run(session(partly), Parameters())
    assert "One-1 x S: 16 of 16 cells lack prompt_tokens and have no cost" in result.warnings
    assert "One-1: no cost law, no cell has a positive N, R and cost" in result.warnings
    assert [row["status"] for row in result.tables["paths"].rows()] == ["no cell has a cost at every weight", "walked"]
    assert rows_of(result, "laws", scope="pooled")[0]["n"] == 16
    assert result.headline["groups_with_path"] == 1


def test_nothing_known_of_cost_is_a_warning_and_no_number(frame: pd.DataFrame) -> None:
    bare = frame.drop(columns=["prompt_tokens", "generated_tokens", "latency_s"])
    result = run(session(bare), Parameters())
    (pooled, *_) = result.tables["laws"].rows()
    assert [pooled[name] for name in ("n", "kappa", "p", "q", "r2", "latency_n", "latency_r2")] == [0, None, None, None, None, None, None]
    assert "no answer states latency_s: the columns of latency are empty" in result.warnings
    assert any("lack prompt_tokens" in warning for warning in result.warnings)
    assert len(result.tables["decisions"]) == 0
    assert list(result.charts) == []
    json.dumps(result.envelope(), allow_nan=False)


@pytest.mark.parametrize(
    ("keep", "why"),
    [
        ("parameters == 3_000_000_000", "N has one level"),
        ("input_size == 448", "R has one level"),
        ("configuration_id in (0, 101)", "fewer than three cells have N, R and a cost"),
    ],
)
def test_without_a_cost_law_and_without_a_fit_the_analysis_ends_with_both_reasons(frame: pd.DataFrame, keep: str, why: str) -> None:
    with pytest.raises(AnalysisError, match=f"no group can be fitted: .* cells, 5 parameters.*; and no cost law: {why}"):
        run(session(frame.query(keep)), Parameters())


def test_a_cost_law_that_cells_do_not_determine_is_named(frame: pd.DataFrame) -> None:
    result = run(session(frame.assign(prompt_tokens=frame["prompt_tokens"].where(frame["input_size"] == 448))), Parameters())
    assert "pooled: no cost law, R has one level" in result.warnings
    assert result.headline["p"] is None
    assert result.headline["groups"] > 0
    json.dumps(result.envelope(), allow_nan=False)


def test_unknown_parameters_constant_errors_and_missing_tokens_do_not_stop_the_others(frame: pd.DataFrame) -> None:
    worse = frame.copy()
    worse.loc[worse["model"] == "One-1-3B", "parameters"] = None
    worse.loc[worse["series"] == "Two-1", "credit"] = 0.5
    worse.loc[(worse["series"] == "One-1") & (worse["input_size"] == 224), "visual_tokens"] = None
    result = run(session(worse), Parameters(floor="continuous"))
    one, two = result.tables["paths"].rows()
    assert (one["status"], one["cells"]) == ("walked", 9)
    assert "constant" in two["status"]
    assert any("Two-1 x S" in warning and "constant" in warning for warning in result.warnings)
    assert any("One-1 x S: 4 of 16 cells lack the parameters" in warning for warning in result.warnings)
    json.dumps(result.envelope(), allow_nan=False)


def test_one_affordable_cell_has_no_budgets_to_grow_along(frame: pd.DataFrame) -> None:
    one = frame.assign(prompt_tokens=frame["prompt_tokens"].where(frame["configuration_id"] == 101))
    result = run(session(one), Parameters())
    assert rows_of(result, "paths", series="One-1")[0]["status"] == "no budget is common to all weights"


def test_cost_laws_without_any_fitted_group_still_answer(frame: pd.DataFrame) -> None:
    result = run(session(frame.assign(credit=0.5)), Parameters())
    assert result.headline["groups"] == 0
    assert result.headline["p"] is not None


def test_without_cost_law_and_without_fit_the_analysis_ends_with_the_reason(frame: pd.DataFrame) -> None:
    with pytest.raises(AnalysisError, match="no group can be fitted: One-1 x S: not fitted: the error is constant; and no cost law"):
        run(session(frame.assign(credit=0.5).drop(columns=["prompt_tokens"])), Parameters())


def test_an_empty_cohort_is_an_error_and_a_negative_weight_is_refused(frame: pd.DataFrame) -> None:
    with pytest.raises(AnalysisError, match="no scored answer"):
        run(session(frame), Parameters(where="series = 'none'"))
    from analyses.parameters import checked

    with pytest.raises(UsageError, match="number from 0 to"):
        checked(Parameters, {"vision_weight": (-1.0,)})


def test_the_order_of_rows_changes_no_digit(frame: pd.DataFrame, result: Result) -> None:
    shuffled = run(session(frame.sample(frac=1, random_state=4)), Parameters(floor="continuous", workers=1))
    assert {name: table.rows() for name, table in shuffled.tables.items()} == {name: table.rows() for name, table in result.tables.items()}
    assert shuffled.headline == result.headline


def test_groups_by_other_labels_have_paths_too(frame: pd.DataFrame) -> None:
    result = run(session(frame), Parameters(by=("suite",)))
    (row,) = result.tables["paths"].rows()
    assert (row["suite"], row["cells"], row["status"]) == ("S", 32, "walked")
    assert rows_of(result, "directions")[0]["family"] == "One and Two"


def test_charts_are_drawn(result: Result) -> None:
    assert list(result.charts) == ["law", "growth"]
    assert svg(figure(result)).startswith("<svg")


def test_a_study_without_tokens_of_prompts_still_answers() -> None:
    result = run(planted.study(scale=0.01), Parameters())
    assert result.analysis == cost.NAME
    assert result.headline["cells"] == 0
    assert result.headline["groups"] > 0
