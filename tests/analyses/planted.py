"""Small studies with planted truth: a DuckDB session whose `answers` come straight from NumPy arrays.

`session(rows)` serves any rows; `study()` has the paper's grid; `planted_cells(laws)` has cells whose errors follow planted laws.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

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

BESIDE: dict[str, str] = {"pixel_cap": "bigint", "max_new_tokens": "bigint", "current": "boolean"}
"""Columns of rows that belong to the tables beside `answers`: configurations (the first two) and runs."""

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
    """A session over answers given as dicts or a frame with columns of ANSWERS and BESIDE.

    What is not given is null; `counts` and `current` are true unless they say otherwise.
    """
    frame = pd.DataFrame(rows)
    for name, value in (("counts", True), ("repetition", 0), ("attempt", 0), ("status", "scored"), ("current", True)):
        if name not in frame:
            frame[name] = value
    if "run_id" not in frame:
        frame["run_id"] = frame["configuration_id"] if len(frame) else []
    connection = duckdb.connect()
    connection.register("given", frame)
    kinds = ANSWERS | BESIDE
    columns = ", ".join(f"{name}::{kind} as {name}" if name in frame else f"null::{kind} as {name}" for name, kind in kinds.items())
    connection.execute(f"create table given_rows as select {columns} from given")
    connection.unregister("given")
    connection.execute(f"create table answers as select {', '.join(ANSWERS)} from given_rows")
    _tables_beside(connection, option_scores or {})
    connection.execute("drop table given_rows")
    return PlantedSession(connection)


def _tables_beside(connection: duckdb.DuckDBPyConnection, option_scores: dict[int, Sequence[int]]) -> None:
    connection.execute(f"create table trajectories as {TRAJECTORIES.format(where='true')}")
    settings = ("max_tiles", "pixel_cap", "source_quality", "vision_branches", "language_branches", "max_new_tokens")
    usual = ", ".join(f"any_value({name})" for name in ("input_mode", "input_size", "variant"))
    connection.execute(f"""
        create table configurations as
        select configuration_id as id, md5(concat_ws('|', {usual}, {", ".join(f"any_value({name})" for name in settings)})) as fingerprint,
            any_value(input_mode) as input_mode, any_value(input_size) as input_size, any_value(variant) as variant,
            {", ".join(f"any_value({name}) as {name}" for name in settings)}
        from given_rows group by 1""")
    connection.execute("""
        create table cells as
        select any_value(family) as family, any_value(series) as series, any_value(model) as model, any_value(parameters) as parameters,
            any_value(suite) as suite, benchmark, configuration_id, max(run_id) as run_id, any_value(input_mode) as input_mode,
            any_value(input_size) as input_size, any_value(variant) as variant, count(*) as n, sum(1 - credit) as errors,
            avg(1 - credit) as error, avg(visual_tokens) as visual_tokens, avg(prompt_tokens) as prompt_tokens,
            2.0 * any_value(parameters) * avg(prompt_tokens) as flops, avg(latency_s) as latency_s
        from given_rows where credit is not null and current group by configuration_id, benchmark""")
    connection.execute(
        "create table runs as select run_id as id, bool_and(current) as current, any_value(configuration_id) as configuration_id from given_rows group by 1"
    )
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


LAW_REFERENCE = (10.0, 1000.0)
"""N (billions) and R at which `PlantedLaw` states its amplitudes."""


@dataclass(frozen=True)
class PlantedLaw:
    """error = e + a (N/10 billion)^-alpha + b (R/1000)^-beta of one series on one suite."""

    e: float = 0.1
    a: float = 0.1
    alpha: float = 0.4
    b: float = 0.15
    beta: float = 0.6

    def error(self, n: Any, r: Any) -> Any:
        """Planted error at N billion parameters and R mean visual tokens."""
        return self.e + self.a * (n / LAW_REFERENCE[0]) ** -self.alpha + self.b * (r / LAW_REFERENCE[1]) ** -self.beta


def planted_cells(
    laws: Mapping[tuple[str, str], PlantedLaw],
    *,
    draws: str = "expected",
    sizes: Sequence[float] = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0),
    input_sizes: Mapping[int, float] | Sequence[int] = (224, 448, 672, 896, 1344, 2048),
    questions: int = 24,
    per_image: int = 2,
    spread: float = 0.0,
    releases: Mapping[str, Sequence[str]] | None = None,
    seed: int = 0,
) -> pd.DataFrame:
    """Answers to `questions` questions per benchmark whose cell errors follow laws by (series, suite); for `session`.

    draws: "expected" gives each answer the credit 1 - p (cells without noise), "counts" exact counts (errors rounded to whole
    answers), "answers" independent Bernoulli answers, "images" Bernoulli answers that the `per_image` questions of an image share.
    sizes: N in billions. input_sizes: px, with mean visual tokens (px / 14)^2 / 4 unless a mapping states them. spread: relative
    range of the tokens over questions (the cell mean stays as stated up to rounding; the law takes the mean as it is).
    releases: benchmarks of a suite (default: one of its name); the second and later ones are asked at the largest input size only,
    and their question i shares pair_key with question i of the first.
    """
    rng = np.random.default_rng(seed)
    tokens_at = dict(input_sizes) if isinstance(input_sizes, dict) else {size: (size / 14) ** 2 / 4 for size in input_sizes}
    series_names, suites = (list(dict.fromkeys(key[place] for key in laws)) for place in (0, 1))
    blocks: list[pd.DataFrame] = []
    place = np.arange(questions)
    factor = 1 + spread * (place - (questions - 1) / 2) / max(questions - 1, 1)
    first_question = 0
    for suite in suites:
        for release, benchmark in enumerate((releases or {}).get(suite, (suite,))):
            about = {
                "question_id": first_question + place,
                "question_key": [f"q{i}" for i in place],
                "image_key": [f"i{i // per_image}" for i in place],
                "pair_key": [f"p{i}" if len((releases or {}).get(suite, ())) > 1 else None for i in place],
                "benchmark": benchmark,
                "suite": suite,
                "task": np.where(place % 3 == 0, "reasoning", "perception"),
                "category": [f"c{i % 4}" for i in place],
                "domain": [f"D{i % 6 + 1}" for i in place],
                "skill": [f"S{i // 6 % 6 + 1}" for i in place],
                "n_options": 4,
            }
            first_question += questions
            for series in (name for name in series_names if (name, suite) in laws):
                for rank, n in enumerate(sizes):
                    for level, (input_size, mean) in enumerate(tokens_at.items()):
                        if release and input_size != max(tokens_at):
                            continue
                        tokens = np.round(mean * factor).astype(int)
                        error = float(laws[series, suite].error(round(n * 1e9) / 1e9, tokens.mean()))
                        credit = 1 - _errors(draws, error, questions, per_image, rng)
                        configuration = 10_000 * series_names.index(series) + 100 * rank + level
                        blocks.append(
                            pd.DataFrame(
                                about
                                | {
                                    "series": series,
                                    "family": series.rstrip("0123456789.-"),
                                    "model": f"{series}-{n:g}B",
                                    "parameters": round(n * 1e9),
                                    "configuration_id": configuration,
                                    "run_id": len(blocks),
                                    "input_mode": "fixed",
                                    "input_size": input_size,
                                    "visual_tokens": tokens,
                                    "prompt_tokens": tokens + 40 + place % 10,
                                    "generated_tokens": 5,
                                    "effective_pixels": input_size**2,
                                    "max_new_tokens": 16,
                                    "latency_s": 0.02 * n**0.8 * (tokens + 50) ** 0.5,
                                    "credit": credit,
                                    "correct": credit > 0.5,
                                    "p_gold": 1 - error,
                                }
                            )
                        )
    frame = pd.concat(blocks, ignore_index=True)
    if draws == "expected":
        frame["correct"] = None
    return frame


def _errors(draws: str, error: float, n: int, per_image: int, rng: np.random.Generator) -> npt.NDArray[np.float64]:
    if not 0 <= error <= 1:
        message = f"planted error {error:g} is not in [0, 1]"
        raise ValueError(message)
    if draws == "expected":
        return np.full(n, error)
    if draws == "counts":
        return (rng.permutation(n) < round(error * n)).astype(float)
    size = 1 if draws == "answers" else per_image
    return (np.repeat(rng.random(-(-n // size)), size)[:n] < error).astype(float)
