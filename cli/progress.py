"""Progress of long work, on stderr: a line that renews itself on a terminal, a line now and then in a log."""

from __future__ import annotations

import sys
import time

TERMINAL_SECONDS = 0.1
LOG_SECONDS = 10.0


class Progress:
    """Callable that shows (what, done, total)."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._terminal = sys.stderr.isatty()
        self._quiet = quiet
        self._shown = time.monotonic() - (TERMINAL_SECONDS if self._terminal else 0.0)
        self._open = False

    def __call__(self, what: str, done: int, total: int) -> None:
        """Show it, unless something was shown a moment ago."""
        now = time.monotonic()
        if self._quiet or now - self._shown < (TERMINAL_SECONDS if self._terminal else LOG_SECONDS):
            return
        self._shown = now
        text = f"{what} {done:,} of {total:,}" if total else what
        if self._terminal:
            sys.stderr.write(f"\r\x1b[2K{text}")
            self._open = True
        else:
            sys.stderr.write(f"{text}\n")
        sys.stderr.flush()

    def close(self) -> None:
        """Leave a clean line."""
        if self._open:
            sys.stderr.write("\r\x1b[2K")
            sys.stderr.flush()
            self._open = False
