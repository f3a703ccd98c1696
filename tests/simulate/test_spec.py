"""Reading of STUDY.toml: strict, and every error names its key."""

from __future__ import annotations

from pathlib import Path

import pytest

from tracker.errors import SourceFormatError, UsageError
from tracker.simulate import PRESETS, load, preset
from tracker.simulate.laws import law_of, table_7
from tracker.simulate.spec import Reference, parse

GOOD = """
models = ["InternVL3-1B", "InternVL3-8B"]
benchmark = [{ name = "TreeBench", questions = 40, input_sizes = [224, 1024] }]
"""


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("sede = 1\n" + GOOD, "sede"),
        (GOOD.replace("questions = 40", "questions = 0"), "benchmark.0.questions"),
        (GOOD.replace("questions = 40", "questions = 40, repeated = 41"), "benchmark.0"),
        (GOOD.replace("questions = 40", "question = 40"), "benchmark.0.questions"),
        (GOOD.replace("[224, 1024]", "[224, 224]"), "benchmark.0"),
        (GOOD.replace("[224, 1024]", "[]"), "benchmark.0.input_sizes"),
        ("failed = 1.5\n" + GOOD, "failed"),
        (GOOD + "[difficulty]\nspred = 1\n", "difficulty.spred"),
        (GOOD + "[[law]]\nseries = 'InternVL3'\nfloor = 0.1\na_n = 0.1\nalpha = 1\nb_r = 0.1\nbeta = 1\n", "law.0"),
        ("models = ['A', 'A']\n" + GOOD.split("\n", 2)[2], "study"),
        ("models = 3\n" + GOOD.split("\n", 2)[2], "models"),
        ("", "benchmark"),
    ],
)
def test_a_wrong_key_or_value_is_named(text: str, place: str) -> None:
    with pytest.raises(SourceFormatError) as caught:
        parse(text, "STUDY.toml")
    assert caught.value.where is not None
    assert caught.value.where.startswith(f"STUDY.toml: {place}")


def test_what_is_no_toml_is_said_so(tmp_path: Path) -> None:
    path = tmp_path / "STUDY.toml"
    path.write_text("models = [", encoding="utf-8")
    with pytest.raises(SourceFormatError, match="expected TOML"):
        load(path)
    path.write_bytes(b"models = '\xff'")
    with pytest.raises(SourceFormatError, match="expected UTF-8 text"):
        load(path)
    with pytest.raises(UsageError, match="cannot be read"):
        load(tmp_path / "absent.toml")


def test_every_preset_loads_and_an_unknown_one_names_the_known() -> None:
    for name in PRESETS:
        assert preset(name).benchmark
    with pytest.raises(UsageError, match="no preset 'x'") as caught:
        preset("x")
    assert "separable-law" in str(caught.value.hint)


def test_the_example_study_loads() -> None:
    assert load(Path(__file__).resolve().parents[2] / "examples" / "STUDY.toml").models != "all"


def test_scaling_keeps_ratios_and_refuses_nothing_and_less() -> None:
    plan = preset("separable-law").scaled(0.1)
    assert [(part.questions, part.repeated) for part in plan.benchmark] == [(80, 0), (80, 0), (178, 14), (40, 0), (19, 0)]
    with pytest.raises(UsageError, match="not positive"):
        plan.scaled(0)


def test_table_7_holds_twenty_laws_with_the_printed_values() -> None:
    laws = table_7()
    assert len({(law.series, law.suite) for law in laws}) == len(laws) == 20
    steep = law_of(preset("demo"), "InternVL3", "V*Bench", "V*Bench")
    assert (steep.floor, steep.a_n, steep.alpha, steep.b_r, steep.beta) == (0.01, 0.008, 1.262, 65.96, 10.0)
    assert sum(law.beta == 10 for law in laws) == 9
    assert sum(law.alpha == 10 for law in laws) == 3


def test_amplitudes_are_contributions_at_the_reference_point() -> None:
    law = table_7()[0]
    assert law.error(6.60e9, 1_135, Reference()) == pytest.approx(0.001 + 0.308 + 1.24, abs=1e-12)
    assert law.error(13.2e9, 2_270, Reference()) == pytest.approx(0.001 + 0.308 * 2**-0.149 + 1.24 * 2**-4.66, abs=1e-12)


def test_a_law_of_the_study_comes_before_table_7_and_one_for_a_benchmark_before_its_suite() -> None:
    values = "floor = {}\na_n = 0.1\nalpha = 1\nb_r = 0.1\nbeta = 1\n"
    suite = "[[law]]\nseries = 'InternVL3'\nsuite = 'HR-Bench'\n" + values.format(0.1)
    own = "[[law]]\nseries = 'InternVL3'\nbenchmark = 'HRBench8K'\n" + values.format(0.2)
    plan = parse(GOOD + suite + own, "STUDY.toml")
    assert law_of(plan, "InternVL3", "HR-Bench", "HRBench4K").floor == 0.1
    assert law_of(plan, "InternVL3", "HR-Bench", "HRBench8K").floor == 0.2
    assert law_of(plan, "InternVL3", "TreeBench", "TreeBench").floor == 0.06
    with pytest.raises(UsageError, match="no law for series Other"):
        law_of(plan, "Other", "TreeBench", "TreeBench")
