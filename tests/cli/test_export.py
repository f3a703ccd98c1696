"""`trackr export every-eval-ever`: valid, repeatable, and read back as it was."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import statistics
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli.running import Done, runner
from tests.conftest import samples
from tests.ingest.tables import run_rows, write_rows
from tests.readers.harness import INGEST

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Trackr = Callable[..., Done]

UUID4 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
DOCUMENT = {"schema_version", "evaluation_id", "retrieved_timestamp", "source_metadata", "model_info", "eval_library", "evaluation_results"}
ROW = {"schema_version", "evaluation_id", "model_id", "evaluation_name", "sample_id", "interaction_type", "input", "output"} | {
    "answer_attribution",
    "evaluation",
}
"""What the public schemas require."""
CONTENT = """
SELECT
    m.name AS model, b.name AS benchmark, c.fingerprint, q.key, r.repetition, r.attempt, r.status, r.correct, r.score, r.score_rule, r.prediction,
    r.logit_prediction, r.p_gold, r.option_scores, r.visual_tokens, r.prompt_tokens, r.generated_tokens, r.tiles, r.latency_s, r.response,
    q.content_hash, q.image_key, q.text, q.options, q.gold, q.n_options, q.task, q.category, q.subcategory,
    (SELECT list((scorer, score) ORDER BY scorer) FROM record_scores AS s
        WHERE s.run_id = r.run_id AND s.question_id = r.question_id AND s.repetition = r.repetition AND s.attempt = r.attempt) AS scores
FROM records AS r
JOIN runs ON r.run_id = runs.id JOIN configurations AS c ON runs.configuration_id = c.id JOIN models AS m ON c.model_id = m.id
JOIN benchmarks AS b ON runs.benchmark_id = b.id JOIN questions AS q ON r.question_id = q.id
WHERE r.status = 'scored' AND runs.status = 'finished'
ORDER BY ALL
"""
RICH = {
    "text": "What\u2028is \x85 it?", "options": ["red", "green"], "gold": "B", "prediction": "B", "logit_prediction": "A", "p_gold": 0.1 + 0.2,
    "option_scores": [-1.5, -0.25], "visual_tokens": 1024, "prompt_tokens": 1100, "tiles": 4, "latency_s": 0.1234567, "image_key": "img/7",
    "category": "colour", "subcategory": "shade", "task": "perception", "response": "The answer is B.", "scores": {"bleu": 12.5, "x": 1e-9},
    "score_rule": "acc", "input_mode": "fixed", "input_size": 896, "max_tiles": 12, "pixel_cap": 401408, "source_quality": "jpeg 50",
    "vision_branches": 2, "language_branches": 1, "few_shot": 0, "precision": "bfloat16", "max_new_tokens": 64, "prompt": "letter only",
    "variant": "vcd=0.5", "started_at": "2026-01-01T00:00:00.25Z", "ended_at": "2026-01-01T01:00:00Z",
}  # fmt: skip


@pytest.fixture
def trackr(capfd: pytest.CaptureFixture[str], sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Trackr:
    """In an empty folder; an export asks the lake, whatever the database."""
    monkeypatch.chdir(tmp_path)
    return runner(capfd, "--db", sqlite_url, "--lake", str(tmp_path / "lake"))


@pytest.fixture
def other(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> Trackr:
    """A second store."""
    return runner(capfd, "--db", f"sqlite:///{tmp_path}/other.db", "--lake", str(tmp_path / "other"))


def content(run: Trackr) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = run("query", CONTENT, "--json").json()
    return found


def documents(folder: Path) -> list[tuple[Path, dict[str, Any], list[dict[str, Any]]]]:
    """Every document with its rows."""
    found = []
    for path in sorted(folder.rglob("*.json")):
        held = path.with_name(f"{path.stem}_samples.jsonl")
        rows = [json.loads(line) for line in held.read_bytes().decode().splitlines()] if held.exists() else []
        found.append((path, json.loads(path.read_bytes()), rows))
    return found


def check(folder: Path) -> None:
    """What the format requires, by hand; by its own schema where that is here."""
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    found = documents(folder)
    assert len(files) == len(found) + sum(bool(rows) for _, _, rows in found), "nothing else is written"
    for path, document, rows in found:
        assert UUID4.fullmatch(path.stem)
        assert len(path.relative_to(folder).parts) == 5
        assert set(document) >= DOCUMENT
        assert set(document["model_info"]["additional_details"]) >= {"deployment_type", "model_availability"}
        assert all(isinstance(value, str) for value in document["model_info"]["additional_details"].values())
        for result in document["evaluation_results"]:
            assert set(result) >= {"evaluation_name", "source_data", "metric_config", "score_details"}
            assert isinstance(result["metric_config"]["lower_is_better"], bool)
            assert isinstance(result["score_details"]["score"], int | float)
        detailed = document.get("detailed_evaluation_results")
        assert (detailed is None) == (not rows)
        if detailed is not None:
            place = folder / detailed["file_path"]
            assert place == path.with_name(f"{path.stem}_samples.jsonl")
            assert detailed["checksum"] == hashlib.sha256(place.read_bytes()).hexdigest()
            assert detailed["total_rows"] == len(rows)
            assert document["evaluation_results"][0]["score_details"]["score"] == pytest.approx(
                statistics.fmean(row["evaluation"]["score"] for row in rows)
            )
        for row in rows:
            assert set(row) >= ROW
            assert (row["evaluation_id"], row["model_id"]) == (document["evaluation_id"], document["model_info"]["id"])
            assert isinstance(row["evaluation"]["score"], float)
            assert isinstance(row["evaluation"]["is_correct"], bool)
            assert isinstance(row["input"]["raw"], str)
            assert all(isinstance(value, str) for value in row.get("metadata", {}).values())


def check_schema(folder: Path) -> None:
    """Against the public schemas; skipped, aloud, where they are not here."""
    jsonschema = pytest.importorskip("jsonschema")
    root = samples("every_eval_ever", "schemas")
    whole, part = (
        jsonschema.Draft7Validator(json.loads((root / name).read_text()))
        for name in ("eval.schema.json", "instance_level_eval.schema.json")
    )
    for _, document, rows in documents(folder):
        assert [error.message for error in whole.iter_errors(document)] == []
        for row in rows:
            assert [error.message for error in part.iter_errors(row)] == []


def ingest_fixtures(trackr: Trackr, folder: Path) -> None:
    shutil.copytree(INGEST / "lm_eval" / "v047_labelled", folder / "runs" / "a")
    shutil.copytree(INGEST / "lm_eval" / "v043_two_filters", folder / "runs" / "b")
    trackr("ingest", "runs")


def test_lm_eval_out_and_in_again_is_the_same(trackr: Trackr, other: Trackr, tmp_path: Path) -> None:
    ingest_fixtures(trackr, tmp_path)
    done = trackr("export", "every-eval-ever", "out", "--where", "status = 'finished'")
    assert done.code == 0
    check(tmp_path / "out")
    before = content(trackr)
    assert len(before) >= 6
    assert other("ingest", "out").code == 0
    assert content(other) == before
    cells = "select model, benchmark, n, error from cells order by all"
    assert other("query", cells, "--json").json() == trackr("query", cells, "--json").json()
    times = "select model_name, benchmark_name, started_at, ended_at, status, framework, framework_version from runs where status = 'finished' order by all"
    assert other("query", times, "--json").json() == trackr("query", times, "--json").json()


def test_everything_of_a_record_and_its_configuration_comes_back(trackr: Trackr, other: Trackr, tmp_path: Path) -> None:
    rows = [
        {"model": "lab/Eye-7B", "benchmark": "Sights", "question_id": "1", "correct": True, **RICH},
        {"model": "lab/Eye-7B", "benchmark": "Sights", "question_id": "1", "correct": False, **RICH, "repetition": 1},
        {"model": "lab/Eye-7B", "benchmark": "Sights", "question_id": "1", "correct": False, **RICH, "attempt": 1},
        {"model": "lab/Eye-7B", "benchmark": "Sights", "question_id": "2", "score": 0.25, **RICH, "text": "Other?", "generated_tokens": 7, "response": ""},
        {"model": "lab/Eye-7B", "benchmark": "Sights", "question_id": "3", "correct": True, "score": 87.5, **RICH, "text": None, "score_rule": "judge", "options": None},
        {"model": "lab/Eye-7B", "benchmark": "Sights", "question_id": "4", "score": 1.0, **RICH, "text": "Last?", "gold": '["red","green"]'},
    ]  # fmt: skip
    write_rows(tmp_path / "a.jsonl", rows)
    write_rows(tmp_path / "b.jsonl", [{**row, "input_size": 448, "prompt": None} for row in rows[:2]])
    trackr("ingest", "a.jsonl", "b.jsonl")
    assert trackr("export", "every-eval-ever", "out").code == 0
    check(tmp_path / "out")
    other("ingest", "out")
    assert content(other) == content(trackr)
    assert len(content(other)) == 8
    settings = "select * exclude (id, model_id) from configurations order by all"
    assert other("query", settings, "--json").json() == trackr("query", settings, "--json").json()


def test_the_files_satisfy_the_public_schema(trackr: Trackr, tmp_path: Path) -> None:
    ingest_fixtures(trackr, tmp_path)
    write_rows(tmp_path / "a.jsonl", [{"model": "m", "benchmark": "b", "question_id": "1", "correct": True, **RICH}])
    trackr("ingest", "a.jsonl")
    assert trackr("export", "every-eval-ever", "out", "--where", "true").code == 0
    check(tmp_path / "out")
    check_schema(tmp_path / "out")


def test_what_has_no_score_is_left_out_and_counted(trackr: Trackr, tmp_path: Path) -> None:
    rows = run_rows(n=2)
    rows += [
        {"model": "lab/Alpha", "benchmark": "Bench", "question_id": f"u{i}", "correct": None, "score": score}
        for i, score in enumerate((None, 7.0))
    ]
    rows += [{"model": "lab/Alpha", "benchmark": "Bench", "question_id": "f", "status": "failed"}]
    rows += [{"model": "lab/Beta", "benchmark": "Bench", "question_id": "u", "correct": None}]
    write_rows(tmp_path / "a.jsonl", rows)
    trackr("ingest", "a.jsonl")
    done = trackr("export", "every-eval-ever", "out", "--json")
    assert done.json() == {"documents": 1, "rows": 2, "unscored": 4, "empty": 1}
    assert done.err == (
        "left out: 4 records without a score (the format demands one)\nleft out: 1 runs of which nothing can be expressed\n"
    )
    ((_, _, held),) = documents(tmp_path / "out")
    assert [(row["sample_id"], row["evaluation"]["score"]) for row in held] == [("q0", 1.0), ("q1", 0.0)]


def test_two_exports_are_equal_and_a_second_writes_over_its_own(trackr: Trackr, tmp_path: Path) -> None:
    ingest_fixtures(trackr, tmp_path)
    write_rows(tmp_path / "a.jsonl", run_rows(n=2))  # a run without any time
    trackr("ingest", "a.jsonl")
    for name in ("out", "again", "out"):
        assert trackr("export", "every-eval-ever", name).code == 0
    first, second = (
        {path.relative_to(tmp_path / name): path.read_bytes() for path in (tmp_path / name).rglob("*") if path.is_file()}
        for name in ("out", "again")
    )
    assert first == second
    assert len(first) >= 6
    trackr("export", "every-eval-ever", "timed", "--retrieved", "2026-02-03T04:05:06Z")
    assert {document["retrieved_timestamp"] for _, document, _ in documents(tmp_path / "timed")} == {"1770091506"}


def test_a_file_of_somebody_else_is_not_replaced(trackr: Trackr, tmp_path: Path) -> None:
    write_rows(tmp_path / "a.jsonl", [*run_rows(), *run_rows(benchmark="Another")])
    trackr("ingest", "a.jsonl")
    trackr("export", "every-eval-ever", "out")
    ours = documents(tmp_path / "out")
    path = ours[-1][0]
    path.write_text("{}")
    shutil.rmtree(ours[0][0].parent)
    done = trackr("export", "every-eval-ever", "out")
    assert (done.code, done.out) == (2, "")
    assert (
        done.err
        == f"trackr: {path.relative_to(tmp_path)}: a file that trackr did not write is here (choose another folder, or say --overwrite)\n"
    )
    assert path.read_text() == "{}"
    assert not ours[0][0].parent.exists(), "nothing was written"
    assert trackr("export", "every-eval-ever", "out", "--overwrite").code == 0
    assert documents(tmp_path / "out") == ours
    path.unlink()  # an export that was stopped between samples and document
    assert trackr("export", "every-eval-ever", "out").code == 0


@pytest.mark.parametrize(
    ("model", "folder", "model_id"),
    [
        ("lab/Alpha", "data/Bench/lab/Alpha", "lab/Alpha"),
        ("Alpha", "data/Bench/somebody/Alpha", "Alpha"),
        ("a/b/c:0.5", "data/Bench/a/b_c_0.5", "a/b/c:0.5"),
        ("/home/me/ckpt.", "data/Bench/home/me_ckpt", "home/me/ckpt"),
        ("data/con", "data/Bench/_data/_con", "_data/_con"),
        ("..", "data/Bench/somebody/model", "model"),
    ],
)
def test_names_become_folders_and_come_back(trackr: Trackr, other: Trackr, tmp_path: Path, model: str, folder: str, model_id: str) -> None:
    write_rows(tmp_path / "a.jsonl", run_rows(model=model))
    trackr("ingest", "a.jsonl")
    trackr("export", "every-eval-ever", "out", "--developer", "somebody")
    ((path, document, _),) = documents(tmp_path / "out")
    assert path.parent.relative_to(tmp_path / "out").as_posix() == folder
    assert document["model_info"]["id"] == model_id
    other("ingest", "out")
    assert {row["model"] for row in content(other)} == {model}


def test_choices_and_wrong_usage(trackr: Trackr, tmp_path: Path) -> None:
    write_rows(tmp_path / "a.jsonl", [*run_rows(), *run_rows(model="lab/Beta", input_size=896)])
    trackr("ingest", "a.jsonl")
    done = trackr("export", "every-eval-ever", "out", "--where", "input_size > 400", "--collection", "my/study", "--organization", "Lab")
    assert (done.code, done.out, done.err) == (0, "", "1 documents with 4 rows written below out\n")
    ((path, document, _),) = documents(tmp_path / "out")
    assert path.parent == tmp_path / "out" / "data" / "my_study" / "lab" / "Beta"
    assert document["source_metadata"]["source_organization_name"] == "Lab"
    none = trackr("export", "every-eval-ever", "out", "--where", "model = 'x'")
    assert (none.code, none.err.splitlines()[0].startswith("trackr: no run to export")) == (2, True)
    assert trackr("export", "every-eval-ever", "out", "--where", "nonsense = 1").code == 1
    assert trackr("export", "every-eval-ever", "out", "--retrieved", "soon").code == 2
    (tmp_path / "file").write_text("")
    assert trackr("export", "every-eval-ever", "file").code == 2


def test_scores_that_the_source_reports_go_along(trackr: Trackr, tmp_path: Path) -> None:
    """A run without records is a document without samples."""
    shutil.copytree(INGEST / "lm_eval" / "no_samples", tmp_path / "runs")
    trackr("ingest", "runs")
    assert trackr("export", "every-eval-ever", "out", "--where", "status = 'finished'").code == 0
    check(tmp_path / "out")
    reported = {
        (one["evaluation_name"], one["evaluation_result_id"], one["score_details"]["score"])
        for _, document, _ in documents(tmp_path / "out")
        for one in document["evaluation_results"]
    }
    stored = trackr(
        "query",
        "select b.name, s.metric, s.value from scores s join runs r on s.run_id = r.id join benchmarks b on r.benchmark_id = b.id where r.status = 'finished' and isfinite(s.value)",
        "--json",
    ).json()
    assert reported == {tuple(row.values()) for row in stored}
    assert reported
