"""One question is one question, whichever framework asked it; two questions stay two, whatever their positions are."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.ingest.tables import write_rows
from tests.readers import test_configurations as same_evaluation
from tests.readers.vlmevalkit_files import dump, judged, predictions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from tracker.api import Tracker

MODEL = "Qwen2.5-VL-7B-Instruct"
ASKED = "(select a.*, q.text from answers a join questions q on q.id = a.question_id)"


def lettered(row: dict[str, Any]) -> str:
    return "\n".join(f"{letter}. {row[letter]}" for letter in "ABCD")


PROMPTS: dict[str, tuple[str, Callable[[dict[str, Any]], dict[str, Any]]]] = {
    "HRBench4K": (
        "hrbench4k",
        lambda row: {
            "input": f"{row['question']}\n{lettered(row)}\nAnswer the option letter directly.",
            "average": {"index": row["index"], "cycle_category": 0, "gpt_score": 1},
        },
    ),
    "MMStar": (
        "mmstar",
        lambda row: {"input": f"{row['question']}\n{lettered(row)}", "average": {"question_id": row["index"], "score": 1.0}},
    ),
    "VStarBench": (
        "vstar_bench",
        lambda row: {"input": f"{row['question']}\n{lettered(row)}", "vstar_overall_acc": {"question_id": str(row["index"]), "score": 1.0}},
    ),
    "MMBench_DEV_EN": (
        "mmbench_en_dev",
        lambda row: {
            "input": f"{row['question']} There are several options:\n{lettered(row)}\nAnswer with the option's letter from the given choices directly.",
            "gpt_eval_score": {"index": row["index"], "category": row["category"]},
        },
    ),
    "RealWorldQA": (
        "realworldqa",
        lambda row: {
            "input": f"{row['question']}\n\n{lettered(row)}\nPlease answer directly with only the letter of the correct option and nothing else.",
            "exact_match": 1.0,
        },
    ),
}
"""Data set of VLMEvalKit: lmms-eval's task, and a row's prompt and metric as that task logs them (lmms_eval/tasks/*/utils.py)."""
BY_CONTENT = {"RealWorldQA"}
"""Where the rows' numbers are positions: only the content says that a question is the same."""


def lmms(root: Path, task: str, rows: Sequence[dict[str, Any]]) -> None:
    """A samples file of lmms-eval."""
    path = root / "lmms" / "org__other-model" / f"20260218_234435_samples_{task}.jsonl"
    write_rows(path, [{"doc_id": at, "target": "A", "filtered_resps": ["A"], **one} for at, one in enumerate(rows)])


def ingest(store: Tracker, root: Path) -> None:
    report = store.ingest(root / "data")
    assert not report.rejected


def joined(store: Tracker) -> list[tuple[Any, ...]]:
    """Answers, questions and models of each benchmark."""
    query = "select benchmark, count(*), count(distinct question_id), count(distinct model) from answers group by 1 order by 1"
    return list(store.sql(query).fetchall())


@pytest.mark.parametrize("dataset", PROMPTS)
def test_lmms_eval_and_vlmevalkit_answer_one_question(store: Tracker, tmp_path: Path, dataset: str) -> None:
    task, prompt = PROMPTS[dataset]
    told = predictions(6)
    if dataset not in BY_CONTENT:  # ids of the data set: not 0, 1, 2, ... in this order
        for row in told:
            row["index"] = 500 - row["index"]
    folder = tmp_path / "data" / "outputs" / MODEL / "T20260410_Gabcdef12"
    dump(told, folder / f"{MODEL}_{dataset}.xlsx")
    dump(judged(told, [1, 0, 1, 0, 1, 0]), folder / f"{MODEL}_{dataset}_openai_result.xlsx")
    lmms(tmp_path / "data", task, [prompt(row) for row in reversed(told)])
    ingest(store, tmp_path)
    ((_, answers, questions, models),) = joined(store)
    assert (answers, questions, models) == (12, 6, 2)
    ((keys,),) = store.sql("select count(*) from questions").fetchall()
    assert keys == (12 if dataset in BY_CONTENT else 6)
    ((seen,),) = store.sql("select count(distinct question_id) from trajectories").fetchall()
    assert seen == 6


def test_a_position_never_passes_for_an_id_of_the_data_set(store: Tracker, tmp_path: Path) -> None:
    """MathVista's pid 1 is lmms-eval's doc_id 0; MMBench's index 0 need not be doc_id 0."""
    told = [row | {"index": place, "pid": place + 1} for place, row in enumerate(predictions(4))]
    folder = tmp_path / "data" / "outputs" / MODEL / "T20260410_Gabcdef12"
    dump(told, folder / f"{MODEL}_MathVista_MINI.xlsx")
    dump(told, folder / f"{MODEL}_MMBench_DEV_EN.xlsx")
    others = [{"input": f"Another question {place}\n{lettered(row)}", "submission": {"x": 1}} for place, row in enumerate(predictions(4))]
    lmms(tmp_path / "data", "mathvista_testmini", others)
    lmms(tmp_path / "data", "mmbench_en_dev", others)
    ingest(store, tmp_path)
    assert joined(store) == [("MMBench_DEV_EN", 8, 8, 2), ("MathVista_MINI", 8, 8, 2)]


def test_equal_positions_of_two_frameworks_are_two_questions(store: Tracker, tmp_path: Path) -> None:
    """The same benchmark in another order and in another split: what is the same is joined, what is not is not."""
    told = predictions(6)
    folder = tmp_path / "data" / "outputs" / MODEL / "T20260410_Gabcdef12"
    dump([row | {"index": place} for place, row in enumerate(told[:4])], folder / f"{MODEL}_RealWorldQA.xlsx")
    task, prompt = PROMPTS["RealWorldQA"]
    lmms(tmp_path / "data", task, [prompt(row) for row in reversed(told[2:])])
    ingest(store, tmp_path)
    assert joined(store) == [("RealWorldQA", 8, 6, 2)]
    pairs = store.sql(f"select text from {ASKED} group by text having count(distinct model) = 2 order by 1").fetchall()
    assert [text for (text,) in pairs] == [row["question"] for row in told[2:4]]


def test_text_that_occurs_twice_in_a_run_joins_nothing(store: Tracker, tmp_path: Path) -> None:
    """Many data sets ask the same words of different images; where the image is not known, nobody can say which is which."""
    told = predictions(4)
    for row in told[1:3]:
        row |= {name: told[0][name] for name in ("question", *"ABCD")}
    folder = tmp_path / "data" / "outputs" / MODEL / "T20260410_Gabcdef12"
    dump(told, folder / f"{MODEL}_RealWorldQA.xlsx")
    task, prompt = PROMPTS["RealWorldQA"]
    lmms(tmp_path / "data", task, [prompt(row) for row in told])
    ingest(store, tmp_path)
    assert joined(store) == [("RealWorldQA", 8, 7, 2)]


# ---- language benchmarks ---------------------------------------------------------------------


def test_one_question_in_five_frameworks(store: Tracker, tmp_path: Path) -> None:
    """lm-eval, lighteval, EvalScope, Inspect and HELM number the documents in ways of their own."""
    writers = {name: write for name, write in same_evaluation.SAYING_ALL.items() if name != "mlflow"} | {"helm": same_evaluation._helm}
    for name, write in writers.items():
        write(tmp_path / "data" / name)
    report = store.ingest(tmp_path / "data")
    assert not report.rejected
    formats = "select count(distinct source_format), count(*), (select count(*) from questions) from runs"
    assert store.sql(formats).fetchall() == [(5, 5, 10)]
    answered = store.sql(f"select text, count(distinct question_id), count(distinct run_id) from {ASKED} group by 1 order by 1").fetchall()
    assert answered == [(text, 1, 5) for text, _, _ in sorted(same_evaluation.ROWS)]
    assert store.sql("select count(*) from trajectories").fetchall() == [(2,)]


OPTIONS = [
    ("Which gas do plants take in?", ["oxygen", "carbon dioxide", "helium"], 1),
    ("How many legs has an ant?", ["four", "six", "eight"], 1),
]
STAMP = "2025-09-01T10-20-30.123456"


def _lm_eval(root: Path) -> None:
    rows = [
        {
            "doc_id": place,
            "doc": {"question": asked, "choices": {"text": options, "label": list("ABC")}, "answerKey": "ABC"[gold]},
            "target": gold,
            "arguments": {f"gen_args_{at}": {"arg_0": f"Question: {asked}\nAnswer:", "arg_1": f" {one}"} for at, one in enumerate(options)},
            "resps": [[[-1.0 - (at != gold), False]] for at in range(3)],
            "filtered_resps": [[-1.0 - (at != gold), False] for at in range(3)],
            "filter": "none",
            "metrics": ["acc"],
            "acc": 1.0,
        }
        for place, (asked, options, gold) in enumerate(OPTIONS)
    ]
    write_rows(root / "org__small" / f"samples_arc_easy_{STAMP}.jsonl", rows)


def _inspect(root: Path) -> None:
    samples = [
        {
            "id": place + 1,
            "epoch": 1,
            "input": asked,
            "choices": options,
            "target": "ABC"[gold],
            "messages": [],
            "output": {"model": "small", "choices": [{"message": {"role": "assistant", "content": "ANSWER: B"}, "stop_reason": "stop"}]},
            "scores": {"choice": {"value": "C", "answer": "B"}},
        }
        for place, (asked, options, gold) in enumerate(reversed(OPTIONS))
    ]
    document = {
        "version": 2,
        "status": "success",
        "eval": {
            "eval_id": "e1",
            "run_id": "r1",
            "created": "2025-09-01T10:20:30+00:00",
            "task": "arc_easy",
            "task_id": "t",
            "dataset": {"samples": 2},
            "model": "openai/small",
            "config": {},
        },
        "plan": {"name": "plan", "steps": [], "config": {}},
        "results": {"total_samples": 2, "completed_samples": 2, "scores": []},
        "stats": {"started_at": "2025-09-01T10:20:30+00:00", "completed_at": "2025-09-01T10:21:30+00:00", "model_usage": {}},
        "samples": samples,
    }
    root.mkdir(parents=True)
    (root / "log.json").write_text(json.dumps(document), encoding="utf-8")


def _lighteval(root: Path) -> None:
    rows = [
        {
            "doc": {
                "query": f"Question: {asked}\nAnswer:",
                "choices": [f" {one}" for one in options],
                "gold_index": [gold],
                "id": str(place),
                "task_name": "arc_easy|0",
            },
            "metric": {"acc": 1},
            "model_response": {"input": asked, "text": [], "output_tokens": [], "logprobs": [-1.0 - (at != gold) for at in range(3)]},
        }
        for place, (asked, options, gold) in enumerate(OPTIONS)
    ]
    folder = root / "details" / "org" / "small" / STAMP
    folder.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows), folder / f"details_arc_easy|0_{STAMP}.parquet")


def _native(root: Path) -> None:
    rows = [
        {
            "model": "native",
            "benchmark": "arc_easy",
            "question_id": f"ARC-{place}",
            "text": asked,
            "options": sorted(options),
            "correct": True,
        }
        for place, (asked, options, _) in enumerate(OPTIONS)
    ]
    write_rows(root / "table.jsonl", rows)


def test_one_multiple_choice_question_in_four_formats(store: Tracker, tmp_path: Path) -> None:
    """Text and options make a question, in whatever order the options stand."""
    for name, write in {"a": _lm_eval, "b": _inspect, "c": _lighteval, "d": _native}.items():
        write(tmp_path / "data" / name)
    report = store.ingest(tmp_path / "data")
    assert not report.rejected
    assert joined(store) == [("arc_easy", 8, 2, 3)]  # lm-eval and lighteval name one model
    answered = f"select text, count(distinct run_id) from {ASKED} group by 1 order by 1"
    assert store.sql(answered).fetchall() == [(asked, 4) for asked, _, _ in sorted(OPTIONS)]


def test_a_rerun_asks_the_same_questions(store: Tracker, tmp_path: Path) -> None:
    """Another stamp, another model: the questions of a benchmark are stored once."""
    _lm_eval(tmp_path / "data" / "first")
    store.ingest(tmp_path / "data")
    before = store.sql("select count(*) from questions").fetchall()
    again = tmp_path / "data" / "second" / "org__large" / "samples_arc_easy_2025-09-02T10-20-30.123456.jsonl"
    (first,) = (tmp_path / "data" / "first").rglob("samples_*")
    again.parent.mkdir(parents=True)
    again.write_bytes(first.read_bytes())
    store.ingest(tmp_path / "data")
    assert store.sql("select count(*) from questions").fetchall() == before == [(2,)]
    assert joined(store) == [("arc_easy", 4, 2, 2)]


def test_a_rule_of_the_study_file_goes_before_readers_of_folders(store: Tracker, tmp_path: Path) -> None:
    """EvalScope would take predictions/ below the folder that it looks into."""
    rows = [{"index": at, "model_output": {"choices": []}, "asked": f"q{at}", "right": at % 2 == 0} for at in range(4)]
    write_rows(tmp_path / "data" / "outputs" / "predictions" / "net" / "quiz.jsonl", rows)
    assert store.ingest(tmp_path / "data", dry_run=True).sources == 1
    (tmp_path / "data" / "study.toml").write_text(
        "[[table]]\nfiles = 'predictions/(?P<model>[^/]+)/(?P<benchmark>\\w+)\\.jsonl$'\n[table.columns]\nquestion_id = 'asked'\ncorrect = 'right'\n"
    )
    assert store.ingest(tmp_path / "data").rejected == []
    assert store.sql("select source_format, model_name, benchmark_name, n_records from runs").fetchall() == [("table", "net", "quiz", 4)]
