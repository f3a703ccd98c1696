"""Pieces of work on a Dask cluster that somebody else runs."""

from __future__ import annotations

import asyncio
import importlib
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

from threadpoolctl import threadpool_limits

from analyses.executor import address_of
from analyses.progress import report
from tracker.errors import AnalysisError
from tracker.version import version

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
P = TypeVar("P")
S = TypeVar("S")

START = "dask scheduler starts one; its workers need trackr installed"
PATIENCE = 20.0
"""Seconds that a scheduler and its first worker are waited for."""


def on_dask(work: Callable[[S, P], T], shared: S, pieces: list[P], what: str, executor: str) -> list[T]:
    """`[work(shared, piece) for piece in pieces]` on the workers of `dask://HOST:PORT`.

    Raises ValueError for an executor that is none, AnalysisError where distributed is not installed, no scheduler or worker answers, a
    worker has no trackr or another version, or workers are lost. Errors of a piece are raised as they are.
    """
    where, address = f"--executor {executor}", str(address_of(executor))
    try:
        distributed: Any = importlib.import_module("distributed")
    except ModuleNotFoundError as err:
        message = "the Dask executor needs distributed, which is not installed"
        raise AnalysisError(message, where=where, hint="pip install 'trackr[dask]'") from err
    _knock(distributed, address, where)
    with distributed.Client(address, timeout=f"{PATIENCE}s") as client:
        _same_everywhere(client, where)
        sent = client.scatter(shared, broadcast=True, hash=False)
        futures = [client.submit(_work, work, sent, piece, pure=False) for piece in pieces]
        report(what, 0, len(futures))
        try:
            for done, future in enumerate(distributed.as_completed(futures), start=1):
                if future.status == "error":
                    future.result()
                report(what, done, len(futures))
            return list(client.gather(futures))
        except (distributed.KilledWorker, distributed.client.FutureCancelledError) as err:
            message = f"Dask lost its workers: {_line(err)}"
            raise AnalysisError(message, where=where, hint="is their memory short?") from err


def _knock(distributed: Any, address: str, where: str) -> None:
    """A scheduler must answer: a client waits for minutes where somebody else listens, and leaves threads behind where nobody does."""

    async def ask() -> Any:
        async with distributed.rpc(address, timeout=10 * PATIENCE) as scheduler:
            return await scheduler.identity()

    try:
        with ThreadPoolExecutor(1) as thread:  # the caller may have an event loop of its own
            found = thread.submit(lambda: asyncio.run(asyncio.wait_for(ask(), PATIENCE))).result()
    except TimeoutError as err:
        message = f"no Dask scheduler answers within {PATIENCE:g} s"
        raise AnalysisError(message, where=where, hint=START) from err
    except (OSError, ValueError, TypeError) as err:  # TypeError: TLS that is not set up
        message = f"no Dask scheduler answers: {_line(err)}"
        raise AnalysisError(message, where=where, hint=START) from err
    if found["type"] != "Scheduler":
        message = f"no Dask scheduler answers, but a {found['type'].lower()}"
        raise AnalysisError(message, where=where, hint=START)


def here() -> str:
    """The version that workers must have."""
    return version()


def _same_everywhere(client: Any, where: str) -> None:
    """Every worker must have this trackr: another one may count differently."""
    try:
        client.wait_for_workers(1, timeout=PATIENCE)
        found = client.run(version)
    except TimeoutError as err:
        message = "the Dask scheduler has no workers"
        raise AnalysisError(message, where=where, hint="dask worker HOST:PORT starts one; it needs trackr installed") from err
    except ModuleNotFoundError as err:
        message = f"a Dask worker has no trackr: {_line(err)}"
        raise AnalysisError(message, where=where, hint="install this trackr where the workers run") from err
    others = sorted({one for one in found.values() if one != here()})
    if others:
        message = f"a Dask worker has trackr {', '.join(others)}, here it is {here()}"
        raise AnalysisError(message, where=where, hint="install this trackr where the workers run")


def _work(work: Callable[[S, P], T], shared: S, piece: P) -> T:
    with threadpool_limits(1):
        return work(shared, piece)


def _line(err: BaseException) -> str:
    lines = str(err).splitlines()
    return lines[0] if lines else type(err).__name__
