"""Charts into files: svg, png, or a page that works without a network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracker.errors import AnalysisError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from analyses.result import Result

FORMATS = ("svg", "png", "html")


def format_of(path: Path) -> str:
    """The chart format that a file name asks for."""
    suffix = path.suffix.lower().removeprefix(".")
    if suffix not in FORMATS:
        message = f"expected a file name ending in .{', .'.join(FORMATS)}"
        raise UsageError(message, where=f"--plot {path}")
    return suffix


def figure(result: Result, names: Sequence[str] = ()) -> Any:
    """The charts of a result (all, or those that are named) on one sheet.

    Raises UsageError for a name that is none, AnalysisError where there is nothing to draw.
    """
    check_names(result, names)
    if not result.charts:
        message = f"{result.analysis} has nothing to draw here"
        raise AnalysisError(message, where="--plot", hint="its tables and warnings say why")
    import altair as alt

    return (
        alt.concat(*(result.charts[name] for name in names or result.charts), columns=2)
        .resolve_scale(color="independent", size="independent")
        .configure_view(stroke="#ccc")
    )


def check_names(result: Result, names: Sequence[str]) -> None:
    """UsageError for a name of a chart that the result does not have."""
    if unknown := sorted(set(names) - set(result.charts)):
        message = f"{result.analysis} has no chart {unknown[0]!r} here"
        raise UsageError(message, where="--chart", hint="it has " + (", ".join(result.charts) or "none"))


def save_plot(result: Result, path: Path, names: Sequence[str] = ()) -> None:
    """Draw the charts (all, or those that are named) into one file."""
    kind = format_of(path)
    chart = figure(result, names)
    path.parent.mkdir(parents=True, exist_ok=True)
    if kind == "html":
        path.write_text(page(chart, f"trackr analyze {result.analysis}"), encoding="utf-8")
    else:
        chart.save(str(path), format=kind, **({"scale_factor": 2} if kind == "png" else {}))


def page(chart: Any, title: str) -> str:
    """An HTML page with the chart and the Vega code that draws it."""
    import html
    import json

    import vl_convert

    bundle = vl_convert.javascript_bundle("window.draw = (spec) => vegaEmbed('#chart', spec, {mode: 'vega-lite', actions: true});")
    spec = json.dumps(chart.to_dict()).replace("<", "\\u003c")
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head><meta charset="utf-8"><title>{html.escape(title)}</title></head>\n'
        f'<body>\n<div id="chart"></div>\n<script>{bundle}</script>\n<script>draw({spec});</script>\n</body>\n</html>\n'
    )


def svg(chart: Any) -> str:
    """A chart as SVG text."""
    import json

    import vl_convert

    return str(vl_convert.vegalite_to_svg(json.dumps(chart.to_dict())))
