from __future__ import annotations

import csv
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xlsxwriter
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import ROOT, samples
from tests.readers.tables import Read, finds, read
from tracker.errors import InputError, UsageError
from tracker.readers.base import Folder
from tracker.readers.score_rows import score_of
from tracker.readers.score_table import READER
from tracker.study import Study

LONG = "model,benchmark,metric,value\n"


def table(folder: Path, text: str, name: str = "s.csv", study: Study | None = None) -> Read:
    (folder / name).write_text(text)
    return read(READER, folder / name, study)


def ruled(folder: Path, rule: str, text: str, name: str = "s.csv") -> Read:
    (folder / "study.toml").write_text(f"[[scores]]\nfiles = '(?:^|/)s\\.[a-z]+$'\n{rule}\n")
    return table(folder, text, name, Study.load(folder / "study.toml"))


def scores(found: Read) -> list[tuple[str, str | None, str, float | None]]:
    return [(batch.run.model, batch.run.benchmark, one.metric, one.value) for batch in found.batches for one in batch.scores]


# ---- native ----------------------------------------------------------------------------------

ROWS: list[dict[str, Any]] = [
    {"model": "a", "benchmark": "x", "metric": "acc", "value": 0.5, "stderr": 0.1, "n": 100, "few_shot": 5, "note": "k"},
    {"model": "a", "benchmark": "x", "metric": "f1", "value": 0.25, "stderr": None, "n": None, "few_shot": 5, "note": "k"},
    {"model": "a", "benchmark": "x", "metric": "acc", "value": 0.75, "stderr": None, "n": None, "few_shot": 0, "note": "l"},
    {"model": "b", "benchmark": "y", "metric": "acc", "value": 1.0, "stderr": None, "n": None, "few_shot": None, "note": None},
]


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    names = list(rows[0])
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif path.suffix == ".json":
        path.write_text(json.dumps(rows))
    elif path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif path.suffix == ".xlsx":
        with xlsxwriter.Workbook(path) as book:
            page = book.add_worksheet()
            for at, cells in enumerate([names, *([row[name] for name in names] for row in rows)]):
                page.write_row(at, 0, cells)
    else:
        with path.open("w", newline="") as stream:
            writer = csv.writer(stream, delimiter="\t" if path.suffix == ".tsv" else ",")
            writer.writerows([names, *([row[name] for name in names] for row in rows)])


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl", "json", "parquet", "xlsx"])
def test_a_native_score_table_is_one_run_per_model_benchmark_and_configuration(tmp_path: Path, suffix: str) -> None:
    write(tmp_path / f"s.{suffix}", ROWS)
    found = read(READER, tmp_path / f"s.{suffix}")
    assert [(batch.run.model, batch.run.benchmark, batch.run.configuration.few_shot) for batch in found.batches] == [
        ("a", "x", 5),
        ("a", "x", 0),
        ("b", "y", None),
    ]
    assert [(one.metric, one.value, one.stderr, one.n) for one in found.batches[0].scores] == [
        ("acc", 0.5, 0.1, 100),
        ("f1", 0.25, None, None),
    ]
    assert found.batches[0].run.settings == {"note": "k"}
    assert all(batch.records.num_rows == 0 and batch.run.external_id is None for batch in found.batches)
    assert not found.refusals


def test_columns_of_runs_and_scores(tmp_path: Path) -> None:
    text = (
        "model,benchmark,metric,value,step,tokens,external_id,started_at,status,precision,tags.site,settings.host,kind_of\n"
        "m,b,loss,2.5,1000,2e9,r1,2024-01-02,partial,bf16,north,h,1\n"
        "m,b,loss,2.25,2000,4e9,r1,2024-01-01,partial,bf16,north,h,2\n"
    )
    (batch,) = table(tmp_path, text).batches
    assert [(one.step, one.tokens, one.value) for one in batch.scores] == [(1000, 2e9, 2.5), (2000, 4e9, 2.25)]
    assert (batch.run.external_id, batch.run.status, batch.run.configuration.precision) == ("r1", "partial", "bfloat16")
    assert batch.run.started_at is not None
    assert batch.run.started_at.day == 1
    assert (batch.run.tags, batch.run.settings) == ({"site": "north"}, {"host": "h", "columns_not_kept": ["kind_of"]})


def test_a_backbone_is_the_model_where_there_is_none(tmp_path: Path) -> None:
    assert scores(table(tmp_path, "backbone,benchmark,metric,value\nQwen2.5-7B,MMLU,acc,0.7\n")) == [("Qwen2.5-7B", "MMLU", "acc", 0.7)]
    (both,) = table(tmp_path, "model,backbone,benchmark,metric,value\nv,Qwen2.5-7B,MMLU,acc,0.7\n").batches
    assert (both.run.model, both.run.settings) == ("v", {"backbone": "Qwen2.5-7B"})


@pytest.mark.parametrize(
    "header", ["model,benchmark,question_id,metric,value", "model,benchmark,metric", "a,b", "benchmark,metric,value", ""]
)
def test_other_tables_are_not_taken_for_one(tmp_path: Path, header: str) -> None:
    (tmp_path / "s.csv").write_text(f"{header}\n1,2,3,4,5\n")
    assert not finds(READER, tmp_path / "s.csv")


def test_a_model_may_come_from_the_path(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text("[[path]]\npattern = '(?P<model>[^/]+)\\.csv'\n")
    found = table(tmp_path, "benchmark,metric,value\nb,acc,1\n", "llava.csv", Study.load(tmp_path / "study.toml"))
    assert scores(found) == [("llava", "b", "acc", 1.0)]


def test_nothing_nan_infinity_and_zero_are_four_things(tmp_path: Path) -> None:
    lines = ["m,b,a,", "m,b,c,-", "m,b,d,nan", "m,b,e,inf", "m,b,f,-inf", "m,b,g,0", "m,b,h,N/A"]
    (batch,) = table(tmp_path, LONG + "\n".join(lines) + "\n").batches
    assert [(one.metric, one.value, one.special) for one in batch.scores] == [
        ("d", None, "nan"),
        ("e", None, "inf"),
        ("f", None, "-inf"),
        ("g", 0.0, None),
    ]


def test_bad_rows_are_refused_and_the_rest_goes_in(tmp_path: Path) -> None:
    text = (
        "model,benchmark,metric,value,n,input_size,started_at\n"
        "m,b,acc,good,,,\n"
        ",b,acc,1,,,\n"
        "m,-,acc,1,,,\n"
        "m,b,,1,,,\n"
        "m,b,acc,1,many,,\n"
        "m,b,acc,1,,tall,\n"
        "m,b,acc,1,,,yesterday\n"
        "m,b,acc,0.5,,,\n"
        "m,b,acc,0.50,,,\n"
        "m,b,acc,0.6,,,\n"
    )
    found = table(tmp_path, text)
    assert scores(found) == [("m", "b", "acc", 0.5)]
    assert found.reasons == {
        2: "column value: expected a number, found 'good'",
        3: "expected a value for model, found None",
        4: "expected a value for benchmark, found '-'",
        5: "expected a value for metric, found None",
        6: "column n: expected a whole number from 0, found 'many'",
        7: "input_size: input should be a valid integer, unable to parse string as an integer, found 'tall'",
        8: "column started_at: expected a time (ISO 8601, or seconds since 1970), found 'yesterday'",
        11: "a second acc of m on b, 0.6 instead of 0.5 in line 9 (give the column that tells the two apart a field, such as variant)",
    }


def test_what_holds_no_score_is_refused_as_a_whole(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no score in it"):
        table(tmp_path, LONG + "m,b,acc,\n")
    with pytest.raises(InputError, match="no usable score; column value: expected a number, found 'x'"):
        table(tmp_path, LONG + "m,b,acc,x\n")
    with pytest.raises(InputError, match="no score in it"):
        table(tmp_path, LONG)


@pytest.mark.parametrize("size", range(len(LONG) + 1, 96))
def test_a_cut_off_table_gives_partial_runs(tmp_path: Path, size: int) -> None:
    text = f"{LONG}model-1,bench,acc,0.51\nmodel-1,bench,f1,0.52\nmodel-2,bench,acc,0.53"[:size]
    last = text.rpartition("\n")[2]
    whole = text.count("\n") - 1 + (last.count(",") == 3 and not last.endswith(","))
    if not whole:
        with pytest.raises(InputError):
            table(tmp_path, text)
        return
    found = table(tmp_path, text)
    assert len(scores(found)) == whole
    assert (found.header.status == "partial") is (0 < len(last) and last.count(",") < 3)  # noqa: SIM300


@pytest.mark.parametrize(
    ("told", "value", "stderr"),
    [
        (12, 12.0, None),
        ("63.4", 63.4, None),
        ("63.4%", 63.4, None),
        (" 63.4 ± 0.5 ", 63.4, 0.5),
        ("63.4±0.5", 63.4, 0.5),
        ("63.4 +/- 0.5%", 63.4, 0.5),
        ("1,443.7", 1443.7, None),
        ("-3", -3.0, None),
        ("1e-3", 0.001, None),
    ],
)
def test_scores_as_people_write_them(told: object, value: float, stderr: float | None) -> None:
    found, spread = score_of(told, "x")
    assert found is not None
    assert (found.value, spread) == (value, stderr)


@pytest.mark.parametrize("told", ["63,4", "63.4†", "a", "1±2±3", "1±x", True, [1], "1_000"])
def test_what_is_no_score_is_no_score(told: object) -> None:
    with pytest.raises(ValueError, match="column x: expected a number"):
        score_of(told, "x")


@given(st.floats(allow_nan=True, allow_infinity=True))
def test_a_number_survives_being_text(value: float) -> None:
    number, text = score_of(value, "x")[0], score_of(repr(value), "x")[0]
    assert number == text
    assert number is not None
    assert number.value == (value if math.isfinite(value) else None)


# ---- [[scores]] ------------------------------------------------------------------------------

BOARD = "Rank,Model,Params (B),MMStar,MMMU,Notes\n1,a,7,63.4±0.5,50.0,x\n2,b,13,-,40,\n,,,,,\n"
WIDE = 'columns = { model = "Model" }\nmetric = "accuracy"\nscale = 100\n'


@pytest.mark.parametrize(
    "benchmarks",
    ['["MMStar", "MMMU"]', '{ MMStar = "MMStar", MMMU = "MMMU" }', "'(?P<benchmark>MM.+)'"],
)
def test_a_leaderboard_with_one_benchmark_per_column(tmp_path: Path, benchmarks: str) -> None:
    found = ruled(tmp_path, f"{WIDE}benchmarks = {benchmarks}", BOARD)
    assert scores(found) == [
        ("a", "MMStar", "accuracy", pytest.approx(0.634)),
        ("a", "MMMU", "accuracy", 0.5),
        ("b", "MMMU", "accuracy", 0.4),
    ]
    assert found.batches[0].scores[0].stderr == pytest.approx(0.005)
    assert found.batches[0].run.settings == {"Rank": "1", "Params (B)": "7", "Notes": "x"}
    assert not found.refusals


def test_names_of_columns_give_benchmark_metric_and_configuration(tmp_path: Path) -> None:
    text = "m,MMLU 5-shot acc,MMLU 5-shot acc_stderr,MMLU 0-shot f1\na,0.5,0.01,0.25\n"
    rule = (
        'columns = { model = "m" }\n'
        "benchmarks = '(?P<benchmark>.+) (?P<few_shot>\\d)-shot (?P<metric>.+)'\n"
        "stderr = '(?P<benchmark>.+) (?P<few_shot>\\d)-shot (?P<metric>.+)_stderr'\n"
    )
    found = ruled(tmp_path, rule, text)
    assert scores(found) == [("a", "MMLU", "acc", 0.5), ("a", "MMLU", "f1", 0.25)]
    assert [(batch.run.configuration.few_shot, batch.scores[0].stderr) for batch in found.batches] == [(5, 0.01), (0, None)]


def test_metrics_or_models_in_columns(tmp_path: Path) -> None:
    text = "split,acc,f1\nrandom,86.7,80\npopular,86,\n"
    metrics = ruled(
        tmp_path, 'model = "m"\nbenchmark = "POPE"\ncolumns = { variant = "split" }\nmetrics = ["acc", "f1"]\nscale = 100', text
    )
    assert [(one.run.configuration.variant, [(s.metric, s.value) for s in one.scores]) for one in metrics.batches] == [
        ("random", [("acc", pytest.approx(0.867)), ("f1", 0.8)]),
        ("popular", [("acc", 0.86)]),
    ]
    text = "Benchmark,llava,qwen\nMMStar,0.3,0.5\nMME,1443.7,1600\n"
    models = ruled(
        tmp_path, 'metric = "score"\ncolumns = { benchmark = "Benchmark" }\nmodels = { llava = "LLaVA-1.5-7B", qwen = "Qwen" }', text
    )
    assert scores(models) == [
        ("LLaVA-1.5-7B", "MMStar", "score", 0.3),
        ("Qwen", "MMStar", "score", 0.5),
        ("LLaVA-1.5-7B", "MME", "score", 1443.7),
        ("Qwen", "MME", "score", 1600.0),
    ]


def test_a_long_table_by_rule_and_scales_by_benchmark(tmp_path: Path) -> None:
    text = "name;set;what;x;err;count\na;MME;total;1400;14;10\na;MMStar;acc;50;1;20\n"
    rule = 'columns = { model = "name", benchmark = "set", metric = "what", value = "x", stderr = "err", n = "count" }\nscale = { MME = 2800, "*" = 100 }'
    found = ruled(tmp_path, rule, text)
    assert scores(found) == [("a", "MME", "total", 0.5), ("a", "MMStar", "acc", 0.5)]
    assert [(one.scores[0].stderr, one.scores[0].n) for one in found.batches] == [(0.005, 10), (0.01, 20)]


def test_documents_and_workbooks_of_scores(tmp_path: Path) -> None:
    told = {"date": "2024", "results": {"a": {"MMStar": 0.5, "MMMU": None}, "b": {"MMStar": 0.25, "MMMU": 0.75}}}
    rule = 'rows = "results"\nkeys = ["model"]\ncolumns = { model = "model", "tags.date" = "$.date" }\nmetric = "acc"\nbenchmarks = ["MMStar", "MMMU"]'
    found = ruled(tmp_path, rule, json.dumps(told), "s.json")
    assert scores(found) == [("a", "MMStar", "acc", 0.5), ("b", "MMStar", "acc", 0.25), ("b", "MMMU", "acc", 0.75)]
    assert found.header.tags == {"date": "2024"}
    leaves = ruled(
        tmp_path,
        'keys = ["benchmark", "model"]\ncolumns = { model = "model", benchmark = "benchmark", value = "_value" }\nmetric = "acc"',
        json.dumps({"MMStar": {"a": 0.5}, "MMMU": {"a": "n/a", "b": "0.75"}}),
        "s.json",
    )
    assert scores(leaves) == [("a", "MMStar", "acc", 0.5), ("b", "MMMU", "acc", 0.75)]
    with xlsxwriter.Workbook(tmp_path / "s.xlsx") as book:
        book.add_worksheet("about").write_row(0, 0, ["text"])
        page = book.add_worksheet("main")
        page.write_row(0, 0, ["Model", "MMStar"])
        page.write_row(1, 0, ["a", 63.5])
        page.write_row(2, 0, ["b"])
    (tmp_path / "study.toml").write_text(f'[[scores]]\nfiles = \'s\\.xlsx$\'\nsheet = "main"\n{WIDE}benchmarks = ["MMStar"]\n')
    assert scores(read(READER, tmp_path / "s.xlsx", Study.load(tmp_path / "study.toml"))) == [("a", "MMStar", "accuracy", 0.635)]


def test_rows_without_a_model_are_refused_once(tmp_path: Path) -> None:
    found = ruled(tmp_path, f'{WIDE}benchmarks = ["MMStar", "MMMU"]', BOARD + "3,,7,1,2,\n")
    assert found.reasons == {5: "expected a value for model, found None"}


def test_what_a_rule_names_and_the_file_lacks_is_said(tmp_path: Path) -> None:
    with pytest.raises(
        InputError,
        match=r"s\.csv: no column MMstar \(for MMstar\); did you mean 'MMStar'.*benchmarks\.MMstar of \[\[scores\]\] 1 of .*study\.toml",
    ):
        ruled(tmp_path, f'{WIDE}benchmarks = ["MMstar"]', BOARD)
    with pytest.raises(InputError, match=r"no column model \(for model\); did you mean 'Model'.*columns\.model"):
        ruled(tmp_path, 'columns = { model = "model" }\nmetric = "a"\nbenchmarks = ["MMStar"]', BOARD)
    with pytest.raises(InputError, match=r"no column whose name is XX.* its columns are Rank, Params"):
        ruled(tmp_path, f"{WIDE}benchmarks = 'XX(?P<benchmark>.+)'", BOARD)
    with pytest.raises(InputError, match="nothing says which benchmark this is"):
        ruled(tmp_path, 'columns = { model = "Model", value = "MMStar" }\nmetric = "a"', BOARD)
    with pytest.raises(InputError, match=r"a \[\[path\]\] rule gives benchmark to the whole file"):
        ruled(tmp_path, f"{WIDE}benchmarks = [\"MMStar\"]\n[[path]]\npattern = 's'\nbenchmark = 'x'", BOARD)
    (tmp_path / "s.pkl").write_bytes(b"\x80\x04.")
    with pytest.raises(InputError, match="never loaded"):
        read(READER, tmp_path / "s.pkl", Study.load(tmp_path / "study.toml"))


BAD = {
    'metric = "a"\ncolumns = { model = "m" }': r"expected columns\.value .*or benchmarks, metrics or models",
    'metric = "a"\nbenchmarks = ["x"]\nmodels = ["y"]': "benchmarks and models: the columns can hold one of these only",
    'metric = "a"\nbenchmarks = ["x"]\ncolumns = { value = "v" }': "value and benchmarks are two ways",
    'benchmarks = ["x"]': "nothing says which metric this is",
    "metric = \"a\"\nbenchmarks = 'x_(?P<name>.+)'": "group 'name' is no field of a run",
    "metric = \"a\"\nbenchmarks = 'x_(?P<variant>.+)'": r"the expression needs a group \(\?P<benchmark>",
    'metric = "a"\nbenchmarks = ["x"]\nstderr = "x_err"': "stderr: only beside an expression",
    'metric = "a"\nbenchmarks = []': "expected columns: a list, a table",
    'metric = "a"\nbenchmarks = ["x"]\nscale = 0': "greater than 0",
    'metric = "a"\nbenchmark = "x"\ncolumns = { modle = "m", value = "v" }': "'modle' is no field; did you mean 'model'",
    'metric = "a"\nbenchmraks = ["x"]': "unknown key 'benchmraks'; did you mean 'benchmarks'",
}


@pytest.mark.parametrize("rule", BAD)
def test_mistakes_in_the_rule_are_named(tmp_path: Path, rule: str) -> None:
    with pytest.raises(UsageError, match=BAD[rule]):
        ruled(tmp_path, rule, BOARD)


# ---- public tables ---------------------------------------------------------------------------


def test_a_public_table_of_language_models_comes_in_by_four_lines() -> None:
    path = (
        next((one for one in (ROOT.parent / "shared" / "data", Path("/work/shared/data")) if one.is_dir()), Path("/nowhere"))
        / "base_llm_benchmarks.csv"
    )
    if not path.is_file():
        pytest.skip("no shared/data here")
    found = read(READER, path, Study.load(ROOT / "examples" / "base-llm-benchmarks" / "study.toml"))
    with path.open(newline="") as stream:
        raw = list(csv.DictReader(stream))
    names = ["MMLU", "ARC-C", "HellaSwag", "Winograd", "TruthfulQA", "GSM8K", "XWinograd", "HumanEval"]
    expected = {(row["Model"], name): float(row[name]) for row in raw for name in names if row[name] not in {"", "nan"}}
    assert {(model, benchmark): value for model, benchmark, _, value in scores(found)} == expected
    assert len({batch.run.model for batch in found.batches}) == len(raw) == 107
    assert not found.refusals


def test_a_public_summary_by_rule() -> None:
    path = samples("lmms_eval", "shruum", "qwen_all", "base", "summary.csv")
    rule = {
        "files": r"summary\.csv$",
        "model": "Qwen2.5-VL-3B",
        "metric": "accuracy",
        "columns": {"benchmark": "dataset", "variant": ["method"], "prompt": "group", "value": "accuracy", "n": "n_samples"},
    }
    found = read(READER, path, Study.model_validate({"scores": [rule]}))
    with path.open(newline="") as stream:
        raw = list(csv.DictReader(stream))
    assert sorted(
        (str(batch.run.benchmark), str(batch.run.configuration.prompt), one.value, one.n) for batch in found.batches for one in batch.scores
    ) == sorted((row["dataset"], row["group"], float(row["accuracy"]), int(row["n_samples"])) for row in raw)


def test_editing_a_rule_reads_its_tables_again_and_no_others(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text(BOARD)
    (tmp_path / "study.toml").write_text(f"[[scores]]\nfiles = 's\\.csv$'\n{WIDE}benchmarks = [\"MMStar\"]\n")
    one = Study.load(tmp_path / "study.toml")
    (source,) = READER.find(Folder(tmp_path, ["s.csv"]), one)
    (tmp_path / "study.toml").write_text(f"[[scores]]\nfiles = 's\\.csv$'\n{WIDE}benchmarks = [\"MMMU\"]\n")
    other = Study.load(tmp_path / "study.toml")
    assert one.effective(source) != other.effective(source)
    elsewhere = replace(source, reader="native", uri=str(tmp_path / "n.csv"))
    assert one.effective(elsewhere) == other.effective(elsewhere) == {}
