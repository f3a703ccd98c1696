"""Evaluation tables among the artifacts of a run on a server."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from tracker.batch import Refusal
from tracker.errors import InputError
from tracker.readers.mlflow.artifacts import MOST_FILES, TABLE_SUFFIXES, local_folder, logged_tables, looks_like_table, tables_in
from tracker.readers.mlflow.http_client import GoneError, MissingError
from tracker.readers.mlflow.model import Artifact
from tracker.readers.mlflow.server import API
from tracker.readers.tabular import PARQUET_MAGIC
from tracker.readers.values import whole

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracker.batch import Source
    from tracker.readers.mlflow.http_client import Client
    from tracker.readers.mlflow.model import MlflowRun

LOGGED_ARTIFACTS = "mlflow.loggedArtifacts"
PROXIED = "mlflow-artifacts:"
HEAD_BYTES = 65_536
LARGEST_TABLE = 256 << 20
LARGEST_LOOK = 32 << 20
"""Bytes of a Parquet file that are fetched to see its columns."""
_MODEL_FILE = "MLmodel"


def tables_of(client: Client, run: MlflowRun, source: Source, closed: set[str]) -> list[Artifact]:
    """Tables of a run: those that were logged as such, then those whose beginning says so.

    Artifacts that the server keeps on this very machine are read here. `closed` remembers artifact stores that the
    server cannot list: each is tried and refused once.
    """
    logged = run.tags.get(LOGGED_ARTIFACTS)
    uri = run.artifact_uri or ""
    if not uri.startswith(PROXIED):
        here = local_folder(uri, None)
        if here is not None:
            return tables_in(here, logged)
    named = logged_tables(logged)
    found = [_artifact(client, run, source, path, is_table=True) for path in named]
    parts = urlsplit(uri)
    root = f"{parts.scheme}://{parts.netloc}"
    if root in closed:
        return found
    try:
        found += [
            _artifact(client, run, source, path, is_table=False)
            for path in _files(client, run.run_id, "")
            if path not in named and path.endswith(TABLE_SUFFIXES) and _looks_like_table(client, run, source, path)
        ]
    except GoneError:
        raise
    except InputError as err:
        closed.add(root)
        reason = (
            f"artifacts at {root} cannot be looked through: {err.message}"
            " (check the server's artifact store; tables among them that the runs' tags do not name are missing, in later runs too)"
        )
        run.refusals.append(Refusal(file=source.uri, reason=reason))
    return found


def _files(client: Client, run_id: str, folder: str) -> Iterator[str]:
    """Paths of the files of a run, without those of logged models, a limited number."""
    seen, folders = 0, [folder]
    while folders:
        place = folders.pop()
        try:
            query = {"run_id": run_id, **({"path": place} if place else {})}
            listed = client.get(f"{API}/artifacts/list", query, retries=1).get("files") or []
        except MissingError:
            return
        entries = [one for one in listed if isinstance(one, dict) and isinstance(one.get("path"), str)]
        if any(one["path"].rpartition("/")[2] == _MODEL_FILE for one in entries):
            continue
        folders += sorted((one["path"] for one in entries if one.get("is_dir")), reverse=True)
        for one in sorted(entries, key=lambda one: str(one["path"])):
            seen += 1
            if seen > MOST_FILES:
                return
            if not one.get("is_dir") and (whole(one.get("file_size")) or 0) <= LARGEST_TABLE:
                yield one["path"]


def _looks_like_table(client: Client, run: MlflowRun, source: Source, path: str) -> bool:
    """Whether the beginning of a file (of Parquet its end) says that it is one."""
    try:
        content = _end_of_parquet(client, run, path) if path.endswith(".parquet") else load(client, run, path, limit=HEAD_BYTES)
    except InputError:
        return False
    if content is None:
        reason = f"a Parquet file of more than {LARGEST_LOOK >> 20} MB of which the server gives no part: it may be an evaluation table"
        run.refusals.append(
            Refusal(
                file=f"{source.uri}/artifacts/{path}", reason=f"{reason} (download it and ingest it here, or log it with mlflow.log_table)"
            )
        )
        return False
    with tempfile.TemporaryDirectory(prefix="trackr-mlflow-") as folder:
        copy = Path(folder) / f"table{Path(path).suffix}"
        copy.write_bytes(content)
        return looks_like_table(copy)


def _artifact(client: Client, run: MlflowRun, source: Source, path: str, *, is_table: bool) -> Artifact:
    return Artifact(
        path=path,
        load=partial(_whole, client, run, path),
        uri=f"{source.uri}/artifacts/{path}",
        is_table=is_table,
    )


def _end_of_parquet(client: Client, run: MlflowRun, path: str) -> bytes | None:
    """The end of a Parquet file, with all that it says of its columns (the whole of it, where the server gives no parts); None if too much."""
    content = load(client, run, path, limit=LARGEST_LOOK, last=HEAD_BYTES)
    wanted = int.from_bytes(content[-8:-4], "little") + 8
    if content.endswith(PARQUET_MAGIC) and len(content) < wanted <= LARGEST_LOOK:
        content = load(client, run, path, limit=LARGEST_LOOK, last=wanted)
    if content.endswith(PARQUET_MAGIC) or len(content) < LARGEST_LOOK:
        return PARQUET_MAGIC + content
    return None


def _whole(client: Client, run: MlflowRun, path: str) -> bytes:
    content = load(client, run, path, limit=LARGEST_TABLE + 1)
    if len(content) > LARGEST_TABLE:
        message = f"a table of more than {LARGEST_TABLE >> 20} MB"
        raise InputError(message, where=path, hint="download it and ingest it here, or log it in parts")
    return content


def load(client: Client, run: MlflowRun, path: str, *, limit: int, last: int | None = None) -> bytes:
    """The first bytes of an artifact; or, where the server gives parts of files, as many of its last as asked for."""
    query: dict[str, Any] = {"run_id": run.run_id, "run_uuid": run.run_id, "path": path}
    try:
        return client.download("/get-artifact", query, limit=limit, last=last)
    except MissingError:
        if not (run.artifact_uri or "").startswith(PROXIED):
            raise
    root = str(run.artifact_uri).removeprefix(PROXIED).lstrip("/")
    return client.download(f"/api/2.0/mlflow-artifacts/artifacts/{quote(root)}/{quote(path)}", limit=limit, last=last)
