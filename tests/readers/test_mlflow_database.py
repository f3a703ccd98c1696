"""MLflow's database stores: what its own client wrote and reads back, on SQLite and PostgreSQL, against what the reader finds."""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import pickle
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import ROOT, PostgresServer, samples
from tracker.batch import Batch, Refusal, Source
from tracker.errors import InputError
from tracker.readers.base import AddressReader, BulkReader, Folder, Selection
from tracker.readers.mlflow import READER, artifacts, database, store
from tracker.readers.mlflow.model import Artifact
from tracker.study import Study

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

WRITER = Path(__file__).with_name("mlflow_writer.py")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
BIGGEST = 1.7976931348623157e308


@dataclass(frozen=True)
class Written:
    """A store and what MLflow's client reads back from it."""

    address: str
    folder: Path
    named: dict[str, str]
    runs: dict[str, Any]

    def sources(self) -> dict[str, Source]:
        found = READER.find_address(self.address, Study.empty(), Selection())
        return {database.run_id(source): source for source in found}

    def read(self, name: str, study: Study | None = None) -> tuple[list[Batch], list[Refusal]]:
        return read(self.sources()[self.named[name]], study)


def write(address: str, folder: Path) -> Written:
    environment = os.environ | {"PYTHONPATH": str(ROOT), "MLFLOW_DISABLE_TELEMETRY": "true", "TQDM_DISABLE": "1"}
    done = subprocess.run([sys.executable, WRITER, address, folder], capture_output=True, check=False, env=environment)
    assert not done.returncode, done.stderr.decode()[-2000:]
    told = json.loads(done.stdout.splitlines()[-1])
    return Written(address, folder, told["named"], told["runs"])


def read(source: Source, study: Study | None = None) -> tuple[list[Batch], list[Refusal]]:
    parts = list(READER.read(source, study or Study.empty()))
    return [one for one in parts if isinstance(one, Batch)], [one for one in parts if isinstance(one, Refusal)]


@pytest.fixture(scope="module")
def sqlite_store(tmp_path_factory: pytest.TempPathFactory) -> Written:
    folder = tmp_path_factory.mktemp("mlflow")
    return write(f"sqlite:///{folder}/mlflow.db", folder)


@pytest.fixture(scope="module")
def postgres_store(postgres_server: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Written]:
    url = postgres_server.create()
    yield write(url, tmp_path_factory.mktemp("mlflow"))
    postgres_server.drop(url)


@pytest.fixture(params=["sqlite", "postgresql"])
def written(request: pytest.FixtureRequest) -> Written:
    found: Written = request.getfixturevalue({"sqlite": "sqlite_store", "postgresql": "postgres_store"}[request.param])
    return found


@pytest.fixture
def copied(sqlite_store: Written, tmp_path: Path) -> Path:
    """A copy of the SQLite store that a test may change."""
    return Path(shutil.copy(sqlite_store.folder / "mlflow.db", tmp_path / "mlflow.db"))


def find(path: Path) -> Sequence[Source]:
    return READER.find(Folder(path.parent, sorted(one.name for one in path.parent.iterdir() if one.is_file()), []), Study.empty())


def value_of(point: dict[str, Any]) -> float:
    return point["value"] if point["special"] is None else float(point["special"])


# ---- what the client reads back ----------------------------------------------------------------


def test_the_reader_is_all_three_kinds_of_reader() -> None:
    assert isinstance(READER, BulkReader)
    assert isinstance(READER, AddressReader)
    served = [
        READER.serves(one) for one in ("sqlite:///a.db", "postgresql://h/d", "postgresql+psycopg://h/d", "http://h:5000", "https://h")
    ]
    assert served == [True] * 5
    assert not READER.serves("s3://bucket/mlruns")


def test_every_run_is_a_source_and_deleted_ones_are_left_out(written: Written) -> None:
    sources = written.sources()
    assert sources.keys() == written.runs.keys()
    left = {run for run, source in sources.items() if source.left_out}
    assert left == {written.named["deleted"], written.named["of_deleted_experiment"]}
    for run, source in sources.items():
        told = written.runs[run]
        assert source.experiment == told["experiment"]
        assert source.uri.endswith(f"/experiments/{told['experiment']}/runs/{run}")
        latest = max([time for _, _, time, _ in told["points"]] + [told["start"], told["end"] or 0])
        assert source.time is not None
        assert source.time >= EPOCH + timedelta(milliseconds=latest)


def test_every_value_of_every_metric_is_what_the_client_reads(written: Written) -> None:
    sources = list(written.sources().values())
    count = 0
    for source, items in READER.read_many(sources, Study.empty()):
        told = written.runs[database.run_id(source)]
        points = next(one.metric_points for one in items if isinstance(one, Batch)).to_pylist()  # type: ignore[union-attr]
        found = sorted((one["metric"], one["step"], round(one["logged_at"].timestamp() * 1000), repr(value_of(one))) for one in points)
        undone = {repr(BIGGEST): "inf", repr(-BIGGEST): "-inf"}
        expected = sorted((name, step, time, undone.get(value, value)) for name, step, time, value in told["points"])
        assert [_plain_zero(one) for one in found] == [_plain_zero(one) for one in expected]
        count += len(found)
        list(items)
    assert count > 400


def _plain_zero(point: tuple[Any, ...]) -> tuple[Any, ...]:
    return (*point[:-1], "0.0" if point[-1] == "-0.0" else point[-1])  # SQLite keeps no sign of zero


def test_points_of_one_step_are_numbered_by_time_and_counts_stand_beside_them(written: Written) -> None:
    (batch,), _ = written.read("train")
    assert batch.metric_points is not None
    loss = [one for one in batch.metric_points.to_pylist() if one["metric"] == "loss/text"]
    assert [(one["step"], one["seq"], one["special"] or one["value"]) for one in loss] == [
        (0, 0, 2.5), (0, 1, 2.125), (0, 2, 2.25), (1, 0, "nan"), (2, 0, "inf"), (3, 0, "-inf"), (4, 0, 0.1 + 0.2), (5, 0, 1e-320),
    ]  # fmt: skip
    assert [one["tokens"] for one in loss] == [0.0, 0.0, 0.0, 1000.0, 2000.0, 3000.0, None, None]
    assert {one["tokens"] for one in batch.metric_points.to_pylist() if one["metric"] != "loss/text"} == {None}


def test_the_header_of_a_training_run(written: Written) -> None:
    (batch,), refusals = written.read("train")
    run, told = batch.run, written.runs[written.named["train"]]
    assert not refusals
    assert (run.model, run.benchmark, run.kind, run.status, run.external_id) == (
        "InternVL3-8B",
        None,
        "training",
        "finished",
        written.named["train"],
    )
    assert (run.configuration.input_size, run.configuration.precision) == (448, "bfloat16")
    assert run.started_at == EPOCH + timedelta(milliseconds=told["start"])
    assert run.ended_at == EPOCH + timedelta(milliseconds=told["end"])
    assert run.settings["params"] == told["params"] | {"api_key": "***"}
    assert run.settings["run_name"] == told["name"] == "first"
    assert run.settings["datasets"] == [{"name": "laion", "digest": "d1", "source_type": "code", "context": "training"}]
    assert run.settings["git_commit"] == "abc123"
    assert run.tags == {"site": "north", "stage of life": "spring"}
    (model,) = run.settings["logged_models"]
    assert (model["name"], model["params"], model["tags"]) == ("ckpt", {"size": "8B"}, {"site": "south"})


def test_metrics_of_logged_models_are_scores_that_name_the_model(written: Written) -> None:
    (batch,), _ = written.read("train")
    assert {(one.metric, one.step, one.value, one.special) for one in batch.scores} == {
        ("accuracy|model=ckpt|dataset=hrbench", 20, 0.75, None),
        ("brier|model=ckpt", 20, None, "nan"),  # MLflow's own table of model metrics says 0 here
        ("gain|model=ckpt", 20, None, "inf"),
    }


def test_status_and_parent(written: Written) -> None:
    told = {name: written.read(name)[0][-1].run for name in ("running", "failed", "nested")}
    assert (told["running"].status, told["running"].status_reason, told["running"].ended_at) == ("partial", "still running", None)
    assert told["failed"].status == "failed"
    assert told["nested"].settings["parent_run"] == written.named["train"]


def test_a_logged_table_becomes_records(written: Written) -> None:
    batches, refusals = written.read("table")
    assert not refusals
    assert {one.run.benchmark for one in batches} == {"colours"}
    assert {one.run.kind for one in batches} == {"evaluation"}
    records = [row for one in batches for row in one.records.to_pylist()]
    assert [row["correct"] for row in records] == [True, False, True, False]
    assert [row["response"] for row in records] == ["red", "4", "left", "blue"]
    assert [row["latency_s"] for row in records] == [0.12, 0.08, 0.095, 0.1]
    assert {row["score_rule"] for row in records} == {"exact_match"}
    assert records[0]["question_key"] == records[3]["question_key"]  # the same question, asked again
    assert batches[0].run.settings["tables_without_questions"] == ["confusion.json"]
    assert [(one.metric, one.value) for one in batches[0].scores] == [("exact_match", 0.25)]
    scores = [row for one in batches if one.record_scores is not None for row in one.record_scores.to_pylist()]
    assert [(row["row"], row["scorer"], row["score"]) for row in scores] == [
        (0, "judge_rating", 5.0),
        (1, "judge_rating", 2.5),
        (3, "judge_rating", 1.0),
    ]
    questions = [row for one in batches if one.questions is not None for row in one.questions.to_pylist()]
    assert [row["gold"] for row in questions][:3] == ["red", "3", "left"]


def test_a_genai_evaluation_becomes_records(written: Written) -> None:
    batches, refusals = written.read("genai")
    assert not refusals
    questions = {row["key"]: row for one in batches if one.questions is not None for row in one.questions.to_pylist()}
    records = {questions[row["question_key"]]["text"]: row for one in batches for row in one.records.to_pylist()}
    assert {text: (row["correct"], row["response"], row["status"]) for text, row in records.items()} == {
        "Capital of France?": (True, "Paris", None),
        "Capital of Spain?": (False, "x", None),
        "boom": (None, None, "failed"),
    }
    assert {row["text"]: row["gold"] for row in questions.values()} == {
        "Capital of France?": "Paris",
        "Capital of Spain?": "Madrid",
        "boom": "Rome",
    }
    assert records["Capital of France?"]["score_rule"] == "exact_match (CODE)"
    assert (records["Capital of France?"]["prompt_tokens"], records["Capital of France?"]["generated_tokens"]) == (12, 3)
    assert records["Capital of Spain?"]["latency_s"] >= 0
    told = {
        (list(records)[row["row"]], row["scorer"]): row["score"]
        for one in batches
        if one.record_scores is not None
        for row in one.record_scores.to_pylist()
    }
    assert told["Capital of Spain?", "polite"] == 0.0
    assert told["Capital of France?", "polite"] == 1.0
    assert told["Capital of France?", "length"] == 5.0
    assert told["boom", "exact_match"] == 0.0  # what a scorer made of no answer is kept beside, it is no credit
    assert {(one.run.kind, one.run.model) for one in batches} == {("evaluation", "gpt-oss-20b")}  # its spans name the model


def test_reading_together_and_alone_is_the_same(written: Written) -> None:
    sources = list(written.sources().values())
    together = {source.uri: list(items) for source, items in READER.read_many(sources, Study.empty())}
    assert list(together) == [source.uri for source in sources]
    for source in sources:
        alone = list(READER.read(source, Study.empty()))
        assert [_comparable(one) for one in alone] == [_comparable(one) for one in together[source.uri]]


def _comparable(one: Batch | Refusal) -> Any:
    if isinstance(one, Refusal):
        return one
    return one.run, one.records.to_pylist(), None if one.metric_points is None else str(one.metric_points.to_pylist()), one.scores


# ---- incremental -------------------------------------------------------------------------------


def test_contents_stay_the_same_until_something_changes(copied: Path) -> None:
    before = {source.uri: source.content for source in find(copied)}
    assert before == {source.uri: source.content for source in find(copied)}
    assert len(set(before.values())) == len(before)

    def changed(statement: str) -> int:
        with closing(sqlite3.connect(copied)) as connection, connection:
            connection.execute(statement)
        after = {source.uri: source.content for source in find(copied)}
        count = sum(after[uri] != before[uri] for uri in before)
        before.update(after)
        return count

    train = "(SELECT run_uuid FROM runs WHERE name = 'first')"
    assert changed(f"INSERT INTO metrics (key, value, timestamp, step, run_uuid, is_nan) VALUES ('late', 1.0, 5, -1, {train}, 0)") == 1
    assert changed("UPDATE runs SET status = 'FINISHED', end_time = 1780000000777 WHERE status = 'RUNNING'") == 1
    assert changed(f"INSERT INTO tags (key, value, run_uuid) VALUES ('seen', 'yes', {train})") == 1
    assert changed(f"UPDATE tags SET value = 'no' WHERE key = 'seen' AND run_uuid = {train}") == 1
    assert changed("UPDATE experiments SET lifecycle_stage = 'deleted' WHERE name = 'evals'") == 1
    assert (
        changed("UPDATE assessments SET value = 'true', last_updated_timestamp = last_updated_timestamp + 1 WHERE name = 'exact_match'")
        == 1
    )
    assert changed("UPDATE logged_models SET status = 3, last_updated_timestamp_ms = last_updated_timestamp_ms + 1") == 1


def test_a_changed_artifact_changes_the_content(sqlite_store: Written, tmp_path: Path) -> None:
    shutil.copytree(sqlite_store.folder, tmp_path / "moved")
    (tmp_path / "moved" / "mlflow.db").rename(tmp_path / "moved" / "runs.db")
    with closing(sqlite3.connect(tmp_path / "moved" / "runs.db")) as connection, connection:
        # An address that leads nowhere: the table is found at the same place below the store's folder.
        connection.execute("UPDATE runs SET artifact_uri = REPLACE(artifact_uri, ?, 'C:/elsewhere')", (str(sqlite_store.folder),))
    run = sqlite_store.named["table"]
    first = {database.run_id(one): one for one in find(tmp_path / "moved" / "runs.db")}
    (table,) = [path for path in first[run].claims if path.name == "eval_results.json"]
    assert table.is_relative_to(tmp_path / "moved")
    table.write_text(table.read_text().replace("blue", "red"))
    os.utime(table, (1, 1))
    second = {database.run_id(one): one for one in find(tmp_path / "moved" / "runs.db")}
    assert {name for name in first if first[name].content != second[name].content} == {run}
    assert [row["response"] for one in read(second[run])[0] for row in one.records.to_pylist()][-1] == "red"


def test_a_copied_store_is_the_same_whatever_its_place_and_times(sqlite_store: Written, tmp_path: Path) -> None:
    contents, mappings = [], []
    (tmp_path / "study.toml").write_text(
        "[[table]]\nfiles = 'eval_results'\ncolumns = { question_id = 'question', prediction = 'response', gold = 'gold' }\n"
    )
    study = Study.load(tmp_path / "study.toml")
    for number, place in enumerate(("first", "second")):
        folder = shutil.copytree(sqlite_store.folder, tmp_path / place)
        with closing(sqlite3.connect(folder / "mlflow.db")) as connection, connection:
            connection.execute("UPDATE runs SET artifact_uri = REPLACE(artifact_uri, ?, 'C:/elsewhere')", (str(sqlite_store.folder),))
        for path in folder.rglob("*.json"):
            os.utime(path, (number, number))
        found = READER.find(Folder(folder, ["mlflow.db"], []), study)
        assert any(path.name == "eval_results.json" for one in found for path in one.claims)
        contents.append([one.content for one in found])
        mappings.append([one.mapping for one in found])
    assert contents[0] == contents[1]
    assert mappings[0] == mappings[1]
    assert [list(one["tables"]) for one in mappings[0] if "tables" in one] == [["eval/eval_results.json"]]


def test_a_table_of_which_a_byte_changed_is_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(artifacts, "HASHED", 8)
    path, told = tmp_path / "table.csv", []
    for content in (b"", b"abc", b"abd", b"0123456789", b"0123456x89", b"x123456789", b"0123456789ab"):
        path.write_bytes(content)
        told.append(artifacts.state_of(Artifact(path="table.csv", load=path.read_bytes, file=path)))
    assert len(set(told)) == len(told)
    assert artifacts.state_of(Artifact(path="x", load=path.read_bytes, file=tmp_path / "gone")) is None


def test_a_table_that_is_out_of_reach_is_a_refusal(copied: Path, sqlite_store: Written) -> None:
    with closing(sqlite3.connect(copied)) as connection, connection:
        connection.execute("UPDATE runs SET artifact_uri = 's3://bucket/' || run_uuid")
    (source,) = [one for one in find(copied) if database.run_id(one) == sqlite_store.named["table"]]
    batches, refusals = read(source)
    assert [one.run.external_id for one in batches] == [sqlite_store.named["table"]]
    assert {one.file.rpartition("/")[2] for one in refusals} == {"eval_results.json", "confusion.json"}
    assert all("not reachable from here" in one.reason and "tracking server" in one.reason for one in refusals)


# ---- nothing is written, nothing is told --------------------------------------------------------


def digest_of(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir()) if path.is_file()}


@pytest.mark.parametrize("mode", ["rollback", "wal closed", "wal open", "wal left behind"])
def test_reading_writes_nothing_beside_the_file(copied: Path, mode: str) -> None:
    connection = sqlite3.connect(copied)
    if mode != "rollback":
        connection.execute("PRAGMA journal_mode = wal")
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        with connection:
            connection.execute("INSERT INTO tags (key, value, run_uuid) SELECT 'in the log', 'yes', run_uuid FROM runs")
    if mode == "wal left behind":
        shutil.copy(copied, copied.with_name("left.db"))
        shutil.copy(f"{copied}-wal", copied.with_name("left.db-wal"))
    if mode != "wal open":
        connection.close()
    if mode == "wal left behind":
        copied.unlink()
        copied = copied.with_name("left.db")
    before = digest_of(copied.parent)
    sources = [source for source in find(copied) if not source.left_out]
    assert len(sources) == 6
    tags = [
        one.run.tags.get("in the log") for _, items in READER.read_many(sources, Study.empty()) for one in items if isinstance(one, Batch)
    ]
    assert set(tags) == ({None} if mode == "rollback" else {"yes"})
    after = digest_of(copied.parent)
    for one in (before, after) if mode == "wal open" else ():
        one[f"{copied.name}-shm"] = "where writer and readers note who is there"
    assert after == before
    connection.close()
    claimed = {path.name for source in sources for path in source.claims if path.parent == copied.parent}
    assert claimed >= {name for name in before if name.startswith(copied.name)}


def left_behind(path: Path) -> Path:
    """A store whose writer died: what it wrote last is in a log without readers' file."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = wal")
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        with connection:
            connection.execute("INSERT INTO tags (key, value, run_uuid) SELECT 'in the log', 'yes', run_uuid FROM runs")
        left = path.with_name("left") / "left.db"
        left.parent.mkdir()
        shutil.copy(path, left)
        shutil.copy(f"{path}-wal", f"{left}-wal")
    return left


def test_what_a_writer_left_behind_is_copied_once_and_again_when_it_changed(
    copied: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = left_behind(copied)
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    made: list[str] = []
    copyfile = shutil.copyfile

    def copy(one: Path, other: Path) -> None:
        made.append(one.name)
        copyfile(one, other)

    monkeypatch.setattr(shutil, "copyfile", copy)
    told = []
    for _ in range(2):
        sources = [source for source in find(left) if not source.left_out]
        told += [
            one.run.tags.get("in the log")
            for _, items in READER.read_many(sources, Study.empty())
            for one in items
            if isinstance(one, Batch)
        ]
        assert made == ["left.db", "left.db-wal"]
    assert set(told) == {"yes"}
    os.utime(f"{left}-wal", (1, 1))
    find(left)
    assert made == ["left.db", "left.db-wal"] * 2
    assert len(list((tmp_path / "temporary").iterdir())) == 1
    store._COPIES.clear()  # as at the end of the process
    assert not list((tmp_path / "temporary").iterdir())


def test_a_full_disk_is_said_and_nothing_stays_behind(copied: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left = left_behind(copied)
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))

    def full(one: Path, other: Path) -> None:
        other.write_bytes(one.read_bytes()[:100])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(shutil, "copyfile", full)
    (source,) = find(left)
    with pytest.raises(InputError, match="No space left") as told:
        read(source)
    assert "TMPDIR" in str(told.value.hint)
    assert not list((tmp_path / "temporary").iterdir())


def test_the_password_opens_the_store_and_is_seen_nowhere(postgres_store: Written) -> None:
    secret = "pa%24s-word"
    address = postgres_store.address.replace("postgres@", f"postgres:{secret}@")
    sources = READER.find_address(address, Study.empty(), Selection())
    shown = repr(sources) + "".join(repr(item) for _, items in READER.read_many(sources, Study.empty()) for item in items)
    assert secret not in shown
    assert "pa$s-word" not in shown
    assert str(sources[0].group).startswith("postgresql://")
    # The same run, whoever asks for it with whatever password; a worker process can open it.
    assert {one.uri for one in sources} == {one.uri for one in postgres_store.sources().values()}
    assert list(
        READER.read(
            pickle.loads(pickle.dumps(sources[0])),  # noqa: S301 - our own
            Study.empty(),
        )
    )
    broken = address.replace("/test_", "/no_such_")
    with pytest.raises(InputError, match="does not exist") as caught:
        READER.find_address(broken, Study.empty(), Selection())
    assert secret not in str(caught.value)
    assert "pa$s-word" not in str(caught.value)


def test_a_host_that_is_not_there_is_named_with_a_remedy() -> None:
    with pytest.raises(InputError, match="PGPASSWORD") as caught:
        READER.find_address("postgresql://user:hush@127.0.0.1:1/db?connect_timeout=2", Study.empty(), Selection())
    assert "hush" not in str(caught.value)


def test_an_address_that_is_not_understood_is_not_quoted() -> None:
    with pytest.raises(InputError, match="%40") as caught:
        READER.find_address("postgresql://me:hu%zzsh@host/db", Study.empty(), Selection())
    assert "hu" not in str(caught.value)


def test_psycopg_missing_is_said_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(InputError, match=r"trackr\[postgres\]"):
        READER.find_address("postgresql://user@host/db", Study.empty(), Selection())


def test_trackrs_own_tables_beside_mlflows_do_not_disturb(postgres_store: Written) -> None:
    import psycopg

    with psycopg.connect(postgres_store.address.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute("CREATE SCHEMA trackr")
        connection.execute("CREATE TABLE trackr.runs (id int)")
        connection.execute("CREATE TABLE trackr.alembic_version (version_num text)")
    assert postgres_store.sources().keys() == postgres_store.runs.keys()


# ---- what is no store, or is a damaged one ------------------------------------------------------


def test_other_sqlite_files_are_no_stores(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "other.db")) as connection, connection:
        connection.execute("CREATE TABLE alembic_version (version_num TEXT)")
    (tmp_path / "empty.db").touch()
    (tmp_path / "text.db").write_text("SQLite format 3")
    (tmp_path / "magic.db").write_bytes(store.MAGIC)
    (tmp_path / "noise.db").write_bytes(store.MAGIC + os.urandom(5000))
    assert find(tmp_path / "other.db") == []
    with pytest.raises(InputError, match="not an MLflow store"):
        READER.find_address(f"sqlite:///{tmp_path}/other.db", Study.empty(), Selection())
    with pytest.raises(InputError, match="no such file"):
        READER.find_address(f"sqlite:///{tmp_path}/missing.db", Study.empty(), Selection())
    assert not (tmp_path / "missing.db").exists()


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.8, 0.95])
def test_a_store_that_is_cut_off_is_refused_with_a_remedy_or_read(copied: Path, share: float) -> None:
    whole = copied.read_bytes()
    copied.write_bytes(whole[: int(len(whole) * share)])
    sources = find(copied)
    assert sources
    refused = []
    for source in sources:
        try:
            list(READER.read(source, Study.empty()))
        except InputError as err:
            refused.append(str(err))
    assert refused
    assert all(".recover" in one for one in refused)


def test_flipped_bytes_never_end_in_anything_but_an_input_error(copied: Path) -> None:
    import random

    whole = copied.read_bytes()
    dice = random.Random(3)
    for _ in range(60):
        damaged = bytearray(whole)
        for _ in range(dice.choice([1, 20, 400])):
            damaged[dice.randrange(16, len(damaged))] = dice.randrange(256)
        copied.write_bytes(damaged)
        for _, items in _read_all(find(copied)):
            with suppress(InputError):
                list(items)


def _read_all(sources: Sequence[Source]) -> Iterator[tuple[Source, Iterator[Batch | Refusal]]]:
    with suppress(InputError):
        yield from READER.read_many([one for one in sources if not one.left_out], Study.empty())


def test_runs_beside_a_damaged_page_go_in(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sources = [one for one in find(copied) if not one.left_out]
    bad = database.run_id(sources[1])
    reading = store.Store.rows

    def rows(self: store.Store, statement: str, wanted: Sequence[str] | None = None) -> Iterator[list[Any]]:
        if wanted and bad in wanted and "metrics m" in statement:
            raise store._unreadable(self.address, sqlite3.DatabaseError("database disk image is malformed"))
        yield from reading(self, statement, wanted)

    monkeypatch.setattr(store.Store, "rows", rows)
    refused = []
    for source, items in READER.read_many(sources, Study.empty()):
        try:
            assert list(items)
        except InputError as err:
            refused.append((database.run_id(source), "malformed" in str(err)))
    assert refused == [(bad, True)]


def test_a_store_that_is_held_by_another_process_is_tried_again_later(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "_BUSY_S", 0.1)
    sources = [one for one in find(copied) if not one.left_out]
    with closing(sqlite3.connect(copied, isolation_level=None)) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        with pytest.raises(InputError, match="try again"):  # of the store, not of one run: nothing is noted as read
            next(iter(READER.read_many(sources, Study.empty())))
        (refused,) = find(copied)
        with pytest.raises(InputError, match="another process holds it"):
            read(refused)
        writer.execute("ROLLBACK")
    assert all(list(items) for _, items in READER.read_many(sources, Study.empty()))


def test_values_of_odd_types_are_values_or_nothing(copied: Path, sqlite_store: Written) -> None:
    run = sqlite_store.named["train"]
    with closing(sqlite3.connect(copied)) as connection, connection:
        for at, value in enumerate(["0.5", "many", b"\xff\xfe", 7, -BIGGEST]):
            connection.execute("INSERT INTO metrics VALUES ('odd', ?, ?, ?, ?, 0)", (value, 1000 + at, run, at))
        connection.execute("INSERT INTO metrics VALUES ('odd step', 1.0, 'noon', ?, 'first', 0)", (run,))
        connection.execute("INSERT INTO params VALUES ('odd', ?, ?)", (b"\xff", run))
        connection.execute("INSERT INTO params VALUES (CAST(x'ff' AS TEXT), CAST(x'e9' AS TEXT), ?)", (run,))
        connection.execute("UPDATE runs SET start_time = 'noon', end_time = 9e300 WHERE run_uuid = ?", (run,))
    (source,) = [one for one in find(copied) if database.run_id(one) == run]
    (batch,), _ = read(source)
    assert batch.metric_points is not None
    odd = [value_of(one) for one in batch.metric_points.to_pylist() if one["metric"] == "odd"]
    assert odd[0] == 0.5
    assert math.isnan(odd[1])
    assert math.isnan(odd[2])
    assert odd[3:] == [7.0, -math.inf]
    assert (batch.run.started_at, batch.run.ended_at) == (None, None)
    assert batch.run.settings["params"]["\ufffd"] == "\ufffd"


def test_an_empty_store_is_counted_and_nothing_more(copied: Path) -> None:
    with closing(sqlite3.connect(copied)) as connection, connection:
        connection.execute("DELETE FROM runs")
    (source,) = find(copied)
    assert source.left_out == database.NO_RUNS
    assert source.claims == (copied,)


def test_a_run_that_went_away_between_finding_and_reading_is_said(copied: Path, sqlite_store: Written) -> None:
    sources = find(copied)
    with closing(sqlite3.connect(copied)) as connection, connection:
        connection.execute("DELETE FROM runs WHERE run_uuid = ?", (sqlite_store.named["train"],))
    (source,) = [one for one in sources if database.run_id(one) == sqlite_store.named["train"]]
    with pytest.raises(InputError, match="not in the store any more"):
        read(source)


def test_many_points_are_read_in_portions_and_are_the_same(sqlite_store: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    from tracker.readers.mlflow import bulk

    sources = list(sqlite_store.sources().values())
    whole = [_comparable(one) for _, items in READER.read_many(sources, Study.empty()) for one in items]
    monkeypatch.setattr(bulk, "CHUNK_POINTS", 5)
    monkeypatch.setattr(store, "FETCHED", 7)
    monkeypatch.setattr(database, "CHUNK_RUNS", 3)
    assert [_comparable(one) for _, items in READER.read_many(sources, Study.empty()) for one in items] == whole


# ---- an older store of somebody else -------------------------------------------------------------


def test_a_real_store_of_an_older_schema() -> None:
    path = samples("mlflow") / "heart" / "mlflow.db"
    found = find(path)
    with closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as connection:
        rows = connection.execute("SELECT run_uuid, key, value, timestamp, step FROM metrics ORDER BY run_uuid, key").fetchall()
        times = dict(connection.execute("SELECT run_uuid, end_time FROM runs").fetchall())
        models = dict(connection.execute("SELECT run_uuid, value FROM params WHERE key = 'model_name'").fetchall())
    assert {database.run_id(one) for one in found} == times.keys()
    points = []
    for source, items in READER.read_many(found, Study.empty()):
        run = database.run_id(source)
        (batch,) = items
        assert isinstance(batch, Batch)
        assert batch.metric_points is not None
        points += [
            (run, one["metric"], one["value"], round(one["logged_at"].timestamp() * 1000), one["step"])
            for one in batch.metric_points.to_pylist()
        ]
        assert batch.run.model == models[run]
        assert batch.run.ended_at == EPOCH + timedelta(milliseconds=times[run])
        assert len(batch.scores) == 4  # its logged model's
    assert sorted(points) == rows


def test_a_store_of_mlflow_1_without_newer_tables_and_columns(tmp_path: Path) -> None:
    path = tmp_path / "mlruns.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(
            """
            CREATE TABLE alembic_version (version_num VARCHAR(32));
            CREATE TABLE experiments (experiment_id INTEGER, name VARCHAR(256), artifact_location VARCHAR(256), lifecycle_stage VARCHAR(32));
            CREATE TABLE runs (run_uuid VARCHAR(32), name VARCHAR(250), status VARCHAR(20), start_time BIGINT, end_time BIGINT, experiment_id INTEGER);
            CREATE TABLE metrics (key VARCHAR(250), value FLOAT, timestamp BIGINT, run_uuid VARCHAR(32));
            CREATE TABLE latest_metrics (key VARCHAR(250), value FLOAT, timestamp BIGINT, run_uuid VARCHAR(32));
            CREATE TABLE params (key VARCHAR(250), value VARCHAR(250), run_uuid VARCHAR(32));
            CREATE TABLE tags (key VARCHAR(250), value VARCHAR(250), run_uuid VARCHAR(32));
            INSERT INTO experiments VALUES (0, 'Default', './mlruns/0', 'active');
            INSERT INTO runs VALUES ('r1', '', 'FINISHED', 1500000000000, 1500000001000, 0);
            INSERT INTO metrics VALUES ('loss', 2.0, 1500000000001, 'r1'), ('loss', 1.0, 1500000000002, 'r1');
            INSERT INTO latest_metrics VALUES ('loss', 1.0, 1500000000002, 'r1');
            """
        )
    (source,) = find(path)
    (batch,), _ = read(source)
    assert batch.metric_points is not None
    assert [(one["step"], one["seq"], one["value"]) for one in batch.metric_points.to_pylist()] == [(0, 0, 2.0), (0, 1, 1.0)]
    assert (batch.run.model, batch.run.kind) == ("Default", "training")
