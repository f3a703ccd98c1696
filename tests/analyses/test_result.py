from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from analyses.ceiling import Parameters, run
from analyses.export import save_csv
from analyses.parameters import checked
from analyses.registry import all_analyses, find
from analyses.result import Column, Table, plain
from analyses.text import number, render, render_table
from tests.analyses import messy
from tests.analyses.planted import session
from tracker.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from analyses.result import Result


@pytest.fixture(scope="module")
def result() -> Result:
    return run(session(messy.rows(0)), Parameters(by=("series",)))


def test_envelope_has_exactly_the_keys_of_the_design(result: Result) -> None:
    envelope = result.envelope()
    assert list(envelope) == ["analysis", "parameters", "cohort", "headline", "tables", "warnings", "seconds", "provenance"]
    assert envelope["provenance"] == {
        "trackr": result.code_version,
        "engine": result.engine_version,
        "database": result.database,
        "data_version": result.data_version,
        "seed": result.seed,
    }
    assert list(envelope["cohort"]) == ["sql", "rows", "digest"]
    assert envelope["parameters"]["by"] == ["series"]
    assert json.loads(json.dumps(envelope, allow_nan=False)) == envelope


def test_a_result_its_tables_and_charts_are_short_to_look_at(result: Result) -> None:
    text = repr(result)
    assert text.startswith("<Result ceiling: ")
    assert f"tables: {', '.join(f'{name} ({len(table)})' for name, table in result.tables.items())}; charts: " in text
    assert f"{len(result.warnings)} warning" in text
    assert repr(result.charts) == f"<Charts {', '.join(result.charts)}>"
    table = Table.of("Sizes", (Column("a", "one"), Column("b", "two")), {"a": [1], "b": [2]})
    assert repr(table) == "<Table 'Sizes': 1 row of a, b>"


def test_every_table_documents_every_column(result: Result) -> None:
    for table in result.tables.values():
        assert table.title
        assert all(column.meaning for column in table.columns)
        assert {len(values) for values in table.data.values()} <= {len(table)}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (float("inf"), None),
        (np.float64("nan"), None),
        (np.int64(3), 3),
        (np.str_("a"), "a"),
        (np.bool_(True), True),
        ((1.5, None), [1.5, None]),
    ],
)
def test_values_become_plain_json(value: Any, expected: Any) -> None:
    assert plain(value) == expected
    json.dumps(plain(value), allow_nan=False)


def test_numbers_keep_full_precision(result: Result) -> None:
    share = result.headline["easy"]
    assert json.loads(json.dumps(result.envelope()))["headline"]["easy"] == share


def test_human_output_rounds_aligns_and_says_what_it_leaves_out() -> None:
    table = Table.of(
        "Things: how many",
        [Column("name", "n"), Column("share", "s", "share"), Column("n", "n", "count")],
        {"name": ["a", "bb", "c"], "share": [1 / 3, None, 1.0], "n": [1234, 5, 6]},
        shown=2,
    )
    assert render_table("things", table).splitlines() == [
        "things: how many",
        "  name  share      n",
        "  a     0.333  1,234",
        "  bb        -      5",
        "  ... 1 more rows: --csv DIR or --json gives all 3",
    ]


def test_human_output_has_headline_and_every_table(result: Result) -> None:
    text = render(result)
    assert text.startswith("trajectories")
    assert all(f"\n{name}: " in text for name in result.tables)
    assert "[" in text.split("regimes:")[1].splitlines()[2]
    assert number(None, "share") == "-"


def test_csv_files_hold_every_row_in_full_precision(result: Result, tmp_path: Path) -> None:
    paths = save_csv(result, tmp_path / "out")
    assert {path.stem for path in paths} == set(result.tables)
    with (tmp_path / "out" / "regimes.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [float(row["easy"]) for row in rows] == [row["easy"] for row in result.tables["regimes"].rows()]


def test_tables_turn_into_frames(result: Result) -> None:
    table = result.tables["gains"]
    assert table.arrow().to_pydict() == {name: table.data[name] for name in table.names}
    assert table.df()["regime"].tolist() == table.data["regime"]


def test_wrong_parameters_name_the_option() -> None:
    with pytest.raises(UsageError, match="--tau-normalised"):
        checked(Parameters, {"tau_normalised": 3})
    with pytest.raises(UsageError, match=r"cutoff 0\.95 is above easy 0\.9"):
        checked(Parameters, {"cutoff": 0.95})


def test_every_analysis_is_complete() -> None:
    for entry in all_analyses():
        module = find(entry.name).load()
        assert entry.name == module.NAME
        assert all(field.description for field in module.Parameters.model_fields.values())
        assert module.run.__doc__
    with pytest.raises(UsageError, match="ceiling"):
        find("nope")
