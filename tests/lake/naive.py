"""The star views once more, in plain Python from the raw rows of the database."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from statistics import fmean
from typing import TYPE_CHECKING, Any

from tests.lake.study import contents

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracker.database import Database

Row = dict[str, Any]


def credit(record: Row) -> float | None:
    """Correct as 0/1, else a score in [0, 1], else nothing."""
    if record["correct"] is not None:
        return float(record["correct"])
    score = record["score"]
    return score if score is not None and 0 <= score <= 1 else None


class Naive:
    """Raw tables of a database, by id."""

    def __init__(self, db: Database) -> None:
        names = ("families", "series", "backbones", "models", "benchmarks", "questions", "configurations", "runs", "frontends")
        self.tables = {name: {row["id"]: row for row in contents(db, name)} for name in names}
        self.records = contents(db, "records")
        self.labels = contents(db, "question_labels")
        self.priorities = {(row["scheme"], row["source"]): row["priority"] for row in contents(db, "label_sources")}
        self.questions = {key: self._question(key) for key in self.tables["questions"]}

    def _name(self, table: str, key: int | None, column: str = "name") -> Any:
        return None if key is None else self.tables[table][key][column]

    def _question(self, key: int) -> Row:
        own = self.tables["questions"][key]
        canonical = own["same_as_id"] or key
        members = [row for row in self.tables["questions"].values() if (row["same_as_id"] or row["id"]) == canonical]
        members.sort(key=lambda row: (row["id"] != canonical, row["key"]))
        fact: Row = {"question_id": canonical, "question_key": members[0]["key"], "benchmark_id": members[0]["benchmark_id"]}
        for name in ("image_key", "pair_key", "gold", "n_options", "category", "task"):
            fact[name] = next((row[name] for row in members if row[name] is not None), None)
        if fact["task"] is None:
            tasks = json.loads(self.tables["benchmarks"][fact["benchmark_id"]]["tasks"] or "{}")
            fact["task"] = tasks.get(fact["category"])
        for scheme in ("domain", "skill"):
            labels = [row for row in self.labels if row["scheme"] == scheme and row["question_id"] in {m["id"] for m in members}]
            labels.sort(key=lambda row: (self.priorities.get((scheme, row["source"]), math.inf), row["source"]))
            fact[scheme] = labels[0]["value"] if labels else None
        return fact

    def answers(self) -> list[Row]:
        """Every record with its descriptions."""
        rows = []
        for record in self.records:
            run = self.tables["runs"][record["run_id"]]
            configuration = self.tables["configurations"][run["configuration_id"]]
            model = self.tables["models"][configuration["model_id"]]
            series = self.tables["series"][model["series_id"]]
            question = self.questions[record["question_id"]]
            rows.append(
                record
                | question
                | {
                    "counts": run["current"] and record["final"],
                    "credit": credit(record),
                    "model": model["name"],
                    "series": series["name"],
                    "family": self._name("families", series["family_id"]),
                    "backbone": self._name("backbones", model["backbone_id"]),
                    "parameters": self._name("backbones", model["backbone_id"], "parameters"),
                    "frontend": self._name("frontends", model["frontend_id"] or series["frontend_id"]),
                    "configuration_id": configuration["id"],
                    **{name: configuration[name] for name in ("input_mode", "input_size", "max_tiles", "variant", "source_quality")},
                    **{name: configuration[name] for name in ("vision_branches", "language_branches")},
                    "benchmark": self._name("benchmarks", run["benchmark_id"]),
                    "suite": self._name("benchmarks", run["benchmark_id"], "suite"),
                    "current": run["current"],
                },
            )
        return rows

    def cells(self) -> list[Row]:
        """One row per current run that has a scored record."""
        groups: dict[int, list[Row]] = defaultdict(list)
        for row in self.answers():
            if row["current"] and row["credit"] is not None:
                groups[row["run_id"]].append(row)
        return [self._cell(run_id, rows) for run_id, rows in groups.items()]

    @staticmethod
    def _cell(run_id: int, rows: list[Row]) -> Row:
        head = rows[0]
        tokens = _mean(row["prompt_tokens"] for row in rows)
        total = sum(row["credit"] for row in rows)
        names = ("family", "series", "model", "parameters", "suite", "benchmark", "configuration_id", "input_mode", "input_size", "variant")
        return {
            **{name: head[name] for name in names},
            "run_id": run_id,
            "n": len(rows),
            "errors": len(rows) - total,
            "error": 1 - total / len(rows),
            "visual_tokens": _mean(row["visual_tokens"] for row in rows),
            "prompt_tokens": tokens,
            "flops": None if tokens is None or head["parameters"] is None else 2 * head["parameters"] * tokens,
            "latency_s": _mean(row["latency_s"] for row in rows),
        }

    def trajectories(self, where: Callable[[Row], bool] = lambda _: True) -> list[Row]:
        """Questions x series: repetitions averaged first, then configurations."""
        groups: dict[tuple[int, str], dict[int, list[Row]]] = defaultdict(lambda: defaultdict(list))
        for row in self.answers():
            if row["counts"] and where(row):
                groups[row["question_id"], row["series"]][row["configuration_id"]].append(row)
        return [self._trajectory(list(configurations.values())) for configurations in groups.values()]

    @staticmethod
    def _trajectory(configurations: list[list[Row]]) -> Row:
        head = configurations[0][0]
        names = ("question_id", "question_key", "series", "family", "suite", "benchmark", "task", "category", "domain", "skill")
        return {
            **{name: head[name] for name in names},
            "n_configurations": len(configurations),
            "n_observations": sum(len(rows) for rows in configurations),
            "accuracy": fmean(fmean(row["credit"] for row in rows) for rows in configurations),
            "p_gold": _mean(_mean(row["p_gold"] for row in rows) for rows in configurations),
        }


def _mean(values: Any) -> float | None:
    given = [value for value in values if value is not None]
    return fmean(given) if given else None


def same(first: list[Row], second: list[Row], *keys: str) -> bool:
    """Whether two lists hold the same rows, numbers up to rounding."""

    def ordered(rows: list[Row]) -> list[Row]:
        return sorted(rows, key=lambda row: tuple(str(row[key]) for key in keys))

    return len(first) == len(second) and all(_close(a, b) for a, b in zip(ordered(first), ordered(second), strict=True))


def _close(first: Row, second: Row) -> bool:
    return all(_equal(value, second[name]) for name, value in first.items())


def _equal(first: Any, second: Any) -> bool:
    if isinstance(first, float) and isinstance(second, (int, float)):
        return math.isclose(first, second, rel_tol=1e-12, abs_tol=1e-12)
    return bool(first == second)
