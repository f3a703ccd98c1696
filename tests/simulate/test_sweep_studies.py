"""Whole studies with sweeps: the same bytes, what the grid keeps, what is refused, and the preset from folders to answers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.ingest.tables import open_store
from tests.simulate.swept import CAPPED, GRID, TILING, cells_of, digest, small, truth_of
from tracker.errors import SourceFormatError, UsageError
from tracker.simulate import preset, simulate
from tracker.simulate.spec import parse

if TYPE_CHECKING:
    from pathlib import Path


def test_the_same_seed_writes_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "again"):
        simulate(small(), tmp_path / name, form="both")
    assert digest(tmp_path / "again") == digest(tmp_path / "one")


def test_a_sweep_and_later_options_change_no_answer_of_the_grid(tmp_path: Path) -> None:
    used = "benchmark = [ " + GRID[GRID.index('{ name = "V*Bench"') :]
    head = "failed = 0.02\n" + GRID[: GRID.index("benchmark =")]
    sweep = CAPPED.replace("MME-RealWorld-Lite = 60, ", "")
    simulate(parse(head + used, "plain"), tmp_path / "plain", form="both")
    simulate(parse(head + used + sweep, "swept"), tmp_path / "swept", form="both")
    plain, swept = digest(tmp_path / "plain"), digest(tmp_path / "swept")
    rows = {name for name in plain if name.startswith(("lmms_eval", "native"))}
    assert {name: swept[name] for name in rows} == {name: plain[name] for name in rows}
    assert any("pixel_cap-65536" in name for name in swept)
    simulate(parse("latency = { per_tflop = 0.02 }\nunparsed = 0.1\n" + head + used, "later"), tmp_path / "later", form="native")
    name = "native/Qwen3-VL-2B.jsonl"
    kept = ("question_id", "correct", "p_gold", "option_scores", "visual_tokens")
    one, other = (list(map(json.loads, (tmp_path / way / name).read_text(encoding="utf-8").splitlines())) for way in ("plain", "later"))
    assert [[row.get(key) for key in kept] for row in one] == [[row.get(key) for key in kept] for row in other]


def test_truth_of_a_study_without_them_knows_none_of_these_keys(tmp_path: Path) -> None:
    plain = parse(GRID[: GRID.index("benchmark =")] + "benchmark = [ " + GRID[GRID.index('{ name = "V*Bench"') :], "plain")
    simulate(plain, tmp_path / "plain")
    planted = truth_of(tmp_path / "plain")
    assert not {"sweeps"} & set(planted)
    assert not {"token_limit_hits", "unparsed", "latency", "sweep"} & {*planted["plan"], *planted["counts"]}
    assert "sweep_cells" not in planted["counts"]
    assert "latency_s" not in planted["cells"][0]


def test_a_study_of_sweeps_alone_has_no_grid(tmp_path: Path) -> None:
    alone = 'benchmark = [{ name = "V*Bench", questions = 20 }]\n' + CAPPED.replace(
        'MME-RealWorld-Lite = 60, "V*Bench" = 40', '"V*Bench" = 10'
    )
    report = simulate(parse(alone, "alone"), tmp_path / "alone", form="native")
    planted = truth_of(tmp_path / "alone")
    assert (report.models, report.cells, report.generations) == (1, 2, 20)
    assert (planted["cells"], planted["laws"], planted["trajectories"], planted["counts"]["models"]) == ([], [], [], 1)
    assert len((tmp_path / "alone" / "labels.csv").read_text(encoding="utf-8").splitlines()) == 1 + 2 * 10
    assert "input_size" not in (tmp_path / "alone" / "study.toml").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (GRID + CAPPED.replace("token_cap", "token_caps"), "sweep.0.token_caps: expected no such key"),
        (GRID + CAPPED.replace("token_cap = [64, 1024]", ""), "sweep.0.*one of max_tiles, pixel_cap and token_cap, not none"),
        (GRID + CAPPED + "max_tiles = [1]\n", "sweep.0.*not max_tiles and token_cap"),
        (GRID + CAPPED.replace("[64, 1024]", "[64, 64]"), "sweep.0.*token_cap repeats a value"),
        (GRID + TILING.replace('"224"', '"low"'), r"sweep.0.source_quality.1.*pattern"),
        (GRID + TILING.replace("max_tiles = [1", "max_tiles = [0"), "sweep.0.max_tiles.0"),
        (GRID + CAPPED.replace("= 40 }", "= 0 }"), r"sweep.0.benchmarks.V\*Bench"),
        ("token_limit_hits = 2\n" + GRID, "token_limit_hits"),
        ("latency = { base = 1 }\n" + GRID, "latency.per_tflop: expected a value"),
        ("latency = { per_tflop = 1, noice = 1 }\n" + GRID, "latency.noice: expected no such key"),
        (GRID.replace(", input_sizes = [224, 1024]", "") + CAPPED, "models are named, but no benchmark has input_sizes"),
    ],
)
def test_a_wrong_key_or_value_is_named(text: str, place: str) -> None:
    with pytest.raises(SourceFormatError, match=place):
        parse(text, "STUDY.toml")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (GRID + CAPPED, "HRBench4K has no input_sizes and is in no"),
        (GRID + CAPPED.replace('"V*Bench"', "HRBench8K"), "'HRBench8K' is no .*benchmark"),
        (GRID + CAPPED.replace('"V*Bench" = 40', '"V*Bench" = 41'), r"41 questions of V\*Bench, which has 40"),
        (GRID + CAPPED + CAPPED, r"Qwen3-VL-8B on MME-RealWorld-Lite is in two of them"),
        (GRID + CAPPED.replace("token_cap = [64, 1024]", "max_tiles = [1, 6]"), "Qwen3-VL-8B has no such knob"),
        (GRID + TILING.replace("max_tiles", "pixel_cap"), "InternVL3.5-8B has no such knob"),
        (GRID + CAPPED.replace("[64,", "[63,"), "pixel_cap 64,512 of Qwen3-VL-8B is too small"),
        (GRID + CAPPED.replace("Qwen3-VL-8B", "Qwen9-VL-8B"), "the catalog has no 'Qwen9-VL-8B'"),
        (GRID + TILING, r"of InternVL3.5-8B on HRBench4K at max_tiles 1, source quality native \(256 tokens on average\) is not inside"),
    ],
)
def test_what_cannot_be_swept_is_refused_and_nothing_is_written(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=message):
        simulate(parse(text, "study"), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_scaling_asks_more_questions_in_sweeps_too() -> None:
    assert [list(sweep.benchmarks.values()) for sweep in small().scaled(2).sweep] == [[60, 80, 60, 80], [120, 80]]


def test_the_preset_is_that_of_the_paper_and_ingests(tmp_path: Path, sqlite_url: str) -> None:
    """D.2: two models, four benchmarks, seven caps, three qualities of one model; drawn errors scatter around planted ones as single answers do."""
    simulate(preset("sweeps"), tmp_path / "runs")
    planted = truth_of(tmp_path / "runs")
    counts = planted["counts"]
    assert [(sweep["model"], sweep["questions"], len(sweep["cells"])) for sweep in planted["sweeps"]] == [
        (model, questions, cells) for model, cells in (("InternVL3.5-8B", 21), ("Qwen3-VL-8B", 7)) for questions in (100, 100, 100, 191)
    ]
    for sweep in planted["sweeps"]:
        for cell in sweep["cells"]:
            p = cell["planted_error"]
            assert abs(cell["errors"] / cell["n"] - p) < 4 * (p * (1 - p) / cell["n"]) ** 0.5
    with open_store(sqlite_url, tmp_path) as store:
        report = store.ingest(tmp_path / "runs")
        assert (report.exit_code, report.new, report.unknown_models, report.unknown_benchmarks) == (0, counts["cells"] + 112, [], [])
        rows = store.session().connection.execute(
            "select model, benchmark, c.max_tiles, c.pixel_cap, c.source_quality, count(*), sum(credit), count(latency_s), "
            "min(c.max_new_tokens), min(c.input_mode), max(c.input_size) from answers join configurations c on c.id = configuration_id "
            "where c.input_mode = 'native' "
            "group by 1, 2, 3, 4, 5"
        )
        found = {(model, benchmark, tiles or cap, quality): rest for model, benchmark, tiles, cap, quality, *rest in rows.fetchall()}
        sums = store.session().connection.execute(
            "select count(*), count(*) filter (generated_tokens = 48), count(*) filter (coalesce(prediction, '') = ''), avg(latency_s) from answers"
        )
        total = sums.fetchone()
    assert found == {
        (key[0], key[1], key[3], key[4]): [cell["n"], cell["n"] - cell["errors"], cell["n"], 48, "native", None]
        for key, (_, cell) in cells_of(planted).items()
    }
    everything = [*planted["cells"], *(cell for sweep in planted["sweeps"] for cell in sweep["cells"])]
    mean = sum(cell["latency_s"] * cell["n"] for cell in everything) / counts["generations"]
    assert total == (counts["generations"], counts["token_limit_hits"], counts["unparsed"], pytest.approx(mean, rel=1e-5))
