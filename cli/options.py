"""Options that several commands share."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tracker.config import locate

if TYPE_CHECKING:
    from collections.abc import Callable

F = TypeVar("F", bound="Callable[..., Any]")


def store_options(function: F) -> F:
    """`--db` and `--lake`; the command receives `location`."""

    @click.option(
        "--db", metavar="URL", help="Database: a path or a SQLAlchemy URL (default: TRACKR_DB, trackr.toml, ./.trackr/trackr.db)."
    )
    @click.option("--lake", metavar="DIR", help="Lake folder (default: TRACKR_LAKE, trackr.toml, beside the database).")
    @functools.wraps(function)
    def wrapped(*args: Any, db: str | None, lake: str | None, **kwargs: Any) -> Any:
        return function(*args, location=locate(db, lake), **kwargs)

    return wrapped  # type: ignore[return-value]


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON on stdout.")

ROW_ID = click.IntRange(0, 2**63 - 1, clamp=True)
"""Id of a row in the database; what lies beyond any is none."""
