"""A worker process: takes pickled jobs on stdin, answers with pickled readings on stdout.

A process of its own command, not a fork or a `multiprocessing` spawn: nothing of the caller's main module is
imported or copied, so that it is safe from any script, notebook or thread.
"""

from __future__ import annotations

import gc
import os
import pickle
import signal
import sys

from tracker.quick import modest_memory, without_pandas


def main() -> None:
    """Serve until stdin closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    jobs, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # a stray print must not break the stream
    without_pandas()
    modest_memory()
    from tracker.ingest.read import read_sources
    from tracker.ingest.reading import pack

    gc.disable()  # parsed JSON holds no cycles; looking for them took a tenth of the time
    while True:
        try:
            job = pickle.load(jobs)  # noqa: S301 - from our own parent process
        except EOFError:
            return
        try:
            answer: object = pack(read_sources(*job))
        except Exception as err:  # noqa: BLE001 - the parent raises it
            answer = err
        pickle.dump(answer, answers, protocol=5)
        answers.flush()
        del answer, job  # not beside the next one


if __name__ == "__main__":
    main()
