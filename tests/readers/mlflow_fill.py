"""Run with the real client: log everything into the store that MLFLOW_TRACKING_URI names, and print what the client reads back.

`python -m tests.readers.mlflow_fill` prints one JSON document (NaN and infinities as bare tokens): {"runs": {id: ...}, "ids": {...}}.
"""

from __future__ import annotations

import json
import logging
import sys
from typing import Any

START = 1_700_000_000_000
EXPERIMENT = "sweep: α #1"
LONG = "a\nb: ü " + "x" * 3000


def main() -> None:
    """Fill, read back, print."""
    logging.disable(logging.WARNING)
    out, sys.stdout = sys.stdout, sys.stderr
    ids = fill()
    print(json.dumps({"ids": ids, "runs": read_back()}), file=out)


def fill() -> dict[str, str]:
    """What a sweep with an evaluation, a failed run, a child, a deleted run and a deleted experiment leaves."""
    import pandas as pd
    from mlflow import MlflowClient
    from mlflow.entities import Dataset, DatasetInput, InputTag, LoggedModelOutput, Metric, Param

    client = MlflowClient()
    experiment = client.create_experiment(EXPERIMENT)
    ids: dict[str, str] = {}
    for number, status in enumerate(("FINISHED", "FAILED", "RUNNING")):
        tags = {"team": "vision", "note": "two\nlines\n"}
        run = client.create_run(experiment, start_time=START + number, run_name=f"run: {number} # x", tags=tags)
        run_id = ids[status] = run.info.run_id
        metrics = [Metric("loss", 1 / (step + 1), START + step * 1000, step) for step in range(25)]
        metrics += [Metric("val/acc top", value, START + at, 2) for at, value in enumerate([0.5, 0.25, 0.75])]
        metrics += [Metric("odd", value, START + at, at) for at, value in enumerate([float("nan"), float("inf"), float("-inf"), 1e-300])]
        metrics += [Metric("before", 3.0, START, -5)]
        params = {"lr": "0.1", "None": "None", "prompt/text": "line 1\nline 2: yes\n\n  indented ", "empty": "", "size": "448"}
        client.log_batch(run_id, metrics=metrics, params=[Param(name, value) for name, value in params.items()])
        dataset = Dataset(name="hr bench", digest="d3c6ce3d", source_type="local", source='{"uri": "x"}')
        client.log_inputs(run_id, [DatasetInput(dataset, [InputTag("mlflow.data.context", "eval")])])
        client.log_batch(run_id, metrics=[Metric("linked", 0.7, START, 1, dataset_name="hrbench", dataset_digest="d3c6ce3d")])
        if status != "RUNNING":
            client.set_terminated(run_id, status, end_time=START + 99_999)
    ids["child"] = client.create_run(
        experiment, start_time=START + 5, tags={"mlflow.parentRunId": ids["FINISHED"]}, run_name="child"
    ).info.run_id
    client.set_terminated(ids["child"], "KILLED", end_time=START + 6)
    ids["deleted"] = client.create_run(experiment, start_time=START + 7, run_name="deleted").info.run_id
    client.log_metric(ids["deleted"], "loss", 1.0)
    client.delete_run(ids["deleted"])
    model = client.create_logged_model(
        experiment, name="net", source_run_id=ids["FINISHED"], params={"depth": "12"}, tags={"stage": "final"}
    )
    ids["model"] = model.model_id
    linked: dict[str, Any] = {"model_id": model.model_id, "dataset_name": "hrbench", "dataset_digest": "d3c6ce3d"}
    client.log_metric(ids["FINISHED"], "model acc", 0.9, timestamp=START, step=7, **linked)
    client.log_metric(ids["FINISHED"], "model acc", float("nan"), timestamp=START + 1, step=8, model_id=model.model_id)
    client.log_metric(ids["FAILED"], "model acc", 0.8, timestamp=START, step=9, **linked)
    client.finalize_logged_model(model.model_id, "READY")
    client.log_outputs(ids["FINISHED"], [LoggedModelOutput(model.model_id, 7)])
    table = pd.DataFrame({"question_id": ["q1", "q2"], "question": ["2+2?", "3+3?"], "prediction": ["4", "7"], "correct": [True, False]})
    client.log_table(ids["FINISHED"], table, "tables/eval_results.json")
    client.log_text(ids["FINISHED"], table.to_csv(index=False), "more/answers.csv")
    client.log_dict(ids["FINISHED"], {"a": 1}, "config.json")
    gone = client.create_experiment("gone")
    ids["of deleted experiment"] = client.create_run(gone, start_time=START).info.run_id
    client.delete_experiment(gone)
    second = client.create_experiment("second")
    ids["second"] = client.create_run(second, start_time=START).info.run_id
    client.log_metric(ids["second"], "loss", 0.5, step=1)
    client.set_terminated(ids["second"], end_time=START + 1)
    trace(ids)
    return ids


def trace(ids: dict[str, str]) -> None:
    """Three questions, each answered and assessed, in the running run."""
    import mlflow
    from mlflow.entities import AssessmentSource

    mlflow.set_experiment(EXPERIMENT)
    code = AssessmentSource("CODE", "exact")
    with mlflow.start_run(run_id=ids["RUNNING"], nested=True):
        for number in range(3):
            with mlflow.start_span("ask") as span:
                span.set_inputs({"question": f"what is {number}?"})
                span.set_outputs(LONG)
            mlflow.flush_trace_async_logging()
            mlflow.log_feedback(trace_id=span.trace_id, name="correct", value=number % 2 == 0, source=code, rationale="it: is\nso")
            mlflow.log_feedback(trace_id=span.trace_id, name="broken", error=ValueError("boom: x"), source=code)
            mlflow.log_expectation(
                trace_id=span.trace_id, name="expected_response", value={"a": [1, "x"]}, source=AssessmentSource("HUMAN", "h")
            )
    mlflow.MlflowClient().update_run(ids["RUNNING"], status="RUNNING")


def read_back() -> dict[str, Any]:
    """Every run as the client reads it."""
    from mlflow import MlflowClient
    from mlflow.entities import ViewType

    client = MlflowClient()
    found = {}
    experiments = {one.experiment_id: one.name for one in client.search_experiments(view_type=ViewType.ALL)}
    for run in client.search_runs(list(experiments), run_view_type=ViewType.ALL):
        points = {
            key: [[point.step, point.timestamp, point.value] for point in client.get_metric_history(run.info.run_id, key)]
            for key in run.data.metrics
        }
        found[run.info.run_id] = {
            "name": run.info.run_name,
            "experiment": experiments[run.info.experiment_id],
            "status": run.info.status,
            "start": run.info.start_time,
            "end": run.info.end_time,
            "stage": run.info.lifecycle_stage,
            "params": run.data.params,
            "tags": run.data.tags,
            "points": points,
            "datasets": [
                [one.dataset.name, one.dataset.digest, one.dataset.source_type] for one in (run.inputs.dataset_inputs if run.inputs else ())
            ],
        }
    return found


if __name__ == "__main__":
    main()
