"""lighteval: files that its own tracker wrote (v0_13: 0.13.0's EvaluationTracker, torch replaced by a stand-in), older layouts as its source writes them, damage."""

from __future__ import annotations

import ast
import json
import math
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.readers.harness import INGEST, matches, read, rows, sources, variants
from tracker.batch import Batch, Refusal
from tracker.errors import InputError
from tracker.readers.base import Folder
from tracker.readers.lighteval import READER
from tracker.readers.lighteval_results import Results, Task, category_of, is_share, says_correct, task_of
from tracker.study import Study

STAMP = "2025-09-01T10-20-30.123456"
TASK = "arc:easy|5"
WRITTEN = INGEST / "lighteval" / "v0_13"
ASKED = [
    ("Which animal barks?", [" cat", " dog", " fish"], 1, [-5.5, -1.25, -7.0]),
    ("What colour is the sky?", [" red", " blue", " green"], 1, [-2.0, -2.5, -8.0]),
    ("How many legs has a spider?", [" six", " four", " eight"], 2, [-9.0, -9.5, -0.25]),
]


@pytest.mark.parametrize("variant", variants("lighteval"))
def test_every_version_is_read_as_written_down(variant: str) -> None:
    found, expected = matches(READER, variant)
    assert found == expected


# ---- layouts -----------------------------------------------------------------------------------


def test_accuracies_of_the_real_writer_are_those_of_its_results_file() -> None:
    batches, refusals = read(READER, WRITTEN)
    assert not refusals
    stated = json.loads(next((WRITTEN / "results").rglob("*.json")).read_text(encoding="utf-8"))["results"]
    by_benchmark = {str(batch.run.benchmark): batch for batch in batches}
    assert set(by_benchmark) == {task_of(task).name for task in stated if task != "all"}
    for task, metrics in stated.items():
        if task == "all":
            continue
        found = by_benchmark[task_of(task).name].records.to_pylist()
        metric = next(iter(metrics))
        raw = pq.read_table(next((WRITTEN / "details").rglob(f"details_{task}_*.parquet")))["metric"].to_pylist()
        assert sum(row["score"] for row in found) == sum(row[metric] for row in raw)
        assert sum(row["correct"] for row in found) / len(found) == pytest.approx(metrics[metric])
        assert {row["score_rule"] for row in found} == {metric}


@pytest.mark.parametrize("layout", ["now", "prefixed", "nested before 0.11", "text before 0.7"])
def test_all_layouts_come_to_the_same(tmp_path: Path, layout: str) -> None:
    table = {"now": _now, "prefixed": _prefixed, "nested before 0.11": _nested, "text before 0.7": _text}[layout]()
    batches, refusals = read(READER, _written(tmp_path, table))
    assert not refusals
    found = list(rows(batches))
    assert [row["correct"] for row in found] == [True, False, True]
    assert [json.loads(row["option_scores"]) for row in found] == [scores for *_, scores in ASKED]
    for row, (_, _, gold, scores) in zip(found, ASKED, strict=True):
        assert row["p_gold"] == pytest.approx(math.exp(scores[gold]) / sum(math.exp(one) for one in scores))
    assert [row["logit_prediction"] for row in found] == ["B", "A", "C"]
    assert batches[0].questions is not None
    asked = batches[0].questions.to_pylist()
    assert [row["text"] for row in asked] == [text for text, *_ in ASKED]
    assert [json.loads(row["options"]) for row in asked] == [[one.strip() for one in options] for _, options, *_ in ASKED]
    assert [row["gold"] for row in asked] == ["B", "B", "C"]
    assert len({row["content_hash"] for row in asked}) == 3
    keys = [row["question_key"] for row in found]
    assert (
        keys == ["lighteval:0", "lighteval:1", "lighteval:2"]
        if layout in {"now", "prefixed"}
        else all(key.startswith("hash:") for key in keys)
    )
    run = batches[0].run
    assert (run.model, run.benchmark, run.configuration.few_shot, run.configuration.precision) == (
        "org/small-1b",
        "arc:easy",
        5,
        "bfloat16",
    )
    assert run.configuration.max_new_tokens is None


def test_questions_of_all_layouts_join_by_their_content(tmp_path: Path) -> None:
    found = []
    for place, table in enumerate((_now(), _prefixed(), _nested(), _text())):
        batches, _ = read(READER, _written(tmp_path / str(place), table))
        assert batches[0].questions is not None
        found.append([row["content_hash"] for row in batches[0].questions.to_pylist()])
    assert found[0] == found[1] == found[2] == found[3]


def test_any_of_the_two_folders_and_one_file_give_the_same_runs() -> None:
    whole = sources(READER, WRITTEN)
    details = sources(READER, WRITTEN / "details")
    results = sources(READER, WRITTEN / "results")
    path = next(WRITTEN.rglob("details_gsm8k*.parquet"))
    one = READER.find(Folder(path.parent, [path.name]), Study.empty())
    assert sorted(source.uri for source in whole) == sorted(source.uri for source in details) == sorted(source.uri for source in results)
    assert len(whole) == 3
    assert {str(path)} <= {source.uri for source in one}
    assert {source.files for source in whole} == {source.files for source in results}


def test_the_layout_of_the_hub_is_paired_too(tmp_path: Path) -> None:
    (tmp_path / STAMP).mkdir()
    pq.write_table(_now(), tmp_path / STAMP / f"details_{TASK}_{STAMP}.parquet")
    (tmp_path / f"results_{STAMP}.json").write_text(json.dumps(_results()), encoding="utf-8")
    batches, _ = read(READER, tmp_path)
    assert [batch.run.model for batch in batches] == ["org/small-1b"]
    assert batches[0].scores[0].value == pytest.approx(2 / 3)


def test_a_renamed_file_is_known_by_its_columns(tmp_path: Path) -> None:
    pq.write_table(_now(), tmp_path / "mine.parquet")
    pq.write_table(pa.table({"model": ["m"], "score": [1.0]}), tmp_path / "other.parquet")
    batches, refusals = read(READER, tmp_path)
    assert not refusals
    assert [(batch.run.benchmark, batch.records.num_rows) for batch in batches] == [("arc:easy", 3)]


def test_the_folder_is_in_the_mapping_where_its_name_counts(tmp_path: Path) -> None:
    """A results file that names no model leaves it to the folder; renaming that changes what is read, and so must be seen."""
    unnamed = _results()
    general = unnamed["config_general"]
    unnamed["config_general"] = {name: one for name, one in general.items() if name not in {"model_name", "model_config"}}
    unnamed["results"]["other|0"] = {"acc": 0.5}
    found = sources(READER, _written(tmp_path / "unnamed", _now(), unnamed))
    assert len(found) == 2
    assert {source.mapping["model"] for source in found} == {"org/small-1b"}
    named = _results()
    named["results"]["other|0"] = {"acc": 0.5}
    found = sources(READER, _written(tmp_path / "named", _now(), named))
    assert len(found) == 2
    assert not any("model" in source.mapping for source in found)


def test_tasks_without_details_are_runs_without_records(tmp_path: Path) -> None:
    document = _results()
    document["results"] |= {"mmlu:_average|5": {"acc": 0.5, "acc_stderr": 0.01}, "helm|boolq|0": {"em": 0.25}, "all": {"acc": 0.5}}
    batches, refusals = read(READER, _written(tmp_path, _now(), document))
    assert not refusals
    assert [(batch.run.benchmark, batch.run.configuration.prompt, batch.records.num_rows) for batch in batches] == [
        ("arc:easy", None, 3),
        ("mmlu", None, 0),
        ("boolq", "helm", 0),
    ]
    assert (batches[1].scores[0].value, batches[1].scores[0].stderr) == (0.5, 0.01)


# ---- records -----------------------------------------------------------------------------------


def test_several_golds_are_added_up_and_an_unconditioned_half_is_no_option(tmp_path: Path) -> None:
    table = _now([(text, options, [0, 1], [*scores, -1.0, -2.0, -3.0]) for text, options, _, scores in ASKED])
    batches, _ = read(READER, _written(tmp_path, table))
    row = next(rows(batches))
    assert json.loads(row["option_scores"]) == ASKED[0][3]
    weights = [math.exp(one) for one in ASKED[0][3]]
    assert row["p_gold"] == pytest.approx((weights[0] + weights[1]) / sum(weights))
    assert batches[0].questions is not None
    assert batches[0].questions.to_pylist()[0]["gold"] == '["A","B"]'


def test_options_behind_letters_come_out_of_the_question(tmp_path: Path) -> None:
    doc = _doc("Pick one.\n\nWhich animal barks?\nA. cat\nB. dog\nAnswer:", [" A", " B"], 1) | {"instruction": "Pick one.\n\n", "id": "7"}
    table = pa.Table.from_pylist([{"doc": doc, "metric": {"acc": 1.0}, "model_response": _response([-2.0, -1.0])}])
    batches, _ = read(READER, _written(tmp_path, table))
    assert batches[0].questions is not None
    question = batches[0].questions.to_pylist()[0]
    assert (question["text"], json.loads(question["options"]), question["gold"]) == ("Which animal barks?", ["cat", "dog"], "B")
    assert question["key"] == "lighteval:7"


def test_generated_answers(tmp_path: Path) -> None:
    doc = _doc("Q: 3+4?\nA:", [" 7", " seven"], [0, 1]) | {"specific": {"extracted_predictions": ["7"], "id": 3}, "generation_size": 64}
    answer = _response([]) | {"text": ["It is 7", "It is 8"], "output_tokens": [[1, 2, 3], [4]], "input_tokens": [1, 2]}
    table = pa.Table.from_pylist(
        [
            {
                "doc": doc,
                "metric": {"pass@k:k=1&n=2": 0.5, "bleu": 0.25, "corpus": {"golds": ["7"], "preds": ["x"]}},
                "model_response": answer,
            }
        ]
    )
    document = _results()
    document["config_tasks"][TASK]["generation_size"] = 64
    batches, _ = read(READER, _written(tmp_path, table, document))
    row = next(rows(batches))
    assert (row["score"], row["correct"], row["score_rule"]) == (0.5, None, "pass@k:k=1&n=2")
    assert (json.loads(row["response"]), row["prediction"]) == (["It is 7", "It is 8"], "7")
    assert (row["prompt_tokens"], row["generated_tokens"]) == (2, 4)
    assert batches[0].questions is not None
    question = batches[0].questions.to_pylist()[0]
    assert (question["text"], question["options"], json.loads(question["gold"])) == ("3+4?", None, ["7", "seven"])
    assert batches[0].record_scores is not None
    assert [(one["scorer"], one["score"]) for one in batches[0].record_scores.to_pylist()] == [("bleu", 0.25)]
    assert batches[0].run.configuration.max_new_tokens == 64


@pytest.mark.parametrize(
    ("image", "key"),
    [
        ({"path": "/home/a/cache/vqa/1.png", "bytes": None}, "vqa/1.png"),
        ({"path": "C:\\cache\\vqa\\1.png", "bytes": None}, "vqa/1.png"),
        ({"path": "/home/a/cache/vqa/1.png", "bytes": b"x"}, "sha256:2d711642b726b04401627ca9fbac32f5"),
        ({"path": "data/vqa/1.png", "bytes": b"x"}, "data/vqa/1.png"),
        ({"path": "https://host/a/b/1.png", "bytes": b"x"}, "https://host/a/b/1.png"),
        ({"path": None, "bytes": None}, None),
    ],
    ids=str,
)
def test_an_image_has_the_same_key_on_every_machine(tmp_path: Path, image: dict[str, Any], key: str | None) -> None:
    row = _now().to_pylist()[0]
    row["doc"] = row["doc"] | {"images": [image]}
    batches, refusals = read(READER, _written(tmp_path, pa.Table.from_pylist([row])))
    assert not refusals
    assert {row["image_key"] for batch in batches if batch.questions is not None for row in batch.questions.to_pylist()} == {key}


def test_the_data_sets_own_id_is_the_key_where_it_is_known(tmp_path: Path) -> None:
    doc = _doc("What?", ["A", "B"], 0) | {"specific": {"id": "validation_Art_1"}}
    table = pa.Table.from_pylist([{"doc": doc, "metric": {"acc": 1.0}, "model_response": _response([-2.0, -1.0])}])
    path = tmp_path / f"details_mmmu|0_{STAMP}.parquet"
    pq.write_table(table, path)
    batches, _ = read(READER, tmp_path)
    assert [row["question_key"] for row in rows(batches)] == ["validation_Art_1"]


def test_not_a_number_and_infinities_are_kept_apart(tmp_path: Path) -> None:
    answers = [[float("nan"), -1.0, -2.0], [-math.inf, -1.0, -2.0], [-1.0, -1.0, -2.0]]
    table = _now([(text, options, gold, scores) for (text, options, gold, _), scores in zip(ASKED, answers, strict=True)])
    table = table.set_column(
        table.schema.get_field_index("metric"), "metric", pa.array([{"acc": float("nan")}, {"acc": 1.0}, {"acc": 0.0}])
    )
    found = list(rows(read(READER, _written(tmp_path, table))[0]))
    assert [(row["score"], row["special"], row["p_gold"] is None) for row in found] == [
        (None, "nan", True),
        (1.0, None, False),
        (0.0, None, False),
    ]


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        ("gsm8k|5", Task("gsm8k", 5, None)),
        ("leaderboard|arc:challenge|25", Task("arc:challenge", 25, "leaderboard")),
        ("lighteval|gsm8k|0|1", Task("gsm8k", 0, "lighteval")),
        ("mmlu:_average|5", Task("mmlu", 5, None)),
        ("plain", Task("plain", None, None)),
    ],
)
def test_names_of_tasks(task: str, expected: Task) -> None:
    assert task_of(task) == expected
    assert category_of(task) == ("challenge" if "challenge" in task else None)


def test_names_of_metrics() -> None:
    assert all(
        says_correct(name)
        for name in ("acc", "acc_norm", "acc_norm_token", "em", "pqem", "extractive_match", "truthfulqa_mc1", "pass@k:k=1&n=1")
    )
    assert not any(says_correct(name) for name in ("f1", "bleu", "truthfulqa_mc2"))
    assert not any(is_share(name, frozenset()) for name in ("bleu", "ppl", "judge_score_turn_1", "edit_distance", "BERTScore-F"))
    assert not is_share("acc", frozenset({"acc"}))
    told = Results({"config_general": {"api_key": "x", "f": "<function f at 0x7f>"}}).settings("a|0", None)
    assert told["config_general"] == {"api_key": "***", "f": "<function f>"}
    other = Results({"results": {"mt|0": {"grade": 7.5, "acc": 1.0}}})
    assert other.other_scales("mt|0") == {"grade"}


# ---- damage ------------------------------------------------------------------------------------


def test_a_cut_anywhere_keeps_the_scores_and_says_why(tmp_path: Path) -> None:
    root = _written(tmp_path, _now())
    path = next(root.rglob("details_*.parquet"))
    raw = path.read_bytes()
    for offset in range(0, len(raw), len(raw) // 25):
        path.write_bytes(raw[:offset])
        batches, refusals = read(READER, root)
        assert [batch.run.status for batch in batches][-1] == "partial"
        assert not list(rows(batches))
        assert batches[0].scores
        assert len(refusals) == 1


def test_a_damaged_row_group_costs_itself_alone(tmp_path: Path) -> None:
    many = [ASKED[place % 3] for place in range(9)]
    root = _written(tmp_path, _now(many))
    path = next(root.rglob("details_*.parquet"))
    pq.write_table(_now(many), path, row_group_size=3, compression="none", use_dictionary=False)
    place = pq.ParquetFile(path).metadata.row_group(1).column(0).data_page_offset
    raw = bytearray(path.read_bytes())
    raw[place : place + 24] = b"\xff" * 24
    path.write_bytes(raw)
    batches, refusals = read(READER, root)
    assert [row["question_key"] for row in rows(batches)] == [f"lighteval:{place}" for place in (0, 1, 2, 6, 7, 8)]
    assert "row group 1 cannot be read" in refusals[0].reason
    assert batches[-1].run.status_reason == "row group 1 of the details cannot be read"


@pytest.mark.parametrize("content", [b"", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", b"PAR1"])
def test_details_that_hold_nothing_are_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / f"details_{TASK}_{STAMP}.parquet"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"empty file|git lfs pull|cannot be read"):
        read(READER, tmp_path)


def test_a_damaged_results_file_costs_only_what_it_says(tmp_path: Path) -> None:
    root = _written(tmp_path, _now())
    path = next(root.rglob("results_*.json"))
    raw = path.read_bytes()
    for offset in range(0, len(raw) - 1, len(raw) // 20):
        path.write_bytes(raw[:offset])
        batches, refusals = read(READER, root)
        assert len(list(rows(batches))) == 3
        assert batches[0].run.model == "org/small-1b"
        assert len(refusals) == 1
    path.unlink()
    batches, refusals = read(READER, root)
    assert (len(list(rows(batches))), refusals, batches[0].run.configuration.few_shot) == (3, [], 5)


def test_fewer_rows_than_the_run_set_out_to_ask_make_it_partial(tmp_path: Path) -> None:
    document = _results()
    document["config_tasks"][TASK]["effective_num_docs"] = 4
    batches, _ = read(READER, _written(tmp_path, _now(), document))
    assert (batches[-1].run.status, batches[-1].run.status_reason) == ("partial", "3 of 4 questions")


def test_a_table_with_other_columns_is_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / f"details_{TASK}_{STAMP}.parquet")
    with pytest.raises(InputError, match="expected the columns doc, metric and model_response"):
        read(READER, tmp_path)


VALUES = (
    st.none()
    | st.booleans()
    | st.integers(-3, 9)
    | st.floats()
    | st.text(max_size=4)
    | st.lists(st.integers(-1, 5), max_size=3)
    | st.just({"x": 1})
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    part=st.sampled_from(["doc", "metric", "model_response"]),
    name=st.sampled_from(
        ["query", "choices", "gold_index", "specific", "id", "images", "text", "logprobs", "input_tokens", "output_tokens", "acc"]
    ),
    value=VALUES,
    whole=st.booleans(),
)
def test_wrong_types_are_values_or_refusals(
    part: str, name: str, value: Any, whole: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    made = _now().to_pylist()
    for row in made:
        if whole:
            row[part] = value
        else:
            row[part][name] = value
    try:
        table = pa.Table.from_pylist(made)
        root = _written(tmp_path_factory.mktemp("fuzz"), table)
    except (pa.ArrowException, TypeError):
        return
    batches, refusals = read(READER, root)
    assert all(isinstance(part, Batch) for part in batches)
    assert all(isinstance(part, Refusal) and part.reason for part in refusals)
    assert len(list(rows(batches))) + len(refusals) >= 3


@given(st.text(alphabet="[](){}'\"nainf,.: 01eTrueNo\\", max_size=40))
def test_any_python_text_is_a_value(text: str) -> None:
    from tracker.readers.lighteval_rows import _list, _object

    assert isinstance(_list(text), list)
    assert isinstance(_object(text), dict)


# ---- what the source writes ---------------------------------------------------------------------


def _doc(query: str, choices: list[str], gold: Any) -> dict[str, Any]:
    return {
        "query": query,
        "choices": choices,
        "gold_index": gold,
        "instruction": None,
        "images": None,
        "specific": {"subject": "nature"},
        "unconditioned_query": None,
        "original_query": None,
        "id": "",
        "task_name": TASK,
        "fewshot_samples": [],
        "sampling_methods": ["LOGPROBS"],
        "fewshot_sorting_class": None,
        "generation_size": None,
        "stop_sequences": None,
        "use_logits": False,
        "num_samples": 1,
        "generation_grammar": None,
    }


def _response(logprobs: list[float]) -> dict[str, Any]:
    return {
        "input": "shots and question",
        "input_tokens": [[1, 2, 3]] * len(logprobs),
        "text": [],
        "output_tokens": [[5]] * len(logprobs),
        "text_post_processed": None,
        "reasonings": [],
        "logprobs": logprobs,
        "argmax_logits_eq_gold": [False] * len(logprobs),
        "logits": None,
        "unconditioned_logprobs": None,
        "truncated_tokens_count": 0,
        "padded_tokens_count": 0,
    }


def _metrics(gold: Any, scores: list[float]) -> dict[str, Any]:
    golds = gold if isinstance(gold, list) else [gold]
    right = max(range(len(scores)), key=lambda place: scores[place]) in golds
    return {"acc": int(right), "acc_norm": int(right)}


def _now(asked: list[Any] | None = None) -> pa.Table:
    """0.11 and later: three structs."""
    return pa.Table.from_pylist(
        [
            {
                "doc": _doc(f"Question: {text}\nAnswer:", options, gold) | {"id": str(place)},
                "metric": _metrics(gold, scores),
                "model_response": _response(scores),
            }
            for place, (text, options, gold, scores) in enumerate(asked or ASKED)
        ]
    )


def _prefixed() -> pa.Table:
    """As the documentation names the columns."""
    table = _now()
    return table.rename_columns([f"__{name}__" for name in table.column_names])


def _details() -> list[dict[str, Any]]:
    return [
        {
            "example": f"Question: {text}\nAnswer:",
            "instruction": "",
            "full_prompt": f"shots\nQuestion: {text}\nAnswer:",
            "num_effective_few_shots": 5,
            "num_asked_few_shots": 5,
            "predictions": [(score, False) for score in scores],
            "input_tokens": [[1, 2, 3]] * len(options),
            "cont_tokens": [[5]] * len(options),
            "truncated": [0],
            "padded": [0],
            "gold": [],
            "pred_logits": [],
            "choices": options,
            "gold_index": [gold],
            "metrics": _metrics(gold, scores),
            "specifics": None,
        }
        for text, options, gold, scores in ASKED
    ]


def _nested() -> pa.Table:
    """0.7 to 0.10: the old columns as nested values (here the log-likelihoods of single tokens, which are plain numbers)."""
    return pa.Table.from_pylist([row | {"predictions": [score for score, _ in row["predictions"]]} for row in _details()])


def _text() -> pa.Table:
    """Up to 0.6: every value as Python writes it."""
    table = pa.Table.from_pylist([{name: str(value) for name, value in row.items()} for row in _details()])
    assert ast.literal_eval(table["predictions"][0].as_py())[0] == (-5.5, False)
    return table


def _results() -> dict[str, Any]:
    return {
        "config_general": {
            "lighteval_sha": "abc",
            "num_fewshot_seeds": 1,
            "model_config": {
                "model_name": "org/small-1b",
                "dtype": "bfloat16",
                "revision": "main",
                "generation_parameters": {"temperature": 0},
            },
            "model_name": "org/small-1b",
        },
        "results": {TASK: {"acc": 2 / 3, "acc_stderr": 0.1, "acc_norm": 2 / 3}},
        "versions": {TASK: 0},
        "config_tasks": {TASK: {"name": "arc:easy", "num_fewshots": 5, "effective_num_docs": -1, "generation_size": 1}},
        "summary_tasks": {},
        "summary_general": {},
    }


def _written(root: Path, table: pa.Table, results: dict[str, Any] | None = None) -> Path:
    details, stated = root / "details/org/small-1b" / STAMP, root / "results/org/small-1b"
    details.mkdir(parents=True)
    stated.mkdir(parents=True)
    pq.write_table(table, details / f"details_{TASK}_{STAMP}.parquet")
    (stated / f"results_{STAMP}.json").write_text(json.dumps(results or _results(), indent=2), encoding="utf-8")
    return root


def test_a_link_to_the_same_files_makes_no_second_run(tmp_path: Path) -> None:
    root = Path(shutil.copytree(WRITTEN, tmp_path / "out"))
    folder = next((root / "details/org/small-1b").iterdir())
    (root / "details/org/small-1b/last").symlink_to(folder, target_is_directory=True)
    assert len(sources(READER, root)) == 3
