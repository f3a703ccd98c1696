"""Run independent pieces of work in this process, in local worker processes, or on a Dask cluster: the same numbers everywhere.

Pieces have fixed sizes that no number of workers changes, every piece runs with one BLAS thread, and answers come back in order.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar
from urllib.parse import urlsplit

from threadpoolctl import threadpool_limits

from analyses.progress import report
from tracker.errors import AnalysisError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

T = TypeVar("T")
P = TypeVar("P")
S = TypeVar("S")

LOCAL = "local"
DASK = "dask://"
STARTING_PAYS = 4.0
"""Seconds of work below which worker processes do not pay."""


def run_pieces(
    work: Callable[[S, P], T],
    shared: S,
    pieces: Sequence[P],
    *,
    what: str,
    workers: int | None = None,
    executor: str = LOCAL,
    seconds: float | None = None,
) -> list[T]:
    """`[work(shared, piece) for piece in pieces]`.

    `work` is a function of a module (it is sent by name). `executor` is "local" or "dask://host:port"; `workers` is the number of
    local processes (None: one per core, and never more than that). `seconds` is a guess of the whole work on one core: below a few seconds starting
    processes costs more than it saves, and everything runs here. Progress is reported under `what`. An error of a piece is raised
    here; whatever ends the wait (also Ctrl-C) ends the local workers, and so does the end of this process.
    Raises UsageError for an executor that is none, AnalysisError where a cluster cannot be reached or a worker is lost.
    """
    pieces = list(pieces)
    try:
        address = address_of(executor)
    except ValueError as err:
        raise UsageError(str(err), where="--executor") from err
    if address is not None:
        from analyses.dask import on_dask

        return on_dask(work, shared, pieces, what, executor)
    workers = min(workers or cores(), cores(), len(pieces))
    if workers <= 1 or (seconds is not None and seconds < STARTING_PAYS):
        return _here(work, shared, pieces, what)
    return _in_processes(work, shared, pieces, what, workers)


def address_of(executor: str) -> str | None:
    """Where the scheduler of `dask://HOST:PORT` listens, such as tcp://HOST:PORT; None for local; ValueError for what is neither."""
    if executor == LOCAL:
        return None
    address = executor.removeprefix(DASK)
    parts = urlsplit(address if "://" in address else f"tcp://{address}")
    try:
        complete = executor.startswith(DASK) and bool(parts.hostname and parts.port)
    except ValueError as err:
        message = f"expected a port between 1 and 65535, found {executor!r}"
        raise ValueError(message) from err
    if not complete:
        message = f"expected local or dask://HOST:PORT, found {executor!r}"
        raise ValueError(message)
    return parts.geturl()


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _here(work: Callable[[S, P], T], shared: S, pieces: list[P], what: str) -> list[T]:
    answers: list[T] = []
    with threadpool_limits(1):
        for piece in pieces:
            report(what, len(answers), len(pieces))
            answers.append(work(shared, piece))
    report(what, len(pieces), len(pieces))
    return answers


def _in_processes(work: Callable[[S, P], T], shared: S, pieces: list[P], what: str, workers: int) -> list[T]:
    with _Workers(workers, pickle.dumps((work, shared), protocol=5)) as pool:
        futures = [pool.submit(piece) for piece in pieces]
        waiting = set(futures)
        while waiting:
            report(what, len(futures) - len(waiting), len(futures))
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            for future in done:
                future.result()
        report(what, len(futures), len(futures))
        return [future.result() for future in futures]


class _Workers:
    """Worker processes, each driven by one thread that takes the next piece when its process has answered."""

    def __init__(self, workers: int, first: bytes) -> None:
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="trackr-analysis")
        self._processes = [_started(_environment()) for _ in range(workers)]
        self._free = list(self._processes)
        self._new = {process.pid for process in self._processes}
        self._first = first

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        """End the processes: they hold nothing but what an answer would be made of."""
        for process in self._processes:
            process.kill()
        self._threads.shutdown(wait=True, cancel_futures=True)
        for process in self._processes:
            process.communicate()

    def submit(self, piece: Any) -> Any:
        """A future of the answer."""
        return self._threads.submit(self._run, piece)

    def _run(self, piece: Any) -> Any:
        process = self._free.pop()  # as many threads as processes: one is free
        try:
            if process.pid in self._new:
                self._new.discard(process.pid)
                _send(process, self._first)
            _send(process, pickle.dumps(piece, protocol=5))
            assert process.stdout is not None  # noqa: S101
            answer, problem = pickle.load(process.stdout)  # noqa: S301 - from our own child process
        except (EOFError, OSError, pickle.UnpicklingError) as err:
            message = f"a worker process ended unexpectedly (exit {process.wait()})"
            raise AnalysisError(message, hint="is memory short? try --workers 1") from err
        finally:
            self._free.append(process)
        if problem is not None:
            raise problem
        return answer


COMMAND = [sys.executable, "-m", "analyses.worker"]


def _started(environment: dict[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)  # noqa: S603 - our own command


def _send(process: subprocess.Popen[bytes], message: bytes) -> None:
    assert process.stdin is not None  # noqa: S101
    pickle.dump(message, process.stdin, protocol=5)
    process.stdin.flush()


def _environment() -> dict[str, str]:
    """Workers import what this process imports, and start with one thread for each library."""
    root = str(Path(__file__).parent.parent)
    path = dict.fromkeys([root, *(entry or str(Path.cwd()) for entry in sys.path)])
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
