"""What other tools wrote, read by trackr and by these tools themselves: MLflow stores, inspect logs, Excel workbooks."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

from measure import DATA, best, fresh, run, seconds_of

HERE = Path(__file__).parent
RUNS = 10_000
ASKED = 50
"""Runs whose histories MLflow's client is asked for: all of them would take the better part of an hour."""
WIDE = "PIVOT last_points ON metric USING first(value) GROUP BY run_id"
SAME = (
    "SELECT run_uuid, start_time, end_time FROM runs ORDER BY run_uuid",
    "SELECT external_id, started_at, ended_at FROM runs ORDER BY external_id",
)
POINTS = (
    "SELECT run_uuid, key, step, value, timestamp FROM metrics",
    "SELECT r.external_id, p.metric, p.step, p.value, p.logged_at FROM metric_points p JOIN runs r ON p.run_id = r.id",
)


def format_figures() -> dict[str, Any]:
    """Every format that has a yardstick of its own."""
    return {**mlflow_figures(), "inspect_logs": json.loads(_script("inspect_logs.py", DATA / "inspect")), "xlsx": xlsx_figures()}


def mlflow_figures() -> dict[str, Any]:
    """A SQLite store of 10,000 runs with 10 metrics of 10 points, 5 parameters and 2 tags each."""
    store = DATA / "mlflow" / "mlflow.db"
    if not store.exists():
        store.parent.mkdir(parents=True, exist_ok=True)
        _script("mlflow_store.py", "make", store.parent, RUNS)
    address = f"sqlite:///{store}"
    first = min((run("ingest", address, "--db", fresh("from-mlflow") / "trackr.db", "-q") for _ in range(3)), key=lambda one: one.seconds)
    database = DATA / "from-mlflow" / "trackr.db"
    before = _counts(database)
    second = best(3, "ingest", address, "--db", database, "-q")
    histories = float(_script("mlflow_store.py", "histories", store, ASKED))
    wide = best(5, "query", WIDE, "--db", database, "--format", "csv", "-o", DATA / "from-mlflow" / "wide.csv")
    search = float(_script("mlflow_store.py", "search", store))
    return {
        "mlflow_ingest_s": first.seconds,
        "mlflow_runs_per_s (target >= 1000)": RUNS / first.seconds,
        "mlflow_peak_mb": first.peak_mb,
        "mlflow_ids_times_and_points_equal (target True)": _equal(store, database),
        "mlflow_second_ingest_s": second.seconds,
        "mlflow_second_added (target 0)": sum(_counts(database)) - sum(before),
        "get_metric_history_runs_per_s": ASKED / histories,
        "get_metric_history_over_ingest (target >= 20)": (histories / ASKED) / (first.seconds / RUNS),
        "wide_query_s (target < 0.5)": wide.seconds,
        "search_runs_s": search,
        "search_runs_over_wide_query": search / wide.seconds,
    }


def xlsx_figures() -> dict[str, Any]:
    """A VLMEvalKit prediction file of 20,000 rows, by trackr's reader and by pandas with openpyxl."""
    import pandas as pd

    sys.path.insert(0, str(HERE.parent))
    from tracker.readers.xlsx import rows

    path = fresh("xlsx") / "predictions.xlsx"
    options = [f"option {number}" for number in range(4)]
    pd.DataFrame(
        {
            "index": range(20_000),
            "question": [f"What is shown at place {number} of the image?" for number in range(20_000)],
            **dict(zip("ABCD", options, strict=True)),
            "answer": "A",
            "prediction": "The answer is A. " * 5,
        }
    ).to_excel(path, index=False, engine="xlsxwriter")

    def read() -> None:
        _, cells = rows(path)
        for _ in cells:
            pass

    own, pandas = min(seconds_of(read) for _ in range(3)), seconds_of(lambda: pd.read_excel(path, engine="openpyxl"))
    return {"rows": 20_000, "trackr_s": own, "pandas_openpyxl_s": pandas, "pandas_over_trackr": pandas / own}


def _equal(store: Path, database: Path) -> bool:
    """Whether ids, times and every point of the store came through unchanged."""

    def ms(text: str) -> int:
        return round(datetime.fromisoformat(f"{text}+00:00").timestamp() * 1000)

    with closing(sqlite3.connect(store)) as source, closing(sqlite3.connect(database)) as kept:
        runs = [(run_id, ms(start), ms(end)) for run_id, start, end in kept.execute(SAME[1])]
        points = sorted((run_id, metric, step, value, ms(at)) for run_id, metric, step, value, at in kept.execute(POINTS[1]))
        return runs == source.execute(SAME[0]).fetchall() and points == sorted(source.execute(POINTS[0]).fetchall())


def _counts(database: Path) -> tuple[int, ...]:
    with closing(sqlite3.connect(database)) as connection:
        tables = ("runs", "metric_points", "run_sources", "scores")
        return tuple(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables)


def many_figures() -> dict[str, Any]:
    """2,000 ingests of one run each, against one ingest of all."""
    return {"many_ingests": json.loads(_script("many_ingests.py", DATA / "many"))}


def _script(name: str, *arguments: object) -> str:
    """What a script beside this one prints last."""
    command = [sys.executable, str(HERE / name), *map(str, arguments)]
    print("+", " ".join(command), file=sys.stderr)
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=HERE.parent, env=_environment())
    return done.stdout


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(HERE.parent)}
