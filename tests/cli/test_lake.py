"""`trackr lake`: status, sync, rebuild, verify, files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pytest

from tests.cli.running import Done, runner
from tests.lake.study import add_run, new_database
from tracker.lake import Lake

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tracker.database import Database


@pytest.fixture
def db(sqlite_url: str) -> Iterator[Database]:
    database = new_database(sqlite_url)
    for seed in range(4):
        add_run(database, seed)
    yield database
    database.close()


@pytest.fixture
def trackr(db: Database, capfd: pytest.CaptureFixture[str]) -> Callable[..., Done]:
    return runner(capfd, "--db", db.url)


def test_sync_says_what_it_did_and_then_that_nothing_is_new(trackr: Callable[..., Done]) -> None:
    done = trackr("lake", "sync")
    assert done.code == 0
    assert "4 runs added" in done.out
    assert "up to date" in trackr("lake", "sync").out
    assert trackr("lake", "sync", "--json").json()["up_to_date"] is True


def test_status_before_and_after(trackr: Callable[..., Done], db: Database) -> None:
    before = trackr("lake", "status", "--json").json()
    assert (before["exists"], before["fresh"], before["data_version"]) == (False, False, None)
    trackr("lake", "sync")
    after = trackr("lake", "status", "--json").json()
    assert (after["exists"], after["fresh"]) == (True, True)
    assert after["data_version"] == after["database_version"]
    assert after["rows"]["runs"] == 4
    add_run(db, 9)
    assert trackr("lake", "status", "--json").json()["fresh"] is False
    assert "fresh             no" in trackr("lake", "status").out


def test_verify_agrees_and_then_finds_the_damage(trackr: Callable[..., Done], tmp_path: Path) -> None:
    trackr("lake", "sync")
    done = trackr("lake", "verify")
    assert done.code == 0
    assert "lake == database" in done.out
    assert trackr("lake", "verify", "--json").json()["ok"] is True
    manifest = Lake(tmp_path / "lake").manifest()
    assert manifest is not None
    (tmp_path / "lake" / manifest.segments["records"][0].file).unlink()
    done = trackr("lake", "verify")
    assert done.code == 1
    assert "missing" in done.err
    done = trackr("lake", "verify", "--json")
    assert done.code == 1
    assert done.json()["ok"] is False
    assert trackr("lake", "rebuild").code == 0
    assert trackr("lake", "verify").code == 0


def test_files_are_what_another_engine_reads(trackr: Callable[..., Done]) -> None:
    assert "trackr lake sync" in trackr("lake", "files").err
    trackr("lake", "sync")
    paths = trackr("lake", "files", "records").out.splitlines()
    assert all(Path(path).exists() for path in paths)
    listed = trackr("lake", "files", "--json").json()
    assert {"table", "rows", "bytes", "file"} == listed[0].keys()
    rows = sum(entry["rows"] for entry in listed if entry["table"] == "records")
    found = duckdb.connect().execute(f"select count(*), count(distinct run_id) from read_parquet({paths!r})").fetchall()
    assert found == [(rows, 4)]
    assert trackr("lake", "files", "recods").code == 2


def test_without_a_database_nothing_is_created(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    run = runner(capfd, "--db", str(tmp_path / "none.db"))
    for verb in ("sync", "rebuild", "verify"):
        done = run("lake", verb)
        assert done.code == 1
        assert "trackr ingest" in done.err
    assert run("lake", "status", "--json").json()["exists"] is False
    assert list(tmp_path.iterdir()) == []
