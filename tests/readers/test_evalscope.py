"""EvalScope: our own folders of several versions, output of its real writer (v1_14_writer: 1.14.1 with its own mock model), real files, damage."""

from __future__ import annotations

import json
import shutil
import time
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.conftest import samples
from tests.readers.harness import INGEST, matches, read, rows, sources, variants
from tracker.batch import Batch, Refusal
from tracker.errors import InputError
from tracker.readers.base import Folder
from tracker.readers.evalscope import READER
from tracker.readers.evalscope_layout import read_config, split_name
from tracker.readers.evalscope_prompt import LONGEST, split_choices, template_of
from tracker.readers.evalscope_report import is_share, says_correct
from tracker.readers.evalscope_rows import Subset
from tracker.study import Study

if TYPE_CHECKING:
    from collections.abc import Callable

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@pytest.mark.parametrize("variant", variants("evalscope"))
def test_every_version_is_read_as_written_down(variant: str) -> None:
    found, expected = matches(READER, variant)
    assert found == expected


# ---- real files --------------------------------------------------------------------------------


def test_real_accuracies_are_those_of_the_raw_lines_and_of_the_reports() -> None:
    root = samples("evalscope")
    batches, refusals = read(READER, root)
    assert not refusals
    raw: dict[str, list[float]] = defaultdict(list)
    latency: dict[str, list[float]] = defaultdict(list)
    tokens: dict[str, int] = defaultdict(int)
    for path in sorted((root / "qwen-plus/reviews/qwen-plus").glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").split("\n"):
            if line:
                value = json.loads(line)["sample_score"]["score"]["value"]
                raw[path.stem].append(value.get("acc", value.get("prompt_level_strict")))
        for line in (root / "qwen-plus/predictions/qwen-plus" / path.name).read_text(encoding="utf-8").split("\n"):
            if line:
                output = json.loads(line)["model_output"]
                latency[path.stem].append(output["perf_metrics"]["latency"])
                tokens[path.stem] += output["usage"]["output_tokens"]
    files = {
        "gpqa_diamond": ["gpqa_diamond_default"],
        "gsm8k": ["gsm8k_main"],
        "ifeval": ["ifeval_default"],
        "iquiz": ["iquiz_EQ", "iquiz_IQ"],
    }
    by_benchmark: dict[str, list[Batch]] = defaultdict(list)
    for batch in batches:
        by_benchmark[str(batch.run.benchmark)].append(batch)
    assert set(by_benchmark) == set(files)
    for benchmark, parts in by_benchmark.items():
        wanted = [value for name in files[benchmark] for value in raw[name]]
        found = list(rows(parts))
        assert len(found) == len(wanted) == (20 if benchmark == "iquiz" else 10)
        assert sum(row["correct"] for row in found) == sum(wanted)
        stated = json.loads((root / f"qwen-plus/reports/qwen-plus/{benchmark}.json").read_text(encoding="utf-8"))
        assert sum(row["correct"] for row in found) / len(found) == pytest.approx(stated["score"], abs=1e-4)
        assert sum(row["latency_s"] for row in found) == pytest.approx(sum(value for name in files[benchmark] for value in latency[name]))
        assert sum(row["generated_tokens"] for row in found) == sum(tokens[name] for name in files[benchmark])
        assert {(part.run.model, part.run.status) for part in parts} == {("qwen-plus", "finished")}
        assert parts[0].scores[0].value == stated["metrics"][0]["score"]


def test_real_questions_come_without_template_and_shots() -> None:
    batches, _ = read(READER, samples("evalscope"))
    questions = {
        f"{batch.run.benchmark} {row['key']}": row
        for batch in batches
        if batch.questions is not None
        for row in batch.questions.to_pylist()
    }
    robe = questions["gsm8k evalscope:main/1"]
    assert robe["text"].startswith("A robe takes 2 bolts")
    assert robe["text"].endswith("does it take?")
    muon = next(row for row in questions.values() if "for a muon along" in row["text"])
    assert json.loads(muon["options"])[1].startswith("(\\cos(\\theta), e^{i\\phi}")
    assert sum(row["n_options"] == 4 for row in questions.values()) >= 25
    assert {row["category"] for row in questions.values() if row["key"].startswith(("evalscope:EQ", "evalscope:IQ"))} == {"EQ", "IQ"}


# ---- layout ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stem", "known", "head", "expected"),
    [
        ("gpqa_diamond_default", ["gpqa", "gpqa_diamond"], b"", ("gpqa_diamond", "default")),
        ("mmlu_abstract_algebra", ["mmlu"], b"", ("mmlu", "abstract_algebra")),
        ("mmlu", ["mmlu"], b"", ("mmlu", "default")),
        ("arc_ARC-Easy", [], b'{"subset_name": "ARC-Easy"}', ("arc", "ARC-Easy")),
        ("mmlu_abstract_algebra", [], b"", ("mmlu_abstract_algebra", "default")),
        ("truthful_qa_default", [], b"", ("truthful_qa", "default")),
    ],
)
def test_names_are_taken_apart(stem: str, known: list[str], head: bytes, expected: tuple[str, str]) -> None:
    assert split_name(stem, known, head) == expected


def test_a_folder_inside_or_one_file_gives_the_same_run(tmp_path: Path) -> None:
    root = _copy(tmp_path, "v1")
    whole = sources(READER, root)
    inside = sources(READER, root / "reviews" / "small-1b")
    one = READER.find(Folder(root / "predictions" / "small-1b", ["iquiz_EQ.jsonl"]), Study.empty())
    assert [source.uri for source in whole] == [source.uri for source in inside] == [source.uri for source in one]
    assert whole[0].files == inside[0].files == one[0].files
    assert {path.name for path in whole[0].claims} == {"eval_log.log", "report.html", "task_config.yaml"}


def test_a_copy_of_a_run_has_the_same_mapping_and_bytes(tmp_path: Path) -> None:
    first, second = (sources(READER, _copy(tmp_path / name, "v1"))[0] for name in "ab")
    assert first.uri != second.uri
    assert first.mapping == second.mapping
    assert [path.read_bytes() for path in first.files] == [path.read_bytes() for path in second.files]


def test_a_model_name_with_a_slash_is_a_folder_in_a_folder(tmp_path: Path) -> None:
    root = _copy(tmp_path, "v1")
    for role in ("predictions", "reviews", "reports"):
        (root / role / "org").mkdir()
        (root / role / "small-1b").rename(root / role / "org" / "small-1b")
    shutil.rmtree(root / "configs")
    report = root / "reports/org/small-1b/iquiz.json"
    report.write_text(
        report.read_text(encoding="utf-8").replace('"model_name": "small-1b"', '"model_name": "org/small-1b"'), encoding="utf-8"
    )
    batches, refusals = read(READER, root)
    assert not refusals
    assert {batch.run.model for batch in batches} == {"org/small-1b"}
    assert len(list(rows(batches))) == 6


def test_folders_of_these_names_that_hold_something_else_are_left(tmp_path: Path) -> None:
    for role in ("predictions", "reviews", "reports"):
        (tmp_path / role / "m").mkdir(parents=True)
        (tmp_path / role / "m" / "x.jsonl").write_text('{"index": 1, "prediction": "A"}\n', encoding="utf-8")
        (tmp_path / role / "m" / "x.json").write_text('{"accuracy": 1}', encoding="utf-8")
        (tmp_path / role / "m" / "bytes.jsonl").write_bytes(b"\xff\xfe\x00")
    assert sources(READER, tmp_path) == []


NATIVE = '{"question_id": "q1", "model": "m", "benchmark": "b", "model_output": %s, "correct": 1}\n'


@pytest.mark.parametrize(
    ("role", "text"),
    [
        ("predictions", NATIVE % '"B"'),
        ("predictions", NATIVE % '{"text": "B"}'),
        ("reviews", '{"review_id": 7, "stars": 5}\n'),
        ("predictions", '{"answer_id": 7, "text": "A"}\n'),
        ("reviews", '{"sample_score": 0.5, "id": 1}\n'),
        ("reports", '{"category": "sales", "model_name": "T"}'),
        ("reports", '{"category": ["sales"], "model_name": "T"}'),
        ("reports", '{"metrics": {"acc": 1}, "model_name": "T"}'),
    ],
)
def test_words_that_others_use_too_make_no_row_and_no_report(tmp_path: Path, role: str, text: str) -> None:
    (tmp_path / role).mkdir()
    (tmp_path / role / ("x.json" if role == "reports" else "x.jsonl")).write_text(text, encoding="utf-8")
    assert sources(READER, tmp_path) == []


def test_a_native_table_beside_rows_is_no_part_of_them(tmp_path: Path) -> None:
    root = _copy(tmp_path, "v1")
    path = root / "predictions/small-1b/iquiz_EQ.jsonl"
    path.write_text(NATIVE % '"B"', encoding="utf-8")
    found = sources(READER, root)
    assert len(found) == 1
    assert path not in {*found[0].files, *found[0].claims}


@pytest.mark.parametrize(
    "before", ['{"name": "m@b", "total_num": 3, "category": [{"name": "c"}]}', '{"dataset_name": "b", "metrics": [{"name": "acc"}]}']
)
def test_reports_of_all_versions_are_known(tmp_path: Path, before: str) -> None:
    (tmp_path / "reports").mkdir()
    (tmp_path / "reports/b.json").write_text(before, encoding="utf-8")
    assert len(sources(READER, tmp_path)) == 1


# ---- records -----------------------------------------------------------------------------------


def test_repeats_are_repetitions_of_one_question() -> None:
    batches, _ = read(READER, INGEST / "evalscope" / "v1")
    assert [(row["question_key"], row["repetition"]) for row in rows(batches)] == [
        ("evalscope:EQ/0", 0),
        ("evalscope:EQ/0", 1),
        *((f"evalscope:IQ/{question}", turn) for question in (0, 1) for turn in (0, 1)),
    ]


def test_predictions_that_nobody_reviewed_are_unscored_and_the_run_partial(tmp_path: Path) -> None:
    root = _copy(tmp_path, "v1")
    shutil.rmtree(root / "reviews")
    shutil.rmtree(root / "reports")
    batches, refusals = read(READER, root)
    found = list(rows(batches))
    assert not refusals
    assert [(row["correct"], row["score"], row["status"]) for row in found] == [(None, None, None)] * 6
    assert sorted((row["question_key"], row["repetition"]) for row in found)[:2] == [("evalscope:EQ/0", 0), ("evalscope:EQ/0", 1)]
    assert batches[-1].run.status == "partial"
    assert "6 of 6 records are not reviewed" in str(batches[-1].run.status_reason)


def test_reviews_without_predictions_are_whole_records(tmp_path: Path) -> None:
    root = _copy(tmp_path, "v1")
    shutil.rmtree(root / "predictions")
    batches, refusals = read(READER, root)
    found = list(rows(batches))
    assert not refusals
    assert (len(found), sum(row["correct"] for row in found)) == (6, 3)
    assert {row["response"] for row in found} <= {f"ANSWER: {letter}\u2028" for letter in "ABC"}
    assert batches[-1].run.status == "finished"


def test_rows_written_again_by_a_resumed_run_replace_the_earlier_ones(tmp_path: Path) -> None:
    root = _copy(tmp_path, "v1")
    path = root / "reviews/small-1b/iquiz_EQ.jsonl"
    first = json.loads(path.read_text(encoding="utf-8").split("\n")[0])
    first["sample_score"]["score"]["value"]["acc"] = 0.0
    with path.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(first) + "\n")
    batches, refusals = read(READER, root)
    found = [row for row in rows(batches) if row["question_key"] == "evalscope:EQ/0"]
    assert sorted((row["repetition"], row["correct"]) for row in found) == [(0, False), (1, False)]
    assert [one.reason for one in refusals] == [
        "1 rows of samples that come again later (the last one counts, as in EvalScope; nothing to do)"
    ]


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        (lambda root: (root / "reports/small-1b/iquiz.json").unlink(), "no report: the evaluation did not end"),
        (lambda root: _cut_last_line(root / "reviews/small-1b/iquiz_IQ.jsonl"), "iquiz_IQ.jsonl is cut off in line 4"),
        (lambda root: (root / "reviews/small-1b/iquiz_EQ.jsonl").unlink(), "4 scored records, the report counts 6"),
        (
            lambda root: [(root / role / "small-1b/iquiz_EQ.jsonl").unlink() for role in ("reviews", "predictions")],
            "4 scored records, the report counts 6",
        ),
    ],
    ids=["no report", "cut off", "subset not reviewed", "subset lost"],
)
def test_what_makes_a_run_partial(tmp_path: Path, edit: Callable[[Path], Any], reason: str) -> None:
    root = _copy(tmp_path, "v1")
    edit(root)
    batches, _ = read(READER, root)
    assert batches[-1].run.status == "partial"
    assert batches[-1].run.status_reason == reason
    assert list(rows(batches))


def test_log_likelihoods_before_1_0_become_option_scores() -> None:
    batches, _ = read(READER, INGEST / "evalscope" / "v0_17")
    row = next(row for batch in batches if batch.run.benchmark == "hellaswag" for row in batch.records.to_pylist())
    assert json.loads(row["option_scores"]) == [-14.5, -13.5]
    assert row["p_gold"] == pytest.approx(1 / (1 + 2.718281828459045**-1))
    assert (row["logit_prediction"], row["prediction"], row["correct"]) == ("B", "B", True)


def test_several_choices_before_1_0_are_repetitions() -> None:
    batches, _ = read(READER, INGEST / "evalscope" / "v0_17")
    found = [
        (row["question_key"], row["repetition"], row["correct"])
        for batch in batches
        if batch.run.benchmark == "arc"
        for row in batch.records.to_pylist()
    ]
    assert found == [(f"evalscope:ARC-Easy/{index}", turn, (index, turn) != (0, 1)) for index in (0, 1) for turn in (0, 1)]


@pytest.mark.parametrize(
    ("value", "main", "expected"),
    [
        ({"acc": 1}, None, (True, 1, "acc", {})),
        ({"acc": 0.5, "pass": True}, None, (None, 0.5, "acc", {"pass": True})),
        ({"bleu-1": 0.4, "Rouge-L-R": 1.0}, "Rouge-L-R", (None, None, None, {"bleu-1": 0.4, "Rouge-L-R": 1.0})),
        ({"gpt_rating": 7, "acc": 0.0}, "gpt_rating", (False, 0.0, "acc", {"gpt_rating": 7})),
        ({"judge": 8.0}, "judge", (None, None, None, {"judge": 8.0})),
        ({"resolved": True}, None, (True, 1.0, "resolved", {})),
        ({"a": {"acc": 1.0}}, None, (None, 1.0, "a.acc", {})),
        ({}, "acc", (None, None, None, {})),
        ("nonsense", "acc", (None, None, None, {})),
        ({"acc": float("nan")}, "acc", (None, float("nan"), "acc", {})),
    ],
    ids=str,
)
def test_credit_is_a_share_of_right_answers(value: Any, main: str | None, expected: tuple[Any, ...]) -> None:
    subset = Subset(benchmark="b", name="default", category=None, template=template_of({}), primary=None, other_scales=frozenset({"judge"}))
    found = subset._judged(value, main)
    correct = True if expected[2] == "a.acc" else expected[0]
    assert repr((found["correct"], found["score"], found["score_rule"], found["scores"])) == repr((correct, *expected[1:]))


def test_names_of_metrics() -> None:
    assert all(says_correct(name) for name in ("AverageAccuracy", "Pass@1", "prompt_level_strict", "mean_acc"))
    assert not any(says_correct(name) for name in ("inst_level_strict", "f1"))
    assert not any(is_share(name, frozenset()) for name in ("Rouge-1-R", "bleu-1", "edit_distance"))


def test_secrets_are_masked(tmp_path: Path) -> None:
    batches, _ = read(READER, _copy(tmp_path, "v1"))
    assert batches[0].run.settings["api_key"] == "***"
    assert "sk-123456" not in json.dumps(batches[0].run.settings)


# ---- prompts and YAML --------------------------------------------------------------------------


def test_options_may_go_on_over_lines() -> None:
    assert split_choices("A) red\nor so\nB) A) blue") == ["red\nor so", "A) blue"]
    assert split_choices("B) red\nC) blue") is None


HINTED = "{context}\n\nQuestion: {question}\nHint: {hint}\nAnswer:"


@pytest.mark.parametrize(
    ("template", "prompt", "text", "options"),
    [
        (HINTED, "A tale.\n\nQuestion:  Who?\nHint: no\nAnswer:", "Who?", None),
        (HINTED, "A tale.\n\nQuestion: Who?\nHint: one\nHint: two\nAnswer:", None, None),
        (HINTED, "A Question: here.\n\nQuestion: Who?\nHint: no\nAnswer:", "Who?", None),
        (HINTED, "A tale.\n\nQuestion: Who?\nHint: no", None, None),
        ("Q: {question}\nAnswer:", "Q: Say Answer: twice\n\n Answer: ", "Say Answer: twice", None),
        ("One of {letters}. Now:\n{question}\n\n{choices}", "One of A, B. Now:\nWhy. Now: A) x?\n\nA) a\nB) A) b", "Why. Now: A) x?", ["a", "A) b"]),
        ("{question}\n{choices}\nEnd of it.", "Why?\nA) a\nB) b\nEnd  of\nit.", "Why?", ["a", "b"]),
        ("{question}\n{choices}", "Why?\n1) a\n2) b", None, None),
        ("{question}{hint}", "Why?", None, None),
    ],
)  # fmt: skip
def test_a_template_is_taken_off_where_it_fits_in_one_way(template: str, prompt: str, text: str | None, options: list[str] | None) -> None:
    asked = template_of({"prompt_template": template}).asked([{"role": "user", "content": prompt}])
    assert (asked.text, asked.options) == (prompt if text is None else text, options)


@pytest.mark.parametrize("part", ["Question: ", "\nHint: ", "\n", "Question: \nHint: ", "A) ", "\n\nA) a", "\nAnswer:", "A, "])
@pytest.mark.parametrize("template", [HINTED, "{letters} {query}\n{choices}\nAnswer: {hint}", "none"])
def test_a_prompt_that_does_not_fit_takes_no_longer_than_its_length(template: str, part: str) -> None:
    made = template_of({"prompt_template": template})
    for prompt in ("x" + part * (LONGEST // len(part) - 40), f"Answer the following multiple choice question.\n\n{part * 9_000}x"):
        started = time.process_time()
        made.asked([{"role": "user", "content": prompt}])
        assert time.process_time() - started < 2


def test_shots_are_cut_off_only_where_enough_prompts_agree() -> None:
    template = template_of({"few_shot_num": 1, "few_shot_prompt_template": "Examples:\n\n{fewshot}\n\n{question}\nAnswer."})
    prompts = [f"Examples:\n\nQ: 1+1\n\nA: 2\n\nWhat is {n}?\n\nSay.\nAnswer." for n in (1, 2, 3)]
    shots = template.shots(prompts)
    assert [template.asked([{"role": "user", "content": one}], shots).text for one in prompts] == [
        f"What is {n}?\n\nSay." for n in (1, 2, 3)
    ]
    assert template.shots(prompts[:2]) == ""
    assert template.asked([{"role": "user", "content": prompts[0]}]).text == prompts[0]


def test_an_image_is_known_by_its_address_or_its_hash() -> None:
    def asked(*images: str) -> Any:
        parts = [{"type": "image", "image": one} for one in images]
        return template_of({}).asked([{"role": "user", "content": [{"type": "text", "text": "What?"}, *parts]}])

    assert asked("http://x/y.png").image == "http://x/y.png"
    assert asked("data:image/png;base64,AAAA").image.startswith("sha256:")
    assert asked("a", "b").image is None
    assert asked("a").text == "What?"


def test_a_configuration_with_anchors_and_objects_is_read(tmp_path: Path) -> None:
    root = _copy(tmp_path, "v1")
    path = root / "configs/task_config.yaml"
    before = read_config(path)
    path.write_text(path.read_text() + "extra: &id001 [1]\nagain: *id001\npair: !!python/tuple [a, b]\nday: 2024-01-01\n")
    assert read_config(path) == before | {"extra": [1], "again": [1], "pair": ["a", "b"], "day": "2024-01-01"}


# ---- damage ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "part",
    ["reviews/small-1b/iquiz_IQ.jsonl", "predictions/small-1b/iquiz_IQ.jsonl", "reports/small-1b/iquiz.json", "configs/task_config.yaml"],
)
def test_a_cut_anywhere_costs_no_more_than_what_was_cut(tmp_path: Path, part: str) -> None:
    root = _copy(tmp_path, "v1")
    raw = (root / part).read_bytes()
    for offset in range(0, len(raw), max(1, len(raw) // 40)):
        (root / part).write_bytes(raw[:offset])
        batches, refusals = read(READER, root)
        found = list(rows(batches))
        whole = len([one for one in raw[:offset].split(b"\n") if one.endswith(b"}}}")])
        if part.startswith("reviews"):
            scored = [row for row in found if row["correct"] is not None]
            assert len(found) == 6
            assert len(scored) == 2 + whole
            assert batches[-1].run.status == "partial"
        else:
            assert len([row for row in found if row["correct"] is not None]) == 6
        if part.startswith("reports"):
            assert refusals or offset == 0 or batches[-1].scores or batches[0].scores == ()
        if not part.startswith("configs") and offset and raw[offset - 1 : offset] not in b"\n}":
            assert refusals


def test_a_configuration_that_is_no_yaml_is_refused_and_the_records_go_in(tmp_path: Path) -> None:
    root = _copy(tmp_path, "v1")
    (root / "configs/task_config.yaml").write_text("model: small\ndatasets: [iquiz\n")
    batches, (refusal,) = read(READER, root)
    assert len([row for row in rows(batches) if row["correct"] is not None]) == 6
    assert (refusal.file, refusal.line) == (str(root / "configs/task_config.yaml"), 3)
    assert refusal.reason.startswith("task configuration: not valid YAML: while parsing a flow sequence")


@pytest.mark.parametrize(
    "bytes_", [b"", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n", b"\xff\xfe{\0", b"[]\n", b"null\n", b"{}\n"]
)
def test_files_that_hold_nothing_are_refused_with_a_reason(tmp_path: Path, bytes_: bytes) -> None:
    root = _copy(tmp_path, "v1")
    (root / "reviews/small-1b/iquiz_IQ.jsonl").write_bytes(bytes_)
    batches, refusals = read(READER, root)
    assert sum(row["correct"] is not None for row in rows(batches)) == 2
    assert bytes_ in {b"", b"\xff\xfe{\0", b"[]\n", b"null\n", b"{}\n"} or "git lfs pull" in refusals[0].reason
    assert batches[-1].run.status == "partial"


def test_a_run_of_pointers_alone_says_so(tmp_path: Path) -> None:
    root = _copy(tmp_path, "v1")
    for path in root.rglob("*.json*"):
        path.write_bytes(b"version https://git-lfs.github.com/spec/v1\n")
    assert sources(READER, root) == []
    (root / "reports/small-1b/iquiz.json").write_text('{"dataset_name": "iquiz", "metrics": []}', encoding="utf-8")
    with pytest.raises(InputError, match=r"no usable record and no score.*git lfs pull"):
        read(READER, root)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), variant=st.sampled_from(["v1", "v1_14", "v0_17"]))
def test_wrong_types_anywhere_are_values_or_refusals(data: st.DataObject, variant: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    root = _copy(tmp_path_factory.mktemp("fuzz"), variant)
    files = sorted(path for path in root.rglob("*.json*") if path.stat().st_size)
    path = data.draw(st.sampled_from(files))
    lines = (
        [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]
        if path.suffix == ".jsonl"
        else [json.loads(path.read_text(encoding="utf-8"))]
    )
    target = data.draw(st.sampled_from(lines))
    holder: Any = target
    for _ in range(data.draw(st.integers(0, 5))):
        inner = [one for one in (holder.values() if isinstance(holder, dict) else holder) if isinstance(one, dict | list) and one]
        if not inner:
            break
        holder = data.draw(st.sampled_from(inner))
    place = data.draw(st.sampled_from(sorted(holder) if isinstance(holder, dict) else range(len(holder))))
    if data.draw(st.booleans()) and isinstance(holder, dict):
        del holder[place]
    else:
        holder[place] = data.draw(JSON)
    path.write_text("\n".join(json.dumps(line) for line in lines) + "\n", encoding="utf-8", errors="surrogatepass")
    for source in sources(READER, root):
        try:
            parts = list(READER.read(source, Study.empty()))
        except InputError:
            continue
        assert all(isinstance(part, Batch) or (isinstance(part, Refusal) and part.reason) for part in parts)
        headers = {
            (part.run.model, part.run.benchmark, part.run.configuration, part.run.external_id) for part in parts if isinstance(part, Batch)
        }
        assert len(headers) == 1


def _copy(tmp_path: Path, variant: str) -> Path:
    return Path(shutil.copytree(INGEST / "evalscope" / variant, tmp_path / "run"))


def _cut_last_line(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-200])
