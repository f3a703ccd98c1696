"""`trackr analyze` and `trackr analyses`, from run folders to answers."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from typing import TYPE_CHECKING, Any

import click
import pytest
from click.testing import CliRunner

import tracker
from analyses.ceiling import Parameters, run
from analyses.ceiling.regimes import REGIMES
from analyses.cohort import bindings, statement
from analyses.result import Charts
from cli.commands.analyses import analyses
from cli.main import main
from tests.analyses import naive
from tests.conftest import ROOT, samples

if TYPE_CHECKING:
    from pathlib import Path

    import duckdb
    from click.testing import Result as Outcome


class Store:
    """A store with a small simulated study."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.db = folder, folder / "store" / "trackr.db"

    def call(self, *arguments: object) -> Outcome:
        @click.command(add_help_option=False, context_settings={"ignore_unknown_options": True})
        @click.argument("words", nargs=-1, type=click.UNPROCESSED)
        def command(words: tuple[str, ...]) -> None:
            main([*words, "--db", str(self.db)])

        return CliRunner().invoke(command, [str(argument) for argument in arguments], catch_exceptions=False)

    def json(self, *arguments: object) -> dict[str, Any]:
        outcome = self.call(*arguments, "--json")
        assert outcome.exit_code == 0, outcome.stderr
        answer: dict[str, Any] = json.loads(outcome.stdout)
        return answer


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    made = Store(tmp_path_factory.mktemp("command"))
    with pytest.raises(SystemExit, match="0"):
        main(["simulate", "--preset", "demo", "--scale", "0.2", "--out", str(made.folder / "runs"), "-q"])
    with tracker.open(str(made.db)) as opened:
        opened.ingest(made.folder / "runs")
    return made


@pytest.fixture(scope="module")
def answers(store: Store) -> list[dict[str, Any]]:
    with tracker.open(str(store.db)) as opened:
        relation = opened.session().connection.execute("select * from answers")
        names = [column[0] for column in relation.description or ()]
        return [dict(zip(names, row, strict=True)) for row in relation.fetchall()]


def test_every_number_equals_loops_over_the_answers_of_the_lake(store: Store, answers: list[dict[str, Any]]) -> None:
    result = store.json("analyze", "ceiling", "--cutoff", "0.2", "--no-save")
    accuracy, kept = naive.accuracies(answers), naive.matched(answers)
    regimes = Counter(naive.regime(value) for value in accuracy.values())
    headline = result["headline"]
    assert headline["trajectories"] == len(accuracy)
    assert {name: headline[name] for name in REGIMES} == pytest.approx({name: regimes[name] / len(accuracy) for name in REGIMES})
    assert headline["matched_trajectories"] == len(kept) > 100
    for measure in ("a", "p", "a*", "p*"):
        met = [naive.criteria(members, measure, 0.1 if measure.endswith("*") else 0.2) for members in kept.values()]
        found = {row["criterion"]: row[measure] for row in result["tables"]["persistence"]}
        assert found == pytest.approx({rule: sum(each[rule] for each in met) / len(met) for rule in "HEPBJ"})
    with tracker.open(str(store.db)) as opened:
        fingerprints = dict(opened.session().connection.execute("select id, fingerprint from configurations").fetchall())
    expected = naive.halves(answers, fingerprints, Parameters().seed)
    for row in result["tables"]["halves"]:
        accuracy_mean, slope = expected[row["series"], row["regime"]]
        assert row["accuracy"] == pytest.approx(accuracy_mean)
        assert row["slope"] == pytest.approx(slope, abs=1e-12)


@pytest.mark.parametrize("condition", ["input_size <= 1024", "benchmark = 'TreeBench' and family = 'QwenVL'"])
def test_where_equals_loops_over_what_it_leaves(store: Store, answers: list[dict[str, Any]], condition: str) -> None:
    left = [
        row
        for row in answers
        if (row["input_size"] <= 1024 if "size" in condition else (row["benchmark"], row["family"]) == ("TreeBench", "QwenVL"))
    ]
    result = store.json("analyze", "ceiling", "--where", condition, "--no-save")
    regimes = Counter(naive.regime(value) for value in naive.accuracies(left).values())
    assert {name: result["headline"][name] for name in REGIMES} == pytest.approx(
        {name: regimes[name] / regimes.total() for name in REGIMES}
    )
    assert result["parameters"]["where"] == condition


def test_a_cohort_file_replaces_the_cohort(store: Store, tmp_path: Path) -> None:
    file = tmp_path / "cohort.sql"
    file.write_text("-- mine\nselect * from answers where series = 'InternVL3' and $cutoff > 0;\n", encoding="utf-8")
    result = store.json("analyze", "ceiling", "--cohort", file, "--no-save")
    same = store.json("analyze", "ceiling", "--where", "series = 'InternVL3'", "--no-save")
    assert result["headline"] == same["headline"]
    assert result["headline"]["series"] == 1
    assert result["cohort"]["digest"] == same["cohort"]["digest"]


def test_mean_tokens_come_from_cells(store: Store, answers: list[dict[str, Any]]) -> None:
    cells: dict[tuple[Any, Any], list[float]] = {}
    for row in answers:
        if not naive.missing(row["credit"]):
            cells.setdefault((row["configuration_id"], row["benchmark"]), []).append(row["visual_tokens"])
    mean = {key: sum(values) / len(values) for key, values in cells.items()}
    averaged = [row | {"visual_tokens": mean.get((row["configuration_id"], row["benchmark"]))} for row in answers]
    result = store.json("analyze", "ceiling", "--tokens", "mean", "--no-save")
    kept = naive.matched(averaged)
    assert result["headline"]["matched_trajectories"] == len(kept)
    expected = sum(naive.criteria(members, "p", 0.2)["J"] for members in kept.values()) / len(kept)
    assert next(row["p"] for row in result["tables"]["persistence"] if row["criterion"] == "J") == pytest.approx(expected)


def test_human_output_is_on_stdout_and_talk_on_stderr(store: Store) -> None:
    outcome = store.call("analyze", "ceiling", "--by", "domain", "--by", "skill", "--no-save")
    assert outcome.exit_code == 0
    assert outcome.stdout.startswith("trajectories")
    assert "more rows: --csv DIR or --json gives all" in outcome.stdout
    assert "p_gold missing" in outcome.stderr
    assert "p_gold missing" not in outcome.stdout


def test_results_are_stored_listed_and_shown(store: Store) -> None:
    outcome = store.call("analyze", "ceiling", "--seed", "5")
    identity = outcome.stderr.split("stored as analysis ")[1].split()[0]
    listed = store.call("analyses", "list")
    assert listed.stdout.splitlines()[0].split()[0] == identity
    shown = store.call("analyses", "show", identity)
    assert outcome.stdout.strip() in shown.stdout
    assert " ceiling --seed 5  " in listed.stdout.splitlines()[0]
    store.call("analyses", "show", identity, "--csv", store.folder / "shown")
    store.call("analyze", "ceiling", "--seed", "5", "--no-save", "--csv", store.folder / "made")
    made = {path.name: path.read_text() for path in (store.folder / "made").iterdir()}
    assert made == {path.name: path.read_text() for path in (store.folder / "shown").iterdir()}
    assert "    from answers\n" in shown.stdout
    assert [word for word in listed.stdout.splitlines()[0].split() if word in REGIMES] == ["easy", "scaling_bound", "ceiling_bound"]
    assert store.json("analyses", "show", identity)["parameters"]["seed"] == 5
    assert json.loads(store.call("analyses", "list", "--json").stdout)[0]["id"] == int(identity)


def test_the_bare_noun_lists(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACKR_DB", str(store.db))
    outcome = CliRunner().invoke(analyses, [])
    assert outcome.exit_code == 0
    assert outcome.stdout == store.call("analyses", "list").stdout


def test_nothing_is_stored_on_request(store: Store) -> None:
    before = store.call("analyses", "list").stdout
    assert store.call("analyze", "ceiling", "--no-save").exit_code == 0
    assert store.call("analyses", "list").stdout == before


def test_what_cannot_be_stored_is_answered_with_a_warning(store: Store) -> None:
    """A database that refuses the row: here a trigger, elsewhere a right that the user lacks."""
    with sqlite3.connect(store.db) as connection:
        connection.execute("create trigger refuse before insert on analyses begin select raise(abort, 'not for you'); end")
    try:
        outcome = store.call("analyze", "ceiling", "--json")
    finally:
        with sqlite3.connect(store.db) as connection:
            connection.execute("drop trigger refuse")
        connection.close()
    assert outcome.exit_code == 0
    assert any("not stored" in warning and "not for you" in warning for warning in json.loads(outcome.stdout)["warnings"])
    assert "not stored" in outcome.stderr


def test_files_are_written(store: Store, tmp_path: Path) -> None:
    outcome = store.call(
        "analyze", "ceiling", "--no-save", "--csv", tmp_path / "csv", "--plot", tmp_path / "p.svg", "--html", tmp_path / "r.html"
    )
    assert outcome.exit_code == 0, outcome.stderr
    assert outcome.stderr.count("trackr: wrote ") == 3
    assert len(list((tmp_path / "csv").glob("*.csv"))) == 12
    assert "<svg" in (tmp_path / "p.svg").read_text(encoding="utf-8")
    assert "<h1>trackr analyze ceiling</h1>" in (tmp_path / "r.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "code", "kind", "said"),
    [
        (["--where", "bogus > 1"], 1, "query", "bogus"),
        (["--where", "input_size >"], 1, "query", "syntax"),
        (["--where", "1=1); drop table records; select (1"], 1, "query", "syntax"),
        (["--where", "1=1; select 1"], 1, "query", "one SELECT"),
        (["--where", "input_size < 0"], 1, "analysis", "no scored answer"),
        (["--cohort", "nowhere.sql"], 1, "error", "No such file"),
        (["--cutoff", "2"], 2, "usage", "less than or equal"),
        (["--by", "colour"], 2, "usage", "colour"),
        (["--where", ""], 2, "usage", "--where: expected SQL"),
        (["--cohort", "/dev/null"], 2, "usage", "--cohort: expected SQL"),
        (["--seed", "-1"], 2, "usage", "--seed"),
        (["--plot", "figure.pdf"], 2, "usage", ".svg"),
        (["--chart", "gain"], 2, "usage", "--chart: names a chart for --plot FILE"),
    ],
    ids=[
        "column",
        "syntax",
        "two-statements",
        "second-statement",
        "empty",
        "no-file",
        "range",
        "choice",
        "no-condition",
        "no-cohort",
        "seed",
        "format",
        "no-plot",
    ],
)
def test_failures_say_what_and_where(store: Store, arguments: list[str], code: int, kind: str, said: str) -> None:
    plain = store.call("analyze", "ceiling", *arguments)
    assert plain.exit_code == code
    assert said in plain.stderr
    assert not plain.stdout
    as_json = store.call("analyze", "ceiling", *arguments, "--json")
    assert as_json.exit_code == code
    error = json.loads(as_json.stdout)["error"]
    assert set(error) == {"kind", "message", "where", "hint"}
    assert error["kind"] == kind


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--csv", "/proc/nowhere"], 1, "/proc/nowhere: cannot be written"),
        (["--html", "/proc/nowhere/r.html"], 1, "/proc/nowhere/r.html: cannot be written"),
        (["--plot", "/proc/nowhere/p.svg"], 1, "/proc/nowhere/p.svg: cannot be written"),
        (["--plot", "p.svg", "--chart", "nope"], 2, "--chart: ceiling has no chart 'nope' here (it has probability, gain"),
    ],
    ids=["csv", "html", "plot", "chart"],
)
def test_a_file_that_cannot_be_written_costs_no_answer(store: Store, arguments: list[str], code: int, said: str) -> None:
    plain = store.call("analyze", "ceiling", "--no-save", *arguments)
    assert plain.exit_code == code
    assert plain.stdout.startswith("trajectories")
    assert plain.stderr.splitlines()[-1].startswith(f"trackr: {said}")
    as_json = store.call("analyze", "ceiling", "--no-save", *arguments, "--json")
    assert as_json.exit_code == code
    assert json.loads(as_json.stdout)["headline"]["trajectories"] > 0
    assert said in as_json.stderr


def test_a_chart_that_is_none_stores_nothing_and_other_files_are_written(store: Store, tmp_path: Path) -> None:
    before = store.call("analyses", "list").stdout
    assert store.call("analyze", "ceiling", "--plot", tmp_path / "p.svg", "--chart", "nope", "--html", tmp_path / "r.html").exit_code == 2
    assert store.call("analyses", "list").stdout == before
    assert [path.name for path in tmp_path.iterdir()] == ["r.html"]


def test_nothing_to_draw_is_said_after_the_answer(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("analyses.ceiling.analysis._charts", lambda *_: Charts())
    before = len(json.loads(store.call("analyses", "list", "--json").stdout))
    outcome = store.call("analyze", "ceiling", "--plot", tmp_path / "p.svg")
    assert outcome.exit_code == 1
    assert outcome.stdout.startswith("trajectories")
    assert outcome.stderr.splitlines()[-1] == "trackr: --plot: ceiling has nothing to draw here (its tables and warnings say why)"
    assert len(json.loads(store.call("analyses", "list", "--json").stdout)) == before + 1


def test_every_option_has_help_and_its_default(store: Store) -> None:
    text = " ".join(store.call("analyze", "ceiling", "--help").stdout.split())
    for name in Parameters.model_fields:
        assert f"--{name.replace('_', '-')}" in text
    assert "[default: 0.2]" in text


def test_every_sql_file_runs_on_an_empty_lake(tmp_path: Path) -> None:
    from importlib.resources import files

    from tracker.database import open_database
    from tracker.lake import Lake, connect, sync

    database, lake = open_database(f"sqlite:///{tmp_path / 'trackr.db'}"), Lake(tmp_path / "lake")
    sync(database, lake)
    given = {
        "records": "both",
        "attempts": "all",
        "sides": ["run:1"],
        "question": ["b/k"],
        "questions": [1],
        "configurations": [1],
        "runs": [1],
    }
    with connect(lake) as session:
        session.connection.execute(f"create temp table cohort as {statement('ceiling')}", {"records": "scored"})
        for file in (files("analyses") / "cohorts").iterdir():
            text = file.read_text(encoding="utf-8")
            assert text.startswith("-- ")
            assert session.connection.execute(text, bindings(text, given)).fetchall() == []
        session.connection.execute("drop table cohort")
        with pytest.raises(tracker.errors.AnalysisError, match="no scored answer"):
            run(session, Parameters())
    database.close()


def test_the_shipped_cohort_is_what_the_result_names(store: Store) -> None:
    result = store.json("analyze", "ceiling", "--no-save")
    with tracker.open(str(store.db)) as opened:
        connection: duckdb.DuckDBPyConnection = opened.session().connection
        rows = connection.execute(
            f"select count(*) from ({result['cohort']['sql']})", {"records": result["parameters"]["records"]}
        ).fetchone()
    assert rows == (result["cohort"]["rows"],)


def test_a_public_study_is_answered_as_far_as_its_data_goes(tmp_path: Path) -> None:
    """LLaVA-1.5-7B and Qwen2.5-VL on V*Bench: no token counts, one model without a description, no two backbone sizes."""
    root = samples("vlm_custom", "mllms_fine_grained")
    with tracker.open(str(tmp_path / "trackr.db")) as opened:
        opened.ingest(root / "vstar", study=ROOT / "examples" / "vstar-fine-grained" / "study.toml")
        session = opened.session()
        result = run(session, Parameters(where="benchmark = 'V*Bench'"))
        relation = session.connection.execute("select * from answers")
        names = [column[0] for column in relation.description or ()]
        rows = [dict(zip(names, row, strict=True)) for row in relation.fetchall()]
    accuracy = naive.accuracies(rows)
    regimes = Counter(naive.regime(value) for value in accuracy.values())
    assert result.headline["trajectories"] == len(accuracy) == 2 * 191
    assert {name: result.headline[name] for name in REGIMES} == pytest.approx({name: regimes[name] / len(accuracy) for name in REGIMES})
    assert any("visual_tokens missing" in warning for warning in result.warnings)
    assert any("llava" in warning for warning in result.warnings)
    assert result.headline["high_compute_persistent"] is None
    assert all(row["accuracy"] is not None and row["slope"] is None for row in result.tables["halves"].rows())
