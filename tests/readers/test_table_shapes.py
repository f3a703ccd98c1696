"""Ad-hoc tables in every shape: documents, workbooks, nested rows, one column per model, answers in a sidecar."""

from __future__ import annotations

import csv
import json
import pickle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xlsxwriter

from tests.conftest import samples
from tests.readers.tables import Read, read
from tracker.errors import InputError, UsageError
from tracker.ingest.digest import digest
from tracker.ingest.plan import make_plan
from tracker.readers.base import Folder
from tracker.readers.table import READER
from tracker.study import Study

if TYPE_CHECKING:
    from tracker.batch import Source

BASIC = 'question_id = "id"\nprediction = "out"\ngold = "ans"\n'


def study(folder: Path, columns: str, options: str = "", *, model: str | None = "m1", more: str = "") -> Study:
    path = folder / "study.toml"
    named = f'model = "{model}"\n' if model else ""
    path.write_text(
        f"[[table]]\nfiles = '(?:^|/)t(?:_[a-z]+)?(?:\\.[a-z]+)?$'\nbenchmark = \"b\"\n{named}{options}\n[table.columns]\n{columns}\n{more}"
    )
    return Study.load(path)


def document(folder: Path, told: Any, columns: str = BASIC, options: str = "", *, model: str | None = "m1", more: str = "") -> Read:
    path = folder / "t.json"
    path.write_text(json.dumps(told))
    return read(READER, path, study(folder, columns, options, model=model, more=more))


def answers(found: Read) -> list[tuple[str, str, bool | None]]:
    return [(batch.run.model, row["question_key"], row["correct"]) for batch in found.batches for row in batch.records.to_pylist()]


def workbook(path: Path, rows: list[list[Any]], sheet: str = "answers") -> None:
    with xlsxwriter.Workbook(path) as book:
        book.add_worksheet("notes").write_row(0, 0, ["nothing here"])
        page = book.add_worksheet(sheet)
        for at, row in enumerate(rows):
            page.write_row(at, 0, row)


# ---- documents -------------------------------------------------------------------------------

ROWS = [{"id": 1, "out": "A", "ans": "A"}, {"id": 2, "out": "B", "ans": "A"}]
EXPECTED = [("m1", "1", True), ("m1", "2", False)]


@pytest.mark.parametrize(
    ("told", "options"),
    [
        (ROWS, ""),
        ({"results": {"items": ROWS}}, 'rows = "results.items"'),
        ({"results.items": ROWS}, 'rows = "results.items"'),
        ({"runs": [{"items": ROWS[:1]}, {"items": ROWS[1:]}]}, 'rows = "runs[].items"'),
        ([{"items": ROWS[:1]}, {"items": ROWS[1:]}], 'rows = "[].items"'),
        ({"results": {"x": ROWS[0], "y": ROWS[1]}}, 'rows = "results"'),
        ({"columns": ["id", "out", "ans"], "data": [[1, "A", "A"], [2, "B", "A"]]}, ""),
        ({"columns": ["id", "out", "ans"], "index": [0, 1], "data": [[1, "A", "A"], [2, "B", "A"]]}, ""),
        ({"id": [1, 2], "out": ["A", "B"], "ans": ["A", "A"]}, ""),
        ({"id": {"0": 1, "1": 2}, "out": {"0": "A", "1": "B"}, "ans": {"0": "A", "1": "A"}}, ""),
        ({"1": {"out": "A", "ans": "A"}, "2": {"out": "B", "ans": "A"}}, 'keys = ["id"]'),
    ],
)
def test_rows_are_found_wherever_a_document_has_them(tmp_path: Path, told: Any, options: str) -> None:
    found = document(tmp_path, told, options=options)
    assert answers(found) == EXPECTED
    assert not found.refusals


def test_pandas_frames_in_every_orientation_are_tables(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(ROWS)
    for orient in ("records", "columns", "split", "table"):
        path = tmp_path / f"t_{orient}.json"
        frame.to_json(path, orient=orient)
        options = 'rows = "data"' if orient == "table" else ""
        assert answers(read(READER, path, study(tmp_path, BASIC, options))) == EXPECTED


def test_levels_of_keys_become_columns(tmp_path: Path) -> None:
    told = {"m1": {"q1": {"out": "A", "ans": "A"}, "q2": {"out": "B", "ans": "A"}}, "m2": {"q1": {"out": "A", "ans": "A"}}}
    columns = BASIC + 'model = "model"\n'
    found = document(tmp_path, told, columns, 'keys = ["model", "id"]', model=None)
    assert answers(found) == [("m1", "q1", True), ("m1", "q2", False), ("m2", "q1", True)]
    lists = document(tmp_path, {"r": {"m1": ROWS, "m2": ROWS[:1]}}, columns, 'rows = "r"\nkeys = ["model"]', model=None)
    assert answers(lists) == [*EXPECTED, ("m2", "1", True)]
    leaves = document(
        tmp_path,
        {"m1": {"q1": "A", "q2": "B"}, "m2": 5},
        'question_id = "id"\nprediction = "_value"\ngold = { value = "A" }\nmodel = "model"\n',
        'keys = ["model", "id"]',
        model=None,
    )
    assert answers(leaves) == [("m1", "q1", True), ("m1", "q2", False)]
    assert leaves.reasons == {3: "entry 3: expected an object whose keys are id, under model 'm2', found int"}


def test_values_beside_the_rows_come_from_the_nearest_object_around_them(tmp_path: Path) -> None:
    told = {"model": "outer", "n": {"shots": 3}, "runs": [{"model": "m1", "items": ROWS}, {"items": ROWS[:1]}]}
    columns = BASIC + 'model = "$.model"\nfew_shot = "$.n.shots"\n'
    found = document(tmp_path, told, columns, 'rows = "runs[].items"', model=None)
    assert answers(found) == [*EXPECTED, ("outer", "1", True)]
    assert {batch.run.configuration.few_shot for batch in found.batches} == {3}
    assert found.header.settings == {}
    own = document(
        tmp_path, {"model": "m", "items": [{"model": "own", **ROWS[0]}]}, BASIC + 'model = ["model", "$.model"]\n', 'rows = "items"'
    )
    assert own.header.model == "own"


def test_rows_inside_the_rows_of_other_files(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    lines: list[Any] = [
        {"id": 1, "ans": "A", "replies": [{"model": "m1", "out": "A"}, {"model": "m2", "out": "B"}]},
        {"id": 2, "ans": "A", "replies": "none"},
        {"id": 3, "ans": "A"},
        {"id": 4, "ans": "B", "replies": [{"model": "m2", "out": "B"}, 7]},
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    columns = 'question_id = "$.id"\nprediction = "out"\ngold = "$.ans"\nmodel = "model"\n'
    found = read(READER, path, study(tmp_path, columns, 'rows = "replies"', model=None))
    assert answers(found) == [("m1", "1", True), ("m2", "1", False), ("m2", "4", True)]
    assert found.reasons == {
        2: "expected a JSON list of objects, found str",
        3: "no replies in it",
        4: "expected a JSON object, found int",
    }


@pytest.mark.parametrize(
    ("told", "options", "message"),
    [
        ({"model": "x", "out": {"items": ROWS}}, "", r"found dict; lists of objects in it: out\.items.*rows = \.\.\."),
        ({"runs": [{"items": ROWS}]}, 'rows = "run"', r"no run in it; lists of objects in it: runs, runs\[\]\.items.*correct rows"),
        ({"runs": {"items": 3}}, 'rows = "runs.items"', r"expected a JSON list of objects, found int"),
        ([1, 2], "", r"no usable row; line 1: entry 1: expected a JSON object, found int"),
        ([ROWS], 'keys = ["model"]', r"expected an object whose keys are model, found a list"),
        ({"data": ROWS}, 'rows = "data"\nsheet = "x"', r"no workbook, so it has no sheet 'x'"),
        (5, "", r"found int"),
        ({}, "", r"found dict"),
    ],
)
def test_a_document_without_rows_says_where_lists_are(tmp_path: Path, told: Any, options: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        document(tmp_path, told, options=options)
    assert "\n" not in str(caught.value)


def test_what_is_wrong_with_one_part_leaves_the_others(tmp_path: Path) -> None:
    found = document(tmp_path, {"runs": [{"items": ROWS}, {"itms": []}, {"items": "x"}, 4]}, options='rows = "runs[].items"')
    assert answers(found) == EXPECTED
    assert found.reasons == {
        3: "entry 3: no items in it",
        4: "entry 4: expected a JSON list of objects, found str",
        5: "entry 5: expected an object with items, found int",
    }


# ---- files -----------------------------------------------------------------------------------


def test_one_table_in_every_format_gives_the_same_records(tmp_path: Path) -> None:
    names = ["id", "out", "ans", "note"]
    rows: list[list[Any]] = [[1, "A", "A", "x"], [2, "B", "A", "x"], [3, None, "B", "x"], [10**15, 'naïve, "q"\n', "C", "x"]]
    objects = [dict(zip(names, row, strict=True)) for row in rows]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(one) + "\n" for one in objects))
    (tmp_path / "t.json").write_text(json.dumps(objects))
    for suffix, delimiter in (("csv", ","), ("tsv", "\t")):
        with (tmp_path / f"t.{suffix}").open("w", newline="") as stream:
            csv.writer(stream, delimiter=delimiter).writerows([names, *rows])
    pq.write_table(pa.Table.from_pylist(objects), tmp_path / "t.parquet")
    workbook(tmp_path / "t.xlsx", [names, *rows])
    found = {}
    for suffix in ("jsonl", "json", "csv", "tsv", "parquet", "xlsx"):
        rule = study(tmp_path, BASIC, 'sheet = "answers"' if suffix == "xlsx" else "")
        got = read(READER, tmp_path / f"t.{suffix}", rule)
        assert not got.refusals
        found[suffix] = (got.records, got.questions, got.header)
    assert all(one == found["jsonl"] for one in found.values())
    assert [row["correct"] for row in found["xlsx"][0]] == [True, False, None, False]


def test_nested_fields_of_parquet_are_reached(tmp_path: Path) -> None:
    rows = [
        {"doc": {"id": "a", "gold": 1}, "losses": [2.0, 1.0], "out": 1},
        {"doc": {"id": "b", "gold": 0}, "losses": [2.0, 1.0], "out": 1},
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "t.parquet")
    columns = 'question_id = "doc.id"\nprediction = "out"\ngold = "doc.gold"\nlosses = "losses"\n'
    found = read(READER, tmp_path / "t.parquet", study(tmp_path, columns))
    assert answers(found) == [("m1", "a", True), ("m1", "b", False)]
    assert [row["logit_prediction"] for row in found.records] == ["1", "1"]


def test_a_sheet_that_is_not_there_and_a_damaged_workbook(tmp_path: Path) -> None:
    workbook(tmp_path / "t.xlsx", [["id", "out", "ans"], [1, "A", "A"]])
    with pytest.raises(InputError, match=r"no sheet 'nswers'.*notes, answers"):
        read(READER, tmp_path / "t.xlsx", study(tmp_path, BASIC, 'sheet = "nswers"'))
    whole = (tmp_path / "t.xlsx").read_bytes()
    for size in (10, len(whole) // 2, len(whole) - 30):
        (tmp_path / "t.xlsx").write_bytes(whole[:size])
        with pytest.raises(InputError):
            read(READER, tmp_path / "t.xlsx", study(tmp_path, BASIC, 'sheet = "answers"'))


def test_text_that_is_not_utf8_costs_its_row_of_a_parquet_file(tmp_path: Path) -> None:
    rows = [{"id": "a", "out": "A", "ans": "A"}, {"id": "bbbb", "out": "B", "ans": "A"}, {"id": "c", "out": "B", "ans": "B"}]
    path = tmp_path / "t.parquet"
    pq.write_table(pa.Table.from_pylist(rows), path, use_dictionary=False, compression="none")
    path.write_bytes(path.read_bytes().replace(b"bbbb", b"b\xffbb", 1))
    found = read(READER, path, study(tmp_path, BASIC))
    assert answers(found) == [("m1", "a", True), ("m1", "c", True)]
    assert found.reasons == {2: "row 2: text that is not UTF-8 (run its writer again)"}


@pytest.mark.parametrize("suffix", ["json", "jsonl", "csv", "tsv", "parquet", "xlsx"])
def test_a_file_cut_anywhere_gives_its_whole_rows_or_a_reason(tmp_path: Path, suffix: str) -> None:
    rows = [{"id": at, "out": "AB"[at % 2], "ans": "A"} for at in range(30)]
    path = tmp_path / f"t.{suffix}"
    if suffix in {"json", "jsonl"}:
        path.write_text(json.dumps(rows) if suffix == "json" else "".join(json.dumps(row) + "\n" for row in rows))
    elif suffix == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif suffix == "xlsx":
        workbook(path, [list(rows[0]), *map(list, (row.values() for row in rows))])
    else:
        with path.open("w", newline="") as stream:
            csv.writer(stream, delimiter="\t" if suffix == "tsv" else ",").writerows([rows[0], *(row.values() for row in rows)])
    rule = study(tmp_path, BASIC, 'sheet = "answers"' if suffix == "xlsx" else "")
    whole = path.read_bytes()
    expected = answers(read(READER, path, rule))
    assert len(expected) == 30
    for size in range(0, len(whole), max(1, len(whole) // 40)):
        path.write_bytes(whole[:size])
        try:
            found = read(READER, path, rule)
        except InputError:
            assert size < len(whole) / 10 or suffix in {"json", "parquet", "xlsx"}  # these say what they hold at their end
            continue
        got = answers(found)
        kept = len(got) - (suffix in {"csv", "tsv"})  # the last cell of a line may be cut without a trace
        assert got[:kept] == expected[:kept]
        assert (found.header.status == "partial") is bool(found.refusals)


class _Trap:
    """Unpickling it fails the test."""

    def __reduce__(self) -> Any:
        return (pytest.fail, ("unpickled",))


@pytest.mark.parametrize("name", ["t.pkl", "t.pickle", "t.pt", "t.npy", "t.jsonl", "t"])
def test_pickles_are_never_loaded(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(pickle.dumps([{"id": 1, "out": _Trap(), "ans": "A"}]))
    with pytest.raises(InputError, match=r"never loaded.*as CSV, JSONL or Parquet"):
        read(READER, tmp_path / name, study(tmp_path, BASIC))
    (tmp_path / "study.toml").unlink()
    (tmp_path / name).rename(tmp_path / "other.pkl")
    assert make_plan([tmp_path], Study.empty(), {}).skipped == ((tmp_path / "other.pkl").resolve(),)


def test_a_pickle_among_real_files_is_refused(tmp_path: Path) -> None:
    path = next(samples("vlmevalkit").rglob("*.pkl"))
    (tmp_path / "t.pkl").symlink_to(path)
    with pytest.raises(InputError, match="a pickle is never loaded"):
        read(READER, tmp_path / "t.pkl", study(tmp_path, BASIC))


def test_arrays_and_compressed_files_are_refused_with_the_remedy(tmp_path: Path) -> None:
    for content, message in ((b"\x93NUMPY\x01\x00", "NumPy"), (b"\x1f\x8b\x08", "gunzip t"), (b"BZh9", "bunzip2 t")):
        (tmp_path / "t").write_bytes(content)
        with pytest.raises(InputError, match=message):
            read(READER, tmp_path / "t", study(tmp_path, BASIC))


# ---- one column per model --------------------------------------------------------------------

WIDE = 'question_id = "id"\ngold = "ans"\ncategory = "kind"\n'


def wide(folder: Path, text: str, models: str, columns: str = WIDE, options: str = "", name: str = "t.csv") -> Read:
    (folder / name).write_text(text)
    return read(READER, folder / name, study(folder, columns, options, model=None, more=f"[table.models]\n{models}"))


def test_each_column_of_a_model_is_a_run(tmp_path: Path) -> None:
    text = "id,kind,ans,acc_big,acc_small,author\n1,x,A,1,0,me\n2,y,B,,1,me\n3,y,B,0, ,me\n"
    found = wide(tmp_path, text, "correct = 'acc_(?P<model>.+)'")
    assert sorted(answers(found)) == [("big", "1", True), ("big", "3", False), ("small", "1", False), ("small", "2", True)]
    assert {row["category"] for row in found.questions} == {"x", "y"}
    assert {row["score_rule"] for row in found.batches[0].records.to_pylist()} == {"column acc_big"}
    assert [batch.run.settings for batch in found.batches] == [{"author": "me"}] * 2
    assert not found.refusals


def test_several_columns_of_a_model_belong_together(tmp_path: Path) -> None:
    text = "id,kind,ans,pred_a,s_a,pred_b,s_b\n1,x,A,A,0.5,B,\n2,x,B,,,B,nan\n"
    found = wide(tmp_path, text, "prediction = 'pred_(?P<model>.+)'\nscore = 's_(?P<model>.+)'")
    assert sorted(answers(found)) == [("a", "1", True), ("b", "1", False), ("b", "2", True)]
    assert [(row["score"], row["special"]) for row in found.records] == [(0.5, None), (None, None), (None, "nan")]


def test_groups_are_any_fields_of_runs(tmp_path: Path) -> None:
    text = "id,kind,ans,a@448,a@672,b@448\n1,x,A,A,B,A\n"
    found = wide(tmp_path, text, "prediction = '(?P<model>.+)@(?P<input_size>\\d+)'")
    assert [(batch.run.model, batch.run.configuration.input_size) for batch in found.batches] == [("a", 448), ("a", 672), ("b", 448)]
    bad = wide(tmp_path, text.replace("a@672", "a@0"), "prediction = '(?P<model>.+)@(?P<input_size>\\d+)'")
    assert [batch.run.configuration.input_size for batch in bad.batches] == [448, 448]
    assert bad.reasons == {2: "column input_size: expected a whole number from 1, found '0'"}


def test_models_inside_objects(tmp_path: Path) -> None:
    lines = [
        {"id": 1, "ans": "A", "by": {"llava-v1.5": {"pred": "A", "s": 1}, "qwen": {"pred": "B", "s": 0}}},
        {"id": 2, "ans": "A", "by": {"qwen": {"pred": None, "s": None}}},
    ]
    models = "prediction = 'by\\.(?P<model>.+)\\.pred'\nscore = 'by\\.(?P<model>.+)\\.s'"
    found = wide(tmp_path, "".join(json.dumps(one) + "\n" for one in lines), models, 'question_id = "id"\ngold = "ans"\n', name="t.jsonl")
    assert answers(found) == [("llava-v1.5", "1", True), ("qwen", "1", False)]
    assert found.header.settings == {}


def test_a_bad_cell_of_one_model_costs_only_its_own_record(tmp_path: Path) -> None:
    found = wide(tmp_path, "id,kind,ans,acc_a,acc_b\n1,x,A,yes,1\n2,x,A,1,0\n", "correct = 'acc_(?P<model>.+)'")
    assert sorted(answers(found)) == [("a", "2", True), ("b", "1", True), ("b", "2", False)]
    assert list(found.reasons) == [2]
    assert "found 'yes'" in found.reasons[2]


def test_columns_without_values_or_matches_are_said(tmp_path: Path) -> None:
    found = wide(tmp_path, "id,kind,ans,acc_a,acc_b\n1,x,A,1,\n", "correct = 'acc_(?P<model>.+)'")
    assert found.reasons == {None: "column acc_b: no value in any row, so its model has no run (fill it, or delete it)"}
    with pytest.raises(
        InputError, match=r"no column whose name is hit_.* its columns are id, kind, ans, acc_a.*models.correct of \[\[table\]\] 1"
    ):
        wide(tmp_path, "id,kind,ans,acc_a\n1,x,A,1\n", "correct = 'hit_(?P<model>.+)'")
    with pytest.raises(InputError, match=r"no usable row; column acc_a: no value"):
        wide(tmp_path, "id,kind,ans,acc_a\n1,x,A,\n", "correct = 'acc_(?P<model>.+)'")


def test_a_path_rule_may_not_make_the_models_one(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id,kind,ans,acc_a,acc_b\n1,x,A,1,0\n")
    rule = study(tmp_path, WIDE, model=None, more="[table.models]\ncorrect = 'acc_(?P<model>.+)'\n[[path]]\npattern = 't'\nmodel = 'one'")
    with pytest.raises(InputError, match=r"a \[\[path\]\] rule gives model to the whole file"):
        read(READER, tmp_path / "t.csv", rule)


def test_a_hand_made_wide_table_of_a_public_study() -> None:
    """Blanks are answers that were not asked for: the columns' means over what is there are the accuracies."""
    path = samples("vlm_custom", "mllms_fine_grained", "vstar", "llava-v1.5-7b", "results_vstar.csv")
    rule = Study.model_validate(
        {
            "table": [
                {
                    "files": r"results_vstar\.csv$",
                    "benchmark": "V*Bench",
                    "model": "llava-v1.5-7b",
                    "columns": {"question_id": "input_image", "category": "test_type"},
                    "models": {"correct": "vstar_(?P<variant>.+)"},
                }
            ]
        }
    )
    found = read(READER, path, rule)
    with path.open(newline="", encoding="utf-8") as stream:
        raw = list(csv.DictReader(stream))
    expected = {name.removeprefix("vstar_"): [int(row[name]) for row in raw if row[name]] for name in raw[0] if name.startswith("vstar_")}
    assert {batch.run.configuration.variant: [int(row["correct"]) for row in batch.records.to_pylist()] for batch in found.batches} == {
        name: values for name, values in expected.items() if values
    }
    assert sum(map(len, expected.values())) == len(found.records) == 13 * 191 + 115
    assert [one.reason.partition(":")[0] for one in found.refusals] == [
        f"column vstar_{name}" for name, values in expected.items() if not values
    ]
    assert len(found.refusals) == 3


# ---- sidecars --------------------------------------------------------------------------------

SIDE = '[table.sidecar]\nfile = "../gold.json"\nkey = "image"\ncolumns = { gold = "answer", category = "type" }\n'
PREDICTIONS = 'question_id = "id"\nprediction = "out"\n'


def beside(folder: Path, gold: Any, more: str = SIDE, columns: str = PREDICTIONS, rows: list[dict[str, Any]] | None = None) -> Path:
    (folder / "run").mkdir(exist_ok=True)
    path = folder / "run" / "t.jsonl"
    path.write_text(
        "".join(json.dumps(row) + "\n" for row in rows or [{"id": "1", "out": "A"}, {"id": "2", "out": "B"}, {"id": "3", "out": "B"}])
    )
    if gold is not None:
        (folder / "gold.json").write_text(json.dumps(gold))
    study(folder, columns, more=more)
    return path


def joined(folder: Path, *args: Any, **kwargs: Any) -> Read:
    path = beside(folder, *args, **kwargs)
    return read(READER, path, Study.load(folder / "study.toml"))


GOLD = [{"image": 1, "answer": "A", "type": "x"}, {"image": 2, "answer": "A", "type": "y"}]


def test_gold_answers_come_from_a_sidecar(tmp_path: Path) -> None:
    found = joined(tmp_path, GOLD)
    assert answers(found) == [("m1", "1", True), ("m1", "2", False), ("m1", "3", None)]
    assert [(row["gold"], row["category"]) for row in found.questions] == [("A", "x"), ("A", "y"), (None, None)]
    assert found.reasons == {3: "3 is not in the sidecar gold.json (the record is kept without gold, category)"}


def test_a_sidecar_may_be_a_mapping_of_keys_to_answers_or_any_table(tmp_path: Path) -> None:
    found = joined(
        tmp_path,
        {"1": "A", "2": "A", "3": "B"},
        SIDE.replace('"image"', '"q"\nkeys = ["q"]').replace('"answer"', '"_value"').replace(', category = "type"', ""),
    )
    assert [row[2] for row in answers(found)] == [True, False, True]
    (tmp_path / "gold.csv").write_text("n,set,answer\n1,s,A\n2,s,B\n")
    more = '[table.sidecar]\nfile = "../gold.csv"\nkey = ["set", "n"]\non = ["part", "id"]\ncolumns = { gold = "answer" }\n'
    found = joined(
        tmp_path, None, more, rows=[{"id": 1, "part": "s", "out": "A"}, {"id": 2, "part": "s", "out": "A"}, {"id": 3, "out": "A"}]
    )
    assert [row[2] for row in answers(found)] == [True, False, None]
    assert found.reasons == {3: "column part: expected a value (the record is kept without gold)"}


def test_groups_of_the_path_name_the_sidecar(tmp_path: Path) -> None:
    (tmp_path / "gold_x.json").write_text(json.dumps(GOLD))
    (tmp_path / "run_x").mkdir()
    (tmp_path / "run_x" / "t.jsonl").write_text('{"id": 1, "out": "A"}\n')
    rule = f'[[table]]\nfiles = \'run_(?P<set>[^/]+)/t\'\nbenchmark = "b"\nmodel = "m"\n[table.columns]\n{PREDICTIONS}{SIDE}'
    (tmp_path / "study.toml").write_text(rule.replace("gold.json", "gold_{set}.json"))
    found = read(READER, tmp_path / "run_x" / "t.jsonl", Study.load(tmp_path / "study.toml"))
    assert answers(found) == [("m", "1", True)]
    (tmp_path / "study.toml").write_text(rule.replace("gold.json", "gold_{sett}.json").replace("(?P<set>", "(?P<variant>"))
    with pytest.raises(UsageError, match=r"\{sett\} is no group of files"):
        Study.load(tmp_path / "study.toml")


def test_a_cycle_of_a_question_has_the_question_s_gold(tmp_path: Path) -> None:
    path = beside(tmp_path, [{"image": 7, "answer": ["A", "B"], "type": "x"}], rows=[{"id": 7, "out": ["A", "A"]}])
    text = (tmp_path / "study.toml").read_text().replace('model = "m1"', 'model = "m1"\nunfold = true')
    (tmp_path / "study.toml").write_text(text)
    assert answers(read(READER, path, Study.load(tmp_path / "study.toml"))) == [("m1", "7/0", True), ("m1", "7/1", False)]


def test_what_is_wrong_with_a_sidecar_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"its sidecar .*gold\.json is not there .*correct sidecar\.file of \[\[table\]\] 1"):
        joined(tmp_path, None)
    with pytest.raises(InputError, match=r"gold\.json: no column image \(for key\); did you mean 'images'\?.*sidecar\.key"):
        joined(tmp_path, [{"images": 1, "answer": "A", "type": "x"}])
    with pytest.raises(InputError, match=r"no column answer \(for gold\); did you mean 'answers'\?.*sidecar\.columns\.gold"):
        joined(tmp_path, [{"image": 1, "answers": "A", "type": "x"}])
    with pytest.raises(
        InputError, match=r"none of its questions \(such as '1'\) is in its sidecar .*which has 'a\.jpg'.*sidecar\.key or sidecar\.on"
    ):
        joined(tmp_path, [{"image": "a.jpg", "answer": "A", "type": "x"}])
    with pytest.raises(InputError, match=r"holds no usable row"):
        joined(tmp_path, [{"image": None, "answer": "A", "type": "x"}])
    twice = joined(tmp_path, [*GOLD, GOLD[0], {**GOLD[1], "answer": "B"}, 4])
    assert [row[2] for row in answers(twice)] == [True, False, None]
    assert [(Path(one.file).name, one.reason) for one in twice.refusals[:2]] == [
        ("gold.json", "entry 5: expected a JSON object, found int"),
        ("gold.json", "entry 4: a second row of 2 that says something else (the first one counts)"),
    ]


def _source(folder: Path) -> Source:
    rule = Study.load(folder / "study.toml")
    (source,) = READER.find(Folder(folder / "run", ["t.jsonl"]), rule)
    return source


def test_a_sidecar_belongs_to_the_digest_and_is_no_table_of_its_own(tmp_path: Path) -> None:
    beside(tmp_path, None)
    rule = Study.load(tmp_path / "study.toml")

    def value() -> str:
        source = _source(tmp_path)
        return digest(source, READER, rule.effective(source))

    values = [value()]
    for answer in ("A", "B"):
        (tmp_path / "gold.json").write_text(json.dumps([{"image": 1, "answer": answer, "type": "x"}]))
        values.append(value())
    assert len(set(values)) == 3
    plan = make_plan([tmp_path], rule, {})
    assert [(one.reader.name, Path(one.source.uri).name) for one in plan.reading] == [("table", "t.jsonl")]
    assert (tmp_path / "gold.json").resolve() not in plan.skipped


def test_a_sidecar_that_a_rule_names_is_a_table_too(tmp_path: Path) -> None:
    more = (
        SIDE.replace("../gold.json", "base/t.jsonl")
        .replace('"image"', '"id"')
        .replace('"answer"', '"out"')
        .replace(', category = "type"', "")
    )
    beside(tmp_path, None, more, 'question_id = "id"\nprediction = "out"\nscore = "s"\n')
    (tmp_path / "run" / "base").mkdir()
    (tmp_path / "run" / "base" / "t.jsonl").write_text('{"id": 1, "out": "A"}\n')
    rule = Study.load(tmp_path / "study.toml")
    plan = make_plan([tmp_path], rule, {})
    assert sorted(Path(one.source.uri).parent.name for one in plan.reading) == ["base", "run"]
    first = _source(tmp_path)
    (tmp_path / "run" / "base" / "t.jsonl").write_text('{"id": 1, "out": "B"}\n')
    assert digest(first, READER, {}) != digest(_source(tmp_path), READER, {})


# ---- errors ----------------------------------------------------------------------------------


def test_a_missing_column_names_rule_key_and_nearest_column(tmp_path: Path) -> None:
    with pytest.raises(
        InputError,
        match=r"t\.json: no column out \(for prediction\); did you mean 'output'\? its columns are .*columns\.prediction of \[\[table\]\] 1 of .*study\.toml",
    ):
        document(tmp_path, [{"id": 1, "output": "A", "ans": "A"}])
    with pytest.raises(InputError, match=r"no column doc\.gold \(for gold\); did you mean 'doc\.golden'"):
        document(tmp_path, [{"id": 1, "out": "A", "doc": {"golden": 1}}], 'question_id = "id"\nprediction = "out"\ngold = "doc.gold"\n')
    with pytest.raises(InputError, match=r"no column \$\.modle \(for model\); did you mean '\$\.model'"):
        document(tmp_path, {"model": "m", "r": ROWS}, BASIC + 'model = "$.modle"\n', 'rows = "r"', model=None)


BAD = {
    "[table.models]\ncorrect = 'acc_.+'": r"models\.correct: expected a named group",
    "[table.models]\ncorrect = 'acc_(?P<modl>.+)'": r"group 'modl' is no field of a run",
    "[table.models]\ncorect = 'acc_(?P<model>.+)'": r"'corect' is no field; did you mean 'correct'",
    "[table.models]\nscore = 'a_(?P<model>.+)'\ncorrect = 'b_(?P<variant>.+)'": r"models\.correct: its groups are variant; those of models\.score are model",
    "[table.models]\ngold = 'a_(?P<model>.+)'": r"models: 'gold' is already mapped in columns",
    "[table.sidecar]\nfile = 'x'\nkey = 'k'\ncolumns = { gold = 'g' }": r"sidecar\.columns: 'gold' is already mapped in columns",
    "[table.sidecar]\nfile = 'x'\nkye = 'k'\ncolumns = { category = 'g' }": r"sidecar\.kye: unknown key 'kye'; did you mean 'key'",
    "[table.sidecar]\nfile = 'x'\nkey = 'k'\ncolumns = { categry = 'g' }": r"'categry' is no field; did you mean 'category'",
    "[table.sidecar]\nfile = 'x'\nkey = 'k'\ncolumns = { category = { valu = 'g' } }": r"unknown key 'valu'; did you mean 'value'",
    "[table.sidecar]\nfile = 'x'\ncolumns = { category = 'g' }": r"sidecar\.key: missing",
}


@pytest.mark.parametrize("more", BAD)
def test_mistakes_in_the_rule_are_named(tmp_path: Path, more: str) -> None:
    with pytest.raises(UsageError, match=BAD[more]):
        study(tmp_path, BASIC, more=more)
