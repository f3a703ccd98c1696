"""Write runs of a session as Every Eval Ever files, run by run, in bounded memory."""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import orjson

from tracker.errors import TrackrError, UsageError
from tracker.every_eval_ever.document import UNSPECIFIED, Written, document, evaluation_id, primary_metric, target
from tracker.every_eval_ever.rows import line, row
from tracker.readers.every_eval_ever_document import OWN, mapping

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
    SELECT question_id, repetition, attempt, list(scorer ORDER BY scorer) AS scorers, list(score ORDER BY scorer) AS scores
    FROM record_scores
    WHERE run_id = $run
    GROUP BY ALL
)

SELECT
    r.* EXCLUDE (run_id, question_id, final),
    CASE WHEN r.correct IS NOT NULL THEN cast(r.correct AS DOUBLE) WHEN r.score >= 0 AND r.score <= 1 THEN r.score END AS credit,
    q.key, q.content_hash, q.image_key, q.pair_key, q.text, q.options, q.gold, q.n_options, q.task, q.category, q.subcategory,
    q.image_width, q.image_height,
    further.scorers, further.scores
FROM records AS r
INNER JOIN questions AS q ON r.question_id = q.id
LEFT JOIN further ON r.question_id = further.question_id AND r.repetition = further.repetition AND r.attempt = further.attempt
WHERE r.run_id = $run
ORDER BY q.key, r.repetition, r.attempt
"""
SCORES = "SELECT metric, value, stderr, n FROM scores WHERE run_id = $run AND isfinite(value) AND step IS NULL ORDER BY metric, value"


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
    for number, (run, where) in enumerate(zip(runs, targets, strict=True), 1):
        if progress is not None:
            progress("runs written", number, len(runs))
        _export_run(session, folder, run, where, choices, done)
    return done


def _export_run(session: Session, folder: Path, run: Mapping[str, Any], where: Target, choices: Choices, done: Export) -> None:
    retrieved = choices.retrieved or run["ended_at"] or run["started_at"] or run["seen_at"]
    reported = list(_dicts(session, SCORES, {"run": run["run_id"]}))
    written = _write_samples(session, folder, run, where, evaluation_id(run, where, retrieved))
    done.unscored += written.unscored
    if not written.credits and not reported:
        done.empty += 1
        return
    made = document(
        run,
        where,
        retrieved=retrieved,
        written=written,
        reported=reported,
        organization=choices.organization,
        relationship=choices.relationship,
    )
    with _replacing(folder / where.document) as stream:
        stream.write(orjson.dumps(made, option=orjson.OPT_INDENT_2) + b"\n")
    done.documents += 1
    done.rows += len(written.credits)


def _write_samples(session: Session, folder: Path, run: Mapping[str, Any], where: Target, own_id: str) -> Written:
    """The samples of a run, in the order of question keys; no file where no record has a score."""
    given = {"run": run["run_id"]}
    rules = session.sql(f"SELECT DISTINCT score_rule FROM ({RECORDS}) WHERE credit IS NOT NULL LIMIT 2", given).fetchall()
    written = Written(rules={rule for (rule,) in rules})
    if not rules:
        written.unscored = run["n_records"]
        return written
    metric, digest = primary_metric(written), hashlib.sha256()
    with _replacing(folder / where.samples) as stream:
        for record in _dicts(session, RECORDS, given):
            if record["credit"] is None:
                written.unscored += 1
                continue
            made = line(row(record, evaluation_id=own_id, model_id=where.model_id, evaluation_name=run["benchmark_name"], metric=metric))
            digest.update(made)
            stream.write(made)
            written.credits.append(float(record["credit"]))
    written.checksum = digest.hexdigest()
    return written


def _dicts(session: Session, text: str, given: Mapping[str, Any] | None = None) -> Iterator[dict[str, Any]]:
    cursor = session.execute(text, given)
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
    return mapping(mapping(mapping(found).get("source_metadata")).get("additional_details")).get("exported_by") == OWN


def _is_own_samples(path: Path, where: Target) -> bool:
    """Samples whose document is missing: an export that was stopped between the two."""
    try:
        with path.open("rb") as stream:
            first = json.loads(stream.readline())
    except (OSError, ValueError):
        return False
    return str(mapping(first).get("evaluation_id")).endswith(f"/{where.uuid[:8]}")
