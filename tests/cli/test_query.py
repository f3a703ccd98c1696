"""`trackr query`: formats, parameters, limits, errors, streams."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cli.commands.query import choose_format, parse_params, typed
from tests.cli.running import Done, runner
from tests.conftest import ROOT
from tests.lake.study import add_run, new_database
from tracker.errors import UsageError
from tracker.lake import Lake, sync

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FORMATS = ("table", "csv", "json", "ndjson", "markdown", "parquet", "arrow")


@pytest.fixture
def url(sqlite_url: str, tmp_path: Path) -> str:
    """A store with a fresh lake beside its database."""
    db = new_database(sqlite_url)
    for seed in range(6):
        add_run(db, seed)
    sync(db, Lake(tmp_path / "lake"))
    db.close()
    return sqlite_url


@pytest.fixture
def trackr(url: str, capfd: pytest.CaptureFixture[str]) -> Callable[..., Done]:
    return runner(capfd, "--db", url)


def environment(**extra: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), **extra}


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "cli.main", *arguments]


class TestFormats:
    SQL = "select 1 as n, 'a,\"b\"\n' as t, null as nothing, '' as empty, 'nan'::double as x, 1/3 as third, true as yes, [1.5, 'inf'::double] as l, timestamptz '2026-01-01 10:00:00+00' as at"

    def test_json(self, trackr: Callable[..., Done]) -> None:
        done = trackr("query", self.SQL, "--format", "json")
        assert done.code == 0
        assert done.json() == [
            {
                "n": 1,
                "t": 'a,"b"\n',
                "nothing": None,
                "empty": "",
                "x": None,
                "third": 1 / 3,
                "yes": True,
                "l": [1.5, None],
                "at": "2026-01-01T10:00:00Z",
            },
        ]
        assert list(done.json()[0]) == ["n", "t", "nothing", "empty", "x", "third", "yes", "l", "at"]
        assert done.err == ""

    def test_ndjson_is_one_object_per_line(self, trackr: Callable[..., Done]) -> None:
        done = trackr("query", "from range(3) t(i)", "--format", "ndjson")
        assert done.out == '{"i":0}\n{"i":1}\n{"i":2}\n'

    def test_empty_json_is_a_list(self, trackr: Callable[..., Done]) -> None:
        assert trackr("query", "select 1 as a where false", "--json").json() == []

    def test_csv_keeps_null_apart_from_empty(self, trackr: Callable[..., Done]) -> None:
        done = trackr("query", self.SQL, "--format", "csv")
        assert done.out.splitlines()[0] == "n,t,nothing,empty,x,third,yes,l,at"
        assert ',,"",nan,0.3333333333333333,true,' in done.out
        rows = list(csv.reader(io.StringIO(done.out)))
        assert rows[1][1] == 'a,"b"\n'

    def test_table_shows_null_and_aligns_numbers(self, trackr: Callable[..., Done]) -> None:
        done = trackr("query", "select * from (values (1, 'a', 0.1234567891), (200, null, null)) t(n, text, share)")
        assert done.out.splitlines() == ["  n  text     share", "───  ────  ────────", "  1  a     0.123457", "200  null      null"]

    def test_markdown(self, trackr: Callable[..., Done]) -> None:
        done = trackr("query", "select 1 as n, 'a|b<c>' as t", "--format", "markdown")
        assert done.out == "| n | t |\n| ---: | --- |\n| 1 | a\\|b&lt;c> |\n"

    def test_parquet_and_arrow_keep_types(self, trackr: Callable[..., Done], tmp_path: Path) -> None:
        for name, read in (("x.parquet", pq.read_table), ("x.arrow", lambda path: pa.ipc.open_file(path).read_all())):
            done = trackr("query", "select * from answers order by all", "-o", str(tmp_path / name))
            assert (done.code, done.out) == (0, "")
            table = read(tmp_path / name)
            assert table.num_rows > 50
            assert table.schema.field("counts").type == pa.bool_()
            assert table.schema.field("credit").type == pa.float64()

    @pytest.mark.parametrize("kind", FORMATS)
    def test_every_format_gives_every_row(self, trackr: Callable[..., Done], tmp_path: Path, kind: str) -> None:
        n = 30_000
        path = tmp_path / "out"
        assert trackr("query", f"select i, 'x' || i as t from range({n}) t(i)", "--format", kind, "-o", str(path)).code == 0
        if kind == "parquet":
            assert pq.read_metadata(path).num_rows == n
        elif kind == "arrow":
            assert pa.ipc.open_file(path).read_all().num_rows == n
        elif kind == "json":
            assert len(json.loads(path.read_text())) == n
        else:
            assert len(path.read_text().splitlines()) == n + {"table": 2, "csv": 1, "ndjson": 0, "markdown": 2}[kind]

    @pytest.mark.parametrize("kind", FORMATS)
    def test_every_format_takes_a_result_without_rows_and_with_repeated_names(
        self, trackr: Callable[..., Done], tmp_path: Path, kind: str
    ) -> None:
        assert trackr("query", "select 1 as a, 2 as b where false", "--format", kind, "-o", str(tmp_path / "out")).code == 0
        assert trackr("query", "select 1 as a, 2 as a", "--format", kind, "-o", str(tmp_path / "out")).code == 0
        if kind == "json":
            assert json.loads((tmp_path / "out").read_text()) == [{"a": 1, "a_1": 2}]

    @pytest.mark.parametrize(
        ("name", "kind"),
        [
            ("a.csv", "csv"),
            ("a.JSON", "json"),
            ("a.jsonl", "ndjson"),
            ("a.md", "markdown"),
            ("a.parquet", "parquet"),
            ("a.feather", "arrow"),
            ("a.txt", "table"),
        ],
    )
    def test_format_follows_the_suffix(self, tmp_path: Path, name: str, kind: str) -> None:
        assert choose_format(None, tmp_path / name) == kind
        assert choose_format("csv", tmp_path / name) == "csv"

    def test_unknown_suffix_is_wrong_usage(self, trackr: Callable[..., Done], tmp_path: Path) -> None:
        done = trackr("query", "select 1", "-o", str(tmp_path / "a.xlsx"))
        assert done.code == 2
        assert ".parquet" in done.err

    def test_escapes_in_model_written_text_are_shown_not_obeyed(self, trackr: Callable[..., Done]) -> None:
        sql = "select 'a' || chr(27) || '[2J' || chr(7) || chr(8238) || 'b' as t"
        for kind in ("table", "markdown"):
            done = trackr("query", sql, "--format", kind)
            assert "\x1b" not in done.out
            assert "\u202e" not in done.out
            assert "x1b[2J" in done.out
        assert trackr("query", sql, "--json").json() == [{"t": "a\x1b[2J\x07\u202eb"}]

    def test_numbers_beyond_64_bits(self, trackr: Callable[..., Done]) -> None:
        assert trackr("query", "select 170141183460469231731687303715884105727::hugeint as h, 'inf'::double as i", "--json").json() == [
            {"h": 2**127 - 1, "i": None},
        ]


class TestParameters:
    @pytest.mark.parametrize(
        ("text", "value"),
        [
            ("1", 1),
            ("-7", -7),
            ("0.5", 0.5),
            ("1e3", 1000.0),
            (".5", 0.5),
            ("true", True),
            ("False", False),
            ("null", None),
            ("", ""),
            ("nan", "nan"),
            ("1_000", "1_000"),
            ("a=b", "a=b"),
            ("1.2.3", "1.2.3"),
        ],
    )
    def test_values_have_types(self, text: str, value: Any) -> None:
        found = typed(text)
        assert found == value
        assert type(found) is type(value)

    def test_value_reaches_the_sql(self, trackr: Callable[..., Done]) -> None:
        done = trackr("query", "select $a as a, $b as b", "-p", "a=x=y", "--param", "b=2", "--json")
        assert done.json() == [{"a": "x=y", "b": 2}]

    @pytest.mark.parametrize("param", ["a", "=1", "1a=2", "a b=1"])
    def test_bad_parameter_is_wrong_usage(self, param: str) -> None:
        with pytest.raises(UsageError, match="NAME=VALUE"):
            parse_params([param])

    def test_missing_value_names_the_option(self, trackr: Callable[..., Done]) -> None:
        done = trackr("query", "select $model")
        assert done.code == 1
        assert done.err == "trackr: no value for $model (--param model=VALUE)\n"


class TestWhereSqlComesFrom:
    def test_file(self, trackr: Callable[..., Done], tmp_path: Path) -> None:
        (tmp_path / "q.sql").write_text("select 3 as x -- done", encoding="utf-8")
        assert trackr("query", "-f", str(tmp_path / "q.sql"), "--json").json() == [{"x": 3}]

    @pytest.mark.parametrize("arguments", [["-"], ["-f", "-"]])
    def test_standard_input(self, url: str, arguments: list[str]) -> None:
        done = subprocess.run(
            command("query", *arguments, "--json", "--db", url),
            input="select 4 as x",
            capture_output=True,
            text=True,
            cwd=ROOT,
            env=environment(),
            check=True,
        )
        assert json.loads(done.stdout) == [{"x": 4}]

    def test_neither_or_both_is_wrong_usage(self, trackr: Callable[..., Done]) -> None:
        assert trackr("query").code == 2
        assert trackr("query", "select 1", "-f", "x.sql").code == 2

    def test_missing_file_is_named(self, trackr: Callable[..., Done]) -> None:
        done = trackr("query", "-f", "/nowhere/q.sql")
        assert done.code == 2
        assert "/nowhere/q.sql" in done.err


class TestLimits:
    @pytest.mark.parametrize("kind", FORMATS)
    def test_cut_result_says_so_and_names_the_option(self, trackr: Callable[..., Done], tmp_path: Path, kind: str) -> None:
        path = tmp_path / "out"
        done = trackr("query", "from range(10) t(i)", "--limit", "4", "--format", kind, "-o", str(path))
        assert done.code == 0
        assert "first 4 rows" in done.err
        assert "--limit" in done.err
        if kind == "parquet":
            assert pq.read_table(path)["i"].to_pylist() == [0, 1, 2, 3]

    @pytest.mark.parametrize("kind", FORMATS)
    @pytest.mark.parametrize("limit", ["10", "11"])
    def test_result_that_fits_says_nothing(self, trackr: Callable[..., Done], tmp_path: Path, kind: str, limit: str) -> None:
        done = trackr("query", "from range(10) t(i)", "--limit", limit, "--format", kind, "-o", str(tmp_path / "out"))
        assert (done.code, done.err) == (0, "")

    def test_terminal_shows_a_bounded_number_of_rows(self, trackr: Callable[..., Done], monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
        done = trackr("query", "select i, repeat('x', 100) as t from range(500) t(i)")
        assert len(done.out.splitlines()) == 102
        assert "x" * 59 + "…" in done.out
        assert "--all" in done.err
        whole = trackr("query", "select i, repeat('x', 100) as t from range(500) t(i)", "--all")
        assert len(whole.out.splitlines()) == 502
        assert "x" * 100 in whole.out
        assert whole.err == ""

    def test_binary_is_not_written_to_a_terminal(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
        with pytest.raises(UsageError, match="not for a terminal"):
            choose_format("parquet", None)


class TestErrors:
    def test_bad_sql_is_one_line_and_code_1(self, trackr: Callable[..., Done]) -> None:
        done = trackr("query", "select * from answrs")
        assert (done.code, done.out) == (1, "")
        assert done.err == 'trackr: line 1, column 15: Table with name answrs does not exist! (did you mean "answers"?)\n'

    def test_bad_sql_as_json(self, trackr: Callable[..., Done]) -> None:
        done = trackr("query", "select * from answrs", "--json")
        assert done.code == 1
        assert done.json()["error"]["kind"] == "query"
        assert done.json()["error"]["where"] == "line 1, column 15"

    def test_failed_query_leaves_no_file_and_keeps_the_old_one(self, trackr: Callable[..., Done], tmp_path: Path) -> None:
        path = tmp_path / "out.csv"
        path.write_text("old")
        done = trackr("query", "select cast(if(i = 9000, 'x', '1') as int) from range(10000) t(i)", "-o", str(path))
        assert done.code == 1
        assert path.read_text() == "old"
        assert [child.name for child in tmp_path.iterdir() if "out" in child.name] == ["out.csv"]

    def test_folder_that_does_not_exist(self, trackr: Callable[..., Done], tmp_path: Path) -> None:
        done = trackr("query", "select 1", "-o", str(tmp_path / "none" / "a.csv"))
        assert done.code == 1
        assert "No such file" in done.err

    def test_full_disk_is_said(self, trackr: Callable[..., Done]) -> None:
        done = trackr("query", "from range(100000)", "--format", "csv", "-o", "/dev/full")
        assert done.code == 1
        assert "No space left" in done.err

    def test_no_database_names_ingest_and_the_place(self, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
        done = runner(capfd, "--db", str(tmp_path / "none.db"))("query", "select 1")
        assert done.code == 1
        assert "trackr ingest" in done.err
        assert str(tmp_path / "none.db") in done.err
        assert list(tmp_path.iterdir()) == [], "asking creates nothing"


class TestSyncing:
    def test_newer_database_is_synced_first(self, trackr: Callable[..., Done], url: str) -> None:
        count = "select count(*) as n from runs"
        assert trackr("query", count, "--json").json() == [{"n": 6}]
        db = new_run(url)
        assert trackr("query", count, "--json", "--no-sync").json() == [{"n": 6}]
        assert trackr("query", count, "--json").json() == [{"n": 7}]
        db.close()

    def test_no_sync_needs_no_database(self, trackr: Callable[..., Done], tmp_path: Path) -> None:
        for path in tmp_path.glob("trackr.db*"):
            path.unlink()
        assert trackr("query", "select count(*) as n from runs", "--json", "--no-sync").json() == [{"n": 6}]
        assert trackr("query", "select 1").code == 1


def new_run(url: str) -> Any:
    from tracker.database import open_database

    db = open_database(url)
    add_run(db, 30)
    return db


class TestProcess:
    def test_closed_pipe_is_no_error(self, url: str) -> None:
        with subprocess.Popen(
            command("query", "from range(1000000)", "--format", "csv", "--db", url),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=ROOT,
            env=environment(),
        ) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            process.stdout.readline()
            process.stdout.close()
            assert process.wait(timeout=60) == 0
            assert process.stderr.read() == b""

    def test_interrupt_ends_with_130(self, url: str, tmp_path: Path) -> None:
        import signal

        running = tmp_path / "running.csv"
        sql = f"copy (select 1) to '{running}'; select count(*) from range(10000000000) a, range(1000) b"
        with subprocess.Popen(command("query", sql, "--db", url), stderr=subprocess.PIPE, cwd=ROOT, env=environment()) as process:
            while not running.exists():
                assert process.poll() is None
                time.sleep(0.05)
            time.sleep(0.5)
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=60) == 130

    def test_fresh_lake_is_asked_without_the_orm(self, url: str) -> None:
        script = f"""
import sys
from cli.main import main
try:
    main(["query", "select 1", "--db", {url!r}])
except SystemExit as ended:
    assert not ended.code
loaded = [name for name in ("sqlalchemy", "alembic", "pandas", "pydantic", "scipy", "pyarrow", "numpy") if name in sys.modules]
print(loaded, file=sys.stderr)
"""
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, env=environment(), check=True)
        assert done.stderr == "[]\n"

    def test_binary_goes_to_a_pipe(self, url: str) -> None:
        done = subprocess.run(
            command("query", "select 42 as x", "--format", "parquet", "--db", url),
            capture_output=True,
            cwd=ROOT,
            env=environment(),
            check=True,
        )
        assert pq.read_table(io.BytesIO(done.stdout)).to_pylist() == [{"x": 42}]


@pytest.mark.parametrize(
    ("sql", "options", "message"),
    [
        ("select interval '-178000000 years' i", (), "a value is beyond what can be shown"),
        ("select interval '1 year' i", ("--format", "parquet"), "Parquet has no type for the intervals of i"),
        ("select \udcff", (), "bytes that are not UTF-8"),
    ],
)
def test_what_no_output_can_hold_is_one_line_with_the_remedy(
    trackr: Callable[..., Done], sql: str, options: tuple[str, ...], message: str
) -> None:
    done = trackr("query", sql, *options)
    assert done.code in {1, 2}
    assert done.err.count("\n") == 1
    assert message in done.err


def test_an_id_beyond_every_row_is_unknown(trackr: Callable[..., Done]) -> None:
    for command in (("runs", "show"), ("runs", "delete", "--yes"), ("analyses", "show")):
        done = trackr(*command, "99999999999999999999")
        assert done.code in {1, 2}
        assert done.err.count("\n") == 1
