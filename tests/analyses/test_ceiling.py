"""Every number of the ceiling analysis by a second route, and what must not change it."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from analyses.ceiling import Parameters, run
from analyses.ceiling.regimes import REGIMES
from tests.analyses import messy, naive
from tests.analyses.planted import PlantedSession, session, study

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from analyses.result import Result


def answer(rows: list[dict[str, Any]], option_scores: dict[int, Sequence[int]] | None = None, **options: Any) -> Result:
    return run(session(rows, option_scores), Parameters(**options))


def table(result: Result, name: str, *key: str) -> dict[Any, dict[str, Any]]:
    """A table's rows by their key columns."""
    rows = result.tables[name].rows()
    return {tuple(row[column] for column in key) if len(key) > 1 else row[key[0]]: row for row in rows}


def fingerprints(store: PlantedSession) -> dict[Any, str]:
    return dict(store.connection.execute("select id, fingerprint from configurations").fetchall())


def shares(values: Iterable[str]) -> dict[str, float]:
    counted = Counter(values)
    return {name: counted[name] / counted.total() for name in REGIMES}


@pytest.fixture(params=[(0, True), (1, True), (2, False)], ids=["gaps-0", "gaps-1", "full"])
def rows(request: pytest.FixtureRequest) -> list[dict[str, Any]]:
    seed, gaps = request.param
    return messy.rows(seed, gaps=gaps)


# ---- regimes -----------------------------------------------------------------------------------


def test_regimes_equal_loops_over_the_answers(rows: list[dict[str, Any]]) -> None:
    result = answer(rows, by=("series", "category"))
    accuracy = naive.accuracies(rows)
    category = {row["question_id"]: row["category"] for row in rows}
    found = table(result, "regimes", "by", "value")
    expected: dict[tuple[str, str | None], list[str]] = defaultdict(list)
    for (question, series), value in accuracy.items():
        for group in (("all", "all"), ("series", series), ("category", category[question])):
            expected[group].append(naive.regime(value))
    assert set(found) == set(expected)
    for group, regimes in expected.items():
        assert found[group]["trajectories"] == len(regimes)
        assert {name: found[group][name] for name in REGIMES} == pytest.approx(shares(regimes))


def test_headline_equals_loops_over_the_answers(rows: list[dict[str, Any]]) -> None:
    headline = answer(rows).headline
    accuracy = naive.accuracies(rows)
    assert headline["trajectories"] == len(accuracy)
    assert headline["questions"] == len({question for question, _ in accuracy})
    assert headline["series"] == 2
    assert {name: headline[name] for name in REGIMES} == pytest.approx(shares(naive.regime(value) for value in accuracy.values()))
    in_both = [question for question, series in accuracy if series == "A" and (question, "B") in accuracy]
    bound = [all(naive.regime(accuracy[question, series]) == "ceiling_bound" for series in "AB") for question in in_both]
    assert headline["ceiling_in_every_series"] == pytest.approx(fmean(bound))


def test_sweep_equals_loops_over_the_answers(rows: list[dict[str, Any]]) -> None:
    found = table(answer(rows), "sweep", "cutoff", "easy_cutoff")
    assert set(found) == {(cutoff, easy) for cutoff in (0.15, 0.2, 0.25) for easy in (0.85, 0.9, 0.95)}
    for (cutoff, easy), row in found.items():
        expected = shares(naive.regime(value, cutoff, easy) for value in naive.accuracies(rows).values())
        assert {name: row[name] for name in REGIMES} == pytest.approx(expected)


def test_an_accuracy_on_the_cutoff_is_scaling_bound() -> None:
    """The mean of 0.1, 0.2 and 0.3 is 0.20000000000000004 or 0.19999999999999998 by order; both mean 0.2."""
    given = [
        {"question_id": 1, "question_key": "k", "benchmark": "b", "series": "s", "model": "m", "configuration_id": place, "credit": credit}
        for place, credit in enumerate([0.3, 0.2, 0.1, 0.3, 0.2, 0.1])
    ]
    headline = answer(given).headline
    assert headline["scaling_bound"] == 1
    assert answer(given, cutoff=0.21).headline["ceiling_bound"] == 1
    assert answer([row | {"credit": 0.9} for row in given]).headline["scaling_bound"] == 1
    assert answer([row | {"credit": 0.9} for row in given], easy=0.89).headline["easy"] == 1


def test_questions_hold_the_regime_of_each_series(rows: list[dict[str, Any]]) -> None:
    found = table(answer(rows), "questions", "question_key")
    accuracy = naive.accuracies(rows)
    keys = {row["question_id"]: row["question_key"] for row in rows}
    for question, key in keys.items():
        values = {series: accuracy.get((question, series)) for series in "AB"}
        assert {series: found[key][series] for series in "AB"} == {
            series: None if value is None else naive.regime(value) for series, value in values.items()
        }
        assert found[key]["ceiling_bound_in"] == sum(found[key][series] == "ceiling_bound" for series in "AB")


# ---- what depends on compute ---------------------------------------------------------------------


def test_gains_equal_loops_over_the_answers(rows: list[dict[str, Any]]) -> None:
    result = answer(rows)
    kept, accuracy = naive.matched(rows), naive.accuracies(rows)
    assert result.headline["matched_trajectories"] == len(kept) > 20
    for name, row in table(result, "gains", "regime").items():
        members = [key for key in kept if naive.regime(accuracy[key]) == name]
        p, a = ([naive.levels(kept[key], measure)[0] for key in members] for measure in "pa")
        assert row["trajectories"] == len(members)
        if members:
            gains = [levels[3] - levels[0] for levels in p]
            assert row["p_low"] == pytest.approx(fmean(levels[0] for levels in p))
            assert row["p_high"] == pytest.approx(fmean(levels[3] for levels in p))
            assert row["gain"] == pytest.approx(fmean(gains))
            assert row["gaining"] == pytest.approx(fmean(round(gain, 9) > 0.05 for gain in gains))
            assert row["losing"] == pytest.approx(fmean(round(gain, 9) < -0.05 for gain in gains))
            assert row["accuracy_high"] == pytest.approx(fmean(levels[3] for levels in a))
            assert row["persistent"] == pytest.approx(fmean(round(levels[3], 9) < 0.2 for levels in a))
            assert row["half_right"] == pytest.approx(fmean(round(levels[3], 9) >= 0.5 for levels in a))
    assert result.headline["high_compute_persistent"] == table(result, "gains", "regime")["ceiling_bound"]["persistent"]


def test_persistence_core_and_groups_equal_loops_over_the_answers(rows: list[dict[str, Any]]) -> None:
    result = answer(rows)
    kept, accuracy = naive.matched(rows), naive.accuracies(rows)
    found = table(result, "persistence", "criterion")
    joint = {}
    for measure in ("a", "p", "a*", "p*"):
        met = {key: naive.criteria(members, measure, 0.1 if measure.endswith("*") else 0.2) for key, members in kept.items()}
        assert {rule: found[rule][measure] for rule in "HEPBJ"} == pytest.approx(
            {rule: fmean(each[rule] for each in met.values()) for rule in "HEPBJ"}
        )
        joint[measure] = {key for key, each in met.items() if each["J"]}
        core = table(result, "core", "measure")[measure]
        assert core["trajectories"] == len(joint[measure])
        assert core["ceiling_bound"] == pytest.approx(fmean(naive.regime(accuracy[key]) == "ceiling_bound" for key in joint[measure]))
    for (by, value), row in table(result, "persistence_groups", "by", "value").items():
        members = [key for key, observations in kept.items() if observations[0][by] == value]
        assert row["trajectories"] == len(members)
        assert row["ceiling_bound"] == pytest.approx(fmean(naive.regime(accuracy[key]) == "ceiling_bound" for key in members))
        assert row["J_p"] == pytest.approx(fmean(key in joint["p"] for key in members))
        assert row["J_p*"] == pytest.approx(fmean(key in joint["p*"] for key in members))
    assert result.headline["joint_persistent"] == pytest.approx(len(joint["p*"]) / len(kept))


def test_halves_equal_loops_over_the_answers(rows: list[dict[str, Any]]) -> None:
    store = session(rows)
    found = table(run(store, Parameters()), "halves", "series", "regime")
    expected = naive.halves(rows, fingerprints(store), Parameters().seed)
    assert {key for key, row in found.items() if row["accuracy"] is not None} == {
        key for key, (value, _) in expected.items() if value is not None
    }
    for key, (accuracy, slope) in expected.items():
        assert found[key]["accuracy"] == pytest.approx(accuracy)
        assert found[key]["slope"] == pytest.approx(slope, abs=1e-12)


def test_quartiles_equal_loops_over_the_answers() -> None:
    rows = [row | {"domain": row["benchmark"], "skill": row["task"]} for row in messy.rows(3, gaps=False)]
    kept = naive.matched(rows)
    found = table(answer(rows), "quartiles", "domain", "skill", "quartile")
    for (domain, skill, quartile), row in found.items():
        members = [
            naive.levels(each, "a")[0][quartile - 1] for each in kept.values() if (each[0]["domain"], each[0]["skill"]) == (domain, skill)
        ]
        assert row["trajectories"] == len(members)
        assert row["accuracy"] == pytest.approx(fmean(members))


def test_a_quartile_that_ties_leave_empty_is_not_counted() -> None:
    """Three backbones x four sizes with the same tokens: three ties of four, at quartiles 1, 3 and 4; the other series fills all four."""
    given = [
        {
            "question_id": 1,
            "question_key": "k",
            "benchmark": "One",
            "suite": "S",
            "domain": "D1",
            "skill": "S1",
            "n_options": 4,
            "series": series,
            "family": series,
            "model": f"{series}-{model}",
            "parameters": 1_000 * (1 + model),
            "configuration_id": 100 * (series == "B") + 10 * model + size,
            "input_mode": "fixed",
            "input_size": 224 * (1 + size),
            "visual_tokens": 256 if series == "A" else 256 + 7 * size,
            "credit": 0.25 if series == "A" else 0.75,
            "p_gold": 0.5,
        }
        for series in "AB"
        for model in range(3)
        for size in range(4)
    ]
    result = answer(given)
    found = table(result, "quartiles", "quartile")
    assert {quartile: (row["trajectories"], row["accuracy"]) for quartile, row in found.items()} == {
        1: (2, 0.5),
        2: (1, 0.75),
        3: (2, 0.5),
        4: (2, 0.5),
    }
    drawn = result.charts["quartiles"].to_dict()["data"]["values"]
    assert [(row["quartile"], row["trajectories"], row["accuracy"]) for row in drawn] == [
        (row["quartile"], row["trajectories"], row["accuracy"]) for row in found.values()
    ]


def test_a_series_without_compute_is_named_as_the_reason() -> None:
    rows = [row | ({"parameters": None} if row["series"] == "B" else {}) for row in messy.rows(3, gaps=False)]
    result = answer(rows)
    counts = table(result, "cohort", "status")
    assert counts["question without known compute in some series"]["trajectories"] == result.headline["trajectories"] / 2
    assert counts["no answer with known compute"]["trajectories"] == result.headline["trajectories"] / 2


def test_cohort_counts_every_trajectory_once(rows: list[dict[str, Any]]) -> None:
    result = answer(rows)
    counts = table(result, "cohort", "status")
    assert sum(row["trajectories"] for row in counts.values()) == result.headline["trajectories"]
    assert counts["kept"]["trajectories"] == result.headline["matched_trajectories"]


def _grid(credit_rows: list[list[float]], *, series: str = "s", tokens: tuple[int, ...] = (100, 200, 300, 400)) -> list[dict[str, Any]]:
    """One question on a grid of backbone sizes (rows) and input sizes (columns); p_gold equals the credit."""
    return [
        {
            "question_id": 1,
            "question_key": "k",
            "benchmark": "b",
            "series": series,
            "model": f"{series}{n}",
            "parameters": 1000 * 10**n,
            "configuration_id": 10 * n + place + 100 * ord(series),
            "input_mode": "fixed",
            "input_size": 100 * place,
            "visual_tokens": tokens[place],
            "credit": credit,
            "p_gold": credit,
            "n_options": 4,
        }
        for n, row in enumerate(credit_rows, start=1)
        for place, credit in enumerate(row)
    ]


def test_planted_gain_and_chance_by_hand() -> None:
    """Eight configurations in the order of compute: quartile means 0.1, 0.1, 0.1, 0.15; above chance (z - 1/4)/(3/4)."""
    result = answer(_grid([[0.1, 0.1, 0.1, 0.1], [0.1, 0.1, 0.1, 0.2]]))
    gains = table(result, "gains", "regime")["ceiling_bound"]
    assert (gains["p_low"], gains["p_high"], gains["gain"]) == pytest.approx((0.1, 0.15, 0.05))
    assert gains["gaining"] == 0  # 0.15 - 0.1 is 0.04999999999999999 in floating point and 0.05 in truth: not more than 0.05
    found = table(result, "persistence", "criterion")
    assert [found[rule]["p"] for rule in "HEP"] == [1, 1, 1]
    assert [found[rule]["p*"] for rule in "HEP"] == [1, 0, 0]  # above chance the change is 0.0667 > 0.05
    assert found["H"]["a*"] == 1  # negative values are kept and low


def test_all_tied_compute_has_no_lowest_quartile() -> None:
    result = answer(_grid([[0.1] * 4, [0.1] * 4], tokens=(100, 100, 100, 100)) + _grid([[0.1] * 4, [0.2] * 4], series="t"))
    assert table(result, "cohort", "status")["an empty compute quartile (1, 3 or 4)"]["trajectories"] == 1
    assert table(result, "cohort", "status")["another series of the question falls out"]["trajectories"] == 1
    assert result.headline["matched_trajectories"] == 0
    assert any("matched cohort" in warning for warning in result.warnings)


def test_a_question_with_different_numbers_of_options_is_not_matched() -> None:
    rows = _grid([[0.1] * 4, [0.1] * 4])
    assert answer(rows, {1: [4, 4]}).headline["matched_trajectories"] == 1
    assert answer(rows, {1: [4, 5]}).headline["matched_trajectories"] == 0
    assert answer(rows, {1: [3, 3]}).headline["matched_trajectories"] == 0
    unknown = [row | {"n_options": None} for row in rows]
    assert table(answer(unknown, {1: [4, 4]}), "persistence", "criterion")["H"]["p*"] == 1


# ---- options -----------------------------------------------------------------------------------


def test_where_recomputes_trajectories_from_what_is_left(rows: list[dict[str, Any]]) -> None:
    result = answer(rows, where="input_size >= 336 or model = 'A-1' -- a comment")
    left = [row for row in rows if (row["input_size"] or 0) >= 336 or row["model"] == "A-1"]
    assert result.headline["trajectories"] == len(naive.accuracies(left))
    assert {name: result.headline[name] for name in REGIMES} == pytest.approx(shares(map(naive.regime, naive.accuracies(left).values())))
    assert result.headline["matched_trajectories"] == len(naive.matched(left))


def test_a_cohort_of_the_user_replaces_ours(rows: list[dict[str, Any]]) -> None:
    left = [row for row in rows if row["benchmark"] == "One" and row["input_size"] != 224]
    result = answer(rows, cohort="select * from answers where benchmark = 'One';", where="input_size is distinct from 224")
    assert {name: result.headline[name] for name in REGIMES} == pytest.approx(shares(map(naive.regime, naive.accuracies(left).values())))
    assert result.cohort.rows == sum(row["counts"] and row["credit"] is not None for row in left)


def test_records_both_asks_for_a_probability(rows: list[dict[str, Any]]) -> None:
    left = [row for row in rows if row["p_gold"] is not None]
    result = answer(rows, records="both")
    assert {name: result.headline[name] for name in REGIMES} == pytest.approx(shares(map(naive.regime, naive.accuracies(left).values())))
    assert result.headline["matched_trajectories"] == len(naive.matched(left))
    assert result.cohort.rows == sum(row["counts"] and row["credit"] is not None for row in left)


def test_mean_tokens_order_configurations_by_their_mean() -> None:
    """Two questions with opposite token counts: by its own count the second one falls, by the mean both tie."""
    first = _grid([[0.1, 0.1, 0.1, 0.3], [0.1, 0.1, 0.1, 0.3]])
    second = [
        row | {"question_id": 2, "question_key": "l"}
        for row in _grid([[0.1, 0.1, 0.1, 0.3], [0.1, 0.1, 0.1, 0.3]], tokens=(400, 300, 200, 100))
    ]
    own, mean = (answer(first + second, tokens=tokens) for tokens in ("question", "mean"))
    assert table(own, "gains", "regime")["ceiling_bound"]["trajectories"] == 2
    assert own.tables["cohort"].data["trajectories"] != mean.tables["cohort"].data["trajectories"]
    even = [row | {"visual_tokens": 100 + row["input_size"]} for row in first]
    assert answer(even, tokens="mean").tables["gains"].rows() == answer(even).tables["gains"].rows()


def test_native_size_enters_regimes_and_only_on_request_compute() -> None:
    rows = _grid([[0.1] * 4, [0.1] * 4])
    native = [
        rows[0] | {"configuration_id": 77, "input_mode": "native", "input_size": None, "credit": 1.0, "p_gold": 1.0, "visual_tokens": 9999}
    ]
    result = answer(rows + native)
    assert result.headline["scaling_bound"] == 1  # 1.8 / 9 = 0.2
    assert table(result, "gains", "regime")["scaling_bound"]["gain"] == pytest.approx(0)
    assert any("native" in warning for warning in result.warnings)
    included = answer(rows + native, include_native=True)
    assert not any("native" in warning for warning in included.warnings)
    assert included.tables["gains"].rows() != result.tables["gains"].rows()


def test_margins_are_options() -> None:
    rows = _grid([[0.1, 0.1, 0.1, 0.1], [0.1, 0.1, 0.1, 0.2]])
    assert table(answer(rows, tau=0.15), "persistence", "criterion")["H"]["p"] == 0
    assert table(answer(rows, delta=0.04), "persistence", "criterion")["E"]["p"] == 0
    assert table(answer(rows, delta=0.07), "persistence", "criterion")["E"]["p*"] == 1
    assert table(answer(rows, eta=0.001), "persistence", "criterion")["B"]["p"] == 0
    assert table(answer(rows, tau_normalised=-0.0), "persistence", "criterion")["H"]["p*"] == 1


# ---- what the data cannot support ------------------------------------------------------------------


@pytest.mark.parametrize("column", ["visual_tokens", "parameters"])
def test_without_compute_regimes_and_held_out_accuracy_remain(column: str) -> None:
    rows = messy.rows(4, gaps=False)
    result, full = answer([row | {column: None} for row in rows]), answer(rows)
    assert result.tables["regimes"].rows() == full.tables["regimes"].rows()
    assert any(column in warning for warning in result.warnings)
    for row, expected in zip(result.tables["halves"].rows(), full.tables["halves"].rows(), strict=True):
        assert row["accuracy"] == expected["accuracy"]
        assert row["slope"] is None
    assert all(row["p"] is None and row["a"] is None for row in result.tables["persistence"].rows())
    assert all(row["gain"] is None for row in result.tables["gains"].rows())
    assert result.headline["high_compute_persistent"] is None


def test_without_probabilities_accuracy_criteria_remain() -> None:
    rows = messy.rows(5, gaps=False)
    result, full = answer([row | {"p_gold": None} for row in rows]), answer(rows)
    assert any("p_gold" in warning for warning in result.warnings)
    for row, expected in zip(result.tables["persistence"].rows(), full.tables["persistence"].rows(), strict=True):
        assert (row["a"], row["a*"], row["p"], row["p*"]) == (expected["a"], expected["a*"], None, None)
    gains = table(result, "gains", "regime")["ceiling_bound"]
    assert gains["gain"] is None
    assert gains["gaining"] is None
    assert gains["accuracy_high"] is not None


def test_without_numbers_of_options_raw_criteria_remain() -> None:
    result = answer([row | {"n_options": None} for row in messy.rows(5, gaps=False)])
    assert any("n_options" in warning for warning in result.warnings)
    row = table(result, "persistence", "criterion")["H"]
    assert row["a"] > 0
    assert row["p"] > 0
    assert row["a*"] is row["p*"] is None


def test_a_label_that_nobody_has_is_said() -> None:
    result = answer(messy.rows(5, gaps=False), by=("domain",))
    assert any("domain" in warning for warning in result.warnings)
    assert table(result, "regimes", "by", "value")["domain", None]["trajectories"] == result.headline["trajectories"]


def test_full_data_gives_no_warning() -> None:
    assert answer(messy.rows(6, gaps=False)).warnings == ()


# ---- what must not change a number -----------------------------------------------------------------


def _numbers(result: Result) -> str:
    envelope = result.envelope()
    return json.dumps(
        {name: envelope[name] for name in ("headline", "tables", "warnings")} | {"digest": result.cohort.digest}, sort_keys=True
    )


def test_ids_and_row_order_do_not_matter() -> None:
    rows = messy.rows(7)
    shuffled = [rows[place] for place in np.random.default_rng(0).permutation(len(rows))]
    renamed = [
        row
        | {"question_id": 9_999 - row["question_id"], "configuration_id": 1_000 - row["configuration_id"], "run_id": 5_000 - row["run_id"]}
        for row in shuffled
    ]
    assert _numbers(answer(renamed)) == _numbers(answer(rows))


def test_any_number_of_workers_gives_the_same_numbers() -> None:
    store = study(0.05)
    one, four = (_numbers(run(store, Parameters(workers=workers))) for workers in (1, 4))
    assert one == four


def test_the_seed_deals_the_halves_and_nothing_else() -> None:
    rows = messy.rows(8)
    first, second = answer(rows), answer(rows, seed=1)
    assert first.tables["halves"].rows() != second.tables["halves"].rows()
    for name in set(first.tables) - {"halves", "replication"}:
        assert first.tables[name].rows() == second.tables[name].rows()
    assert _numbers(answer(rows, seed=1)) == _numbers(second)


def test_the_digest_follows_the_data() -> None:
    rows = messy.rows(8)
    changed = [*rows[:-1], rows[-1] | {"p_gold": 0.123456}]
    assert answer(rows).cohort.digest == answer(list(reversed(rows))).cohort.digest
    assert answer(rows).cohort.digest != answer(changed).cohort.digest


def test_stale_stored_trajectories_are_computed_again() -> None:
    rows = messy.rows(9)
    store, fresh = session(rows), session(rows)
    store.connection.execute("update trajectories set accuracy = 0.5 where series = 'A'")
    assert _numbers(run(store, Parameters())) == _numbers(run(fresh, Parameters()))


def test_nothing_is_left_in_the_session() -> None:
    store = session(messy.rows(9))
    before = store.connection.execute("select table_name from duckdb_tables() order by 1").fetchall()
    run(store, Parameters(workers=1))
    assert store.connection.execute("select table_name from duckdb_tables() order by 1").fetchall() == before


def test_the_paper_grid_keeps_four_fifths_of_its_trajectories() -> None:
    """The 8K release has one input size: its 800 questions x 5 series fall out, 5 x 3,178 remain (here a tenth of it)."""
    result = run(study(0.1), Parameters())
    counts = table(result, "cohort", "status")
    assert result.headline["trajectories"] == 5 * (80 + 80 + 178 + 40 + 19)
    assert counts["fewer than two input sizes"]["trajectories"] == 5 * 80
    assert counts["kept"]["trajectories"] == 5 * (80 + 178 + 40 + 19)
