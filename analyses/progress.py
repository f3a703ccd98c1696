"""Progress of long work: whoever runs an analysis says where it goes, and whoever works reports."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_LISTENER: ContextVar[Callable[[str, int, int], None] | None] = ContextVar("progress", default=None)


def report(what: str, done: int, total: int) -> None:
    """Say that `done` of `total` steps are done."""
    listener = _LISTENER.get()
    if listener is not None:
        listener(what, done, total)


@contextmanager
def reporting(listener: Callable[[str, int, int], None] | None) -> Iterator[None]:
    """Send what is reported inside the `with` to a listener of (what, done, total)."""
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)
