"""How sturdy persistent error is (C.3): replication on halves, other margins and token counts, and the answers to a question."""

from __future__ import annotations

import json
from itertools import product
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from analyses.ceiling import Parameters, run
from analyses.ceiling.regimes import sweep_table
from analyses.ceiling.sensitivity import DELTA, ETA, TAU, TAU_NORMALISED
from tests.analyses import messy, naive
from tests.analyses.known import known
from tests.analyses.planted import session
from tracker.errors import UsageError

if TYPE_CHECKING:
    from analyses.result import Result


def answer(rows: list[dict[str, Any]], **options: Any) -> Result:
    return run(session(rows), Parameters(**options))


def margin(measure: str) -> float:
    return 0.1 if measure.endswith("*") else 0.2


@pytest.fixture(params=[(0, True), (2, False)], ids=["gaps", "full"])
def rows(request: pytest.FixtureRequest) -> list[dict[str, Any]]:
    seed, gaps = request.param
    return messy.rows(seed, gaps=gaps)


@pytest.fixture
def wide() -> list[dict[str, Any]]:
    """Twelve configurations and more of each series, so that both halves of every quartile are filled."""
    rng = np.random.default_rng(5)
    found = []
    for question, series, n, size in product(range(60), "AB", range(4), range(5)):
        p = float(np.clip(0.03 + 0.012 * (question % 4) * (n + size) + rng.normal(0, 0.01), 0, 1))
        found.append(
            {
                "question_id": question,
                "question_key": f"k{question}",
                "benchmark": "One" if question % 2 else "Two",
                "series": series,
                "family": series,
                "model": f"{series}-{n}",
                "parameters": 1_000 * 2**n,
                "configuration_id": 1_000 + 100 * (series == "B") + 10 * n + size,
                "input_mode": "fixed",
                "input_size": 100 * (1 + size),
                "visual_tokens": 100 * (1 + size) + question * (series == "B"),
                "n_options": 4 + question % 3,
                "p_gold": p,
                "credit": float(rng.random() < p),
                "prediction": "A" if rng.random() < 0.5 else "B",
                "gold": "A",
                "counts": True,
            }
        )
    return found


# ---- replication -----------------------------------------------------------------------------------


def test_replication_equals_loops_over_the_answers(rows: list[dict[str, Any]], wide: list[dict[str, Any]]) -> None:
    for given in (rows, wide):
        store = session(given)
        result = run(store, Parameters())
        fingerprints = dict(store.connection.execute("select id, fingerprint from configurations").fetchall())
        kept = naive.matched(given)
        found = {(row["measure"], row["selected_on"]): row for row in result.tables["replication"].rows()}
        for measure in ("a", "p", "a*", "p*"):
            met = []
            for members in kept.values():
                parts = naive.halves_of_quartiles(members, fingerprints, Parameters().seed)
                judged = [naive.criteria_of_part(part, measure, margin(measure)) for part in parts]
                if judged[0] and judged[1]:
                    met.append((judged[0], judged[1]))
            for h, direction in enumerate(("first", "second")):
                row = found[measure, direction]
                candidates = [each for each in met if each[h]["J"]]
                assert row["trajectories"] == len(met)
                assert row["candidates"] == len(candidates)
                assert row["replicated"] == sum(each[1 - h]["J"] for each in candidates)
                assert row["still_low"] == sum(each[1 - h]["H"] for each in candidates)
                if candidates:
                    assert row["replication"] == pytest.approx(row["replicated"] / len(candidates))
                    assert row["low_share"] == pytest.approx(row["still_low"] / len(candidates))
    assert found["p*", "first"]["candidates"] > 10


def test_halves_do_not_look_at_outcomes(wide: list[dict[str, Any]]) -> None:
    """With outcomes swapped between two questions, so are their halves' levels: the deal depends on names and seed alone."""
    same = answer(wide).tables["replication"].rows()
    assert answer(wide, seed=1).tables["replication"].rows() != same
    assert answer(list(reversed(wide))).tables["replication"].rows() == same


def test_a_trajectory_that_never_answers_replicates_always() -> None:
    rows = [row | {"credit": 0.0, "p_gold": 0.02} for row in messy.rows(3, gaps=False)]
    for row in answer(rows).tables["replication"].rows():
        if row["candidates"]:
            assert (row["replication"], row["low_share"]) == (1, 1)


def test_too_few_configurations_leave_replication_empty() -> None:
    """Of four configurations, one in each quartile, none is left for the second half."""
    result = answer(messy.rows(4, gaps=False), where="series = 'B' and input_size < 448")
    assert result.headline["matched_trajectories"] == 56
    for row in result.tables["replication"].rows():
        assert (row["trajectories"], row["candidates"], row["replication"]) in {(0, 0, None), (None, None, None)}


# ---- sensitivity -----------------------------------------------------------------------------------


def test_the_sweep_equals_loops_over_the_answers(rows: list[dict[str, Any]]) -> None:
    kept = naive.matched(rows)
    table = answer(rows).tables["sensitivity"].rows()
    found = {(row["measure"], row["tau"], row["delta"], row["eta"]): row for row in table if row["rule"] == "sweep"}
    assert set(found) == {("p", *each) for each in product(TAU, DELTA, ETA)} | {
        ("p*", *each) for each in product(TAU_NORMALISED, DELTA, ETA)
    }
    for (measure, tau, delta, eta), row in found.items():
        joint = [naive.criteria(members, measure, tau, delta, eta)["J"] for members in kept.values()]
        assert (row["trajectories"], row["candidates"]) == (len(kept), sum(joint))
        assert row["share"] == pytest.approx(fmean(joint))


def test_wider_margins_select_more(wide: list[dict[str, Any]]) -> None:
    sweep = [row for row in answer(wide).tables["sensitivity"].rows() if row["rule"] == "sweep" and row["measure"] == "p*"]
    shares = {(row["tau"], row["delta"], row["eta"]): row["candidates"] for row in sweep}
    for (one, narrow), (other, wide_) in product(shares.items(), repeat=2):
        if all(a <= b for a, b in zip(one, other, strict=True)):
            assert narrow <= wide_
    assert min(shares.values()) < max(shares.values())


def test_the_users_margins_are_in_the_sweep(rows: list[dict[str, Any]]) -> None:
    result = answer(rows, tau=0.3, tau_normalised=0.12, delta=0.07, eta=0.03)
    table = result.tables["sensitivity"].rows()
    plain = {row["measure"]: row for row in table if row["rule"] == "J"}
    for measure, tau in (("p", 0.3), ("p*", 0.12)):
        same = [
            row
            for row in table
            if (row["rule"], row["measure"], row["tau"], row["delta"], row["eta"]) == ("sweep", measure, tau, 0.07, 0.03)
        ]
        assert [row["candidates"] for row in same] == [plain[measure]["candidates"]]
    core = dict(zip(result.tables["core"].data["measure"], result.tables["core"].data["trajectories"], strict=True))
    assert {measure: row["candidates"] for measure, row in plain.items()} == {"p": core["p"], "p*": core["p*"]}


def test_the_span_of_four_quartiles_equals_loops(rows: list[dict[str, Any]], wide: list[dict[str, Any]]) -> None:
    for given in (rows, wide):
        kept = naive.matched(given)
        found = {row["measure"]: row for row in answer(given).tables["sensitivity"].rows() if "four quartiles" in row["rule"]}
        for measure, row in found.items():
            chosen = 0
            for members in kept.values():
                means = [value for value in naive.levels(members, measure)[0] if value == value]  # noqa: PLR0124 - NaN
                chosen += naive.criteria(members, measure, margin(measure))["J"] and round(max(means) - min(means), 9) <= 0.05
            assert row["candidates"] == chosen


def test_mean_tokens_stand_beside_the_questions_own(wide: list[dict[str, Any]]) -> None:
    own, mean = (answer(wide, tokens=tokens).tables["sensitivity"].rows() for tokens in ("question", "mean"))
    beside = {row["measure"]: row for row in own if row["rule"] == "J, mean tokens"}
    alone = {row["measure"]: row for row in mean if row["rule"] == "J"}
    assert {measure: row["candidates"] for measure, row in beside.items()} == {measure: row["candidates"] for measure, row in alone.items()}
    back = {row["measure"]: row["candidates"] for row in mean if row["rule"] == "J, the question's own tokens"}
    assert back == {row["measure"]: row["candidates"] for row in own if row["rule"] == "J"}


@pytest.mark.parametrize("column", ["p_gold", "n_options", "visual_tokens", "parameters"])
def test_what_is_missing_leaves_tables_empty(column: str) -> None:
    result = answer([row | {column: None} for row in messy.rows(5, gaps=False)])
    without = {"p_gold": ("p", "p*"), "n_options": ("a*", "p*")}.get(column, ("a", "p", "a*", "p*"))
    for name in ("replication", "sensitivity"):
        for row in result.tables[name].rows():
            assert (row["candidates"] is None) == (row["measure"] in without)
    json.dumps(result.envelope(), allow_nan=False)


# ---- the answers to a question -----------------------------------------------------------------------


def test_the_grid_lists_every_answer_to_the_question(wide: list[dict[str, Any]]) -> None:
    result = answer(wide, question=("One/k7", "Two/k4"))
    found = result.tables["grid"].rows()
    expected = [row for row in wide if row["question_key"] in {"k7", "k4"}]
    expected.sort(key=lambda row: (row["benchmark"], row["question_key"], row["series"], row["parameters"], row["input_size"]))
    same = ("benchmark", "question_key", "series", "model", "input_size", "prediction", "gold", "credit", "p_gold")
    assert [[row[name] for name in same] for row in found] == [[row[name] for name in same] for row in expected]
    assert found[0]["N"] == pytest.approx(1e-6)
    drawn = result.charts["answers"].to_dict()["data"]["values"]
    assert len(drawn) == len(expected)
    assert {row["question"] for row in drawn} == {"One/k7, right: A", "Two/k4, right: A"}
    assert "grid" not in answer(wide).tables


def test_the_grid_follows_the_condition_and_shows_repetitions_together(rows: list[dict[str, Any]]) -> None:
    result = answer(rows, question=("One/easy-1",), where="series = 'A'")
    found = result.tables["grid"].rows()
    assert {row["series"] for row in found} == {"A"}
    assert len(found) == sum(
        row["question_key"] == "easy-1" and row["series"] == "A" and row["counts"] and row["credit"] is not None for row in rows
    )
    assert len(result.charts["answers"].to_dict()["data"]["values"]) == len({(row["model"], row["input_size"]) for row in found})


def test_a_question_that_is_not_there_is_said_with_what_is(wide: list[dict[str, Any]]) -> None:
    with pytest.raises(UsageError, match="no question 'One/k70'") as caught:
        answer(wide, question=("One/k70",))
    assert "One/k7" in (caught.value.hint or "")


# ---- the paper's tables ------------------------------------------------------------------------------


def test_the_papers_sweep_of_cutoffs_is_ours() -> None:
    """A cohort with the shares of Table 20: every row sums to 100, and shares move as the cutoffs do."""
    printed = {tuple(row.inputs["cog,easy"]): row.inputs["shares"] for row in known("t20_")}
    middle = {0.15: 0.1, 0.2: 0.17, 0.25: 0.22}
    shares_of_low = [printed[cutoff, 0.9][2] for cutoff in (0.15, 0.2, 0.25)]
    shares_of_easy = [printed[0.2, easy][0] for easy in (0.95, 0.9, 0.85)]
    counts = (
        np.round(10 * np.diff([0, *shares_of_low])).astype(int).tolist(),
        np.round(10 * np.diff([0, *shares_of_easy])).astype(int).tolist(),
    )
    accuracy = np.concatenate(
        [
            np.repeat(list(middle.values()), counts[0]),
            np.repeat([0.97, 0.93, 0.88], counts[1]),
            np.repeat(0.5, 1_000 - sum(counts[0]) - sum(counts[1])),
        ]
    )
    table = sweep_table(accuracy).rows()
    assert {(row["cutoff"], row["easy_cutoff"]) for row in table} == set(printed)
    for row in table:
        shares = printed[row["cutoff"], row["easy_cutoff"]]
        assert [100 * row[name] for name in ("easy", "scaling_bound", "ceiling_bound")] == pytest.approx(shares, abs=0.11)
        assert sum(shares) == pytest.approx(100, abs=0.11)


def test_weighted_groups_of_table_23_give_table_22() -> None:
    """Our partitions have the same property: groups weighted by trajectories give the share of all."""
    (row,) = known("t23")
    for part in row.inputs.values():
        weights = [group[0] for group in part.values()]
        pooled = [float(np.average([group[column] for group in part.values()], weights=weights)) for column in (1, 2, 3)]
        assert pooled == pytest.approx([34.1, 9.5, 8.2], abs=0.06)
        assert sum(weights) == 15_830
    result = answer(messy.rows(2, gaps=False))
    groups = result.tables["persistence_groups"].rows()
    core = dict(zip(result.tables["core"].data["measure"], result.tables["core"].data["trajectories"], strict=True))
    for by in ("benchmark", "task"):
        members = [group for group in groups if group["by"] == by]
        assert sum(group["trajectories"] for group in members) == result.headline["matched_trajectories"]
        assert sum(group["trajectories"] * group["J_p*"] for group in members) == pytest.approx(core["p*"])


def test_the_papers_counts_give_its_shares() -> None:
    (row,) = known("c3_counts")
    counts = [int(part) for part in row.what.replace('"', "").split(",")]
    of = [15_830, counts[0], 15_830, 15_830, 15_830, 1_268]
    assert [100 * count / whole for count, whole in zip(counts, of, strict=True)] == pytest.approx(
        [float(value) for value in row.recomputed.split()], abs=0.006
    )


def test_ceiling_in_every_series_is_over_questions_that_every_series_answered() -> None:
    """714 of 3,978 (17.95%): here 2 of 3, the fourth question lacking a series."""
    (row,) = known("every_series")
    assert row.recomputed.startswith("714/3978")
    assert round(100 * 714 / 3_978, 2) == float(row.expected)
    given = [
        {
            "question_id": question,
            "question_key": str(question),
            "benchmark": "b",
            "series": series,
            "model": series,
            "configuration_id": ord(series),
            "credit": credit,
        }
        for question, credit in enumerate([0.0, 0.0, 1.0, 0.0])
        for series in ("AB" if question < 3 else "A")
    ]
    assert answer(given).headline["ceiling_in_every_series"] == pytest.approx(2 / 3)
