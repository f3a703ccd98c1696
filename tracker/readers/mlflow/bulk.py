"""Runs of a database store, some hundred at a time: every table once, split by run afterwards."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
import pyarrow as pa

from tracker.readers.mlflow.artifacts import Places
from tracker.readers.mlflow.database import LOGGED_ARTIFACTS, trace_owners
from tracker.readers.mlflow.model import BIGGEST, MODEL_STATUS, LoggedModel, MlflowRun, Trace
from tracker.readers.mlflow.points import points_of_runs
from tracker.readers.mlflow.traces import MODEL_NAME, TOKEN_USAGE
from tracker.readers.values import json_text, number, whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tracker.readers.mlflow.store import Store

    Wholes = np.ndarray[Any, np.dtype[np.int64]]
    _Part = tuple[Wholes, pa.Array, Wholes, Wholes, np.ndarray[Any, np.dtype[np.float64]]]

CHUNK_POINTS = 2_000_000
"""Metric points that are held at once (a single run may have more)."""
MOST = 2**63 - 1
NAMELESS = "(no name)"
"""Stands for the name of a metric where a damaged file holds null."""


class Bulk:
    """Reads runs of one open store."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def runs(self, ids: Sequence[str]) -> dict[str, MlflowRun]:
        """Runs by id; those that the store does not hold any more are missing."""
        store = self.store
        user = store.column("runs", "user_id", alias="r.")
        artifact_uri = store.column("runs", "artifact_uri", alias="r.")
        made: list[MlflowRun | None] = [None] * len(ids)
        statement = (
            f"SELECT w.n, r.name, r.status, r.start_time, r.end_time, {user}, {artifact_uri}, r.experiment_id, e.name"
            " FROM {wanted} runs r ON r.run_uuid = w.id JOIN experiments e ON e.experiment_id = r.experiment_id"
        )
        for n, name, status, start, end, owner, uri, experiment_id, experiment in store.all(statement, ids):
            made[n] = MlflowRun(
                run_id=ids[n],
                name=name,
                experiment_id=str(experiment_id),
                experiment=str(experiment),
                status=str(status or "RUNNING"),
                start_ms=whole(start),
                end_ms=whole(end),
                user=owner,
                artifact_uri=uri,
            )
        for table in ("params", "tags"):
            for n, key, value in store.all(f"SELECT w.n, t.key, t.value FROM {{wanted}} {table} t ON t.run_uuid = w.id", ids):
                run = made[n]
                if run is not None:
                    getattr(run, table)[str(key)] = "" if value is None else str(value)
        nans = self._add_points(made, ids)
        self._add_datasets(made, ids)
        self._add_models(made, ids, nans)
        self._add_traces(made, ids)
        places = Places(store.folder)
        for run in made:
            if run is not None:
                run.tables = places.tables(run.artifact_uri, run.tags.get(LOGGED_ARTIFACTS))
        return {run.run_id: run for run in made if run is not None}

    # ---- metrics -----------------------------------------------------------------------------

    def _add_points(self, made: Sequence[MlflowRun | None], ids: Sequence[str]) -> set[tuple[int, str, int, int]]:
        """Metric histories; also (run, metric, step, time) of those that are NaN."""
        store = self.store
        step, is_nan = store.column("metrics", "step", "0", "m."), store.column("metrics", "is_nan", "NULL", "m.")
        value = f"CASE WHEN {is_nan} THEN NULL ELSE m.value END"
        statement = f"SELECT w.n, m.key, {step}, m.timestamp, {value} FROM {{wanted}} metrics m ON m.run_uuid = w.id{store.by_n}"
        measured = store.has("logged_model_metrics", "run_id") and bool(store.all("SELECT 1 FROM logged_model_metrics LIMIT 1"))
        nans: set[tuple[int, str, int, int]] = set()
        held = _Points()
        for rows in store.rows(statement, ids):
            held.add(rows)
            if held.size > CHUNK_POINTS and (whole_runs := held.split()) is not None:
                nans |= _share_points(whole_runs, made, measured=measured)
        return nans | _share_points(held, made, measured=measured)

    # ---- what belongs to a run ---------------------------------------------------------------

    def _add_datasets(self, made: Sequence[MlflowRun | None], ids: Sequence[str]) -> None:
        store = self.store
        if not (store.has("inputs", "destination_id") and store.has("datasets", "dataset_uuid")):
            return
        tagged = store.has("input_tags", "input_uuid")
        context = (
            "(SELECT MAX(g.value) FROM input_tags g WHERE g.input_uuid = i.input_uuid AND g.name = 'mlflow.data.context')"
            if tagged
            else "NULL"
        )
        statement = (
            f"SELECT w.n, d.name, d.digest, d.dataset_source_type, {context}"
            " FROM {wanted} inputs i ON i.destination_type = 'RUN' AND i.destination_id = w.id AND i.source_type = 'DATASET'"
            " JOIN datasets d ON d.dataset_uuid = i.source_id ORDER BY w.n, d.name, d.digest"
        )
        for n, name, digest, kind, used in store.all(statement, ids):
            run = made[n]
            if run is not None:
                run.datasets.append({"name": name, "digest": digest, "source_type": kind, "context": used})

    def _add_models(self, made: Sequence[MlflowRun | None], ids: Sequence[str], nans: set[tuple[int, str, int, int]]) -> None:
        """Models that a run logged, and those that it only measured."""
        store = self.store
        if not (store.has("logged_models", "model_id", "source_run_id") and store.has("logged_model_metrics", "run_id")):
            return
        models: list[dict[str, LoggedModel]] = [{} for _ in ids]
        owned = "SELECT w.n, m.model_id, m.name, m.status FROM {wanted} logged_models m ON m.source_run_id = w.id"
        measured = (
            "SELECT DISTINCT w.n, m.model_id, m.name, m.status FROM {wanted} logged_model_metrics x ON x.run_id = w.id"
            " JOIN logged_models m ON m.model_id = x.model_id"
        )
        for statement in (owned, measured):
            for n, model_id, name, status in store.all(statement + " ORDER BY w.n, m.model_id", ids):
                models[n].setdefault(model_id, LoggedModel(model_id=model_id, name=name, status=MODEL_STATUS.get(status, str(status))))
        if not any(models):
            return
        statement = (
            "SELECT w.n, x.model_id, x.metric_name, x.metric_value, x.metric_step, x.metric_timestamp_ms, x.dataset_name, x.dataset_digest"
            " FROM {wanted} logged_model_metrics x ON x.run_id = w.id ORDER BY w.n, x.model_id, x.metric_name, x.metric_step, x.metric_timestamp_ms"
        )
        for n, model_id, name, value, step, time, dataset, digest in store.all(statement, ids):
            if model_id in models[n]:
                told = {"name": name, "value": _value(value, is_nan=(n, name, step, time) in nans), "step": step, "timestamp": time}
                models[n][model_id].metrics.append(told | {"dataset_name": dataset, "dataset_digest": digest})
        self._add_model_facts(models)
        for run, found in zip(made, models, strict=True):
            if run is not None:
                run.models = list(found.values())

    def _add_model_facts(self, models: Sequence[dict[str, LoggedModel]]) -> None:
        """Params and tags of logged models."""
        by_id: dict[str, list[LoggedModel]] = {}
        for found in models:
            for model_id, model in found.items():
                by_id.setdefault(model_id, []).append(model)
        wanted = list(by_id)
        for table, key, value in (("params", "param_key", "param_value"), ("tags", "tag_key", "tag_value")):
            if not self.store.has(f"logged_model_{table}", key, value):
                continue
            statement = f"SELECT w.n, t.{key}, t.{value} FROM {{wanted}} logged_model_{table} t ON t.model_id = w.id"
            for some in _pieces(wanted):
                for n, name, told in self.store.all(statement, some):
                    for model in by_id[some[n]]:
                        getattr(model, table)[str(name)] = "" if told is None else str(told)

    # ---- traces ------------------------------------------------------------------------------

    def _add_traces(self, made: Sequence[MlflowRun | None], ids: Sequence[str]) -> None:
        store = self.store
        if not (store.has("trace_info", "request_id", "execution_time_ms") and store.has("trace_request_metadata", "request_id")):
            return
        owners = trace_owners(store, ids)
        places = {run_id: n for n, run_id in enumerate(ids)}
        for wanted in _pieces(list(owners)):
            traces = self._traces(wanted)
            for trace in sorted(traces.values(), key=lambda one: (one.timestamp_ms or 0, one.trace_id)):
                for run_id in owners[trace.trace_id]:
                    run = made[places[run_id]] if run_id in places else None
                    if run is not None:
                        run.traces.append(trace)

    def _traces(self, wanted: Sequence[str]) -> dict[str, Trace]:
        store = self.store
        names = ("request_preview", "response_preview", "input_tokens", "output_tokens")
        columns = ", ".join(store.column("trace_info", name, alias="t.") for name in names)
        statement = (
            f"SELECT t.request_id, t.status, t.execution_time_ms, t.timestamp_ms, {columns}"
            " FROM {wanted} trace_info t ON t.request_id = w.id"
        )
        traces: dict[str, Trace] = {}
        for trace_id, status, duration, time, request, response, *tokens in store.all(statement, wanted):
            used = dict(zip(("input_tokens", "output_tokens"), tokens, strict=True)) if tokens != [None, None] else None
            traces[trace_id] = Trace(
                trace_id=trace_id,
                request=request,
                response=response,
                status=status,
                duration_ms=number(duration).value,
                timestamp_ms=whole(time),
                metadata={} if used is None else {TOKEN_USAGE: json_text(used)},
            )
        for table, target in (("trace_request_metadata", "metadata"), ("trace_tags", "tags")):
            if store.has(table, "request_id"):
                for trace_id, key, value in store.all(
                    f"SELECT t.request_id, t.key, t.value FROM {{wanted}} {table} t ON t.request_id = w.id", wanted
                ):
                    if trace_id in traces:
                        getattr(traces[trace_id], target)[key] = value
        for trace in traces.values():
            trace.request = trace.metadata.get("mlflow.traceInputs", trace.request) if trace.request is None else trace.request
            trace.response = trace.metadata.get("mlflow.traceOutputs", trace.response) if trace.response is None else trace.response
        self._add_spans(traces, wanted)
        self._add_assessments(traces, wanted)
        return traces

    def _add_spans(self, traces: dict[str, Trace], wanted: Sequence[str]) -> None:
        """Whole inputs and outputs, where the store holds spans (previews end after 1,000 characters)."""
        if not self.store.has("spans", "trace_id", "parent_span_id", "content"):
            return
        if self.store.has("spans", "model_name"):
            statement = "SELECT DISTINCT s.trace_id, s.model_name FROM {wanted} spans s ON s.trace_id = w.id AND s.model_name IS NOT NULL ORDER BY 1, 2"
            for trace_id, name in self.store.all(statement, wanted):
                if trace_id in traces:
                    traces[trace_id].metadata.setdefault(MODEL_NAME, name)
        statement = "SELECT s.trace_id, s.content FROM {wanted} spans s ON s.trace_id = w.id AND s.parent_span_id IS NULL"
        for some in self.store.rows(statement, wanted):
            for trace_id, content in some:
                trace = traces.get(trace_id)
                if trace is not None:
                    set_from_span(trace, json_or_text(content))

    def _add_assessments(self, traces: dict[str, Trace], wanted: Sequence[str]) -> None:
        store = self.store
        if not store.has("assessments", "trace_id", "value"):
            return
        names = ("assessment_type", "error", "source_type", "rationale", "valid", "created_timestamp")
        columns = ", ".join(store.column("assessments", name, alias="a.") for name in names)
        statement = (
            f"SELECT a.trace_id, a.name, a.value, {columns} FROM {{wanted}} assessments a ON a.trace_id = w.id ORDER BY a.created_timestamp"
        )
        for trace_id, name, value, kind, error, source, rationale, valid, created in store.all(statement, wanted):
            if trace_id in traces and kind != "issue":
                traces[trace_id].assessments.append(
                    {
                        "name": name,
                        "value": json_or_text(value),
                        "source_type": source,
                        "rationale": rationale,
                        "error": json_or_text(error),
                        "valid": valid not in (0, False),
                        "created_ms": whole(created),
                        "expectation": kind == "expectation",
                    }
                )


def json_or_text(value: Any) -> Any:
    """A JSON value of its text; text that is no JSON stays."""
    if not isinstance(value, str | bytes):
        return value
    try:
        return orjson.loads(value)
    except ValueError:
        return value if isinstance(value, str) else value.decode("utf-8", "replace")


def set_from_span(trace: Trace, span: Any) -> None:
    """Inputs and outputs of a trace from its root span (attributes hold JSON texts)."""
    attributes = span.get("attributes") if isinstance(span, dict) else None
    if not isinstance(attributes, dict):
        return
    if attributes.get("mlflow.spanInputs") is not None:
        trace.request = json_or_text(attributes["mlflow.spanInputs"])
    if attributes.get("mlflow.spanOutputs") is not None:
        trace.response = json_or_text(attributes["mlflow.spanOutputs"])


def _pieces(ids: Sequence[str], size: int = 500) -> Iterator[Sequence[str]]:
    return (ids[start : start + size] for start in range(0, len(ids), size))


class _Points:
    """Metric points as columns: run, metric, step, time, value with NaN and infinities as they were logged. Rows come by run."""

    def __init__(self) -> None:
        self.size = 0
        self._parts: list[_Part] = []

    def add(self, rows: Sequence[Any]) -> None:
        """More rows."""
        runs, names, steps, times, told = zip(*rows, strict=True)
        try:
            values = np.array(told, np.float64)
        except (TypeError, ValueError):  # a column of SQLite may hold anything
            values = np.array([_value(one) for one in told], np.float64)
        values[values == BIGGEST] = np.inf
        values[values == -BIGGEST] = -np.inf
        try:
            keys = pa.array(names, pa.string())
        except (pa.ArrowException, TypeError, UnicodeEncodeError):
            keys = pa.array([one.decode("utf-8", "replace") if isinstance(one, bytes) else str(one) for one in names], pa.string())
        if keys.null_count:
            keys = keys.fill_null(NAMELESS)
        self._parts.append((np.array(runs, np.int64), keys.dictionary_encode(), _wholes(steps), _wholes(times), values))
        self.size += len(runs)

    def split(self) -> _Points | None:
        """All runs but the last, of which more rows may come: they are taken out. None where there is but one."""
        last = int(self._parts[-1][0][-1])
        if int(self._parts[0][0][0]) == last:
            return None
        runs, names, steps, times, values = self.columns()
        cut = int(np.searchsorted(runs, last))
        taken = _Points()
        taken._parts, taken.size = [(runs[:cut], names[:cut], steps[:cut], times[:cut], values[:cut])], cut
        self._parts, self.size = [(runs[cut:], names[cut:], steps[cut:], times[cut:], values[cut:])], len(runs) - cut
        return taken

    def columns(self) -> _Part:
        """Everything, in one piece."""
        runs, steps, times, values = (np.concatenate([part[at] for part in self._parts]) for at in (0, 2, 3, 4))
        names = pa.chunked_array([part[1] for part in self._parts]).unify_dictionaries().combine_chunks()
        return runs, names, steps, times, values


def _share_points(points: _Points, made: Sequence[MlflowRun | None], *, measured: bool) -> set[tuple[int, str, int, int]]:
    """Give each run its points; (run, metric, step, time) of those that are NaN, where models were `measured` too."""
    if not points.size:
        return set()
    runs, names, steps, times, values = points.columns()
    table, owners = points_of_runs(runs, names, steps, times, values)
    first, last = int(owners[0]), int(owners[-1])
    bounds = np.searchsorted(owners, np.arange(first, last + 2)).tolist()
    for n, (start, stop) in enumerate(pairwise(bounds), first):
        run = made[n]
        if run is not None and start < stop:
            run.points = table.slice(start, stop - start)
    missing = np.flatnonzero(np.isnan(values)).tolist() if measured else ()
    return {(int(runs[at]), names[at].as_py(), int(steps[at]), int(times[at])) for at in missing}


def _wholes(told: Iterable[Any]) -> Wholes:
    told = list(told)
    if set(map(type, told)) == {int}:
        try:
            return np.array(told, np.int64)
        except OverflowError:
            pass
    return np.array([_clamped(one) for one in told], np.int64)


def _clamped(value: Any) -> int:
    found = number(value).value
    return 0 if found is None else min(max(int(found), -MOST), MOST)


def _value(value: Any, *, is_nan: bool = False) -> float:
    """A stored value as it was logged."""
    found = number(value)
    if is_nan or (found.value is None and found.special in {None, "nan"}):
        return math.nan
    if found.value is None:
        return math.inf if found.special == "inf" else -math.inf
    return math.copysign(math.inf, found.value) if abs(found.value) == BIGGEST else found.value
