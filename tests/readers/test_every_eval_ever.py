"""Every Eval Ever: our fixtures (two of them made by the format's own converter), the real files, and damage."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.conftest import samples
from tests.readers.harness import INGEST, matches, read, rows, sources, variants
from tracker.batch import Batch, Refusal
from tracker.errors import InputError
from tracker.readers import lm_eval
from tracker.readers.base import Folder
from tracker.readers.every_eval_ever import READER
from tracker.readers.every_eval_ever_document import instant, read_document
from tracker.study import Study

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tracker.batch import RunHeader

CONVERTED = INGEST / "every_eval_ever" / "lm_eval_converted"
INSPECT = INGEST / "every_eval_ever" / "inspect_like"


@pytest.mark.parametrize("variant", variants("every_eval_ever"))
def test_a_fixture_is_read_as_written_down(variant: str) -> None:
    found, expected = matches(READER, variant)
    assert found == expected


def by_benchmark(batches: list[Batch]) -> dict[str | None, tuple[RunHeader, list[dict[str, Any]]]]:
    found: dict[str | None, tuple[RunHeader, list[dict[str, Any]]]] = {}
    for batch in batches:
        held = found.get(batch.run.benchmark, (batch.run, []))[1]
        found[batch.run.benchmark] = (batch.run, held + batch.records.to_pylist())
    return found


# ---- what the format's own converter made of lm-eval's files -----------------------------------


def test_the_converter_of_lm_eval_gives_what_its_own_files_give(tmp_path: Path) -> None:
    """The same evaluation reached through two formats: one configuration, the same keys, the same verdicts."""
    shutil.copytree(INGEST / "lm_eval" / "v047_labelled", tmp_path / "native")
    native, _ = read(lm_eval.READER, tmp_path / "native")
    converted, refused = read(READER, INGEST / "every_eval_ever" / "lm_eval_text_metrics")
    assert not refused
    theirs = [batch for batch in native if batch.run.benchmark == "toy_hard"]
    assert {batch.run.model for batch in converted} == {batch.run.model for batch in theirs} == {"org/adapter"}
    ours = converted[0].run.configuration.model_dump()
    wanted = theirs[0].run.configuration.model_dump()
    assert ours == wanted | {"prompt": None}, "the converter drops the chat template and nothing else"
    verdicts = [{(row["question_key"], row["correct"], row["score_rule"]) for row in rows(one)} for one in (converted, theirs)]
    assert verdicts[0] == verdicts[1]
    assert len(verdicts[0]) == 3


def test_zero_that_the_converter_writes_for_text_is_no_score() -> None:
    """Its rows say score 0 and is_correct false for `"exact_match": "True"`."""
    (path,) = (INGEST / "every_eval_ever" / "lm_eval_text_metrics").rglob("*_samples.jsonl")
    raw = [json.loads(line) for line in path.read_text().splitlines()]
    assert {row["evaluation"]["score"] for row in raw} == {0.0}
    (batch,), _ = read(READER, path.parent)
    assert [row["correct"] for row in rows([batch])] == [False, False, False]
    assert batch.record_scores is not None
    assert [(row["scorer"], row["score"]) for row in batch.record_scores.to_pylist()] == [("exact_match,flexible-extract", 1.0)] * 3


def test_two_filters_and_two_metrics_are_one_record_a_sample() -> None:
    """The further metric is BLEU, of which 0.5 is no half right answer."""
    batches, _ = read(READER, CONVERTED / "data" / "sums")
    (batch,) = batches
    assert batch.records.num_rows == 4
    assert [row["correct"] for row in rows(batches)] == [False, True, False, True]
    assert batch.record_scores is not None
    held = Counter(row["scorer"] for row in batch.record_scores.to_pylist())
    assert held == {"exact_match,flexible-extract": 4, "bleu,strict-match": 4, "bleu,flexible-extract": 4}


@pytest.mark.parametrize("name", ["1c84f707-404a-4d60-9bbc-cbc574e5c632.json", "1c84f707-404a-4d60-9bbc-cbc574e5c632_samples.jsonl"])
def test_one_file_named_alone_brings_the_other(name: str) -> None:
    (path,) = CONVERTED.rglob(name)
    (source,) = READER.find(Folder(path.parent, [name]), Study.empty())
    assert [file.name for file in source.files] == [f"{name[:36]}.json", f"{name[:36]}_samples.jsonl"]
    assert source.uri.endswith(".json")


def test_a_document_finds_samples_of_another_name(tmp_path: Path) -> None:
    shutil.copytree(CONVERTED / "data" / "sums" / "org" / "m", tmp_path / "m")
    (document,) = (tmp_path / "m").glob("*.json")
    (held,) = (tmp_path / "m").glob("*.jsonl")
    held.rename(held.with_name("elsewhere.jsonl"))
    raw = json.loads(document.read_text())
    raw["model_info"]["additional_details"]["padding"] = "x" * 100_000
    raw["detailed_evaluation_results"]["file_path"] = "data/sums/org/m/elsewhere.jsonl"
    document.write_text(json.dumps(raw))
    (source,) = sources(READER, tmp_path)
    assert [file.name for file in source.files] == [document.name, "elsewhere.jsonl"]


def test_two_documents_of_one_samples_file_read_their_own_rows(tmp_path: Path) -> None:
    """Each run comes once, with the scores of its own document."""
    lines = []
    for name, right in (("a", 1.0), ("b", 0.0)):
        result = {"evaluation_name": "quiz", "metric_config": {"metric_name": "accuracy"}, "score_details": {"score": right}}
        document = {"evaluation_id": name, "model_info": {"id": f"org/{name}"}, "evaluation_results": [result]}
        document["detailed_evaluation_results"] = {"file_path": "data/shared.jsonl", "total_rows": 4}
        (tmp_path / f"{name}.json").write_text(json.dumps(document))
        for number in (1, 2):
            row = {"evaluation_id": name, "model_id": f"org/{name}", "evaluation_name": "quiz", "sample_id": f"q{number}"}
            lines.append(row | {"evaluation": {"score": right, "is_correct": bool(right)}})
    (tmp_path / "shared.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    for source in sources(READER, tmp_path):
        name = source.files[0].stem
        parts = [*READER.read(source, Study.empty())]
        batches = [part for part in parts if isinstance(part, Batch)]
        assert len(batches) == len(parts)
        assert {(one.run.external_id, one.run.model, one.run.status) for one in batches} == {(name, f"org/{name}", "finished")}
        assert [row["correct"] for row in rows(batches)] == [name == "a"] * 2
        assert [score.value for one in batches for score in one.scores] == [float(name == "a")]
    (tmp_path / "b.json").unlink()
    (alone,) = sources(READER, tmp_path)
    found = [part.run.external_id for part in READER.read(alone, Study.empty()) if isinstance(part, Batch)]
    assert set(found) == {"a", "b"}, "rows of an evaluation whose document is missing are no loss"


def test_other_json_is_none_of_ours(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"evaluation_id": {"type": "string"}, "model_info": {}}')
    (tmp_path / "b.json").write_bytes(b"\xff\xfe\x00junk")
    (tmp_path / "c.jsonl").write_text('{"model": "m", "benchmark": "b", "question_id": "1", "correct": true}\n')
    (tmp_path / "d.json").write_text("[1, 2]")
    shutil.copytree(INGEST / "lm_eval" / "v047_labelled", tmp_path / "lm_eval")
    assert sources(READER, tmp_path) == []


def test_a_name_of_samples_that_no_file_can_have_never_stops_finding(tmp_path: Path) -> None:
    document = {"evaluation_id": "e", "model_info": {"id": "m"}, "detailed_evaluation_results": {"file_path": f"{'x' * 300}.jsonl"}}
    (tmp_path / "x.json").write_text(json.dumps(document))
    (source,) = sources(READER, tmp_path)
    assert [file.name for file in source.files] == ["x.json"]


# ---- meaning -----------------------------------------------------------------------------------


def test_what_no_share_of_right_answers_is_gets_no_credit() -> None:
    batches, _ = read(READER, INGEST / "every_eval_ever" / "other_scales")
    found = by_benchmark(batches)
    credit = {name: [None if row["correct"] is None else float(row["correct"]) for row in held] for name, (_, held) in found.items()}
    scores = {name: [row["score"] for row in held] for name, (_, held) in found.items()}
    assert credit["percent"] == [1.0, 1.0, 0.0]
    for name in ("rating", "words", "translation", "reward"):
        assert set(credit[str(name)]) == set(scores[str(name)]) == {None}, name
    assert (credit["overlap"], scores["overlap"]) == ([None] * 3, [0.75, 1.0, 0.0])


def test_an_error_is_a_failed_record_and_no_zero() -> None:
    batches, _ = read(READER, INSPECT)
    failed = [row for row in rows(batches) if row["status"] == "failed"]
    assert [(row["question_key"], row["score"], row["correct"]) for row in failed] == [("inspect:3", None, None)]


def test_an_error_after_which_inspect_scored_counts(tmp_path: Path) -> None:
    """Inspect's converter names a result only where a scorer gave the score."""
    shutil.copytree(INSPECT, tmp_path / "x")
    (held,) = (tmp_path / "x").rglob("*.jsonl")
    held.write_text(held.read_text().replace('"evaluation_result_id": null', '"evaluation_result_id": "choice:accuracy"'))
    batches, _ = read(READER, tmp_path)
    found = {row["question_key"]: (row["status"], row["correct"], row["score"]) for row in rows(batches)}
    assert found["inspect:3"] == (None, False, 0.0)


def test_an_access_key_is_not_kept() -> None:
    batches, _ = read(READER, INGEST / "every_eval_ever" / "v02_results")
    assert "sk-secret" not in str([batch.run.settings for batch in batches])
    assert batches[0].run.settings["model_info"]["additional_details"]["params_billions"] == 8.3


@pytest.mark.parametrize(
    ("written", "read_as"),
    [("1700000000", "2023-11-14T22:13:20+00:00"), ("2023-11-14T22:13:20Z", "2023-11-14T22:13:20+00:00"), ("", None), ("soon", None), (None, None),
     ("1e400", None), ("-5", None), ([1], None)],
)  # fmt: skip
def test_times(written: Any, read_as: str | None) -> None:
    found = instant(written)
    assert (found and found.isoformat()) == read_as


def test_rows_far_beyond_a_chunk_stay_one_run(tmp_path: Path) -> None:
    """Two benchmarks alternate, each with two metrics, in more rows than one chunk holds."""
    row = json.loads((next(CONVERTED.rglob("1c84f707-404a-4d60-9bbc-cbc574e5c632_samples.jsonl"))).read_text().splitlines()[0])
    count = 2_500
    with (tmp_path / "rows.jsonl").open("w") as stream:
        for number in range(count):
            for name in ("one", "two"):
                for metric, score in (("acc", float(number % 3 == 0)), ("f1", 0.25)):
                    told = {"evaluation_name": name, "evaluation_result_id": metric, "sample_id": f"q{number}", "metadata": None}
                    stream.write(json.dumps({**row, **told, "evaluation": {"score": score, "is_correct": score == 1}}) + "\n")
    batches, refused = read(READER, tmp_path)
    assert not refused
    assert max(batch.records.num_rows for batch in batches) <= 2_000
    for name in ("one", "two"):
        mine = [batch for batch in batches if batch.run.benchmark == name]
        assert sum(one["correct"] for one in rows(mine)) == len(range(0, count, 3))
        assert sum(batch.record_scores.num_rows for batch in mine if batch.record_scores is not None) == count


def test_a_sample_that_is_asked_again_keeps_its_own_scores(tmp_path: Path) -> None:
    """Rows of two metrics in any order: the n-th row of one belongs to the n-th of the other."""
    row = json.loads(next(CONVERTED.rglob("*_samples.jsonl")).read_text().splitlines()[0]) | {"evaluation_name": "b", "metadata": None}
    told = [
        ("f1", "x", 0.1),
        ("acc", "x", 1.0),
        ("acc", "x", 0.0),
        ("f1", "x", 0.2),
        ("f1", "y", 0.3),
        ("acc", "x", 1.0),
        ("f1", "x", 0.4),
        ("acc", "z", 1.0),
    ]
    with (tmp_path / "rows.jsonl").open("w") as stream:
        for metric, sample, score in told:
            changed = {"evaluation_result_id": metric, "sample_id": sample, "evaluation": {"score": score, "is_correct": score == 1}}
            stream.write(json.dumps(row | changed) + "\n")
    document = {"evaluation_id": row["evaluation_id"], "model_info": {"id": "m"}, "evaluation_results": []}
    for metric in ("acc", "f1"):
        config = {"metric_name": metric, "lower_is_better": False}
        document["evaluation_results"].append(
            {"evaluation_result_id": metric, "evaluation_name": "b", "metric_config": config, "score_details": {"score": 0.5}}
        )
    (tmp_path / "rows.json").write_text(json.dumps(document | {"detailed_evaluation_results": {"file_path": "data/a/b/c/rows.jsonl"}}))
    batches, refused = read(READER, tmp_path)
    assert not refused
    (batch,) = batches
    further: dict[int, float] = {one["row"]: one["score"] for one in batch.record_scores.to_pylist()} if batch.record_scores else {}
    found = [(one["question_key"], one["correct"], further.get(place)) for place, one in enumerate(rows(batches))]
    assert found == [("x", True, 0.1), ("x", False, 0.2), ("y", None, 0.3), ("x", True, 0.4), ("z", True, None)]


# ---- real files --------------------------------------------------------------------------------


def test_real_documents_say_what_they_say() -> None:
    root = samples("every_eval_ever", "fixtures")
    batches, refused = read(READER, root)
    assert not refused
    stated = []
    for path in root.rglob("*.json"):
        raw = json.loads(path.read_text())
        stated += [(raw["model_info"]["id"], one["evaluation_name"], one["score_details"]["score"]) for one in raw["evaluation_results"]]
    assert len(stated) > 15
    assert sorted(stated) == sorted((batch.run.model, batch.run.benchmark, score.value) for batch in batches for score in batch.scores)
    (record,) = rows(batches)
    assert (record["question_key"], record["correct"], record["prediction"], record["prompt_tokens"]) == ("demo_0001", True, "4", 12)


def test_the_schemas_are_no_documents() -> None:
    assert sources(READER, samples("every_eval_ever", "schemas")) == []


# ---- damage ------------------------------------------------------------------------------------


def parts_of(folder: Path) -> Iterator[Batch | Refusal]:
    for source in sources(READER, folder):
        try:
            yield from READER.read(source, Study.empty())
        except InputError as err:
            yield Refusal(file=source.uri, reason=str(err))


@pytest.mark.parametrize("share", [0.0, 0.001, 0.1, 0.33, 0.5, 0.8, 0.99])
@pytest.mark.parametrize("suffix", [".json", "_samples.jsonl"])
def test_a_file_that_is_cut_is_said_and_the_rest_goes_in(tmp_path: Path, share: float, suffix: str) -> None:
    shutil.copytree(INSPECT, tmp_path / "x")
    (path,) = (tmp_path / "x").rglob(f"*{suffix}")
    raw = path.read_bytes()
    path.write_bytes(raw[: int(len(raw) * share)])
    found = list(parts_of(tmp_path))
    runs = {batch.run.benchmark: batch.run for batch in found if isinstance(batch, Batch)}
    problems = [part for part in found if isinstance(part, Refusal)]
    if suffix == ".json":
        assert problems, "a document that cannot be read is said"
        assert sum(part.records.num_rows for part in found if isinstance(part, Batch)) == 6
    else:
        assert runs["task"].status == "partial"
        assert runs["task"].status_reason


def test_a_document_without_results_or_model_is_refused(tmp_path: Path) -> None:
    base = {"schema_version": "0.3.0", "evaluation_id": "x", "retrieved_timestamp": "1", "model_info": {"id": "m"}}
    for name, raw in {
        "a": base | {"evaluation_results": []},
        "b": base | {"evaluation_results": None},
        "c": base | {"evaluation_results": [{"evaluation_name": "b", "score_details": {"score": 1}}], "model_info": {"id": None}},
    }.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(raw))
    found = list(parts_of(tmp_path))
    assert len(found) == 3
    assert all(isinstance(one, Refusal) for one in found)


VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(), st.text(max_size=5), st.just([]), st.just({}), st.just([{}])
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_wrong_types_anywhere_end_in_a_value_or_a_refusal(tmp_path: Path, data: st.DataObject) -> None:
    folder = tmp_path / "x"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(INSPECT, folder)
    (document,) = folder.rglob("*.json")
    (held,) = folder.rglob("*.jsonl")
    raw = json.loads(document.read_text())
    lines = [json.loads(line) for line in held.read_text().splitlines()]
    node: Any = data.draw(st.sampled_from([raw, *lines[:4]]))
    for _ in range(data.draw(st.integers(0, 4))):
        inner = [one for one in (node.values() if isinstance(node, dict) else node) if isinstance(one, dict | list) and one]
        if not inner:
            break
        node = data.draw(st.sampled_from(inner))
    place = data.draw(st.sampled_from(sorted(node) if isinstance(node, dict) else list(range(len(node)))))
    if data.draw(st.booleans()):
        node[place] = data.draw(VALUES)
    else:
        del node[place]
    document.write_text(json.dumps(raw))
    held.write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = list(parts_of(folder))
    assert found
    for part in found:
        if isinstance(part, Refusal):
            assert "\n" not in part.reason
            assert "Traceback" not in part.reason
    kept = sum(part.records.num_rows for part in found if isinstance(part, Batch))
    assert kept >= 4, "one bad value may cost its own sample, no more"


def test_scores_of_a_document_with_odd_numbers(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(
        '{"evaluation_id": "e", "model_info": {"id": "m"}, "evaluation_results": ['
        '{"evaluation_name": "b", "metric_config": {"metric_name": "a", "max_score": "Infinity"}, "score_details": {"score": NaN}},'
        '{"evaluation_name": "b", "metric_config": {"metric_name": "c"}, "score_details": {"score": "-Infinity", "uncertainty": {"standard_error": 0.5}}},'
        '{"evaluation_name": "b", "metric_config": {"metric_name": "d"}, "score_details": {"score": true}}]}'
    )
    document = read_document(tmp_path / "x.json")
    assert [(one.label, one.value, one.special, one.stderr) for one in document.results] == [
        ("a", None, "nan", None),
        ("c", None, "-inf", 0.5),
    ]
    assert [place for place, _ in document.problems] == ["evaluation_results[2]"]
