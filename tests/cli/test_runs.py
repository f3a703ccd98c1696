"""`trackr runs list|show|delete`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.cli.running import Done, runner
from tests.ingest.tables import run_rows, write_rows

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Trackr = Callable[..., Done]


@pytest.fixture
def trackr(capfd: pytest.CaptureFixture[str], database_url: str, tmp_path: Path) -> Trackr:
    """On both engines, with three runs."""
    run = runner(capfd, "--db", database_url, "--lake", str(tmp_path / "lake"))
    told: dict[str, Any] = {"input_size": 448, "visual_tokens": 10, "scores": {"f1": 0.5}, "seed": 1}
    write_rows(tmp_path / "in" / "a.jsonl", run_rows("lab/Alpha", ended_at="2026-01-01T00:00:00Z", **told))
    write_rows(tmp_path / "in" / "b.jsonl", run_rows("lab/Beta", "Other", n=2, n_expected=3))
    write_rows(tmp_path / "in" / "c.jsonl", run_rows("lab/Alpha", ended_at="2026-01-02T00:00:00Z", **told))
    run("ingest", str(tmp_path / "in"))
    return run


def test_list_shows_every_run_with_its_id(trackr: Trackr, tmp_path: Path) -> None:
    runs = trackr("runs", "list", "--json").json()
    assert [(run["id"], run["model"], run["benchmark"], run["status"], run["current"], run["n_records"]) for run in runs] == [
        (1, "lab/Alpha", "Bench", "finished", False, 4),
        (2, "lab/Beta", "Other", "partial", False, 2),
        (3, "lab/Alpha", "Bench", "finished", True, 4),
    ]
    assert runs[0]["source_uri"] == str(tmp_path / "in" / "a.jsonl")
    assert len(trackr("runs", "list").out.splitlines()) >= 4


@pytest.mark.parametrize(
    ("options", "ids"),
    [
        (["--model", "lab/beta"], [2]),
        (["--model", "lab/%"], [1, 2, 3]),
        (["--benchmark", "bench"], [1, 3]),
        (["--status", "partial"], [2]),
        (["--model", "x"], []),
    ],
)
def test_list_narrows(trackr: Trackr, options: list[str], ids: list[int]) -> None:
    assert [run["id"] for run in trackr("runs", "list", "--json", *options).json()] == ids


def test_list_knows_every_spelling(trackr: Trackr, tmp_path: Path) -> None:
    (tmp_path / "ours.toml").write_text('[models."Ours-1"]\naliases = ["lab/Alpha"]\n[benchmarks.Ours]\naliases = ["Other"]\n')
    assert trackr("catalog", "import", str(tmp_path / "ours.toml")).code == 0
    for name in ("Ours-1", "LAB/alpha", "ours%"):
        assert [(run["id"], run["model"]) for run in trackr("runs", "list", "--json", "--model", name).json()] == [
            (1, "Ours-1"),
            (3, "Ours-1"),
        ]
    assert [run["id"] for run in trackr("runs", "list", "--json", "--benchmark", "other").json()] == [2]


def test_show_tells_everything_about_one_run(trackr: Trackr, tmp_path: Path) -> None:
    run = trackr("runs", "show", "1", "--json").json()
    assert (run["id"], run["model"], run["benchmark"], run["configuration"]["input_size"]) == (1, "lab/Alpha", "Bench", 448)
    assert [place["uri"] for place in run["places"]] == [str(tmp_path / "in" / "a.jsonl")]
    assert run["answers"] == {"records": 4, "scored": 4, "accuracy": 0.5, "p_gold": None, "visual_tokens": 10.0}
    text = trackr("runs", "show", "1")
    assert text.code == 0
    assert "model: lab/Alpha" in text.out.splitlines()
    assert "  input_size: 448" in text.out.splitlines()


def test_delete_asks_then_removes_a_run_with_everything_of_it(trackr: Trackr, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import io
    import sys

    monkeypatch.setattr(sys, "stdin", io.StringIO("n\n"))
    refused = trackr("runs", "delete", "3")
    assert (refused.code, refused.out) == (130, "")
    assert trackr("runs", "delete", "3", "--yes", "--json").json() == {"deleted_runs": [3], "deleted_records": 4}
    assert [(run["id"], run["current"]) for run in trackr("runs", "list", "--json").json()] == [(1, True), (2, False)]
    assert trackr("query", "select count(*) n from answers", "--format", "json").json() == [{"n": 6}]
    assert trackr("query", "select count(*) n from record_scores", "--format", "json").json() == [{"n": 4}]
    assert "1 new" in trackr("ingest", str(tmp_path / "in")).out
    assert [run["id"] for run in trackr("runs", "list", "--json").json()] == [1, 2, 4], "ids are never reused"


@pytest.mark.parametrize("arguments", [["show", "99"], ["delete", "1", "99", "-y"], ["show", "x"], ["delete", "-y"]])
def test_an_unknown_run_is_wrong_usage_and_nothing_is_removed(trackr: Trackr, arguments: list[str]) -> None:
    done = trackr("runs", *arguments)
    assert (done.code, done.out) == (2, "")
    assert len(trackr("runs", "list", "--json").json()) == 3


def test_without_a_database_it_says_how_to_make_one(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    done = runner(capfd, "--db", str(tmp_path / "none.db"))("runs", "list")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith(f"trackr: {tmp_path}/none.db: there is no trackr database here yet (trackr ingest PATH")
    assert len(done.err.splitlines()) == 1
