"""Compare runs as trackr reads them with what the real client reads from the same store."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracker.readers.mlflow.model import BIGGEST

if TYPE_CHECKING:
    import pyarrow as pa

    from tracker.readers.mlflow.model import MlflowRun

ROOT = Path(__file__).resolve().parent.parent.parent


def filled(uri: str, **environment: str) -> dict[str, Any]:
    """Fill a store with the real client in a process of its own; what it reads back."""
    command = [sys.executable, "-m", "tests.readers.mlflow_fill"]
    given = {**os.environ, "MLFLOW_TRACKING_URI": uri, "PYTHONPATH": str(ROOT), "MLFLOW_DISABLE_TELEMETRY": "true", **environment}
    done = subprocess.run(command, env=given, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def same(run: MlflowRun, told: dict[str, Any], **other: list[list[Any]]) -> None:
    """Assert that a run is what the client says; `other` replaces histories that the client is known to read wrongly."""
    assert run.name == told["name"]
    assert run.experiment == told["experiment"]
    assert run.status == told["status"]
    assert (run.start_ms, run.end_ms) == (told["start"], told["end"])
    assert run.params == told["params"]
    assert run.tags == told["tags"]
    assert [[one["name"], one["digest"], one["source_type"]] for one in run.datasets] == told["datasets"]
    wanted = {key: sorted(map(_plain, other.get(key, points))) for key, points in told["points"].items()}
    assert {key: sorted(map(_plain, points)) for key, points in history(run.points).items()} == wanted


def history(points: pa.Table) -> dict[str, list[list[Any]]]:
    """Points by metric: step, time in ms, value."""
    found: dict[str, list[list[Any]]] = defaultdict(list)
    for row in points.to_pylist():
        value = float(row["special"]) if row["special"] is not None else row["value"]
        found[row["metric"]].append([row["step"], round(row["logged_at"].timestamp() * 1000), value])
    return dict(found)


def _plain(point: list[Any]) -> tuple[int, int, str]:
    step, time, value = point
    value = math.copysign(math.inf, value) if abs(value) == BIGGEST else value
    return step, time, repr(float(value))
