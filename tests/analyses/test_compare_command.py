"""`trackr analyze compare` and `agreement` from run folders to answers, against SQL on the lake and the simulated truth."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from statsmodels.stats.contingency_tables import mcnemar

import tracker
from cli.main import main
from tests.analyses.test_command import Store

PAIRED = """
    with one as (select question_id, credit, prediction from answers where counts and credit is not null and model = ? and input_size = 1024),
    other as (select question_id, credit, prediction from answers where counts and credit is not null and model = ? and input_size = 1024)
    select count(*), avg(one.credit), avg(other.credit), sum((one.credit > other.credit)::int), sum((one.credit < other.credit)::int)
    from one join other using (question_id)"""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    made = Store(tmp_path_factory.mktemp("compare"))
    with pytest.raises(SystemExit, match="0"):
        main(["simulate", "--preset", "demo", "--scale", "0.2", "--out", str(made.folder / "runs"), "-q"])
    with tracker.open(str(made.db)) as opened:
        opened.ingest(made.folder / "runs")
    return made


@pytest.fixture(scope="module")
def two(store: Store) -> tuple[str, str]:
    """Two models of the study."""
    with tracker.open(str(store.db)) as opened:
        names = opened.session().connection.execute("select distinct model from answers order by 1").fetchall()
    return names[0][0], names[-1][0]


def test_two_configurations_equal_sql_and_statsmodels(store: Store, two: tuple[str, str]) -> None:
    result = store.json("analyze", "compare", *(f"{model}@input_size=1024" for model in two), "--no-save", "--draws", "200")
    with tracker.open(str(store.db)) as opened:
        row = opened.session().connection.execute(PAIRED, list(two)).fetchone()
    assert row is not None
    n, a, b, wins, losses = row
    (pair,) = result["tables"]["pairs"]
    assert (pair["questions"], pair["wins"], pair["losses"]) == (n, wins, losses)
    assert (pair["accuracy_a"], pair["accuracy_b"]) == pytest.approx((a, b))
    assert pair["p"] == pytest.approx(mcnemar([[0, wins], [losses, 0]], exact=True).pvalue)
    assert pair["clusters"] < pair["questions"]
    flips = result["tables"]["flips"]
    assert len(flips) == wins + losses
    for flip in flips:
        right, wrong = ("answers_a", "answers_b") if flip["right"].startswith(two[0]) else ("answers_b", "answers_a")
        assert flip[right] == flip["gold"] != flip[wrong]
        assert flip["text"]


def test_the_documented_sql_gives_the_answers_behind_flips(store: Store) -> None:
    text = (Path(__file__).parents[2] / "docs" / "compare.md").read_text(encoding="utf-8")
    sql = text.split("```sql")[1].split("```")[0]
    result = store.json("analyze", "compare", "InternVL3-8B", "Qwen3-VL-8B", "--no-save", "--draws", "50")
    with tracker.open(str(store.db)) as opened:
        rows = opened.session().connection.execute(sql).fetchall()
    found = [
        (row["benchmark"], row["question_key"], row["side"], row["settings"].split(",")[0], row["repetition"], row["run_id"])
        for row in result["tables"]["flip_answers"]
    ]
    assert len(found) > 100
    assert sorted(found) == sorted((*row[:3], f"input_size={row[3]}", *row[4:6]) for row in rows)


def test_every_spelling_of_a_model_means_it(store: Store, two: tuple[str, str]) -> None:
    with tracker.open(str(store.db)) as opened:
        alias = opened.session().connection.execute(
            "select alias from model_aliases a join models m on m.id = a.model_id where m.name = ? and alias <> m.name order by 1", [two[0]]
        )
        spellings = [spelling for (spelling,) in alias.fetchall()]
    assert spellings
    named, aliased = (store.json("analyze", "compare", name, two[1], "--no-save", "--draws", "50") for name in (two[0], spellings[0]))
    assert named["tables"] == aliased["tables"]


def test_every_model_is_compared_where_none_is_named(store: Store, tmp_path: Path) -> None:
    outcome = store.call("analyze", "compare", "--no-save", "--draws", "50", "--csv", tmp_path / "csv", "--plot", tmp_path / "plot.svg")
    assert outcome.exit_code == 0, outcome.stderr
    assert "each pair on the questions that both of its sides have a score for" in outcome.stdout
    with (tmp_path / "csv" / "pairs.csv").open(encoding="utf-8") as file:
        pairs = list(csv.DictReader(file))
    with (tmp_path / "csv" / "models.csv").open(encoding="utf-8") as file:
        models = list(csv.DictReader(file))
    assert len(pairs) == len(models) * (len(models) - 1) / 2
    assert (tmp_path / "plot.svg").read_text(encoding="utf-8").startswith("<svg")


def test_a_wrong_name_ends_with_the_names_there_are(store: Store, two: tuple[str, str]) -> None:
    outcome = store.call("analyze", "compare", two[0], two[1] + "x")
    assert outcome.exit_code == 2
    assert f"did you mean {two[1]}" in outcome.stderr


def test_agreement_equals_the_simulated_truth(store: Store) -> None:
    truth = json.loads((store.folder / "runs" / "truth.json").read_text(encoding="utf-8"))
    result = store.json("analyze", "agreement", "--no-save")
    cells: list[dict[str, Any]] = truth["cells"]
    assert result["headline"]["records"] == sum(cell["generations"] for cell in cells)
    assert result["headline"]["scored"] == sum(cell["n"] for cell in cells)
    found = {
        (row["model"], row["settings"], row["benchmark"]): (row["records"], row["scored"], row["agree"]) for row in result["tables"]["runs"]
    }
    expected = {
        (cell["model"], f"input_size={cell['input_size']}", cell["benchmark"]): (cell["generations"], cell["n"], cell["logit_agreement"])
        for cell in cells
    }
    assert found == expected


def test_help_names_what_a_side_can_be(store: Store) -> None:
    text = " ".join(store.call("analyze", "compare", "--help").stdout.split())
    assert "[MODEL | MODEL@SETTING=VALUE | MODEL@* | run:ID]..." in text
    assert "repeatable or comma-separated" in text
