"""lm-evaluation-harness: our own folders of every version, real files, and files that its real client writes here."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from tests.conftest import samples
from tests.readers.harness import matches, read, rows, sources, variants
from tracker.errors import InputError
from tracker.readers.lm_choices import choice
from tracker.readers.lm_eval import READER
from tracker.readers.lm_results import parse_model_args
from tracker.study import Study

if TYPE_CHECKING:
    from pathlib import Path

STAMP = "2025-01-24T10-00-00.123456"


@pytest.mark.parametrize("variant", variants("lm_eval"))
def test_every_version_is_read_as_written_down(variant: str) -> None:
    found, expected = matches(READER, variant)
    assert found == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("pretrained=a/b,dtype=float16", {"pretrained": "a/b", "dtype": "float16"}),
        ("pretrained=a/b,stop=x,y,z,dtype=auto", {"pretrained": "a/b", "stop": "x,y,z", "dtype": "auto"}),
        ("base_url=http://h/?a=b,model=m", {"base_url": "http://h/?a=b", "model": "m"}),
        ({"pretrained": "a/b"}, {"pretrained": "a/b"}),
        (None, {}),
        ("", {}),
    ],
)
def test_model_args_are_text_or_an_object(given: Any, expected: dict[str, Any]) -> None:
    assert parse_model_args(given) == expected


@pytest.mark.parametrize(
    ("target", "options", "acc", "gold"),
    [
        (2, [], 1.0, "C"),
        ("2", None, 1.0, "C"),
        ("[0, 2]", None, 1.0, '["A","C"]'),
        (["a", "c"], ["a", "b", "c"], 1.0, '["A","C"]'),
        ("c", ["a", "b", "c"], 1.0, "C"),
        ("1", ["2", "3", "1"], 1.0, "C"),  # the text of the third option; acc says that the likeliest, the third, is right
        ("1", ["2", "3", "1"], 0.0, "B"),  # here acc says that the third is wrong, so that 1 is a position
        ("B", None, 0.0, "B"),
        ("-100", None, 0.0, None),
    ],
)
def test_targets_are_read_in_every_encoding(target: Any, options: list[str] | None, acc: float, gold: str | None) -> None:
    found = choice([["-3.0", "False"], ["-2.0", "False"], ["-1.0", "False"]], target, options, acc)
    assert found is not None
    assert found.gold_text == gold
    assert found.problem is None


def test_probabilities_are_over_the_options() -> None:
    found = choice([["-1.0", "False"], ["-2.0", "False"], ["-inf", "False"]], "0", None, 1.0)
    assert found is not None
    assert found.p_gold == pytest.approx(math.exp(-1) / (math.exp(-1) + math.exp(-2)))


def test_a_pair_of_filters_gives_one_record_per_document(tmp_path: Path) -> None:
    batches, refusals = read(
        READER, _written(tmp_path, [_row(i, label, value) for label, value in (("b", 1.0), ("a", 0.0)) for i in range(3)])
    )
    assert not refusals
    assert [row["correct"] for row in rows(batches)] == [False] * 3  # the task's configuration names a first
    assert batches[0].record_scores is not None
    assert batches[0].record_scores.to_pylist() == [{"row": i, "scorer": "exact_match,b", "score": 1.0, "special": None} for i in range(3)]


def test_rows_asked_twice_under_one_filter_are_attempts(tmp_path: Path) -> None:
    written = [_row(i, label, float(turn)) for turn in (0, 1) for label in ("a", "b") for i in range(3)]
    batches, _ = read(READER, _written(tmp_path, written))
    assert [(row["question_key"], row["score"]) for row in rows(batches)] == [
        ("0", 0.0),
        ("1", 0.0),
        ("2", 0.0),
        ("0", 1.0),
        ("1", 1.0),
        ("2", 1.0),
    ]
    assert batches[0].record_scores is not None
    assert [row["score"] for row in batches[0].record_scores.to_pylist()] == [0.0] * 3 + [1.0] * 3


def test_damaged_lines_are_refused_alone_and_make_the_run_partial(tmp_path: Path) -> None:
    folder = _written(tmp_path, [_row(i, label, 1.0) for label in ("a", "b") for i in range(3)])
    path = folder / f"samples_toy_{STAMP}.jsonl"
    lines = path.read_bytes().splitlines()
    lines[1] = b'{"doc_id": 1, "exact_match": }'
    lines.insert(0, b'{"target": "x", "filtered_resps": ["x"]}')
    lines.insert(1, b"[1, 2]")
    lines.insert(
        2, b'{"doc_id": 7, "target": "\xff", "filtered_resps": ["x"], "filter": "a", "metrics": ["exact_match"], "exact_match": 1.0}'
    )
    path.write_bytes(b"\n".join(lines) + b"\n" + lines[3][:40])
    batches, refusals = read(READER, folder)
    assert sorted((one.line or 0, one.reason.split(" (")[0]) for one in refusals) == [
        (1, "no doc_id, so that the question is not known"),
        (2, "expected an object with the fields of one sample, found list"),
        (3, "byte 0xff at column 26 is not UTF-8"),
        (5, "not valid JSON at column 30: Expecting value"),
        (10, "JSON that is cut off at column 41"),
    ]
    assert [row["question_key"] for row in rows(batches)] == ["0", "2"]
    assert batches[-1].run.status == "partial"
    assert batches[-1].run.status_reason == "samples file is cut off"


def test_nan_literals_are_values_and_stay_nan(tmp_path: Path) -> None:
    folder = _written(tmp_path, [_row(0, "a", float("nan")), _row(1, "a", 0.0), _row(2, "a", 1.0), *[_row(i, "b", 1.0) for i in range(3)]])
    batches, refusals = read(READER, folder)
    assert not refusals
    assert [(row["score"], row["special"], row["correct"]) for row in rows(batches)] == [
        (None, "nan", None),
        (0.0, None, False),
        (1.0, None, True),
    ]


def test_a_damaged_results_file_is_refused_and_the_samples_go_in(tmp_path: Path) -> None:
    folder = _written(tmp_path, [_row(i, "a", 1.0) for i in range(3)])
    path = folder / f"results_{STAMP}.json"
    path.write_bytes(path.read_bytes()[:-30])
    batches, refusals = read(READER, folder)
    assert {one.file for one in refusals} == {str(path)}
    assert "cut off" in refusals[0].reason
    assert len(list(rows(batches))) == 3
    assert batches[0].run.model == "org/toy"  # from the folder's name


def test_an_empty_samples_file_keeps_the_aggregate_scores(tmp_path: Path) -> None:
    folder = _written(tmp_path, [])
    batches, refusals = read(READER, folder)
    assert [one.reason for one in refusals] == ["empty file (delete it or run its writer again)"]
    assert [(one.metric, one.value) for one in batches[0].scores] == [("exact_match,a", 0.5)]
    assert batches[0].run.status == "partial"
    (folder / f"results_{STAMP}.json").unlink()
    with pytest.raises(InputError, match="empty file"):
        read(READER, folder)


def test_long_files_come_in_bounded_pieces(tmp_path: Path) -> None:
    folder = _written(tmp_path, [_row(i, label, 1.0) for label in ("a", "b") for i in range(45_000)])
    batches, refusals = read(READER, folder)
    assert not refusals
    assert [batch.records.num_rows <= 20_256 for batch in batches] == [True] * len(batches)
    assert sum(batch.records.num_rows for batch in batches) == 45_000
    assert sum(batch.questions.num_rows for batch in batches if batch.questions is not None) == 45_000
    assert sum(batch.record_scores.num_rows for batch in batches if batch.record_scores is not None) == 45_000
    assert len({batch.run.external_id for batch in batches}) == 1
    assert [bool(batch.scores) for batch in batches] == [True] + [False] * (len(batches) - 1)


def test_a_line_of_many_megabytes_is_read(tmp_path: Path) -> None:
    row = _row(0, "a", 1.0)
    row["resps"] = [["x" * (50 << 20)]]
    batches, refusals = read(READER, _written(tmp_path, [row]))
    assert not refusals
    assert len(next(rows(batches))["response"]) == 50 << 20


def test_other_json_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "results.json").write_text('{"results": {"a": {"b": 1}}}')
    (tmp_path / "list.json").write_text('[{"group": "a", "correct": true}]')
    (tmp_path / "rows.jsonl").write_text('{"doc_id": 0, "answer": "x"}\n')
    (tmp_path / f"samples_x_{STAMP}.jsonl").write_text('{"question": "x"}\n')
    assert sources(READER, tmp_path) == []


# ---- real files -------------------------------------------------------------------------------


def test_real_rows_agree_with_the_stated_aggregate() -> None:
    batches, refusals = read(READER, samples("lm_eval", "eee_fixture"))
    assert not refusals
    run = next(batch for batch in batches if batch.records.num_rows)
    assert run.run.model == "RylanSchaeffer/mem_Qwen3-93M_minerva_math_rep_0_sbst_1.0000_epch_1_ot_1"
    assert (run.run.status, run.run.status_reason) == ("partial", "10 of 5000 questions")  # the fixture holds ten of the rows
    assert run.run.started_at == datetime(2026, 1, 21, 2, 59, 43, 859322, tzinfo=UTC)
    assert run.run.ended_at is not None
    assert run.run.ended_at.strftime("%H:%M") == "03:44"  # as the stamp, since that machine's clock was UTC
    assert run.run.configuration.precision == "bfloat16"
    assert run.run.configuration.max_new_tokens == 512
    correct = [row["correct"] for row in run.records.to_pylist()]
    assert sum(correct) / len(correct) == run.scores[0].value == 0.0


def test_real_unlabelled_filters_are_told_apart() -> None:
    folder = samples("lm_eval", "metabench")
    path = next(folder.rglob("*.jsonl"))
    written = [orjson.loads(line) for line in path.read_bytes().splitlines()]
    batches, refusals = read(READER, folder)
    assert not refusals
    found = list(rows(batches))
    assert len(found) == 249 == len(written) // 2
    assert [row["score"] for row in found] == [row["exact_match"] for row in written[:249]]
    further = [row for batch in batches if batch.record_scores is not None for row in batch.record_scores.to_pylist()]
    assert [row["score"] for row in further] == [row["exact_match"] for row in written[249:]]
    assert {row["scorer"] for row in further} == {"exact_match,filter 2"}
    assert batches[0].run.model == "EleutherAI/pythia-14m"


def test_real_aggregate_files_give_every_stated_number() -> None:
    for folder in ("araag2", "saucam"):
        root = samples("lm_eval", folder)
        batches, refusals = read(READER, root)
        assert not refusals
        found = {(batch.run.model, batch.run.benchmark, one.metric): one.value for batch in batches for one in batch.scores}
        count = 0
        for path in root.rglob("*.json"):
            document = json.loads(path.read_bytes())
            if "results" not in document:
                continue
            args = parse_model_args(document["config"]["model_args"])
            for task, metrics in document["results"].items():
                for key, value in metrics.items():
                    if isinstance(value, float) and "_stderr" not in key:
                        metric = key.removesuffix(",none")
                        assert found[args["pretrained"], task, metric] == value
                        count += 1
        assert count == len(found) > 50


# ---- the real client --------------------------------------------------------------------------

CHOICE = """
task: toy_choice
dataset_path: json
dataset_kwargs: {data_files: {test: %s/choice.json}}
test_split: test
output_type: multiple_choice
doc_to_text: "Question: {{question}}\\nAnswer:"
doc_to_choice: "{{choices}}"
doc_to_target: "{{gold}}"
metric_list:
  - {metric: acc, aggregation: mean, higher_is_better: true}
  - {metric: acc_norm, aggregation: mean, higher_is_better: true}
  - {metric: brier_score, aggregation: brier_score, higher_is_better: false}
metadata: {version: 1.0}
"""
WORDS = """
task: toy_words
dataset_path: json
dataset_kwargs: {data_files: {test: %s/words.json}}
test_split: test
output_type: generate_until
doc_to_text: "Question: {{question}}\\nAnswer:"
doc_to_target: "{{answer}}"
generation_kwargs: {until: ["\\n"], max_gen_toks: 32}
filter_list:
  - name: strict
    filter: [{function: regex, regex_pattern: "(l.l)"}, {function: take_first}]
  - name: none-found
    filter: [{function: regex, regex_pattern: "(\\\\d+)"}, {function: take_first}]
metric_list:
  - {metric: exact_match, aggregation: mean, higher_is_better: true}
metadata: {version: 1.0}
"""
ROLLING = """
task: toy_rolling
dataset_path: json
dataset_kwargs: {data_files: {test: %s/words.json}}
test_split: test
output_type: loglikelihood_rolling
doc_to_text: ""
doc_to_target: "{{question}}"
metric_list:
  - {metric: word_perplexity, aggregation: weighted_perplexity, higher_is_better: false}
metadata: {version: 1.0}
"""


@pytest.fixture(scope="module")
def produced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that the installed lm-eval wrote with its dummy model on local tasks, without network."""
    root = tmp_path_factory.mktemp("lm_eval")
    tasks = root / "tasks"
    tasks.mkdir()
    for name, text in (("choice", CHOICE), ("words", WORDS), ("rolling", ROLLING)):
        (tasks / f"{name}.yaml").write_text(text % root)
    choices = [{"question": f"What is {i}+1?", "choices": [str(i), str(i + 1), "neither"], "gold": 1} for i in range(40)]
    words = [{"question": f"What is {i}+1?", "answer": "lol" if i % 4 == 0 else "lal"} for i in range(20)]
    (root / "choice.json").write_text(json.dumps(choices))
    (root / "words.json").write_text(json.dumps(words))
    command = [
        sys.executable,
        "-m",
        "lm_eval",
        "run",
        "--model",
        "dummy",
        "--model_args",
        "pretrained=org/toy",
        "--include_path",
        str(tasks),
    ]
    command += ["--tasks", "toy_choice,toy_words,toy_rolling", "--output_path", str(root / "out"), "--log_samples"]
    offline = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HOME": str(root / "cache"), "TQDM_DISABLE": "1"}
    done = subprocess.run(command, env={**os.environ, **offline}, capture_output=True, text=True, check=False, cwd=root)
    assert done.returncode == 0, done.stderr[-2000:]
    return root / "out"


def test_the_real_client_is_read_and_its_aggregates_are_met(produced: Path) -> None:
    batches, refusals = read(READER, produced)
    assert not refusals
    runs = {batch.run.benchmark: batch for batch in batches}
    assert set(runs) == {"toy_choice", "toy_words", "toy_rolling"}
    for name, batch in runs.items():
        stated = {one.metric: one.value for one in batch.scores}
        found = batch.records.to_pylist()
        further: dict[str, list[float]] = {}
        for row in batch.record_scores.to_pylist() if batch.record_scores is not None else []:
            further.setdefault(row["scorer"], []).append(row["score"])
        if name == "toy_choice":
            assert stated["acc"] == pytest.approx(sum(row["correct"] for row in found) / 40)
            assert stated["acc_norm"] == pytest.approx(sum(further["acc_norm"]) / 40)
            assert all((row["logit_prediction"] == "B") == row["correct"] for row in found)
            assert all((row["p_gold"] >= 1 / 3) for row in found if row["correct"])
            assert batch.questions is not None
            assert batch.questions.to_pylist()[3]["options"] == '["3","4","neither"]'
        if name == "toy_words":
            assert stated["exact_match,strict"] == pytest.approx(sum(row["correct"] for row in found) / 20) == 0.25
            assert stated["exact_match,none-found"] == pytest.approx(sum(further["exact_match,none-found"]) / 20)
            assert {row["response"] for row in found} == {"lol"}
            assert batch.run.configuration.max_new_tokens == 32
        if name == "toy_rolling":
            assert [row["score"] for row in found] == [None] * 20
            assert stated["word_perplexity"] == pytest.approx(
                math.exp(-sum(further["word_perplexity[0]"]) / sum(further["word_perplexity[1]"]))
            )


def test_the_real_clients_headers_hold_what_it_wrote(produced: Path) -> None:
    batches, _ = read(READER, produced)
    document = json.loads(next(produced.rglob("results_*.json")).read_bytes())
    for batch in batches:
        run = batch.run
        assert (run.model, run.framework, run.framework_version) == ("org/toy", "lm-evaluation-harness", document["lm_eval_version"])
        assert (run.status, run.configuration.few_shot) == ("finished", 0)
        assert run.n_expected == batch.records.num_rows
        assert run.started_at is not None
        assert run.started_at.timestamp() == pytest.approx(document["date"], abs=1e-5)
        assert run.ended_at is not None
        assert run.ended_at > run.started_at


def _row(doc: int, label: str, value: float) -> dict[str, Any]:
    return {
        "doc_id": doc,
        "doc": {"question": f"Question {doc}?"},
        "target": "x",
        "arguments": {"gen_args_0": {"arg_0": "p", "arg_1": {}}},
        "resps": [["x"]],
        "filtered_resps": ["x"],
        "filter": label,
        "metrics": ["exact_match"],
        "exact_match": value,
    }


def _written(root: Path, written: list[dict[str, Any]]) -> Path:
    folder = root / "org__toy"
    folder.mkdir()
    (folder / f"samples_toy_{STAMP}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in written))
    count = len({row["doc_id"] for row in written}) or 3
    results = {
        "results": {"toy": {"alias": "toy", "exact_match,a": 0.5, "exact_match_stderr,a": 0.1}},
        "configs": {"toy": {"metric_list": [{"metric": "exact_match"}], "filter_list": [{"name": "a"}, {"name": "b"}]}},
        "n-samples": {"toy": {"original": count, "effective": count}},
        "config": {"model": "hf", "model_args": "pretrained=org/toy"},
        "date": 1737712800.0,
    }
    (folder / f"results_{STAMP}.json").write_text(json.dumps(results, indent=2))
    return folder


def test_reading_twice_gives_the_same(tmp_path: Path) -> None:
    folder = _written(tmp_path, [_row(i, label, 1.0) for label in ("a", "b") for i in range(3)])
    first = [list(READER.read(source, Study.empty())) for source in sources(READER, folder)]
    assert first == [list(READER.read(source, Study.empty())) for source in sources(READER, folder)]
