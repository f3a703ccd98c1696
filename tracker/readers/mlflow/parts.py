"""What of a run holds records: its evaluation tables and its traces, each a part."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tracker.batch import Refusal
from tracker.errors import InputError
from tracker.readers.mlflow import tables, traces
from tracker.readers.single import chunk_of, run_batches
from tracker.readers.tabular import Chunk
from tracker.study import coerce

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tracker.batch import Batch, RunHeader, Source
    from tracker.readers.mlflow.model import Artifact, MlflowRun, Trace
    from tracker.readers.mlflow.tables import Piece
    from tracker.study import Study
    from tracker.table_rules import TableRule

LABEL_SOURCE = "mlflow"
TRACES_PART = "traces"
TRACE_ROWS = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TracePart:
    """A run's traces."""

    traces: Sequence[Trace]
    shown: str
    path: str = TRACES_PART
    given: dict[str, Any] = field(default_factory=dict)

    def batches(self, header: RunHeader) -> Iterator[Batch | Refusal]:
        """One record per trace."""
        rows = traces.rows(self.traces, header.benchmark or "")
        chunks = (
            chunk_of(
                rows[start : start + TRACE_ROWS], list(range(start + 1, start + 1 + len(rows[start : start + TRACE_ROWS]))), unit="trace"
            )
            for start in range(0, len(rows), TRACE_ROWS)
        )
        yield from run_batches(self.shown, header, chunks, label_source=LABEL_SOURCE)


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePart:
    """An evaluation table, with the study's rule for it where there is one."""

    artifact: Artifact
    shown: str
    rule: TableRule | None = None
    given: dict[str, Any] = field(default_factory=dict)

    @property
    def path(self) -> str:
        """Its place among the run's artifacts."""
        return self.artifact.path

    def batches(self, header: RunHeader) -> Iterator[Batch | Refusal]:
        """One record per row."""
        yield from run_batches(self.shown, header, self._pieces(header.benchmark or ""), label_source=LABEL_SOURCE)

    def _pieces(self, benchmark: str) -> Iterator[Piece]:
        columns: Any = None
        with tables.as_file(self.artifact) as path:
            for piece in tables.pieces(path, self.shown):
                if not isinstance(piece, Chunk):
                    yield piece
                elif self.rule is not None:
                    yield from tables.by_rule(self.rule, piece, self.shown)
                else:
                    columns = columns or tables.TableColumns(piece, benchmark)
                    yield from columns.native(piece, self.shown)


def parts_of(run: MlflowRun, source: Source, study: Study, refusals: list[Refusal]) -> Iterator[TracePart | TablePart]:
    """What of a run holds records; tables that cannot be read are refused, those without questions are left."""
    for artifact in run.tables:
        shown = artifact.uri or f"{source.uri}/artifacts/{artifact.path}"
        rule = study.table_rule(shown)
        try:
            if rule is not None:
                given = coerce(rule.captures(study.path_text(shown)) or {}, f"{shown}: {study.place(rule)}")
                yield TablePart(artifact=artifact, shown=shown, rule=rule, given=given)
            elif tables.is_credible(_names(artifact, shown)):
                yield TablePart(artifact=artifact, shown=shown)
        except (InputError, OSError) as err:
            message = f"{err.message} ({err.hint})" if isinstance(err, InputError) and err.hint else getattr(err, "message", str(err))
            refusals.append(Refusal(file=shown, reason=message))
    if any(traces.SCORER_TRACE not in trace.tags for trace in run.traces):
        yield TracePart(traces=run.traces, shown=f"{source.uri}/traces")


def _names(artifact: Artifact, shown: str) -> list[str]:
    """Column names of a table."""
    with tables.as_file(artifact) as path:
        if names := tables.names_in(path):
            return names
        for piece in tables.pieces(path, shown):
            if isinstance(piece, Chunk):
                return list(piece.columns)
    return []
