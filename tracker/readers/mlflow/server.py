"""Tracking servers: which runs there are and what each is worth comparing by, by the REST API. `server_runs` reads them."""

from __future__ import annotations

import errno
import hashlib
import re
from collections import defaultdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import orjson

from tracker.batch import Source
from tracker.errors import InputError
from tracker.readers.mlflow.http_client import BrokenError, Client, MissingError, RejectedError, batches_of, server_address
from tracker.readers.mlflow.model import DELETED, Address
from tracker.readers.mlflow.points import LATEST_MS
from tracker.readers.mlflow.trace_parts import SOURCE_RUN, milliseconds, pairs, trace_id_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tracker.batch import Batch, Refusal
    from tracker.readers.base import Selection
    from tracker.readers.mlflow.model import MlflowRun
    from tracker.study import Study

READER_NAME = "mlflow"
API, API3 = "/api/2.0/mlflow", "/api/3.0/mlflow"
EXPERIMENTS_PER_REQUEST = 50
RUNS_PER_PAGE = 500
TRACES_PER_PAGE = 500
MODELS_PER_PAGE = 50
_RUN_TYPE, _GENAI = "mlflow.runType", "genai_evaluate"
_UNFINISHED = ("RUNNING", "SCHEDULED")
_FRAGMENT = re.compile(r"experiments/([^/?]+)(?:/runs/([^/?]+))?")


def find(address: str, study: Study, selection: Selection) -> list[Source]:
    """The runs of a server, by experiment and start. Raises InputError when it cannot be asked.

    An address copied from the browser (`.../#/experiments/3/runs/...`) means that experiment or run.
    """
    with Client(server_address(address)) as client:
        return _Search(client, study, selection, _FRAGMENT.search(address.partition("#")[2])).sources()


def runs(sources: Sequence[Source], study: Study) -> Iterator[tuple[Source, MlflowRun | InputError]]:
    """Runs of one server in order, with everything that belongs to them, or why there is none."""
    from tracker.readers.mlflow.server_runs import Reading

    del study
    if sources:
        with Client(address_of(sources[0])) as client:
            yield from Reading(client).runs(sources)


def read_many(sources: Sequence[Source], study: Study) -> Iterator[tuple[Source, Iterator[Batch | Refusal]]]:
    """What the runs of one server hold."""
    from tracker.readers.mlflow.mapping import batches

    for source, run in runs(sources, study):
        yield source, _failed(source, run) if isinstance(run, InputError) else batches(run, source, study)


def address_of(source: Source) -> Address:
    """The server that a source is on, with the login that was given."""
    return source.group if isinstance(source.group, Address) else server_address(source.uri.partition("/#/")[0])


def _failed(source: Source, problem: InputError) -> Iterator[Batch | Refusal]:
    """Why there is nothing of a run. What the server may do another time is an OSError: the next ingest tries it again."""
    yield from ()
    if isinstance(problem, BrokenError):
        raise OSError(errno.EIO, str(problem), source.uri)
    raise problem


class _Search:
    """Everything that a few paged searches tell of all runs."""

    def __init__(self, client: Client, study: Study, selection: Selection, chosen: re.Match[str] | None) -> None:
        self.client, self.selection = client, selection
        self._rules = _digest_of(study)
        self.experiment_id: str | None = chosen[1] if chosen else None
        self.run_id: str | None = chosen[2] if chosen else None
        self._belongings: dict[str, list[Any]] = defaultdict(list)
        """By run: ids and states of its traces and models."""
        self._traced: set[str] = set()
        self._modelled: set[str] = set()
        self._assessed: dict[str, int] = {}

    def sources(self) -> list[Source]:
        """One per run."""
        experiments = {one["experiment_id"]: one for one in self._experiments()}
        ids = sorted(experiments, key=lambda one: (len(one), one))
        found: dict[str, dict[str, Any]] = {}
        for some in batches_of(ids, EXPERIMENTS_PER_REQUEST):
            for run in self._runs(some):
                run["data"] = run["data"] if isinstance(run.get("data"), dict) else {}
                run_id = run["info"].get("run_id") or run["info"].get("run_uuid")
                if isinstance(run_id, str) and self.run_id in {None, run_id}:
                    found[run_id] = run
        active = sorted({str(run["info"].get("experiment_id")) for run in found.values()} & set(ids))
        for some in batches_of(active, EXPERIMENTS_PER_REQUEST):
            self._note_traces(some)
            self._note_models(some)
        for run_id, run in found.items():
            if run_id not in self._traced and pairs(run["data"].get("tags")).get(_RUN_TYPE) == _GENAI:
                self._note_linked(run_id, str(run["info"].get("experiment_id")))
        order = {experiment_id: place for place, experiment_id in enumerate(ids)}
        made = [(run_id, run, experiments.get(str(run["info"].get("experiment_id")), {})) for run_id, run in found.items()]
        made.sort(
            key=lambda one: (
                order.get(str(one[1]["info"].get("experiment_id")), 0),
                milliseconds(one[1]["info"].get("start_time")) or 0,
                one[0],
            )
        )
        return [self._source(*one) for one in made]

    def _experiments(self) -> list[dict[str, Any]]:
        try:
            pages = self.client.pages(f"{API}/experiments/search", {"max_results": 1000, "view_type": "ALL"}, "experiments")
            listed = [one for page in pages for one in page]
        except MissingError:  # before MLflow 1.28
            listed = self.client.get(f"{API}/experiments/list", {"view_type": "ALL"}).get("experiments", [])
        wanted = self.selection.experiments
        kept = [one for one in listed if isinstance(one.get("experiment_id"), str) and self.experiment_id in {None, one["experiment_id"]}]
        return [one for one in kept if not wanted or one.get("name") in wanted]

    def _runs(self, experiments: Sequence[str]) -> Iterator[dict[str, Any]]:
        """Runs of some experiments: those that may have changed since the time asked for, where the server can tell."""
        for text in self._filters():
            body: dict[str, Any] = {"experiment_ids": list(experiments), "run_view_type": "ALL", "max_results": RUNS_PER_PAGE}
            body["order_by"] = ["attributes.start_time ASC"]  # runs that begin meanwhile come last, and move no page
            if text:
                body["filter"] = text
            for page in self.client.pages(f"{API}/runs/search", body, "runs"):
                yield from (run for run in page if isinstance(run.get("info"), dict))

    def _filters(self) -> list[str]:
        if self.selection.since is None:
            return [""]
        since = int(self.selection.since.timestamp() * 1000)
        ended = f"attributes.end_time >= {since}"
        try:
            self.client.post(f"{API}/runs/search", {"experiment_ids": ["0"], "filter": ended, "max_results": 1})
        except (RejectedError, MissingError):
            return [""]
        return [ended, f"attributes.start_time >= {since}", *(f"attributes.status = '{status}'" for status in _UNFINISHED)]

    def _note_traces(self, experiments: Sequence[str]) -> None:
        for page in trace_pages(self.client, experiments):
            for info in page:
                metadata = pairs(info.get("trace_metadata", info.get("request_metadata")))
                run = metadata.get(SOURCE_RUN)
                if run:
                    self._note_trace(run, info)

    def _note_linked(self, run_id: str, experiment: str) -> None:
        """Traces that an evaluation looked at, but that were made elsewhere."""
        try:
            for page in trace_pages(self.client, [experiment], run_id):
                for info in page:
                    self._note_trace(run_id, info)
        except RejectedError:
            return

    def _note_trace(self, run: str, info: dict[str, Any]) -> None:
        assessments = [one for one in info.get("assessments") or () if isinstance(one, dict)]
        told = [(one.get("assessment_id"), one.get("last_update_time"), one.get("valid")) for one in assessments]
        self._belongings[run].append(["trace", trace_id_of(info), info.get("state", info.get("status")), sorted(map(repr, told))])
        self._traced.add(run)
        times = [time for _, changed, _ in told if (time := milliseconds(changed)) is not None]
        self._assessed[run] = max([self._assessed.get(run, 0), *times])

    def _note_models(self, experiments: Sequence[str]) -> None:
        for model in models_of(self.client, experiments):
            info = model.get("info") or {}
            metrics = [one for one in (model.get("data") or {}).get("metrics") or () if isinstance(one, dict)]
            state = ["model", info.get("model_id"), info.get("status"), info.get("last_updated_timestamp_ms")]
            for run in runs_of_model(model):
                own = [[one.get(name) for name in ("key", "step", "timestamp", "value")] for one in metrics if one.get("run_id") == run]
                self._belongings[run].append([*state, sorted(map(repr, own))])
                self._modelled.add(run)

    def _source(self, run_id: str, run: dict[str, Any], experiment: dict[str, Any]) -> Source:
        info, data = run["info"], run["data"]
        parts = [
            info,
            run.get("inputs"),
            run.get("outputs"),
            *(sorted(map(repr, data.get(name) or ())) for name in ("params", "tags", "metrics")),
        ]
        content = orjson.dumps([*parts, sorted(map(repr, self._belongings[run_id]))], option=orjson.OPT_SORT_KEYS)
        experiment_id = str(info.get("experiment_id"))
        mapping: dict[str, Any] = {"run": run_id, "experiment": experiment_id}
        mapping |= {"traces": True} if run_id in self._traced else {}
        mapping |= {"models": True} if run_id in self._modelled else {}
        mapping |= {"tables": self._rules} if self._rules else {}
        deleted = "deleted" in (info.get("lifecycle_stage"), experiment.get("lifecycle_stage"))
        return Source(
            reader=READER_NAME,
            uri=f"{self.client.address}/#/experiments/{experiment_id}/runs/{run_id}",
            files=(),
            mapping=mapping,
            content=hashlib.sha256(content).hexdigest(),
            group=self.client.address,
            experiment=str(experiment.get("name", experiment_id)),
            time=self._time(info, data),
            left_out=DELETED if deleted else None,
        )

    def _time(self, info: dict[str, Any], data: dict[str, Any]) -> datetime | None:
        """When a run last changed as far as can be told; None for one that goes on."""
        if info.get("status") in _UNFINISHED:
            return None
        told = [
            info.get("start_time"),
            info.get("end_time"),
            *(one.get("timestamp") for one in data.get("metrics") or () if isinstance(one, dict)),
        ]
        times = [time for one in told if (time := milliseconds(one)) is not None and 0 < time <= LATEST_MS]
        times.append(self._assessed.get(info.get("run_id", ""), 0))
        return datetime.fromtimestamp(max(times) / 1000, tz=UTC) if any(times) else None


def _digest_of(study: Study) -> str | None:
    """What stands for the study's `[[table]]` rules: only listing a run's artifacts tells which of them it meets, so all decide about every run."""
    told = [rule.model_dump(mode="json", exclude_defaults=True) for rule in study.table]
    return hashlib.sha256(orjson.dumps(told, option=orjson.OPT_SORT_KEYS)).hexdigest() if told else None


def trace_pages(client: Client, experiments: Sequence[str], run_id: str | None = None) -> Iterator[list[dict[str, Any]]]:
    """Infos of the traces of some experiments (or of one run of them), page by page; none where the server knows no traces."""
    body: dict[str, Any] = {"max_results": TRACES_PER_PAGE, "order_by": ["timestamp_ms ASC"]}
    if run_id is not None:
        body["filter"] = f"attribute.run_id = '{run_id}'"
    locations = [{"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": one}} for one in experiments]
    try:
        yield from client.pages(f"{API3}/traces/search", {**body, "locations": locations}, "traces")
    except MissingError:
        try:
            older = {**body, "experiment_ids": list(experiments), "max_results": 100}
            yield from client.pages(f"{API}/traces", older, "traces", method="GET")
        except (MissingError, RejectedError):
            return


def models_of(client: Client, experiments: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Logged models of some experiments; none where the server knows no such thing."""
    try:
        for page in client.pages(
            f"{API}/logged-models/search", {"experiment_ids": list(experiments), "max_results": MODELS_PER_PAGE}, "models"
        ):
            yield from page
    except MissingError:
        return


def runs_of_model(model: dict[str, Any]) -> list[str]:
    """Ids of the runs that a logged model belongs to: the one that made it, and those that measured it."""
    metrics = (model.get("data") or {}).get("metrics") or ()
    found = [(model.get("info") or {}).get("source_run_id"), *(one.get("run_id") for one in metrics if isinstance(one, dict))]
    return [run for run in dict.fromkeys(found) if isinstance(run, str) and run]
