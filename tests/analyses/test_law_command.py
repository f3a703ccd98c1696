"""`trackr analyze law`, `exponents` and `tokens` on an ingested study, from run folders to answers."""

from __future__ import annotations

import json
import sqlite3
from typing import TYPE_CHECKING, Any

import click
import numpy as np
import pytest
from click.testing import CliRunner

import tracker
from analyses.laws import SeparableLaw
from cli.main import main

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("law")
    with pytest.raises(SystemExit, match="0"):
        main(["simulate", "--preset", "demo", "--scale", "0.3", "--out", str(folder / "runs"), "-q"])
    with tracker.open(str(folder / "store" / "trackr.db")) as opened:
        opened.ingest(folder / "runs")
    return folder / "store" / "trackr.db"


@pytest.fixture(scope="module")
def cells(database: Path) -> pd.DataFrame:
    """Cells by SQL over the answers of the lake; repeated attempts count, images at native size do not."""
    with tracker.open(str(database)) as opened:
        return (
            opened.session()
            .connection.execute("""
            select series, suite, model, input_size, benchmark, any_value(parameters) / 1e9 as "N", avg(visual_tokens) as "R",
                1 - avg(credit) as error, count(*) as n
            from answers where credit is not null and coalesce(input_mode, '') <> 'native' group by all""")
            .df()
        )


def call(database: Path, *arguments: object) -> dict[str, Any]:
    @click.command(add_help_option=False, context_settings={"ignore_unknown_options": True})
    @click.argument("words", nargs=-1, type=click.UNPROCESSED)
    def command(words: tuple[str, ...]) -> None:
        main([*words, "--db", str(database), "--json"])

    outcome = CliRunner().invoke(command, ["analyze", *map(str, arguments)], catch_exceptions=False)
    assert outcome.exit_code == 0, outcome.stderr
    answer: dict[str, Any] = json.loads(outcome.stdout)
    return answer


def test_law_on_an_ingested_study_equals_fits_to_cells_by_sql(database: Path, cells: pd.DataFrame) -> None:
    result = call(database, "law", "--no-save")
    reference = float(np.exp(np.log(cells["N"]).mean())), float(np.exp(np.log(cells["R"]).mean()))
    headline = result["headline"]
    assert (headline["reference_N"], headline["reference_R"]) == pytest.approx(reference)
    assert headline["cells"] == len(cells)
    total = 0.0
    for row in result["tables"]["fits"]:
        some = cells[(cells["series"] == row["series"]) & (cells["suite"] == row["suite"])]
        fit = SeparableLaw(floor="grid", reference=reference).fit(some["N"], some["R"], some["error"])
        assert (row["n"], row["sse"]) == (len(some), pytest.approx(fit.sse, rel=1e-7))
        total += fit.sse
    assert headline["pooled_sse"] == pytest.approx(total)
    sst = ((cells["error"] - cells["error"].mean()) ** 2).sum()
    assert headline["pooled_r2"] == pytest.approx(1 - total / sst)


def test_two_models_of_a_series_are_named_as_too_few_for_alpha(database: Path) -> None:
    result = call(database, "law", "--no-save")
    few = {row["suite"] for row in result["tables"]["fits"] if row["series"] == "Qwen3-VL"}
    for suite in few:
        assert f"Qwen3-VL x {suite}: 2 levels of N: e_inf, A_n and alpha are one of many solutions" in result["warnings"]


def test_results_are_stored_with_their_fits_and_bounds(database: Path) -> None:
    saved = call(database, "law", "--intervals", 20, "--bounded", "--workers", 1)
    connection = sqlite3.connect(database)
    rows = connection.execute("select law, group_key, parameters, at_bound, n from fits").fetchall()
    connection.close()
    stored = {(law, group): (json.loads(parameters), json.loads(bounds), n) for law, group, parameters, bounds, n in rows}
    for row in saved["tables"]["fits"]:
        parameters, bounds, n = stored["separable", f"{row['series']} x {row['suite']}"]
        assert {name: parameters[name] for name in parameters} == {name: row[name] for name in parameters}
        assert ("alpha upper" in bounds or "alpha lower" in bounds) == row["alpha_at_bound"]
        assert n == row["n"]
    assert {law for law, _ in stored} == {"separable", "bounded"}


def test_exponents_and_tokens_run_on_an_ingested_study(database: Path, cells: pd.DataFrame) -> None:
    exponents = call(database, "exponents", "--no-save")
    assert exponents["headline"]["group_fits"] == len(cells.groupby(["series", "suite"]))
    assert exponents["headline"]["subset_fits"] >= exponents["headline"]["group_fits"]
    tokens = call(database, "tokens", "--no-save", "--models", "Qwen3-VL-8B", "--models", "InternVL3-8B")
    for row in tokens["tables"]["spans"]:
        some = cells[(cells["series"] == row["series"]) & (cells["suite"] == row["suite"])]["R"]
        assert row["span"] == pytest.approx(some.max() / some.min())
    pair = {row["model"]: row for row in tokens["tables"]["pair"] if row["benchmark"] is None}
    assert pair["Qwen3-VL-8B"]["questions"] == pair["InternVL3-8B"]["questions"] > 0
    assert pair["InternVL3-8B"]["all"] > pair["Qwen3-VL-8B"]["all"]


def test_no_number_of_workers_changes_a_digit(database: Path) -> None:
    one, two = (call(database, "law", "--no-save", "--intervals", 10, "--workers", workers) for workers in (1, 2))
    assert one["tables"] == two["tables"]
    assert one["headline"] == two["headline"]
