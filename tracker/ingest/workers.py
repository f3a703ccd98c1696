"""Read many sources: here when they are few, in worker processes when they are many; in order, with bounded memory."""

from __future__ import annotations

import itertools
import os
import pickle
import subprocess
import sys
import threading
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from tracker.errors import TrackrError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tracker.ingest.plan import Planned
    from tracker.ingest.reading import Reading
    from tracker.study import Study

PARALLEL_BYTES = 24 << 20
"""Below this many bytes, starting workers costs more than it saves."""

AHEAD_BYTES = 24 << 20
"""Bytes of sources that may be read ahead of loading: workers go on while a transaction of 25,000 records is written."""


GROUP_SOURCES = 250
"""Sources of one group that are read together."""


class Readings:
    """Readings in the order of the plan. Workers begin at once, so that what else must be loaded loads meanwhile."""

    def __init__(self, planned: Sequence[Planned], study: Study, folder: Path, *, workers: int | None = None) -> None:
        if workers is None:
            workers = min(os.cpu_count() or 1, 8) if sum(one.bytes for one in planned) > PARALLEL_BYTES else 0
        jobs = list(_jobs(planned))
        self._rest = iter(jobs)
        self._study, self._folder = study, folder
        self._pool = _Pool(min(workers, len(jobs))) if min(workers, len(jobs)) > 0 else None
        self._waiting: deque[tuple[Future[list[Reading]], int]] = deque()
        self._ahead = 0
        self._submit()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        """End the workers."""
        for future, _ in self._waiting:
            future.cancel()
        if self._pool is not None:
            self._pool.close()

    def __iter__(self) -> Iterator[Reading]:
        """Each reading once."""
        if self._pool is None:
            from tracker.ingest.read import read_sources

            for job in self._rest:
                yield from read_sources([one.source for one in job], self._study, [one.digest for one in job], self._folder)
        while self._waiting:
            future, size = self._waiting.popleft()
            readings = future.result()
            self._ahead -= size
            self._submit()
            yield from readings
        if self._pool is not None:
            self._pool.close()  # nothing is left to read: their memory is free for what follows

    def _submit(self) -> None:
        """Give the workers what they may read ahead; always at least one source each."""
        while self._pool is not None and (self._ahead < AHEAD_BYTES or len(self._waiting) < self._pool.workers):
            job = next(self._rest, None)
            if job is None:
                return
            size = sum(one.bytes for one in job)
            self._ahead += size
            self._waiting.append((self._pool.submit(job, self._study, self._folder), size))


def _jobs(planned: Sequence[Planned]) -> Iterator[list[Planned]]:
    """What is read together: neighbours of one group, and every other source alone."""
    for group, members in itertools.groupby(planned, key=lambda one: one.source.group):
        if group is None:
            yield from ([one] for one in members)
        else:
            while some := list(itertools.islice(members, GROUP_SOURCES)):
                yield some


class _Pool:
    """Worker processes, each driven by one thread."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="trackr-reader")
        self._local = threading.local()
        self._processes: list[subprocess.Popen[bytes]] = []

    def submit(self, job: Sequence[Planned], study: Study, folder: Path) -> Future[list[Reading]]:
        return self._threads.submit(self._run, ([one.source for one in job], study, [one.digest for one in job], folder))

    def _run(self, job: tuple[Any, ...]) -> list[Reading]:
        from tracker.ingest.reading import unpack

        process = self._process()
        assert process.stdin is not None  # noqa: S101
        assert process.stdout is not None  # noqa: S101
        try:
            pickle.dump(job, process.stdin, protocol=5)
            process.stdin.flush()
            answer = pickle.load(process.stdout)  # noqa: S301 - from our own child process
        except (EOFError, OSError, pickle.UnpicklingError) as err:
            message = f"a reading process ended unexpectedly (exit {process.poll()})"
            raise TrackrError(message, where=job[0][0].uri, hint="is memory short? try --workers 0") from err
        if isinstance(answer, Exception):
            raise answer
        return unpack(answer)

    def _process(self) -> subprocess.Popen[bytes]:
        if getattr(self._local, "process", None) is None:
            command = [sys.executable, "-m", "tracker.ingest.worker"]
            environment = {
                **os.environ,
                "PYTHONPATH": os.pathsep.join([_root(), *filter(None, [os.environ.get("PYTHONPATH")])]),
                "OMP_NUM_THREADS": "1",
            }
            self._local.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)  # noqa: S603 - our own command
            self._processes.append(self._local.process)
        process: subprocess.Popen[bytes] = self._local.process
        return process

    def close(self) -> None:
        """End the workers."""
        for process in self._processes:
            process.kill()  # they hold nothing but what the next reading would be made of
        self._threads.shutdown(wait=True, cancel_futures=True)
        for process in self._processes:
            process.communicate()


def _root() -> str:
    """The folder that holds the package, for a worker started from anywhere."""
    import tracker

    return str(Path(tracker.__file__).parent.parent)
