"""Results for people: rounded, aligned, with what each table means."""

from __future__ import annotations

from math import isnan
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from analyses.result import Column, Kind, Result, Table


SMALLEST_SHARE = 0.001


def render(result: Result) -> str:
    """Headline and tables; long tables are cut and say so."""
    return "\n\n".join([render_headline(result.headline), *(render_table(name, table) for name, table in result.tables.items())])


def render_headline(headline: Mapping[str, Any]) -> str:
    """One number per line."""
    width = max((len(name) for name in headline), default=0)
    return "\n".join(f"{name:<{width}}  {number(value, headline_kind(value))}" for name, value in headline.items())


def render_table(name: str, table: Table) -> str:
    """The table under its title; an interval x_low, x_high stands beside x."""
    shown = min(len(table), table.shown)
    lines = [f"{name}: {table.title.split(': ', 1)[-1]}"]
    if not shown:
        return lines[0] + "\n  (empty)"
    columns = [_cells(table, column, shown) for column in table.columns if not _is_interval_end(table, column)]
    widths = [max(map(len, cells)) for cells, _ in columns]
    for row in range(shown + 1):
        cells = [
            cells[row].rjust(width) if right else cells[row].ljust(width) for (cells, right), width in zip(columns, widths, strict=True)
        ]
        lines.append(("  " + "  ".join(cells)).rstrip())
    if shown < len(table):
        lines.append(f"  ... {len(table) - shown:,} more rows: --csv DIR or --json gives all {len(table):,}")
    return "\n".join(lines)


def number(value: Any, kind: Kind) -> str:
    """A value as people read it; nothing for a missing one."""
    if value is None or (isinstance(value, float) and isnan(value)):
        return "-"
    if isinstance(value, bool) or kind == "text":
        return str(value)
    if isinstance(value, int) or kind == "count":
        return f"{value:,}"
    return f"{value:.3f}" if kind == "share" else f"{value:.4f}" if kind == "slope" else f"{value:.4g}"


def _cells(table: Table, column: Column, shown: int) -> tuple[list[str], bool]:
    """Heading and cells of a column, and whether they stand at the right."""
    cells = [number(value, column.kind) for value in table.data[column.name][:shown]]
    if f"{column.name}_low" in table.data and f"{column.name}_high" in table.data:
        low, high = (table.data[f"{column.name}_{end}"][:shown] for end in ("low", "high"))
        cells = [
            cell if a is None or b is None else f"{cell} [{number(a, column.kind)}, {number(b, column.kind)}]"
            for cell, a, b in zip(cells, low, high, strict=True)
        ]
    return [column.name, *cells], column.kind != "text"


def _is_interval_end(table: Table, column: Column) -> bool:
    stem, _, end = column.name.rpartition("_")
    return end in {"low", "high"} and {stem, f"{stem}_low", f"{stem}_high"} <= set(table.data)


def headline_kind(value: Any) -> Kind:
    """How a number of a headline is printed: three decimals between 0.001 and 1, four digits otherwise."""
    if isinstance(value, float):
        return "share" if SMALLEST_SHARE <= abs(value) <= 1 or value == 0 else "number"
    return "count" if isinstance(value, int) else "text"
