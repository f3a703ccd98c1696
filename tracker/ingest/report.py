"""What an ingest did, as text and as JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """Something that was refused, now or by an earlier ingest of the same bytes."""

    file: str
    line: int | None
    reason: str
    text: str | None = None


@dataclass(slots=True, kw_only=True)
class IngestReport:
    """Counts of one ingest."""

    dry_run: bool = False
    sources: int = 0
    new: int = 0
    updated: int = 0
    unchanged: int = 0
    duplicate: int = 0
    outdated: int = 0
    disputed: int = 0
    """Questions about whose gold, options, task or category the sources read now disagree with what is stored."""
    """Runs that another place holds in a later version (by the source's own run id)."""
    removed: int = 0
    """Runs that a changed source no longer holds."""
    partial: int = 0
    records: int = 0
    repeated: int = 0
    """Records that answer a question again: later attempts, of which the last scored one counts in trajectories."""
    bytes: int = 0
    labels: int = 0
    nul_characters: int = 0
    left_out: dict[str, int] = field(default_factory=dict)
    """Sources that were found and are not read, by reason: deleted runs, runs of other experiments."""
    idle_rules: list[str] = field(default_factory=list)
    """Rules of the study file that nothing below its own folder met."""
    skipped: list[str] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
    unknown_models: list[str] = field(default_factory=list)
    unknown_benchmarks: list[str] = field(default_factory=list)
    not_counting: dict[str, int] = field(default_factory=dict)
    """Runs that enter no cell and no trajectory, by reason."""
    loaded: bool = True
    """False when nothing was to be written: a dry run, or `--strict` and something was rejected."""
    ingest_id: int | None = None
    seconds: float = 0.0

    @property
    def exit_code(self) -> int:
        """3 when something that was recognised was rejected, else 0 (DEFINITIONS, Exit codes)."""
        return 3 if self.rejected else 0

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)
