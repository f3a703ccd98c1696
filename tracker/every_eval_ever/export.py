"""Write runs of a session as Every Eval Ever files, run by run, in bounded memory."""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

import orjson

from tracker.errors import TrackrError, UsageError
from tracker.every_eval_ever.document import UNSPECIFIED, Written, document, evaluation_id, primary_metric, target
from tracker.every_eval_ever.rows import line, row
from tracker.readers.every_eval_ever_document import OWN
from tracker.readers.values import as_mapping

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from datetime import datetime
    from pathlib import Path

    from tracker.every_eval_ever.document import Target
    from tracker.lake import Session

RUNS = """
WITH candidates AS (
    SELECT
        runs.id AS run_id, runs.kind, runs.source_format, runs.external_id, runs.model_name, runs.benchmark_name, runs.framework,
        runs.framework_version, runs.status, runs.status_reason, runs.current, runs.started_at, runs.ended_at, runs.n_records, runs.n_expected,
        f.model, f.series, f.family, f.backbone, f.parameters, f.frontend, f.benchmark, f.suite,
        c.fingerprint, c.input_mode, c.input_size, c.max_tiles, c.pixel_cap, c.source_quality, c.vision_branches, c.language_branches,
        c.few_shot, c.precision, c.max_new_tokens, c.prompt, c.variant,
        (SELECT min(seen_at) FROM run_sources WHERE run_sources.run_id = runs.id) AS seen_at
    FROM runs
    INNER JOIN facts.run_facts AS f ON runs.id = f.run_id
    INNER JOIN configurations AS c ON runs.configuration_id = c.id
)

SELECT * FROM candidates
WHERE kind = 'evaluation' AND benchmark IS NOT NULL AND ({condition})
ORDER BY benchmark, model, fingerprint, source_format, external_id
"""
COUNTING = "current AND status = 'finished'"
"""Which runs are exported unless something else is asked for: those that count, and are whole."""
RECORDS = """
WITH further AS (
    SELECT run_id, question_id, repetition, attempt, list(scorer ORDER BY scorer) AS scorers, list(score ORDER BY scorer) AS scores
    FROM record_scores
    WHERE run_id IN ({runs})
    GROUP BY ALL
)

SELECT
    r.* EXCLUDE (question_id, final),
    CASE WHEN r.correct IS NOT NULL THEN cast(r.correct AS DOUBLE) WHEN r.score >= 0 AND r.score <= 1 THEN r.score END AS credit,
    q.key, q.content_hash, q.image_key, q.pair_key, q.text, q.options, q.gold, q.n_options, q.task, q.category, q.subcategory,
    q.image_width, q.image_height,
    further.scorers, further.scores
FROM records AS r
INNER JOIN questions AS q ON r.question_id = q.id
LEFT JOIN further
    ON r.run_id = further.run_id AND r.question_id = further.question_id AND r.repetition = further.repetition AND r.attempt = further.attempt
WHERE r.run_id IN ({runs})
ORDER BY list_position([{runs}], r.run_id), q.key, r.repetition, r.attempt
"""
RULES = """
SELECT run_id, list(DISTINCT coalesce(score_rule, '')) AS rules
FROM records
WHERE run_id IN ({runs}) AND (correct IS NOT NULL OR (score >= 0 AND score <= 1))
GROUP BY run_id
"""
SCORES = """
SELECT run_id, metric, value, stderr, n
FROM scores
WHERE run_id IN ({runs}) AND isfinite(value) AND step IS NULL
ORDER BY run_id, metric, value
"""
BATCH_RECORDS = 100_000
BATCH_RUNS = 1_000
"""Runs are asked for together up to so many: one query a run would cost more than its rows, all in one would sort everything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """What is exported, and what the format wants to know that no run says."""

    where: str | None = None
    """SQL condition over runs; replaces the usual one (runs that count and are finished)."""
    collection: str | None = None
    """First folder below data/; the benchmark's name where none is given."""
    developer: str = UNSPECIFIED
    """Developer of models whose name has none."""
    organization: str = UNSPECIFIED
    relationship: str = "other"
    retrieved: datetime | None = None
    """When the results were collected; the run's own end (else start, else first ingest) where none is given."""
    overwrite: bool = False


@dataclass(slots=True, kw_only=True)
class Export:
    """What an export wrote."""

    documents: int = 0
    rows: int = 0
    unscored: int = 0
    """Records left out: the format demands a score, and 0 would be none."""
    empty: int = 0
    """Runs left out: nothing of them can be expressed."""

    def to_json(self) -> dict[str, int]:
        """Plain values."""
        return asdict(self)


def export(session: Session, folder: Path, choices: Choices, progress: Callable[[str, int, int], None] | None = None) -> Export:
    """Write every chosen run below a folder; UsageError before anything is written where a file is not one of ours."""
    runs = list(_dicts(session, RUNS.format(condition=choices.where or COUNTING)))
    if not runs:
        message = "no run to export"
        raise UsageError(message, hint=f"chosen are evaluation runs with {choices.where or COUNTING}; see trackr runs list, and --where")
    targets = [target(run, choices.collection, choices.developer) for run in runs]
    if not choices.overwrite:
        for where in targets:
            _refuse_foreign(folder, where)
    done = Export()
    for batch in _batches(list(zip(runs, targets, strict=True))):
        for run, where, written, reported in _written(session, folder, batch, choices):
            done.unscored += written.unscored
            if written.credits or reported:
                _write_document(folder, run, where, written, reported, choices)
                done.documents += 1
                done.rows += len(written.credits)
            else:
                done.empty += 1
            if progress is not None:
                progress("runs written", done.documents + done.empty, len(runs))
    return done


Chosen = tuple[dict[str, Any], "Target"]


def _batches(chosen: list[Chosen]) -> Iterator[list[Chosen]]:
    batch: list[Chosen] = []
    size = 0
    for one in chosen:
        batch.append(one)
        size += one[0]["n_records"]
        if size >= BATCH_RECORDS or len(batch) >= BATCH_RUNS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _written(
    session: Session, folder: Path, batch: list[Chosen], choices: Choices
) -> Iterator[tuple[dict[str, Any], Target, Written, list[dict[str, Any]]]]:
    """Runs of a batch with their samples written, and the scores that their sources report."""
    ids = ", ".join(str(int(run["run_id"])) for run, _ in batch)
    rules = {row["run_id"]: {rule or None for rule in row["rules"]} for row in _dicts(session, RULES.format(runs=ids))}
    reported: dict[int, list[dict[str, Any]]] = {}
    for score in _dicts(session, SCORES.format(runs=ids)):
        reported.setdefault(score["run_id"], []).append(score)
    by_run = groupby(_dicts(session, RECORDS.format(runs=ids)), key=lambda record: record["run_id"])
    ahead = next(by_run, None)
    for run, where in batch:
        records: Iterator[dict[str, Any]] = iter(())
        mine = ahead is not None and ahead[0] == run["run_id"]
        if ahead is not None and mine:
            records = ahead[1]
        written = Written(rules=rules.get(run["run_id"], set()))
        _write_samples(folder, run, where, records, written, choices)
        if mine:
            ahead = next(by_run, None)
        yield run, where, written, reported.get(run["run_id"], [])


def _retrieved(run: Mapping[str, Any], choices: Choices) -> datetime:
    found: datetime = choices.retrieved or run["ended_at"] or run["started_at"] or run["seen_at"]
    return found


def _write_samples(
    folder: Path, run: Mapping[str, Any], where: Target, records: Iterator[dict[str, Any]], written: Written, choices: Choices
) -> None:
    """The samples of a run, in the order of question keys; no file where no record has a score."""
    if not written.rules:
        written.unscored = sum(1 for _ in records)
        return
    metric, digest = primary_metric(written), hashlib.sha256()
    own_id = evaluation_id(run, where, _retrieved(run, choices))
    with _replacing(folder / where.samples) as stream:
        for record in records:
            if record["credit"] is None:
                written.unscored += 1
                continue
            made = line(row(record, evaluation_id=own_id, model_id=where.model_id, evaluation_name=run["benchmark_name"], metric=metric))
            digest.update(made)
            stream.write(made)
            written.credits.append(float(record["credit"]))
    written.checksum = digest.hexdigest()


def _write_document(
    folder: Path, run: Mapping[str, Any], where: Target, written: Written, reported: list[dict[str, Any]], choices: Choices
) -> None:
    made = document(
        run,
        where,
        retrieved=_retrieved(run, choices),
        written=written,
        reported=reported,
        organization=choices.organization,
        relationship=choices.relationship,
    )
    with _replacing(folder / where.document) as stream:
        stream.write(orjson.dumps(made, option=orjson.OPT_INDENT_2) + b"\n")


def _dicts(session: Session, text: str) -> Iterator[dict[str, Any]]:
    cursor = session.execute(text)
    names = [column[0] for column in cursor.description or ()]
    for values in session.rows(cursor):
        yield dict(zip(names, values, strict=True))


class _replacing:  # noqa: N801 - used like a function
    """A file that appears only when it is complete."""

    def __init__(self, path: Path) -> None:
        self.path, self.place = path, path.with_name(f".{path.name}.{os.getpid()}")

    def __enter__(self) -> Any:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.stream = self.place.open("wb")
        except OSError as err:
            message = f"cannot write: {err.strerror or err}"
            raise TrackrError(message, where=str(self.path), hint="choose another folder") from err
        return self.stream

    def __exit__(self, kind: type[BaseException] | None, err: BaseException | None, trace: object) -> None:
        try:
            self.stream.close()
            if err is None:
                self.place.replace(self.path)
        except OSError as failed:
            err = failed
        if err is not None:
            with suppress(OSError):
                self.place.unlink(missing_ok=True)
        if isinstance(err, OSError):
            message = f"cannot write: {err.strerror or err}"
            raise TrackrError(message, where=str(self.path), hint="free space, or choose another folder") from err


def _refuse_foreign(folder: Path, where: Target) -> None:
    """Files that an earlier export wrote may be replaced, no others."""
    place, samples = folder / where.document, folder / where.samples
    foreign = (place if place.exists() and not _is_own(place) else None) or (
        samples if samples.exists() and not place.exists() and not _is_own_samples(samples, where) else None
    )
    if foreign is not None:
        message = "a file that trackr did not write is here"
        raise UsageError(message, where=str(foreign), hint="choose another folder, or say --overwrite")


def _is_own(path: Path) -> bool:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return False
    return as_mapping(as_mapping(as_mapping(found).get("source_metadata")).get("additional_details")).get("exported_by") == OWN


def _is_own_samples(path: Path, where: Target) -> bool:
    """Samples whose document is missing: an export that was stopped between the two."""
    try:
        with path.open("rb") as stream:
            first = json.loads(stream.readline())
    except (OSError, ValueError):
        return False
    return str(as_mapping(first).get("evaluation_id")).endswith(f"/{where.uuid[:8]}")
