"""Legacy MLflow file stores: what the real client writes, real folders, damage."""

from __future__ import annotations

import math
import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.conftest import samples
from tests.readers.mlflow_check import filled, history, same
from tests.readers.mlflow_fill import EXPERIMENT, LONG, START
from tracker.errors import InputError
from tracker.readers.base import Folder
from tracker.readers.mlflow import files
from tracker.readers.mlflow.file_run import run_of
from tracker.readers.mlflow.metric_lines import OddLine, Point, metric_points
from tracker.readers.mlflow.model import DELETED, MlflowRun
from tracker.study import Study

if TYPE_CHECKING:
    from tracker.batch import Source

RUN = "0123456789abcdef0123456789abcdef"


def found(root: Path, study: Study | None = None) -> list[Source]:
    """Every source below a folder, each file offered once."""
    sources: list[Source] = []
    claimed: set[Path] = set()
    for folder, folders, names in sorted(os.walk(root.resolve())):
        offered = [name for name in sorted(names) if Path(folder) / name not in claimed]
        some = files.find(Folder(Path(folder), offered, sorted(folders)), study or Study.empty())
        claimed.update(path for source in some for path in (*source.files, *source.claims))
        sources += some
    return sources


def run_below(root: Path) -> MlflowRun:
    """The only run below a folder."""
    (source,) = found(root)
    return run_of(source)


def made(root: Path, **contents: str | bytes) -> Path:
    """A store with one run; contents by path in the run's folder, '__' for '/'."""
    run = root / "mlruns" / "1" / RUN
    meta = (
        f"artifact_uri: x\nend_time: 1700000001000\nexperiment_id: '1'\nrun_id: {RUN}\nrun_name: r\nstart_time: 1700000000000\nstatus: 3\n"
    )
    told: dict[str, str | bytes] = {"meta.yaml": meta, "params/lr": "0.1", "metrics/loss": "1700000000000 0.5 0\n"}
    for name, content in (told | {name.replace("__", "/"): content for name, content in contents.items()}).items():
        path = run / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    (run.parent / "meta.yaml").write_text("artifact_location: x\nexperiment_id: '1'\nlifecycle_stage: active\nname: first\n")
    return root


# ---- the real writer --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A store that the real client filled, and what the client reads back."""
    root = tmp_path_factory.mktemp("store") / "mlruns"
    return root, filled(root.as_uri(), MLFLOW_ALLOW_FILE_STORE="true")


def test_every_run_is_what_the_client_reads(store: tuple[Path, dict[str, Any]]) -> None:
    root, told = store
    runs = {run.run_id: run for run in map(run_of, found(root))}
    assert runs.keys() == told["runs"].keys()
    for run_id, run in runs.items():
        # The client itself loses the step of values that are linked to a data set.
        known = {"linked": [[1, START, 0.7]], "model acc": history(run.points).get("model acc", [])}
        same(run, told["runs"][run_id], **known)
        assert run.refusals == []
    assert history(runs[told["ids"]["FINISHED"]].points)["model acc"][0] == [7, START, 0.9]


def test_sources_say_experiment_time_and_what_is_deleted(store: tuple[Path, dict[str, Any]]) -> None:
    root, told = store
    by_id = {source.mapping["run"]: source for source in found(root)}
    ids = told["ids"]
    assert {name for name, run in ids.items() if run in by_id and by_id[run].left_out == DELETED} == {"deleted", "of deleted experiment"}
    finished = by_id[ids["FINISHED"]]
    assert finished.experiment == EXPERIMENT
    assert finished.time is not None
    assert round(finished.time.timestamp() * 1000) == START + 99_999
    assert by_id[ids["RUNNING"]].time is None
    assert finished.uri == str(root.resolve() / finished.uri.split("/")[-3] / ids["FINISHED"] / "meta.yaml")


def test_points_of_one_step_are_numbered_by_time(store: tuple[Path, dict[str, Any]]) -> None:
    root, told = store
    run = next(run_of(source) for source in found(root) if source.mapping["run"] == told["ids"]["FINISHED"])
    rows = [row for row in run.points.to_pylist() if row["metric"] == "val/acc top"]
    assert [(row["step"], row["seq"], row["value"]) for row in rows] == [(2, 0, 0.5), (2, 1, 0.25), (2, 2, 0.75)]
    specials = [(row["value"], row["special"]) for row in run.points.to_pylist() if row["metric"] == "odd"]
    assert specials == [(None, "nan"), (None, "inf"), (None, "-inf"), (1e-300, None)]


def test_models_belong_to_the_runs_that_made_or_measured_them(store: tuple[Path, dict[str, Any]]) -> None:
    root, told = store
    runs = {source.mapping["run"]: run_of(source) for source in found(root)}
    (own,) = runs[told["ids"]["FINISHED"]].models
    (measured,) = runs[told["ids"]["FAILED"]].models
    assert (own.model_id, own.name, own.status, own.params, own.tags) == (
        told["ids"]["model"],
        "net",
        "READY",
        {"depth": "12"},
        {"stage": "final"},
    )
    assert [(one["step"], one["dataset_digest"]) for one in own.metrics] == [(7, "d3c6ce3d"), (8, None)]
    assert math.isnan(own.metrics[1]["value"])
    assert [(one["step"], one["value"], one["dataset_name"]) for one in measured.metrics] == [(9, 0.8, "hrbench")]
    assert runs[told["ids"]["child"]].models == []


def test_tables_are_found_by_tag_and_by_columns(store: tuple[Path, dict[str, Any]]) -> None:
    root, told = store
    run = next(run_of(source) for source in found(root) if source.mapping["run"] == told["ids"]["FINISHED"])
    assert [(one.path, one.is_table) for one in run.tables] == [("tables/eval_results.json", True), ("more/answers.csv", False)]
    assert b'"q2"' in run.tables[0].load()


def test_traces_of_a_run_are_whole(store: tuple[Path, dict[str, Any]]) -> None:
    root, told = store
    run = next(run_of(source) for source in found(root) if source.mapping["run"] == told["ids"]["RUNNING"])
    asked = sorted(run.traces, key=lambda one: one.request["question"])
    assert [one.request for one in asked] == [{"question": f"what is {number}?"} for number in range(3)]
    assert {one.response for one in asked} == {LONG}
    assert {one.status for one in asked} == {"OK"}
    by_name = [{one["name"]: one for one in trace.assessments} for trace in asked]
    assert [one["correct"]["value"] for one in by_name] == [True, False, True]
    assert by_name[0]["correct"]["rationale"] == "it: is\nso"
    assert by_name[0]["broken"]["error"] == "ValueError: boom: x"
    assert (by_name[0]["expected_response"]["value"], by_name[0]["expected_response"]["expectation"]) == ({"a": [1, "x"]}, True)


def test_nothing_of_a_store_is_left_but_artifacts_of_others(store: tuple[Path, dict[str, Any]]) -> None:
    root, _ = store
    claimed = {path for source in found(root) for path in (*source.files, *source.claims)}
    left = {path.relative_to(root.resolve()) for path in root.resolve().rglob("*") if path.is_file()} - {
        path.relative_to(root.resolve()) for path in claimed
    }
    assert {path.parts[-1] for path in left if "artifacts" in path.parts} == {"config.json"}
    assert {path.as_posix() for path in left if "artifacts" not in path.parts} == {"0/meta.yaml"}  # the default experiment without runs


def test_a_single_run_folder_is_the_same_source(store: tuple[Path, dict[str, Any]]) -> None:
    root, told = store
    whole = next(source for source in found(root) if source.mapping["run"] == told["ids"]["FINISHED"])
    (alone,) = found(Path(whole.uri).parent)
    assert (alone.uri, alone.files, alone.experiment) == (whole.uri, whole.files, whole.experiment)


def test_a_moved_store_keeps_its_tables(store: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    root, told = store
    moved = shutil.copytree(root, tmp_path / "elsewhere")
    run = next(run_of(source) for source in found(moved) if source.mapping["run"] == told["ids"]["FINISHED"])
    assert all(one.file is not None and one.file.is_relative_to(moved.resolve()) for one in run.tables)


def test_links_to_runs_make_no_second_run(tmp_path: Path) -> None:
    made(tmp_path)
    (tmp_path / "mlruns" / "1" / ("f" * 32)).symlink_to(tmp_path / "mlruns" / "1" / RUN)
    assert len(found(tmp_path)) == 1


def test_a_meta_yaml_with_a_run_id_of_something_else_is_no_run(tmp_path: Path) -> None:
    (tmp_path / "params").mkdir()
    (tmp_path / "meta.yaml").write_text("run_id: 7\nmodel: small\nstatus: done\n")
    (tmp_path / "results.jsonl").write_text("{}\n")
    assert found(tmp_path) == []


@pytest.mark.parametrize("keys", ["artifact_uri: x", "lifecycle_stage: active", "experiment_id: '1'\nstatus: 3"])
def test_a_run_is_told_by_a_second_key_of_mlflow(tmp_path: Path, keys: str) -> None:
    (tmp_path / "first").mkdir()
    (tmp_path / "first" / "meta.yaml").write_text(f"{keys}\nrun_uuid: r1\n")
    assert [source.mapping["run"] for source in found(tmp_path)] == ["r1"]


def test_files_of_others_in_the_folder_of_a_run_are_left_to_their_readers(tmp_path: Path) -> None:
    made(tmp_path, **{"results.jsonl": "{}\n", "plots/loss.csv": "step\n1\n", ".DS_Store": "x", "params/.DS_Store": "x"})
    (source,) = found(tmp_path)
    run = Path(source.uri).parent
    assert {str(path.relative_to(run)) for path in source.claims if path.is_relative_to(run)} == {".DS_Store", "params/.DS_Store"}
    assert {str(path.relative_to(run)) for path in source.files if path.is_relative_to(run)} == {"meta.yaml", "metrics/loss", "params/lr"}


def test_the_rule_that_reads_a_table_decides_whether_its_run_changed(tmp_path: Path) -> None:
    table = '{"columns": ["question", "said", "correct"], "data": [["1 + 1?", "2", 1]]}'
    names = {"artifacts/vstar.json": table, "tags/mlflow.loggedArtifacts": '[{"path": "vstar.json", "type": "table"}]'}
    roots = [made(tmp_path / place, **names) for place in ("first", "second")]
    told = []
    for number, column in enumerate(("said", "question")):
        path = tmp_path / f"study{number}.toml"
        path.write_text(
            "[[table]]\nfiles = 'artifacts/(?P<benchmark>\\w+)\\.json$'\n"
            f"columns = {{ question_id = 'question', prediction = '{column}', correct = 'correct' }}\n"
        )
        told.append([source.mapping for root in roots for source in found(root, Study.load(path))])
    assert told[0][0] == told[0][1] != told[1][0] == told[1][1]  # whatever place the store was copied to
    assert [source.mapping for source in found(tmp_path)] == [{"run": RUN}] * 2


# ---- real folders -----------------------------------------------------------------------------


def test_real_image_classification_runs() -> None:
    root = samples("mlflow", "imageclass_filestore")
    sources = found(root)
    assert {source.experiment for source in sources} == {"Fashion_MNIST_Experiment"}
    stages = {path.parent.name: yaml.safe_load(path.read_text())["lifecycle_stage"] for path in root.glob("mlruns/*/*/meta.yaml")}
    assert {source.mapping["run"]: source.left_out for source in sources} == {
        run: DELETED if s == "deleted" else None for run, s in stages.items()
    }
    for source in sources:
        run, folder = run_of(source), Path(source.uri).parent
        assert run.params == {path.name: path.read_text() for path in (folder / "params").iterdir()}
        assert run.tags == {path.name: path.read_text() for path in (folder / "tags").iterdir()}
        lines = {path.name: path.read_text().split() for path in (folder / "metrics").iterdir()}
        assert history(run.points) == {name: [[int(step), int(time), float(value)]] for name, (time, value, step) in lines.items()}
        assert run.refusals == []


def test_real_evaluation_run_with_predictions() -> None:
    run = run_below(samples("mlflow", "groq_eval", "mlruns"))
    assert (run.status, run.experiment) == ("FINISHED", "groq-eval-demo")
    assert run.params.keys() == {"max_tokens", "model", "provider", "temperature"}
    assert set(history(run.points)) == {"contains", "exact_match", "token_f1"}
    assert [one.path for one in run.tables] == ["predictions.csv"]


# ---- metric lines -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "point"),
    [
        (b"1700000000000 0.5\n", Point(1_700_000_000_000, 0.5, 0)),
        (b"1700000000000 0.5 7\r\n", Point(1_700_000_000_000, 0.5, 7)),
        (b"1700000000000 0.5 7.0\n", Point(1_700_000_000_000, 0.5, 7)),
        (b"1700000000000 -inf -3\n", Point(1_700_000_000_000, -math.inf, -3)),
        (b"1700000000000 0.5 1 hr bench v2 d3c6\n", Point(1_700_000_000_000, 0.5, 1, None, "hr bench v2", "d3c6")),
        (b"1700000000000 0.5 1", Point(1_700_000_000_000, 0.5, 1)),
    ],
)
def test_lines_of_every_width(line: bytes, point: Point) -> None:
    assert list(metric_points(line)) == [point]


@pytest.mark.parametrize(
    ("raw", "number", "words"),
    [
        (b"1700000000000\n", 1, "found 1 field"),
        (b"1700000000000 0.5 1 half\n", 1, "found 4 fields"),
        (b"1 0.5 0\nx 0.5 1\n", 2, "a time in milliseconds"),
        (b"1 0.5 0\n1 half 1\n", 2, "a number as value"),
        (b"1 0.5 0\n1 1_0 1\n", 2, "a number as value"),
        (b"1 0.5 0\n1 0.5 1.5\n", 2, "a whole number as step"),
        (b"1 0.5 0\n1 0.5 99999999999999999999\n", 2, "a whole number as step"),
        (b"1 0.5 10\n1 0.5 1", 2, "cut off"),
        (b"1 0.5 10\n1 0.5", 2, "cut off"),
        (b"1 0.5", 1, "cut off"),
        (b"1 0.5 0\n\0\0\0\0", 2, "field"),
    ],
)
def test_odd_lines_are_refused_with_their_number(raw: bytes, number: int, words: str) -> None:
    (odd,) = (one for one in metric_points(raw) if isinstance(one, OddLine))
    assert odd.line == number
    assert words in odd.reason
    assert sum(isinstance(one, Point) for one in metric_points(raw)) == number - 1


# ---- damage -----------------------------------------------------------------------------------


def test_a_bad_metric_line_costs_only_itself(tmp_path: Path) -> None:
    run = run_below(made(tmp_path, metrics__loss="1700000000000 0.5 0\n1700000000001\n1700000000002 0.3 2\n"))
    assert history(run.points) == {"loss": [[0, 1_700_000_000_000, 0.5], [2, 1_700_000_000_002, 0.3]]}
    (refusal,) = run.refusals
    assert (Path(refusal.file).name, refusal.line, refusal.text) == ("loss", 2, "1700000000001")


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("params__lr", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "Git LFS"),
        ("params__lr", b"caf\xe9", "not UTF-8"),
        ("metrics__loss", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "Git LFS"),
        ("metrics__loss", b"", "empty"),
        ("meta.yaml", b"", "empty"),
        ("meta.yaml", b"run_id: 'x", "quoted scalar"),
        ("meta.yaml", b"\xff\xfer\0u\0n\0", "UTF-16"),
        ("meta.yaml", b"run_id\n", "expected keys and values"),
        ("inputs__9__meta.yaml", b"source_type: DATASET\nsource_id: nowhere\n", "not in the store"),
    ],
)
def test_a_damaged_file_is_refused_and_the_rest_goes_in(tmp_path: Path, name: str, content: bytes, words: str) -> None:
    run = run_below(made(tmp_path, params__other="kept", **{name: content}))
    assert run.params["other"] == "kept"
    (refusal,) = run.refusals
    assert words in refusal.reason
    assert name.replace("__", "/") in refusal.file
    assert (run.partial is not None) == (name == "meta.yaml")


def test_a_run_that_lost_its_meta_is_partial(tmp_path: Path) -> None:
    made(tmp_path)
    (tmp_path / "mlruns" / "1" / RUN / "meta.yaml").unlink()
    run = run_below(tmp_path)
    assert (run.run_id, run.params) == (RUN, {"lr": "0.1"})
    assert run.partial == "its meta.yaml cannot be read"


def test_a_run_of_which_nothing_is_left_is_an_error(tmp_path: Path) -> None:
    folder = made(tmp_path) / "mlruns" / "1" / RUN
    shutil.rmtree(folder / "params")
    shutil.rmtree(folder / "metrics")
    (folder / "meta.yaml").write_text(f"run_id: {RUN}\nstatus: 3\nrun_name: 'x")
    with pytest.raises(InputError, match="quoted scalar"):
        run_below(tmp_path)


def test_odd_values_of_meta(tmp_path: Path) -> None:
    odd = f"experiment_id: 1\nrun_uuid: {RUN}\nstatus: 17\nstart_time: soon\nend_time: null\n"
    run = run_below(made(tmp_path, **{"meta.yaml": odd}))
    assert (run.status, run.start_ms, run.end_ms, run.experiment_id) == ("RUNNING", None, None, "1")
    assert "17" in run.refusals[0].reason


def test_files_of_the_file_system_are_no_params(tmp_path: Path) -> None:
    run = run_below(made(tmp_path, params__dot="x", **{"params__.DS_Store": b"\0\0\1Bud1", "metrics__._loss": b"\0\5"}))
    assert run.params == {"lr": "0.1", "dot": "x"}
    assert run.refusals == []


def test_a_store_cut_anywhere_never_raises_anything_else(tmp_path: Path) -> None:
    root = made(tmp_path, tags__note="two\nlines", metrics__acc="1700000000000 0.5 0\n1700000000001 nan 1\n")
    for path in sorted(path for path in root.rglob("*") if path.is_file()):
        whole = path.read_bytes()
        for size in range(0, len(whole), 3):
            path.write_bytes(whole[:size])
            for source in found(root):
                with suppress(InputError):
                    run_of(source)
        path.write_bytes(whole)
    assert run_below(root).refusals == []


def test_an_empty_folder_of_artifacts_does_not_hide_where_they_are(tmp_path: Path) -> None:
    from tracker.readers.mlflow.files import tables_of

    run, elsewhere = tmp_path / "mlruns" / "1" / ("a" * 32), tmp_path / "store" / "artifacts"
    (run / "artifacts").mkdir(parents=True)
    elsewhere.mkdir(parents=True)
    (elsewhere / "eval.json").write_text('{"columns": ["question", "outputs", "correct"], "data": [["1 + 1?", "2", true]]}')
    (found,) = tables_of(run, elsewhere.as_uri(), tmp_path / "mlruns")
    assert found.file == elsewhere / "eval.json"
