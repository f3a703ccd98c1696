"""What must hold between two ways to write the same table down."""

from __future__ import annotations

import csv
import json
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.readers.tables import Read, read
from tracker.errors import InputError
from tracker.readers.table import READER
from tracker.study import Study

LETTERS = st.sampled_from("ABCD")
CELL = st.one_of(st.none(), LETTERS)
MODELS = ("a", "b.c", "d e")
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\r\0", exclude_categories=("Cc", "Cs")), min_size=1, max_size=8).filter(
    lambda text: text == text.strip() and text != "" and not text.startswith("\ufeff")
)


@st.composite
def wide_tables(draw: st.DrawFn) -> list[dict[str, Any]]:
    keys = draw(st.lists(TEXT, min_size=1, max_size=6, unique=True))
    rows = []
    for key in keys:
        row: dict[str, Any] = {"id": key, "gold": draw(LETTERS)}
        for model in MODELS:
            row[f"pred_{model}"] = draw(CELL)
            row[f"score_{model}"] = draw(st.one_of(st.none(), st.floats(0, 1)))
        rows.append(row)
    return rows


def run(rows: list[dict[str, Any]], rule: dict[str, Any], suffix: str = "jsonl", files: dict[str, Any] | None = None) -> Read | None:
    """What a rule reads of rows; None where no row of them can be used."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"t.{suffix}"
        write(path, rows)
        for name, content in (files or {}).items():
            write(Path(folder) / name, content)
        study = Study.model_validate({"table": [{"files": r"t\.[a-z]+$", "benchmark": "b", **rule}]})
        try:
            return read(READER, path, study)
        except InputError:
            return None


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    names = list(rows[0])
    cells: list[list[Any]] = [names, *([row.get(name) for name in names] for row in rows)]
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    elif path.suffix == ".json":
        path.write_text(json.dumps(rows), encoding="utf-8")
    elif path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif path.suffix == ".xlsx":
        import xlsxwriter

        with xlsxwriter.Workbook(path, {"strings_to_numbers": False, "strings_to_formulas": False, "strings_to_urls": False}) as book:
            page = book.add_worksheet()
            for at, row in enumerate(cells):
                for column, cell in enumerate(row):
                    (page.write_string if isinstance(cell, str) else page.write)(at, column, cell)
    else:
        with path.open("w", newline="", encoding="utf-8") as stream:
            csv.writer(stream, delimiter="\t" if path.suffix == ".tsv" else ",").writerows(cells)


def per_model(found: Read | None) -> dict[str, list[dict[str, Any]]]:
    told: dict[str, list[dict[str, Any]]] = {}
    for batch in found.batches if found else ():
        told.setdefault(batch.run.model, []).extend(batch.records.to_pylist())
    return told


@settings(max_examples=60, deadline=None)
@given(wide_tables())
def test_a_wide_table_is_the_union_of_the_narrow_tables_of_its_models(rows: list[dict[str, Any]]) -> None:
    columns = {"question_id": "id", "gold": "gold"}
    wide = run(rows, {"columns": columns, "models": {"prediction": "pred_(?P<model>.+)", "score": "score_(?P<model>.+)"}})
    narrow: dict[str, list[dict[str, Any]]] = {}
    for model in MODELS:
        own = [row for row in rows if row[f"pred_{model}"] is not None or row[f"score_{model}"] is not None]
        rule = {"model": model, "columns": columns | {"prediction": f"pred_{model}", "score": f"score_{model}"}}
        if own:
            narrow |= per_model(run(own, rule))
    assert per_model(wide) == narrow


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(TEXT, CELL, LETTERS, TEXT), min_size=1, max_size=8, unique_by=lambda row: row[0]), st.randoms())
def test_a_joined_sidecar_is_the_table_with_its_columns_in_it(rows: list[tuple[str, str | None, str, str]], random: Any) -> None:
    merged = [{"id": key, "out": out, "gold": gold, "kind": kind} for key, out, gold, kind in rows]
    whole = run(merged, {"model": "m", "columns": {"question_id": "id", "prediction": "out", "gold": "gold", "category": "kind"}})
    side = [{"name": row["id"], "gold": row["gold"], "kind": row["kind"]} for row in merged]
    random.shuffle(side)
    sidecar = {"file": "side.json", "key": "name", "columns": {"gold": "gold", "category": "kind"}}
    joined = run(
        [{"id": row["id"], "out": row["out"]} for row in merged],
        {"model": "m", "columns": {"question_id": "id", "prediction": "out"}, "sidecar": sidecar},
        files={"side.json": side},
    )
    assert whole is not None
    assert joined is not None
    assert (joined.records, joined.questions, joined.reasons) == (whole.records, whole.questions, whole.reasons)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.fixed_dictionaries(
            {"id": st.integers(0, 10**9), "out": CELL, "gold": LETTERS, "s": st.one_of(st.none(), st.floats(-1e6, 1e6)), "kind": TEXT}
        ),
        min_size=1,
        max_size=8,
        unique_by=lambda row: row["id"],
    )
)
def test_every_format_of_one_table_gives_equal_batches(rows: list[dict[str, Any]]) -> None:
    rule = {
        "model": "m",
        "columns": {"question_id": "id", "prediction": "out", "gold": "gold", "category": "kind", "score": "s"},
    }
    first = run(rows, rule)
    assert first is not None
    for suffix in ("json", "csv", "tsv", "parquet", "xlsx"):
        other = run(rows, rule, suffix)
        assert other is not None, suffix
        assert other.questions == first.questions, suffix
        assert other.header == first.header, suffix
        for one, two in zip(other.records, first.records, strict=True):
            if suffix == "xlsx" and two["score"] is not None:  # Excel keeps 15 to 17 digits, as its writer chooses
                assert abs(one["score"] - two["score"]) <= 1e-9 * max(1, abs(two["score"]))
                one, two = one | {"score": 0}, two | {"score": 0}  # noqa: PLW2901
            assert one == two, suffix
