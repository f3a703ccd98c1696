"""Options that several commands share."""

from __future__ import annotations

import functools
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

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


class Moment(click.ParamType):  # type: ignore[type-arg] # generic since click 8.2 only
    """A point in time: ISO 8601 (UTC unless it names a zone), or how long ago: 30m, 12h, 7d, 2w."""

    name = "time"
    _units: ClassVar[dict[str, str]] = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        """The time, with its zone."""
        if isinstance(value, datetime):
            return value
        text = str(value).strip()
        try:
            if text[-1:] in self._units and text[:-1].isdigit():
                return datetime.now(UTC) - timedelta(**{self._units[text[-1]]: int(text[:-1])})
            found = datetime.fromisoformat(text)
        except (ValueError, OverflowError):
            self.fail(
                f"expected a date (2026-11-30), a time (2026-11-30T12:00+01:00) or an age (2w, 7d, 12h, 30m), found {value!r}", param, ctx
            )
        return found if found.tzinfo else found.replace(tzinfo=UTC)
