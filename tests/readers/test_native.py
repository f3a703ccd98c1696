from __future__ import annotations

import csv
import json
import math
from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.readers.tables import finds, read
from tracker.batch import LABELS, QUESTIONS, RECORD_SCORES, RECORDS, Batch, Settings
from tracker.errors import InputError
from tracker.readers import tabular
from tracker.readers.native import READER
from tracker.study import Study

if TYPE_CHECKING:
    from pathlib import Path

BASE: dict[str, Any] = {"model": "m", "benchmark": "b", "question_id": "q1", "correct": True}


def jsonl(path: Path, *rows: dict[str, Any] | str) -> Path:
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return path


def as_csv(path: Path, rows: list[dict[str, Any]]) -> Path:
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(dict.fromkeys(name for row in rows for name in row)))
        writer.writeheader()
        writer.writerows({name: json.dumps(value) if isinstance(value, list) else value for name, value in row.items()} for row in rows)
    return path


# ---- recognition -----------------------------------------------------------------------------


def test_a_native_table_is_known_by_its_columns_not_by_its_name(tmp_path: Path) -> None:
    assert finds(READER, jsonl(tmp_path / "a.txt", BASE))
    assert finds(READER, as_csv(tmp_path / "a.csv", [BASE]))
    assert finds(READER, jsonl(tmp_path / "b.jsonl", '{"damaged', BASE))
    assert finds(READER, jsonl(tmp_path / "long.jsonl", BASE | {"response": "x" * 200_000}))
    assert finds(READER, jsonl(tmp_path / "late.jsonl", {"response": "x" * 200_000} | BASE))
    assert not finds(READER, jsonl(tmp_path / "c.jsonl", {"doc_id": 1, "target": "A"}))
    assert not finds(READER, jsonl(tmp_path / "d.jsonl", {"question_id": 1, "text": "hello", "model_id": "m"}))
    (tmp_path / "empty.jsonl").touch()
    assert not finds(READER, tmp_path / "empty.jsonl")


def test_a_nearly_native_table_is_refused_with_the_columns_it_has(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "a.jsonl", {"model": "m", "question_id": 1, "answer": "A"})
    with pytest.raises(InputError, match="lacks benchmark, correct or score; its columns are model, question_id, answer"):
        read(READER, path)


def test_model_and_benchmark_may_come_from_the_path(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text("""[[path]]\npattern = 'runs/(?P<model>[^/]+)/(?P<benchmark>[^/]+)\\.jsonl'""")
    (tmp_path / "runs" / "m1").mkdir(parents=True)
    path = jsonl(tmp_path / "runs" / "m1" / "b1.jsonl", {"question_id": 1, "correct": 0})
    found = read(READER, path, Study.load(tmp_path / "study.toml"))
    assert (found.header.model, found.header.benchmark) == ("m1", "b1")
    assert found.records[0]["correct"] is False


# ---- values ----------------------------------------------------------------------------------

FULL: dict[str, Any] = BASE | {
    "score": 0.25,
    "score_rule": "exact",
    "prediction": "B",
    "logit_prediction": "C",
    "p_gold": 0.125,
    "option_scores": [-1.5, -2.5, -0.5, -4.0],
    "visual_tokens": 1,
    "prompt_tokens": 2,
    "generated_tokens": 3,
    "tiles": 4,
    "effective_pixels": 5,
    "vision_flops": 6.5,
    "latency_s": 7.5,
    "response": "It is B, I think.",
    "repetition": 8,
    "attempt": 9,
    "image_key": "1.jpg",
    "pair_key": "p1",
    "text": "What is it?",
    "options": ["a", "b", "c", "d"],
    "gold": "A",
    "task": "perception",
    "category": "colour",
    "subcategory": "hue",
    "image_width": 640,
    "image_height": 480,
    "domain": "D1",
    "skill": "S2",
    "input_mode": "fixed",
    "input_size": 448,
    "max_tiles": 12,
    "pixel_cap": 1000,
    "source_quality": "jpeg50",
    "vision_branches": 2,
    "language_branches": 3,
    "few_shot": 0,
    "precision": "bf16",
    "max_new_tokens": 64,
    "prompt": "cot",
    "variant": "crop",
    "run_id": "r-1",
    "started_at": "2026-01-01T10:00:00+02:00",
    "ended_at": "2026-01-01T09:30:00",
    "run_status": "partial",
    "framework": "mine",
    "framework_version": "1.2",
    "n_expected": 100,
}


@pytest.mark.parametrize("form", ["jsonl", "csv", "parquet"])
def test_every_column_reaches_its_own_place(tmp_path: Path, form: str) -> None:
    path = tmp_path / f"a.{form}"
    if form == "jsonl":
        jsonl(path, FULL)
    elif form == "csv":
        as_csv(path, [FULL])
    else:
        pq.write_table(pa.Table.from_pylist([FULL]), path)
    found = read(READER, path)
    assert not found.refusals
    (record,), (question,) = found.records, found.questions
    plain = {name: FULL[name] for name in RECORDS.names if name in FULL and name != "option_scores"}
    assert {name: record[name] for name in plain} == plain
    assert record["question_key"] == "q1"
    assert json.loads(record["option_scores"]) == FULL["option_scores"]
    told = {name: FULL[name] for name in QUESTIONS.names if name in FULL and name != "options"}
    assert {name: question[name] for name in told} == told
    assert json.loads(question["options"]) == FULL["options"]
    assert question["n_options"] == 4
    assert question["content_hash"]
    assert found.labels == [
        {"key": "q1", "scheme": "domain", "value": "D1", "source": "native"},
        {"key": "q1", "scheme": "skill", "value": "S2", "source": "native"},
    ]
    header = found.header
    assert header.configuration == Settings.model_validate({name: FULL[name] for name in Settings.model_fields})
    assert (header.model, header.benchmark, header.external_id, header.status) == ("m", "b", "r-1", "partial")
    assert header.started_at == datetime(2026, 1, 1, 8, tzinfo=UTC)
    assert header.ended_at == datetime(2026, 1, 1, 9, 30, tzinfo=UTC)
    assert (header.framework, header.framework_version, header.n_expected) == ("mine", "1.2", 100)
    assert header.settings == {}


def test_tables_have_the_schemas_of_the_contract(tmp_path: Path) -> None:
    (batch,) = read(READER, jsonl(tmp_path / "a.jsonl", FULL | {"extra": 0.5})).batches
    assert batch.records.schema == RECORDS
    assert batch.questions is not None
    assert batch.labels is not None
    assert batch.record_scores is not None
    assert batch.questions.schema == QUESTIONS
    assert batch.labels.schema == LABELS
    assert batch.record_scores.schema == RECORD_SCORES


def test_missing_nan_infinite_and_zero_scores_stay_apart(tmp_path: Path) -> None:
    rows = [
        {**BASE, "correct": None, "question_id": name, "score": score}
        for name, score in [("a", math.nan), ("b", math.inf), ("c", -math.inf), ("d", None), ("e", 0)]
    ]
    found = read(READER, jsonl(tmp_path / "a.jsonl", *rows))
    assert [(row["score"], row["special"]) for row in found.records] == [
        (None, "nan"),
        (None, "inf"),
        (None, "-inf"),
        (None, None),
        (0.0, None),
    ]
    assert not found.refusals


@pytest.mark.parametrize(("written", "expected"), [(True, True), (0, False), (1.0, True), ("False", False), ("1", True), (None, None)])
def test_correct_is_read_in_its_usual_spellings(tmp_path: Path, written: object, expected: bool | None) -> None:
    rows = [BASE | {"correct": written}, BASE | {"correct": "true"}]
    assert read(READER, jsonl(tmp_path / "a.jsonl", *rows)).records[0]["correct"] is expected


BAD: list[tuple[dict[str, Any], str]] = [
    ({"correct": 0.5}, "column correct: expected true or false (or 1 or 0), found 0.5"),
    ({"correct": "maybe"}, "column correct: expected true or false (or 1 or 0), found 'maybe'"),
    ({"model": None}, "column model: expected a value for model, found None"),
    ({"benchmark": ""}, "column benchmark: expected a value for benchmark, found None"),
    ({"question_id": None}, "column question_id: expected a value for question_id, found None"),
    ({"score": "high"}, "column score: expected a number, found 'high'"),
    ({"p_gold": 1.5}, "column p_gold: expected a number from 0 to 1, found 1.5"),
    ({"p_gold": -0.1}, "column p_gold: expected a number from 0 to 1, found -0.1"),
    ({"visual_tokens": 2.5}, "column visual_tokens: expected a whole number from 0, found 2.5"),
    ({"visual_tokens": -1}, "column visual_tokens: expected a whole number from 0, found -1"),
    ({"repetition": 2**40}, "column repetition: expected a whole number from 0 to 2147483647, found 1099511627776"),
    ({"latency_s": "fast"}, "column latency_s: expected a finite number, found 'fast'"),
    ({"latency_s": math.inf}, "column latency_s: expected a finite number, found inf"),
    ({"input_size": 0}, "column input_size: expected a whole number from 1, found 0"),
    ({"input_mode": "huge"}, "column input_mode: expected one of fixed, native, found 'huge'"),
    ({"status": "odd"}, "column status: expected one of scored, unscored, failed, finished, partial, found 'odd'"),
    ({"run_status": "odd"}, "column run_status: expected one of finished, partial, failed, found 'odd'"),
    ({"started_at": "yesterday"}, "column started_at: expected a time (ISO 8601, or seconds since 1970), found 'yesterday'"),
    ({"option_scores": "x"}, "column option_scores: expected a list of numbers, one per option, found 'x'"),
    ({"option_scores": ["x"]}, "column option_scores: expected a list of numbers, one per option, found ['x']"),
    ({"options": "red or blue"}, "column options: expected a list of options (or \"A. ...\" lines), found 'red or blue'"),
    ({"gold": "E", "options": ["a", "b"]}, "column gold: expected an option from A to B, found 'E' (correct the line)"),
    (
        {"logit_prediction": "E", "options": ["a", "b"]},
        "column logit_prediction: expected an option from A to B, found 'E' (correct the line)",
    ),
    ({"prediction": "E", "n_options": 4}, "column prediction: expected an option from A to D, found 'E' (correct the line)"),
]


@pytest.mark.parametrize(("bad", "reason"), BAD, ids=[str(index) for index in range(len(BAD))])
def test_a_bad_value_refuses_its_line_and_no_other(tmp_path: Path, bad: dict[str, Any], reason: str) -> None:
    rows = [BASE | {"question_id": f"q{index}"} for index in range(4)]
    rows[2] |= bad
    found = read(READER, jsonl(tmp_path / "a.jsonl", *rows))
    assert found.reasons == {3: reason}
    assert found.refusals[0].file == str(tmp_path / "a.jsonl")
    assert found.refusals[0].text
    assert [row["question_key"] for row in found.records] == ["q0", "q1", "q3"]


def test_a_wrong_answer_outside_the_options_stays_wrong_and_is_reported(tmp_path: Path) -> None:
    """Dropping it would make the model look better than it is."""
    found = read(READER, jsonl(tmp_path / "a.jsonl", BASE | {"correct": False, "prediction": "F", "n_options": 4}))
    assert found.reasons == {1: "column prediction: expected an option from A to D, found 'F' (the record is kept without it)"}
    assert [(row["correct"], row["prediction"]) for row in found.records] == [(False, None)]


def test_a_letter_that_is_an_option_itself_is_no_letter_outside(tmp_path: Path) -> None:
    found = read(READER, jsonl(tmp_path / "a.jsonl", BASE | {"prediction": "X", "gold": "X", "options": ["X", "Y"]}))
    assert not found.refusals


def test_a_row_that_says_nothing_of_the_outcome_is_refused_unless_it_says_null_or_failed(tmp_path: Path) -> None:
    silent = {name: value for name, value in BASE.items() if name != "correct"}
    found = read(READER, jsonl(tmp_path / "a.jsonl", BASE, silent, silent | {"score": None}, silent | {"status": "failed"}))
    assert list(found.reasons) == [2]
    assert "found neither" in found.reasons[2]
    assert [row["status"] for row in found.records] == [None, None, "failed"]


def test_duplicated_ids_without_attempts_keep_file_order(tmp_path: Path) -> None:
    found = read(READER, jsonl(tmp_path / "a.jsonl", BASE | {"correct": False}, BASE))
    assert [(row["correct"], row["attempt"], row["repetition"]) for row in found.records] == [(False, None, None), (True, None, None)]
    epochs = read(READER, jsonl(tmp_path / "b.jsonl", BASE | {"epoch": 0}, BASE | {"epoch": 1}))
    assert [row["repetition"] for row in epochs.records] == [0, 1]


def test_a_refused_first_row_lets_the_next_one_tell_the_question(tmp_path: Path) -> None:
    found = read(READER, jsonl(tmp_path / "a.jsonl", BASE | {"text": "t", "n_options": -1}, BASE | {"text": "t", "n_options": 2}))
    assert list(found.reasons) == [1]
    assert [(row["key"], row["n_options"]) for row in found.questions] == [("q1", 2)]


# ---- further columns -------------------------------------------------------------------------


def test_nothing_of_a_further_column_is_lost_silently(tmp_path: Path) -> None:
    rows = [
        BASE | {"question_id": index, "bleu": index / 10, "host": "gpu7", "seed": 3, "note": f"n{index}", "scores": {"f1": 0.5}}
        for index in range(3)
    ]
    found = read(READER, jsonl(tmp_path / "a.jsonl", *rows))
    assert found.header.settings == {"host": "gpu7", "seed": 3, "columns_not_kept": ["note"]}
    assert {(row["row"], row["scorer"], row["score"]) for row in found.scores} == {(index, "bleu", index / 10) for index in range(3)} | {
        (index, "f1", 0.5) for index in range(3)
    }


def test_settings_and_tags_are_taken_as_they_are(tmp_path: Path) -> None:
    found = read(
        READER,
        jsonl(
            tmp_path / "a.jsonl", BASE | {"settings": {"seed": 1}, "tags": {"site": "north"}, "settings.device": "a100", "tags.user": "u"}
        ),
    )
    assert found.header.settings == {"seed": 1, "device": "a100"}
    assert found.header.tags == {"site": "north", "user": "u"}


# ---- many runs -------------------------------------------------------------------------------


def test_interleaved_runs_are_told_apart_in_bounded_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tabular, "CHUNK_ROWS", 100)
    monkeypatch.setattr(tabular, "GATHERED_ROWS", 10)
    rows = [
        BASE | {"model": f"m{index % 3}", "input_size": 448 if index % 2 else None, "question_id": index // 6, "text": f"t{index // 6}"}
        for index in range(600)
    ]
    found = read(READER, jsonl(tmp_path / "a.jsonl", *rows))
    assert max(batch.records.num_rows for batch in found.batches) <= 100
    told: dict[tuple[str, int | None], list[str]] = {}
    for batch in found.batches:
        told.setdefault((batch.run.model, batch.run.configuration.input_size), []).extend(batch.records["question_key"].to_pylist())
    assert set(told) == {(model, size) for model in ("m0", "m1", "m2") for size in (448, None)}
    assert all(keys == [str(index) for index in range(100)] for keys in told.values())
    assert Counter((row["key"], row["text"]) for row in found.questions) == {(str(index), f"t{index}"): 6 for index in range(100)}


def test_a_truncated_last_line_makes_every_run_of_the_file_partial(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join([json.dumps(BASE), json.dumps(BASE | {"model": "n"}), '{"model": "m", "benchm']))
    found = read(READER, path)
    assert list(found.reasons) == [3]
    last = {batch.run.model: batch.run for batch in found.batches}
    assert {model: (run.status, run.status_reason) for model, run in last.items()} == dict.fromkeys(
        ("m", "n"), ("partial", "the file is cut off in line 3")
    )
    assert len(found.records) == 2


# ---- CSV and Parquet -------------------------------------------------------------------------


def test_csv_lines_are_counted_through_quoted_line_breaks(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('model;benchmark;question_id;correct;response\nm;b;1;1;"two\nlines; ""quoted"""\n\nm;b;2;0.5;x\nm;b;3;0;\n')
    found = read(READER, path)
    assert found.reasons == {5: "column correct: expected true or false (or 1 or 0), found '0.5'"}
    assert [(row["question_key"], row["response"]) for row in found.records] == [("1", 'two\nlines; "quoted"'), ("3", None)]


def test_a_damaged_csv_line_takes_no_neighbour_with_it(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(
        b'model,benchmark,question_id,correct,response\nm,b,1,1,fine\nm,b,2,1,"never closed\nm,b,3,1,fine\nm,b,4,1\nm,b,5,1,caf\xe9\nm,b,6,1,"a"b\nm,b,7,1,fine\nm,b,8'
    )
    found = read(READER, path)
    assert [row["question_key"] for row in found.records] == ["1", "3", "7"]
    assert {line: reason.split("(", maxsplit=1)[0].strip() for line, reason in found.reasons.items()} == {
        3: "a quote that is opened here is not closed where it should be",
        5: "expected 5 columns, found 4",
        6: "byte 0xe9 at column 12 is not UTF-8",
        7: "not valid CSV: ',' expected after '\"'",
        9: "expected 5 columns, found 3",
    }
    assert found.header.status == "partial"


def test_parquet_types_are_mapped(tmp_path: Path) -> None:
    table = pa.table(
        {
            "model": pa.array(["m", "m"]).dictionary_encode(),
            "benchmark": pa.array(["b", "b"], pa.large_string()),
            "question_id": pa.array([1, 2], pa.int16()),
            "correct": pa.array([1, None], pa.int8()),
            "score": pa.array([0.5, math.nan], pa.float32()),
            "p_gold": pa.array([0.25, math.nan], pa.float32()),
            "option_scores": pa.array([[-1.0, -2.0], None], pa.list_(pa.float32())),
            "started_at": pa.array([datetime(2026, 1, 1, tzinfo=UTC)] * 2, pa.timestamp("ns", tz="UTC")),
        }
    )
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=1)
    found = read(READER, tmp_path / "a.parquet")
    assert not found.refusals
    assert [
        (row["question_key"], row["correct"], row["score"], row["special"], row["p_gold"], row["option_scores"]) for row in found.records
    ] == [
        ("1", True, 0.5, None, 0.25, "[-1.0,-2.0]"),
        ("2", None, None, "nan", None, None),
    ]
    assert found.header.started_at == datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_utf16_is_refused_with_its_remedy_not_skipped(tmp_path: Path, encoding: str, form: str) -> None:
    path = jsonl(tmp_path / "a.jsonl", BASE) if form == "jsonl" else as_csv(tmp_path / "a.csv", [BASE])
    path.write_bytes(path.read_text().encode(encoding))
    with pytest.raises(InputError, match=f"iconv -f UTF-16 -t UTF-8 'a.{form}'"):
        read(READER, path)


def test_a_chunk_without_a_required_column_is_refused_line_by_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tabular, "CHUNK_ROWS", 2)
    monkeypatch.setattr(tabular, "GATHERED_ROWS", 2)
    found = read(READER, jsonl(tmp_path / "a.jsonl", BASE, BASE, {"correct": True}, {"model": "m", "correct": True}, BASE))
    assert found.reasons == {
        3: "column model: expected a value for model, found None",
        4: "column benchmark: expected a value for benchmark, found None",
    }
    assert len(found.records) == 3


def test_json_lines_may_be_called_json(tmp_path: Path) -> None:
    assert len(read(READER, jsonl(tmp_path / "a.json", BASE, BASE)).records) == 2
    assert len(read(READER, jsonl(tmp_path / "b.json", BASE)).records) == 1


def test_a_csv_file_with_carriage_returns_alone_is_refused_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"model,benchmark,question_id,correct\rm,b,1,1\rm,b,2,0\r")
    assert finds(READER, tmp_path / "a.csv")
    with pytest.raises(InputError, match="carriage returns alone"):
        read(READER, tmp_path / "a.csv")
    (tmp_path / "b.csv").write_bytes(b"x" * 200_000)
    assert not finds(READER, tmp_path / "b.csv")


def test_a_csv_header_may_leave_cells_empty_but_not_name_a_column_twice(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(",,model,benchmark,question_id,correct\n0,1,m,b,1,1\n")
    assert len(read(READER, tmp_path / "a.csv").records) == 1
    (tmp_path / "b.csv").write_text("model,benchmark,question_id,correct,correct\nm,b,1,1,0\n")
    with pytest.raises(InputError, match="names a column twice: correct"):
        read(READER, tmp_path / "b.csv")


def test_a_line_of_50_mb_is_a_line(tmp_path: Path) -> None:
    found = read(READER, jsonl(tmp_path / "a.jsonl", BASE | {"response": "x" * 50_000_000}, BASE))
    assert not found.refusals
    assert [len(row["response"] or "") for row in found.records] == [50_000_000, 0]


def test_a_parquet_file_without_its_end_is_refused(tmp_path: Path) -> None:
    whole = tmp_path / "a.parquet"
    pq.write_table(pa.Table.from_pylist([BASE]), whole)
    cut = tmp_path / "cut.parquet"
    cut.write_bytes(whole.read_bytes()[:-20])
    with pytest.raises(InputError, match="Parquet file that cannot be read"):
        read(READER, cut)


def test_a_table_without_usable_rows_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no rows"):
        read(READER, _header_only(tmp_path))
    with pytest.raises(InputError, match="no usable row; line 1: column correct"):
        read(READER, jsonl(tmp_path / "b.jsonl", BASE | {"correct": "?"}))


def _header_only(folder: Path) -> Path:
    path = folder / "h.csv"
    path.write_text("model,benchmark,question_id,correct\n")
    return path


# ---- properties ------------------------------------------------------------------------------

WORDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r"), min_size=1, max_size=8)
NAMES = st.text("abcXYZ019-_.é", min_size=1, max_size=6)
ROWS = st.fixed_dictionaries(
    {
        "model": st.sampled_from(["m1", "m2"]),
        "benchmark": st.sampled_from(["b1", "b2"]),
        "question_id": NAMES,
        "correct": st.one_of(st.none(), st.booleans()),
        "score": st.one_of(st.none(), st.floats(allow_nan=False, allow_infinity=False)),
        "p_gold": st.one_of(st.none(), st.floats(0, 1)),
        "visual_tokens": st.one_of(st.none(), st.integers(0, 2**60)),
        "prediction": st.one_of(st.none(), WORDS),
        "response": st.one_of(st.none(), WORDS),
        "input_size": st.sampled_from([None, 448, 896]),
    }
)


def told(found: list[Batch]) -> list[tuple[Any, ...]]:
    """What came back, run by run, in file order."""
    rows = []
    for batch in found:
        head = (batch.run.model, batch.run.benchmark, batch.run.configuration.input_size)
        rows += [
            (
                *head,
                row["question_key"],
                row["correct"],
                row["score"],
                row["p_gold"],
                row["visual_tokens"],
                row["prediction"],
                row["response"],
            )
            for row in batch.records.to_pylist()
        ]
    return sorted(rows, key=repr)


def offered(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    names = ("model", "benchmark", "input_size", "question_id", "correct", "score", "p_gold", "visual_tokens", "prediction", "response")
    return sorted((tuple(row[name] for name in names) for row in rows), key=repr)


SLOW = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@SLOW
@given(rows=st.lists(ROWS, min_size=1, max_size=12), form=st.sampled_from(["jsonl", "csv", "parquet"]), chunk=st.integers(1, 8))
def test_records_come_back_as_they_were_written(tmp_path: Path, rows: list[dict[str, Any]], form: str, chunk: int) -> None:
    path = tmp_path / f"a.{form}"
    if form == "jsonl":
        jsonl(path, *rows)
    elif form == "csv":
        as_csv(path, rows)
    else:
        pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=5)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tabular, "CHUNK_ROWS", chunk)
        patch.setattr(tabular, "GATHERED_ROWS", min(chunk, 3))
        found = read(READER, path)
    assert not found.refusals
    assert told(found.batches) == offered(rows)


DAMAGE = st.sampled_from([b"{", b'{"model": "m1"', b"\xff\xfe\xfd", b"null", b'"text"', b"]", b'{"model": 1} x', b"\x00", b'{"a": \xe9}'])


@SLOW
@given(rows=st.lists(ROWS, min_size=1, max_size=10), damage=st.lists(st.tuples(st.integers(1, 10), DAMAGE), max_size=5))
def test_damaged_lines_never_lose_valid_ones(tmp_path: Path, rows: list[dict[str, Any]], damage: list[tuple[int, bytes]]) -> None:
    lines = [json.dumps(row).encode() for row in rows]
    for place, bad in damage:
        lines.insert(min(place, len(lines)), bad)
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"\n".join(lines) + b"\n")
    found = read(READER, path)
    assert told(found.batches) == offered(rows)
    assert sorted(one.line or 0 for one in found.refusals) == [
        number for number, line in enumerate(lines, 1) if line in {bad for _, bad in damage}
    ]


CSV_DAMAGE = st.sampled_from([b"m1,b1,q", b'm1,b1,"q', b'm1,b1,"a"b,,,,,,,', b"\xff", b"m1,b1,q,?,,,,,,", b",,,,,,,,,,,,"])


@SLOW
@given(rows=st.lists(ROWS, min_size=1, max_size=10), damage=st.lists(st.tuples(st.integers(0, 10), CSV_DAMAGE), max_size=3))
def test_damaged_csv_lines_never_lose_valid_ones(tmp_path: Path, rows: list[dict[str, Any]], damage: list[tuple[int, bytes]]) -> None:
    """Words without quotes and line breaks: where a stray quote meets a quoted cell, nobody can tell which is which."""
    plain = [
        {name: "".join(c for c in value if c not in '"\n,') or None if isinstance(value, str) else value for name, value in row.items()}
        for row in rows
    ]
    path = as_csv(tmp_path / "a.csv", plain)
    header, *lines = path.read_bytes().split(b"\r\n")[:-1]
    for place, bad in damage:
        lines.insert(min(place, len(lines)), bad)
    path.write_bytes(b"\r\n".join([header, *lines]) + b"\r\n")
    found = read(READER, path)
    assert told(found.batches) == offered(plain)
    assert len(found.refusals) == len(damage)
