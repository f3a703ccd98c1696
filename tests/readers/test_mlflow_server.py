"""MLflow tracking servers: a real one against the real client, and servers that misbehave."""

from __future__ import annotations

import base64
import gzip
import http.client
import json
import math
import os
import pickle
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.readers.mlflow_check import filled, history, same
from tests.readers.mlflow_fill import EXPERIMENT, LONG, START
from tests.readers.mlflow_server import odd_server, tracking_server
from tracker.errors import InputError
from tracker.readers.base import Selection
from tracker.readers.mlflow import http_client, server, server_files, server_runs
from tracker.readers.mlflow.http_client import BrokenError, Client, GoneError, server_address
from tracker.readers.mlflow.model import DELETED, MlflowRun
from tracker.study import Study

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.readers.mlflow_server import Asked
    from tracker.batch import Source

RUN = "0123456789abcdef0123456789abcdef"
Answer = tuple[int, Any, dict[str, str]]


def found(address: str, **selected: Any) -> list[Source]:
    """The sources of a server."""
    return server.find(address, Study.empty(), Selection(**selected))


def runs_of(sources: list[Source]) -> dict[str, MlflowRun]:
    """Runs by id; each must be there."""
    made = {}
    for source, run in server.runs(sources, Study.empty()):
        assert isinstance(run, MlflowRun), run
        assert run.run_id == source.mapping["run"]
        made[run.run_id] = run
    return made


def changed(address: str, path: str, body: dict[str, Any]) -> None:
    """Change something on a server."""
    connection = http.client.HTTPConnection(address.removeprefix("http://"))
    connection.request("POST", f"/api/2.0/mlflow/{path}", json.dumps(body).encode(), {"Content-Type": "application/json"})
    assert connection.getresponse().read() == b"{}"
    connection.close()


# ---- a real server ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, dict[str, Any]]]:
    """A server on a SQLite store that the real client filled through it, and what the client reads back."""
    with tracking_server(tmp_path_factory.mktemp("server")) as address:
        yield address, filled(address)


def test_every_run_is_what_the_client_reads(real: tuple[str, dict[str, Any]]) -> None:
    address, told = real
    runs = runs_of(found(address))
    assert runs.keys() == told["runs"].keys()
    for run_id, run in runs.items():
        same(run, told["runs"][run_id])
        assert run.refusals == []
    specials = [(row["value"], row["special"]) for row in runs[told["ids"]["FINISHED"]].points.to_pylist() if row["metric"] == "odd"]
    assert specials == [(None, "nan"), (None, "inf"), (None, "-inf"), (1e-300, None)]


@pytest.mark.parametrize("page", [2, 4])
def test_many_pages_give_the_same(real: tuple[str, dict[str, Any]], monkeypatch: pytest.MonkeyPatch, page: int) -> None:
    address, told = real
    monkeypatch.setattr(server, "RUNS_PER_PAGE", page)
    monkeypatch.setattr(server_runs, "HISTORY_PAGE", page)
    monkeypatch.setattr(server_runs, "CHUNK_RUNS", page)
    runs = runs_of(found(address))
    assert runs.keys() == told["runs"].keys()
    for run_id, run in runs.items():
        same(run, told["runs"][run_id])


def test_histories_one_by_one_give_the_same(real: tuple[str, dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    address, told = real
    monkeypatch.setattr(server_runs, "BULK", "/nowhere")
    for run_id, run in runs_of(found(address)).items():
        same(run, told["runs"][run_id])


def test_sources_say_experiment_time_and_what_is_deleted(real: tuple[str, dict[str, Any]]) -> None:
    address, told = real
    by_id = {source.mapping["run"]: source for source in found(address)}
    ids = told["ids"]
    assert {name for name, run in ids.items() if run in by_id and by_id[run].left_out == DELETED} == {"deleted", "of deleted experiment"}
    finished = by_id[ids["FINISHED"]]
    assert (finished.experiment, finished.files) == (EXPERIMENT, ())
    assert finished.time == datetime.fromtimestamp((START + 99_999) / 1000, tz=UTC)
    assert by_id[ids["RUNNING"]].time is None
    assert finished.uri == f"{address}/#/experiments/{finished.mapping['experiment']}/runs/{ids['FINISHED']}"


def test_experiments_and_times_are_selected(real: tuple[str, dict[str, Any]]) -> None:
    address, told = real
    ids = told["ids"]
    assert [source.mapping["run"] for source in found(address, experiments=("second",))] == [ids["second"]]
    later = datetime.fromtimestamp((START + 50_000) / 1000, tz=UTC)
    assert {ids["FINISHED"], ids["FAILED"], ids["RUNNING"]} <= {source.mapping["run"] for source in found(address, since=later)}
    assert ids["child"] not in {source.mapping["run"] for source in found(address, since=later)}


def test_an_address_of_the_browser_is_one_experiment_or_run(real: tuple[str, dict[str, Any]]) -> None:
    address, told = real
    source = next(source for source in found(address) if source.mapping["run"] == told["ids"]["FAILED"])
    assert found(source.uri) == [source]
    experiment = found(f"{address}/#/experiments/{source.mapping['experiment']}")
    assert source in experiment
    assert {one.experiment for one in experiment} == {EXPERIMENT}


def test_content_changes_with_the_run_alone(real: tuple[str, dict[str, Any]]) -> None:
    address, told = real
    before = {source.mapping["run"]: source.content for source in found(address)}
    assert {source.mapping["run"]: source.content for source in found(address)} == before
    body = {"run_id": told["ids"]["second"], "key": "later", "value": "x"}
    changed(address, "runs/set-tag", body)
    told["runs"][told["ids"]["second"]]["tags"]["later"] = "x"
    after = {source.mapping["run"]: source.content for source in found(address)}
    assert {run for run in before if before[run] != after[run]} == {told["ids"]["second"]}


def test_models_belong_to_the_runs_that_made_or_measured_them(real: tuple[str, dict[str, Any]]) -> None:
    address, told = real
    runs = runs_of(found(address))
    (own,) = runs[told["ids"]["FINISHED"]].models
    (measured,) = runs[told["ids"]["FAILED"]].models
    assert (own.model_id, own.name, own.status, own.params, own.tags) == (
        told["ids"]["model"],
        "net",
        "READY",
        {"depth": "12"},
        {"stage": "final"},
    )
    values = {one["step"]: (one["value"], one["dataset_digest"]) for one in own.metrics}
    assert values[7] == (0.9, "d3c6ce3d")
    assert math.isnan(values[8][0])  # the server says 0
    assert [(one["step"], one["value"], one["dataset_name"]) for one in measured.metrics] == [(9, 0.8, "hrbench")]


def test_tables_are_found_by_tag_and_by_columns(real: tuple[str, dict[str, Any]]) -> None:
    address, told = real
    run = runs_of(found(address))[told["ids"]["FINISHED"]]
    assert [(one.path, one.is_table) for one in run.tables] == [("tables/eval_results.json", True), ("more/answers.csv", False)]
    table = json.loads(run.tables[0].load())
    assert table["data"][1] == ["q2", "3+3?", "7", False]
    assert run.tables[1].load().splitlines()[0] == b"question_id,question,prediction,correct"


def test_traces_of_a_run_are_whole(real: tuple[str, dict[str, Any]]) -> None:
    address, told = real
    runs = runs_of(found(address))
    asked = sorted(runs[told["ids"]["RUNNING"]].traces, key=lambda one: one.request["question"])
    assert [one.request for one in asked] == [{"question": f"what is {number}?"} for number in range(3)]
    assert {one.response for one in asked} == {LONG}
    by_name = [{one["name"]: one for one in trace.assessments} for trace in asked]
    assert [one["correct"]["value"] for one in by_name] == [True, False, True]
    assert by_name[0]["broken"]["error"] == "ValueError: boom: x"
    assert (by_name[0]["expected_response"]["value"], by_name[0]["expected_response"]["expectation"]) == ({"a": [1, "x"]}, True)
    assert runs[told["ids"]["FINISHED"]].traces == []


def test_an_evaluation_of_traces_that_were_made_elsewhere(real: tuple[str, dict[str, Any]]) -> None:
    address, told = real
    ids = told["ids"]
    traces = [trace.trace_id for trace in runs_of(found(address))[ids["RUNNING"]].traces][:2]
    changed(address, "runs/set-tag", {"run_id": ids["child"], "key": "mlflow.runType", "value": "genai_evaluate"})
    told["runs"][ids["child"]]["tags"]["mlflow.runType"] = "genai_evaluate"
    before = {source.mapping["run"]: source.content for source in found(address)}
    changed(address, "traces/link-to-run", {"run_id": ids["child"], "trace_ids": traces})
    after = {source.mapping["run"]: source.content for source in found(address)}
    assert {run for run in after if before[run] != after[run]} == {ids["child"]}
    assert [trace.trace_id for trace in runs_of(found(address))[ids["child"]].traces] == traces


def test_a_run_that_is_gone_is_an_error_of_its_own(real: tuple[str, dict[str, Any]]) -> None:
    address, told = real
    source = next(source for source in found(address) if source.mapping["run"] == told["ids"]["child"])
    gone = type(source)(reader="mlflow", uri=f"{address}/#/x", files=(), mapping=source.mapping | {"run": RUN}, group=source.group)
    (_, one), (_, other) = server.runs([gone, source], Study.empty())
    assert isinstance(one, InputError)
    assert isinstance(other, MlflowRun)


def test_a_server_on_a_file_store_is_read_too(tmp_path: Path) -> None:
    store = tmp_path / "mlruns"
    told = filled(store.as_uri(), MLFLOW_ALLOW_FILE_STORE="true")
    with tracking_server(tmp_path, store.as_uri()) as address:
        runs = runs_of(found(address))
    assert runs.keys() == told["runs"].keys()
    for run_id, run in runs.items():
        same(run, told["runs"][run_id])  # with the steps that MLflow loses in such stores


# ---- servers that misbehave -------------------------------------------------------------------


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_client, "BACKOFF_S", 0.01)
    for name in ("USERNAME", "PASSWORD", "TOKEN", "INSECURE_TLS"):
        monkeypatch.delenv(f"MLFLOW_TRACKING_{name}", raising=False)


def ordinary(asked: Asked) -> Answer:
    """An old server with one run: it knows nothing of models, traces, bulk histories and artifacts."""
    path = asked.path.partition("?")[0]
    if path.endswith("experiments/search"):
        return 200, {"experiments": [{"experiment_id": "1", "name": "first", "lifecycle_stage": "active"}]}, {}
    if path.endswith("runs/search"):
        info = {"run_id": RUN, "experiment_id": "1", "status": "FINISHED", "start_time": "1700000000000", "end_time": "1700000001000"}
        metrics = [{"key": "loss", "value": 0.5, "timestamp": "1700000000000", "step": "3"}]
        return 200, {"runs": [{"info": info, "data": {"metrics": metrics, "params": [{"key": "lr", "value": "0.1"}]}}]}, {}
    if path.endswith("metrics/get-history"):
        assert "max_results=" in asked.path
        points = [
            {"key": "loss", "value": 0.75, "timestamp": "1600000000000", "step": "2"},
            {"key": "loss", "value": 0.5, "timestamp": 1_700_000_000_000, "step": 3},
        ]
        return 200, {"metrics": points}, {}
    return 404, b"<!doctype html><title>404 Not Found</title>", {"Content-Type": "text/html"}


def test_an_old_server_only_lacks_what_it_does_not_know() -> None:
    with odd_server(ordinary) as odd:
        run = runs_of(found(odd.address))[RUN]
    assert run.params == {"lr": "0.1"}
    assert history(run.points) == {"loss": [[2, 1_600_000_000_000, 0.75], [3, 1_700_000_000_000, 0.5]]}
    assert (run.models, run.traces, run.tables, run.refusals) == ([], [], [], [])


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504, None])
def test_a_busy_server_is_asked_again(status: int | None) -> None:
    failures = {"left": 2}

    def answer(asked: Asked) -> Answer | None:
        if asked.path.endswith("runs/search") and failures["left"]:
            failures["left"] -= 1
            return None if status is None else (status, b"busy", {"Retry-After": "0"})
        return ordinary(asked)

    with odd_server(answer) as odd:
        assert [source.mapping["run"] for source in found(odd.address)] == [RUN]
    assert failures["left"] == 0


def test_an_answer_that_breaks_off_is_asked_for_again() -> None:
    failures = {"left": 1}

    def answer(asked: Asked) -> Answer:
        status, body, headers = ordinary(asked)
        if asked.path.endswith("runs/search") and failures["left"]:
            failures["left"] -= 1
            return status, json.dumps(body).encode()[:40], {"Content-Length": "500", "Connection": "close"}
        return status, body, headers

    with odd_server(answer) as odd:
        assert [source.mapping["run"] for source in found(odd.address)] == [RUN]


def test_a_server_that_stays_broken_is_an_error_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "3")
    with odd_server(lambda _: (503, {"error_code": "TEMPORARILY_UNAVAILABLE", "message": "the\ndatabase is away"}, {})) as odd:
        with pytest.raises(InputError, match=r"HTTP 503 the database is away \(4 times\)") as caught:
            found(odd.address)
        assert len(odd.asked) == 4
    assert "\n" not in str(caught.value)


def test_pages_that_do_not_end_are_an_error() -> None:
    def answer(asked: Asked) -> Answer:
        status, body, headers = ordinary(asked)
        return status, body | {"next_page_token": "again"} if asked.path.endswith("runs/search") else body, headers

    with odd_server(answer) as odd, pytest.raises(InputError, match="pages do not end"):
        found(odd.address)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ((200, b"<html><body>Sign in</body></html>", {"Content-Type": "text/html"}), "a web page instead of JSON"),
        ((200, b'{"experiments": [', {}), "more JSON"),
        ((200, b"[]", {}), "a JSON object"),
        ((200, {"experiments": 3}, {}), "a list"),
        ((401, b"no", {}), "MLFLOW_TRACKING_USERNAME"),
        ((403, {"message": "not for you"}, {}), "not for you"),
        ((302, b"", {"Location": "https://user:secret@login.example/x"}), "leads to https://login.example"),
        ((400, {"message": "bad"}, {}), "HTTP 400 bad"),
        ((404, b"<html></html>", {}), "HTTP 404"),
    ],
)
def test_other_answers_are_errors_that_say_what_to_do(answer: Answer, words: str) -> None:
    with odd_server(lambda _: answer) as odd, pytest.raises(InputError) as caught:
        found(odd.address)
    assert words in str(caught.value)
    assert "secret" not in str(caught.value)


def test_nobody_listens() -> None:
    with odd_server(ordinary) as odd:
        address = odd.address
    with pytest.raises(GoneError, match="cannot be reached"):
        found(address)


def test_a_server_that_goes_away_stops_the_reading_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")
    with odd_server(ordinary) as odd:
        sources = found(odd.address)
    with pytest.raises(GoneError):
        list(server.read_many(sources, Study.empty()))


def test_one_broken_history_costs_only_its_run() -> None:
    def answer(asked: Asked) -> Answer:
        return (500, {"message": "boom"}, {"Retry-After": "0"}) if "get-history" in asked.path else ordinary(asked)

    with odd_server(answer) as odd:
        sources = found(odd.address)
        ((_, items),) = list(server.read_many(sources, Study.empty()))
        with pytest.raises(OSError, match="boom"):  # so that the next ingest tries again
            list(items)


@pytest.mark.parametrize(
    "points",
    [
        [],
        [{"key": "loss", "value": 0.75, "timestamp": 1_600_000_000_000, "step": 2}],
    ],
)
def test_a_history_without_the_latest_value_is_said(points: list[dict[str, Any]]) -> None:
    def answer(asked: Asked) -> Answer:
        return (200, {"metrics": points}, {}) if "get-history" in asked.path else ordinary(asked)

    with odd_server(answer) as odd:
        run = runs_of(found(odd.address))[RUN]
    assert history(run.points)["loss"][-1] == [3, 1_700_000_000_000, 0.5]
    (refusal,) = run.refusals
    assert "lacks the metric's latest value" in refusal.reason


def test_artifacts_that_cannot_be_listed_are_refused_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_runs, "THREADS", 1)
    tag = [{"key": "mlflow.loggedArtifacts", "value": '[{"path": "t.json", "type": "table"}]'}]

    def answer(asked: Asked) -> Answer:
        if asked.path.endswith("runs/search"):
            info = {"experiment_id": "1", "status": "FINISHED", "start_time": 1, "end_time": 2}
            told = [{"info": info | {"run_id": f"{n:032x}", "artifact_uri": f"s3://bucket/{n}"}, "data": {"tags": tag}} for n in range(5)]
            return 200, {"runs": told}, {}
        if "artifacts/list" in asked.path:
            return 500, {"message": "no module boto3"}, {"Retry-After": "0"}
        return ordinary(asked)

    with odd_server(answer) as odd:
        runs = runs_of(found(odd.address))
        assert sum("artifacts/list" in one.path for one in odd.asked) == 2  # once, and once again
        with pytest.raises(InputError, match="HTTP 404"):
            runs[f"{0:032x}"].tables[0].load()
    assert [len(run.refusals) for run in runs.values()] == [1, 0, 0, 0, 0]
    assert "no module boto3" in runs[f"{0:032x}"].refusals[0].reason
    assert all([one.path for one in run.tables] == ["t.json"] for run in runs.values())


def test_values_of_every_spelling() -> None:
    spelled = ['"NaN"', "NaN", '"Infinity"', "-Infinity", "1.7976931348623157e+308", '"0.25"', "null", '"x"']

    def answer(asked: Asked) -> Answer:
        if "get-history" in asked.path:
            points = ",".join(f'{{"key": "loss", "value": {value}, "timestamp": {at}, "step": {at}}}' for at, value in enumerate(spelled))
            last = '{"key": "loss", "value": 0.5, "timestamp": 1700000000000, "step": 3}'
            return 200, f'{{"metrics": [{points}, {last}]}}'.encode(), {}
        return ordinary(asked)

    with odd_server(answer) as odd:
        run = runs_of(found(odd.address))[RUN]
    values = {step: value for step, time, value in history(run.points)["loss"] if time < 1000}
    assert repr(values) == repr({0: math.nan, 1: math.nan, 2: math.inf, 3: -math.inf, 4: math.inf, 5: 0.25})
    assert len(run.refusals) == 2


def test_the_rules_for_tables_decide_whether_runs_changed(tmp_path: Path) -> None:
    told = []
    with odd_server(ordinary) as odd:
        for column in ("said", "said", "answer"):
            path = tmp_path / "study.toml"
            path.write_text(f"[[table]]\nfiles = 'x'\ncolumns = {{ question_id = 'id', prediction = '{column}', gold = 'gold' }}\n")
            (source,) = server.find(odd.address, Study.load(path), Selection())
            told.append(source.mapping)
        (source,) = found(odd.address)
    assert told[0] == told[1] != told[2]
    assert source.mapping == {"run": RUN, "experiment": "1"}


def with_artifacts(told: dict[str, bytes], *, parts: bool, tag: str = "[]") -> Callable[[Asked], Answer]:
    """A server whose run has artifacts, and that gives parts of them if asked to."""

    def answer(asked: Asked) -> Answer:
        path, _, query = asked.path.partition("?")
        if path.endswith("artifacts/list"):
            return 200, {"files": [{"path": name, "is_dir": False, "file_size": len(raw)} for name, raw in told.items()]}, {}
        if path.endswith("get-artifact"):
            raw = told[parse_qs(query)["path"][0]]
            wanted = asked.headers.get("Range")
            if parts and wanted:
                return 206, raw[-int(wanted.removeprefix("bytes=-")) :], {}
            return 200, raw, {}
        status, body, headers = ordinary(asked)
        for run in body["runs"] if isinstance(body, dict) and "runs" in body else ():
            run["info"]["artifact_uri"] = "s3://bucket/1"
            run["data"]["tags"] = [{"key": "mlflow.loggedArtifacts", "value": tag}]
        return status, body, headers

    return answer


def parquet(*, rows: int = 10, more: int = 0) -> bytes:
    """An evaluation table with a column of noise, and more columns."""
    columns: dict[str, Any] = {
        "question": [f"q{n}" for n in range(rows)],
        "correct": [True] * rows,
        "noise": [os.urandom(1000) for _ in range(rows)],
    }
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns | {f"column {n}": [0] * rows for n in range(more)}), sink)
    raw: bytes = sink.getvalue().to_pybytes()
    return raw


@pytest.mark.parametrize("more", [0, 1000])
def test_of_a_parquet_file_only_the_end_is_fetched_to_see_its_columns(more: int) -> None:
    raw = parquet(rows=1000, more=more)
    given: list[int] = []
    serve = with_artifacts({"t.parquet": raw}, parts=True)

    def answer(asked: Asked) -> Answer:
        told = serve(asked)
        given.extend([len(told[1])] if "get-artifact" in asked.path else [])
        return told

    with odd_server(answer) as odd:
        run = runs_of(found(odd.address))[RUN]
        assert sum(given) < len(raw) / 2
        assert run.tables[0].load() == raw
    assert ([one.path for one in run.tables], run.refusals) == (["t.parquet"], [])
    assert len(given) == (3 if more else 2)


def test_a_server_that_gives_no_parts_is_asked_for_a_limited_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    small, large = parquet(), parquet(rows=100)
    monkeypatch.setattr(server_files, "LARGEST_LOOK", 50_000)
    with odd_server(with_artifacts({"large.parquet": large, "small.parquet": small}, parts=False)) as odd:
        run = runs_of(found(odd.address))[RUN]
    assert [one.path for one in run.tables] == ["small.parquet"]
    assert [one.file for one in run.refusals] == [f"{odd.address}/#/experiments/1/runs/{RUN}/artifacts/large.parquet"]


def test_a_table_that_a_tag_names_has_a_largest_size_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_files, "LARGEST_TABLE", 20)
    tag = '[{"path": "t.json", "type": "table"}, {"path": "u.json", "type": "table"}]'
    with odd_server(with_artifacts({"t.json": b"x" * 21, "u.json": b"y" * 20}, parts=False, tag=tag)) as odd:
        run = runs_of(found(odd.address))[RUN]
        with pytest.raises(InputError, match="more than"):
            run.tables[0].load()
        assert run.tables[1].load() == b"y" * 20


@pytest.mark.parametrize("size", ["²", "12", 12.0, None, True, "many", -1, [1]])
def test_a_size_of_any_spelling_hides_no_artifact(size: Any) -> None:
    serve = with_artifacts({"t.json": b'{"columns": ["question", "correct"], "data": [["1 + 1?", true]]}'}, parts=False)

    def answer(asked: Asked) -> Answer:
        status, body, headers = serve(asked)
        for one in body["files"] if "artifacts/list" in asked.path else ():
            one["file_size"] = size
        return status, body, headers

    with odd_server(answer) as odd:
        assert [one.path for one in runs_of(found(odd.address))[RUN].tables] == ["t.json"]


@pytest.mark.parametrize("told", ["inf", "nan", "-inf", "many", ""])
def test_settings_of_the_environment_that_are_no_numbers_count_as_not_given(monkeypatch: pytest.MonkeyPatch, told: str) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", told)
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", told)
    with (
        odd_server(lambda asked: (503, {}, {}) if "second" in asked.path else ordinary(asked)) as odd,
        Client(server_address(odd.address)) as client,
    ):
        client.get("/experiments/search")
        with pytest.raises(BrokenError):
            client.get("/second")
        assert len(odd.asked) == 2 + http_client.RETRIES


def test_a_limited_answer_that_breaks_off_is_asked_for_again() -> None:
    cut: list[None] = []

    def answer(_: Asked) -> Answer:
        cut.append(None)
        return 200, b"0123456789", {"Content-Length": "20", "Connection": "close"} if len(cut) < 3 else {}

    with odd_server(answer) as odd, Client(server_address(odd.address)) as client:
        assert client.download("/get-artifact", limit=15) == b"0123456789"
    assert len(cut) == 3


def test_compressed_answers_are_read() -> None:
    def answer(asked: Asked) -> Answer:
        status, body, headers = ordinary(asked)
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return status, gzip.compress(content), headers | {"Content-Encoding": "gzip"}

    with odd_server(answer) as odd:
        assert runs_of(found(odd.address))[RUN].points.num_rows == 2


def test_a_broken_compression_is_an_error_of_the_request_alone() -> None:
    with odd_server(lambda _: (200, b"no gzip", {"Content-Encoding": "gzip"})) as odd, pytest.raises(BrokenError, match="gzip"):
        found(odd.address)


def test_connections_are_kept() -> None:
    with odd_server(ordinary) as odd:
        found(odd.address)
        assert len({one.port for one in odd.asked}) == 1 < len(odd.asked)


def test_the_beginning_of_a_file_is_all_that_is_fetched() -> None:
    whole = gzip.compress(b"0123456789" * 100_000)
    with odd_server(lambda _: (200, whole, {"Content-Encoding": "gzip"})) as odd, Client(server_address(odd.address)) as client:
        assert client.download("/get-artifact", limit=15) == b"012345678901234"
        assert len(client.download("/get-artifact")) == 1_000_000


def test_since_without_filters_on_the_server_takes_all() -> None:
    def answer(asked: Asked) -> Answer:
        if asked.path.endswith("runs/search") and "end_time" in str((asked.body or {}).get("filter")):
            return 400, {"message": "Invalid attribute key 'end_time'"}, {}
        return ordinary(asked)

    with odd_server(answer) as odd:
        assert len(found(odd.address, since=datetime.now(UTC) - timedelta(days=1))) == 1


# ---- credentials ------------------------------------------------------------------------------


def authorization(address: str) -> str | None:
    """What a client of an address sends."""
    return Client(server_address(address))._headers.get("Authorization")


def basic(user: str, password: str) -> str:
    """A basic authorization."""
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def test_logins_come_from_the_address_or_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert authorization("http://host") is None
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", "t0ken")
    assert authorization("http://host") == "Bearer t0ken"
    monkeypatch.setenv("MLFLOW_TRACKING_USERNAME", "name")
    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", "pass")
    assert authorization("http://host") == basic("name", "pass")
    assert authorization("http://me:p%40ss@host") == basic("me", "p@ss")


def test_a_password_is_used_and_never_shown() -> None:
    with odd_server(ordinary) as odd:
        (source,) = found(odd.address.replace("http://", "http://me:hidden@"))
        assert {one.headers["Authorization"] for one in odd.asked} == {basic("me", "hidden")}
        travelled = pickle.loads(pickle.dumps(source))  # noqa: S301 - our own, as on its way to the process that reads it
        assert runs_of([travelled])[RUN].points.num_rows == 2
        assert {one.headers["Authorization"] for one in odd.asked} == {basic("me", "hidden")}
    assert "hidden" not in repr(source)
    with pytest.raises(InputError) as caught:
        found(odd.address.replace("http://", "http://me:hidden@"))
    assert "hidden" not in str(caught.value)


def test_the_port_must_be_a_number() -> None:
    with pytest.raises(InputError, match="no address"):
        found("http://host:port")


def test_a_path_before_the_api_is_kept() -> None:
    with odd_server(ordinary) as odd:
        (source,) = found(f"{odd.address}/mlflow/")
        assert source.uri.startswith(f"{odd.address}/mlflow/#/experiments/1/runs/")
        assert all(one.path.startswith("/mlflow/api/") for one in odd.asked)


def test_a_proxy_of_the_environment_is_asked_with_its_login(monkeypatch: pytest.MonkeyPatch) -> None:
    with odd_server(ordinary) as odd:
        monkeypatch.setenv("http_proxy", odd.address.replace("http://", "http://me:hid%20den@"))
        assert len(found("http://tracking.invalid:5000")) == 1
        assert all(one.path.startswith("http://tracking.invalid:5000/api/") for one in odd.asked)
        assert {one.headers["Proxy-Authorization"] for one in odd.asked} == {basic("me", "hid den")}
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        assert len(found(odd.address)) == 1
    monkeypatch.setenv("http_proxy", "socks9://me:hidden@127.0.0.1:1")
    with pytest.raises(InputError, match="a proxy that cannot be used: socks9://127") as caught:
        found("http://tracking.invalid:5000")
    assert "hidden" not in str(caught.value)


@pytest.mark.parametrize("name", ["SERVER_CERT_PATH", "CLIENT_CERT_PATH"])
def test_certificates_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str) -> None:
    (tmp_path / "cert.pem").write_text("no certificate")
    monkeypatch.setenv(f"MLFLOW_TRACKING_{name}", str(tmp_path / "cert.pem"))
    with pytest.raises(InputError, match="certificate that cannot be read"):
        found("https://127.0.0.1:1")
