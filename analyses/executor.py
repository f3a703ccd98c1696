"""Run independent pieces of work in this process, in local worker processes, or on a Dask cluster: the same numbers everywhere.

Pieces have fixed sizes that no number of workers changes, every piece runs with one BLAS thread, and answers come back in order.
"""

from __future__ import annotations

import os
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any, TypeVar

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
SHARED: list[Any] = []
"""What every piece of work in a worker process needs besides the piece itself; sent once."""


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
    local processes (None: one per core). `seconds` is a guess of the whole work on one core: below a few seconds starting
    processes costs more than it saves, and everything runs here. Progress is reported under `what`.
    Raises UsageError for an executor that is none, AnalysisError where a cluster cannot be reached.
    """
    pieces = list(pieces)
    if executor.startswith(DASK):
        return _on_dask(work, shared, pieces, what, executor)
    if executor != LOCAL:
        message = f"expected local or dask://HOST:PORT, found {executor!r}"
        raise UsageError(message, where="--executor")
    workers = min(workers or os.cpu_count() or 1, len(pieces))
    if workers <= 1 or (seconds is not None and seconds < STARTING_PAYS):
        return _here(work, shared, pieces, what)
    return _in_processes(work, shared, pieces, what, workers)


STARTING_PAYS = 4.0
"""Seconds of work below which worker processes do not pay."""


def _here(work: Callable[[S, P], T], shared: S, pieces: list[P], what: str) -> list[T]:
    answers: list[T] = []
    with threadpool_limits(1):
        for piece in pieces:
            report(what, len(answers), len(pieces))
            answers.append(work(shared, piece))
    report(what, len(pieces), len(pieces))
    return answers


def _in_processes(work: Callable[[S, P], T], shared: S, pieces: list[P], what: str, workers: int) -> list[T]:
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_receive, initargs=(shared,)) as pool:
        futures = [pool.submit(_work_in_process, work, piece) for piece in pieces]
        try:
            waiting = set(futures)
            while waiting:
                report(what, len(futures) - len(waiting), len(futures))
                _, waiting = wait(waiting, timeout=1.0, return_when=FIRST_COMPLETED)
            report(what, len(futures), len(futures))
            return [future.result() for future in futures]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _receive(shared: Any) -> None:
    SHARED[:] = [shared]


def _work_in_process(work: Callable[[Any, P], T], piece: P) -> T:
    with threadpool_limits(1):
        return work(SHARED[0], piece)


def _on_dask(work: Callable[[S, P], T], shared: S, pieces: list[P], what: str, executor: str) -> list[T]:
    try:
        from distributed import Client, as_completed
    except ModuleNotFoundError as err:
        message = "the Dask executor needs distributed, which is not installed"
        raise AnalysisError(message, where=f"--executor {executor}", hint="pip install distributed") from err
    try:
        client = Client(executor.removeprefix(DASK), timeout="20s")
    except (OSError, ValueError) as err:
        message = f"no Dask scheduler answers: {err}"
        raise AnalysisError(
            message, where=f"--executor {executor}", hint="dask scheduler starts one; workers need trackr installed"
        ) from err
    with client:
        sent = client.scatter(shared, broadcast=True, hash=False)
        futures = [client.submit(_work_on_dask, work, sent, piece, pure=False) for piece in pieces]
        for done, _ in enumerate(as_completed(futures), start=1):
            report(what, done, len(futures))
        return list(client.gather(futures))


def _work_on_dask(work: Callable[[S, P], T], shared: S, piece: P) -> T:
    with threadpool_limits(1):
        return work(shared, piece)
