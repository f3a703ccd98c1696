"""What an analysis needs of a session: a DuckDB connection with the star views, and how it was made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import duckdb


class StarSession(Protocol):
    """`tracker.lake.Session`, as far as analyses use it."""

    @property
    def connection(self) -> duckdb.DuckDBPyConnection:
        """DuckDB with the star views."""

    @property
    def uuid(self) -> str:
        """Identity of the database."""

    @property
    def data_version(self) -> int:
        """Version of its data."""

    def ensure_files(self) -> None:
        """Make sure that what the views read is there."""

    def trajectories_sql(self, where: str | None = None) -> str:
        """SQL of the trajectories of the answers that satisfy a condition."""
