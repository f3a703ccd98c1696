"""What counts (DEFINITIONS): recomputed in plain Python from the raw rows, on both engines."""

from __future__ import annotations

import random
from collections import defaultdict
from statistics import fmean
from typing import TYPE_CHECKING, Any

from tests.ingest.tables import run_rows, write_rows

if TYPE_CHECKING:
    from pathlib import Path

    from tracker.api import Tracker

Row = dict[str, Any]


def credit(row: Row) -> float | None:
    if row.get("correct") is not None:
        return float(row["correct"])
    score = row.get("score")
    return float(score) if isinstance(score, int | float) and 0 <= score <= 1 else None


def raw_runs(seed: int) -> list[list[Row]]:
    """Files of one run each, with every kind of answer: wrong, half right, unscored, repeated, asked again."""
    draw = random.Random(seed)
    runs = []
    for model in ("Qwen2.5-VL-3B", "Qwen2.5-VL-7B", "lab/Unknown"):
        for size in (224, 448):
            for day in (1, 2):
                rows: list[Row] = []
                for question in range(6):
                    for repetition in range(draw.choice([1, 2])):
                        for _ in range(draw.choice([1, 1, 2])):
                            row: Row = {
                                "question_id": f"q{question}",
                                "repetition": repetition,
                                "correct": draw.choice([True, False, None]),
                            }
                            if row["correct"] is None:
                                row["score"] = draw.choice([0, 0.25, 1.0, 7.5, -1, None])
                            row["p_gold"] = draw.choice([None, 0.0, 0.5, 1.0])
                            row["visual_tokens"] = draw.choice([None, 0, 100])
                            row["prompt_tokens"] = draw.choice([None, 10, 300])
                            row["latency_s"] = draw.choice([None, 0.5])
                            rows.append(row)
                told = {"model": model, "benchmark": "HRBench4K", "input_size": size, "ended_at": f"2026-01-0{day}T00:00:00Z"}
                runs.append([{**told, **row} for row in rows])
    return runs


def current(runs: list[list[Row]]) -> list[list[Row]]:
    latest: dict[tuple[Any, ...], list[Row]] = {}
    for rows in sorted(runs, key=lambda rows: str(rows[0]["ended_at"])):
        latest[rows[0]["model"], rows[0]["input_size"]] = rows
    return list(latest.values())


def final(rows: list[Row]) -> list[Row]:
    """The last scored attempt of each repetition of each question."""
    kept: dict[tuple[str, int], Row] = {}
    for row in rows:
        if credit(row) is not None:
            kept[row["question_id"], row["repetition"]] = row
    return list(kept.values())


def mean(values: list[Any]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def expected_cells(runs: list[list[Row]], parameters: dict[str, int | None]) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    cells = {}
    for rows in current(runs):
        scored = [row for row in rows if credit(row) is not None]
        if not scored:
            continue
        given = [credit(row) or 0.0 for row in scored]
        prompt, count = mean([row["prompt_tokens"] for row in scored]), parameters[rows[0]["model"]]
        flops = None if prompt is None or count is None else 2.0 * count * prompt
        told = (mean([row["visual_tokens"] for row in scored]), prompt, flops, mean([row["latency_s"] for row in scored]))
        cells[rows[0]["model"], rows[0]["input_size"]] = (len(scored), len(scored) - sum(given), 1 - fmean(given), *told)
    return cells


def expected_trajectories(runs: list[list[Row]], series: dict[str, str]) -> dict[tuple[str, str], tuple[Any, ...]]:
    by_configuration: dict[tuple[str, str], list[list[Row]]] = defaultdict(list)
    for rows in current(runs):
        groups: dict[str, list[Row]] = defaultdict(list)
        for row in final(rows):
            groups[row["question_id"]].append(row)
        for question, members in groups.items():
            by_configuration[question, series[rows[0]["model"]]].append(members)
    found = {}
    for place, configurations in by_configuration.items():
        accuracies = [fmean(credit(row) or 0.0 for row in members) for members in configurations]
        p_golds = [mean([row["p_gold"] for row in members]) for members in configurations]
        found[place] = (len(configurations), sum(map(len, configurations)), fmean(accuracies), mean(p_golds))
    return found


def rounded(numbers: dict[Any, tuple[Any, ...]]) -> dict[Any, tuple[Any, ...]]:
    return {place: tuple(None if value is None else float(f"{value:.12g}") for value in row) for place, row in numbers.items()}


def test_cells_and_trajectories_are_what_plain_python_says(each_store: Tracker, tmp_path: Path) -> None:
    runs = raw_runs(7)
    for number, rows in enumerate(runs):
        write_rows(tmp_path / "in" / f"{number}.jsonl", rows)
    each_store.ingest(tmp_path / "in")
    parameters = dict(each_store.sql("select m.name, b.parameters from models m left join backbones b on m.backbone_id = b.id").fetchall())
    assert parameters["Qwen2.5-VL-7B"]
    cells = each_store.sql(
        "select model, input_size, n, errors, error, visual_tokens, prompt_tokens, flops, latency_s from cells"
    ).fetchall()
    assert rounded({row[:2]: row[2:] for row in cells}) == rounded(expected_cells(runs, parameters))
    series = {"Qwen2.5-VL-3B": "Qwen2.5-VL", "Qwen2.5-VL-7B": "Qwen2.5-VL", "lab/Unknown": "lab/Unknown"}
    wanted = expected_trajectories(runs, series)
    for name in ("trajectories", f"({each_store.session().trajectories_sql()})"):
        rows = each_store.sql(f"select question_key, series, n_configurations, n_observations, accuracy, p_gold from {name}").fetchall()
        assert rounded({row[:2]: row[2:] for row in rows}) == rounded(wanted)
    counting = {(rows[0]["model"], rows[0]["input_size"]): len(final(rows)) for rows in current(runs)}
    found = each_store.sql("select model, input_size, count(*) from answers where counts group by all").fetchall()
    assert {row[:2]: row[2] for row in found} == counting
    assert each_store.sql("select count(*) from answers").fetchall() == [(sum(map(len, runs)),)]


def test_statuses_follow_the_credit(each_store: Tracker, tmp_path: Path) -> None:
    outcomes: list[tuple[Row, str, float | None]] = [
        ({"correct": True}, "scored", 1.0),
        ({"correct": False}, "scored", 0.0),
        ({"correct": 0}, "scored", 0.0),
        ({"correct": False, "score": 1.0}, "scored", 0.0),
        ({"correct": None, "score": 0}, "scored", 0.0),
        ({"correct": None, "score": 0.5}, "scored", 0.5),
        ({"correct": None, "score": 3.0}, "unscored", None),
        ({"correct": None, "score": -0.001}, "unscored", None),
        ({"correct": None}, "unscored", None),
        ({"correct": None, "status": "failed"}, "failed", None),
        ({"correct": True, "status": "failed"}, "scored", 1.0),
    ]
    rows = [{"model": "m", "benchmark": "b", "question_id": f"{i:02}", **row} for i, (row, _, _) in enumerate(outcomes)]
    write_rows(tmp_path / "a.jsonl", rows)
    each_store.ingest(tmp_path / "a.jsonl")
    found = each_store.sql("select status, credit from answers order by question_key").fetchall()
    assert found == [(status, value) for _, status, value in outcomes]
    assert each_store.sql("select n from cells").fetchall() == [(7,)]


def test_missing_nan_infinite_unscored_and_zero_stay_apart(each_store: Tracker, tmp_path: Path) -> None:
    values = ["NaN", "Infinity", "-Infinity", "0", "0.0", "null", "1e400", "-0.0"]
    text = "".join(f'{{"model": "m", "benchmark": "b", "question_id": "{i}", "score": {value}}}\n' for i, value in enumerate(values))
    (tmp_path / "a.jsonl").write_text(text)
    each_store.ingest(tmp_path / "a.jsonl")
    wanted = [(None, "nan"), (None, "inf"), (None, "-inf"), (0.0, None), (0.0, None), (None, None), (None, "inf"), (0.0, None)]
    assert each_store.sql("select score, special from records r join questions q on r.question_id = q.id order by key").fetchall() == wanted
    with each_store.database().read() as connection:
        from tracker.database import bulk

        stored = bulk.read_table(connection, "records").select(["score", "special"]).to_pylist()
    assert [(row["score"], row["special"]) for row in stored] == wanted
    assert each_store.sql("select n, error from cells").fetchall() == [(3, 1.0)]


def test_zero_is_a_value_and_null_is_not(each_store: Tracker, tmp_path: Path) -> None:
    numbers = ["visual_tokens", "prompt_tokens", "generated_tokens", "tiles", "effective_pixels", "p_gold", "vision_flops", "latency_s"]
    rows = [{**run_rows(n=1)[0], "question_id": "zero", **dict.fromkeys(numbers, 0)}, {**run_rows(n=1)[0], "question_id": "none"}]
    write_rows(tmp_path / "a.jsonl", rows)
    each_store.ingest(tmp_path / "a.jsonl")
    found = each_store.sql(
        f"select {', '.join(numbers)} from records join questions on question_id = questions.id order by key desc"
    ).fetchall()
    assert found == [(0,) * len(numbers), (None,) * len(numbers)]


def test_a_repeated_id_is_the_next_attempt_in_file_order_and_the_last_scored_one_counts(each_store: Tracker, tmp_path: Path) -> None:
    told = [(True, None), (False, None), (None, None), (None, 5.0)]
    rows = [{**run_rows(n=1)[0], "correct": correct, "score": score} for correct, score in told]
    write_rows(tmp_path / "a.jsonl", rows)
    each_store.ingest(tmp_path / "a.jsonl")
    found = each_store.sql("select attempt, status, counts from answers order by attempt").fetchall()
    assert found == [(0, "scored", False), (1, "scored", True), (2, "unscored", False), (3, "unscored", False)]
    assert each_store.sql("select n, errors from cells").fetchall() == [(2, 1.0)], "every scored attempt is in the cell"
    assert each_store.sql("select n_observations, accuracy from trajectories").fetchall() == [(1, 0.0)]


# ---- which run counts ------------------------------------------------------------------------


def state(store: Tracker) -> list[tuple[Any, ...]]:
    return store.sql("select tags, status, current from runs order by tags").fetchall()  # type: ignore[no-any-return]


def test_the_current_run_is_the_last_finished_one_nulls_first(each_store: Tracker, tmp_path: Path) -> None:
    """By (ended_at, started_at, first ingest)."""
    facts: list[Row] = [
        {},
        {"started_at": "2030-01-01T00:00:00Z"},
        {"ended_at": "2026-01-01T00:00:00Z"},
        {"ended_at": "2026-01-01T00:00:00Z", "started_at": "2025-12-31T00:00:00Z"},
        {"ended_at": "2026-01-01T02:00:00+02:00", "started_at": "2025-12-31T01:00:00Z"},
        {"ended_at": "2026-01-01T00:00:00Z", "started_at": "2025-12-31T01:00:00Z"},
    ]
    for number, fact in enumerate(facts):
        write_rows(tmp_path / f"{number}.jsonl", run_rows(n=2, tags={"n": number}, **fact))
        each_store.ingest(tmp_path / f"{number}.jsonl")
        assert [row[2] for row in state(each_store)] == [False] * number + [True]
    write_rows(tmp_path / "failed.jsonl", run_rows(n=2, tags={"n": 8}, run_status="failed", ended_at="2031-01-01T00:00:00Z"))
    write_rows(tmp_path / "partial.jsonl", run_rows(n=2, tags={"n": 9}, n_expected=3, ended_at="2031-01-01T00:00:00Z"))
    report = each_store.ingest(tmp_path / "failed.jsonl", tmp_path / "partial.jsonl")
    assert [row[1:] for row in state(each_store)][5:] == [("finished", True), ("failed", False), ("partial", False)]
    assert report.partial == 2
    assert report.not_counting == {"failed": 1, "partial": 1, "superseded by a later run": 5}
    assert each_store.sql("select count(*) from cells").fetchall() == [(1,)]
    assert each_store.sql("select count(*) from answers where counts").fetchall() == [(2,)]
    assert each_store.sql("select count(*) from answers").fetchall() == [(16,)]


def test_a_later_run_without_any_scored_answer_hides_none(each_store: Tracker, tmp_path: Path) -> None:
    write_rows(tmp_path / "good.jsonl", run_rows(n=4, tags={"n": 0}, ended_at="2026-01-01T00:00:00Z"))
    failed = [{**row, "correct": None, "status": "failed"} for row in run_rows(n=4, tags={"n": 1}, ended_at="2026-01-02T00:00:00Z")]
    write_rows(tmp_path / "failed.jsonl", failed)
    for order in (("good", "failed"), ("failed", "good")):
        report = each_store.ingest(*(tmp_path / f"{name}.jsonl" for name in order))
        assert [row[1:] for row in state(each_store)] == [("finished", True), ("finished", False)]
        assert each_store.sql("select n, errors from cells").fetchall() == [(4, 2.0)]
        assert report.not_counting == {"without any scored answer": 1}
        each_store.delete_runs([row[0] for row in each_store.sql("select id from runs").fetchall()])


def test_when_the_current_run_goes_the_one_before_it_counts_again(each_store: Tracker, tmp_path: Path) -> None:
    for day in (1, 2):
        write_rows(tmp_path / f"{day}.jsonl", run_rows(n=day, ended_at=f"2026-01-0{day}T00:00:00Z"))
    each_store.ingest(tmp_path / "1.jsonl", tmp_path / "2.jsonl")
    assert each_store.sql("select count(*) from trajectories").fetchall() == [(2,)]
    ((run,),) = each_store.sql("select id from runs where n_records = 2").fetchall()
    each_store.delete_runs([run])
    assert each_store.sql("select n from cells").fetchall() == [(1,)]
    assert each_store.sql("select question_key from trajectories").fetchall() == [("q0",)]


def test_a_run_is_partial_by_what_it_declares_what_the_study_expects_or_a_cut_off_file(each_store: Tracker, tmp_path: Path) -> None:
    write_rows(tmp_path / "in" / "declared.jsonl", run_rows("declared", n=3, n_expected=4))
    write_rows(tmp_path / "in" / "complete.jsonl", run_rows("complete", n=5, n_expected=5))
    write_rows(tmp_path / "in" / "few.jsonl", run_rows("few", n=4) + run_rows("few", n=1))
    cut = write_rows(tmp_path / "in" / "cut.jsonl", run_rows("cut", n=6))
    cut.write_bytes(cut.read_bytes()[:-20])
    (tmp_path / "in" / "study.toml").write_text('[questions]\n"Bench" = 5\n')
    report = each_store.ingest(tmp_path / "in")
    found = each_store.sql("select model_name, status, status_reason from runs order by 1").fetchall()
    assert [row[:2] for row in found] == [("complete", "finished"), ("cut", "partial"), ("declared", "partial"), ("few", "partial")]
    reasons = {row[0]: row[2] for row in found}
    assert "line 6" in reasons["cut"]
    assert "3 records of 4 declared" in reasons["declared"]
    assert "4 questions of 5" in reasons["few"], "questions are counted, not attempts"
    assert (report.partial, report.exit_code) == (3, 3)
    assert each_store.sql("select model from cells").fetchall() == [("complete",)]


def test_a_run_limited_on_purpose_is_finished(store: Tracker, tmp_path: Path) -> None:
    write_rows(tmp_path / "a.jsonl", run_rows(benchmark="HRBench4K", n=3))
    store.ingest(tmp_path / "a.jsonl")
    assert store.sql("select status from runs").fetchall() == [("finished",)]
