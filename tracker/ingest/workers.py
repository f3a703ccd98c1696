"""Read many sources: here when they are few, in worker processes when they are many; in order, with bounded memory."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracker.errors import TrackrError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tracker.ingest.plan import Planned
    from tracker.ingest.reading import Reading
    from tracker.study import Study

PARALLEL_BYTES = 24 << 20
"""Below this many bytes, starting workers costs more than it saves."""


def read_all(planned: Sequence[Planned], study: Study, folder: Path, *, workers: int | None = None) -> Iterator[Reading]:
    """Readings in the order of the plan."""
    if workers is None:
        workers = min(os.cpu_count() or 1, 8) if sum(one.bytes for one in planned) > PARALLEL_BYTES else 0
    workers = min(workers, len(planned))
    if workers < 1:
        from tracker.ingest.read import read_source

        for one in planned:
            yield read_source(one.source, study, one.digest, folder)
        return
    yield from _read_parallel(planned, study, folder, workers)


def _read_parallel(planned: Sequence[Planned], study: Study, folder: Path, workers: int) -> Iterator[Reading]:
    pool = _Pool(workers)
    waiting: deque[Future[Reading]] = deque()
    rest = iter(planned)
    try:
        for one in rest:
            waiting.append(pool.submit(one, study, folder))
            if len(waiting) >= 3 * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()
        pool.close()


class _Pool:
    """Worker processes, each driven by one thread."""

    def __init__(self, workers: int) -> None:
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="trackr-reader")
        self._local = threading.local()
        self._processes: list[subprocess.Popen[bytes]] = []

    def submit(self, one: Planned, study: Study, folder: Path) -> Future[Reading]:
        return self._threads.submit(self._run, (one.source, study, one.digest, folder))

    def _run(self, job: tuple[Any, ...]) -> Reading:
        process = self._process()
        assert process.stdin is not None  # noqa: S101
        assert process.stdout is not None  # noqa: S101
        try:
            pickle.dump(job, process.stdin, protocol=5)
            process.stdin.flush()
            answer = pickle.load(process.stdout)  # noqa: S301 - from our own child process
        except (EOFError, OSError, pickle.UnpicklingError) as err:
            message = f"a reading process ended unexpectedly (exit {process.poll()})"
            raise TrackrError(message, where=job[0].uri, hint="is memory short? try --workers 0") from err
        if isinstance(answer, Exception):
            raise answer
        reading: Reading = answer
        return reading

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
            process.kill()
        self._threads.shutdown(wait=True, cancel_futures=True)
        for process in self._processes:
            process.communicate()


def _root() -> str:
    """The folder that holds the package, for a worker started from anywhere."""
    import tracker

    return str(Path(tracker.__file__).parent.parent)
