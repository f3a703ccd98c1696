"""What is in the wheel: code, and the data that the code reads."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from typing import TYPE_CHECKING

import pytest

from tests.conftest import ROOT

if TYPE_CHECKING:
    from pathlib import Path

PACKAGES = ("tracker", "cli", "analyses", "migrations")
DATA = {".sql", ".toml", ".mako", ".typed", ".json"}


@pytest.fixture(scope="module")
def contents(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """Names of the files in a wheel that was built from this tree."""
    out = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(ROOT)], check=True, capture_output=True
    )
    (wheel,) = out.glob("*.whl")
    return set(zipfile.ZipFile(wheel).namelist())


def in_the_tree(suffixes: set[str]) -> set[str]:
    files = (path for package in PACKAGES for path in (ROOT / package).rglob("*") if path.suffix in suffixes)
    return {relative(path) for path in files}


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_every_module_is_in_the_wheel(contents: set[str]) -> None:
    assert in_the_tree({".py"}) <= contents


def test_every_data_file_is_in_the_wheel(contents: set[str]) -> None:
    """Catalog, views, cohorts, revisions: without them an installed trackr would start and then fail."""
    data = in_the_tree(DATA)
    assert data <= contents
    for package, suffix in (("tracker/catalog/", ".toml"), ("tracker/lake/", ".sql"), ("analyses/", ".sql"), ("migrations/", ".mako")):
        assert any(name.startswith(package) and name.endswith(suffix) for name in data), f"no {suffix} in {package}"


def test_nothing_else_is_in_the_wheel(contents: set[str]) -> None:
    folders = {name.split("/")[0] for name in contents}
    assert {name for name in folders if not name.endswith(".dist-info")} == set(PACKAGES)
    assert not any(name.startswith("tests/") or "__pycache__" in name for name in contents)


def test_the_licence_travels_along(contents: set[str]) -> None:
    assert any(name.endswith("licenses/LICENSE") for name in contents)
