"""Stored trajectories under other writers: never computed from half of two of them, never lost."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from tests.lake.naive import Naive, same
from tests.lake.study import add_run, contents, delete_run, replace_run
from tracker.lake import Lake, connect, sync, trajectories, verify

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest

    from tests.lake.conftest import Store
    from tracker.database import Database


def assert_right(db: Database, lake: Lake) -> None:
    """Stored rows are those of the definition, and no slice waits."""
    sync(db, lake)
    assert contents(db, "dirty_slices") == []
    assert verify(db, lake).ok
    with connect(lake) as session:
        result = session.sql("select * from trajectories")
        found = [dict(zip(result.columns, row, strict=True)) for row in result.fetchall()]
    assert same(Naive(db).trajectories(), found, "question_id", "series")


def interfere(monkeypatch: pytest.MonkeyPatch, *actions: Callable[[], object]) -> None:
    """Let other writers act between the recomputation and its storing, one per round."""
    waiting = list(actions)
    real = trajectories.store

    def store(*given: Any) -> Any:
        if waiting:
            waiting.pop(0)()
        return real(*given)

    monkeypatch.setattr(trajectories, "store", store)


def test_only_dirty_slices_are_recomputed(filled: Store) -> None:
    add_run(filled.db, 40, configuration=4, benchmark=1)
    report = sync(filled.db, filled.lake)
    assert report.slices_recomputed == 1
    assert_right(filled.db, filled.lake)


def test_trajectories_follow_replaced_and_deleted_runs(any_store: Store) -> None:
    for seed in range(8):
        add_run(any_store.db, seed, configuration=seed % 8 + 1, benchmark=seed % 2 + 1)
    assert_right(any_store.db, any_store.lake)
    ids = [row["id"] for row in contents(any_store.db, "runs")]
    replace_run(any_store.db, ids[0], seed=90)
    assert_right(any_store.db, any_store.lake)
    for run_id in ids:
        delete_run(any_store.db, run_id)
    assert_right(any_store.db, any_store.lake)
    assert contents(any_store.db, "trajectories") == []


def test_writer_between_recomputing_and_storing_is_not_lost(filled: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    add_run(filled.db, 40, configuration=4, benchmark=1)
    interfere(
        monkeypatch,
        lambda: add_run(filled.db, 41, configuration=8, benchmark=1),
        lambda: add_run(filled.db, 42, configuration=1, benchmark=2),
    )
    report = sync(filled.db, filled.lake)
    assert report.slices_recomputed >= 2
    assert contents(filled.db, "dirty_slices") == []
    assert_right(filled.db, filled.lake)


def test_slice_that_somebody_else_renewed_is_left_to_them(filled: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another machine saw a newer run, stored its trajectories and cleared the marks: older rows must not come back."""
    add_run(filled.db, 40, configuration=4, benchmark=1)

    def other_machine() -> None:
        add_run(filled.db, 41, configuration=8, benchmark=1)
        sync(filled.db, Lake(tmp_path / "other"))

    interfere(monkeypatch, other_machine)
    sync(filled.db, filled.lake)
    assert contents(filled.db, "dirty_slices") == []
    assert_right(filled.db, filled.lake)


def test_sync_ends_when_writers_never_rest(filled: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    add_run(filled.db, 40, configuration=4, benchmark=1)
    interfere(monkeypatch, *[lambda seed=seed: add_run(filled.db, seed, configuration=4, benchmark=1) for seed in range(50, 60)])
    report = sync(filled.db, filled.lake)
    assert "older than their records" in report.warnings[0]
    assert verify_after(filled)
    monkeypatch.undo()
    assert_right(filled.db, filled.lake)


def verify_after(store: Store) -> bool:
    """The lake equals the database at its own version even then."""
    manifest = store.lake.manifest()
    assert manifest is not None
    with connect(store.lake) as session:
        return bool(session.sql("select (select count(*) from records) = (select sum(n_records) from runs)").fetchall()[0][0])


def test_chunks_of_slices_give_the_same(filled: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trajectories, "CHUNK_RECORDS", 1)
    for seed in range(40, 52):
        add_run(filled.db, seed)
    assert_right(filled.db, filled.lake)


def test_writers_and_syncs_at_the_same_moment_end_right(any_store: Store, tmp_path: Path) -> None:
    """Two writers, each with a lake of its own, as on two machines."""
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            lake = Lake(tmp_path / f"lake-{number}")
            for step in range(4):
                add_run(any_store.db, 10 * number + step, configuration=number, benchmark=step % 2 + 1)
                sync(any_store.db, lake)
        except BaseException as err:  # noqa: BLE001 - shown by the assertion below
            failures.append(err)

    threads = [threading.Thread(target=work, args=(number,)) for number in (1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    for number in (1, 5):
        assert_right(any_store.db, Lake(tmp_path / f"lake-{number}"))
