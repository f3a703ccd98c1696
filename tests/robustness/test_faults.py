"""Every damaged file of the corpus, by one ingest: nothing raised, nothing silently missing, everything said."""

from __future__ import annotations

import sqlite3
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.ingest.tables import open_store
from tests.robustness.faults import all_faults
from tests.robustness.reading import Read, faults_of
from tests.robustness.units import STUDY, Unit, formats
from tracker.ingest.plan import make_plan

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.robustness.faults import Fault
    from tracker.ingest.report import IngestReport


class Corpus:
    """The corpus on disk, read fault by fault, and ingested as a whole, twice."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.trap, self.spool = folder, folder / "trapped", folder / "spool"
        self.spool.mkdir()
        self.root = (folder / "in").resolve()
        self.faults = all_faults(self.trap)
        self.places = {f"{number:04}": fault for number, fault in enumerate(self.faults)}
        for place, fault in self.places.items():
            fault.write(self.root / place)
        self.reads = {place: Read(self.root / place, self.spool) for place in self.places}
        self._counts: dict[tuple[str, str, str, bytes | None], int] = {}

    def records(self, unit: Unit, target: str = "", content: bytes | None = None) -> int:
        """How many records a unit has, with another content of one file."""
        key = (unit.format, unit.name, target, content)
        if key not in self._counts:
            folder = self.folder / "sound" / str(len(self._counts))
            self._counts[key] = Read(unit.write(folder, **({} if content is None else {target: content})), self.spool).records
        return self._counts[key]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return Corpus(tmp_path_factory.mktemp("faults"))


@pytest.fixture(scope="module")
def ingested(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[IngestReport, IngestReport, Path, list[str]]]:
    """First and second report, the database, and its contents before and after the second."""
    folder = tmp_path_factory.mktemp("store")
    database = folder / "trackr.db"
    with open_store(f"sqlite:///{database}", folder) as store:
        first = store.ingest(corpus.root, study=STUDY)
        before = dump(database)
        second = store.ingest(corpus.root, study=STUDY)
        yield first, second, database, [before, dump(database)]


def dump(database: Path) -> str:
    """Everything in a database."""
    with closing(sqlite3.connect(database)) as connection:
        return "\n".join(connection.iterdump())


def show(place: str, fault: Fault) -> str:
    """A fault for a message."""
    return f"{place} {fault.unit.format}/{fault.unit.name}: {fault.target}: {fault.name}"


def test_the_corpus_is_large_and_has_every_format(corpus: Corpus, capsys: pytest.CaptureFixture[str]) -> None:
    counts = Counter(fault.unit.format for fault in corpus.faults)
    with capsys.disabled():
        sys.stdout.write(f"\n{len(corpus.faults)} damaged files: {dict(counts)}\n")
    assert len(corpus.faults) >= 200
    assert set(formats()) <= set(counts)
    assert min(counts[name] for name in formats()) >= 8


def test_every_refusal_is_one_line_with_file_and_remedy(corpus: Corpus) -> None:
    assert [
        show(place, corpus.places[place]) + ": " + one for place, read in corpus.reads.items() for one in faults_of(read.refusals)
    ] == []


def test_every_file_is_part_of_a_source_or_listed_as_skipped(corpus: Corpus) -> None:
    plan = make_plan([corpus.root], STUDY, {})
    known = {path.resolve() for planned in plan.reading for path in (*planned.source.files, *planned.source.claims)} | set(plan.skipped)
    left_out = [path for path in corpus.root.rglob("*") if path.is_file() and path.resolve() not in known]
    assert sum(plan.left_out.values()) == 0 or left_out
    assert [str(path.relative_to(corpus.root)) for path in left_out if not plan.left_out] == []


def test_every_source_gives_runs_or_says_why_not(corpus: Corpus) -> None:
    silent = [
        f"{show(place, corpus.places[place])}: {reading.source.uri}"
        for place, read in corpus.reads.items()
        for reading in read.readings
        if not reading.runs and not reading.refusals
    ]
    assert silent == []


def test_what_is_sound_beside_the_damage_is_read(corpus: Corpus) -> None:
    lost = []
    for place, fault in corpus.places.items():
        if fault.remains is not None:
            found, least = corpus.reads[place].records, corpus.records(fault.unit, fault.target, fault.remains)
            lost += [f"{show(place, fault)}: {found} records, at least {least} are sound"] if found < least else []
    assert lost == []


def test_nothing_is_dropped_silently(corpus: Corpus) -> None:
    silent = []
    for place, fault in corpus.places.items():
        read, name = corpus.reads[place], Path(fault.target).name
        fewer = read.records < corpus.records(fault.unit)
        named = [one for one in read.refusals if name in one.file or name in one.reason]
        if (fewer or fault.said) and not (named or read.reasons or read.nul_characters or fault.target in read.skipped):
            others = [f"{Path(one.file).name}: {one.reason}" for one in read.refusals]
            silent.append(f"{show(place, fault)}: {read.records} of {corpus.records(fault.unit)} records; {others}")
    assert silent == []


def test_no_pickle_is_loaded(corpus: Corpus, ingested: tuple[IngestReport, IngestReport, Path, list[str]]) -> None:
    assert sum(fault.name == "pickle" for fault in corpus.faults) >= 10
    assert not corpus.trap.exists()


def test_one_ingest_takes_it_all_in_or_rejects_it(corpus: Corpus, ingested: tuple[IngestReport, IngestReport, Path, list[str]]) -> None:
    first, _, database, _ = ingested
    with closing(sqlite3.connect(database)) as connection:
        places = {uri for (uri,) in connection.execute("SELECT uri FROM run_sources")}
        rejected = {uri for (uri,) in connection.execute("SELECT uri FROM rejections")}
        stored = Counter(connection.execute("SELECT file, line, reason FROM rejections"))
        half = connection.execute(
            "SELECT r.id, r.n_records, count(x.run_id) FROM runs r LEFT JOIN records x ON x.run_id = r.id GROUP BY r.id, r.n_records"
            " HAVING r.n_records <> count(x.run_id)"
        ).fetchall()
    readings = [reading for read in corpus.reads.values() for reading in read.readings]
    assert half == []
    assert [reading.source.uri for reading in readings if reading.runs and reading.source.uri not in places] == []
    assert [reading.source.uri for reading in readings if not reading.runs and reading.source.uri not in rejected] == []
    assert stored == Counter((one.file, one.line, one.reason) for reading in readings for one in reading.refusals)
    assert sorted(first.skipped) == sorted(str(path) for read in corpus.reads.values() for path in read.plan.skipped)


def test_a_second_ingest_is_no_work(ingested: tuple[IngestReport, IngestReport, Path, list[str]]) -> None:
    first, second, _, (before, after) = ingested
    assert first.new > 50
    assert (second.new, second.updated, second.duplicate, second.removed, second.records) == (0, 0, 0, 0, 0)
    assert second.ingest_id is None
    assert before == after
    assert Counter(map(str, second.rejected)) == Counter(map(str, first.rejected))
