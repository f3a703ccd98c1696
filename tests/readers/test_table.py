from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT, samples
from tests.readers.tables import Read, finds, read
from tracker.batch import Batch, RunHeader
from tracker.errors import InputError
from tracker.readers.base import Folder
from tracker.readers.table import READER
from tracker.study import Study

EXAMPLE = ROOT / "examples" / "vstar-fine-grained" / "study.toml"
RULE = """
[[table]]
files = '(?P<model>[^/]+)\\.(?:jsonl|csv|json)$'
benchmark = "b"
"""


def study(folder: Path, columns: str, options: str = "") -> Study:
    path = folder / "study.toml"
    path.write_text(f"{RULE}{options}\n[table.columns]\n{columns}")
    return Study.load(path)


def one(folder: Path, columns: str, *rows: dict[str, Any], options: str = "") -> Read:
    path = folder / "m1.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return read(READER, path, study(folder, columns, options))


BASIC = 'question_id = "id"\nprediction = "out"\ngold = "ans"\n'


def test_prediction_against_gold(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"id": 1, "out": "A", "ans": "A"},
        {"id": 2, "out": "B ", "ans": "A"},
        {"id": 3, "out": None, "ans": "A"},
        {"id": 4, "out": 2, "ans": "2"},
    ]
    found = one(tmp_path, BASIC, *rows)
    assert [(row["question_key"], row["correct"], row["prediction"], row["score_rule"]) for row in found.records] == [
        ("1", True, "A", "prediction == gold"),
        ("2", False, "B ", "prediction == gold"),
        ("3", None, None, "prediction == gold"),
        ("4", True, "2", "prediction == gold"),
    ]
    assert (found.header.model, found.header.benchmark) == ("m1", "b")


def test_an_index_and_a_letter_mean_the_same_option(tmp_path: Path) -> None:
    columns = BASIC + 'options = "opts"\n'
    found = one(
        tmp_path, columns, {"id": 1, "out": "B", "ans": 1, "opts": ["x", "y"]}, {"id": 2, "out": "y", "ans": "A", "opts": ["x", "y"]}
    )
    assert [row["correct"] for row in found.records] == [True, False]
    ones = one(tmp_path, columns, {"id": 1, "out": "B", "ans": 2, "opts": ["x", "y"]}, options="first_index = 1")
    assert [row["correct"] for row in ones.records] == [True]


@pytest.mark.parametrize(
    ("field", "cells", "likelihoods"),
    [
        ("losses", [1.5, 0.5, 2.5], [-1.5, -0.5, -2.5]),
        ("log_likelihoods", [-1.5, -0.5, -2.5], [-1.5, -0.5, -2.5]),
        ("probabilities", [math.exp(-1.5), math.exp(-0.5), math.exp(-2.5)], [-1.5, -0.5, -2.5]),
    ],
)
def test_confidences_come_from_losses_likelihoods_or_probabilities(
    tmp_path: Path, field: str, cells: list[float], likelihoods: list[float]
) -> None:
    found = one(
        tmp_path,
        f'question_id = "id"\ncorrect = "hit"\ngold = "ans"\n{field} = ["other", "values"]\n',
        {"id": 1, "hit": 1, "ans": "C", "values": cells},
    )
    (record,) = found.records
    assert json.loads(record["option_scores"]) == pytest.approx(likelihoods)
    assert record["p_gold"] == pytest.approx(math.exp(-2.5) / (math.exp(-1.5) + math.exp(-0.5) + math.exp(-2.5)))
    assert (record["logit_prediction"], record["correct"], record["score_rule"]) == ("B", True, "column hit")
    assert found.questions[0]["n_options"] == 3


def test_nan_losses_give_no_confidence_but_keep_the_answer(tmp_path: Path) -> None:
    found = one(tmp_path, BASIC + 'losses = "loss"\nscore = "s"\n', {"id": 1, "out": 0, "ans": 0, "loss": [math.nan, 1.0], "s": math.nan})
    (record,) = found.records
    assert (record["correct"], record["p_gold"], record["logit_prediction"], record["special"]) == (True, None, None, "nan")
    assert json.loads(record["option_scores"]) == [None, -1.0]


def test_ids_join_columns_constants_are_gold_and_dots_reach_inside(tmp_path: Path) -> None:
    columns = 'question_id = ["doc.image", "n"]\ngold = { value = 0 }\nprediction = "out"\nvariant = "doc.arm"\n"scores.f1" = "f"\n'
    found = one(
        tmp_path,
        columns,
        {"doc": {"image": "a.jpg", "arm": "crop"}, "n": 3, "out": 0, "f": 0.5, "k": 1},
        {"doc": {"image": "b", "arm": "pool"}, "n": 4.0, "out": 1},
    )
    assert [(row["question_key"], row["correct"]) for row in found.records] == [("a.jpg/3", True), ("b/4", False)]
    assert [batch.run.configuration.variant for batch in found.batches] == ["crop", "pool"]
    assert [(row["scorer"], row["score"]) for row in found.scores] == [("f1", 0.5)]


def test_columns_without_a_rule_are_settings_or_named(tmp_path: Path) -> None:
    found = one(tmp_path, BASIC, *({"id": index, "out": 1, "ans": 1, "host": "gpu", "box": [index]} for index in range(2)))
    assert found.header.settings == {"host": "gpu", "columns_not_kept": ["box"]}


def test_a_column_without_a_rule_has_no_meaning_even_if_its_name_is_a_native_one(tmp_path: Path) -> None:
    found = one(tmp_path, BASIC, *({"id": index, "out": 1, "ans": 1, "score": index, "answer": "E", "model": "x"} for index in range(2)))
    assert [row["score"] for row in found.records] == [None, None]
    assert (found.header.model, found.header.settings) == ("m1", {"answer": "E", "model": "x", "columns_not_kept": ["score"]})
    assert {row["gold"] for row in found.questions} == {"1"}


def test_cycles_unfold_into_records_with_their_number_in_the_key(tmp_path: Path) -> None:
    row = {"id": 7, "out": ["A", "B"], "ans": ["A", "A"], "opts": ["A. x\nB. y", "A. y\nB. x"], "image": "i.jpg"}
    columns = BASIC + 'options = "opts"\nimage_key = "image"\n'
    found = one(tmp_path, columns, row, row | {"id": 8, "out": ["A"]}, row | {"id": 9, "out": "A", "ans": "A"}, options="unfold = true")
    assert [(record["question_key"], record["correct"]) for record in found.records] == [("7/0", True), ("7/1", False)]
    assert [(asked["options"], asked["image_key"]) for asked in found.questions] == [('["x","y"]', "i.jpg"), ('["y","x"]', "i.jpg")]
    assert found.reasons == {
        2: "expected lists of one length to unfold, found prediction 1, gold 2, options 2",
        3: "expected lists of one length to unfold, found options 2",
    }
    silent = one(tmp_path, columns, row, row | {"id": 8, "out": "A", "ans": "A"})
    assert silent.reasons == {1: "prediction and gold are lists (add unfold = true to the [[table]] rule: one record per entry)"}
    named = one(tmp_path, columns, row | {"opts": ["x", "y"]}, options='unfold = ["prediction", "gold"]')
    assert [asked["options"] for asked in named.questions] == ['["x","y"]'] * 2


def test_bad_rows_are_refused_with_line_and_reason(tmp_path: Path) -> None:
    columns = BASIC + 'options = "opts"\nlosses = "loss"\n'
    good: dict[str, Any] = {"id": 1, "out": 0, "ans": 0, "opts": ["x", "y"], "loss": [1.0, 2.0]}
    bad: list[dict[str, Any]] = [{"id": None}, {"loss": [1.0]}, {"loss": ["?", 1]}, {"loss": 3}, {"opts": 5}]
    found = one(tmp_path, columns, good, *(good | change for change in bad), good | {"id": 9})
    assert found.reasons == {
        2: "column id: expected a value for question_id, found None",
        3: "expected one value per option (2), found 1",
        4: "losses: expected a number for each option, found '?'",
        5: "losses: expected a list of numbers, one per option, found '3'",
        6: "options: expected a list of options (or 'A. ...' lines), found '5'",
    }
    assert [row["question_key"] for row in found.records] == ["1", "9"]


def test_missing_columns_and_empty_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no column id \(for question_id\); its columns are x, out, ans"):
        one(tmp_path, BASIC, {"x": 1, "out": 1, "ans": 1})
    (tmp_path / "m2.jsonl").touch()
    with pytest.raises(InputError, match="empty file"):
        read(READER, tmp_path / "m2.jsonl", study(tmp_path, BASIC))
    assert not finds(READER, tmp_path / "m2.txt", study(tmp_path, BASIC))
    (tmp_path / "study.toml").write_text("[[table]]\nfiles = 'm1'\n[table.columns]\n" + BASIC)
    with pytest.raises(InputError, match="nothing says which model this is"):
        read(READER, tmp_path / "m1.jsonl", Study.load(tmp_path / "study.toml"))


def test_csv_and_json_documents_are_tables_too(tmp_path: Path) -> None:
    rule = study(tmp_path, BASIC + 'losses = "loss"\n')
    (tmp_path / "m1.csv").write_text('id,out,ans,loss\n1,0,0,"[1.0, 2.0]"\n2,1,0,\n')
    found = read(READER, tmp_path / "m1.csv", rule)
    assert [(row["correct"], row["logit_prediction"]) for row in found.records] == [(True, "0"), (False, None)]
    (tmp_path / "m2.json").write_text('{"q1": {"id": 1, "out": 0, "ans": 0}, "q2": {"id": 2, "out": 0, "ans": 1}}')
    assert [row["correct"] for row in read(READER, tmp_path / "m2.json", rule).records] == [True, False]
    (tmp_path / "m3.json").write_text('[{"id": 1, "out": 0, "ans": 0}, 5]')
    assert read(READER, tmp_path / "m3.json", rule).reasons == {2: "entry 2: expected a JSON object, found int"}


def test_a_truncated_table_is_partial(tmp_path: Path) -> None:
    (tmp_path / "m1.jsonl").write_text('{"id": 1, "out": 0, "ans": 0}\n{"id": 2, "o')
    found = read(READER, tmp_path / "m1.jsonl", study(tmp_path, BASIC))
    assert (found.header.status, list(found.reasons), len(found.records)) == ("partial", [2], 1)


# ---- a public study --------------------------------------------------------------------------


def all_runs() -> tuple[list[tuple[RunHeader, Read]], list[str]]:
    """(header, what was read) of every file of the fine-grained study, and the refused files."""
    root, found, refused = samples("vlm_custom", "mllms_fine_grained"), [], []
    rule = Study.load(EXAMPLE)
    for folder in sorted(path for path in root.rglob("*") if path.is_dir()):
        names = sorted(path.name for path in folder.iterdir() if path.is_file())
        for source in READER.find(Folder(folder, names), rule):
            try:
                batches = [item for item in READER.read(source, rule) if isinstance(item, Batch)]
            except InputError as err:
                refused.append(f"{Path(source.uri).name}: {err.message}")
                continue
            found.append((rule.apply(batches[-1].run, source), Read(batches, [])))
    return found, refused


def test_a_few_lines_bring_in_43_complete_configurations_of_a_public_study() -> None:
    found, refused = all_runs()
    vstar = [(header, told) for header, told in found if header.benchmark == "V*Bench"]
    complete = [(header, told) for header, told in vstar if len({row["question_key"] for row in told.records}) == 191]
    assert len(complete) == 43
    assert sum(len(told.records) for _, told in complete) == 8213
    assert len({(header.model, header.configuration) for header, _ in vstar}) == len(vstar)
    assert sorted(len(told.records) for _, told in vstar if len(told.records) < 191) == [7, 10, 19, 115]
    assert Counter(header.model for header, _ in complete) == {
        "llava-v1.5-7b": 31,
        "Qwen2.5-VL-3B-Instruct": 8,
        "Qwen2.5-VL-7B-Instruct": 4,
    }
    assert [one.split(": ")[1] for one in refused] == ["empty file"] * 4
    assert len({row["question_key"] for _, told in complete for row in told.records}) == 191


def test_sizes_variants_and_accuracies_of_the_public_study_are_those_of_its_files() -> None:
    found, _ = all_runs()
    accuracy = {
        header.configuration.input_size: sum(row["correct"] for row in told.records) / 191
        for header, told in found
        if header.model == "llava-v1.5-7b" and header.configuration.variant is None and len(told.records) == 191
    }
    assert accuracy == pytest.approx({448: 104 / 191, 672: 106 / 191, 784: 99 / 191, 896: 66 / 191})
    sizes = {header.configuration.variant: header.configuration.input_size for header, _ in found if header.configuration.variant}
    assert sizes["divprune_pos_embed_672_group_sort"] == 672
    assert sizes["divprune_pos_embed_all_575"] is None
    assert sizes["divprune_pos_emb_float_0.5"] is None
    hr_bench = [told for header, told in found if header.benchmark == "HRBench4K"]
    assert [len({row["question_key"] for row in told.records}) for told in hr_bench] == [800] * 4


def test_losses_of_the_public_study_agree_with_its_answers() -> None:
    """Output is the option with the lowest loss in every row of the 448 px run; NaN losses leave seven gaps elsewhere."""
    found, _ = all_runs()
    plain = {
        header.configuration.input_size: told
        for header, told in found
        if header.model == "llava-v1.5-7b" and header.configuration.variant is None
    }
    assert all(row["prediction"] == row["logit_prediction"] for row in plain[448].records)
    assert all(0 < row["p_gold"] < 1 for row in plain[448].records)
    gaps = [row for row in plain[1120].records if row["p_gold"] is None]
    assert len(gaps) == 7
    assert all(row["logit_prediction"] is None and row["correct"] is not None for row in gaps)
