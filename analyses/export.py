"""Results as files: one CSV per table."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from analyses.result import Result, Table


def save_csv(result: Result, folder: Path) -> list[Path]:
    """Write `<folder>/<table>.csv` for every table of a result, full precision, empty for a missing value."""
    return save_tables(result.tables, folder)


def save_tables(tables: Mapping[str, Table], folder: Path) -> list[Path]:
    """Write `<folder>/<table>.csv` for every table."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, table in tables.items():
        path = folder / f"{name}.csv"
        with path.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerow(table.names)
            writer.writerows(zip(*(map(_cell, table.data[column]) for column in table.names), strict=True))
        paths.append(path)
    return paths


def _cell(value: Any) -> Any:
    return repr(value) if isinstance(value, float) else value
