"""What an ingest has to do, found out without the ORM: unchanged folders must cost little."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from tracker.database.peek import known_sources, peek, rows
from tracker.errors import UsageError
from tracker.ingest.plan import Plan, is_address, look, make_plan, printable
from tracker.ingest.report import IngestReport, Rejected
from tracker.study import Study, find_study

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tracker.readers.base import Selection

ALIASES = "#aliases"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A planned ingest."""

    paths: tuple[Path | str, ...]
    study: Study
    plan: Plan
    label_files: tuple[tuple[Path, str], ...]
    """Label files of the study that are new or changed, with their digests."""
    aliases: tuple[str, str] | None
    """Address and digest of the study's aliases, when they are new or changed."""

    @property
    def idle(self) -> bool:
        """Whether there is nothing to write."""
        return not (self.plan.reading or self.label_files or self.aliases)


def prepare(url: str, paths: Sequence[Path | str], study: Study | Path | str | None, selection: Selection | None = None) -> Job:
    """Walk the paths, ask the addresses, and compare with what is stored."""
    if not paths:
        message = "no path to ingest"
        raise UsageError(message, hint="trackr ingest PATH...")
    files = [Path(path) for path in paths if not is_address(path)]
    for path in files:
        look(path)
    study = _study(files, study)
    known = known_sources(url) if peek(url) is not None else {}
    return Job(
        paths=tuple(paths),
        study=study,
        plan=make_plan(paths, study, known, selection),
        label_files=tuple(_changed_labels(study, known)),
        aliases=_changed_aliases(study, known),
    )


def unchanged_report(url: str, job: Job) -> IngestReport:
    """What is already there: unchanged runs, and refusals that an earlier ingest stored."""
    report = IngestReport(
        sources=len(job.plan.unchanged) + len(job.plan.reading),
        skipped=[printable(path) for path in job.plan.skipped],
        left_out=dict(job.plan.left_out),
        idle_rules=list(job.plan.idle_rules),
    )
    if not job.plan.unchanged:
        return report
    present = {(planned.source.uri, planned.digest) for planned in job.plan.unchanged}
    report.unchanged = sum((uri, digest) in present for uri, digest in rows(url, "SELECT uri, digest FROM {0}run_sources"))
    refused = rows(url, "SELECT uri, digest, file, line, reason, text FROM {0}rejections ORDER BY id")
    report.rejected = [Rejected(file=row[2], line=row[3], reason=row[4], text=row[5]) for row in refused if (row[0], row[1]) in present]
    return report


def summarise(url: str, report: IngestReport) -> None:
    """What the whole store says after an ingest: names without a description, runs that do not count."""
    report.unknown_models = [row[0] for row in rows(url, "SELECT name FROM {0}models WHERE origin = 'found' ORDER BY name")]
    report.unknown_benchmarks = [row[0] for row in rows(url, "SELECT name FROM {0}benchmarks WHERE origin = 'found' ORDER BY name")]
    query = (
        "SELECT CASE WHEN status <> 'finished' THEN status WHEN n_records = 0 THEN 'without records' "
        "WHEN unscored THEN 'without any scored answer' ELSE 'superseded by a later run' END AS reason, count(*) FROM "
        "(SELECT status, n_records, current, NOT EXISTS (SELECT 1 FROM {0}records a WHERE a.run_id = r.id AND a.status = 'scored') AS unscored "
        "FROM {0}runs r WHERE kind = 'evaluation') told WHERE current = (1 = 0) OR unscored GROUP BY 1 ORDER BY 1"
    )
    report.not_counting = {row[0]: row[1] for row in rows(url, query)}


def _study(paths: Sequence[Path], study: Study | Path | str | None) -> Study:
    if isinstance(study, Study):
        return study
    chosen = Path(study) if study is not None else find_study(list(paths))
    return Study.load(chosen) if chosen is not None else Study.empty()


def _changed_labels(study: Study, known: Mapping[str, set[str]]) -> list[tuple[Path, str]]:
    changed = []
    for path in study.labels:
        try:
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
        except OSError as err:
            message = f"the study file names label file {path.name}, which cannot be read: {err.strerror}"
            raise UsageError(message, where=str(path), hint="mend the `labels` entry of study.toml") from err
        if digest not in known.get(printable(path.resolve()), ()):
            changed.append((path.resolve(), digest))
    return changed


def _changed_aliases(study: Study, known: Mapping[str, set[str]]) -> tuple[str, str] | None:
    aliases: dict[str, Any] = {"models": dict(study.model_aliases), "benchmarks": dict(study.benchmark_aliases)}
    if not any(aliases.values()):
        return None
    uri = f"{study.root}{ALIASES}"
    digest = hashlib.sha256(orjson.dumps(aliases, option=orjson.OPT_SORT_KEYS)).hexdigest()
    return None if digest in known.get(uri, ()) else (uri, digest)
