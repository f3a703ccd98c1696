"""Every reader on every real file at once: each file is part of a run, rejected with a reason, or listed as skipped."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.conftest import samples
from tests.ingest.tables import content, open_store
from tracker.ingest.plan import SKIPPED_FOLDERS, make_plan
from tracker.study import Study

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tracker.ingest.plan import Plan
    from tracker.ingest.report import IngestReport


@pytest.fixture(scope="module")
def root() -> Path:
    """The folder of real files."""
    return samples().resolve()


@pytest.fixture(scope="module")
def plan(root: Path) -> Plan:
    """What an ingest of all of it would read."""
    return make_plan([root], Study.empty(), {})


@pytest.fixture(scope="module")
def ingested(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[IngestReport, IngestReport, set[str], list[str]]]:
    """First and second report, places of runs, and what changed between the two."""
    folder = tmp_path_factory.mktemp("together")
    with open_store(f"sqlite:///{folder / 'trackr.db'}", folder) as store:
        first = store.ingest(root)
        places = {uri for (uri,) in store.sql("select distinct uri from run_sources").fetchall()}
        before = content(store)
        version = store.session().data_version
        second = store.ingest(root)
        after = content(store)
        changed = [name for name in before if before[name] != after[name]] + (
            ["data_version"] if store.session().data_version != version else []
        )
        yield first, second, places, changed


def test_no_file_is_silently_missing(root: Path, plan: Plan) -> None:
    sources = [planned.source for planned in plan.reading]
    known = {path.resolve() for source in sources for path in (*source.files, *source.claims)} | {path.resolve() for path in plan.skipped}
    there = {
        path.resolve() for path in root.rglob("*") if path.is_file() and not SKIPPED_FOLDERS.intersection(path.relative_to(root).parts)
    }
    assert len(there) > 300
    missing = there - known
    deleted = {path.parent for path in root.rglob("meta.yaml") if "lifecycle_stage: deleted" in path.read_text()}
    assert plan.left_out == ({"deleted in MLflow": len(deleted)} if deleted else {}), "runs that are left out are counted"
    assert sorted(str(path.relative_to(root)) for path in missing if not deleted.intersection(path.parents)) == []


def test_no_file_belongs_to_two_sources_of_two_readers(plan: Plan) -> None:
    owners: dict[Path, set[str]] = {}
    for planned in plan.reading:
        for path in planned.source.files:
            owners.setdefault(path, set()).add(planned.source.reader)
    assert {str(path): found for path, found in owners.items() if len(found) > 1} == {}


def test_every_source_is_in_or_rejected(plan: Plan, ingested: tuple[IngestReport, IngestReport, set[str], list[str]]) -> None:
    first, _, places, _ = ingested
    rejected = {one.file for one in first.rejected}
    assert all(one.reason.strip() and "Traceback" not in one.reason and "\n" not in one.reason for one in first.rejected)
    silent = [
        planned.source.uri
        for planned in plan.reading
        if planned.source.uri not in places and not rejected & {planned.source.uri, *map(str, planned.source.files)}
    ]
    assert silent == []
    assert first.records > 5_000


def test_what_is_no_evaluation_output_is_listed(plan: Plan, ingested: tuple[IngestReport, IngestReport, set[str], list[str]]) -> None:
    first, _, _, _ = ingested
    assert sorted(first.skipped) == sorted(map(str, plan.skipped))


def test_a_second_ingest_changes_nothing(ingested: tuple[IngestReport, IngestReport, set[str], list[str]]) -> None:
    first, second, _, changed = ingested
    assert (second.new, second.updated, second.removed, second.records) == (0, 0, 0, 0)
    assert changed == []
    assert [(one.file, one.line, one.reason) for one in second.rejected] == [(one.file, one.line, one.reason) for one in first.rejected]


def test_pickles_are_never_loaded(root: Path, ingested: tuple[IngestReport, IngestReport, set[str], list[str]]) -> None:
    first, _, _, _ = ingested
    pickles = {str(path) for path in root.rglob("*.pkl")}
    assert pickles
    assert pickles <= {*first.skipped, *(one.file for one in first.rejected)}
