"""Traces of a run on a server, with whole inputs and outputs where it holds them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from tracker.batch import Refusal
from tracker.errors import InputError
from tracker.readers.mlflow.http_client import GoneError, RejectedError, batches_of
from tracker.readers.mlflow.server import API3, trace_pages
from tracker.readers.mlflow.trace_parts import SOURCE_RUN, pairs, trace_id_of, trace_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracker.batch import Source
    from tracker.readers.mlflow.http_client import Client
    from tracker.readers.mlflow.model import MlflowRun, Trace

TRACES_PER_REQUEST = 40
"""Their ids stand in the address, which servers limit."""
ARTIFACT = "/ajax-api/2.0/mlflow/get-trace-artifact"


def traces_of(client: Client, run: MlflowRun, source: Source) -> list[Trace]:
    """The traces of a run by time; what cannot be read of them is among the run's refusals."""
    infos = _infos(client, run)
    data: dict[str, dict[str, Any]] = {}
    for some in batches_of(list(infos), TRACES_PER_REQUEST):
        data |= _data(client, some)
    missing = [trace_id for trace_id in infos if not data.get(trace_id, {}).get("spans")]
    lost = 0
    for trace_id in missing:
        try:
            told = orjson.loads(client.download(ARTIFACT, {"request_id": trace_id}))
        except GoneError:
            raise
        except (InputError, ValueError):
            lost += 1
            continue
        data[trace_id] = told if isinstance(told, dict) else {}
    if lost:
        reason = f"the spans of {lost} of its {len(infos)} traces cannot be had: their previews stand in, which may be cut (check the artifact store)"
        run.refusals.append(Refusal(file=source.uri, reason=reason))
    found = [
        trace_of(
            info,
            data.get(trace_id),
            trace_id=trace_id,
            metadata=pairs(info.get("trace_metadata", info.get("request_metadata"))),
            tags=pairs(info.get("tags")),
            assessments=info.get("assessments") or (),
        )
        for trace_id, info in infos.items()
    ]
    return sorted(found, key=lambda one: (one.timestamp_ms or 0, one.trace_id))


def _infos(client: Client, run: MlflowRun) -> dict[str, dict[str, Any]]:
    """What the server says of the traces of a run, by id."""
    try:
        pages = list(trace_pages(client, [run.experiment_id], run.run_id))
    except RejectedError:  # a server that cannot choose by run
        pages = [
            [info for info in page if pairs(info.get("trace_metadata", info.get("request_metadata"))).get(SOURCE_RUN) == run.run_id]
            for page in trace_pages(client, [run.experiment_id])
        ]
    return {trace_id: info for page in pages for info in page if (trace_id := trace_id_of(info)) is not None}


def _data(client: Client, trace_ids: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Traces with their spans, by id; none where the server does not give them so."""
    try:
        listed = client.get(f"{API3}/traces/batchGet", {"trace_ids": list(trace_ids)}, retries=1).get("traces")
    except GoneError:
        raise
    except InputError:
        return {}
    found = {}
    for one in listed if isinstance(listed, list) else ():
        if isinstance(one, dict) and isinstance(one.get("trace_info"), dict) and (trace_id := trace_id_of(one["trace_info"])):
            found[trace_id] = one
    return found
