"""Runs of a tracking server with everything that belongs to them: some at a time, in order, with a few requests at once."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from tracker.batch import METRIC_POINTS, Refusal
from tracker.errors import InputError
from tracker.readers.mlflow.http_client import BrokenError, GoneError, MissingError, RejectedError, batches_of
from tracker.readers.mlflow.model import BIGGEST, LoggedModel, MlflowRun
from tracker.readers.mlflow.points import points_table
from tracker.readers.mlflow.server import API, models_of, runs_of_model
from tracker.readers.mlflow.server_files import tables_of
from tracker.readers.mlflow.server_traces import traces_of
from tracker.readers.mlflow.trace_parts import milliseconds, pairs
from tracker.readers.values import as_mapping, number

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from concurrent.futures import Future

    from tracker.batch import Source
    from tracker.readers.mlflow.http_client import Client

THREADS = 6
CHUNK_RUNS = 100
"""Runs that are asked for together: what the server's bulk history takes at most."""
HISTORY_PAGE = 25_000
"""Points per page, and the most that a bulk history gives."""
CHUNK_POINTS = 2_000_000
"""Points of bulk histories that are held at once."""
BULK = "/ajax-api/2.0/mlflow/metrics/get-history-bulk"
_MODEL_STATUS = "LOGGED_MODEL_"
_MOST = 2**63


@dataclass(slots=True)
class History:
    """The points of one metric of one run."""

    steps: list[int] = field(default_factory=list)
    times: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    odd: list[dict[str, Any]] = field(default_factory=list)
    """What is no point."""

    def add(self, told: Mapping[str, Any]) -> None:
        """One more point, as the API gives it."""
        step, time = milliseconds(told.get("step", 0)), milliseconds(told.get("timestamp", 0))
        value = value_of(told.get("value"))
        if step is None or time is None or value is None or not -_MOST <= step < _MOST:
            self.odd.append(dict(told))
            return
        self.steps.append(step)
        self.times.append(time)
        self.values.append(value)

    def holds(self, latest: History) -> bool:
        """Whether the one point of another history is among these."""
        wanted = (latest.steps[0], latest.times[0])
        return any(
            (step, time) == wanted and (value == latest.values[0] or (math.isnan(value) and math.isnan(latest.values[0])))
            for step, time, value in zip(self.steps, self.times, self.values, strict=True)
        )


class Reading:
    """Reads runs of one server."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self._bulk = True
        self._closed: set[str] = set()
        """Artifact stores that the server cannot list."""
        self._models: dict[str, dict[str, list[dict[str, Any]]]] = {}
        """By experiment: models by run."""

    def runs(self, sources: Sequence[Source]) -> Iterator[tuple[Source, MlflowRun | InputError]]:
        """Runs in order, or why there is none. Raises GoneError when the server does not answer any more."""
        with ThreadPoolExecutor(THREADS, thread_name_prefix="trackr-mlflow") as pool:
            try:
                for chunk in batches_of(sources, CHUNK_RUNS):
                    told = self._told(chunk)
                    histories = self._histories(told, pool)
                    self._note_models(chunk)
                    waiting = [
                        (
                            source,
                            pool.submit(self._run, source, told[run], histories.pop(run, {}))
                            if (run := source.mapping["run"]) in told
                            else None,
                        )
                        for source in chunk
                    ]
                    for source, future in waiting:
                        yield source, self._result(source, future)
            finally:
                pool.shutdown(wait=True, cancel_futures=True)

    def _result(self, source: Source, future: Future[MlflowRun] | None) -> MlflowRun | InputError:
        if future is None:
            return InputError("the run is not on the server any more", where=source.uri, hint="ingest the server again")
        try:
            return future.result()
        except GoneError:
            raise
        except InputError as err:
            return err

    # ---- what runs are ---------------------------------------------------------------------------

    def _told(self, sources: Sequence[Source]) -> dict[str, dict[str, Any]]:
        """What the server says of some runs, by id."""
        wanted = [str(source.mapping["run"]) for source in sources]
        listed = ",".join(f"'{run}'" for run in wanted)
        body = {
            "experiment_ids": list(dict.fromkeys(str(source.mapping["experiment"]) for source in sources)),
            "filter": f"attributes.run_id IN ({listed})",
            "run_view_type": "ALL",
            "max_results": len(wanted),
        }
        try:
            found = [run for page in self.client.pages(f"{API}/runs/search", body, "runs") for run in page]
        except (RejectedError, BrokenError):  # a server that knows no IN
            found = [run for one in wanted if (run := self._one(one)) is not None]
        return {run["info"].get("run_id") or run["info"].get("run_uuid"): run for run in found if isinstance(run.get("info"), dict)}

    def _one(self, run_id: str) -> dict[str, Any] | None:
        try:
            found = self.client.get(f"{API}/runs/get", {"run_id": run_id}).get("run")
        except MissingError:
            return None
        return found if isinstance(found, dict) else None

    def _run(self, source: Source, told: dict[str, Any], histories: dict[str, History]) -> MlflowRun:
        info, data = told["info"], as_mapping(told.get("data"))
        run = MlflowRun(
            run_id=source.mapping["run"],
            experiment_id=str(info.get("experiment_id")),
            experiment=source.experiment or str(info.get("experiment_id")),
            status=str(info.get("status") or "RUNNING"),
            start_ms=milliseconds(info.get("start_time")),
            end_ms=milliseconds(info.get("end_time")),
            user=info.get("user_id") or None,
            artifact_uri=info.get("artifact_uri"),
            params=pairs(data.get("params")),
            tags=pairs(data.get("tags")),
            datasets=_datasets(told.get("inputs")),
        )
        run.name = info.get("run_name") or run.tags.get("mlflow.runName")
        run.points = self._points(source, run, _latest(data.get("metrics")), histories)
        if source.mapping.get("models"):
            run.models = [_model(one, run) for one in self._models[run.experiment_id].get(run.run_id, ())]
        run.tables = tables_of(self.client, run, source, self._closed)
        if source.mapping.get("traces"):
            run.traces = traces_of(self.client, run, source)
        return run

    # ---- metric histories ------------------------------------------------------------------------

    def _points(self, source: Source, run: MlflowRun, latest: dict[str, History], histories: dict[str, History]) -> pa.Table:
        """All points of a run. What the server's bulk history lacks is asked for alone, and the last value is always there."""
        for key, last in latest.items():
            history = histories.get(key)
            if history is None or (last.steps and not history.holds(last)):
                history = histories[key] = self._history(run.run_id, key)
            if last.steps and not history.holds(last):
                reason = f"its history of {len(history.steps)} points lacks the metric's latest value, which stands in (ingest again)"
                run.refusals.append(Refusal(file=source.uri, reason=f"metric {key}: {reason}"))
                history.steps += last.steps
                history.times += last.times
                history.values += last.values
            run.refusals += [
                Refusal(file=source.uri, reason=f"metric {key}: a point without a number as value, step or time", text=str(odd)[:200])
                for odd in history.odd
            ]
        names = [key for key in latest if histories[key].steps]
        if not names:
            return METRIC_POINTS.empty_table()
        codes = np.repeat(np.arange(len(names)), [len(histories[key].steps) for key in names])
        return points_table(
            pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), pa.array(names, pa.string())),
            np.fromiter(chain.from_iterable(histories[key].steps for key in names), np.int64),
            np.fromiter(chain.from_iterable(histories[key].times for key in names), np.int64),
            np.fromiter(chain.from_iterable(histories[key].values for key in names), np.float64),
        )

    def _history(self, run_id: str, key: str) -> History:
        """One history, page by page. `max_results` is always sent: some servers answer without any point otherwise."""
        found = History()
        body = {"run_id": run_id, "run_uuid": run_id, "metric_key": key, "max_results": HISTORY_PAGE}
        for page in self.client.pages(f"{API}/metrics/get-history", body, "metrics", method="GET"):
            for point in page:
                found.add(point)
        return found

    def _histories(self, told: dict[str, dict[str, Any]], pool: ThreadPoolExecutor) -> dict[str, dict[str, History]]:
        """Histories that the server gives for many runs at once: those of metrics that several runs have."""
        runs: dict[str, list[str]] = {}
        for run_id, run in told.items():
            for key in _latest(as_mapping(run.get("data")).get("metrics")):
                runs.setdefault(key, []).append(run_id)
        shared = [(key, some) for key, some in runs.items() if len(some) > 1]
        found: dict[str, dict[str, History]] = {}
        held = 0
        for some in batches_of(shared, THREADS * 2):
            if not self._bulk or held > CHUNK_POINTS:
                break
            for key, histories in zip((key for key, _ in some), pool.map(self._together, some), strict=True):
                for run_id, history in histories.items():
                    found.setdefault(run_id, {})[key] = history
                    held += len(history.steps)
        return found

    def _together(self, wanted: tuple[str, Sequence[str]]) -> dict[str, History]:
        """One metric of some runs; without those whose points are more than an answer holds."""
        key, runs = wanted
        if not self._bulk or len(runs) == 1:
            return {}
        try:
            listed = self.client.get(BULK, {"run_id": list(runs), "metric_key": key, "max_results": HISTORY_PAGE}).get("metrics")
        except GoneError:
            raise
        except InputError:  # an older server, or one that shows only its API
            self._bulk = False
            return {}
        points = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
        if len(points) >= HISTORY_PAGE:
            half = len(runs) // 2
            return self._together((key, runs[:half])) | self._together((key, runs[half:]))
        found: dict[str, History] = {}
        for point in points:
            found.setdefault(str(point.get("run_id")), History()).add(point)
        return found

    # ---- logged models ---------------------------------------------------------------------------

    def _note_models(self, sources: Sequence[Source]) -> None:
        for source in sources:
            experiment = str(source.mapping["experiment"])
            if source.mapping.get("models") and experiment not in self._models:
                held = self._models.setdefault(experiment, {})
                for model in models_of(self.client, [experiment]):
                    for run in runs_of_model(model):
                        held.setdefault(run, []).append(model)


def value_of(told: Any) -> float | None:
    """A metric's value as it was logged: names of NaN and infinities, and the database's stand-in for infinity, undone."""
    found = number(told)
    if found.special is not None:
        return float(found.special)
    if found.value is None:
        return None
    return math.copysign(math.inf, found.value) if abs(found.value) >= BIGGEST else found.value


def _latest(told: Any) -> dict[str, History]:
    """The latest point of each metric."""
    found: dict[str, History] = {}
    for one in told if isinstance(told, list) else ():
        if isinstance(one, dict) and isinstance(one.get("key"), str):
            found.setdefault(one["key"], History()).add(one)
    return found


def _datasets(told: Any) -> list[dict[str, Any]]:
    found = []
    for one in as_mapping(told).get("dataset_inputs") or ():
        held = as_mapping(as_mapping(one).get("dataset"))
        if held:
            about = {name: held.get(name) for name in ("name", "digest", "source_type")}
            found.append(about | {"context": pairs(as_mapping(one).get("tags")).get("mlflow.data.context")})
    return sorted(found, key=lambda one: (str(one["name"]), str(one["digest"])))


def _model(told: dict[str, Any], run: MlflowRun) -> LoggedModel:
    """A logged model with what this run measured of it. Servers give 0 for NaN here: the run's own points know better."""
    info, data = as_mapping(told.get("info")), as_mapping(told.get("data"))
    nans = _nan_points(run.points) if data.get("metrics") else set()
    status = info.get("status")
    model = LoggedModel(
        model_id=str(info.get("model_id")),
        name=info.get("name"),
        status=str(status).removeprefix(_MODEL_STATUS).removesuffix("_UPLOAD") if status else None,
        params=pairs(data.get("params")),
        tags=pairs(info.get("tags")),
    )
    for one in data.get("metrics") or ():
        if isinstance(one, dict) and one.get("run_id") == run.run_id:
            name, step, time = one.get("key"), milliseconds(one.get("step", 0)), milliseconds(one.get("timestamp"))
            value = math.nan if (name, step, time) in nans else value_of(one.get("value"))
            about = {"name": name, "value": value, "step": step, "timestamp": time}
            model.metrics.append(about | {"dataset_name": one.get("dataset_name"), "dataset_digest": one.get("dataset_digest")})
    return model


def _nan_points(points: pa.Table) -> set[tuple[str, int, int | None]]:
    found = set()
    for row in points.select(["metric", "step", "special", "logged_at"]).to_pylist():
        if row["special"] == "nan":
            found.add((row["metric"], row["step"], None if row["logged_at"] is None else round(row["logged_at"].timestamp() * 1000)))
    return found
