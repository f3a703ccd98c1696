"""trackr keeps every question that a model was asked, and answers what scaling does to it.

import tracker

t = tracker.open()
t.ingest("runs/")
t.sql("select regime(accuracy) r, count(*) from trajectories group by 1").df()
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tracker.api import Tracker, open  # noqa: A004 - `tracker.open` is the public name

__all__ = ["Tracker", "open"]


def __getattr__(name: str) -> Any:
    """Import the store when it is first asked for, so that `trackr --help` does not."""
    if name in __all__:
        from tracker import api

        return getattr(api, name)
    message = f"module 'tracker' has no attribute {name!r}"
    raise AttributeError(message)
