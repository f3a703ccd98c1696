"""Run the command line inside the test process."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from cli.main import main

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class Done:
    """What a command said and how it ended."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        """Its output, read as JSON."""
        return json.loads(self.out)


def runner(capfd: pytest.CaptureFixture[str], *options: str) -> Callable[..., Done]:
    """A function that runs `trackr ARGUMENTS OPTIONS`."""

    def run(*arguments: str) -> Done:
        capfd.readouterr()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("tracker.quick.without_pandas", lambda: None)  # for the whole life of a process, and later tests use frames
            with pytest.raises(SystemExit) as ended:
                main([*arguments, *options])
        out, err = capfd.readouterr()
        return Done(int(ended.value.code or 0), out, err)

    return run
