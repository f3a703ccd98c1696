"""The same evaluation reached through several formats is one configuration: model, benchmark, 5 shots, bfloat16, at most 16 new tokens.

What a format cannot say is null, and null is a value of its own. A constant in the study file then makes the configurations equal.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tracker
from tests.readers.harness import read
from tracker.readers import reader

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MODEL, BENCHMARK = "org/small-1b", "gsm8k"
ROWS = [("Tom has 3 pens and buys 4. How many?", "7", "7"), ("2 boxes of 6 eggs. How many?", "12", "10")]
COLUMNS = (
    "input_mode", "input_size", "max_tiles", "pixel_cap", "source_quality", "vision_branches", "language_branches", "few_shot", "precision",
    "max_new_tokens", "prompt", "variant",
)  # fmt: skip
EXPECTED = {"few_shot": 5, "precision": "bfloat16", "max_new_tokens": 16}


def _lm_eval(root: Path) -> None:
    stamp = "2025-09-01T10-20-30.123456"
    _json(
        root / f"results_{stamp}.json",
        {
            "results": {BENCHMARK: {"alias": BENCHMARK, "exact_match,none": 0.5, "exact_match_stderr,none": 0.1}},
            "configs": {
                BENCHMARK: {
                    "task": BENCHMARK,
                    "num_fewshot": 5,
                    "metric_list": [{"metric": "exact_match"}],
                    "generation_kwargs": {"max_gen_toks": 256},
                }
            },
            "versions": {BENCHMARK: 3},
            "n-shot": {BENCHMARK: 5},
            "n-samples": {BENCHMARK: {"original": 1319, "effective": 2}},
            "config": {"model": "hf", "model_args": f"pretrained={MODEL},dtype=bfloat16", "gen_kwargs": "max_gen_toks=16", "limit": 2.0},
            "date": 1756720000.5,
        },
    )
    _lines(
        root / f"samples_{BENCHMARK}_{stamp}.jsonl",
        [
            {
                "doc_id": place,
                "doc": {"question": question, "answer": gold},
                "target": gold,
                "arguments": {"gen_args_0": {"arg_0": f"shots {question}", "arg_1": {"max_gen_toks": 16}}},
                "resps": [[said]],
                "filtered_resps": [said],
                "filter": "none",
                "metrics": ["exact_match"],
                "exact_match": float(gold == said),
            }
            for place, (question, gold, said) in enumerate(ROWS)
        ],
    )


def _evalscope(root: Path) -> None:
    (root / "configs").mkdir(parents=True)
    (root / "configs/task_config.yaml").write_text(
        f"dataset_args:\n  {BENCHMARK}:\n    few_shot_num: 5\n    name: {BENCHMARK}\ndatasets:\n- {BENCHMARK}\nevalscope_version: 1.4.0\n"
        f"generation_config:\n  max_tokens: 16\n  temperature: 0.0\nmodel: {MODEL}\nmodel_args:\n  precision: torch.bfloat16\n  revision: master\n"
        "model_id: small-1b\nrepeats: 1\n",
        encoding="utf-8",
    )
    reviews = [
        {
            "index": place,
            "target": gold,
            "messages": [{"role": "user", "content": question}, {"role": "assistant", "content": said}],
            "sample_score": {
                "score": {"value": {"acc": float(gold == said)}, "extracted_prediction": said, "prediction": said},
                "sample_id": place,
                "group_id": place,
            },
        }
        for place, (question, gold, said) in enumerate(ROWS)
    ]
    _lines(root / f"reviews/small-1b/{BENCHMARK}_main.jsonl", reviews)
    subsets = [{"name": "main", "score": 0.5, "num": 2}]
    metric = {"name": "mean_acc", "num": 2, "score": 0.5, "macro_score": 0.5, "categories": [{"name": ["default"], "subsets": subsets}]}
    _json(
        root / f"reports/small-1b/{BENCHMARK}.json",
        {"dataset_name": BENCHMARK, "model_name": "small-1b", "score": 0.5, "metrics": [metric]},
    )


def _lighteval(root: Path) -> None:
    stamp, task = "2025-09-01T10-20-30.123456", f"{BENCHMARK}|5"
    model = {
        "model_name": MODEL,
        "dtype": "bfloat16",
        "revision": "main",
        "generation_parameters": {"max_new_tokens": 16, "temperature": 0.0},
    }
    _json(
        root / f"results/{MODEL}/results_{stamp}.json",
        {
            "config_general": {"lighteval_sha": "?", "model_config": model, "model_name": MODEL},
            "results": {task: {"extractive_match": 0.5}, "all": {"extractive_match": 0.5}},
            "config_tasks": {task: {"name": BENCHMARK, "generation_size": 256, "effective_num_docs": 2}},
        },
    )
    rows = [
        {
            "doc": {"query": question, "choices": [gold], "gold_index": [0], "id": str(place), "task_name": task},
            "metric": {"extractive_match": int(gold == said)},
            "model_response": {"input": question, "text": [said], "output_tokens": [[1, 2]], "logprobs": []},
        }
        for place, (question, gold, said) in enumerate(ROWS)
    ]
    folder = root / f"details/{MODEL}/{stamp}"
    folder.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows), folder / f"details_{task}_{stamp}.parquet")


def _inspect(root: Path) -> None:
    samples = [
        {
            "id": place + 1,
            "epoch": 1,
            "input": question,
            "target": gold,
            "messages": [],
            "output": {"model": MODEL, "choices": [{"message": {"role": "assistant", "content": said}, "stop_reason": "stop"}]},
            "scores": {"match": {"value": "C" if gold == said else "I", "answer": said}},
        }
        for place, (question, gold, said) in enumerate(ROWS)
    ]
    _json(
        root / "2025-09-01T10-20-30-00-00_gsm8k_abc.json",
        {
            "version": 2,
            "status": "success",
            "eval": {
                "eval_id": "e1",
                "run_id": "r1",
                "created": "2025-09-01T10:20:30+00:00",
                "task": BENCHMARK,
                "task_id": "abc",
                "task_args": {"fewshot": 5},
                "task_args_passed": {"fewshot": 5},
                "dataset": {"name": BENCHMARK, "samples": 2, "sample_ids": [1, 2]},
                "model": f"hf/{MODEL}",
                "model_args": {"torch_dtype": "bfloat16"},
                "model_generate_config": {"max_tokens": 16},
                "config": {},
            },
            "plan": {"name": "plan", "steps": [], "config": {"max_tokens": 16}},
            "results": {
                "total_samples": 2,
                "completed_samples": 2,
                "scores": [{"name": "match", "scorer": "match", "metrics": {"accuracy": {"name": "accuracy", "value": 0.5}}}],
            },
            "stats": {"started_at": "2025-09-01T10:20:30+00:00", "completed_at": "2025-09-01T10:21:30+00:00", "model_usage": {}},
            "samples": samples,
        },
    )


def _mlflow(root: Path) -> None:
    run = root / "mlruns/1/0123456789abcdef0123456789abcdef"
    for folder in ("params", "metrics", "tags", "artifacts"):
        (run / folder).mkdir(parents=True)
    (root / "mlruns/1/meta.yaml").write_text(
        "artifact_location: file:///x/mlruns/1\ncreation_time: 1756720000000\nexperiment_id: '1'\nlast_update_time: 1756720000000\n"
        "lifecycle_stage: active\nname: evals\n",
        encoding="utf-8",
    )
    (run / "meta.yaml").write_text(
        "artifact_uri: file:///x/mlruns/1/0123456789abcdef0123456789abcdef/artifacts\nend_time: 1756720060000\nentry_point_name: ''\n"
        "experiment_id: '1'\nlifecycle_stage: active\nrun_id: 0123456789abcdef0123456789abcdef\nrun_name: eval\n"
        "run_uuid: 0123456789abcdef0123456789abcdef\nsource_name: ''\nsource_type: 4\nsource_version: ''\nstart_time: 1756720000000\n"
        "status: 3\ntags: []\nuser_id: u\n",
        encoding="utf-8",
    )
    params = {"model": MODEL, "benchmark": BENCHMARK, "num_fewshot": "5", "dtype": "bfloat16", "max_new_tokens": "16"}
    for name, value in params.items():
        (run / "params" / name).write_text(value, encoding="utf-8")
    (run / "metrics/accuracy").write_text("1756720030000 0.5 0\n", encoding="utf-8")


def _helm(root: Path) -> None:
    folder = root / "runs/v1" / f"{BENCHMARK}:model={MODEL.replace('/', '_')}"
    adapter = {"method": "generation", "model": MODEL, "max_train_instances": 5, "max_tokens": 16, "temperature": 0.0, "num_outputs": 1}
    _json(
        folder / "run_spec.json",
        {
            "name": f"{BENCHMARK}:model={MODEL}",
            "scenario_spec": {"class_name": "x.GSM8KScenario", "args": {}},
            "adapter_spec": adapter,
            "metric_specs": [],
        },
    )
    states, stats = [], []
    for place, (question, gold, said) in enumerate(ROWS):
        instance = {
            "input": {"text": question},
            "references": [{"output": {"text": gold}, "tags": ["correct"]}],
            "split": "test",
            "id": f"id{place}",
        }
        result = {"success": True, "completions": [{"text": said, "logprob": -1.0, "tokens": []}], "cached": False}
        states.append(
            {
                "instance": instance,
                "request_mode": None,
                "train_trial_index": 0,
                "request": {"model": MODEL, "prompt": question},
                "result": result,
            }
        )
        value = float(gold == said)
        stats.append(
            {
                "instance_id": f"id{place}",
                "train_trial_index": 0,
                "stats": [{"name": {"name": "exact_match", "split": "test"}, "count": 1, "sum": value, "mean": value}],
            }
        )
    _json(folder / "scenario_state.json", {"adapter_spec": adapter, "request_states": states})
    _json(folder / "per_instance_stats.json", stats)
    _json(folder / "stats.json", [{"name": {"name": "exact_match", "split": "test"}, "count": 1, "sum": 0.5, "mean": 0.5}])


SAYING_ALL: dict[str, Callable[[Path], None]] = {
    "lm_eval": _lm_eval,
    "evalscope": _evalscope,
    "lighteval": _lighteval,
    "inspect_ai": _inspect,
    "mlflow": _mlflow,
}


def test_one_evaluation_in_five_formats_is_one_configuration(tmp_path: Path) -> None:
    for name, write in SAYING_ALL.items():
        write(tmp_path / "in" / name)
    found = _configurations(tmp_path, tmp_path / "in")
    assert {(row["source_format"]) for row in found} == set(SAYING_ALL)
    assert {row["benchmark_name"] for row in found} == {BENCHMARK}
    assert {row["model_name"] for row in found} == {MODEL}
    for row in found:
        assert {name: row[name] for name in COLUMNS if row[name] is not None} == EXPECTED, row["source_format"]
    assert len({row["configuration_id"] for row in found}) == 1


def test_what_a_format_cannot_say_is_null_until_one_constant_says_it(tmp_path: Path) -> None:
    """HELM keeps no precision."""
    _lm_eval(tmp_path / "in" / "lm_eval")
    _helm(tmp_path / "in" / "helm")
    found = {row["source_format"]: row for row in _configurations(tmp_path / "plain", tmp_path / "in")}
    assert found["helm"]["precision"] is None
    assert {name: found["helm"][name] for name in COLUMNS if found["helm"][name] is not None} == {"few_shot": 5, "max_new_tokens": 16}
    assert found["helm"]["configuration_id"] != found["lm_eval"]["configuration_id"]
    study = tmp_path / "study.toml"
    study.write_text('[[path]]\npattern = "/helm/"\nprecision = "bfloat16"\n', encoding="utf-8")
    told = _configurations(tmp_path / "told", tmp_path / "in", study=study)
    assert len(told) == 2
    assert len({row["configuration_id"] for row in told}) == 1


@pytest.mark.parametrize("name", SAYING_ALL)
def test_a_changed_setting_makes_another_configuration(tmp_path: Path, name: str) -> None:
    """So that the test above can fail: the same formats with another limit on new tokens."""
    root = tmp_path / "in" / name
    SAYING_ALL[name](root)
    for path in root.rglob("*"):
        if path.is_file() and path.suffix in {".json", ".yaml", ".jsonl", ""}:
            text = path.read_text(encoding="utf-8")
            changed = text.replace("max_tokens: 16", "max_tokens: 32").replace('"max_tokens": 16', '"max_tokens": 32')
            changed = changed.replace('"max_new_tokens": 16', '"max_new_tokens": 32').replace("max_gen_toks=16", "max_gen_toks=32")
            path.write_text("32" if path.name == "max_new_tokens" else changed, encoding="utf-8")
    batches, refusals = read(reader(name), root)
    assert not refusals
    assert {batch.run.configuration.max_new_tokens for batch in batches} == {32}


def _configurations(home: Path, path: Path, *, study: Path | None = None) -> list[dict[str, Any]]:
    """The runs of an ingest with their configurations."""
    home.mkdir(exist_ok=True)
    with tracker.open(str(home / "t.db"), home / "lake") as opened:
        opened.ingest(path, study=study)
        result = opened.sql(
            f"select r.source_format, r.model_name, r.benchmark_name, r.configuration_id, {', '.join(f'c.{name}' for name in COLUMNS)} "
            "from runs r join configurations c on c.id = r.configuration_id order by r.source_format"
        )
        rows: list[dict[str, Any]] = result.arrow().read_all().to_pylist()
        return rows


def _json(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=2), encoding="utf-8")


def _lines(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
