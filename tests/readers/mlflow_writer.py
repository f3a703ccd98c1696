"""Writes an MLflow store with MLflow's own client and prints what that client reads back, as JSON.

python mlflow_writer.py STORE_URI FOLDER

A program of its own: MLflow's background threads and warnings stay out of the tests' process.
"""

from __future__ import annotations

import json
import math
import os
import random
import struct
import sys
from typing import Any

import mlflow
import pandas as pd
from mlflow import MlflowClient
from mlflow.entities import AssessmentSource, Dataset, DatasetInput, Feedback, InputTag, Metric, Param, RunTag, ViewType
from mlflow.genai.scorers import scorer

START = 1_780_000_000_000
TABLE = pd.DataFrame(
    {
        "question": ["Which colour?", "How many?", "Where?", "Which colour?"],
        "outputs": ["red", "4", "left", "blue"],
        "target": ["red", "3", "left", "red"],
        "exact_match": [1, 0, 1, 0],
        "judge_rating": [5.0, 2.5, float("nan"), 1.0],
        "latency_ms": [120, 80, 95, 100],
    }
)


def doubles(count: int) -> list[float]:
    """Any 64 bits, seen as a number."""
    bits = random.Random(7)
    return [struct.unpack("<d", bits.getrandbits(64).to_bytes(8, "little"))[0] for _ in range(count)]


def write(uri: str, folder: str) -> dict[str, Any]:
    """Everything that a store may hold."""
    mlflow.set_tracking_uri(uri)
    client = MlflowClient()
    runs: dict[str, str] = {}
    experiment = client.create_experiment("vlm sweep", artifact_location=f"{folder}/mlruns/sweep")
    runs["train"] = _training(client, experiment)
    runs["nested"] = _simple(client, experiment, {"mlflow.parentRunId": runs["train"]}, "FINISHED")
    runs["running"] = _simple(client, experiment, {}, None)
    runs["failed"] = _simple(client, experiment, {}, "FAILED")
    runs["deleted"] = _simple(client, experiment, {}, "FINISHED")
    client.delete_run(runs["deleted"])
    runs["table"] = _table(client, client.create_experiment("evals", artifact_location=f"{folder}/mlruns/evals"))
    runs["genai"] = _genai(client.create_experiment("genai", artifact_location=f"{folder}/mlruns/genai"))
    gone = client.create_experiment("gone")
    runs["of_deleted_experiment"] = _simple(client, gone, {}, "FINISHED")
    client.delete_experiment(gone)
    return {"named": runs, "runs": _told(client)}


def _training(client: MlflowClient, experiment: str) -> str:
    run = client.create_run(
        experiment, start_time=START, tags={"mlflow.runName": "first", "site": "north", "mlflow.source.git.commit": "abc123"}
    )
    run_id: str = run.info.run_id
    values = [2.5, math.nan, math.inf, -math.inf, 0.1 + 0.2, 1e-320]
    metrics = [Metric("loss/text", value, START + step, step) for step, value in enumerate(values)]
    metrics += [Metric("loss/text", 2.25, START + 100, 0), Metric("loss/text", 2.125, START + 50, 0)]
    metrics += [Metric("tokens/text", 1000.0 * step, START + step, step) for step in range(4)]
    metrics += [Metric("any double", value, START + at, at) for at, value in enumerate(doubles(400))]
    client.log_batch(
        run_id,
        metrics=metrics,
        params=[
            Param("model", "InternVL3-8B"),
            Param("image_size", "448"),
            Param("model.dtype", "bf16"),
            Param("api_key", "sk-secret"),
            Param("lr", "None"),
        ],
        tags=[RunTag("stage of life", "spring")],
    )
    client.log_inputs(run_id, [DatasetInput(Dataset("laion", "d1", "code", "{}"), [InputTag("mlflow.data.context", "training")])], None)
    model = client.create_logged_model(experiment, name="ckpt", source_run_id=run_id, params={"size": "8B"}, tags={"site": "south"})
    data: dict[str, Any] = {"dataset_name": "hrbench", "dataset_digest": "d2"}
    client.log_metric(run_id, "accuracy", 0.5, START + 7, 10, model_id=model.model_id, **data)
    client.log_metric(run_id, "accuracy", 0.75, START + 8, 20, model_id=model.model_id, **data)
    client.log_metric(run_id, "brier", math.nan, START + 8, 20, model_id=model.model_id)
    client.log_metric(run_id, "gain", math.inf, START + 8, 20, model_id=model.model_id)
    client.set_terminated(run_id, "FINISHED", START + 999)
    return run_id


def _simple(client: MlflowClient, experiment: str, tags: dict[str, str], status: str | None) -> str:
    run_id: str = client.create_run(experiment, start_time=START + 5, tags=tags).info.run_id
    client.log_metric(run_id, "loss", 1.5, START + 6, 1)
    client.log_param(run_id, "model", "small")
    if status is not None:
        client.set_terminated(run_id, status, START + 9)
    return run_id


def _table(client: MlflowClient, experiment: str) -> str:
    run_id: str = client.create_run(experiment, start_time=START).info.run_id
    client.log_param(run_id, "model_name", "Qwen2.5-VL-7B")
    client.log_param(run_id, "benchmark", "colours")
    client.log_table(run_id, TABLE, "eval/eval_results.json")
    client.log_table(run_id, pd.DataFrame({"a": [1, 2], "b": [3, 4]}), "confusion.json")
    client.log_metric(run_id, "exact_match", 0.5, START, 0)
    client.log_metric(run_id, "exact_match", 0.25, START + 1, 0)
    client.set_terminated(run_id, "FINISHED", START + 9)
    return run_id


def _genai(experiment: str) -> str:
    mlflow.set_experiment(experiment_id=experiment)

    @scorer
    def exact_match(outputs: str, expectations: dict[str, str]) -> bool:
        return outputs == expectations["expected_response"]

    @scorer
    def length(outputs: str) -> int:
        return len(outputs or "")

    @scorer
    def polite(outputs: str) -> Feedback:
        return Feedback(value="no" if outputs == "x" else "yes", source=AssessmentSource("LLM_JUDGE", "judge"))

    @mlflow.trace(span_type="CHAT_MODEL")
    def answer(question: str) -> str:
        if question == "boom":
            message = "no answer"
            raise ValueError(message)
        span = mlflow.get_current_active_span()
        if span is not None:  # the function is tried once without tracing
            span.set_attribute("mlflow.chat.tokenUsage", {"input_tokens": 12, "output_tokens": 3, "total_tokens": 15})
            span.set_attribute("mlflow.llm.model", "gpt-oss-20b")
        return "Paris" if "France" in question else "x"

    asked = ("Capital of France?", "Paris"), ("Capital of Spain?", "Madrid"), ("boom", "Rome")
    data = [{"inputs": {"question": question}, "expectations": {"expected_response": gold}} for question, gold in asked]
    done = mlflow.genai.evaluate(data=data, predict_fn=answer, scorers=[exact_match, length, polite])
    mlflow.flush_trace_async_logging()
    return str(done.run_id)


def _told(client: MlflowClient) -> dict[str, Any]:
    told: dict[str, Any] = {}
    for experiment in client.search_experiments(view_type=ViewType.ALL):
        for run in client.search_runs([experiment.experiment_id], run_view_type=ViewType.ALL):
            told[run.info.run_id] = {
                "name": run.info.run_name,
                "experiment": experiment.name,
                "status": run.info.status,
                "start": run.info.start_time,
                "end": run.info.end_time,
                "params": run.data.params,
                "tags": run.data.tags,
                "latest": {name: repr(value) for name, value in run.data.metrics.items()},
                "datasets": [[one.dataset.name, one.dataset.digest] for one in (run.inputs.dataset_inputs if run.inputs else [])],
                "points": [
                    [name, point.step, point.timestamp, repr(float(point.value))]
                    for name in run.data.metrics
                    for point in client.get_metric_history(run.info.run_id, name)
                ],
            }
    return told


if __name__ == "__main__":
    os.chdir(sys.argv[2])
    json.dump(write(sys.argv[1], sys.argv[2]), sys.stdout)
