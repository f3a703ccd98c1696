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
    AnalysisEntry("law", "analyses.law", "How does error fall with model size and visual tokens? L = e + A/N^alpha + B/R^beta per group."),
    AnalysisEntry(
        "forms", "analyses.forms", "Which functional form fits? Separable, multiplicative, coupled, CES and p-norm on the same cells."
    ),
    AnalysisEntry(
        "bootstrap", "analyses.bootstrap", "How sure are the fits? Refits on resampled image clusters: intervals, bounds hit, two forms."
    ),
    AnalysisEntry(
        "holdout", "analyses.holdout", "Does the law predict what it has not seen? A backbone size, an input size or both left out."
    ),
    AnalysisEntry("floors", "analyses.floors", "Which tasks keep an error floor? Fits per series, suite and task."),
    AnalysisEntry("taxonomy", "analyses.taxonomy", "Where are the floors, by domain and skill? Pairings, marginals, variance shares."),
    AnalysisEntry("exponents", "analyses.exponents", "How fast does error fall with N and with R? Exponents by family and series."),
    AnalysisEntry("tokens", "analyses.tokens", "How far do visual tokens move with input size? Spans, unchanged questions, decreases."),
    AnalysisEntry(
        "sweep", "analyses.sweep", "What do more visual tokens buy at a fixed model? Paired gains of token sweeps and source quality."
    ),
    AnalysisEntry("cost", "analyses.cost", "What does an answer cost? C = kappa N^p R^q on FLOPs and latency, and allocation paths."),
    AnalysisEntry("allocate", "analyses.allocate", "How to spend a budget? Closed-form N* and R* per group, elasticities."),
    AnalysisEntry("regret", "analyses.regret", "How good are choices by the law? Regret of five rules, in sample and held out."),
    AnalysisEntry("profile", "analyses.profile", "What does a benchmark separate? Regimes and the axis that questions respond to."),
    AnalysisEntry(
        "agreement", "analyses.agreement", "Can the scores be trusted? Text against logit predictions, token limits, parser failures."
    ),
    AnalysisEntry(
        "compare", "analyses.compare", "Which of two or more is better? Paired differences on common questions, McNemar, Holm, flips."
    ),
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
