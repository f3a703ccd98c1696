"""`trackr db`: upgrade, current, check."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from cli.main import main
from tracker.database import create, migrate

if TYPE_CHECKING:
    from pathlib import Path


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command."""
    with pytest.raises(SystemExit) as caught:
        main(["db", *arguments])
    streams = capsys.readouterr()
    return int(caught.value.code or 0), streams.out, streams.err


def run_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, Any]:
    code, out, _ = run(capsys, *arguments, "--json")
    return code, json.loads(out)


def test_upgrade_makes_the_database_and_is_a_no_op_the_second_time(database_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, first = run_json(capsys, "upgrade", "--db", database_url)
    assert (code, first["before"], first["after"], first["changed"]) == (0, None, migrate.head(), True)
    code, second = run_json(capsys, "upgrade", "--db", database_url)
    assert (code, second["before"], second["changed"]) == (0, migrate.head(), False)
    code, out, _ = run(capsys, "upgrade", "--db", database_url)
    assert (code, "is up to date" in out) == (0, True)


def test_current_says_both_revisions(database_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_json(capsys, "current", "--db", database_url)[1] | {"database": ""} == {
        "database": "",
        "current": None,
        "head": migrate.head(),
        "up_to_date": False,
    }
    run(capsys, "upgrade", "--db", database_url)
    code, out, _ = run(capsys, "current", "--db", database_url)
    assert (code, f"is at schema {migrate.head()} (up to date)" in out) == (0, True)


def test_looking_at_a_database_does_not_make_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A typing error in --db must not leave an empty database behind that later reads as "no data"."""
    path = tmp_path / "missing.db"
    assert run(capsys, "current", "--db", str(path))[0] == 0
    assert run(capsys, "check", "--db", str(path))[0] == 1
    assert not path.exists()


def test_check_lists_differences_and_exits_with_one(database_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, "upgrade", "--db", database_url)
    assert run_json(capsys, "check", "--db", database_url)[1]["differences"] == []
    engine = create(database_url)
    with engine.begin() as connection:
        connection.exec_driver_sql(f"ALTER TABLE {'' if engine.dialect.name == 'sqlite' else 'trackr.'}runs ADD COLUMN colour TEXT")
    engine.dispose()
    code, report = run_json(capsys, "check", "--db", database_url)
    assert code == 1
    assert report["equal"] is False
    assert "colour" in report["differences"][0]


def test_a_database_of_a_newer_version_is_one_line_with_a_remedy(database_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, "upgrade", "--db", database_url)
    engine = create(database_url)
    table = "trackr_alembic_version" if engine.dialect.name == "sqlite" else "trackr.alembic_version"
    with engine.begin() as connection:
        connection.exec_driver_sql(f"UPDATE {table} SET version_num = '9999'")
    engine.dispose()
    for command in ("upgrade", "current", "check"):
        code, out, err = run(capsys, command, "--db", database_url)
        assert (code, out) == (1, "")
        assert err.count("\n") == 1
        assert "newer trackr" in err
        assert "pip install --upgrade trackr" in err
    code, report = run_json(capsys, "current", "--db", database_url)
    assert (code, report["error"]["kind"]) == (1, "database")


def test_a_password_is_never_printed(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "current", "--db", "postgresql://me:hunter2@127.0.0.1:1/x")
    assert (code, out) == (1, "")
    assert "hunter2" not in err
    assert "me:***@127.0.0.1" in err


def test_a_file_that_is_no_database_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("shopping list, long enough to be read as a header\n" * 40)
    for command in ("upgrade", "current", "check"):
        code, _, err = run(capsys, command, "--db", str(path))
        assert (code, err.count("\n")) == (1, 1)
        assert str(path) in err
