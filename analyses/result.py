"""What every analysis hands back: headline numbers, documented tables, charts, and where they came from."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import pandas as pd
    import pyarrow as pa

Kind = Literal["text", "count", "share", "slope", "number"]
"""How a column is printed: words, whole numbers, fractions of 0..1, changes per doubling, any other number."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table and what it means."""

    name: str
    meaning: str
    kind: Kind = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table of plain Python values; a missing number is None."""

    title: str
    columns: tuple[Column, ...]
    data: Mapping[str, list[Any]]
    shown: int = 40
    """Rows that the human output prints before it points to --csv."""

    @classmethod
    def of(cls, title: str, columns: Sequence[Column], data: Mapping[str, Iterable[Any]], *, shown: int = 40) -> Table:
        """A table from columns of any kind (lists, NumPy arrays); NaN and infinity become None."""
        return cls(
            title=title,
            columns=tuple(columns),
            data={column.name: [plain(value) for value in data[column.name]] for column in columns},
            shown=shown,
        )

    def __repr__(self) -> str:
        """Short: title, rows and columns."""
        return f"<Table {self.title!r}: {counted(len(self), 'row')} of {', '.join(self.names)}>"

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.data[self.columns[0].name]) if self.columns else 0

    @property
    def names(self) -> tuple[str, ...]:
        """Column names in order."""
        return tuple(column.name for column in self.columns)

    def rows(self) -> list[dict[str, Any]]:
        """One dict for each row."""
        names = self.names
        return [dict(zip(names, values, strict=True)) for values in zip(*(self.data[name] for name in names), strict=True)]

    def arrow(self) -> pa.Table:
        """The table in Arrow."""
        import pyarrow as pa

        return pa.table({name: pa.array(self.data[name]) for name in self.names})

    def df(self) -> pd.DataFrame:
        """The table as a pandas frame."""
        import pandas as pd

        return pd.DataFrame({name: self.data[name] for name in self.names})


class Charts(Mapping[str, Any]):
    """Charts by name, each drawn when it is asked for (so that Altair is imported only then)."""

    def __init__(self, draw: Mapping[str, Callable[[], Any]] | None = None) -> None:
        self._draw = dict(draw or {})

    def __repr__(self) -> str:
        """Their names; nothing is drawn."""
        return f"<Charts {', '.join(self._draw) or 'none'}>"

    def __getitem__(self, name: str) -> Any:
        """Draw one chart."""
        return self._draw[name]()

    def __iter__(self) -> Iterator[str]:
        """Names in order."""
        return iter(self._draw)

    def __len__(self) -> int:
        """Number of charts."""
        return len(self._draw)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cohort:
    """The rows that an analysis used: their SQL (named parameters are the analysis' own), number and digest."""

    sql: str
    rows: int
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedLaw:
    """A law fitted to one group; a row of `fits`."""

    law: str
    group_key: str
    parameters: Mapping[str, Any]
    n: int
    k: int
    at_bound: tuple[str, ...] = ()
    sse: float | None = None
    r2: float | None = None
    bic: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The answer of an analysis."""

    analysis: str
    parameters: Mapping[str, Any]
    cohort: Cohort
    headline: Mapping[str, Any]
    tables: Mapping[str, Table]
    charts: Charts = field(default_factory=Charts)
    warnings: tuple[str, ...] = ()
    fits: tuple[FittedLaw, ...] = ()
    seconds: float
    database: str
    data_version: int
    code_version: str
    engine_version: str
    seed: int | None = None

    def __repr__(self) -> str:
        """Short: the analysis, its headline, and what else there is."""
        headline = ", ".join(f"{name} {_short(value)}" for name, value in self.headline.items())
        tables = ", ".join(f"{name} ({len(table)})" for name, table in self.tables.items())
        return (
            f"<Result {self.analysis}: {headline or 'no headline'}; tables: {tables or 'none'}; charts: {', '.join(self.charts) or 'none'}; "
            f"{counted(len(self.warnings), 'warning')}>"
        )

    def warn(self, message: str) -> Result:
        """The same result with one more warning."""
        return dataclasses.replace(self, warnings=(*self.warnings, message))

    def envelope(self) -> dict[str, Any]:
        """What `--json` prints: plain values, full precision, null for NaN and infinity."""
        return {
            "analysis": self.analysis,
            "parameters": {name: plain(value) for name, value in self.parameters.items()},
            "cohort": {"sql": self.cohort.sql, "rows": self.cohort.rows, "digest": self.cohort.digest},
            "headline": {name: plain(value) for name, value in self.headline.items()},
            "tables": {name: table.rows() for name, table in self.tables.items()},
            "warnings": list(self.warnings),
            "seconds": self.seconds,
            "provenance": {
                "trackr": self.code_version,
                "engine": self.engine_version,
                "database": self.database,
                "data_version": self.data_version,
                "seed": self.seed,
            },
        }


def counted(number: int, what: str) -> str:
    """Such as 1 row, or 2 rows."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def plain(value: Any) -> Any:
    """A JSON value: NumPy scalars unpacked, NaN and infinity None."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    item = getattr(value, "item", None)
    return plain(item()) if item is not None else str(value)
