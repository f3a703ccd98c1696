"""Any order of ingest, catalog import and label import ends in the same database (DEFINITIONS, Identity)."""

from __future__ import annotations

import itertools
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.ingest.tables import Content, content, open_store, run_rows, write_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tracker.api import Tracker

Step = tuple[str, "Callable[[Tracker], object]"]

CATALOG = """
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
[benchmarks.Bench]
suite = "Suite"
aliases = ["bench_lmms", "Bench (dev)"]
tasks = { colour = "perception" }
"""
SERIES_OF_A_FOUND_MODEL = """
[series."lab/Beta"]
[models.Gamma]
series = "lab/Beta"
"""
LABELS = "benchmark,question_key,scheme,value,source\n" + "".join(
    f"bench_lmms,q{i},domain,D{i},experts\nBench,q{i},skill,S1,experts\n" for i in range(6)
)


def ingest(path: Path, store: Tracker) -> None:
    store.ingest(path)


def describe(path: Path, store: Tracker) -> None:
    store.import_catalog(path)


def write_study(root: Path) -> list[Step]:
    """Files whose models and benchmarks the catalogs merge, with questions that content joins, and what describes them."""
    told = {"input_size": 448, "category": "colour"}
    files = [
        [
            *run_rows("lab/Alpha", "Bench", 3, ended_at="2026-01-02T00:00:00Z", domain="D9", **told),
            *run_rows("alpha-hf", "bench_lmms", 4, ended_at="2026-01-03T00:00:00Z", domain="D8", **told),
        ],
        run_rows("LAB/ALPHA", "Bench", 2, ended_at="2026-01-01T00:00:00Z", gold="B", input_size=448),
        run_rows("lab/Beta", "bench_lmms", 5, ended_at="2026-01-05T00:00:00Z", gold="A", p_gold=0.25, visual_tokens=7),
        [
            {**row, "text": f"Text {row['question_id']}", "options": ["x", "y"], "image_key": "i"}
            for row in run_rows("lab/Beta", "Bench (dev)", 3, input_size=896, ended_at="2026-01-04T00:00:00Z")
        ],
        [
            {
                **row,
                "question_id": f"other-{row['question_id']}",
                "text": f"Text {row['question_id']}",
                "options": ["y", "x"],
                "image_key": "i",
            }
            for row in run_rows("Qwen/Qwen3-8B", "Bench", 3, ended_at="2026-01-06T00:00:00Z")
        ],
        run_rows("Qwen/Qwen2.5-VL-7B-Instruct", "HRBench4K", 3, run_id="shared", ended_at="2026-01-07T00:00:00Z", task="reasoning"),
        run_rows("Qwen2.5-VL-7B-Instruct", "hrbench4k", 4, run_id="shared", ended_at="2026-01-08T00:00:00Z", category="cross"),
    ]
    steps: list[Step] = []
    for number, rows in enumerate(files):
        path = write_rows(root / "runs" / f"{number}.jsonl", rows)
        steps.append((f"file {number}", partial(ingest, path)))
    copy = root / "runs" / "a" / "copy.jsonl"
    copy.parent.mkdir()
    copy.write_bytes((root / "runs" / "2.jsonl").read_bytes())
    steps.append(("copy of 2", partial(ingest, copy)))
    for name, text in (("catalog", CATALOG), ("series", SERIES_OF_A_FOUND_MODEL)):
        (root / f"{name}.toml").write_text(text)
        steps.append((name, partial(describe, root / f"{name}.toml")))
    (root / "labels.csv").write_text(LABELS)
    steps.append(("labels", lambda store: store.import_labels(root / "labels.csv")))
    return steps


def outcome(steps: Sequence[Step], url: str, folder: Path) -> Content:
    folder.mkdir(parents=True, exist_ok=True)
    with open_store(url, folder) as store:
        for _, step in steps:
            step(store)
        return content(store)


def difference(one: Content, other: Content) -> dict[str, tuple[set[tuple[Any, ...]], set[tuple[Any, ...]]]]:
    return {name: (set(one[name]) - set(other[name]), set(other[name]) - set(one[name])) for name in one if one[name] != other[name]}


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Step], Content]:
    root = tmp_path_factory.mktemp("study")
    steps = write_study(root)
    return steps, outcome(steps, f"sqlite:///{root / 'first.db'}", root / "first")


@settings(max_examples=8, deadline=None, phases=[Phase.generate], suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_order_ends_in_the_same_content(study: tuple[list[Step], Content], data: st.DataObject) -> None:
    steps, expected = study
    order = data.draw(st.permutations(steps))
    with tempfile.TemporaryDirectory() as name:
        found = outcome(order, f"sqlite:///{name}/trackr.db", Path(name))
    assert difference(expected, found) == {}, [one for one, _ in order]


@pytest.mark.parametrize("seed", [0, 1])
def test_postgresql_ends_in_the_same_content_as_sqlite(
    study: tuple[list[Step], Content], postgres_url: str, tmp_path: Path, seed: int
) -> None:
    steps, expected = study
    order = list(reversed(steps)) if seed else [*steps[1::2], *steps[::2]]
    assert difference(expected, outcome(order, postgres_url, tmp_path)) == {}


def test_everything_at_once_ends_in_the_same_content(study: tuple[list[Step], Content], tmp_path: Path) -> None:
    """One ingest of the folder, in one transaction, after the catalogs."""
    steps, expected = study
    named = dict(steps)
    root = next(path for path in [*tmp_path.parent.glob("study*")])
    with open_store(f"sqlite:///{tmp_path / 'trackr.db'}", tmp_path) as store:
        for name in ("labels", "catalog", "series"):
            named[name](store)
        store.ingest(root / "runs")
        assert difference(expected, content(store)) == {}


def test_the_study_has_what_the_orders_are_about(study: tuple[list[Step], Content]) -> None:
    """Merged models and benchmarks, joined questions, a copied file, a run in two versions."""
    _, expected = study
    models = {row[0] for row in expected["models"]}
    assert "Alpha" in models
    assert not {"lab/Alpha", "alpha-hf", "LAB/ALPHA"} & models
    assert {"lab/Beta", "lab/Beta (found)"} <= {row[0] for row in expected["series"]}
    assert [row for row in expected["questions"] if row[-1] is not None]
    assert any("#alpha-hf|bench_lmms" in row[1] or "#lab/Alpha" in row[1] for row in expected["runs"])
    assert len([row for row in expected["runs"] if row[1] == "shared"]) == 1
    assert len({(row[1], row[3]) for row in expected["run_sources"]}) < len(expected["run_sources"])
    assert {row[5] for row in expected["models"] if row[0] == "Qwen/Qwen3-8B"} == {"Qwen3-8B"}
    assert len(list(itertools.chain(*expected.values()))) > 100
