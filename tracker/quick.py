"""Start-up: what a short process can do without."""

from __future__ import annotations

import os
import sys
from importlib.abc import MetaPathFinder
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType


class _WithoutPandas(MetaPathFinder):
    """Says that pandas is not installed."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        del path, target
        if fullname == "pandas":
            message = "kept out of a process that needs no frames"
            raise ModuleNotFoundError(message, name=fullname)
        return None


def without_pandas() -> None:
    """Keep this process from importing pandas.

    pyarrow imports it, where it is installed, to recognise its arrays in the first list it is given; that costs
    half a second in processes that never see a frame. Only for processes of trackr's own.
    """
    if "pandas" not in sys.modules and not any(isinstance(finder, _WithoutPandas) for finder in sys.meta_path):
        sys.meta_path.insert(0, _WithoutPandas())


def modest_memory() -> None:
    """Let Arrow give memory back to the system at once; for processes that handle much data, a piece at a time.

    Its own allocator keeps what was freed, which doubles the memory of a process that only passes data on.
    """
    if "pyarrow" not in sys.modules:
        os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
