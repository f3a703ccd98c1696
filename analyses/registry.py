"""The analyses there are. Adding one is one new module and one line here."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, cast

from tracker.errors import UsageError

if TYPE_CHECKING:
    from analyses.parameters import AnalysisParameters
    from analyses.result import Result
    from analyses.session import StarSession


class AnalysisModule(Protocol):
    """What a module in `analyses/` offers."""

    NAME: str
    Parameters: type[AnalysisParameters]

    def run(self, session: StarSession, parameters: AnalysisParameters) -> Result:
        """Answer the question from a session."""


@dataclass(frozen=True, slots=True)
class AnalysisEntry:
    """An analysis that is not imported yet."""

    name: str
    module: str
    summary: str

    def load(self) -> AnalysisModule:
        """Import it."""
        return cast("AnalysisModule", importlib.import_module(self.module))


_ALL = (
    AnalysisEntry("ceiling", "analyses.ceiling", "Which questions does scaling not move? Regimes, gains, held-out halves, persistence."),
)


def all_analyses() -> tuple[AnalysisEntry, ...]:
    """Every analysis in the order of the help."""
    return _ALL


def find(name: str) -> AnalysisEntry:
    """The analysis of this name."""
    for entry in _ALL:
        if entry.name == name:
            return entry
    message = f"no analysis is called {name!r}"
    raise UsageError(message, hint="there are: " + ", ".join(entry.name for entry in _ALL))
