"""`trackr labels import|export|prefer`."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING

import pytest

from tests.cli.running import Done, runner
from tests.ingest.tables import run_rows, write_rows

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Trackr = Callable[..., Done]

LABELS = "benchmark,question_key,scheme,value,source\nBench,q0,domain,D1,us\nBench,q0,domain,D2,them\nElsewhere,x,skill,S1,us\n"


@pytest.fixture
def trackr(capfd: pytest.CaptureFixture[str], database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Trackr:
    """On both engines, with one run and some labels to import."""
    monkeypatch.chdir(tmp_path)
    run = runner(capfd, "--db", database_url, "--lake", str(tmp_path / "lake"))
    write_rows(tmp_path / "a.jsonl", run_rows(n=1))
    (tmp_path / "labels.csv").write_text(LABELS)
    run("ingest", "a.jsonl")
    return run


def domain(trackr: Trackr) -> str:
    ((value,),) = [row.values() for row in trackr("query", "select domain from answers", "--format", "json").json()]
    return str(value)


def test_import_counts_and_the_second_time_changes_nothing(trackr: Trackr) -> None:
    assert (
        trackr("labels", "import", "labels.csv").out == "3 labels read: 3 new, 0 changed; 1 wait for questions that no run has asked yet\n"
    )
    assert trackr("labels", "import", "labels.csv", "--json").json() == {"read": 3, "added": 0, "changed": 0, "waiting": 1}


def test_export_gives_back_what_was_imported(trackr: Trackr, tmp_path: Path) -> None:
    trackr("labels", "import", "labels.csv")
    printed = trackr("labels", "export")
    assert sorted(printed.out.splitlines()) == sorted(LABELS.splitlines())
    assert printed.err == ""
    assert trackr("labels", "export", "-").out == printed.out
    for name in ("out.csv", "out.jsonl"):
        done = trackr("labels", "export", name)
        assert (done.out, done.err) == ("", f"3 labels written to {name}\n")
        again = trackr("labels", "import", name, "--json").json()
        assert (again["read"], again["added"], again["changed"]) == (3, 0, 0)
    rows = list(csv.DictReader(io.StringIO((tmp_path / "out.csv").read_text())))
    assert rows == [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]


def test_prefer_says_whose_labels_the_views_use(trackr: Trackr) -> None:
    trackr("labels", "import", "labels.csv")
    assert domain(trackr) == "D2"
    assert trackr("labels", "prefer", "domain", "us", "them").out == "domain: us before them, others after them in alphabetical order\n"
    assert domain(trackr) == "D1"
    trackr("labels", "prefer", "domain", "them")
    assert domain(trackr) == "D2"


def test_a_bad_file_names_its_line_and_changes_nothing(trackr: Trackr, tmp_path: Path) -> None:
    (tmp_path / "bad.csv").write_text(LABELS + "Bench,,domain,D3,us\n")
    done = trackr("labels", "import", "bad.csv")
    assert (done.code, done.out) == (3, "")
    assert (
        done.err
        == "trackr: bad.csv: line 5: expected a value for question_key, found 'none' (columns are benchmark, question_key, scheme, value, source)\n"
    )
    assert trackr("labels", "export").out == LABELS.splitlines()[0] + "\n"


@pytest.mark.parametrize("arguments", [["import", "none.csv"], ["import"], ["prefer", "domain"]])
def test_wrong_usage_is_2(trackr: Trackr, arguments: list[str]) -> None:
    assert trackr("labels", *arguments).code == 2


def test_an_export_that_cannot_be_written_is_one_line(trackr: Trackr) -> None:
    done = trackr("labels", "export", "none/out.csv")
    assert (done.code, done.out, done.err) == (
        1,
        "",
        "trackr: none/out.csv: cannot be written: No such file or directory (choose another file)\n",
    )
