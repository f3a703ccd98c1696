"""What is the same question, configuration and run (DEFINITIONS, Identity)."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from tests.ingest.tables import run_rows, write_rows
from tracker.schema import CONFIGURATION_FIELDS

if TYPE_CHECKING:
    from pathlib import Path

    from tracker.api import Tracker


def rows_of(store: Tracker, query: str) -> list[tuple[Any, ...]]:
    return store.sql(query).fetchall()  # type: ignore[no-any-return]


def described(rows: list[dict[str, Any]], prefix: str = "") -> list[dict[str, Any]]:
    """Rows whose questions have text and options, in an order that depends on the prefix."""
    options = ["cat", "dog"] if not prefix else ["dog", "cat"]
    return [
        {**row, "question_id": prefix + row["question_id"], "text": f"What is in {row['question_id']}?", "options": options} for row in rows
    ]


# ---- questions -------------------------------------------------------------------------------


def test_keys_with_the_same_content_are_one_question_whatever_the_order_of_options(each_store: Tracker, tmp_path: Path) -> None:
    write_rows(tmp_path / "in" / "a.jsonl", described(run_rows(n=3)))
    write_rows(tmp_path / "in" / "b.jsonl", described(run_rows("lab/Other", n=3), "z-"))
    each_store.ingest(tmp_path / "in")
    joined = rows_of(each_store, "select q.key, s.key from questions q join questions s on q.same_as_id = s.id order by 1")
    assert joined == [("z-q0", "q0"), ("z-q1", "q1"), ("z-q2", "q2")]
    assert rows_of(each_store, "select count(distinct question_id), count(*) from answers") == [(3, 6)]
    assert {key for (key,) in rows_of(each_store, "select question_key from answers")} == {"q0", "q1", "q2"}


def test_where_a_run_has_the_content_twice_nothing_is_joined(each_store: Tracker, tmp_path: Path) -> None:
    """Option-permuted cycles with ids of their own are questions of their own."""
    cycles = [{**row, "question_id": f"c{i}", "text": "Same?", "options": ["cat", "dog"]} for i, row in enumerate(run_rows(n=2))]
    write_rows(tmp_path / "in" / "a.jsonl", cycles)
    write_rows(
        tmp_path / "in" / "b.jsonl", [{**run_rows("lab/Other", n=1)[0], "question_id": "x", "text": "Same?", "options": ["cat", "dog"]}]
    )
    each_store.ingest(tmp_path / "in")
    assert rows_of(each_store, "select count(*), count(same_as_id) from questions") == [(3, 0)]


def test_questions_of_two_benchmarks_are_never_joined(store: Tracker, tmp_path: Path) -> None:
    write_rows(tmp_path / "in" / "a.jsonl", described(run_rows(n=2)) + described(run_rows(benchmark="Bench2", n=2)))
    store.ingest(tmp_path / "in")
    assert rows_of(store, "select count(*), count(same_as_id) from questions") == [(4, 0)]


def test_a_join_ends_when_its_reason_goes(store: Tracker, tmp_path: Path) -> None:
    write_rows(tmp_path / "in" / "a.jsonl", described(run_rows(n=2)))
    other = write_rows(tmp_path / "in" / "b.jsonl", described(run_rows("lab/Other", n=2), "z-"))
    store.ingest(tmp_path / "in")
    write_rows(other, [{**row, "question_id": f"z-{row['question_id']}"} for row in run_rows("lab/Other", n=2)])
    store.ingest(tmp_path / "in")
    assert rows_of(store, "select count(*), count(same_as_id) from questions") == [(4, 0)]
    assert rows_of(store, "select count(distinct question_id) from trajectories") == [(4,)]


def test_deleting_the_canonical_key_leaves_the_other_to_stand_for_itself(store: Tracker, tmp_path: Path) -> None:
    write_rows(tmp_path / "in" / "a.jsonl", described(run_rows(n=2)))
    write_rows(tmp_path / "in" / "b.jsonl", described(run_rows("lab/Other", n=2), "z-"))
    store.ingest(tmp_path / "in")
    (run,) = rows_of(store, "select id from runs where model_name = 'lab/Alpha'")[0]
    store.delete_runs([run])
    assert rows_of(store, "select key, same_as_id from questions order by key") == [("z-q0", None), ("z-q1", None)]
    assert rows_of(store, "select question_key, accuracy from trajectories order by 1") == [("z-q0", 1.0), ("z-q1", 0.0)]


# ---- configurations --------------------------------------------------------------------------

OTHER_VALUES: dict[str, Any] = {
    "input_mode": "fixed",
    "input_size": 448,
    "max_tiles": 6,
    "pixel_cap": 1000,
    "source_quality": "jpeg",
    "vision_branches": 2,
    "language_branches": 2,
    "few_shot": 0,
    "precision": "bf16",
    "max_new_tokens": 8,
    "prompt": "short",
    "variant": "v",
}


def test_every_named_column_and_nothing_else_makes_a_configuration(each_store: Tracker, tmp_path: Path) -> None:
    """Null is a value of its own, and 0 is not null."""
    assert set(OTHER_VALUES) == set(CONFIGURATION_FIELDS)
    rows = run_rows(n=1)
    for name, value in OTHER_VALUES.items():
        rows += run_rows(n=1, **{name: value})
    rows += run_rows(n=1, few_shot=1)
    write_rows(tmp_path / "a.jsonl", rows)
    each_store.ingest(tmp_path / "a.jsonl")
    assert rows_of(each_store, "select count(*), count(distinct fingerprint) from configurations") == [(14, 14)]
    assert rows_of(each_store, "select count(*) from configurations where few_shot = 0") == [(1,)]
    fingerprints = rows_of(each_store, "select fingerprint from configurations order by 1")
    write_rows(tmp_path / "b.jsonl", [{**row, "seed": 1, "device": "cuda:1"} for row in rows])
    each_store.ingest(tmp_path / "b.jsonl")
    assert rows_of(each_store, "select fingerprint from configurations order by 1") == fingerprints
    assert {(row[0]) for row in rows_of(each_store, "select settings from runs where source_uri like '%b.jsonl'")} == {
        '{"device":"cuda:1","seed":1}'
    }


# ---- runs ------------------------------------------------------------------------------------


def test_a_copied_folder_holds_the_same_runs_and_every_place_is_noted(each_store: Tracker, tmp_path: Path) -> None:
    write_rows(tmp_path / "b" / "one.jsonl", run_rows() + run_rows("lab/Other"))
    each_store.ingest(tmp_path / "b")
    shutil.copytree(tmp_path / "b", tmp_path / "a")
    report = each_store.ingest(tmp_path / "a")
    assert (report.new, report.duplicate) == (0, 2)
    assert rows_of(each_store, "select count(*) from runs") == [(2,)]
    places = rows_of(each_store, "select distinct uri from run_sources order by 1")
    assert places == [(str(tmp_path / "a" / "one.jsonl"),), (str(tmp_path / "b" / "one.jsonl"),)]
    again = each_store.ingest(tmp_path / "a", tmp_path / "b")
    assert (again.unchanged, again.duplicate, again.new) == (4, 0, 0)


@pytest.mark.parametrize("changed", ["a", "b"])
def test_a_changed_copy_is_a_run_of_its_own_and_the_original_stays(each_store: Tracker, tmp_path: Path, changed: str) -> None:
    for folder in ("a", "b"):
        write_rows(tmp_path / folder / "one.jsonl", run_rows(n=4))
    each_store.ingest(tmp_path / "a", tmp_path / "b")
    write_rows(tmp_path / changed / "one.jsonl", run_rows(n=5))
    each_store.ingest(tmp_path / "a", tmp_path / "b")
    runs = rows_of(each_store, "select source_uri, external_id, n_records from runs order by n_records")
    kept, new = str(tmp_path / ("b" if changed == "a" else "a") / "one.jsonl"), str(tmp_path / changed / "one.jsonl")
    assert runs == [(kept, kept, 4), (new, new, 5)]
    assert each_store.ingest(tmp_path / "a", tmp_path / "b").unchanged == 2


def test_a_run_id_met_in_two_versions_is_one_run_and_the_later_version_stays(each_store: Tracker, tmp_path: Path) -> None:
    """In whatever order, together or apart; and then nothing moves any more."""
    write_rows(tmp_path / "a" / "one.jsonl", run_rows(n=4, run_id="r", ended_at="2026-01-02T00:00:00Z"))
    write_rows(tmp_path / "b" / "one.jsonl", run_rows(n=4, run_id="r", ended_at="2026-01-01T00:00:00Z", p_gold=0.5))
    each_store.ingest(tmp_path / "a")
    report = each_store.ingest(tmp_path / "b")
    assert (report.new, report.updated, report.outdated) == (0, 0, 1)
    assert rows_of(each_store, "select n_records, source_uri, version from runs") == [(4, str(tmp_path / "a" / "one.jsonl"), 1)]
    assert rows_of(each_store, "select count(*) from run_sources") == [(2,)]
    again = each_store.ingest(tmp_path / "a", tmp_path / "b")
    assert (again.unchanged, again.new, again.updated) == (2, 0, 0)
    write_rows(tmp_path / "b" / "one.jsonl", run_rows(n=6, run_id="r", ended_at="2026-01-03T00:00:00Z"))
    each_store.ingest(tmp_path / "a", tmp_path / "b")
    assert rows_of(each_store, "select n_records, source_uri, version from runs") == [(6, str(tmp_path / "b" / "one.jsonl"), 2)]


def test_two_versions_of_a_run_in_one_transaction(store: Tracker, tmp_path: Path) -> None:
    write_rows(tmp_path / "in" / "a.jsonl", run_rows(n=4, run_id="r", ended_at="2026-01-02T00:00:00Z"))
    write_rows(tmp_path / "in" / "b.jsonl", run_rows(n=5, run_id="r", ended_at="2026-01-01T00:00:00Z"))
    report = store.ingest(tmp_path / "in")
    assert (report.new, report.outdated) == (1, 1)
    assert rows_of(store, "select n_records from runs") == [(4,)]
    assert store.ingest(tmp_path / "in").unchanged == 2


def test_a_file_of_several_runs_is_replaced_as_a_set(each_store: Tracker, tmp_path: Path) -> None:
    path = write_rows(tmp_path / "a.jsonl", run_rows("lab/One") + run_rows("lab/Two") + run_rows("lab/Three"))
    each_store.ingest(path)
    before = dict(rows_of(each_store, "select model_name, id from runs"))
    write_rows(path, run_rows("lab/Two", n=2) + run_rows("lab/Four"))
    report = each_store.ingest(path)
    assert (report.new, report.updated, report.removed) == (1, 1, 2)
    after = {row[0]: row[1:] for row in rows_of(each_store, "select model_name, id, version, n_records from runs")}
    assert after["lab/Two"] == (before["lab/Two"], 2, 2)
    assert set(after) == {"lab/Two", "lab/Four"}
    assert after["lab/Four"][0] > max(before.values()), "ids are never reused"
    assert rows_of(each_store, "select count(*) from records") == [(6,)]
    assert rows_of(each_store, "select distinct model from cells order by 1") == [("lab/Four",), ("lab/Two",)]
    assert rows_of(each_store, "select name from models where origin = 'found' order by 1") == [("lab/Four",), ("lab/Two",)]


def test_ids_are_never_reused_after_a_deletion(each_store: Tracker, tmp_path: Path) -> None:
    path = write_rows(tmp_path / "a.jsonl", run_rows())
    each_store.ingest(path)
    first = rows_of(each_store, "select id from runs union all select id from questions order by 1")
    (run,) = rows_of(each_store, "select id from runs")[0]
    assert each_store.delete_runs([run]) == 4
    assert rows_of(each_store, "select count(*) from answers") == [(0,)]
    assert each_store.ingest(path).new == 1
    assert rows_of(each_store, "select min(id) from runs")[0][0] > run
    assert rows_of(each_store, "select min(id) from questions")[0][0] > max(row[0] for row in first)


def test_runs_of_a_file_that_differ_by_a_spelling_only_are_told_apart(store: Tracker, tmp_path: Path) -> None:
    spellings = ["Qwen/Qwen2.5-VL-7B-Instruct", "Qwen2.5-VL-7B-Instruct"]
    path = write_rows(tmp_path / "a.jsonl", [row for name in reversed(spellings) for row in run_rows(name)])
    store.ingest(path)
    assert rows_of(store, "select model_name, external_id = source_uri from runs order by 1") == [
        (spellings[0], True),
        (spellings[1], False),
    ]
    assert rows_of(store, "select count(*), count(distinct configuration_id) from runs") == [(2, 1)]
    os.utime(path)
    assert store.ingest(path).unchanged == 2


# ---- digests ---------------------------------------------------------------------------------


def test_the_digest_covers_bytes_and_the_version_of_the_reader(store: Tracker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tracker.readers import native

    path = write_rows(tmp_path / "a.jsonl", run_rows())
    store.ingest(path)
    assert store.ingest(path).unchanged == 1
    monkeypatch.setattr(native, "READER", native.NativeReader(version=native.READER.version + 1))
    assert store.ingest(path).updated == 1
    assert store.ingest(path).unchanged == 1


def test_editing_the_study_file_reads_again_what_it_changes_and_nothing_else(store: Tracker, tmp_path: Path) -> None:
    for size in (224, 448):
        write_rows(tmp_path / "in" / f"px{size}" / "a.jsonl", run_rows(n=3))
    study = tmp_path / "in" / "study.toml"
    study.write_text("[[path]]\npattern = 'px(?P<input_size>224)'\n")
    assert store.ingest(tmp_path / "in").new == 2
    study.write_text("[[path]]\npattern = 'px(?P<input_size>\\d+)'\n")
    report = store.ingest(tmp_path / "in")
    assert (report.unchanged, report.new + report.updated, report.removed) == (1, 1, 1)
    assert rows_of(store, "select input_size, n from cells order by 1") == [(224, 3), (448, 3)]
    study.write_text("# a comment only\n" + study.read_text())
    assert store.ingest(tmp_path / "in").unchanged == 2


def test_a_file_one_run_of_which_lives_elsewhere_in_a_later_version_gives_its_other_run(each_store: Tracker, tmp_path: Path) -> None:
    later = run_rows(n=4, run_id="r1", ended_at="2026-01-02T00:00:00Z")
    write_rows(tmp_path / "later.jsonl", later)
    earlier = run_rows(n=2, run_id="r1", ended_at="2026-01-01T00:00:00Z")
    write_rows(tmp_path / "both.jsonl", [*earlier, *run_rows(n=3, run_id="r2", scores={"other": 0.5})])
    each_store.ingest(tmp_path / "later.jsonl")
    report = each_store.ingest(tmp_path / "both.jsonl")
    assert (report.new, report.outdated) == (1, 1)
    assert each_store.sql("select external_id, n_records from runs order by 1").fetchall() == [("r1", 4), ("r2", 3)]
    assert each_store.sql("select count(*) from records").fetchall() == [(7,)]
