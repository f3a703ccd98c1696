"""`trackr labels agreement`: against scikit-learn, against planted truth, and on labels that wait."""

from __future__ import annotations

import csv
import io
import random
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli.running import Done, runner
from tests.ingest.tables import run_rows, write_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    Trackr = Callable[..., Done]

VALUES = ("D1", "D2", "D3", "D4")
QUESTIONS = 200


@pytest.fixture
def trackr(capfd: pytest.CaptureFixture[str], sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Trackr:
    """With runs on two benchmarks; the comparison itself is done in the session, whatever the database."""
    monkeypatch.chdir(tmp_path)
    run = runner(capfd, "--db", sqlite_url, "--lake", str(tmp_path / "lake"))
    write_rows(tmp_path / "a.jsonl", [*run_rows(n=QUESTIONS), *run_rows(benchmark="Other", n=10)])
    run("ingest", "a.jsonl")
    return run


def import_labels(trackr: Trackr, folder: Path, rows: Sequence[tuple[str, str, str, str, str]]) -> None:
    """Rows of benchmark, question_key, scheme, value, source."""
    lines = ["benchmark,question_key,scheme,value,source", *(",".join(row) for row in rows)]
    (folder / "labels.csv").write_text("\n".join(lines) + "\n")
    assert trackr("labels", "import", "labels.csv").code == 0


def compared(trackr: Trackr, *arguments: str) -> Any:
    done = trackr("labels", "agreement", "domain", "--json", *arguments)
    assert done.code == 0, done
    return done.json()


def test_it_is_what_scikit_learn_says(trackr: Trackr, tmp_path: Path) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    chance = random.Random(1)
    first = {f"q{i}": chance.choice(VALUES) for i in range(QUESTIONS)}
    second = {key: value if chance.random() < 0.7 else chance.choice(VALUES) for key, value in first.items() if chance.random() < 0.9}
    rows = [("Bench", key, "domain", value, source) for source, told in (("us", first), ("them", second)) for key, value in told.items()]
    import_labels(trackr, tmp_path, rows)
    found = compared(trackr, "--between", "us", "them")
    (pair,) = found["pairs"]
    both = sorted(second)
    ours, theirs = [first[key] for key in both], [second[key] for key in both]
    assert 150 < len(both) < QUESTIONS
    assert (pair["source_1"], pair["source_2"], pair["n"], pair["benchmark"]) == ("us", "them", len(both), None)
    assert pair["kappa"] == pytest.approx(metrics.cohen_kappa_score(ours, theirs), abs=1e-12)
    assert pair["agreement"] == pytest.approx(metrics.accuracy_score(ours, theirs), abs=1e-12)
    table = metrics.confusion_matrix(ours, theirs, labels=VALUES)
    counts = {(row["value_1"], row["value_2"]): row["n"] for row in found["confusion"]}
    assert counts == {(a, b): int(table[i][j]) for i, a in enumerate(VALUES) for j, b in enumerate(VALUES) if table[i][j]}


def test_planted_agreement_comes_out_exactly(trackr: Trackr, tmp_path: Path) -> None:
    # Cohen's table by hand: 20 and 15 on the diagonal, 5 and 10 off it, n = 50: p = 0.7, e = 0.5 * 0.6 + 0.5 * 0.4 = 0.5, kappa = 0.4.
    pairs = [("yes", "yes")] * 20 + [("yes", "no")] * 5 + [("no", "yes")] * 10 + [("no", "no")] * 15
    rows = [
        ("Bench", f"q{i}", "domain", value, source) for i, pair in enumerate(pairs) for source, value in zip(("a", "b"), pair, strict=True)
    ]
    import_labels(trackr, tmp_path, [*rows, ("Bench", "q60", "domain", "yes", "a"), ("Bench", "q61", "skill", "yes", "b")])
    found = compared(trackr)
    (pair,) = found["pairs"]
    assert (pair["n"], pair["agreeing"]) == (50, 35)
    assert (pair["agreement"], pair["chance"], pair["kappa"]) == pytest.approx((0.7, 0.5, 0.4), abs=1e-15)
    turned = compared(trackr, "--between", "b", "a")
    assert turned["pairs"][0]["kappa"] == pytest.approx(0.4, abs=1e-15)
    assert {(row["value_1"], row["value_2"], row["n"]) for row in turned["confusion"]} == {
        ("yes", "yes", 20), ("no", "yes", 5), ("yes", "no", 10), ("no", "no", 15)
    }  # fmt: skip
    printed = trackr("labels", "agreement", "domain", "--format", "csv")
    assert next(iter(csv.DictReader(io.StringIO(printed.out)))).keys() == {
        "source_1", "source_2", "n", "agreeing", "agreement", "chance", "kappa"
    }  # fmt: skip
    table = list(csv.DictReader(io.StringIO(trackr("labels", "agreement", "domain", "--confusion", "--format", "csv").out)))
    assert sum(int(row["n"]) for row in table) == 50


def test_every_pair_and_every_benchmark(trackr: Trackr, tmp_path: Path) -> None:
    rows = [("Bench", f"q{i}", "domain", VALUES[i % 2], source) for i in range(8) for source in ("a", "b")]
    rows += [("Bench", f"q{i}", "domain", "D1", "c") for i in range(8)]
    rows += [("Other", f"q{i}", "domain", VALUES[(i + shift) % 2], source) for i in range(6) for shift, source in enumerate(("a", "b"))]
    import_labels(trackr, tmp_path, rows)
    overall = {(row["source_1"], row["source_2"]): row for row in compared(trackr)["pairs"]}
    assert {pair: row["n"] for pair, row in overall.items()} == {("a", "b"): 14, ("a", "c"): 8, ("b", "c"): 8}
    assert overall["a", "b"]["agreement"] == pytest.approx(8 / 14)
    split = {(row["benchmark"], row["source_1"], row["source_2"]): row["kappa"] for row in compared(trackr, "--by-benchmark")["pairs"]}
    assert split == {("Bench", "a", "b"): 1.0, ("Bench", "a", "c"): 0.0, ("Bench", "b", "c"): 0.0, ("Other", "a", "b"): -1.0}


def test_one_value_for_all_has_no_kappa(trackr: Trackr, tmp_path: Path) -> None:
    import_labels(trackr, tmp_path, [("Bench", f"q{i}", "domain", "D1", source) for i in range(5) for source in ("a", "b")])
    (pair,) = compared(trackr)["pairs"]
    assert (pair["agreement"], pair["chance"], pair["kappa"]) == (1.0, 1.0, None)


def test_questions_that_no_run_has_asked_count_too(trackr: Trackr, tmp_path: Path) -> None:
    import_labels(
        trackr, tmp_path, [("Nowhere", f"q{i}", "domain", value, source) for i in range(4) for source, value in (("a", "D1"), ("b", "D2"))]
    )
    (pair,) = compared(trackr)["pairs"]
    assert (pair["n"], pair["agreement"], pair["kappa"]) == (4, 0.0, 0.0)


def test_a_question_under_two_keys_is_one_question(trackr: Trackr, tmp_path: Path) -> None:
    write_rows(tmp_path / "b.jsonl", [{"model": "x", "benchmark": "Twice", "question_id": "1", "correct": True, "text": "What?"}])
    write_rows(tmp_path / "c.jsonl", [{"model": "y", "benchmark": "Twice", "question_id": "one", "correct": True, "text": "What?"}])
    trackr("ingest", "b.jsonl", "c.jsonl")
    import_labels(trackr, tmp_path, [("Twice", "1", "domain", "D1", "a"), ("Twice", "one", "domain", "D1", "b")])
    (pair,) = compared(trackr)["pairs"]
    assert (pair["n"], pair["agreeing"]) == (1, 1)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["none"], "no labels of the scheme 'none' (there are domain)"),
        (["domain", "--between", "a", "zed"], "no labels of 'domain' from 'zed' (there are those of a, b)"),
        (["domain", "--between", "a", "a"], "'a' agrees with itself (name two sources)"),
    ],
)
def test_wrong_usage_is_2(trackr: Trackr, tmp_path: Path, arguments: list[str], said: str) -> None:
    import_labels(trackr, tmp_path, [("Bench", "q1", "domain", "D1", "a"), ("Bench", "q1", "domain", "D1", "b")])
    done = trackr("labels", "agreement", *arguments)
    assert (done.code, done.out, done.err) == (2, "", f"trackr: {said}\n")


def test_a_table_shows_both(trackr: Trackr, tmp_path: Path) -> None:
    import_labels(trackr, tmp_path, [("Bench", "q1", "domain", "D1", "a"), ("Bench", "q1", "domain", "D2", "b")])
    lines = trackr("labels", "agreement", "domain").out.splitlines()
    assert lines[0].split() == ["source_1", "source_2", "n", "agreeing", "agreement", "chance", "kappa"]
    assert lines[4].split() == ["source_1", "source_2", "value_1", "value_2", "n"]
    assert Counter(lines[-1].split()) == Counter(["a", "b", "D1", "D2", "1"])
