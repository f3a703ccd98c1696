"""`trackr simulate`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.main import main

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "STUDY.toml"


def call(*args: str | Path) -> int:
    """Exit code of the command."""
    with pytest.raises(SystemExit) as caught:
        main(["simulate", *map(str, args)])
    return int(caught.value.code or 0)


def test_the_example_is_written_and_summed_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(EXAMPLE, "--out", tmp_path / "out", "--format", "both") == 0
    out, err = capsys.readouterr()
    assert "4 models, 32 cells, 3,344 generations" in out
    assert "Qwen3-VL-8B: 3,344 generations" in err
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["labels.csv", "lmms_eval", "native", "study.toml", "truth.json"]


def test_json_scale_and_seed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("--preset", "demo", "--out", tmp_path / "out", "--scale", "0.25", "--seed", "5", "-q", "--json") == 0
    out, err = capsys.readouterr()
    report = json.loads(out)
    assert err == ""
    assert report["generations"] == 8 * (4 * (40 + 60 + 4 + 30 + 25) + 40)
    assert json.loads((tmp_path / "out" / "truth.json").read_text(encoding="utf-8"))["seed"] == 5


@pytest.mark.parametrize("args", [(), (EXAMPLE, "--preset", "demo"), ("--preset", "demo", "--scale", "-1"), ("--preset", "demi")])
def test_wrong_usage_exits_2(args: tuple[str | Path, ...], tmp_path: Path) -> None:
    assert call(*args, "--out", tmp_path / "out") == 2
    assert not (tmp_path / "out").exists()


def test_a_wrong_study_exits_3_and_names_the_key(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "STUDY.toml"
    path.write_text(EXAMPLE.read_text(encoding="utf-8").replace("repeated", "repeats"), encoding="utf-8")
    assert call(path, "--out", tmp_path / "out") == 3
    assert "benchmark.1.repeats: expected no such key" in capsys.readouterr().err
