"""A worker process of an analysis: takes pickled work on stdin, answers on stdout, ends with its parent.

A process of its own command, not a fork or a `multiprocessing` spawn: nothing of the caller's main module is imported or copied, so
that it is safe from any script, notebook or thread.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
from queue import SimpleQueue
from threading import Thread
from typing import Any


def main() -> None:
    """First (work, shared), then pieces; each message is a pickle inside a pickle, so that one that cannot be read ends nothing else."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    messages, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # a stray print must not break the stream
    waiting: SimpleQueue[bytes] = SimpleQueue()
    Thread(target=_listen, args=(messages, waiting), daemon=True).start()
    import numpy as np  # noqa: F401 - its BLAS must be there to be limited
    from threadpoolctl import threadpool_limits

    first, problem = _loaded(waiting.get())
    with threadpool_limits(1):
        while True:
            piece, unread = _loaded(waiting.get())
            answer = (None, problem or unread) if problem or unread else _done(first, piece)
            _send(answers, answer)


def _listen(messages: Any, waiting: SimpleQueue[bytes]) -> None:
    try:
        while True:
            waiting.put(pickle.load(messages))  # noqa: S301 - from our own parent process
    except (EOFError, OSError):
        os._exit(0)  # the parent is gone: nobody wants the answer


def _loaded(message: bytes) -> tuple[Any, Exception | None]:
    try:
        return pickle.loads(message), None  # noqa: S301 - from our own parent process
    except Exception as err:  # noqa: BLE001 - the parent raises it
        return None, err


def _done(first: tuple[Any, Any], piece: Any) -> tuple[Any, Exception | None]:
    work, shared = first
    try:
        return work(shared, piece), None
    except Exception as err:  # noqa: BLE001 - the parent raises it
        return None, err


def _send(answers: Any, answer: tuple[Any, Exception | None]) -> None:
    try:
        message = pickle.dumps(answer, protocol=5)
        if answer[1] is not None:
            pickle.loads(message)  # noqa: S301 - an error must come back whole
    except Exception as err:  # noqa: BLE001 - what cannot be sent is said in words
        message = pickle.dumps((None, RuntimeError(f"{answer[1]!r}" if answer[1] is not None else f"the answer cannot be sent: {err}")))
    answers.write(message)
    answers.flush()


if __name__ == "__main__":
    main()
