"""Folders that no evaluation wrote: looking for sources in them is quick, never ends in an exception, and never waits."""

from __future__ import annotations

import os
import random
import shutil
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.ingest.tables import open_store
from tests.robustness.reading import Read, faults_of, read_plan
from tests.robustness.units import STUDY, Unit, all_units, native_rows
from tests.robustness.units import jsonl as jsonl_of
from tracker.ingest.plan import make_plan
from tracker.readers import all_readers
from tracker.readers.base import Folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ENDINGS = (".json", ".jsonl", ".csv", ".tsv", ".parquet", ".xlsx", ".eval", ".db", ".yaml", ".pkl", ".txt", ".log", "", ".npz", ".html")
MAGIC = (
    b"",
    b"{",
    b"[",
    b'{"results": ',
    b"PK\x03\x04",
    b"PAR1",
    b"SQLite format 3\0",
    b"\x80\x04",
    b'{"eval": ',
    b"run_id: ",
    b"\xff\xfe",
    b"\x1f\x8b",
)
UNITS = [unit for unit in all_units() if unit.format != "table"]
ONE_OF_EACH = [next(unit for unit in UNITS if unit.format == name) for name in dict.fromkeys(unit.format for unit in UNITS)]


class LateError(BaseException):
    """No Exception, which a reader might take for a fault of the file."""


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """What takes longer fails. An alarm ends what waits for ever, such as opening a pipe."""
    import signal

    def late(*_: object) -> None:
        message = f"still at work after {seconds} s"
        raise LateError(message)

    previous = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


def names_of_any_kind() -> list[str]:
    """Names with everything that a file system allows."""
    odd = [
        "new\nline",
        "tab\tquote'\"",
        "100%_;$(x)`y`",
        "-rf",
        "ünï 日本 \U0001f600",
        "dot.",
        "a" * 200,
        " ",
        "\\",
        "[x]*?{y}",
        "#?x=1&y",
        "\x1b[31m",
    ]
    return odd + [os.fsdecode(b"bytes-\xff\xfe-" + bytes([at])) for at in (0xE9, 0x80)]


def test_ten_thousand_files_of_random_bytes(tmp_path: Path) -> None:
    source = random.Random(4)
    root = tmp_path / "in"
    root.mkdir()
    for number in range(10_000):
        (root / f"file{number}{ENDINGS[number % len(ENDINGS)]}").write_bytes(source.choice(MAGIC) + source.randbytes(source.randrange(400)))
    started = time.process_time()
    with within(60):
        plan = make_plan([root], STUDY, {})
    took = time.process_time() - started
    assert len({path for planned in plan.reading for path in planned.source.files}) + len(plan.skipped) >= 10_000 - len(plan.left_out)
    assert took < 15
    readings = read_plan(plan, tmp_path)
    assert all(reading.refusals for reading in readings if not reading.runs)
    assert faults_of([one for reading in readings for one in reading.refusals]) == []


def test_names_of_formats_with_random_contents(tmp_path: Path) -> None:
    """Every file of every unit, with the beginning that its content had, or another's, and noise behind it."""
    source = random.Random(5)
    for number in range(3):
        root = tmp_path / str(number)
        for place, unit in enumerate(UNITS):
            noise = {
                name: source.choice([content[:40], b"", source.choice(MAGIC)]) + source.randbytes(300)
                for name, content in unit.files.items()
            }
            unit.write(root / str(place), **noise)
        with within(60):
            read = Read(root, tmp_path)
        assert faults_of(read.refusals) == []
        assert [reading.source.uri for reading in read.readings if not reading.runs and not reading.refusals] == []


def test_deep_folders_and_names_of_any_kind(tmp_path: Path) -> None:
    root = tmp_path / "in"
    deep = root
    for level in range(200):
        deep /= f"d{level % 10}"
    deep.mkdir(parents=True)
    (deep / "answers.jsonl").write_bytes(jsonl_of(native_rows()))
    for number, name in enumerate(names_of_any_kind()):
        folder = root / "odd" / name
        folder.mkdir(parents=True)
        for unit in ONE_OF_EACH:
            unit.write(folder / str(number) / unit.format / name)
        (folder / f"{name[:190]}.jsonl").write_bytes(jsonl_of(native_rows()))
        (folder / f"{name[:190]}.json").write_bytes(b'{"results": {')
    with within(120):
        read = Read(root, tmp_path)
    assert faults_of(read.refusals) == []
    assert [reading.source.uri for reading in read.readings if not reading.runs and not reading.refusals] == []
    odd = len(names_of_any_kind())
    assert sum(reading.source.reader == "native" and bool(reading.runs) for reading in read.readings) == 1 + 2 * odd
    assert {unit.format for unit in ONE_OF_EACH} <= {
        *(reading.source.reader for reading in read.readings if reading.runs),
        "mlflow_files",
        "mlflow_sqlite",
    }


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: f"{unit.format}-{unit.name}")
def test_files_that_vanish_between_finding_and_reading(unit: Unit, tmp_path: Path) -> None:
    root = unit.write(tmp_path / "in")
    for name in unit.targets:
        plan = make_plan([root], STUDY, {})
        (root / name).unlink()
        with within(30):
            readings = read_plan(plan, tmp_path)
        assert faults_of([one for reading in readings for one in reading.refusals]) == []
        owners = [reading for reading in readings if (root / name).resolve() in {path.resolve() for path in reading.source.files}]
        assert [reading.source.uri for reading in owners if not reading.refusals] == []
        unit.write(root)


@pytest.mark.parametrize("reader", all_readers(), ids=lambda reader: reader.name)
def test_names_that_are_not_there_are_no_sources_or_refused(reader: Any, tmp_path: Path) -> None:
    """The folder was listed, and was emptied before anything was looked into."""
    for unit in UNITS:
        root = tmp_path / unit.format / unit.name
        unit.write(root)
        folders = [Folder(Path(at), sorted(names), sorted(below)) for at, below, names in os.walk(root)]
        shutil.rmtree(root)
        for folder in folders:
            with within(30):
                sources = reader.find(folder, STUDY)
            assert all(path.parent.is_relative_to(root.resolve()) for source in sources for path in source.files)


def as_pipe(path: Path) -> None:
    os.mkfifo(path)


def as_loop(path: Path) -> None:
    path.symlink_to(path)


def as_dangling(path: Path) -> None:
    path.symlink_to(path.with_name("nothing here"))


def as_folder(path: Path) -> None:
    path.mkdir()


def as_parent(path: Path) -> None:
    path.symlink_to(path.parent, target_is_directory=True)


def as_unreadable(path: Path) -> None:
    """A file of /proc opens for anybody and cannot be read by anybody, root included."""
    path.symlink_to("/proc/self/mem")


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: f"{unit.format}-{unit.name}")
@pytest.mark.parametrize("instead", [as_pipe, as_loop, as_dangling, as_folder, as_parent, as_unreadable])
def test_something_else_stands_in_the_place_of_a_file(unit: Unit, instead: Callable[[Path], None], tmp_path: Path) -> None:
    root = unit.write(tmp_path / "in")
    for name in list(unit.files)[:5]:
        (root / name).unlink()
        instead(root / name)
        with within(10):
            read = Read(root, tmp_path)
        assert faults_of(read.refusals) == []
        assert [reading.source.uri for reading in read.readings if not reading.runs and not reading.refusals] == []
        shutil.rmtree(root)
        unit.write(root)


def test_one_ingest_of_all_of_it(tmp_path: Path, sqlite_url: str) -> None:
    root = tmp_path / "in"
    for number, unit in enumerate(ONE_OF_EACH):
        for place, instead in enumerate((as_pipe, as_loop, as_dangling, as_folder, as_parent, as_unreadable)):
            folder = unit.write(root / f"{number}-{place}")
            target = folder / unit.targets[0]
            target.unlink()
            instead(target)
    with within(120), open_store(sqlite_url, tmp_path) as store:
        first = store.ingest(root, study=STUDY)
        again = store.ingest(root, study=STUDY)
    assert first.rejected
    assert (again.new, again.updated, again.removed, again.records) == (0, 0, 0, 0)
    assert sorted(map(str, again.rejected)) == sorted(map(str, first.rejected))
