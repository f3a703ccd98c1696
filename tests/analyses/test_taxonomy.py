"""Floors by domain and skill: sub-cells and fits by loops, planted tables, one bootstrap by hand, and labels that are not there."""

from __future__ import annotations

import itertools
from collections import defaultdict
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

from analyses import ceiling
from analyses.cells import study_of_cells
from analyses.clusters import cluster_sums, draw
from analyses.decomposition import Shares
from analyses.laws import SeparableLaw
from analyses.plot import save_plot
from analyses.taxonomy import Parameters, run
from analyses.taxonomy.analysis import sub_cells
from analyses.taxonomy.tables import Resampled, bootstrap_table, marginals_table
from tests.analyses.known import known
from tests.analyses.planted import PlantedLaw, planted_cells, session
from tracker.errors import AnalysisError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from analyses.result import Result

DOMAIN, SKILL = {"D1": 0.0, "D2": 0.08, "D3": 0.2}, {"S1": 0.0, "S2": 0.12}
LAW = PlantedLaw(e=0.1, a=0.05, alpha=0.5, b=0.06, beta=0.5)
SIZES, PIXELS = (1.0, 3.0, 8.0, 20.0), (224, 448, 896, 1344)
QUESTIONS = 36


def labelled(series: Iterable[str] = ("A",), *, noise: float = 0.0, per_pairing: int = 6, seed: int = 0) -> pd.DataFrame:
    """Answers whose floors are additive in domain and skill, `per_pairing` questions of each pairing, two of an image."""
    frame = planted_cells({(name, "X"): LAW for name in series}, questions=6 * per_pairing, sizes=SIZES, input_sizes=PIXELS)
    number = frame["question_key"].str[1:].astype(int).to_numpy() // per_pairing
    pairs = list(itertools.product(DOMAIN, SKILL))
    frame["domain"], frame["skill"] = ([pairs[one][place] for one in number] for place in (0, 1))
    frame["credit"] -= frame["domain"].map(DOMAIN) + frame["skill"].map(SKILL)
    frame["credit"] = (frame["credit"] + noise * np.random.default_rng(seed).standard_normal(len(frame))).clip(0, 1)
    return frame


def answer(frame: pd.DataFrame, **options: Any) -> Result:
    return run(session(frame), Parameters(**options))


def pairings(result: Result) -> dict[tuple[str, str], dict[str, Any]]:
    return {(row["domain"], row["skill"]): row for row in result.tables["pairings"].rows()}


def loops(
    frame: pd.DataFrame, least: int = 5, weight: dict[Any, float] | None = None
) -> dict[tuple[str, str], list[tuple[float, float, float]]]:
    """N (billions), R and error of the sub-cells of each pairing, in weighted means over the answers, by loops.

    `weight` is by (benchmark, image); a sub-cell of no weight is not given. The rule of `least` questions is about the answers as they are.
    """
    cells: dict[tuple[Any, ...], list[dict[Any, Any]]] = defaultdict(list)
    for row in frame.to_dict("records"):
        if row["domain"] is not None and row["skill"] is not None:
            cells[row["configuration_id"], row["benchmark"], row["domain"], row["skill"]].append(row)
    found: dict[tuple[str, str], list[tuple[float, float, float]]] = defaultdict(list)
    for (_, _, domain, skill), rows in cells.items():
        weights = [1.0 if weight is None else weight[row["benchmark"], row["image_key"]] for row in rows]
        if len({row["question_id"] for row in rows}) < least or not sum(weights):
            continue
        r, error = (
            float(np.average([value(row) for row in rows], weights=weights))
            for value in (lambda row: row["visual_tokens"], lambda row: 1 - row["credit"])
        )
        found[domain, skill].append((rows[0]["parameters"] / 1e9, r, error))
    return found


def fit(points: list[tuple[float, float, float]], reference: tuple[float, float] | None = None) -> Any:
    return SeparableLaw(floor="grid", reference=reference).fit(*zip(*points, strict=True))


def sklearn_shares(floors: dict[tuple[str, str], float]) -> tuple[float, float]:
    """V of domain and skill (Eq. 19)."""
    values = np.array(list(floors.values()))
    frames = [pd.get_dummies(pd.Series([pair[place] for pair in floors])).to_numpy(float) for place in (0, 1)]
    one, two, both = (LinearRegression().fit(x, values).score(x, values) for x in (*frames, np.hstack(frames)))
    return 0.5 * (one + both - two), 0.5 * (two + both - one)


# ---- fits ----------------------------------------------------------------------------------------


def test_a_planted_additive_table_comes_back_with_exact_shares() -> None:
    result = answer(labelled(("A", "B")), floor="continuous")
    found = pairings(result)
    assert len(found) == 6
    for (domain, skill), row in found.items():
        assert row["e_inf"] == pytest.approx(0.1 + DOMAIN[domain] + SKILL[skill], abs=1e-5)
        assert (row["alpha"], row["beta"]) == pytest.approx((0.5, 0.5), abs=1e-3)
    spread = {"domain": 2 * sum((v - fmean(DOMAIN.values())) ** 2 for v in DOMAIN.values()), "skill": 3 * 2 * 0.06**2}
    assert result.headline["r2_both"] == pytest.approx(1.0, abs=1e-6)
    assert result.headline["V_domain"] == pytest.approx(spread["domain"] / sum(spread.values()), abs=1e-4)
    assert result.headline["V_skill_over_V_domain"] == pytest.approx(spread["skill"] / spread["domain"], abs=1e-3)
    assert result.headline["both_interior"] == 6


def test_fits_are_those_of_the_sub_cells_that_loops_make() -> None:
    frame = labelled(("A", "B"), noise=0.06)
    found, expected = pairings(answer(frame)), loops(frame)
    assert set(found) == set(expected)
    for pair, points in expected.items():
        one = fit(points)
        assert found[pair]["sub_cells"] == len(points) == 32
        assert found[pair]["questions"] == 6
        assert found[pair]["e_inf"] == one.parameters["e_inf"]
        assert found[pair]["sse"] == pytest.approx(one.objective, rel=1e-6)


def test_shares_and_marginals_are_those_of_the_pairings() -> None:
    result = answer(labelled(noise=0.06))
    floors = {pair: row["e_inf"] for pair, row in pairings(result).items()}
    domain, skill = sklearn_shares(floors)
    assert [row["share"] for row in result.tables["shares"].rows()] == pytest.approx([domain, skill])
    for row in result.tables["marginals"].rows():
        some = [value for pair, value in floors.items() if row["value"] in pair]
        assert (row["mean_e_inf"], row["pairings"]) == (pytest.approx(fmean(some)), len(some))


def test_sub_cells_need_distinct_questions_and_not_answers() -> None:
    frame = labelled(per_pairing=5)
    lost = (frame["domain"] == "D1") & (frame["skill"] == "S1") & (frame["question_key"] == "q0")
    twice = frame[~lost & (frame["domain"] == "D1")].assign(repetition=1)
    result = answer(pd.concat([frame[~lost].assign(repetition=0), twice]))
    assert ("D1", "S1") not in pairings(result)
    assert len(pairings(result)) == 5
    assert any("no sub-cell with 5 questions" in text and "D1 x S1" in text for text in result.warnings)
    assert ("D1", "S1") in pairings(answer(frame[~lost], min_questions=4))


def test_other_labels_may_be_crossed() -> None:
    result = answer(labelled(("A", "B")), by=("task", "series"), floor="continuous")
    assert result.tables["pairings"].names[:2] == ("task", "series")
    assert {(row["task"], row["series"]) for row in result.tables["pairings"].rows()} == set(
        itertools.product(("perception", "reasoning"), "AB")
    )
    assert "quartiles" not in result.tables
    for by in (("domain",), ("domain", "domain"), ("domain", "skill", "task")):
        with pytest.raises(ValueError, match="two different labels"):
            Parameters(by=by)


def test_highest_lists_high_floors_first() -> None:
    result = answer(labelled(), floor="continuous", high=0.25)
    rows = result.tables["highest"].rows()
    assert [(row["domain"], row["skill"]) for row in rows] == [("D3", "S2"), ("D2", "S2"), ("D3", "S1")]


def test_the_paper_s_floors_give_its_marginals() -> None:
    floors = known("t24")[0].inputs
    table = marginals_table(
        ("domain", "skill"), [np.array([key[:2] for key in floors]), np.array([key[2:] for key in floors])], np.array(list(floors.values()))
    )
    printed = [float(text) for part in known("t24")[0].expected.split(";") for text in part.split()]
    assert [row["mean_e_inf"] for row in table.rows()] == pytest.approx(printed, abs=6e-4)
    assert [row["pairings"] for row in table.rows()] == [5, 6, 6, 5, 6, 5, 4, 6, 6, 6, 6, 5]


def test_quartiles_are_those_of_the_ceiling_analysis() -> None:
    frame = labelled(("A", "B"), noise=0.1)
    store = session(frame)
    mine, theirs = run(store, Parameters()).tables["quartiles"], ceiling.run(store, ceiling.Parameters()).tables["quartiles"]
    assert mine.rows() == theirs.rows()
    assert len(mine) == 24


def test_neither_ids_nor_the_order_of_rows_change_a_digit() -> None:
    frame = labelled(("A", "B"), noise=0.06)
    shuffled = frame.sample(frac=1, random_state=3).assign(
        configuration_id=lambda rows: 7919 - rows["configuration_id"],
        run_id=lambda rows: 10_000 - rows["run_id"],
        question_id=lambda rows: 999 - rows["question_id"],
    )
    one, two = answer(frame, replicates=3).envelope(), answer(shuffled, replicates=3, workers=1).envelope()
    assert one["tables"] == two["tables"]
    assert one["headline"] == two["headline"]


# ---- bootstrap -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["ordinary", "positive"])
def test_a_bootstrap_is_that_of_loops_over_the_drawn_images(kind: Any) -> None:
    frame, replicates = labelled(("A", "B"), noise=0.06), 4
    store, parameters = session(frame), Parameters(replicates=replicates, resampling=kind)
    (row,) = run(store, parameters).tables["bootstrap"].rows()
    study, _ = sub_cells(study_of_cells(store, "taxonomy", parameters), parameters)
    clusters = cluster_sums(study).clusters
    place = {
        (study.answers.questions.text["benchmark"][question], study.answers.questions.text["image_key"][question]): cluster
        for question, cluster in enumerate(clusters.of_question.tolist())
    }
    shares = []
    for weights in draw(clusters, parameters.seed, range(replicates), kind):
        points = loops(frame, weight={image: float(weights[cluster]) for image, cluster in place.items()})
        if len(points) == 6:
            shares.append(sklearn_shares({pair: fit(some, study.reference).parameters["e_inf"] for pair, some in points.items()}))
    assert row["complete"] == len(shares)
    domain, skill = np.array(shares).T
    assert [row["V_domain_low"], row["V_domain_high"]] == pytest.approx(np.percentile(domain, (2.5, 97.5)).tolist(), abs=1e-9)
    assert [row["V_skill"], row["V_skill_low"]] == pytest.approx(np.percentile(skill, (50, 2.5)).tolist(), abs=1e-9)
    assert row["V_skill_over_V_domain_high"] == pytest.approx(np.percentile(skill / domain, 97.5), rel=1e-6)
    assert row["skill_larger"] == pytest.approx((skill > domain).mean())


def test_only_positive_weights_keep_a_pairing_of_one_image() -> None:
    frame = labelled(noise=0.06)
    rare = (frame["domain"] == "D2") & (frame["skill"] == "S1")
    frame.loc[rare, "image_key"] = "alone"
    ordinary, positive = answer(frame, replicates=30).tables["bootstrap"].rows()
    assert (ordinary["resampling"], positive["resampling"]) == ("ordinary", "positive")
    assert 0 < ordinary["complete"] < 30
    assert positive["complete"] == 30


# ---- data that cannot carry it -------------------------------------------------------------------


def test_questions_without_labels_are_left_out_and_counted() -> None:
    frame = labelled()
    frame["domain"] = frame["domain"].astype(object)
    frame.loc[frame["question_key"].isin(["q0", "q7"]), "domain"] = None
    result = answer(frame)
    assert any(text.startswith("2 questions without domain and skill") for text in result.warnings)
    assert result.headline["questions"] == 34


def test_without_any_label_or_any_large_sub_cell_there_is_nothing() -> None:
    with pytest.raises(AnalysisError, match="no question has both domain and skill"):
        answer(labelled().assign(domain=None))
    with pytest.raises(AnalysisError, match="has 7 questions"):
        answer(labelled(), min_questions=7)
    with pytest.raises(AnalysisError, match="no scored answer"):
        answer(labelled(), where="false")


def test_one_pairing_has_a_floor_and_no_shares() -> None:
    frame = labelled()
    result = answer(frame[(frame["domain"] == "D1") & (frame["skill"] == "S2")], replicates=5)
    assert result.headline["pairings"] == 1
    assert "V_skill" not in result.headline
    assert len(result.tables["shares"]) == 0
    assert "bootstrap" not in result.tables
    assert any("no variance shares" in text for text in result.warnings)


def test_pairings_that_cannot_be_fitted_are_named_and_the_others_fitted() -> None:
    frame = labelled()
    frame.loc[(frame["domain"] == "D1") & (frame["skill"] == "S1"), "credit"] = 0.5
    frame = frame[~((frame["domain"] == "D2") & (frame["skill"] == "S2") & (frame["model"] != "A-1B"))]
    result = answer(frame)
    found = pairings(result)
    assert found["D1", "S1"]["e_inf"] is None
    assert found["D2", "S2"]["e_inf"] is None
    assert result.headline["pairings"] == 4
    assert any("D1 x S1" in text and "constant" in text for text in result.warnings)
    assert any("D2 x S2" in text for text in result.warnings)


def test_floors_of_two_levels_are_in_no_share() -> None:
    frame = labelled(noise=0.06)
    some = (frame["domain"] == "D2") & (frame["skill"] == "S2") & ~frame["model"].isin(["A-1B", "A-8B"])
    result = answer(frame[~some])
    found = pairings(result)
    assert found["D2", "S2"]["e_inf"] is not None
    assert (result.headline["pairings"], result.headline["floors_undetermined"]) == (6, 1)
    domain, skill = sklearn_shares({pair: row["e_inf"] for pair, row in found.items() if pair != ("D2", "S2")})
    assert (result.headline["V_domain"], result.headline["V_skill"]) == pytest.approx((domain, skill))
    assert sum(row["pairings"] for row in result.tables["marginals"].rows()) == 10


def test_missing_tokens_and_parameters_leave_no_floor_and_say_so() -> None:
    frame = labelled()
    with pytest.raises(AnalysisError, match=r"no group can be fitted: .*lack visual_tokens"):
        answer(frame.assign(visual_tokens=None), replicates=2)
    with pytest.raises(AnalysisError, match=r"no group can be fitted: .*lack the parameters of their model"):
        answer(frame.assign(parameters=None))


def test_labels_that_would_explain_any_floors_have_no_shares() -> None:
    """Two domains with one skill each, and a skill of two domains: as many parameters as pairings."""
    frame = labelled(noise=0.06)
    some = frame[(frame["domain"] + frame["skill"]).isin(["D1S1", "D2S1", "D3S2", "D1S2"])]
    result = answer(some, replicates=3)
    assert result.headline["pairings"] == 4
    assert len(result.tables["shares"]) == 0
    assert "bootstrap" not in result.tables
    assert "V_skill" not in result.headline
    assert any(
        text == "4 pairings with a determined floor, and 4 parameters of domain and skill: they would explain any floors, "
        "so there are no variance shares"
        for text in result.warnings
    )


def test_floors_that_follow_one_label_alone_have_an_infinite_ratio_that_is_counted() -> None:
    shares = Shares(r2_first=np.array([0.0, 0.0, 0.5]), r2_second=np.array([1.0, 1.0, 0.5]), r2_both=np.ones(3))
    one = Resampled(kind="positive", replicates=4, complete=3, varies=True, shares=shares)
    (row,) = bootstrap_table(("domain", "skill"), [one]).rows()
    assert row["V_skill_over_V_domain_infinite"] == 2
    assert row["V_skill_over_V_domain"] is None
    assert row["V_skill_over_V_domain_low"] is None
    assert row["V_skill"] == 1


def test_one_image_has_no_interval_of_shares() -> None:
    frame = labelled(("A", "B"), noise=0.06).assign(image_key="one")
    result = answer(frame, replicates=3, resampling="positive")
    (row,) = result.tables["bootstrap"].rows()
    assert row["V_skill"] == pytest.approx(result.headline["V_skill"])
    assert (row["V_skill_low"], row["V_skill_high"], row["skill_larger"]) == (None, None, None)
    assert any("1 cluster: its cells are the same in every resample" in text for text in result.warnings)


def test_floors_that_are_all_alike_have_no_shares() -> None:
    frame = labelled()
    frame["credit"] = frame["credit"] + frame["domain"].map(DOMAIN) + frame["skill"].map(SKILL)
    result = answer(frame)
    assert result.headline["V_skill"] is None
    assert result.tables["shares"].data["share"] == [None, None]


def test_charts_are_drawn(tmp_path: Path) -> None:
    save_plot(answer(labelled(("A", "B"), noise=0.06)), tmp_path / "taxonomy.svg")
    text = (tmp_path / "taxonomy.svg").read_text()
    assert "D3" in text
    assert "S2" in text
