"""The same run in two places is one run, with both places noted; what is not the same stays apart."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.readers import harness
from tests.readers.harness import INGEST
from tests.readers.vlmevalkit_files import dump, judged, predictions
from tests.readers.vlmevalkit_files import status as status_json
from tracker.batch import Batch
from tracker.errors import InputError
from tracker.ingest.digest import digest
from tracker.readers import reader
from tracker.study import Study

if TYPE_CHECKING:
    from tracker.api import Tracker
    from tracker.batch import Source
    from tracker.ingest.report import IngestReport

FORMATS = sorted(path.name for path in INGEST.iterdir())
LM_EVAL = INGEST / "lm_eval" / "v047_labelled"
RUN = "0123456789abcdef0123456789abcdef"
MODEL = "Qwen2.5-VL-7B-Instruct"


def fill(place: Path, name: str) -> Path:
    """Every fixture folder of a format."""
    for variant in harness.variants(name):
        shutil.copytree(INGEST / name / variant, place / variant)
    return place


def places(store: Tracker) -> list[list[str]]:
    """Where each run was found."""
    return [sorted(uris) for (uris,) in store.sql("select list(uri) from run_sources group by run_id order by run_id").fetchall()]


def runs(store: Tracker) -> int:
    (count,) = store.sql("select count(*) from runs").fetchall()[0]
    return int(count)


def changed(report: IngestReport) -> int:
    """How much an ingest did."""
    return report.new + report.updated + report.duplicate + report.outdated + report.removed + report.records


# ---- folders -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FORMATS)
def test_a_copied_folder_is_the_same_runs_in_two_places(store: Tracker, tmp_path: Path, name: str) -> None:
    alone = store.ingest(fill(tmp_path / "data" / "one", name))
    before = runs(store)
    shutil.copytree(tmp_path / "data" / "one", tmp_path / "data" / "copy" / "deeper")
    both = store.ingest(tmp_path / "data")
    assert before > 0
    assert (both.new, both.updated, both.removed, both.outdated, both.records) == (0, 0, 0, 0, 0)
    assert (both.duplicate, both.unchanged) == (alone.new, alone.new)
    assert runs(store) == before
    (one, copy) = (str((tmp_path / "data" / part).resolve()) for part in ("one", "copy/deeper"))
    assert all([uri.replace(copy, one) for uri in uris] == [uris[-1]] * 2 for uris in places(store))


@pytest.mark.parametrize("name", FORMATS)
def test_equal_digests_mean_equal_reading_whatever_a_folder_is_called(tmp_path: Path, name: str) -> None:
    """A name that is part of what is read (a model's folder) is part of the digest; one that is not, is not."""
    one = reader(name)
    known: dict[str, list[Any]] = {}
    for place, root in enumerate([fill(tmp_path / "first", name), *_renamed(tmp_path, name)]):
        for source in harness.sources(one, root):
            told = _read(source)
            value = digest(source, one, {})
            assert known.setdefault(value, told) == told, f"{place}: {source.uri}"


def _renamed(tmp_path: Path, name: str) -> list[Path]:
    made = []
    inner = sorted(
        {Path(parent).relative_to(INGEST / name) for variant in harness.variants(name) for parent, _, _ in os.walk(INGEST / name / variant)}
    )
    for number, path in enumerate(inner):
        variant, root = path.parts[0], tmp_path / f"renamed-{number}"
        shutil.copytree(INGEST / name / variant, root / variant)
        (root / path).rename((root / path).with_name(f"other-{path.name}"))
        made.append(root)
    return made


def _read(source: Source) -> list[Any]:
    """Whose answers to what a source holds (versions, times and settings may stand in files that are not compared)."""
    try:
        parts = [part for part in reader(source.reader).read(source, Study.empty()) if isinstance(part, Batch)]
    except InputError:
        return []
    return [
        (part.run.model, part.run.benchmark, part.run.kind, part.run.configuration, part.run.status, part.records.to_pylist(), part.scores)
        for part in parts
    ]


def test_a_folder_that_was_moved_keeps_its_runs(store: Tracker, tmp_path: Path) -> None:
    shutil.copytree(LM_EVAL, tmp_path / "old")
    first = store.ingest(tmp_path / "old")
    (tmp_path / "old").rename(tmp_path / "new name")
    second = store.ingest(tmp_path / "new name")
    assert (second.new, second.duplicate, second.records) == (0, first.new, 0)
    assert all([Path(uri).parts[len(tmp_path.resolve().parts)] for uri in uris] == ["new name", "old"] for uris in places(store))


@pytest.mark.parametrize("name", FORMATS)
def test_a_linked_folder_is_no_second_place(store: Tracker, tmp_path: Path, name: str) -> None:
    root = fill(tmp_path / "data" / "real", name)
    (tmp_path / "data" / "link").symlink_to(root, target_is_directory=True)
    report = store.ingest(tmp_path / "data")
    assert report.duplicate == 0
    again = store.ingest(tmp_path / "data" / "link")
    assert (again.unchanged, changed(again)) == (report.new, 0)
    assert {len(uris) for uris in places(store)} == {1}
    assert runs(store) == report.new


@pytest.mark.parametrize("name", FORMATS)
def test_a_folder_that_is_named_twice_is_read_once(store: Tracker, tmp_path: Path, name: str) -> None:
    root = fill(tmp_path / "data" / "real", name)
    (tmp_path / "data" / "link").symlink_to(root, target_is_directory=True)
    report = store.ingest(root.parent, root, root.parent / "link")
    assert report.duplicate == 0
    assert report.sources == store.ingest(root, dry_run=True).sources
    assert {len(uris) for uris in places(store)} == {1}


@pytest.mark.parametrize("name", FORMATS)
def test_linked_files_make_no_second_run(store: Tracker, tmp_path: Path, name: str) -> None:
    """As download caches have them: every file of a folder is a link to one elsewhere."""
    root = fill(tmp_path / "data" / "real", name)
    for path in sorted(root.rglob("*")):
        twin = tmp_path / "data" / "snapshot" / path.relative_to(root)
        if path.is_file():
            twin.parent.mkdir(parents=True, exist_ok=True)
            twin.symlink_to(path)
    alone = store.ingest(root)
    both = store.ingest(tmp_path / "data")
    assert (both.new, both.updated, both.outdated) == (0, 0, 0)
    assert runs(store) == alone.new


def test_two_models_that_answer_alike_stay_apart(store: Tracker, tmp_path: Path) -> None:
    """The same bytes without a results file: the folder's name says whose they are."""
    (samples,) = (INGEST / "lm_eval" / "no_results" / "org__toy").glob("samples_*")
    for model in ("org__toy", "org__twin"):
        (tmp_path / "data" / model).mkdir(parents=True)
        shutil.copy(samples, tmp_path / "data" / model)
    report = store.ingest(tmp_path / "data")
    assert (report.new, report.duplicate) == (2, 0)
    assert store.sql("select model_name from runs order by 1").fetchall() == [("org/toy",), ("org/twin",)]


# ---- copies that are told apart by more than their bytes ----------------------------------------


def test_reused_predictions_of_vlmevalkit_are_one_run(store: Tracker, tmp_path: Path) -> None:
    for eval_id in ("T20260410_Gabcdef12", "T20260411_Gabcdef12"):
        folder = tmp_path / "outputs" / MODEL / eval_id
        told = predictions(3)
        dump(told, folder / f"{MODEL}_MMStar.tsv")
        dump(judged(told, [1, 0, 1]), folder / f"{MODEL}_MMStar_openai_result.tsv")
        status_json(folder, {"MMStar": {"status": "done"}})
    report = store.ingest(tmp_path / "outputs")
    assert (report.new, report.duplicate, runs(store)) == (1, 1, 1)
    assert [len(uris) for uris in places(store)] == [2]


# ---- MLflow --------------------------------------------------------------------------------------


def file_store(root: Path, *, loss: str = "1700000000000 0.5 0\n") -> Path:
    """A file store with one run, which has an evaluation folder among its artifacts."""
    experiment = root / "mlruns" / "1"
    run = experiment / RUN
    told = {
        experiment / "meta.yaml": f"artifact_location: {experiment}\nexperiment_id: '1'\nlifecycle_stage: active\nname: sweep\n",
        run / "meta.yaml": f"artifact_uri: {run}/artifacts\nend_time: 1700000001000\nexperiment_id: '1'\nlifecycle_stage: active\n"
        f"run_id: {RUN}\nrun_name: r\nstart_time: 1700000000000\nstatus: 3\n",
        run / "params" / "model": "small",
        run / "metrics" / "loss": loss,
    }
    for path, content in told.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    return run


def database(path: Path, *, loss: float = 0.5) -> Path:
    """The same run in a database, in the tables that MLflow has."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with sqlite3.connect(path) as connection:
        connection.executescript(
            f"""
            CREATE TABLE alembic_version (version_num VARCHAR(32));
            CREATE TABLE experiments (experiment_id INTEGER PRIMARY KEY, name VARCHAR(256), artifact_location VARCHAR(256), lifecycle_stage VARCHAR(32));
            CREATE TABLE runs (run_uuid VARCHAR(32) PRIMARY KEY, name VARCHAR(250), source_type VARCHAR(20), source_name VARCHAR(500), user_id VARCHAR(256),
                status VARCHAR(9), start_time BIGINT, end_time BIGINT, lifecycle_stage VARCHAR(20), artifact_uri VARCHAR(200), experiment_id INTEGER);
            CREATE TABLE params (key VARCHAR(250), value VARCHAR(8000), run_uuid VARCHAR(32));
            CREATE TABLE tags (key VARCHAR(250), value VARCHAR(8000), run_uuid VARCHAR(32));
            CREATE TABLE metrics (key VARCHAR(250), value FLOAT, timestamp BIGINT, run_uuid VARCHAR(32), step BIGINT DEFAULT 0, is_nan BOOLEAN DEFAULT 0);
            CREATE TABLE latest_metrics (key VARCHAR(250), value FLOAT, timestamp BIGINT, step BIGINT, is_nan BOOLEAN, run_uuid VARCHAR(32));
            INSERT INTO experiments VALUES (1, 'sweep', '{path.parent}/mlruns/1', 'active');
            INSERT INTO runs VALUES ('{RUN}', 'r', 'LOCAL', '', 'u', 'FINISHED', 1700000000000, 1700000001000, 'active', '{path.parent}/mlruns/1/{RUN}/artifacts', 1);
            INSERT INTO params VALUES ('model', 'small', '{RUN}');
            INSERT INTO metrics VALUES ('loss', {loss}, 1700000000000, '{RUN}', 0, 0);
            INSERT INTO latest_metrics VALUES ('loss', {loss}, 1700000000000, 0, 0, '{RUN}');
            """
        )
    connection.close()
    return path


@pytest.mark.parametrize("kind", ["files", "database"])
def test_an_evaluation_folder_among_mlflow_artifacts_is_the_run_that_lies_elsewhere_too(store: Tracker, tmp_path: Path, kind: str) -> None:
    root = tmp_path / "data" / "tracking"
    run = file_store(root) if kind == "files" else root / "mlruns" / "1" / RUN
    shutil.copytree(LM_EVAL, run / "artifacts" / "results" / "lm eval")
    if kind == "database":
        database(root / "mlflow.db")
    shutil.copytree(LM_EVAL, tmp_path / "data" / "work")
    report = store.ingest(tmp_path / "data")
    assert not report.rejected
    told = dict(store.sql("select source_format, count(*) from runs group by 1").fetchall())
    assert told == {"lm_eval": 3, "mlflow": 1}
    assert report.duplicate == 3
    found = store.sql(
        "select list(s.uri order by s.uri) from run_sources s join runs r on s.run_id = r.id where r.source_format = 'lm_eval' group by r.id"
    )
    assert all("/artifacts/results/lm eval/" in first and "/data/work/" in second for ((first, second),) in found.fetchall())
    assert changed(store.ingest(tmp_path / "data")) == 0


def test_a_copied_database_is_the_same_run(store: Tracker, tmp_path: Path) -> None:
    database(tmp_path / "data" / "a" / "mlflow.db")
    (tmp_path / "data" / "b").mkdir()
    shutil.copy(tmp_path / "data" / "a" / "mlflow.db", tmp_path / "data" / "b" / "backup.db")
    report = store.ingest(tmp_path / "data")
    assert (report.new, report.duplicate, runs(store)) == (1, 1, 1)
    (uris,) = places(store)
    assert [uri.split("/experiments/")[0].rpartition("/data/")[2] for uri in uris] == ["a/mlflow.db", "b/backup.db"]


@pytest.mark.parametrize("kind", ["files", "database"])
def test_a_store_copied_with_its_tables_is_the_same_run(store: Tracker, tmp_path: Path, kind: str) -> None:
    root = tmp_path / "data" / "a"
    run = file_store(root) if kind == "files" else root / "mlruns" / "1" / RUN
    (run / "artifacts").mkdir(parents=True)
    table = {"columns": ["question", "outputs", "exact_match"], "data": [["Which?", "red", 1], ["How?", "by bus", 0]]}
    (run / "artifacts" / "eval.json").write_text(json.dumps(table), encoding="utf-8")
    if kind == "database":
        database(root / "mlflow.db")
    store.ingest(tmp_path / "data")
    shutil.copytree(root, tmp_path / "data" / "b")
    shutil.rmtree(root)  # moved
    report = store.ingest(tmp_path / "data")
    assert (report.new, report.outdated + report.duplicate + report.updated, runs(store)) == (0, 1, 1)
    assert store.sql("select count(*) from records").fetchall() == [(2,)]
    assert [len(uris) for uris in places(store)] == [2]
    assert changed(store.ingest(tmp_path / "data")) == 0


def test_a_store_that_was_migrated_to_a_database_is_one_run_in_any_order(tmp_path: Path) -> None:
    """The run id is the same: of equal versions (finished, times, records) one stays, and both places are noted."""
    from tests.ingest.tables import content, open_store

    file_store(tmp_path / "old")
    database(tmp_path / "new" / "mlflow.db")
    found = []
    for number, order in enumerate((("old", "new"), ("new", "old"))):
        with open_store(f"sqlite:///{tmp_path / f'{number}.db'}", tmp_path / f"lake{number}") as store:
            reports = [store.ingest(tmp_path / one) for one in order]
            assert sum(one.new for one in reports) == 1
            assert runs(store) == 1
            assert [len(uris) for uris in places(store)] == [2]
            assert [changed(store.ingest(tmp_path / one)) for one in order] == [0, 0]
            assert store.sql("select metric, value from metric_points").fetchall() == [("loss", 0.5)]
            found.append({name: rows for name, rows in content(store).items() if name != "rejections"})
    assert found[0] == found[1]


def test_of_a_run_that_went_on_after_the_migration_the_later_version_counts(store: Tracker, tmp_path: Path) -> None:
    run = file_store(tmp_path / "old")
    meta = (run / "meta.yaml").read_text(encoding="utf-8")
    (run / "meta.yaml").write_text(
        meta.replace("status: 3", "status: 1").replace("end_time: 1700000001000", "end_time: null"), encoding="utf-8"
    )
    database(tmp_path / "new" / "mlflow.db", loss=0.25)
    for _ in range(2):
        store.ingest(tmp_path / "old", tmp_path / "new")
        assert store.sql("select status, source_uri like 'sqlite:%' from runs").fetchall() == [("finished", True)]
        assert store.sql("select value from metric_points").fetchall() == [(0.25,)]
