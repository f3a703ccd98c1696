"""Results as files: one CSV per table."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from analyses.result import Result


def save_csv(result: Result, folder: Path) -> list[Path]:
    """Write `<folder>/<table>.csv` for every table, full precision, empty for a missing value."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, table in result.tables.items():
        path = folder / f"{name}.csv"
        with path.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerow(table.names)
            writer.writerows(zip(*(map(_cell, table.data[column]) for column in table.names), strict=True))
        paths.append(path)
    return paths


def _cell(value: Any) -> Any:
    return repr(value) if isinstance(value, float) else value
