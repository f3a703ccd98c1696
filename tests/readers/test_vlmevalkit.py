"""VLMEvalKit: our own folders of every layout, files written as it writes them, real files, and damage."""

from __future__ import annotations

import csv
import json
import pickle
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

import tracker
from tests.conftest import samples
from tests.readers.harness import INGEST, matches, read, rows, sources, variants
from tests.readers.test_xlsx import by_hand
from tests.readers.vlmevalkit_files import dump, judged, predictions, status
from tracker.batch import Batch, Refusal
from tracker.errors import InputError
from tracker.ingest.digest import digest
from tracker.readers import lmms_eval, vlmevalkit
from tracker.readers.base import Folder
from tracker.readers.keys import own_ids
from tracker.readers.vlmevalkit import READER
from tracker.study import Study

if TYPE_CHECKING:
    from pathlib import Path

MODEL = "Qwen2.5-VL-7B"
EVAL_ID = "T20260410-090000"


def folder(root: Path, eval_id: str = EVAL_ID) -> Path:
    """The folder of one evaluation."""
    return root / "outputs" / MODEL / eval_id


def only(root: Path) -> tuple[list[dict[str, Any]], Batch, list[Refusal]]:
    """Records, last batch and refusals of the one run below a folder."""
    batches, refusals = read(READER, root)
    assert len({(one.run.model, one.run.benchmark, one.run.external_id) for one in batches}) == 1
    return list(rows(batches)), batches[-1], refusals


def asked(batches: list[Batch]) -> dict[str, dict[str, Any]]:
    """Questions by key."""
    return {row["key"]: row for one in batches if one.questions is not None for row in one.questions.to_pylist()}


@pytest.mark.parametrize("variant", [one for one in variants("vlmevalkit") if one != "leftovers"])
def test_every_layout_is_read_as_written_down(variant: str) -> None:
    found, expected = matches(READER, variant)
    assert found == expected


def test_pickles_are_refused_and_never_loaded(tmp_path: Path) -> None:
    root = INGEST / "vlmevalkit" / "leftovers"
    refused = {}
    for source in sources(READER, root):
        try:
            assert list(READER.read(source, Study.empty()))
        except InputError as err:
            refused[source.uri.rpartition("/")[2]] = str(err)
    assert set(refused) == {"01_BLINK.pkl", "Molmo-7B_MMStar.pkl", "Molmo-7B_AI2D_TEST.xlsx"}
    assert "never loaded" in refused["01_BLINK.pkl"]
    assert "git lfs pull" in refused["Molmo-7B_AI2D_TEST.xlsx"]

    class Trap:
        def __reduce__(self) -> tuple[Any, ...]:
            return (open, (str(tmp_path / "loaded"), "w"))

    place = folder(tmp_path)
    dump(predictions(2), place / f"{MODEL}_MMStar.tsv")
    for name in (f"{MODEL}_MMStar_openai_result.pkl", f"{MODEL}_MMStar_checkpoint.pkl", "12_MMStar.pkl", f"{MODEL}_POPE.pkl"):
        (place / name).write_bytes(pickle.dumps({0: Trap()}))
    found = sources(READER, tmp_path)
    assert [one.mapping["kind"] for one in found] == ["run", "pickle"]
    assert {path.name for path in found[0].claims} == {
        f"{MODEL}_MMStar_openai_result.pkl",
        f"{MODEL}_MMStar_checkpoint.pkl",
        "12_MMStar.pkl",
    }
    assert len([*READER.read(found[0], Study.empty())]) == 1
    with pytest.raises(InputError, match="never loaded"):
        list(READER.read(found[1], Study.empty()))
    assert not (tmp_path / "loaded").exists()


@pytest.mark.parametrize("suffix", ["xlsx", "tsv", "json"])
def test_the_judged_file_decides_whatever_the_format(tmp_path: Path, suffix: str) -> None:
    asked_rows = predictions(40, prediction=[f"The answer is {'ABCD'[place % 3]}." for place in range(40)])
    hits = [int(place % 4 == place % 3) for place in range(40)]
    dump(asked_rows, folder(tmp_path) / f"{MODEL}_MMStar.{suffix}")
    dump(list(reversed(judged(asked_rows, hits))), folder(tmp_path) / f"{MODEL}_MMStar_openai_result.{suffix}")
    records, last, refusals = only(tmp_path)
    assert not refusals
    assert [record["correct"] for record in records] == [bool(one) for one in hits]
    assert {record["score_rule"] for record in records} == {"hit (openai)"}
    assert [record["question_key"] for record in records] == [str(place) for place in range(40)]
    assert last.run.model == MODEL
    assert last.run.configuration.few_shot == 0
    assert last.run.settings["judge"] == "openai"


def test_without_a_judge_nothing_is_decided(tmp_path: Path) -> None:
    dump(predictions(4), folder(tmp_path) / f"{MODEL}_MMStar.xlsx")
    records, last, refusals = only(tmp_path)
    assert not refusals
    assert [(one["correct"], one["score"], one["score_rule"], one["prediction"]) for one in records] == [(None, None, None, "A")] * 4
    assert last.run.status == "finished"


def test_of_several_judges_the_one_in_status_json_decides(tmp_path: Path) -> None:
    place, told = folder(tmp_path), predictions(2)
    dump(told, place / f"{MODEL}_MMStar.tsv")
    dump(judged(told, [1, 1]), place / f"{MODEL}_MMStar_exact_matching_result.tsv")
    dump(judged(told, [1, 0]), place / f"{MODEL}_MMStar_gpt-4o-mini_result.tsv")
    dump(judged(told, [0, 1]), place / f"{MODEL}_MMStar_openai_result.tsv")
    records, last, _ = only(tmp_path)
    assert [one["correct"] for one in records] == [True, False]
    scores = last.record_scores.to_pylist() if last.record_scores is not None else []
    assert {(one["scorer"], one["row"], one["score"]) for one in scores} == {
        ("hit (exact_matching)", 0, 1.0),
        ("hit (exact_matching)", 1, 1.0),
        ("hit (openai)", 0, 0.0),
        ("hit (openai)", 1, 1.0),
    }
    status(place, {"MMStar": {"status": "done", "judge_model": "exact_matching"}})
    assert [one["correct"] for one in only(tmp_path)[0]] == [True, True]


def test_failures_of_the_judge_and_of_the_inference_are_no_wrong_answers(tmp_path: Path) -> None:
    told = predictions(4, prediction=["A", "B", "Failed to obtain answer via API.", "D"])
    logs = [
        "Match Log: Failed to predict, thus randomly generate one. . ",
        "Failed in Prefetch, no GPT-based answer matching under `exact_matching` policy.",
        "Match Log: Z. ",
        "Failed in Prefetching Rolling 0: Answer is A, Prediction is D, Pre-fetched is D. ",
    ]
    dump(told, folder(tmp_path) / f"{MODEL}_MMStar.xlsx")
    dump(judged(told, [1, 0, 0, 0], logs), folder(tmp_path) / f"{MODEL}_MMStar_openai_result.xlsx")
    records, last, _ = only(tmp_path)
    assert [(one["status"], one["correct"]) for one in records] == [("unscored", None), ("unscored", None), ("failed", None), (None, False)]
    assert last.run.settings["judge_failed"] == 2
    assert last.record_scores is not None
    assert {(one["scorer"], one["row"], one["score"]) for one in last.record_scores.to_pylist()} == {
        ("judge_failed", 0, 1.0),
        ("judge_failed", 1, 1.0),
        ("hit", 0, 1.0),
        ("hit", 1, 0.0),
    }


def test_names_of_data_sets_that_begin_alike_are_kept_apart(tmp_path: Path) -> None:
    place, told = folder(tmp_path), predictions(2)
    for dataset in ("MMBench_DEV_EN", "MMBench_DEV_EN_V11", "MME", "MME-RealWorld", "MME-RealWorld-CN"):
        dump(told, place / f"{MODEL}_{dataset}.tsv")
    dump(judged(told, [1, 1]), place / f"{MODEL}_MMBench_DEV_EN_V11_openai_result.tsv")
    dump(judged(told, [0, 0]), place / f"{MODEL}_MMBench_DEV_EN_openai_result.tsv")
    batches, _ = read(READER, tmp_path)
    assert {one.run.benchmark: one.records["correct"].to_pylist() for one in batches} == {
        "MMBench_DEV_EN": [False, False],
        "MMBench_DEV_EN_V11": [True, True],
        "MME": [None, None],
        "MME-RealWorld": [None, None],
        "MME-RealWorld-CN": [None, None],
    }


def test_links_to_the_newest_files_make_no_second_run(tmp_path: Path) -> None:
    told = predictions(2)
    for eval_id in ("T20260409_Gabcdef12", EVAL_ID):
        dump(told, folder(tmp_path, eval_id) / f"{MODEL}_MMStar.xlsx")
        dump(judged(told, [1, 0]), folder(tmp_path, eval_id) / f"{MODEL}_MMStar_openai_result.xlsx")
    model = folder(tmp_path).parent
    for path in sorted(folder(tmp_path).iterdir()):
        (model / path.name).symlink_to(path.relative_to(model))
    found = sources(READER, tmp_path)
    assert sorted(one.uri.rpartition(MODEL + "/")[2] for one in found) == [
        f"T20260409_Gabcdef12/{MODEL}_MMStar.xlsx",
        f"{EVAL_ID}/{MODEL}_MMStar.xlsx",
    ]
    linked = {path for one in found for path in one.claims if path.is_symlink()}
    assert linked == {model / f"{MODEL}_MMStar.xlsx", model / f"{MODEL}_MMStar_openai_result.xlsx"}
    direct = READER.find(Folder(folder(tmp_path), sorted(one.name for one in folder(tmp_path).iterdir())), Study.empty())
    assert [(one.uri, one.mapping) for one in direct] == [(one.uri, one.mapping) for one in found if EVAL_ID in one.uri]


def test_reused_predictions_are_one_run_if_every_byte_is_the_same(tmp_path: Path) -> None:
    for eval_id in (EVAL_ID, "T20260411-090000"):
        dump(predictions(2), folder(tmp_path, eval_id) / f"{MODEL}_MMStar.tsv")
        status(folder(tmp_path, eval_id), {"MMStar": {"status": "done", "source_run": EVAL_ID}})
    first, second = sources(READER, tmp_path)
    assert digest(first, READER, {}) == digest(second, READER, {})
    runs = [part.run for one in (first, second) for part in READER.read(one, Study.empty()) if isinstance(part, Batch)]
    assert [one.external_id for one in runs] == [
        f"{one.parent.name} 2026-04-10T09:00:00.123456+08:00" for one in (first.files[0], second.files[0])
    ]
    assert runs[1].settings["source_run"] == EVAL_ID


@pytest.mark.parametrize(
    "change",
    [
        {"entry": {"judge_model": "exact_matching"}},
        {"entry": {"metrics": {"Overall": 0.5}}},
        {"entry": {"error_message": "no key"}},
        {"entry": {"status": "eval"}},
        {"fields": {"commit": "00000000"}},
    ],
    ids=str,
)
def test_what_status_json_says_of_the_run_is_compared(tmp_path: Path, change: dict[str, dict[str, Any]]) -> None:
    dump(predictions(2), folder(tmp_path) / f"{MODEL}_MMStar.tsv")
    status(folder(tmp_path), {"MMStar": {"status": "done"}})
    before = [digest(one, READER, {}) for one in sources(READER, tmp_path)]
    status(folder(tmp_path), {"MMStar": {"status": "done", **change.get("entry", {})}}, **change.get("fields", {}))
    after = [digest(one, READER, {}) for one in sources(READER, tmp_path)]
    assert len(before) == len(after) == 1
    assert before != after


def test_place_and_time_of_a_copy_and_other_data_sets_are_not_compared(tmp_path: Path) -> None:
    copied: dict[str, Any] = {"source_run": EVAL_ID, "reuse_aux": True, "updated_at": "2026-04-11T09:00:00Z"}
    told: dict[str, Any]
    for eval_id, told in ((EVAL_ID, {}), ("T20260411-090000", copied)):
        dump(predictions(2), folder(tmp_path, eval_id) / f"{MODEL}_MMStar.tsv")
        entries: dict[str, dict[str, Any]] = {"MMStar": {"status": "done", **told}, "POPE": {"status": "done" if told else "infer"}}
        status(folder(tmp_path, eval_id), entries, created_at=f"{eval_id[1:5]}-04-{eval_id[7:9]}", argv=[eval_id], reuse=bool(told))
    found = sources(READER, tmp_path)
    assert len({digest(one, READER, {}) for one in found}) == 1
    assert len(found) == 2


def test_deep_values_in_status_json_never_stop_finding(tmp_path: Path) -> None:
    dump(predictions(2), folder(tmp_path) / f"{MODEL}_MMStar.tsv")
    deep = "[" * 600 + "]" * 600
    path = status(folder(tmp_path), {"MMStar": {"status": "done", "metrics": "DEEP"}})
    path.write_text(path.read_text().replace('"DEEP"', deep))
    assert len(sources(READER, tmp_path)) == 1


def test_status_json_is_parsed_once_for_all_the_data_sets_that_it_alone_knows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"Set{number}" for number in range(5)]
    status(folder(tmp_path), {name: {"status": "done", "metrics": {"Overall": 0.5}} for name in names})
    (source,) = sources(READER, tmp_path)
    parsed = []

    def counted(path: Path) -> Any:
        parsed.append(path)
        return json.loads(path.read_text())

    monkeypatch.setattr(vlmevalkit, "json_document", counted)
    found = [part.run.benchmark for part in READER.read(source, Study.empty()) if isinstance(part, Batch)]
    assert found == names
    assert len(parsed) == 1


def test_status_json_gives_times_command_and_state(tmp_path: Path) -> None:
    dump(predictions(2), folder(tmp_path) / f"{MODEL}_MMStar.tsv")
    status(folder(tmp_path), {"MMStar": {"status": "infer", "updated_at": "2026-04-10T09:30:00+08:00"}})
    run = only(tmp_path)[1].run
    assert (run.status, run.status_reason) == ("partial", "status.json: infer")
    assert str(run.started_at) == "2026-04-10 01:00:00.123456+00:00"
    assert str(run.ended_at) == "2026-04-10 01:30:00+00:00"
    assert run.framework_version == "a9343a1e"
    assert run.settings["argv"] == ["run.py", "--data", "MMStar", "--api-key", "***"]
    assert run.settings["eval_id"] == EVAL_ID
    (folder(tmp_path) / "status.json").write_text('{"schema_version": "1.0", "datasets": {"MMS')
    records, last, refusals = only(tmp_path)
    assert len(records) == 2
    assert last.run.status == "finished"
    assert "status.json" in refusals[0].file


def test_a_local_time_without_zone_is_no_time(tmp_path: Path) -> None:
    dump(predictions(2), folder(tmp_path) / f"{MODEL}_MMStar.tsv")
    status(folder(tmp_path), {"MMStar": {"status": "done", "updated_at": "2026-04-10T09:30:00"}}, created_at="yesterday")
    run = only(tmp_path)[1].run
    assert (run.started_at, run.ended_at) == (None, None)


# ---- the same question in two frameworks -------------------------------------------------------


def lmms(root: Path, task: str, made: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Questions of an lmms-eval samples file."""
    path = root / "lmms" / "org__model" / f"20260218_234435_samples_{task}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        "".join(json.dumps({"doc_id": at, "target": "A", "filtered_resps": ["A"], **one}) + "\n" for at, one in enumerate(made))
    )
    batches, refusals = read(lmms_eval.READER, root / "lmms")
    assert not refusals
    return asked(batches)


def lettered(row: dict[str, Any], form: str = "{}. {}") -> str:
    return "\n".join(form.format(letter, row[letter]) for letter in "ABCDE" if letter in row)


@pytest.mark.parametrize(
    ("dataset", "task", "form"),
    [
        (
            "HRBench4K",
            "hrbench4k",
            lambda row: {
                "input": f"{row['question']}\n{lettered(row)}\nAnswer the option letter directly.",
                "single": {"index": row["index"], "cycle_category": 0, "gpt_score": 1},
                "average": {"index": row["index"], "cycle_category": 0, "gpt_score": 1},
            },
        ),
        (
            "VStarBench",
            "vstar_bench",
            lambda row: {
                "input": f"{row['question']}\n{lettered(row)}\nAnswer with the option's letter from the given choices directly.",
                "vstar_overall_acc": {"question_id": str(row["index"]), "category": "direct_attributes", "score": 1.0},
            },
        ),
        (
            "MMStar",
            "mmstar",
            lambda row: {
                "input": f"{row['question']}\n{lettered(row)}",
                "average": {"question_id": row["index"], "l2_category": "x", "score": 1.0},
            },
        ),
        (
            "MME-RealWorld-Lite",
            "mmerealworld_lite",
            lambda row: {
                "input": f"{row['question']} The choices are listed below:\n{lettered(row, '({}) {}')}\nSelect the best answer",
                "mme_realworld_score": {
                    "question_id": row["index"],
                    "category": "c",
                    "sub_category": "s",
                    "pred_answer": "A",
                    "answer": "A",
                },
            },
        ),
        (
            "TreeBench",
            "treebench",
            lambda row: {"input": f"{row['question']}\n{lettered(row)}", "treebench_score": {"question_id": row["index"], "score": 1.0}},
        ),
    ],
    ids=["HRBench4K", "VStarBench", "MMStar", "MME-RealWorld-Lite", "TreeBench"],
)
def test_lmms_eval_and_vlmevalkit_give_one_key_and_one_content(tmp_path: Path, dataset: str, task: str, form: Any) -> None:
    told = predictions(6)
    dump(told, folder(tmp_path) / f"{MODEL}_{dataset}.xlsx")
    ours = asked(read(READER, tmp_path / "outputs")[0])
    theirs = lmms(tmp_path, task, [form(row) for row in told])
    assert set(ours) == set(theirs) == {str(place) for place in range(6)}
    for key, question in ours.items():
        assert question["content_hash"] == theirs[key]["content_hash"]
        assert json.loads(question["options"]) == json.loads(theirs[key]["options"])
        if dataset == "HRBench4K":
            assert question["image_key"] == theirs[key]["image_key"] == question["content_hash"]


@pytest.mark.parametrize("dataset", ["BLINK", "SEEDBench_IMG", "ScienceQA_VAL", "MathVista_MINI", "MMMU_DEV_VAL"])
def test_elsewhere_the_content_joins_and_positions_do_not(tmp_path: Path, dataset: str) -> None:
    told = predictions(3, hint=["Look at the left.", None, None])
    dump(told, folder(tmp_path) / f"{MODEL}_{dataset}.tsv")
    ours = asked(read(READER, tmp_path / "outputs")[0])
    assert set(ours) == {f"vlmevalkit:{place}" for place in range(3)}
    hinted = [f"{row['hint']} {row['question']}" if row["hint"] else row["question"] for row in told]
    theirs = lmms(
        tmp_path, "blink", [{"input": f"{words}\n{lettered(row)}", "blink_acc": 1.0} for words, row in zip(hinted, told, strict=True)]
    )
    assert [one["content_hash"] for one in ours.values()] == [one["content_hash"] for one in theirs.values()]


BLINK = """
[benchmarks.BLINK]
aliases = ["blink"]
"""


@pytest.mark.parametrize(("dataset", "task"), [("VStarBench", "vstar_bench"), ("HRBench4K", "hrbench4k"), ("BLINK", "blink")])
def test_a_database_holds_a_question_of_both_frameworks_once(tmp_path: Path, dataset: str, task: str) -> None:
    """By its key where the data set has ids of its own, by its content elsewhere."""
    told = predictions(5)
    dump(told, folder(tmp_path) / f"{MODEL}_{dataset}.xlsx")
    dump(judged(told, [1, 0, 1, 0, 1]), folder(tmp_path) / f"{MODEL}_{dataset}_openai_result.xlsx")
    made: list[dict[str, Any]] = []
    for row in told:
        score = {"index": row["index"], "question_id": str(row["index"]), "score": 0.0, "gpt_score": 0.0, "category": "c"}
        metric = {"VStarBench": "vstar_overall_acc", "HRBench4K": "average", "BLINK": "blink_acc"}[dataset]
        made.append({"input": f"{row['question']}\n{lettered(row)}", metric: score})
    lmms(tmp_path, task, made)
    (tmp_path / "catalog.toml").write_text(BLINK)
    with tracker.open(f"sqlite:///{tmp_path}/t.db", tmp_path / "lake") as store:
        store.import_catalog(tmp_path / "catalog.toml")
        report = store.ingest(tmp_path / "outputs", tmp_path / "lmms")
        assert not report.rejected
        assert store.sql("select count(*), count(distinct question_id), count(distinct model) from answers").fetchall() == [(10, 5, 2)]
        right = "select count(*) from (select sum(correct::int) as n from answers group by question_id) where n = 1"
        assert store.sql(right).fetchall() == [(3,)]


def test_an_id_of_the_data_set_goes_before_the_index(tmp_path: Path) -> None:
    assert own_ids("MMMU_DEV_VAL")[0] == "id"
    dump(predictions(2, id=["validation_Art_1", "validation_Art_2"]), folder(tmp_path) / f"{MODEL}_MMMU_DEV_VAL.tsv")
    assert set(asked(read(READER, tmp_path)[0])) == {"validation_Art_1", "validation_Art_2"}


# ---- what Excel and pandas do to texts ---------------------------------------------------------


def test_texts_that_look_like_nothing_or_numbers_stay_texts(tmp_path: Path) -> None:
    told = predictions(8, prediction=["NA", "None", "nan", "001", "1e5", "True", "a\x0bb", "a\r\nb"])
    dump(told, folder(tmp_path) / f"{MODEL}_MMStar.xlsx")
    records, _, refusals = only(tmp_path)
    assert not refusals
    assert [one["response"] for one in records] == ["NA", "None", "nan", "001", "1e5", "True", "a\x0bb", "a\r\nb"]


def test_a_text_that_excel_cut_is_kept_and_reported(tmp_path: Path) -> None:
    told = predictions(4, prediction=["A", "x" * 40_000, "http://a.b/" + "y" * 3_000, "D"])
    dump(told, folder(tmp_path) / f"{MODEL}_MMStar.xlsx")
    records, _, refusals = only(tmp_path)
    assert [None if one["response"] is None else len(one["response"]) for one in records] == [1, 32_767, None, 1]
    assert [(one.line, "column prediction" in one.reason) for one in refusals] == [(3, True)]


def test_the_response_comes_from_the_predictions_since_judging_loses_it(tmp_path: Path) -> None:
    told = predictions(2, prediction=["None", "001"])
    dump(told, folder(tmp_path) / f"{MODEL}_MMStar.xlsx")
    lost = [{**row, "prediction": value} for row, value in zip(told, ["nan", 1], strict=True)]
    dump(judged(lost, [0, 1]), folder(tmp_path) / f"{MODEL}_MMStar_openai_result.xlsx")
    records, _, refusals = only(tmp_path)
    assert not refusals
    assert [(one["response"], one["correct"]) for one in records] == [("None", False), ("001", True)]


def test_an_option_that_became_nothing_keeps_the_letters_of_the_others(tmp_path: Path) -> None:
    dump(predictions(4, D=["x", "x", "x", None]), folder(tmp_path) / f"{MODEL}_MMStar.xlsx")
    batches, refusals = read(READER, tmp_path)
    assert not refusals
    last = asked(batches)["3"]
    assert (last["gold"], json.loads(last["options"])) == ("D", ["a cat 3", "a dog 3", "a bird 3", ""])


# ---- damage ------------------------------------------------------------------------------------


def test_a_file_cut_anywhere_is_refused_or_read(tmp_path: Path) -> None:
    for suffix in ("xlsx", "tsv", "json"):
        path = dump(predictions(30), folder(tmp_path / suffix) / f"{MODEL}_MMStar.{suffix}")
        whole = path.read_bytes()
        for size in [0, 1, 7, len(whole) // 3, len(whole) // 2, len(whole) - 40, len(whole) - 3]:
            path.write_bytes(whole[:size])
            for source in sources(READER, tmp_path / suffix):
                try:
                    parts = [*READER.read(source, Study.empty())]
                except InputError:
                    continue
                kept = [row for part in parts if isinstance(part, Batch) for row in part.records.to_pylist()]
                assert [row["question_key"] for row in kept] == [str(place) for place in range(len(kept))]
                states = {part.run.status for part in parts if isinstance(part, Batch)}
                assert len(kept) == 30 or any(isinstance(part, Refusal) for part in parts) or states == {"partial"}


def test_a_judged_file_that_cannot_be_read_costs_only_its_verdicts(tmp_path: Path) -> None:
    told = predictions(3)
    dump(told, folder(tmp_path) / f"{MODEL}_MMStar.xlsx")
    path = dump(judged(told, [1, 0, 0]), folder(tmp_path) / f"{MODEL}_MMStar_openai_result.xlsx")
    path.write_bytes(path.read_bytes()[:-30] + b"\0" * 30)
    records, last, refusals = only(tmp_path)
    assert [one["correct"] for one in records] == [None] * 3
    assert last.run.status in {"partial", "finished"}
    if last.run.status == "finished":
        assert not refusals


def test_verdicts_and_predictions_that_do_not_match_are_reported(tmp_path: Path) -> None:
    told = predictions(6)
    dump(told[:4], folder(tmp_path) / f"{MODEL}_MMStar.tsv")
    dump(judged(told[2:], [1, 0, 0, 0]), folder(tmp_path) / f"{MODEL}_MMStar_openai_result.tsv")
    records, _, refusals = only(tmp_path)
    assert [one["correct"] for one in records] == [None, None, True, False]
    assert [one.reason.partition(" (")[0] for one in refusals] == [
        "no verdict on 2 of 4 predictions, first on index 0",
        f"2 verdicts on questions that {MODEL}_MMStar.tsv does not have",
    ]


def test_rows_without_an_index_and_odd_values_cost_nothing_else(tmp_path: Path) -> None:
    told = predictions(5, index=[0, None, "x1", 3.0, 4.5], answer=["A", "B", None, ["A"], "Z"])
    dump(told, folder(tmp_path) / f"{MODEL}_AI2D_TEST.json")
    batches, refusals = read(READER, tmp_path)
    assert [one["question_key"] for one in rows(batches)] == ["vlmevalkit:0", "x1", "vlmevalkit:3", "4.5"] or refusals
    assert any("index" in one.reason for one in refusals)


def test_odd_files_never_stop_finding(tmp_path: Path) -> None:
    for name, data in {
        "a_MMStar.xlsx": b"PK\x03\x04" + b"\xff" * 50,
        "b_MMStar.tsv": b"\xff\xfe\x00\t\x00",
        "c_MMStar.json": b"[" * 100_000,
        "d_MMStar.json": b'[{"index": 1, "prediction": "' + b"x" * 70_000,
        "status.json": b'{"datasets": [1], "schema_version": 2}',
        "e_MMStar_acc.csv": b"\0\1\2",
        "0_1_2.pkl": b"",
        "broken": b"",
    }.items():
        (tmp_path / name).write_bytes(data)
    (tmp_path / "link_MMStar.xlsx").symlink_to(tmp_path / "nowhere")
    for source in sources(READER, tmp_path):
        with suppress(InputError):
            list(READER.read(source, Study.empty()))


def test_other_workbooks_are_left_to_others(tmp_path: Path) -> None:
    dump([{"name": "x", "value": 1}], tmp_path / "results.xlsx")
    dump([{"index": 1, "prediction": "A"}], tmp_path / "table.json")
    dump([{"split": "none", "Overall": 0.5}], tmp_path / "other_acc.csv")
    assert sources(READER, tmp_path) == []


def test_a_native_table_stays_one_whatever_it_is_called(tmp_path: Path) -> None:
    told = [{"question_id": str(one["index"]), "model": "other", "benchmark": "b", "correct": True} | one for one in predictions(2)]
    for name in ("x", "MMStar", "MMStar_openai_result"):
        dump(told, folder(tmp_path) / f"{MODEL}_{name}.tsv")
    assert sources(READER, tmp_path) == []


def test_files_that_only_begin_like_predictions_are_left_to_others(tmp_path: Path) -> None:
    place, told = folder(tmp_path), predictions(2)
    dump(told, place / f"{MODEL}_MMStar.tsv")
    row = {"question_id": "1", "model": "other", "benchmark": "b", "correct": True}
    left = {
        f"{MODEL}_MMStar{ending}"
        for ending in ("_native.jsonl", "_result.jsonl", ".jsonl", "_notes.csv", "_acc_native.csv", "_judge.csv", "_score.csv")
    }
    for name in left:
        if name.endswith(".jsonl"):
            (place / name).write_text(json.dumps(row) + "\n")
        else:
            dump([row], place / name)
    (place / f"{MODEL}_MMStar_openai_result.json").write_text("{}")
    (place / f"{MODEL}_MMStar_tmp.json").write_text("{}")
    (source,) = sources(READER, tmp_path)
    taken = {path.name for path in (*source.files, *source.claims)}
    assert not taken & left
    assert {f"{MODEL}_MMStar_openai_result.json", f"{MODEL}_MMStar_tmp.json"} <= taken


def test_links_and_folders_that_cannot_be_looked_at_never_stop_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = dump(predictions(2), folder(tmp_path) / f"{MODEL}_MMStar.tsv")
    model = path.parent.parent
    (model / path.name).symlink_to(path)
    (model / "long.xlsx").symlink_to(f"{EVAL_ID}/{'x' * 300}")
    here = Folder(model, sorted(one.name for one in model.iterdir() if one.is_symlink()), [EVAL_ID])
    assert len(READER.find(here, Study.empty())) == 1

    def refused(*_: Any, **__: Any) -> Any:
        raise PermissionError

    monkeypatch.setattr(type(tmp_path), "iterdir", refused)
    assert READER.find(here, Study.empty()) == []


# ---- real files --------------------------------------------------------------------------------


def test_real_predictions_on_mmstar() -> None:
    path = samples("vlmevalkit", "mmstar", "eval", "submits", "llava_next_yi_34b_MMStar.xlsx")
    header, *told = by_hand(path)
    place = {name: at for at, name in enumerate(header)}
    batches, refusals = read(READER, path.parent)
    assert not refusals
    assert {(one.run.model, one.run.benchmark) for one in batches} == {("llava_next_yi_34b", "MMStar")}
    records, questions = list(rows(batches)), asked(batches)
    assert len(records) == len(told) == 1500
    assert Counter(one["response"] for one in records) == Counter(str(row[place["prediction"]]) for row in told)
    assert {key: one["gold"] for key, one in questions.items()} == {str(row[place["index"]]): row[place["answer"]] for row in told}
    assert Counter(one["subcategory"] for one in questions.values()) == Counter(row[place["l2_category"]] for row in told)
    assert all(one["correct"] is None for one in records)


def test_real_totals() -> None:
    root = samples("vlmevalkit", "zenjieli")
    batches, refusals = read(READER, root)
    assert not refusals
    found = {(one.run.model, one.run.benchmark): {score.metric: score.value for score in one.scores} for one in batches}
    assert set(found) == {
        ("InternVL2-2B", "HallusionBench"),
        ("InternVL2-2B", "MME"),
        ("InternVL2-2B", "POPE"),
        ("Qwen2-VL-2B-Instruct", "MMStar"),
        ("Qwen2-VL-7B-Instruct", "MMStar"),
    }
    numbers = 0
    for (model, dataset), scores in found.items():
        (path,) = (root / model).glob(f"*_{dataset}_*.csv")
        with path.open(encoding="utf-8") as stream:
            lines = list(csv.DictReader(stream))
        values = [float(value) for line in lines for name, value in line.items() if name != "split"]
        assert sorted(one for one in scores.values() if one is not None) == sorted(values)
        numbers += len(values)
    assert numbers == 12 * 3 + 16 + 16 + 7 + 7
    assert found["Qwen2-VL-7B-Instruct", "MMStar"]["accuracy"] == 0.596
    assert found["Qwen2-VL-7B-Instruct", "MMStar"]["accuracy.math"] == 0.584
    assert found["InternVL2-2B", "HallusionBench"]["aAcc"] == 58.99053627760252
    assert found["InternVL2-2B", "POPE"]["acc.random"] == 88.0
    assert found["InternVL2-2B", "MME"]["perception"] == 1443.7399959983993


def test_a_real_aborted_run_is_refused() -> None:
    (source,) = sources(READER, samples("vlmevalkit", "molmo_act_partial"))
    with pytest.raises(InputError, match="never loaded"):
        list(READER.read(source, Study.empty()))
