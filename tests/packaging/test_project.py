"""pyproject.toml, constraints.txt, Makefile, .ci/run and README say the same."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from tests.conftest import ROOT


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def config() -> dict[str, Any]:
    return tomllib.loads(text("pyproject.toml"))


def requirements() -> list[Requirement]:
    project = config()["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    found = [Requirement(line) for group in groups for line in group]
    return [requirement for requirement in found if requirement.name != "trackr"]


def pins() -> dict[str, str]:
    lines = [line.split("==") for line in text("constraints.txt").splitlines() if line and not line.startswith("#")]
    return {canonicalize_name(name): version for name, version in lines}


@pytest.mark.parametrize("requirement", requirements(), ids=str)
def test_a_pinned_version_is_one_that_the_range_admits(requirement: Requirement) -> None:
    version = pins()[canonicalize_name(requirement.name)]
    assert requirement.specifier.contains(version), f"{requirement} is pinned to {version}"


def test_every_dependency_has_a_reason() -> None:
    block = re.search(r"^dependencies = \[\n(.*?)^\]", text("pyproject.toml"), flags=re.DOTALL | re.MULTILINE)
    assert block
    assert [line for line in block[1].splitlines() if "#" not in line] == []


def test_every_rule_that_is_off_has_a_reason() -> None:
    lines = [line for line in text("pyproject.toml").splitlines() if re.match(r'\s+"[A-Z]{1,4}\d*",', line)]
    assert len(lines) > 20
    assert [line for line in lines if "#" not in line] == []


@pytest.mark.parametrize("version", ["3.11.0", "3.12.1", "3.13.9"])
def test_the_supported_pythons(version: str) -> None:
    project = config()["project"]
    assert SpecifierSet(project["requires-python"]).contains(version)
    assert f"Programming Language :: Python :: {version.rsplit('.', 1)[0]}" in project["classifiers"]


def test_every_make_target_that_is_told_of_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", text("Makefile"), flags=re.MULTILINE))
    told = {name for file in ("README.md", ".ci/run", "pyproject.toml") for name in re.findall(r"\bmake ([a-z]+(?:-[a-z]+)*)", text(file))}
    assert {"demo", "test", "lint"} <= told
    assert told <= targets


def test_make_help_lists_every_target() -> None:
    shown = subprocess.run(["make", "--no-print-directory", "-C", str(ROOT), "help"], check=True, capture_output=True, text=True).stdout
    listed = {line.split()[0] for line in shown.splitlines()}
    phony = re.search(r"^\.PHONY: (.*)$", text("Makefile"), flags=re.MULTILINE)
    assert phony
    assert listed == set(phony[1].split())


def test_ci_runs_what_developers_run() -> None:
    script = text(".ci/run")
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    for command in ("make test", "make lint", "make wheel-smoke"):
        assert command in script
    lint = text("Makefile").split("\nlint:")[1].split("\n\n")[0]
    for tool in ("ruff format --check", "ruff check", "mypy", "lint-imports"):
        assert tool in lint


def test_ci_fails_when_one_part_fails(tmp_path: Any) -> None:
    """A stand-in for make that fails at lint: the rest still runs, pytest's summary is shown, the exit code tells."""
    make = tmp_path / "make"
    make.write_text('#!/bin/sh\necho "ran $1"\n[ "$1" = test ] && echo "===== 12 passed in 3.45s ====="\n[ "$1" != lint ]\n')
    make.chmod(0o755)
    done = subprocess.run(
        [ROOT / ".ci" / "run"], env=os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "ran wheel-smoke" in done.stdout
    assert done.stdout.count("12 passed in 3.45s") == 2
    assert "failed: lint" in done.stdout


def test_the_changelog_has_a_place_for_what_comes() -> None:
    assert "## Unreleased" in text("CHANGELOG.md")
