"""`trackr ingest`: exit codes, what goes to stdout and what to stderr, rehearsals."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.cli.running import Done, runner
from tests.conftest import ROOT
from tests.ingest.tables import run_rows, write_rows

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Trackr = Callable[..., Done]


@pytest.fixture
def trackr(capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Trackr:
    monkeypatch.chdir(tmp_path)
    return runner(capfd)


@pytest.fixture
def good(tmp_path: Path) -> Path:
    return write_rows(tmp_path / "good" / "a.jsonl", run_rows(n=3)).parent


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    """A good run, a bad line, and something that is no output."""
    path = write_rows(tmp_path / "mixed" / "a.jsonl", run_rows(n=3))
    path.write_text(path.read_text() + "{broken\n" + json.dumps({**run_rows(n=1)[0], "question_id": "last"}) + "\n")
    (path.parent / "notes.md").write_text("hello")
    return path.parent


def test_done_is_0_and_says_where_it_went(trackr: Trackr, good: Path, tmp_path: Path) -> None:
    done = trackr("ingest", str(good))
    assert (done.code, done.err) == (0, "")
    first, *rest = done.out.splitlines()
    assert first.startswith(f"loaded 3 records into {tmp_path}/.trackr/trackr.db: runs 1 new, 0 updated, 0 unchanged (")
    assert rest == [
        "not in the catalog, model: lab/Alpha (describe with: trackr catalog import FILE)",
        "not in the catalog, benchmark: Bench (describe with: trackr catalog import FILE)",
    ]
    assert (tmp_path / ".trackr" / "lake" / "manifest.json").exists()
    assert "0 new, 0 updated, 1 unchanged" in trackr("ingest", str(good)).out


def test_something_rejected_is_3_and_the_rest_is_in(trackr: Trackr, mixed: Path) -> None:
    for _ in range(2):
        done = trackr("ingest", str(mixed))
        assert done.code == 3
        assert done.err.splitlines()[0] == "rejected: 1 (kept in the table rejections)"
        assert done.err.splitlines()[1].startswith(f"  {mixed}/a.jsonl:4: not valid JSON at column 2")
        assert "; 1 file is no evaluation output" in done.out
        assert "notes.md" not in done.out + done.err
    assert f"  {mixed}/notes.md" in trackr("ingest", str(mixed), "-v").err.splitlines()


def test_files_that_are_no_output_are_no_fault(trackr: Trackr, tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("hello")
    done = trackr("ingest", str(tmp_path / "notes.md"))
    assert done.code == 0
    (hint,) = done.err.splitlines()
    assert "docs/study-file.md" in hint
    (tmp_path / "a.jsonl").write_text('{"model": "m", "benchmark": "b", "question_id": "1", "correct": true}\n')
    assert trackr("ingest", str(tmp_path)).err == ""


@pytest.mark.parametrize(
    "arguments",
    [["nowhere"], [], ["--workers", "-1", "."], [".", "--study", "none.toml"], [".", "--db", "mysql://x/y"], [".", "--db", "sqlite://"]],
)
def test_wrong_usage_is_2_and_touches_nothing(trackr: Trackr, tmp_path: Path, arguments: list[str]) -> None:
    done = trackr("ingest", *arguments)
    assert (done.code, done.out) == (2, "")
    assert done.err
    assert not (tmp_path / ".trackr").exists()


def test_a_database_that_fails_is_1(trackr: Trackr, good: Path, tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("this is text, not a database")
    done = trackr("ingest", str(good), "--db", "text.db")
    assert (done.code, done.out) == (1, "")
    assert (
        done.err
        == f"trackr: {tmp_path}/text.db: this file cannot be read as a SQLite database: file is not a database (restore a copy, or choose another path with --db and ingest again)\n"
    )


def test_interrupted_is_130(trackr: Trackr, good: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tracker.api import Tracker

    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Tracker, "ingest", interrupt)
    done = trackr("ingest", str(good))
    assert (done.code, done.out, done.err.strip()) == (130, "", "trackr: interrupted")


def test_strict_reads_all_first_and_loads_only_what_is_wholly_good(trackr: Trackr, good: Path, mixed: Path, tmp_path: Path) -> None:
    done = trackr("ingest", str(good), str(mixed), "--strict")
    assert done.code == 3
    assert done.out.startswith("loaded nothing (--strict): would have loaded 7 records")
    assert not (tmp_path / ".trackr").exists()
    assert trackr("ingest", str(good), "--strict").code == 0
    assert trackr("runs", "list", "--json").code == 0


def test_a_dry_run_says_the_same_and_makes_nothing(trackr: Trackr, mixed: Path, tmp_path: Path) -> None:
    done = trackr("ingest", str(mixed), "--dry-run")
    assert done.code == 3
    assert done.out.startswith("would load 4 records: runs 1 new")
    assert not (tmp_path / ".trackr").exists()
    dry = trackr("ingest", str(mixed), "--dry-run", "--json").json()
    real = trackr("ingest", str(mixed), "--json").json()
    for name in ("new", "updated", "unchanged", "records", "partial", "rejected", "skipped", "sources"):
        assert dry[name] == real[name], name
    assert (dry["dry_run"], dry["loaded"], real["dry_run"], real["loaded"]) == (True, False, False, True)


def test_a_dry_run_on_a_store_tells_new_from_changed(trackr: Trackr, good: Path) -> None:
    trackr("ingest", str(good))
    write_rows(good / "a.jsonl", run_rows(n=5))
    write_rows(good / "b.jsonl", run_rows("lab/Beta"))
    dry = trackr("ingest", str(good), "--dry-run", "--json").json()
    real = trackr("ingest", str(good), "--json").json()
    assert (dry["records"], real["records"]) == (9, 9)
    assert (dry["new"], dry["updated"]) == (real["new"], real["updated"]) == (1, 1)


JSON_KEYS = {
    *(
        "dry_run",
        "sources",
        "new",
        "updated",
        "unchanged",
        "repeated",
        "duplicate",
        "outdated",
        "disputed",
        "left_out",
        "idle_rules",
        "removed",
        "partial",
        "records",
        "bytes",
        "labels",
    ),
    *("nul_characters", "skipped", "rejected", "unknown_models", "unknown_benchmarks", "not_counting", "loaded", "ingest_id", "seconds"),
}


def test_json_has_a_fixed_shape_and_nothing_else_on_stdout(trackr: Trackr, mixed: Path) -> None:
    done = trackr("ingest", str(mixed), "--json")
    report = done.json()
    assert set(report) == JSON_KEYS
    assert (done.code, report["new"], report["records"], report["ingest_id"]) == (3, 1, 4, 1)
    assert report["skipped"] == [f"{mixed}/notes.md"]
    assert [set(one) for one in report["rejected"]] == [{"file", "line", "reason", "text"}]
    assert (report["rejected"][0]["line"], report["rejected"][0]["text"]) == (4, "{broken")
    assert set(trackr("ingest", str(mixed), "--json").json()) == JSON_KEYS


@pytest.mark.parametrize(
    ("arguments", "code", "kind"), [(["nowhere"], 2, "usage"), (["--nonsense"], 2, "usage"), ([".", "--db", "text.db"], 1, "database")]
)
def test_json_errors_have_a_fixed_shape(trackr: Trackr, tmp_path: Path, arguments: list[str], code: int, kind: str) -> None:
    (tmp_path / "text.db").write_text("this is text, not a database")
    done = trackr("ingest", *arguments, "--json")
    error = done.json()["error"]
    assert (done.code, done.err, set(error), error["kind"]) == (code, "", {"kind", "message", "where", "hint"}, kind)


def test_progress_goes_to_stderr_only_and_only_on_a_terminal(good: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "cli.main", "ingest", str(good), "--json"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    shown = {}
    for option in ("", "-q"):
        ours, theirs = pty.openpty()
        done = subprocess.run(
            [*command, *filter(None, [option])], cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=theirs, check=False
        )
        os.write(theirs, b".")
        shown[option] = os.read(ours, 65536)
        os.close(ours)
        os.close(theirs)
        assert json.loads(done.stdout)["sources"] == 1
        write_rows(good / "b.jsonl", run_rows("lab/Beta", n=1))
        (good / "b.jsonl").rename(good / "a.jsonl")
    assert b"reading 1 of 1" in shown[""]
    assert shown["-q"] == b"."
    piped = subprocess.run([*command[:-1], "--db", "other.db"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert piped.stderr == ""


@pytest.fixture
def mlruns(tmp_path: Path) -> Path:
    """A legacy MLflow store: two experiments with a run each, of 2024 and of 2026, and a deleted run."""
    root = tmp_path / "mlruns"
    runs = [("1", "vision", "a" * 32, 1_704_100_000_000, "active"), ("2", "text", "b" * 32, 1_780_000_000_000, "active")]
    for experiment, name, run, end, stage in [*runs, ("2", "text", "c" * 32, 1_780_000_000_000, "deleted")]:
        folder = root / experiment / run
        (folder / "metrics").mkdir(parents=True)
        (root / experiment / "meta.yaml").write_text(f"experiment_id: '{experiment}'\nlifecycle_stage: active\nname: {name}\n")
        (folder / "meta.yaml").write_text(
            f"artifact_uri: x\nend_time: {end}\nexperiment_id: '{experiment}'\nlifecycle_stage: {stage}\nrun_id: {run}\nrun_name: r\n"
            f"run_uuid: {run}\nsource_type: 4\nstart_time: {end - 1000}\nstatus: 3\nuser_id: u\n"
        )
        (folder / "metrics" / "loss").write_text("".join(f"{end - 1000 + step} {1 / (step + 1)} {step}\n" for step in range(3)))
    return root


@pytest.mark.parametrize(
    ("options", "kept", "left_out"),
    [
        ((), ["a", "b"], "deleted in MLflow: 1"),
        (("--experiment", "vision"), ["a"], "of another experiment (--experiment): 1"),
        (("--experiment", "vision", "--experiment", "text"), ["a", "b"], "deleted in MLflow: 1"),
        (("--since", "2025-01-01"), ["b"], "unchanged since the time given (--since): 1"),
        (("--since", "2026-12-31T00:00+02:00"), [], "unchanged since the time given (--since): 2"),
    ],
)
def test_time_and_experiment_choose_runs_and_the_others_are_counted(
    trackr: Trackr, mlruns: Path, options: tuple[str, ...], kept: list[str], left_out: str
) -> None:
    done = trackr("ingest", str(mlruns), *options, "-q")
    assert done.code == 0
    assert f"left out, {left_out}" in done.out
    rows = trackr("query", "select external_id[:1] id from runs order by 1", "--format", "json").json() if kept else []
    assert [row["id"] for row in rows] == kept


def test_since_takes_ages_and_refuses_what_is_no_time(trackr: Trackr, good: Path) -> None:
    assert "1 new" in trackr("ingest", str(good), "--since", "2h").out
    done = trackr("ingest", str(good), "--since", "banana")
    assert (done.code, "found 'banana'" in done.err) == (2, True)


@pytest.mark.parametrize(
    ("address", "code", "said"),
    [
        ("mysql://me:secret@host/db", 2, "mysql://me:***@host/db: no reader knows this kind of address"),
        ("sqlite:////no/such.db", 1, "no such file"),
        ("postgresql://me:secret@127.0.0.1:9/db", 1, "cannot be read: connection failed"),
    ],
)
def test_an_address_that_cannot_be_opened_is_one_line_without_a_password(trackr: Trackr, address: str, code: int, said: str) -> None:
    done = trackr("ingest", address)
    assert (done.code, done.err.count("\n")) == (code, 1)
    assert said in done.err
    assert "secret" not in done.err


def test_an_experiment_that_is_nowhere_is_said_with_those_that_are(trackr: Trackr, mlruns: Path) -> None:
    done = trackr("ingest", str(mlruns), "--experiment", "visoin")
    assert (done.code, "'visoin' (there are text, vision)" in done.err) == (2, True)


def test_path_rules_know_the_experiment_of_a_file_store_and_rules_without_a_file_are_said(trackr: Trackr, mlruns: Path) -> None:
    (mlruns.parent / "study.toml").write_text(
        "[[path]]\npattern = 'experiments/(?P<benchmark>vision)/runs/'\nkind = 'evaluation'\n[[scores]]\nmetric = 'accuracy'\nfiles = 'leaderbord\\.csv$'\n"
        "[scores.columns]\nmodel = 'Model'\nbenchmark = 'Benchmark'\nvalue = 'Value'\n"
    )
    done = trackr("ingest", str(mlruns.parent), "-q")
    assert done.code == 0
    assert "no file meets this rule of the study file: [[scores]] files = 'leaderbord\\.csv$'" in done.out
    rows = trackr("query", "select kind, benchmark_name from runs order by kind", "--format", "json").json()
    assert rows == [{"kind": "evaluation", "benchmark_name": "vision"}, {"kind": "training", "benchmark_name": None}]


def test_a_finished_run_without_a_scored_answer_is_said(trackr: Trackr, tmp_path: Path) -> None:
    write_rows(tmp_path / "in" / "a.jsonl", [{**row, "correct": None, "status": "unscored"} for row in run_rows(n=3)])
    done = trackr("ingest", str(tmp_path / "in"))
    assert "in the whole database: 1 run without any scored answer" in done.out
