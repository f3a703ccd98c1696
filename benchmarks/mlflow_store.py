"""A MLflow store of many runs in SQLite, made by MLflow's own client and filled by SQL, since the client writes eight runs a second.

python mlflow_store.py make FOLDER RUNS       10 metrics of 10 points, 5 parameters and 2 tags a run
python mlflow_store.py histories STORE RUNS   seconds of MlflowClient.get_metric_history over some runs
python mlflow_store.py search STORE           seconds of mlflow.search_runs over all runs, as one frame
"""

from __future__ import annotations

import json
import os
import sqlite3
import sys
import time
import uuid
from contextlib import closing
from pathlib import Path
from random import Random

METRICS = 10
POINTS = 10
PARAMS = ("lr", "batch_size", "image_size", "model", "optimizer")
START_MS = 1_780_000_000_000


def make(folder: Path, runs: int) -> Path:
    """The store `mlflow.db` in a folder."""
    path = folder / "mlflow.db"
    experiment = _client(path).create_experiment("sweep")
    random = Random(0)
    ids = [uuid.UUID(int=random.getrandbits(128)).hex for _ in range(runs)]
    with closing(sqlite3.connect(path)) as connection:
        connection.executemany(
            "INSERT INTO runs (run_uuid, name, source_type, user_id, status, start_time, end_time, lifecycle_stage, artifact_uri, experiment_id)"
            " VALUES (?, ?, 'LOCAL', 'user', 'FINISHED', ?, ?, 'active', ?, ?)",
            [
                (run, f"run-{n}", START_MS + n * 1000, START_MS + n * 1000 + 900, f"{folder}/{run}/artifacts", experiment)
                for n, run in enumerate(ids)
            ],
        )
        connection.executemany(
            "INSERT INTO params (key, value, run_uuid) VALUES (?, ?, ?)",
            [(name, str(random.choice([1, 2, 4, 8])) if name != "model" else "net", run) for run in ids for name in PARAMS],
        )
        connection.executemany(
            "INSERT INTO tags (key, value, run_uuid) VALUES (?, ?, ?)",
            [(name, f"{name}-{n % 7}", run) for n, run in enumerate(ids) for name in ("mlflow.runName", "site")],
        )
        points = [
            (f"metric_{metric}", random.random(), START_MS + n * 1000 + step, step, run)
            for n, run in enumerate(ids)
            for metric in range(METRICS)
            for step in range(POINTS)
        ]
        connection.executemany("INSERT INTO metrics (key, value, timestamp, step, run_uuid, is_nan) VALUES (?, ?, ?, ?, ?, 0)", points)
        connection.executemany(
            "INSERT INTO latest_metrics (key, value, timestamp, step, run_uuid, is_nan) VALUES (?, ?, ?, ?, ?, 0)",
            [point for point in points if point[3] == POINTS - 1],
        )
        connection.commit()
    return path


def histories(path: Path, runs: int) -> float:
    """Seconds that the client takes for the full history of every metric of some runs."""
    client = _client(path)
    (experiment,) = [one for one in client.search_experiments() if one.name == "sweep"]
    chosen = client.search_runs([experiment.experiment_id], max_results=runs)
    started = time.perf_counter()
    count = sum(len(client.get_metric_history(run.info.run_id, name)) for run in chosen for name in run.data.metrics)
    seconds = time.perf_counter() - started
    if count != runs * METRICS * POINTS:
        message = f"expected {runs * METRICS * POINTS} points, found {count}"
        raise SystemExit(message)
    return seconds


def search(path: Path) -> float:
    """Seconds that the client takes for all runs with their latest metrics (`search_runs`, page by page, as a frame)."""
    import pandas as pd

    client = _client(path)
    experiments = [one.experiment_id for one in client.search_experiments()]
    started = time.perf_counter()
    token, rows = None, []
    while token is not None or not rows:
        page = client.search_runs(experiments, max_results=10_000, page_token=token)
        rows += [{"run_id": run.info.run_id, **run.data.metrics} for run in page]
        token = page.token
        if not token:
            break
    pd.DataFrame(rows)
    return time.perf_counter() - started


def _client(path: Path):  # noqa: ANN202 - MLflow has no types
    os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
    from mlflow.tracking import MlflowClient

    return MlflowClient(tracking_uri=f"sqlite:///{path}")


def main() -> None:
    """One of the three."""
    what, where, *rest = sys.argv[1:]
    place = Path(where).resolve()
    if what == "make":
        print(make(place, int(rest[0])))
    else:
        print(json.dumps(histories(place, int(rest[0])) if what == "histories" else search(place)))


if __name__ == "__main__":
    main()
