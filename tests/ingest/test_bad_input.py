"""Whatever is offered: one clear line that names file, line and remedy, and nothing valid is lost."""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import ROOT
from tests.ingest.tables import open_store, run_rows, write_rows
from tracker.errors import DatabaseError, TrackrError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tracker.api import Tracker
    from tracker.ingest.report import IngestReport

LINES = [json.dumps(row).encode() for row in run_rows(n=4)]


def told(report: IngestReport) -> list[tuple[int | None, str]]:
    for one in report.rejected:
        assert "\n" not in one.reason
        assert one.file
    return [(one.line, one.reason) for one in report.rejected]


def keys(store: Tracker) -> list[str]:
    return [key for (key,) in store.sql("select question_key from answers order by run_id, 1").fetchall()]


BAD_LINES: dict[str, tuple[bytes, str]] = {
    "truncated JSON in the middle": (LINES[1][:-9], "cut off at column"),
    "no JSON": (b"Traceback (most recent call last):", "not valid JSON at column 1"),
    "a comma too many": (LINES[1][:-1] + b",}", "not valid JSON at column"),
    "bytes that are no UTF-8": (LINES[1].replace(b"q1", b"q\xff1"), "is not UTF-8 (convert the file with: iconv"),
    "a list": (b"[1, 2]", "expected a JSON object, found list"),
    "wrong type of correct": (
        LINES[1].replace(b"false", b'"perhaps"'),
        "column correct: expected true or false (or 1 or 0), found 'perhaps'",
    ),
    "wrong type of tokens": (
        LINES[1][:-1] + b', "visual_tokens": "many"}',
        "column visual_tokens: expected a whole number from 0, found 'many'",
    ),
    "a probability above one": (LINES[1][:-1] + b', "p_gold": 1.5}', "column p_gold: expected a number from 0 to 1, found 1.5"),
    "no id": (LINES[1].replace(b'"q1"', b"null"), "a value for question_id"),
    "no model": (LINES[1].replace(b'"lab/Alpha"', b'""'), "a value for model"),
    "neither correct nor score": (LINES[1].replace(b'"correct": false', b'"x": 1'), "expected correct or score, found neither"),
    "an option letter outside the options": (
        LINES[1].replace(b'"correct": false', b'"correct": true')[:-1] + b', "prediction": "E", "options": ["a", "b"]}',
        "column prediction: expected an option from A to B, found 'E'",
    ),
    "a gold letter outside the options": (
        LINES[1][:-1] + b', "gold": "C", "options": ["a", "b"]}',
        "column gold: expected an option from A to B, found 'C'",
    ),
    "nested too deeply": (LINES[1][:-1] + b', "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested too deeply"),
}


@pytest.mark.parametrize("name", BAD_LINES)
def test_a_bad_line_is_refused_alone(store: Tracker, tmp_path: Path, name: str) -> None:
    line, reason = BAD_LINES[name]
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"\n".join([LINES[0], line, *LINES[2:]]) + b"\n")
    report = store.ingest(path)
    ((number, said),) = told(report)
    assert number == 2
    assert reason in said
    assert re.search(r"\((?:[^()]|\([^()]*\))+\)$", said) or "expected" in said, "says what to do"
    assert report.rejected[0].file == str(path)
    assert report.exit_code == 3
    assert keys(store) == ["q0", "q2", "q3"]
    assert store.sql("select file, line from rejections").fetchall() == [(str(path), 2)]
    ((shown,),) = store.sql("select text from rejections").fetchall()
    assert len(shown) <= 500


def test_nan_and_infinity_literals_are_values(store: Tracker, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(
        LINES[0] + b"\n" + LINES[1].replace(b'"correct": false', b'"score": NaN, "p_gold": NaN, "latency_s": NaN') + b"\n"
    )
    assert store.ingest(tmp_path / "a.jsonl").exit_code == 0
    assert store.sql("select special, p_gold, latency_s from records order by question_id").fetchall() == [
        (None, None, None),
        ("nan", None, None),
    ]


@pytest.mark.parametrize("left", range(1, 14))
def test_a_file_cut_off_anywhere_in_its_last_line_is_a_partial_run(store: Tracker, tmp_path: Path, left: int) -> None:
    (tmp_path / "a.jsonl").write_bytes(b"\n".join(LINES)[:-left])
    report = store.ingest(tmp_path / "a.jsonl")
    ((number, said),) = told(report)
    assert (number, "cut off" in said, report.partial) == (4, True, 1)
    assert keys(store) == ["q0", "q1", "q2"]


def test_a_line_of_50_mb(each_store: Tracker, tmp_path: Path) -> None:
    """It is kept whole when it is sound; a damaged one costs itself only, and a short text of it is stored."""
    long = "x" * (50 << 20)
    sound = {**run_rows(n=1)[0], "question_id": "long", "response": long}
    path = tmp_path / "a.jsonl"
    path.write_bytes(LINES[0] + b"\n" + json.dumps(sound).encode() + b"\n" + b'{"broken": "' + long.encode() + b"\n" + LINES[1] + b"\n")
    report = each_store.ingest(path)
    assert [number for number, _ in told(report)] == [3]
    assert keys(each_store) == ["long", "q0", "q1"]
    assert each_store.sql("select max(length(response)) from records").fetchall() == [(50 << 20,)]


def test_missing_columns_name_what_is_there_and_what_to_do(store: Tracker, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"model": "m", "question_id": "q", "answer": "A"}\n')
    ((_, said),) = told(store.ingest(tmp_path / "a.jsonl"))
    assert "benchmark" in said
    assert "correct or score" in said
    assert "study.toml" in said


def test_a_repeated_id_loses_no_row(store: Tracker, tmp_path: Path) -> None:
    write_rows(tmp_path / "a.jsonl", run_rows(n=2) + run_rows(n=2))
    report = store.ingest(tmp_path / "a.jsonl")
    assert (report.exit_code, report.records) == (0, 4)
    assert store.sql("select count(*), count(distinct question_id), max(attempt) from records").fetchall() == [(4, 2, 1)]


def test_stated_attempts_that_repeat_are_numbered_anew(store: Tracker, tmp_path: Path) -> None:
    write_rows(tmp_path / "a.jsonl", [{**run_rows(n=1)[0], "attempt": attempt} for attempt in (3, 3, None, 0)])
    assert store.ingest(tmp_path / "a.jsonl").records == 4
    assert store.sql("select attempt from records order by 1").fetchall() == [(0,), (3,), (4,), (5,)]


def test_a_file_that_changes_while_it_is_read_is_left_for_the_next_time(
    store: Tracker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tracker.readers import native

    path = write_rows(tmp_path / "a.jsonl", run_rows(n=2))
    store.ingest(path)
    write_rows(path, run_rows(n=3))
    original = native.READER

    class Growing:
        name, version, find = original.name, original.version, original.find

        def read(self, source: Any, study: Any) -> Iterator[Any]:
            yield from original.read(source, study)
            with path.open("a") as stream:
                stream.write(json.dumps({**run_rows(n=1)[0], "question_id": "late"}) + "\n")

    with monkeypatch.context() as growing:
        growing.setattr(native, "READER", Growing())
        report = store.ingest(path)
    assert told(report) == [(None, "changed while it was read (run the command again when its writer is done)")]
    assert keys(store) == ["q0", "q1"], "the run of before stays"
    assert store.ingest(path).updated == 1
    assert keys(store) == ["late", "q0", "q1", "q2"]


def test_a_file_that_cannot_be_read_is_said_and_the_rest_goes_in(store: Tracker, tmp_path: Path) -> None:
    """A file of /proc opens for anybody and cannot be read by anybody, root included."""
    write_rows(tmp_path / "in" / "good.jsonl", run_rows())
    (tmp_path / "in" / "bad.jsonl").symlink_to("/proc/self/mem")
    for _ in range(2):
        report = store.ingest(tmp_path / "in")
        ((number, said),) = told(report)
        assert (number, report.exit_code) == (None, 3)
        assert said.startswith("cannot be read: Input/output error (")
        assert report.rejected[0].file.endswith("/mem") or report.rejected[0].file.endswith("bad.jsonl")
    assert len(keys(store)) == 4
    assert store.sql("select count(*) from rejections").fetchall() == [(1,)]


def heeding_permissions(*arguments: str, cwd: str = "/") -> subprocess.CompletedProcess[str]:
    """The command as a user whom file permissions bind."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "cli.main", *arguments]
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False, preexec_fn=_heed_permissions)


def _heed_permissions() -> None:
    """Root, too, must heed permissions: without CAP_DAC_OVERRIDE (1) and CAP_DAC_READ_SEARCH (2) it does."""
    if os.geteuid() == 0:
        for capability in (1, 2):
            if ctypes.CDLL(None).prctl(24, capability, 0, 0, 0) != 0:
                os._exit(99)


def test_permissions_are_errors_that_name_the_path(tmp_path: Path) -> None:
    write_rows(tmp_path / "in" / "good.jsonl", run_rows())
    write_rows(tmp_path / "in" / "secret.jsonl", run_rows("lab/Secret")).chmod(0)
    write_rows(tmp_path / "in" / "closed" / "c.jsonl", run_rows("lab/Closed"))
    (tmp_path / "in" / "closed").chmod(0)
    done = heeding_permissions("ingest", "in", "--json", "--db", "trackr.db", cwd=str(tmp_path))
    (tmp_path / "in" / "closed").chmod(0o755)
    report = json.loads(done.stdout)
    assert done.returncode == 3, done.stderr
    assert report["new"] == 1
    refused = {one["file"]: one["reason"] for one in report["rejected"]}
    assert set(refused) == {str(tmp_path / "in" / "secret.jsonl"), str(tmp_path / "in" / "closed")}
    assert all(reason.startswith("cannot be read: Permission denied") for reason in refused.values())


def test_a_read_only_database_folder_is_one_line_and_still_answers(tmp_path: Path) -> None:
    write_rows(tmp_path / "in" / "a.jsonl", run_rows())
    assert heeding_permissions("ingest", "in", "--db", "store/trackr.db", cwd=str(tmp_path)).returncode == 0
    for path in [tmp_path / "store", *(tmp_path / "store").rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    write_rows(tmp_path / "in" / "b.jsonl", run_rows("lab/Beta"))
    refused = heeding_permissions("ingest", "in", "--db", "store/trackr.db", cwd=str(tmp_path))
    assert refused.returncode == 1
    assert len(refused.stderr.splitlines()) == 1
    assert refused.stderr.startswith(f"trackr: {tmp_path}/store/trackr.db: the database is read-only for you (")
    listed = heeding_permissions("runs", "list", "--json", "--db", "store/trackr.db", cwd=str(tmp_path))
    assert [run["model"] for run in json.loads(listed.stdout)] == ["lab/Alpha"], listed.stderr
    fresh = heeding_permissions("ingest", "in", "--db", "store/other.db", cwd=str(tmp_path))
    assert (fresh.returncode, len(fresh.stderr.splitlines())) == (1, 1)
    assert "read-only folder" in fresh.stderr
    for path in [tmp_path / "store", *(tmp_path / "store").rglob("*")]:
        path.chmod(0o755)


FULL = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), int(sys.argv[1])))
from cli.main import main
main(sys.argv[2:])
"""


def test_a_disk_that_is_full_loses_nothing_and_the_next_ingest_completes(sqlite_url: str, tmp_path: Path) -> None:
    """A limit on the size of files stands for the disk: it meets the database, its log, the spool and the lake."""
    folder = tmp_path / "in"
    write_rows(folder / "a.jsonl", run_rows(n=50))
    with open_store(sqlite_url, tmp_path) as store:
        store.ingest(folder)
    write_rows(folder / "b.jsonl", [{**row, "response": "y" * 2000} for row in run_rows("lab/Beta", n=3000)])
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    for limit in (1 << 20, 3 << 20, 5 << 20):
        command = [
            sys.executable,
            "-c",
            FULL,
            str(limit),
            "ingest",
            str(folder),
            "--db",
            sqlite_url,
            "--lake",
            str(tmp_path / "lake"),
            "-q",
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        assert done.returncode == 1, (limit, done.stdout, done.stderr)
        assert len(done.stderr.splitlines()) == 1, done.stderr
        assert done.stderr.startswith("trackr: ")
        assert "(" in done.stderr, "says what to do"
    with open_store(sqlite_url, tmp_path) as store:
        assert store.sql("select count(*) from answers where model = 'lab/Alpha'").fetchall() == [(50,)]
        store.ingest(folder)
        assert store.sql("select model, n from cells order by 1").fetchall() == [("lab/Alpha", 50), ("lab/Beta", 3000)]
        assert store.sql("select count(*) from rejections").fetchall() == [(0,)]


# ---- databases -------------------------------------------------------------------------------


def test_a_database_from_a_newer_version_is_refused_with_what_to_do(each_store: Tracker, tmp_path: Path) -> None:
    import sqlalchemy as sa

    path = write_rows(tmp_path / "a.jsonl", run_rows())
    each_store.ingest(path)
    table = "trackr_alembic_version" if each_store.database().dialect == "sqlite" else "trackr.alembic_version"
    with each_store.database().engine.begin() as connection:
        connection.execute(sa.text(f"UPDATE {table} SET version_num = '9999'"))
    each_store.close()
    for action in (lambda: each_store.ingest(path), lambda: each_store.sql("select 1"), each_store.database):
        with pytest.raises(DatabaseError, match=r"made by a newer trackr: its schema 9999.*pip install --upgrade trackr"):
            action()


def damage(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[100:] = b"\x5a" * (len(content) - 100)
    path.write_bytes(content)


def replace_by_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


SPOILS: dict[str, tuple[Callable[[Path], object], str]] = {
    "damaged": (damage, "malformed|cannot be read as a SQLite database"),
    "no database": (lambda path: path.write_text("hello, this is text\n"), "not a SQLite database|file is not a database"),
    "a folder": (replace_by_folder, "the database path is a folder"),
}


@pytest.mark.parametrize("name", SPOILS)
def test_a_file_that_is_no_sound_database(sqlite_url: str, tmp_path: Path, name: str) -> None:
    spoil, reason = SPOILS[name]
    path = write_rows(tmp_path / "a.jsonl", run_rows())
    with open_store(sqlite_url, tmp_path) as store:
        store.ingest(path)
    spoil(tmp_path / "trackr.db")
    for leftover in tmp_path.glob("trackr.db-*"):
        leftover.unlink()
    actions: list[Callable[[Tracker], object]] = [
        lambda store: store.ingest(path),
        lambda store: store.sql("select count(*) from runs"),
        lambda store: store.database(),
    ]
    for action in actions:
        with open_store(sqlite_url, tmp_path) as store, pytest.raises(DatabaseError, match=reason) as caught:
            action(store)
        assert caught.value.where == str(tmp_path / "trackr.db")
        assert caught.value.hint


def test_a_database_that_is_not_there_is_named_by_its_path(store: Tracker, tmp_path: Path) -> None:
    with pytest.raises(DatabaseError, match="there is no trackr database here yet") as caught:
        store.sql("select 1")
    assert caught.value.where == str(tmp_path / "trackr.db")
    with pytest.raises(DatabaseError) as caught:
        store.delete_runs([1])
    assert caught.value.where == str(tmp_path / "trackr.db")
    assert not (tmp_path / "trackr.db").exists()


@pytest.mark.parametrize(
    ("url", "kind", "reason"),
    [
        ("postgresql://someone:secret@127.0.0.1:1/nothing", DatabaseError, "refused"),
        ("postgresql://someone:secret@host.invalid/nothing", DatabaseError, "host"),
        ("mysql://someone@host/db", UsageError, "scheme 'mysql'"),
        ("/proc/nowhere/trackr.db", DatabaseError, "cannot make the folder"),
    ],
)
def test_a_url_that_does_not_work_is_one_line_without_its_password(tmp_path: Path, url: str, kind: type[TrackrError], reason: str) -> None:
    write_rows(tmp_path / "a.jsonl", run_rows())
    with pytest.raises(kind) as caught, open_store(url, tmp_path) as store:
        store.ingest(tmp_path / "a.jsonl")
    assert reason in str(caught.value)
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_postgresql_database_that_does_not_exist(postgres_url: str, tmp_path: Path) -> None:
    write_rows(tmp_path / "a.jsonl", run_rows())
    other = re.sub(r"/test_\w+", "/test_nowhere", postgres_url)
    with pytest.raises(DatabaseError, match="does not exist"), open_store(other, tmp_path) as store:
        store.ingest(tmp_path / "a.jsonl")


# ---- paths -----------------------------------------------------------------------------------


def test_paths_that_lead_nowhere(store: Tracker, tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for path in (tmp_path / "none", tmp_path / "loop", tmp_path / ("long" * 100), tmp_path / "a\0b"):
        with pytest.raises(UsageError, match="check the path") as caught:
            store.ingest(path)
        assert caught.value.exit_code == 2
    assert not (tmp_path / "trackr.db").exists()


def test_names_of_any_bytes_links_in_a_circle_and_things_that_are_no_files(each_store: Tracker, tmp_path: Path) -> None:
    root = tmp_path / "in"
    names = [b"latin-\xe9.jsonl", b"new\nline.jsonl", b"x" * 248 + b".jsonl", "ünïcödé.jsonl".encode(), b"100%_;'\".jsonl"]
    for number, name in enumerate(names):
        write_rows(root / "model.jsonl", run_rows(f"lab/{number}")).rename(root / os.fsdecode(name))
    (root / os.fsdecode(b"bad-\xe9.jsonl")).write_text('{"model": "m", "question_id": \n')
    (root / os.fsdecode(b"other-\xe9.txt")).write_text("hello")
    (root / "circle").symlink_to(root)
    (root / "loop.jsonl").symlink_to(root / "loop.jsonl")
    (root / "dangling.jsonl").symlink_to(root / "nothing")
    (root / "empty").mkdir()
    os.mkfifo(root / "pipe.jsonl")
    report = each_store.ingest(root)
    assert (report.new, report.exit_code) == (5, 3)
    assert json.loads(json.dumps(report.to_json())) == report.to_json()
    assert all(one.encode() for one in report.skipped)
    again = each_store.ingest(root)
    assert (again.unchanged, again.new, again.updated) == (5, 0, 0)
    assert each_store.sql("select count(*) from rejections where file like '%bad-\\xe9.jsonl'").fetchall()[0][0] >= 1


def test_an_empty_folder_is_no_fault(store: Tracker, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    report = store.ingest(tmp_path / "in")
    assert (report.exit_code, report.sources, report.skipped) == (0, 0, [])
    assert not (tmp_path / "trackr.db").exists()


def test_nul_characters_are_replaced_and_counted(each_store: Tracker, tmp_path: Path) -> None:
    """In every text: names, keys, answers, questions, labels, scorers, settings, and what is refused."""
    row = {**run_rows("lab/A\0lpha", "Ben\0ch", n=1)[0], "question_id": "q\0", "response": "a\0b", "text": "t\0", "domain": "D\0"}
    row |= {"scores": {"other\0": 0.5}, "tags": {"k\0": ["v\0"]}, "variant": "v\0", "run_id": "r\0"}
    twin = {**row, "question_id": "q\ufffd"}
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(one) + "\n" for one in (row, twin)) + '{"model": "\\u0000"}\n{\0\n')
    (tmp_path / "labels.csv").write_text("benchmark,question_key,scheme,value\nBen\ufffdch,q\ufffd,skill,S\ufffd\n")
    report = each_store.ingest(tmp_path / "a.jsonl")
    each_store.import_labels(tmp_path / "labels.csv")
    assert report.nul_characters >= 5
    assert each_store.sql("select distinct model, benchmark, variant, question_key, domain, skill from answers").fetchall() == [
        ("lab/A\ufffdlpha", "Ben\ufffdch", "v\ufffd", "q\ufffd", "D\ufffd", "S\ufffd")
    ]
    assert each_store.sql("select response, attempt from records order by 2").fetchall() == [("a\ufffdb", 0), ("a\ufffdb", 1)]
    assert each_store.sql("select distinct scorer from record_scores").fetchall() == [("other\ufffd",)]
    assert each_store.ingest(tmp_path / "a.jsonl").unchanged == 1


def test_texts_that_trouble_csv_and_sql_come_back_as_they_were(each_store: Tracker, tmp_path: Path) -> None:
    texts = [
        "",
        " ",
        "\\.",
        "a\n\\.\nb",
        "\\N",
        'quote " and, comma',
        "tab\tand\r\nline",
        "\u2028\u0085",
        "🦆" * 3,
        "'; drop table runs; --",
        "\x01\x1f",
        "NULL",
    ]
    write_rows(
        tmp_path / "a.jsonl",
        [{**run_rows(n=1)[0], "question_id": f"{i:02}", "response": text, "text": text or None} for i, text in enumerate(texts)],
    )
    assert each_store.ingest(tmp_path / "a.jsonl").exit_code == 0
    query = "select response, text from records join questions on question_id = questions.id order by key"
    assert each_store.sql(query).fetchall() == [(text, text or None) for text in texts]


def test_names_that_no_index_can_hold_end_with_their_hash(each_store: Tracker, tmp_path: Path) -> None:
    long = "".join(hashlib.sha256(bytes([i])).hexdigest() for i in range(150))
    names = {"model": "m" + long, "benchmark": "b" + long, "run_id": "r" + long}
    rows = [
        {**row, **names, "question_id": f"{long}{i}", f"scores.{long}": 0.5, "content_hash": f"{i}{long}"}
        for i, row in enumerate(run_rows(n=3))
    ]
    path = write_rows(tmp_path / "runs" / "a.jsonl", [*rows, rows[0]])
    labels = tmp_path / "labels.csv"
    labels.write_text(f"benchmark,question_key,scheme,value,source\nb{long},{long}1,domain,D1,{long}\n")
    assert each_store.ingest(path).records == 4
    assert each_store.import_labels(labels).waiting == 0
    found = each_store.sql("select question_key, attempt, domain, model from answers order by attempt, question_key").fetchall()
    assert [one[1] for one in found] == [0, 0, 0, 1]
    assert sorted(one[2] or "" for one in found) == ["", "", "", "D1"]
    assert all(len(name) <= 512 and re.search("[.]{3} [0-9a-f]{64}$", name) for one in found for name in (one[0], one[3]))
    assert len({one[0] for one in found}) == 3
    again = each_store.ingest(path)
    assert (again.unchanged, again.ingest_id) == (1, None)


def test_a_row_of_scores_that_is_no_object_costs_nothing_else(store: Tracker, tmp_path: Path) -> None:
    rows = [{**row, "scores": scores} for row, scores in zip(run_rows(n=4), ([1], "x", {"judge": 0.5}, None), strict=True)]
    assert store.ingest(write_rows(tmp_path / "runs" / "a.jsonl", rows)).records == 4
    assert store.sql("select scorer, score from record_scores").fetchall() == [("judge", 0.5)]
