"""After any sequence of ingest, replace, delete, catalog import and label import: lake == database, and the star views are right."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import tracker
from tests.lake.naive import Naive, same
from tests.lake.study import contents
from tracker.lake import verify

if TYPE_CHECKING:
    from tests.conftest import PostgresServer
    from tracker.api import Tracker

MODELS = ("lab/Alpha", "alpha-hf", "lab/Beta", "Qwen/Qwen2.5-VL-7B-Instruct")
BENCHMARKS = ("Bench", "bench_lmms", "HRBench4K")
CATALOGS = (
    """
[families.Greek]
[series.GreekSeries]
family = "Greek"
[backbones.Tiny]
parameters = 1000
source = "made up"
[models.Alpha]
series = "GreekSeries"
backbone = "Tiny"
aliases = ["lab/Alpha", "alpha-hf"]
""",
    """
[series.GreekSeries]
[models."lab/Beta"]
series = "GreekSeries"
[benchmarks.Bench]
suite = "Suite"
aliases = ["bench_lmms"]
tasks = { colour = "perception" }
""",
)
LABELS = (
    [("Bench", "q0", "domain", "D1", "zoe"), ("Bench", "q1", "skill", "S1", "zoe"), ("bench_lmms", "q2", "domain", "D2", "zoe")],
    [("Bench", "q0", "domain", "D3", "amy"), ("Bench", "q0", "domain", "D4", "zoe"), ("HRBench4K", "q1", "domain", "D5", "amy")],
)


@dataclass
class Study:
    """A store and the folder that is ingested into it."""

    store: Tracker
    folder: Path
    log: list[str] = field(default_factory=list)

    def write(self, file: int, model: str, benchmark: str, size: int | None, answers: list[Any]) -> None:
        """Write a file, new or changed, and ingest the folder."""
        rows = [
            _row(number, answer) | {"model": model, "benchmark": benchmark, "input_size": size} for number, answer in enumerate(answers)
        ]
        path = self.folder / "runs" / f"{file}.jsonl"
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        self.store.ingest(path.parent)

    def delete(self, place: int) -> None:
        """Delete one of the runs, if there are any."""
        ids = [run_id for (run_id,) in self.store.sql("select id from runs order by id").fetchall()] if self.log else []
        if ids:
            self.store.delete_runs([ids[place % len(ids)]])

    def catalog(self, number: int) -> None:
        """Import a catalog: models and benchmarks that were found get described, and some merge."""
        path = self.folder / "catalog.toml"
        path.write_text(CATALOGS[number])
        self.store.import_catalog(path)

    def labels(self, number: int) -> None:
        """Import labels."""
        path = self.folder / "labels.csv"
        path.write_text(
            "\n".join(",".join(row) for row in [("benchmark", "question_key", "scheme", "value", "source"), *LABELS[number]]) + "\n"
        )
        self.store.import_labels(path)

    def do(self, step: tuple[Any, ...]) -> None:
        """One step, after which everything must be right."""
        name, *arguments = step
        getattr(self, name)(*arguments)
        self.log.append(name)
        self.check()

    def check(self) -> None:
        """Lake == database; views as computed from raw rows; no slice waits."""
        db = self.store.database()
        if not self.store.lake.manifest():
            self.store.sync()  # nothing that was done so far changed anything
        report = verify(db, self.store.lake)
        assert report.ok, report.problems
        assert contents(db, "dirty_slices") == []
        naive = Naive(db)
        assert same(naive.trajectories(), self.rows("trajectories"), "question_id", "series")
        assert same(naive.cells(), self.rows("cells"), "run_id")
        assert self.store.sql("select (select count(*) from answers) = (select count(*) from records)").fetchall() == [(True,)]

    def rows(self, view: str) -> list[dict[str, Any]]:
        """A star view as dictionaries."""
        result = self.store.sql(f"select * from {view}")
        return [dict(zip(result.columns, row, strict=True)) for row in result.fetchall()]


def _row(number: int, answer: Any) -> dict[str, Any]:
    row: dict[str, Any] = {
        "question_id": f"q{number}",
        "category": "colour",
        "text": f"Text {number}",
        "options": ["x", "y"],
        "domain": "D0" if number == 1 else None,
    }
    return row | ({"correct": answer} if isinstance(answer, bool) else {"score": answer, "p_gold": 0.5})


answers = st.lists(st.sampled_from([True, False, 0.25, 0.75, 7.0]), min_size=1, max_size=4)
steps = st.lists(
    st.one_of(
        st.tuples(
            st.just("write"),
            st.integers(0, 2),
            st.sampled_from(MODELS),
            st.sampled_from(BENCHMARKS),
            st.sampled_from([None, 224, 448]),
            answers,
        ),
        st.tuples(st.just("delete"), st.integers(0, 9)),
        st.tuples(st.just("catalog"), st.integers(0, 1)),
        st.tuples(st.just("labels"), st.integers(0, 1)),
    ),
    min_size=1,
    max_size=7,
)
unhurried = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    phases=(Phase.explicit, Phase.generate),
)


def play(url: str, folder: Path, sequence: list[tuple[Any, ...]]) -> None:
    with tracker.open(url, folder / "lake") as store:
        study = Study(store, folder)
        for step in sequence:
            study.do(step)


@settings(unhurried, max_examples=12)
@given(steps)
def test_lake_equals_database_after_any_sequence(sequence: list[tuple[Any, ...]]) -> None:
    with tempfile.TemporaryDirectory() as name:
        play(f"sqlite:///{name}/trackr.db", Path(name), sequence)


@settings(unhurried, max_examples=3)
@given(steps)
def test_lake_equals_database_after_any_sequence_on_postgresql(postgres_server: PostgresServer, sequence: list[tuple[Any, ...]]) -> None:
    url = postgres_server.create()
    try:
        with tempfile.TemporaryDirectory() as name:
            play(url, Path(name), sequence)
    finally:
        postgres_server.drop(url)


def test_a_sequence_with_everything(sqlite_url: str, tmp_path: Path) -> None:
    """What the random sequences rarely hold at once: merging models and benchmarks after their runs, replacing, deleting."""
    sequence: list[tuple[Any, ...]] = [
        ("write", 0, "lab/Alpha", "Bench", 224, [True, False, 0.25]),
        ("write", 1, "alpha-hf", "bench_lmms", 224, [True, True, 0.75, 7.0]),
        ("write", 2, "lab/Beta", "Bench", 448, [False, True]),
        ("labels", 0),
        ("catalog", 0),
        ("catalog", 1),
        ("write", 1, "alpha-hf", "bench_lmms", 448, [False]),
        ("labels", 1),
        ("delete", 0),
        ("write", 0, "lab/Alpha", "Bench", 224, [True, True, True, True]),
        ("delete", 1),
        ("delete", 0),
        ("delete", 0),
    ]
    play(sqlite_url, tmp_path, sequence)
