"""Whole runs only: after a kill at any moment, with writers at once, on both engines."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import ROOT
from tests.ingest.tables import content, open_store, run_rows, write_rows

if TYPE_CHECKING:
    from pathlib import Path

    from tracker.api import Tracker

CATALOG = (
    '[series.Made]\n[models."Model 0"]\nseries = "Made"\naliases = ["lab/0"]\n[models."Model 1"]\nseries = "Made"\naliases = ["lab/1"]\n'
)


def start(url: str, lake: Path, *arguments: str) -> subprocess.Popen[str]:
    """`trackr ARGUMENTS` as a process of its own."""
    command = [sys.executable, "-m", "cli.main", *arguments, "--db", url, "--lake", str(lake)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True)


def folder_of(root: Path, name: str, models: range, n: int = 40) -> Path:
    for model in models:
        rows = [{**row, "input_size": size} for size in (224, 448) for row in run_rows(f"lab/{model}", n=n)]
        write_rows(root / name / f"{model}.jsonl", rows)
    return root / name


def runs_are_whole(store: Tracker) -> bool:
    """No run without all its records, no record without its run; stored trajectories are what the answers say."""
    broken = store.sql(
        "select r.id from runs r left join records a on a.run_id = r.id group by r.id, r.n_records having count(a.run_id) <> r.n_records"
    )
    recomputed = store.session().trajectories_sql()
    columns = "question_id, series, n_configurations, n_observations, round(accuracy, 9)"
    one, other = f"select {columns} from trajectories", f"select {columns} from ({recomputed})"
    differing = store.sql(f"({one} except {other}) union all ({other} except {one})").fetchall()
    return not broken.fetchall() and not differing


@pytest.mark.parametrize("point", ["_write_runs", "_write_contents", "_write_places", "_settle"])
def test_a_failure_inside_the_transaction_leaves_nothing_of_it(
    each_store: Tracker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    from tracker.ingest.load import Loader

    folder = folder_of(tmp_path, "in", range(3), n=4)
    with monkeypatch.context() as broken:
        original = getattr(Loader, point)

        def fail(self: Any, *arguments: Any) -> None:
            original(self, *arguments)
            raise KeyboardInterrupt

        broken.setattr(Loader, point, fail)
        with pytest.raises(KeyboardInterrupt):
            each_store.ingest(folder)
    each_store.sync()
    assert each_store.sql("select count(*) from runs").fetchall() == [(0,)]
    assert each_store.sql("select count(*) from questions").fetchall() == [(0,)]
    assert each_store.ingest(folder).new == 6
    assert runs_are_whole(each_store)


def test_ctrl_c_ends_with_130_and_leaves_whole_runs(sqlite_url: str, tmp_path: Path) -> None:
    folder = folder_of(tmp_path, "in", range(60), n=300)
    process = start(sqlite_url, tmp_path / "lake", "ingest", str(folder), "-q", "--workers", "0")
    path = tmp_path / "trackr.db"
    while process.poll() is None and not path.exists():
        time.sleep(0.01)
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode in {130, 0}, err
    if process.returncode == 130:
        assert (out, err.strip()) == ("", "trackr: interrupted")
    with open_store(sqlite_url, tmp_path) as store:
        store.ingest(folder)
        assert store.sql("select count(*), sum(n_records) from runs").fetchall() == [(120, 36_000)]
        assert runs_are_whole(store)


def finish(processes: list[subprocess.Popen[str]]) -> None:
    for process in processes:
        _, err = process.communicate(timeout=180)
        assert process.returncode == 0, err
        assert "locked" not in err


def test_two_ingests_of_the_same_folder_at_once_double_nothing(database_url: str, tmp_path: Path) -> None:
    folder = folder_of(tmp_path, "in", range(6))
    finish([start(database_url, tmp_path / f"lake{i}", "ingest", str(folder), "-q") for i in range(2)])
    with open_store(database_url, tmp_path) as store:
        assert store.sql("select count(*), count(distinct source_uri), max(version) from runs").fetchall() == [(12, 6, 1)]
        assert store.sql("select count(*) from records").fetchall() == [(480,)]
        assert store.sql("select count(*) from questions").fetchall() == [(40,)]
        assert runs_are_whole(store)


def test_writers_at_once_with_a_catalog_between_them_leave_trajectories_right(database_url: str, tmp_path: Path) -> None:
    """Four ingests of different folders, a catalog that merges their models into one series, and a label file."""
    folders = [folder_of(tmp_path, f"in{i}", range(3 * i, 3 * i + 3)) for i in range(4)]
    (tmp_path / "own.toml").write_text(CATALOG)
    (tmp_path / "labels.csv").write_text("benchmark,question_key,scheme,value,source\nBench,q0,skill,S1,us\n")
    lake = tmp_path / "lake"
    processes = [start(database_url, lake, "ingest", str(folder), "-q") for folder in folders]
    processes += [
        start(database_url, lake, "catalog", "import", str(tmp_path / "own.toml")),
        start(database_url, lake, "labels", "import", str(tmp_path / "labels.csv")),
    ]
    finish(processes)
    with open_store(database_url, tmp_path) as store:
        assert store.sql("select count(*) from runs").fetchall() == [(24,)]
        assert store.sql("select series, max(n_configurations) from trajectories where series = 'Made' group by 1").fetchall() == [
            ("Made", 4)
        ]
        assert store.sql("select count(*) from trajectories").fetchall() == [(11 * 40,)]
        assert store.sql("select distinct skill from answers where question_key = 'q0'").fetchall() == [("S1",)]
        assert runs_are_whole(store)
        found = content(store)
    with open_store(f"sqlite:///{tmp_path / 'alone.db'}", tmp_path / "alone") as store:
        for folder in folders:
            store.ingest(folder)
        store.import_labels(tmp_path / "labels.csv")
        store.import_catalog(tmp_path / "own.toml")
        alone = content(store)
    different = {name for name in found if found[name] != alone[name]}
    assert different == set()


def test_many_writers_on_one_sqlite_file_wait_for_each_other(sqlite_url: str, tmp_path: Path) -> None:
    folders = [folder_of(tmp_path, f"in{i}", range(i, i + 1), n=20) for i in range(6)]
    finish([start(sqlite_url, tmp_path / f"lake{i}", "ingest", str(folder), "-q") for i, folder in enumerate(folders)])
    with open_store(sqlite_url, tmp_path) as store:
        assert store.sql("select count(*), sum(n_records) from runs").fetchall() == [(12, 240)]
        assert runs_are_whole(store)


def test_reading_processes_give_the_same_as_reading_here(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, "in", range(4))
    (folder / "bad.jsonl").write_text("{broken\n")
    found = []
    for workers in (0, 2):
        with open_store(f"sqlite:///{tmp_path / f'{workers}.db'}", tmp_path / str(workers)) as store:
            store.ingest(folder, workers=workers)
            found.append(content(store))
    assert found[0] == found[1]
