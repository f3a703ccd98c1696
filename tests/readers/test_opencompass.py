"""OpenCompass: folders that its own output handlers wrote, real folders, parts and leftovers, and damage."""

from __future__ import annotations

import csv
import json
import re
import shutil
from math import exp, log
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import samples
from tests.readers.harness import INGEST, matches, read, rows, sources, variants
from tracker.batch import Batch, Refusal
from tracker.errors import InputError
from tracker.readers import opencompass_config as config
from tracker.readers import opencompass_layout as layout
from tracker.readers.base import Folder
from tracker.readers.opencompass import READER, UNFINISHED
from tracker.readers.opencompass_layout import judge_of, work_of
from tracker.readers.opencompass_prompt import asked, beginning, choices
from tracker.study import Study

if TYPE_CHECKING:
    from collections.abc import Iterator

FIXTURES = INGEST / "opencompass"
STAMP = "20250101_120000"


@pytest.mark.parametrize("variant", variants("opencompass"))
def test_what_its_handlers_wrote_is_read_as_written_down(variant: str) -> None:
    found, expected = matches(READER, variant)
    assert found == expected


def _json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def _write(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value, indent=4), encoding="utf-8")
    return path


def _of(batches: list[Batch], benchmark: str) -> list[Batch]:
    return [batch for batch in batches if batch.run.benchmark == benchmark]


def _real() -> tuple[Path, list[Batch]]:
    root = samples("opencompass")
    batches, refusals = read(READER, root)
    assert not refusals
    return root, batches


def test_accuracy_of_real_perplexities_is_the_stated_one() -> None:
    root, batches = _real()
    compared = 0
    for path in sorted(root.rglob("predictions/*/lukaemon_*.json")):
        raw = _json(path)
        stated = _json(root / str(path.relative_to(root)).replace("/predictions/", "/results/"))["accuracy"]
        (batch,) = _of(batches, path.stem)
        found = batch.records.to_pylist()
        assert len(found) == len(raw)
        assert 100 * sum(row["correct"] for row in found) / len(found) == pytest.approx(stated)
        assert [(score.metric, score.value, score.n) for score in batch.scores] == [("accuracy", stated, len(raw))]
        for row, source in zip(found, raw.values(), strict=True):
            means = [source[f"label: {one}"]["PPL"] for one in "ABCD"]
            assert row["prediction"] == row["logit_prediction"] == source["prediction"] == "ABCD"[means.index(min(means))]
            assert row["correct"] == (source["prediction"] == source["gold"])
        compared += len(found)
    assert compared == 563


def test_log_likelihoods_of_real_perplexities_are_sums_over_whole_tokens() -> None:
    root, batches = _real()
    path = next(root.rglob("predictions/*/lukaemon_mmlu_astronomy.json"))
    (batch,) = _of(batches, path.stem)
    assert batch.run.settings["option_scores"] == "log-likelihood of the prompt"
    for row, source in zip(batch.records.to_pylist(), _json(path).values(), strict=True):
        entries = [source[f"label: {one}"] for one in "ABCD"]
        tokens = [one["BPB"] / one["PPL"] * len(one["testing input"].encode()) for one in entries]
        assert tokens == pytest.approx([round(one) for one in tokens], abs=1e-9)
        sums = [-one["PPL"] * count for one, count in zip(entries, tokens, strict=True)]
        assert json.loads(row["option_scores"]) == pytest.approx(sums)
        weights = [exp(one - max(sums)) for one in sums]
        assert row["p_gold"] == pytest.approx(weights["ABCD".index(source["gold"])] / sum(weights))


def test_questions_of_real_prompts_are_told_from_instructions_and_examples() -> None:
    _, batches = _real()
    (mmlu,) = _of(batches, "lukaemon_mmlu_abstract_algebra")
    assert mmlu.questions is not None
    first = mmlu.questions.to_pylist()[0]
    assert first["text"] == "Find the degree for the given field extension Q(sqrt(2), sqrt(3), sqrt(18)) over Q."
    assert (first["options"], first["gold"], first["key"]) == ('["0","4","2","6"]', "B", "opencompass:0")
    told = [row for batch in _of(batches, "commonsense_qa") if batch.questions is not None for row in batch.questions.to_pylist()]
    assert told[0]["text"].startswith("A revolving door is convenient for two direction travel")
    assert told[0]["options"] == '["bank","library","department store","mall","new york"]'
    assert len(told) == 1221
    assert sum(row["n_options"] == 5 for row in told) == 1221
    assert not [row for row in told if "Answer:" in row["text"]]


def test_real_generated_answers_without_details_stay_unscored() -> None:
    root, batches = _real()
    found = [row for batch in _of(batches, "commonsense_qa") for row in batch.records.to_pylist()]
    raw = _json(next(root.rglob("predictions/*/commonsense_qa.json")))
    assert [row["response"] for row in found] == [one["prediction"] for one in raw.values()]
    assert {(row["correct"], row["score"], row["score_rule"]) for row in found} == {(None, None, None)}
    (score,) = _of(batches, "commonsense_qa")[0].scores
    assert (score.metric, score.value, score.n) == ("accuracy", 70.51597051597052, 1221)


def test_the_real_summary_gives_what_has_no_files_of_its_own() -> None:
    root, batches = _real()
    path = next(root.rglob("MMLU/**/summary_*.csv"))
    with path.open(newline="") as stream:
        stated = {row[0]: float(row[4]) for row in list(csv.reader(stream))[1:]}
    alone = {batch.run.benchmark: batch.scores[0].value for batch in batches if not batch.records.num_rows}
    detailed = {"lukaemon_mmlu_abstract_algebra", "lukaemon_mmlu_astronomy", "lukaemon_mmlu_philosophy"}
    assert alone == {name: value for name, value in stated.items() if name not in detailed}
    assert len(alone) == 54
    assert {batch.run.model for batch in batches} == {"lesliehd_Mistral-7B-Instruct-v0.2-16-bit-quantized"}


def test_every_real_file_belongs_to_one_source() -> None:
    root = samples("opencompass").resolve()
    found = [path for source in sources(READER, root) for path in (*source.files, *source.claims)]
    assert sorted(found) == sorted(path for path in root.rglob("*") if path.is_file())
    assert len(found) == len(set(found)) == 12


def _ppl_source() -> Path:
    return FIXTURES / "ppl" / "default" / STAMP


def test_configuration_comes_from_the_config_which_is_never_run() -> None:
    marker = Path("/tmp/trackr_was_run")  # noqa: S108 - the fixture names it
    marker.unlink(missing_ok=True)
    batches, _ = read(READER, FIXTURES / "ppl")
    assert not marker.exists()
    (run,) = [batch.run for batch in _of(batches, "sums_ppl")]
    assert (run.model, run.configuration.precision, run.configuration.few_shot, run.configuration.max_new_tokens) == (
        "tiny-4bit",
        "4bit",
        1,
        None,
    )
    assert run.settings["model_config"]["path"] == "org/tiny"
    assert "sk-secret" not in json.dumps(run.settings)
    assert run.settings["stamp"] == STAMP
    assert {batch.run.model for batch in _of(batches, "even_ll")} == {"org/small-7b"}
    (entry, dataset) = config.entries([_ppl_source() / "configs" / f"{STAMP}_123.py"], "tiny-4bit", "sums_gen")
    told = config.configuration(entry, dataset, generates=True, shots=None)
    assert (told.few_shot, told.max_new_tokens) == (0, 64)


@pytest.mark.parametrize(
    "text", ["", "(", "models = [", "models = 3", "models = [dict(1)]", "x" * 100, "\0", "models = [-'a', f'{1}', *a, b'x']", "(" * 9999]
)
def test_odd_configs_say_nothing(tmp_path: Path, text: str) -> None:
    assert config.entries([_write(tmp_path / "c.py", text), tmp_path / "absent.py"], "m", "d") == ({}, {})


def test_models_without_an_abbreviation_are_named_by_what_is_certain() -> None:
    derived = "opencompass.models.huggingface.HuggingFace_org_Some_7B"
    assert config.model_name(derived, {}) == "org_Some_7B"
    assert config.model_name(derived, {"path": "org/Some_7B"}) == "org/Some_7B"
    assert config.model_name("Qwen2.5_7B", {"path": "x"}) == "Qwen2.5_7B"
    assert config.model_name("llama.cpp_7B", {}) == "llama.cpp_7B"


def test_perplexities_without_token_counts_stay_means() -> None:
    batches, refusals = read(READER, FIXTURES / "ppl")
    assert not refusals
    (batch,) = _of(batches, "sums_details")
    assert batch.run.settings["option_scores"] == "mean log-likelihood per token of the prompt"
    found = batch.records.to_pylist()
    means = [1.5, 1.55, 1.6, 1.54]
    weights = [exp(-one) for one in means]
    assert json.loads(found[0]["option_scores"]) == pytest.approx([-one for one in means])
    assert found[0]["p_gold"] == pytest.approx(weights[0] / sum(weights))
    assert (found[2]["option_scores"], found[2]["p_gold"], found[2]["logit_prediction"]) == (None, None, None)
    assert found[2]["score_rule"] == "details.correct"


def test_probabilities_of_options_become_their_logarithms() -> None:
    (batch,) = _of(read(READER, FIXTURES / "ppl")[0], "clp")
    first, second = batch.records.to_pylist()
    assert json.loads(first["option_scores"]) == pytest.approx([log(0.25), log(0.75)])
    assert (first["p_gold"], first["prediction"], first["correct"]) == (pytest.approx(0.25), "B", None)
    assert (second["p_gold"], second["prediction"]) == (pytest.approx(0.9), "A")


def test_equality_is_not_the_rule_where_the_stated_accuracy_is_another(tmp_path: Path) -> None:
    folder = tmp_path / STAMP
    shutil.copytree(_ppl_source(), folder)
    _write(folder / "results" / "tiny-4bit" / "sums_ppl.json", {"accuracy": 17.0})
    batches, refusals = read(READER, folder)
    assert {row["correct"] for row in rows(_of(batches, "sums_ppl"))} == {None}
    assert [("accuracy is 17.0, but 50.0000 %" in one.reason, Path(one.file).name) for one in refusals] == [(True, "sums_ppl.json")]


def test_repeated_questions_are_repetitions() -> None:
    (batch,) = _of(read(READER, FIXTURES / "gen")[0], "twice")
    found = [(row["question_key"], row["repetition"], row["correct"]) for row in batch.records.to_pylist()]
    assert found == [(f"opencompass:{i % 3}", i // 3, i < 3) for i in range(6)]


def test_an_answer_that_the_writer_dropped_comes_from_the_details() -> None:
    (batch,) = _of(read(READER, FIXTURES / "gen")[0], "sums_gen")
    raw = _json(FIXTURES / "gen" / "20250102_080000" / "predictions" / "chat-model" / "sums_gen.json")
    assert [("gold" in row) for row in raw.values()] == [True, True, False, False, True, True]
    assert batch.questions is not None
    assert batch.questions["gold"].to_pylist() == ["A", "B", "0", "", "C", "D"]
    found = batch.records.to_pylist()
    assert [row["generated_tokens"] for row in found] == [4, 5, 6, 7, 8, 9]
    assert {row["prompt_tokens"] for row in found} == {20}
    assert found[0]["response"] == "The answer is A."


def test_a_judge_gives_further_scores_and_no_credit() -> None:
    (batch,) = _of(read(READER, FIXTURES / "gen")[0], "essay")
    assert [(row["correct"], row["score"]) for row in batch.records.to_pylist()] == [(None, None)] * 2
    assert batch.record_scores is not None
    assert [(row["scorer"], row["score"]) for row in batch.record_scores.to_pylist()] == [("score (gpt-x)", 7.0), ("score (gpt-x)", 8.0)]
    assert [score.metric for score in batch.scores] == ["score (judged by gpt-x)"]
    assert judge_of("a_b_judged-by--GPT4") == ("a_b", "GPT4")
    assert judge_of("plain") == ("plain", None)


def test_parts_of_a_split_task_are_one_run_and_names_that_end_in_numbers_are_not() -> None:
    batches, refusals = read(READER, FIXTURES / "parts")
    assert {batch.run.benchmark for batch in batches} == {"split", "level_0", "level_1", "whole", "gap"}
    (split,) = _of(batches, "split")
    assert split.records["question_key"].to_pylist() == [f"opencompass:{i}" for i in range(5)]
    assert split.records["response"].to_pylist() == ["0", "1", "2", "3", "4"]
    assert split.records["correct"].to_pylist() == [True, True, True, False, True]
    assert split.run.status == "finished"
    (whole,) = _of(batches, "whole")
    assert whole.records.num_rows == 2
    (gap,) = _of(batches, "gap")
    assert (gap.records.num_rows, gap.run.status) == (1, "partial")
    assert [Path(one.file).name for one in refusals] == ["gap_2.json"]
    claims = {path.name for source in sources(READER, FIXTURES / "parts") for path in source.claims}
    assert claims == {"whole_0.json", "whole_1.json"}


def test_unfinished_work_is_partial_and_says_why() -> None:
    batches, refusals = read(READER, FIXTURES / "unfinished")
    found = {
        batch.run.benchmark: (batch.run.status, batch.run.status_reason, batch.records.num_rows)
        for batch in batches
        if batch.records.num_rows
    }
    assert found["not_evaluated"] == ("partial", UNFINISHED, 2)
    assert found["failed"] == ("partial", "the evaluation failed: predictions and references have different length", 2)
    assert found["cut"] == ("partial", "inference was cut off (tmp_cut.jsonl)", 2)
    assert found["done"] == ("finished", None, 1)
    assert found["only_results"] == ("finished", None, 2)
    assert [(Path(one.file).name, one.line) for one in refusals] == [("tmp_cut.jsonl", 3)]


@pytest.mark.parametrize("below", ["predictions/tiny-4bit", "results/tiny-4bit", "predictions", "results"])
def test_a_folder_of_a_work_directory_gives_the_same_runs(below: str) -> None:
    whole = {source.uri: source for source in sources(READER, _ppl_source())}
    part = sources(READER, _ppl_source() / below)
    assert part
    for source in part:
        assert (source.files, source.mapping) == (whole[source.uri].files, whole[source.uri].mapping)


@pytest.mark.parametrize(
    "content", [{"accuracy": 1}, {"0": {"origin_prompt": "Q", "prediction": "A", "gold": "A"}}], ids=["others", "ours"]
)
def test_folders_asked_about_one_by_one_open_each_file_a_few_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: Any) -> None:
    for number in range(30):
        _write(tmp_path / "predictions" / f"m{number}" / "d.json", content)
        _write(tmp_path / "results" / f"m{number}" / "d.json", {"accuracy": 1})
    opened: list[Path] = []

    def head(path: Path) -> bytes:
        opened.append(path)
        return path.read_bytes()

    monkeypatch.setattr(layout, "_head", head)
    for path in sorted(tmp_path.glob("*/*")):
        found = READER.find(Folder(path, ["d.json"]), Study.empty())
        assert len(found) == ("0" in content)
    assert len(opened) <= 6 * 30


def test_a_judge_s_folder_named_alone_gives_the_same_run() -> None:
    (path,) = FIXTURES.rglob("*_judged-by--*")
    (source,) = READER.find(Folder(path.resolve(), sorted(one.name for one in path.iterdir())), Study.empty())
    whole = {one.uri: one for one in sources(READER, FIXTURES)}
    assert (source.files, source.mapping) == (whole[source.uri].files, whole[source.uri].mapping)


def test_a_single_file_is_found() -> None:
    path = (_ppl_source() / "results" / "tiny-4bit" / "sums_ppl.json").resolve()
    (source,) = READER.find(Folder(path.parent, [path.name]), Study.empty())
    assert [one.parent.parent.name for one in source.files[:2]] == ["predictions", "results"]


def test_nothing_in_the_mapping_depends_on_the_place() -> None:
    for source in sources(READER, FIXTURES):
        assert str(FIXTURES) not in json.dumps(source.mapping)


def test_names_of_models_may_be_folders(tmp_path: Path) -> None:
    _write(tmp_path / "predictions" / "org" / "m" / "d.json", {"0": {"origin_prompt": "Q", "prediction": "A", "gold": "A"}})
    _write(tmp_path / "predictions" / "org" / ".ipynb_checkpoints" / "d.json", {"0": {"origin_prompt": "Q", "prediction": "A"}})
    batches, _ = read(READER, tmp_path)
    assert [batch.run.model for batch in batches] == ["org/m"]


@pytest.mark.parametrize(
    "files",
    [
        {"predictions/m/d.jsonl": '{"index": 0, "model": "m"}\n', "reviews/m/d.jsonl": "{}\n"},
        {"results/org/m/results_2025.json": {"results": {}, "config_general": {}}},
        {"results/m/d.json": {"accuracy": 1}},
        {"predictions/a.json": {"0": {"origin_prompt": "x"}}},
        {"predictions/m/d.json": {"a": 1}, "results/m/d.json": [1]},
        {"predictions/m/d.json": "not json", "results/m/d.json": ""},
    ],
)
def test_folders_of_others_are_left_alone(tmp_path: Path, files: dict[str, Any]) -> None:
    for name, value in files.items():
        _write(tmp_path / name, value)
    assert not sources(READER, tmp_path)


@pytest.mark.parametrize(
    "value",
    [
        {"details": [{"answer": "x"}], "n": 3},
        {"details": [{"prompt": "x", "model": "m"}]},
        {"details": {"0": {"text": "x"}}, "name": "x"},
        {"details": [{"pred": "a"}]},
    ],
    ids=str,
)
def test_details_of_others_make_no_work_directory(tmp_path: Path, value: Any) -> None:
    _write(tmp_path / "results" / "a" / "x.json", value)
    assert not sources(READER, tmp_path)
    assert not sources(READER, tmp_path / "results" / "a")


def test_results_of_others_beside_details_are_left_alone(tmp_path: Path) -> None:
    details = {"type": "GEN", "0": {"prompt": "Q", "predictions": "A", "references": "A", "correct": True}}
    _write(tmp_path / "results" / "a" / "x.json", {"accuracy": 100.0, "details": details})
    _write(tmp_path / "results" / "b" / "z.json", {"details": details, "accuracy": 100})
    _write(tmp_path / "results" / "a" / "y.json", {"accuracy": 0.5, "task": "other"})
    found = sources(READER, tmp_path)
    assert {path.name for one in found for path in (*one.files, *one.claims)} == {"x.json", "z.json"}
    assert [(one.files, one.mapping) for one in sources(READER, tmp_path / "results")] == [(one.files, one.mapping) for one in found]


def test_prompts_are_taken_apart_only_where_it_is_certain() -> None:
    one = "Which?\nA. red\nB. blue\nAnswer:"
    assert asked(one) == ("Which?", ["red", "blue"])
    assert asked([{"role": "HUMAN", "prompt": "ex"}, {"role": "BOT", "prompt": "A"}, {"role": "HUMAN", "prompt": one}]) == (
        "Which?",
        ["red", "blue"],
    )
    assert asked([{"role": "user", "content": "Say."}]) == ("Say.", None)
    assert asked("Old?\nA. x\nB. y\nAnswer: B\n\nNew?\nA. z\nB. w\nAnswer:") == ("New?", ["z", "w"])
    assert asked("Old?\nA. x\nB. y\nI think B\n\nNew?\nA. z\nB. w\nAnswer:").options is None
    assert asked("Tell me.") == ("Tell me.", None)
    assert (asked(None).text, asked([]).text, asked(["x"]).text) == (None, None, '["x"]')
    assert choices(["It is a dog.", "It is a day."], "") == ("It is a", ["dog.", "day."])
    assert choices(["Hi: Q?\nA. x\nB. y\nAnswer: A", "Hi: Q?\nA. x\nB. y\nAnswer: B"], "Hi: ") == ("Q?", ["x", "y"])
    assert choices(["yes", "no"], "").text is None
    assert beginning([f"Do it.\n\nQ{i}" for i in range(5)]) == "Do it.\n\n"
    assert beginning([f"Do it.\n\nQ{i}" for i in range(4)]) == ""
    assert beginning(["Do it.\nQ"] * 9) == ""


DETAILS = [{"pred": "1", "answer": "1", "correct": True}, {"pred": "2", "answer": "1", "correct": False}]


@pytest.mark.parametrize(
    ("details", "expected"),
    [
        (DETAILS, [True, False]),
        ({"type": "GEN", "0": DETAILS[0], "1": DETAILS[1]}, [True, False]),
        ({"type": "GEN", "1": {"is_correct": 1}}, [None, True]),
        ([{"correct": 0.5}, {"correct": "True"}], [None, True]),
        ([{"correct": 85.0}, {"cascade_correct": [False]}], [None, False]),
        ([{"pred": 1}, {"score": 9}], [None, None]),
        (DETAILS[:1], [None, None]),
        ([*DETAILS, {}], [None, None]),
        ([None, 3], [None, None]),
        ({"a": {"correct": True}}, [None, None]),
        ("x", [None, None]),
    ],
    ids=str,
)
def test_details_of_every_kind(tmp_path: Path, details: Any, expected: list[bool | None]) -> None:
    _write(tmp_path / "predictions" / "m" / "d.json", {str(i): {"origin_prompt": f"Q{i}", "prediction": str(i)} for i in range(2)})
    _write(tmp_path / "results" / "m" / "d.json", {"accuracy": 50.0, "details": details})
    batches, refusals = read(READER, tmp_path)
    assert [row["correct"] for row in rows(batches)] == expected
    assert len(refusals) == (isinstance(details, list) and len(details) != 2)
    assert batches[0].run.status == "finished"


def test_scores_are_kept_on_the_scale_of_the_file(tmp_path: Path) -> None:
    _write(tmp_path / "predictions" / "m" / "d.json", {"0": {"origin_prompt": "Q", "prediction": "A"}})
    stated = (
        '{"accuracy": 70.5, "f1": 0.5, "parts": {"a": 1, "b": "x"}, "name": "x", "ok": true, "bad": NaN, "type": "GEN", "details": null}'
    )
    _write(tmp_path / "results" / "m" / "d.json", stated)
    (batch,) = read(READER, tmp_path)[0]
    assert [(one.metric, one.value, one.special) for one in batch.scores] == [
        ("accuracy", 70.5, None),
        ("f1", 0.5, None),
        ("parts.a", 1.0, None),
        ("bad", None, "nan"),
    ]


@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.6, 0.9, 0.99])
def test_predictions_that_are_cut_off_keep_their_whole_rows(tmp_path: Path, share: float) -> None:
    folder = tmp_path / STAMP
    shutil.copytree(_ppl_source(), folder)
    path = folder / "predictions" / "tiny-4bit" / "sums_ppl.json"
    whole = list(rows(_of(read(READER, folder)[0], "sums_ppl")))
    raw = path.read_bytes()
    path.write_bytes(raw[: int(len(raw) * share)])
    kept = len(re.findall(rb"^    \},\n", path.read_bytes(), re.MULTILINE))
    batches, refusals = read(READER, folder)
    assert [Path(one.file).name for one in refusals] == ["sums_ppl.json"]
    found = _of(batches, "sums_ppl")
    assert {batch.run.status for batch in found} == {"partial"}
    names = ("question_key", "correct", "prediction", "logit_prediction", "option_scores")
    assert [[row[name] for name in names] for row in rows(found)] == [[row[name] for name in names] for row in whole[:kept]]
    assert [score.value for batch in found for score in batch.scores] == [50.0]


@pytest.mark.parametrize("content", ["version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "", "[1]", "{", "\xff\xfe"])
def test_results_that_cannot_be_read_are_refused_and_predictions_go_in(tmp_path: Path, content: str) -> None:
    folder = tmp_path / STAMP
    shutil.copytree(_ppl_source(), folder)
    _write(folder / "results" / "tiny-4bit" / "sums_ppl.json", content)
    batches, refusals = read(READER, folder)
    assert [Path(one.file).name for one in refusals] == ["sums_ppl.json"]
    found = _of(batches, "sums_ppl")
    assert [(batch.run.status, batch.run.status_reason, batch.records.num_rows) for batch in found] == [
        ("partial", "the result file is damaged", 6)
    ]


def test_details_stand_in_for_predictions_that_are_lost(tmp_path: Path) -> None:
    folder = tmp_path / STAMP
    shutil.copytree(_ppl_source(), folder)
    whole = list(rows(_of(read(READER, folder)[0], "sums_details")))
    (folder / "predictions" / "tiny-4bit" / "sums_details.json").unlink()
    lost = list(rows(_of(read(READER, folder)[0], "sums_details")))
    names = ("question_key", "correct", "prediction", "logit_prediction", "p_gold")
    assert [[row[name] for name in names] for row in lost] == [[row[name] for name in names] for row in whole]


def test_nothing_usable_is_an_error_in_one_line(tmp_path: Path) -> None:
    _write(tmp_path / "predictions" / "m" / "good.json", {"0": {"origin_prompt": "Q", "prediction": "A"}})
    _write(tmp_path / "predictions" / "m" / "bad.json", "version https://git-lfs.github.com/spec/v1\n")
    (bad,) = [source for source in sources(READER, tmp_path) if "bad" in source.uri]
    with pytest.raises(InputError) as caught:
        list(READER.read(bad, Study.empty()))
    assert "\n" not in str(caught.value)


def test_odd_predictions_take_no_neighbour_with_them(tmp_path: Path) -> None:
    good = {"origin_prompt": "Q", "prediction": "A"}
    odd = {
        "0": good,
        "x": good,
        "-1": good,
        "2": None,
        "3": {"label: A": 3, "label: B": {"PPL": "x"}},
        "4": {"prediction": {"prediction": "B"}},
    }
    _write(tmp_path / "predictions" / "m" / "d.json", odd)
    batches, refusals = read(READER, tmp_path)
    assert [row["question_key"] for row in rows(batches)] == ["opencompass:0", "opencompass:3", "opencompass:4"]
    assert [one.reason.split(":")[0] for one in refusals] == ["prediction 'x'", "prediction '-1'", "prediction '2'"]


def test_a_summary_with_bad_cells_keeps_the_good_ones(tmp_path: Path) -> None:
    table = "dataset,version,metric,mode,m,n\na,1,accuracy,gen,50.00,x\nb,1,-,gen,-,nan\n\nc\n"
    _write(tmp_path / "summary" / "summary_20250101_000000.csv", table)
    _write(tmp_path / "summary" / "summary_20240101_000000.csv", table)
    _write(tmp_path / "results" / "m" / "z.json", {"accuracy": 1.0})
    batches, refusals = read(READER, tmp_path)
    found = {(batch.run.model, batch.run.benchmark): [(one.metric, one.value, one.special) for one in batch.scores] for batch in batches}
    assert found == {("m", "z"): [("accuracy", 1.0, None)], ("m", "a"): [("accuracy", 50.0, None)], ("n", "b"): [("-", None, "nan")]}
    assert [("a, accuracy" in one.reason) for one in refusals] == [True]
    assert work_of(tmp_path / "absent") is None


def _mutations(value: Any) -> Iterator[tuple[Any, Any, Any]]:
    """Every place of the first entries: (container, key, value)."""
    if isinstance(value, dict | list):
        for key, one in list(value.items() if isinstance(value, dict) else enumerate(value))[:12]:
            yield value, key, one
            yield from _mutations(one)


@pytest.mark.parametrize("replacement", [None, 7, "x", [], {}, [None], {"a": None}, -1.5, 1e400])
@pytest.mark.parametrize("name", ["sums_ppl", "sums_details", "even_ll", "clp"])
def test_any_value_may_be_anything(tmp_path: Path, replacement: Any, name: str) -> None:
    folder = tmp_path / STAMP
    shutil.copytree(_ppl_source(), folder)
    for path in [*folder.rglob(f"predictions/*/{name}.json"), *folder.rglob(f"results/*/{name}.json")]:
        document = _json(path)
        if path.parent.parent.name == "predictions":
            document = dict(list(document.items())[:2])
        for container, key, old in list(_mutations(document)):
            container[key] = replacement
            _write(path, document)
            container[key] = old
            for source in sources(READER, folder):
                if name in source.uri:
                    try:
                        parts = list(READER.read(source, Study.empty()))
                    except InputError:
                        continue
                    assert all(isinstance(part, Batch | Refusal) for part in parts)
        _write(path, document)
