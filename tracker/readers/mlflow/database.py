"""Database stores: which runs there are and what each is worth comparing by, in a few statements for the whole store."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

import orjson

from tracker.batch import Source
from tracker.errors import InputError
from tracker.readers.mlflow.artifacts import Places, rules_of, state_of
from tracker.readers.mlflow.model import DELETED, Address, MlflowRun
from tracker.readers.mlflow.points import LATEST_MS
from tracker.readers.mlflow.store import RECOVER, address_of, file_address, is_mlflow_file, is_store_head, open_store
from tracker.readers.tabular import without_gc

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from tracker.batch import Batch, Refusal
    from tracker.readers.base import Folder, Selection
    from tracker.readers.mlflow.store import Store
    from tracker.study import Study

READER_NAME = "mlflow"
CHUNK_RUNS = 500
DAMAGED = "damaged"
"""Key of `Source.mapping` for a store of which no run can be read."""
SOURCE_RUN = "mlflow.sourceRun"
"""Key of a trace's request metadata that names its run."""
LOGGED_ARTIFACTS = "mlflow.loggedArtifacts"


def find(folder: Folder, study: Study) -> list[Source]:
    """The runs of every MLflow database among a folder's files; one source that will be refused for a damaged one."""
    found: list[Source] = []
    for name in folder.names:
        path = folder.path / name
        if not is_store_head(folder.head(name)) or not is_mlflow_file(path):
            continue
        beside = tuple(one for suffix in ("-wal", "-shm", "-journal") if (one := path.with_name(name + suffix)).name in folder.names)
        try:
            sources = sources_of(file_address(path), study, claims=(path, *beside))
        except InputError as err:
            sources = [
                Source(
                    reader=READER_NAME,
                    uri=str(path.resolve()),
                    files=(path,),
                    mapping={DAMAGED: [err.message, err.hint or RECOVER]},
                    claims=beside,
                )
            ]
        found += sources or [
            Source(reader=READER_NAME, uri=str(path.resolve()), files=(), claims=(path, *beside), content="", left_out=NO_RUNS)
        ]
    return found


NO_RUNS = "an MLflow store without runs"


def find_address(address: str, study: Study, selection: Selection) -> list[Source]:
    """The runs of a database that a URL names. Raises InputError when it cannot be opened."""
    del selection  # the plan chooses
    return sources_of(address_of(address), study)


def sources_of(address: Address, study: Study, claims: tuple[Path, ...] = ()) -> list[Source]:
    """One source per run, by experiment and start."""
    with without_gc(), open_store(address) as store:
        return _Fingerprints(store, study, claims).sources()


def read_many(sources: Sequence[Source], study: Study) -> Iterator[tuple[Source, Iterator[Batch | Refusal]]]:
    """What the runs of one store hold, chunk by chunk."""
    from tracker.readers.mlflow.mapping import batches

    rest = iter(sources)
    while chunk := list(islice(rest, CHUNK_RUNS)):
        good = [source for source in chunk if DAMAGED not in source.mapping]
        runs = _runs(_address(good[0]), [run_id(source) for source in good]) if good else {}
        for source in chunk:
            run = runs.pop(run_id(source), None)
            yield source, batches(run, source, study) if isinstance(run, MlflowRun) else _failed(source, run)


def _runs(address: Address, ids: Sequence[str]) -> dict[str, MlflowRun | InputError]:
    """Runs by id. Where the file is damaged they are read one by one, so that the good ones go in.

    Raises InputError when the store cannot be read at all (now).
    """
    from tracker.readers.mlflow.bulk import Bulk

    with without_gc(), open_store(address) as store:
        try:
            return {**Bulk(store).runs(ids)}
        except InputError as err:
            if err.hint != RECOVER or len(ids) == 1:
                raise
        found: dict[str, MlflowRun | InputError] = {}
        for one in ids:
            try:
                found |= Bulk(store).runs([one])
            except InputError as err:
                found[one] = err
        return found


def is_of_database(source: Source) -> bool:
    """Whether a source is a run of a database (or a damaged one)."""
    return DAMAGED in source.mapping or str(source.group).startswith(("sqlite:", "postgresql:"))


def run_id(source: Source) -> str:
    """The run that a source is."""
    return str(source.mapping.get("run", ""))


def _address(source: Source) -> Address:
    group = source.group
    return group if isinstance(group, Address) else address_of(str(group))


def _failed(source: Source, problem: InputError | None) -> Iterator[Batch | Refusal]:
    """Why there is nothing."""
    if DAMAGED in source.mapping:
        message, hint = source.mapping[DAMAGED]
        raise InputError(message, where=source.uri, hint=hint)
    if problem is not None:
        raise problem
    message = "the run is not in the store any more"
    raise InputError(message, where=source.uri, hint="ingest the store again")
    yield  # type: ignore[unreachable]


class _Fingerprints:
    """What decides about each run: every value where values may change, counts where rows are only ever added."""

    def __init__(self, store: Store, study: Study, claims: tuple[Path, ...]) -> None:
        self.store, self.study, self.claims = store, study, claims
        self._parts: dict[str, list[Any]] = {}
        self._latest: dict[str, int] = {}
        self._tables: dict[str, str] = {}
        self._places = Places(store.folder)

    def sources(self) -> list[Source]:
        """One per run."""
        store = self.store
        runs = store.all(
            f"SELECT r.run_uuid, r.name, r.status, r.start_time, r.end_time, {store.column('runs', 'lifecycle_stage', alias='r.')}, "
            f"{store.column('runs', 'artifact_uri', alias='r.')}, e.experiment_id, e.name, {store.column('experiments', 'lifecycle_stage', alias='e.')} "
            "FROM runs r JOIN experiments e ON e.experiment_id = r.experiment_id ORDER BY e.experiment_id, r.start_time, r.run_uuid"
        )
        self._parts = {str(run[0]): [list(run)] for run in runs}
        for statement in self._statements():
            self._add(store.all(statement))
        self._add_latest()
        self._add_traces()
        return [self._source(run) for run in runs]

    def _statements(self) -> Iterator[str]:
        """Statements that give (run, values that decide)."""
        store = self.store
        yield "SELECT run_uuid, key, value FROM params"
        yield "SELECT run_uuid, COUNT(*) FROM metrics GROUP BY run_uuid"
        if store.has("inputs", "destination_id") and store.has("datasets", "dataset_uuid"):
            yield (
                "SELECT i.destination_id, d.name, d.digest, d.dataset_source_type FROM inputs i JOIN datasets d ON d.dataset_uuid = i.source_id"
                " WHERE i.destination_type = 'RUN' AND i.source_type = 'DATASET'"
            )
        if store.has("logged_models", "source_run_id"):
            yield (
                "SELECT source_run_id, model_id, name, status, lifecycle_stage, last_updated_timestamp_ms FROM logged_models"
                " WHERE source_run_id IS NOT NULL"
            )
        if store.has("logged_model_metrics", "run_id"):
            yield "SELECT run_id, model_id, COUNT(*), MAX(metric_timestamp_ms) FROM logged_model_metrics GROUP BY run_id, model_id"

    def _add(self, rows: Iterable[Sequence[Any]]) -> None:
        parts = self._parts
        for row in rows:
            if (known := parts.get(row[0])) is not None:
                known.append(row[1:])

    def _add_latest(self) -> None:
        """Latest values and tags, of which more is wanted than that they are the same."""
        store, parts, latest = self.store, self._parts, self._latest
        step, is_nan = store.column("latest_metrics", "step", "0"), store.column("latest_metrics", "is_nan", "0")
        for some in store.rows(f"SELECT run_uuid, key, value, timestamp, {step}, {is_nan} FROM latest_metrics"):
            for row in some:
                run = row[0]
                if (known := parts.get(run)) is not None:
                    known.append(row[1:])
                    time = row[3]
                    if isinstance(time, int) and time > latest.get(run, 0):
                        latest[run] = time
        for run, key, value in store.all("SELECT run_uuid, key, value FROM tags"):
            if (known := parts.get(run)) is not None:
                known.append((key, value))
                if key == LOGGED_ARTIFACTS:
                    self._tables[run] = str(value)

    def _add_traces(self) -> None:
        """Traces that belong to runs, with the state of their assessments."""
        store = self.store
        if not (store.has("trace_request_metadata", "request_id") and store.has("trace_info", "request_id", "execution_time_ms")):
            return
        owners = trace_owners(store)
        if not owners:
            return
        state: dict[str, list[Any]] = {}
        for row in store.all("SELECT request_id, status, execution_time_ms FROM trace_info"):
            state[row[0]] = [*row]
        if store.has("assessments", "trace_id"):
            statement = "SELECT trace_id, COUNT(*), MAX(last_updated_timestamp), SUM(last_updated_timestamp % 1000000007) FROM assessments GROUP BY trace_id"
            for trace, count, changed, total in store.all(statement):
                if trace in state:
                    state[trace] += [count, changed, str(total)]
                for run in owners.get(trace, ()):
                    if isinstance(changed, int):
                        self._latest[run] = max(changed, self._latest.get(run, 0))
        for trace, runs in owners.items():
            self._add((run, *state.get(trace, (trace,))) for run in runs)

    def _source(self, row: Sequence[Any]) -> Source:
        run, *_, start, end, stage, artifact_uri, _, experiment, experiment_stage = row
        parts = self._parts[str(run)]
        tables = self._places.tables(str(artifact_uri or ""), self._tables.get(str(run)))
        parts += [state for one in tables if (state := state_of(one)) is not None]
        rules = rules_of(tables, self.study)
        told = sorted(orjson.dumps(part, default=repr) for part in parts)
        times = [time for time in (start, end, self._latest.get(str(run))) if isinstance(time, int) and 0 <= time <= LATEST_MS]
        deleted = "deleted" in (stage, experiment_stage)
        return Source(
            reader=READER_NAME,
            uri=f"{self.store.address}/experiments/{experiment}/runs/{run}",
            files=(),
            mapping={"run": str(run)} | ({"tables": rules} if rules else {}),
            content=hashlib.sha256(b"\n".join(told)).hexdigest(),
            claims=(*self.claims, *(one.file for one in tables if one.file is not None)),
            group=self.store.address,
            experiment=str(experiment),
            time=datetime.fromtimestamp(max(times) / 1000, tz=UTC) if times else None,
            left_out=DELETED if deleted else None,
        )


def trace_owners(store: Store, wanted: Sequence[str] | None = None) -> dict[str, list[str]]:
    """Runs by trace: those that the trace's metadata names, then those it was linked to afterwards."""
    owners: dict[str, list[str]] = {}
    statements = []
    if store.has("trace_request_metadata", "request_id"):
        statements.append(f"SELECT t.request_id, t.value AS run FROM trace_request_metadata t WHERE t.key = '{SOURCE_RUN}'")
    if store.has("entity_associations", "source_id"):
        statements.append(
            "SELECT t.source_id, t.destination_id AS run FROM entity_associations t WHERE t.source_type = 'trace' AND t.destination_type = 'run'"
        )
    for statement in statements:
        among = statement if wanted is None else f"SELECT * FROM ({statement}) AS o WHERE o.run IN (SELECT id FROM w)"
        for trace, run in store.all(among, wanted):
            runs = owners.setdefault(trace, [])
            if run not in runs:
                runs.append(run)
    return owners
