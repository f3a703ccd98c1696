"""What the system refuses is one line, whatever command met it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import duckdb
import pytest

from tests.cli.running import runner
from tests.conftest import ROOT

if TYPE_CHECKING:
    from pathlib import Path


def shell(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A shell line in which `trackr` is this checkout's."""
    script = f"set -o pipefail; trackr() {{ '{sys.executable}' -m cli.main \"$@\"; }}; {line}"
    return subprocess.run(
        ["bash", "-c", script], cwd=folder, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False
    )


@pytest.mark.parametrize("command", ["schema", "schema cells --json", "--help", "schema nonsense --json"])
def test_output_that_cannot_be_written_is_one_line(command: str, tmp_path: Path) -> None:
    full = shell(f"trackr {command} > /dev/full", tmp_path)
    assert (full.returncode, full.stderr.count("\n")) == (1, 1)
    assert "standard output cannot be written: No space left on device" in full.stderr
    closed = shell(f"trackr {command} >&-", tmp_path)
    assert (closed.returncode, closed.stderr.count("\n")) == (1, 1)
    assert shell(f"trackr {command} >&- 2>&-", tmp_path).returncode == 1


def test_a_closed_input_or_error_stream_is_no_fault(tmp_path: Path) -> None:
    assert shell("trackr schema cells <&- 2>&- > out", tmp_path).returncode == 0
    assert "error" in (tmp_path / "out").read_text(encoding="utf-8")
    unread = shell("trackr query - <&-", tmp_path)
    assert (unread.returncode, unread.stderr.count("\n")) == (2, 1)


def test_who_reads_the_output_may_stop_early(tmp_path: Path) -> None:
    early = shell("trackr schema | true", tmp_path)
    assert (early.returncode, early.stderr) == (0, "")


def test_what_an_engine_says_is_one_line(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    def fail(*_: object, **__: object) -> None:
        message = "Invalid Input Error: no such thing\n\nLINE 1: select ..."
        raise duckdb.InvalidInputException(message)

    monkeypatch.setattr("cli.commands.schema.schema.callback", fail)
    done = runner(capfd)("schema")
    assert (done.code, done.err.count("\n")) == (1, 1)
    assert done.err.startswith("trackr: Invalid Input Error: no such thing (")


def test_a_path_that_is_no_text_is_refused(tmp_path: Path) -> None:
    done = shell("mkdir $'\\xff' && cd $'\\xff' && trackr info", tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "not UTF-8" in done.stderr


@pytest.mark.parametrize("text", ["db = 5", "lake = ['a']", "db = '", "\udcff"])
def test_a_project_file_that_is_wrong_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "trackr.toml").write_text(text, errors="surrogateescape")
    done = shell("trackr info", tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "trackr.toml" in done.stderr


def test_an_interrupt_while_the_program_loads_leaves_no_stack_trace() -> None:
    script = "import os, signal, sys; sys.argv = ['/somewhere/trackr']; import cli.main; os.kill(os.getpid(), signal.SIGINT)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, check=False)
    assert (done.returncode, done.stderr) == (-signal.SIGINT, "")  # a shell makes it 130
    script = script.replace("cli.main;", "cli.main, cli.commands.schema; cli.commands.schema.schema.callback = lambda **_:").replace(
        "import os", "import os", 1
    )
    script += "\ncli.main.main(['schema'])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, check=False)
    assert (done.returncode, done.stderr) == (130, "\ntrackr: interrupted\n")


def test_an_error_that_an_interrupt_causes_is_the_interrupt() -> None:
    """SciPy answers a Ctrl-C while it loads with an ImportError; a lost worker, with an AnalysisError."""
    script = """
import os, signal
from cli.main import main
import cli.commands.schema
def loading(**_):
    try:
        os.kill(os.getpid(), signal.SIGINT)
        signal.pause()
    except KeyboardInterrupt:
        raise ImportError("cannot load module more than once per process")
cli.commands.schema.schema.callback = loading
main(["schema"])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, check=False)
    assert (done.returncode, done.stderr) == (130, "trackr: interrupted\n")
