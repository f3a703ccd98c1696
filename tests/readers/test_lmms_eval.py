"""lmms-eval: our own folders of every version, real files, and the quick way against the careful one."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from tests.conftest import samples
from tests.readers.harness import INGEST, matches, read, rows, sources, variants
from tracker.errors import InputError
from tracker.readers.base import Folder
from tracker.readers.lm_rules import contained, has_other_scale, mmmu
from tracker.readers.lm_samples import question_of
from tracker.readers.lm_table import CHUNK_ROWS
from tracker.readers.lmms_eval import READER
from tracker.study import Study

if TYPE_CHECKING:
    from pathlib import Path

STAMP = "20260218_234435"
HASH = "74234e98afe7498fb5daf1f36ac2d78acc339464f950703b8c019892f982b90b"


@pytest.mark.parametrize("variant", variants("lmms_eval"))
def test_every_version_is_read_as_written_down(variant: str) -> None:
    found, expected = matches(READER, variant)
    assert found == expected


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"question_type": "multiple-choice", "answer": "A", "parsed_pred": ["A"]}, True),
        ({"question_type": "multiple-choice", "answer": "['A', 'B']", "parsed_pred": ["B"]}, True),
        ({"question_type": "multiple-choice", "answer": "A", "parsed_pred": "B"}, False),
        ({"question_type": "open", "answer": "3.14159", "parsed_pred": [[3.14]]}, True),
        ({"question_type": "open", "answer": "1,000", "parsed_pred": [[1000.0, "thousand"]]}, True),
        ({"question_type": "open", "answer": "x", "parsed_pred": [["the x is"]]}, True),
        ({"question_type": "open", "answer": "x", "parsed_pred": [["xylophone"]]}, False),
        ({"question_type": "open", "answer": "Blue", "parsed_pred": [["light blue"]]}, True),
        ({"question_type": "open", "parsed_pred": [["light blue"]]}, None),
    ],
    ids=str,
)
def test_mmmu_is_judged_by_its_own_rule(entry: dict[str, Any], expected: bool | None) -> None:
    assert mmmu(entry) is expected


def test_mme_realworld_is_judged_by_containment() -> None:
    assert contained({"answer": "A", "pred_answer": "a"}) is True
    assert contained({"answer": "A", "pred_answer": ""}) is False
    assert contained({"answer": "A"}) is None


def test_options_are_told_from_the_question() -> None:
    found = question_of("Which?\nA. red\nB. a. 5\nAnswer the option letter directly.")
    assert (found.text, found.options, found.n_options) == ("Which?", '["red","a. 5"]', 2)
    assert question_of("Which? The choices are listed below:\n(A) red\n(B) blue\nSelect.").text == "Which?"
    assert question_of("A. Smith painted this. Who?").options is None
    assert question_of("Say: Which?\nB. red\nC. blue", before="Say: ").text == "Which?\nB. red\nC. blue"
    assert found.content_hash == question_of("Which?\nA. a. 5\nB. red\nOther closing words").content_hash


def test_a_rotated_start_of_letters_is_no_list_of_options() -> None:
    assert question_of("Pick:\nB. x\nA. y").options is None


@pytest.mark.parametrize(
    "name",
    [
        "wildbench_score", "prometheus_vision", "llm_judge_score", "mean_rating", "MeanRating", "rating", "elo", "edit_distance", "EditDistance", "wer",
        "wer_score", "toxicity", "mse", "rmse", "cer", "bleu_1", "rougeL", "chrf++", "TER", "ece_10_bin", "bertscore-P", "mcc_single_token",
        "word_perplexity", "mean_latency", "output tokens", "toxic_frac", "judge_score_turn_1",
    ],
)  # fmt: skip
def test_names_of_other_scales(name: str) -> None:
    assert has_other_scale(name)


@pytest.mark.parametrize(
    "name",
    ["gpt_score", "gpt_eval_score", "answer_acc", "filtered_match", "letter_score", "generating", "certainty", "helo", "average", "acc", "f1", "steps_acc",
     "power", "iou", "counterfactual", "mean_score", "correct"],
)  # fmt: skip
def test_names_that_may_be_shares(name: str) -> None:
    assert not has_other_scale(name)


def test_metrics_that_are_no_share_stay_further_scores(tmp_path: Path) -> None:
    folder = _written(
        tmp_path, "captions", [{"doc_id": 0, "target": "a", "filtered_resps": ["b"], "bleu_4": 0.7, "cider": 1.0, "input": "?"}]
    )
    batches, _ = read(READER, folder)
    assert [(row["score"], row["correct"]) for row in rows(batches)] == [(None, None)]
    assert batches[0].record_scores is not None
    assert {(row["scorer"], row["score"]) for row in batches[0].record_scores.to_pylist()} == {("bleu_4", 0.7), ("cider", 1.0)}


def test_keys_that_first_come_late_are_not_lost(tmp_path: Path) -> None:
    written = [_hrbench(i) for i in range(900)]
    written[700] |= {"visual_tokens": 12, "latency_s": 0.5}
    written[800].pop("average")
    written[800].pop("single")
    written[800] |= {"index": 800, "question_id": "800", "status": "failed"}
    batches, refusals = read(READER, _written(tmp_path, "hrbench4k", written))
    assert not refusals
    found = list(rows(batches))
    assert [row["question_key"] for row in found] == [str(i) for i in range(900)]
    assert (found[700]["visual_tokens"], found[700]["latency_s"]) == (12, 0.5)
    assert (found[800]["status"], found[800]["score"], found[800]["correct"]) == ("failed", None, None)
    assert [row["correct"] for row in found[:6]] == [True, True, True, False, False, False]


def test_an_odd_row_changes_nothing_for_its_neighbours(tmp_path: Path) -> None:
    """One odd row sends its whole block the careful way, which must come to the same."""
    written = [_hrbench(i) | {"visual_tokens": i, "p_gold": i / 300, "option_scores": [-0.5, -1.25]} for i in range(300)]
    for place in range(0, 300, 7):
        for name in ("average", "single"):
            written[place].pop(name)
        written[place] |= {"question_id": str(place), "status": "failed", "token_counts": [None], "filtered_resps": ""}
    plain, _ = read(READER, _written(tmp_path / "plain", "hrbench4k", written))
    odd = [dict(row) for row in written]
    odd[3] |= {"average": odd[3]["average"] | {"gpt_score": "0"}, "filtered_resps": ["A"], "visual_tokens": "3", "p_gold": "0.01"}
    odd[3] |= {"option_scores": "[-0.5,-1.25]", "input": [odd[3]["input"]]}
    odd[280] |= {"status": "Failed"} if "status" in odd[280] else {"token_counts": [{"input_tokens": "9", "output_tokens": 1.0}]}
    careful, refusals = read(READER, _written(tmp_path / "odd", "hrbench4k", odd))
    assert not refusals
    assert careful[0].records == plain[0].records
    assert careful[0].questions == plain[0].questions


def test_repeated_ids_are_kept_as_attempts_to_be_numbered(tmp_path: Path) -> None:
    written = [_hrbench(0), _hrbench(1), _hrbench(0)]
    written[2]["doc_id"] = 2
    batches, _ = read(READER, _written(tmp_path, "hrbench4k", written, expected=3))
    assert [(row["question_key"], row["attempt"]) for row in rows(batches)] == [("0", None), ("1", None), ("0", None)]
    assert batches[0].questions is not None
    assert batches[0].questions.column("key").to_pylist() == ["0", "1"]
    assert batches[0].run.status == "finished"


def test_option_orders_of_one_question_share_an_image_key(tmp_path: Path) -> None:
    written = [_hrbench(i) for i in range(3)]
    written[1]["input"] = "Which colour has thing 0?\nA. blue\nB. red\nAnswer the option letter directly."
    batches, _ = read(READER, _written(tmp_path, "hrbench4k", written))
    assert batches[0].questions is not None
    first, second, third = (row["image_key"] for row in batches[0].questions.to_pylist())
    assert first == second != third
    stated, _ = read(READER, _written(tmp_path / "stated", "hrbench4k", [row | {"image_key": "mine"} for row in written]))
    assert stated[0].questions is not None
    assert stated[0].questions["image_key"].to_pylist() == ["mine"] * 3


def test_secrets_do_not_reach_the_settings(tmp_path: Path) -> None:
    folder = _written(tmp_path, "hrbench4k", [_hrbench(0)])
    path = folder / f"{STAMP}_results.json"
    document = json.loads(path.read_bytes())
    document["config"]["model_args"] = "model=gpt-5,api_key=sk-123,max_tokens=10,pad_token=x"
    document["config"]["resolved_cli_args"] = {"model_args": "model=gpt-5,api_key=sk-123", "hf_token": "hf_456"}
    path.write_text(json.dumps(document))
    settings = read(READER, folder)[0][0].run.settings
    assert "sk-123" not in json.dumps(settings)
    assert "hf_456" not in json.dumps(settings)
    assert settings["model_args"]["max_tokens"] == "10"


def test_fewer_rows_than_declared_make_the_run_partial(tmp_path: Path) -> None:
    batches, _ = read(READER, _written(tmp_path, "hrbench4k", [_hrbench(0)], expected=800))
    assert (batches[-1].run.status, batches[-1].run.status_reason, batches[-1].run.n_expected) == ("partial", "1 of 800 questions", 800)


def test_damaged_rows_are_refused_alone(tmp_path: Path) -> None:
    folder = _written(tmp_path, "hrbench4k", [_hrbench(i) for i in range(6)])
    path = folder / f"{STAMP}_samples_hrbench4k.jsonl"
    lines = path.read_bytes().splitlines()
    lines[1] = lines[1].replace(b'"gpt_score": 1', b'"gpt_score": NaN')
    lines[2] = lines[2].replace(b'"index": 2', b'"index": null')
    lines[3] = lines[3].replace(b"red", b"r\xe9d")
    lines[4] = lines[4].replace(b"red", b"r\\ud83dd")
    path.write_bytes(b"\n".join(lines)[:-50])
    batches, refusals = read(READER, folder)
    found = list(rows(batches))
    assert [row["question_key"] for row in found] == ["0", "1", "4"]
    assert (found[1]["score"], found[1]["special"]) == (None, "nan")
    assert sorted(one.line or 0 for one in refusals) == [3, 4, 6]
    assert any("average.index" in one.reason for one in refusals)
    assert any("is not UTF-8" in one.reason for one in refusals)
    assert batches[-1].run.status_reason == "samples file is cut off"
    questions = batches[0].questions
    assert questions is not None
    assert "r\N{REPLACEMENT CHARACTER}d" in questions.to_pylist()[2]["options"]


def test_wrong_types_of_native_columns_are_refused_and_the_row_stays(tmp_path: Path) -> None:
    written = [_hrbench(i) | {"visual_tokens": 5, "p_gold": 0.5} for i in range(3)]
    written[1] |= {"visual_tokens": "many", "p_gold": -0.1, "option_scores": {"A": "x"}}
    written[2] |= {"visual_tokens": "7", "p_gold": float("nan"), "option_scores": [-1.0, None], "n_options": 0}
    batches, refusals = read(READER, _written(tmp_path, "hrbench4k", written))
    found = list(rows(batches))
    assert [(row["visual_tokens"], row["p_gold"], row["option_scores"]) for row in found] == [
        (5, 0.5, None),
        (None, None, None),
        (7, None, "[-1.0,null]"),
    ]
    assert sorted((one.line, one.reason.split(":")[0]) for one in refusals) == [
        (2, "option_scores"),
        (2, "p_gold"),
        (2, "visual_tokens"),
        (3, "n_options"),
    ]


def test_a_token_count_beyond_64_bits_is_none(tmp_path: Path) -> None:
    written = [_hrbench(i) for i in range(3)]
    written[1]["token_counts"] = [{"input_tokens": 2**63, "output_tokens": 2**64}]
    batches, _ = read(READER, _written(tmp_path, "hrbench4k", written))
    assert [(row["prompt_tokens"], row["generated_tokens"]) for row in rows(batches)] == [(9, 1), (None, None), (9, 1)]


def test_samples_of_a_folder_with_two_stamps_are_paired_by_stamp(tmp_path: Path) -> None:
    folder = _written(tmp_path, "hrbench4k", [_hrbench(0)])
    for path in list(folder.iterdir()):
        shutil.copy(path, folder / path.name.replace(STAMP, "20260219_010101"))
    assert [[path.name[:15] for path in source.files] for source in sources(READER, folder)] == [[STAMP] * 2, ["20260219_010101"] * 2]


def test_an_empty_or_missing_part_is_said(tmp_path: Path) -> None:
    folder = _written(tmp_path, "hrbench4k", [])
    batches, refusals = read(READER, folder)
    assert [one.reason.split(" (")[0] for one in refusals] == ["empty file"]
    assert batches[0].run.status == "partial"
    (folder / f"{STAMP}_results.json").write_bytes(b'{"results": {"hrbench4k": {"average,none": 0.5, "average_stderr,none"')
    with pytest.raises(InputError, match="empty file"):
        read(READER, folder)


def test_long_files_come_in_bounded_pieces(tmp_path: Path) -> None:
    batches, refusals = read(READER, _written(tmp_path, "hrbench4k", [_hrbench(i) for i in range(30_000)]))
    assert not refusals
    assert sum(batch.records.num_rows for batch in batches) == 30_000
    assert max(batch.records.num_rows for batch in batches) < CHUNK_ROWS + 1_000


def test_finding_reads_no_samples_file_that_has_its_results(tmp_path: Path) -> None:
    folder = _written(tmp_path, "hrbench4k", [_hrbench(0)])
    path = folder / f"{STAMP}_samples_hrbench4k.jsonl"
    path.unlink()
    path.mkdir()  # it cannot be read at all
    names = [f"{STAMP}_results.json", path.name]
    assert [source.uri for source in READER.find(Folder(folder, names), Study.empty())] == [str(path)]


# ---- real files -------------------------------------------------------------------------------


def test_real_rows_agree_with_the_stated_aggregate() -> None:
    folder = samples("lmms_eval", "shruum", "liuhaotian__llava-v1.5-7b")
    batches, refusals = read(READER, folder)
    assert not refusals
    runs = {batch.run.benchmark: batch for batch in batches}  # the last piece of each
    assert set(runs) == {"scienceqa_img", "pope"}
    batch = runs["scienceqa_img"]
    pieces = [one for one in batches if one.run.benchmark == "scienceqa_img"]
    found = [row for one in pieces for row in one.records.to_pylist()]
    asked = [row for one in pieces if one.questions is not None for row in one.questions.to_pylist()]
    assert (len(found), batch.run.n_expected, batch.run.status) == (2017, 2017, "finished")
    stated = {score.metric: score.value for one in pieces for score in one.scores}
    assert sum(row["correct"] for row in found) / 2017 == pytest.approx(stated["exact_match"], abs=1e-15)
    assert batch.run.model == "liuhaotian/llava-v1.5-7b"
    assert batch.run.started_at == datetime(2026, 2, 18, 15, 44, 35, tzinfo=UTC)  # 23:44:35 in UTC+8
    assert batch.run.configuration.max_new_tokens == 16
    assert len({row["key"] for row in asked}) == len(asked) == 2017  # though doc_hash is one constant
    options = [json.loads(row["options"]) for row in asked if row["options"]]
    assert len(options) == 2017
    assert {len(one) for one in options} <= {2, 3, 4, 5}
    golds = [("ABCDE".index(row["gold"]), row["n_options"]) for row in asked]
    assert all(place < count for place, count in golds)
    pope = {score.metric: score.value for one in batches if one.run.benchmark == "pope" for score in one.scores}
    assert pope["pope_accuracy"] == 0.8695555555555555
    assert "0x7f62" not in json.dumps(batch.run.settings)


def test_real_results_without_samples_give_nested_scores_and_settings() -> None:
    batches, refusals = read(READER, samples("lmms_eval", "shruum", "results_bias"))
    assert not refusals
    run = batches[0].run
    stated = {one.metric: one.value for one in batches[0].scores}
    assert stated["accuracy"] == 0.19468390804597702
    assert stated["accuracy_by_topic.Flags"] == 0.2375
    assert run.configuration.pixel_cap == 401408
    assert run.settings["throughput"]["total_gen_tokens"] == 11699
    assert run.settings["model_args"] == {"pretrained": "Qwen/Qwen2.5-VL-3B-Instruct", "max_pixels": "401408"}


def test_what_a_fork_wrote_beside_is_left_alone() -> None:
    assert sources(READER, samples("lmms_eval", "shruum", "qwen_all")) == []


def test_own_folders_hold_what_the_real_ones_do() -> None:
    real = samples("lmms_eval", "shruum", "liuhaotian__llava-v1.5-7b")
    ours = INGEST / "lmms_eval" / "v06" / "Qwen__Qwen2.5-VL-3B-Instruct"
    real_row = orjson.loads(next(real.glob("*.jsonl")).read_bytes().splitlines()[0])
    our_row = orjson.loads((ours / f"{STAMP}_samples_hrbench4k.jsonl").read_bytes().splitlines()[0])
    assert set(real_row) - {"exact_match"} == set(our_row) - {"single", "average"}
    assert set(json.loads((ours / f"{STAMP}_results.json").read_bytes())) <= set(json.loads(next(real.glob("*.json")).read_bytes())) | {
        "throughput"
    }


def _hrbench(index: int) -> dict[str, Any]:
    entry = {"index": index, "cycle_category": "0", "gpt_score": 1 if index < 3 else 0}
    prompt = f"Which colour has thing {index}?\nA. red\nB. blue\nAnswer the option letter directly."
    row = {"doc_id": index, "target": "A", "filtered_resps": "A", "doc_hash": HASH}
    return {
        **row,
        "single": entry,
        "average": entry,
        "input": prompt,
        "token_counts": [{"input_tokens": 9, "output_tokens": 1, "reasoning_tokens": None}],
    }


def _written(root: Path, task: str, written: list[dict[str, Any]], expected: int | None = None) -> Path:
    folder = root / "org__toy-vl"
    folder.mkdir(parents=True)
    (folder / f"{STAMP}_samples_{task}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in written))
    count = expected or len(written) or 3
    results = {
        "results": {task: {"alias": task, "average,none": 0.5, "average_stderr,none": "N/A"}},
        "configs": {task: {"metric_list": [{"metric": name} for name in ("single", "average", "bleu_4", "cider")]}},
        "n-samples": {task: {"original": count, "effective": count}},
        "config": {"model": "toy", "model_args": "pretrained=org/toy-vl"},
        "date": STAMP,
    }
    (folder / f"{STAMP}_results.json").write_text(json.dumps(results, indent=2))
    return folder
