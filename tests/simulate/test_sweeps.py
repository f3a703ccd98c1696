"""Sweeps, texts at the token limit or without an option, and latency: planted against written, in both forms."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pytest

from tests.simulate.swept import GRID, cells_of, credit, read, small, truth_of
from tracker.frontends import DynamicTiling, NativeResolution, resize_long_edge
from tracker.readers import lmms_eval, native
from tracker.simulate import simulate
from tracker.simulate.setting import usable_tokens
from tracker.simulate.spec import parse

if TYPE_CHECKING:
    from pathlib import Path

    from tests.simulate.swept import Read


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("swept") / "study"
    simulate(small(), folder, form="both")
    return folder


@pytest.fixture(scope="module")
def truth(written: Path) -> dict[str, Any]:
    return truth_of(written)


@pytest.fixture(scope="module")
def harness(written: Path) -> Read:
    return read(lmms_eval.READER, written, "lmms_eval")


@pytest.fixture(scope="module")
def tables(written: Path) -> Read:
    return read(native.READER, written, "native")


ALIKE = ("question_key", "status", "logit_prediction", "p_gold", "option_scores", "visual_tokens", "prompt_tokens", "generated_tokens", "tiles", "effective_pixels", "latency_s")  # fmt: skip


def test_both_forms_hold_the_same_answers_under_the_same_settings(harness: Read, tables: Read) -> None:
    assert harness.settings == tables.settings
    assert {one["status"] for one in harness.settings.values()} == {"finished"}
    for key, records in harness.records.items():
        others = tables.records[key]
        scored = [record for record in records if credit(record) is not None]
        assert len(records) == len(others)
        assert list(map(credit, records)) == list(map(credit, others))
        for one, other in zip(scored, [record for record in others if credit(record) is not None], strict=True):
            assert {name: one[name] for name in ALIKE if name != "status"} == {name: other[name] for name in ALIKE if name != "status"}
            assert (one["prediction"] or None, one["response"]) == (other["prediction"], other["response"])


def test_runs_carry_what_they_were_asked_under(harness: Read, truth: dict[str, Any]) -> None:
    settings = harness.settings
    swept = {key: one for key, one in settings.items() if key[2] != "input_size"}
    assert set(swept) == set(cells_of(truth))
    assert len(swept) == truth["counts"]["sweep_cells"] == 4 * 6 + 2 * 2
    assert {(one["input_mode"], one["input_size"], one["max_new_tokens"]) for one in swept.values()} == {("native", None, 48)}
    assert {one["source_quality"] for key, one in swept.items() if key[0] == "InternVL3.5-8B"} == {"native", "224"}
    assert {one["pixel_cap"] for key, one in swept.items() if key[0] == "Qwen3-VL-8B"} == {64 * 32**2, 1024 * 32**2}
    grid = [one for key, one in settings.items() if key[2] == "input_size"]
    assert [(one["input_mode"], one["input_size"], one["source_quality"]) for one in grid] == [("fixed", 224, None), ("fixed", 1024, None)]


def test_a_sweep_asks_the_first_questions_of_the_data_set_once_each(harness: Read) -> None:
    records = harness.records
    asked: dict[tuple[str, str], set[tuple[str, ...]]] = defaultdict(set)
    for (model, benchmark, knob, *_), rows in records.items():
        if knob != "input_size":
            asked[model, benchmark].add(tuple(row["question_key"] for row in rows))
    assert {key: [len(keys) for keys in found] for key, found in asked.items()} == {
        ("InternVL3.5-8B", "HRBench4K"): [30],
        ("InternVL3.5-8B", "MME-RealWorld-Lite"): [40],
        ("InternVL3.5-8B", "TreeBench"): [30],
        ("InternVL3.5-8B", "V*Bench"): [40],
        ("Qwen3-VL-8B", "MME-RealWorld-Lite"): [60],
        ("Qwen3-VL-8B", "V*Bench"): [40],
    }
    for found in asked.values():
        for keys in found:
            assert len(set(keys)) == len(keys)
    (part,), (whole,) = asked["InternVL3.5-8B", "MME-RealWorld-Lite"], asked["Qwen3-VL-8B", "MME-RealWorld-Lite"]
    assert whole[:40] == part


def test_tokens_are_the_frontends_own_and_the_same_at_every_quality(tables: Read, truth: dict[str, Any]) -> None:
    records, questions = tables.records, tables.questions
    for (model, benchmark, knob, value, quality), (_, cell) in cells_of(truth).items():
        capped = NativeResolution(factor=32, min_pixels=65_536, max_pixels=value)
        rule = DynamicTiling(max_tiles=value) if knob == "max_tiles" else capped
        scored = [row for row in records[model, benchmark, knob, value, quality] if credit(row) is not None]
        for row in scored:
            size = questions[benchmark, row["question_key"]]
            width, height = size["image_width"], size["image_height"]
            view = rule.view(width, height)
            held = width * height if quality == "native" else resize_long_edge(width, height, 224).area
            assert (row["visual_tokens"], row["tiles"]) == (view.tokens, view.tiles)
            assert row["effective_pixels"] == min(view.effective_pixels, held)
        assert cell["visual_tokens"] == pytest.approx(sum(row["visual_tokens"] for row in scored) / len(scored), rel=1e-12)


def test_planted_errors_follow_the_law_at_what_the_source_still_holds(tables: Read, truth: dict[str, Any]) -> None:
    records, questions = tables.records, tables.questions
    for key, (sweep, cell) in cells_of(truth).items():
        scored = [row for row in records[key] if credit(row) is not None]
        tokens = cell["visual_tokens"]
        if cell["source_quality"] != "native":
            sizes = [questions[sweep["benchmark"], row["question_key"]] for row in scored]
            held = [resize_long_edge(size["image_width"], size["image_height"], 224).area for size in sizes]
            worth = sum(held) / len(held) / 128
            tokens = 1 / (1 / tokens + 1 / worth)
        law = sweep["law"]
        planted = (
            law["floor"] + law["a_n"] * (sweep["parameters"] / 6.60e9) ** -law["alpha"] + law["b_r"] * (tokens / 1_135) ** -law["beta"]
        )
        assert cell["usable_tokens"] == pytest.approx(tokens, rel=1e-12)
        assert cell["planted_error"] == pytest.approx(planted, rel=1e-12)
        assert cell["mean_wrong_probability"] == pytest.approx(cell["planted_error"], abs=1e-12)


def test_usable_tokens_tend_to_the_smaller_of_tokens_and_source() -> None:
    assert usable_tokens(1e9, 12_800.0, 128.0) == pytest.approx(100, rel=1e-6)
    assert usable_tokens(10.0, 1e15, 128.0) == pytest.approx(10, rel=1e-6)
    assert usable_tokens(100.0, 12_800.0, 128.0) == pytest.approx(50)


def test_truth_holds_what_the_rows_say_and_the_gains_that_follow(harness: Read, truth: dict[str, Any]) -> None:
    records = harness.records
    for key, (_, cell) in cells_of(truth).items():
        earned = [value for row in records[key] if (value := credit(row)) is not None]
        assert (cell["generations"], cell["n"], cell["errors"]) == (len(records[key]), len(earned), len(earned) - sum(earned))
        assert cell["accuracy"] == pytest.approx(sum(earned) / len(earned))
    for sweep in truth["sweeps"]:
        at = {(cell["source_quality"], cell["setting"]): cell for cell in sweep["cells"]}
        gains = {}
        for gain in sweep["gains"]:
            low, high = (at[gain["source_quality"], gain[end]] for end in ("setting_from", "setting_to"))
            everything = [cell["visual_tokens"] for cell in sweep["cells"] if cell["source_quality"] == gain["source_quality"]]
            assert (gain["tokens_from"], gain["tokens_to"]) == (min(everything), max(everything))
            assert gain["planted_gain"] == low["planted_error"] - high["planted_error"] > 0
            assert gain["gain"] == high["accuracy"] - low["accuracy"]
            gains[gain["source_quality"]] = gain | {"high": high}
        for pair in sweep["comparisons"]:
            assert (pair["source_quality"], pair["lower_quality"]) == ("native", "224")
            for name in ("planted_gain", "gain"):
                effect = name.replace("gain", "interaction")
                assert pair[effect] == gains["native"][name] - gains["224"][name]
            assert pair["planted_interaction"] > 0
            assert pair["planted_effect"] == gains["224"]["high"]["planted_error"] - gains["native"]["high"]["planted_error"] > 0
            assert pair["effect"] == gains["native"]["high"]["accuracy"] - gains["224"]["high"]["accuracy"]
        assert len(sweep["comparisons"]) == (sweep["axis"] == "max_tiles")
    assert {cell["benchmark"] for cell in truth["cells"]} == {"V*Bench"}
    assert {law["series"] for law in truth["laws"]} == {part["series"] for part in truth["trajectories"]} == {"Qwen3-VL"}


def test_texts_reach_the_limit_or_name_no_option_as_often_as_planned(harness: Read, tables: Read, truth: dict[str, Any]) -> None:
    counts = truth["counts"]
    for one in (harness, tables):
        rows = [row for part in one.records.values() for row in part if credit(row) is not None]
        unparsed = [row for row in rows if not row["prediction"]]
        cut_off = [row for row in rows if row["generated_tokens"] == 48]
        assert len(rows) == counts["scored"]
        assert len(cut_off) == counts["token_limit_hits"] == pytest.approx(0.05 * counts["scored"], abs=1.5)
        assert len(unparsed) == counts["unparsed"] == pytest.approx(0.03 * counts["scored"], abs=1.5)
        assert {credit(row) for row in unparsed} == {0.0}
        assert any(credit(row) == 1 for row in cut_off)
        assert {row["generated_tokens"] for row in unparsed} == {48, 9}
        assert all(len(row["response"]) > 20 for row in cut_off + unparsed)
        both = [row for row in rows if row["prediction"] and row["logit_prediction"]]
        assert len(both) == counts["with_both_signals"]
        agreeing = sum(row["prediction"] == row["logit_prediction"] for row in both)
        assert agreeing == sum(cell["logit_agreement"] for cell in [*truth["cells"], *(cell for _, cell in cells_of(truth).values())])


def test_latency_without_noise_is_the_planted_line_in_flop(harness: Read, truth: dict[str, Any]) -> None:
    records = harness.records
    parameters = {one["model"]: one["parameters"] for one in [*truth["sweeps"], *truth["cells"]]}
    for key, rows in records.items():
        for row in rows:
            planted = 0.1 + 0.02 * 2 * parameters[key[0]] * row["prompt_tokens"] / 1e12 if row["prompt_tokens"] else None
            assert row["latency_s"] == (None if planted is None else pytest.approx(planted, abs=1e-6))


def test_noise_scatters_latency_around_the_planted_mean(tmp_path: Path) -> None:
    noisy = "latency = { base = 0.1, per_tflop = 0.02, noise = 0.3 }\n" + GRID.replace(
        '"V*Bench", questions = 40', '"V*Bench", questions = 400'
    )
    noisy = noisy[: noisy.index("benchmark =")] + "benchmark = [ " + noisy[noisy.index('{ name = "V*Bench"') :]
    simulate(parse(noisy, "noisy"), tmp_path / "noisy", form="native")
    rows = [json.loads(line) for line in (tmp_path / "noisy" / "native" / "Qwen3-VL-2B.jsonl").read_text(encoding="utf-8").splitlines()]
    parameters = truth_of(tmp_path / "noisy")["cells"][0]["parameters"]
    ratios = [row["latency_s"] / (0.1 + 0.02 * 2 * parameters * row["prompt_tokens"] / 1e12) for row in rows]
    assert sum(ratios) / len(ratios) == pytest.approx(1, abs=4 * 0.3 / len(ratios) ** 0.5)
    assert len(set(ratios)) > 700
