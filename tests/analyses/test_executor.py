"""Work in this process, in worker processes and on a real Dask cluster: the same answers, clear errors, nothing left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from analyses import bootstrap, holdout, law, taxonomy
from analyses import dask as dask_executor
from analyses import executor as executor_module
from analyses.executor import run_pieces
from analyses.parameters import checked
from analyses.progress import reporting
from tests.conftest import ROOT
from tracker.errors import AnalysisError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator


def product(shared: np.ndarray[Any, Any], piece: range) -> np.ndarray[Any, Any]:
    return np.stack([np.random.default_rng([1, i]).normal(size=len(shared)) @ shared for i in piece])


def process_id(shared: None, piece: int) -> int:
    del shared, piece
    time.sleep(0.05)
    return os.getpid()


def refused(shared: None, piece: int) -> int:
    del shared
    if piece == 2:
        message = "the third piece"
        raise AnalysisError(message, where="here", hint="do otherwise")
    return piece


class TwoWordsError(Exception):
    def __init__(self, one: str, two: str) -> None:
        super().__init__(f"{one} {two}")


def not_sendable(shared: None, piece: int) -> int:
    raise TwoWordsError(*("hard", "to send"))


def dying(shared: None, piece: int) -> int:
    if piece == 1:
        os._exit(3)
    return piece


def printing(shared: None, piece: int) -> int:
    print("a stray line")  # noqa: T201
    return piece


SHARED = np.random.default_rng(0).normal(size=(300, 7))
PIECES = [range(25), range(25, 50), range(50, 60)]


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    """A real cluster: a scheduler and two worker processes."""
    from distributed import LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster:
        yield cluster.scheduler_address.replace("tcp://", "dask://")


def test_answers_are_the_same_here_in_processes_and_on_dask(scheduler: str) -> None:
    here = run_pieces(product, SHARED, PIECES, what="work", workers=1)
    processes = run_pieces(product, SHARED, PIECES, what="work", workers=2)
    cluster = run_pieces(product, SHARED, PIECES, what="work", executor=scheduler)
    assert [len(piece) for piece in here] == [25, 25, 10]
    for one, two, three in zip(here, processes, cluster, strict=True):
        assert one.tobytes() == two.tobytes() == three.tobytes()


def test_a_loop_over_the_pieces_gives_the_same_answers() -> None:
    found = run_pieces(product, SHARED, PIECES, what="work", workers=2)
    for piece, answer in zip(PIECES, found, strict=True):
        assert np.array_equal(answer, product(SHARED, piece))


def test_two_workers_are_two_other_processes() -> None:
    found = run_pieces(process_id, None, range(8), what="work", workers=2)
    assert len(set(found)) == 2
    assert os.getpid() not in found


def test_little_work_starts_no_process() -> None:
    assert set(run_pieces(process_id, None, range(3), what="work", workers=2, seconds=0.1)) == {os.getpid()}


def test_one_piece_and_no_piece_start_no_process() -> None:
    assert run_pieces(process_id, None, [0], what="work", workers=2) == [os.getpid()]
    assert run_pieces(process_id, None, [], what="work", workers=2) == []


@pytest.mark.parametrize("workers", [1, 2])
def test_progress_reaches_the_total(workers: int) -> None:
    heard: list[tuple[str, int, int]] = []
    with reporting(lambda *step: heard.append(step)):
        run_pieces(product, SHARED, PIECES, what="pieces", workers=workers)
    assert heard[0] == ("pieces", 0, 3)
    assert heard[-1] == ("pieces", 3, 3)
    assert [done for _, done, _ in heard] == sorted(done for _, done, _ in heard)


@pytest.mark.parametrize("workers", [1, 2])
def test_the_error_of_a_piece_is_raised_as_it_is(workers: int) -> None:
    with pytest.raises(AnalysisError, match="here: the third piece") as caught:
        run_pieces(refused, None, range(4), what="work", workers=workers)
    assert (caught.value.where, caught.value.hint) == ("here", "do otherwise")


def test_the_error_of_a_piece_on_dask_is_raised_as_it_is(scheduler: str) -> None:
    with pytest.raises(AnalysisError, match="here: the third piece") as caught:
        run_pieces(refused, None, range(4), what="work", executor=scheduler)
    assert (caught.value.where, caught.value.hint) == ("here", "do otherwise")


def test_an_error_that_cannot_be_sent_comes_back_in_words() -> None:
    with pytest.raises(RuntimeError, match=r"TwoWordsError.*hard to send"):
        run_pieces(not_sendable, None, range(2), what="work", workers=2)


def test_a_worker_that_dies_is_one_clear_line() -> None:
    with pytest.raises(AnalysisError, match=r"a worker process ended unexpectedly \(exit 3\) \(is memory short\? try --workers 1\)"):
        run_pieces(dying, None, range(2), what="work", workers=2)


def test_a_stray_print_breaks_nothing() -> None:
    assert run_pieces(printing, None, range(3), what="work", workers=2) == [0, 1, 2]


def test_a_script_without_a_guard_may_use_workers(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import numpy as np\nfrom analyses.executor import run_pieces\nprint(run_pieces(np.add, 1, [1, 2, 3], what='sums', workers=2))\n",
        encoding="utf-8",
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False, env=_environment(), timeout=60)
    assert done.stdout.split() == ["[np.int64(2),", "np.int64(3),", "np.int64(4)]"], done.stderr


def sleeping(shared: str, piece: int) -> None:
    Path(shared, str(os.getpid())).touch()
    time.sleep(120)


INTERRUPTED = """
from analyses.executor import run_pieces
from tests.analyses.test_executor import sleeping
run_pieces(sleeping, {folder!r}, [1, 2, 3, 4], what="sleep", workers=2)
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=["ctrl-c", "terminate", "kill"])
def test_interrupted_work_leaves_no_process(tmp_path: Path, how: signal.Signals) -> None:
    folder = tmp_path / "started"
    folder.mkdir()
    parent = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED.format(folder=str(folder))],
        env=_environment(),
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        _until(lambda: len(list(folder.iterdir())) == 2)
        workers = [int(entry.name) for entry in folder.iterdir()]
        parent.send_signal(how)
        parent.wait(timeout=30)
        _until(lambda: not any(_alive(worker) for worker in workers))
    finally:
        parent.kill()
        parent.wait()


def test_an_executor_that_is_none_is_refused() -> None:
    with pytest.raises(UsageError, match="--executor: expected local or dask://HOST:PORT, found 'ray'"):
        run_pieces(refused, None, [0], what="work", executor="ray")


def test_an_unknown_address_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_executor, "PATIENCE", 1.0)
    with pytest.raises(AnalysisError, match=r"--executor dask://127.0.0.1:9: no Dask scheduler answers within 1 s") as caught:
        run_pieces(refused, None, [0], what="work", executor="dask://127.0.0.1:9")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("executor", ["dask://", "dask://head", "dask://:8786"])
def test_an_address_without_host_or_port_is_refused(executor: str) -> None:
    with pytest.raises(UsageError, match="--executor: expected local or dask://HOST:PORT, found 'dask://"):
        run_pieces(refused, None, [0], what="work", executor=executor)


@pytest.mark.parametrize("executor", ["dask://head:many", "dask://127.0.0.1:99999"])
def test_a_port_that_is_none_is_refused(executor: str) -> None:
    with pytest.raises(UsageError, match="--executor: expected a port between 1 and 65535, found 'dask://"):
        run_pieces(refused, None, [0], what="work", executor=executor)


@pytest.mark.parametrize("model", [law.Parameters, bootstrap.Parameters, taxonomy.Parameters, holdout.Parameters], ids=str)
def test_an_executor_is_looked_at_before_anything_runs(model: type[Any]) -> None:
    assert checked(model, {"executor": "dask://head:8786"}).executor == "dask://head:8786"
    with pytest.raises(UsageError, match="--executor: expected local or dask://HOST:PORT, found 'nonsense'"):
        checked(model, {"executor": "nonsense"})


def test_there_are_no_more_processes_than_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[int] = []
    monkeypatch.setattr(executor_module, "_in_processes", lambda work, shared, pieces, what, workers: started.append(workers))
    for cores in (2, 3):
        monkeypatch.setattr(executor_module, "cores", lambda cores=cores: cores)
        run_pieces(refused, None, range(10), what="work", workers=100_000)
    assert started == [2, 3]


SILENT = """
import socket
from analyses import dask
from tracker.errors import AnalysisError
dask.PATIENCE = 1.0
with socket.create_server(("127.0.0.1", 0)) as server:
    try:
        dask.on_dask(max, 0, [1], "work", f"dask://127.0.0.1:{server.getsockname()[1]}")
    except AnalysisError as err:
        print(err)
"""


def test_a_server_that_is_no_scheduler_is_one_clear_line() -> None:
    done = subprocess.run([sys.executable, "-c", SILENT], capture_output=True, text=True, check=False, env=_environment(), timeout=60)
    assert done.stdout.startswith("--executor dask://127.0.0.1:"), done.stderr
    assert "no Dask scheduler answers" in done.stdout
    assert done.stdout.count("\n") == 1


def test_a_scheduler_without_workers_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    from distributed import LocalCluster

    monkeypatch.setattr(dask_executor, "PATIENCE", 1.0)
    with LocalCluster(n_workers=0, dashboard_address=":0") as cluster:
        address = cluster.scheduler_address.replace("tcp://", "dask://")
        with pytest.raises(AnalysisError, match="the Dask scheduler has no workers"):
            run_pieces(refused, None, [0], what="work", executor=address)


def test_a_missing_package_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(
        AnalysisError, match=r"the Dask executor needs distributed, which is not installed \(pip install 'trackr\[dask\]'\)"
    ):
        run_pieces(refused, None, [0], what="work", executor="dask://127.0.0.1:9")


def test_workers_with_another_trackr_are_refused(scheduler: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_executor, "here", lambda: "99.0")
    with pytest.raises(AnalysisError, match=r"a Dask worker has trackr .*, here it is 99\.0"):
        run_pieces(refused, None, [0], what="work", executor=scheduler)


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def _until(condition: Any, seconds: float = 40.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)
