from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest

import tracker
from tracker.batch import RunHeader, Settings, Source
from tracker.errors import InputError, UsageError
from tracker.study import Study, find_study

HEADER = RunHeader(model="m", benchmark="b")


def study(folder: Path, text: str) -> Study:
    path = folder / "study.toml"
    path.write_text(text)
    return Study.load(path)


def source(path: Path | str, reader: str = "native") -> Source:
    return Source(reader=reader, uri=str(path), files=())


def test_an_empty_study_changes_nothing() -> None:
    empty = Study.empty()
    assert empty.apply(HEADER, source("/a/b.jsonl")) is HEADER
    assert empty.effective(source("/a/b.jsonl")) == {}
    assert empty.root is None


def test_a_byte_order_mark_is_no_fault_and_a_number_beyond_64_bits_is(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_bytes(b"\xef\xbb\xbf[questions]\nB = 2\n")
    assert Study.load(tmp_path / "study.toml").questions == {"B": 2}
    for text in ("[[path]]\npattern = 'x'\nsettings.x = 18446744073709551616\n", "[questions]\nB = 99999999999999999999\n"):
        with pytest.raises(UsageError, match="is beyond 64 bits") as caught:
            study(tmp_path, text)
        assert "\n" not in str(caught.value)


def test_paths_give_fields_inside_the_study_relative_to_it_else_absolute(tmp_path: Path) -> None:
    (tmp_path / "px999").mkdir()
    found = study(tmp_path / "px999", "[[path]]\npattern = 'px(?P<input_size>\\d+)'\ninput_mode = \"fixed\"\n")
    assert found.fields(tmp_path / "px999" / "px448" / "a.jsonl") == {"input_size": 448, "input_mode": "fixed"}
    assert found.fields(tmp_path / "px999" / "a.jsonl") == {}
    assert found.fields("/elsewhere/px672/a.jsonl") == {"input_size": 672, "input_mode": "fixed"}
    assert found.fields("mlflow://host/px672/run") == {"input_size": 672, "input_mode": "fixed"}


def test_later_rules_win_and_constants_may_use_groups(tmp_path: Path) -> None:
    found = study(
        tmp_path,
        """
        [[path]]
        pattern = '(?P<arm>[a-z]+)-(?P<size>\\d+)(?P<tags__note>!)?'
        variant = "{arm} at {size}"
        model = "first"
        tags.site = "north"
        settings.seed = 3
        [[path]]
        pattern = 'crop'
        model = "second"
        """,
    )
    assert found.fields(tmp_path / "crop-448.jsonl") == {
        "variant": "crop at 448",
        "model": "second",
        "tags.site": "north",
        "settings.seed": 3,
    }
    header = found.apply(HEADER, source(tmp_path / "pool-9!.jsonl"))
    assert (header.model, header.configuration.variant, header.tags, header.settings) == (
        "first",
        "pool at 9",
        {"site": "north", "note": "!"},
        {"seed": 3},
    )


def test_the_run_s_own_config_gives_fields_after_the_path(tmp_path: Path) -> None:
    found = study(
        tmp_path,
        """
        [[path]]
        pattern = '.'
        pixel_cap = 1
        [[config]]
        key = "model_args.max_pixels"
        to = "pixel_cap"
        [[config]]
        key = "command"
        to = "precision"
        pattern = '--dtype (\\w+)'
        [[config]]
        key = "tags.branch"
        to = "variant"
        [[config]]
        key = "not.there"
        to = "prompt"
        """,
    )
    header = HEADER.model_copy(
        update={"settings": {"model_args": {"max_pixels": "1003520"}, "command": "run --dtype bf16"}, "tags": {"branch": "vcd"}}
    )
    applied = found.apply(header, source("/a.jsonl"))
    assert applied.configuration == Settings(pixel_cap=1003520, precision="bf16", variant="vcd")


def test_the_kind_of_a_run_comes_from_a_constant_a_capture_or_the_config(tmp_path: Path) -> None:
    told = HEADER.model_copy(update={"settings": {"phase": "training"}})
    for text in (
        "[[path]]\npattern = '.'\nkind = \"training\"\n",
        "[[path]]\npattern = '(?P<kind>training|evaluation)-'\n",
        "[[config]]\nkey = 'phase'\nto = 'kind'\n",
    ):
        assert study(tmp_path, text).apply(told, source(tmp_path / "training-1" / "a.jsonl")).kind == "training"
    with pytest.raises(
        InputError, match=r"a\.jsonl: study file .*study\.toml: kind: input should be 'evaluation' or 'training', found 'tune'"
    ):
        study(tmp_path, "[[path]]\npattern = '(?P<kind>tune)-'\n").apply(told, source(tmp_path / "tune-1" / "a.jsonl"))


def test_an_empty_constant_clears_a_configuration_column_and_no_other_field(tmp_path: Path) -> None:
    header = HEADER.model_copy(update={"configuration": Settings(max_new_tokens=16, few_shot=0, precision="bf16"), "system": "north"})
    text = '[[path]]\npattern = \'.\'\nmax_new_tokens = ""\nprecision = ""\nmodel = ""\nsystem = ""\n'
    applied = study(tmp_path, text).apply(header, source(tmp_path / "a.jsonl"))
    assert applied.configuration == Settings(few_shot=0)
    assert (applied.model, applied.system) == ("m", "north")
    later = study(tmp_path, text + "[[path]]\npattern = '.'\nmax_new_tokens = 64\n")
    assert later.apply(header, source(tmp_path / "a.jsonl")).configuration == Settings(few_shot=0, max_new_tokens=64)


def test_kind_and_cleared_columns_end_to_end(tmp_path: Path) -> None:
    """The same evaluation with a limit that one format logs and another does not is one configuration once the limit is cleared."""
    rows = [{"model": "m", "benchmark": "b", "question_id": "q", "correct": True}]
    for name, limit in (("one", {"max_new_tokens": 16}), ("two", {})):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.jsonl").write_text("".join(json.dumps(row | limit | {"run_id": name}) + "\n" for row in rows))
    (tmp_path / "study.toml").write_text(
        "[[path]]\npattern = '.'\nmax_new_tokens = \"\"\n[[path]]\npattern = 'two/'\nkind = \"training\"\n"
    )
    with tracker.open(f"sqlite:///{tmp_path}/t.db", tmp_path / "lake") as store:
        assert not store.ingest(tmp_path / "one", tmp_path / "two", study=tmp_path / "study.toml").rejected
        told = "select r.external_id, r.kind, c.max_new_tokens from runs r join configurations c on c.id = r.configuration_id order by 1"
        assert store.sql(told).fetchall() == [("one", "evaluation", None), ("two", "training", None)]
        assert store.sql("select count(*) from configurations").fetchall() == [(1,)]


def test_a_value_that_does_not_fit_its_field_names_file_field_and_value(tmp_path: Path) -> None:
    found = study(tmp_path, "[[path]]\npattern = '(?P<input_size>[a-z]+)\\.jsonl'\n")
    with pytest.raises(InputError, match=r"big\.jsonl.*study\.toml.*input_size.*found 'big'"):
        found.fields(tmp_path / "big.jsonl")


def test_labels_questions_and_aliases(tmp_path: Path) -> None:
    found = study(
        tmp_path, 'labels = ["l/labels.csv"]\n[questions]\n"V*Bench" = 191\n[model_aliases]\nx = "X"\n[benchmark_aliases]\ny = "Y"\n'
    )
    assert found.labels == (tmp_path / "l" / "labels.csv",)
    assert (found.questions, found.model_aliases, found.benchmark_aliases) == ({"V*Bench": 191}, {"x": "X"}, {"y": "Y"})
    assert found.root == tmp_path


BAD = {
    "qestions = 1": r"qestions: unknown key 'qestions'; did you mean 'questions'",
    "[[path]]\npatern = 'x'": r"\[\[path\]\] 1.patern: unknown key 'patern'; did you mean 'pattern'",
    "[[path]]\npattern = 'x'\ninput_sise = 3": r"unknown key 'input_sise'; did you mean 'input_size'",
    "[[path]]\npattern = '('": r"\[\[path\]\] 1.pattern: not a regular expression",
    "[[path]]\npattern = '(?P<input_sze>x)'": r"pattern: group 'input_sze' is no field; did you mean 'input_size'\? \(or use it",
    "[[path]]\npattern = 'x'\nvariant = '{arm}'": r"\{arm\} is no group of pattern",
    "[[path]]\npattern = 'x'\nkind = 'tuning'": r"\[\[path\]\] 1: kind: expected evaluation or training, found 'tuning'",
    "[[scores]]\nfiles = 'x'\nstatus = 'done'\n[scores.columns]\nmodel = 'm'": r"status: expected finished or partial or failed, found 'done'",
    "[[config]]\nkey = 'a'\nto = 'modl'": r"\[\[config\]\] 1.to: 'modl' is no field; did you mean 'model'",
    "[[config]]\nkey = 'a'": r"\[\[config\]\] 1.to: missing",
    "[[table]]\nfiles = 'x'\n[table.columns]\nprediction = 'a'\ngold = 'b'": r"question_id is missing",
    "[[table]]\nfiles = 'x'\n[table.columns]\nquestion_id = 'a'": r"expected correct, score, or both prediction and gold",
    "[[table]]\nfiles = 'x'\n[table.columns]\nquestion_id = 'a'\ncorect = 'b'": r"'corect' is no field; did you mean 'correct'",
    "[[table]]\nfiles = 'x'\n[table.columns]\nquestion_id = 'a'\ncorrect = { valu = 1 }": r"unknown key 'valu'; did you mean 'value'",
    "[[table]]\nfiles = 'x'\nunfold = ['predicton']\n[table.columns]\nquestion_id = 'a'\nprediction = 'p'\ngold = 'g'": r"did you mean 'prediction'",
    "[questions]\nb = 0": r"questions.b: Input should be greater than 0",
    "labels = [ = ]": r"not valid TOML: .*line 1",
}


@pytest.mark.parametrize("text", BAD)
def test_mistakes_name_the_file_the_key_and_the_nearest_known_one(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError, match=BAD[text]) as caught:
        study(tmp_path, text)
    assert caught.value.where == str(tmp_path / "study.toml")


def test_a_missing_study_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        Study.load(tmp_path / "none.toml")


def test_the_effective_mapping_holds_what_decides_and_nothing_else(tmp_path: Path) -> None:
    text = """
        [questions]
        b = 10
        c = 20
        [[path]]
        pattern = 'b1/'
        benchmark = "b"
        input_size = 448
        [[table]]
        files = 't\\.csv$'
        model = "m"
        [table.columns]
        question_id = "id"
        correct = "hit"
    """
    found = study(tmp_path, text)
    assert found.effective(source(tmp_path / "b1" / "a.jsonl")) == {"path": {"benchmark": "b", "input_size": 448}, "questions": {"b": 10}}
    assert found.effective(source(tmp_path / "a.jsonl")) == {"questions": {"b": 10, "c": 20}}
    assert set(found.effective(source(tmp_path / "b1" / "t.csv", "table"))) == {"path", "questions", "table", "captures"}
    moved = study(tmp_path, text.replace("c = 20", "c = 21"))
    assert moved.effective(source(tmp_path / "b1" / "a.jsonl")) == found.effective(source(tmp_path / "b1" / "a.jsonl"))


def test_the_study_file_is_looked_for_in_the_folders_given_then_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    assert find_study([tmp_path / "runs"]) is None
    (tmp_path / "study.toml").touch()
    assert find_study([tmp_path / "runs"]) == Path("study.toml")
    (tmp_path / "runs" / "study.toml").touch()
    assert find_study([tmp_path / "runs"]) == tmp_path / "runs" / "study.toml"
    assert find_study([tmp_path / "runs" / "a.jsonl"]) == tmp_path / "runs" / "study.toml"


def test_a_study_crosses_process_borders(tmp_path: Path) -> None:
    found = study(tmp_path, "[[path]]\npattern = 'px(?P<input_size>\\d+)'\n")
    found.fields(tmp_path / "px1")
    again = pickle.loads(pickle.dumps(found))  # noqa: S301
    assert again == found
    assert again.fields(tmp_path / "px448") == {"input_size": 448}
