"""Small studies with planted truth: a DuckDB session whose `answers` come straight from NumPy arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from collections.abc import Sequence

ANSWERS: dict[str, str] = {
    "run_id": "bigint",
    "question_id": "bigint",
    "repetition": "integer",
    "attempt": "integer",
    "counts": "boolean",
    "status": "varchar",
    "correct": "boolean",
    "score": "double",
    "credit": "double",
    "p_gold": "double",
    "prediction": "varchar",
    "logit_prediction": "varchar",
    "visual_tokens": "bigint",
    "prompt_tokens": "bigint",
    "generated_tokens": "bigint",
    "tiles": "bigint",
    "effective_pixels": "bigint",
    "latency_s": "double",
    "model": "varchar",
    "series": "varchar",
    "family": "varchar",
    "backbone": "varchar",
    "parameters": "bigint",
    "frontend": "varchar",
    "configuration_id": "bigint",
    "input_mode": "varchar",
    "input_size": "bigint",
    "max_tiles": "bigint",
    "variant": "varchar",
    "source_quality": "varchar",
    "vision_branches": "bigint",
    "language_branches": "bigint",
    "benchmark": "varchar",
    "suite": "varchar",
    "question_key": "varchar",
    "image_key": "varchar",
    "pair_key": "varchar",
    "task": "varchar",
    "category": "varchar",
    "domain": "varchar",
    "skill": "varchar",
    "gold": "varchar",
    "n_options": "bigint",
}

TRAJECTORIES = """
    select question_id, any_value(question_key) question_key, series, any_value(family) family, any_value(suite) suite, any_value(benchmark) benchmark,
        any_value(task) task, any_value(category) category, any_value(domain) domain, any_value(skill) skill,
        count(*) n_configurations, sum(n) n_observations, avg(credit) accuracy, avg(p_gold) p_gold
    from (
        select question_id, series, configuration_id, any_value(question_key) question_key, any_value(family) family, any_value(suite) suite,
            any_value(benchmark) benchmark, any_value(task) task, any_value(category) category, any_value(domain) domain, any_value(skill) skill,
            count(*) n, avg(credit) credit, avg(p_gold) p_gold
        from answers
        where counts and credit is not null and ({where})
        group by question_id, series, configuration_id
    )
    group by question_id, series
"""


@dataclass(frozen=True)
class PlantedSession:
    """A DuckDB connection with the star views that the analyses read."""

    connection: duckdb.DuckDBPyConnection
    uuid: str = "00000000-0000-0000-0000-000000000000"
    data_version: int = 7

    def ensure_files(self) -> None:
        """Nothing to open: the tables are in memory."""

    def trajectories_sql(self, where: str | None = None) -> str:
        """The trajectories of the answers that satisfy a condition."""
        return TRAJECTORIES.format(where=where or "true")


def session(rows: Sequence[dict[str, Any]] | pd.DataFrame, option_scores: dict[int, Sequence[int]] | None = None) -> PlantedSession:
    """A session over answers given as dicts or a frame; columns that are not given are null, `counts` is true unless it says otherwise."""
    frame = pd.DataFrame(rows)
    for name, value in (("counts", True), ("repetition", 0), ("attempt", 0), ("status", "scored")):
        if name not in frame:
            frame[name] = value
    if "run_id" not in frame:
        frame["run_id"] = frame["configuration_id"] if len(frame) else []
    connection = duckdb.connect()
    connection.register("given", frame)
    columns = ", ".join(f"{name}::{kind} as {name}" if name in frame else f"null::{kind} as {name}" for name, kind in ANSWERS.items())
    connection.execute(f"create table answers as select {columns} from given")
    connection.unregister("given")
    _tables_beside(connection, option_scores or {})
    return PlantedSession(connection)


def _tables_beside(connection: duckdb.DuckDBPyConnection, option_scores: dict[int, Sequence[int]]) -> None:
    connection.execute(f"create table trajectories as {TRAJECTORIES.format(where='true')}")
    connection.execute("""
        create table configurations as
        select configuration_id as id, md5(concat_ws('|', any_value(input_mode), any_value(input_size), any_value(variant))) as fingerprint
        from answers group by 1""")
    connection.execute("""
        create table cells as
        select configuration_id, benchmark, any_value(series) as series, any_value(model) as model, any_value(parameters) as parameters,
            any_value(input_mode) as input_mode, any_value(input_size) as input_size, avg(visual_tokens) as visual_tokens
        from answers where credit is not null group by 1, 2""")
    connection.execute("create table runs as select distinct run_id as id, true as current from answers")
    connection.execute(
        "create table questions as select distinct question_id as id, null::bigint as same_as_id, null::varchar as options from answers"
    )
    scores = [(question, "[" + ", ".join(["-1.5"] * n) + "]") for question, counts in option_scores.items() for n in counts]
    connection.execute(
        "create table records as select any_value(run_id) as run_id, null::bigint as question_id, null::varchar as option_scores from answers where false"
    )
    if scores:
        connection.executemany("insert into records select any_value(run_id), ?, ? from answers", scores)


STUDY = {
    "InternVL2.5": ("InternVL", 6),
    "InternVL3": ("InternVL", 6),
    "InternVL3.5": ("InternVL", 6),
    "Qwen2.5-VL": ("QwenVL", 4),
    "Qwen3-VL": ("QwenVL", 4),
}
GRID = (
    ("HRBench4K", "HR-Bench", 800, (224, 336, 512, 768, 1024, 2048)),
    ("HRBench8K", "HR-Bench", 800, (4096,)),
    ("MME-RealWorld-Lite", "MME-RealWorld", 1782, (224, 336, 512, 768, 1024, 2048)),
    ("TreeBench", "TreeBench", 405, (224, 336, 512, 768, 1024, 2048)),
    ("V*Bench", "V*Bench", 191, (224, 336, 512, 768, 1024, 2048)),
)
SIZES = (7.5e8, 2.0e9, 4.1e9, 8.2e9, 1.45e10, 3.2e10)


def study(scale: float = 1.0, seed: int = 0) -> PlantedSession:
    """A study with the paper's grid, made column by column; `scale` shrinks the number of questions."""
    rng = np.random.default_rng(seed)
    blocks: list[pd.DataFrame] = []
    first_question = 0
    for benchmark, suite, n, input_sizes in GRID:
        n_questions = max(2, round(n * scale))
        easiness = rng.normal(0.0, 2.5, n_questions)
        responsive = rng.random(n_questions) < 0.6
        configuration = -1
        for series, (family, n_models) in STUDY.items():
            for rank in range(n_models):
                for input_size in input_sizes:
                    configuration += 1
                    tokens = (
                        np.full(n_questions, 256 * max(1, input_size // 448))
                        if family == "InternVL"
                        else rng.integers(input_size // 3, input_size, n_questions) + 64
                    )
                    compute = np.log2(SIZES[rank] * tokens) - 40
                    p = 1 / (1 + np.exp(-(easiness + 0.35 * compute * responsive)))
                    correct = rng.random(n_questions) < p
                    blocks.append(
                        pd.DataFrame(
                            {
                                "question_id": first_question + np.arange(n_questions),
                                "question_key": np.arange(n_questions).astype(str),
                                "benchmark": benchmark,
                                "suite": suite,
                                "series": series,
                                "family": family,
                                "model": f"{series}-{rank}",
                                "parameters": int(SIZES[rank]) + len(series),
                                "configuration_id": 1000 * list(STUDY).index(series) + 100 * rank + input_size % 97,
                                "run_id": 1_000_000 * len(blocks),
                                "input_mode": "fixed",
                                "input_size": input_size,
                                "visual_tokens": tokens,
                                "correct": correct,
                                "credit": correct.astype(float),
                                "p_gold": np.clip(p + rng.normal(0, 0.05, n_questions), 0, 1),
                                "n_options": 4,
                                "task": np.where(np.arange(n_questions) % 3 == 0, "reasoning", "perception"),
                                "domain": "D" + pd.Series(np.arange(n_questions) % 6 + 1).astype(str),
                                "skill": "S" + pd.Series(np.arange(n_questions) // 6 % 6 + 1).astype(str),
                            }
                        )
                    )
        first_question += n_questions
    return session(pd.concat(blocks, ignore_index=True))
