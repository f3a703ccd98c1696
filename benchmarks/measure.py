"""How commands are measured: wall time, and the memory of all their processes together."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TRACKR = Path(sys.executable).parent / "trackr"
DATA = ROOT / "bench-data"


@dataclass(frozen=True, slots=True)
class Measured:
    """One command: wall time (s) and the largest memory of its processes together (MB)."""

    seconds: float
    peak_mb: float


def best(times: int, *arguments: object) -> Measured:
    """The fastest of several runs of a command: what the machine can do when nothing disturbs it."""
    return min((run(*arguments) for _ in range(times)), key=lambda one: one.seconds)


def run(*arguments: object) -> Measured:
    """Run a trackr command."""
    return _measure([str(TRACKR), *map(str, arguments)])


def python(script: str, *arguments: object) -> Measured:
    """Run a script beside this one."""
    return _measure([sys.executable, str(Path(__file__).parent / script), *map(str, arguments)])


def _measure(command: list[str]) -> Measured:
    print("+", " ".join(command), file=sys.stderr)
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    watcher = _Watcher(process.pid)
    watcher.start()
    code = process.wait()
    seconds = time.perf_counter() - started
    watcher.stop()
    if code:
        message = f"{' '.join(command)} ended with {code}"
        raise SystemExit(message)
    return Measured(seconds=seconds, peak_mb=watcher.peak / 1e6)


class _Watcher(threading.Thread):
    """Samples the proportional memory of a process and its descendants."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.pid, self.peak, self._ended = pid, 0, threading.Event()

    def run(self) -> None:
        while not self._ended.wait(0.25):
            self.peak = max(self.peak, sum(_pss(pid) for pid in _tree(self.pid)))

    def stop(self) -> None:
        self._ended.set()
        self.join()


def _tree(root: int) -> list[int]:
    found, waiting = [], [root]
    while waiting:
        pid = waiting.pop()
        found.append(pid)
        for task in Path(f"/proc/{pid}/task").glob("*/children"):
            try:
                waiting += map(int, task.read_text().split())
            except OSError:
                continue
    return found


def _pss(pid: int) -> int:
    """Proportional set size: pages shared by two processes count once."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)


def seconds_of(call: Any) -> float:
    """Wall time of a call (s)."""
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def fresh(name: str) -> Path:
    """An empty folder for results."""
    folder = DATA / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder
