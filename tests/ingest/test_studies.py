"""Whole studies: a simulated one as lmms-eval and as native tables, and a public one of ad-hoc tables, the same on both engines."""

from __future__ import annotations

import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.conftest import ROOT, samples
from tests.ingest.tables import content, open_store

if TYPE_CHECKING:
    from pathlib import Path


def simulate(out: Path, kind: str) -> Path:
    command = [
        sys.executable,
        "-m",
        "cli.main",
        "simulate",
        "--preset",
        "demo",
        "--scale",
        "0.2",
        "--format",
        kind,
        "--out",
        str(out),
        "-q",
    ]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return out


@pytest.mark.parametrize("kind", ["lmms_eval", "native"])
def test_a_simulated_study_is_the_same_on_both_engines_and_unchanged_the_second_time(
    postgres_url: str, sqlite_url: str, tmp_path: Path, kind: str
) -> None:
    folder = simulate(tmp_path / "study", kind)
    found = []
    for url in (sqlite_url, postgres_url):
        with open_store(url, tmp_path / url.split(":", maxsplit=1)[0]) as store:
            first = store.ingest(folder)
            assert (first.exit_code, first.unknown_models, first.unknown_benchmarks) == (0, [], [])
            assert first.labels > 0
            version = store.session().data_version
            again = store.ingest(folder)
            assert (again.unchanged, again.new, again.updated) == (first.new, 0, 0)
            assert store.session().data_version == version
            found.append(content(store))
    assert {name for name in found[0] if found[0][name] != found[1][name]} == set()
    assert len(found[0]["trajectories"]) > 100


def test_a_copy_of_a_study_elsewhere_adds_places_and_no_runs(sqlite_url: str, tmp_path: Path) -> None:
    """The study file moves with its folder, so what it captures is the same."""
    folder = simulate(tmp_path / "study", "lmms_eval")
    shutil.copytree(folder, tmp_path / "copy")
    with open_store(sqlite_url, tmp_path) as store:
        first = store.ingest(folder)
        second = store.ingest(tmp_path / "copy")
        assert (second.new, second.updated, second.duplicate) == (0, 0, first.new)


def test_a_public_study_of_ad_hoc_tables_is_the_same_on_both_engines(postgres_url: str, sqlite_url: str, tmp_path: Path) -> None:
    folder = samples("vlm_custom", "mllms_fine_grained")
    found = []
    for url in (sqlite_url, postgres_url):
        with open_store(url, tmp_path / url.split(":", maxsplit=1)[0]) as store:
            report = store.ingest(folder, study=ROOT / "examples" / "vstar-fine-grained" / "study.toml")
            assert (report.exit_code, report.new > 43, report.partial > 0) == (3, True, True)
            again = store.ingest(folder, study=ROOT / "examples" / "vstar-fine-grained" / "study.toml")
            assert (again.unchanged, again.new, again.updated) == (report.new + report.duplicate, 0, 0)
            assert len(again.rejected) == len(report.rejected)
            found.append(content(store))
    assert {name for name in found[0] if found[0][name] != found[1][name]} == set()
    assert [row[9] for row in found[0]["cells"] if row[5] == "V*Bench"] == [191] * 43
