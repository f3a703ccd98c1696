"""The shipped catalog: the paper's models and benchmarks under every spelling, each number with its source."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter

import pytest

from tests.conftest import samples
from tracker.catalog import load
from tracker.catalog.read import DATA

TABLE_5 = {
    "InternVL2.5": ("1B", "2B", "4B", "8B", "26B", "38B"),
    "InternVL3": ("1B", "2B", "8B", "9B", "14B", "38B"),
    "InternVL3.5": ("1B", "2B", "4B", "8B", "14B", "38B"),
    "Qwen2.5-VL": ("3B", "7B", "32B", "72B"),
    "Qwen3-VL": ("2B", "4B", "8B", "32B"),
}

TABLE_4 = """
Qwen3-0.6B-Base base|Qwen3-0.6B instruct|Qwen3-1.7B-Base base|Qwen3-1.7B instruct|Qwen3-4B-Base base|Qwen3-4B instruct|Qwen3-8B-Base base
Qwen3-8B instruct|Qwen3-30B-A3B-Base base|Qwen3-30B-A3B instruct|Qwen2.5-72B base|Qwen2.5-72B-Instruct instruct|Falcon3-1B-Base base
Falcon3-1B-Instruct instruct|Falcon3-3B-Base base|Falcon3-3B-Instruct instruct|Falcon3-7B-Base base|Falcon3-7B-Instruct instruct
Falcon3-10B-Base base|Falcon3-10B-Instruct instruct|Llama-3.2-1B base|Llama-3.2-1B-Instruct instruct|Llama-3.2-3B base
Llama-3.2-3B-Instruct instruct|gemma-2-2b base|gemma-2-2b-it instruct|gemma-2-9b base|gemma-2-9b-it instruct|Mistral-7B-v0.3 base
Mistral-7B-Instruct-v0.3 instruct|deepseek-llm-7b-base base|deepseek-llm-7b-chat instruct|deepseek-math-7b-base base|deepseek-math-7b-instruct instruct
"""


def test_models_are_those_of_table_5() -> None:
    assert {name: model.series for name, model in load().models.items()} == {
        f"{series}-{size}": series for series, sizes in TABLE_5.items() for size in sizes
    }


def test_families_series_and_frontends() -> None:
    catalog = load()
    assert set(catalog.families) == {"InternVL", "QwenVL"}
    assert {name: (s.family, catalog.frontends[s.frontend or ""].kind) for name, s in catalog.series.items()} == {
        "InternVL2.5": ("InternVL", "tiling"),
        "InternVL3": ("InternVL", "tiling"),
        "InternVL3.5": ("InternVL", "tiling"),
        "Qwen2.5-VL": ("QwenVL", "native"),
        "Qwen3-VL": ("QwenVL", "native"),
    }


def test_all_34_backbones_of_capability_law_table_4_with_their_stage() -> None:
    wanted = [entry.rsplit(" ", 1) for line in TABLE_4.strip().splitlines() for entry in line.split("|")]
    assert len(wanted) == 34
    assert {name: stage for name, stage in wanted} == {name: load().backbones[name].stage for name, _ in wanted}  # noqa: C416 - pairs are lists


@pytest.mark.parametrize(
    ("spelling", "model"),
    [
        ("Qwen/Qwen2.5-VL-7B-Instruct", "Qwen2.5-VL-7B"),
        ("Qwen__Qwen2.5-VL-7B-Instruct", "Qwen2.5-VL-7B"),
        ("Qwen2.5-VL-7B-Instruct", "Qwen2.5-VL-7B"),
        ("qwen2.5-vl-7b-instruct", "Qwen2.5-VL-7B"),
        ("OpenGVLab/InternVL3_5-8B", "InternVL3.5-8B"),
        ("openGVLab/InternVL3_5-8B", "InternVL3.5-8B"),
        ("OpenGVLab__InternVL3_5-8B", "InternVL3.5-8B"),
        ("InternVL3_5-8B-HF", "InternVL3.5-8B"),
        ("InternVL2_5-8B", "InternVL2.5-8B"),
        ("OpenGVLab/InternVL3-8B-hf", "InternVL3-8B"),
        ("InternVL3-9B", "InternVL3-9B"),
        ("Qwen3-VL-32B-Instruct", "Qwen3-VL-32B"),
    ],
)
def test_spellings_of_models(spelling: str, model: str) -> None:
    found = load().model(spelling)
    assert found is not None
    assert found.name == model


@pytest.mark.parametrize(
    "spelling",
    [
        "OpenGVLab/InternVL3-8B-AWQ",
        "OpenGVLab/InternVL3_5-8B-Instruct",
        "OpenGVLab/InternVL3_5-8B-MPO",
        "OpenGVLab/InternVL2_5-8B-MPO",
        "OpenGVLab/InternVL3_5-8B-Flash",
        "OpenGVLab/InternVL3-1B-Pretrained",
        "Qwen/Qwen3-VL-8B-Thinking",
        "Qwen/Qwen2.5-VL-7B-Instruct-AWQ",
        "InternVL2-8B",
    ],
)
def test_other_weights_are_other_models(spelling: str) -> None:
    assert load().model(spelling) is None


@pytest.mark.parametrize(
    ("spellings", "benchmark", "suite", "questions"),
    [
        (("hrbench4k", "HRBench4K"), "HRBench4K", "HR-Bench", 800),
        (("hrbench8k", "HRBench8K"), "HRBench8K", "HR-Bench", 800),
        (("mmerealworld_lite", "mme_realworld_lite", "MME-RealWorld-Lite"), "MME-RealWorld-Lite", "MME-RealWorld", 1782),
        (("TreeBench", "treebench"), "TreeBench", "TreeBench", 405),
        (("vstar_bench", "VStarBench", "V*"), "V*Bench", "V*Bench", 191),
    ],
)
def test_benchmarks_under_the_names_of_both_toolkits(spellings: tuple[str, ...], benchmark: str, suite: str, questions: int) -> None:
    for spelling in spellings:
        found = load().benchmark(spelling)
        assert found is not None
        assert (found.name, found.suite, found.n_questions) == (benchmark, suite, questions)


def test_a_part_of_a_benchmark_does_not_pass_for_it() -> None:
    assert load().benchmark("vstar_bench_direct_attributes") is None
    assert load().benchmark("mmerealworld") is None


def test_rows_of_the_paper_follow_from_the_counts() -> None:
    """537,940 generations = 26 models x (6 sizes x (4K, MME-RealWorld, TreeBench, V*) + 8K once)."""
    rows = {name: b.n_rows or b.n_questions or 0 for name, b in load().benchmarks.items()}
    assert 26 * (6 * (rows["HRBench4K"] + rows["MME-RealWorld-Lite"] + rows["TreeBench"] + rows["V*Bench"]) + rows["HRBench8K"]) == 537_940
    assert sum(b.n_questions or 0 for b in load().benchmarks.values()) == 3_978


def test_tasks_of_categories() -> None:
    benchmarks = load().benchmarks
    assert benchmarks["V*Bench"].tasks["direct_attributes"] == "perception"
    assert benchmarks["V*Bench"].tasks["relative_position"] == "reasoning"
    assert set(benchmarks["HRBench4K"].tasks.values()) == {"perception"}
    for name in ("MME-RealWorld-Lite", "TreeBench"):
        for category, task in benchmarks[name].tasks.items():
            assert category.split("/")[0].lower() == task
    assert Counter(t for c, t in benchmarks["TreeBench"].tasks.items() if "/" in c) == {"perception": 5, "reasoning": 5}


def test_numbers_of_the_frontends() -> None:
    frontends = load().frontends
    assert {k: frontends["InternVL tiling"].parameters[k] for k in ("tile", "tokens_per_tile", "max_tiles", "thumbnail")} == {
        "tile": 448,
        "tokens_per_tile": 256,
        "max_tiles": 12,
        "thumbnail": True,
    }
    for name, factor, low, high in (("Qwen2.5-VL native", 28, 3136, 12845056), ("Qwen3-VL native", 32, 65536, 16777216)):
        numbers = frontends[name].parameters
        assert (numbers["patch"] * numbers["merge"], numbers["factor"], numbers["min_pixels"], numbers["max_pixels"]) == (
            factor,
            factor,
            low,
            high,
        )


def test_every_number_has_a_source_and_no_total_is_typed_in() -> None:
    catalog = load()
    for specs in (catalog.backbones, catalog.frontends, catalog.encoders, catalog.benchmarks):
        for spec in specs.values():
            assert spec.source, spec.name
    for backbone in catalog.backbones.values():
        assert backbone.architecture is not None
    for path in DATA.glob("*.toml"):
        assert "parameters =" not in path.read_text().replace("\nparameters = {", "")


def test_names_in_real_files_are_known() -> None:
    """Ids and sanitised ids of evaluated models, as lmms-eval wrote them."""
    spellings = set()
    for path in samples().rglob("*.json*"):
        if path.is_file() and path.stat().st_size < 1_000_000:
            spellings |= set(
                re.findall(r"Qwen(?:/|__)Qwen(?:2\.5|3)-VL-\w+-Instruct\b", path.read_text(encoding="utf-8", errors="replace"))
            )
    assert {"Qwen/Qwen2.5-VL-3B-Instruct", "Qwen__Qwen2.5-VL-3B-Instruct"} <= spellings
    assert [s for s in spellings if load().model(s) is None] == []


def test_loading_is_cheap() -> None:
    """Ingest loads the catalog each time: no pydantic, no database, no numbers library comes with it."""
    code = "import sys, tracker.catalog as c; c.load(); print(*[m for m in ('pydantic', 'sqlalchemy', 'numpy', 'pyarrow', 'duckdb', 'click') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == ""
