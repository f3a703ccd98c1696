"""Planted sessions that a comparison can read, and the comparison once more by plain loops."""

from __future__ import annotations

from collections import defaultdict
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.analyses.planted import PlantedSession, session

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Row = dict[str, Any]


def store(rows: Sequence[Row], aliases: Mapping[str, str] | None = None, texts: Mapping[int, str] | None = None) -> PlantedSession:
    """A session whose configurations have every setting, with spellings of models and texts of questions."""
    planted = session(rows)
    connection = planted.connection
    for name, kind in (("few_shot", "bigint"), ("precision", "varchar"), ("prompt", "varchar")):
        connection.execute(f"alter table configurations add column if not exists {name} {kind}")
    connection.execute("alter table questions add column if not exists text varchar")
    for question, text in (texts or {}).items():
        connection.execute("update questions set text = ? where id = ?", [text, question])
    connection.execute("create table models as select row_number() over () as id, model as name from (select distinct model from answers)")
    connection.execute("create table model_aliases (alias varchar, model_id bigint)")
    for alias, model in (aliases or {}).items():
        connection.execute("insert into model_aliases select ?, id from models where name = ?", [alias, model])
    return planted


def rows(
    seed: int,
    *,
    models: int = 3,
    questions: int = 60,
    sizes: Sequence[int] = (224, 448),
    per_image: int = 1,
    missing: float = 0.05,
    partial: bool = False,
) -> list[Row]:
    """Answers of some models that get better with their number, with gaps, attempts and two repetitions here and there."""
    rng = np.random.default_rng(seed)
    found: list[Row] = []
    easiness = np.repeat(rng.normal(0, 1, questions), 1)
    for model in range(models):
        for place, size in enumerate(sizes):
            for question in range(questions):
                if rng.random() < missing:
                    continue
                for repetition in range(1 + (missing > 0 and rng.random() < 0.1)):
                    right = float(rng.random() < 1 / (1 + np.exp(-(easiness[question] + 0.4 * model + 0.3 * place))))
                    found.append(
                        answer(
                            f"M-{model}",
                            question,
                            rng.choice([0.25, 0.5, 1.0]) * right if partial else right,
                            input_size=size,
                            configuration_id=10 * model + place + 1,
                            repetition=repetition,
                            image=question // per_image,
                            parameters=1000 * (model + 1),
                        )
                    )
    return found


def answer(model: str, question: int, credit: float, *, configuration_id: int, image: int | None = None, **more: Any) -> Row:
    """One scored answer."""
    benchmark = "One" if question % 2 else "Two"
    return {
        "model": model,
        "series": "S",
        "family": "F",
        "question_id": 100 + question,
        "question_key": f"q{question:03d}",
        "benchmark": benchmark,
        "suite": benchmark,
        "task": "reasoning" if question % 3 else "perception",
        "image_key": None if image is None else f"i{image}",
        "gold": "A",
        "prediction": "A" if credit else "B",
        "credit": credit,
        "correct": credit == 1,
        "configuration_id": configuration_id,
        "run_id": 10 * configuration_id + question % 2,
        "input_mode": "fixed",
        **more,
    }


def credits_of(rows: Sequence[Row], model: str, key: str = "input_size") -> dict[tuple[Any, Any], float]:
    """(settings, question) -> mean credit over repetitions."""
    grouped: dict[tuple[Any, Any], list[float]] = defaultdict(list)
    for row in rows:
        if row["model"] == model and row["credit"] is not None and row.get("counts", True):
            grouped[row.get(key), row["question_id"]].append(row["credit"])
    return {unit: fmean(values) for unit, values in grouped.items()}


def compared(*sides: dict[tuple[Any, Any], float], among: Sequence[dict[tuple[Any, Any], float]] = ()) -> list[dict[Any, float]]:
    """Question -> mean credit of each side over the units that all sides (and those of `among`) have."""
    units = set.intersection(*(set(side) for side in (*sides, *among)))
    found: list[dict[Any, float]] = []
    for side in sides:
        by: dict[Any, list[float]] = defaultdict(list)
        for unit in sorted(units):
            by[unit[1]].append(side[unit])
        found.append({question: fmean(values) for question, values in by.items()})
    return found
