"""What the tests of this folder ask of every reading: nothing raised, every refusal of use, every loss said."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tests.robustness.units import STUDY
from tracker.ingest.plan import make_plan
from tracker.ingest.read import read_sources

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tracker.batch import Refusal
    from tracker.ingest.plan import Plan
    from tracker.ingest.reading import Reading


class Read:
    """A folder, found and read."""

    def __init__(self, folder: Path, spool: Path) -> None:
        self.folder = folder.resolve()
        self.plan = make_plan([folder], STUDY, {})
        self.readings = read_plan(self.plan, spool)
        self.uneven = [reading.source.uri for reading in self.readings if not _is_whole(reading)]
        for reading in self.readings:
            reading.discard()

    @property
    def records(self) -> int:
        return sum(run.n_records for reading in self.readings for run in reading.runs)

    @property
    def refusals(self) -> list[Refusal]:
        return [refusal for reading in self.readings for refusal in reading.refusals]

    @property
    def reasons(self) -> list[str]:
        """Why runs are not finished."""
        return [run.header.status_reason or "" for reading in self.readings for run in reading.runs if run.header.status != "finished"]

    @property
    def nul_characters(self) -> int:
        """Texts with a NUL, which the report counts."""
        return sum(run.nul_characters for reading in self.readings for run in reading.runs)

    @property
    def skipped(self) -> list[str]:
        return [path.relative_to(self.folder).as_posix() for path in self.plan.skipped]


def _is_whole(reading: Reading) -> bool:
    """Whether each run has the records that it says, each answering a question that is told, and no key twice."""
    counts = dict.fromkeys(range(len(reading.runs)), 0)
    for ordinal, piece in reading.records.pieces():
        counts[ordinal] += piece.num_rows
        known = set(reading.runs[ordinal].questions.column("key").to_pylist())
        if not set(piece.column("question_key").to_pylist()) <= known:
            return False
    return [run.n_records for run in reading.runs] == list(counts.values())


def read_plan(plan: Plan, spool: Path) -> list[Reading]:
    """Every source of a plan, those of one group together, as an ingest does."""
    groups: dict[tuple[str, str], list[int]] = {}
    for place, planned in enumerate(plan.reading):
        groups.setdefault((planned.reader.name, planned.source.group or f"#{place}"), []).append(place)
    return [
        reading
        for places in groups.values()
        for reading in read_sources([plan.reading[place].source for place in places], STUDY, [None] * len(places), spool)
    ]


REMEDY = re.compile(
    r", found |\([^()]*[a-z]|\b(run|delete|correct|write|fetch|convert|check|ingest|add|remove|leave|copy|unpack|give|map|rename|describe|save|keep|use|call)\b",
    re.IGNORECASE,
)


def faults_of(refusals: Sequence[Refusal]) -> list[str]:
    """What is wrong with refusals: more than a line, no remedy, no file, a traceback or the name of an exception."""
    found = []
    for one in refusals:
        reason = one.reason
        problems = [
            "empty" if not reason.strip() else "",
            "several lines" if re.search(r"[\r\n\v\f]", reason) else "",
            "no remedy" if not REMEDY.search(reason) else "",
            "an exception" if re.search(r"Traceback|\b[A-Z]\w+(Error|Exception)\b", reason) else "",
            "no file" if not one.file or "/" not in one.file else "",
            "too long" if len(reason) > 1500 else "",
            "not storable" if "\0" in reason + (one.text or "") else "",
        ]
        found += [f"{problem}: {one.file}: {one.line}: {reason!r}" for problem in problems if problem]
    return found
