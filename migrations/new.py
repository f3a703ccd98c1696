"""Write the revision that leads from the last one to the tables of `tracker/schema.py` (for developers: `make migration`).

python -m migrations.new "What it does"           a new revision
python -m migrations.new --first "The tables"     the first one, again: only until it was released
"""

from __future__ import annotations

import sys
from pathlib import Path

import sqlalchemy as sa
from alembic import command

from tracker.database import migrate

VERSIONS = Path(__file__).parent / "versions"


def write(message: str, *, first: bool = False) -> Path:
    """Compare the tables with what the revisions make of an empty SQLite database; write the difference."""
    if first:
        for path in VERSIONS.glob("0*.py"):
            path.unlink()
    revision = f"{len(list(VERSIONS.glob('0*.py'))) + 1:04d}"
    engine = sa.create_engine("sqlite://")
    with engine.connect() as connection:
        config = migrate.config(connection)
        if revision != "0001":
            command.upgrade(config, "head")
        script = command.revision(config, message, autogenerate=True, rev_id=revision)
    engine.dispose()
    path = Path(script.path)  # type: ignore[union-attr]  # one script, as one head
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join(line for line in lines if not line.strip().startswith("# ###")), encoding="utf-8")
    return path


if __name__ == "__main__":
    arguments = [argument for argument in sys.argv[1:] if argument != "--first"]
    sys.stdout.write(f"{write(' '.join(arguments), first='--first' in sys.argv)}\n")
