"""A report in one HTML file: headline, charts as SVG, tables with what their columns mean, and where the numbers come from."""

from __future__ import annotations

import html
import json
from typing import TYPE_CHECKING, Any

from analyses.text import headline_kind, number

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from analyses.result import Result, Table

ROWS = 200
"""Rows of a table that the report shows."""

STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; max-width: 1100px; margin: 2rem auto; padding: 0 1rem; color: #1c1c1c; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
table { border-collapse: collapse; font-size: 13px; } .wide { overflow-x: auto; }
th, td { padding: .22rem .6rem; border-bottom: 1px solid #ddd; text-align: left; white-space: nowrap; }
th { border-bottom: 2px solid #888; cursor: help; } td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
.warning { background: #fff4d6; border-left: 4px solid #e69f00; padding: .4rem .8rem; margin: .4rem 0; }
pre { background: #f5f5f5; padding: .8rem; overflow-x: auto; } svg { max-width: 100%; height: auto; } .note { color: #666; }
"""


def save_report(result: Result, path: Path) -> None:
    """Write the report."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(report(result), encoding="utf-8")


def report(result: Result) -> str:
    """The report as text; it needs nothing from a network."""
    from analyses.plot import figure, svg

    title = f"trackr analyze {result.analysis}"
    parts = [
        f"<h1>{_text(title)}</h1>",
        *(f'<p class="warning">{_text(warning)}</p>' for warning in result.warnings),
        _headline(result.headline),
    ]
    if result.charts:
        parts += ["<h2>Charts</h2>", svg(figure(result))]
    parts += [_table(table) for table in result.tables.values()]
    parts.append(_provenance(result))
    body = "\n".join(parts)
    return f'<!DOCTYPE html>\n<html lang="en">\n<head><meta charset="utf-8"><title>{_text(title)}</title><style>{STYLE}</style></head>\n<body>\n{body}\n</body>\n</html>\n'


def _headline(headline: Mapping[str, Any]) -> str:
    rows = "".join(
        f'<tr><td>{_text(name)}</td><td class="n">{_text(number(value, headline_kind(value)))}</td></tr>'
        for name, value in headline.items()
    )
    return f"<table>{rows}</table>"


def _table(table: Table) -> str:
    shown = min(len(table), ROWS)
    head = "".join(f'<th{_side(column.kind)} title="{_text(column.meaning)}">{_text(column.name)}</th>' for column in table.columns)
    rows = []
    for row in range(shown):
        cells = (f"<td{_side(column.kind)}>{_text(number(table.data[column.name][row], column.kind))}</td>" for column in table.columns)
        rows.append(f"<tr>{''.join(cells)}</tr>")
    more = f'<p class="note">{len(table) - shown:,} more rows: --csv or --json gives all {len(table):,}.</p>' if shown < len(table) else ""
    return f'<h2>{_text(table.title)}</h2>\n<div class="wide"><table><tr>{head}</tr>\n{"".join(rows)}</table></div>{more}'


def _provenance(result: Result) -> str:
    facts = {
        "parameters": json.dumps(result.envelope()["parameters"]),
        "cohort rows": f"{result.cohort.rows:,}",
        "cohort digest": result.cohort.digest,
        "database": f"{result.database}, data version {result.data_version}",
        "trackr": result.code_version,
        "DuckDB": result.engine_version,
        "seconds": f"{result.seconds:.2f}",
    }
    rows = "".join(f"<tr><td>{_text(name)}</td><td>{_text(value)}</td></tr>" for name, value in facts.items())
    return f'<h2>Where the numbers come from</h2><div class="wide"><table>{rows}</table></div><pre>{_text(result.cohort.sql)}</pre>'


def _side(kind: str) -> str:
    return "" if kind == "text" else ' class="n"'


def _text(value: object) -> str:
    return html.escape(str(value), quote=True)
