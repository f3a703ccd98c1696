"""The lake equals the database after every sync, writes only what changed, and survives what goes wrong."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from tests.conftest import ROOT
from tests.lake.study import add_run, contents, delete_run, insert, new_database, replace_run
from tracker.config import sqlite_path
from tracker.database import bulk
from tracker.database.peek import peek
from tracker.errors import LakeError
from tracker.lake import Lake, connect, rebuild, segments, sync, verify

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.lake.conftest import Store
    from tracker.lake.manifest import Manifest


def present(lake: Lake) -> Manifest:
    manifest = lake.manifest()
    assert manifest is not None
    return manifest


def files(lake: Lake, table: str = "records") -> list[str]:
    return [segment.file for segment in present(lake).segments[table]]


def assert_only_valid_rows(lake: Lake) -> None:
    """Other engines read the files themselves: no file may hold a run that is outdated, or one that another holds."""
    manifest = present(lake)
    for listed in manifest.segments.values():
        seen: set[int] = set()
        for segment in listed:
            runs = pq.read_table(lake.path(segment.file), columns=["run_id"])["run_id"].to_pylist()
            assert len(runs) == segment.rows
            assert runs == sorted(runs)
            assert set(runs) == segment.runs.keys()
            assert all(manifest.runs[run] == version for run, version in segment.runs.items())
            assert not seen & set(runs)
            seen |= set(runs)


def test_lake_equals_database_on_each_engine(any_store: Store) -> None:
    for seed in range(6):
        add_run(any_store.db, seed)
    add_run(any_store.db, 6, kind="training")
    report = sync(any_store.db, any_store.lake)
    assert report.runs_added == 7
    assert report.data_version == any_store_version(any_store)
    any_store.assert_equal()
    assert_only_valid_rows(any_store.lake)


def any_store_version(store: Store) -> int:
    with store.db.read() as connection:
        return store.db.store(connection).data_version


def test_lake_of_a_database_without_runs_opens(store: Store) -> None:
    store.sync()
    store.assert_equal()
    assert store.session().sql("select count(*) from answers").fetchall() == [(0,)]


def test_sync_without_news_writes_nothing(filled: Store) -> None:
    before = {path: path.stat().st_mtime_ns for path in filled.lake.folder.rglob("*") if path.is_file()}
    report = sync(filled.db, filled.lake)
    assert report.up_to_date
    assert before == {path: path.stat().st_mtime_ns for path in filled.lake.folder.rglob("*") if path.is_file()}


def test_fresh_lake_is_known_without_opening_the_database(filled: Store) -> None:
    seen = peek(filled.db.url)
    assert seen is not None
    assert filled.lake.is_fresh(seen)
    add_run(filled.db, 50)
    seen = peek(filled.db.url)
    assert seen is not None
    assert not filled.lake.is_fresh(seen)


def test_new_run_leaves_other_segments_alone(filled: Store) -> None:
    before = set(files(filled.lake))
    add_run(filled.db, 50)
    report = sync(filled.db, filled.lake)
    assert (report.runs_added, report.runs_replaced, report.runs_removed) == (1, 0, 0)
    assert before < set(files(filled.lake))
    filled.assert_equal()


def test_unchanged_small_table_keeps_its_file(filled: Store) -> None:
    before = present(filled.lake).tables
    add_run(filled.db, 50)
    filled.sync()
    after = present(filled.lake).tables
    assert after["questions"] == before["questions"]
    assert after["runs"] != before["runs"]


def test_replaced_run_is_rewritten(filled: Store) -> None:
    run_id = contents(filled.db, "runs")[4]["id"]
    replace_run(filled.db, run_id, seed=77)
    report = sync(filled.db, filled.lake)
    assert (report.runs_added, report.runs_replaced, report.runs_removed) == (0, 1, 0)
    filled.assert_equal()
    assert_only_valid_rows(filled.lake)


def test_deleted_run_leaves_no_row(filled: Store) -> None:
    run_id = contents(filled.db, "runs")[4]["id"]
    delete_run(filled.db, run_id)
    report = sync(filled.db, filled.lake)
    assert (report.runs_added, report.runs_replaced, report.runs_removed) == (0, 0, 1)
    filled.assert_equal()
    assert_only_valid_rows(filled.lake)


def test_many_single_run_syncs_leave_few_files(store: Store) -> None:
    for seed in range(70):
        add_run(store.db, seed)
        store.sync()
    assert len(files(store.lake)) < 16
    store.assert_equal()
    assert_only_valid_rows(store.lake)


def test_segments_are_bounded_and_never_split_a_run(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments, "SEGMENT_ROWS", 40)
    monkeypatch.setattr(segments, "ROW_GROUP_ROWS", 7)
    for seed in range(12):
        add_run(store.db, seed)
    store.sync()
    listed = present(store.lake).segments["records"]
    assert len(listed) > 2
    assert all(segment.rows < 80 for segment in listed)
    store.assert_equal()
    assert_only_valid_rows(store.lake)


class TestStaging:
    @pytest.fixture
    def reads(self, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, list[int]]]:
        """Which runs sync reads back from the database."""
        seen: list[tuple[str, list[int]]] = []
        real = bulk.read_runs

        def spy(connection: Any, table: str, run_ids: Any) -> Iterator[Any]:
            seen.append((table, list(run_ids)))
            return real(connection, table, run_ids)

        monkeypatch.setattr(bulk, "read_runs", spy)
        return seen

    def test_staged_rows_are_not_read_back(self, store: Store, reads: list[tuple[str, list[int]]]) -> None:
        with store.lake.staging() as staging:
            for seed in range(5):
                written = add_run(store.db, seed)
                staging.add("records", written.records, {written.run_id: written.version})
            sync(store.db, store.lake, staging)
        assert "records" not in [table for table, _ in reads]
        store.assert_equal()
        assert_only_valid_rows(store.lake)
        assert list((store.lake.folder / "staging").glob("*")) == []

    def test_a_run_may_come_in_several_calls(self, store: Store, reads: list[tuple[str, list[int]]]) -> None:
        with store.lake.staging() as staging:
            written = add_run(store.db, 1)
            staging.add("records", written.records.slice(0, 5), {written.run_id: 1}, more=True)
            staging.add("records", written.records.slice(5), {written.run_id: 1})
            sync(store.db, store.lake, staging)
        assert "records" not in [table for table, _ in reads]
        store.assert_equal()

    def test_incomplete_run_is_read_from_the_database(self, store: Store, reads: list[tuple[str, list[int]]]) -> None:
        with store.lake.staging() as staging:
            whole, part = add_run(store.db, 1), add_run(store.db, 2)
            staging.add("records", whole.records, {whole.run_id: 1})
            staging.add("records", part.records.slice(0, 3), {part.run_id: 1}, more=True)
            sync(store.db, store.lake, staging)
        assert ("records", [part.run_id]) in reads
        store.assert_equal()
        assert_only_valid_rows(store.lake)

    def test_superseded_version_is_not_used(self, store: Store, reads: list[tuple[str, list[int]]]) -> None:
        with store.lake.staging() as staging:
            first, other = add_run(store.db, 1), add_run(store.db, 2)
            staging.add("records", first.records, {first.run_id: 1})
            staging.add("records", other.records, {other.run_id: 1})
            second = replace_run(store.db, first.run_id, seed=3)
            staging.add("records", second.records, {second.run_id: 2})
            sync(store.db, store.lake, staging)
        assert "records" not in [table for table, _ in reads]
        store.assert_equal()
        assert_only_valid_rows(store.lake)

    def test_run_changed_by_another_writer_is_read_from_the_database(self, store: Store) -> None:
        with store.lake.staging() as staging:
            written = add_run(store.db, 1)
            staging.add("records", written.records, {written.run_id: 1})
            replace_run(store.db, written.run_id, seed=9)
            sync(store.db, store.lake, staging)
        store.assert_equal()

    def test_staging_that_fails_costs_nothing_but_time(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        def full(*_: Any) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        with store.lake.staging() as staging:
            written = add_run(store.db, 1)
            with monkeypatch.context() as patch:
                patch.setattr("tracker.lake.staging.SegmentWriter", full)
                staging.add("records", written.records, {written.run_id: 1})
                staging.finish()
            assert staging.error == "OSError: [Errno 28] No space left on device"
            sync(store.db, store.lake, staging)
        store.assert_equal()

    def test_remains_of_a_dead_ingest_are_removed_and_those_of_a_living_one_are_not(self, store: Store) -> None:
        dead = store.lake.folder / "staging" / "dead"
        dead.mkdir(parents=True)
        (dead / "x.parquet").write_bytes(b"half")
        with store.lake.staging() as living:
            written = add_run(store.db, 1)
            living.add("records", written.records, {written.run_id: 1})
            living.finish()
            store.sync()
            assert not dead.exists()
            assert living.folder.exists()


class TestTrouble:
    def test_lake_of_another_database_is_refused(self, filled: Store, tmp_path: Path) -> None:
        other = new_database(f"sqlite:///{tmp_path / 'other.db'}")
        add_run(other, 3)
        with pytest.raises(LakeError, match="copies another database") as caught:
            sync(other, filled.lake)
        assert "rebuild" in str(caught.value.hint)
        with pytest.raises(LakeError, match="copies another database"):
            verify(other, filled.lake)
        rebuild(other, filled.lake)
        assert verify(other, filled.lake).ok
        other.close()

    @pytest.mark.parametrize(
        "text", ["", "{", "[]", '{"format": 1}', '{"format": 1, "uuid": "x", "segments": 3, "tables": {}, "docs": {}}', "\x00\xff"]
    )
    def test_damaged_manifest_is_said_and_rebuilt(self, filled: Store, text: str) -> None:
        (filled.lake.folder / "manifest.json").write_text(text, encoding="utf-8")
        with pytest.raises(LakeError, match="damaged") as caught:
            filled.lake.manifest()
        assert "rebuild" in str(caught.value.hint)
        rebuild(filled.db, filled.lake)
        filled.assert_equal()

    def test_manifest_of_a_newer_format_is_refused(self, filled: Store) -> None:
        path = filled.lake.folder / "manifest.json"
        path.write_text(path.read_text().replace('"format":1', '"format":99', 1))
        with pytest.raises(LakeError, match="format 99") as caught:
            connect(filled.lake)
        assert "newer trackr" in str(caught.value.hint)

    def test_other_columns_mean_a_new_lake(self, filled: Store) -> None:
        """After a migration the old files lack a column: everything is written again, with no word from the user."""
        manifest = present(filled.lake)
        doc = manifest.docs["records"]
        older = replace(manifest, docs={**manifest.docs, "records": replace(doc, columns=doc.columns[:-1])}, revision="older")
        filled.lake.publish(older)
        report = sync(filled.db, filled.lake)
        assert report.runs_added == len(manifest.runs)
        filled.assert_equal()

    def test_missing_file_is_found_by_verify(self, filled: Store) -> None:
        filled.lake.path(files(filled.lake)[0]).unlink()
        report = verify(filled.db, filled.lake)
        assert not report.ok
        assert "missing" in report.problems[0]

    def test_changed_row_is_found_by_verify(self, filled: Store) -> None:
        path = filled.lake.path(files(filled.lake)[0])
        table = pq.read_table(path)
        at = table.schema.get_field_index("p_gold")
        pq.write_table(table.set_column(at, table.schema.field(at), table["p_gold"].combine_chunks().fill_null(0.5)), path)
        report = verify(filled.db, filled.lake)
        assert not report.ok
        assert "rows of runs" in report.problems[0]

    def test_wrong_total_is_found_by_verify(self, filled: Store) -> None:
        path = filled.lake.path(present(filled.lake).tables["run_totals"].file)
        table = pq.read_table(path)
        totals = table["credits"].to_pylist()
        pq.write_table(table.set_column(2, "credits", [[totals[0] + 1, *totals[1:]]]), path)
        report = verify(filled.db, filled.lake)
        assert [problem.split(":")[0] for problem in report.problems] == ["run_totals", "cell_rows"]
        assert "do not follow from their records" in report.problems[0]

    def test_stale_lake_is_not_verified(self, filled: Store) -> None:
        add_run(filled.db, 60)
        with pytest.raises(LakeError, match="sync first"):
            verify(filled.db, filled.lake)

    def test_full_disk_leaves_the_old_lake(self, filled: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        before = present(filled.lake)
        add_run(filled.db, 60)

        def full(*_: Any) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "somewhere")

        with monkeypatch.context() as patch:
            patch.setattr("tracker.lake.syncing.make_durable", full)
            with pytest.raises(LakeError, match="No space left"):
                sync(filled.db, filled.lake)
        assert present(filled.lake) == before
        assert filled.session().sql("select count(*) > 0 from answers").fetchall() == [(True,)]
        filled.sync()
        filled.assert_equal()

    @pytest.mark.parametrize("place", ["publish", "make_durable", "write_table"])
    def test_killed_sync_leaves_the_old_lake_readable(self, filled: Store, place: str) -> None:
        before = present(filled.lake)
        add_run(filled.db, 60)
        target = {"publish": "tracker.lake.folder.Lake.publish"}.get(place, f"tracker.lake.syncing.{place}")
        script = f"""
import os, unittest.mock
from tracker.database import open_database
from tracker.lake import Lake, sync
with unittest.mock.patch({target!r}, lambda *a: os._exit(9)):
    sync(open_database({filled.db.url!r}), Lake({str(filled.lake.folder)!r}))
"""
        done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=False)
        assert done.returncode == 9
        assert present(filled.lake) == before
        assert connect(filled.lake).sql("select count(*) > 0 from answers").fetchall() == [(True,)]
        filled.sync()
        filled.assert_equal()
        manifest = present(filled.lake)
        on_disk = {path.relative_to(filled.lake.folder).as_posix() for path in filled.lake.folder.glob("*/*") if path.is_file()}
        assert on_disk == {*manifest.files(), *manifest.retired}

    def test_files_of_others_in_the_folder_are_never_deleted(self, filled: Store) -> None:
        foreign = filled.lake.folder / "records" / "mine.parquet"
        foreign.write_bytes(b"x")
        add_run(filled.db, 60)
        filled.sync()
        rebuild(filled.db, filled.lake)
        assert foreign.exists()


class TestReadersDuringSync:
    def test_open_session_keeps_its_version_while_files_are_replaced(self, filled: Store) -> None:
        session = filled.session()
        before = session.sql("select count(*), sum(credit) from answers").fetchall()
        replace_run(filled.db, contents(filled.db, "runs")[0]["id"], seed=81)
        filled.sync()
        assert session.sql("select count(*), sum(credit) from answers").fetchall() == before
        assert filled.session().data_version > session.data_version

    def test_replaced_files_are_deleted_after_the_grace_period(self, filled: Store) -> None:
        old = files(filled.lake)
        replace_run(filled.db, contents(filled.db, "runs")[0]["id"], seed=81)
        filled.sync()
        assert all(filled.lake.path(file).exists() for file in old)
        manifest = present(filled.lake)
        filled.lake.publish(replace(manifest, retired={name: time.time() - 601 for name in manifest.retired}))
        sync(filled.db, filled.lake)
        assert not any(filled.lake.path(file).exists() for file in old if file not in files(filled.lake))
        assert present(filled.lake).retired == {}
        filled.assert_equal()

    def test_reader_that_meets_a_missing_file_opens_the_new_manifest(self, filled: Store) -> None:
        session = filled.session()
        replace_run(filled.db, contents(filled.db, "runs")[0]["id"], seed=81)
        filled.lake.publish(replace(present(filled.lake), grace_seconds=0.0))
        filled.sync()
        add_run(filled.db, 82)
        filled.sync()
        expected = filled.session().sql("select count(*) from records").fetchall()
        assert session.sql("select count(*) from records").fetchall() == expected
        assert session.data_version == present(filled.lake).data_version

    def test_queries_while_another_process_syncs_see_whole_versions(self, filled: Store) -> None:
        """Every version has a whole number of runs: records of the lake are those that its runs declare."""
        script = f"""
from tests.lake.study import add_run
from tracker.database import open_database
from tracker.lake import Lake, sync
db = open_database({filled.db.url!r})
for seed in range(8):
    add_run(db, seed, run_id=1000 + seed)
    sync(db, Lake({str(filled.lake.folder)!r}))
"""
        with subprocess.Popen([sys.executable, "-c", script], cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}) as writer:
            versions = set()
            while writer.poll() is None:
                with filled.session() as session:
                    rows = session.sql("select (select count(*) from records), (select sum(n_records) from runs)").fetchall()
                    assert rows[0][0] == rows[0][1]
                    versions.add(session.data_version)
        assert writer.returncode == 0
        assert len(versions) > 1
        filled.assert_equal()


def test_one_sync_at_a_time_and_the_second_says_that_it_waits(filled: Store) -> None:
    add_run(filled.db, 60)
    said: list[str] = []
    other = threading.Thread(target=lambda: sync(filled.db, filled.lake, talk=said.append))
    with filled.lake.lock():
        other.start()
        deadline = time.monotonic() + 20
        while not said and time.monotonic() < deadline:
            time.sleep(0.01)
        assert said == ["waiting for another process that syncs this lake"]
        assert other.is_alive()
    other.join()
    filled.assert_equal()


def test_read_only_user_gets_the_lake_and_a_warning_about_trajectories(store: Store) -> None:
    add_run(store.db, 1)
    reader = replace(store.db, writable=False)
    report = sync(reader, store.lake)
    assert "trajectories" in report.warnings[0]
    assert store.session().sql("select count(*) > 0 from answers").fetchall() == [(True,)]
    assert sync(reader, store.lake).up_to_date
    assert sync(store.db, store.lake).slices_recomputed == 1
    assert sync(store.db, store.lake).up_to_date


def test_progress_counts_records(store: Store) -> None:
    add_run(store.db, 1)
    seen: list[tuple[str, int, int]] = []
    sync(store.db, store.lake, progress=lambda *now: seen.append(now))
    assert seen[-1][1] == seen[-1][2] > 0


def test_json_and_times_come_through_unchanged(any_store: Store) -> None:
    add_run(any_store.db, 1, kind="training")
    with any_store.db.write() as transaction:
        insert(
            transaction.connection,
            "ingests",
            [{"id": 1, "started_at": contents(any_store.db, "metric_points")[0]["logged_at"], "paths": '["a","b"]', "version": "1"}],
        )
        transaction.changed()
    any_store.sync()
    any_store.assert_equal()
    row = any_store.session().sql("select paths, started_at::varchar from ingests").fetchall()
    assert row == [('["a","b"]', "2026-02-01 00:00:00+00")]
    assert sqlite_path(any_store.db.url) is None or Path(any_store.lake.folder).exists()
