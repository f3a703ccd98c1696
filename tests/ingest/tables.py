"""Native tables to ingest, and the logical content of a store: everything that the lake shows, by natural keys."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import tracker

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from tracker.api import Tracker

Content = dict[str, list[tuple[Any, ...]]]


def write_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    """A native JSONL table."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def run_rows(model: str = "lab/Alpha", benchmark: str = "Bench", n: int = 4, **columns: Any) -> list[dict[str, Any]]:
    """Rows of one run; every second answer is right."""
    return [{"model": model, "benchmark": benchmark, "question_id": f"q{i}", "correct": i % 2 == 0, **columns} for i in range(n)]


def open_store(url: str, folder: Path) -> Tracker:
    """A store with a lake of its own."""
    return tracker.open(url, folder / "lake")


RUN = "r.source_format, r.external_id, b.name, m.name, c.fingerprint"
JOINED = (
    "JOIN configurations c ON r.configuration_id = c.id JOIN models m ON c.model_id = m.id LEFT JOIN benchmarks b ON r.benchmark_id = b.id"
)
QUERIES = {
    "answers": "SELECT * EXCLUDE (run_id, question_id, configuration_id) FROM answers",
    "cells": "SELECT * EXCLUDE (run_id, configuration_id) FROM cells",
    "trajectories": "SELECT * EXCLUDE (question_id) FROM trajectories",
    "models": """SELECT m.name, m.origin, s.name, s.origin, f.name, k.name, k.parameters, m.vision_parameters FROM models m JOIN series s ON m.series_id = s.id
        LEFT JOIN families f ON s.family_id = f.id LEFT JOIN backbones k ON m.backbone_id = k.id""",
    "series": "SELECT name, origin FROM series",
    "backbones": "SELECT * EXCLUDE (id) FROM backbones",
    "benchmarks": "SELECT * EXCLUDE (id) FROM benchmarks",
    "model_aliases": "SELECT a.alias, m.name, a.origin FROM model_aliases a JOIN models m ON a.model_id = m.id",
    "benchmark_aliases": "SELECT a.alias, b.name, a.origin FROM benchmark_aliases a JOIN benchmarks b ON a.benchmark_id = b.id",
    "questions": """SELECT b.name, q.* EXCLUDE (id, benchmark_id, same_as_id), s.key FROM questions q JOIN benchmarks b ON q.benchmark_id = b.id
        LEFT JOIN questions s ON q.same_as_id = s.id""",
    "labels": """SELECT coalesce(b.name, l.benchmark), l.question_key, q.key, l.scheme, l.source, l.value FROM question_labels l
        LEFT JOIN questions q ON l.question_id = q.id LEFT JOIN benchmarks b ON q.benchmark_id = b.id""",
    "configurations": "SELECT m.name, c.* EXCLUDE (id, model_id) FROM configurations c JOIN models m ON c.model_id = m.id",
    "runs": f"SELECT {RUN}, r.* EXCLUDE (id, configuration_id, benchmark_id, ingest_id, version) FROM runs r {JOINED}",
    "run_sources": f"SELECT {RUN}, p.uri, p.digest FROM run_sources p JOIN runs r ON p.run_id = r.id {JOINED}",
    "scores": f"SELECT {RUN}, s.metric, s.value, s.special, s.n FROM scores s JOIN runs r ON s.run_id = r.id {JOINED}",
    "record_scores": f"SELECT {RUN}, q.key, x.repetition, x.attempt, x.scorer, x.score, x.special FROM record_scores x JOIN questions q ON x.question_id = q.id JOIN runs r ON x.run_id = r.id {JOINED}",
    "records": f"SELECT {RUN}, q.key, x.* EXCLUDE (run_id, question_id) FROM records x JOIN questions q ON x.question_id = q.id JOIN runs r ON x.run_id = r.id {JOINED}",
    "rejections": "SELECT uri, digest, file, line, reason, text FROM rejections",
}


def content(store: Tracker) -> Content:
    """Everything that the lake shows, without ids and times of ingest."""
    session = store.session()
    return {name: sorted((tuple(map(_plain, row)) for row in session.sql(query).fetchall()), key=repr) for name, query in QUERIES.items()}


def _plain(value: Any) -> Any:
    return round(value, 12) if isinstance(value, float) else value
