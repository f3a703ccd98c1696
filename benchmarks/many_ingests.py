"""Whether many small ingests slow queries: runs ingested one by one, against the same files in one ingest; prints JSON.

python many_ingests.py FOLDER [RUNS]       2,000 runs take about 15 minutes
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

import tracker

QUERIES = {"cells": "SELECT * FROM cells", "answers": "SELECT model, count(*), avg(credit) FROM answers GROUP BY model"}


def main() -> None:
    """Measure."""
    folder, count = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 2_000
    shutil.rmtree(folder, ignore_errors=True)
    files = written(folder / "runs", count)
    many = tracker.open(f"sqlite:///{folder}/many.db", folder / "many")
    started = time.perf_counter()
    for file in files:
        many.ingest(file)
    seconds = time.perf_counter() - started
    one = tracker.open(f"sqlite:///{folder}/one.db", folder / "one")
    one.ingest(folder / "runs")
    manifest = many.lake.manifest()
    figures: dict[str, Any] = {
        "ingests": count,
        "seconds_an_ingest": seconds / count,
        "record_segments": len(manifest.segments["records"]) if manifest else None,
    }
    for name, query in QUERIES.items():
        slow, fast = compared(many, one, query)
        figures |= {f"{name}_many_ms": slow * 1e3, f"{name}_one_ms": fast * 1e3, f"{name}_many_over_one (target <= 2)": slow / fast}
    print(json.dumps(figures, indent=2))


def written(folder: Path, count: int) -> list[Path]:
    """One file a run: 30 answers of one of 40 models at one of many sizes."""
    folder.mkdir(parents=True)
    files = []
    for run in range(count):
        common = {"model": f"model-{run % 40}", "benchmark": f"bench-{run % 5}", "input_size": 100 + run // 40, "visual_tokens": 256}
        rows = [{**common, "question_id": f"q{question}", "correct": (7 * question + run) % 3 == 0} for question in range(30)]
        file = folder / f"{run:05d}.jsonl"
        file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        files.append(file)
    return files


def compared(many: tracker.Tracker, one: tracker.Tracker, query: str) -> tuple[float, float]:
    """Medians of 61 executions each, taken in turn."""
    sessions = [store.session(sync=False).connection for store in (many, one)]
    took: tuple[list[float], list[float]] = ([], [])
    for _ in range(61):
        for connection, seconds in zip(sessions, took, strict=True):
            started = time.perf_counter()
            connection.execute(query).fetchall()
            seconds.append(time.perf_counter() - started)
    return median(took[0]), median(took[1])


if __name__ == "__main__":
    main()
