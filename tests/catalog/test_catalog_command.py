"""`trackr catalog` from the command line, without and with a database."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.conftest import ROOT
from tracker.catalog import load, read

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path


def _trackr(place: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TRACKR_")}
    environment |= {"PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-m", "cli.main", "catalog", *arguments], cwd=place, env=environment, capture_output=True, text=True, check=False
    )


def test_show_lists_models_and_benchmarks_and_makes_no_database(place: Path) -> None:
    done = _trackr(place, "show")
    assert done.returncode == 0
    assert "8,190,735,360" in next(line for line in done.stdout.splitlines() if line.startswith("InternVL3.5-8B"))
    assert "TreeBench" in done.stdout
    assert not any(place.iterdir())


def test_show_describes_a_name_in_any_spelling(place: Path) -> None:
    done = _trackr(place, "show", "OpenGVLab/InternVL3_5-1B", "--json")
    (entry,) = json.loads(done.stdout)
    assert (entry["name"], entry["parameters"], entry["family"], entry["frontend"]) == (
        "InternVL3.5-1B",
        751_632_384,
        "InternVL",
        "InternVL tiling",
    )


def test_show_says_what_was_meant(place: Path) -> None:
    done = _trackr(place, "show", "InternVL3_5-8")
    assert done.returncode == 2
    assert "did you mean 'InternVL3_5-8B'" in done.stderr


def test_show_json_is_the_whole_catalog(place: Path) -> None:
    shown = json.loads(_trackr(place, "show", "--json").stdout)
    assert {model["name"] for model in shown["models"]} == set(load().models)


def test_export_reads_back(place: Path) -> None:
    assert _trackr(place, "export", "out.toml").returncode == 0
    assert read(place / "out.toml") == load()
    assert _trackr(place, "export").stdout == _trackr(place, "export", "-").stdout == (place / "out.toml").read_text()


def test_export_into_a_missing_folder_is_one_line(place: Path) -> None:
    done = _trackr(place, "export", "none/out.toml")
    assert done.returncode != 0
    assert done.stderr.splitlines() == ["trackr: none/out.toml: cannot be written: No such file or directory"]


def test_import_counts_what_it_changed_and_nothing_the_second_time(place: Path) -> None:
    (place / "own.toml").write_text('[models.Own]\nbackbone = "Qwen2.5-7B"\naliases = ["lab/Own"]\n')
    first = json.loads(_trackr(place, "import", "own.toml", "--json").stdout)
    assert first["added"] > 0
    assert set(json.loads(_trackr(place, "import", "own.toml", "--json").stdout).values()) == {0}
    assert _trackr(place, "import", "own.toml").stdout == "0 added, 0 changed, 0 merged models, 0 merged benchmarks, 0 relinked runs\n"


def test_a_fault_in_an_imported_file_makes_no_database(place: Path) -> None:
    (place / "own.toml").write_text("[modles.Own]\n")
    done = _trackr(place, "import", "own.toml")
    assert done.returncode == 3
    assert done.stderr.startswith("trackr: own.toml: modles: expected one of the keys")
    assert not (place / ".trackr").exists()


def test_with_a_database_show_and_export_include_what_was_imported(place: Path) -> None:
    (place / "own.toml").write_text('[models.Own]\nbackbone = "Qwen2.5-7B"\naliases = ["lab/Own"]\n')
    _trackr(place, "import", "own.toml")
    (entry,) = json.loads(_trackr(place, "show", "lab__Own", "--json").stdout)
    assert (entry["name"], entry["series"], entry["parameters"]) == ("Own", "Own", 7_615_616_512)
    assert _trackr(place, "export", "all.toml").returncode == 0
    exported, shipped = read(place / "all.toml"), load()
    assert set(exported.models) == {*shipped.models, "Own"}
    for name, model in shipped.models.items():
        assert exported.parameters_of(exported.models[name]) == shipped.parameters_of(model)
        assert exported.models[name].vision_parameters == model.vision_parameters
        assert set(exported.models[name].aliases) == set(model.aliases)
