"""What a command does not need it does not import: `trackr --help` must stay quick."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = {"sqlalchemy", "alembic", "duckdb", "pyarrow", "pandas", "numpy", "scipy", "pydantic", "altair", "psycopg", "yaml", "urllib3"}


def imported(code: str) -> set[str]:
    """Top-level packages that are loaded after some code has run in a new process."""
    script = f"{code}\nimport sys; print('|' + ' '.join(sorted({{name.split('.')[0] for name in sys.modules}})))"
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    return set(done.stdout.rsplit("|", 1)[1].split())


@pytest.mark.parametrize("arguments", [["--help"], ["--version"]])
def test_help_and_version_import_nothing_heavy(arguments: list[str]) -> None:
    code = f"from cli.main import main\ntry: main({arguments})\nexcept SystemExit: pass"
    assert imported(code) & HEAVY == set()


def test_importing_tracker_imports_nothing_heavy() -> None:
    assert imported("import tracker") & HEAVY == set()


def test_looking_for_sources_imports_no_library_that_only_reading_needs() -> None:
    """`find` of every reader runs on every folder: a parser or client that few formats need is loaded by those."""
    code = "from tracker.readers.mlflow import database, files\nimport tracker.readers.evalscope"
    assert imported(code) & {"yaml", "urllib3"} == set()
