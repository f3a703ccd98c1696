"""Catalogs and labels: what they change in runs that are already there, and round trips."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING, Any

import pytest

from tests.ingest.tables import content, run_rows, write_rows
from tracker.catalog import dump
from tracker.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

    from tracker.api import Tracker


def toml(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def labels(path: Path, *rows: tuple[str, ...], header: str = "benchmark,question_key,scheme,value,source") -> Path:
    path.write_text("\n".join([header, *(",".join(row) for row in rows)]) + "\n")
    return path


def shown(store: Tracker) -> list[tuple[Any, ...]]:
    return store.sql("select question_key, domain, skill from answers order by all").fetchall()  # type: ignore[no-any-return]


# ---- catalogs --------------------------------------------------------------------------------


def test_a_description_links_again_what_was_ingested_before_it(each_store: Tracker, tmp_path: Path) -> None:
    write_rows(tmp_path / "a.jsonl", run_rows("lab/Mine-7B", "my_bench", prompt_tokens=10))
    report = each_store.ingest(tmp_path / "a.jsonl")
    assert (report.unknown_models, report.unknown_benchmarks) == (["lab/Mine-7B"], ["my_bench"])
    own = toml(
        tmp_path / "own.toml",
        '[families.F]\n[series.S]\nfamily = "F"\n[models.Mine]\nseries = "S"\nbackbone = "Qwen3-8B"\naliases = ["lab/Mine-7B"]\n'
        '[benchmarks.MyBench]\nsuite = "Mine"\naliases = ["my_bench"]\n',
    )
    done = each_store.import_catalog(own)
    assert (done.merged_models, done.merged_benchmarks, done.relinked_runs) == (["lab/Mine-7B"], ["my_bench"], 1)
    found = each_store.sql("select family, series, model, parameters, suite, benchmark, n, flops from cells").fetchall()
    assert found == [("F", "S", "Mine", 8_190_735_360, "Mine", "MyBench", 4, 2.0 * 8_190_735_360 * 10)]
    assert each_store.sql("select series, count(*) from trajectories group by 1").fetchall() == [("S", 4)]
    again = each_store.import_catalog(own)
    assert not again.anything
    assert each_store.ingest(tmp_path / "a.jsonl").unknown_models == []


def test_importing_an_export_changes_nothing(each_store: Tracker, tmp_path: Path) -> None:
    write_rows(tmp_path / "a.jsonl", run_rows())
    each_store.ingest(tmp_path / "a.jsonl")
    toml(
        tmp_path / "own.toml", '[models.Mine]\nbackbone = "Qwen3-8B"\naliases = ["lab/Mine"]\n[benchmarks.B]\ntasks = { c = "reasoning" }\n'
    )
    each_store.import_catalog(tmp_path / "own.toml")
    before = content(each_store)
    version = each_store.session().data_version
    toml(tmp_path / "export.toml", dump(each_store.export_catalog(found=False)))
    report = each_store.import_catalog(tmp_path / "export.toml")
    assert (report.added, report.changed) == ([], [])
    assert content(each_store) == before
    assert each_store.session().data_version == version


def test_a_later_file_may_refer_to_what_an_earlier_one_described(store: Tracker, tmp_path: Path) -> None:
    store.import_catalog(toml(tmp_path / "one.toml", '[backbones.Mine-LM]\nparameters = 5\nsource = "us"\n'))
    store.import_catalog(toml(tmp_path / "two.toml", '[models.Mine]\nbackbone = "Mine-LM"\naliases = ["lab/Mine"]\n'))
    write_rows(tmp_path / "a.jsonl", run_rows("lab/Mine"))
    store.ingest(tmp_path / "a.jsonl")
    assert store.sql("select model, parameters from cells").fetchall() == [("Mine", 5)]


def test_what_was_imported_is_not_overwritten_by_what_is_shipped(store: Tracker, tmp_path: Path) -> None:
    from tracker.catalog import load
    from tracker.ingest.catalog import SHIPPED, import_catalog

    store.import_catalog(toml(tmp_path / "own.toml", "[benchmarks.TreeBench]\nn_questions = 7\n"))
    import_catalog(store.database(), load(), origin=SHIPPED)
    with store.database().write() as transaction:
        transaction.connection.exec_driver_sql("UPDATE store SET catalog_digest = 'older'")
    write_rows(tmp_path / "a.jsonl", run_rows())
    store.ingest(tmp_path / "a.jsonl")
    assert store.sql("select n_questions, origin from benchmarks where name = 'TreeBench'").fetchall() == [(7, "imported")]


def test_a_model_named_as_a_series_keeps_a_series_of_its_own(each_store: Tracker, tmp_path: Path) -> None:
    write_rows(tmp_path / "a.jsonl", run_rows("InternVL3"))
    each_store.ingest(tmp_path / "a.jsonl")
    assert each_store.sql("select model, series, family from cells").fetchall() == [("InternVL3", "InternVL3 (found)", None)]


def test_a_found_model_that_is_a_language_model_has_its_parameters(each_store: Tracker, tmp_path: Path) -> None:
    write_rows(
        tmp_path / "a.jsonl", run_rows("Qwen/Qwen3-8B") + run_rows("Qwen__Qwen3-4B") + run_rows("qwen3-14b") + run_rows("lab/Nothing")
    )
    each_store.ingest(tmp_path / "a.jsonl")
    found = dict(each_store.sql("select model, parameters from cells").fetchall())
    assert found["Qwen/Qwen3-8B"] == 8_190_735_360
    assert found["Qwen__Qwen3-4B"]
    assert found["qwen3-14b"]
    assert found["lab/Nothing"] is None


def test_the_aliases_of_a_study_merge_spellings(each_store: Tracker, tmp_path: Path) -> None:
    write_rows(tmp_path / "in" / "a.jsonl", run_rows("ckpt-1", "b-dev"))
    each_store.ingest(tmp_path / "in")
    (tmp_path / "in" / "study.toml").write_text('[model_aliases]\n"ckpt-1" = "Mine"\n[benchmark_aliases]\n"b-dev" = "HRBench4K"\n')
    report = each_store.ingest(tmp_path / "in")
    assert report.unchanged == 1
    assert each_store.sql("select model, series, benchmark from cells").fetchall() == [("Mine", "Mine", "HRBench4K")]
    before = content(each_store)
    each_store.ingest(tmp_path / "in")
    assert content(each_store) == before


# ---- labels ----------------------------------------------------------------------------------


def test_labels_wait_for_their_questions(each_store: Tracker, tmp_path: Path) -> None:
    path = labels(tmp_path / "l.csv", ("Bench", "q0", "domain", "D1", "us"), ("Bench", "q9", "domain", "D9", "us"))
    report = each_store.import_labels(path)
    assert (report.read, report.added, report.changed, report.waiting) == (2, 2, 0, 2)
    write_rows(tmp_path / "a.jsonl", run_rows(n=2))
    each_store.ingest(tmp_path / "a.jsonl")
    assert shown(each_store) == [("q0", "D1", None), ("q1", None, None)]
    again = each_store.import_labels(path)
    assert (again.added, again.changed, again.waiting) == (0, 0, 1)


def test_one_value_per_question_scheme_and_source_whatever_the_spelling(each_store: Tracker, tmp_path: Path) -> None:
    write_rows(tmp_path / "a.jsonl", run_rows(benchmark="HRBench4K", n=1))
    each_store.ingest(tmp_path / "a.jsonl")
    for spelling, value in (("HRBench4K", "S1"), ("hrbench4k", "S2"), ("HRBench4K", "S1"), ("hrbench4k", "S3")):
        each_store.import_labels(labels(tmp_path / "l.csv", (spelling, "q0", "skill", value, "us")))
        assert shown(each_store) == [("q0", None, value)]
    assert each_store.sql("select count(*) from question_labels").fetchall() == [(1,)]


def test_the_views_use_one_source_by_stated_priority(each_store: Tracker, tmp_path: Path) -> None:
    """And count(answers) is count(records), whatever the labels."""
    write_rows(tmp_path / "a.jsonl", run_rows(n=2, domain="D0"))
    each_store.ingest(tmp_path / "a.jsonl")
    rows = [("Bench", "q0", "domain", "DA", "aaa"), ("Bench", "q0", "domain", "DZ", "zzz"), ("Bench", "q1", "domain", "DZ", "zzz")]
    each_store.import_labels(labels(tmp_path / "l.csv", *rows))
    assert shown(each_store) == [("q0", "DA", None), ("q1", "D0", None)], "alphabetical: aaa, native, zzz"
    each_store.prefer_labels("domain", ["zzz"])
    assert shown(each_store) == [("q0", "DZ", None), ("q1", "DZ", None)]
    each_store.prefer_labels("domain", ["native", "zzz"])
    assert shown(each_store) == [("q0", "D0", None), ("q1", "D0", None)]
    assert each_store.sql("select (select count(*) from answers) = (select count(*) from records)").fetchall() == [(True,)]


def test_labels_of_runs_go_with_their_questions_and_labels_of_files_wait(each_store: Tracker, tmp_path: Path) -> None:
    path = write_rows(tmp_path / "a.jsonl", run_rows(n=1, domain="D0"))
    each_store.ingest(path)
    each_store.import_labels(labels(tmp_path / "l.csv", ("Bench", "q0", "skill", "S1", "us")))
    ((run,),) = each_store.sql("select id from runs").fetchall()
    each_store.delete_runs([run])
    assert each_store.sql("select scheme, question_id from question_labels").fetchall() == [("skill", None)]
    write_rows(path, run_rows(n=1))
    each_store.ingest(path)
    assert shown(each_store) == [("q0", None, "S1")]


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_importing_exported_labels_changes_nothing(each_store: Tracker, tmp_path: Path, suffix: str) -> None:
    from tracker.ingest.labels import export_labels

    write_rows(tmp_path / "a.jsonl", run_rows(benchmark="hrbench4k", n=2, domain='D "1", x'))
    each_store.ingest(tmp_path / "a.jsonl")
    each_store.import_labels(labels(tmp_path / "l.csv", ("Later", "k", "skill", "S1", "us"), ("hrbench4k", "q0", "skill", "S2", "us")))
    with each_store.database().read() as connection:
        rows = list(export_labels(connection))
    assert len(rows) == 4
    assert {row["benchmark"] for row in rows} == {"HRBench4K", "Later"}
    path = tmp_path / f"export{suffix}"
    if suffix == ".csv":
        with path.open("w", newline="") as stream:
            writer = csv.DictWriter(stream, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    else:
        write_rows(path, rows)
    report = each_store.import_labels(path)
    assert (report.read, report.added, report.changed) == (4, 0, 0)


BAD_LABELS = {
    "benchmark,question_key,value\nB,q,D\n": "line 1: expected the columns",
    "benchmark,question_key,scheme,value\nB,q,domain,\n": "line 2: expected a value for value",
    "benchmark,question_key,scheme,value\nB,\xff,domain,D\n": "not UTF-8",
}


@pytest.mark.parametrize("text", BAD_LABELS)
def test_a_bad_label_file_says_where(store: Tracker, tmp_path: Path, text: str) -> None:
    (tmp_path / "l.csv").write_bytes(text.encode("latin1"))
    with pytest.raises(InputError) as caught:
        store.import_labels(tmp_path / "l.csv")
    assert BAD_LABELS[text] in str(caught.value)
    assert str(tmp_path / "l.csv") in str(caught.value)


def test_a_bad_label_file_of_a_study_is_a_rejection_and_the_runs_go_in(store: Tracker, tmp_path: Path) -> None:
    write_rows(tmp_path / "in" / "a.jsonl", run_rows())
    (tmp_path / "in" / "l.csv").write_text("benchmark,question_key,scheme,value\nBench,q0,domain,\n")
    (tmp_path / "in" / "study.toml").write_text('labels = ["l.csv"]\n')
    rehearsed = store.ingest(tmp_path / "in", dry_run=True)
    first, second = (store.ingest(tmp_path / "in") for _ in range(2))
    for report in (rehearsed, first, second):
        assert [(one.file, one.line) for one in report.rejected] == [(str(tmp_path / "in" / "l.csv"), 2)]
    assert (first.new, second.unchanged) == (1, 1)
    assert store.sql("select count(*) from rejections").fetchall() == [(1,)]
    (tmp_path / "in" / "l.csv").write_text("benchmark,question_key,scheme,value\nBench,q0,domain,D1\n")
    assert (store.ingest(tmp_path / "in").labels, shown(store)[0]) == (1, ("q0", "D1", None))


# ---- questions that sources describe differently ----------------------------------------------


def test_sources_that_disagree_about_a_question_are_counted_and_the_value_that_sorts_first_stays(
    each_store: Tracker, tmp_path: Path
) -> None:
    first = write_rows(tmp_path / "a.jsonl", run_rows(n=3, input_size=224, n_options=5, gold="B"))
    second = write_rows(tmp_path / "b.jsonl", run_rows(n=2, input_size=448, n_options=4, gold="B"))
    assert each_store.ingest(first).disputed == 0
    assert each_store.ingest(second).disputed == 2
    shown_options = each_store.sql("select distinct question_key, n_options from answers order by all").fetchall()
    assert shown_options == [("q0", 4), ("q1", 4), ("q2", 5)]


def test_the_name_of_a_described_model_is_no_alias_of_another(each_store: Tracker, tmp_path: Path) -> None:
    mine = toml(tmp_path / "mine.toml", '[series.Mine]\n[models.A]\nseries = "Mine"\naliases = ["InternVL3-8B"]\n')
    with pytest.raises(InputError, match="name of another model"):
        each_store.import_catalog(mine)
    assert each_store.ingest(write_rows(tmp_path / "a.jsonl", run_rows("InternVL3-8B", n=2))).unknown_models == []
