"""The bootstrap: intervals and comparisons by a second route, planted exponents inside their intervals, odd data."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.stats import bootstrap as scipy_bootstrap

from analyses.bootstrap import Parameters, run
from analyses.bootstrap.pair import PairFits, PairPlan, delta_bic, pair_table, pair_warnings
from analyses.cells import CellParameters, Groups, fittable, study_of_cells
from analyses.clusters import Clusters, ClusterSums, cluster_sums, draw
from analyses.laws import CoupledLaw, SeparableLaw, bic
from analyses.resampling import Layout, Plan, Refits, intervals_of, percentiles, pieces_of, refit_piece
from tests.analyses.known import known
from tests.analyses.planted import LAW_REFERENCE, PlantedLaw, planted_cells, session
from tracker.errors import AnalysisError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from analyses.result import Result

LAWS = {
    ("InternVL3", "HR-Bench"): PlantedLaw(b=0.1),
    ("InternVL3", "TreeBench"): PlantedLaw(e=0.2, a=0.04, alpha=0.7, b=0.1, beta=0.3),
    ("Qwen3-VL", "HR-Bench"): PlantedLaw(e=0.15, a=0.03, alpha=0.9, b=0.12, beta=0.5),
}


def frame_of(**options: Any) -> pd.DataFrame:
    given: dict[str, Any] = {"draws": "images", "questions": 60, "spread": 0.5, "seed": 4}
    return planted_cells(LAWS, **(given | options))


FRAME = frame_of()


def answer(frame: pd.DataFrame = FRAME, **options: Any) -> Result:
    given: dict[str, Any] = {"replicates": 30, "workers": 1}
    return run(session(frame), Parameters(**(given | options)))


def rows_of(result: Result, table: str = "intervals") -> dict[str, dict[str, Any]]:
    return {f"{row['series']} x {row['suite']}": row for row in result.tables[table].rows()}


# ---- intervals ---------------------------------------------------------------------------------


def test_percentile_intervals_of_a_mean_agree_with_scipy() -> None:
    """One question per cluster: a cell's error is a plain mean, and its resamples are those of scipy.stats.bootstrap."""
    frame = planted_cells(LAWS, draws="answers", sizes=(1.0,), input_sizes=(224, 448), questions=200, per_image=1)
    study = study_of_cells(session(frame), "bootstrap", CellParameters())
    sums = cluster_sums(study)
    errors = sums.rebuild(draw(sums.clusters, 1, range(4000))).error
    low, high = percentiles(errors)
    for cell in range(len(study.cells)):
        values = 1 - study.answers.numbers["credit"][study.cell_of == cell]
        rng = np.random.default_rng(cell)
        expected = scipy_bootstrap((values,), np.mean, n_resamples=4000, method="percentile", rng=rng).confidence_interval
        noise = (
            4 * values.std() / math.sqrt(200) * math.sqrt(2 * 0.025 * 0.975 / 4000) / 0.0584
        )  # of two quantiles: density of the normal at 2.5%
        assert (low[cell], high[cell]) == pytest.approx((expected.low, expected.high), abs=noise + 1 / 200)


def test_intervals_are_percentiles_of_refits_of_rebuilt_cells() -> None:
    result = answer(replicates=26, level=0.8)
    study = study_of_cells(session(FRAME), "bootstrap", CellParameters())
    sums, law = cluster_sums(study), SeparableLaw(floor="grid")
    for group in range(len(study.groups)):
        cells = study.groups.members(group)
        drawn = []
        for replicate in range(26):
            rebuilt = sums.rebuild(draw(sums.clusters, 20260909, [replicate]))
            n, r = study.cells.parameters[cells] / study.reference[0], rebuilt.tokens[0, cells] / study.reference[1]
            drawn.append(law.fit_many(n, r, rebuilt.error[0, cells]).parameters)
        row = rows_of(result)[study.groups.name(group)]
        for name, shown in (("alpha", "alpha"), ("beta", "beta"), ("e", "e_inf"), ("a", "A_n"), ("b", "B_r")):
            values = [float(one[name][0]) for one in drawn]
            expected = np.quantile(values, [0.1, 0.9])
            assert (row[f"{shown}_low"], row[f"{shown}_high"]) == pytest.approx(tuple(expected), rel=1e-3, abs=1e-6), (shown, row["series"])
        assert row["replicates"] == 26


def test_without_noise_the_planted_law_comes_back_in_every_refit() -> None:
    result = answer(frame_of(draws="expected", spread=0.0), floor="continuous", reference=LAW_REFERENCE)
    for key, law in LAWS.items():
        row = rows_of(result)[" x ".join(key)]
        for name, planted in (("alpha", law.alpha), ("beta", law.beta), ("e_inf", law.e), ("A_n", law.a), ("B_r", law.b)):
            assert (row[name], row[f"{name}_low"], row[f"{name}_high"]) == pytest.approx((planted,) * 3, abs=1e-5)
        assert (row["alpha_at_bound"], row["beta_at_bound"], row["alpha_undetermined"]) == (0, 0, 0)
        assert row["n"] == 36


def test_planted_exponents_are_inside_their_intervals() -> None:
    """200 groups of 36 cells, binomial answers per image cluster, interior exponents, R over a span of 36."""
    groups, images, per_image = 200, 200, 5
    rng = np.random.default_rng(20260909)
    sizes, tokens = np.array([1, 2, 4, 8, 16, 32.0]), np.array([64, 144, 256, 576, 1024, 2304.0])
    n, r = (axis.ravel() for axis in np.meshgrid(sizes, tokens, indexing="ij"))
    alpha, beta = rng.uniform(0.3, 1.2, (2, groups, 1))
    a, b = rng.uniform(0.15, 0.3, (2, groups, 1))
    p = (rng.uniform(0.05, 0.25, (groups, 1)) + a * n**-alpha + b * (r / 64) ** -beta).ravel()
    errors = rng.binomial(per_image, p[:, None], (len(p), images)).astype(float)
    records = np.full_like(errors, per_image)
    sums = ClusterSums(
        clusters=Clusters(of_question=np.repeat(np.arange(images), per_image), stratum=np.zeros(images, dtype=np.int64)),
        records=sparse.csr_array(records),
        errors=sparse.csr_array(errors),
        tokens=sparse.csr_array(records * np.tile(r, groups)[:, None]),
        with_tokens=sparse.csr_array(records),
        clusters_of_cell=np.full(len(p), images),
    )
    code = np.repeat(np.arange(groups), len(n))
    layout = Layout.of(Groups(by=("group",), keys=[(str(g),) for g in range(groups)], code=code), np.ones(len(p), dtype=bool))
    plan = Plan(
        sums=sums,
        layout=layout,
        law=SeparableLaw(),
        parameters=np.tile(n, groups),
        reference=(float(np.exp(np.log(sizes).mean())), float(np.exp(np.log(tokens).mean()))),
        weights=None,
        seed=1,
        kind="ordinary",
    )
    refits = Refits.joined([refit_piece(plan, piece) for piece in pieces_of(100)])
    for name, planted in (("alpha", alpha), ("beta", beta)):
        low, high = percentiles(refits.parameters[name])
        assert ((low <= planted[:, 0]) & (planted[:, 0] <= high)).mean() >= 0.85


def test_a_narrow_box_is_reached_and_counted() -> None:
    row = rows_of(answer(box=(0.05, 0.2)))["Qwen3-VL x HR-Bench"]
    assert row["alpha_at_bound"] == 1
    assert row["alpha_low"] == row["alpha_high"] == pytest.approx(0.2, rel=1e-6)
    assert answer(box=(0.05, 0.2)).headline["alpha_often_at_bound"] >= 1


@pytest.mark.parametrize("law", ["separable", "bounded", "multiplicative", "coupled"])
def test_every_law_has_intervals_around_its_fit(law: str) -> None:
    result = answer(law=law, replicates=20)
    names = {"separable": 5, "bounded": 5, "multiplicative": 4, "coupled": 7}
    table = result.tables["intervals"]
    assert sum(name.endswith("_low") for name in table.names) == names[law]
    for row in table.rows():
        assert row["alpha_low"] <= row["alpha_high"]
        assert row["replicates"] == 20
    assert [fit.law for fit in result.fits] == [law] * 3
    assert [fit.k for fit in result.fits] == [names[law]] * 3


def test_fits_carry_intervals_and_measures() -> None:
    result = answer()
    row, fit = rows_of(result)["InternVL3 x HR-Bench"], result.fits[0]
    assert fit.group_key == "InternVL3 x HR-Bench"
    assert fit.parameters["beta_low"] == row["beta_low"]
    assert fit.sse == row["sse"]
    assert fit.bic == pytest.approx(bic(row["sse"], 36, 5))
    study = study_of_cells(session(FRAME), "bootstrap", CellParameters())
    cells = study.groups.members(0)
    alone = SeparableLaw(floor="grid", reference=study.reference).fit(
        study.cells.parameters[cells], study.cells.tokens[cells], study.cells.error[cells]
    )
    assert (fit.sse, fit.r2) == pytest.approx((alone.sse, alone.r2), rel=1e-6)


def test_both_weights_give_two_rows_per_group() -> None:
    result = answer(weights="both")
    assert result.tables["intervals"].data["weights"] == ["equal"] * 3 + ["precision"] * 3
    assert [fit.group_key for fit in result.fits[3:]] == [f"{fit.group_key}, precision weights" for fit in result.fits[:3]]
    equal = answer().tables["intervals"].rows()
    assert result.tables["intervals"].rows()[:3] == equal
    assert result.tables["intervals"].rows()[3]["alpha_low"] != equal[0]["alpha_low"]


def test_resampling_kinds_and_seeds_differ() -> None:
    drawn = [answer(**options).tables["intervals"].data["beta_low"] for options in ({}, {"resampling": "positive"}, {"seed": 1})]
    assert drawn[0] != drawn[1]
    assert drawn[0] != drawn[2]
    assert answer().tables["intervals"].data["beta_low"] == drawn[0]


def test_the_last_attempt_alone_is_kept_where_asked_for() -> None:
    wrong = FRAME.assign(attempt=0, counts=False, credit=0.0)
    twice = pd.concat([wrong, FRAME.assign(attempt=1, counts=True)], ignore_index=True)
    last, once, both = answer(twice, attempts="last"), answer(), answer(twice)
    assert last.tables["intervals"].rows() == once.tables["intervals"].rows()
    assert both.cohort.rows == 2 * once.cohort.rows == 2 * last.cohort.rows
    assert both.tables["intervals"].rows()[0]["e_inf"] > once.tables["intervals"].rows()[0]["e_inf"] + 0.2
    assert "attempts" in last.cohort.sql


# ---- two laws ----------------------------------------------------------------------------------


def test_the_comparison_is_that_of_shared_fits_to_each_replicate() -> None:
    result = answer(pair=("separable", "coupled"), replicates=6, level=0.5)
    study = study_of_cells(session(FRAME), "bootstrap", CellParameters())
    sums = cluster_sums(study)
    variance = sums.variance(study.cells.error)
    layout = Layout.of(study.groups, fittable(study)[0])
    laws = (SeparableLaw(floor="free"), CoupledLaw(floor="free"))
    for row, weights in zip(result.tables["pair"].rows(), (np.ones(len(variance)), 1 / variance / (1 / variance).mean()), strict=True):
        differences, bics = [], []
        for replicate in range(-1, 6):
            drawn = np.ones((1, len(sums.clusters))) if replicate < 0 else draw(sums.clusters, 20260909, [replicate])
            rebuilt = sums.rebuild(drawn)
            n, r = layout.pad(study.cells.parameters) / study.reference[0], layout.pad(rebuilt.tokens[0]) / study.reference[1]
            q = [float(law.fit_shared(n, r, layout.pad(rebuilt.error[0]), layout.pad(weights, 0.0)).objective.sum()) for law in laws]
            differences.append(q[1] - q[0])
            bics.append(float(bic(q[1], 108, 3 * 4 + 3) - bic(q[0], 108, 3 * 3 + 2)))
        assert row["delta_q"] == pytest.approx(differences[0], rel=1e-5, abs=1e-9)
        assert row["delta_bic"] == pytest.approx(bics[0], rel=1e-5)
        assert (row["delta_q_low"], row["delta_q_high"]) == pytest.approx(tuple(np.quantile(differences[1:], [0.25, 0.75])), rel=1e-4)
        assert (row["delta_bic_low"], row["delta_bic_high"]) == pytest.approx(tuple(np.quantile(bics[1:], [0.25, 0.75])), rel=1e-4)
        assert row["favours_first"] == np.mean(np.array(bics[1:]) > 0)
        assert (row["n"], row["extra_k"], row["replicates"]) == (108, 4, 6)


def test_the_coupled_law_is_never_above_the_separable_one() -> None:
    result = answer(pair=("separable", "coupled"), replicates=25)
    for row in result.tables["pair"].rows():
        assert row["delta_q"] <= 0
        assert row["delta_q_high"] <= 0
    reverse = answer(pair=("coupled", "separable"), replicates=25)
    for one, two in zip(result.tables["pair"].rows(), reverse.tables["pair"].rows(), strict=True):
        assert two["delta_bic"] == pytest.approx(-one["delta_bic"])
        assert two["extra_k"] == -one["extra_k"]


@pytest.mark.parametrize("row", known("table10_"), ids=lambda row: row.id)
def test_bic_differences_of_table_10_follow_from_relative_objectives(row: Any) -> None:
    found = float(delta_bic(np.array(row.inputs["rel_pct"]), row.inputs["n"], row.inputs["extra_k"]))
    assert found == pytest.approx(float(row.recomputed), abs=0.006)
    assert found == pytest.approx(float(row.expected), abs=0.04)


def test_twenty_groups_have_the_parameters_of_the_paper() -> None:
    laws = {(f"S{i}", f"B{j}"): PlantedLaw(b=0.1) for i in range(5) for j in range(4)}
    frame = planted_cells(laws, draws="answers", sizes=(1.0, 4.0, 16.0), input_sizes=(224, 448, 896), questions=30, per_image=1)
    row = answer(frame, pair=("separable", "coupled"), weights="equal", replicates=2).tables["pair"].rows()[0]
    assert (row["n"], row["extra_k"]) == (180, 21)


def test_a_perfect_first_law_has_no_relative_difference() -> None:
    laws = {key: PlantedLaw(e=e, a=0.1, b=0.1) for key, e in zip(LAWS, (0.1, 0.15, 0.2), strict=True)}
    frame = planted_cells(laws, draws="expected", questions=20)
    result = answer(frame, pair=("separable", "multiplicative"), replicates=3)
    for row in result.tables["pair"].rows():
        assert row["q_first"] < 1e-12 < row["q_second"]
        assert (row["relative_delta_q"], row["delta_bic"], row["delta_bic_low"], row["favours_first"]) == (None, None, None, None)
    assert "the separable law fits without error: relative differences and BIC are not defined" in result.warnings
    assert result.charts["delta_bic"].to_dict()["layer"][0]["data"]["values"] == []


def test_pairs_are_two_different_laws() -> None:
    for pair in (("separable",), ("separable", "separable"), ("separable", "coupled", "multiplicative")):
        with pytest.raises(ValueError, match="expected two different laws, such as separable,coupled"):
            Parameters(pair=pair)


# ---- the same digits everywhere ----------------------------------------------------------------


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    from distributed import LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster:
        yield cluster.scheduler_address.replace("tcp://", "dask://")


def test_workers_and_dask_change_no_digit(scheduler: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("analyses.executor.STARTING_PAYS", 0.0)
    for options in ({"replicates": 60}, {"replicates": 30, "pair": ("separable", "coupled")}):
        results = [answer(**options, **where) for where in ({"workers": 1}, {"workers": 2}, {"executor": scheduler})]
        texts = {json.dumps({**result.envelope(), "seconds": 0}) for result in results}
        assert len(texts) == 1


def test_no_order_and_no_id_changes_a_digit() -> None:
    shuffled = FRAME.sample(frac=1, random_state=3).reset_index(drop=True)
    for name in ("question_id", "run_id", "configuration_id"):
        values = shuffled[name].unique()
        new = np.random.default_rng(2).permutation(10 * len(values))[: len(values)]
        shuffled[name] = shuffled[name].map(dict(zip(values, new.tolist(), strict=True)))
    one, two = answer(), answer(shuffled)
    assert one.cohort.digest == two.cohort.digest
    assert one.tables["intervals"].rows() == two.tables["intervals"].rows()


# ---- odd data ----------------------------------------------------------------------------------


def with_group(change: Any) -> pd.DataFrame:
    """The frame with another version of the group Qwen3-VL x HR-Bench."""
    inside = FRAME["series"] == "Qwen3-VL"
    changed: pd.DataFrame = change(FRAME[inside].copy())
    return pd.concat([FRAME[~inside], changed], ignore_index=True)


@pytest.mark.parametrize(
    ("change", "warning"),
    [
        (lambda rows: rows[(rows["input_size"] <= 448) & (rows["parameters"] <= 2e9)], "no refits: 4 cells, 5 parameters"),
        (lambda rows: rows[rows["input_size"] == 448], "no refits: one level of R"),
        (lambda rows: rows.assign(parameters=2_000_000_000), "no refits: one level of N"),
        (lambda rows: rows.assign(credit=0.25), "no refits: the error is constant"),
        (lambda rows: rows.assign(visual_tokens=None), "no refits: no cell with all that the law needs"),
        (lambda rows: rows.assign(parameters=None), "no refits: no cell with all that the law needs"),
        (
            lambda rows: rows[rows["parameters"].isin([1e9, 8e9])],
            "2 levels of N: many solutions fit equally well, intervals of e_inf, A_n and alpha are those of the solutions found",
        ),
    ],
    ids=["few cells", "one R", "one N", "constant", "no tokens", "no parameters", "two N"],
)
@pytest.mark.parametrize("pair", [(), ("separable", "multiplicative")])
def test_a_group_that_cannot_be_refitted_is_named_and_the_others_go_on(pair: tuple[Any, ...], change: Any, warning: str) -> None:
    if pair and "parameters" in warning:
        warning = warning.replace("5 parameters", "4 parameters")
    frame = with_group(change)
    frame["visual_tokens"] = frame["visual_tokens"].astype("Int64")
    frame["parameters"] = frame["parameters"].astype("Int64")
    result = answer(frame, pair=pair, replicates=4)
    refitted = "2 levels" in warning or (bool(pair) and warning.startswith("no refits: 4 cells"))
    if not (pair and warning.startswith("no refits: 4 cells")):
        assert f"Qwen3-VL x HR-Bench: {warning}" in result.warnings
    assert result.headline["groups"] == (3 if refitted else 2)


def test_no_group_to_refit_is_an_error_that_says_why() -> None:
    with pytest.raises(AnalysisError) as caught:
        answer(FRAME[FRAME["input_size"] == 448])
    assert caught.value.message == "no group can be fitted: " + "; ".join(
        f"{' x '.join(group)}: no refits: one level of R" for group in LAWS
    )
    assert "--by" in str(caught.value.hint)
    with pytest.raises(AnalysisError, match="no scored answer in the cohort"):
        answer(where="series = 'none'")


def test_lost_cells_are_counted_and_have_no_weight() -> None:
    """One cell has answers to a single image: a resample without this image loses the cell."""
    single = (FRAME["model"] == "Qwen3-VL-8B") & (FRAME["input_size"] == 448)
    frame = FRAME[~single | FRAME["question_key"].isin(["q0", "q1"])]
    result = answer(frame, replicates=40)
    study = study_of_cells(session(frame), "bootstrap", CellParameters())
    sums = cluster_sums(study)
    image = sums.clusters.of_question[study.answers.questions.text["question_key"].tolist().index("q0")]
    expected = int((draw(sums.clusters, 20260909, range(40))[:, image] == 0).sum())
    row = rows_of(result, "replicates")["Qwen3-VL x HR-Bench"]
    assert 5 < expected < 25
    assert (row["with_lost_cells"], row["lost_cells"], row["fitted"], row["not_fitted"]) == (expected, expected, 40, 0)
    assert row["clusters"] == 30
    assert result.headline["lost_cells"] == expected
    assert answer(frame, replicates=10, resampling="positive").headline["lost_cells"] == 0


def test_a_group_that_resamples_leave_too_small_is_counted_as_not_fitted() -> None:
    """Five cells, one of them with answers to a single image."""
    small = with_group(lambda rows: rows[rows["input_size"].isin([224, 448]) & rows["parameters"].isin([1e9, 2e9, 4e9])])
    group = small["series"] == "Qwen3-VL"
    small = small[~group | ~((small["parameters"] == 4e9) & (small["input_size"] == 448))]
    single = (small["series"] == "Qwen3-VL") & (small["parameters"] == 2e9) & (small["input_size"] == 448)
    small = small[~single | small["question_key"].isin(["q0", "q1"])]
    result = answer(small, replicates=40)
    row = rows_of(result, "replicates")["Qwen3-VL x HR-Bench"]
    assert row["cells"] == 5
    assert row["not_fitted"] == row["with_lost_cells"] > 0
    assert f"Qwen3-VL x HR-Bench: {row['not_fitted']} of 40 resamples left too little to fit" in result.warnings
    assert rows_of(result)["Qwen3-VL x HR-Bench"]["replicates"] == 40 - row["not_fitted"]
    pair = answer(small, replicates=40, pair=("separable", "coupled"), weights="equal")
    assert pair.tables["pair"].data["replicates"] == [40 - row["not_fitted"]] or pair.headline["groups"] == 3


def test_an_axis_without_a_term_has_no_exponent() -> None:
    laws = dict.fromkeys(LAWS, PlantedLaw(a=0.0, b=0.1))
    frame = planted_cells(laws, draws="expected", questions=20)
    for row in answer(frame, floor="continuous").tables["intervals"].rows():
        assert (row["alpha"], row["alpha_low"], row["alpha_high"]) == (None, None, None)
        assert (row["alpha_undetermined"], row["alpha_at_bound"]) == (1, 0)
        assert row["beta_low"] == pytest.approx(0.6, abs=1e-4)


def test_few_clusters_and_unknown_images_are_warned_of() -> None:
    frame = frame_of(questions=24)
    frame.loc[frame["suite"] == "TreeBench", "image_key"] = None
    warnings = answer(frame, replicates=2).warnings
    assert "HR-Bench: 12 clusters: intervals from so few are too narrow" in warnings
    assert "TreeBench: no question has an image_key: each question is a cluster of its own" in warnings


def test_a_single_cluster_has_no_spread_and_says_so() -> None:
    frame = FRAME.assign(image_key="one")
    result = answer(frame, replicates=3, weights="precision")
    assert "HR-Bench: 1 cluster: its cells are the same in every resample; groups of such cells alone have no interval" in result.warnings
    assert "no cell has a variance over clusters: precision weights are equal weights here" in result.warnings
    for row in result.tables["intervals"].rows():
        assert row["beta"] is not None
        assert (row["beta_low"], row["beta_high"], row["e_inf_low"]) == (None, None, None)
    assert all(fit.parameters["beta_low"] is None for fit in result.fits)
    pair = answer(frame, replicates=3, pair=("separable", "coupled"), weights="equal")
    (row,) = pair.tables["pair"].rows()
    assert row["delta_bic"] is not None
    assert (row["delta_bic_low"], row["delta_q_high"], row["favours_first"]) == (None, None, None)
    assert pair.tables["exponents"].data["low"] == [None] * len(pair.tables["exponents"])


def test_only_the_group_of_one_image_has_no_interval() -> None:
    frame = FRAME.copy()
    frame.loc[frame["suite"] == "TreeBench", "image_key"] = "one"
    rows = rows_of(answer(frame, replicates=5))
    assert {name for name, row in rows.items() if row["e_inf_low"] is None} == {"InternVL3 x TreeBench"}


def pair_fits(first: list[float], second: list[float]) -> PairFits:
    """Objectives of both laws in replicates of nine cells."""
    nothing: dict[str, Any] = {"separable": {}, "coupled": {}}
    size = len(first)
    return PairFits(
        objective=np.array([[first, second]]),
        k=np.array([5, 6]),
        n=np.full(size, 9),
        shapes=nothing,
        at_bound=nothing,
        lost=np.zeros(size, dtype=np.int64),
    )


def pair_plan() -> PairPlan:
    study = study_of_cells(session(FRAME), "bootstrap", CellParameters())
    return PairPlan(
        sums=cluster_sums(study),
        layout=Layout.of(study.groups, fittable(study)[0]),
        laws=(SeparableLaw(), CoupledLaw()),
        parameters=study.cells.parameters,
        reference=study.reference,
        weights={"equal": np.ones(len(study.cells))},
        seed=1,
        kind="ordinary",
    )


def test_a_law_without_error_in_resamples_is_named_and_its_interval_open() -> None:
    plan, fits = pair_plan(), pair_fits([1.0, 1.0, 1.0], [0.5, 0.0, 0.0])
    table = pair_table(plan, fits, fits, 0.95)
    (row,) = table.rows()
    assert row["delta_bic_low"] is None
    assert (row["relative_delta_q_low"], row["favours_first"]) == (-100, 0)
    assert any(
        "unweighted: the coupled law fits without error in 2 of 3 resamples" in text for text in pair_warnings(plan, fits, fits, table)
    )


def test_the_bounded_law_has_no_choice_of_floor() -> None:
    with pytest.raises(ValueError, match="the bounded law has a floor of its own"):
        Parameters(law="bounded", floor="grid")
    with pytest.raises(ValueError, match="the lower first"):
        Parameters(box=(3.0, 0.05))


def test_errors_of_zero_and_one_do_not_stop_the_bounded_law() -> None:
    frame = with_group(lambda rows: rows.assign(credit=(rows["input_size"] > 448).astype(float)))
    for row in answer(frame, law="bounded", replicates=5).tables["intervals"].rows():
        assert all(math.isfinite(row[name]) for name in ("e_inf", "beta_low", "beta_high") if row[name] is not None)


# ---- charts and words --------------------------------------------------------------------------


def test_charts_draw_every_group_and_both_objectives() -> None:
    chart = answer().charts["intervals"].to_dict()
    assert len(chart["hconcat"]) == 3
    drawn = answer(pair=("separable", "coupled"), replicates=8)
    assert list(drawn.charts) == ["objective", "delta_bic"]
    for name in drawn.charts:
        values = drawn.charts[name].to_dict()["layer"][0]["data"]["values"]
        assert {row["objective"] for row in values} == {"unweighted", "precision"}
        for objective in ("unweighted", "precision"):
            x, y = (np.array([row[axis] for row in values if row["objective"] == objective]) for axis in ("x", "density"))
            assert np.trapezoid(y, x) == pytest.approx(1, abs=0.01)


def test_every_column_says_what_it_is() -> None:
    for result in (answer(law="coupled", replicates=3), answer(pair=("separable", "multiplicative"), replicates=3)):
        for table in result.tables.values():
            assert all(len(column.meaning) > 2 for column in table.columns)
            assert set(table.names) == set(table.data)


def test_refits_take_the_weights_they_are_given() -> None:
    study = study_of_cells(session(FRAME), "bootstrap", CellParameters())
    layout = Layout.of(study.groups, fittable(study)[0])
    heavy = np.where(study.cells.input_size == 224, 1e-6, 1.0)
    one, two = (intervals_of(study, cluster_sums(study), layout, SeparableLaw(), 3, weights=w, workers=1) for w in (heavy, None))
    assert not np.allclose(one.parameters["beta"], two.parameters["beta"])
