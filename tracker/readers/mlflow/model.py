"""An MLflow run as any kind of store tells it: what `database`, `files` and `server` make, and `mapping` turns into batches."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path  # noqa: TC003 - dataclass fields are read at run time
from typing import TYPE_CHECKING, Any, Self

from tracker.batch import METRIC_POINTS

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from tracker.batch import Refusal

BIGGEST = 1.7976931348623157e308
"""What MLflow's database stores write for infinity (and its negative for minus infinity)."""
RUN_STATUS = {1: "RUNNING", 2: "SCHEDULED", 3: "FINISHED", 4: "FAILED", 5: "KILLED"}
"""How file stores number the states of a run."""
MODEL_STATUS = {1: "PENDING", 2: "READY", 3: "FAILED"}
"""How stores number the states of a logged model."""
NO_POINTS = METRIC_POINTS.empty_table()
DELETED = "deleted in MLflow"
"""`Source.left_out` of a deleted run (or of a run of a deleted experiment)."""


class Address(str):
    """A store's address without login and password, which is what is shown and stored; `url` opens it.

    As `Source.group` it takes the password along to where the source is read, and nowhere else.
    """

    __slots__ = ("url",)
    url: str

    def __new__(cls, shown: str, url: str) -> Self:
        """An address and what opens it."""
        made = super().__new__(cls, shown)
        made.url = url
        return made

    def __reduce__(self) -> tuple[type[Self], tuple[str, str]]:
        return type(self), (str(self), self.url)


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """A file among a run's artifacts; `load` gives its bytes, and raises InputError when it cannot."""

    path: str
    """Relative to the run's artifacts, with '/'."""
    load: Callable[[], bytes]
    uri: str | None = None
    """Where it is, as messages and `[[table]]` rules see it; None means the source's uri, "/artifacts/" and the path."""
    file: Path | None = None
    """The same, where it is a file here."""
    is_table: bool = False
    """Whether the run's tag mlflow.loggedArtifacts says that it was logged as a table."""


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
    """Inputs of the root span: a JSON value, or text that is JSON or plain text (maybe a preview that was cut)."""
    response: Any = None
    status: str | None = None
    """OK, ERROR, IN_PROGRESS (or what another version calls them)."""
    duration_ms: float | None = None
    timestamp_ms: int | None = None
    metadata: dict[str, str] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    assessments: list[dict[str, Any]] = field(default_factory=list)
    """name, value (a JSON value), source_type (CODE, HUMAN, LLM_JUDGE), rationale, error, valid (False: overridden by a
    later one), created_ms, and expectation (True for an expectation, which is gold; False for feedback)."""


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
    points: pa.Table = field(default_factory=lambda: NO_POINTS)
    """Metric histories, as `points.points_table` makes them."""
    datasets: list[dict[str, Any]] = field(default_factory=list)
    """name, digest, source_type, context."""
    models: list[LoggedModel] = field(default_factory=list)
    tables: list[Artifact] = field(default_factory=list)
    """Artifacts that were logged as tables (tag mlflow.loggedArtifacts) or look like evaluation tables."""
    traces: list[Trace] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    """What of the run could not be read; the rest goes in."""
    partial: str | None = None
    """Why the run is not whole though its status may say so."""
