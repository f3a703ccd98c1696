"""`trackr info`: where things are, versions, counts and sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.cli.running import Done, runner
from tests.ingest.tables import run_rows, write_rows
from tracker.config import mask

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Trackr = Callable[..., Done]


@pytest.fixture
def trackr(capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Trackr:
    monkeypatch.chdir(tmp_path)
    return runner(capfd)


def test_before_anything_is_there(trackr: Trackr, tmp_path: Path) -> None:
    found = trackr("info", "--json").json()
    assert set(found) == {"trackr", "database", "lake"}
    assert (found["database"]["exists"], found["lake"]["exists"]) == (False, False)
    assert found["database"]["said by"] == "default"
    assert not (tmp_path / ".trackr").exists()


def test_databases_of_one_folder_have_lakes_of_their_own(trackr: Trackr, tmp_path: Path) -> None:
    write_rows(tmp_path / "a.jsonl", run_rows(n=4))
    write_rows(tmp_path / "b.jsonl", run_rows(n=7))
    for name, file in (("trackr.db", "a.jsonl"), ("other.db", "b.jsonl")):
        trackr("ingest", file, "--db", name)
    assert [trackr("query", "select count(*) n from answers", "--db", name, "--json").json() for name in ("trackr.db", "other.db")] == [
        [{"n": 4}],
        [{"n": 7}],
    ]
    lakes = [trackr("info", "--json", "--db", name).json()["lake"]["folder"] for name in ("trackr.db", "other.db")]
    assert lakes == [str(tmp_path / "lake"), str(tmp_path / "other.lake")]


def test_counts_and_versions(trackr: Trackr, database_url: str, tmp_path: Path) -> None:
    write_rows(tmp_path / "a.jsonl", run_rows(n=4, domain="D"))
    options = ["--db", database_url, "--lake", str(tmp_path / "elsewhere")]
    trackr("ingest", "a.jsonl", *options)
    found = trackr("info", "--json", *options).json()
    rows = found["rows"]
    assert (rows["runs"], rows["records"], rows["questions"], rows["trajectories"], rows["question_labels"], rows["rejections"]) == (
        1,
        4,
        4,
        4,
        4,
        0,
    )
    assert found["database"]["data_version"] == found["lake"]["data_version"]
    assert found["database"]["said by"] == "--db"
    assert found["lake"]["folder"] == str(tmp_path / "elsewhere")
    assert found["lake"]["bytes"] > 0
    if database_url.startswith("sqlite"):
        assert found["database"]["journal"] == "wal"
        assert found["database"]["bytes"] > 0
    text = trackr("info", *options)
    assert "  records: 4" in text.out.splitlines()


def test_passwords_are_not_shown(trackr: Trackr) -> None:
    assert mask("postgresql+psycopg://me:se@cret@host/db") == "postgresql+psycopg://me:***@host/db"
    done = trackr("info", "--db", "postgresql://me:secret@127.0.0.1:1/db")
    assert done.code == 1
    assert "secret" not in done.out + done.err


def test_what_said_where_things_are(trackr: Trackr, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Option before environment before trackr.toml before default."""
    (tmp_path / "trackr.toml").write_text('db = "store/project.db"\n')
    below = tmp_path / "deep" / "er"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)

    def said(*options: str) -> tuple[str, str]:
        found = trackr("info", "--json", *options).json()["database"]
        return found["said by"], found["url"].rsplit("/", 1)[1]

    assert said() == (str(tmp_path / "trackr.toml"), "project.db")
    monkeypatch.setenv("TRACKR_DB", "environment.db")
    assert said() == ("TRACKR_DB", "environment.db")
    assert said("--db", "option.db") == ("--db", "option.db")
    (tmp_path / "trackr.toml").write_text("db = \n")
    done = trackr("info")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"trackr: {tmp_path}/trackr.toml: not valid TOML")
