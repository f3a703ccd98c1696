"""Answers and cells by a second route: the `cells` view of an ingested study, and plain loops over planted rows."""

from __future__ import annotations

import math
from collections import defaultdict
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

import tracker
from analyses.cells import CellParameters, fittable, lacks_of_groups, study_of_cells
from cli.main import main
from tests.analyses.planted import PlantedLaw, planted_cells, session
from tracker.errors import AnalysisError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from analyses.cells import CellStudy

LAWS = {
    (series, suite): PlantedLaw(e=0.1 + 0.05 * place, b=0.1, beta=0.3 + 0.1 * place)
    for place, (series, suite) in enumerate([("InternVL3", "HR-Bench"), ("InternVL3", "TreeBench"), ("Qwen3-VL", "HR-Bench")])
}


def cells_of(rows: pd.DataFrame | Sequence[dict[str, Any]], split: Sequence[str] = (), **options: Any) -> CellStudy:
    return study_of_cells(session(rows), "cells", CellParameters(**options), split=split)


def messy_frame() -> pd.DataFrame:
    """Answers with tokens that vary, repeated attempts, missing tokens and probabilities, and unscored rows."""
    rng = np.random.default_rng(3)
    frame = planted_cells(LAWS, draws="images", sizes=(1.0, 8.0), input_sizes=(224, 448, 896), questions=12, spread=0.6)
    again = frame.sample(60, random_state=1).assign(attempt=1)
    again["credit"] = rng.integers(0, 2, len(again)).astype(float)
    frame["counts"] = ~frame.set_index(["run_id", "question_id"]).index.isin(again.set_index(["run_id", "question_id"]).index)
    frame = pd.concat([frame.assign(attempt=0), again.assign(counts=True)], ignore_index=True)
    frame["visual_tokens"] = frame["visual_tokens"].astype("Int64").mask(rng.random(len(frame)) < 0.1)
    frame["p_gold"] = frame["p_gold"].mask(rng.random(len(frame)) < 0.2)
    frame.loc[rng.random(len(frame)) < 0.05, ["credit", "status"]] = [None, "failed"]
    return frame


def loops(frame: pd.DataFrame, labels: Sequence[str] = (), *, both: bool = False) -> dict[tuple[Any, ...], dict[str, Any]]:
    """Means of each cell in plain Python."""
    rows: dict[tuple[Any, ...], list[dict[Any, Any]]] = defaultdict(list)
    for row in frame.astype(object).where(frame.notna(), None).to_dict("records"):
        if row["credit"] is not None and not (both and row["p_gold"] is None):
            rows[row["model"], row["benchmark"], row["input_size"], *(row[label] for label in labels)].append(row)
    return {
        key: {
            "n": len(members),
            "error": 1 - fmean(row["credit"] for row in members),
            "tokens": fmean([row["visual_tokens"] for row in members if row["visual_tokens"] is not None] or [math.nan]),
            "prompt_tokens": fmean(row["prompt_tokens"] for row in members),
            "latency_s": fmean(row["latency_s"] for row in members),
        }
        for key, members in rows.items()
    }


def keyed(study: CellStudy, labels: Sequence[str] = ()) -> dict[tuple[Any, ...], dict[str, Any]]:
    cells = study.cells
    return {
        (cells.text["model"][i], cells.text["benchmark"][i], cells.input_size[i], *(cells.text[label][i] for label in labels)): {
            name: getattr(cells, name)[i] for name in ("n", "error", "tokens", "prompt_tokens", "latency_s")
        }
        for i in range(len(cells))
    }


@pytest.mark.parametrize("labels", [(), ("task",), ("domain", "skill")])
@pytest.mark.parametrize("records", ["scored", "both"])
def test_cells_equal_loops_over_the_answers(labels: tuple[str, ...], records: str) -> None:
    frame = messy_frame()
    found = keyed(cells_of(frame, labels, records=records), labels)
    expected = loops(frame, labels, both=records == "both")
    assert found.keys() == expected.keys()
    for key, values in expected.items():
        assert found[key] == pytest.approx(values, rel=1e-12, nan_ok=True), key


def test_every_answer_is_in_its_cell() -> None:
    study = cells_of(messy_frame(), ("task",))
    answers, cells = study.answers, study.cells
    for row in range(0, len(answers), 7):
        cell, run, question = study.cell_of[row], answers.run[row], answers.question[row]
        assert cells.text["model"][cell] == answers.runs.text["model"][run]
        assert cells.text["benchmark"][cell] == answers.runs.text["benchmark"][run] == answers.questions.text["benchmark"][question]
        assert cells.input_size[cell] == answers.runs.numbers["input_size"][run]
        assert cells.text["task"][cell] == answers.questions.text["task"][question]
    assert np.array_equal(np.bincount(study.cell_of), cells.n)


def test_cells_of_an_ingested_study_equal_the_view(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["simulate", "--preset", "demo", "--scale", "0.1", "--out", str(tmp_path / "runs"), "-q"])
    with tracker.open(str(tmp_path / "store" / "trackr.db")) as store:
        store.ingest(tmp_path / "runs")
        opened = store.session()
        study = study_of_cells(opened, "cells", CellParameters(include_native=True, include_sweeps=True))
        view = opened.connection.sql("select * from cells").df()
    assert len(view) == len(study.cells) > 20
    expected = {(row.model, row.benchmark, row.input_size): row for row in view.itertuples()}
    cells = study.cells
    for i in range(len(cells)):
        row = expected[cells.text["model"][i], cells.text["benchmark"][i], cells.input_size[i]]
        assert (row.family, row.series, row.suite) == tuple(cells.text[name][i] for name in ("family", "series", "suite"))
        assert cells.n[i] == row.n
        for found, wanted in (
            (cells.error[i], row.error),
            (cells.parameters[i] * 1e9, row.parameters),
            (cells.tokens[i], row.visual_tokens),
            (cells.prompt_tokens[i], row.prompt_tokens),
            (cells.flops[i], row.flops),
            (cells.latency_s[i], row.latency_s),
        ):
            assert found == pytest.approx(wanted, rel=1e-9, nan_ok=True)


def test_no_order_and_no_id_decides_a_digit() -> None:
    frame = messy_frame()
    shuffled = frame.sample(frac=1, random_state=9).reset_index(drop=True)
    rng = np.random.default_rng(5)
    for name in ("question_id", "run_id", "configuration_id"):
        values = shuffled[name].unique()
        new = dict(zip(values, rng.permutation(10 * len(values))[: len(values)].tolist(), strict=True))
        shuffled[name] = shuffled[name].map(new)
    one, two = cells_of(frame, ("task",)), cells_of(shuffled, ("task",))
    assert one.answers.digest == two.answers.digest
    assert one.groups.keys == two.groups.keys
    assert one.reference == two.reference
    for name in ("n", "error", "tokens", "latency_s", "parameters", "configuration", "run"):
        assert np.array_equal(getattr(one.cells, name), getattr(two.cells, name)), name
    assert np.array_equal(one.cell_of, two.cell_of)


def test_answers_with_the_same_keys_are_ordered_by_their_values() -> None:
    frame = planted_cells(LAWS, draws="answers", sizes=(1.0,), input_sizes=(224,), questions=6)
    twice = pd.concat([frame, frame.assign(latency_s=9.5, credit=0.0)], ignore_index=True)
    digests = {cells_of(twice.sample(frac=1, random_state=seed)).answers.digest for seed in range(4)}
    assert len(digests) == 1


def test_another_value_is_another_digest() -> None:
    frame = messy_frame()
    first = np.arange(len(frame)) == 0
    last = frame.assign(counts=frame["counts"].astype(bool) ^ first)
    slower = frame.assign(latency_s=frame["latency_s"] + 1e-9 * first)
    digests = {cells_of(one).answers.digest for one in (frame, last, slower)}
    assert len(digests) == 3


def test_superseded_runs_are_in_no_cell() -> None:
    frame = planted_cells(LAWS, draws="answers", sizes=(1.0, 8.0), input_sizes=(224, 448), questions=6)
    old = frame[frame["model"] == "Qwen3-VL-8B"].assign(current=False, credit=0.0)
    old["run_id"] += 1000
    assert np.array_equal(cells_of(pd.concat([frame.assign(current=True), old])).cells.error, cells_of(frame).cells.error)


def test_native_size_is_left_out_unless_asked_for() -> None:
    frame = planted_cells(LAWS, draws="answers", sizes=(1.0, 8.0), input_sizes=(224, 448), questions=6)
    frame.loc[frame["input_size"] == 448, ["input_mode", "input_size"]] = ["native", None]
    study = cells_of(frame)
    assert len(study.cells) == 6
    assert study.warnings == ["6 cells at native image size are left out (--include-native)"]
    assert len(cells_of(frame, include_native=True).cells) == 12
    with pytest.raises(AnalysisError, match="every answer is at native image size or part of a sweep"):
        cells_of(frame, where="input_mode = 'native'")


def swept(frame: pd.DataFrame, knob: str, value: Any, input_size: int) -> pd.DataFrame:
    """The frame with the answers of one input size again, at another value of a setting."""
    more = frame[frame["input_size"] == input_size].assign(**{knob: value})
    more["configuration_id"] += 500
    more["run_id"] += 1000
    return pd.concat([frame, more], ignore_index=True)


@pytest.mark.parametrize(
    ("knob", "usual", "other"),
    [("max_tiles", 12, 6), ("pixel_cap", 1_000_000, 2_000_000), ("source_quality", "original", "jpeg-20"), ("vision_branches", None, 2)],
)
def test_sweeps_are_left_out_unless_asked_for(knob: str, usual: Any, other: Any) -> None:
    frame = planted_cells(LAWS, draws="answers", sizes=(1.0, 8.0), input_sizes=(224, 448), questions=6).assign(**{knob: usual})
    study = cells_of(swept(frame, knob, other, 448))
    assert len(study.cells) == 12
    assert [text[:33] for text in study.warnings] == ["6 cells of sweeps are left out: t"]
    assert np.array_equal(study.cells.error, cells_of(frame).cells.error)
    assert len(cells_of(swept(frame, knob, other, 448), include_sweeps=True).cells) == 18


def test_a_sweep_with_more_runs_at_one_size_is_still_the_sweep() -> None:
    frame = planted_cells(LAWS, draws="answers", sizes=(1.0,), input_sizes=(224, 448, 896), questions=6).assign(max_tiles=12)
    frame = frame[frame["suite"] == "HR-Bench"]
    sweep = swept(frame, "max_tiles", 6, 448)
    extra = sweep[sweep["max_tiles"] == 6].assign(benchmark="Other", suite="Other", question_id=sweep["question_id"] + 100)
    extra["run_id"] += 5000
    study = cells_of(pd.concat([sweep, extra]))
    assert set(study.cells.numbers["max_tiles"].tolist()) == {12.0}
    assert len(study.cells) == 6


def test_a_setting_that_follows_the_input_size_is_no_sweep() -> None:
    frame = planted_cells(LAWS, draws="answers", sizes=(1.0, 8.0), input_sizes=(224, 448, 896), questions=6)
    frame["pixel_cap"] = frame["input_size"] ** 2
    study = cells_of(frame)
    assert len(study.cells) == 18
    assert study.warnings == []


def test_drop_leaves_cells_out_but_not_the_reference() -> None:
    frame = planted_cells(LAWS, draws="answers", sizes=(1.0, 8.0), input_sizes=(224, 448, 896), questions=6)
    whole, study = cells_of(frame), cells_of(frame, drop=("input_size=896", "model=InternVL3-1B"))
    assert set(study.cells.input_size.tolist()) == {224.0, 448.0}
    assert "InternVL3-1B" not in study.cells.text["model"]
    assert len(study.cells) == 8
    assert study.reference == whole.reference
    assert np.array_equal(np.bincount(study.cell_of[study.cell_of >= 0]), study.cells.n)
    assert (study.cell_of == -1).sum() == len(frame) - study.cells.n.sum()


def test_drop_says_what_it_cannot_do() -> None:
    frame = planted_cells(LAWS, draws="answers", sizes=(1.0,), input_sizes=(224, 448), questions=6)
    assert cells_of(frame, drop=("input_size=999",)).warnings == ["--drop input_size=999: no cell has it"]
    with pytest.raises(UsageError, match="--drop: cells have no column 'colour'"):
        cells_of(frame, drop=("colour=blue",))
    with pytest.raises(AnalysisError, match="--drop leaves no cell"):
        cells_of(frame, drop=("input_mode=fixed",))
    with pytest.raises(ValueError, match="expected COLUMN=VALUE, found 'input_size'"):
        CellParameters(drop=("input_size",))


def test_labels_in_by_split_the_cells_and_keep_the_reference() -> None:
    frame = messy_frame()
    whole, study = cells_of(frame), cells_of(frame, by=("series", "task"))
    assert study.groups.keys == [
        ("InternVL3", "perception"), ("InternVL3", "reasoning"), ("Qwen3-VL", "perception"), ("Qwen3-VL", "reasoning")
    ]  # fmt: skip
    assert study.reference == whole.reference
    assert study.cells.n.sum() == whole.cells.n.sum()
    assert study.groups.name(0) == "InternVL3 x perception"
    assert study.groups.column("task") == ["perception", "reasoning"] * 2


def test_the_reference_is_the_geometric_mean_over_cells_or_what_is_pinned() -> None:
    study = cells_of(messy_frame())
    logs = [(math.log(n), math.log(r)) for n, r in zip(study.cells.parameters.tolist(), study.cells.tokens.tolist(), strict=True)]
    assert study.reference == pytest.approx(tuple(math.exp(fmean(axis)) for axis in zip(*logs, strict=True)), rel=1e-12)
    assert cells_of(messy_frame(), reference=(6.6, 1135.0)).reference == (6.6, 1135.0)
    with pytest.raises(ValueError, match="expected N between"):
        CellParameters(reference=(0.0, 1.0))


def test_groups_by_a_number_have_none_where_it_is_unknown() -> None:
    frame = planted_cells(LAWS, draws="answers", sizes=(1.0, 8.0), input_sizes=(224, 448), questions=6)
    frame["max_tiles"] = frame["parameters"].map({1_000_000_000: 12}).astype("Int64")
    assert cells_of(frame, by=("max_tiles",)).groups.keys == [("12",), (None,)]
    assert cells_of(frame, by=("max_tiles",)).groups.name(1) == "none"


def test_cells_that_lack_something_are_named_with_their_group() -> None:
    frame = planted_cells(LAWS, draws="answers", sizes=(1.0, 8.0), input_sizes=(224, 448), questions=6)
    frame.loc[frame["model"] == "Qwen3-VL-8B", "parameters"] = None
    frame.loc[(frame["suite"] == "TreeBench") & (frame["input_size"] == 224), "visual_tokens"] = None
    study = cells_of(frame)
    keep, warnings = fittable(study)
    assert keep.sum() == 12 - 2 - 2
    assert warnings == [
        "InternVL3 x TreeBench: 2 of 4 cells lack visual_tokens and are left out (InternVL3-1B, InternVL3-8B)",
        "Qwen3-VL x HR-Bench: 2 of 4 cells lack the parameters of their model (trackr catalog import FILE describes a model) and are left out (Qwen3-VL-8B)",
    ]
    assert study.cells.name(0) == "InternVL3-1B on HR-Bench at 224 px"


def test_many_groups_that_lack_the_same_are_one_warning_and_stay_named_one_by_one() -> None:
    laws = {(f"A{i}", "S"): PlantedLaw(b=0.05) for i in range(7)}
    frame = planted_cells(laws, draws="answers", sizes=(1.0, 8.0), input_sizes=(224, 448), questions=6)
    frame.loc[(frame["series"] != "A3") & (frame["input_size"] == 224), "visual_tokens"] = None
    study = cells_of(frame)
    assert fittable(study)[1] == [
        "6 of 7 groups: cells lack visual_tokens and are left out (A0 x S, A1 x S, A2 x S, A4 x S, A5 x S, and 1 more)"
    ]
    assert lacks_of_groups(study) == ("2 of 4 cells lack visual_tokens",) * 3 + ("",) + ("2 of 4 cells lack visual_tokens",) * 3


def test_a_benchmark_without_a_suite_is_a_suite_by_its_own_name() -> None:
    frame = planted_cells(LAWS, draws="answers", sizes=(1.0, 8.0), input_sizes=(224, 448), questions=6)
    frame.loc[frame["suite"] == "TreeBench", "suite"] = None
    study = cells_of(frame)
    benchmarks = set(frame[frame["suite"].isna()]["benchmark"])
    assert {str(suite) for suite in study.groups.column("suite")} == {"HR-Bench", *benchmarks}
    assert any(suite is None for suite in study.answers.questions.text["suite"].tolist())


def test_a_reference_of_nothing_is_not_a_number() -> None:
    frame = planted_cells(LAWS, draws="answers", sizes=(1.0, 8.0), input_sizes=(224, 448), questions=6)
    n, r = cells_of(frame.assign(visual_tokens=None)).reference
    assert n == pytest.approx(math.sqrt(8))
    assert math.isnan(r)


def test_an_empty_cohort_is_an_error() -> None:
    with pytest.raises(AnalysisError, match="no scored answer in the cohort"):
        cells_of(planted_cells(LAWS, sizes=(1.0,), questions=4), where="series = 'none'")


def test_planted_cells_have_the_planted_errors() -> None:
    frame = planted_cells(LAWS, spread=0.5, releases={"HR-Bench": ("HR-4K", "HR-8K")})
    cells = cells_of(frame).cells
    for i in range(len(cells)):
        law = LAWS[cells.text["series"][i], cells.text["suite"][i]]
        assert cells.error[i] == pytest.approx(law.error(cells.parameters[i], cells.tokens[i]), abs=1e-14)
    assert set(cells.input_size[cells.text["benchmark"] == "HR-8K"].tolist()) == {2048.0}
