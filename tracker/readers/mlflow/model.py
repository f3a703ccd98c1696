"""An MLflow run as any kind of store tells it: what `database`, `files` and `server` make, and `mapping` turns into batches."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tracker.batch import METRIC_POINTS

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

BIGGEST = 1.7976931348623157e308
"""What MLflow's database stores write for infinity (and its negative for minus infinity)."""
RUN_STATUS = {1: "RUNNING", 2: "SCHEDULED", 3: "FINISHED", 4: "FAILED", 5: "KILLED"}
"""How file stores number the states of a run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """A file among a run's artifacts; `load` gives its bytes, and raises InputError when it cannot."""

    path: str
    """Relative to the run's artifacts, with '/'."""
    load: Callable[[], bytes]


@dataclass(slots=True, kw_only=True)
class LoggedModel:
    """A logged model (MLflow 3) and the metrics that belong to it."""

    model_id: str
    name: str | None = None
    status: str | None = None
    params: dict[str, str] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    metrics: list[dict[str, Any]] = field(default_factory=list)
    """name, value (infinities and NaN as floats), step, timestamp (ms), dataset_name, dataset_digest."""


@dataclass(slots=True, kw_only=True)
class Trace:
    """One GenAI trace: a question asked, answered and assessed."""

    trace_id: str
    request: Any = None
    response: Any = None
    status: str | None = None
    duration_ms: float | None = None
    timestamp_ms: int | None = None
    metadata: dict[str, str] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    assessments: list[dict[str, Any]] = field(default_factory=list)
    """name, value (a JSON value), source_type (CODE, HUMAN, LLM_JUDGE), rationale, valid, and whether it is an expectation."""


@dataclass(slots=True, kw_only=True)
class MlflowRun:
    """A run with everything that belongs to it."""

    run_id: str
    name: str | None = None
    experiment_id: str
    experiment: str
    """Name of the experiment."""
    status: str = "FINISHED"
    """RUNNING, SCHEDULED, FINISHED, FAILED or KILLED."""
    start_ms: int | None = None
    end_ms: int | None = None
    user: str | None = None
    artifact_uri: str | None = None
    params: dict[str, str] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    points: pa.Table = field(default_factory=METRIC_POINTS.empty_table)
    """Metric histories in the columns of METRIC_POINTS: `seq` numbers the points of one (metric, step) by time, from 0."""
    datasets: list[dict[str, Any]] = field(default_factory=list)
    """name, digest, source_type, context."""
    models: list[LoggedModel] = field(default_factory=list)
    tables: list[Artifact] = field(default_factory=list)
    """Artifacts that were logged as tables (tag mlflow.loggedArtifacts) or look like evaluation tables."""
    traces: list[Trace] = field(default_factory=list)
