"""How an MLflow run is mapped, from whatever store it comes: header, curves, tables, traces."""

from __future__ import annotations

import json
import math
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracker.batch import METRIC_POINTS, Batch, Refusal, Source
from tracker.errors import InputError
from tracker.readers import delimited
from tracker.readers.base import Folder
from tracker.readers.mlflow import READER, grading, mapping, tables, texts, traces
from tracker.readers.mlflow.artifacts import Places, candidates, logged_tables, tables_in
from tracker.readers.mlflow.model import Artifact, LoggedModel, MlflowRun, Trace
from tracker.readers.mlflow.points import points_table
from tracker.readers.mlflow.store import address_of
from tracker.study import Study

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SOURCE = Source(reader="mlflow", uri="sqlite:////data/mlflow.db/experiments/sweep/runs/r1", files=())
BIGGEST = 1.7976931348623157e308


def run(**given: Any) -> MlflowRun:
    return MlflowRun(**{"run_id": "r1", "experiment_id": "0", "experiment": "sweep"} | given)


def read(one: MlflowRun, study: Study | None = None) -> tuple[list[Batch], list[Refusal]]:
    parts = list(mapping.batches(one, SOURCE, study or Study.empty()))
    return [part for part in parts if isinstance(part, Batch)], [part for part in parts if isinstance(part, Refusal)]


def records(batches: list[Batch]) -> list[dict[str, Any]]:
    return [row for batch in batches for row in batch.records.to_pylist()]


def questions(batches: list[Batch]) -> list[dict[str, Any]]:
    return [row for batch in batches if batch.questions is not None for row in batch.questions.to_pylist()]


def further(batches: list[Batch]) -> list[tuple[int, str, float]]:
    told = [row for batch in batches if batch.record_scores is not None for row in batch.record_scores.to_pylist()]
    return [(row["row"], row["scorer"], row["score"]) for row in told]


def artifact(name: str, content: Any) -> Artifact:
    raw = content if isinstance(content, bytes) else json.dumps(content).encode()
    return Artifact(path=name, load=lambda: raw, is_table=True)


def split(**columns: list[Any]) -> dict[str, Any]:
    return {"columns": list(columns), "data": [list(row) for row in zip(*columns.values(), strict=True)]}


# ---- the header --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "tags", "model"),
    [
        ({"model": "a", "model_name": "b"}, {}, "a"),
        ({"model": "a"}, {"model": "b"}, "b"),
        ({"model": "None", "pretrained": "org/c"}, {}, "org/c"),
        ({"_name_or_path": "org/d"}, {"mlflow.runName": "run-17"}, "org/d"),
        ({"epochs": "3"}, {"mlflow.runName": "run-17"}, "sweep"),
        ({"model": "  "}, {}, "sweep"),
    ],
)
def test_the_model_is_what_tags_and_params_call_it_and_never_the_run_name(params: Any, tags: Any, model: str) -> None:
    (batch,), _ = read(run(params=params, tags=tags))
    assert batch.run.model == model


@pytest.mark.parametrize(
    ("told", "kind"),
    [
        ({"kind": "eval"}, "evaluation"), ({"stage": "Testing"}, "evaluation"), ({"job_type": "vlm_eval"}, "evaluation"),
        ({"mlflow.runType": "genai_evaluate"}, "evaluation"), ({"phase": "pre-train"}, "training"), ({"stage": "pretraining"}, "training"),
        ({"stage": "production"}, "training"), ({"kind": "none", "run_type": "evaluation"}, "evaluation"), ({}, "training"),
    ],
)  # fmt: skip
def test_what_a_run_does(told: dict[str, str], kind: str) -> None:
    (batch,), _ = read(run(tags=told))
    assert batch.run.kind == kind
    held = {name: value for name, value in told.items() if not name.startswith("mlflow.")}
    (batch,), _ = read(run(params=held, tags={name: value for name, value in told.items() if name not in held}))
    assert batch.run.kind == kind


@pytest.mark.parametrize(
    ("status", "partial", "expected"),
    [
        ("FINISHED", None, ("finished", None)),
        ("FINISHED", "metrics/loss is cut off", ("partial", "metrics/loss is cut off")),
        ("RUNNING", None, ("partial", "still running")),
        ("SCHEDULED", None, ("partial", "not begun")),
        ("FAILED", "metrics/loss is cut off", ("failed", "failed")),
        ("KILLED", None, ("failed", "killed")),
        ("PAUSED", None, ("partial", "status PAUSED")),
    ],
)
def test_status(status: str, partial: str | None, expected: tuple[str, str | None]) -> None:
    (batch,), _ = read(run(status=status, partial=partial))
    assert (batch.run.status, batch.run.status_reason) == expected


def test_times_are_exact_to_the_millisecond() -> None:
    (batch,), _ = read(run(start_ms=1_766_802_533_277, end_ms=-5))
    assert batch.run.started_at == datetime(2025, 12, 27, 2, 28, 53, 277_000, tzinfo=UTC)
    assert batch.run.ended_at is None


def test_nothing_that_gives_access_is_kept() -> None:
    params = {"api_key": "sk-1", "hf.token": "hf-2", "max_tokens": "256", "tokenizer": "bpe", "store": "https://me:pw3@host/x"}
    tags = {"OPENAI_API_KEY": "sk-4", "mlflow.source.git.repoURL": "https://x-token:ghp-5@github.com/a/b"}
    (batch,), _ = read(run(params=params, tags=tags))
    shown = batch.run.model_dump_json()
    assert not [secret for secret in ("sk-1", "hf-2", "pw3", "sk-4", "ghp-5") if secret in shown]
    assert (batch.run.settings["params"]["max_tokens"], batch.run.settings["params"]["tokenizer"]) == ("256", "bpe")
    assert batch.run.settings["git_repository"] == "https://***@github.com/a/b"


def test_the_configuration_is_found_in_params_and_tags() -> None:
    params = {
        "model.torch_dtype": "torch.bfloat16",
        "processor/max_pixels": "1003520",
        "n_shot": "0",
        "resolution": "None",
        "max_tokens": "64.0",
    }
    (batch,), _ = read(run(params=params, tags={"image_size": "448"}))
    told = batch.run.configuration.model_dump(exclude_none=True)
    assert told == {"precision": "bfloat16", "pixel_cap": 1003520, "few_shot": 0, "max_new_tokens": 64, "input_size": 448}


def test_the_study_decides_on_the_kind_and_gives_fields(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(
        """
        [[path]]
        pattern = 'experiments/(?P<benchmark>[^/]+)/runs/'
        kind = "evaluation"
        [[config]]
        key = "params.net"
        to = "model"
        """
    )
    study = Study.load(tmp_path / "study.toml")
    points = points_table(["acc", "acc"], [0, 1], [1, 2], [0.5, 0.75])
    (batch,), _ = read(run(points=points, params={"net": "vit"}), study)
    header = study.apply(batch.run, SOURCE)
    assert (header.kind, header.benchmark, header.model) == ("evaluation", "sweep", "vit")
    assert [(one.metric, one.value, one.step) for one in batch.scores] == [("acc", 0.75, 1)]  # an evaluation run's last values are scores


def test_scores_of_logged_models_count_the_last_step_and_tell_models_of_one_name_apart() -> None:
    def model(model_id: str, name: str, *metrics: tuple[str, float, int]) -> LoggedModel:
        told = [{"name": metric, "value": value, "step": step, "timestamp": step} for metric, value, step in metrics]
        return LoggedModel(model_id=model_id, name=name, metrics=told)

    models = [
        model("m-1", "net", ("acc", 0.1, 1), ("acc", 0.2, 2)),
        model("m-2", "net", ("acc", math.nan, 3)),
        model("m-3", "other", ("acc", 0.4, 4)),
    ]
    (batch,), _ = read(run(models=models))
    assert [(one.metric, one.value, one.special, one.step) for one in batch.scores] == [
        ("acc|model=m-1", 0.2, None, 2), ("acc|model=m-2", None, "nan", 3), ("acc|model=other", 0.4, None, 4),
    ]  # fmt: skip


# ---- curves --------------------------------------------------------------------------------------

FLOATS = st.floats(allow_nan=True, allow_infinity=True, width=64)
POINTS = st.lists(st.tuples(st.sampled_from(["loss", "acc", "tokens", "ü/µ"]), st.integers(-5, 5), st.integers(0, 9), FLOATS), max_size=40)


@given(POINTS)
def test_points_are_ordered_numbered_and_complete(points: list[tuple[str, int, int, float]]) -> None:
    table = points_table([one[0] for one in points], [one[1] for one in points], [one[2] for one in points], [one[3] for one in points])
    assert table.schema == METRIC_POINTS
    rows = table.to_pylist()
    assert [(row["metric"], row["step"]) for row in rows] == sorted((name, step) for name, step, _, _ in points)
    expected = sorted(points, key=lambda one: (*one[:3], 0.0 if math.isnan(one[3]) else one[3]))  # stable: equals stay in order
    assert [_told(row) for row in rows] == [repr(one[3]) for one in expected]
    assert [round(row["logged_at"].timestamp() * 1000) for row in rows] == [one[2] for one in expected]
    for name, step in {(row["metric"], row["step"]) for row in rows}:
        places = [row["seq"] for row in rows if (row["metric"], row["step"]) == (name, step)]
        assert places == list(range(len(places)))


def _told(row: dict[str, Any]) -> str:
    return repr(row["value"] if row["special"] is None else float(row["special"]))


@given(POINTS)
def test_token_counts_stand_beside_the_points_of_their_step(points: list[tuple[str, int, int, float]]) -> None:
    rows = points_table(*map(list, zip(*points, strict=True))).to_pylist() if points else []
    counted = {row["step"]: row["value"] for row in rows if row["metric"] == "tokens" and row["value"] is not None and row["value"] >= 0}
    for row in rows:
        assert row["tokens"] == (None if row["metric"] == "tokens" else counted.get(row["step"]))


def test_names_of_token_and_flop_counts() -> None:
    names = ["train/loss", "loss/text", "loss/image", "train/num_tokens", "tokens/text", "total_flos"]
    rows = points_table(names, [1] * 6, [0] * 6, [2.0, 2.1, 2.2, 100.0, 70.0, 1e20]).to_pylist()
    told = {row["metric"]: (row["tokens"], row["flops"]) for row in rows}
    assert told["train/loss"] == (100.0, 1e20)
    assert told["loss/text"] == (70.0, 1e20)  # tokens/text goes before the run's total
    assert told["loss/image"] == (100.0, 1e20)
    assert told["tokens/text"] == (None, 1e20)
    assert told["total_flos"] == (100.0, None)


@pytest.mark.parametrize(
    ("time", "expected"), [(0, 0), (-1, None), (253_402_300_800_000, None), (2**63 - 1, None), (1_780_000_000_123, 1_780_000_000_123)]
)
def test_times_that_are_none_are_null(time: int, expected: int | None) -> None:
    (row,) = points_table(["loss"], [2**63 - 1], [time], [1.0]).to_pylist()
    assert row["step"] == 2**63 - 1
    assert (None if row["logged_at"] is None else round(row["logged_at"].timestamp() * 1000)) == expected


SCHEMA = """
    CREATE TABLE alembic_version (version_num VARCHAR(32));
    CREATE TABLE experiments (experiment_id INTEGER, name VARCHAR(256));
    CREATE TABLE runs (run_uuid VARCHAR(32), name VARCHAR(250), status VARCHAR(20), start_time BIGINT, end_time BIGINT, experiment_id INTEGER);
    CREATE TABLE metrics (key VARCHAR(250), value FLOAT, timestamp BIGINT, run_uuid VARCHAR(32), step BIGINT, is_nan BOOLEAN);
    CREATE TABLE latest_metrics (key VARCHAR(250), value FLOAT, timestamp BIGINT, run_uuid VARCHAR(32));
    CREATE TABLE params (key VARCHAR(250), value VARCHAR(250), run_uuid VARCHAR(32));
    CREATE TABLE tags (key VARCHAR(250), value VARCHAR(250), run_uuid VARCHAR(32));
    INSERT INTO experiments VALUES (0, 'Default');
    INSERT INTO runs VALUES ('r1', '', 'FINISHED', 1500000000000, 1500000001000, 0);
"""


def stored(value: float) -> tuple[float, int]:
    """A value as MLflow's database stores write it."""
    if math.isnan(value):
        return 0.0, 1
    return (math.copysign(BIGGEST, value), 0) if math.isinf(value) else (value, 0)


@settings(max_examples=60, deadline=None)
@given(st.lists(FLOATS.filter(lambda one: abs(one) != BIGGEST), min_size=1, max_size=30))
def test_any_double_comes_back_from_a_database(tmp_path_factory: pytest.TempPathFactory, values: list[float]) -> None:
    path = tmp_path_factory.mktemp("doubles") / "mlflow.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(SCHEMA)
        connection.executemany(
            "INSERT INTO metrics VALUES ('v', ?, ?, 'r1', ?, ?)",
            [(stored(one)[0], at, at, stored(one)[1]) for at, one in enumerate(values)],
        )
    (source,) = READER.find(Folder(path.parent, [path.name]), Study.empty())
    (batch,) = READER.read(source, Study.empty())
    assert isinstance(batch, Batch)
    assert batch.metric_points is not None
    found = [_told(row) for row in batch.metric_points.to_pylist()]
    assert found == [repr(one or 0.0) for one in values]  # SQLite keeps no sign of zero


# ---- evaluation tables -----------------------------------------------------------------------------


def test_a_table_is_read_by_the_names_that_people_use() -> None:
    table = split(
        Question=["Which?", "How many?"], choices=[["red", "blue"], ["1", "2"]], prediction=["A", "B"], ground_truth=["A", "A"],
        is_correct=["yes", "no"], f1=[0.5, 0.25], category=["colour", "count"], split=["test", "test"], note=["x", "y"], token_count=[3, 4],
    )  # fmt: skip
    batches, refusals = read(run(tables=[artifact("eval_results.json", table)], params={"benchmark": "b"}))
    assert not refusals
    assert [(row["correct"], row["score"], row["prediction"], row["generated_tokens"]) for row in records(batches)] == [
        (True, 1.0, "A", 3), (False, 0.0, "B", 4),
    ]  # fmt: skip
    assert [(row["text"], json.loads(row["options"]), row["gold"], row["category"]) for row in questions(batches)] == [
        ("Which?", ["red", "blue"], "A", "colour"), ("How many?", ["1", "2"], "A", "count"),
    ]  # fmt: skip
    assert further(batches) == [(0, "f1", 0.5), (1, "f1", 0.25)]
    header = batches[-1].run
    assert (header.settings["split"], header.settings["columns_not_kept"]) == ("test", ["note"])
    assert (header.kind, header.benchmark) == ("evaluation", "b")


@pytest.mark.parametrize(
    ("columns", "rule", "correct", "scores"),
    [
        ({"exact_match/v1/score": [1, 0]}, "exact_match/v1/score", [True, False], [1.0, 0.0]),
        ({"accuracy": [1.0, 0.5]}, "accuracy", [None, None], [1.0, 0.5]),
        ({"score": [0.25, None]}, "score", [None, None], [0.25, None]),
        ({"score": [4, 5]}, None, [None, None], [None, None]),  # a rating is no credit
        ({"correct": [None, True], "score": [0.5, 0.5]}, "correct", [None, True], [None, 1.0]),
        ({"match": ["maybe", "yes"], "acc": ["True", "False"]}, "acc", [True, False], [1.0, 0.0]),
        ({"bleu_score": [0.5, 0.4]}, None, [None, None], [None, None]),
    ],
)
def test_which_column_is_the_credit(columns: dict[str, list[Any]], rule: str | None, correct: list[Any], scores: list[Any]) -> None:
    table = split(question=["q1", "q2"], outputs=["a", "b"], **columns)
    batches, _ = read(run(tables=[artifact("t.json", table)]))
    told = records(batches)
    assert ([row["correct"] for row in told], [row["score"] for row in told]) == (correct, scores)
    assert {row["score_rule"] for row in told} == {rule}


def test_a_score_of_another_kind_than_those_of_the_first_rows_is_a_number_or_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first piece of a file decides how a column is read; what comes later may not fit it."""
    monkeypatch.setattr(delimited, "CHUNK_ROWS", 2)
    path = tmp_path / "t.csv"
    path.write_text(
        "question,correct,depth\n"
        + "".join(
            f"q{n},{correct},{depth}\n"
            for n, (correct, depth) in enumerate([("yes", 3), ("no", 4), ("0.5", 5), ("maybe", 6), ("yes", "deep"), ("", "n/a")])
        )
    )
    table = Artifact(path="t.csv", load=path.read_bytes, file=path, uri=str(path))
    batches, refusals = read(run(tables=[table]))
    assert [(row["correct"], row["score"]) for row in records(batches)] == [
        (True, 1),
        (False, 0),
        (None, 0.5),
        (None, None),
        (True, 1),
        (None, None),
    ]
    assert [value for _, name, value in further(batches) if name == "depth"] == [3, 4, 5, 6]
    assert [one.line for one in refusals] == [5, 6]
    assert "correct is 'maybe'" in refusals[0].reason
    assert "depth is 'deep'" in refusals[1].reason


def test_predictions_are_never_compared_with_gold_by_guess() -> None:
    table = split(prompt=["2+2?"], reference=["4"], prediction=["2 + 2 = 4."])
    batches, _ = read(run(tables=[artifact("predictions.json", table)]))
    assert [(row["correct"], row["score"], row["prediction"]) for row in records(batches)] == [(None, None, "2 + 2 = 4.")]


def test_ids_of_the_table_are_keys_and_bare_positions_are_told_apart() -> None:
    table = split(question=["a", "b"], id=["x7", 8], correct=[1, 0])
    batches, _ = read(run(tables=[artifact("t.json", table)]))
    assert [row["question_key"] for row in records(batches)] == ["x7", "mlflow:8"]
    table = split(question=["a", "b"], index=[11, 12], correct=[1, 0])
    batches, _ = read(run(tables=[artifact("t.json", table)], params={"benchmark": "HRBench4K"}))
    assert [row["question_key"] for row in records(batches)] == ["11", "12"]  # the data set's own ids


def _parquet(columns: dict[str, list[Any]]) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


COLUMNS: dict[str, list[Any]] = {"question": ["q1", "q2"], "outputs": ["a", "b"], "correct": [True, False]}
FORMS: dict[str, Callable[[], tuple[str, Any]]] = {
    "split": lambda: ("t.json", split(**COLUMNS)),
    "columns": lambda: ("t.json", COLUMNS),
    "columns by row number": lambda: ("t.json", {name: dict(enumerate(cells)) for name, cells in COLUMNS.items()}),
    "rows": lambda: ("t.json", [dict(zip(COLUMNS, row, strict=True)) for row in zip(*COLUMNS.values(), strict=True)]),
    "parquet": lambda: ("t.parquet", _parquet(COLUMNS)),
    "csv": lambda: ("t.csv", b"question,outputs,correct\r\nq1,a,True\r\nq2,b,False\r\n"),
    "tsv": lambda: ("t.tsv", b"question\toutputs\tcorrect\nq1\ta\tTrue\nq2\tb\tFalse\n"),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_table(form: str) -> None:
    batches, refusals = read(run(tables=[artifact(*FORMS[form]())]))
    assert not refusals
    assert [(row["correct"], row["response"]) for row in records(batches)] == [(True, "a"), (False, "b")]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "empty file"),
        (b'{"columns": ["question", "correct"], "data": [["a"', "cut off"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 9\n", "git lfs pull"),
        (b"\xff\xfe{\x00", "UTF-16"),
        (b'"text"', "expected a table"),
        (b"[1, 2]", "expected a table"),
    ],
)
def test_a_damaged_table_is_refused_and_the_run_goes_in(content: bytes, expected: str) -> None:
    points = points_table(["loss"], [0], [0], [1.0])
    batches, refusals = read(run(points=points, tables=[artifact("t.json", content)]))
    assert [one.metric_points.num_rows for one in batches if one.metric_points is not None] == [1]
    assert len(refusals) == 1
    assert expected.lower() in refusals[0].reason.lower()
    assert refusals[0].file.endswith("/artifacts/t.json")


def test_bad_rows_are_refused_alone() -> None:
    table = {"columns": ["question", "correct"], "data": [["a", True], ["b"], 5, ["c", False], [None, True], ["d", None]]}
    batches, refusals = read(run(tables=[artifact("t.json", table)]))
    assert [row["correct"] for row in records(batches)] == [True, False, None]
    assert [one.line for one in refusals] == [2, 3, 5]
    assert all("expected" in one.reason for one in refusals)


def test_tables_without_questions_stay_in_settings() -> None:
    tables_ = [artifact("confusion.json", split(a=[1], b=[2])), artifact("t.json", split(question=["q"], correct=[1]))]
    batches, refusals = read(run(tables=tables_))
    assert not refusals
    assert batches[0].run.settings["tables_without_questions"] == ["confusion.json"]
    (batch,), _ = read(run(tables=tables_[:1]))
    assert (batch.run.kind, batch.records.num_rows) == ("training", 0)


def test_several_tables_of_one_run_are_runs_of_their_own() -> None:
    tables_ = [artifact(f"eval/{name}.json", split(question=["q"], correct=[1])) for name in ("seen", "unseen")]
    batches, _ = read(run(tables=tables_))
    assert {one.run.benchmark: one.records.num_rows for one in batches} == {"seen": 1, "unseen": 1}
    batches, _ = read(run(tables=tables_, params={"benchmark": "hr"}))
    assert [one.run.benchmark for one in batches] == ["hr/seen", "hr/seen", "hr/unseen"]


def test_a_rule_of_the_study_decides_on_a_table(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(
        """
        [[table]]
        files = 'artifacts/(?P<benchmark>\\w+)_answers\\.json$'
        max_tiles = 6
        answers = "text"
        columns = { question_id = ["doc", "nr"], prediction = "said", gold = "truth", options = "offered" }
        """
    )
    study = Study.load(tmp_path / "study.toml")
    table = split(doc=["d", "d"], nr=[1, 2], said=["red", "two"], truth=["red", "one"], offered=[["red", "blue"], ["one", "two"]])
    batches, refusals = read(run(tables=[artifact("vstar_answers.json", table)], params={"model": "m"}), study)
    assert not refusals
    assert [(row["question_key"], row["correct"]) for row in records(batches)] == [("d/1", True), ("d/2", False)]
    assert {(one.run.model, one.run.benchmark, one.run.configuration.max_tiles) for one in batches} == {("m", "vstar", 6)}


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["question", "correct"], True),
        (["inputs", "outputs"], True),
        (["id", "prediction", "exact_match"], True),
        (["question_id", "score"], True),
        (["epoch", "loss", "accuracy"], False),
        (["id", "score"], False),
        (["index", "accuracy"], False),
        (["model", "benchmark", "question_id", "correct"], False),  # the native table has its own reader
        ([], False),
    ],
)
def test_which_tables_are_evaluation_tables(names: list[str], expected: bool) -> None:
    assert tables.is_credible(names) == expected


# ---- artifacts -------------------------------------------------------------------------------------


def test_tables_among_artifacts_are_found_by_the_tag_and_by_what_they_hold(tmp_path: Path) -> None:
    (tmp_path / "eval").mkdir()
    for name, content in {
        "eval/results.json": json.dumps(split(question=["a"], correct=[1])),
        "named.json": json.dumps({"question": ["a"]}),
        "config.json": json.dumps({"columns": 3}),
        "predictions.csv": "prompt,reference,prediction\na,b,c\n",
        "history.csv": "epoch,loss\n1,2\n",
        "model.bin": "question,correct\n",
    }.items():
        (tmp_path / name).write_text(content)
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 and no more")
    logged = json.dumps(
        [{"path": "named.json", "type": "table"}, {"path": "../../etc/passwd", "type": "table"}, {"path": "x", "type": "image"}, 7]
    )
    assert [(one.path, one.is_table) for one in tables_in(tmp_path, logged)] == [
        ("named.json", True), ("predictions.csv", False), ("eval/results.json", False),
    ]  # fmt: skip
    assert logged_tables("no json") == logged_tables('{"path": 1}') == logged_tables(None) == []


@pytest.mark.parametrize(
    ("uri", "place"),
    [
        ("{root}/store/mlruns/1/r1/artifacts", "store/mlruns/1/r1/artifacts"),
        ("file://{root}/store/mlruns/1/r1/artifacts", "store/mlruns/1/r1/artifacts"),
        ("./mlruns/1/r1/artifacts", "store/mlruns/1/r1/artifacts"),
        ("/gone/elsewhere/mlruns/1/r1/artifacts", "store/mlruns/1/r1/artifacts"),
        ("file:C:/work/mlruns/1/r1/artifacts", "store/mlruns/1/r1/artifacts"),
        ("C:\\work\\mlruns\\1\\r1\\artifacts", "store/mlruns/1/r1/artifacts"),
        ("mlflow-artifacts:/1/r1/artifacts", "store/mlartifacts/1/r1/artifacts"),
        ("mlflow-artifacts://host:5000/1/r1/artifacts", "store/mlartifacts/1/r1/artifacts"),
        ("/gone/named%20so/1/r1/artifacts", None),
        ("s3://bucket/mlruns/1/r1/artifacts", None),
        ("", None),
        ("artifacts", None),
    ],
)
def test_where_artifacts_are(tmp_path: Path, uri: str, place: str | None) -> None:
    made = (tmp_path / place) if place else tmp_path / "store"
    made.mkdir(parents=True)
    found = Places(tmp_path / "store").folder(uri.format(root=tmp_path))
    assert found == (made if place else None)
    assert candidates("", tmp_path, 4) == []


# ---- traces ----------------------------------------------------------------------------------------


def trace(number: int, *assessments: dict[str, Any], **given: Any) -> Trace:
    told: dict[str, Any] = {
        "trace_id": f"tr-{number}",
        "request": {"question": f"q{number}"},
        "response": "yes",
        "status": "OK",
        "timestamp_ms": number,
    }
    return Trace(**told | given, assessments=list(assessments))


def said(name: str, value: Any, source: str = "CODE", **given: Any) -> dict[str, Any]:
    return {"name": name, "value": value, "source_type": source, "expectation": False, "valid": True} | given


@pytest.mark.parametrize(
    ("assessments", "primary"),
    [
        ([said("exact_match", True), said("correctness", "yes", "LLM_JUDGE")], "exact_match"),
        ([said("length", 5), said("correctness", "yes", "LLM_JUDGE")], "correctness"),
        ([said("is_short", True), said("correctness", "yes", "LLM_JUDGE")], "correctness"),
        ([said("is_short", True), said("polite", "no", "LLM_JUDGE")], "is_short"),
        ([said("polite", "no", "LLM_JUDGE"), said("good", True, "HUMAN")], "good"),
        ([said("relevance", 0.5), said("length", 7)], "relevance"),
        ([said("length", 7)], None),
        ([said("accuracy", 0.5), said("polite", "yes")], "accuracy"),
        ([], None),
    ],
)
def test_which_assessment_is_the_credit(assessments: list[dict[str, Any]], primary: str | None) -> None:
    assert traces.primary_of([trace(1, *assessments)])[0] == primary
    batches, _ = read(run(traces=[trace(1, *assessments)]))
    (record,) = records(batches)
    rule = record["score_rule"]
    assert (rule.partition(" ")[0] if rule else None) == primary
    assert {scorer for _, scorer, _ in further(batches)} == {one["name"] for one in assessments} - {primary}


def test_one_assessment_is_primary_for_the_whole_run() -> None:
    made = [trace(1, said("correct", True), said("judge", "yes", "LLM_JUDGE")), trace(2, said("judge", "yes", "LLM_JUDGE")), trace(3)]
    batches, _ = read(run(traces=made))
    assert [(row["correct"], row["score_rule"]) for row in records(batches)] == [(True, "correct (CODE)"), (None, None), (None, None)]


def test_overridden_assessments_and_traces_of_judges_do_not_count() -> None:
    made = [
        trace(1, said("correct", False, valid=False), said("correct", True, "HUMAN")),
        trace(2, said("correct", False), tags={"mlflow.trace.sourceScorer": "judge"}),
    ]
    batches, _ = read(run(traces=made))
    assert [(row["correct"], row["score_rule"]) for row in records(batches)] == [(True, "correct (HUMAN)")]
    (batch,), _ = read(run(traces=made[1:]))
    assert (batch.run.kind, batch.records.num_rows) == ("training", 0)


def test_gold_tokens_time_and_key_of_a_trace() -> None:
    expectation = {"name": "expected_response", "value": {"answer": "Paris"}, "expectation": True}
    facts = {"name": "expected_facts", "value": ["a"], "expectation": True}
    usage = {"mlflow.trace.tokenUsage": '{"input_tokens": 12, "output_tokens": -3}'}
    request = {"messages": [{"role": "system", "content": "x"}, {"role": "user", "content": [{"type": "text", "text": "Where?"}]}]}
    one = trace(
        1,
        expectation,
        facts,
        metadata=usage,
        duration_ms=1500,
        request=request,
        response={"choices": [{"message": {"role": "a", "content": "P"}}]},
    )
    two = trace(2, facts, request='{"question_id": 17, "question": "Why?"}', response=None, status="TraceStatus.ERROR", duration_ms=-1)
    batches, refusals = read(run(traces=[one, two], datasets=[{"name": "geo"}]))
    assert not refusals
    first, second = records(batches)
    assert (first["response"], first["prompt_tokens"], first["generated_tokens"], first["latency_s"]) == ("P", 12, None, 1.5)
    assert (second["question_key"], second["status"], second["latency_s"], second["response"]) == ("mlflow:17", "failed", None, None)
    assert [(row["text"], row["gold"]) for row in questions(batches)] == [("Where?", "Paris"), ("Why?", "a")]
    assert {one.run.benchmark for one in batches} == {"geo"}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("plain", "plain"), ('{"question": "a", "context": "b"}', "a"), ({"Question": "a"}, "a"), ({"q": "only"}, "only"), ({"a": 1, "b": 2}, '{"a":1,"b":2}'),
        ({"request": {"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}]}}, "hi"),
        ([{"role": "user", "content": "one"}, {"role": "user", "content": "two"}], "two"), (["x"], "x"), (["x", "y"], '["x","y"]'),
        (5, "5"), (None, None), ("", None), ({}, None), ([], None), ('{"cut', '{"cut'), ({"question": {"question": {"question": {"question": {"a": 1}}}}}, '{"a":1}'),
    ],
)  # fmt: skip
def test_the_text_of_a_question(value: Any, expected: str | None) -> None:
    assert texts.asked(value) == expected


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | FLOATS | st.text(),
    lambda one: st.lists(one) | st.dictionaries(st.text(), one),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None)
@given(JSON, JSON, JSON, st.sampled_from(["OK", "ERROR", None, 3]))
def test_a_trace_of_any_shape_is_a_record_or_a_refusal(request: Any, response: Any, value: Any, status: Any) -> None:
    made = [
        trace(
            1,
            said("correct", value),
            {"value": value},
            {"name": "e", "value": value, "expectation": True},
            request=request,
            response=response,
            status=status,
        )
    ]
    batches, refusals = read(run(traces=made))
    assert len(records(batches)) + len(refusals) == 1


@settings(max_examples=150, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(["question", "id", "outputs", "correct", "score", "options", "token_count", "x"]),
        st.lists(JSON, min_size=3, max_size=3),
    )
)
def test_a_table_of_any_cells_ends_in_records_and_refusals(columns: dict[str, list[Any]]) -> None:
    batches, refusals = read(run(tables=[artifact("t.json", split(**columns))]))
    assert batches
    credible = tables.is_credible(columns)
    assert len(records(batches)) + len(refusals) >= (3 if credible else 0)


# ---- scores and addresses ----------------------------------------------------------------------------


def test_kinds_of_scores() -> None:
    assert grading.kind_of("x", ["yes", "No", None, ""]) == "truth"
    assert grading.kind_of("x", [0, 0.5, math.nan]) == "share"
    assert grading.kind_of("rouge_l", [0.1, 0.2]) == "number"
    assert grading.kind_of("x", [1, 2]) == "number"
    assert grading.kind_of("x", ["a"]) is None
    assert grading.kind_of("x", [None]) is None
    assert grading.rank("Exact Match/v1/score") == grading.rank("exact_match")


@pytest.mark.parametrize(
    ("address", "shown", "url"),
    [
        (
            "postgresql+psycopg://me:s3cret@host:5433/runs?sslmode=require&password=also",
            "postgresql://host:5433/runs?sslmode=require",
            "s3cret",
        ),
        ("postgres://me@host/runs", "postgresql://host/runs", "me@host"),
        ("postgresql://me:p%40w@/runs?host=/run/pg", "postgresql:///runs?host=/run/pg", "p%40w"),
        ("sqlite:////data/mlflow.db", "sqlite:////data/mlflow.db", "/data/mlflow.db"),
        ("sqlite:////data/mlflow.db?timeout=5", "sqlite:////data/mlflow.db", "/data/mlflow.db"),
    ],
)
def test_addresses_show_neither_login_nor_password(address: str, shown: str, url: str) -> None:
    found = address_of(address)
    assert found == shown
    assert repr(found) == repr(shown)
    assert url in found.url


def test_a_relative_database_is_named_by_its_whole_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert address_of("sqlite:///mlflow.db") == f"sqlite:///{tmp_path.resolve()}/mlflow.db"


def test_an_artifact_that_cannot_be_loaded_is_refused() -> None:
    def load() -> bytes:
        message = "server answers 503"
        raise InputError(message, where="http://host", hint="try again")

    batches, refusals = read(run(tables=[Artifact(path="t.json", load=load, is_table=True)]))
    assert len(batches) == 1
    assert [one.reason for one in refusals] == ["server answers 503 (try again)"]


@pytest.mark.parametrize(
    ("values", "last"), [((0.2, 0.9, 0.5), 0.9), ((0.9, 0.2), 0.9), ((0.5, float("nan")), 0.5), ((-1.0, float("nan")), None)]
)
def test_of_points_of_one_step_and_time_the_highest_is_the_last_as_for_mlflow(values: tuple[float, ...], last: float | None) -> None:
    """MLflow's latest value is the highest of (step, time, value), NaN being 0 to it."""
    rows = points_table(["acc"] * len(values), [3] * len(values), [7] * len(values), list(values)).to_pylist()
    assert [row["seq"] for row in rows] == list(range(len(values)))
    assert rows[-1]["value"] == last
