"""kill -9 at random moments of an ingest: no half run, and the same command completes the work. TRACKR_KILLS=50 for the long form."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from tests.ingest.tables import content, open_store, run_rows, write_rows
from tests.ingest.test_transactions import runs_are_whole, start
from tracker.database.peek import peek

if TYPE_CHECKING:
    from tracker.api import Tracker

KILLS = int(os.environ.get("TRACKR_KILLS", "6"))
"""Per engine."""
FRESH = 5
"""Every so many kills, the next ingest begins with an empty database."""
POINTS = (
    "SELECT r.external_id, p.metric, p.step, p.seq, p.value, p.special FROM metric_points p JOIN runs r ON p.run_id = r.id ORDER BY ALL"
)
HALF = """SELECT r.id FROM {0}runs r WHERE r.n_records <> (SELECT count(*) FROM {0}records a WHERE a.run_id = r.id)
    OR (r.kind = 'training' AND (SELECT count(*) FROM {0}metric_points p WHERE p.run_id = r.id) <> 60)
    OR NOT EXISTS (SELECT 1 FROM {0}run_sources s WHERE s.run_id = r.id)"""


def evaluations_and_training(root: Path) -> Path:
    """230 runs in tables, and 40 training runs of a legacy MLflow store: several transactions."""
    for model in range(115):
        rows = [{**row, "input_size": size} for size in (224, 448) for row in run_rows(f"lab/{model}", n=6)]
        write_rows(root / "tables" / f"{model}.jsonl", rows)
    experiment = root / "mlruns" / "1"
    experiment.mkdir(parents=True)
    (experiment / "meta.yaml").write_text("artifact_location: mlruns/1\nexperiment_id: '1'\nlifecycle_stage: active\nname: sweep\n")
    for number in range(40):
        name = f"{number:032x}"
        run = experiment / name
        for part in ("metrics", "params", "tags"):
            (run / part).mkdir(parents=True)
        (run / "meta.yaml").write_text(
            f"artifact_uri: mlruns/1/{name}/artifacts\nend_time: 1780000001000\nexperiment_id: '1'\nlifecycle_stage: active\n"
            f"run_id: {name}\nrun_name: r{number}\nrun_uuid: {name}\nsource_type: 4\nstart_time: 1780000000000\nstatus: 3\nuser_id: u\n"
        )
        (run / "params" / "model").write_text(f"net-{number % 3}")
        for metric in ("loss", "acc", "lr"):
            (run / "metrics" / metric).write_text("".join(f"{1780000000000 + step} {number / (step + 1)} {step}\n" for step in range(20)))
    return root


def everything(store: Tracker) -> dict[str, Any]:
    """What the lake shows, metric points included."""
    return {**content(store), "metric_points": store.sql(POINTS).fetchall()}


def no_run_is_half(url: str) -> bool:
    """Asked of the database itself: the lake is a copy."""
    engine = sa.create_engine(url)
    try:
        with engine.connect() as connection:
            return not connection.execute(sa.text(HALF.format("" if url.startswith("sqlite") else "trackr."))).fetchall()
    finally:
        engine.dispose()


def test_a_kill_at_any_moment_leaves_whole_runs_and_the_next_ingest_completes(database_url: str, tmp_path: Path) -> None:
    folder = evaluations_and_training(tmp_path / "in")
    with open_store(f"sqlite:///{tmp_path / 'undisturbed.db'}", tmp_path / "undisturbed") as store:
        started = time.monotonic()
        report = store.ingest(folder)
        seconds = time.monotonic() - started + 1.0
        assert (report.new, report.rejected) == (270, [])
        expected = everything(store)
    draw = random.Random(3)
    killed = 0
    for number in range(KILLS):
        if number % FRESH == 0:
            empty(database_url, tmp_path)
        process = start(database_url, tmp_path / "killed" / "lake", "ingest", str(folder), "-q")
        try:
            process.wait(draw.uniform(0.4, seconds))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            killed += 1
        process.communicate()
        if exists(database_url):
            assert no_run_is_half(database_url)
        if number % FRESH == FRESH - 1 or number == KILLS - 1:
            with open_store(database_url, tmp_path / "killed") as store:
                store.ingest(folder)
                assert runs_are_whole(store)
                assert everything(store) == expected
    assert killed


def exists(url: str) -> bool:
    """Whether the tables are there: a process may have been killed before."""
    path = url.removeprefix("sqlite:///")
    return (not url.startswith("sqlite") or Path(path).exists()) and peek(url) is not None


def empty(url: str, folder: Path) -> None:
    """Remove what earlier kills left."""
    shutil.rmtree(folder / "killed", ignore_errors=True)
    if url.startswith("sqlite"):
        for suffix in ("", "-wal", "-shm", "-journal"):
            Path(url.removeprefix("sqlite:///") + suffix).unlink(missing_ok=True)
        return
    engine = sa.create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(sa.text("DROP SCHEMA IF EXISTS trackr CASCADE"))
    engine.dispose()
